"""Syntax of dates: EXTRACT, DATE_TRUNC, formats, intervals, differences."""

import datetime
from collections.abc import Callable

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.functions.function import Spelling
from sfumato.sql.parse.ast_guard import bounded_integer, node_text, require_known_parts
from sfumato.sql.simplify import call

Go = Callable[..., list[Expression]]
PARTS = {"year": "year", "quarter": "quarter", "month": "month", "week": "week", "day": "day", "hour": "hour",
         "minute": "minute", "dow": "weekday", "dayofweek": "weekday", "isodow": "iso weekday",
         "doy": "day of year", "dayofyear": "day of year"}  # fmt: skip
BEGINNINGS = ("year", "quarter", "month", "week", "day")
FORMATS: dict[type[exp.Expression], dict[str, tuple[str, int]]] = {  # each function has format codes of its own
    exp.TimeToStr: {"%Y": ("year", 4), "%Y-%m": ("month", 7), "%Y-%m-%d": ("day", 10)},
    exp.ToChar: {"YYYY": ("year", 4), "YYYY-MM": ("month", 7), "YYYY-MM-DD": ("day", 10)},
}
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip


def extract(node: exp.Expression, go: Go) -> Expression:
    name = node.this.name.lower()
    if name not in PARTS:
        raise QueryRefused(f"EXTRACT({name[:20]}) is not allowed.\n  do:     use {', '.join(PARTS)}")
    return call(PARTS[name], *go(node.expression))


def date_part(node: exp.Expression, go: Go) -> Expression:
    """DATE_PART('year', x): EXTRACT in other words."""
    if len(node.expressions) != 2:
        raise QueryRefused("DATE_PART takes the name of a part and a date.\n  do:     ask DATE_PART('year', x)")
    return extract(exp.Extract(this=node.expressions[0], expression=node.expressions[1]), go)


def date_trunc(node: exp.Expression, go: Go) -> Expression:
    unit = node.args["unit"].name.lower()
    if unit not in BEGINNINGS:
        raise QueryRefused(f"DATE_TRUNC to {unit[:20]} is not allowed.\n  do:     use {', '.join(BEGINNINGS)}")
    return call(f"start of {unit}", *go(node.this))


def date_format(node: exp.Expression, go: Go) -> Expression:
    """STRFTIME, TO_CHAR: a prefix of the date's text, such as '2024-03'."""
    asked, known = node.args.get("format"), FORMATS[type(node)]
    if not isinstance(asked, exp.Literal) or asked.this not in known:
        raise QueryRefused(
            f"{node_text(node)}: dates are written as {', '.join(map(repr, known))}.\n"
            "  do:     use one of these, or YEAR, MONTH, DATE_TRUNC"
        )
    unit, length = known[asked.this]
    return call("substr", call("text", call(f"start of {unit}", *go(node.this))), Constant(1), Constant(length))


def part_name(name: str, words: tuple[str, ...], first: int) -> Callable[[exp.Expression, Go], Expression]:
    """DAYNAME, MONTHNAME: the name of a part, which is a public key."""

    def read(node: exp.Expression, go: Go) -> Expression:
        place = call(name, *go(node.this))
        pairs = [
            part for i, word in enumerate(words, first) for part in (call("=", place, Constant(i)), Constant(word))
        ]
        return call("case", *pairs, Constant(None))

    return read


def difference(node: exp.Expression, go: Go) -> Expression:
    """DATE_DIFF('day', a, b): how many midnights lie between; months and years likewise."""
    later, earlier = go(node.this, node.expression)
    unit = node.args["unit"].name.lower() if node.args.get("unit") else "day"
    years = [call("year", one) for one in (later, earlier)]
    match unit:
        case "day":
            return call("days between", earlier, later)
        case "year":
            return call("-", *years)
        case "month":
            months = [call("month", one) for one in (later, earlier)]
            return call("+", call("*", Constant(12), call("-", *years)), call("-", *months))
    raise QueryRefused(f"DATE_DIFF in {unit[:20]} is not allowed.\n  do:     use day, month or year")


