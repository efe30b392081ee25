"""Convex curves between nodes: what certified values at some ε say about a profile at all others.

H is convex in e^ε and does not rise. Between two nodes it lies below their chord and above the chords of the cells next
door, continued; beyond the last node it lies below its last value.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.loss.numeric import ULP, Enclosure, Floats, floats

Indices = npt.NDArray[np.intp]

CAP = 690.0  # the largest ε: e^ε must stay a float


class Side(NamedTuple):
    """One profile between nodes."""

    nodes: Floats
    values: Enclosure
    fall: Floats  # H falls no faster than this to the right of a node (slope of the chord on its left, times e^{node})
    rise: Floats  # H rises at least this fast to the left of a node (slope of the chord on its right, times e^{node})

    def lines(self, eps: Floats, i: Indices) -> tuple[Floats, Floats]:
        """The continued chords of the cells before and after cell i; beyond the last node there is only the first."""
        nodes, low = self.nodes, self.values.lower
        k = np.minimum(i + 1, len(nodes) - 1)
        away = eps - nodes[i]
        with np.errstate(over="ignore"):  # a line that falls by more than any float has passed 0
            drop = self.fall[i] * np.expm1(np.minimum(away, CAP))
        left = np.where(away < CAP, low[i] - drop - 8 * ULP * (low[i] + drop), 0.0)
        right = low[k] - self.rise[k] * np.expm1(np.minimum(eps - nodes[k], 0.0))
        return left, np.where(i < k, right * (1 - 8 * ULP), 0.0)

    def __call__(self, eps: Floats) -> Enclosure:
        nodes, high = self.nodes, self.values.upper
        i = np.searchsorted(nodes, eps, side="right") - 1
        k = np.minimum(i + 1, len(nodes) - 1)
        upper = straight_line(eps, nodes[i], high[i], nodes[k], high[k])
        return Enclosure(np.maximum(np.maximum(*self.lines(eps, i)), 0.0), np.minimum(upper * (1 + 8 * ULP), 1.0))


def both_sides(nodes: Floats, ahead: Enclosure, back: Enclosure) -> tuple[Side, Side]:
    """Forward and backward; each knows the other's first cell, because H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P)."""
    return one_side(nodes, ahead, back.upper[1]), one_side(nodes, back, ahead.upper[1])


def one_side(nodes: Floats, values: Enclosure, mirrored: float) -> Side:
    """The profile and the slopes of its chords, from above and below."""
    low, high = values
    before = -math.expm1(-nodes[1]) + math.exp(-nodes[1]) * mirrored  # H at e^{−ε₁}
    back = np.concatenate([[-nodes[1]], nodes[:-1] - nodes[1:]])
    fall = np.maximum(np.concatenate([[before], high[:-1]]) - low, 0.0) / -np.expm1(back)
    with np.errstate(over="ignore"):
        rise = np.maximum(low[:-1] - high[1:], 0.0) / np.expm1(np.diff(nodes))
    return Side(nodes, values, fall, np.append(rise, 0.0))


def monotone(values: Enclosure) -> Enclosure:
    """The enclosure sharpened by monotony: a profile does not rise."""
    lower = np.maximum.accumulate(values.lower[::-1])[::-1]
    return Enclosure(lower, np.minimum.accumulate(values.upper))


def straight_line(eps: Floats, t0: Floats, d0: Floats, t1: Floats, d1: Floats) -> Floats:
    """The line in e^ε from (t0, d0) to (t1, d1) at t0 ≤ ε ≤ t1: forward profiles only; d1 where both ends are one."""
    share = np.expm1(np.minimum(eps - t1, 0.0)) / np.where(t0 < t1, np.expm1(t0 - t1), -1.0)
    return floats(d1 + (d0 - d1) * np.minimum(share, 1.0))


# ---- both directions on one line ----------------------------------------------------------------------------------


def unfold(ahead: tuple[Floats, Floats], back: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Nodes and values of both directions, each from 0 on, as one row with t = −ε for the backward profile."""
    return np.append(-back[0][:0:-1], ahead[0]), np.append(back[1][:0:-1], ahead[1])


def full_profile(t: Floats, d: Floats) -> Floats:
    """H at e^t: d itself for t ≥ 0; for t < 0, where d is the other direction's profile, 1 − e^t + e^t·d."""
    below = np.minimum(t, 0.0)
    return np.where(t >= 0, d, np.exp(below) * d - np.expm1(below))


def chord(t: Floats, t0: Floats, d0: Floats, t1: Floats, d1: Floats) -> Floats:
    """The chord of H from e^{t0} to e^{t1} at e^t: forward profile for t ≥ 0, backward profile at −t for t < 0.

    Each direction is computed in its own coordinates, as a sum of positive terms: no digit of a small profile is lost.
    """
    ahead = t >= 0
    a, b, c = np.abs(t), np.where(ahead, t0, -t1), np.where(ahead, t1, -t0)
    first, last = full_profile(b, np.where(ahead, d0, d1)), full_profile(c, np.where(ahead, d1, d0))
    whole = np.expm1(b - c)
    return floats((first * np.expm1(a - c) + last * np.exp(a - c) * np.expm1(b - a)) / whole)


def convex(t: Floats, d: Floats) -> Floats:
    """The greatest convex H below the points (e^t, d), at these points: a bound on every convex function below them.

    A point above the chord of its neighbours is on no convex curve below them, so all such points go at once.
    """
    kept = np.arange(len(t))
    while len(kept) > 2:
        before, here, after = kept[:-2], kept[1:-1], kept[2:]
        roof = chord(t[here], t[before], d[before], t[after], d[after])
        good = d[here] <= roof * (1 + 8 * ULP)
        if good.all():
            break
        kept = kept[np.concatenate([[True], good, [True]])]
    return np.minimum(d, polygon(t[kept], d[kept], t) * (1 + 8 * ULP))


def polygon(t: Floats, d: Floats, at: Floats) -> Floats:
    """The profiles between the points (e^t, d), forward or backward as `at` has its sign; constant beyond the ends."""
    k = np.clip(np.searchsorted(t, at, side="right"), 1, len(t) - 1)
    inner = chord(np.clip(at, t[0], t[-1]), t[k - 1], d[k - 1], t[k], d[k])
    return np.where(at >= t[-1], d[-1], np.where(at <= t[0], d[0], inner))


# ---- concave curves of corners --------------------------------------------------------------------------------------


def hull(x: Floats, r: Floats) -> tuple[Indices, Floats]:
    """Corners of the concave hull and the slopes between them: what lies below a chord of two others goes at once.

    The x do not fall; of corners above each other the last is the highest.
    """
    index = np.flatnonzero(np.append(np.diff(x) > 0, True))
    with np.errstate(over="ignore"):
        while True:
            slope = np.diff(r[index]) / np.diff(x[index])
            kept = np.concatenate([[True], slope[:-1] > slope[1:], [True]])
            if kept.all() or len(index) < 3:
                return index, slope
            index = index[kept]


def touching_corner(x: Floats, r: Floats, eps: Floats) -> Indices:
    """The corner where r − e^ε·x is largest: where the slope of the concave hull passes e^ε."""
    kept, slope = hull(x, r)
    a = np.exp(eps)
    near = np.clip(np.searchsorted(-slope, -a) + np.array([[-1], [0], [1]]), 0, len(kept) - 1)
    value = r[kept[near]] - a * x[kept[near]]  # slopes are rounded: both neighbours are looked at
    return np.asarray(kept[np.take_along_axis(near, value.argmax(axis=0)[None], axis=0)[0]])
