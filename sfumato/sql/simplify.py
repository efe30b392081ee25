"""The normal form of an expression, so that different spellings of one question are one question.

`call` checks the arguments of a function, then applies the laws below. Each law holds for every row on every engine:
under NULL (three truth values), NaN (equal to itself and above all numbers, as every engine orders it), −0 = 0,
infinities, and texts that are compared by their bytes. A law that holds only approximately is not here: x + 0 is not x
at −0, and (a + b) + c is not a + (b + c).
"""

import datetime
import math
import re
from collections.abc import Callable, Sequence

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Constant, Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.logic import one_of
from sfumato.sql.nullable import never_null

HEAVIEST = 2000  # words of an expression as SQL text
WRITTEN = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?")
NOTHING = Constant(None)
SAFE = 1e-290, 1e290  # results that no engine rounds in a way of its own: far from overflow and underflow
WILD = set("%_\\")


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
            f"this question is too long, with its views expanded.\n  found:  {name.upper()} of very long expressions"
        )
    for place, (kind, argument) in enumerate(zip(kinds, arguments, strict=True), 1):
        fitting = (kind,) if isinstance(kind, Kind) else kind
        if fitting is not None and argument.domain.kind not in fitting and argument != Constant(None):
            raise QueryRefused(
                f"{name.upper()}, argument {place}: must be a {' or '.join(one.value for one in fitting)}.\n"
                f"  found:  a {argument.domain.kind.value}\n  do:     compare like with like, or CAST it"
            )
    if function.check is not None:
        function.check(*arguments)
    if function.alike:
        arguments = of_one_kind(name, arguments)
    if name == "case":
        arguments = check_cases(arguments)
    if function.strict and Constant(None) in arguments:
        return Constant(None)
    if name in ("date", "timestamp"):
        return parse_date(name, arguments)
    return apply_law(name, tuple(sorted(arguments, key=repr)) if function.commutes else arguments)


