"""Expressions over one row: total, deterministic, and in one normal form.

An expression that could raise in an engine would be an answer, so there is none: numbers are doubles (which overflow to
infinity), divisors are guarded, casts give NULL, and functions come from a list. Nothing looks beyond its own row.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import DATE, TEXT, TRUTH, Domain, Kind, Scalar, number


@dataclass(frozen=True)
class Column:
    """A column of the source; `origin` is its lineage (table and column), not the name it goes by."""

    origin: str
    domain: Domain

    def __repr__(self) -> str:
        return self.origin

    @property
    def weight(self) -> int:
        return 1


@dataclass(frozen=True)
class Constant:
    """A literal of the text: public."""

    value: Scalar

    def __repr__(self) -> str:
        number = isinstance(self.value, int) and not isinstance(self.value, bool)
        return repr(float(self.value) if number and self.value is not None else self.value)  # 1 and 1.0 are one number

    @property
    def domain(self) -> Domain:
        match self.value:
            case bool():
                return TRUTH
            case int() | float():
                return Domain(Kind.NUMBER, float(self.value), float(self.value), keys=(float(self.value),))
            case str():
                return Domain(Kind.TEXT, keys=(self.value,))
        return Domain(Kind.TRUTH)

    @property
    def weight(self) -> int:
        return 1


@dataclass(frozen=True)
class Call:
    """A function of the list below, or an operator."""

    name: str
    arguments: tuple["Expression", ...]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"

    @cached_property
    def domain(self) -> Domain:
        return FUNCTIONS[self.name].domain(*(argument.domain for argument in self.arguments))

    @cached_property
    def weight(self) -> int:
        """How long it is once written out for an engine; views put into views could make that endless."""
        return 1 + sum(argument.weight for argument in self.arguments) * FUNCTIONS[self.name].copies


@dataclass(frozen=True)
class Output:
    """A released value: a key or an aggregate of the answer. What is made of it costs nothing."""

    place: int
    domain: Domain

    def __repr__(self) -> str:
        return f"output {self.place}"

    @property
    def weight(self) -> int:
        return 1


Expression = Column | Constant | Call | Output
Sql = exp.Expression


@dataclass(frozen=True)
class Function:
    """What an allowed function takes and gives, and how an engine is told of it without ever raising."""

    kinds: tuple[Kind | tuple[Kind, ...] | None, ...]  # of the arguments; None: any
    domain: Callable[..., Domain]
    emit: Callable[..., Sql]
    commutes: bool = False
    more: bool = False  # the last kind may repeat
    alike: bool = False  # all arguments are of one kind
    copies: int = 1  # how often the engine's text repeats its arguments
    strict: bool = True  # NULL among the arguments makes it NULL


def call(name: str, *arguments: Expression) -> Expression:
    """The normal form of name(arguments): checked, folded, operands of commutative functions in one order."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise QueryRefused(
            f"{name.upper()} is not among the functions that questions may use.\n  do:     see docs/sql.md"
        )
    kinds = function.kinds + function.kinds[-1:] * (len(arguments) - len(function.kinds) if function.more else 0)
    if len(kinds) != len(arguments):
        raise QueryRefused(f"{name.upper()} takes {len(function.kinds)} arguments.\n  found:  {len(arguments)}")
    if sum(argument.weight for argument in arguments) * function.copies >= HEAVIEST:
        raise QueryRefused(
            f"this question is too long, written out.\n  found:  {name.upper()} of very long expressions"
        )
    for place, (kind, argument) in enumerate(zip(kinds, arguments, strict=True), 1):
        fitting = (kind,) if isinstance(kind, Kind) else kind
        if fitting is not None and argument.domain.kind not in fitting and argument != Constant(None):
            raise QueryRefused(
                f"{name.upper()}, argument {place}: must be a {' or '.join(one.value for one in fitting)}.\n"
                f"  found:  a {argument.domain.kind.value}\n  do:     compare like with like, or CAST it"
            )
    if function.alike:
        arguments = of_one_kind(name, arguments)
    if name == "case":
        arguments = cases(arguments)
    if function.strict and Constant(None) in arguments:
        return Constant(None)
    return simplified(name, tuple(sorted(arguments, key=repr)) if function.commutes else arguments)


