"""Bounding contributions by a norm: each unit's whole vector is scaled, and no row is cut.

The vector of a unit has a coordinate for each group and each part of a block of measures. Whole-number weights, which
depend on the unit's own rows alone, bring it to a norm of at most C; all measures of a block share the weight, so
their ratios are about the same rows. Noise and prices are elsewhere: here are the statements and what they guarantee.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.bounding import RowSums, group_by, hash_of, hashed_group, key_names, partition_by, read_rows
from sfumato.sql.emit.request import TableRequest
from sfumato.sql.expressions import Expression
from sfumato.sql.plan import Measure, Plan, What
from sfumato.sql.reserved_names import (
    BIN,
    COUNT,
    NORMS,
    NUMBERED,
    PAIRS,
    PLACE,
    RANKED,
    READ,
    ROWS,
    SCALED,
    SIZES,
    UNIT,
    VALUE,
    VALUES,
    WEIGHT,
    WEIGHTED,
    measure,
    norm,
    qualify,
    weight,
)

WHOLE = 2**20  # a weight of one: weights are whole multiples of 1/WHOLE
RANK_WHOLE = 2**10  # the same where ranks are weighted sums, which are multiplied by fractions of six digits
LARGEST_ADDED = 2**52  # sums of a unit in a group beyond this are not multiplied by weights
LARGEST = 2**62  # squared norms beyond this leave their type
LARGEST_SUM = 2**42  # norms beyond this do, where they are sums: WHOLE times a bound must fit


@dataclass(frozen=True)
class Coordinate:
    """A part z = scale·m − shift·p of what a unit adds to a group, for the measures m and p; `size` is what one row
    adds to |z| at most, and the unit in which the norm counts it."""

    measure: int
    size: int
    scale: int = 1
    shift: int = 0
    parent: int = 0


@dataclass(frozen=True)
class Block:
    """Coordinates that are scaled together; norms are whole numbers of 1/resolution, rounded up.

    Theorem: let q ≥ Σ (resolution·z/size)² be whole, over all groups and coordinates of a unit, and let its weight W be
        WHOLE if q ≤ B, and a whole number with W²·q ≤ WHOLE²·B otherwise. Then one unit moves Σ W·z by a vector whose
        coordinates, divided by their sizes, have an L2 norm of at most WHOLE·√B/resolution. The same holds for sums
        of |z| and L1, with W·q ≤ WHOLE·B [docs/theorems/contributions.md, Theorem 1]
    """

    coordinates: tuple[Coordinate, ...]
    squares: bool = True  # the L2 norm; else the L1 norm
    resolution: int = 1
    finest: bool = False  # norms may be far below 1, the size of one row
    whole: bool = False  # norms are whole numbers: one count, in one group or as a sum over groups

    def bound(self, length: float) -> int:
        """The whole number B that stands for a norm of about this length, in sizes of a row."""
        return max(1, math.floor((length * self.resolution) ** (2 if self.squares else 1) * (1 + 1e-12)))

    def length(self, bound: int) -> float:
        """The norm that B stands for, in sizes of a row."""
        return (math.sqrt(bound) if self.squares else float(bound)) / self.resolution

    @property
    def most(self) -> int:
        """The largest norm, or square of one, that fits its type."""
        return LARGEST if self.squares else LARGEST_SUM

    @property
    def longest(self) -> int:
        """The largest coordinate of which so many fit, squared and added up."""
        return math.isqrt(self.most // len(self.coordinates)) if self.squares else self.most // len(self.coordinates)

    @property
    def unit(self) -> float:
        """The length at which histograms of norms begin."""
        return 1 / self.resolution if self.finest else 1.0

    def edges(self, lengths: Sequence[float]) -> list[int]:
        """The upper ends of the bins of a histogram, as whole numbers."""
        return [self.bound(length * self.unit) for length in lengths]


@dataclass(frozen=True)
class RankBound:
    """The bound of the norm of row counts, by whose weights rows count for ranks."""

    bound: int
    squares: bool

    @staticmethod
    def plan(plan: Plan) -> Plan:
        """The plan whose norms are bounded: all rows of the groups, counted."""
        return replace(plan, measures=(Measure(What.ROWS),), standalone=())

    @property
    def block(self) -> Block:
        return Block((Coordinate(0, 1),), self.squares)

    @property
    def values(self) -> int:
        """The most that one unit adds to the ranks of one group, in parts of 1/RANK_WHOLE of a row, rounded up."""
        return math.isqrt(RANK_WHOLE**2 * self.bound) + 1 if self.squares else RANK_WHOLE * self.bound

    def scaling(self, plan: Plan, to: Dialect) -> "Scaling":
        counted = self.plan(plan)
        return Scaling(counted, counted.measures, (self.block,), to)


@dataclass(frozen=True)
class Scaling:
    """The statements of one plan whose contributions are scaled: all read the tables PAIRS and NORMS.

    PAIRS has what each unit adds to each group; NORMS has each unit once, with its norm in each block, NULL if that
    does not fit its type. Neither depends on a bound or a price, so an engine may keep them for later questions.
    """

    plan: Plan
    measures: tuple[Measure, ...]
    blocks: tuple[Block, ...]
    to: Dialect

    # ---- tables -----------------------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> tuple[tuple[str, str], ...]:
        return (PAIRS, self.pairs()), (NORMS, self.norms())

    def request(self, read: str) -> TableRequest:
        """A statement that reads these tables."""
        made = ", ".join(f"{name} AS {self.to.materialized}({sql})" for name, sql in self.tables)
        return TableRequest(f"WITH {made} {read}", tuple(self.keys), tables=self.tables, read=read)

    @property
    def keys(self) -> list[str]:
        return key_names(self.plan)

    def pairs(self) -> str:
        """unit, keys, and each measure of what it adds to the group."""
        rows = RowSums.of(self.plan, self.measures, self.to)
        owner = qualify(ROWS, [UNIT, *self.keys])
        added = [
            f"{self.unit_total(j, rows)} AS {measure(j)}"
            for j, m in enumerate(self.measures)
            if m.what is not What.UNITS
        ]
        source = rows.source if rows.by_day else self.to.by_unit(rows.source, UNIT, self.plan)
        return f"SELECT {', '.join([*owner, *added])} FROM {source} {group_by(owner)}"

    def unit_total(self, place: int, rows: RowSums) -> str:
        """The sum that a unit adds to a group: NULL if products with it would leave their type."""
        total, factor = rows.total(place), self.largest_factor(place)
        if self.measures[place].what is What.ROWS and factor == 1:
            return f"CAST({total} AS BIGINT)" if rows.by_day else total
        most = min(LARGEST_ADDED, LARGEST // (2 * factor))  # a coordinate is a difference of two such products
        return f"CASE WHEN ABS({total}) < {most} THEN CAST({total} AS BIGINT) END"

    def largest_factor(self, place: int) -> int:
        """The most that a measure is multiplied by, where it becomes part of a norm."""
        factors = [
            block.resolution * factor
            for block in self.blocks
            for one in block.coordinates
            for index, factor in ((one.measure, one.scale), (one.parent, abs(one.shift)))
            if index == place
        ]
        return max(1, *factors) if factors else 1

    def norms(self) -> str:
        """unit, and its norm in each block: NULL where a coordinate or the norm leaves its type."""
        owner = f"{PAIRS}.{UNIT}"
        sizes = [self.term(block) for block in self.blocks]
        terms = ", ".join([owner, *(f"{one} AS {norm(i)}" for i, one in enumerate(sizes))])
        each, by = f"SELECT {terms} FROM {PAIRS}", f"{SIZES}.{UNIT}"
        found = [self.total(block, f"{SIZES}.{norm(i)}", norm(i)) for i, block in enumerate(self.blocks)]
        return f"SELECT {', '.join([by, *found])} FROM ({each}) AS {SIZES} GROUP BY {by}"

    def total(self, block: Block, terms: str, name: str) -> str:
        """The norm of all groups together; one that is missing makes the whole missing."""
        whole, all_fit = self.to.total(terms), f"COUNT({terms}) = COUNT(*)"
        return f"CASE WHEN {all_fit} AND {whole} <= {block.most} THEN CAST({whole} AS BIGINT) END AS {name}"

    def term(self, block: Block) -> str:
        """The contribution of one group's coordinates to the norm, or NULL if it leaves its type."""
        parts = [self.length(block, one) for one in block.coordinates]
        fits = " AND ".join(f"{part} <= {block.longest}" for part in parts)
        whole = [f"CAST({part} AS BIGINT)" for part in parts]
        added = " + ".join(f"{one} * {one}" if block.squares else one for one in whole)
        return f"CASE WHEN {fits} THEN {added} END"

    def length(self, block: Block, of: Coordinate) -> str:
        """⌈resolution·|z|/size⌉."""
        if self.measures[of.measure].what is What.UNITS:
            return str(block.resolution)
        value = f"{PAIRS}.{measure(of.measure)}"
        if of.shift or of.scale != 1:
            value = f"({of.scale} * {value} - ({of.shift}) * {PAIRS}.{measure(of.parent)})"
        signed = of.shift or self.measures[of.measure].span()[0] < 0
        value = f"ABS({value})" if signed else value
        many = f"{block.resolution} * {value}" if block.resolution > 1 else value
        return many if of.size == 1 else f"({self.to.quotient(f'({many} + {of.size - 1})', str(of.size))})"

    # ---- what is read of them ---------------------------------------------------------------------------------------

    @staticmethod
    def of(plan: Plan, measures: Sequence[Measure], blocks: Sequence[Block], squares: bool, to: Dialect) -> "Scaling":
        """The tables of a plan; with private keys, units are counted too, so that its votes are read from them."""
        listed, mine = tuple(measures), tuple(blocks)
        if plan.discovered and all(m.what is not What.UNITS for m in listed):
            listed, mine = (*listed, Measure(What.UNITS)), (*mine, Block((Coordinate(len(listed), 1),), squares))
        return Scaling(plan, listed, mine, to.about(plan))

    @property
    def voters(self) -> int:
        """The block that counts units: its norm is the number of keys of a unit."""
        (index,) = (j for j, m in enumerate(self.measures) if m.what is What.UNITS)
        return self.block_of()[index]

    def histogram(self, place: int, edges: Sequence[int]) -> str:
        """bin, and how many units have a norm in it; what does not fit its type is in the last one."""
        of = f"{NORMS}.{norm(place)}"
        bins = " ".join(f"WHEN {of} <= {most} THEN {j}" for j, most in enumerate(edges[:-1]))
        each = f"SELECT CASE {bins} ELSE {len(edges) - 1} END AS {BIN} FROM {NORMS}"
        return f"SELECT {SIZES}.{BIN}, COUNT(*) FROM ({each}) AS {SIZES} GROUP BY {SIZES}.{BIN}"

    def scaled_units(self, place: int, bound: int, far: int) -> str:
        """How many units count in part: those with a norm of at most `far`, and those with a longer one."""
        of = f"{NORMS}.{norm(place)}"
        near, beyond = f"COUNT(CASE WHEN {of} <= {far} THEN 1 END)", f"{of} IS NULL OR {of} > "
        return (
            f"SELECT {near}, COUNT(CASE WHEN {beyond}{far} THEN 1 END) FROM {NORMS} WHERE {beyond}{bound}"
        )  # fmt: skip

    def weights(self, bounds: Sequence[int]) -> str:
        """unit, and its weight in each block, for units whose weight is less than WHOLE in one of them."""
        beyond = [f"{NORMS}.{norm(i)} IS NULL OR {NORMS}.{norm(i)} > {bound}" for i, bound in enumerate(bounds)]
        weights = [f"{self.weight(i, bound)} AS {weight(i)}" for i, bound in enumerate(bounds)]
        return f"SELECT {NORMS}.{UNIT}, {', '.join(weights)} FROM {NORMS} WHERE {' OR '.join(beyond)}"

    def sums(self, bounds: Sequence[int]) -> str:
        """keys, and each measure: a sum of whole numbers, each times the weight of its unit."""
        names, block_of = qualify(PAIRS, self.keys), self.block_of()
        totals = []
        for j, m in enumerate(self.measures):
            block = block_of.get(j, 0)
            if block >= len(bounds):
                continue
            factor = f"COALESCE({SCALED}.{weight(block)}, {WHOLE})"
            product = factor if m.what is What.UNITS else f"{self.multiplied_sum(j, block, bounds[block])} * {factor}"
            totals.append(f"{self.to.total(product)} AS {measure(j)}")
        joined = f"{PAIRS} LEFT JOIN ({self.weights(bounds)}) AS {SCALED} ON {PAIRS}.{UNIT} = {SCALED}.{UNIT}"
        return f"SELECT {', '.join([*names, *totals])} FROM {joined} {group_by(names)}"

    def multiplied_sum(self, place: int, block: int, bound: int) -> str:
        """A measure that is multiplied by weights: in a wide type, unless a unit adds little enough to any sum.

        A unit with weight W adds at most WHOLE·C sizes of a row to a measure, as W·q is bounded by that.
        """
        name, largest = f"{PAIRS}.{measure(place)}", max(map(abs, self.measures[place].span()))
        fits = WHOLE * self.blocks[block].length(bound) * max(largest, 1) < LARGEST
        return name if fits else self.to.wide(name)

    def block_of(self) -> dict[int, int]:
        """The block of each measure; a part that nobody moves is in none."""
        return {one.measure: i for i, block in enumerate(self.blocks) for one in block.coordinates}

    def weight(self, place: int, bound: int) -> str:
        """A whole number W ≤ WHOLE with W²·q ≤ WHOLE²·B (W·q ≤ WHOLE·B); 0 for a norm that does not fit.

        Roots and quotients of doubles are correctly rounded, so ⌊√(B/q)·WHOLE⌋ is at most one too large.
        """
        block, of = self.blocks[place], f"{NORMS}.{norm(place)}"
        if block.squares:
            ratio = f"SQRT({self.to.double(str(bound))} / {self.to.double(of)})"
            scaled = f"GREATEST(CAST({self.to.floor(f'{ratio} * {WHOLE}')} AS BIGINT) - 1, 0)"
        else:
            scaled = f"CAST({self.to.quotient(str(WHOLE * bound), of)} AS BIGINT)"
        return f"CASE WHEN {of} IS NULL THEN 0 WHEN {of} <= {bound} THEN {WHOLE} ELSE {scaled} END"

    def values(self, value: str, of: Expression, bound: int) -> str:
        """Tables of WITH, of which VALUES has keys, VALUE and WEIGHT for each row that has a value; a weight of one is
        RANK_WHOLE."""
        made = ", ".join(f"{name} AS {self.to.materialized}({sql})" for name, sql in self.tables)
        shown = [*qualify(READ, self.keys), f"{value} AS {VALUE}"]
        whole = f"COALESCE({SCALED}.{weight(0)}, {WHOLE})"
        shown.append(f"CAST({self.to.quotient(whole, str(WHOLE // RANK_WHOLE))} AS BIGINT) AS {WEIGHT}")
        joined = f"{read_rows(self.plan, of, self.to)} LEFT JOIN ({self.weights([bound])}) AS {SCALED}"
        each = f"SELECT {', '.join(shown)} FROM {joined} ON {READ}.{UNIT} = {SCALED}.{UNIT}"
        kept = ", ".join(qualify(NUMBERED, [*self.keys, VALUE, WEIGHT]))
        some = f"NOT {NUMBERED}.{VALUE} IS NULL AND {NUMBERED}.{WEIGHT} > 0"
        return f"{made}, {VALUES} AS (SELECT {kept} FROM ({each}) AS {NUMBERED} WHERE {some})"

    # ---- votes for bins of values -----------------------------------------------------------------------------------

    def value_votes(self) -> str:
        """keys, and a sum of votes: a unit with c rows in a group and the norm √q (q) votes ⌊WHOLE·c/√q⌋ (⌊WHOLE·c/q⌋)
        for it; one whose norm does not fit its type does not vote. The plan counts rows, and nothing else.

        Squares of one unit sum to WHOLE² at most: the sum is whole, and doubles make it WHOLE²·(1 + 2⁻⁴⁹) at most. Sums
        of ⌊WHOLE·c/q⌋ are exact, and WHOLE·c fits its type where q does.
        """
        many, whole = f"{PAIRS}.{measure(0)}", f"{NORMS}.{norm(0)}"
        if self.blocks[0].squares:
            share = f"{self.to.double(many)} * {WHOLE} / SQRT({self.to.double(whole)})"
            vote = f"CAST({self.to.floor(share)} AS BIGINT)"
        else:
            vote = self.to.quotient(f"{many} * {WHOLE}", whole)
        names = qualify(PAIRS, self.keys)
        total = self.to.total(f"CASE WHEN {whole} IS NULL THEN 0 ELSE {vote} END")
        joined = f"{PAIRS} JOIN {NORMS} ON {PAIRS}.{UNIT} = {NORMS}.{UNIT}"
        return f"SELECT {', '.join([*names, total])} FROM {joined} {group_by(names)}"

    # ---- votes for private keys -------------------------------------------------------------------------------------

    def votes(self, most: int, salt: int) -> str:
        """keys, and a sum of votes: a unit with t keys votes WHOLE/√t (WHOLE/t) for each, t ≤ `most`.

        Of more keys those with the least keyed hash count; if hashes tie, the keys decide, so `most` are kept.
        """
        names, many = self.keys, f"{NORMS}.{norm(self.voters)}"
        mine = qualify(PAIRS, [UNIT, *names])
        joined = f"{PAIRS} JOIN {NORMS} ON {PAIRS}.{UNIT} = {NORMS}.{UNIT}"
        few = f"SELECT {', '.join([*mine[1:], f'{many} AS {COUNT}'])} FROM {joined} WHERE {many} <= {most}"
        order = ", ".join([hash_of(hashed_group(self.plan, PAIRS, self.to), salt, self.to), *mine[1:]])
        place = f"ROW_NUMBER() OVER ({partition_by(mine[:1])} ORDER BY {order}) AS {PLACE}"
        ranked = f"SELECT {', '.join([*mine[1:], place])} FROM {joined} WHERE {many} IS NULL OR {many} > {most}"
        kept, shown = ", ".join([*qualify(RANKED, names), str(most)]), qualify(WEIGHTED, names)
        cut = f"SELECT {kept} FROM ({ranked}) AS {RANKED} WHERE {RANKED}.{PLACE} <= {most}"
        votes = ", ".join([*shown, self.to.total(self.vote())])
        return f"SELECT {votes} FROM ({few} UNION ALL {cut}) AS {WEIGHTED} {group_by(shown)}"

    def vote(self) -> str:
        """⌊WHOLE/√t⌋, or ⌊WHOLE/t⌋: squares (or votes) of one unit sum to WHOLE² (WHOLE) at most, as t·⌊WHOLE/√t⌋² is
        a whole number below WHOLE²·(1 + 2⁻⁴⁹) + 1."""
        many = f"{WEIGHTED}.{COUNT}"
        if not self.blocks[self.voters].squares:
            return self.to.quotient(str(WHOLE), many)
        return f"CAST({self.to.floor(f'{WHOLE} / SQRT({self.to.double(many)})')} AS BIGINT)"
