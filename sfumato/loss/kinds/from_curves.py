"""Losses given by a curve that a user writes: the profile δ(ε), or the trade-off function f(α)."""

from typing import NamedTuple, SupportsFloat

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.tabulated import (
    BELIEF,
    GAP,
    Function,
    TabulatedLoss,
    choose_nodes,
    evaluate_function,
    first_nodes,
    profile_end,
    table,
    tabulate,
)
from sfumato.loss.numeric import ULP, Enclosure, Floats, floats
from sfumato.loss.views.convex_bounds import CAP, chord, touching_corner, unfold
from sfumato.loss.views.divergences import Curve
from sfumato.sensitivity import Relation


def from_profile(
    delta: Function,
    *,
    backward: Function | None = None,
    top: SupportsFloat | None = None,
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss with the profile δ(ε), ε ≥ 0, and `backward` for the other direction if that is different.

    `top`: the ε from which on δ no longer falls, if there is one. Values are believed to a relative 1e-12; what is not
    a profile (in [0, 1], not rising, convex in e^ε) is refused.

    Theorem: a pair is a profile: any convex non-increasing H ≥ (1 − α)₊ with H_0 = 1 has one [Zhu et al. 2022, Lemma 9]
    """
    last = CAP
    if top is not None:
        last = checks.number("top", top, 1e-12, CAP, allowed=f"the ε from which on δ stays what it is, at most {CAP:g}")
    ahead = believed_enclosure("delta", delta, last)
    back = None if backward is None else believed_enclosure("backward", backward, last)
    end = last if top is not None else max(profile_end(curve) for curve in (ahead, back) if curve)
    nodes, first, second = choose_nodes(ahead, back, first_nodes(ahead, back, end))
    check_profile(nodes, first.upper, second.upper)
    return table(nodes, first, second, relation)


def believed_enclosure(name: str, function: Function, last: float) -> Curve:
    """A function of ε with values in [0, 1], as an enclosure; it is not asked beyond `last`."""

    def curve(eps: Floats) -> Enclosure:
        value = evaluate_function(name, function, np.minimum(eps, last)) + 0.0  # no −0
        wrong = ~((value >= 0) & (value <= 1 + BELIEF))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise InvalidParameter(
                f"{name} must lie in [0, 1].\n  found:  {name}({eps[i]:.6g}) = {value[i]!r}\n"
                "  do:     return δ(ε) for ε ≥ 0, without cancellation where it is small, or give `top`"
            )
        return Enclosure(value * (1 - BELIEF), np.minimum(value * (1 + BELIEF), 1.0))

    return curve


def check_profile(nodes: Floats, ahead: Floats, back: Floats) -> None:
    """Not rising and convex in e^ε, on both sides of 0 and across it, up to 1e-9."""
    for values in (ahead, back):
        rises = np.diff(values) > 1e-9 * values[:-1]
        if rises.any():
            i = int(np.argmax(rises))
            raise InvalidParameter(
                f"a profile does not rise.\n  found:  δ({nodes[i]:.6g}) = {values[i]:.6g} < δ({nodes[i + 1]:.6g}) = "
                f"{values[i + 1]:.6g}\n  do:     check the formula; δ(ε) is the δ for which (ε, δ)-DP holds"
            )
    t, d = unfold((nodes, ahead), (nodes, back))
    roof = chord(t[1:-1], t[:-2], d[:-2], t[2:], d[2:])
    bent = (d[1:-1] - roof) > 1e-9 * roof
    if bent.any() or abs(ahead[0] - back[0]) > 1e-9:
        i = int(np.argmax((d[1:-1] - roof) / np.maximum(roof, 1e-300))) + 1
        raise InvalidParameter(
            f"no pair of distributions has this profile: it must be convex in e^ε, and alike at 0 in both directions.\n"
            f"  found:  {d[i]:.6g} at ε = {abs(t[i]):.6g}, above the chord of its neighbours; {ahead[0]:.6g} and "
            f"{back[0]:.6g} at 0\n  do:     give δ(ε) = ∫(p − e^ε q)₊, and `backward` = ∫(q − e^ε p)₊ if that differs"
        )


def from_trade_off(f: Function, *, relation: Relation = Relation.AddRemove) -> TabulatedLoss:
    """The loss with the trade-off curve β = f(α): convex, falling, 0 ≤ f(α) ≤ 1 − α.

    δ(ε) = sup_x 1 − f(x) − e^ε x, backward sup_x 1 − x − e^ε f(x): from below at samples x, from above where the chords
    of neighbouring cells, continued, meet. f is believed to 1e-12 of the smaller of f and 1 − f, and to 4 ulps of f and
    of α: compute it from α where α is small, Φ(−Φ⁻¹(α) − μ) and not Φ(Φ⁻¹(1 − α) − μ). δ is sharp down to 1e-15.

    Theorem: profile and trade-off are convex conjugates [Dong, Roth & Su 2022, Prop. 2.12]
    """
    tiny, small = np.geomspace(1e-300, 1e-18, 100), np.geomspace(1e-18, 0.5, 700)
    x = np.unique(np.concatenate([[0.0], tiny, small, 1 - small, [1.0]]))
    beta = evaluate_function("f", f, x)
    while True:
        check_trade_off(x, beta)
        ahead, back = both_corners(x, beta)
        excess = np.maximum(ahead.excess(), back.excess()[::-1])
        cells = np.flatnonzero(excess > max(1.0, float(excess.max()) / 16))
        fresh = np.setdiff1d(geometric_midpoints(x[cells], x[cells + 1]), x)
        if not len(fresh) or len(x) > 8000:
            return tabulate(
                ahead.profile, back.profile, max(profile_end(ahead.profile), profile_end(back.profile)), relation
            )
        where = np.searchsorted(x, fresh)
        x, beta = np.insert(x, where, fresh), np.insert(beta, where, evaluate_function("f", f, fresh))


def geometric_midpoints(left: Floats, right: Floats) -> Floats:
    """Geometric means, counted from the nearer of 0 and 1."""
    low = np.sqrt(left * right) + np.where(left == 0, right / 16, 0.0)
    high = 1 - np.sqrt((1 - left) * (1 - right)) - np.where(right == 1, (1 - left) / 16, 0.0)
    return np.where(right <= 0.5, low, high)


def check_trade_off(x: Floats, beta: Floats) -> None:
    """Between 0 and 1 − α, falling, convex: up to 1e-9 of the smaller of f and 1 − f, and a few ulps."""
    slack = 1e-9 * np.minimum(beta, 1 - beta) + 16 * ULP
    middle = (beta[:-2] * (x[2:] - x[1:-1]) + beta[2:] * (x[1:-1] - x[:-2])) / (x[2:] - x[:-2])
    wrong = ~((beta >= 0) & (beta <= 1 - x + slack))
    wrong[1:] |= ~(np.diff(beta) <= slack[1:])
    wrong[1:-1] |= ~(beta[1:-1] <= middle + slack[1:-1])
    if wrong.any():
        i = int(np.argmax(wrong))
        near = ", ".join(f"f({x[n]:.6g}) = {beta[n]:.17g}" for n in range(max(i - 1, 0), min(i + 2, len(x))))
        raise InvalidParameter(
            f"a trade-off curve is convex, falls, and lies between 0 and 1 − α.\n  found:  {near}\n"
            "  do:     give the least type II error at type I error α, computed from α itself: 1 − α forgets small α"
        )


class Corner(NamedTuple):
    """Samples of the concave curve r(x) = most power at type I error x, each with its two extreme positions."""

    best_x: Floats
    best_r: Floats
    worst_x: Floats
    worst_r: Floats

    def outer(self) -> tuple[Floats, Floats]:
        """One point per cell: where the continued chords of its neighbours meet. The curve lies below them all."""
        x, r = self.best_x, self.best_r
        width = np.diff(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = (r[1:] - self.worst_r[:-1]) / (x[1:] - self.worst_x[:-1])  # from the left, at most
            steep = np.concatenate([[np.inf], np.where(x[1:] > self.worst_x[:-1], steep, np.inf)[:-1]])
            flat = np.maximum(self.worst_r[1:] - r[:-1], 0.0) / (self.worst_x[1:] - x[:-1])  # from the right, at least
            flat = np.append(np.where(self.worst_x[1:] > x[:-1], flat, 0.0)[1:], 0.0)
            away = np.where(steep > flat, (np.diff(r) - flat * width) / (steep - flat), 0.0)
        away = np.clip(away, 0.0, width)
        return x[:-1] + away, r[1:] - flat * (width - away)

    def excess(self) -> Floats:
        """How far outside the points are, in units of what is asked of δ (least on the slope that leads to a cell)."""
        x, r = self.outer()
        width = np.diff(self.best_x)
        slope = np.where(width > 0, np.diff(self.best_r) / np.maximum(width, 1e-300), 0.0)
        above = r - self.best_r[:-1] - slope * (x - self.best_x[:-1])
        delta = self.best_r[:-1] - np.append(slope[:1], slope[:-1]) * self.best_x[:-1]
        noise = self.best_r - self.worst_r
        noise = noise[:-1] + noise[1:] + slope * np.maximum(self.worst_x - self.best_x, 0.0)[1:]
        return np.where(slope > 0.9, above / np.maximum(GAP * delta + 8 * noise, 1e-300), 0.0)

    def profile(self, eps: Floats) -> Enclosure:
        """sup over x of r(x) − e^ε x, between the samples and the points outside."""
        x, r = self.outer()
        low = touching_value(self.worst_x * (1 + 4 * ULP), self.worst_r * (1 - 4 * ULP), eps)
        high = touching_value(
            np.append(x, self.best_x) * (1 - 4 * ULP), np.append(r, self.best_r) * (1 + 64 * ULP), eps
        )
        return Enclosure(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


def touching_value(x: Floats, r: Floats, eps: Floats) -> Floats:
    """max of r − e^ε x over points in any order."""
    order = np.lexsort((r, x))
    x, r = x[order], r[order]
    best = touching_corner(x, r, eps)
    return floats(r[best] - np.exp(eps) * x[best])


def both_corners(x: Floats, beta: Floats) -> tuple[Corner, Corner]:
    """The curve seen from α = 0 (forward) and from β = 0 (backward)."""
    steep = np.diff(beta, prepend=beta[0]) / np.diff(x, prepend=-1.0)
    error = BELIEF * np.minimum(beta, 1 - beta) + 4 * ULP * (beta + x * np.abs(steep))
    ahead = Corner(x, np.minimum(1 - beta + error, 1.0), x, np.maximum(1 - beta - error, 0.0))
    y, r, error = beta[::-1], (1 - x)[::-1], error[::-1]
    return ahead, Corner(np.maximum(y - error, 0.0), r, y + error, r)
