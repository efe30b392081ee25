"""Scaled contributions: the blocks of a question, noisy histograms of their norms, and the bounds chosen from these.

Everything here is a function of the plan, of prices and of released numbers: no data are in it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.aggregates.linear import CONFIDENCE, Missing
from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.price import Price
from sfumato.curator.norm_tail import (
    CANDIDATES,
    DIFFERENT,
    EDGES,
    NORMS,
    ROOT_NORMS,
    WHOLE_NORMS,
    Tail,
    candidates_below,
    capped_left_out,
    choose_capped,
    choose_for_means,
    choose_for_sums,
)
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.norm import WHOLE, Block, Coordinate, Scaling
from sfumato.sql.plan import Measure, Plan, What

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
    """Is there nothing to choose? Without keys, a unit is counted once."""
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
        """As it was stored, if there is one with the bins of today."""
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
        """What this bound takes away at most, with the confidence LEFT_OUT."""
        if self.norms is None or self.tail is None:
            return None
        unit, length = self.block.unit, self.length / self.block.unit
        if self.cap is None:
            times = self.tail.longest(LEFT_OUT) / length - 1
            return Missing(self.tail.at_most(length, LEFT_OUT) * unit, DIFFERENT, times=max(0.0, times))
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


def histogram_edges(block: Block) -> list[int]:
    return block.edges(EDGES.tolist())
