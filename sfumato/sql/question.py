"""A question, read: what must be released, and what is then made of it."""

from dataclasses import dataclass

from sfumato.sql.expressions import Expression
from sfumato.sql.plan import Plan


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of the answer and the measures of the plan that it is made of, or its window or statistic."""

    name: str  # count, sum, avg, variance, stddev, quantile, statistic
    measures: tuple[int, ...]
    centre: float = 0.0
    exponent: int = 0
    window: int = 0
    statistic: int = 0

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Question:
    """Outputs 0 … k−1 are the keys, then come the aggregates; `columns`, `having` and `order` are made of them."""

    plan: Plan
    aggregates: tuple[Aggregate, ...]
    columns: tuple[tuple[str, Expression], ...]
    having: Expression
    order: tuple[tuple[Expression, bool], ...]  # (what, descending)
    limit: int | None
    offset: int = 0
