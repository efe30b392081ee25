"""Casts from one kind to another: NULL where the cast fails."""

import datetime

from sqlglot import exp

from sfumato.sql.domains import DATE, Kind, Scalar, number
from sfumato.sql.functions.costs import each, per_character
from sfumato.sql.functions.function import Function, Sql, of_type
from sfumato.sql.functions.result_domains import value_text

NUMBER, WORDS, YES, DAY = Kind.NUMBER, Kind.TEXT, Kind.TRUTH, Kind.DATE


def as_number(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=of_type("DOUBLE"))


def as_text(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=of_type("TEXT"))


def as_time(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=of_type("TIMESTAMP"))


def as_date(a: Sql) -> Sql:
    """Midnight. Every date is a TIMESTAMP: to compare one with a DATE, an engine would cast, and that can raise."""
    return as_time(exp.TryCast(this=a, to=of_type("DATE")))


# ---- of released values ---------------------------------------------------------------------------------------------


def to_date(text: str) -> str:
    """A date in the form in which keys are shown: without its time, at midnight."""
    return str(datetime.datetime.fromisoformat(text)).removesuffix(" 00:00:00")


def to_text(value: Scalar) -> str:
    """As DuckDB's dialect writes it: a whole number without a point."""
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")


FUNCTIONS: dict[str, Function] = {
    "number": Function(
        ((NUMBER, WORDS, YES),), lambda a: a if a.kind is NUMBER else number(), as_number, float, cost=per_character(5)
    ),
    "text": Function((None,), value_text, as_text, to_text, cost=each(1000)),
    "date": Function(
        ((WORDS, DAY),), lambda a: DATE, as_date, lambda a: to_date(a[:10]), (exp.Date,), cost=per_character(5)
    ),
    "timestamp": Function(((WORDS, DAY),), lambda a: DATE, as_time, to_date, cost=per_character(5)),
}
