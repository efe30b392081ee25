"""Which public keys can have rows under a condition: from text and policy alone, never from data.

A key is left out only if the condition is true in no row with this key. Its group is then empty in every data set, so
leaving it out reveals nothing. A condition that is not understood here excludes no key.
"""

import datetime
from collections.abc import Callable, Sequence

from sfumato.sql.domains import Kind, Scalar
from sfumato.sql.expressions import Call, Constant, Expression

Value = Scalar | datetime.datetime
YES, NO, NULL = 1, 2, 4  # the truth values that a condition can have, as bits
ANY = YES | NO | NULL
ORDERS: dict[str, Callable[..., bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}


def possible_keys(key: Expression, where: Expression) -> tuple[Scalar, ...] | None:
    """The public keys that an expression can have in rows where the condition holds; None if its keys are private."""
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
    """A date in the form that `str` writes, to be compared as a date; anything else is returned unchanged."""
    try:
        found = datetime.datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return value
    return found if found is not None and found.tzinfo is None and str(found) == value else value


class Known:
    """Evaluates expressions for each of these keys, whatever the other columns hold."""

    def __init__(self, key: str, values: Sequence[Value]) -> None:
        self.key, self.values = key, values

    def truths(self, expression: Expression) -> list[int]:
        """For each key the truth values that the expression can have."""
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
            case Call("is null", (inner,)) if (found := self.value_by_key(inner)) is not None:
                return [YES if value is None else NO for value in found]
            case Call("=" | "<" | "<=" as name, (a, b)):
                return self.comparisons(ORDERS[name], a, b)
            case Call("in", (of, *listed)):
                each = zip(
                    *([not_of(x) for x in self.comparisons(ORDERS["="], of, one)] for one in listed), strict=True
                )
                return [not_of(and_of(one)) for one in each]
        if repr(expression) == self.key:
            return [YES if value is True else NO if value is False else ANY for value in self.values]
        return [ANY] * len(self.values)

    def comparisons(self, order: Callable[..., bool], a: Expression, b: Expression) -> list[int]:
        first, second = self.value_by_key(a), self.value_by_key(b)
        if first is None or second is None:
            return [ANY] * len(self.values)
        return [comparison(order, x, y) for x, y in zip(first, second, strict=True)]

    def value_by_key(self, expression: Expression) -> Sequence[Value] | None:
        """Its value for each key, if it depends on the key alone; otherwise None."""
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
        return ANY  # a date outside of Python's calendar
    return YES if order(a, b) else NO


def and_of(parts: Sequence[int]) -> int:
    """The truth values that AND can have, from those of its operands."""
    some = 0
    for one in parts:
        some |= one
    everywhere = YES if all(one & YES for one in parts) else 0
    return everywhere | (some & (NO | NULL))


def not_of(one: int) -> int:
    return (one & NULL) | (YES if one & NO else 0) | (NO if one & YES else 0)
