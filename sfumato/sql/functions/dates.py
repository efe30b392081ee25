"""Parts of dates. Infinite dates have none. Engines raise near the ends of the calendar, so dates are clamped."""

import datetime
import re
import zoneinfo
from collections.abc import Callable
from functools import cache

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import DATE, Domain, Kind, Scalar, number
from sfumato.sql.domains import text as text_domain
from sfumato.sql.functions.casts import as_time
from sfumato.sql.functions.costs import Argument, each
from sfumato.sql.functions.function import Function, Spelling, Sql, constant_text, of_type, paren
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


def emit_between(unit: str, function: str = "date_diff") -> Callable[[Sql, Sql], Sql]:
    """The number of ends of a unit from a to b, or of whole units (`date_sub`)."""

    def emit(a: Sql, b: Sql) -> Sql:
        (one, first), (other, second) = clamp_to_calendar(a), clamp_to_calendar(b)
        taken = exp.Anonymous(this=function, expressions=[exp.Literal.string(unit), first, second])
        both = exp.And(this=one, expression=other)
        return paren(exp.Case().when(both, exp.Cast(this=taken, to=of_type("DOUBLE"))).else_(exp.null()))

    return emit


def within_calendar(a: Sql, of: Callable[[Sql], Sql]) -> Sql:
    """An expression of a moment in a year from 1 to 9999; NULL for others."""
    within, near = clamp_to_calendar(a)
    return paren(exp.Case().when(within, of(near)).else_(exp.null()))


def emit_epoch(a: Sql) -> Sql:
    def seconds(near: Sql) -> Sql:
        return exp.Cast(this=exp.Anonymous(this="epoch", expressions=[near]), to=of_type("DOUBLE"))

    return within_calendar(a, seconds)


def emit_clamped_part(name: str) -> Callable[[Sql], Sql]:
    def part(near: Sql) -> Sql:
        taken = exp.Anonymous(this="date_part", expressions=[exp.Literal.string(name), near])
        return exp.Cast(this=taken, to=of_type("DOUBLE"))

    return lambda a: within_calendar(a, part)


def interval(months: Sql, microseconds: Sql) -> tuple[Sql, Sql]:
    whole, small = exp.Cast(this=months, to=of_type("INT")), exp.Cast(this=microseconds, to=of_type("BIGINT"))
    return exp.Anonymous(this="to_months", expressions=[whole]), exp.Anonymous(
        this="to_microseconds", expressions=[small]
    )


def emit_shift(a: Sql, months: Sql, microseconds: Sql) -> Sql:
    """A moment, and so many months and microseconds later."""

    def later(near: Sql) -> Sql:
        whole, small = interval(months, microseconds)
        return as_time(exp.Add(this=exp.Add(this=near, expression=whole), expression=small))

    return within_calendar(a, later)


def emit_bucket(a: Sql, months: Sql, microseconds: Sql, origin: Sql) -> Sql:
    """The beginning of the bucket of that width; buckets are counted from a moment."""

    def bucket(near: Sql) -> Sql:
        width = exp.Add(this=interval(months, microseconds)[0], expression=interval(months.copy(), microseconds)[1])
        return as_time(exp.Anonymous(this="time_bucket", expressions=[width, near, as_time(origin)]))

    return within_calendar(a, bucket)


def emit_zone(a: Sql, one: Sql, other: Sql) -> Sql:
    """The moment that clocks of a zone show as they show it in another one."""

    def shown(near: Sql) -> Sql:
        instant = exp.Anonymous(this="timezone", expressions=[one, near])
        return as_time(exp.Anonymous(this="timezone", expressions=[other, instant]))

    return within_calendar(a, shown)


def emit_format(a: Sql, form: Sql) -> Sql:
    return within_calendar(a, lambda near: exp.Anonymous(this="strftime", expressions=[near, form]))


# ---- of released values ---------------------------------------------------------------------------------------------


def moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def part_of(name: str) -> Callable[[str], Scalar]:
    return lambda text: float(getattr(moment(text), name))


def weekday(text: str) -> float:
    return float(moment(text).isoweekday() % 7)


