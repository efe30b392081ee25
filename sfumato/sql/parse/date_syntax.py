"""Syntax of dates: EXTRACT, DATE_TRUNC, formats, intervals, differences."""

import datetime
from collections.abc import Callable

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.functions.dates import BEGINNINGS, MICROSECONDS
from sfumato.sql.functions.function import Spelling
from sfumato.sql.parse.ast_guard import bounded_integer, node_text, require_known_parts
from sfumato.sql.simplify import call

Go = Callable[..., list[Expression]]
PARTS = {"year": "year", "quarter": "quarter", "month": "month", "week": "week", "day": "day", "hour": "hour",
         "minute": "minute", "dow": "weekday", "dayofweek": "weekday", "isodow": "iso weekday",
         "doy": "day of year", "dayofyear": "day of year"}  # fmt: skip
PARTS |= {"second": "second", "isoyear": "iso year", "epoch": "epoch", "days": "day", "hours": "hour", "years": "year",
          "months": "month", "minutes": "minute", "seconds": "second"}  # fmt: skip
COMPARED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ, exp.Between)
LONGEST_SHIFT = 1000 * 12, 1000 * 366 * MICROSECONDS["day"]  # months, microseconds
FORMATS: dict[type[exp.Expression], dict[str, tuple[str, int]]] = {  # each function has format codes of its own
    exp.TimeToStr: {"%Y": ("year", 4), "%Y-%m": ("month", 7), "%Y-%m-%d": ("day", 10)},
    exp.ToChar: {"YYYY": ("year", 4), "YYYY-MM": ("month", 7), "YYYY-MM-DD": ("day", 10)},
}
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip


def extract(node: exp.Expression, go: Go) -> Expression:
    name = node.this.name.lower()
    inner = node.expression.unnest() if isinstance(node.expression, exp.Expression) else node.expression
    if isinstance(inner, exp.Expression) and is_age(inner):
        return part_of_age(name, inner, go)
    if name == "epoch" and (found := duration(inner, go)) is not None:
        return call("/", found, Constant(1e6))
    if name in ("decade", "century"):
        years = call("/", call("year", *go(node.expression)), Constant(10 if name == "decade" else 100))
        return call("floor" if name == "decade" else "ceil", years)
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
    if not isinstance(asked, exp.Literal) or not asked.is_string:
        raise QueryRefused(f"{node_text(node)}: a format is a text in quotes.")
    if asked.this not in known:
        form = asked.this if isinstance(node, exp.TimeToStr) else strftime_format(asked.this)
        return call("formatted date", *go(node.this), Constant(form))
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
        case "quarter":
            quarters = [call("quarter", one) for one in (later, earlier)]
            return call("+", call("*", Constant(4), call("-", *years)), call("-", *quarters))
        case _ if unit.removesuffix("s") in MICROSECONDS:
            return call(f"{unit.removesuffix('s')}s between", earlier, later)
        case "month":
            months = [call("month", one) for one in (later, earlier)]
            return call("+", call("*", Constant(12), call("-", *years)), call("-", *months))
    raise QueryRefused(
        f"DATE_DIFF in {unit[:20]} is not allowed.\n  do:     use {', '.join(MICROSECONDS)}, month, quarter or year"
    )


def arithmetic(name: str) -> Callable[[exp.Expression, Go], Expression]:
    """+ and −: of numbers; dates that stand in the question may be shifted, and dates subtracted."""

    def read(node: exp.Expression, go: Go) -> Expression:
        sign = 1 if name == "+" else -1
        if is_interval(node.expression):
            return shift_date(go(node.this)[0], node.expression, sign)
        if name == "+" and is_interval(node.this):
            return shift_date(go(node.expression)[0], node.this, sign)
        parts = go(node.this, node.expression)
        if len(parts) == 2 and parts[0].domain.kind is Kind.DATE:
            match parts[1]:
                case Constant(float() | int() as days) if not isinstance(days, bool) and days == int(days):
                    return shift_by(parts[0], 0, sign * int(days) * MICROSECONDS["day"])
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


def is_interval(node: object) -> bool:
    return isinstance(node, exp.Interval | exp.ToDays)


