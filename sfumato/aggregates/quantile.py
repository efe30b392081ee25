"""MEDIAN, QUANTILE, MIN, MAX, PERCENTILE_CONT/DISC: a value of each group by its rank."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from sqlglot import exp

from sfumato.aggregates.linear import Estimate
from sfumato.aggregates.price import Price
from sfumato.aggregates.standalone import Standalone, StandaloneRelease
from sfumato.errors import QueryRefused
from sfumato.mechanisms.choice.quantile import ByRank, Ranked
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Scalar
from sfumato.sql.emit.bounding import key_names
from sfumato.sql.emit.norm import RANK_WHOLE, RankBound
from sfumato.sql.emit.request import Row, Run, TableRequest
from sfumato.sql.emit.values import RankWindow, Selection, ranked_values, values_near_ranks
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import node_text
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Plan
from sfumato.sql.reserved_names import KEPT
from sfumato.sql.units import RowUnit
from sfumato.sql.value_lattice import Lattice

FIXED: dict[type[exp.Expression], Fraction] = {
    exp.Median: Fraction(1, 2), exp.Min: Fraction(0), exp.Max: Fraction(1),
}  # fmt: skip
GIVEN: dict[type[exp.Expression], str] = {
    exp.Quantile: "quantile", exp.ApproxQuantile: "quantile", exp.PercentileCont: "expression",
    exp.PercentileDisc: "expression",
}  # fmt: skip
MOST_PARTS = 10**6
LARGEST = 2**21  # rows of a kept table of values, at most: a public bound
FEW = 20_000  # values: so few are counted quickly
SPARE = 3  # ranks, for engines that round them up or down
WIDE = 0.001  # of all values to either side: mostly more than what counts, and as quick


@dataclass(frozen=True)
class Quantile(Standalone):
    """The value that the fraction `part` of all values of a group does not exceed; 0: the least.

    It is the lower quantile, the least value that p·n values do not exceed, however it is spelled: interpolation
    between two values would be off the lattice and twice as sensitive. MIN and MAX are p = 0 and 1.
    """

    name = "quantile"
    spellings = (*FIXED, *GIVEN)
    listed = "MEDIAN, QUANTILE, MIN, MAX"
    methods = ("min = MIN(x)", "max = MAX(x)", "median = MEDIAN(x)", "quantile = QUANTILE(x, part)")
    example = "SELECT ward, MEDIAN(stay), MAX(stay) FROM visits GROUP BY ward"
    stored_as = "chosen"

    lattice: Lattice
    part: Fraction

    def __repr__(self) -> str:
        return f"quantile({self.lattice.of!r}, {self.lattice.exponent}, {self.part})"

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "Quantile":
        of, part = ranked_argument(node)
        return Quantile(Lattice.over(parse_expression(of, rows), node_text(node)), part)

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.lattice.of,)

    def with_arguments(self, *values: Expression) -> "Quantile":
        (of,) = values
        return Quantile(Lattice.over(of, self.name), self.part)

    @property
    def weighted(self) -> bool:
        return True

    def needs_slack(self, price: type[Price]) -> bool:
        return False

    def release(self, plan: Plan, price: Price, slack: float) -> "QuantileRelease":
        return QuantileRelease(plan, price, slack, self)

    def weighted_release(self, plan: Plan, price: Price, bound: RankBound) -> "QuantileRelease":
        return QuantileRelease(plan, price, 0.0, self, bound)


@dataclass(frozen=True)
class QuantileRelease(StandaloneRelease):
    """A value of the lattice, chosen by the distance of its rank from the one asked for, and an interval."""

    aggregate: Quantile
    bound: RankBound | None = None  # of weights, where contributions are scaled

    @cached_property
    def mechanism(self) -> ByRank:
        """With a bound, one for all groups: what a unit adds to their ranks has a norm of at most `values`."""
        fraction, points = self.aggregate.part, self.aggregate.lattice.points
        if self.bound is None:
            return self.price.quantile_mechanism(fraction, points, self.plan.rows)
        return self.price.weighted_quantile_mechanism(fraction, points, self.bound.values, bool(self.plan.keys))

    @cached_property
    def window(self) -> RankWindow:
        """The ranks that the choice depends on."""
        return RankWindow(self.aggregate.part, self.mechanism.shift, self.mechanism.cap)

    @property
    def batch(self) -> Hashable:
        return self.aggregate.lattice

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return self.request([self], salt, dialect).direct

    @classmethod
    def request(cls, batch: Sequence[StandaloneRelease], salt: int, dialect: str | Dialect) -> TableRequest:
        """Values around the ranks of one column. All its values are kept if it is certain that there are not many."""
        mine = [one for one in batch if isinstance(one, QuantileRelease)]
        plan, lattice, windows = mine[0].plan, mine[0].aggregate.lattice, [one.window for one in mine]
        sql = ranked_values(plan, lattice, salt, dialect, mine[0].bound)
        direct, keys = values_near_ranks(plan, windows, f"({sql})", dialect), tuple(key_names(plan))
        if mine[0].bound is not None:
            return TableRequest(direct, keys)
        alone = isinstance(plan.table.unit, RowUnit) and not keys and len(mine) == 1
        if alone and dialect_of(dialect).quantile_list("x", [0.5]):
            return TableRequest(direct, quick=RankFetch(windows[0], direct, Selection.of(plan, lattice, dialect)))
        if any(key.domain.keys is None for key in plan.keys) or plan.combinations * lattice.points > LARGEST:
            return TableRequest(direct, keys)
        return TableRequest(direct, keys, (sql,), lambda places: sql, values_near_ranks(plan, windows, KEPT, dialect))

    def prepare(self) -> None:
        _ = self.mechanism

    def release(self, rows: Sequence[Row]) -> list[Scalar]:
        """The release of a group; a group without values is released as an empty one."""
        values = Ranked.of(*rows[0]) if rows and rows[0][0] else Ranked.of(0, [], [], [])  # type: ignore[arg-type]
        return list(self.mechanism.release(values))

    def read(self, stored: Sequence[Scalar]) -> Estimate:
        lattice, (value, low, high) = self.aggregate.lattice, (int(x or 0) for x in stored)
        return lattice.value(value), lattice.value(low, -lattice.spare), lattice.value(high, lattice.spare)

    def promise(self) -> str:
        """MIN and MAX aim inside the data."""
        whole = 1 if self.bound is None else RANK_WHOLE
        depth = f", {abs(self.mechanism.shift) // whole:,} ranks inside the data" if self.mechanism.extreme else ""
        return f"a value within {self.mechanism.ranks() / whole:,.0f} ranks of it at 95 %{depth}"


def ranked_argument(node: exp.Expression) -> tuple[exp.Expression, Fraction]:
    """The ranked expression, and the fraction of its values that lies below the quantile."""
    if isinstance(node, exp.WithinGroup):
        return within_group(node)
    if isinstance(node.this, exp.Distinct) or node.args.get("expressions") or node.args.get("count"):
        raise QueryRefused(f"{node.sql('duckdb')[:60]} takes one column, with all its values.")
    fixed = FIXED.get(type(node))
    return node.this, fixed if fixed is not None else fraction(node.args.get(GIVEN[type(node)]))


def within_group(node: exp.WithinGroup) -> tuple[exp.Expression, Fraction]:
    """PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)."""
    order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(order) != 1:
        raise QueryRefused("WITHIN GROUP is for PERCENTILE_CONT(p) and PERCENTILE_DISC(p), with one ORDER BY.")
    p = fraction(node.this.this)
    return order[0].this, 1 - p if order[0].args.get("desc") else p


def fraction(node: exp.Expression | None) -> Fraction:
    """A fraction from 0 to 1 written as a number."""
    if isinstance(node, exp.Literal) and not node.is_string and len(node.this) < 20:
        try:
            found = Fraction(node.this)
        except ValueError:
            found = Fraction(-1)
        if 0 <= found <= 1 and found.denominator <= MOST_PARTS:
            return found
    raise QueryRefused(
        "a quantile needs a number from 0 to 1, with at most six digits.\n"
        f"  found:  {node.sql('duckdb')[:60] if node is not None else 'none'}\n  do:     ask QUANTILE(x, 0.9)"
    )


# ---- the same values in fewer steps, where each row is a person ------------------------------------------------------
#
# An engine that selects values by rank faster than it counts them all is asked how many values there are and which lie
# beyond the ranks that count, and then for the values between. Only the engine sees these exact numbers.


@dataclass(frozen=True)
class RankFetch:
    """The rows of `direct` for one window of a whole table. At the ends a step may be listed with some of those that
    have it: they lie where scores are capped, or count as if they did."""

    window: RankWindow
    direct: str
    texts: Selection

    def __call__(self, run: Run) -> list[Row]:
        part = float(self.window.part)
        ends = max(part - WIDE, 0.0), min(part + WIDE, 1.0)
        n, low, high = run(self.texts.quantile_statement(ends))[0]
        first, last = self.ranks(as_int(n))
        if as_int(n) < FEW:
            return run(self.direct)
        if first < ends[0] * as_int(n) + SPARE * (ends[0] > 0) or last > ends[1] * as_int(n) - SPARE * (ends[1] < 1):
            _, low, high = run(self.texts.quantile_statement((first / as_int(n), last / as_int(n))))[0]
        rows = run(self.texts.between(as_number(low), as_number(high)))
        return self.rank_table(as_int(n), rows) or run(self.direct)

    def ranks(self, n: int) -> tuple[int, int]:
        """Ranks at and beyond which scores are capped, or the first and the last."""
        a, b = self.window.part.numerator, self.window.part.denominator
        first, last = (
            (a * n + self.window.shift - self.window.cap) // b - SPARE,
            -(-(a * n + self.window.shift + self.window.cap) // b) + SPARE,
        )
        return min(max(first, 0), n), max(min(last, n), 0)

    def rank_table(self, n: int, rows: Sequence[Row]) -> list[Row]:
        """keys, how many values there are, and in order: steps, how many have each, how many have it or less; none if
        what was found does not reach far enough."""
        first, last = self.ranks(n)
        upto = as_int(rows[0][0]) if rows else 0
        steps, counts = [as_int(row[1]) for row in rows], [as_int(row[2]) for row in rows]
        before = upto - sum(counts)
        if before > first + SPARE or upto < last - SPARE:
            return []
        return [(n, steps, counts, list(accumulate(counts, initial=before))[1:])]


def as_int(value: object) -> int:
    assert isinstance(value, int)
    return value


def as_number(value: object) -> float | int:
    assert isinstance(value, float | int)
    return value
