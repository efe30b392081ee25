"""Randomized response: a yes or no by two coins, or one of k answers."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.local.draws import Below, many_below
from sfumato.local.frequency import MOST_VALUES, Counts, FrequencyOracle, check_counted, count_integers
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Reports, check_total
from sfumato.loss.kinds.coins import RandomizedResponseLoss
from sfumato.noise import Bernoulli
from sfumato.sensitivity import Relation, ReplaceOne


@dataclass(frozen=True)
class Response(FrequencyOracle):
    """The value itself with weight `truth`, each of the k − 1 others with weight `lie`: one draw.

    S(y) = {y}, p = A/(A + (k−1)B), q = B/(A + (k−1)B). Optimal for k = 2, and for few values or large ε.

    Theorem: randomized response is ε-LDP [Warner 1965; Kairouz, Bonawitz & Ramage 2016]

    >>> Response.two_coins().p, Response.two_coins().epsilon
    (Fraction(3, 4), 1.0986122886681098)
    """

    scheme = "rr"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, MOST_VALUES))
        check_total(self.total)

    @staticmethod
    def of(k: int, eps: float) -> "Response":
        """Randomized response over k values with at most this ε."""
        k = checks.whole("k", k, 2, MOST_VALUES)
        return Response(k, Odds.of(eps, k))

    @staticmethod
    def two_coins() -> "Response":
        """The survey's form: toss a coin; on heads tell the truth, on tails toss again and let that coin answer.

        The truth comes out with ¾, so ε = ln 3, and 2(Y − ¼) estimates the share of yes.
        """
        return Response(2, Odds(3, 1))

    @property
    def total(self) -> int:
        return self.odds.truth + (self.k - 1) * self.odds.lie

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self.odds.truth, self.total)

    @cached_property
    def q(self) -> Fraction:
        return Fraction(self.odds.lie, self.total)

    @property
    def classes(self) -> Classes:
        return Classes(self.q, Fraction(0), (self.k - 2) * self.q)

    @property
    def joint(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(0)

    @property
    def bits(self) -> float:
        return float((self.k - 1).bit_length())

    @property
    def hit(self) -> int:
        return 1

    @property
    def report_bound(self) -> int:
        return self.k

    def loss(self, relation: Relation = ReplaceOne) -> RandomizedResponseLoss:
        return RandomizedResponseLoss(self.epsilon, self.k, relation=relation)

    def answer(self, value: int, below: Below) -> int:
        u = below(self.total)
        return value if u < self.odds.truth else (value + 1 + (u - self.odds.truth) // self.odds.lie) % self.k

    def randomize(self, values: ArrayLike) -> Reports | int:
        """Bools stay bools; see `FrequencyOracle.randomize`."""
        if self.k == 2 and isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.ndim:
            return values ^ self.flips.draw(values.size).reshape(values.shape)
        return super().randomize(values)

    @cached_property
    def flips(self) -> Bernoulli:
        """The coin that says whether a yes becomes a no."""
        return Bernoulli(self.q, source=self.source)

    def answers(self, values: NDArray[np.int64]) -> Reports:
        if self.k == 2:
            return values ^ self.flips.draw(values.size)
        u = many_below(self.total, values.size, self.source).view(np.int64)
        u -= self.odds.truth - self.odds.lie  # below lie: the truth; then one step for each lie's weight
        if self.odds.lie & (self.odds.lie - 1):
            u //= self.odds.lie
        else:
            u >>= self.odds.lie.bit_length() - 1
        np.maximum(u, 0, out=u)
        u += values
        u -= self.k * (u >= self.k)
        return u

    def support(self, reports: Reports) -> Counts:
        check_counted(self.k)
        if reports.dtype == np.bool_:
            yes = int(np.count_nonzero(reports))
            return np.array([reports.size - yes, yes])
        return count_integers(reports, self.k)
