"""The functions that questions may use, by family: total, of one row, never raising in an engine.

A new one is one entry of its family: what it takes, what it gives, how it is spelled, how an engine is told of it, and
what it makes of released values.
"""

from sfumato.sql.functions import casts, dates, logic, numbers, texts
from sfumato.sql.functions.function import Function

FUNCTIONS: dict[str, Function] = {
    **logic.FUNCTIONS, **numbers.FUNCTIONS, **casts.FUNCTIONS, **texts.FUNCTIONS, **dates.FUNCTIONS,
}  # fmt: skip
