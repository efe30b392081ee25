"""What is made of released values: columns, HAVING, ORDER BY, LIMIT. It sees nothing else, so it costs nothing."""

import datetime
import math
import re
from collections.abc import Callable, Sequence

from sfumato.errors import QueryRefused
from sfumato.sql.expressions import LONG, Call, Constant, Expression, Output
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
        case Call("in", arguments):
            sought, *others = [evaluated(one, row) for one in arguments]
            return None if sought is None else True if sought in others else None if None in others else False
        case Call("least" | "greatest" as name, arguments):  # as in the engine, NULL is passed over
            there = [v for one in arguments if isinstance(v := evaluated(one, row), int | float)]
            return (min if name == "least" else max)(there, default=None)
        case Call(name, arguments):
            values = [evaluated(one, row) for one in arguments]
            if None in values:
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


def foreign(expression: Expression) -> None:
    """Refuses what cannot be made of released values."""
    if isinstance(expression, Call):
        if expression.name not in OPERATIONS and expression.name not in LOGIC:
            raise QueryRefused(
                f"{expression.name.upper()} is not available for released values.\n"
                "  do:     GROUP BY it, or use it inside the aggregate"
            )
        for one in expression.arguments:
            foreign(one)


def like(text: str, pattern: str) -> bool:
    parts = (".*" if sign == "%" else "." if sign == "_" else re.escape(sign) for sign in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def half_up(value: float, digits: float = 0) -> float:
    """Rounded as the engine does: halves away from zero."""
    scale = 10.0**digits
    return math.copysign(math.floor(abs(value) * scale + 0.5) / scale, value)


def dated(text: str) -> str:
    """A date as keys are shown: without its time at midnight."""
    return str(datetime.datetime.fromisoformat(text)).removesuffix(" 00:00:00")


def written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def part_of(name: str) -> Callable[[str], Value]:
    return lambda text: float(getattr(datetime.datetime.fromisoformat(text), name))


LOGIC = {"and", "or", "case", "coalesce", "is null", "in", "least", "greatest"}
OPERATIONS: dict[str, Callable[..., Value]] = {
    "not": lambda a: not a,
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "like": like,
    "mod": math.fmod,
    "nullif": lambda a, b: None if a == b else a,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else None,
    "negative": lambda a: -a,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": half_up,
    "round to": half_up,
    "clamp": lambda a, low, high: min(max(a, low), high),
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda a: a.strip(" "),
    "ltrim": lambda a: a.lstrip(" "),
    "rtrim": lambda a: a.rstrip(" "),
    "length": len,
    "substr": lambda a, start, length: a[int(start) - 1 : int(start) - 1 + int(length)],
    "replace": lambda a, old, new: a.replace(old, new),
    "||": lambda *parts: "".join(part[:LONG] for part in parts),
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda a, b: b in a,
    "number": float,
    "text": written,
    "date": lambda a: dated(a[:10]),
    "timestamp": dated,
    "year": part_of("year"),
    "month": part_of("month"),
    "day": part_of("day"),
    "hour": part_of("hour"),
    "weekday": lambda a: float(datetime.datetime.fromisoformat(a).isoweekday() % 7),
}


def shaped(question: Question, rows: Sequence[Sequence[Value]]) -> list[int]:
    """Which released rows are shown, in which order: HAVING, ORDER BY, LIMIT."""
    kept = [i for i, row in enumerate(rows) if evaluated(question.having, row) is True]
    for expression, descending in reversed(question.order):
        found = {i: evaluated(expression, rows[i]) for i in kept}
        kept.sort(key=lambda i, found=found: ranked(found[i]), reverse=descending)  # type: ignore[misc]
        kept.sort(key=lambda i, found=found: found[i] is None)  # type: ignore[misc]  # NULL last, either way
    return kept if question.limit is None else kept[: question.limit]


def ranked(value: Value) -> tuple[int, float, str]:
    """Numbers, then texts."""
    if value is None:
        return 2, 0.0, ""
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")
