"""The best of a random number of private runs: what tuning, model selection and "run it again" cost.

Only the best run is released: its output and its score, not the number of runs nor the other runs.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.kinds.gated import profile_at_any_sign
from sfumato.loss.kinds.run_counts import RunLaw
from sfumato.loss.kinds.tabulated import TabulatedLoss, profile_end, tabulate
from sfumato.loss.numeric import ULP, Enclosure, Floats, floats
from sfumato.loss.views.convex_bounds import CAP
from sfumato.loss.views.divergences import log_moment

NODES = 256  # of the profile of one run, and of the result
KNOTS = 28  # of the weight M as a function of β
PLACES = 96  # values of t at which M is computed; in between the last one is used


@dataclass(frozen=True)
class SelectedLoss(PrivacyLoss):
    """The loss of the best of K runs, each of which has the loss `inner`; K is independent of the data.

    Outputs have scores, and the best run is released, without K. Let G(t) be the least probability on the neighbour of
    an event of probability t, and f(x) = E[x^K]. The profile is at most ∫₀¹ M_t(e^ε·G′(t)) dt, where
    M_t(β) = sup over x ≤ 1 − t of (f′(x) − β·f′(G(x + t) − G(t)))₊. G comes from the profile of one run, as a polygon;
    M_t(β) is convex in β, falls in t, and its supremum on each side of the polygon is known.
    Far out, E[K]·H(ε − ln sup f′(x)/f′(G(x))) is less, where H is the profile of one run.

    Theorem: the best of a random number of runs costs at most ∫M_t(e^ε·G′(t))dt [docs/theorems/selection.md, Theorem 1;
        cf. Papernot & Steinke 2022, Thm 2; Koskela, Redberg & Wang 2024]
    """

    inner: PrivacyLoss
    runs: RunLaw

    method = "selection"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.inner, PrivacyLoss):
            raise InvalidParameter(f"SelectedLoss needs the loss of one run, found {type(self.inner).__name__}")
        if not isinstance(self.runs, RunLaw):
            raise InvalidParameter(
                f"runs must be the law of the number of runs, found {type(self.runs).__name__}.\n"
                "  do:     give such as NegativeBinomialRuns.of_mean(20)"
            )
        if self.relation is not self.inner.relation:
            raise MixedRelations(
                f"the best of runs about {self.inner.relation.value} is not about {self.relation.value}"
            )

    @cached_property
    def best(self) -> "tuple[BestRun, BestRun]":
        """The theorem's integral, in both directions."""
        polygon = short_table(self.inner)
        return BestRun(self.runs, atoms_of(polygon)), BestRun(self.runs, atoms_of(polygon.reverse))

    @cached_property
    def table(self) -> TabulatedLoss:
        """The values of the integral as a table: engines read profiles at very many ε."""
        ahead, back = self.best
        end = max(profile_end(ahead), profile_end(back))
        return tabulate(ahead, None if self.reverse is self else back, end, self.relation, NODES)

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return least_of(self.table.forward(eps), self._far(self.inner, self.best[0], eps, tolerance))

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return least_of(self.table.backward(eps), self._far(self.inner.reverse, self.best[1], eps, tolerance))

    def _far(self, inner: PrivacyLoss, best: "BestRun", eps: Floats, tolerance: float) -> Floats:
        t = eps - best.shift
        one = profile_at_any_sign(inner, t - 4 * ULP * (np.abs(t) + best.shift), tolerance).upper
        return floats(np.minimum(self.runs.mean * one * (1 + 8 * ULP), 1.0))

    def supremum(self) -> tuple[float, float]:
        top, bottom = self.inner.supremum()
        ahead, back = self.best
        return (top + ahead.shift) * (1 + 4 * ULP) + 4 * ULP, (bottom + back.shift) * (1 + 4 * ULP) + 4 * ULP

    def leak(self) -> tuple[float, float]:
        """An event that is impossible for the neighbour is seen if a run has it: at most E[K] times as likely."""
        ahead, back = (min(1.0, self.runs.mean * leak * (1 + 8 * ULP)) for leak in self.inner.leak())
        return ahead, back

    @property
    def sharp_ends(self) -> bool:
        return False

    @property
    def one_pair(self) -> bool:
        return False

    def log_moment(self, s: float) -> Bound:
        return log_moment(self, s)

    @cached_property
    def reverse(self) -> PrivacyLoss:
        """Kept, with its table, which takes a moment to compute."""
        back = self.inner.reverse
        if back == self.inner and not self.relation.one_way:
            return self
        return SelectedLoss(back, self.runs, relation=self.relation.reversed)

    def group(self, size: int) -> PrivacyLoss:
        """The theorem holds for any two data sets, so the runs' loss about a group gives that of the best."""
        return SelectedLoss(self.inner.group(size), self.runs, relation=self.relation)


