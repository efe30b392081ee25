"""What is made of released values: columns, HAVING, ORDER BY, LIMIT. It sees nothing else, so it costs nothing."""

import math
from collections.abc import Callable, Sequence

from sfumato.sql.expressions import Call, Constant, Expression, Output
from sfumato.sql.question import Question

Value = float | int | str | bool | None


def evaluated(expression: Expression, row: Sequence[Value]) -> Value:
    """One expression over one released row; NULL where SQL has NULL, and never an error."""
    match expression:
        case Constant(value):
            return value
        case Output(place):
            return row[place]
        case Call("and" | "or" as name, arguments):
            return three_valued(name == "or", [evaluated(one, row) for one in arguments])
        case Call("case", arguments):
            for condition, result in zip(arguments[:-1:2], arguments[1::2], strict=True):
                if evaluated(condition, row) is True:
                    return evaluated(result, row)
            return evaluated(arguments[-1], row)
        case Call("coalesce", arguments):
            return next((v for one in arguments if (v := evaluated(one, row)) is not None), None)
        case Call("is null", (argument,)):
            return evaluated(argument, row) is None
        case Call(name, arguments):
            values = [evaluated(one, row) for one in arguments]
            if None in values or name not in OPERATIONS:
                return None
            try:
                found = OPERATIONS[name](*values)
            except (ArithmeticError, ValueError, TypeError):
                return None
            return None if isinstance(found, float) and math.isnan(found) else found
    return None


def three_valued(decides: bool, values: list[Value]) -> bool | None:
    """AND (decided by False) and OR (decided by True) of SQL."""
    return decides if decides in values else None if None in values else not decides


OPERATIONS: dict[str, Callable[..., Value]] = {
    "not": lambda a: not a,
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "in": lambda a, *rest: a in rest,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else None,
    "negative": lambda a: -a,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "least": min,
    "greatest": max,
    "clamp": lambda a, low, high: min(max(a, low), high),
    "lower": str.lower,
    "upper": str.upper,
    "trim": str.strip,
    "length": len,
    "number": float,
    "text": str,
}


def shaped(question: Question, rows: Sequence[Sequence[Value]]) -> list[int]:
    """Which released rows are shown, in which order: HAVING, ORDER BY, LIMIT."""
    kept = [i for i, row in enumerate(rows) if evaluated(question.having, row) is True]
    for expression, descending in reversed(question.order):
        found = {i: ranked(evaluated(expression, rows[i])) for i in kept}
        kept.sort(key=found.__getitem__, reverse=descending)
    return kept if question.limit is None else kept[: question.limit]


def ranked(value: Value) -> tuple[int, float, str]:
    """Numbers, then texts, then NULL."""
    if value is None:
        return 2, 0.0, ""
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")
