"""Total expressions for PostgreSQL: an operation that can raise is evaluated only where it has a result.

Values are named in a sub-select, so that each is evaluated once and the SQL text grows linearly with the question;
OFFSET 0 keeps the planner from inlining them.
"""

from sfumato.sql.functions.texts import SPACES
from sfumato.sql.reserved_names import ours

A, B, D, E, F, H, K, M, N, P, S, T, V, W, X, Y, Z = map(ours, "abdefhkmnpstvwxyz")  # what a sub-select calls a value
MI, BITS = ours("i"), ours("bits")
DOUBLE = "DOUBLE PRECISION"
INFINITY, NAN = f"CAST('Infinity' AS {DOUBLE})", f"CAST('NaN' AS {DOUBLE})"
MOST, LEAST = "1.797693134862315807e308", "2.4703282292062328e-324"  # what lies beyond is infinite, or 0
LATEST = "CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP)"
SHORT = 200  # characters of SQL that are repeated rather than named
DIGITS = "[0-9]+(?:_[0-9]+)*"
NUMERAL = rf"^[+-]?(?:{DIGITS}[.]?(?:{DIGITS})?|[.]{DIGITS})(?:[eE][+-]?{DIGITS})?$"
MOMENT = (
    r"^([0-9]{1,6})-([0-9]{1,2})-([0-9]{1,2})( [(]BC[)])?"
    r"(?:(?:T| +)([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:[.]([0-9]{0,6})[0-9]*)?)?(?:Z|[+-][0-9:]{2,6})?)?( BC)?$"
)
FIRST, LAST = "CAST('0001-01-01' AS TIMESTAMP)", "CAST('294247-01-10 04:00:54.775806' AS TIMESTAMP)"


def let(body: str, **values: str) -> str:
    """The body, in which names stand for values: A for that of a, and so on."""
    named = ", ".join(f"{value} AS {ours(name)}" for name, value in values.items())
    return f"(SELECT {body} FROM (SELECT {named} OFFSET 0) AS {V})"


def power(exponent: int) -> str:
    return f"CAST({2.0**exponent!r} AS {DOUBLE})"


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def add(a: str, b: str) -> str:
    """a + b, infinite where it is too large. Only of one sign it can be; halves are then added without fear (what is
    below 1 makes no difference there, and half of it could underflow)."""
    halves = f"GREATEST(ABS({A}), 1) * 0.5 + GREATEST(ABS({B}), 1) * 0.5 < {power(1023)}"
    known = f"({A} < 0) <> ({B} < 0) OR ABS({A}) >= {INFINITY} OR ABS({B}) >= {INFINITY} OR {halves}"
    large = f"CASE WHEN {known} THEN {A} + {B} WHEN {A} < 0 THEN -{INFINITY} WHEN {A} >= 0 THEN {INFINITY} END"
    small = f"ABS({A}) < {power(1022)} AND ABS({B}) < {power(1022)}"
    return let(f"CASE WHEN {small} THEN {A} + {B} WHEN {A} IS NULL OR {B} IS NULL THEN NULL ELSE {large} END", a=a, b=b)


def subtract(a: str, b: str) -> str:
    return add(a, f"(-({b}))")


def multiply(a: str, b: str) -> str:
    return product_or_quotient("*", a, b)


def divide(a: str, b: str) -> str:
    """NULL by 0."""
    return product_or_quotient("/", a, f"NULLIF({b}, 0)")


