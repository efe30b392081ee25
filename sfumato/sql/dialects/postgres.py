"""PostgreSQL, 14 or newer, with texts in UTF-8. Its total expressions are in postgres_values.py."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.errors import QueryRefused
from sfumato.sql import reserved_names as names
from sfumato.sql.dialects import postgres_letter_case as letters
from sfumato.sql.dialects import postgres_values as total
from sfumato.sql.dialects.base import raw
from sfumato.sql.dialects.foreign import Foreign
from sfumato.sql.dialects.keyed_hash import BYTES
from sfumato.sql.dialects.postgres_values import DOUBLE, NAN, A, B, let, quote
from sfumato.sql.domains import LONGEST_TEXT, Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions.costs import Argument, Cost, each, per_character
from sfumato.sql.functions.function import Sql
from sfumato.sql.functions.like import BYTES_PER_CHARACTER
from sfumato.sql.functions.numbers import LEAST_SIZE, SIZES
from sfumato.sql.reserved_names import LABEL
from sfumato.sql.schema_check import base_type, kind_of

COLLATION = ' COLLATE "C"'
PARTS = {"year": "year", "quarter": "quarter", "month": "month", "day": "day", "day of year": "doy",
         "hour": "hour", "minute": "minute", "weekday": "dow", "iso weekday": "isodow"}  # fmt: skip
UNITS = ("year", "quarter", "month", "week", "day")  # of DATE_TRUNC
OWN: dict[str, Callable[..., str]] = {
    "+": total.add,
    "-": total.subtract,
    "*": total.multiply,
    "/": total.divide,
    "mod": total.remainder,
    "round": total.round_half_away,
    "width_bucket": total.width_bucket,
    "magnitude": lambda a: total.magnitude(a, LEAST_SIZE, SIZES),
    "ends_with": lambda a, b: let(f"RIGHT({A}, LENGTH({B})) = {B}", a=a, b=b),
    "trim": lambda a: total.trim("BTRIM", a),
    "ltrim": lambda a: total.trim("LTRIM", a),
    "rtrim": lambda a: total.trim("RTRIM", a),
    "lower": lambda a: letters.change_case("lower", a),
    "upper": lambda a: letters.change_case("upper", a),
    "sqrt": lambda a: let(f"CASE WHEN {A} >= 0 THEN SQRT({A}) END", a=a),
    "sign": lambda a: let(f"CASE WHEN {A} = {NAN} THEN 0 ELSE CAST(SIGN({A}) AS {DOUBLE}) END", a=a),
    "right": lambda a, n: f"RIGHT({a}, CAST({n} AS INTEGER))",
    "position": lambda a, b: f"CAST(STRPOS({a}, {b}) AS {DOUBLE})",
    "split_part": lambda a, between, place: f"SPLIT_PART({a}, {between}, CAST({place} AS INTEGER))",
    "week": total.week,
    "days between": total.days_between,
    **{name: lambda a, of=of: total.date_part(of, a) for name, of in PARTS.items()},
    **{f"start of {unit}": lambda a, unit=unit: total.date_trunc(unit, a) for unit in UNITS},
}  # fmt: skip

# ---- costs: nanoseconds in one row at most, where PostgreSQL takes longer than DuckDB --------------------------------
# `make bench-cost OPTIONS="--engine postgres"` measures each function at its worst input; these are about twice that.

SEEK = 0.8  # nanoseconds to compare two bytes: STRPOS and REPLACE do it one by one
WHOLE = frozenset({"smallint", "integer"})  # each is a double of its own
NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
TYPES = {  # of columns that are not read through their text
    Kind.NUMBER: NUMBERS | {"boolean"},
    Kind.TRUTH: NUMBERS | {"boolean"},
    Kind.DATE: frozenset({"date", "timestamp without time zone"}),
}
READ_TEXT, READ_OTHER = 12_000, 2_000  # nanoseconds for a column
READ_DECIMAL = 60_000  # a number of 16,383 decimal places
READ_SHORT = 10_000  # through a text of 35 characters
READ_WORDS = {Kind.NUMBER: 100_000, Kind.TRUTH: 30_000, Kind.DATE: 250_000}  # of another kind, stored as text


def search_cost(text: Argument, sought: Argument, *rest: Argument) -> float:
    """At each character, all of the searched text may have to be compared, from its end [Horspool 1980]."""
    longest = text.domain.longest
    short = min(sought.domain.longest, longest // 2)
    return 200 + longest * 20 + SEEK * (longest - short) * min(most_bytes(sought), short * BYTES_PER_CHARACTER)


def most_bytes(text: Argument) -> int:
    match text.domain.keys:
        case (str() as word,):
            return len(word.encode())
    return text.domain.longest * BYTES_PER_CHARACTER


COSTS: dict[str, Cost] = {
    **dict.fromkeys(["=", "<", "<=", "in", "is null", "case", "coalesce", "and", "or", "not"], each(100)),
    **dict.fromkeys(["+", "-"], each(500)),
    **dict.fromkeys(["*", "/", "round"], each(1_000)),
    **dict.fromkeys(["magnitude", "round to", "width_bucket"], each(4_000)),
    "mod": each(100_000),
    **dict.fromkeys(["lower", "upper"], letters.case_cost),
    **dict.fromkeys(["trim", "ltrim", "rtrim"], per_character(120)),
    **dict.fromkeys(["substr", "starts_with", "ends_with", "||", "length"], per_character(20)),
    **dict.fromkeys(["contains", "replace"], search_cost),
    "number": per_character(100),
    **dict.fromkeys(["date", "timestamp"], per_character(250)),
    "text": each(2_000),
    **dict.fromkeys([*PARTS, "week", "days between", "sqrt", "sign"], each(1_000)),
    "right": per_character(20),
    **dict.fromkeys(["position", "split_part"], search_cost),
    **dict.fromkeys([f"start of {unit}" for unit in UNITS], each(1_000)),
}


@dataclass(frozen=True)
class Postgres(Foreign):
    """Doubles raise when they overflow and when they underflow, casts raise, and there is no TRY_CAST."""

    own = OWN
    costs = COSTS
    whole_types = WHOLE | {"bigint"}
    double_types = frozenset({"real", "double precision"})

    @property
    def name(self) -> str:
        return "postgres"

    def operands(self, call: Call) -> list[Sql]:
        """The case of a text that is compared with constants is changed only for letters that matter there."""
        match letters.case_comparison(call):
            case None:
                return super().operands(call)
            case place, few:
                return [self.change_case(one, few) if i == place else self.compiled(one)
                        for i, one in enumerate(call.arguments)]  # fmt: skip

    def change_case(self, text: Expression, few: str) -> Sql:
        """LOWER or UPPER of a text, for ASCII and these letters only."""
        assert isinstance(text, Call)
        return raw(letters.change_letters(text.name, few, self.compiled(text.arguments[0]).sql(self.name)))

    def operands_cost(self, call: Call) -> float:
        found = letters.case_comparison(call)
        if found is None:
            return super().operands_cost(call)
        changed = call.arguments[found[0]]
        assert isinstance(changed, Call)
        return letters.few_letters_cost(changed, found[1]) + self.cost(changed.arguments[0])

    def copies(self, call: Call) -> int:
        """PostgreSQL reads x IN (y, z) as x = y OR x = z, unless y and z are constants."""
        if call.name != "in":
            return super().copies(call)
        return 1 + sum(not isinstance(one, Constant) for one in call.arguments[1:])

    def reading_cost(self, column: Column) -> float:
        """Without a schema it is not known how a column is read; no statement is run without one. Columns of derived
        tables, and of other types that fit, such as timestamps with a zone, are read through short texts."""
        kind, type_ = column.domain.kind, self.types.get(column.origin)
        if kind is Kind.TEXT:
            return READ_TEXT
        if type_ is not None and base_type(type_) == "NUMERIC" and kind is Kind.NUMBER:
            return READ_DECIMAL if type_ == "numeric" else READ_WORDS[kind]
        if not self.schema or type_ in TYPES[kind]:
            return READ_OTHER
        made = LABEL.fullmatch(column.origin.partition(".")[2]) is not None
        short = made or (type_ is not None and kind_of(type_) in (Kind.NUMBER, Kind.DATE, Kind.TRUTH))
        return READ_SHORT if short else READ_WORDS[kind]

    def cast(self, name: str, kind: Kind, value: str, numbers: Sequence[int]) -> str:
        match name, kind:
            case "round to", _:
                return total.round_to(value, numbers[0])
            case "number", Kind.TRUTH:
                return f"CAST(CAST({value} AS INTEGER) AS {DOUBLE})"
            case "number", _:
                return total.number_of_text(value)
            case "date", Kind.DATE:
                return f"DATE_TRUNC('day', {value})"
            case "date", _:
                return total.day_of_text(value)
        return total.moment_of_text(value)

    def column(self, column: Sql, kind: Kind, type_: str | None) -> Sql:
        plain = column.sql(self.name)
        text = f"CAST({plain} AS TEXT){COLLATION}"
        short = f"CASE WHEN OCTET_LENGTH({text}) <= {LONGEST_TEXT} THEN {text} END"  # of ASCII, if it is of that kind
        match kind, type_:
            case Kind.NUMBER, "smallint" | "integer" | "bigint":
                return raw(f"CAST({plain} AS {DOUBLE})")
            case Kind.NUMBER, "real" | "double precision":
                return raw(f"CAST(NULLIF({plain}, 'NaN') AS {DOUBLE})")
            case Kind.NUMBER, "numeric":
                return raw(total.number_of_decimal(f"NULLIF({plain}, 'NaN')"))
            case Kind.NUMBER, "boolean":
                return raw(f"CAST(CAST({plain} AS INTEGER) AS {DOUBLE})")
            case Kind.NUMBER, _:
                return raw(f"NULLIF({total.number_of_text(short)}, {NAN})")
            case Kind.TEXT, _:
                return raw(f"({text})")
            case Kind.TRUTH, "boolean":
                return column
            case Kind.TRUTH, _ if type_ in NUMBERS:
                return raw(f"({plain} <> 0)")
            case Kind.TRUTH, _:
                return raw(total.truth_of_text(short))
            case Kind.DATE, "date":
                return raw(total.moment_of_date(plain))
            case Kind.DATE, "timestamp without time zone":
                return raw(total.within_calendar(plain))
        return raw(total.moment_of_text(short))

    def number(self, value: float) -> Sql:
        return raw(f"CAST({value!r} AS {DOUBLE})")

    def text(self, value: str) -> Sql:
        if "\0" in value:
            raise QueryRefused(
                "a text in PostgreSQL cannot contain the character 0.\n"
                "  found:  one in the question\n  do:     remove it"
            )
        return raw(f"CAST({quote(value)} AS TEXT){COLLATION}")

    def is_nan(self, number: Sql) -> Sql:
        return raw(f"({number.sql(self.name)} = {NAN})")

    def as_text(self, value: Sql) -> Sql:
        return raw(f"CAST({value.sql(self.name)} AS TEXT){COLLATION}")

    def apart(self, column: Sql, type_: str | None) -> Sql:
        return column if type_ in NUMBERS else self.as_text(column)

    def date_text(self, moment: Sql) -> Sql:
        return raw(total.text_of_moment(moment.sql(self.name)))

    def first(self, value: str, order: Sequence[str]) -> str:
        return f"(ARRAY_AGG({value} ORDER BY {', '.join(order)}))[1]"

    def digest(self, text: str) -> str:
        """The bytes are put in order as digits, as long as they are digits."""
        digits = " || ".join(f"SUBSTR({A}, {2 * place + 1}, 2)" for place in reversed(range(BYTES)))
        return let(f"CAST(CAST('x' || {digits} AS BIT({8 * BYTES})) AS BIGINT)", a=f"MD5({text})")

    @property
    def counts_before_hashing(self) -> bool:
        """MD5 takes microseconds here."""
        return True

    def joined(self, texts: Sequence[str], between: str) -> str:
        """CONCAT would ask for the way to write each type."""
        return f" || {self.text(between).sql(self.name)} || ".join(f"({one})" for one in texts)

    def key(self, column: Column) -> Sql | None:
        """Integers are compared faster than doubles."""
        known = column.domain.kind is Kind.NUMBER and self.types.get(column.origin) in WHOLE
        return names.column(column.origin) if known else None

    def quotient(self, a: str, b: str) -> str:
        return f"DIV({a}, {b})"

    def double(self, integer: str) -> str:
        return f"CAST({integer} AS {DOUBLE})"

    def scaled(self, value: str, by: float) -> str:
        """0 where the product would underflow, which raises."""
        return f"CASE WHEN ABS({value}) < 1e-200 THEN 0 ELSE {value} * {by!r} END"

    def lists(self, *listed: str) -> list[str]:
        return [f"ARRAY_AGG({one} ORDER BY {listed[0]})" for one in listed]