def read_interval(node: exp.Expression) -> tuple[int, int]:
    """(months, microseconds) of an INTERVAL that stands in the question."""
    require_known_parts(node)
    inner = node.this
    if isinstance(node, exp.ToDays):
        words = [inner.name if isinstance(inner, exp.Literal) else "", "day"]
    else:
        unit = node.args["unit"].name if node.args.get("unit") else ""
        words = [*(inner.name.split() if isinstance(inner, exp.Literal) else [""]), *([unit] if unit else [])]
    months = micro = 0
    for many, unit in zip(words[::2], words[1::2], strict=False):
        name = unit.lower().removesuffix("s")
        count = many.removeprefix("-")
        if not count.isdecimal() or name not in (*MICROSECONDS, "month", "quarter", "year"):
            raise interval_refusal()
        value = bounded_integer(exp.Literal.number(count), "INTERVAL", 0, 10**9) * (-1 if many != count else 1)
        months += value * {"month": 1, "quarter": 3, "year": 12}.get(name, 0)
        micro += value * MICROSECONDS.get(name, 0)
    if len(words) % 2 or not words or abs(months) > LONGEST_SHIFT[0] or abs(micro) > LONGEST_SHIFT[1]:
        raise interval_refusal()
    return months, micro


def interval_refusal() -> QueryRefused:
    return QueryRefused(
        "INTERVAL takes whole numbers of microseconds to years, up to 1,000 years.\n"
        "  do:     write INTERVAL 30 MINUTE, INTERVAL '1 day 2 hours'"
    )


def shift_date(date: Expression, interval: exp.Expression, sign: int) -> Expression:
    """A date plus an interval. Of a date literal, a result outside of the calendar is refused here, where it reveals
    nothing; of a column it is computed for years 1 to 9999, and NULL for others."""
    months, micro = read_interval(interval)
    return shift_by(date, sign * months, sign * micro)


def shift_by(date: Expression, months: int, micro: int) -> Expression:
    match date:
        case Call("timestamp", (Constant(str() as text),)):
            found = text
            for count, unit in ((months, "month"), (micro, "microsecond")):
                found = add_interval(found, count, unit) if count else found
            return call("timestamp", Constant(found))
    return call("shifted date", date, Constant(months), Constant(micro))


# ---- durations: the difference of two moments, in microseconds -------------------------------------------------------


def is_age(node: object) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "age"


def duration(node: exp.Expr | None, go: Go) -> Expression | None:
    """How many microseconds there are between two moments, if that is what a node is."""
    inner = node.unnest() if isinstance(node, exp.Expression) else None
    if isinstance(inner, exp.Sub) and not is_interval(inner.expression):
        parts = go(inner.this, inner.expression)
    elif is_age(inner) and isinstance(inner, exp.Expression) and len(inner.expressions) == 2:
        parts = go(*inner.expressions)
    else:
        return None
    if not all(one.domain.kind is Kind.DATE or one == Constant(None) for one in parts):
        return None
    return call("microseconds between", parts[1], parts[0])


def compares_durations(node: exp.Expression) -> bool:
    """Is it a comparison with an INTERVAL?"""
    parts = (node.this, node.expression, node.args.get("low"), node.args.get("high"))
    return isinstance(node, COMPARED) and any(
        isinstance(one, exp.Expression) and is_interval(one.unnest()) for one in parts
    )


def compare_durations(node: exp.Expression, go: Go) -> Expression:
    """a - b > INTERVAL 1 HOUR."""

    def read(one: exp.Expr | None) -> Expression:
        inner = one.unnest() if isinstance(one, exp.Expression) else None
        if isinstance(inner, exp.Expression) and is_interval(inner):
            months, micro = read_interval(inner)
            if months or abs(micro) > 28 * MICROSECONDS["day"]:
                raise QueryRefused(
                    f"{node_text(node)}: how long a month is depends on the month.\n"
                    "  do:     compare with at most 28 days, or ask DATE_DIFF('month', a, b)"
                )
            return Constant(micro)
        found = duration(inner, go)
        if found is None:
            raise QueryRefused(f"{node_text(node)}: an INTERVAL is compared with the difference of two dates.")
        return found

    require_known_parts(node)
    if isinstance(node, exp.Between):
        value, low, high = (read(one) for one in (node.this, node.args["low"], node.args["high"]))
        return call("and", call("<=", low, value), call("<=", value, high))
    one, other = read(node.this), read(node.expression)
    match node:
        case exp.LT():
            return call("<", one, other)
        case exp.LTE():
            return call("<=", one, other)
        case exp.GT():
            return call("<", other, one)
        case exp.GTE():
            return call("<=", other, one)
        case exp.EQ():
            return call("=", one, other)
    return call("not", call("=", one, other))


