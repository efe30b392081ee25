"""Classical composition theorems: basic, advanced and optimal, each under the conditions that its docstring states."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Floats, floats, gammaln, logsumexp
from sfumato.loss.views.renyi_accountant import above_zero

MOST_EQUAL = 10**6  # compositions that `optimal` sums one by one


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy, both numbers rounded up."""

    epsilon: Bound
    delta: Bound


def ceiling(value: float, method: str) -> Bound:
    """An upper bound, raised by a few units in the last place for rounding."""
    return Bound(0.0, value * (1 + 32 * ULP), method)


# ---- composition theorems for (ε, δ) --------------------------------------------------------------------------------


def basic(parts: Sequence[tuple[float, float]]) -> Guarantee:
    """Basic composition: (ε₁, δ₁), (ε₂, δ₂), … together are (Σεᵢ, Σδᵢ)-DP.

    Theorem: epsilons and deltas add up [Dwork & Roth 2014, Thm 3.16]
    """
    epsilons = [checks.non_negative("epsilon", eps) for eps, _ in parts]
    deltas = [checks.probability("delta", delta) for _, delta in parts]
    total = min(1.0, math.fsum(deltas) * (1 + 2 * ULP))
    return Guarantee(ceiling(math.fsum(epsilons), "basic composition"), Bound(0.0, total, "basic composition"))


def advanced(eps: float, delta: float, k: int, slack: float) -> Guarantee:
    """Advanced composition: k mechanisms that are (ε, δ)-DP are (ε√(2k ln(1/δ')) + kε(e^ε − 1), kδ + δ')-DP together.

    Theorem: advanced composition [Dwork, Rothblum & Vadhan 2010, Thm III.3; Dwork & Roth 2014, Thm 3.20]
    """
    eps, k = checks.non_negative("eps", eps), checks.whole("k", k, 0)
    growth = math.expm1(eps) if eps < 700 else math.inf
    return with_deviation(k * eps * growth if k else 0.0, eps, delta, k, slack, "advanced composition")


def advanced_slides(eps: float, delta: float, k: int, slack: float) -> Guarantee:
    """Advanced composition with the mean kε²/2: (ε√(2k ln(1/δ')) + kε²/2, kδ + δ')-DP, for all ε ≥ 0, k and δ'.

    Proof. ε-DP is ε²/2-zCDP, so k of them are ρ-zCDP with ρ = kε²/2, which is (ρ + 2√(ρ ln(1/δ')), δ')-DP: the formula.
    For δ > 0, (ε, δ)-DP is dominated by a response that reveals everything with probability δ and is ε-DP otherwise;
    one of k does so with probability at most kδ. The bound is below the classical form, as ε/2 < e^ε − 1. It grows like
    √k while k ≪ 1/ε² (slides that say k ≪ ε² have the fraction inverted).

    Theorem: ε-DP is ε²/2-zCDP, and ρ-zCDP is (ρ + 2√(ρ ln(1/δ)), δ)-DP [Bun & Steinke 2016, Prop. 1.4 and 1.3]
    Theorem: leaky randomized response dominates every (ε, δ)-DP mechanism [Kairouz, Oh & Viswanath 2015, Thm 3.1]
    """
    eps, k = checks.non_negative("eps", eps), checks.whole("k", k, 0)
    return with_deviation(k * eps * eps / 2, eps, delta, k, slack, "advanced composition by zCDP")


def with_deviation(mean: float, eps: float, delta: float, k: int, slack: float, method: str) -> Guarantee:
    """(mean + ε√(2k ln(1/δ')), kδ + δ'), where δ' is the slack."""
    total = min(1.0, (k * checks.probability("delta", delta) + above_zero("slack", slack)) * (1 + 4 * ULP))
    return Guarantee(ceiling(eps * math.sqrt(-2 * k * math.log(slack)) + mean, method), Bound(0.0, total, method))


