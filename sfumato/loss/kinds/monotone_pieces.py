"""Two laws on a line, cut where log p/q turns: on each piece the best tests are half-lines.

The masses of half-lines are then the tails of the loss, and the profiles of the pieces add up.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.tabulated import TabulatedLoss
from sfumato.loss.numeric import ULP, Enclosure, Floats
from sfumato.loss.user_functions import BELIEF
from sfumato.loss.views.convex_bounds import straight
from sfumato.loss.views.divergences import Curve
from sfumato.loss.views.tabulate import GAP, reach, tabulate
from sfumato.sensitivity import Relation


class Sums(NamedTuple):
    """Masses to the left and to the right of each edge, with their errors."""

    left: Floats
    left_error: Floats
    right: Floats
    right_error: Floats


Ratio = Callable[[Floats], Floats]
Measure = Callable[[Floats], Sums]


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
        inner = straight(eps, loss[j], edge[j], loss[i], edge[i])
        whole = total + (edge[-1] - total) * np.exp(np.minimum(eps - loss[-1], 0.0))  # to α = 0, where H is all of P
        high = np.where(k == 0, edge[0], np.where(k == len(loss), whole, inner))
        a = np.exp(eps)
        low = [(p - p_error)[n] * (1 - 4 * ULP) - a * (q + q_error)[n] * (1 + 4 * ULP) for n in (i, j)]
        return Enclosure(np.maximum(np.maximum(*low), 0.0), high * (1 + 8 * ULP))


def from_measures(ratio: Ratio, p: Measure, q: Measure, cuts: Floats, relation: Relation) -> TabulatedLoss:
    """Both profiles, summed over the pieces."""
    cells = [refined(ratio, p, q, low, high) for low, high in pairwise(cuts)]
    ahead = summed([piece(loss, first, second) for loss, first, second in cells])
    back = summed([piece(-loss, second, first) for loss, first, second in cells])
    return tabulate(ahead, back, max(reach(ahead), reach(back)), relation)


def summed(pieces: list[Piece]) -> Curve:
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


def refined(ratio: Ratio, p: Measure, q: Measure, low: float, high: float) -> tuple[Floats, Sums, Sums]:
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
