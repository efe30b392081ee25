"""Expressions over one row: total, deterministic, and in one normal form.

An expression that could raise in an engine would be an answer, so there is none: numbers are doubles (which overflow to
infinity), divisors are guarded, casts give NULL, and functions come from a list. Nothing looks beyond its own row.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Constant:
    """A literal of the text: public."""

    value: Scalar

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def domain(self) -> Domain:
        match self.value:
            case bool():
                return TRUTH
            case int() | float():
                return number(float(self.value), float(self.value))
            case str():
                return TEXT
        return Domain(Kind.TRUTH)


@dataclass(frozen=True)
class Call:
    """A function of the list below, or an operator."""

    name: str
    arguments: tuple["Expression", ...]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(repr, self.arguments))})"

    @property
    def domain(self) -> Domain:
        return FUNCTIONS[self.name].domain(*(argument.domain for argument in self.arguments))


@dataclass(frozen=True)
class Output:
    """A released value: a key or an aggregate of the answer. What is made of it costs nothing."""

    place: int
    domain: Domain

    def __repr__(self) -> str:
        return f"output {self.place}"


Expression = Column | Constant | Call | Output
Sql = exp.Expression


@dataclass(frozen=True)
class Function:
    """What an allowed function takes and gives, and how an engine is told of it without ever raising."""

    kinds: tuple[Kind | None, ...]  # of the arguments; None: any
    domain: Callable[..., Domain]
    emit: Callable[..., Sql]
    commutes: bool = False
    more: bool = False  # the last kind may repeat
    alike: bool = False  # all arguments are of one kind


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
    for place, (kind, argument) in enumerate(zip(kinds, arguments, strict=True), 1):
        unknown = isinstance(argument, Constant) and argument.value is None
        if kind is not None and argument.domain.kind is not kind and not unknown:
            raise QueryRefused(
                f"{name.upper()}, argument {place}: must be a {kind.value}.\n  found:  a {argument.domain.kind.value}\n"
                "  do:     compare like with like, or CAST it"
            )
    if function.alike:
        arguments = of_one_kind(name, arguments)
    return simplified(name, tuple(sorted(arguments, key=repr)) if function.commutes else arguments)


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
    if known[0].kind is not Kind.NUMBER:
        keys = [d.keys for d in known]
        merged = None if None in keys else tuple(dict.fromkeys(k for ks in keys if ks is not None for k in ks))
        return Domain(known[0].kind, keys=merged)
    steps = {d.step for d in known}
    return number(min(d.low for d in known), max(d.high for d in known), steps.pop() if len(steps) == 1 else None)


def absolute(a: Domain) -> Domain:
    low = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return number(low, max(abs(a.low), abs(a.high)), a.step)


def rounded(a: Domain) -> Domain:
    return number(math.floor(a.low) if math.isfinite(a.low) else a.low, math.ceil(a.high) if a.bounded else a.high, 1.0)


def clamped(a: Domain, low: Domain, high: Domain) -> Domain:
    return number(max(a.low, low.low), min(a.high, high.high), a.step) if low.bounded and high.bounded else a


# ---- what an engine is told -----------------------------------------------------------------------------------------


def named(function: str) -> Callable[..., Sql]:
    def emit(*arguments: Sql) -> Sql:
        return exp.func(function, *arguments)  # type: ignore[return-value]

    return emit


def binary(kind: type[exp.Binary]) -> Callable[[Sql, Sql], Sql]:
    return lambda a, b: exp.paren(kind(this=exp.paren(a), expression=exp.paren(b)))


def folded(kind: type[exp.Binary]) -> Callable[..., Sql]:
    def emit(first: Sql, *rest: Sql) -> Sql:
        for one in rest:
            first = exp.paren(kind(this=first, expression=one))
        return first

    return emit


def among(a: Sql, *rest: Sql) -> Sql:
    return exp.paren(exp.In(this=exp.paren(a), expressions=list(rest)))


def negated(a: Sql) -> Sql:
    return exp.paren(exp.Neg(this=exp.paren(a)))


def counted(low: int, high: int) -> Domain:
    """Whole numbers that are public keys."""
    return Domain(Kind.NUMBER, low, high, 1.0, tuple(float(n) for n in range(low, high + 1)))


def guarded(a: Sql, b: Sql) -> Sql:
    return exp.paren(
        exp.Div(this=exp.paren(a), expression=exp.func("NULLIF", b, exp.Literal.number("0")), typed=False, safe=False)
    )


def cased(*arguments: Sql) -> Sql:
    found = exp.Case()
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        found = found.when(condition, value)
    return exp.paren(found.else_(arguments[-1]))


def part(name: str) -> Callable[[Sql], Sql]:
    """A part of a date; infinite dates have none."""

    def emit(a: Sql) -> Sql:
        finite = exp.func("ISFINITE", a)
        taken = exp.Anonymous(this="date_part", expressions=[exp.Literal.string(name), a.copy()])
        return exp.paren(exp.Case().when(finite, exp.cast(taken, "DOUBLE")).else_(exp.null()))

    return emit


def as_number(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=exp.DataType.build("DOUBLE"))


def as_text(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=exp.DataType.build("TEXT"))


def as_date(a: Sql) -> Sql:
    return exp.TryCast(this=a, to=exp.DataType.build("DATE"))


def clipped(a: Sql, low: Sql, high: Sql) -> Sql:
    """NULL stays NULL: LEAST and GREATEST would take it for a bound."""
    return exp.paren(
        exp.Case().when(exp.Is(this=a, expression=exp.null()), exp.null())
        .else_(exp.func("LEAST", exp.func("GREATEST", a.copy(), low), high))
    )  # fmt: skip


NUMBER, WORDS, YES, DAY = Kind.NUMBER, Kind.TEXT, Kind.TRUTH, Kind.DATE


def truth(*_: Domain) -> Domain:
    return TRUTH


def text_of(*_: Domain) -> Domain:
    return TEXT


def of_same(*domains: Domain) -> Domain:
    return covering(*domains)


FUNCTIONS: dict[str, Function] = {
    "and": Function((YES,), truth, folded(exp.And), commutes=True, more=True),
    "or": Function((YES,), truth, folded(exp.Or), commutes=True, more=True),
    "not": Function((YES,), truth, lambda a: exp.paren(exp.Not(this=exp.paren(a)))),
    "=": Function((None, None), truth, binary(exp.EQ), commutes=True, alike=True),
    "<": Function((None, None), truth, binary(exp.LT), alike=True),
    "<=": Function((None, None), truth, binary(exp.LTE), alike=True),
    "is null": Function((None,), truth, lambda a: exp.paren(exp.Is(this=exp.paren(a), expression=exp.null()))),
    "like": Function((WORDS, WORDS), truth, binary(exp.Like)),
    "in": Function((None, None), truth, among, more=True, alike=True),
    "+": Function((NUMBER, NUMBER), added, binary(exp.Add), commutes=True),
    "-": Function((NUMBER, NUMBER), subtracted, binary(exp.Sub)),
    "*": Function((NUMBER, NUMBER), multiplied, binary(exp.Mul), commutes=True),
    "/": Function((NUMBER, NUMBER), divided, guarded),
    "negative": Function((NUMBER,), lambda a: number(-a.high, -a.low, a.step), negated),
    "abs": Function((NUMBER,), absolute, named("ABS")),
    "floor": Function((NUMBER,), rounded, named("FLOOR")),
    "ceil": Function((NUMBER,), rounded, named("CEIL")),
    "round": Function((NUMBER,), rounded, named("ROUND")),
    "least": Function((NUMBER, NUMBER), lambda a, b: number(min(a.low, b.low), min(a.high, b.high)),
                      lambda a, b: cased(exp.LTE(this=a, expression=b), a.copy(), b.copy()), commutes=True),
    "greatest": Function((NUMBER, NUMBER), lambda a, b: number(max(a.low, b.low), max(a.high, b.high)),
                         lambda a, b: cased(exp.GTE(this=a, expression=b), a.copy(), b.copy()), commutes=True),
    "clamp": Function((NUMBER, NUMBER, NUMBER), clamped, clipped),
    "case": Function((None,), lambda *d: covering(*d[1:-1:2], d[-1]), cased, more=True),
    "coalesce": Function((None,), of_same, named("COALESCE"), more=True, alike=True),
    "number": Function((None,), lambda a: a if a.kind is NUMBER else number(), as_number),
    "text": Function((None,), text_of, as_text),
    "date": Function((None,), lambda a: DATE, as_date),
    "lower": Function((WORDS,), text_of, named("LOWER")),
    "upper": Function((WORDS,), text_of, named("UPPER")),
    "trim": Function((WORDS,), text_of, named("TRIM")),
    "length": Function((WORDS,), lambda a: number(0, math.inf, 1.0), lambda a: exp.cast(exp.Length(this=a), "DOUBLE")),
    "year": Function((DAY,), lambda a: number(step=1.0), part("year")),
    "month": Function((DAY,), lambda a: counted(1, 12), part("month")),
    "day": Function((DAY,), lambda a: number(1, 31, 1.0), part("day")),
    "weekday": Function((DAY,), lambda a: counted(0, 6), part("dow")),
    "hour": Function((DAY,), lambda a: number(0, 23, 1.0), part("hour")),
}  # fmt: skip