def part_of_age(name: str, node: exp.Expression, go: Go) -> Expression:
    """EXTRACT(YEAR FROM AGE(b, a)): whole years from a to b; MONTH is what is left of them, in whole months."""
    if len(node.expressions) != 2:
        raise QueryRefused("AGE of one date would refer to today.\n  do:     ask AGE(DATE '2024-03-01', x)")
    later, earlier = go(*node.expressions)
    months = call("case", call("<", later, earlier), call("negative", months_of_age(later, earlier)),
                  months_of_age(earlier, later))  # fmt: skip
    years = trunc_of(call("/", months, Constant(12)))
    if name == "year":
        return years
    if name == "month":
        return call("-", months, call("*", Constant(12), years))
    raise QueryRefused(
        f"EXTRACT({name[:20]} FROM AGE(…)) is not allowed.\n  do:     use YEAR or MONTH, or DATE_DIFF('day', a, b)"
    )


def months_of_age(earlier: Expression, later: Expression) -> Expression:
    """Whole months by day and time of the month: from February 29 to February 28 of the next year there are 11."""

    def within(one: Expression) -> Expression:
        """How late in its month a moment is, in microseconds."""
        return call("microseconds between", call("start of month", one), one)

    years, months = (call("-", call(part, later), call(part, earlier)) for part in ("year", "month"))
    early = call("case", call("<", within(later), within(earlier)), Constant(1), Constant(0))
    return call("-", call("+", call("*", Constant(12), years), months), early)


def trunc_of(value: Expression) -> Expression:
    return call("case", call("<", value, Constant(0)), call("ceil", value), call("floor", value))


def refuse_age(node: exp.Expression, go: Go) -> Expression:
    raise QueryRefused(
        f"{node_text(node)}: an age is compared with an INTERVAL, or taken apart.\n"
        "  do:     ask DATE_DIFF('day', b, a), EXTRACT(YEAR FROM AGE(a, b)), or AGE(a, b) > INTERVAL 1 DAY"
    )


def whole_units(node: exp.Expression, go: Go) -> Expression:
    """DATE_SUB('month', a, b): whole units from a to b."""
    if len(node.expressions) == 2:
        return interval_of("-")(node, go)
    if len(node.expressions) != 3:
        raise QueryRefused(f"{node_text(node)}: takes a unit and two dates.\n  do:     ask DATE_SUB('month', a, b)")
    unit = node.expressions[0].name.lower().removesuffix("s")
    earlier, later = go(*node.expressions[1:3])
    if unit in MICROSECONDS:
        return trunc_of(call("/", call("microseconds between", earlier, later), Constant(MICROSECONDS[unit])))
    months = call("whole months between", earlier, later)
    if unit not in ("month", "quarter", "year"):
        raise QueryRefused(f"DATE_SUB in {unit[:20]} is not allowed.")
    return months if unit == "month" else trunc_of(call("/", months, Constant(3 if unit == "quarter" else 12)))


# ---- buckets and time zones ------------------------------------------------------------------------------------------