def product_or_quotient(sign: str, a: str, b: str) -> str:
    """a · b or a / b, infinite or 0 where PostgreSQL says overflow or underflow.

    Whether it would is seen from a rough result p · 2^(600k): values beyond 2^±500 are first brought between by 2^∓600,
    which is exact, so that nothing can happen to p.
    """
    far = f"CASE WHEN ABS({{0}}) > {power(500)} THEN {{1}} WHEN ABS({{0}}) < {power(-500)} THEN {{2}} ELSE {{3}} END"
    near = [far.format(x, f"{x} * {power(-600)}", f"{x} * {power(600)}", x) for x in (A, B)]
    exponents = [far.format(x, "1", "-1", "0") for x in (A, B)]
    fits = (
        f"{P} = 0 OR ABS({P}) >= {INFINITY} OR {K} = 0 OR ({K} = 1 AND ABS({P}) < {power(424)})"
        f" OR ({K} = 2 AND ABS({P}) < {power(-176)}) OR ({K} = -1 AND ABS({P}) > {power(-475)})"
        f" OR ({K} = -2 AND ABS({P}) > {power(125)})"
    )
    body = f"CASE WHEN {fits} THEN {A} {sign} {B} WHEN {K} < 0 THEN 0 WHEN {P} < 0 THEN -{INFINITY} ELSE {INFINITY} END"
    slowly = let(
        body, p=f"({near[0]}) {sign} ({near[1]})", k=f"{exponents[0]} {'+' if sign == '*' else '-'} {exponents[1]}"
    )
    here = f"BETWEEN {power(-500)} AND {power(500)}"
    quickly = f"ABS({A}) {here} AND ABS({B}) {here} THEN {A} {sign} {B}"
    return let(f"CASE WHEN {quickly} WHEN {A} IS NULL OR {B} IS NULL THEN NULL ELSE {slowly} END", a=a, b=b)


def remainder(a: str, b: str) -> str:
    """As doubles have it: exact, with the sign of a. Of whole numbers at once, of others through all their digits."""
    whole = " AND ".join(f"ABS({x}) <= {power(53)} AND {x} = FLOOR({x})" for x in (A, B))
    quickly = f"CAST(MOD(CAST({A} AS BIGINT), CAST({B} AS BIGINT)) AS {DOUBLE})"
    body = (
        f"CASE WHEN {A} IS NULL OR {B} IS NULL OR {B} = 0 THEN NULL WHEN {whole} THEN {quickly}"
        f" WHEN ABS({A}) >= {INFINITY} OR {B} = {NAN} THEN {NAN} WHEN ABS({B}) = {INFINITY} THEN {A}"
        f" ELSE CAST(MOD({exact_decimal(A)}, {exact_decimal(B)}) AS {DOUBLE}) END"
    )
    return let(body, a=a, b=b)


def exact_decimal(a: str) -> str:
    """The finite double in full: m · 2^e, as a decimal."""
    bits = f"CAST(CAST('x' || ENCODE(FLOAT8SEND({a}), 'hex') AS BIT(64)) AS BIGINT)"
    least = f"CASE WHEN {E} > 0 THEN {2**52} ELSE 0 END"
    shift = f"GREATEST({E}, 1) - 1075"
    value = (
        f"{M} * CASE WHEN {K} >= 0 THEN CAST(2 AS NUMERIC) ^ {K}"
        f" ELSE CAST(5 AS NUMERIC) ^ -{K} * CAST('1e' || {K} AS NUMERIC) END"
    )
    parts = f"(SELECT ({BITS} & {2**52 - 1}) AS {F}, ({BITS} >> 52) & 2047 AS {E}, {BITS} < 0 AS {S}"
    parts += f" FROM (SELECT {bits} AS {BITS} OFFSET 0) AS {W} OFFSET 0) AS {X}"
    whole = f"CAST(CASE WHEN {S} THEN -1 ELSE 1 END * ({F} + {least}) AS NUMERIC)"
    return f"(SELECT {value} FROM (SELECT {whole} AS {M}, {shift} AS {K} FROM {parts} OFFSET 0) AS {Y})"


def round_half_away(a: str) -> str:
    """To the nearest whole number, halves away from 0; PostgreSQL's own ROUND takes them to even ones."""
    up = f"CASE WHEN ABS({A}) - FLOOR(ABS({A})) >= 0.5 THEN FLOOR(ABS({A})) + 1 ELSE FLOOR(ABS({A})) END"
    return let(f"CASE WHEN ABS({A}) < {power(53)} THEN CASE WHEN {A} < 0 THEN -({up}) ELSE {up} END ELSE {A} END", a=a)


def round_to(a: str, places: int) -> str:
    """Where the power of ten makes it infinite, it is as round as it gets."""
    tens = f"CAST({10.0**places!r} AS {DOUBLE})"
    found = divide(round_half_away(multiply(A, tens)), tens)
    return let(let(f"CASE WHEN ABS({B}) < {INFINITY} THEN {B} ELSE {A} END", a=A, b=found), a=a)


def width_bucket(a: str, low: str, high: str, count: str) -> str:
    share = divide(subtract(a, low), subtract(high, low))
    return let(f"CASE WHEN NOT {P} IS NULL THEN LEAST(GREATEST({P}, 0), ({count}) + 1) END",
               p=f"FLOOR({multiply(share, count)}) + 1")  # fmt: skip


