"""Which expressions always have a value, and which have one wherever a condition holds: from the text alone.

NULL and NaN differ. A column is never NaN (NaN is read as NULL on every engine), but arithmetic can produce NaN, and
counts of values count neither.
"""

from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression

# NULL among the arguments makes these NULL on every engine: if they are not NULL, none of their arguments is.
STRICT = frozenset({"=", "<", "<=", "like", "not", "+", "-", "*", "/", "negative", "abs"})
TRUTHS = frozenset({"and", "or", "not", "=", "<", "<=", "in"})  # never NULL if no argument is


def never_null(expression: Expression) -> bool:
    """Is it never NULL? (It may be NaN.)"""
    match expression:
        case Constant(value):
            return value is not None
        case Call("is null", _):
            return True
        case Call("coalesce", arguments):
            return any(map(never_null, arguments))
        case Call("case", arguments):
            return all(map(never_null, (*arguments[1::2], arguments[-1])))
        case Call(name, arguments):
            return name in TRUTHS and all(map(never_null, arguments))
    return False


def never_nan(expression: Expression) -> bool:
    """Is it never NaN?"""
    if expression.domain.kind is not Kind.NUMBER:
        return True
    match expression:
        case Column() | Constant():
            return True
        case Call("case", arguments):
            return all(map(never_nan, (*arguments[1::2], arguments[-1])))
        case Call("coalesce" | "negative" | "abs", arguments):
            return all(map(never_nan, arguments))
    return False


def non_null_where(condition: Expression) -> frozenset[Expression]:
    """Expressions that are not NULL wherever the condition is true."""
    match condition:
        case Call("and", parts):
            return frozenset[Expression]().union(*map(non_null_where, parts))
        case Call("or", parts):
            first, *rest = map(non_null_where, parts)
            return first.intersection(*rest)
        case Call("not", (Call("is null", (inner,)),)):
            return non_null_with(inner)
        case Call("not", (Call("and" | "or" | "coalesce" | "case" | "is null", _),)):
            return frozenset()
    return non_null_with(condition) if isinstance(condition, Call) else frozenset()


def non_null_with(expression: Expression) -> frozenset[Expression]:
    """The expressions that are not NULL if this one is not: itself, and the arguments of strict functions in it."""
    found = frozenset({expression})
    if isinstance(expression, Call) and expression.name in STRICT:
        return found.union(*map(non_null_with, expression.arguments))
    if isinstance(expression, Call) and expression.name == "in":
        return found | non_null_with(expression.arguments[0])
    return found
