"""Sums of very many sampled losses at tiny rates: a normal law, with a proved error.

At rate q a step's loss is L = log(1 + X), X = q(R − 1), R = dP/dQ of what is sampled; E_Q X = 0, so moments of X are
those of R times powers of q, and Taylor's theorem encloses those of L. With A = ΣE L, V = ΣVar L, and the central
moments above,
    |P(S > s) − Φ̄((s − A)/√V)| ≤ β = 0.56·ΣE|L − EL|³/V^{3/2},      P(S > A + y) ≤ E(S − A)⁶/y⁶,
    δ(ε) = ∫_ε^∞ e^{ε−s} P(S > s) ds,
so δ is within β·(T − ε) + ∫_T^∞ E(S − A)⁶/(s − A)⁶ ds of N(A, V)'s, for every T ≥ ε. A profile is 1-Lipschitz in a
shift of the loss, and moves by at most max(1, 1/√(2πV))/2 times a change of V: it is that of N(V/2, V), nearly.

Theorem: sums of independent losses are within 0.56·ΣE|L − EL|³/V^{3/2} of normal [Esseen 1942; Shevtsova 2010]
Theorem: E(S − A)⁶ ≤ 15V³ + 15V·Σμ₄ + 10(Σμ₃)² + Σμ₆, blocks of equal factors [multinomial theorem, independence]
Theorem: moments of log(1 + X) from those of X ≥ −q, by |log(1 + x)| ≤ |x|/√(1 + x) and Taylor [the docstrings below]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from sfumato.loss.base import TOLERANCE, Engine, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.gaussian import gaussian_profile
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.kinds.wrappers import Reversed
from sfumato.loss.numeric import ULP, Enclosure, Floats

LOWEST, HIGHEST = 1e-40, 1e-3  # rates: below, sixth powers underflow; above, other engines are sharper
LARGEST = 300.0  # log of E R⁶
LEAST_VARIANCE = 1e-80  # of the sum: its cube must not underflow
SLACK = 256 * ULP  # more than all roundings of sums and products below
BLURRED = 1e-2  # relative gap from which the other engine is asked too
SHEVTSOVA = 0.56
FARTHEST = 1e3  # deviations: the law alone is not sharp there

Steps = tuple[tuple[int, PrivacyLoss], ...]


@dataclass(frozen=True)
class Moments:
    """Of one step's loss: mean and variance from both sides, |L − EL|ʲ from above for j = 3, 4, 6."""

    mean: tuple[float, float]
    variance: tuple[float, float]
    third: float
    fourth: float
    sixth: float


def of_step(loss: PrivacyLoss) -> Moments | None:
    """The moments of a sampled loss, looked at forward or backward, if they are known well enough."""
    backward, sampled = (True, loss.inner) if isinstance(loss, Reversed) else (False, loss)
    if not isinstance(sampled, PoissonSampledLoss) or not LOWEST <= sampled.rate <= HIGHEST:
        return None
    if not sampled.inner.one_pair or sampled.inner.leak() != (0.0, 0.0):  # moments of a class belong to no one pair
        return None
    logs = [sampled.inner.log_moment(float(j - 1)) for j in range(2, 7)]
    if not logs[-1].upper < LARGEST or not logs[0].lower > 0:
        return None
    excess = [(math.expm1(log.lower) * (1 - 16 * ULP), math.expm1(log.upper) * (1 + 16 * ULP)) for log in logs]
    return (from_behind if backward else from_ahead)(sampled.rate, *powers(excess))


def powers(excess: list[tuple[float, float]]) -> tuple[tuple[float, float], tuple[float, float], float, float, float]:
    """E(R−1)², E(R−1)³ from both sides, E|R−1|³, E(R−1)⁴ and E(R−1)⁶ from above, by those of Rʲ − 1, j = 2 … 6.

    (1 − R)₊³ is at most 1 and at most (1 − R)², so E|R−1|³ ≤ E(R−1)³ + 2·min(1, E(R−1)²). For small losses Cauchy and
    Schwarz say more.
    """
    second = excess[0]
    third = signed_sum(excess, (-3, 1))
    fourth, sixth = signed_sum(excess, (6, -4, 1))[1], signed_sum(excess, (15, -20, 15, -6, 1))[1]
    absolute = min(third[1] + 2 * min(1.0, second[1]), math.sqrt(second[1] * fourth))
    return second, third, absolute, fourth, sixth


