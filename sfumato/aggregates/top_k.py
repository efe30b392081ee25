"""APPROX_TOP_K(x, k): the k most common values of a group, where values are private."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sqlglot import exp

from sfumato.aggregates.linear import Estimate
from sfumato.aggregates.price import IndependentNoise, Price
from sfumato.aggregates.standalone import Standalone, StandaloneRelease
from sfumato.mechanisms.keys.threshold_selection import threshold
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect, raw
from sfumato.sql.dialects.keyed_hash import FORMS, Form
from sfumato.sql.domains import TEXT, Domain, Kind, Scalar
from sfumato.sql.emit.bounding import bounding_of, group_by, key_names
from sfumato.sql.emit.request import Row
from sfumato.sql.emit.values import X, value_or_null
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import bounded_integer, node_text, require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Plan
from sfumato.sql.reserved_names import COUNT, VALUE, VALUES, qualify

MOST = 100


@dataclass(frozen=True)
class TopK(Standalone):
    """APPROX_TOP_K(x, k), as a JSON list of at most k values, the most common first; fewer, if fewer are common."""

    name = "top k"
    spellings = (exp.ApproxTopK,)
    listed = "APPROX_TOP_K"
    methods = ("top_k = APPROX_TOP_K(x, k)",)
    forms = ("APPROX_TOP_K({t}, 3)", "APPROX_TOP_K({d}, 100)", "APPROX_TOP_K({n}, 2) FILTER (WHERE {b})")
    example = "SELECT ward, APPROX_TOP_K(diagnosis, 3) FROM visits GROUP BY ward"
    has_interval = False

    of: Expression
    k: int

    def __repr__(self) -> str:
        return f"top {self.k} of {self.of!r}"

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "TopK":
        require_known_parts(node)
        return TopK(
            parse_expression(node.this, rows), bounded_integer(node.args.get("expression"), node_text(node), 1, MOST)
        )

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> "TopK":
        (of,) = values
        return TopK(of, self.k)

    @property
    def domain(self) -> Domain:
        return TEXT

    def needs_slack(self, price: type[Price]) -> bool:
        return True

    def release(self, plan: Plan, price: Price, slack: float) -> "TopKRelease":
        return TopKRelease(plan, price, slack, self)


@dataclass(frozen=True)
class TopKRelease(StandaloneRelease):
    """Noisy numbers of units for every value that is there; those above a threshold, the k largest first.

    Theorem: it costs the price and the slack [Korolova et al. 2009; docs/theorems/price.md]
    Proof. A unit keeps at most `rows` different values, and adds one to the count of each. Noise for 1/rows of the
    price on each count costs the price together. A value that only this unit has reaches the threshold with the
    probability slack at most, over all its values (`threshold`). Ranking and cutting is post-processing. ∎
    """

    aggregate: TopK

    @cached_property
    def noise(self) -> IndependentNoise:
        return self.price.part(1 / self.plan.rows).noise(1)

    @cached_property
    def threshold(self) -> int:
        return threshold(self.noise.law(), self.slack, self.plan.rows)

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        """keys, a value, and how many units have it."""
        to, of = dialect_of(dialect).about(self.plan), self.aggregate.of
        value = to.date_text(raw(X)).sql(to.name) if of.domain.kind is Kind.DATE else value_or_null(of, to)
        form = Form.TEXT if of.domain.kind is Kind.DATE else FORMS[of.domain.kind]
        kept = bounding_of(self.plan).values(self.plan, value, of, salt, to, once=True, form=form)
        each = qualify(VALUES, [*key_names(self.plan), VALUE])
        return f"WITH {kept} SELECT {', '.join([*each, f'COUNT(*) AS {COUNT}'])} FROM {VALUES} {group_by(each)}"

    def prepare(self) -> None:
        _ = self.threshold

    def release(self, rows: Sequence[Row]) -> list[Scalar]:
        """Values and their noisy counts in turn; in an order that depends on noisy counts and values alone."""
        if not rows:
            return []
        counts = [int(str(count)) for _, count in rows]
        noisy = np.atleast_1d(self.noise.release(counts)).tolist()
        common = [(value, n) for (value, _), n in zip(rows, noisy, strict=True) if n >= self.threshold]
        common.sort(key=lambda pair: (-pair[1], repr(pair[0])))
        return [part for value, n in common[: self.aggregate.k] for part in (storable(value), n)]

    def read(self, stored: Sequence[Scalar]) -> Estimate:
        return json.dumps(list(stored[::2]), ensure_ascii=False), None, None

    def promise(self) -> str:
        return f"only values that about {self.threshold:,} people or more have"


def storable(value: object) -> Scalar:
    """A value as it is stored in JSON: −0 becomes 0, and infinite numbers become texts."""
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else str(value)
    return value if isinstance(value, str | int | bool | None) else str(value)
