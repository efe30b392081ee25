"""Arithmetic, in doubles: they overflow to infinity instead of raising, and divisors are guarded."""

import math
from collections.abc import Callable

from sqlglot import exp

from sfumato.sql.domains import Kind, Scalar, number
from sfumato.sql.functions.costs import each
from sfumato.sql.functions.function import BOTH, Function, Sql, emit_binary, emit_call, of_type, paren
from sfumato.sql.functions.result_domains import (
    absolute_domain,
    clamped_domain,
    difference_domain,
    exponential_domain,
    greatest_domain,
    integer_keys,
    least_domain,
    logarithm_domain,
    power_domain,
    product_domain,
    quotient_domain,
    root_domain,
    rounded_domain,
    sum_domain,
)

LEAST_SIZE, SIZES = 2.0**-10, 60  # magnitudes: from 2⁻¹⁰ to 2⁵⁰
NUMBER = Kind.NUMBER


def emit_negative(a: Sql) -> Sql:
    return paren(exp.Neg(this=paren(a)))


def emit_quotient(a: Sql, b: Sql) -> Sql:
    return paren(
        exp.Div(this=paren(a), expression=exp.func("NULLIF", b, exp.Literal.number("0")), typed=False, safe=False)
    )


def emit_remainder(a: Sql, b: Sql) -> Sql:
    """The remainder of doubles; NULL by 0."""
    return paren(exp.Mod(this=paren(a), expression=exp.func("NULLIF", b, exp.Literal.number("0"))))


def emit_round_to(a: Sql, digits: Sql) -> Sql:
    return exp.Anonymous(this="round", expressions=[a, exp.Cast(this=digits, to=of_type("INT"))])


def emit_clamp(a: Sql, low: Sql, high: Sql) -> Sql:
    """NULL stays NULL: LEAST and GREATEST would take it for a bound."""
    return paren(
        exp.Case().when(exp.Is(this=a, expression=exp.null()), exp.null())
        .else_(exp.func("LEAST", exp.func("GREATEST", a.copy(), low), high))
    )  # fmt: skip


def emit_width_bucket(a: Sql, low: Sql, high: Sql, count: Sql) -> Sql:
    """0 below low, 1 … count from low to high, count + 1 from high on. NULL stays NULL."""
    wide = exp.paren(exp.Sub(this=high, expression=low.copy()))
    share = exp.Div(this=exp.paren(exp.Sub(this=a, expression=low)), expression=wide, typed=False, safe=False)
    place = exp.func("FLOOR", exp.Mul(this=exp.paren(share), expression=count)) + 1
    return emit_clamp(exp.paren(place), exp.Literal.number("0"), count.copy() + 1)


def emit_magnitude(a: Sql) -> Sql:
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


def only_where(kind: type[exp.Binary], a: Sql) -> Sql:
    """a where it is positive (or non-negative), else NULL: the engine never computes what would raise."""
    zero = exp.cast(exp.Literal.number("0"), "DOUBLE")
    return exp.Case().when(kind(this=paren(a.copy()), expression=zero), a).else_(exp.null())


def emit_sqrt(a: Sql) -> Sql:
    return exp.Anonymous(this="SQRT", expressions=[only_where(exp.GTE, a)])


def emit_logarithm(name: str) -> Callable[[Sql], Sql]:
    return lambda a: exp.Anonymous(this=name, expressions=[only_where(exp.GT, a)])


def emit_sign(a: Sql) -> Sql:
    return exp.Cast(this=exp.Anonymous(this="SIGN", expressions=[a]), to=of_type("DOUBLE"))


# ---- of released values ---------------------------------------------------------------------------------------------


def round_half_away(value: float, digits: float = 0) -> float:
    """Round as the engine does: halves away from zero."""
    scale = 10.0**digits
    return math.copysign(math.floor(abs(value) * scale + 0.5) / scale, value)


def least(*values: Scalar) -> Scalar:
    """As in the engine, NULL is ignored."""
    return min((v for v in values if isinstance(v, int | float)), default=None)


def greatest(*values: Scalar) -> Scalar:
    return max((v for v in values if isinstance(v, int | float)), default=None)


