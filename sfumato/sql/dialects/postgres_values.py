"""Total expressions for PostgreSQL: each raising operation is asked only where it has an answer.

Values are named in a sub-select, so that each is evaluated once, and texts grow with the question and not with its
depth; OFFSET 0 keeps the planner from putting them back.
"""

from sfumato.sql.dialects.letters import SPACES, folded

DOUBLE = "DOUBLE PRECISION"
INFINITY, NAN = f"CAST('Infinity' AS {DOUBLE})", f"CAST('NaN' AS {DOUBLE})"
MOST, LEAST = "1.797693134862315807e308", "2.4703282292062328e-324"  # what lies beyond is infinite, or 0
LONGEST = 5000  # characters of a number
DIGITS = "[0-9]+(?:_[0-9]+)*"
NUMERAL = rf"^[+-]?(?:{DIGITS}[.]?(?:{DIGITS})?|[.]{DIGITS})(?:[eE][+-]?{DIGITS})?$"
MOMENT = (
    r"^([0-9]{1,6})-([0-9]{1,2})-([0-9]{1,2})( [(]BC[)])?"
    r"(?:(?:T| +)([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:[.]([0-9]{0,6})[0-9]*)?)?(?:Z|[+-][0-9:]{2,6})?)?( BC)?$"
)
FIRST, LAST = "CAST('0001-01-01' AS TIMESTAMP)", "CAST('294247-01-10 04:00:54.775806' AS TIMESTAMP)"


def let(body: str, **values: str) -> str:
    """The body, in which names stand for values."""
    named = ", ".join(f"{value} AS {name}" for name, value in values.items())
    return f"(SELECT {body} FROM (SELECT {named} OFFSET 0) AS v)"


def power(exponent: int) -> str:
    return f"CAST({2.0**exponent!r} AS {DOUBLE})"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# ---- arithmetic -----------------------------------------------------------------------------------------------------


def added(a: str, b: str) -> str:
    """a + b, infinite where it is too large. Only of one sign it can be; halves are then added without fear (what is
    below 1 makes no difference there, and half of it could underflow)."""
    halves = f"GREATEST(ABS(a), 1) * 0.5 + GREATEST(ABS(b), 1) * 0.5 < {power(1023)}"
    known = f"(a < 0) <> (b < 0) OR ABS(a) >= {INFINITY} OR ABS(b) >= {INFINITY} OR {halves}"
    large = f"CASE WHEN {known} THEN a + b WHEN a < 0 THEN -{INFINITY} WHEN a >= 0 THEN {INFINITY} END"
    small = f"ABS(a) < {power(1022)} AND ABS(b) < {power(1022)}"
    return let(f"CASE WHEN {small} THEN a + b WHEN a IS NULL OR b IS NULL THEN NULL ELSE {large} END", a=a, b=b)


def subtracted(a: str, b: str) -> str:
    return added(a, f"(-({b}))")


def multiplied(a: str, b: str) -> str:
    return scaled("*", a, b)


def divided(a: str, b: str) -> str:
    """NULL by 0."""
    return scaled("/", a, f"NULLIF({b}, 0)")


