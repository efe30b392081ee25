"""The marginal law of one number under joint noise: tails in closed form, for any size and ε."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from math import prod

from flint import arb

from sfumato.noise.balls import Ball, ball, precision
from sfumato.noise.joint_laplace import JointLaplace

GUARD = 96  # bits for each favoured part: A and B·rⁿ may nearly agree
Pieces = tuple[tuple[Ball, bool], ...]  # a sum of constants, and of constants times rⁿ


@dataclass(frozen=True)
class Margin:
    """The law of z_place alone."""

    joint: JointLaplace
    place: int

    def beyond(self, m: int, prec: int) -> Ball:
        """P(|z_place| > m)."""
        with precision(_work(self.joint, prec)):
            first = self.joint.reached(self.place, m + 1)
            return _sum(self.joint, first, self.place, m) / _whole(self.joint, prec)


def higher(joint: JointLaplace, r: int, prec: int) -> Ball:
    """P(R > r) for the level R."""
    with precision(_work(joint, prec)):
        return _sum(joint, r + 1) / _whole(joint, prec)


def _work(joint: JointLaplace, prec: int) -> int:
    return prec + GUARD * (len(joint.slopes) + 1)


@lru_cache(maxsize=256)
def _whole(joint: JointLaplace, prec: int) -> Ball:
    return _sum(joint, 0)


def _sum(joint: JointLaplace, first: int, place: int | None = None, m: int = 0) -> Ball:
    """Σ e^{−λεR/M} · Π (number of points, each with its weight, that zⱼ has in the box of R) over R ≥ first.

    Of `place` only those with |z| > m count, which no box before `first` has. With R = iM + t, a side is n = i·s +
    ⌊ts/M⌋: the number is a polynomial in i for a uniform part, and A − B·rⁿ for the others, r = e^{−wε/s}. So for each
    t < M there is Σ xⁱ·P(i) for a few x, such as e^{−λε} and e^{−(λ+w)ε}: see `_powers`.
    """
    free = [j for j in range(len(joint.sizes)) if j not in joint.slopes]
    cut = {j: m if j == place else None for j in range(len(joint.sizes))}
    starts = [max(0, -((t - first) // joint.levels)) for t in range(joint.levels)]

    def points(r: int) -> int:
        return prod(_points(joint.side(j, r), cut[j]) for j in free)

    degrees = range(len(free) + 1)
    rows = [_differences([points((i + k) * joint.levels + t) for k in degrees]) for t, i in enumerate(starts)]
    total = arb(0)
    for chosen in product(*(_pieces(slope, cut[j]) for j, slope in joint.slopes.items())):
        falling = {j: joint.slopes[j] for j, (_, falls) in zip(joint.slopes, chosen, strict=True) if falls}
        constant = prod((piece for piece, _ in chosen), start=arb(1))
        rate = joint.common + sum(slope * joint.sizes[j] for j, slope in falling.items())
        powers = _powers(ball(-rate), len(free) + 1)
        for t, (i, row) in enumerate(zip(starts, rows, strict=True)):
            log = i * rate + joint.common * t / joint.levels
            log += sum(slope * joint.side(j, t) for j, slope in falling.items())
            total += constant * ball(-log).exp() * sum((d * x for d, x in zip(row, powers, strict=True)), arb(0))
    return total


def _points(side: int, cut: int | None) -> int:
    """Integers of [−side, side], or those of them beyond ±cut."""
    return 2 * side + 1 if cut is None else 2 * (side - cut)


def _pieces(slope: Fraction, cut: int | None) -> Pieces:
    """Σ r^|k| over |k| ≤ n is A − B·rⁿ, A = (1 + r)/(1 − r), B = 2r/(1 − r); over cut < |k| ≤ n, B·(r^cut − rⁿ)."""
    r, rest = ball(-slope).exp(), -ball(-slope).expm1()
    b = 2 * r / rest
    return ((1 + r) / rest if cut is None else b * ball(-cut * slope).exp(), False), (-b, True)


def _differences(values: Sequence[int]) -> list[int]:
    """P(0), ΔP(0), Δ²P(0), … of a polynomial with these values at 0, 1, 2, …"""
    row, found = list(values), list[int]()
    while row:
        found.append(row[0])
        row = [b - a for a, b in pairwise(row)]
    return found


def _powers(log: Ball, count: int) -> list[Ball]:
    """xʲ/(1 − x)^{j+1}, x = e^log.

    Theorem: Σ xⁱ·P(i) over i ≥ 0 is Σ ΔʲP(0)·xʲ/(1 − x)^{j+1} over j up to the degree [Newton's forward differences]
    """
    rest = -log.expm1()
    return [(j * log).exp() / rest ** (j + 1) for j in range(count)]