def magnitude(a: str, least: float, sizes: int) -> str:
    ends = ", ".join(repr(2.0**n) for n in range(sizes))
    found = f"CAST(WIDTH_BUCKET({S}, CAST(ARRAY[{ends}] AS {DOUBLE}[])) AS {DOUBLE})"
    sized = let(f"CASE WHEN {A} < 0 THEN -{found} WHEN NOT {S} IS NULL THEN {found} END",
                a=A, s=multiply(f"ABS({A})", f"CAST({1 / least!r} AS {DOUBLE})"))  # fmt: skip
    return let(sized, a=a)


# ---- casts ----------------------------------------------------------------------------------------------------------


def number_of_text(a: str) -> str:
    """' 1_000.5e3 ' or 'inf'; NULL for what is none. Numerals go through NUMERIC, which holds all whose exponent has
    four digits."""
    signed = f"CASE WHEN LEFT({T}, 1) = '-' THEN -1 ELSE 1 END"
    huge = (
        f"CASE WHEN {X}[1] = '-' OR NOT SPLIT_PART(LOWER({T}), 'e', 1) ~ '[1-9]' THEN 0 ELSE {signed} * {INFINITY} END"
    )
    decimal = number_of_decimal(f"CAST(REPLACE({T}, '_', '') AS NUMERIC)")
    body = (
        f"CASE WHEN LOWER({T}) ~ '^[+-]?inf(inity)?$' THEN {signed} * {INFINITY}"
        f" WHEN LOWER({T}) ~ '^[+-]?nan$' THEN {NAN} WHEN NOT {T} ~ '{NUMERAL}' THEN NULL"
        f" WHEN LENGTH({X}[2]) > 4 THEN {huge} ELSE {decimal} END"
    )
    bare = f"SELECT BTRIM({a}, E' \\t\\n\\v\\f\\r') AS {T} OFFSET 0"
    exponent = f"REGEXP_MATCH(REPLACE(RIGHT({T}, 100), '_', ''), '[eE]([+-]?)0*([0-9]*)$')"
    return f"(SELECT {body} FROM (SELECT {T}, {exponent} AS {X} FROM ({bare}) AS {S} OFFSET 0) AS {V})"


def number_of_decimal(a: str) -> str:
    huge = f"CASE WHEN {N} < 0 THEN -{INFINITY} WHEN {N} = 'NaN' THEN {NAN} ELSE {INFINITY} END"
    small = f"WHEN ABS({N}) < {LEAST} THEN 0 ELSE CAST({N} AS {DOUBLE}) END"
    return let(f"CASE WHEN ABS({N}) >= {MOST} THEN {huge} {small}", n=a)


def moment_of_text(a: str) -> str:
    """'2024-02-29', with a time after blanks or T, whose zone is ignored; 'infinity'; NULL for other texts."""
    return read_moment(
        a, f"{DAY} + MAKE_INTERVAL(hours => {H}, mins => {MI}) + ({S} * 1000000 + {F}) * INTERVAL '1 microsecond'"
    )


def day_of_text(a: str) -> str:
    """Its midnight; blanks around it are ignored."""
    return read_moment(f"BTRIM({a})", DAY)


DAY = f"MAKE_TIMESTAMP(CASE WHEN {Z} > 0 THEN {Z} ELSE {Z} - 1 END, {M}, {D}, 0, 0, 0)"