def cases(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """WHEN takes conditions, and what follows is of one kind: an engine would cast, and a cast of data can raise."""
    for condition in arguments[:-1:2]:
        call("and", condition)  # refuses what is no condition
    results = of_one_kind("case", (*arguments[1::2], arguments[-1]))
    between = [part for pair in zip(arguments[:-1:2], results[:-1], strict=True) for part in pair]
    return (*between, results[-1])


def of_one_kind(name: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The arguments, a text that is compared with a date read as one."""
    known = [a for a in arguments if a != Constant(None)]
    kinds = {a.domain.kind for a in known}
    if kinds == {Kind.DATE, Kind.TEXT}:
        read = [Call("date", (a,)) if isinstance(a, Constant) and isinstance(a.value, str) else a for a in arguments]
        arguments, kinds = tuple(read), {a.domain.kind for a in read}
    if len(kinds) > 1:
        found = ", ".join(sorted(kind.value for kind in kinds))
        raise QueryRefused(
            f"{name.upper()} compares values of one kind.\n  found:  {found}\n  do:     CAST one of them"
        )
    return arguments


def simplified(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """Boolean constants and double negations go; so `WHERE 1 = 1 AND x` is the question `WHERE x`."""
    values = [argument.value if isinstance(argument, Constant) else ... for argument in arguments]
    match name:
        case "and" | "or":
            neutral = name == "and"
            if (not neutral) in values:
                return Constant(not neutral)
            flat = [
                part
                for argument in arguments
                for part in (
                    argument.arguments if isinstance(argument, Call) and argument.name == name else (argument,)
                )
                if part != Constant(neutral)
            ]
            unique = sorted(dict.fromkeys(flat), key=repr)
            return unique[0] if len(unique) == 1 else Call(name, tuple(unique)) if unique else Constant(neutral)
        case "not" if isinstance(values[0], bool):
            return Constant(not values[0])
        case "not" if isinstance(arguments[0], Call) and arguments[0].name == "not":
            return arguments[0].arguments[0]
        case "=" | "<" | "<=" if all(isinstance(v, int | float | str) for v in values):
            a, b = values
            return Constant({"=": a == b, "<": a < b, "<=": a <= b}[name])  # type: ignore[operator]
        case "is null" if arguments[0] == Constant(None):
            return Constant(True)
        case "in" if len(set(arguments[1:])) == 1:
            return call("=", arguments[0], arguments[1])
        case "in":
            return Call(name, (arguments[0], *sorted(dict.fromkeys(arguments[1:]), key=repr)))
        case "least" | "greatest":
            flat = [
                part
                for one in arguments
                for part in (one.arguments if isinstance(one, Call) and one.name == name else (one,))
            ]
            return Call(name, tuple(sorted(dict.fromkeys(flat), key=repr)))
        case "negative" if isinstance(values[0], int | float) and not isinstance(values[0], bool):
            return Constant(-values[0])
    return Call(name, arguments)


def columns(expression: Expression) -> Iterator[Column]:
    """All columns that an expression reads."""
    if isinstance(expression, Column):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns(argument)


# ---- ranges ---------------------------------------------------------------------------------------------------------


def added(a: Domain, b: Domain) -> Domain:
    step = a.step if a.step == b.step else None
    return number(a.low + b.low, a.high + b.high, step)


def subtracted(a: Domain, b: Domain) -> Domain:
    step = a.step if a.step == b.step else None
    return number(a.low - b.high, a.high - b.low, step)


def multiplied(a: Domain, b: Domain) -> Domain:
    ends = [x * y if x and y else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
    return number(min(ends), max(ends), a.step * b.step if a.step and b.step else None)


def divided(a: Domain, b: Domain) -> Domain:
    if b.low <= 0 <= b.high:
        return number()
    ends = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    return number(min(ends), max(ends))


def covering(*domains: Domain) -> Domain:
    """A domain that holds all of these."""
    known = [d for d in domains if d != Domain(Kind.TRUTH)]
    if not known:
        return Domain(Kind.TRUTH)
    keys = [d.keys for d in known]
    merged = None if None in keys else tuple(dict.fromkeys(k for ks in keys if ks is not None for k in ks))
    if known[0].kind is not Kind.NUMBER:
        return Domain(known[0].kind, keys=merged)
    steps = {d.step for d in known}
    low, high = min(d.low for d in known), max(d.high for d in known)
    return Domain(Kind.NUMBER, low, high, steps.pop() if len(steps) == 1 else None, merged)


def absolute(a: Domain) -> Domain:
    low = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return number(low, max(abs(a.low), abs(a.high)), a.step)


def rounded(a: Domain) -> Domain:
    return number(math.floor(a.low) if math.isfinite(a.low) else a.low, math.ceil(a.high) if a.bounded else a.high, 1.0)


def clamped(a: Domain, low: Domain, high: Domain) -> Domain:
    return number(min(max(a.low, low.low), high.low), min(max(a.high, low.high), high.high), a.step)


# ---- what an engine is told -----------------------------------------------------------------------------------------


def paren(inner: exp.Expr) -> Sql:
    return exp.Paren(this=inner)


def of_type(name: str) -> exp.DataType:
    return exp.DataType(this=exp.DataType.Type[name])


def named(function: str) -> Callable[..., Sql]:
    def emit(*arguments: Sql) -> Sql:
        return exp.func(function, *arguments)  # type: ignore[return-value]

    return emit


def binary(kind: type[exp.Binary]) -> Callable[[Sql, Sql], Sql]:
    return lambda a, b: paren(kind(this=paren(a), expression=paren(b)))


def folded(kind: type[exp.Binary]) -> Callable[..., Sql]:
    """Many operands as a balanced tree: a long chain must not be a deep one."""

    def emit(*parts: Sql) -> Sql:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return paren(kind(this=emit(*parts[:half]), expression=emit(*parts[half:])))

    return emit


def among(a: Sql, *rest: Sql) -> Sql:
    return paren(exp.In(this=paren(a), expressions=list(rest)))


def negated(a: Sql) -> Sql:
    return paren(exp.Neg(this=paren(a)))


def counted(low: int, high: int) -> Domain:
    """Whole numbers that are public keys."""
    return Domain(Kind.NUMBER, low, high, 1.0, tuple(float(n) for n in range(low, high + 1)))


def guarded(a: Sql, b: Sql) -> Sql:
    return paren(
        exp.Div(this=paren(a), expression=exp.func("NULLIF", b, exp.Literal.number("0")), typed=False, safe=False)
    )


def cased(*arguments: Sql) -> Sql:
    found = exp.Case()
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        found = found.when(condition, value)
    return paren(found.else_(arguments[-1]))


def part(name: str) -> Callable[[Sql], Sql]:
    """A part of a date; infinite dates have none."""

    def emit(a: Sql) -> Sql:
        finite = exp.func("ISFINITE", a)
        taken = exp.Anonymous(this="date_part", expressions=[exp.Literal.string(name), a.copy()])
        return paren(exp.Case().when(finite, exp.Cast(this=taken, to=of_type("DOUBLE"))).else_(exp.null()))

    return emit


def as_number(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=of_type("DOUBLE"))


def as_text(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=of_type("TEXT"))


def as_time(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=of_type("TIMESTAMP"))


def as_date(a: Sql) -> Sql:
    """Midnight. Every date is a TIMESTAMP: to compare one with a DATE, an engine would cast, and that can raise."""
    return as_time(exp.TryCast(this=a, to=of_type("DATE")))


def cut(a: Sql) -> Sql:
    """The first characters of a text, so that what is joined cannot outgrow what an engine holds."""
    return exp.Anonymous(this="left", expressions=[as_text(a), exp.Literal.number(str(LONG))])


def size_of(a: Sql) -> Sql:
    return exp.Cast(this=exp.Length(this=a), to=of_type("DOUBLE"))


def joined(*parts: Sql) -> Sql:
    return folded(exp.DPipe)(*map(cut, parts))


def slice_of(a: Sql, start: Sql, length: Sql) -> Sql:
    return exp.Anonymous(
        this="substring",
        expressions=[a, exp.Cast(this=start, to=of_type("BIGINT")), exp.Cast(this=length, to=of_type("BIGINT"))],
    )


def to_digits(a: Sql, digits: Sql) -> Sql:
    return exp.Anonymous(this="round", expressions=[a, exp.Cast(this=digits, to=of_type("INT"))])


def remainder(a: Sql, b: Sql) -> Sql:
    """As doubles have it; nothing by 0."""
    return paren(exp.Mod(this=paren(a), expression=exp.func("NULLIF", b, exp.Literal.number("0"))))


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


def clipped(a: Sql, low: Sql, high: Sql) -> Sql:
    """NULL stays NULL: LEAST and GREATEST would take it for a bound."""
    return paren(
        exp.Case().when(exp.Is(this=a, expression=exp.null()), exp.null())
        .else_(exp.func("LEAST", exp.func("GREATEST", a.copy(), low), high))
    )  # fmt: skip


def bucket(a: Sql, low: Sql, high: Sql, count: Sql) -> Sql:
    """0 below low, 1 … count from low to high, count + 1 from high on. NULL stays NULL."""
    wide = exp.paren(exp.Sub(this=high, expression=low.copy()))
    share = exp.Div(this=exp.paren(exp.Sub(this=a, expression=low)), expression=wide, typed=False, safe=False)
    place = exp.func("FLOOR", exp.Mul(this=exp.paren(share), expression=count)) + 1
    return clipped(exp.paren(place), exp.Literal.number("0"), count.copy() + 1)


def magnitude(a: Sql) -> Sql:
    """sign(a)·(how many doublings |a| lies above LEAST_SIZE, and one), up to SIZES; 0 below it."""
    one, size = exp.Literal.number("1"), exp.func("ABS", a) / exp.Literal.number(repr(LEAST_SIZE))
    doublings = exp.Anonymous(this="LOG2", expressions=[exp.func("GREATEST", size.copy(), one)])
    steps = exp.func("FLOOR", doublings) + 1
    sized = exp.func("LEAST", steps, exp.Literal.number(str(SIZES)))
    return exp.paren(
        exp.Case().when(exp.Is(this=a.copy(), expression=exp.null()), exp.null())
        .when(size < one.copy(), exp.cast(exp.Literal.number("0"), "DOUBLE"))
        .else_(exp.func("SIGN", a.copy()) * exp.cast(sized, "DOUBLE"))
    )  # fmt: skip


LEAST_SIZE, SIZES = 2.0**-10, 60  # magnitudes: from 2⁻¹⁰ to 2⁵⁰

HEAVIEST, LONG = 5000, 10_000
NUMBER, WORDS, YES, DAY = Kind.NUMBER, Kind.TEXT, Kind.TRUTH, Kind.DATE


def truth(*_: Domain) -> Domain:
    return TRUTH


def text_of(*_: Domain) -> Domain:
    return TEXT


def of_same(*domains: Domain) -> Domain:
    return covering(*domains)


FUNCTIONS: dict[str, Function] = {
    "and": Function((YES,), truth, folded(exp.And), commutes=True, more=True, strict=False),
    "or": Function((YES,), truth, folded(exp.Or), commutes=True, more=True, strict=False),
    "not": Function((YES,), truth, lambda a: paren(exp.Not(this=paren(a)))),
    "=": Function((None, None), truth, binary(exp.EQ), commutes=True, alike=True),
    "<": Function((None, None), truth, binary(exp.LT), alike=True),
    "<=": Function((None, None), truth, binary(exp.LTE), alike=True),
    "is null": Function((None,), truth, lambda a: paren(exp.Is(this=paren(a), expression=exp.null())),
                        strict=False),
    "like": Function((WORDS, WORDS), truth, binary(exp.Like)),
    "in": Function((None, None), truth, among, more=True, alike=True, strict=False),
    "+": Function((NUMBER, NUMBER), added, binary(exp.Add), commutes=True),
    "-": Function((NUMBER, NUMBER), subtracted, binary(exp.Sub)),
    "*": Function((NUMBER, NUMBER), multiplied, binary(exp.Mul), commutes=True),
    "/": Function((NUMBER, NUMBER), divided, guarded),
    "mod": Function((NUMBER, NUMBER), lambda a, b: number(), remainder),
    "round to": Function((NUMBER, NUMBER), lambda a, b: number(a.low - 0.5, a.high + 0.5), to_digits),
    "negative": Function((NUMBER,), lambda a: number(-a.high, -a.low, a.step), negated),
    "abs": Function((NUMBER,), absolute, named("ABS")),
    "floor": Function((NUMBER,), rounded, named("FLOOR")),
    "ceil": Function((NUMBER,), rounded, named("CEIL")),
    "round": Function((NUMBER,), rounded, named("ROUND")),
    "least": Function((NUMBER,), lambda *d: number(min(a.low for a in d), max(a.high for a in d)), named("LEAST"),
                      more=True, strict=False),  # as in the engine, NULL is passed over
    "greatest": Function((NUMBER,), lambda *d: number(min(a.low for a in d), max(a.high for a in d)), named("GREATEST"),
                         more=True, strict=False),
    "clamp": Function((NUMBER, NUMBER, NUMBER), clamped, clipped, copies=2),
    "width_bucket": Function((NUMBER,) * 4, lambda a, low, high, n: counted(0, int(n.high) + 1), bucket, copies=2),
    "magnitude": Function((NUMBER,), lambda a: counted(-SIZES, SIZES), magnitude, copies=4),
    "case": Function((None,), lambda *d: covering(*d[1:-1:2], d[-1]), cased, more=True, strict=False),
    "coalesce": Function((None,), of_same, named("COALESCE"), more=True, alike=True, strict=False),
    "number": Function(((NUMBER, WORDS, YES),), lambda a: a if a.kind is NUMBER else number(), as_number),
    "text": Function((None,), text_of, as_text),
    "date": Function(((WORDS, DAY),), lambda a: DATE, as_date),
    "timestamp": Function(((WORDS, DAY),), lambda a: DATE, as_time),
    "lower": Function((WORDS,), text_of, named("LOWER")),
    "upper": Function((WORDS,), text_of, named("UPPER")),
    "trim": Function((WORDS,), text_of, named("TRIM")),
    "ltrim": Function((WORDS,), text_of, named("LTRIM")),
    "rtrim": Function((WORDS,), text_of, named("RTRIM")),
    "substr": Function((WORDS, NUMBER, NUMBER), text_of, slice_of),
    "replace": Function((WORDS, WORDS, WORDS), text_of, named("REPLACE")),
    "||": Function((WORDS,), text_of, joined, more=True),
    "starts_with": Function((WORDS, WORDS), truth, named("STARTS_WITH")),
    "ends_with": Function((WORDS, WORDS), truth, named("ENDS_WITH")),
    "contains": Function((WORDS, WORDS), truth, named("CONTAINS")),
    "length": Function((WORDS,), lambda a: number(0, math.inf, 1.0), size_of),
    "year": Function((DAY,), lambda a: number(step=1.0), part("year"), copies=2),
    "month": Function((DAY,), lambda a: counted(1, 12), part("month"), copies=2),
    "start of year": Function((DAY,), lambda a: DATE, beginning("year"), copies=2),
    "start of month": Function((DAY,), lambda a: DATE, beginning("month"), copies=2),
    "start of day": Function((DAY,), lambda a: DATE, beginning("day"), copies=2),
    "day": Function((DAY,), lambda a: counted(1, 31), part("day"), copies=2),
    "weekday": Function((DAY,), lambda a: counted(0, 6), part("dow"), copies=2),
    "hour": Function((DAY,), lambda a: counted(0, 23), part("hour"), copies=2),
}  # fmt: skip