def signed_sum(excess: list[tuple[float, float]], weights: tuple[int, ...]) -> tuple[float, float]:
    """Σ weight·(Rʲ − 1) from both sides, rounding included."""
    first = excess[: len(weights)]
    pairs = [(w * a, w * b) if w > 0 else (w * b, w * a) for w, (a, b) in zip(weights, first, strict=True)]
    slip = SLACK * math.fsum(max(abs(low), abs(high)) for low, high in pairs)
    return math.fsum(low for low, _ in pairs) - slip, math.fsum(high for _, high in pairs) + slip


def from_ahead(
    q: float, second: tuple[float, float], third: tuple[float, float], absolute: float, fourth: float, sixth: float
) -> Moments:
    """Under (1 + X)·Q: (1+x)log(1+x) − x − x²/2 + x³/6 is in [0, b], (1+x)log²(1+x) in [x² − b, x²], b = x⁴/12(1−q)³.

    Their fourth and third derivatives are 2/(1+x)³ and −2log(1+x)/(1+x)², and |log(1+x)| ≤ |x|/(1 − q).
    """
    m2, m3, m4 = scale_bounds(q, 2, second), scale_bounds(q, 3, third), q**4 * fourth
    bend = m4 / (12 * (1 - q) ** 3)
    mean = m2[0] / 2 - m3[1] / 6, m2[1] / 2 - m3[0] / 6 + bend
    return gather_moments(q, mean, (m2[0] - bend, m2[1]), absolute, fourth, sixth)


def from_behind(
    q: float, second: tuple[float, float], third: tuple[float, float], absolute: float, fourth: float, sixth: float
) -> Moments:
    """Under Q, of −L: −log(1+x) + x − x²/2 + x³/3 is in [0, x⁴/4(1−q)⁴], log²(1+x) in [x² − x³, x² − x³ + x⁴/(1−q)].

    The latter from log²(1+x) ≤ x²/(1+x), and below from |log(1+x)| ≥ |x − x²/2| for x < 1, where x² − x³ > 0.
    """
    m2, m3, m4 = scale_bounds(q, 2, second), scale_bounds(q, 3, third), q**4 * fourth
    mean = m2[0] / 2 - m3[1] / 3, m2[1] / 2 - m3[0] / 3 + m4 / (4 * (1 - q) ** 4)
    return gather_moments(q, mean, (m2[0] - m3[1], m2[1] - m3[0] + m4 / (1 - q)), absolute, fourth, sixth)


def scale_bounds(q: float, power: int, pair: tuple[float, float]) -> tuple[float, float]:
    """qʲ times a pair of bounds."""
    return q**power * pair[0], q**power * pair[1]


def gather_moments(
    q: float, mean: tuple[float, float], square: tuple[float, float], absolute: float, fourth: float, sixth: float
) -> Moments:
    """Var L = E L² − (E L)², and ‖L − EL‖ⱼ ≤ ‖L‖ⱼ + |EL| with E|L|ʲ ≤ E|X|ʲ·(1−q)^{−j/2}."""
    slip = SLACK * (square[1] + abs(mean[0]) + abs(mean[1]))
    middle = max(abs(mean[0]), abs(mean[1])) + slip
    third, fourth, sixth = (
        (q * (moment * (1 - q) ** (-j / 2)) ** (1 / j) + middle) ** j * (1 + SLACK)
        for j, moment in ((3, absolute), (4, fourth), (6, sixth))
    )
    variance = square[0] - middle**2 - slip, square[1] + slip
    return Moments((mean[0] - slip, mean[1] + slip), variance, third, fourth, sixth)