def scaled(sign: str, a: str, b: str) -> str:
    """a · b or a / b, infinite or 0 where PostgreSQL says overflow or underflow.

    Whether it would is seen from a rough result p · 2^(600k): values beyond 2^±500 are first brought between by 2^∓600,
    which is exact, so that nothing can happen to p.
    """
    far = f"CASE WHEN ABS({{0}}) > {power(500)} THEN {{1}} WHEN ABS({{0}}) < {power(-500)} THEN {{2}} ELSE {{3}} END"
    near = [far.format(x, f"{x} * {power(-600)}", f"{x} * {power(600)}", x) for x in ("a", "b")]
    exponents = [far.format(x, "1", "-1", "0") for x in ("a", "b")]
    fits = (
        f"p = 0 OR ABS(p) >= {INFINITY} OR k = 0 OR (k = 1 AND ABS(p) < {power(424)})"
        f" OR (k = 2 AND ABS(p) < {power(-176)}) OR (k = -1 AND ABS(p) > {power(-475)})"
        f" OR (k = -2 AND ABS(p) > {power(125)})"
    )
    body = f"CASE WHEN {fits} THEN a {sign} b WHEN k < 0 THEN 0 WHEN p < 0 THEN -{INFINITY} ELSE {INFINITY} END"
    slowly = let(
        body, p=f"({near[0]}) {sign} ({near[1]})", k=f"{exponents[0]} {'+' if sign == '*' else '-'} {exponents[1]}"
    )
    here = f"BETWEEN {power(-500)} AND {power(500)}"
    quickly = f"ABS(a) {here} AND ABS(b) {here} THEN a {sign} b"
    return let(f"CASE WHEN {quickly} WHEN a IS NULL OR b IS NULL THEN NULL ELSE {slowly} END", a=a, b=b)


def remainder(a: str, b: str) -> str:
    """As doubles have it: exact, with the sign of a. Of whole numbers at once, of others through all their digits."""
    whole = " AND ".join(f"ABS({x}) <= {power(53)} AND {x} = FLOOR({x})" for x in ("a", "b"))
    quickly = f"CAST(MOD(CAST(a AS BIGINT), CAST(b AS BIGINT)) AS {DOUBLE})"
    body = (
        f"CASE WHEN a IS NULL OR b IS NULL OR b = 0 THEN NULL WHEN {whole} THEN {quickly}"
        f" WHEN ABS(a) >= {INFINITY} OR b = {NAN} THEN {NAN} WHEN ABS(b) = {INFINITY} THEN a"
        f" ELSE CAST(MOD({digits('a')}, {digits('b')}) AS {DOUBLE}) END"
    )
    return let(body, a=a, b=b)


def digits(a: str) -> str:
    """The finite double in full: m · 2^e, as a decimal."""
    bits = f"CAST(CAST('x' || ENCODE(FLOAT8SEND({a}), 'hex') AS BIT(64)) AS BIGINT)"
    least = f"CASE WHEN e > 0 THEN {2**52} ELSE 0 END"
    shift = "GREATEST(e, 1) - 1075"
    value = (
        "m * CASE WHEN k >= 0 THEN CAST(2 AS NUMERIC) ^ k ELSE CAST(5 AS NUMERIC) ^ -k * CAST('1e' || k AS NUMERIC) END"
    )
    parts = f"(SELECT (bits & {2**52 - 1}) AS f, (bits >> 52) & 2047 AS e, bits < 0 AS s"
    parts += f" FROM (SELECT {bits} AS bits OFFSET 0) AS w OFFSET 0) AS x"
    whole = f"CAST(CASE WHEN s THEN -1 ELSE 1 END * (f + {least}) AS NUMERIC)"
    return f"(SELECT {value} FROM (SELECT {whole} AS m, {shift} AS k FROM {parts} OFFSET 0) AS y)"


def rounded(a: str) -> str:
    """To the nearest whole number, halves away from 0; PostgreSQL's own ROUND takes them to even ones."""
    up = "CASE WHEN ABS(a) - FLOOR(ABS(a)) >= 0.5 THEN FLOOR(ABS(a)) + 1 ELSE FLOOR(ABS(a)) END"
    return let(f"CASE WHEN ABS(a) < {power(53)} THEN CASE WHEN a < 0 THEN -({up}) ELSE {up} END ELSE a END", a=a)


def rounded_to(a: str, places: int) -> str:
    """Where the power of ten makes it infinite, it is as round as it gets."""
    tens = f"CAST({10.0**places!r} AS {DOUBLE})"
    found = divided(rounded(multiplied("a", tens)), tens)
    return let(let(f"CASE WHEN ABS(b) < {INFINITY} THEN b ELSE a END", a="a", b=found), a=a)


