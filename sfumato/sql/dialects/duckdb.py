"""DuckDB: the engine at home. What it is told of a function stands beside the function."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.function import Sql, of_type, paren

NARROW = 2**30
TYPES = {Kind.TEXT: "TEXT", Kind.TRUTH: "BOOLEAN", Kind.DATE: "TIMESTAMP", Kind.NUMBER: "DOUBLE"}


@dataclass(frozen=True)
class DuckDB(Dialect):
    """TRY_CAST is total here, doubles overflow to infinity, sums of integers have 128 bits."""

    @property
    def name(self) -> str:
        return "duckdb"

    @property
    def by_type(self) -> bool:
        return False

    @property
    def functions(self) -> frozenset[str]:
        return frozenset(FUNCTIONS)

    def call(self, call: Call, *arguments: Sql) -> Sql:
        return FUNCTIONS[call.name].emit(*arguments)

    def column(self, column: Sql, kind: Kind, type_: str | None) -> Sql:
        cast = exp.TryCast(this=column, to=of_type(TYPES[kind]))
        if kind is not Kind.NUMBER:
            return cast
        return paren(exp.Case().when(self.is_nan(cast), exp.null()).else_(cast.copy()))

    def literal(self, value: object) -> Sql:
        match value:
            case None:
                return exp.null()
            case bool():
                return exp.true() if value else exp.false()
            case int() | float():
                size = exp.Cast(this=exp.Literal.number(repr(abs(float(value)))), to=of_type("DOUBLE"))
                return size if value >= 0 else exp.Neg(this=size)
        return exp.Literal.string(str(value))

    def is_nan(self, number: Sql) -> Sql:
        return exp.func("ISNAN", number)  # type: ignore[return-value]

    def as_text(self, value: Sql) -> Sql:
        return exp.TryCast(this=value, to=of_type("TEXT"))

    def content(self, column: Sql) -> Sql:
        return column

    def date_text(self, moment: Sql) -> Sql:
        return self.as_text(moment)

    @property
    def windowed(self) -> bool:
        return False

    def hashed(self, listed: Sequence[Sql], salt: int) -> Sql:
        """Signed: joins and comparisons of it are a fifth faster."""
        mixed = exp.Anonymous(this="HASH", expressions=[*listed, exp.Literal.number(str(salt))])
        return exp.Cast(
            this=exp.BitwiseRightShift(this=mixed, expression=exp.Literal.number("1")), to=of_type("BIGINT")
        )

    def whole(self, low: int, high: int) -> str:
        """Sums of 32-bit integers are made in 64 bits, those of 64-bit ones in 128."""
        return "INTEGER" if low > -NARROW and high < NARROW else "BIGINT"

    def divided(self, a: str, b: str) -> str:
        return f"{a} // {b}"

    def lists(self, *names: str) -> list[str]:
        return [f"LIST({name} ORDER BY {names[0]})" for name in names]
