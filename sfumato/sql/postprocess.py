"""Post-processing of released values: columns, HAVING, ORDER BY, LIMIT. It reads nothing else, so it costs nothing."""

import math
from collections.abc import Sequence

from sfumato.errors import QueryRefused
from sfumato.sql.domains import LONGEST_TEXT, Scalar, double
from sfumato.sql.expressions import Call, Constant, Expression, Output
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.question import Question

Value = Scalar
WHOLE = 2**53  # integers up to this are doubles


def evaluate(expression: Expression, row: Sequence[Value]) -> Value:
    """The value of an expression in one released row; NULL where SQL has NULL, and never an error."""
    match expression:
        case Constant(value):
            return value
        case Output(place):
            return row[place]
        case Call(name, arguments):
            function, values = FUNCTIONS[name], [evaluate(one, row) for one in arguments]
            if function.after is None or (function.strict and None in values):
                return None
            try:
                found = function.after(*values)
            except (ArithmeticError, ValueError, TypeError):
                return None
            return as_engine_value(found)
    return None


def as_engine_value(value: Value) -> Value:
    """A value as an engine would return it: texts truncated, numbers as doubles, NaN as NULL."""
    match value:
        case str():
            return value[:LONGEST_TEXT]
        case int() if abs(value) > WHOLE:
            return double(value)
        case float() if math.isnan(value):
            return None
    return value


def require_postprocessing(expression: Expression) -> None:
    """Raises QueryRefused if a function in the expression is not available for released values."""
    if isinstance(expression, Call):
        if FUNCTIONS[expression.name].after is None:
            raise QueryRefused(
                f"{expression.name.upper()} is not available for released values.\n"
                "  do:     GROUP BY it, or use it inside the aggregate"
            )
        for one in expression.arguments:
            require_postprocessing(one)


def arrange_rows(question: Question, rows: Sequence[Sequence[Value]]) -> list[int]:
    """Indexes of the released rows to show, in order: HAVING, ORDER BY, OFFSET, LIMIT."""
    kept = list(range(len(rows)))
    if question.having != Constant(True):
        kept = [i for i in kept if evaluate(question.having, rows[i]) is True]
    for expression, descending in reversed(question.order):
        found = {i: evaluate(expression, rows[i]) for i in kept}
        kept.sort(key=lambda i, found=found: sort_key(found[i]), reverse=descending)  # type: ignore[misc]
        kept.sort(key=lambda i, found=found: found[i] is None)  # type: ignore[misc]  # NULL last, either way
    kept = kept[question.offset :]
    return kept if question.limit is None else kept[: question.limit]


def sort_key(value: object) -> tuple[int, float, str]:
    """Sort key: numbers by size, then texts, then NULL."""
    if value is None:
        return 2, 0.0, ""
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))
