"""Parts of dates. Infinite dates have none. Engines raise near the ends of the calendar, so dates are clamped."""

import datetime
from collections.abc import Callable

from sqlglot import exp

from sfumato.sql.domains import DATE, Kind, Scalar, number
from sfumato.sql.functions.casts import as_time
from sfumato.sql.functions.costs import each
from sfumato.sql.functions.function import Function, Spelling, Sql, of_type, paren
from sfumato.sql.functions.result_domains import integer_keys

DAY = Kind.DATE


def emit_part(name: str) -> Callable[[Sql], Sql]:
    """A part of a date; infinite dates have none."""

    def emit(a: Sql) -> Sql:
        finite = exp.func("ISFINITE", a)
        taken = exp.Anonymous(this="date_part", expressions=[exp.Literal.string(name), a.copy()])
        return paren(exp.Case().when(finite, exp.Cast(this=taken, to=of_type("DOUBLE"))).else_(exp.null()))

    return emit


def emit_trunc(unit: str) -> Callable[[Sql], Sql]:
    """DATE_TRUNC: the first moment of a year, quarter, month, week or day, for years 1 to 9999. Near the ends of the
    calendar an engine raises, so dates are clamped first: it may evaluate branches that CASE does not choose."""

    def emit(a: Sql) -> Sql:
        within, near = clamp_to_calendar(a)
        taken = exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(unit), near])
        return paren(exp.Case().when(within, as_time(taken)).else_(exp.null()))

    return emit


def clamp_to_calendar(a: Sql) -> tuple[Sql, Sql]:
    """(Is it in a year from 1 to 9999? The moment clamped to these years.)"""
    first, last = (as_time(exp.Literal.string(one)) for one in ("0001-01-01", "9999-12-31 23:59:59.999999"))
    near = exp.func("LEAST", exp.func("GREATEST", a.copy(), first.copy()), last.copy())
    return exp.Between(this=paren(a), low=first, high=last), near  # type: ignore[return-value]


def emit_week(a: Sql) -> Sql:
    """The week of the year, by ISO 8601; clamped, as an engine raises at the ends of the calendar."""
    within, near = clamp_to_calendar(a)
    taken = exp.Anonymous(this="date_part", expressions=[exp.Literal.string("week"), near])
    return paren(exp.Case().when(within, exp.Cast(this=taken, to=of_type("DOUBLE"))).else_(exp.null()))


def emit_days_between(a: Sql, b: Sql) -> Sql:
    """The number of midnights from a to b."""
    (one, first), (other, second) = clamp_to_calendar(a), clamp_to_calendar(b)
    taken = exp.Anonymous(this="date_diff", expressions=[exp.Literal.string("day"), first, second])
    both = exp.And(this=one, expression=other)
    return paren(exp.Case().when(both, exp.Cast(this=taken, to=of_type("DOUBLE"))).else_(exp.null()))


# ---- of released values ---------------------------------------------------------------------------------------------


def moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def part_of(name: str) -> Callable[[str], Scalar]:
    return lambda text: float(getattr(moment(text), name))


def weekday(text: str) -> float:
    return float(moment(text).isoweekday() % 7)


def start_of(unit: str) -> Callable[[str], Scalar]:
    """The first day of a unit, as keys are shown."""

    def found(text: str) -> Scalar:
        day = moment(text).date()
        match unit:
            case "year":
                day = day.replace(month=1, day=1)
            case "quarter":
                day = day.replace(month=day.month - (day.month - 1) % 3, day=1)
            case "month":
                day = day.replace(day=1)
            case "week":
                day -= datetime.timedelta(days=day.weekday())
        return str(day)

    return found


def date_part(name: str, low: int, high: int, after: Callable[[str], Scalar], *spelled: Spelling) -> Function:
    """A part of a date whose values are public keys."""
    return Function(
        (DAY,), lambda a: integer_keys(low, high), emit_part(name), after, spelled, copies=2, cost=each(200)
    )


def date_trunc(unit: str) -> Function:
    return Function((DAY,), lambda a: DATE, emit_trunc(unit), start_of(unit), copies=2, cost=each(200))


FUNCTIONS: dict[str, Function] = {
    "year": Function(
        (DAY,), lambda a: number(step=1.0), emit_part("year"), part_of("year"), (exp.Year,), copies=2, cost=each(200)
    ),
    "quarter": date_part("quarter", 1, 4, lambda a: float((moment(a).month + 2) // 3), exp.Quarter),
    "month": date_part("month", 1, 12, part_of("month"), exp.Month),
    "week": Function(
        (DAY,),
        lambda a: integer_keys(1, 53),
        emit_week,
        lambda a: float(moment(a).isocalendar().week),
        (exp.Week, exp.WeekOfYear),
        copies=2,
        cost=each(200),
    ),
    "day": date_part("day", 1, 31, part_of("day"), exp.Day, exp.DayOfMonth),
    "day of year": date_part("doy", 1, 366, lambda a: float(moment(a).timetuple().tm_yday), exp.DayOfYear),
    "weekday": date_part("dow", 0, 6, weekday, exp.DayOfWeek, "weekday"),
    "iso weekday": date_part("isodow", 1, 7, lambda a: float(moment(a).isoweekday()), exp.DayOfWeekIso),
    "hour": date_part("hour", 0, 23, part_of("hour"), exp.Hour),
    "minute": date_part("minute", 0, 59, part_of("minute"), exp.Minute),
    **{f"start of {unit}": date_trunc(unit) for unit in ("year", "quarter", "month", "week", "day")},
    "days between": Function(
        (DAY, DAY),
        lambda a, b: number(step=1.0),
        emit_days_between,
        lambda a, b: float((moment(b).date() - moment(a).date()).days),
        copies=3,
        cost=each(200),
    ),
}
