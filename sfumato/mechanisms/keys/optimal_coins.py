"""The optimal probability of keeping a key that n people have, under (ε, δ)."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import OutOfReach
from sfumato.noise.balls import ball, ceiling, floor, precision
from sfumato.noise.draw_table import Integers
from sfumato.noise.entropy import Source

BITS = 128  # of a probability
ONE = 1 << BITS
FINE = 192  # bits after the point of e^ε and e^{−ε}
LEAST_DELTA = 1e-30
MOST_STEPS = 1 << 20


@dataclass(frozen=True)
class Keeping:
    """Keep with probability π(n), n = 0, 1, 2, …: the largest π with π(0) = 0 and neighbours n, n + 1 alike by (ε, δ).

    π(n+1) = min(e^ε·π(n) + δ, 1 − e^{−ε}(1 − π(n) − δ), 1). It never falls, so that the two inequalities of the other
    direction hold by themselves. Probabilities are whole multiples of 2⁻¹²⁸, rounded down at each step with e^ε from
    below and e^{−ε} from above: both inequalities hold exactly, and a coin is a comparison of integers.

    Theorem: no (ε, δ)-DP rule with π(0) = 0 keeps more at any n [Desfontaines, Voss & Gipson 2022]
    """

    eps: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        allowed = f"a number from {LEAST_DELTA:g} to 1: with delta = 0 nothing could be kept"
        object.__setattr__(self, "delta", checks.number("delta", self.delta, LEAST_DELTA, 1.0, allowed=allowed))
        assert self.chances  # refuses what is out of reach

    @property
    def chances(self) -> tuple[int, ...]:
        """2¹²⁸·π(n) for n = 0, 1, … up to the first n with π(n) = 1."""
        return _chances(self.eps, self.delta)

    def probability(self, n: int) -> Fraction:
        """π(n)."""
        return Fraction(self.chances[min(max(n, 0), len(self.chances) - 1)], ONE)

    def sure(self, confidence: float) -> int:
        """The least n with π(n) ≥ confidence."""
        goal = Fraction(checks.probability("confidence", confidence)) * ONE
        low, high = 0, len(self.chances) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chances[middle] >= goal else (middle + 1, high)
        return low

    @cached_property
    def _heads(self) -> NDArray[np.uint64]:
        """The first 64 bits of each probability but the last, which is 1."""
        return np.array([chance >> 64 for chance in self.chances[:-1]], np.uint64)

    def flips(self, counts: Integers, source: Source) -> NDArray[np.bool_]:
        """One coin of probability π(n) for each n. A word that equals the first 64 bits asks for 64 more."""
        last = len(self.chances) - 1
        n = np.clip(counts, 0, last)
        words = source.words(n.size, 64)
        heads = self._heads[np.minimum(n, last - 1)]
        kept: NDArray[np.bool_] = (words < heads) | (n == last)
        for at in np.flatnonzero((words == heads) & (n < last)).tolist():
            kept[at] = source.bits(64) < self.chances[int(n[at])] % (1 << 64)
        return kept


@lru_cache(maxsize=16)
def _chances(eps: float, delta: float) -> tuple[int, ...]:
    exact, leak = Fraction(eps), int(Fraction(delta) * ONE)
    with precision(2 * FINE):
        up = floor(ball(min(exact, Fraction(FINE))).exp() * 2**FINE)  # e^192 instead of more: also from below
        down = ceiling(ball(-exact).exp() * 2**FINE)
    found = [0]
    while (p := found[-1]) < ONE:
        left = max(ONE - p - leak, 0)
        found.append(max(p, min((up * p >> FINE) + leak, ONE + (-down * left >> FINE), ONE)))
        if len(found) > MOST_STEPS:
            raise OutOfReach(
                "with so small an eps even a million people are not enough to be sure.\n"
                f"  found:  eps = {eps:g}, delta = {delta:g}\n  do:     give a larger eps or delta"
            )
    return tuple(found)
