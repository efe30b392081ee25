"""What engines spell differently, and what each must mean by it.

A dialect is trusted with two things: that no value of any row can make its text raise, and that it means the same on
every engine. tests/curator/test_conformance.py asks every dialect the same questions about the same odd values.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Self

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import LONGEST_TEXT, Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.costs import Cost, require_cost
from sfumato.sql.functions.function import Sql
from sfumato.sql.plan import Plan, Table
from sfumato.sql.reserved_names import column
from sfumato.sql.union import row_cost as cost_of_row

UNWRITTEN = (
    "engines write numbers in different ways, so a number is not cast to TEXT here.\n"
    "  do:     compare or group by the number itself"
)


@dataclass(frozen=True)
class Dialect(ABC):
    """One engine's SQL. `schema` is what the engine calls the types of columns, where known: it may then leave out what
    a type rules out; it is right without. `types` is the same for the tables of one plan: "t0.stay" → "integer"."""

    costs: ClassVar[Mapping[str, Cost]] = {}  # of functions that may take longer here than their entries state

    schema: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    types: Mapping[str, str] = field(default_factory=dict, repr=False)

    def about(self, plan: Plan) -> Self:
        """The same, of the tables of this plan. Raises QueryRefused if one row of it could take too long here: every
        statement is written by what this returns, so none is without the check."""
        tables = [plan.table, *(join.table for join in plan.joins)]
        known = ((f"t{i}", self.stored(table)) for i, table in enumerate(tables))
        found = replace(self, types={f"{alias}.{name}": kind for alias, of in known for name, kind in of.items()})
        require_cost(found.release_cost(plan), self.name)
        return found

    def stored(self, table: Table) -> Mapping[str, str]:
        """Column → type of what is read from the database as it is. A unit that is made or found elsewhere is not, even
        if the database has a column of that name, nor are columns of UNION ALL, even if it has a table of that one."""
        known = {} if table.branches else self.schema.get(table.name, {})
        made = table.unit_column if table.owner or table.edges else None
        return {name: kind for name, kind in known.items() if name != made}

    def type_of(self, table: Table, column: str) -> str | None:
        """What the engine calls the type of a column, if that is known."""
        return self.stored(table).get(column)

    def accepts(self, plan: Plan) -> None:
        """Raises QueryRefused if this engine cannot be told of something in it."""
        parts = [plan.where, *plan.keys, *(mine for join in plan.joins for mine, _ in join.on)]
        parts += [m.of for m in plan.measures if m.of]
        parts += [value for one in plan.standalone for value in one.arguments]
        for branch in plan.table.branches:
            self.accepts(branch.rows)
            parts += [of for _, of in branch.columns]
        for part in parts:
            self.accepted(part)
        require_cost(self.release_cost(plan), self.name)

    def accepted(self, expression: Expression) -> None:
        match expression:
            case Constant(value):
                self.literal(value)
            case Call(_, arguments):
                if reason := self.refusal(expression):
                    raise QueryRefused(reason)
                for argument in arguments:
                    self.accepted(argument)

    # ---- what one row may take --------------------------------------------------------------------------------------

    def release_cost(self, plan: Plan) -> float:
        """Nanoseconds that this engine needs for one row of it at most."""
        return cost_of_row(plan, self.cost)

    def cost(self, expression: Expression) -> float:
        """Nanoseconds that this engine needs for it in one row at most, whatever the row holds."""
        match expression:
            case Column():
                return self.reading_cost(expression)
            case Call():
                return self.own_cost(expression) + self.operands_cost(expression)
        return 0.0

    def own_cost(self, call: Call) -> float:
        """The same without its arguments' own."""
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
        """As sqlglot calls it."""

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
        """Why this engine is not told of it; None: it is."""
        if self.supports(call.name):
            return None
        return f"{call.name.upper()} cannot be asked of {self.name}.\n  do:     see docs/engines.md for what can"

    @abstractmethod
    def call(self, call: Call, *arguments: Sql) -> Sql:
        """A function of the list: it never raises; NULL where it has no value."""

    @abstractmethod
    def column(self, column: Sql, kind: Kind, type_: str | None) -> Sql:
        """A column as the kind that the policy says: a double but no NaN, a text that is compared by its bytes, a
        truth, a moment without a time zone. What is not of that kind becomes NULL, and so does a text of more than
        LONGEST_TEXT characters where something else is read from it."""

    def cut(self, words: Sql) -> Sql:
        """A text of LONGEST_TEXT characters at most: the first of them. Characters are those of Unicode, not bytes."""
        return exp.Anonymous(this="LEFT", expressions=[words, exp.Literal.number(str(LONGEST_TEXT))])

    def cut_column(self, words: Sql) -> Sql:
        """The same of a column, most of whose texts are short."""
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
        """Any value in words: equal ones of one type in equal words, which are compared by their bytes."""

    def apart(self, column: Sql, type_: str | None) -> Sql:
        """A column that tells people apart. Should a collation call two of its texts equal, which of them stood for
        both would hang on the order of rows: so texts, and what may be one, are compared by their bytes."""
        return self.as_text(column)

    def content(self, column: Sql, type_: str | None) -> Sql:
        """The same, of any column, or in words where not all types can be hashed and ordered."""
        return self.as_text(column)

    @abstractmethod
    def date_text(self, moment: Sql) -> Sql:
        """2024-02-29 10:00:00."""

    # ---- plans ------------------------------------------------------------------------------------------------------

    def key(self, column: Column) -> Sql | None:
        """A column that is a key, as it is, if there each number stands for itself; None: as everywhere else."""
        return None

    def windowed(self, keys: Sequence[Expression]) -> bool:
        """Is it fast to order by a hash and these keys? Otherwise groups are ordered by their hash alone."""
        return True

    def chosen_first(self, plan: Plan) -> bool:
        """Is it faster to choose a unit's groups while they are rows than when they are summed?"""
        return False

    def unread(self, column: Column) -> Sql | None:
        """A column of numbers as it is, if NaN is above all of them in it, or not there; None: as everywhere else."""
        return None

    def selected(self, name: str, parts: Sequence[float]) -> str:
        """The values of a column below which these parts of all lie; "" where counting all of them is no slower."""
        return ""

    @abstractmethod
    def hashed(self, listed: Sequence[Sql], salt: int) -> Sql:
        """A 64-bit integer, from these values and the key alone: never position, rowid or random()."""

    @property
    def materialized(self) -> str:
        return "MATERIALIZED "

    @abstractmethod
    def divided(self, a: str, b: str) -> str:
        """The quotient of integers, cut towards 0."""

    def total(self, integers: str) -> str:
        """A sum of 64-bit integers that does not overflow, however many there are."""
        return f"SUM({integers})"

    def whole(self, low: int, high: int) -> str:
        """The type of integers of this range: the one of which sums are fast."""
        return "BIGINT"

    def scaled(self, value: str, by: float) -> str:
        """A bounded double times a power of two."""
        return f"{value} * {by!r}"

    def floor(self, value: str) -> str:
        """Of a double: a double."""
        return f"FLOOR({value})"

    @abstractmethod
    def lists(self, *listed: str) -> list[str]:
        """The values of these columns, each column as one list, in the order of the first."""


def raw(text: str) -> Sql:
    """A text that is SQL already."""
    return exp.Var(this=text)


def integer_constants(arguments: Sequence[Expression]) -> list[int]:
    """Whole numbers that stand in the question."""
    return [int(a.value) for a in arguments if isinstance(a, Constant) and isinstance(a.value, int | float)]


@lru_cache(maxsize=4096)
def column_text(dialect: type[Dialect], origin: str, kind: Kind, type_: str | None, long: bool = False) -> str:
    """A column as text, cut if it may be long: conditions have hundreds of them, and trees are slow to copy."""
    to = dialect()
    found = to.column(column(origin), kind, type_)
    found = to.cut_column(found) if long else found
    return (found if isinstance(found, exp.Paren | exp.Func) else exp.Paren(this=found)).sql(to.name)


@lru_cache(maxsize=256)
def literal_list(dialect: type[Dialect], kind: Kind, values: tuple[object, ...]) -> str:
    """Constants of one kind (to Python, True and 1 are the same) as text: lists of public keys are long."""
    to = dialect()
    return ", ".join(to.literal(value).sql(to.name) for value in values)