def bucket(a: str, low: str, high: str, count: str) -> str:
    share = divided(subtracted(a, low), subtracted(high, low))
    return let(f"CASE WHEN NOT p IS NULL THEN LEAST(GREATEST(p, 0), ({count}) + 1) END",
               p=f"FLOOR({multiplied(share, count)}) + 1")  # fmt: skip


def magnitude(a: str, least: float, sizes: int) -> str:
    ends = ", ".join(repr(2.0**n) for n in range(sizes))
    found = f"CAST(WIDTH_BUCKET(s, CAST(ARRAY[{ends}] AS {DOUBLE}[])) AS {DOUBLE})"
    sized = let(f"CASE WHEN a < 0 THEN -{found} WHEN NOT s IS NULL THEN {found} END",
                a="a", s=multiplied("ABS(a)", f"CAST({1 / least!r} AS {DOUBLE})"))  # fmt: skip
    return let(sized, a=a)


# ---- casts ----------------------------------------------------------------------------------------------------------


def number_of_text(a: str) -> str:
    """' 1_000.5e3 ' or 'inf'; NULL for what is none. Numerals go through NUMERIC, which holds all whose exponent has
    four digits."""
    signed = "CASE WHEN LEFT(t, 1) = '-' THEN -1 ELSE 1 END"
    huge = f"CASE WHEN x[1] = '-' OR NOT SPLIT_PART(LOWER(t), 'e', 1) ~ '[1-9]' THEN 0 ELSE {signed} * {INFINITY} END"
    decimal = number_of_decimal("CAST(REPLACE(t, '_', '') AS NUMERIC)")
    body = (
        f"CASE WHEN LENGTH(t) > {LONGEST} THEN NULL WHEN LOWER(t) ~ '^[+-]?inf(inity)?$' THEN {signed} * {INFINITY}"
        f" WHEN LOWER(t) ~ '^[+-]?nan$' THEN {NAN} WHEN NOT t ~ '{NUMERAL}' THEN NULL"
        f" WHEN LENGTH(x[2]) > 4 THEN {huge} ELSE {decimal} END"
    )
    bare = f"SELECT BTRIM({a}, E' \\t\\n\\v\\f\\r') AS t OFFSET 0"
    exponent = "REGEXP_MATCH(REPLACE(RIGHT(t, 100), '_', ''), '[eE]([+-]?)0*([0-9]*)$')"
    return f"(SELECT {body} FROM (SELECT t, {exponent} AS x FROM ({bare}) AS s OFFSET 0) AS v)"


def number_of_decimal(a: str) -> str:
    huge = f"CASE WHEN n < 0 THEN -{INFINITY} WHEN n = 'NaN' THEN {NAN} ELSE {INFINITY} END"
    small = f"WHEN ABS(n) < {LEAST} THEN 0 ELSE CAST(n AS {DOUBLE}) END"
    return let(f"CASE WHEN ABS(n) >= {MOST} THEN {huge} {small}", n=a)


def moment_of_text(a: str) -> str:
    """'2024-02-29', with a time after blanks or T, whose zone is passed over; 'infinity'; NULL for what is none."""
    return read_moment(
        a, f"{DAY} + MAKE_INTERVAL(hours => h, mins => i) + (s * 1000000 + f) * INTERVAL '1 microsecond'"
    )


def day_of_text(a: str) -> str:
    """Its midnight; blanks around it are passed over."""
    return read_moment(f"BTRIM({a})", DAY)


DAY = "MAKE_TIMESTAMP(CASE WHEN z > 0 THEN z ELSE z - 1 END, m, d, 0, 0, 0)"


