"""Spark SQL, 4.0 or newer, in ANSI mode, with the session's time zone UTC. Dates are in spark_moments.py.

Doubles do not raise here; divisors, casts and patterns do, and FLOOR gives a BIGINT.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.errors import QueryRefused
from sfumato.sql import reserved_names as names
from sfumato.sql.dialects import spark_moments as moments
from sfumato.sql.dialects.base import raw
from sfumato.sql.dialects.foreign import Foreign
from sfumato.sql.dialects.keyed_hash import BYTES
from sfumato.sql.dialects.spark_moments import let, quote
from sfumato.sql.domains import LONGEST_TEXT, Kind
from sfumato.sql.expressions import Column
from sfumato.sql.functions.function import Sql
from sfumato.sql.functions.numbers import LEAST_SIZE, SIZES
from sfumato.sql.functions.texts import SPACES, case_pairs
from sfumato.sql.plan import Plan
from sfumato.sql.reserved_names import ROWS, ours

V = moments.V
X, E = ours("x"), ours("e")  # what lambdas call other values
DIGITS = "[0-9]+(_[0-9]+)*"
NUMERAL = f"^[+-]?({DIGITS}[.]?({DIGITS})?|[.]{DIGITS})([eE][+-]?{DIGITS})?$"

WHOLE = frozenset({"tinyint", "smallint", "int"})  # each is a double of its own
SPELLED_ONCE = WHOLE | {"bigint", "date"}
SMALL = 2**23  # of integers that are not larger, 2⁴⁰ add up to less than 2⁶³
OFTEN = 8  # rows of a unit in a group from which on it pays to sum them before they are sent

BLANKS = quote(" \t\n\v\f\r")


def floor(a: str) -> str:
    """A double, as it is where it has no fraction; a BIGINT could not hold it."""
    return let(f"CASE WHEN ABS({V}) < {2.0**53!r}D THEN CAST(FLOOR({V}) AS DOUBLE) ELSE {V} END", a)


def ceil(a: str) -> str:
    return let(f"CASE WHEN ABS({V}) < {2.0**53!r}D THEN CAST(CEIL({V}) AS DOUBLE) ELSE {V} END", a)


def round_half_away(a: str) -> str:
    """To the nearest whole number, halves away from 0."""
    whole = f"CAST(FLOOR(ABS({V})) AS DOUBLE)"
    up = f"({whole} + CASE WHEN ABS({V}) - {whole} >= 0.5D THEN 1 ELSE 0 END)"
    return let(f"CASE WHEN ABS({V}) < {2.0**53!r}D THEN CASE WHEN {V} < 0 THEN -{up} ELSE {up} END ELSE {V} END", a)


def round_to(a: str, places: int) -> str:
    found = f"({round_half_away(f'{X} * {10.0**places!r}D')} / {10.0**places!r}D)"
    better = f"CASE WHEN ABS({found}) < DOUBLE('Infinity') THEN {found} ELSE {X} END"
    return f"ELEMENT_AT(TRANSFORM(ARRAY({a}), {X} -> {better}), 1)"


def width_bucket(a: str, low: str, high: str, count: str) -> str:
    place = f"{floor(f'(({a}) - ({low})) / (({high}) - ({low})) * ({count})')} + 1"
    return let(f"CASE WHEN NOT {V} IS NULL THEN LEAST(GREATEST({V}, 0), ({count}) + 1) END", place)


def magnitude(a: str) -> str:
    ends = ", ".join(f"{LEAST_SIZE * 2.0**n!r}D" for n in range(SIZES))
    found = f"CAST(SIZE(FILTER(ARRAY({ends}), {E} -> {E} <= ABS({V}))) AS DOUBLE)"
    return let(f"CASE WHEN {V} < 0 THEN -{found} WHEN NOT {V} IS NULL THEN {found} END", a)


def number_of_text(a: str) -> str:
    """NULL for what is none."""
    signed = f"CASE WHEN {V} LIKE '-%' THEN -DOUBLE('Infinity') ELSE DOUBLE('Infinity') END"
    special = f"WHEN LOWER({V}) RLIKE '^[+-]?inf(inity)?$' THEN {signed}"
    read = f"WHEN {V} RLIKE {quote(NUMERAL)} THEN TRY_CAST(REPLACE({V}, '_', '') AS DOUBLE)"
    nan = f"WHEN LOWER({V}) RLIKE '^[+-]?nan$' THEN DOUBLE('NaN')"
    return let(f"CASE {special} {nan} {read} END", f"TRIM(BOTH {BLANKS} FROM {a})")


def truth_of_text(a: str) -> str:
    no = f"WHEN {V} IN ('false', 'f', 'no', 'n', '0') THEN FALSE"
    return let(f"CASE WHEN {V} IN ('true', 't', 'yes', 'y', '1') THEN TRUE {no} END", f"LOWER({a})")


def change_case(name: str, a: str) -> str:
    ours, theirs = case_pairs(name)
    plain = "abcdefghijklmnopqrstuvwxyz"
    first, second = (plain, plain.upper()) if name == "upper" else (plain.upper(), plain)
    return f"TRANSLATE({a}, {quote(first + ours)}, {quote(second + theirs)})"


OWN: dict[str, Callable[..., str]] = {
    "floor": floor,
    "ceil": ceil,
    "round": round_half_away,
    "width_bucket": width_bucket,
    "magnitude": magnitude,
    "trim": lambda a: f"TRIM(BOTH {quote(SPACES)} FROM {a})",
    "ltrim": lambda a: f"TRIM(LEADING {quote(SPACES)} FROM {a})",
    "rtrim": lambda a: f"TRIM(TRAILING {quote(SPACES)} FROM {a})",
    "lower": lambda a: change_case("lower", a),
    "upper": lambda a: change_case("upper", a),
    "sqrt": lambda a: let(f"CASE WHEN {V} >= 0 THEN SQRT({V}) END", a),
    "sign": lambda a: let(f"CASE WHEN ISNAN({V}) THEN 0D ELSE CAST(SIGN({V}) AS DOUBLE) END", a),
    "right": lambda a, n: f"RIGHT({a}, CAST({n} AS INT))",
    "position": lambda a, b: f"CAST(LOCATE({b}, {a}) AS DOUBLE)",
    "split_part": lambda a, between, place: f"SPLIT_PART({a}, {between}, CAST({place} AS INT))",
    "week": moments.week,
    "days between": moments.days_between,
    **{name: lambda a, of=name: moments.date_part(of, a) for name in moments.PARTS},
    **{f"start of {unit}": lambda a, unit=unit: moments.date_trunc(unit, a) for unit in moments.UNITS},
}


@dataclass(frozen=True)
class Spark(Foreign):
    """TRY_CAST is total here, doubles overflow to infinity; sums of integers are decimals, as 64 bits would raise."""

    own = OWN
    whole_types = WHOLE | {"bigint"}
    double_types = frozenset({"float", "double"})

    @property
    def name(self) -> str:
        return "spark"

    def cast(self, name: str, kind: Kind, value: str, numbers: Sequence[int]) -> str:
        match name, kind:
            case "round to", _:
                return round_to(value, numbers[0])
            case "number", Kind.TRUTH:
                return f"CAST({value} AS DOUBLE)"
            case "number", _:
                return number_of_text(value)
            case "date", Kind.DATE:
                return moments.start_of_day(value)
            case "date", _:
                return moments.day_of_text(value)
        return moments.moment_of_text(value)

    def column(self, column: Sql, kind: Kind, type_: str | None) -> Sql:
        plain = column.sql(self.name)
        words = f"CAST({plain} AS STRING)"
        short = f"CASE WHEN LENGTH({words}) <= {LONGEST_TEXT} THEN {words} END"
        match kind, type_:
            case Kind.NUMBER, "tinyint" | "smallint" | "int" | "bigint" | "float" | "double":
                return raw(f"NANVL(CAST({plain} AS DOUBLE), CAST(NULL AS DOUBLE))")
            case Kind.NUMBER, _:
                return raw(f"NANVL({number_of_text(short)}, CAST(NULL AS DOUBLE))")
            case Kind.TEXT, _:
                return raw(words)
            case Kind.TRUTH, "boolean":
                return column
            case Kind.TRUTH, _:
                return raw(truth_of_text(short))
            case Kind.DATE, "date":
                return raw(moments.moment_of_date(plain))
            case Kind.DATE, "timestamp_ntz":
                return raw(moments.within_calendar(plain))
            case Kind.DATE, "timestamp":
                return raw(moments.within_calendar(f"CAST({plain} AS {moments.MOMENT})"))
        return raw(moments.moment_of_text(short))

    def is_nan(self, number: Sql) -> Sql:
        return raw(f"ISNAN({number.sql(self.name)})")

    def as_text(self, value: Sql) -> Sql:
        return raw(f"CAST({value.sql(self.name)} AS STRING)")

    def date_text(self, moment: Sql) -> Sql:
        return raw(moments.text_of_moment(moment.sql(self.name)))

    def first(self, value: str, order: Sequence[str]) -> str:
        raise QueryRefused("FIRST and LAST by an order cannot be asked of spark.\n  do:     use MIN, MAX or ANY_VALUE")

    def digest(self, text: str) -> str:
        digits = ", ".join(f"SUBSTRING({V}, {2 * place + 1}, 2)" for place in reversed(range(BYTES)))
        return f"CAST({let(f'CONV(CONCAT({digits}), 16, 10)', f'MD5({text})')} AS BIGINT)"

    @property
    def text_type(self) -> str:
        return "STRING"

    @property
    def materialized(self) -> str:
        return ""

    def quotient(self, a: str, b: str) -> str:
        return f"{a} DIV {b}"

    def total(self, integers: str) -> str:
        return f"SUM(CAST({integers} AS DECIMAL(20, 0)))"

    def floor(self, value: str) -> str:
        return f"CAST(FLOOR({value}) AS DOUBLE)"

    def apart(self, column: Sql, type_: str | None) -> Sql:
        """Equal doubles are grouped together here, as everywhere; −0.0 and 0.0 have two texts."""
        return column if type_ in SPELLED_ONCE | self.double_types else self.as_text(column)

    def key(self, column: Column) -> Sql | None:
        """Integers are sent and compared faster than doubles."""
        known = column.domain.kind is Kind.NUMBER and self.types.get(column.origin) in WHOLE
        return names.column(column.origin) if known else None

    def total_of(self, integers: str, most: int) -> str:
        return f"SUM({integers})" if most <= SMALL else self.total(integers)

    def by_unit(self, rows: str, unit: str, plan: Plan) -> str:
        """Shuffled by unit, once: Spark then groups, ranks and joins by unit without sending anything again. Where the
        policy says that a unit may have many rows in a group, Spark's own plan sums them first. Never a number of parts
        alone: rows would be dealt out in turn, and differently if a part must be computed again."""
        if plan.rows > OFTEN:
            return rows
        return f"(SELECT /*+ REPARTITION({unit}) */ * FROM {rows}) AS {ROWS}"

    def lists(self, *listed: str) -> list[str]:
        rows = f"SORT_ARRAY(COLLECT_LIST(STRUCT({', '.join(listed)})))"
        return [f"TRANSFORM({rows}, {X} -> {X}.{one.rpartition('.')[2]})" for one in listed]