def read_moment(a: str, made: str) -> str:
    """`made` of year z (there is a year 0), month m, day d, h, i, s and millionths f, if there is such a moment."""
    parts = {name: f"CAST({X}[{i}] AS INTEGER)" for name, i in (("y", 1), ("m", 2), ("d", 3))}
    parts |= {name: f"COALESCE(CAST({X}[{i}] AS INTEGER), 0)" for name, i in (("h", 5), ("i", 6), ("s", 7))}
    parts["z"] = f"CASE WHEN {X}[4] IS NULL AND {X}[9] IS NULL THEN {parts['y']} ELSE 1 - {parts['y']} END"
    parts["f"] = f"CAST(RPAD(COALESCE({X}[8], ''), 6, '0') AS INTEGER)"
    leap = f"CASE WHEN ({Z} % 4 = 0 AND {Z} % 100 <> 0) OR {Z} % 400 = 0 THEN 29 ELSE 28 END"
    longest = f"CASE WHEN {M} = 2 THEN {leap} WHEN {M} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
    valid = (
        f"{Z} BETWEEN -4711 AND 294247 AND {M} BETWEEN 1 AND 12 AND {D} BETWEEN 1 AND {longest}"
        f" AND {MI} < 60 AND {S} < 60 AND ({H} < 24 OR ({H} = 24 AND {MI} = 0 AND {S} = 0 AND {F} = 0))"
    )
    found = within_calendar(let(f"CASE WHEN {valid} THEN {made} END", **parts))
    endless = f"LOWER({T}) IN ('inf', 'infinity') THEN CAST('infinity' AS TIMESTAMP)"
    endless += f" WHEN LOWER({T}) IN ('-inf', '-infinity') THEN CAST('-infinity' AS TIMESTAMP)"
    read = f"SELECT {T}, REGEXP_MATCH({T}, '{MOMENT}') AS {X} FROM (SELECT {a} AS {T} OFFSET 0) AS {S} OFFSET 0"
    return f"(SELECT CASE WHEN {endless} WHEN NOT {X} IS NULL THEN {found} END FROM ({read}) AS {V})"


def within_calendar(a: str) -> str:
    """A moment, none if other engines cannot hold it."""
    return let_short(f"CASE WHEN {M} <= {LAST} OR NOT ISFINITE({M}) THEN {M} END", "m", a)


def moment_of_date(a: str) -> str:
    return f"CASE WHEN {a} <= DATE '294247-01-09' OR NOT ISFINITE({a}) THEN CAST({a} AS TIMESTAMP) END"


def truth_of_text(a: str) -> str:
    return let(f"CASE WHEN {T} IN ('true', 't', 'yes', 'y', '1') THEN TRUE"
               f" WHEN {T} IN ('false', 'f', 'no', 'n', '0') THEN FALSE END", t=f"LOWER({a})")  # fmt: skip


def text_of_moment(a: str) -> str:
    """Years before the first one as 0044-03-15 (BC) 00:00:00."""
    return let(f"REGEXP_REPLACE({T}, '^([^ ]*) (.*) BC$', '\\1 (BC) \\2')", t=f"CAST({a} AS TEXT)")


# ---- texts ----------------------------------------------------------------------------------------------------------


def trim(side: str, a: str) -> str:
    return f"{side}({a}, '{SPACES}')"


# ---- dates ----------------------------------------------------------------------------------------------------------


def let_short(body: str, name: str, a: str) -> str:
    """The same for a body without names of its own: a short value is repeated instead, which takes a third of the time
    and lets PostgreSQL use several processes."""
    if len(a) > SHORT or "SELECT" in a:
        return let(body, **{name: a})
    return f"({body.replace(ours(name), f'({a})')})"


def date_part(name: str, a: str) -> str:
    """Of finite moments; there is a year 0, as astronomers have it."""
    found = f"CAST(DATE_PART('{name}', {D}) AS {DOUBLE})"
    if name == "year":
        found = f"CASE WHEN DATE_PART('year', {D}) < 0 THEN DATE_PART('year', {D}) + 1 ELSE {found} END"
    return let_short(f"CASE WHEN ISFINITE({D}) THEN {found} END", "d", a)


def week(a: str) -> str:
    """By ISO 8601, of years 1 to 9999."""
    found = f"CAST(DATE_PART('week', {D}) AS {DOUBLE})"
    return let_short(f"CASE WHEN {D} BETWEEN {FIRST} AND {LATEST} THEN {found} END", "d", a)


def days_between(a: str, b: str) -> str:
    """The number of midnights from a to b, of years 1 to 9999."""
    both = f"{A} BETWEEN {FIRST} AND {LATEST} AND {B} BETWEEN {FIRST} AND {LATEST}"
    return let(f"CASE WHEN {both} THEN CAST(CAST({B} AS DATE) - CAST({A} AS DATE) AS {DOUBLE}) END", a=a, b=b)


def date_trunc(unit: str, a: str) -> str:
    return let_short(f"CASE WHEN {D} BETWEEN {FIRST} AND {LATEST} THEN DATE_TRUNC('{unit}', {D}) END", "d", a)
