"""Dates and times on Spark, which has no infinite ones: the two ends of its range stand for them, as in Parquet files.

DuckDB writes an infinite timestamp as the last, or the first but one, number of microseconds that fits 64 bits, and an
infinite date likewise in days. Spark reads these as finite values. They stay what they are here, since they are above
and below all others; what is computed of them, and their texts, say that they are infinite.
"""

from collections.abc import Callable

from sqlglot import exp

from sfumato.sql.reserved_names import ours

MOMENT = "TIMESTAMP_NTZ"
V = ours("v")  # what a lambda calls a value
W = ours("w")
ENDLESS, BEGINLESS = (f"CAST(TIMESTAMP_MICROS({sign}9223372036854775807L) AS {MOMENT})" for sign in ("", "-"))
FIRST, LAST = (f"CAST('{end}' AS {MOMENT})" for end in ("-290308-12-22", "+294247-01-10 04:00:54.775806"))
LAST_DAY, FIRST_DAY = "DATE '+294247-01-09'", "DATE '-290308-12-22'"
ENDLESS_DAY, BEGINLESS_DAY = (f"DATE_FROM_UNIX_DATE({sign}2147483647)" for sign in ("", "-"))
ENDLESS_WORDS = ("inf", "infinity", "+5881580-07-11")  # also as Spark writes the day
BEGINLESS_WORDS = ("-inf", "-infinity", "-5877641-06-24")
WRITTEN = (
    "^([+-]?)([0-9]{1,6})-([0-9]{1,2})-([0-9]{1,2})( [(]BC[)])?"
    "((T| +)([0-9]{1,2}):([0-9]{1,2})(:([0-9]{1,2})([.]([0-9]{0,6})[0-9]*)?)?(Z|[+-][0-9:]{2,6})?)?( BC)?$"
)
PARTS = {"year": f"YEAR({V})", "month": f"MONTH({V})", "day": f"DAY({V})", "hour": f"HOUR({V})",
         "weekday": f"DAYOFWEEK({V}) - 1", "iso weekday": f"WEEKDAY({V}) + 1", "quarter": f"QUARTER({V})",
         "day of year": f"DAYOFYEAR({V})", "minute": f"MINUTE({V})"}  # fmt: skip
UNITS = ("year", "quarter", "month", "week", "day")  # of DATE_TRUNC
ORDINARY = tuple(f"CAST('{end}' AS {MOMENT})" for end in ("0001-01-01", "9999-12-31 23:59:59.999999"))


def let(body: str, value: str, name: str = V) -> str:
    """The body, in which a name stands for the value."""
    return f"ELEMENT_AT(TRANSFORM(ARRAY({value}), {name} -> {body}), 1)"


def quote(value: str) -> str:
    return exp.Literal.string(value).sql("spark")


def is_finite(name: str) -> str:
    return f"{name} BETWEEN {FIRST} AND {LAST}"


# ---- from columns ---------------------------------------------------------------------------------------------------


def within_calendar(a: str) -> str:
    """A moment; none if other engines cannot hold it."""
    return let(f"CASE WHEN {is_finite(V)} OR {V} IN ({ENDLESS}, {BEGINLESS}) THEN {V} END", a)


def moment_of_date(a: str) -> str:
    """Its midnight; a day beyond the range of moments would raise."""
    ends = f"WHEN {V} = {ENDLESS_DAY} THEN {ENDLESS} WHEN {V} = {BEGINLESS_DAY} THEN {BEGINLESS}"
    return let(f"CASE WHEN {V} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN CAST({V} AS {MOMENT}) {ends} END", a)


# ---- from texts -----------------------------------------------------------------------------------------------------


def part(group: int, width: int) -> str:
    """A part of a written moment, at least so wide."""
    found = f"REGEXP_EXTRACT({V}, {quote(WRITTEN)}, {group})"
    return f"LPAD({found}, GREATEST({width}, LENGTH({found})), '0')"


def year_text() -> str:
    """The year as Spark spells it; before Christ it is one less, as there is a year 0."""
    sign, year = (f"REGEXP_EXTRACT({V}, {quote(WRITTEN)}, {group})" for group in (1, 2))
    earlier = f"CAST(TRY_CAST({year} AS INT) - 1 AS STRING)"
    padded = f"LPAD({earlier}, GREATEST(4, LENGTH({earlier})), '0')"
    before = f"REGEXP_EXTRACT({V}, {quote(WRITTEN)}, 5) <> '' OR REGEXP_EXTRACT({V}, {quote(WRITTEN)}, 15) <> ''"
    return f"CASE WHEN {before} THEN CONCAT('-', {padded}) ELSE CONCAT({sign}, {part(2, 4)}) END"


