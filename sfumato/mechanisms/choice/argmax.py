"""Stable argmax: the best candidate itself, or nothing; its error does not grow with the number of candidates."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from sfumato.loss.kinds.coins import ApproxLoss
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import below_one, halved_sensitivity, read_scores, score_sensitivity
from sfumato.mechanisms.choice.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.examples import SCORES, Example, Neighbours
from sfumato.mechanisms.keys.partition_selection import Keeping
from sfumato.rounding import round_up
from sfumato.sensitivity import Sensitivity


@dataclass(frozen=True)
class StableArgmax(Mechanism[ArrayLike, int | None]):
    """The best candidate, if it leads by enough; None otherwise. (ε, δ)-DP, whatever the number of candidates.

    With the lead G of the best over the second, and R = 2Δ the most by which one person changes a difference of two
    scores, it answers with probability π(⌈G/R⌉), the best coins there are under (ε, δ).

    Proof. Let i, j be the best for two neighbours. If i = j, the leads differ by at most R, so n = ⌈G/R⌉ by at most
    one, and the output says no more than a coin of π(n) against one of π(n ± 1): (ε, δ)-DP by the choice of π. If not,
    uᵢ − uⱼ ≥ 0 ≥ uᵢ′ − uⱼ′ and so G ≤ uᵢ − uⱼ ≤ R, and G′ ≤ R alike: n, n′ ≤ 1, both answer with p, p′ ≤ π(1) = δ.
    Then Σ(P − e^εQ)₊ = p + (1 − p − e^ε(1−p′))₊ = max(p, 1 − e^ε(1−p′)) ≤ δ, in both directions.

    Theorem: stable values can be released as they are [Thakurta & Smith 2013, and the proof above]

    >>> StableArgmax(eps=1.0, delta=1e-6, utility_sensitivity=1).release([0, 10**6, 5])
    1
    """

    eps: float
    delta: float
    utility_sensitivity: Sensitivity | SupportsFloat
    use = "for more candidates than 1/δ: the best itself, or None"

    def __post_init__(self) -> None:
        keeping = Keeping(self.eps, self.delta)
        object.__setattr__(self, "eps", keeping.eps)
        object.__setattr__(self, "delta", keeping.delta)
        score_sensitivity(self.utility_sensitivity)

    @classmethod
    def monotone(cls, eps: float, delta: float, utility_sensitivity: Sensitivity | SupportsFloat) -> "StableArgmax":
        """For scores of which adding a person lowers none, or raises none: half the lead is enough."""
        return cls(eps, delta, halved_sensitivity(utility_sensitivity))

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return score_sensitivity(self.utility_sensitivity)

    @cached_property
    def keeping(self) -> Keeping:
        return Keeping(self.eps, self.delta)

    def release(self, value: ArrayLike) -> int | None:
        """The index of the best candidate, the first of several, or None."""
        row = read_scores(value)
        if row.size == 1:
            return 0  # no difference to release
        best = int(np.argmax(row))
        top, row[best] = row[best], row[best - 1]  # any other: then the highest is the second
        lead = Fraction(top.item()) - Fraction(row.max().item())
        steps = math.ceil(lead / (2 * Fraction(self.sensitivity.linf)))
        count = np.array([min(steps, len(self.keeping.chances))], np.int64)
        return best if self.keeping.flip_coins(count, self.source)[0] else None

    def loss(self) -> ApproxLoss:
        """(ε, δ)."""
        return ApproxLoss(self.eps, self.delta, relation=self.sensitivity.relation)

    def error(self, confidence: float = 0.95) -> float:
        """If the best leads by more than this, it is named with at least this probability: the least such lead.

        Nothing but the best is ever named. A lead of just this much is one step less, and named less often.
        """
        enough = self.keeping.sure(below_one("confidence", confidence)) - 1
        return round_up(max(enough, 0) * 2 * Fraction(self.sensitivity.linf))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        leads = (Neighbours([2, 0], [1, 1]), Neighbours([8, 0], [7, 1]))
        return (Example(cls(0.5, 0.05, 1), leads, SCORES, step=Fraction(1)),)


def argmax(
    eps: float, delta: float, utility_sensitivity: Sensitivity | SupportsFloat, *, candidates: int
) -> PermuteAndFlip | StableArgmax:
    """The better way to the best of so many candidates under (ε, δ), by facts that are public.

    Permute-and-flip, which never spends δ, comes within about (2Δ/ε)·ln k of the best; `StableArgmax` names the best
    itself if it leads by about (2Δ/ε)·ln(1/δ), and says None else. So the second is for more than 1/δ candidates or so:
    the smaller of their errors, 95 times in 100, decides.

    >>> argmax(1.0, 1e-6, 1, candidates=100)
    PermuteAndFlip(eps=1.0, utility_sensitivity=1)
    >>> argmax(1.0, 1e-6, 1, candidates=10**12)
    StableArgmax(eps=1.0, delta=1e-06, utility_sensitivity=1)
    """
    pure = PermuteAndFlip(eps, utility_sensitivity)
    if not delta:
        return pure
    stable = StableArgmax(eps, delta, utility_sensitivity)
    return stable if stable.error() < pure.error(candidates=candidates) else pure


def monotone_argmax(
    eps: float, delta: float, utility_sensitivity: Sensitivity | SupportsFloat, *, candidates: int
) -> PermuteAndFlip | StableArgmax:
    """The argmax of monotone scores, such as votes: adding a person lowers none, or raises none. Half the error."""
    return argmax(eps, delta, halved_sensitivity(utility_sensitivity), candidates=candidates)
