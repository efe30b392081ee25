"""Scaled contributions: the blocks of a question, noisy histograms of their norms, and the bounds chosen from these.

Everything here is a function of the plan, of prices and of released numbers: no data are in it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.noisy_sums import CONFIDENCE, Missing
from sfumato.aggregates.price import Price
from sfumato.curator.norm_tail import (
    EDGES,
    HANDFUL,
    NORMS,
    PLACES,
    ROOT_NORMS,
    WHOLE_NORMS,
    Floats,
    Tail,
    laplace_quantile,
    quantile,
)
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.norm import WHOLE, Block, Coordinate, Scaling
from sfumato.sql.plan import Measure, Plan, What

Deviation = Callable[[Floats], Floats] | float

CANDIDATES: Floats = np.sqrt(np.unique(np.floor(2.0 ** (np.arange(4 * PLACES - 3) / 4) + 1e-9)))  # squares are whole
CAUTION = 0.35  # quantile of E(C) that is weighed against noise; its mean square is ruled by the fattest tail
GROUPS_WEIGHT = 0.75  # noise of K groups counts as K^this: 1 is best for the total error and leaves out more of a group
DIFFERENT = 0.1  # how far left-out rows are taken to be from others in the mean, in halves of the range


# ---- the choice of a norm -------------------------------------------------------------------------------------------
#
# A small bound C on norms leaves out more, a large C needs more noise. With a fitted tail, C minimises the sum of
# squared noise and squared bias. With a public cap on norms no model is needed: C makes the interval shortest that
# holds for all data. Everything here is post-processing of the histogram.


def deviations(deviation: Deviation, bounds: Floats) -> Floats:
    """The standard deviation of noise for each C."""
    found: Floats = bounds * (deviation(bounds) if callable(deviation) else deviation)
    return found


def choose_for_sums(tail: Tail, deviation: Deviation, groups: int, candidates: Floats = CANDIDATES) -> float:
    """The C that makes K^GROUPS_WEIGHT·(noise)² + E(C)² least for K groups.

    `deviation` is that of noise per unit of C. The left-out vector has a norm of at most E(C) (triangle inequality), so
    the second term bounds the squared biases of all groups together. Where all seem to be alike, it is their norm.
    """
    if tail.alike:
        return float(candidates[0])
    bounds = tail.reachable(candidates)
    bias = quantile(tail.spread_out(bounds), tail.likely, CAUTION)
    return float(bounds[np.argmin(groups**GROUPS_WEIGHT * deviations(deviation, bounds) ** 2 + bias**2)])


def choose_for_means(tail: Tail, deviation: Deviation, groups: int, candidates: Floats = CANDIDATES) -> float:
    """The C for a question of means and ratios alone: makes 2K·(noise/S)² + (DIFFERENT·λ)² least.

    S = Σ min(norm, C) is what remains and λ = E/(S + E) the share left out. The noise of a mean falls with C, since
    C/S does; what is left out biases it only as far as left-out rows differ from the others.
    """
    bounds = tail.reachable(candidates)
    out = quantile(tail.left_out(bounds), tail.likely, 0.5)
    kept = np.maximum(tail.kept_sum(bounds), 1.0)  # without anybody, any bound is as good
    noise = 2 * groups * (deviations(deviation, bounds) / kept) ** 2
    return float(bounds[np.argmin(noise + (DIFFERENT * out / (kept + out)) ** 2)])


# ---- a public cap on norms: no model ---------------------------------------------------------------------------------


def candidates_below(cap: float, candidates: Floats = CANDIDATES) -> Floats:
    """The public grid up to a cap, and the cap."""
    return np.append(candidates[candidates < cap], cap)


def capped_left_out(
    counts: Sequence[float] | Floats,
    sigma: float,
    bound: float,
    cap: float,
    confidence: float,
    candidates: int,
    *,
    step: float = 0.0,
    laplace: bool = False,
) -> float:
    """An upper bound of E(C) with this confidence, for all data whose norms are at most the cap.

    Σ_j H̃_j·(e_j − C)⁺ + z·σ·√Σ_j ((e_j − C)⁺)², e_j the upper end of bin j, at most the cap: never below E(C) unless
    noise is above its quantile. C may be chosen from the same histogram among so many `candidates` (all of the public
    grid, also those never tried): each has its share of 1 − confidence. `step`: noise is rounded to multiples of it.
    """
    lower = np.r_[0.0, EDGES[:-1]]
    upper = np.minimum(np.r_[EDGES[:-1], max(cap, EDGES[-1])], cap)
    weight = np.where(lower < cap, np.maximum(upper - bound, 0), 0)
    chance = (1 - confidence) / candidates
    if laplace:
        above = laplace_quantile(weight, chance) * sigma / math.sqrt(2)
    else:
        above = -NormalDist().inv_cdf(chance) * sigma * float(np.sqrt((weight**2).sum()))
    return max(0.0, float(weight @ np.asarray(counts, float)) + above + step / 2 * float(weight.sum()))


def choose_capped(
    counts: Sequence[float] | Floats,
    sigma: float,
    deviation: Deviation,
    cap: float,
    confidence: float,
    z: float,
    *,
    step: float = 0.0,
    laplace: bool = False,
) -> float:
    """The C for which the interval that holds for all data is shortest: 2z·(noise) + `capped_left_out`."""
    bounds = candidates_below(cap)
    out = [
        capped_left_out(counts, sigma, bound, cap, confidence, len(bounds), step=step, laplace=laplace)
        for bound in bounds.tolist()
    ]
    return float(bounds[np.argmin(2 * z * deviations(deviation, bounds) + np.array(out))])


# ---- blocks, histograms and bounds ----------------------------------------------------------------------------------

NOISE, LEFT_OUT = (1 + CONFIDENCE) / 2, (1 + CONFIDENCE) / 2  # each side of an interval misses with half of 5 %
PEOPLE = 0.02  # of a block's price: for the number of units that count in part
FINE, FINEST = 16, 4096  # parts of a row's size in which norms are measured
LARGEST_NOISE = 5e17  # standard deviations that can be drawn
SUMMED = (What.ROWS, What.VALUES, What.SUM, What.SQUARES)
ENDS = {True: 2.2415, False: math.log(1 / (1 - NOISE)) / math.sqrt(2)}  # of noise, in deviations: Gaussian, Laplace
RANGE = 2.0  # how far means can be apart, in halves of the range


def summed_measures(plan: Plan) -> tuple[Measure, ...]:
    """The measures that are sums over units."""
    return tuple(m for m in plan.measures if m.what is not What.DISTINCT)


def blocks_of(plan: Plan, squares: bool) -> tuple[Block, ...]:
    """The blocks of a plan: everything that counts or sums rows, and units. Indexes are those of summed measures."""
    basis, measures = NoiseBasis.of(plan), summed_measures(plan)
    found: dict[bool, list[Coordinate]] = {False: [], True: []}
    for j, m in enumerate(measures):
        part = basis.part(m)
        parent = 0 if part.parent is None else measures.index(plan.measures[part.parent])
        if part.size:
            found[m.what is What.UNITS].append(Coordinate(j, part.size, part.scale, part.shift, parent))
    blocks = [rows_block(measures, found[False], squares, bool(plan.keys))] if found[False] else []
    return tuple(blocks + ([Block(tuple(found[True]), squares, whole=not squares)] if found[True] else []))


def rows_block(measures: Sequence[Measure], coordinates: Sequence[Coordinate], squares: bool, by_group: bool) -> Block:
    """Norms, or their squares, are whole where all sizes are 1. Where rows are not counted, sums may be far below the
    size of a row."""
    if all(one.size == 1 for one in coordinates):
        return Block(tuple(coordinates), squares, whole=not squares or (len(coordinates) == 1 and not by_group))
    counted = any(measures[one.measure].what in (What.ROWS, What.VALUES) for one in coordinates)
    return Block(tuple(coordinates), squares, FINE if counted else FINEST, not counted)


def scaling_of(plan: Plan, squares: bool, dialect: str | Dialect) -> Scaling:
    """The statements of a plan. All steps of a question, and its sums, read the same two tables."""
    return Scaling.of(plan, summed_measures(plan), blocks_of(plan, squares), squares, dialect_of(dialect))


def is_free(block: Block, plan: Plan) -> bool:
    """Is no bound to be chosen? Without keys, a unit is counted once."""
    return not plan.keys and all(summed_measures(plan)[one.measure].what is What.UNITS for one in block.coordinates)


def is_additive(block: Block, measures: Sequence[Measure]) -> bool:
    """Is the norm of all groups together the sum of what a unit counts in each, whichever groups there are?"""
    return not block.squares and all(
        one.size == one.scale == 1 and not one.shift and measures[one.measure].what in (What.ROWS, What.VALUES)
        for one in block.coordinates
    )


def cap_of(block: Block, plan: Plan) -> float | None:
    """The longest norm that there can be, if the policy states how many rows a unit has at most, and if it fits its
    type: of a unit with a longer one nothing would be left, which no bound on what is left out covers."""
    most = plan.table.most
    if most is None or plan.crossed:
        return None
    many = len(block.coordinates)
    if all(summed_measures(plan)[one.measure].what is What.UNITS for one in block.coordinates):
        groups = min(most, max(1, plan.combinations)) if not plan.discovered else most
        return math.sqrt(groups) if block.squares else float(groups)
    cap = most * (math.sqrt(many) if block.squares else float(many))
    return cap if block.bound(cap) <= block.most else None


@dataclass(frozen=True)
class NoisyNorms:
    """A released histogram: how many units have a norm of each length, with noise of this deviation on every bin."""

    counts: tuple[int, ...]  # in parts of 1/WHOLE of a unit
    sigma: float  # in units

    @staticmethod
    def of(data: Mapping[str, Any]) -> "NoisyNorms | None":
        """The stored histogram; None if it has other bins than today's."""
        counts = tuple(data.get("counts") or ())
        return NoisyNorms(counts, data["sigma"]) if len(counts) == len(EDGES) else None

    @cached_property
    def units(self) -> list[float]:
        return [count / WHOLE for count in self.counts]

    def tail(self, block: Block) -> Tail:
        points = WHOLE_NORMS if block.whole else ROOT_NORMS if block.resolution == 1 else NORMS
        return Tail.of(self.units, self.sigma, laplace=not block.squares, points=points)