def start_of(unit: str) -> Callable[[str], Scalar]:
    """The first moment of a unit, as keys are shown."""

    def found(text: str) -> Scalar:
        if unit in MICROSECONDS and unit not in ("week", "day"):
            width = datetime.timedelta(microseconds=MICROSECONDS[unit])
            return shown_moment(EPOCH + (moment(text) - EPOCH) // width * width)
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


BEGINNINGS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
MICROSECONDS = {"microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6,
                "day": 86400 * 10**6, "week": 7 * 86400 * 10**6}  # fmt: skip
EPOCH = datetime.datetime(1970, 1, 1)
MONDAY = datetime.datetime(2000, 1, 3)


def microseconds(text: str, origin: datetime.datetime = EPOCH) -> int:
    return (moment(text) - origin) // datetime.timedelta(microseconds=1)


def ends_between(unit: str) -> Callable[[str, str], Scalar]:
    """How many times a unit ends from a to b."""
    origin = MONDAY if unit == "week" else EPOCH

    def found(a: str, b: str) -> Scalar:
        one, other = (microseconds(text, origin) // MICROSECONDS[unit] for text in (a, b))
        return float(other - one)

    return found


def whole_months(a: str, b: str) -> Scalar:
    """Whole months from a to b: negative where b is earlier."""
    one, other = moment(a), moment(b)
    if one > other:
        return -float(whole_months(b, a) or 0)
    months = 12 * (other.year - one.year) + other.month - one.month
    return float(months - (later_in_month(one) > later_in_month(other)))


def later_in_month(one: datetime.datetime) -> tuple[int, datetime.time]:
    return one.day, one.time()


def shifted(text: str, months: float, more: float) -> str:
    """Add months, then microseconds: January 31 plus a month is the last day of February."""
    found = moment(text)
    year, month = divmod(found.year * 12 + found.month - 1 + int(months), 12)
    after = datetime.datetime(year + (month == 11), (month + 1) % 12 + 1, 1) - datetime.timedelta(days=1)
    found = found.replace(year=year, month=month + 1, day=min(found.day, after.day))
    return shown_moment(found + datetime.timedelta(microseconds=int(more)))


def shown_moment(found: datetime.datetime) -> str:
    return str(found).removesuffix(" 00:00:00")


def bucket_of(text: str, months: float, width: float, origin: str) -> str:
    if months:
        found, first = moment(text), moment(origin)
        gone = (found.year - first.year) * 12 + found.month - first.month
        return shifted(shown_moment(first), gone // int(months) * int(months), 0)
    gone = microseconds(text, moment(origin)) // int(width) * int(width)
    return shown_moment(moment(origin) + datetime.timedelta(microseconds=gone))


def in_zone(text: str, one: str, other: str) -> str:
    instant = moment(text).replace(tzinfo=zoneinfo.ZoneInfo(one))
    return shown_moment(instant.astimezone(zoneinfo.ZoneInfo(other)).replace(tzinfo=None))


def formatted(text: str, form: str) -> str:
    found = moment(text)
    return found.strftime(form.replace("%Y", f"{found.year:04d}"))


def date_part(name: str, low: int, high: int, after: Callable[[str], Scalar], *spelled: Spelling) -> Function:
    """A part of a date whose values are public keys."""
    return Function(
        (DAY,), lambda a: integer_keys(low, high), emit_part(name), after, spelled, copies=2, cost=each(200)
    )


def date_trunc(unit: str) -> Function:
    return Function((DAY,), lambda a: DATE, emit_trunc(unit), start_of(unit), copies=2, cost=each(200))


FORMAT_CODES = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "y": 2, "j": 3, "G": 4, "V": 2, "a": 3, "A": 9, "b": 3,
                "B": 9, "p": 2, "I": 2, "%": 1}  # fmt: skip # of STRFTIME, and how long they are


def format_length(form: str) -> float:
    """The most characters that a format gives, −1 if it is not allowed."""
    length, place = 0, 0
    while place < len(form):
        if form[place] != "%":
            length, place = length + 1, place + 1
            continue
        if form[place + 1 : place + 2] not in FORMAT_CODES or not form[place + 1 : place + 2]:
            return -1
        length, place = length + FORMAT_CODES[form[place + 1]], place + 2
    return length


def format_domain(a: Domain, form: Domain) -> Domain:
    listed = form.keys or ()
    return text_domain(max([format_length(one) if isinstance(one, str) else 0 for one in listed], default=200) + 8)


def check_format(a: Argument, form: Argument) -> None:
    known = constant_text(form)
    if known is None or len(known) > 100 or "%" not in known or format_length(known) < 0:
        raise QueryRefused(
            "dates are written as a format in quotes says.\n"
            f"  do:     use {', '.join('%' + one for one in FORMAT_CODES)}, or YEAR, MONTH, DATE_TRUNC"
        )


ZONE = re.compile(r"[A-Za-z_]+(/[A-Za-z0-9_+-]+)+|UTC|GMT")


@cache
def zones() -> frozenset[str]:
    """The names of time zones that are known here."""
    return frozenset(name for name in zoneinfo.available_timezones() if ZONE.fullmatch(name)) | {"UTC"}


def check_zones(a: Argument, *named: Argument) -> None:
    for one in named:
        name = constant_text(one)
        if name not in zones():
            raise QueryRefused(
                "a time zone is a name in quotes.\n"
                f"  found:  {(name or 'something computed')[:40]}\n"
                "  do:     write a name such as 'Europe/Berlin' or 'UTC'"
            )


def check_width(a: Argument, months: Argument, width: Argument, origin: Argument) -> None:
    if (getattr(months, "value", 0) or 0) <= 0 and (getattr(width, "value", 0) or 0) <= 0:
        raise QueryRefused("a time bucket is wider than nothing.\n  do:     ask TIME_BUCKET(INTERVAL 15 MINUTE, x)")


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
    **{f"start of {unit}": date_trunc(unit) for unit in BEGINNINGS},
    "days between": Function(
        (DAY, DAY),
        lambda a, b: number(step=1.0),
        emit_days_between,
        lambda a, b: float((moment(b).date() - moment(a).date()).days),
        copies=3,
        cost=each(200),
    ),
    "second": date_part("second", 0, 59, part_of("second"), exp.Second),
    "iso year": Function(
        (DAY,),
        lambda a: number(step=1.0),
        emit_clamped_part("isoyear"),
        lambda a: float(moment(a).isocalendar().year),
        ("isoyear",),
        copies=2,
        cost=each(200),
    ),
    "epoch": Function(
        (DAY,),
        lambda a: number(),
        emit_epoch,
        lambda a: microseconds(a) / 1e6,
        (exp.TimeToUnix,),
        copies=2,
        cost=each(200),
    ),
    **{
        f"{unit}s between": Function(
            (DAY, DAY), lambda a, b: number(step=1.0), emit_between(unit), ends_between(unit), copies=3, cost=each(200)
        )
        for unit in MICROSECONDS
        if unit != "day"
    },
    "whole months between": Function(
        (DAY, DAY),
        lambda a, b: number(step=1.0),
        emit_between("month", "date_sub"),
        whole_months,
        copies=3,
        cost=each(300),
    ),
    "shifted date": Function(
        (DAY, Kind.NUMBER, Kind.NUMBER),
        lambda a, b, c: DATE,
        emit_shift,
        shifted,
        copies=2,
        cost=each(300),
        constants=((1, 0), (-12, 0), (0, 86400e6), (12000, -1)),
    ),
    "time bucket": Function(
        (DAY, Kind.NUMBER, Kind.NUMBER, Kind.TEXT),
        lambda *_: DATE,
        emit_bucket,
        bucket_of,
        copies=2,
        cost=each(300),
        check=check_width,
        constants=((0, 900e6, "2000-01-03 00:00:00"), (3, 0, "2000-01-01 00:00:00")),
    ),
    "time in zone": Function(
        (DAY, Kind.TEXT, Kind.TEXT),
        lambda *_: DATE,
        emit_zone,
        in_zone,
        copies=2,
        cost=each(5000),
        check=check_zones,
        constants=(("UTC", "Europe/Berlin"), ("America/New_York", "UTC")),
    ),
    "formatted date": Function(
        (DAY, Kind.TEXT),
        format_domain,
        emit_format,
        formatted,
        copies=2,
        cost=each(2000),
        check=check_format,
        constants=(("%Y-%m-%d %H:%M:%S",), ("%A %d %B %G-W%V",)),
    ),
}
