"""The normal form of an expression: checked, then simplified by the laws of algebra.py, so that spellings do not make
questions."""

import datetime
import re

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.patterns import pattern_problem
from sfumato.sql.rewrite_rules import simplified

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
    if name == "like":
        check_pattern(arguments[1])
    if function.alike:
        arguments = of_one_kind(name, arguments)
    if name == "case":
        arguments = cases(arguments)
    if function.strict and Constant(None) in arguments:
        return Constant(None)
    if name in ("date", "timestamp"):
        return written_date(name, arguments)
    return simplified(name, tuple(sorted(arguments, key=repr)) if function.commutes else arguments)


def check_pattern(pattern: Expression) -> None:
    """Refuses a pattern of LIKE that is not a text of the question (in lower case, of ILIKE), or is slow to match."""
    match pattern:
        case Constant(str() as text) | Call("lower", (Constant(str() as text),)):
            if problem := pattern_problem(text):
                raise QueryRefused(
                    f"this pattern of LIKE could take long to match.\n  found:  {problem}\n"
                    "  do:     write a shorter one, or several: x LIKE 'a%' AND x LIKE '%b_c%'"
                )
        case Constant(None):
            pass
        case _:
            raise QueryRefused(
                "LIKE takes a pattern in quotes.\n  found:  a pattern that is made in each row\n"
                "  do:     ask CONTAINS(x, y), STARTS_WITH(x, y) or ENDS_WITH(x, y)"
            )


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


def written_date(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """A date that stands in the text, in one spelling."""
    match arguments:
        case (Constant(str() as text),) if WRITTEN.fullmatch(text):
            return dated(name, text)
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
