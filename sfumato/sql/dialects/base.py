"""Dialects: the SQL that engines spell differently, with one meaning on all of them.

A dialect guarantees two things: no value in any row makes its SQL raise, and its SQL means the same as on every other
engine. tests/engines/test_conformance.py asks every dialect the same questions about the same odd values.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Self

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.dialects.keyed_hash import FORMS, Form, Hashed, keyed_hash
from sfumato.sql.domains import LONGEST_TEXT, Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.costs import MOST_COST, Cost, cost_refusal
from sfumato.sql.functions.function import Sql
from sfumato.sql.plan import Plan, Table
from sfumato.sql.reserved_names import column
from sfumato.sql.union import row_multiplicity

UNWRITTEN = (
    "engines write numbers in different ways, so a number is not cast to TEXT here.\n"
    "  do:     compare or group by the number itself"
)


@dataclass(frozen=True)
class Dialect(ABC):
    """The SQL of one engine. `schema` has the engine's names of column types, where known; it allows simpler SQL, but
    is not needed for correctness. `types` is the same for the tables of one plan: "t0.stay" → "integer"."""

    whole_types: ClassVar[frozenset[str]]  # the engine's integers of at most 64 bits
    double_types: ClassVar[frozenset[str]]
    costs: ClassVar[Mapping[str, Cost]] = {}  # of functions that may take longer here than their entries state

    schema: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    lasting: tuple[str, ...] = field(default=(), repr=False)  # tables of sums by day that the engine has (emit/daily)
    types: Mapping[str, str] = field(default_factory=dict, repr=False)

    def about(self, plan: Plan) -> Self:
        """The dialect with the types of this plan's tables. Raises QueryRefused if one row could take too long: every
        statement is written by the dialect that this returns, so the check cannot be skipped."""
        known = ((f"t{i}", self.stored_types(table)) for i, table in enumerate(plan.tables))
        found = replace(self, types={f"{alias}.{name}": kind for alias, of in known for name, kind in of.items()})
        if (worst := found.release_cost(plan)) > MOST_COST:
            raise cost_refusal(worst, self.name)
        return found

    def stored_types(self, table: Table) -> Mapping[str, str]:
        """Column → type, for columns that are read directly from the database. A unit that is computed or found in a
        parent table is not among them, even if the database has a column of that name; nor are columns of derived
        tables, even if it has a table of that name."""
        known = {} if table.derived else self.schema.get(table.name, {})
        made = table.unit_column if table.owner or table.edges else None
        return {name: kind for name, kind in known.items() if name != made}

    def type_of(self, table: Table, column: str) -> str | None:
        """The engine's name for the type of a column, if it is known."""
        return self.stored_types(table).get(column)

    def accepts(self, plan: Plan) -> None:
        """Raises QueryRefused if this engine cannot compute something in the plan."""
        parts = [plan.where, *plan.keys, *(mine for join in plan.joins for mine, _ in join.on)]
        parts += [m.of for m in plan.measures if m.of]
        parts += [value for one in plan.standalone for value in one.arguments]
        for table in plan.tables:
            for rows in table.inner_plans:
                self.accepts(rows)
            parts += table.inner_expressions
            if table.grouped and any(value.order for _, value in table.grouped.values):
                self.first("NULL", [])  # refused where the engine has none
        for part in parts:
            self.check_expression(part)
        if (worst := self.release_cost(plan)) > MOST_COST:
            raise cost_refusal(worst, self.name)

    def check_expression(self, expression: Expression) -> None:
        match expression:
            case Constant(value):
                self.literal(value)
            case Call(_, arguments):
                if reason := self.refusal(expression):
                    raise QueryRefused(reason)
                for argument in arguments:
                    self.check_expression(argument)

    # ---- worst-case cost of a row -----------------------------------------------------------------------------------

    def release_cost(self, plan: Plan) -> float:
        """Upper bound on the nanoseconds that this engine needs for one row of a plan."""
        return plan.key_cost + sum(map(self.cost, plan.evaluated))

    def cost(self, expression: Expression) -> float:
        """Upper bound on the nanoseconds that this engine needs for an expression in one row, whatever it holds."""
        match expression:
            case Column():
                return self.reading_cost(expression)
            case Call():
                return self.own_cost(expression) + self.operands_cost(expression)
        return 0.0

    def own_cost(self, call: Call) -> float:
        """The cost of a call in one row, without that of its arguments."""
        function = FUNCTIONS[call.name]
        return self.costs.get(call.name, function.cost_in.get(self.name, function.cost))(*call.arguments)

    def operands_cost(self, call: Call) -> float:
        return sum(map(self.cost, call.arguments)) * self.copies(call)

    def reading_cost(self, column: Column) -> float:
        return column.cost

    def copies(self, call: Call) -> int:
        """How often this engine evaluates each argument."""
        return FUNCTIONS[call.name].copies

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the dialect in sqlglot."""

    # ---- expressions over one row: total ----------------------------------------------------------------------------

    def compiled(self, expression: Expression) -> Sql:
        match expression:
            case Constant(value):
                return self.literal(value)
            case Column(origin, domain):
                type_ = self.types.get(origin)
                return exp.Var(this=column_text(type(self), origin, domain.kind, type_, domain.needs_cut))
            case Call():
                if reason := self.refusal(expression):
                    raise QueryRefused(reason)
                found = self.call(expression, *self.operands(expression))
                return self.cut(found) if expression.domain.needs_cut else found
        raise AssertionError("unreachable")

    def operands(self, call: Call) -> list[Sql]:
        """Its arguments as SQL."""
        return [self.compiled(argument) for argument in call.arguments]

    @property
    def functions(self) -> frozenset[str]:
        """The functions that this engine can compute."""
        return frozenset(name for name in FUNCTIONS if self.supports(name))

    @abstractmethod
    def supports(self, name: str) -> bool:
        """Can this engine compute the function? A new one is refused until somebody has made sure that it is total
        here."""

    def refusal(self, call: Call) -> str | None:
        """The reason why this engine refuses a call; None if it can compute it."""
        if self.supports(call.name):
            return None
        return f"{call.name.upper()} cannot be asked of {self.name}.\n  do:     see docs/engines.md for what can"

    @abstractmethod
    def call(self, call: Call, *arguments: Sql) -> Sql:
        """The SQL of a call: it never raises; NULL where it has no value."""

    @abstractmethod
    def column(self, column: Sql, kind: Kind, type_: str | None) -> Sql:
        """A column as the kind that the policy states: a double but not NaN, a text that is compared by its bytes, a
        boolean, a timestamp without time zone. A value of another kind becomes NULL, and so does a text of more than
        LONGEST_TEXT characters where another kind is read from it."""

    def cut(self, words: Sql) -> Sql:
        """Truncate a text to LONGEST_TEXT characters (of Unicode, not bytes)."""
        return exp.Anonymous(this="LEFT", expressions=[words, exp.Literal.number(str(LONGEST_TEXT))])

    def cut_column(self, words: Sql) -> Sql:
        """Truncate the texts of a column, most of which are short."""
        return self.cut(words)

    def literal(self, value: object) -> Sql:
        """A constant of that kind."""
        match value:
            case None:
                return exp.null()
            case bool():
                return exp.true() if value else exp.false()
            case int() | float():
                return self.number(float(value))
        return self.text(str(value))

    def number(self, value: float) -> Sql:
        return raw(f"CAST({value!r} AS DOUBLE)")

    def text(self, value: str) -> Sql:
        return exp.Literal.string(value)

    @abstractmethod
    def is_nan(self, number: Sql) -> Sql: ...

    @abstractmethod
    def as_text(self, value: Sql) -> Sql:
        """Any value as text, compared by its bytes: equal values of one type have equal texts."""

    def apart(self, column: Sql, type_: str | None) -> Sql:
        """A column that identifies units. If a collation treated two of its texts as equal, the order of rows would
        decide which of them represents both. So texts, and columns that may be texts, are compared by their bytes."""
        return self.as_text(column)

    def content(self, column: Sql, type_: str | None) -> Sql:
        """Any column in a form that can be hashed and ordered; as text where its type cannot."""
        return self.as_text(column)

    @abstractmethod
    def date_text(self, moment: Sql) -> Sql:
        """2024-02-29 10:00:00."""

    # ---- plans ------------------------------------------------------------------------------------------------------

    def key(self, column: Column) -> Sql | None:
        """A key column unchanged, if equal values are equal numbers there; None: written as everywhere else."""
        return None

    def orders_quickly(self, keys: Sequence[Expression]) -> bool:
        """Is ordering by a hash and these keys fast? Otherwise groups are ordered by their hash alone."""
        return True

    def chosen_first(self, plan: Plan) -> bool:
        """Is it faster to choose a unit's groups from rows, before they are summed?"""
        return False

    @property
    def counts_before_hashing(self) -> bool:
        """Is a hash so slow that values are counted first, and hashed only where some are cut?"""
        return False

    def unread(self, column: Column) -> Sql | None:
        """A numeric column unchanged, if NaN is absent or above all numbers in it; None: written as everywhere else."""
        return None

    def quantile_list(self, name: str, parts: Sequence[float]) -> str:
        """The quantiles of a column at these fractions; "" where counting all values is no slower."""
        return ""

    @abstractmethod
    def first(self, value: str, order: Sequence[str]) -> str:
        """The value of the first row in this order, of the rows of a group; ties must be of equal values."""

    def row_hash(self, listed: Sequence[Hashed], salt: int) -> Sql:
        """A hash of these values and the salt alone, the same on all engines."""
        return raw(keyed_hash(listed, salt, self))

    @abstractmethod
    def digest(self, text: str) -> str:
        """The first six bytes of the MD5 of a text, of which the last one counts most, as a whole number."""

    @property
    def text_type(self) -> str:
        """Its name for texts in CAST."""
        return "TEXT"

    def joined(self, texts: Sequence[str], between: str) -> str:
        """Texts that are not NULL, with another one between them."""
        sign = f", {self.text(between).sql(self.name)}, "
        return f"CONCAT({sign.join(texts)})"

    def form(self, key: Expression) -> Form:
        """How a key is hashed, as rows have it."""
        if key.domain.kind is Kind.DATE:
            return Form.TEXT
        return Form.WHOLE if isinstance(key, Column) and self.key(key) is not None else FORMS[key.domain.kind]

    def unit_type(self, table: Table) -> str | None:
        """The type of the column that holds the unit, also where another table or a SELECT has it; None if unknown."""
        if table.owner is not None:
            return self.unit_type(table.owner.table)
        if table.derived:
            found = {self.unit_type(rows.table) for rows in table.inner_plans}
            return found.pop() if len(row_multiplicity(table)) == 1 else None  # of several tables it is a text
        return self.type_of(table, table.unit_column or "")

    def unit(self, name: str, table: Table) -> Hashed:
        """The unit of a row, as it is hashed."""
        type_ = self.unit_type(table)
        if type_ in self.whole_types:
            return Hashed(name, Form.WHOLE, known=True)
        if type_ in self.double_types:
            return Hashed(name, Form.NUMBER, known=True)
        return Hashed(self.as_text(raw(name)).sql(self.name), Form.TEXT, known=True)

    @property
    def materialized(self) -> str:
        return "MATERIALIZED "

    @abstractmethod
    def quotient(self, a: str, b: str) -> str:
        """The quotient of integers, truncated towards 0."""

    def identifier(self, name: str) -> str:
        """A name of the owner's."""
        return exp.to_identifier(name, quoted=True).sql(self.name)

    def total(self, integers: str) -> str:
        """A sum of 64-bit integers that does not overflow, however many there are."""
        return f"SUM({integers})"

    def total_of(self, integers: str, most: int) -> str:
        """A sum of integers of at most this size, which may allow a faster type."""
        return self.total(integers)

    def by_unit(self, rows: str, unit: str, plan: Plan) -> str:
        """A table of rows that will be grouped by their unit and by more: on engines of many machines, brought together
        by unit first, so that they are sent once."""
        return rows

    def wide(self, integer: str) -> str:
        """An integer in a type in which products of 64-bit integers fit."""
        return f"CAST({integer} AS DECIMAL(38, 0))"

    def double(self, integer: str) -> str:
        """An integer as the nearest double."""
        return f"CAST({integer} AS DOUBLE)"

    def whole(self, low: int, high: int) -> str:
        """The integer type of this range whose sums are fast."""
        return "BIGINT"

    def scaled(self, value: str, by: float) -> str:
        """A bounded double times a power of two."""
        return f"{value} * {by!r}"

    def floor(self, value: str) -> str:
        """Of a double: a double."""
        return f"FLOOR({value})"

    @abstractmethod
    def lists(self, *listed: str) -> list[str]:
        """The values of each column as a list, ordered by the first column."""


def raw(text: str) -> Sql:
    """SQL text as a node."""
    return exp.Var(this=text)


def integer_constants(arguments: Sequence[Expression]) -> list[int]:
    """The arguments that are numeric constants, as integers."""
    return [int(a.value) for a in arguments if isinstance(a, Constant) and isinstance(a.value, int | float)]


@lru_cache(maxsize=4096)
def column_text(dialect: type[Dialect], origin: str, kind: Kind, type_: str | None, long: bool = False) -> str:
    """The SQL text of a column, truncated if it may be long. Cached: conditions have hundreds of columns, and trees are
    slow to copy."""
    to = dialect()
    found = to.column(column(origin), kind, type_)
    found = to.cut_column(found) if long else found
    return (found if isinstance(found, exp.Paren | exp.Func) else exp.Paren(this=found)).sql(to.name)


@lru_cache(maxsize=256)
def literal_list(dialect: type[Dialect], kind: Kind, values: tuple[object, ...]) -> str:
    """The SQL text of constants of one kind. Cached: lists of public keys are long. (`kind` is part of the cache key,
    as True == 1 in Python.)"""
    to = dialect()
    return ", ".join(to.literal(value).sql(to.name) for value in values)