def optimal(eps: float, delta: float, k: int, target: float) -> Bound:
    """Least ε' such that every k mechanisms that are (ε, δ)-DP are together (ε', target)-DP.

    At ε' = (k − 2i)ε the total is 1 − (1 − δ)^k·(1 − δᵢ), δᵢ = Σ_{l<i} C(k,l)(e^{(k−l)ε} − e^{(k−2i+l)ε})/(1 + e^ε)^k.
    Between these points δ is linear in e^{ε'}, because the worst mechanism's loss has atoms there and nowhere else.

    Theorem: optimal homogeneous composition [Kairouz, Oh & Viswanath 2015, Thm 3.3]
    """
    eps, delta = checks.non_negative("eps", eps), checks.probability("delta", delta)
    k, target = checks.whole("k", k, 0, MOST_EQUAL), checks.probability("target", target)
    method = "Kairouz, Oh & Viswanath"
    if delta == 1 or target == 1 or k == 0:
        top = math.inf if delta == 1 and target < 1 and k else 0.0
        return Bound(top, top, method)
    kept = math.log1p(-target) - k * math.log1p(-delta)  # log(1 − the part of the target left after k leaks)
    slip = 4 * ULP * (abs(math.log1p(-target)) + k * abs(math.log1p(-delta)))
    low, high = -math.expm1(min(kept + slip, 0.0)), -math.expm1(min(kept - slip, 0.0))
    if delta == 0:
        low = high = target
    pair = repeated_response(eps, k)
    lower = pair.below(high) if kept - slip <= 0 else math.inf
    return Bound(lower, pair.above(low) if kept + slip <= 0 else math.inf, method)


@dataclass(frozen=True)
class RepeatedResponse:
    """k-fold randomized response: losses (k − 2l)ε with binomial weights P(l), in logarithms, for l ≤ k/2.

    `error` bounds the rounding error of lgamma, products and sums in each logarithm.
    """

    eps: float
    k: int
    log_p: Floats
    error: float

    def log_delta(self, i: int) -> float:
        """log δᵢ, the profile at (k − 2i)ε: Σ_{l<i} P(l)·(1 − e^{−2(i−l)ε})."""
        if i == 0 or self.eps == 0:
            return -math.inf
        lies = np.arange(i, dtype=np.float64)
        return logsumexp(self.log_p[:i] + np.log(-np.expm1(-2 * (i - lies) * self.eps)))

    def first_above(self, goal: float) -> int:
        """Least i with log δᵢ > goal; k//2 + 1 if there is none. δᵢ grows with i."""
        low, high = 0, self.k // 2 + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.log_delta(middle) > goal else (middle, high)
        return high

    def within(self, i: int, goal: float, error: float) -> float:
        """ε' with δ(ε') = goal if it lies in [(k − 2i)ε, (k − 2i + 2)ε], else the nearer end: e^{ε'} = (A − goal)/B."""
        ends = max(self.k - 2 * i, 0) * self.eps, (self.k - 2 * i + 2) * self.eps
        lies = np.arange(i, dtype=np.float64)
        ahead = logsumexp(self.log_p[:i]) + error
        back = logsumexp(self.log_p[:i] - (self.k - 2 * lies) * self.eps) - error
        left = -math.expm1(min(math.log(goal) - ahead, 0.0)) if goal > 0 else 1.0  # share of A above the goal
        return min(max(ahead - back + math.log(left), ends[0]), ends[1]) if left > 0 else ends[0]

    def above(self, goal: float) -> float:
        """An upper bound on ε': the last node that certainly meets the goal, or a point in the cell below it."""
        if goal <= 0 or self.eps == 0:
            return self.k * self.eps * (1 + ULP)
        i = self.first_above(math.log(goal) - self.error)
        return self.within(i, goal, self.error) * (1 + 4 * ULP) if self.k - 2 * i + 2 > 0 else 0.0

    def below(self, goal: float) -> float:
        """A lower bound on ε': the first node that certainly misses the goal, or a point in the cell above it."""
        if goal <= 0 or self.eps == 0:
            return self.k * self.eps * (1 - ULP)
        i = self.first_above(math.log(goal) + self.error)
        return self.within(i, goal, -self.error) * (1 - 4 * ULP) if self.k - 2 * i + 2 > 0 else 0.0


def repeated_response(eps: float, k: int) -> RepeatedResponse:
    """P(l) = C(k,l)·e^{(k−l)ε}/(1 + e^ε)^k."""
    lies = np.arange(k // 2 + 1, dtype=np.float64)
    ways = gammaln(floats(k + 1.0)) - gammaln(lies + 1) - gammaln(k - lies + 1)
    error = ULP * (40 * float(gammaln(floats(k + 1.0))) + 8 * k * (eps + 1) + 64)
    return RepeatedResponse(eps, k, ways - lies * eps - k * math.log1p(math.exp(-eps)), error)


basic_composition, advanced_composition, optimal_composition = basic, advanced, optimal  # the names of `sf`
