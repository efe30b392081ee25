"""The laws of additive noise from their definitions, as balls, without a line of the package's own laws.

Rounded laws have one outcome for all beyond `reach`. `seen` merges outcomes, which lowers what an oracle finds.
"""

from fractions import Fraction
from itertools import pairwise

from flint import arb

from sfumato.noise.balls import ball
from tests.mechanisms.oracle import e, exact, normalised

HALF = Fraction(1, 2)


@exact
def discrete_laplace(scale, reach):
    return normalised({k: e(-abs(k) / Fraction(scale)) for k in range(-reach, reach + 1)})


@exact
def discrete_gaussian(sigma, reach):
    return normalised({k: e(-(k**2) / (2 * Fraction(sigma) ** 2)) for k in range(-reach, reach + 1)})


def from_distribution(distribution, reach):
    """round(N) of a continuous N, distribution(x) = P(N ≤ x)."""
    below = [distribution(k - HALF) for k in range(-reach + 1, reach + 1)]
    cells = dict(zip(range(-reach + 1, reach), (b - a for a, b in pairwise(below)), strict=True))
    return {**cells, -reach: below[0], reach: 1 - below[-1]}


@exact
def rounded_laplace(scale, reach, centre=Fraction(0)):
    def distribution(x):
        y = (Fraction(x) - centre) / Fraction(scale)
        return e(y) / 2 if y < 0 else 1 - e(-y) / 2

    return from_distribution(distribution, reach)


@exact
def rounded_gaussian(sigma, reach, centre=Fraction(0)):
    return from_distribution(lambda x: 1 - (ball((x - centre) / Fraction(sigma)) / arb(2).sqrt()).erfc() / 2, reach)


@exact
def rounded_staircase(eps, period, gamma, reach, centre=Fraction(0)):
    """Stairs listed one by one: height e^{−jε} from (j − 1 + γ)Δ to (j + γ)Δ."""
    period, gamma = Fraction(period), Fraction(gamma)
    edges = [Fraction(0)] + [(j + gamma) * period for j in range(int((reach + abs(centre)) / period) + 2)]
    stairs = [(a, b, e(-j * Fraction(eps))) for j, (a, b) in enumerate(pairwise(edges))]
    last = edges[-1]
    side = sum((h * ball(b - a) for a, b, h in stairs), arb(0))
    side += e(-len(stairs) * Fraction(eps)) * ball(period) / (1 - e(-Fraction(eps)))

    def distribution(x):
        y = Fraction(x) - centre
        assert abs(y) <= last
        inner = sum((h * ball(max(min(b, abs(y)) - a, Fraction(0))) for a, b, h in stairs), arb(0))
        return (1 - inner / side) / 2 if y < 0 else (1 + inner / side) / 2

    return from_distribution(distribution, reach)


@exact
def truncated_laplace(scale, bound):
    return normalised({k: e(-abs(k) / Fraction(scale)) for k in range(-bound, bound + 1)})


@exact
def bounded_laplace(scale, low, high, centre):
    return normalised({k: e(-abs(k - centre) / Fraction(scale)) for k in range(low, high + 1)})


def moved(law, distance):
    return {k + distance: p for k, p in law.items()}


@exact
def together(*laws):
    """Independent coordinates."""
    joint = {(): arb(1)}
    for law in laws:
        joint = {(*outcome, k): p * q for outcome, p in joint.items() for k, q in law.items()}
    return joint


@exact
def seen(law, reach):
    """The law clamped to ±reach."""
    found = {}
    for k, p in law.items():
        end = max(-reach, min(reach, k))
        found[end] = found.get(end, arb(0)) + p
    return found