def short_table(loss: PrivacyLoss) -> TabulatedLoss:
    """Both profiles of a loss at up to NODES nodes, convex."""

    def ahead(eps: Floats) -> Enclosure:
        return loss.forward(eps)

    def back(eps: Floats) -> Enclosure:
        return loss.backward(eps)

    alike = loss.reverse == loss
    end = profile_end(ahead) if alike else max(profile_end(ahead), profile_end(back))
    return tabulate(ahead, None if alike else back, end, loss.relation, NODES)


def least_of(table: Enclosure, other: Floats) -> Enclosure:
    """The smaller of two upper bounds; nothing is known from below."""
    return Enclosure(np.zeros_like(other), np.minimum(table.upper, other))


class Atoms(NamedTuple):
    """A finite pair: losses from large to small with their masses under P and Q.

    `sure` is the mass under P of a loss of +∞, `never` that under Q of −∞. With `slack` more of P, the pair's profile
    is nowhere below the one that it stands for; with `slack` more of Q, its reverse is not.
    """

    losses: Floats
    p: Floats
    q: Floats
    sure: float
    never: float
    slack: float


def atoms_of(table: TabulatedLoss) -> Atoms:
    """The pair whose profile is the table's polygon in α = e^ε, which lies above the profile.

    The profile's slope at e^ε is −Q(L > ε), and that of the reverse is −P(L < −ε): the atoms are at the nodes. Nodes
    that are very close are left out (the polygon of fewer is above), as rounding would spoil the slopes between them.
    """
    keep = spaced_nodes(table.nodes)
    nodes, ahead, back = (floats(row)[keep] for row in (table.nodes, table.ahead_upper, table.back_upper))
    grow = np.exp(nodes)
    width = np.diff(grow)
    q_up = np.maximum(-np.diff(np.append(-np.diff(ahead) / width, 0.0)), 0.0)  # at nodes 1, 2, …
    p_down = np.maximum(-np.diff(np.append(-np.diff(back) / width, 0.0)), 0.0)
    p_up, q_down = q_up * grow[1:], p_down * grow[1:]
    sure, never = float(ahead[-1]), float(back[-1])
    middle = max(0.0, 1.0 - float(np.sum(p_up)) - sure - float(np.sum(p_down)))
    p, q = np.concatenate([p_up[::-1], [middle], p_down]), np.concatenate([q_up[::-1], [middle], q_down])
    losses = np.concatenate([nodes[:0:-1], [0.0], -nodes[1:]])
    short = max(shortfall(nodes, ahead, back, p, q, sure), shortfall(nodes, back, ahead, q, p, never))
    return Atoms(losses, p, q, sure, never, 2 * short + 1e-12)


def shortfall(nodes: Floats, ahead: Floats, back: Floats, p: Floats, q: Floats, sure: float) -> float:
    """By what part the profile of atoms is at most below the wanted one, at α = 0 and at all nodes above and below 1.

    With r more of P it is at least 1 + r times as large, everywhere: Σ((1 + r)p − αq)₊ ≥ (1 + r)·Σ(p − αq)₊.
    """
    grow, small = np.exp(nodes), np.exp(-nodes)
    alpha = np.concatenate([[0.0], small[::-1], grow[1:]])
    wanted = np.concatenate([[1.0], (1 - small + small * back)[::-1], ahead[1:]])
    found = np.sum(np.maximum(p - alpha[:, None] * q, 0.0), axis=1) + sure
    return float(np.max(np.where(wanted > found, wanted / np.maximum(found, 1e-300) - 1, 0.0)))


def spaced_nodes(nodes: tuple[float, ...]) -> list[int]:
    """The first node, the last, and those in between that are not too close to the one before."""
    apart, kept = nodes[-1] * 1e-6, [0]
    for i, node in enumerate(nodes[:-1]):
        if node - nodes[kept[-1]] >= apart and nodes[-1] - node >= apart:
            kept.append(i)
    return [*kept, len(nodes) - 1]


