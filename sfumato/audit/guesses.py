"""How many right guesses about canaries a privacy loss allows in one run: the p-value of a whole loss.

p_i is the probability that exactly i of r guesses about m canaries are right. Flip the coin of a canary that was
guessed right: for the same model that guess is now wrong, so one guess fewer is right. The trade-off function f bounds
how likely the same model is after the flip. So for every set of counts, and for {i, i + 1, …} in particular,

    R_{i+1} ≤ 1 − f(H_i)    R_i = Σ_{j≥i} j·p_j / m    H_i = Σ_{j≥i} (r − j)·p_j / m

Theorem: the average over canaries and coins keeps f-DP, as 1 − f is concave [Mahloujifar, Melis & Chaudhuri 2025,
    Thm 9; docs/theorems/canaries.md]
Theorem: given P(right ≥ v) = τ, mass put as low and as late as these inequalities allow is the least in all; if it
    exceeds 1, P(right ≥ v) < τ [docs/theorems/canaries.md]
"""

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.views.profile import most_leak, top_of

Floats = NDArray[np.float64]

LINES = 240  # tangents by which the trade-off function is bounded from below
FAR = 30.0
LEAST = 1e-15  # smaller p-values are reported as this
SLACK = 1e-9  # relative, for the rounding of sums


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


def p_value(right: int, guesses: int, canaries: int, loss: PrivacyLoss) -> float:
    """The probability of at least so many right guesses if the loss is as claimed; never below the truth."""
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
