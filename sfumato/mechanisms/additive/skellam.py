"""Skellam noise: the difference of two independent Poisson numbers, for counts and sums of integers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import SupportsFloat

from flint import arb

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.tabulated import TabulatedLoss
from sfumato.mechanisms.additive.base import Additive, loss_by_coordinates
from sfumato.mechanisms.examples import BOTH, ZERO_ONE, Example, Neighbours, number_example
from sfumato.noise.balls import Ball, above, ball, below, precision
from sfumato.noise.monotone import TailedLaw
from sfumato.rounding import round_down, round_up
from sfumato.sensitivity import Relation, Sensitivity

LEAST_VARIANCE, MOST_VARIANCE = Fraction(1, 100), 10**8  # in steps²: weights are listed as far as they matter
LISTED = 192  # bits of precision up to which weights come from a list
GUARD = 64
LEAK = 1e-40  # of the profile lies beyond the last node, at most
MOST_PIECES = 512  # linear pieces of the profile that are listed
FARTHEST = 10**6  # steps of sensitivity


@dataclass(frozen=True)
class SkellamLaw(TailedLaw):
    """P(k) = e^{−v}·I_k(v), v the variance and I_k the modified Bessel function: the law of X − Y, X, Y ~ Poisson(v/2).

    Theorem: the difference of independent Poisson numbers has this law [Skellam 1946]
    Theorem: it is log-concave, as convolutions of log-concave laws on the integers are [Hoggar 1974]
    """

    variance: Fraction

    @property
    def spread(self) -> Fraction:
        return Fraction(math.sqrt(self.variance))

    @property
    def reach(self) -> float:
        return 5

    def weight(self, m: int, prec: int) -> Ball:
        if prec <= LISTED and m < len(found := weights(self.variance, LISTED)):
            return found[m]
        return bessel(self.variance, m)

    def beyond(self, m: int, prec: int) -> Ball:
        return 2 * tail(self.variance, m + 1, prec)


@dataclass(frozen=True)
class Skellam(Additive):
    """v + X − Y in steps, X and Y independent Poisson of mean variance/2: whole noise that adds up.

    The sum of independent Skellam numbers is one again, and their variances add up: this is the noise to draw in parts,
    each by another party. The law of X − Y is drawn as it is (`SkellamLaw`), exactly.

    Theorem: Skellam noise on integers hides them about as well as Gaussian noise of the same variance
        [Agarwal, Kairouz & Liu 2021]
    Theorem: moved by d it has the profile max over n of P(K ≥ n − d) − e^ε·P(K ≥ n), as its law is log-concave; and
        moving several coordinates costs no more than moving one by the sum [docs/theorems/additive.md, Theorem 1]
    """

    variance: float
    step: float | Fraction = 1
    use = "if several parties draw the noise in parts: variances add up, exactly"

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", checks.positive("variance", self.variance))
        if not LEAST_VARIANCE <= self.units <= MOST_VARIANCE:
            raise InvalidParameter(
                "variance must be from 0.01 to 1e8 squared steps.\n"
                f"  found:  variance = {self.variance:g} with a step of {float(self.lattice.step):g}\n"
                "  do:     choose the step nearer to √variance"
            )

    @property
    def units(self) -> Fraction:
        """The variance in squared steps."""
        return Fraction(self.variance) / self.lattice.step**2

    def law(self) -> SkellamLaw:
        return SkellamLaw(self.units)

    def density(self) -> None:
        return None

    def loss(self, sensitivity: Sensitivity | SupportsFloat = 1) -> PrivacyLoss:
        """That of one coordinate moved by Δ₁; where l0 coordinates move by linf each, their sum: less at δ > 0."""
        return loss_by_coordinates(sensitivity, self.lattice, "Skellam noise", partial(shifted_skellam, self.units))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            number_example(cls(2.0), ZERO_ONE, Neighbours.numbers(10, 11), BOTH),
            number_example(cls(9.0, 0.5), Neighbours.numbers(0, 2)),
        )


@lru_cache(maxsize=64)
def shifted_skellam(variance: Fraction, distance: int, relation: Relation) -> PrivacyLoss:
    """Skellam noise moved by so many steps, as a table that holds the exact profile from both sides.

    Proof. P(K = n − d)/P(K = n) does not fall with n (log-concave), and equals e^{ε_n}. So by Neyman and Pearson
    H_{e^ε} = f_n(ε) = P(K ≥ n − d) − e^ε·P(K ≥ n) for ε from ε_{n−1} to ε_n, and f_m ≤ H for every other m: H is the
    maximum of f_{n−1}, f_n and f_{n+1} at each node that is in this piece up to rounding. In α = e^ε each piece is
    linear. Two nodes inside a piece pin it down, since a convex function that meets a line in three points is the line
    between them. A reflection exchanges the two laws, so both directions are the same.
    """
    if distance > FARTHEST:
        raise InvalidParameter(
            f"Skellam noise is priced for moves of up to a million steps.\n  found:  {distance} steps\n"
            "  do:     choose a larger step, or Gaussian noise"
        )
    if distance == 0:
        return PureLoss(0.0, relation=relation)
    with precision(LISTED + GUARD):
        first = distance // 2 + 1  # the first n with P(K = n − d) > P(K = n)
        last = last_piece(variance, distance, first)
        stride = -(-(last - first + 1) // MOST_PIECES)
        nodes: dict[float, tuple[float, float]] = {}
        for n in range(first, last + 1, stride):
            start = 0.0 if n == first else ratio_log(variance, distance, n - 1)
            width = ratio_log(variance, distance, n) - start
            for t in (start, start + width / 3, start + 2 * width / 3):
                nodes[t] = profile(variance, distance, n, t)
        end = ratio_log(variance, distance, last)
        nodes[end] = profile(variance, distance, last, end)
    lower, upper = zip(*nodes.values(), strict=True)
    return TabulatedLoss(tuple(nodes), upper, lower, upper, lower, relation=relation)


def last_piece(variance: Fraction, distance: int, first: int) -> int:
    """The first n ≥ `first` at which P(K ≥ n + 1 − d), and so the profile beyond ε_n, is at most LEAK."""
    low, high = first, first + 1
    while not tail(variance, high + 1 - distance, LISTED) <= LEAK:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = tail(variance, middle + 1 - distance, LISTED) <= LEAK
        low, high = (low, middle) if enough else (middle, high)
    return high


def ratio_log(variance: Fraction, distance: int, n: int) -> float:
    """ε_n = log P(K = n − d)/P(K = n), in floats."""
    law = SkellamLaw(variance)
    return float((law.weight(abs(n - distance), LISTED) / law.weight(n, LISTED)).log())


def profile(variance: Fraction, distance: int, n: int, eps: float) -> tuple[float, float]:
    """The profile at an ε of piece n, from below and above."""
    alpha = ball(Fraction(eps)).exp()
    values = [
        tail(variance, m - distance, LISTED) - alpha * tail(variance, m, LISTED) for m in (n - 1, n, n + 1) if m > 0
    ]
    return max(0.0, *(round_down(below(x)) for x in values)), max(round_up(above(x)) for x in values)


def bessel(variance: Fraction, m: int) -> Ball:
    """e^{−v}·I_m(v), at the working precision."""
    return ball(variance).bessel_i(arb(m), scaled=True)


@lru_cache(maxsize=32)
def weights(variance: Fraction, prec: int) -> list[Ball]:
    """P(K = m) for m = 0, 1, … until it is below 2^−prec.

    From the last two downwards by I_{m−1} = I_{m+1} + (2m/v)·I_m: sums of positive numbers, so that no digit cancels.

    Theorem: the recurrence of modified Bessel functions [NIST Handbook of Mathematical Functions 2010, 10.29.1]
    """
    with precision(prec + GUARD):
        last = 8 + 4 * math.isqrt(int(variance))
        while not bessel(variance, last) * 2**prec <= 1:
            last += last // 4
        found, double = [bessel(variance, last + 1), bessel(variance, last)], 2 / ball(variance)
        for m in range(last, 0, -1):
            found.append(found[-2] + m * double * found[-1])
    return found[::-1]


@lru_cache(maxsize=32)
def tails(variance: Fraction, prec: int) -> list[Ball]:
    """P(K ≥ m) for m = 0, 1, …

    Weights fall by a factor of at most w(last)/w(last − 1) each time from there on: a geometric series at most.
    """
    listed = weights(variance, prec)
    with precision(prec + GUARD):
        rest = listed[-1] / (1 - listed[-1] / listed[-2])
        found = [rest * arb(0.5, 0.5)]  # P(K ≥ last): between nothing and the bound, the last weight included
        for weight in reversed(listed[:-1]):
            found.append(found[-1] + weight)
    return found[::-1]


def tail(variance: Fraction, m: int, prec: int) -> Ball:
    """P(K ≥ m) for any whole m."""
    listed = tails(variance, prec)
    if m <= 0:
        return 1 - tail(variance, 1 - m, prec)
    return listed[min(m, len(listed) - 1)]
