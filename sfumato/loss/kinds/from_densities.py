"""Losses given by two laws on a line: by their densities, or by their distribution functions.

The line is cut where log p/q turns. On each piece the best tests are half-lines, so that the masses of half-lines are
the tails of the loss; the profiles of the pieces add up.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, SupportsFloat

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.finite import running_sums
from sfumato.loss.kinds.tabulated import (
    BELIEF,
    GAP,
    Function,
    TabulatedLoss,
    column,
    evaluate_function,
    profile_end,
    tabulate,
)
from sfumato.loss.numeric import ULP, Enclosure, Floats, floats
from sfumato.loss.views.convex_bounds import straight_line
from sfumato.loss.views.divergences import Curve
from sfumato.sensitivity import Relation

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(8)


class Sums(NamedTuple):
    """Masses to the left and to the right of each edge, with their errors."""

    left: Floats
    left_error: Floats
    right: Floats
    right_error: Floats


Ratio = Callable[[Floats], Floats]
Measure = Callable[[Floats], Sums]


def from_densities(
    p: Function,
    q: Function,
    low: SupportsFloat,
    high: SupportsFloat,
    *,
    turning_points: Sequence[SupportsFloat] = (),
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss of two densities on [low, high]; log p/q is monotone between `turning_points`.

    Masses of cells come from Gauss quadrature, believed to 1e-12 and to what halving a cell changes. From above, each
    cell's mass moves to the losses at its two ends so that P and Q keep theirs; from below, a cell is merged into one
    outcome. Mass outside counts as leak from above.

    Theorem: moving mass to the two ends dominates: connect the dots [Doroshenko et al. 2022]
    """

    def ratio(x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(density("p", p, x)) - np.log(density("q", q, x))

    return from_measures(ratio, quadrature("p", p), quadrature("q", q), breaks(low, high, turning_points), relation)


def from_cdfs(
    cdf_p: Function,
    cdf_q: Function,
    log_ratio: Function,
    low: SupportsFloat,
    high: SupportsFloat,
    *,
    turning_points: Sequence[SupportsFloat] = (),
    relation: Relation = Relation.AddRemove,
) -> TabulatedLoss:
    """The loss of two distribution functions on [low, high], with log p/q monotone between `turning_points`.

    As `from_densities`, but masses are differences, believed to 4 ulps of the larger value. Where high losses lie to
    the right, Q's are known to 1e-15 only and δ(ε) to about e^ε·1e-15: mirror the line if that matters.

    Theorem: moving mass to the two ends dominates: connect the dots [Doroshenko et al. 2022]
    """
    ratio, cuts = partial(evaluate_function, "log_ratio", log_ratio), breaks(low, high, turning_points)
    return from_measures(ratio, differences("cdf_p", cdf_p), differences("cdf_q", cdf_q), cuts, relation)


def breaks(low: SupportsFloat, high: SupportsFloat, turning_points: Sequence[SupportsFloat]) -> Floats:
    """The ends of the pieces."""
    cuts = floats(column("low, turning_points and high", [low, *turning_points, high]))
    if np.any(np.diff(cuts) <= 0):
        raise InvalidParameter(
            f"low, turning_points and high must rise in this order.\n  found:  {cuts.tolist()}\n"
            "  do:     sort them; what lies beyond low and high is counted as leak"
        )
    return cuts


def density(name: str, function: Function, x: Floats) -> Floats:
    """A density at many points."""
    found = evaluate_function(name, function, x)
    wrong = ~((found >= 0) & (found < np.inf))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidParameter(
            f"{name} must be a density: ≥ 0 and finite.\n  found:  {name}({x[i]:.6g}) = {found[i]!r}\n"
            "  do:     move low, high or a turning point away from a pole"
        )
    return found


def quadrature(name: str, function: Function) -> Measure:
    """Masses from a density."""

    def gauss(x: Floats) -> Floats:
        half = np.diff(x)[:, None] / 2
        points = x[:-1, None] + half * (1 + POINTS)
        values = density(name, function, points.ravel()).reshape(points.shape)
        return floats((values * WEIGHTS * half).sum(axis=1))

    def sums(x: Floats) -> Sums:
        middle = (x[:-1] + x[1:]) / 2
        halves = gauss(np.insert(x, np.arange(1, len(x)), middle)).reshape(-1, 2).sum(axis=1)
        error = np.abs(halves - gauss(x)) + BELIEF * halves
        left, right = (halves, error), (halves[::-1], error[::-1])
        return Sums(*map(running_sums, left), *(running_sums(values)[::-1] for values in right))

    return sums


def differences(name: str, function: Function) -> Measure:
    """Masses from a distribution function."""

    def sums(x: Floats) -> Sums:
        found = evaluate_function(name, function, x)
        if not np.all((found >= 0) & (found <= 1)) or np.any(np.diff(found) < -4 * ULP):
            raise InvalidParameter(
                f"{name} must be a distribution function: it rises from 0 to 1.\n"
                f"  found:  values from {found[0]!r} to {found[-1]!r}, least {found.min()!r}, largest {found.max()!r}"
            )
        left, right = np.maximum(found - found[0], 0.0), np.maximum(found[-1] - found, 0.0)
        return Sums(left, 4 * ULP * found, right, 4 * ULP * (0 * found + found[-1]))

    return sums


class Piece(NamedTuple):
    """Edges in falling order of the loss, with the masses of higher losses and their errors."""

    loss: Floats
    p: Floats
    p_error: Floats
    q: Floats
    q_error: Floats

    def profile(self, eps: Floats) -> Enclosure:
        """This piece's share of H: chords between edges above, the better of the two edges around ε below."""
        total = self.p[-1] + self.p_error[-1]
        finite = np.isfinite(self.loss)
        if not finite.any():
            return Enclosure(0 * eps, 0 * eps + total)
        loss, p, p_error, q, q_error = (values[finite] for values in self)
        half, most = np.exp(loss / 2), p + p_error  # e^loss may overflow where e^loss·q does not
        edge = np.clip(most - half * np.maximum(q - q_error, 0.0) * half, 0.0, most) + 4 * ULP * most
        k = np.searchsorted(-loss, -eps, side="left")
        i, j = np.maximum(k - 1, 0), np.minimum(k, len(loss) - 1)
        inner = straight_line(eps, loss[j], edge[j], loss[i], edge[i])
        whole = total + (edge[-1] - total) * np.exp(np.minimum(eps - loss[-1], 0.0))  # to α = 0, where H is all of P
        high = np.where(k == 0, edge[0], np.where(k == len(loss), whole, inner))
        a = np.exp(eps)
        low = [(p - p_error)[n] * (1 - 4 * ULP) - a * (q + q_error)[n] * (1 + 4 * ULP) for n in (i, j)]
        return Enclosure(np.maximum(np.maximum(*low), 0.0), high * (1 + 8 * ULP))


def from_measures(ratio: Ratio, p: Measure, q: Measure, cuts: Floats, relation: Relation) -> TabulatedLoss:
    """Both profiles, summed over the pieces."""
    cells = [refine_edges(ratio, p, q, low, high) for low, high in pairwise(cuts)]
    ahead = sum_pieces([piece(loss, first, second) for loss, first, second in cells])
    back = sum_pieces([piece(-loss, second, first) for loss, first, second in cells])
    return tabulate(ahead, back, max(profile_end(ahead), profile_end(back)), relation)


def sum_pieces(pieces: list[Piece]) -> Curve:
    """The profile of all pieces and of the mass that is in none."""
    inside = math.fsum(part.p[-1] for part in pieces)
    if not 0 < inside <= 1 + 1e-9:
        raise InvalidParameter(f"the mass between low and high must be positive and at most 1.\n  found:  {inside!r}")
    outside = max(1 - inside, 0.0) + 16 * ULP

    def curve(eps: Floats) -> Enclosure:
        low, high = np.sum([part.profile(eps) for part in pieces], axis=0)
        return Enclosure(np.clip(low * (1 - 8 * ULP), 0.0, 1.0), np.clip((high + outside) * (1 + 8 * ULP), 0.0, 1.0))

    return curve


def piece(loss: Floats, p: Sums, q: Sums) -> Piece:
    """A piece read in falling order of the loss; −loss with (Q, P) is the other direction."""
    if loss[-1] >= loss[0]:
        return Piece(loss[::-1], p.right[::-1], p.right_error[::-1], q.right[::-1], q.right_error[::-1])
    return Piece(loss, p.left, p.left_error, q.left, q.left_error)


def refine_edges(ratio: Ratio, p: Measure, q: Measure, low: float, high: float) -> tuple[Floats, Sums, Sums]:
    """Losses at edges, close together wherever that makes the profiles sharper, and the masses."""
    x = np.linspace(low, high, 257)
    known = np.flatnonzero(~np.isnan(ratio(x)))
    x = x[known[0] : known[-1] + 1] if len(known) else x  # beyond, both densities are 0
    loss = ratio(x)
    while True:
        check_monotone(x, loss)
        ordered = (np.maximum if loss[-1] >= loss[0] else np.minimum).accumulate(loss)
        first, second = p(x), q(x)
        excess = np.where(np.diff(x) > 1e-12 * (high - low), coarseness(ordered, first, second), 0.0)
        wide = excess > max(1.0, float(excess.max()) / 16)
        if not wide.any() or len(x) > 20_000:
            return ordered, first, second
        fresh = ((x[:-1] + x[1:]) / 2)[wide]
        where = np.searchsorted(x, fresh)
        x, loss = np.insert(x, where, fresh), np.insert(loss, where, ratio(fresh))


def coarseness(loss: Floats, p: Sums, q: Sums) -> Floats:
    """How much too large a cell is: its gap in the middle, the error of its mass, or an infinite loss at one end."""
    mass, zero = np.diff(p.left) + np.diff(q.left), np.zeros_like(loss)
    rough = np.diff(p.left_error + q.left_error) / (4 * BELIEF * mass + 1e-18)
    p, q = (sums._replace(left_error=zero, right_error=zero) for sums in (p, q))
    ends = np.isfinite(loss)
    finite, half = ends[:-1] & ends[1:], ends[:-1] ^ ends[1:]
    middle = (np.where(finite, loss[:-1], 0.0) + np.where(finite, loss[1:], 0.0)) / 2
    ahead, back = (
        part.profile(np.maximum(side * middle, 0.0))
        for side, part in ((1, piece(loss, p, q)), (-1, piece(-loss, q, p)))
    )
    high, low = np.where(middle >= 0, ahead.upper, back.upper), np.where(middle >= 0, ahead.lower, back.lower)
    gap = np.where(finite, (high - low) / (GAP * (high + 1e-13)), 1e4 * half)
    return np.where(mass > 1e-20, np.maximum(gap, rough), 0.0)


def check_monotone(x: Floats, loss: Floats) -> None:
    """Rising or falling, up to rounding."""
    with np.errstate(invalid="ignore"):
        step = np.diff(loss) * (1 if loss[-1] >= loss[0] else -1)
        turn = np.isnan(loss[1:]) | np.isnan(loss[:-1]) | (step < -1e-9 * (1 + np.abs(loss[1:])))
    if turn.any():
        i = int(np.argmax(turn))
        raise InvalidParameter(
            f"log p/q must rise or fall all the way between two turning points.\n"
            f"  found:  {loss[0]:.6g} at {x[0]:.6g}, {loss[i]:.6g} at {x[i]:.6g}, {loss[i + 1]:.6g} at {x[i + 1]:.6g}, "
            f"{loss[-1]:.6g} at {x[-1]:.6g}\n  do:     give the places where it turns as turning_points"
        )