@dataclass(frozen=True, eq=False)
class BestRun:
    """The profile ∫M_t(e^ε·G′(t))dt of the best run, from above, for the polygon G of a finite pair."""

    law: RunLaw
    atoms: Atoms

    @cached_property
    def cells(self) -> tuple[Floats, Floats, Floats, Floats]:
        """t from 0 up in cells on which G′ is constant: where they begin, their widths, G there, and the losses."""
        more = 1 + self.atoms.slack
        most = 1 / min(1024.0, 16 * max(1.0, self.law.mean))  # M_t is taken where a cell begins: none may be wide
        parts = np.maximum(1, np.ceil(self.atoms.p / most)).astype(np.int64)
        p, q = (np.repeat(row / parts, parts) for row in (self.atoms.p * more, self.atoms.q))
        start = self.atoms.sure * more + np.concatenate([[0.0], np.cumsum(p)[:-1]])
        below = np.concatenate([[0.0], np.cumsum(q)[:-1]])
        return start * (1 - 1e-13), p, below * (1 - 1e-13), np.repeat(self.atoms.losses + math.log(more), parts)

    @cached_property
    def sides(self) -> tuple[Floats, Floats, Floats, Floats]:
        """U(z) = 1 − G(1 − z) from the other end: on each side from z = left to right it is a·z + c."""
        more = 1 + self.atoms.slack
        p, q = self.atoms.p[::-1], self.atoms.q[::-1] * more
        keep, lowest = p > 0, self.atoms.never * more
        right, top = np.cumsum(p), lowest + np.cumsum(q)
        left, bottom = np.append(0.0, right[:-1]), np.append(lowest, top[:-1])
        a = np.exp(np.minimum(-self.atoms.losses[::-1], CAP)) * more
        c = np.maximum(bottom - a * left, top - a * right) * (1 + 1e-13) + 1e-15
        return a[keep], c[keep], left[keep], np.minimum(right[keep] * (1 + 1e-13), 1.0)

    @cached_property
    def shift(self) -> float:
        """ln of the largest f′(x)/f′(G(x)): on each side this is monotone, so the ends of sides are the worst."""
        a, c, left, right = self.sides
        worst = [
            self.law.slope(z) / np.maximum(self.law.slope(np.minimum(a * z + c, 1.0)), 1e-300) for z in (left, right)
        ]
        last = 1.0 / float(self.law.slope(floats(1.0)))  # f′(x)/f′(0), whatever G is
        most = min(max(1.0, float(np.max(worst, initial=1.0))) * (1 + 4 * self.law.doubt), last)
        return math.log(most) * (1 + 4 * ULP) + 4 * ULP

    @cached_property
    def weights(self) -> tuple[Floats, Floats, Floats]:
        """Values of t, knots of β, and M_t(β) at these; M_0 is a line before the first knot above 0."""
        places = np.append(0.0, np.geomspace(1e-3 / max(1.0, self.law.mean), 1.0, PLACES - 1))
        begin, _, below, _ = self.cells
        at = np.unique(np.maximum(np.searchsorted(begin, places, side="right") - 1, 0))
        begin, below = np.append(0.0, begin[at]), np.append(0.0, below[at])
        top = math.exp(self.shift)
        knots = np.concatenate([[0.0], np.geomspace(0.9 * top**-2, top, KNOTS)])
        heights = np.stack([self._heights(t, g, knots) for t, g in zip(begin, below, strict=True)])
        return begin, knots, heights * self.law.mean

    def _heights(self, t: float, g: float, knots: Floats) -> Floats:
        """sup over y = 1 − x ≥ t of slope(y) − β·slope(U(y − t) + G(t)), for each β."""
        a, c, left, right = self.sides
        c = c + g - a * t + 4 * ULP * a * t
        left, right = np.minimum(left + t, 1.0), np.minimum(right + t, 1.0)
        slope, doubt = self.law.slope, self.law.doubt
        with np.errstate(all="ignore"):
            turn = np.nan_to_num(self.law.turn(a, c, np.maximum(knots, 1e-300)[:, None]), nan=0.0)
        places = (left[None, :], right[None, :], np.clip(turn, left, right))
        far = [slope(np.clip(a * y + c, 0.0, 1.0)) * (1 - doubt) for y in places]
        found = [slope(y) * (1 + doubt) - knots[:, None] * f for y, f in zip(places, far, strict=True)]
        height = np.maximum(np.max(found, axis=(0, 2), initial=0.0), 0.0)
        height[0], height[-1] = min(1.0, float(slope(floats(t))) * (1 + doubt)), 0.0
        return floats(height)

    def __call__(self, eps: Floats) -> Enclosure:
        begin, wide, _, losses = self.cells
        places, knots, heights = self.weights
        row = np.searchsorted(places, begin, side="right") - 1
        total = np.full(eps.shape, self.atoms.sure * self.law.mean)
        for i, e in enumerate(eps):  # a matrix of all ε would be large
            low = e - losses - 4 * ULP * (1 + abs(e) + np.abs(losses))  # M falls: rounded towards larger values
            beta = np.exp(np.minimum(low, CAP))
            j = np.clip(np.searchsorted(knots, beta, side="right") - 1, 0, knots.size - 2)
            along = np.clip((beta - knots[j]) / (knots[j + 1] - knots[j]), 0.0, 1.0)
            height = heights[row, j] * (1 - along) + heights[row, j + 1] * along
            total[i] += float(np.dot(wide, height))
        return Enclosure(np.zeros_like(total), np.minimum(total * (1 + 1e-12), 1.0))