def time_bucket(node: exp.Expression, go: Go) -> Expression:
    """TIME_BUCKET(INTERVAL 15 MINUTE, x), and DATE_BIN, from a moment that may be named."""
    width, of, origin = node.this, node.expression, node.args.get("unit") or node.args.get("origin")
    if isinstance(width, exp.Literal) and width.is_string:
        width = exp.Interval(this=width.copy())
    if not is_interval(width):
        raise QueryRefused(
            f"{node_text(node)}: the width is an INTERVAL.\n  do:     ask TIME_BUCKET(INTERVAL 1 HOUR, x)"
        )
    months, micro = read_interval(width)
    start = "2000-01-01 00:00:00" if months else "2000-01-03 00:00:00"
    if origin is not None:
        match go(origin):
            case [Call("timestamp", (Constant(str() as start),))]:
                pass
            case _:
                raise QueryRefused(f"{node_text(node)}: buckets are counted from a date that stands in the question.")
    if months and micro:
        raise QueryRefused(f"{node_text(node)}: the width is in months, or in weeks and shorter units.")
    return call("time bucket", *go(of), Constant(months), Constant(micro), Constant(start))


def at_time_zone(node: exp.Expression, go: Go) -> Expression:
    """x AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin': what clocks there show; TIMEZONE(…) likewise."""

    def parts(one: exp.Expr | None) -> tuple[exp.Expr | None, exp.Expr | None] | None:
        inner = one.unnest() if isinstance(one, exp.Expression) else None
        if isinstance(inner, exp.AtTimeZone):
            return inner.this, inner.args.get("zone")
        if isinstance(inner, exp.Anonymous) and inner.name.lower() == "timezone" and len(inner.expressions) == 2:
            return inner.expressions[1], inner.expressions[0]
        return None

    outer = parts(node)
    inner = parts(outer[0]) if outer is not None else None
    if outer is None or inner is None:
        raise QueryRefused(
            f"{node_text(node)}: dates have no time zone here, so both are named.\n"
            "  do:     ask x AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' for what clocks in Berlin show"
        )
    (of,), (one,), (other,) = go(inner[0]), go(inner[1]), go(outer[1])
    return call("time in zone", of, one, other)


def last_day(node: exp.Expression, go: Go) -> Expression:
    return shift_by(call("start of month", *go(node.this)), 1, -MICROSECONDS["day"])


TO_CHAR = {"YYYY": "%Y", "IYYY": "%G", "HH24": "%H", "DDD": "%j", "Mon": "%b", "YY": "%y", "MM": "%m", "DD": "%d",
           "MI": "%M", "SS": "%S", "Dy": "%a", "IW": "%V", "FMMonth": "%B", "FMDay": "%A"}  # fmt: skip


def strftime_format(form: str) -> str:
    """A format of TO_CHAR as one of STRFTIME; QueryRefused if it has none."""
    found, place = "", 0
    while place < len(form):
        code = next((one for one in sorted(TO_CHAR, key=len, reverse=True) if form.startswith(one, place)), None)
        if code is not None:
            found, place = found + TO_CHAR[code], place + len(code)
        elif form[place] == '"' and '"' in form[place + 1 :]:
            end = form.index('"', place + 1)
            found, place = found + form[place + 1 : end].replace("%", "%%"), end + 1
        elif form[place].isalnum():
            raise QueryRefused(f"dates are written as formats of TO_CHAR say.\n  do:     use {', '.join(TO_CHAR)}")
        else:
            found, place = found + form[place].replace("%", "%%"), place + 1
    return found


def add_interval(text: str, count: int, unit: str) -> str:
    """Add an interval as SQL does: January 31 plus a month is the last day of February."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise QueryRefused("this is no date, so nothing is added to it.\n  do:     write DATE '2024-03-01'") from None
    try:
        if unit == "microsecond":
            return str(found + datetime.timedelta(microseconds=count))
        months = found.year * 12 + found.month - 1 + count
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
    exp.TimeToUnix: lambda node, go: extract(exp.Extract(this=exp.var("EPOCH"), expression=node.this), go),
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
    "date_sub": whole_units,
    "datesub": whole_units,
    exp.DateBin: time_bucket,
    exp.AtTimeZone: at_time_zone,
    "timezone": at_time_zone,
    "age": refuse_age,
    exp.LastDay: last_day,
    "date_add": interval_of("+"),
    exp.CurrentDate: refuse_today,
    exp.CurrentTimestamp: refuse_today,
    "now": refuse_today,
    "today": refuse_today,
}