@dataclass(frozen=True)
class Normal:
    """N(V/2, V) and how far a profile may be from its own."""

    deviation: float  # √V
    shift: float  # |A − V/2| and what an unknown V changes
    centre: tuple[float, float]  # A
    apart: float  # β
    sixth: float  # E(S − A)⁶
    otherwise: Engine

    method = "normal law"

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """δ within the proved error; where that is large, also from the other engine."""
        return self.sharpen(eps, lambda t: self.otherwise.forward(t, tolerance))

    def sharpen(self, eps: Floats, other: Callable[[Floats], Enclosure]) -> Enclosure:
        """δ from this law, and from another curve too where this one is blurred."""
        low, high = self.alone(eps)
        blurred = high - low > BLURRED * high
        if blurred.any():
            found = other(eps[blurred])
            low[blurred], high[blurred] = np.maximum(low[blurred], found.lower), np.minimum(high[blurred], found.upper)
        return Enclosure(low, high)

    def alone(self, eps: Floats) -> Enclosure:
        """δ within the proved error."""
        main, error = gaussian_profile(self.deviation, eps), self.error(eps)
        return enclose_both(main, error)

    def error(self, eps: Floats) -> Floats:
        """shift + β·(T − ε) + ∫_T^∞ E(S − A)⁶/(s − A)⁶ ds for T = A + zσ or ε, with z such that both are alike."""
        y = (self.sixth / self.apart) ** (1 / 6)
        near, beyond = self.apart * np.maximum(self.centre[1] + y - eps, 0.0), np.maximum(eps - self.centre[1], y)
        error: Floats = (self.shift + near + self.sixth / (5 * beyond**5)) * (1 + SLACK)
        return error

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Callable[[Floats], Enclosure]:
        other = cache(lambda: self.otherwise.near(delta, tolerance, eps))  # made if it is needed
        return lambda t: self.sharpen(t, lambda part: other()(part))

    def least(self, goal: float, tolerance: float) -> Bound | None:
        """The least ε by bisection, or from the other engine if the law alone is not sharp enough.

        Any ε where δ is surely at most `goal` is an upper bound, since δ does not rise; any where it surely is not, a
        lower one.
        """
        upper = bisect(lambda t: self.at(t).upper[0] <= goal, self.deviation * FARTHEST)[1]
        if self.at(upper).upper[0] > goal:
            return self.otherwise.least(goal, tolerance)
        lower = bisect(lambda t: self.at(t).lower[0] <= goal, upper)[0]
        found = Bound(lower, upper, self.method)
        if found.gap <= BLURRED * found.upper:
            return found
        other = self.otherwise.least(goal, tolerance)
        return other and Bound(max(other.lower, found.lower), min(other.upper, found.upper), other.method)

    def at(self, eps: float) -> Enclosure:
        return self.alone(np.array([eps]))


def enclose_both(main: Enclosure, error: Floats) -> Enclosure:
    """A profile and an error of it, as a profile."""
    return Enclosure(np.maximum(main.lower - error, 0.0) * (1 - ULP), np.minimum((main.upper + error) * (1 + ULP), 1.0))


def bisect(low_enough: Callable[[float], bool], top: float) -> tuple[float, float]:
    """Two neighbours below `top`: the first is 0 or not low enough, the second low enough if `top` is."""
    if low_enough(0.0):
        return 0.0, 0.0
    left, right = 0.0, top
    for _ in range(60):
        middle = (left + right) / 2
        left, right = (left, middle) if low_enough(middle) else (middle, right)
    return left, right


def normal(steps: Steps, otherwise: Engine) -> Normal | None:
    """The normal law of these steps, if all are sampled at tiny rates and their moments are known."""
    known: list[tuple[int, Moments]] = []
    for count, loss in steps:
        if (found := of_step(loss)) is None:
            return None
        known.append((count, found))
    low, high = (math.fsum(k * m.variance[side] for k, m in known) for side in (0, 1))
    if not low > max(high / 2, LEAST_VARIANCE):
        return None
    centre = tuple(math.fsum(k * m.mean[side] for k, m in known) for side in (0, 1))
    third, fourth, sixth = (math.fsum(k * getattr(m, name) for k, m in known) for name in ("third", "fourth", "sixth"))
    middle = (low + high) / 2
    bend = max(1.0, 1 / math.sqrt(2 * math.pi * low)) / 2 * ((high - low) / 2 + SLACK * high)
    shift = max(abs(a - middle / 2) for a in centre) + SLACK * (high + max(map(abs, centre))) + bend
    total = (15 * high**3 + 15 * high * fourth + 10 * third**2 + sixth) * (1 + SLACK)
    apart = SHEVTSOVA * third / low**1.5 * (1 + SLACK)
    return Normal(math.sqrt(middle), shift, (centre[0], centre[1]), apart, total, otherwise)