def read_moment(a: str, made: str) -> str:
    """`made` of year z (there is a year 0), month m, day d, h, i, s and millionths f, if there is such a moment."""
    parts = {name: f"CAST(x[{i}] AS INTEGER)" for name, i in (("y", 1), ("m", 2), ("d", 3))}
    parts |= {name: f"COALESCE(CAST(x[{i}] AS INTEGER), 0)" for name, i in (("h", 5), ("i", 6), ("s", 7))}
    parts["z"] = f"CASE WHEN x[4] IS NULL AND x[9] IS NULL THEN {parts['y']} ELSE 1 - {parts['y']} END"
    parts["f"] = "CAST(RPAD(COALESCE(x[8], ''), 6, '0') AS INTEGER)"
    leap = "CASE WHEN (z % 4 = 0 AND z % 100 <> 0) OR z % 400 = 0 THEN 29 ELSE 28 END"
    longest = f"CASE WHEN m = 2 THEN {leap} WHEN m IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
    valid = (
        f"z BETWEEN -4711 AND 294247 AND m BETWEEN 1 AND 12 AND d BETWEEN 1 AND {longest}"
        " AND i < 60 AND s < 60 AND (h < 24 OR (h = 24 AND i = 0 AND s = 0 AND f = 0))"
    )
    found = within(let(f"CASE WHEN {valid} THEN {made} END", **parts))
    endless = "LOWER(t) IN ('inf', 'infinity') THEN CAST('infinity' AS TIMESTAMP)"
    endless += " WHEN LOWER(t) IN ('-inf', '-infinity') THEN CAST('-infinity' AS TIMESTAMP)"
    read = f"SELECT t, REGEXP_MATCH(t, '{MOMENT}') AS x FROM (SELECT {a} AS t OFFSET 0) AS s OFFSET 0"
    return f"(SELECT CASE WHEN {endless} WHEN NOT x IS NULL THEN {found} END FROM ({read}) AS v)"


def within(a: str) -> str:
    """A moment, none if other engines cannot hold it."""
    return let(f"CASE WHEN m <= {LAST} OR NOT ISFINITE(m) THEN m END", m=a)


def moment_of_date(a: str) -> str:
    return f"CASE WHEN {a} <= DATE '294247-01-09' OR NOT ISFINITE({a}) THEN CAST({a} AS TIMESTAMP) END"


def truth_of_text(a: str) -> str:
    return let("CASE WHEN t IN ('true', 't', 'yes', 'y', '1') THEN TRUE"
               " WHEN t IN ('false', 'f', 'no', 'n', '0') THEN FALSE END", t=f"LOWER({a})")  # fmt: skip


def text_of_moment(a: str) -> str:
    """Years before the first one as 0044-03-15 (BC) 00:00:00."""
    return let("REGEXP_REPLACE(t, '^([^ ]*) (.*) BC$', '\\1 (BC) \\2')", t=f"CAST({a} AS TEXT)")


# ---- texts ----------------------------------------------------------------------------------------------------------


def in_case(name: str, a: str) -> str:
    ours, theirs = folded(name)
    return let(f"CASE WHEN a ~ '^[\\x01-\\x7F]*$' THEN {name}(a)"
               f" ELSE TRANSLATE({name}(a), {quoted(ours)}, {quoted(theirs)}) END", a=a)  # fmt: skip


def trimmed(side: str, a: str) -> str:
    return f"{side}({a}, '{SPACES}')"


# ---- dates ----------------------------------------------------------------------------------------------------------


def part(name: str, a: str) -> str:
    """Of finite moments; there is a year 0, as astronomers have it."""
    found = f"CAST(DATE_PART('{name}', d) AS {DOUBLE})"
    if name == "year":
        found = f"CASE WHEN DATE_PART('year', d) < 0 THEN DATE_PART('year', d) + 1 ELSE {found} END"
    return let(f"CASE WHEN ISFINITE(d) THEN {found} END", d=a)


def beginning(unit: str, a: str) -> str:
    last = "CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP)"
    return let(f"CASE WHEN d BETWEEN {FIRST} AND {last} THEN DATE_TRUNC('{unit}', d) END", d=a)
