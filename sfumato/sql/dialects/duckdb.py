"""DuckDB, the default engine. Its SQL for a function is in the entry of the function."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.sql import reserved_names as names
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.dialects.keyed_hash import BYTES
from sfumato.sql.domains import LONGEST_TEXT, Kind
from sfumato.sql.expressions import Call, Column, Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.costs import READ_WORDS
from sfumato.sql.functions.function import Sql, of_type, paren
from sfumato.sql.plan import Plan

NARROW = 2**30
FEW = 2
WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}  # each is a double of its own
SPELLED_ONCE = WHOLE | {"BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT", "BOOLEAN", "DATE", "TIMESTAMP"}
ALREADY = {(Kind.NUMBER, "DOUBLE"), (Kind.TRUTH, "BOOLEAN"), (Kind.DATE, "TIMESTAMP")}
POINT_ZERO = r"\.0$"  # DuckDB writes the double 3 as 3.0; integers are doubles here, and their texts end before it
TYPES = {Kind.TRUTH: "BOOLEAN", Kind.DATE: "TIMESTAMP", Kind.NUMBER: "DOUBLE"}


def byte_length(words: Sql) -> Sql:
    return exp.Anonymous(this="STRLEN", expressions=[words])


def null_if_long(words: Sql) -> Sql:
    """NULL for long texts, which are neither numbers nor dates (in those each byte is a character). DuckDB evaluates
    TYPEOF before it reads a row, so values of other types are not converted to text to be measured."""
    size = byte_length(exp.TryCast(this=words, to=of_type("TEXT")))
    fits = exp.LTE(this=size, expression=exp.Literal.number(str(LONGEST_TEXT)))
    kind = exp.Anonymous(this="TYPEOF", expressions=[words.copy()])
    other = exp.NEQ(this=kind, expression=exp.Literal.string("VARCHAR"))
    return exp.Case().when(exp.Or(this=other, expression=fits), words.copy())


@dataclass(frozen=True)
class DuckDB(Dialect):
    """TRY_CAST is total here, doubles overflow to infinity, sums of integers have 128 bits."""

    whole_types = frozenset(WHOLE | {"BIGINT"})
    double_types = frozenset({"FLOAT", "DOUBLE"})

    @property
    def name(self) -> str:
        return "duckdb"

    def reading_cost(self, column: Column) -> float:
        """Numbers, dates and booleans that may be stored as texts take longer; without a schema this is unknown."""
        type_ = self.types.get(column.origin, "VARCHAR" if self.schema else "")
        return READ_WORDS if column.domain.kind is not Kind.TEXT and "VARCHAR" in type_ else column.cost

    def supports(self, name: str) -> bool:
        return name in FUNCTIONS

    def call(self, call: Call, *arguments: Sql) -> Sql:
        found = FUNCTIONS[call.name].emit(*arguments)
        if call.name == "text" and call.arguments[0].domain.kind is Kind.NUMBER:
            return exp.Anonymous(this="REGEXP_REPLACE", expressions=[found, *map(exp.Literal.string, (POINT_ZERO, ""))])
        return found

    def column(self, column: Sql, kind: Kind, type_: str | None) -> Sql:
        if kind is Kind.NUMBER and type_ in WHOLE:
            return exp.Cast(this=column, to=of_type("DOUBLE"))
        if kind is Kind.TEXT:
            return self.as_text(column)
        words = null_if_long(column) if type_ is None or "VARCHAR" in type_ else column
        cast = column if (kind, type_) in ALREADY else exp.TryCast(this=words, to=of_type(TYPES[kind]))
        if kind is not Kind.NUMBER:
            return cast
        return paren(exp.Case().when(self.is_nan(cast), exp.null()).else_(cast.copy()))

    def cut_column(self, words: Sql) -> Sql:
        """Texts that are short in bytes are used unchanged: copying a text takes as long as grouping by it."""
        fits = exp.LTE(this=byte_length(words), expression=exp.Literal.number(str(LONGEST_TEXT)))
        return paren(exp.Case().when(fits, words.copy()).else_(self.cut(words.copy())))

    def number(self, value: float) -> Sql:
        words = exp.Literal.string("inf") if math.isinf(value) else exp.Literal.number(repr(abs(value)))
        size = exp.Cast(this=words, to=of_type("DOUBLE"))
        return size if value >= 0 else exp.Neg(this=size)

    def is_nan(self, number: Sql) -> Sql:
        return exp.func("ISNAN", number)  # type: ignore[return-value]

    def as_text(self, value: Sql) -> Sql:
        """A collation would treat some texts as equal and show the first one; a cast does not remove the collation."""
        words = exp.TryCast(this=value, to=of_type("TEXT"))
        return exp.Collate(this=words, expression=exp.to_identifier("binary", quoted=True))

    def apart(self, column: Sql, type_: str | None) -> Sql:
        return self.as_text(column) if type_ is None or "VARCHAR" in type_ else column

    def content(self, column: Sql, type_: str | None) -> Sql:
        """As text, unless equal values have equal texts: −0.0 = 0.0, and sorting leaves open which of them is first."""
        return column if type_ in SPELLED_ONCE else self.as_text(column)

    def date_text(self, moment: Sql) -> Sql:
        return self.as_text(moment)

    def key(self, column: Column) -> Sql | None:
        """Looking up integers takes half the time of doubles."""
        known = column.domain.kind is Kind.NUMBER and self.types.get(column.origin) in WHOLE
        return names.column(column.origin) if known else None

    def orders_quickly(self, keys: Sequence[Expression]) -> bool:
        return all(isinstance(key, Column) and self.key(key) is not None for key in keys)

    def chosen_first(self, plan: Plan) -> bool:
        """Sorting rows is faster than summing them by group and sorting the groups, unless there are far fewer groups.
        A low public bound on rows says that there are not."""
        return plan.rows <= FEW and self.orders_quickly(plan.keys)

    def unread(self, column: Column) -> Sql | None:
        known = column.domain.kind is Kind.NUMBER and self.types.get(column.origin) in {*WHOLE, "DOUBLE"}
        return names.column(column.origin) if known else None

    def quantile_list(self, name: str, parts: Sequence[float]) -> str:
        return ", ".join(f"QUANTILE_DISC({name}, [{', '.join(map(repr, parts))}])[{i + 1}]" for i in range(len(parts)))

    def first(self, value: str, order: Sequence[str]) -> str:
        return f"FIRST({value} ORDER BY {', '.join(order)})"

    def digest(self, text: str) -> str:
        """MD5_NUMBER has the bytes in this order; a signed integer, as its joins and comparisons are faster."""
        return f"CAST(MD5_NUMBER({text}) & {2 ** (8 * BYTES) - 1} AS BIGINT)"

    def whole(self, low: int, high: int) -> str:
        """DuckDB sums 32-bit integers in 64 bits, and 64-bit integers in 128."""
        return "INTEGER" if low > -NARROW and high < NARROW else "BIGINT"

    def wide(self, integer: str) -> str:
        return f"CAST({integer} AS HUGEINT)"

    def quotient(self, a: str, b: str) -> str:
        return f"{a} // {b}"

    def lists(self, *listed: str) -> list[str]:
        return [f"LIST({one} ORDER BY {listed[0]})" for one in listed]