@dataclass(frozen=True)
class Choice:
    """The bound of one block, and the histogram that it was chosen from; None if there was nothing to choose."""

    block: Block
    bound: int
    norms: NoisyNorms | None = None
    cap: float | None = None

    @property
    def length(self) -> float:
        return self.block.length(self.bound)

    @property
    def far(self) -> int:
        """The end of the bin that holds the bound: how many units are beyond it is what the histogram tells."""
        edges = histogram_edges(self.block)[:-1]
        return next((edge for edge in edges if edge >= self.bound), self.bound)

    def to_store(self) -> dict[str, object]:
        found: dict[str, object] = {"bound": self.bound}
        return found if self.norms is None else found | {"counts": self.norms.counts, "sigma": self.norms.sigma}

    @cached_property
    def tail(self) -> Tail | None:
        return None if self.norms is None else self.norms.tail(self.block)

    @cached_property
    def missing(self) -> Missing | None:
        """The left-out bound of this choice, with the confidence LEFT_OUT."""
        if self.norms is None or self.tail is None:
            return None
        unit, length = self.block.unit, self.length / self.block.unit
        if self.cap is None:
            return missing_by_tail(self.tail, length, unit)
        cap = self.cap / unit
        most = capped_left_out(
            self.norms.units, self.norms.sigma, length, cap, LEFT_OUT, len(candidates_below(cap)),
            step=1 / WHOLE, laplace=not self.block.squares,
        )  # fmt: skip
        return Missing(most * unit, RANGE, certain=True, times=max(0.0, cap / length - 1) * (1 + 1e-9))

    @staticmethod
    def of(block: Block, norms: NoisyNorms, price: Price, groups: int, means: bool, cap: float | None) -> "Choice":
        """The best bound for this price, by the noisy histogram; `means`: only means and ratios are asked for."""
        deviation, laplace = price.deviation(1), not block.squares
        largest = LARGEST_NOISE / (WHOLE * max(one.size for one in block.coordinates) * deviation)
        candidates = CANDIDATES[CANDIDATES * block.unit <= max(largest, block.unit)]
        if cap is not None:
            length = choose_capped(
                norms.units, norms.sigma, deviation, cap / block.unit, LEFT_OUT, ENDS[block.squares],
                step=1 / WHOLE, laplace=laplace,
            )  # fmt: skip
        else:
            choose = choose_for_means if means else choose_for_sums
            length = choose(norms.tail(block), deviation, groups, candidates)
        return Choice(block, block.bound(min(length, float(candidates[-1])) * block.unit), norms, cap)


def missing_by_tail(tail: Tail, length: float, unit: float = 1.0) -> Missing:
    """The left-out bound of contributions scaled to this length, by the shape of the tail; lengths are in `unit`s."""
    most, kept = tail.at_most(length, LEFT_OUT), float(tail.kept_sum(np.array([length]))[0])
    return Missing(
        most * unit, DIFFERENT, times=max(0.0, tail.longest(LEFT_OUT) / length - 1),
        shared=(most - tail.apart(length, HANDFUL)) * unit, kept=kept * unit,
    )  # fmt: skip


def histogram_edges(block: Block) -> list[int]:
    return block.edges(EDGES.tolist())
