"""The normal form of an expression: checked, folded, in one order, so that spellings do not make questions."""

import datetime
import re

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.functions import FUNCTIONS

HEAVIEST = 2000  # words and signs of an expression, written out for an engine
WRITTEN = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?")


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
        read = [call("timestamp", a) if isinstance(a, Constant) and isinstance(a.value, str) else a for a in arguments]
        arguments, kinds = tuple(read), {a.domain.kind for a in read if a != Constant(None)}
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
        case "date" | "timestamp" if isinstance(values[0], str) and WRITTEN.fullmatch(values[0]):
            return dated(name, values[0])
        case "negative" if isinstance(values[0], int | float) and not isinstance(values[0], bool):
            return Constant(-values[0])
    return Call(name, arguments)


def dated(name: str, text: str) -> Expression:
    """A date that stands in the text, in one spelling; one that is none stays as it is, and is NULL in every engine."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return Call(name, (Constant(text),))
    if name == "date":
        found = found.replace(hour=0, minute=0, second=0, microsecond=0)
    return Call("timestamp", (Constant(str(found)),))
