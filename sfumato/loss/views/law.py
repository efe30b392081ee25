"""The privacy loss as a random variable: L = log P(o)/Q(o) of an output o that is drawn from P.

The profile H(α) = H_α(P‖Q) is convex, and its slope is the law of the loss: with x = e^t,
    Q[L > t] = −H′(x+),   P[L > t] = H(x) − x·H′(x+)   for t ≥ 0,
    P[L ≤ t] = −B′(y−),   y = e^{−t}, B the profile of (Q, P)   for t < 0.
Chords of a convex function lie on either side of its slope, so two certified values of the profile bound a probability.
"""

import math
from dataclasses import dataclass
from typing import SupportsFloat, overload

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.loss.base import PrivacyLoss, several
from sfumato.loss.bound import Bound
from sfumato.loss.compose.sums import Sum
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.wrappers import OneWay
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, floats, ndtr
from sfumato.loss.views.profile import least_top

FINE = 1e-7  # relative gap asked of the profile of a composition
QUICK = frozenset({"closed form", "tabulated"})
MOST_DRAWS = 20_000_000  # of single terms, when a sum is drawn term by term
POINTS = 4096  # of the table that other losses are drawn from


@dataclass(frozen=True)
class LossLaw:
    """The law of L = log P/Q under P, where (P, Q) is the pair of the loss: every number lies between certified sides.

    `loss.law` is the direction (P, Q), and `loss.reverse.law` the other: log Q/P under Q. For a loss that stands for a
    class of mechanisms this is the law of the dominating pair. Domination is about δ(ε): a dominated mechanism has a
    smaller δ at each ε, but may exceed a single ε more often.

    Theorem: δ(ε) = P[L > ε] − e^ε·Q[L > ε], so the slope of the profile is the law [Balle & Wang 2018, Thm 5]

    >>> import sfumato as sf
    >>> law = sf.loss.GaussianLoss(1.0).law
    >>> round(float(law.exceeds(1.0)), 4), round(float(law.quantile(0.5)), 4), round(float(law.mean()), 4)
    (0.3085, 0.5, 0.5)
    """

    loss: PrivacyLoss

    @overload
    def exceeds(self, t: float) -> Bound: ...
    @overload
    def exceeds(self, t: Floats) -> Enclosure: ...

    def exceeds(self, t: float | Floats) -> Bound | Enclosure:
        """P[L > t]. Arrays are welcome."""
        found = tails(self.loss, points(t))
        if several(t):
            return found
        return Bound(found.lower[0], found.upper[0], self.method)

    @overload
    def cdf(self, t: float) -> Bound: ...
    @overload
    def cdf(self, t: Floats) -> Enclosure: ...

    def cdf(self, t: float | Floats) -> Bound | Enclosure:
        """P[L ≤ t]. The safe side is the lower one: at least so often the loss is at most t."""
        found = tails(self.loss, points(t))
        below = Enclosure(np.maximum(1 - found.upper - ULP, 0.0), np.minimum(1 - found.lower + ULP, 1.0))
        if several(t):
            return below
        return Bound(below.lower[0], below.upper[0], self.method, "lower")

    def quantile(self, share: SupportsFloat) -> Bound:
        """The least t with P[L ≤ t] ≥ share; infinite if the loss is infinite too often."""
        p = checks.number("share", share, TINY, 1.0, allowed="a number above 0, up to 1")
        top, bottom = self.loss.supremum()
        leak, surely = self.loss.leak()[0], self.loss.leak()[0] * (1 - 16 * ULP) if self.loss.sharp_ends else 0.0
        if 1 - p < surely:
            return Bound(math.inf, math.inf, self.method)
        if p == 1:
            return Bound(least_top(self.loss), top if leak == 0 else math.inf, self.method)
        high = top if 1 - p >= leak else math.inf
        low, up = search(self.loss, 1 - p, -bottom, high)
        return Bound(low, up, self.method)

    def mean(self) -> Bound:
        """E[L] = KL(P‖Q)."""
        return self.loss.mean()

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Draws of the loss, for pictures and experiments. Losses of a sum are drawn one by one and added up.

        Gaussian losses and losses with listed outcomes are drawn as they are; others by inverting a table of P[L ≤ t],
        whose cells are the error. Draws are never used to release anything.
        """
        return draw(self.loss, checks.whole("count", count, 1, 10**8), rng)

    @property
    def reverse(self) -> "LossLaw":
        """The law of log Q/P under Q."""
        return LossLaw(self.loss.reverse)

    @property
    def method(self) -> str:
        """How the numbers come about."""
        return "closed form" if is_known(self.loss) else f"slope of the profile, {self.loss.method}"


def law(loss: PrivacyLoss) -> LossLaw:
    """The law of the loss under P."""
    return LossLaw(loss)


def points(t: float | Floats) -> Floats:
    """Losses to ask about, as an array; infinities are allowed, NaN is not."""
    found = np.atleast_1d(floats(t))
    if np.isnan(found).any() or found.ndim > 1:
        raise InvalidParameter(
            "t must be a number or a list of numbers.\n  found:  NaN, or a table\n  do:     give losses such as 0.5"
        )
    return found


def is_known(loss: PrivacyLoss) -> bool:
    """Is the law itself known, without the profile?"""
    return isinstance(loss, GaussianLoss) or loss.outcomes() is not None


def tails(loss: PrivacyLoss, t: Floats) -> Enclosure:
    """P[L > t]."""
    if isinstance(loss, OneWay):
        return tails(loss.inner, t)
    if isinstance(loss, GaussianLoss) and loss.mu > 0:
        return gaussian_tails(loss.mu, t)
    top, bottom = loss.supremum()
    leak, surely = loss.leak()[0], loss.leak()[0] * (1 - 16 * ULP) if loss.sharp_ends else 0.0
    if (listed := loss.outcomes()) is not None:
        order = np.argsort(listed.losses)
        losses, masses = listed.losses[order], listed.masses[order]
        above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        sides = [above[np.searchsorted(losses, t + way * listed.slip, side="right")] for way in (1, -1)]
        slip = (len(losses) + 16) * ULP
        low, high = surely + sides[0] * (1 - slip), leak + sides[1] * (1 + slip)
    else:
        finite = np.clip(t, -min(bottom, 1e300), min(top, 1e300))
        low, high = slopes(loss, finite)
        low, high = np.maximum(low, surely), high
    high = np.where(t >= top, leak, high)
    low, high = np.where(t < -bottom, 1.0 - 16 * ULP, low), np.where(t < -bottom, 1.0, high)
    high = np.clip(high, 0.0, 1.0)
    return Enclosure(np.clip(low, 0.0, high), high)


def gaussian_tails(mu: float, t: Floats) -> Enclosure:
    """Φ(μ/2 − t/μ)."""
    with np.errstate(over="ignore"):
        x = t / mu
    error = 2 * ULP * (mu / 2 + np.where(np.isfinite(x), np.abs(x), 0.0))
    low, high = ndtr(mu / 2 - x - error) * (1 - 16 * ULP), ndtr(mu / 2 - x + error) * (1 + 16 * ULP)
    return Enclosure(low, np.minimum(high + TINY, 1.0))


def steps(loss: PrivacyLoss) -> Floats:
    """Lengths of chords: short ones follow the slope, long ones are less disturbed by what is not known of H."""
    return (
        floats(2.0 ** -np.arange(3.0, 31.0))
        if loss.method in QUICK
        else floats(2.0 ** -np.array([4.0, 6.0, 8.0, 10.0]))
    )


def whole_profile(loss: PrivacyLoss, u: Floats) -> Enclosure:
    """H at e^u for u of either sign: H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P)."""
    ahead = loss.forward(np.maximum(u, 0.0), FINE)
    if not np.any(u < 0):
        return ahead
    back, x = loss.backward(np.maximum(-u, 0.0), FINE), np.exp(np.minimum(u, 0.0))
    rest = -np.expm1(np.minimum(u, 0.0))
    low, high = rest + x * back.lower, rest + x * back.upper
    below = u < 0
    return Enclosure(
        np.where(below, low * (1 - 8 * ULP), ahead.lower), np.where(below, high * (1 + 8 * ULP), ahead.upper)
    )


def slopes(loss: PrivacyLoss, t: Floats) -> tuple[Floats, Floats]:
    """P[L > t] from chords of the profile: of (P, Q) for t ≥ 0, of (Q, P) for t < 0."""
    low, high = np.zeros_like(t), np.ones_like(t)
    for side, pair, ahead_of in ((t >= 0, loss, True), (t < 0, loss.reverse, False)):
        if not np.any(side):
            continue
        u, ahead = np.abs(t[side]), pair.forward(np.abs(t[side]), FINE)
        after, before = u[:, None] + steps(loss), u[:, None] - steps(loss)
        right = whole_profile(pair, after.ravel())
        left = whole_profile(pair, before.ravel())
        shape = after.shape
        least = (ahead.lower[:, None] - right.upper.reshape(shape)) / np.expm1(after - u[:, None]) * (1 - 8 * ULP)
        most = (left.upper.reshape(shape) - ahead.lower[:, None]) / -np.expm1(before - u[:, None]) * (1 + 8 * ULP)
        fall = np.maximum(least.max(axis=1), 0.0), np.maximum(most.min(axis=1), 0.0)  # of x·(−H′)
        if ahead_of:
            low[side], high[side] = ahead.lower + fall[0], (ahead.upper + fall[1]) * (1 + ULP)
        else:
            shrink = np.exp(-u)
            low[side] = 1 - shrink * fall[1] * (1 + 4 * ULP) - ULP
            high[side] = 1 - shrink * fall[0] * (1 - 4 * ULP) + ULP
    return low, high


def search(loss: PrivacyLoss, goal: float, low: float, high: float) -> tuple[float, float]:
    """(largest t found with P[L > t] certified > goal, least t found with P[L > t] certified ≤ goal)."""
    start, end = max(low, -1.0), min(high, 1.0)
    while start > low and tails(loss, floats([start])).lower[0] <= goal and start > -1e5:
        start = max(2 * start, low)
    while end < high and tails(loss, floats([end])).upper[0] > goal and end < 1e5:
        end = min(2 * end, high)
    certain = tails(loss, floats([end])).upper[0] <= goal
    below, above = (low if start <= low or start <= -1e5 else start), (end if certain else high)
    lower, upper = below, above
    left, right = start, end
    for _ in range(
        14 if loss.method in QUICK else 3
    ):  # the side where the tail is certainly larger, and the one where it is certainly not
        grid = np.linspace(left, right, 17)
        found = tails(loss, grid)
        larger, smaller = np.flatnonzero(found.lower > goal), np.flatnonzero(found.upper <= goal)
        lower = max(lower, float(grid[larger[-1]])) if len(larger) else lower
        upper = min(upper, float(grid[smaller[0]])) if len(smaller) else upper
        new = (max(left, lower), min(right, upper))
        if new[1] - new[0] <= 1e-12 * (1 + abs(new[1])) or new == (left, right):
            break
        left, right = new
    return lower, max(lower, upper)


# ---- draws -----------------------------------------------------------------------------------------------------------


def draw(loss: PrivacyLoss, count: int, rng: np.random.Generator) -> Floats:
    """`count` losses."""
    match loss:
        case OneWay(inner=inner):
            return draw(inner, count, rng)
        case GaussianLoss(mu=mu):
            return floats(mu * mu / 2 + mu * rng.standard_normal(count))
        case Sum(terms=terms) if count * sum(k for k, _ in terms) <= MOST_DRAWS:
            total = np.zeros(count)
            for k, term in terms:
                total += draw(term, count * k, rng).reshape(count, k).sum(axis=1)
            return total
        case _:
            pass
    if (listed := loss.outcomes()) is not None:
        chances = np.append(listed.masses, loss.leak()[0])
        values = np.append(listed.losses, math.inf)
        return floats(values[rng.choice(len(values), count, p=chances / chances.sum())])
    return draw_from_table(loss, count, rng)


def draw_from_table(loss: PrivacyLoss, count: int, rng: np.random.Generator) -> Floats:
    """By inverting P[L ≤ t] on a grid; what lies at both ends of a bounded loss stays there."""
    if loss.renyi_curve() is not None or not loss.one_pair:
        raise OutOfReach(
            "there is no one pair to draw from: this loss is known by bounds only.\n"
            f"  found:  {loss}\n  do:     draw from one of the losses that it is made of"
        )
    top, bottom = loss.supremum()
    law = LossLaw(loss)
    low = -bottom if bottom < 50 else min(law.quantile(1e-9).lower, 0.0)
    high = top if top < 50 else max(law.quantile(1 - 1e-9 - loss.leak()[0]).upper, 0.0)
    grid = np.unique(np.append(np.linspace(low, high, POINTS), [low + 1e-9 * (high - low), high - 1e-9 * (high - low)]))
    found = law.cdf(grid)
    chances = np.maximum.accumulate((found.lower + found.upper) / 2)
    u = rng.random(count)
    losses = np.interp(u, chances, grid)
    return np.where(u > 1 - loss.leak()[0], math.inf, losses)