def arithmetic(name: str) -> Callable[[exp.Expression, Go], Expression]:
    """+ and −: of numbers; dates that stand in the question may be shifted, and dates subtracted."""

    def read(node: exp.Expression, go: Go) -> Expression:
        if isinstance(node.expression, exp.Interval):
            return shift_date(go(node.this)[0], node.expression, 1 if name == "+" else -1)
        parts = go(node.this, node.expression)
        if name == "-" and len(parts) == 2 and all(one.domain.kind is Kind.DATE for one in parts):
            return call("days between", parts[1], parts[0])
        return call(name, *parts)

    return read


def interval_of(name: str) -> Callable[[exp.Expression, Go], Expression]:
    """DATE_SUB(x, INTERVAL 1 DAY), which the parser does not know."""

    def read(node: exp.Expression, go: Go) -> Expression:
        if len(node.expressions) != 2:
            raise QueryRefused(f"{node_text(node)}: takes a date and an INTERVAL.")
        return arithmetic(name)(exp.Paren(this=node.expressions[0], expression=node.expressions[1]), go)

    return read


def shift_date(date: Expression, interval: exp.Interval, sign: int) -> Expression:
    """A date literal plus an interval: a result outside of the calendar is refused here, where it reveals nothing."""
    require_known_parts(interval)
    match date:
        case Call("timestamp", (Constant(str() as text),)):
            many = interval.this.name if isinstance(interval.this, exp.Literal) else ""
            count = (
                sign * bounded_integer(exp.Literal.number(many), "INTERVAL", 0, 100_000) if many.isdecimal() else None
            )
            unit = interval.args["unit"].name.lower().removesuffix("s") if interval.args.get("unit") else ""
            if count is not None and unit in ("minute", "hour", "day", "week", "month", "year"):
                return call("timestamp", Constant(add_interval(text, count, unit)))
            raise QueryRefused("INTERVAL takes a whole number of minutes, hours, days, weeks, months or years.")
    raise QueryRefused(
        "INTERVAL is added to a date that stands in the question: added to a column, it could leave the calendar.\n"
        "  do:     write x >= DATE '2024-03-31' - INTERVAL 30 DAY, or DATE_DIFF('day', DATE '2024-03-01', x)"
    )


def add_interval(text: str, count: int, unit: str) -> str:
    """Add an interval as SQL does: January 31 plus a month is the last day of February."""
    found = datetime.datetime.fromisoformat(text)
    try:
        if unit not in ("month", "year"):
            return str(found + datetime.timedelta(**{f"{unit}s": count}))
        months = found.year * 12 + found.month - 1 + count * (12 if unit == "year" else 1)
        year, month = divmod(months, 12)
        after = datetime.datetime(year + (month == 11), (month + 1) % 12 + 1, 1) - datetime.timedelta(days=1)
        return str(found.replace(year=year, month=month + 1, day=min(found.day, after.day)))
    except (OverflowError, ValueError):
        raise QueryRefused("this INTERVAL leads out of the calendar.") from None


def refuse_today(node: exp.Expression, go: Go) -> Expression:
    raise QueryRefused(
        "a question means the same whenever it is asked, so it cannot refer to today.\n"
        "  do:     write the day: DATE '2024-03-01'"
    )


SPECIAL: dict[Spelling, Callable[[exp.Expression, Go], Expression]] = {
    exp.Extract: extract,
    "date_part": date_part,
    "datepart": date_part,
    exp.TimestampTrunc: date_trunc,
    exp.DateTrunc: date_trunc,
    exp.TimeToStr: date_format,
    exp.ToChar: date_format,
    exp.Dayname: part_name("weekday", DAYS, 0),
    exp.Monthname: part_name("month", MONTHS, 1),
    exp.DateDiff: difference,
    exp.Add: arithmetic("+"),
    exp.DateAdd: arithmetic("+"),
    exp.Sub: arithmetic("-"),
    exp.DateSub: arithmetic("-"),
    "date_sub": interval_of("-"),
    "date_add": interval_of("+"),
    exp.CurrentDate: refuse_today,
    exp.CurrentTimestamp: refuse_today,
    "now": refuse_today,
    "today": refuse_today,
}