def check_cases(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Check that WHEN has conditions and that all results are of one kind: an engine would cast, which can raise."""
    for condition in arguments[:-1:2]:
        call("and", condition)  # refuses what is no condition
    results = of_one_kind("case", (*arguments[1::2], arguments[-1]))
    between = [part for pair in zip(arguments[:-1:2], results[:-1], strict=True) for part in pair]
    return (*between, results[-1])


def of_one_kind(name: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The arguments, all of one kind; a quoted text that is compared with a date is read as a date."""
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


def parse_date(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """A date literal in canonical spelling."""
    match arguments:
        case (Constant(str() as text),) if WRITTEN.fullmatch(text):
            return date_constant(name, text)
    return Call(name, arguments)


def date_constant(name: str, text: str) -> Expression:
    """A date literal in canonical spelling; an invalid one is left as it is, and is NULL in every engine."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return Call(name, (Constant(text),))
    if name == "date":
        found = found.replace(hour=0, minute=0, second=0, microsecond=0)
    return Call("timestamp", (Constant(str(found)),))


# ---- laws ------------------------------------------------------------------------------------------------------------


def apply_law(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """The normal form of a call whose arguments are in normal form."""
    law = LAWS.get(name)
    return law(name, arguments) if law else Call(name, arguments)


def sort_unique(arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    """Without duplicates, in canonical order."""
    return tuple(sorted(dict.fromkeys(arguments), key=repr))


def flatten(name: str, arguments: Sequence[Expression]) -> list[Expression]:
    """Flatten nested calls of an associative function."""
    return [
        part for one in arguments for part in (one.arguments if isinstance(one, Call) and one.name == name else (one,))
    ]


# ---- truths ---------------------------------------------------------------------------------------------------------


def flat_and_or(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """AND, OR: flat, without repetitions and neutral constants; x = 1 OR x = 2 is x IN (1, 2), and so for AND NOT."""
    neutral, decided = Constant(name == "and"), Constant(name != "and")
    flat = [part for part in flatten(name, arguments) if part != neutral]
    if decided in flat:
        return decided
    unique = sort_unique(memberships(name, flat))
    return unique[0] if len(unique) == 1 else Call(name, unique) if unique else neutral


def memberships(name: str, parts: Sequence[Expression]) -> list[Expression]:
    """Comparisons of one thing with constants as one IN (of OR), or as one NOT IN (of AND: De Morgan)."""
    sought: dict[Expression, list[Expression]] = {}
    others = []
    for part in parts:
        inside = part
        if name == "and":
            inside = part.arguments[0] if isinstance(part, Call) and part.name == "not" else NOTHING
        match inside:
            case Call("=", (one, of)) if is_constant(one) or is_constant(of):
                of, one = (of, one) if is_constant(one) else (one, of)
                sought.setdefault(of, []).append(one)
            case Call("in", (of, *listed)) if all(map(is_constant, listed)):
                sought.setdefault(of, []).extend(listed)
            case _:
                others.append(part)
    merged = [membership("in", (of, *listed)) for of, listed in sought.items()]
    return [*others, *(merged if name == "or" else [Call("not", (one,)) for one in merged])]


def is_constant(expression: Expression) -> bool:
    """Is it a literal of the question, or a date literal?"""
    match expression:
        case Constant() | Call("timestamp", (Constant(),)):
            return True
    return False


def negation(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """NOT goes inwards: orders are total, so NOT a < b is b <= a, and both are NULL together; De Morgan."""
    match arguments[0]:
        case Constant(value):
            return Constant(None if value is None else not value)
        case Call("not", (inner,)):
            return inner
        case Call("<", (a, b)):
            return Call("<=", (b, a))
        case Call("<=", (a, b)):
            return Call("<", (b, a))
        case Call("and" | "or" as other, parts):
            return flat_and_or("or" if other == "and" else "and", tuple(negation("not", (one,)) for one in parts))
    return Call(name, arguments)


def comparison(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """=, <, <=: of two constants it is known; x = TRUE is x."""
    match name, arguments:
        case _, (Constant(int() | float() | str() as a), Constant(int() | float() | str() as b)):
            return Constant({"=": a == b, "<": a < b, "<=": a <= b}[name])  # type: ignore[operator]
        case "=", (Constant(bool() as value), other) | (other, Constant(bool() as value)):
            return other if value else negation("not", (other,))
    return Call(name, tuple(sorted(arguments, key=repr)) if name == "=" else arguments)


def membership(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """IN: the list in one order, each once; of one, it is =."""
    of, listed = arguments[0], sort_unique(arguments[1:])
    if all(isinstance(one, Constant) for one in (of, *listed)):
        return Constant(one_of(*(one.value for one in (of, *listed) if isinstance(one, Constant))))
    if len(listed) == 1:
        return NOTHING if listed[0] == NOTHING else comparison("=", (of, listed[0]))
    return Call(name, (of, *listed))


def null_test(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """IS NULL."""
    if arguments[0] == NOTHING:
        return Constant(True)
    return Constant(False) if never_null(arguments[0]) else Call(name, arguments)


def like_pattern(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """LIKE without wildcards is =: both compare bytes. A backslash is left alone."""
    match arguments:
        case (text, Constant(str() as pattern)) if not WILD & set(pattern):
            return comparison("=", (text, Constant(pattern)))
    return Call(name, arguments)


def filter_condition(condition: Expression) -> Expression:
    """A condition where only TRUE counts (WHERE, WHEN): NULL is as good as FALSE there, and so is `IS TRUE`."""
    match condition:
        case Constant(None):
            return Constant(False)
        case Call("coalesce", (inner, Constant(False))):
            return filter_condition(inner)
        case Call("and" | "or" as name, parts):
            return flat_and_or(name, tuple(map(filter_condition, parts)))
    return condition


# ---- choices --------------------------------------------------------------------------------------------------------


def case_branches(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """CASE: without branches that cannot be reached, or that give what ELSE gives. A CASE of NULL alone is NULL: some
    engines would take it for a text, and raise where it stands for a condition."""
    kept: list[Expression] = []
    otherwise = arguments[-1]
    for condition, result in zip(arguments[:-1:2], arguments[1::2], strict=True):
        condition = filter_condition(condition)
        if condition == Constant(True):
            otherwise = result
            break
        if condition != Constant(False):
            kept += [condition, result]
    while kept and kept[-1] == otherwise:
        del kept[-2:]
    return Call(name, (*kept, otherwise)) if kept else otherwise


def coalesced_values(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """COALESCE: flat, up to the first that is never NULL."""
    kept: dict[Expression, None] = {}
    for one in flatten(name, arguments):
        if one != NOTHING:
            kept.setdefault(one)
        if never_null(one):
            break
    return Call(name, tuple(kept)) if len(kept) > 1 else next(iter(kept), NOTHING)


def least_or_greatest(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """LEAST, GREATEST: NULL is ignored."""
    kept = sort_unique([one for one in flatten(name, arguments) if one != NOTHING])
    return Call(name, kept) if len(kept) > 1 else kept[0] if kept else NOTHING


# ---- numbers --------------------------------------------------------------------------------------------------------


def constant_arithmetic(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """Arithmetic of constants, in doubles as every engine has it; not by 0, not where it overflows or underflows."""
    match arguments:
        case (Constant(int() | float() as a), Constant(int() | float() as b)) if name != "/" or b:
            found = {"+": float.__add__, "-": float.__sub__, "*": float.__mul__, "/": float.__truediv__}[name](
                float(a), float(b)
            )
            exact_zero = not found and math.copysign(1.0, found) > 0 and (name in "+-" or not a)
            if exact_zero or SAFE[0] < abs(found) < SAFE[1]:
                whole = isinstance(a, int) and isinstance(b, int) and found.is_integer() and abs(found) < 2**53
                return Constant(int(found) if whole else found)
    return Call(name, arguments)


def sign_change(name: str, arguments: tuple[Expression, ...]) -> Expression:
    match arguments[0]:
        case Constant(int() | float() as value) if arguments[0].domain.kind is Kind.NUMBER:
            return Constant(-value)
        case Call("negative", (inner,)):
            return inner
    return Call(name, arguments)


def clamp_limits(name: str, arguments: tuple[Expression, ...]) -> Expression:
    """CLAMP(x, a, b) of limits that are no constants: NULL where one of them is, which LEAST and GREATEST pass over."""
    unknown = [call("is null", one) for one in arguments[1:] if not isinstance(one, Constant)]
    found = Call(name, arguments)
    return call("case", call("or", *unknown), NOTHING, found) if unknown else found


Law = Callable[[str, tuple[Expression, ...]], Expression]
LAWS: dict[str, Law] = {
    **dict.fromkeys(("and", "or"), flat_and_or),
    "not": negation,
    **dict.fromkeys(("=", "<", "<="), comparison),
    "in": membership,
    "is null": null_test,
    "like": like_pattern,
    "case": case_branches,
    "coalesce": coalesced_values,
    **dict.fromkeys(("least", "greatest"), least_or_greatest),
    **dict.fromkeys("+-*/", constant_arithmetic),
    "negative": sign_change,
    "clamp": clamp_limits,
}
