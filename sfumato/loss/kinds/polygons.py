"""The largest P-probability r(x) of events with Q-probability x, held between two polygons.

r = 1 − f, f the trade-off curve, is concave and rising. Corners are (Q-tail, P-tail). A composition of polygons is a
polygon: its corners are those of the first, carried through the second, and those of the second, pulled back through
the first. When there are too many, the inner polygon drops corners, and the outer one keeps fewer of its tangents. A
mean of polygons has the corners of all of them.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from sfumato.loss.kinds.tabulated import choose_nodes, first_nodes, profile_end
from sfumato.loss.numeric import ULP, Enclosure, Floats
from sfumato.loss.views.convex_bounds import Indices, touching_corner
from sfumato.loss.views.divergences import Curve

FLOOR = 1e-290  # every step multiplies δ by e^ε, so one step is followed far below any δ of interest
NODES = 12_000  # slopes on either side at which a polygon has corners
Sign = Literal[1, -1]  # outer polygons round outwards, inner ones inwards


class Polygon(NamedTuple):
    """Corners of a concave curve from (0, leak) to (1 − other leak, 1), with the complements 1 − r and 1 − x.

    All four are sharp where they are small: either end of the curve carries a tail.
    """

    x: Floats
    r: Floats
    not_r: Floats
    not_x: Floats

    @property
    def reverse(self) -> "Polygon":
        """(Q, P)."""
        return Polygon(*(values[::-1] for values in (self.not_r, self.not_x, self.x, self.r)))

    def best(self, eps: Floats) -> Indices:
        """The corner where r − e^ε·x is largest, ε ≥ 0: none beyond the one for ε = 0."""
        half = int(np.argmax(self.r - self.x)) + 2
        return touching_corner(self.x[:half], self.r[:half], eps)

    def profile(self, eps: Floats, sign: Sign) -> Floats:
        """max r − e^ε·x, rounded outwards or inwards."""
        m = self.best(eps)
        value = self.r[m] * (1 + sign * 32 * ULP) - np.exp(eps) * self.x[m] * (1 - sign * 32 * ULP)
        return np.clip(value, 0.0, 1.0)

    def then(self, second: "Polygon", sign: Sign) -> "Polygon":
        """The composition second(first(x)) at the corners of both, in the order of what lies between them."""
        r, not_r, up = map_through(self.r, self.not_r, second.x, second.not_x, second.r, second.not_r)
        x, not_x, along = map_through(second.x, second.not_x, self.r, self.not_r, self.x, self.not_x)
        order = np.argsort(np.append(key(self.r, self.not_r), key(second.x, second.not_x)), kind="stable")
        up, along = sign * np.append(up, 0 * second.r)[order], sign * np.append(0 * self.x, along)[order]
        return round_corners(
            np.append(self.x, x)[order] - along,
            np.append(r, second.r)[order] + up,
            np.append(not_r, second.not_r)[order] - up,
            np.append(self.not_x, not_x)[order] + along,
            sign,
        )


def key(u: Floats, not_u: Floats) -> Floats:
    """u/(1 − u) − (1 − u)/u: sorts numbers near 0 and near 1 to two ulps of the smaller side."""
    with np.errstate(divide="ignore", over="ignore"):
        return u / not_u - not_u / u


def map_through(u: Floats, v: Floats, a: Floats, b: Floats, c: Floats, d: Floats) -> tuple[Floats, Floats, Floats]:
    """The polygon through (a, c), with complements b and d, at u = 1 − v: value, complement and rounding error.

    Shares of an edge are computed from the nearer end of [0, 1].
    """
    k = np.clip(np.searchsorted(key(a, b), key(u, v), side="right") - 1, 0, len(a) - 2)
    low = u <= v
    width = np.where(low, a[k + 1] - a[k], b[k] - b[k + 1])
    part, left = np.where(low, u - a[k], b[k] - v), np.where(low, a[k + 1] - u, v - b[k + 1])
    some, edge = np.where(width > 0, width, 1.0), width > 0
    share = np.where(edge, np.clip(part, 0.0, width) / some, 1.0)
    rest = np.where(edge, np.clip(left, 0.0, width) / some, 0.0)
    rise, fall = c[k + 1] - c[k], d[k] - d[k + 1]
    error = 4 * ULP * np.minimum(np.minimum(u, v) / some, 1.0) * np.maximum(rise, fall)
    return c[k] + share * rise, d[k + 1] + rest * fall, error


def round_corners(x: Floats, r: Floats, not_r: Floats, not_x: Floats, sign: Sign) -> Polygon:
    """Corners moved outwards or inwards by 8 ulps, inside [0, 1] and in order: outwards is up and to the left."""
    up, down = 1 + sign * 8 * ULP, 1 - sign * 8 * ULP
    least = 0.0 if sign > 0 else 1e-320  # inwards, what underflows is not nothing
    x, not_r = np.clip(x * down + least, 0.0, 1.0), np.clip(not_r * down + least, 0.0, 1.0)
    r, not_x = np.clip(r * up, 0.0, 1.0), np.clip(not_x * up, 0.0, 1.0)
    higher, lower = np.maximum.accumulate, np.minimum.accumulate
    if sign > 0:
        return Polygon(lower(x[::-1])[::-1], higher(r), lower(not_r), higher(not_x[::-1])[::-1])
    return Polygon(higher(x), lower(r[::-1])[::-1], higher(not_r[::-1])[::-1], lower(not_x))


class Steps(NamedTuple):
    """The curve r of a chain, between two polygons."""

    outer: Polygon
    inner: Polygon

    @property
    def reverse(self) -> "Steps":
        """(Q, P)."""
        return Steps(self.outer.reverse, self.inner.reverse)

    def then(self, second: "Steps") -> "Steps":
        """One more step."""
        return Steps(self.outer.then(second.outer, 1), self.inner.then(second.inner, -1))

    def forward(self, eps: Floats) -> Enclosure:
        """The profile of (P, Q)."""
        return Enclosure(self.inner.profile(eps, -1), self.outer.profile(eps, 1))

    def backward(self, eps: Floats) -> Enclosure:
        """The profile of (Q, P)."""
        return self.reverse.forward(eps)

    def thin(self, alike: bool) -> "Steps":
        """No more corners than that: tangents and the corners they touch, at slopes chosen as for a table."""
        if len(self.outer.x) <= 2 * NODES:
            return self
        ahead, back = above(self.forward), None if alike else above(self.backward)
        end = max(profile_end(curve, FLOOR) for curve in (ahead, back) if curve)
        nodes = choose_nodes(ahead, back, first_nodes(ahead, back, end), NODES)[0]
        corners = [self.inner.best(nodes), len(self.inner.x) - 1 - self.inner.reverse.best(nodes)]
        some = np.unique(np.concatenate([[0], *corners, [len(self.inner.x) - 1]]))
        one, two = tangents(self.outer, nodes), tangents(self.outer.reverse, nodes)
        x, r, not_r, not_x = (np.append(v, w[::-1]) for v, w in zip(one, (*two[2:], *two[:2]), strict=True))
        return Steps(round_corners(x, r, not_r, not_x, 1), Polygon(*(values[some] for values in self.inner)))


def above(curve: Curve) -> Curve:
    """The upper side as if it were exact, to choose nodes by."""

    def exact(eps: Floats) -> Enclosure:
        high = curve(eps).upper
        return Enclosure(high * (1 - 64 * ULP), high)

    return exact


def tangents(polygon: Polygon, nodes: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Where the tangents of neighbouring slopes e^ε meet, ε ≥ 0 falling; the steepest one runs on to x = 0.

    Wherever the meeting point is put, it lies above both tangents: an error in it does no harm.
    """
    slope, m = np.exp(nodes[::-1]), polygon.best(nodes[::-1])
    x, r = polygon.x[m], polygon.r[m]
    wide, steep, flat = np.diff(x), slope[:-1], slope[1:]
    along = np.clip((np.diff(r) - flat * wide) / (steep - flat), 0.0, np.maximum(wide, 0.0))
    high = np.maximum(r[:-1] + steep * along, r[1:] - flat * (wide - along)) + 8 * ULP * r[1:]
    start = np.maximum(r[:1] * (1 + 8 * ULP) - slope[0] * x[:1] * (1 - 8 * ULP), 0.0)
    left, top = np.append(0.0, x[:-1] + along) * (1 - 8 * ULP), np.minimum(np.append(start, high), 1.0)
    return left, top, 1 - top, 1 - left


def mean_of_curves(shares: Sequence[float], curves: Sequence[Steps]) -> Steps:
    """Σ share_j·r_j at the corners of all of them; the first share is that of r₀(x) = x."""

    def mean(polygons: Sequence[Polygon], sign: Sign) -> Polygon:
        x, not_x = (np.concatenate(part) for part in zip(*((p.x, p.not_x) for p in polygons), strict=True))
        order = np.argsort(key(x, not_x), kind="stable")
        x, not_x = x[order], not_x[order]
        r, not_r = shares[0] * x, shares[0] * not_x
        for share, polygon in zip(shares[1:], polygons, strict=True):
            up, down, error = map_through(x, not_x, polygon.x, polygon.not_x, polygon.r, polygon.not_r)
            r = r + share * (up + sign * error)
            not_r = not_r + share * (down - sign * error)
        more = sign * 2 * (len(shares) + 1) * ULP
        lost = 1e-300 if sign > 0 and min(shares) < 1e-290 else 0.0  # a share that underflows is not zero
        return round_corners(x, r * (1 + more) + lost, not_r * (1 - more) - lost, not_x, sign)

    return Steps(mean([c.outer for c in curves], 1), mean([c.inner for c in curves], -1))
