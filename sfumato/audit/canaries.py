"""One-run audit of training: many canaries, each included or left out by an independent fair coin.

A training run is too expensive to be repeated ten thousand times, but one run can contain ten thousand canaries:
made-up records that are included or left out by fair coins. Afterwards the auditor guesses from the model which were
included. If training is (ε, δ)-DP, right guesses are hardly more frequent than those of independent coins that show the
truth with probability e^ε/(1 + e^ε).
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
from sfumato.audit.blackbox_result import format_down
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.views.profile import most_leak, top_of
from sfumato.noise.bernoulli import Bernoulli
from sfumato.noise.entropy import SYSTEM, Source

LINES = 240  # tangents by which the trade-off function is bounded from below
FAR = 30.0
LEAST = 1e-15  # smaller p-values are reported as this
Floats = NDArray[np.float64]
Canary = TypeVar("Canary")
Model = TypeVar("Model")

FEWEST = 10
SHARES = ((3, 4), (1, 4), (1, 16))  # of the canaries that are guessed; not all: coins need not be half heads
SLACK = 1e-9  # relative, for the rounding of sums and of binomial tails


class Tangents:
    """A lower bound on a trade-off function: the maximum of its tangents, given by points (ε, δ) of the profile."""

    def __init__(self, loss: PrivacyLoss):
        end = loss.epsilon(min(1.0, most_leak(loss) + 1e-9), tolerance=1e-3).upper
        eps = np.linspace(0.0, min(end, top_of(loss), FAR), LINES)
        delta = loss.delta(eps, tolerance=1e-3).upper
        # a ↦ 1 − δ − e^ε·a, and the mirrored line: f is its own inverse
        self.at_zero = np.concatenate([1 - delta, (1 - delta) * np.exp(-eps)])
        self.slope = np.concatenate([np.exp(eps), np.exp(-eps)])

    def __call__(self, alpha: float) -> float:
        """f(alpha), never above the truth."""
        return max(0.0, float(np.max(self.at_zero - self.slope * alpha)))


def least_total(tau: float, right: int, guesses: int, canaries: int, f: Tangents) -> float:
    """The least sum of all p_i if at least `right` right guesses have probability tau."""
    high, wrong = tau * right / canaries, tau * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        more = f(1 - high) * (1 - SLACK)
        if more > wrong:
            high, wrong = high + i / (guesses - i) * (more - wrong), more
        if high + wrong > 2 * guesses / canaries:
            break
    return (high + wrong) * canaries / guesses


def p_value_of_loss(right: int, guesses: int, canaries: int, loss: PrivacyLoss) -> float:
    """The probability of at least so many right guesses if the loss is as claimed; never below the truth.

    p_i is the probability that exactly i of r guesses about m canaries are right. Flip the coin of a canary that was
    guessed right: for the same model that guess is now wrong, so one guess fewer is right. The trade-off function f
    bounds how likely the same model is after the flip. So for every set of counts, and for {i, i + 1, …} in particular,

        R_{i+1} ≤ 1 − f(H_i)    R_i = Σ_{j≥i} j·p_j / m    H_i = Σ_{j≥i} (r − j)·p_j / m

    Theorem: the average over canaries and coins keeps f-DP, as 1 − f is concave [Mahloujifar, Melis & Chaudhuri 2025,
        Thm 9; docs/theorems/canaries.md]
    Theorem: given P(right ≥ v) = τ, mass put as low and as late as these inequalities allow is the least in all; if it
        exceeds 1, P(right ≥ v) < τ [docs/theorems/canaries.md]
    """
    if not right:
        return 1.0
    f, low, high = Tangents(loss), LEAST, 1.0
    if least_total(high, right, guesses, canaries, f) <= 1 + SLACK:
        return 1.0
    if least_total(low, right, guesses, canaries, f) > 1 + SLACK:
        return low
    while high / low > 1.001:
        tau = math.sqrt(low * high)
        low, high = (tau, high) if least_total(tau, right, guesses, canaries, f) <= 1 + SLACK else (low, tau)
    return high


@dataclass(frozen=True)
class OneRun:
    """A certified lower bound on the ε of training at δ, from one run.

    With probability at least `confidence` the true ε at `delta` is at least `epsilon`; if that is more than `claimed`,
    the claim is refuted. If not, no violation was found, which does not prove privacy.
    """

    epsilon: Bound
    delta: float
    claimed: float | None
    confidence: float
    canaries: int
    guesses: int  # the number of guesses ...
    right: int  # ... and how many of them were right
    ceiling: float  # the ε that would be certified if all guesses had been right
    chance: float | None = None  # the p-value of these guesses under the claimed loss; None without one

    @property
    def violated(self) -> bool:
        """Is the claim refuted, by its ε at δ or as a loss?"""
        by_epsilon = self.claimed is not None and self.epsilon.lower > self.claimed
        return by_epsilon or (self.chance is not None and self.chance <= (1 - self.confidence) / 2)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        claim = "nothing was claimed" if self.claimed is None else f"ε = {self.claimed:.4g}, δ = {self.delta:.3g}"
        return f"VIOLATED: the claim {claim} is refuted" if self.violated else f"no violation found: {claim}"

    def __str__(self) -> str:
        chance = "" if self.chance is None else f"\n  chance     ≤ {self.chance:.2g} if the claimed loss were true"
        return (
            f"{self.verdict}\n"
            f"  certified  ε ≥ {format_down(self.epsilon.lower)} at δ = {self.delta:.3g},"
            f" with confidence {self.confidence:.10g}\n"
            f"  guesses    {self.right:,} of {self.guesses:,} right, about {self.canaries:,} canaries\n"
            f"  reach      if all had been right: ε ≥ {self.ceiling:.3g}{chance}"
        )

    def to_json(self) -> str:
        """The result as JSON."""
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
    """A lower bound on the ε of training at δ, certified from a single run.

    `train` gets the included canaries, adds them to its own data and returns a model, or whatever else is published.
    `score(model, canary)` should be larger for canaries that were included: for instance minus the model's loss on the
    canary, or the component of the gradient that only it has. The claim is `epsilon` at δ, or `loss`, or none.

    The highest scores are guessed to be included and the lowest to be left out. A few numbers of guesses, fixed in
    advance, are tried, each at its share of 1 − confidence. A claimed `loss` is also tested as a whole
    (sfumato/audit/canaries.py), which is more powerful than its ε at δ; each of the two tests has half of 1 −
    confidence. Keep the number of canaries well below (1 − confidence)/δ: with more, the claim itself allows some to be
    published.

    Theorem: with r guesses about independent fair coins an (ε, δ)-DP output has P(right ≥ v) ≤ P(B ≥ v) +
        2mδ·max_i P(v − i ≤ B < v)/i, B ~ Bin(r, e^ε/(1 + e^ε)) [Steinke, Nasr & Jagielski 2023, Thm 5.2]
    """
    count = checks.whole("the number of canaries", len(canaries), FEWEST)
    sure = checks.number("confidence", confidence, 0.5, 1 - 1e-12, allowed="a number from 0.5 to below 1, like 0.99")
    slack = checks.probability("delta", delta)
    claimed = claimed_epsilon(epsilon, loss, slack)
    inside = Bernoulli(0.5, source=source).draw(count)
    scores = score_canaries(train, canaries, score, inside)
    tried = guess_counts(count)
    alpha = (1 - sure) / len(tried) / (1 if loss is None else 2)
    order = np.argsort(scores, kind="stable")
    rights = [(r, count_right(inside, order, r)) for r in tried]
    best = max(
        ((epsilon_lower_bound(v, r, count, slack, alpha), r, v) for r, v in rights), key=lambda result: result[0]
    )
    ceiling = max(epsilon_lower_bound(r, r, count, slack, alpha) for r in tried)
    bound = Bound(best[0], math.inf, "guesses about canaries of one run", "lower")
    chance = None if loss is None else min(1.0, len(tried) * min(p_value_of_loss(v, r, count, loss) for r, v in rights))
    return OneRun(bound, slack, claimed, sure, count, best[1], best[2], ceiling, chance)


def claimed_epsilon(epsilon: float | None, loss: PrivacyLoss | None, delta: float) -> float | None:
    """The claimed ε at δ, or None without a claim."""
    if loss is not None and epsilon is not None:
        raise InvalidParameter(
            "a claim is either a loss or an epsilon.\n  found:  both\n  do:     leave out one of them"
        )
    if loss is not None and loss.relation.one_way:
        raise InvalidParameter(
            "canaries are both added and removed, so the claim must cover both directions.\n"
            f"  found:  {loss.relation.value}\n  do:     give the loss itself, not one of its directions"
        )
    if loss is not None:
        return loss.epsilon(delta).upper
    return None if epsilon is None else checks.non_negative("epsilon", epsilon)


def score_canaries(
    train: Callable[[list[Canary]], Model],
    canaries: Sequence[Canary],
    score: Callable[[Model, Canary], float],
    inside: NDArray[np.bool_],
) -> Floats:
    """Every canary's score in one trained model; NaN becomes the median, where it decides nothing."""
    try:
        model = train([canary for canary, here in zip(canaries, inside, strict=True) if here])
        scores = np.array([float(score(model, canary)) for canary in canaries])
    except Exception as problem:
        raise InvalidParameter(
            f"train or score failed, so there is no run to audit.\n  found:  {type(problem).__name__}\n"
            "  do:     make train(included) and score(model, canary) work for every subset of the canaries, also none "
            "and all: a failure that depends on the data reveals something about them"
        ) from problem
    known = np.sort(scores[~np.isnan(scores)])
    return np.where(np.isnan(scores), known[len(known) // 2] if len(known) else 0.0, scores)


def guess_counts(count: int) -> list[int]:
    """The numbers of guesses to try for so many canaries."""
    return [count * share // of for share, of in SHARES if share > 1 or count >= FEWEST * of]


def count_right(inside: NDArray[np.bool_], order: NDArray[np.intp], guesses: int) -> int:
    """The number of right guesses: the lowest half of them "left out", the highest half "included"."""
    low = guesses // 2
    out, into = order[:low], order[len(order) - (guesses - low) :]
    return int(np.count_nonzero(~inside[out]) + np.count_nonzero(inside[into]))


def epsilon_lower_bound(right: int, guesses: int, canaries: int, delta: float, alpha: float) -> float:
    """An ε that is larger than the true one at δ with probability at most alpha; 0 if nothing can be said."""
    low, high = 0.0, 2.0
    if p_value_of_epsilon(right, guesses, canaries, low, delta) > alpha:
        return 0.0
    while p_value_of_epsilon(right, guesses, canaries, high, delta) <= alpha:
        low, high = high, 2 * high
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if p_value_of_epsilon(right, guesses, canaries, middle, delta) <= alpha else (low, middle)
        )
    return low * (1 - 2.0**-50)


def p_value_of_epsilon(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The probability of at least so many right guesses under (ε, δ)-DP, from above; it grows with ε.

    With δ > 0 the number of right guesses is at most B + F with E[F] ≤ 2mδ; the worst F is i with probability 2mδ/i,
    else 0. If that is a probability for every i, each P(B + F ≥ v) grows with ε, and so does the largest. If not, δ is
    too large for so many canaries, and the p-value is 1.
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