DAY = f"CONCAT({year_text()}, '-', {part(3, 2)}, '-', {part(4, 2)})"
TIME = f"CONCAT({part(8, 2)}, ':', {part(9, 2)}, ':', {part(11, 2)}, '.', {part(13, 1)})"
MIDNIGHT = f"{part(8, 2)} = '24' AND REGEXP_REPLACE({TIME}, '[0:.]', '') = '24'"  # 24:00 is the next day


def read_moment(a: str, of: Callable[[str], str]) -> str:
    """`of` the moment in a text, NULL if there is none; a time zone is ignored."""
    midnight = f"TRY_CAST({DAY} AS {MOMENT})"
    next_day = f"CASE WHEN {W} < {LAST} - INTERVAL '1' DAY THEN {W} + INTERVAL '1' DAY END"
    moment = (
        f"CASE WHEN {MIDNIGHT} THEN {let(next_day, midnight, W)}"
        f" ELSE TRY_CAST(CONCAT({DAY}, ' ', {TIME}) AS {MOMENT}) END"
    )
    endless, beginless = (", ".join(map(quote, words)) for words in (ENDLESS_WORDS, BEGINLESS_WORDS))
    ends = f"WHEN LOWER({V}) IN ({endless}) THEN {ENDLESS} WHEN LOWER({V}) IN ({beginless}) THEN {BEGINLESS}"
    return let(f"CASE {ends} WHEN {V} RLIKE {quote(WRITTEN)} THEN {of(moment)} END", a)


def moment_of_text(a: str) -> str:
    return read_moment(a, within_calendar_of)


def within_calendar_of(moment: str) -> str:
    return let(f"CASE WHEN {is_finite(W)} OR {W} IN ({ENDLESS}, {BEGINLESS}) THEN {W} END", moment, W)


def day_of_text(a: str) -> str:
    """Its midnight, if all of it is a moment; of 24:00 the midnight before."""
    day = within_calendar_of(f"TRY_CAST({DAY} AS {MOMENT})")
    return read_moment(f"TRIM({a})", lambda moment: f"CASE WHEN NOT {moment} IS NULL THEN {day} END")


# ---- of moments -----------------------------------------------------------------------------------------------------


def start_of_day(a: str) -> str:
    """Of an infinite moment itself."""
    return let(f"CASE WHEN {is_finite(V)} THEN CAST(DATE_TRUNC('day', {V}) AS {MOMENT}) ELSE {V} END", a)


def date_part(name: str, a: str) -> str:
    """Of finite moments; there is a year 0, as astronomers have it."""
    return let(f"CASE WHEN {is_finite(V)} THEN CAST({PARTS[name]} AS DOUBLE) END", a)


def is_ordinary(name: str) -> str:
    """Is it in a year from 1 to 9999?"""
    return f"{name} BETWEEN {' AND '.join(ORDINARY)}"


def week(a: str) -> str:
    """By ISO 8601."""
    return let(f"CASE WHEN {is_ordinary(V)} THEN CAST(WEEKOFYEAR({V}) AS DOUBLE) END", a)


def days_between(a: str, b: str) -> str:
    """The number of midnights from a to b."""
    found = f"CAST(DATEDIFF({W}, {V}) AS DOUBLE)"
    return let(let(f"CASE WHEN {is_ordinary(V)} AND {is_ordinary(W)} THEN {found} END", b, W), a)


def date_trunc(unit: str, a: str) -> str:
    found = f"CAST(DATE_TRUNC('{unit}', {V}) AS {MOMENT})"
    return let(f"CASE WHEN {is_ordinary(V)} THEN {found} END", a)


def text_of_moment(a: str) -> str:
    """Years before the first one as 0044-03-15 (BC) 00:00:00; Spark puts a + before years of five digits."""
    plain, year = f"CAST({V} AS STRING)", f"CAST(1 - YEAR({V}) AS STRING)"
    rest = f"REGEXP_REPLACE({plain}, '^-?[0-9]+(-[0-9]+-[0-9]+) ', '$1 (BC) ')"
    before = f"CONCAT(LPAD({year}, GREATEST(4, LENGTH({year})), '0'), {rest})"
    ends = f"WHEN {V} = {ENDLESS} THEN 'infinity' WHEN {V} = {BEGINLESS} THEN '-infinity'"
    return let(f"CASE {ends} WHEN YEAR({V}) < 1 THEN {before} ELSE TRIM(LEADING '+' FROM {plain}) END", a)
