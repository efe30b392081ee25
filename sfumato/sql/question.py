"""A parsed question: the plan of what is released, and its post-processing."""

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
        """Indexes of each aggregate's sums among the measures of the plan; standalone aggregates have none."""
        lattices = Lattices(self.aggregates, self.plan.table.scaled)
        place = {m: j for j, m in enumerate(self.plan.measures)}
        return {one: tuple(place[m] for m in one.sums(lattices)) for one in self.aggregates}
