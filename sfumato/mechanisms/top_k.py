"""The best k of many candidates."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsFloat

from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.exponential import Exponential, below_one
from sfumato.mechanisms.scores import halved, scores
from sfumato.noise import peel
from sfumato.noise.table import Integers
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class TopK(Mechanism[ArrayLike, Integers]):
    """k different candidates, best first: k times the exponential mechanism with `eps`, among those that are left.

    The same law as the k highest of score + Gumbel noise of scale 2Δ/ε. Each choice has bounded range ε, given the
    earlier ones, so the whole costs k of them, composed, which grows like √k and not like k.

    Theorem: one-shot Gumbel top-k is peeling, and composes as bounded range [Durfee & Rogers 2019, section 4]

    >>> TopK(k=2, eps=1.0, utility_sensitivity=1).release([0, 10**6, 10**3]).tolist()
    [1, 2]
    """

    k: int
    eps: float
    utility_sensitivity: Sensitivity | SupportsFloat

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 1))
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        assert self.one.eps == self.eps  # refuses what cannot be drawn

    @classmethod
    def monotone(cls, k: int, eps: float, utility_sensitivity: Sensitivity | SupportsFloat) -> "TopK":
        """For scores of which adding a person lowers none, or raises none: twice the rate at the same price."""
        return cls(k, eps, halved(utility_sensitivity))

    @cached_property
    def one(self) -> Exponential:
        """One of the k choices."""
        return Exponential(self.eps, self.utility_sensitivity, source=self.source)

    def release(self, value: ArrayLike) -> Integers:
        """The indices of the chosen candidates, in the order chosen."""
        row = scores(value)
        if row.size < self.k:
            raise InvalidParameter(
                f"there are fewer than {self.k} candidates.\n  found:  {row.size}\n  do:     choose at most {row.size}"
            )
        return peel(row, self.k, self.one.rate, source=self.source)

    def loss(self) -> PrivacyLoss:
        """k bounded ranges ε, composed."""
        return self.k * self.one.loss()

    def error(self, confidence: float = 0.95, *, candidates: int) -> float:
        """With at least this probability every choice is within this of the best that was left, whatever the scores.

        Each of the k choices is, whatever came before, with probability confidence^(1/k). The j-th chosen score is then
        within it of the j-th best.
        """
        each = math.exp(math.log(c) / self.k) if (c := below_one("confidence", confidence)) > 0 else 0.0
        return self.one.error(min(each * (1 + 1e-15), math.nextafter(1.0, 0.0)), candidates=candidates)
