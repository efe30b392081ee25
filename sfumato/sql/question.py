"""A question, read: the plan of what must be released, and what is then made of it."""

from dataclasses import dataclass
from functools import cached_property

from sfumato.sql.aggregate import Aggregate, Lattices
from sfumato.sql.expressions import Expression
from sfumato.sql.plan import Plan


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

    @cached_property
    def sum_indexes(self) -> dict[Aggregate, tuple[int, ...]]:
        """Where in the plan the sums of each aggregate are; those that are released on their own have none."""
        lattices, place = Lattices(self.aggregates), {m: j for j, m in enumerate(self.plan.measures)}
        return {one: tuple(place[m] for m in one.sums(lattices)) for one in self.aggregates}
