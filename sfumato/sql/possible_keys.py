"""Which public keys can have rows at all under a condition: from text and policy alone, never from data.

A key is left out only if the condition is not true in any row that has it: then its group is empty in every data set,
and to show noise there, or not to show it, tells nothing. Whatever is not understood here leaves all keys as they are.
"""

import datetime
from collections.abc import Callable, Sequence

from sfumato.sql.domains import Kind, Scalar
from sfumato.sql.expressions import Call, Constant, Expression

Value = Scalar | datetime.datetime
YES, NO, NULL = 1, 2, 4  # what a condition may be, as bits
ANY = YES | NO | NULL
ORDERS: dict[str, Callable[..., bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}


def possible_keys(key: Expression, where: Expression) -> tuple[Scalar, ...] | None:
    """The public keys of an expression that rows can have where this holds; None if its keys are not public."""
    keys = key.domain.keys
    if keys is None:
        return None
    listed = tuple(dict.fromkeys(keys))
    about = [part for part in conjuncts(where) if mentions(part, repr(key))]
    if not about:
        return listed
    known = Known(repr(key), [as_moment(one) if key.domain.kind is Kind.DATE else one for one in listed])
    may = [known.truths(part) for part in about]
    return tuple(one for i, one in enumerate(listed) if all(found[i] & YES for found in may))


def conjuncts(where: Expression) -> tuple[Expression, ...]:
    return where.arguments if isinstance(where, Call) and where.name == "and" else (where,)


def mentions(expression: Expression, key: str) -> bool:
    if repr(expression) == key:
        return True
    return isinstance(expression, Call) and any(mentions(one, key) for one in expression.arguments)


def as_moment(value: Scalar) -> Value:
    """A date that is compared as one; what is not written as `str` writes it stays a text."""
    try:
        found = datetime.datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return value
    return found if found is not None and found.tzinfo is None and str(found) == value else value


class Known:
    """An expression over rows that have each of these keys in turn."""

    def __init__(self, key: str, values: Sequence[Value]) -> None:
        self.key, self.values = key, values

    def truths(self, expression: Expression) -> list[int]:
        """What it may be for each key, other columns being anything."""
        match expression:
            case Constant(value):
                return [YES if value is True else NO if value is False else NULL] * len(self.values)
            case Call("and", parts):
                return [and_of(one) for one in zip(*map(self.truths, parts), strict=True)]
            case Call("or", parts):
                each = zip(*([not_of(one) for one in self.truths(part)] for part in parts), strict=True)
                return [not_of(and_of(one)) for one in each]  # De Morgan
            case Call("not", (inner,)):
                return [not_of(one) for one in self.truths(inner)]
            case Call("coalesce", (inner, Constant(False))):
                return [one & ~NULL | NO if one & NULL else one for one in self.truths(inner)]
            case Call("is null", (inner,)) if (found := self.known(inner)) is not None:
                return [YES if value is None else NO for value in found]
            case Call("=" | "<" | "<=" as name, (a, b)):
                return self.compared(ORDERS[name], a, b)
            case Call("in", (of, *listed)):
                each = zip(*([not_of(x) for x in self.compared(ORDERS["="], of, one)] for one in listed), strict=True)
                return [not_of(and_of(one)) for one in each]
        if repr(expression) == self.key:
            return [YES if value is True else NO if value is False else ANY for value in self.values]
        return [ANY] * len(self.values)

    def compared(self, order: Callable[..., bool], a: Expression, b: Expression) -> list[int]:
        first, second = self.known(a), self.known(b)
        if first is None or second is None:
            return [ANY] * len(self.values)
        return [comparison(order, x, y) for x, y in zip(first, second, strict=True)]

    def known(self, expression: Expression) -> Sequence[Value] | None:
        """Its value for each key, if that is all it depends on."""
        if repr(expression) == self.key:
            return self.values
        match expression:
            case Constant(value):
                return [value] * len(self.values)
            case Call("timestamp", (Constant(str() as text),)):
                return [as_moment(text)] * len(self.values)
        return None


def comparison(order: Callable[..., bool], a: Value, b: Value) -> int:
    """Texts in the order of their characters, which is that of their bytes in UTF-8."""
    if a is None or b is None:
        return NULL
    if isinstance(a, datetime.datetime) != isinstance(b, datetime.datetime) or isinstance(a, str) != isinstance(b, str):
        return ANY  # a date that Python does not know
    return YES if order(a, b) else NO


def and_of(parts: Sequence[int]) -> int:
    """AND of what they may be."""
    some = 0
    for one in parts:
        some |= one
    everywhere = YES if all(one & YES for one in parts) else 0
    return everywhere | (some & (NO | NULL))


def not_of(one: int) -> int:
    return (one & NULL) | (YES if one & NO else 0) | (NO if one & YES else 0)
