"""The auditor of training: one run, many canaries, each put in or left out by a coin of its own.

A training run is too dear to be repeated ten thousand times. But one run can be asked ten thousand questions: m
made-up records, the canaries, are put into the data or left out by fair coins, and afterwards one guesses from the
model which were in. If training is (ε, δ)-DP, right guesses are hardly more frequent than those of independent coins
that show the truth with probability e^ε/(1 + e^ε).
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sfumato import checks
from sfumato.audit.guesses import p_value as p_value_of
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.noise.bernoulli import Bernoulli
from sfumato.noise.entropy import SYSTEM, Source

Floats = NDArray[np.float64]
Canary = TypeVar("Canary")
Model = TypeVar("Model")

FEWEST = 10
SHARES = ((3, 4), (1, 4), (1, 16))  # of the canaries that are guessed at: coins need not be half heads
SLACK = 1e-9  # relative, for rounding of binomial tails


@dataclass(frozen=True)
class OneRun:
    """A certified lower bound on the ε of a training at δ, from one run.

    With probability at least `confidence` the true ε at `delta` is at least `epsilon`; if that is more than `claimed`,
    the claim is refuted. If not, nothing was found: that is no proof of privacy.
    """

    epsilon: Bound
    delta: float
    claimed: float | None
    confidence: float
    canaries: int
    guesses: int  # about so many of them ...
    right: int  # ... of which so many were right
    ceiling: float  # what would be certified if all guesses had been right
    chance: float | None = None  # of guesses as good as these if the claimed loss were true; None without one

    @property
    def violated(self) -> bool:
        """Is the claim refuted, by its ε at δ or as a whole loss?"""
        by_epsilon = self.claimed is not None and self.epsilon.lower > self.claimed
        return by_epsilon or (self.chance is not None and self.chance <= (1 - self.confidence) / 2)

    @property
    def verdict(self) -> str:
        """The finding in a few words."""
        claim = "nothing was claimed" if self.claimed is None else f"ε = {self.claimed:.4g}, δ = {self.delta:.3g}"
        return f"VIOLATED: the claim {claim} is refuted" if self.violated else f"no violation found: {claim}"

    def __str__(self) -> str:
        chance = "" if self.chance is None else f"\n  chance     ≤ {self.chance:.2g} if the claimed loss were true"
        return (
            f"{self.verdict}\n"
            f"  certified  ε ≥ {math.floor(self.epsilon.lower * 1e4) / 1e4:.4g} at δ = {self.delta:.3g},"
            f" with confidence {self.confidence:.10g}\n"
            f"  guesses    {self.right:,} of {self.guesses:,} right, about {self.canaries:,} canaries\n"
            f"  reach      if all had been right: ε ≥ {self.ceiling:.3g}{chance}"
        )

    def to_json(self) -> str:
        """All of it, ready to be stored."""
        data = {**vars(self), "epsilon": self.epsilon.lower, "violated": self.violated}
        return json.dumps(data, sort_keys=True, allow_nan=False)


def one_run(
    train: Callable[[list[Canary]], Model],
    canaries: Sequence[Canary],
    score: Callable[[Model, Canary], float],
    *,
    delta: float = 1e-5,
    epsilon: float | None = None,
    loss: PrivacyLoss | None = None,
    confidence: float = 0.99,
    source: Source = SYSTEM,
) -> OneRun:
    """A lower bound on the ε of a training at δ, certified from a single run.

    `train` is given the canaries that the coins have put in, adds them to its own data and returns a model, or whatever
    else is published. `score(model, canary)` should be larger for canaries that were in: how little the model errs on
    one, or the part of a gradient that only it has. The claim is `epsilon` at δ, or that of `loss`, or none.

    The highest and the lowest scores are guessed to be in and out; how many is tried in a few sizes fixed in advance,
    each at its share of 1 − confidence. A whole `loss` is tested as such (sfumato/audit/guesses.py), which sees more
    than its ε at δ; each of the two tests has half of 1 − confidence. Keep the number of canaries well below
    (1 − confidence)/δ: beyond it, that some are given away is within the claim.

    Theorem: with r guesses about independent fair coins an (ε, δ)-DP output has P(right ≥ v) ≤ P(B ≥ v) +
        2mδ·max_i P(v − i ≤ B < v)/i, B ~ Bin(r, e^ε/(1 + e^ε)) [Steinke, Nasr & Jagielski 2023, Thm 5.2]
    """
    count = checks.whole("the number of canaries", len(canaries), FEWEST)
    sure = checks.number("confidence", confidence, 0.5, 1 - 1e-12, allowed="a number from 0.5 to below 1, like 0.99")
    slack = checks.probability("delta", delta)
    claimed = claim(epsilon, loss, slack)
    inside = Bernoulli(0.5, source=source).draw(count)
    scores = scored(train, canaries, score, inside)
    tried = sizes(count)
    alpha = (1 - sure) / len(tried) / (1 if loss is None else 2)
    order = np.argsort(scores, kind="stable")
    found = [(r, right_of(inside, order, r)) for r in tried]
    best = max(((lower_bound(v, r, count, slack, alpha), r, v) for r, v in found), key=lambda one: one[0])
    ceiling = max(lower_bound(r, r, count, slack, alpha) for r in tried)
    bound = Bound(best[0], math.inf, "guesses about canaries of one run", "lower")
    chance = None if loss is None else min(1.0, len(tried) * min(p_value_of(v, r, count, loss) for r, v in found))
    return OneRun(bound, slack, claimed, sure, count, best[1], best[2], ceiling, chance)


def claim(epsilon: float | None, loss: PrivacyLoss | None, delta: float) -> float | None:
    """The ε that is claimed at δ."""
    if loss is not None and epsilon is not None:
        raise InvalidParameter(
            "a claim is either a loss or an epsilon.\n  found:  both\n  do:     leave out one of them"
        )
    if loss is not None and loss.relation.one_way:
        raise InvalidParameter(
            "coins put canaries in and leave them out, so the claim must be about both.\n"
            f"  found:  {loss.relation.value}\n  do:     give the loss itself, not one of its directions"
        )
    if loss is not None:
        return loss.epsilon(delta).upper
    return None if epsilon is None else checks.non_negative("epsilon", epsilon)


def scored(
    train: Callable[[list[Canary]], Model],
    canaries: Sequence[Canary],
    score: Callable[[Model, Canary], float],
    inside: NDArray[np.bool_],
) -> Floats:
    """Every canary's score in one trained model; scores that are no numbers say nothing and go to the middle."""
    try:
        model = train([canary for canary, here in zip(canaries, inside, strict=True) if here])
        scores = np.array([float(score(model, canary)) for canary in canaries])
    except Exception as problem:
        raise InvalidParameter(
            f"the training or its score failed, so there is no run to look at.\n  found:  {type(problem).__name__}\n"
            "  do:     make train(included) and score(model, canary) work for any part of the canaries, none and all "
            "of them included: one that fails for some data tells about them"
        ) from problem
    known = np.sort(scores[~np.isnan(scores)])
    return np.where(np.isnan(scores), known[len(known) // 2] if len(known) else 0.0, scores)


def sizes(count: int) -> list[int]:
    """Numbers of guesses to try, as long as these are a few."""
    return [count * share // of for share, of in SHARES if share > 1 or count >= FEWEST * of]


def right_of(inside: NDArray[np.bool_], order: NDArray[np.intp], guesses: int) -> int:
    """How many guesses are right if the lowest half of them is said to be out and the highest to be in."""
    low = guesses // 2
    out, into = order[:low], order[len(order) - (guesses - low) :]
    return int(np.count_nonzero(~inside[out]) + np.count_nonzero(inside[into]))


def lower_bound(right: int, guesses: int, canaries: int, delta: float, alpha: float) -> float:
    """An ε that is larger than the true one at δ with probability at most alpha; 0 if nothing can be said."""
    low, high = 0.0, 2.0
    if p_value(right, guesses, canaries, low, delta) > alpha:
        return 0.0
    while p_value(right, guesses, canaries, high, delta) <= alpha:
        low, high = high, 2 * high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(right, guesses, canaries, middle, delta) <= alpha else (low, middle)
    return low * (1 - 2.0**-50)


def p_value(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The probability of so many right guesses under (ε, δ)-DP, from above; it grows with ε.

    With δ the number of right guesses is at most B + F, where E[F] ≤ 2mδ; the worst F is i with probability 2mδ/i, else
    0. If that is a probability for every i, each P(B + F ≥ v) grows with ε, and so does the largest. If not, δ is so
    large for so many canaries that nothing is said.
    """
    moved = 2 * canaries * delta
    if right == 0 or moved > 1:
        return 1.0
    honest = 1 / (1 + math.exp(-epsilon))
    beyond = float(special.bdtrc(right - 1, guesses, honest))
    i = np.arange(1, right)
    nearer = np.append(special.bdtrc(right - 1 - i, guesses, honest), 1.0)  # P(B ≥ v − i)
    worst = float(np.max((nearer - beyond) / np.arange(1, right + 1)))
    return min(1.0, (beyond + moved * worst) * (1 + SLACK))