FUNCTIONS: dict[str, Function] = {
    "+": Function(
        (NUMBER, NUMBER),
        sum_domain,
        emit_binary(exp.Add),
        lambda a, b: a + b,
        (exp.Add,),
        commutes=True,
        cost=each(50),
        same_in=("spark",),
    ),
    "-": Function(
        (NUMBER, NUMBER),
        difference_domain,
        emit_binary(exp.Sub),
        lambda a, b: a - b,
        (exp.Sub,),
        cost=each(50),
        same_in=("spark",),
    ),
    "*": Function(
        (NUMBER, NUMBER),
        product_domain,
        emit_binary(exp.Mul),
        lambda a, b: a * b,
        (exp.Mul,),
        commutes=True,
        cost=each(50),
        same_in=("spark",),
    ),
    "/": Function(
        (NUMBER, NUMBER),
        quotient_domain,
        emit_quotient,
        lambda a, b: a / b if b else None,
        (exp.Div, exp.SafeDivide),
        cost=each(50),
        same_in=("spark",),
    ),
    "mod": Function(
        (NUMBER, NUMBER),
        lambda a, b: number(),
        emit_remainder,
        math.fmod,
        (exp.Mod,),
        cost=each(6_000),
        same_in=("spark",),
    ),
    "negative": Function(
        (NUMBER,),
        lambda a: number(-a.high, -a.low, a.step),
        emit_negative,
        lambda a: -a,
        (exp.Neg,),
        cost=each(50),
        same_in=BOTH,
    ),
    "abs": Function((NUMBER,), absolute_domain, emit_call("ABS"), abs, (exp.Abs,), cost=each(50), same_in=BOTH),
    "floor": Function(
        (NUMBER,), rounded_domain, emit_call("FLOOR"), math.floor, (exp.Floor,), cost=each(50), same_in=("postgres",)
    ),
    "ceil": Function(
        (NUMBER,), rounded_domain, emit_call("CEIL"), math.ceil, (exp.Ceil,), cost=each(50), same_in=("postgres",)
    ),
    "round": Function((NUMBER,), rounded_domain, emit_call("ROUND"), round_half_away, cost=each(50)),
    "round to": Function(
        (NUMBER, NUMBER),
        lambda a, b: number(a.low - 0.5, a.high + 0.5),
        emit_round_to,
        round_half_away,
        cost=each(200),
        constants=((12,), (0,)),
    ),
    "least": Function(
        (NUMBER,),
        least_domain,
        emit_call("LEAST"),
        least,
        (exp.Least,),
        more=True,
        strict=False,
        cost=each(50),
        same_in=BOTH,
    ),
    "greatest": Function(
        (NUMBER,),
        greatest_domain,
        emit_call("GREATEST"),
        greatest,
        (exp.Greatest,),
        more=True,
        strict=False,
        cost=each(50),
        same_in=BOTH,
    ),
    "clamp": Function(
        (NUMBER, NUMBER, NUMBER),
        clamped_domain,
        emit_clamp,
        lambda a, low, high: min(max(a, low), high),
        ("clamp",),
        copies=2,
        cost=each(50),
        same_in=BOTH,
    ),
    "width_bucket": Function(
        (NUMBER,) * 4,
        lambda a, low, high, n: integer_keys(0, int(n.high) + 1),
        emit_width_bucket,
        copies=2,
        cost=each(200),
        constants=((0.0, 60.0, 1000),),
    ),
    "sqrt": Function((NUMBER,), root_domain, emit_sqrt, math.sqrt, (exp.Sqrt,), copies=2, cost=each(50)),
    "ln": Function((NUMBER,), logarithm_domain, emit_logarithm("LN"), math.log, (exp.Ln,), copies=2, cost=each(200)),
    "log10": Function((NUMBER,), logarithm_domain, emit_logarithm("LOG10"), math.log10, copies=2, cost=each(200)),
    "log2": Function((NUMBER,), logarithm_domain, emit_logarithm("LOG2"), math.log2, copies=2, cost=each(200)),
    "exp": Function(
        (NUMBER,),
        exponential_domain,
        lambda a: exp.Anonymous(this="EXP", expressions=[a]),
        math.exp,
        (exp.Exp,),
        cost=each(200),
    ),
    "power": Function(
        (NUMBER, NUMBER),
        power_domain,
        lambda a, k: exp.Anonymous(this="POWER", expressions=[a, k]),
        math.pow,
        cost=each(200),
        constants=((10,), (2,)),
    ),
    "sign": Function(
        (NUMBER,),
        lambda a: integer_keys(-1, 1),
        emit_sign,
        lambda a: float((a > 0) - (a < 0)),
        (exp.Sign,),
        cost=each(50),
    ),
    "magnitude": Function((NUMBER,), lambda a: integer_keys(-SIZES, SIZES), emit_magnitude, copies=4, cost=each(200)),
}
