"""Conditions, and choices by them."""

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Domain, Kind, Scalar
from sfumato.sql.functions.costs import Argument, each
from sfumato.sql.functions.function import BOTH, Function, Sql, emit_binary, emit_call, emit_chain, of_type, paren
from sfumato.sql.functions.result_domains import covering_domain, truth_domain

YES, NUMBER, WORDS, DAY = Kind.TRUTH, Kind.NUMBER, Kind.TEXT, Kind.DATE


def emit_in(a: Sql, *rest: Sql) -> Sql:
    return paren(exp.In(this=paren(a), expressions=list(rest)))


def emit_case(*arguments: Sql) -> Sql:
    found = exp.Case()
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        found = found.when(condition, value)
    return paren(found.else_(arguments[-1]))


def case_domain(*domains: Domain) -> Domain:
    """Of CASE: what all its results have in common."""
    return covering_domain(*domains[1:-1:2], domains[-1])


# ---- of released values ---------------------------------------------------------------------------------------------


def all_of(*values: Scalar) -> bool | None:
    return False if False in values else None if None in values else True


def any_of(*values: Scalar) -> bool | None:
    return True if True in values else None if None in values else False


def one_of(sought: Scalar, *others: Scalar) -> bool | None:
    return None if sought is None else True if sought in others else None if None in others else False


def first_true(*values: Scalar) -> Scalar:
    for condition, result in zip(values[:-1:2], values[1::2], strict=True):
        if condition is True:
            return result
    return values[-1]


def first_known(*values: Scalar) -> Scalar:
    return next((value for value in values if value is not None), None)


# ---- one of a series: other values are NULL --------------------------------------------------------------------------


def listed_domain(of: Domain, *values: Domain) -> Domain:
    """The values are public keys."""
    keys = tuple(dict.fromkeys(key for one in values for key in one.keys or ()))
    if of.kind is not NUMBER:
        return Domain(of.kind, keys=keys)
    return Domain(NUMBER, min(one.low for one in values), max(one.high for one in values), keys=keys)


def check_listed(of: Argument, *values: Argument) -> None:
    """Refuses a series that is not of constants."""
    if any(getattr(one, "value", None) is None for one in values):
        raise QueryRefused("a series has numbers or dates that stand in the question.")


def emit_listed(of: Sql, *values: Sql) -> Sql:
    return paren(exp.Case().when(exp.In(this=paren(of), expressions=list(values)), of.copy()).else_(exp.null()))


def emit_listed_date(of: Sql, *values: Sql) -> Sql:
    return emit_listed(of, *(exp.TryCast(this=one, to=of_type("TIMESTAMP")) for one in values))


FUNCTIONS: dict[str, Function] = {
    "and": Function(
        (YES,),
        truth_domain,
        emit_chain(exp.And),
        all_of,
        (exp.And,),
        commutes=True,
        more=True,
        strict=False,
        cost=each(20),
        same_in=BOTH,
    ),
    "or": Function(
        (YES,),
        truth_domain,
        emit_chain(exp.Or),
        any_of,
        (exp.Or,),
        commutes=True,
        more=True,
        strict=False,
        cost=each(20),
        same_in=BOTH,
    ),
    "not": Function(
        (YES,),
        truth_domain,
        lambda a: paren(exp.Not(this=paren(a))),
        lambda a: not a,
        (exp.Not,),
        cost=each(20),
        same_in=BOTH,
    ),
    "=": Function(
        (None, None),
        truth_domain,
        emit_binary(exp.EQ),
        lambda a, b: a == b,
        (exp.EQ,),
        commutes=True,
        alike=True,
        cost=each(20),
        same_in=BOTH,
    ),
    "<": Function(
        (None, None),
        truth_domain,
        emit_binary(exp.LT),
        lambda a, b: a < b,
        (exp.LT,),
        alike=True,
        cost=each(20),
        same_in=BOTH,
    ),
    "<=": Function(
        (None, None),
        truth_domain,
        emit_binary(exp.LTE),
        lambda a, b: a <= b,
        (exp.LTE,),
        alike=True,
        cost=each(20),
        same_in=BOTH,
    ),
    "is null": Function(
        (None,),
        truth_domain,
        lambda a: paren(exp.Is(this=paren(a), expression=exp.null())),
        lambda a: a is None,
        strict=False,
        cost=each(20),
        same_in=BOTH,
    ),
    "in": Function(
        (None, None),
        truth_domain,
        emit_in,
        one_of,
        (exp.In,),
        more=True,
        alike=True,
        strict=False,
        cost=each(20),
        same_in=BOTH,
    ),
    "case": Function((None,), case_domain, emit_case, first_true, more=True, strict=False, cost=each(20), same_in=BOTH),
    "coalesce": Function(
        (None,),
        covering_domain,
        emit_call("COALESCE"),
        first_known,
        (exp.Coalesce,),
        more=True,
        alike=True,
        strict=False,
        cost=each(20),
        same_in=BOTH,
    ),
    "listed number": Function(
        (NUMBER, NUMBER),
        listed_domain,
        emit_listed,
        more=True,
        copies=2,
        cost=each(20),
        check=check_listed,
        constants=((2.5,),),
    ),
    "listed date": Function(
        (DAY, WORDS),
        listed_domain,
        emit_listed_date,
        more=True,
        copies=2,
        cost=each(200),
        check=check_listed,
        constants=(("2024-02-29 00:00:00",),),
    ),
}
