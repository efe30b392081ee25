"""Parts of dates. Infinite dates have none; near the ends of time an engine raises, so it is never asked there."""

import datetime
from collections.abc import Callable

from sqlglot import exp

from sfumato.sql.domains import DATE, Kind, Scalar, number
from sfumato.sql.functions.casts import as_time
from sfumato.sql.functions.function import Function, Sql, of_type, paren
from sfumato.sql.functions.ranges import counted

DAY = Kind.DATE


def part(name: str) -> Callable[[Sql], Sql]:
    """A part of a date; infinite dates have none."""

    def emit(a: Sql) -> Sql:
        finite = exp.func("ISFINITE", a)
        taken = exp.Anonymous(this="date_part", expressions=[exp.Literal.string(name), a.copy()])
        return paren(exp.Case().when(finite, exp.Cast(this=taken, to=of_type("DOUBLE"))).else_(exp.null()))

    return emit


def beginning(unit: str) -> Callable[[Sql], Sql]:
    """The first moment of a year, month or day. Only of years 1 to 9999: near the ends of time an engine raises, so
    it never sees what is outside, even if it should compute what CASE does not choose."""

    def emit(a: Sql) -> Sql:
        first, last = (as_time(exp.Literal.string(one)) for one in ("0001-01-01", "9999-12-31 23:59:59.999999"))
        inside = exp.func("LEAST", exp.func("GREATEST", a.copy(), first.copy()), last.copy())
        taken = exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(unit), inside])
        within = exp.Between(this=paren(a), low=first, high=last)
        return paren(exp.Case().when(within, as_time(taken)).else_(exp.null()))

    return emit


def part_of(name: str) -> Callable[[str], Scalar]:
    """The same, of a released value."""
    return lambda text: float(getattr(datetime.datetime.fromisoformat(text), name))


def weekday(text: str) -> float:
    return float(datetime.datetime.fromisoformat(text).isoweekday() % 7)


FUNCTIONS: dict[str, Function] = {
    "year": Function((DAY,), lambda a: number(step=1.0), part("year"), part_of("year"), (exp.Year,), copies=2),
    "month": Function((DAY,), lambda a: counted(1, 12), part("month"), part_of("month"), (exp.Month,), copies=2),
    "day": Function((DAY,), lambda a: counted(1, 31), part("day"), part_of("day"), (exp.Day,), copies=2),
    "weekday": Function((DAY,), lambda a: counted(0, 6), part("dow"), weekday, (exp.DayOfWeek, "weekday"), copies=2),
    "hour": Function((DAY,), lambda a: counted(0, 23), part("hour"), part_of("hour"), (exp.Hour,), copies=2),
    "start of year": Function((DAY,), lambda a: DATE, beginning("year"), copies=2),
    "start of month": Function((DAY,), lambda a: DATE, beginning("month"), copies=2),
    "start of day": Function((DAY,), lambda a: DATE, beginning("day"), copies=2),
}
