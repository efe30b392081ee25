"""MODE(x): the most common value of a group."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from sfumato.aggregates.linear import Estimate
from sfumato.aggregates.price import Price
from sfumato.aggregates.standalone import SURE, Standalone, StandaloneRelease
from sfumato.errors import QueryRefused
from sfumato.mechanisms.choice.exponential import Exponential
from sfumato.mechanisms.choice.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.dependent.stable import GaussianStableValue, Stable, StableValue
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect, literal_list, raw
from sfumato.sql.dialects.keyed_hash import FORMS, Form
from sfumato.sql.domains import Domain, Kind, Scalar
from sfumato.sql.emit.bounding import bounding_of, group_by, key_names, partition_by
from sfumato.sql.emit.norm import RANK_WHOLE, RankBound
from sfumato.sql.emit.request import Row
from sfumato.sql.emit.values import X, step_of, value_or_null
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import node_text, require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Plan
from sfumato.sql.reserved_names import COUNT, COUNTED, PLACE, RANKED, VALUE, VALUES, WEIGHT, qualify
from sfumato.sql.value_lattice import Lattice

MOST_CHOICES = 10_000  # public values among which a mode is chosen; of more, only one that leads clearly is shown


@dataclass(frozen=True)
class Mode(Standalone):
    """MODE(x). Numbers are counted by their step of a lattice, unless the policy lists them.

    One of few public values is chosen; of many, only one that few people could not change is shown.
    """

    name = "mode"
    spellings = (exp.Mode,)
    listed = "MODE"
    methods = ("mode = MODE(x)",)
    example = "SELECT ward, MODE(stay) FROM visits GROUP BY ward"
    has_interval = False
    weighted_as = "weighted modes"

    of: Expression
    lattice: Lattice | None = None

    def __repr__(self) -> str:
        if self.lattice is None:
            return f"mode({self.of!r})"
        return f"mode({self.of!r}, quantile({self.lattice.of!r}, {self.lattice.exponent}, {Fraction(1, 2)}))"

    @staticmethod
    def over(of: Expression, text: str) -> "Mode":
        """The mode of what has values that can be counted."""
        if of.domain.kind is not Kind.NUMBER or of.domain.keys is not None:
            return Mode(of)
        return Mode(of, Lattice.over(of, text))

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "Mode":
        require_known_parts(node)
        if isinstance(node, exp.WithinGroup):
            require_known_parts(node.this)
        return Mode.over(parse_expression(mode_argument(node), rows), node_text(node))

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> "Mode":
        (of,) = values
        return Mode.over(of, self.name)

    @property
    def domain(self) -> Domain:
        return Domain(self.of.domain.kind)

    @property
    def choices(self) -> tuple[Scalar, ...] | range | None:
        """All possible values as the statement returns them, if they are public and not too many."""
        if self.lattice is not None:
            return range(self.lattice.points) if self.lattice.points <= MOST_CHOICES else None
        known = self.of.domain.keys
        return tuple(dict.fromkeys(known)) if known is not None and len(set(known)) <= MOST_CHOICES else None

    @property
    def weighted(self) -> bool:
        """A choice by counts is one by weighted counts; how many people a lead withstands is no sum."""
        return self.choices is not None

    def needs_slack(self, price: type[Price]) -> bool:
        return self.choices is None

    def release(self, plan: Plan, price: Price, slack: float) -> "ModeChoice | StableMode":
        made = StableMode if self.choices is None else ModeChoice
        return made(plan, price, slack, self)

    def weighted_release(self, plan: Plan, price: Price, bound: RankBound) -> "ModeChoice":
        return ModeChoice(plan, price, 0.0, self, bound)

    def estimate(self, value: Scalar) -> Estimate:
        """A stored value in the form that is shown, without an interval."""
        if self.lattice is not None and value is not None:
            value = self.lattice.value(int(value))
        return value, None, None


@dataclass(frozen=True)
class ModeChoice(StandaloneRelease):
    """The most common of few public values: chosen by how many have it.

    Theorem: a unit adds to counts, by at most `rows` to each, so that choices ∝ e^{η·count/rows} have range η
        [Durfee & Rogers 2019, section 3]
    Theorem: where rows count with weights, a unit adds to group k at most what its weighted rows there are, mₖ, and
        ‖m‖ ≤ `values` (L1 where ε is pure), so all groups together have the price of one
        [docs/theorems/contributions.md, Theorem 7]
    """

    aggregate: Mode
    bound: RankBound | None = None  # of weights, where contributions are scaled

    @cached_property
    def choices(self) -> Sequence[Scalar]:
        return self.aggregate.choices or ()

    @cached_property
    def mechanism(self) -> Exponential | PermuteAndFlip:
        """With a bound, one for all groups."""
        if self.bound is None:
            return self.price.selection_mechanism(self.plan.rows)
        return self.price.weighted_selection_mechanism(self.bound.values, bool(self.plan.keys))

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return vote_statement(self.plan, self.aggregate, salt, dialect, self.bound)

    def prepare(self) -> None:
        _ = self.mechanism.error(SURE, candidates=len(self.choices))

    def release(self, rows: Sequence[Row]) -> list[Scalar]:
        counts = {normalize_float_zero(value): int(str(many)) for value, many in rows}
        return [self.mechanism.release([counts.get(value, 0) for value in self.choices])]

    def read(self, stored: Sequence[Scalar]) -> Estimate:
        return self.aggregate.estimate(self.choices[int(stored[0] or 0)])

    def promise(self) -> str:
        gap = self.mechanism.error(SURE, candidates=len(self.choices)) / (1 if self.bound is None else RANK_WHOLE)
        return f"a value that the most common one leads by at most {gap:,.0f} rows, at 95 %"


@dataclass(frozen=True)
class StableMode(StandaloneRelease):
    """The most common of very many values, if it leads by so much that few people could not change it; else NULL.

    With a lead of g rows, ⌊(g − 1)/rows⌋ units may come or go: as `Stable` asks, this moves by at most one with a unit,
    and is 0 at both of two neighbours whose most common values differ, whichever of equals is named.

    Theorem: what few people cannot change may be shown as it is [docs/theorems/recipes.md, Theorems 3 and 4]
    """

    aggregate: Mode

    @cached_property
    def mechanism(self) -> StableValue | GaussianStableValue:
        return self.price.stable_value_mechanism(self.slack)

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return vote_statement(self.plan, self.aggregate, salt, dialect)

    def prepare(self) -> None:
        self.mechanism.ready(1)
        _ = self.mechanism.error(SURE)

    def release(self, rows: Sequence[Row]) -> list[Scalar]:
        return [self.mechanism.release(self.lead(rows))]

    def lead(self, rows: Sequence[Row]) -> Stable:
        """The most common value, and how many units it withstands."""
        counts = sorted(((int(str(many)), value) for value, many in rows), key=lambda one: one[0], reverse=True)
        (most, first), (next_, _) = [*counts, (0, None), (0, None)][:2]
        return Stable(first, max(0, (most - next_ - 1) // self.plan.rows))

    def read(self, stored: Sequence[Scalar]) -> Estimate:
        return self.aggregate.estimate(stored[0])

    def promise(self) -> str:
        lead = self.mechanism.error(SURE) * self.plan.rows + 1
        return f"shown with 95 % if it leads by {lead:,} rows, and NULL if there is no clear lead"


def vote_statement(plan: Plan, mode: Mode, salt: int, dialect: str | Dialect, bound: RankBound | None = None) -> str:
    """keys, a value, and how many have it: of all public values; else of the two most common ones of each group. With a
    bound, rows count with weights whose norm it limits."""
    to, names = dialect_of(dialect).about(plan), key_names(plan)
    value, many = counted_value(mode, to), "COUNT(*)"
    if bound is None:
        kept = bounding_of(plan).values(plan, value, mode.of, salt, to, once=False, form=counted_form(mode))
    else:
        kept = bound.scaling(plan, to).values(value, mode.of, bound.bound)
        many = f"CAST({to.total(f'{VALUES}.{WEIGHT}')} AS BIGINT)"
    each = qualify(VALUES, [*names, VALUE])
    counted = f"(SELECT {', '.join([*each, f'{many} AS {COUNT}'])} FROM {VALUES} {group_by(each)}) AS {COUNTED}"
    if mode.choices is not None:
        public = None if mode.lattice else mode.of.domain.keys
        shown = ", ".join(qualify(COUNTED, [*names, VALUE, COUNT]))
        only = (
            f" WHERE {COUNTED}.{VALUE} IN ({literal_list(type(to), mode.of.domain.kind, public)})"
            if public is not None
            else ""
        )
        return f"WITH {kept} SELECT {shown} FROM {counted}{only}"
    order = f"{partition_by(qualify(COUNTED, names))} ORDER BY {COUNTED}.{COUNT} DESC, {COUNTED}.{VALUE}"
    placed = f"SELECT {COUNTED}.*, ROW_NUMBER() OVER ({order}) AS {PLACE} FROM {counted}"
    shown = ", ".join(qualify(RANKED, [*names, VALUE, COUNT]))
    return f"WITH {kept} SELECT {shown} FROM ({placed}) AS {RANKED} WHERE {RANKED}.{PLACE} <= 2"


def counted_value(mode: Mode, to: Dialect) -> str:
    """The SQL of a value in the form in which it is counted and shown."""
    if mode.lattice is not None:
        return step_of(mode.lattice, to)
    return to.date_text(raw(X)).sql(to.name) if mode.of.domain.kind is Kind.DATE else value_or_null(mode.of, to)


def counted_form(mode: Mode) -> Form:
    """The form in which a counted value is hashed."""
    if mode.lattice is not None:
        return Form.WHOLE
    return Form.TEXT if mode.of.domain.kind is Kind.DATE else FORMS[mode.of.domain.kind]


def normalize_float_zero(value: object) -> object:
    """Floats without −0, as public values are written; positions on a lattice stay integers."""
    return value + 0.0 if isinstance(value, float) else value


def mode_argument(node: exp.Expression) -> exp.Expression:
    """The column of MODE(x), or of MODE() WITHIN GROUP (ORDER BY x)."""
    if isinstance(node, exp.WithinGroup):
        order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        if len(order) != 1 or node.this.this is not None:
            raise QueryRefused("MODE() WITHIN GROUP takes one ORDER BY.\n  do:     ask MODE(x)")
        node = order[0]
    of = node.this
    if not isinstance(of, exp.Expression) or isinstance(of, exp.Distinct | exp.Star):
        raise QueryRefused(f"{node.sql('duckdb')[:60]} takes one column, with all its values.")
    return of
