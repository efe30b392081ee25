"""The pure half of a curator: from what is wanted to a plan, from a plan to an offer, from stored values to an answer.

Text, policy, dialect and currency decide; no data and no ledger. So what was worked out once is looked up the next
time: a repeated question is neither parsed nor priced nor laid out again.
"""

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sfumato.aggregates.price import Price
from sfumato.aggregates.registry import parse_question
from sfumato.curator.answer import Answer, LeftOut
from sfumato.curator.layout import (
    Estimates,
    bounding_note,
    coverage_by_column,
    estimates,
    lay_out_rows,
    left_out_by_row,
)
from sfumato.curator.left_out import left_out
from sfumato.curator.offer import Offer, offer_for_epsilon, offer_for_error, offer_for_relative_error
from sfumato.curator.ratios import ratio_columns
from sfumato.curator.relative_counts import describe_policy, is_grouped_count, policy_by_group_size
from sfumato.curator.wanted import Wanted
from sfumato.errors import QueryRefused
from sfumato.ledger.meter import odds
from sfumato.sql.dialects import dialect_of
from sfumato.sql.policy import Policy, names_unit
from sfumato.sql.question import Question

REMEMBERED = 64  # questions
ColumnBounds = tuple[str, str, float, float]  # table, column, low, high


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans, prices and lays out questions under one policy, for one engine and one currency."""

    policy: Policy = field(repr=False)
    namespace: str
    dialect: str
    currency: type[Price]

    def __post_init__(self) -> None:
        for name in ("plan", "offer", "answer", "with_bounds"):
            object.__setattr__(self, name, lru_cache(REMEMBERED)(getattr(self, name)))

    def with_bounds(self, bounds: tuple[ColumnBounds, ...]) -> "Planner":
        """The same under a policy in which these columns have these bounds."""
        tables = dict(self.policy.tables)
        for name, column, low, high in bounds:
            table = tables[name]
            bounded = replace(table.columns[column], low=low, high=high)
            tables[name] = replace(table, columns={**table.columns, column: bounded})
        return replace(self, policy=replace(self.policy, tables=tables))

    def plan(self, wanted: Wanted) -> Question:
        """The question that a text asks, or QueryRefused."""
        question = parse_question(wanted.text, self.policy, self.namespace, wanted.bounds)
        if not names_unit(wanted.unit, question.plan.table):
            raise QueryRefused(
                f"{wanted.unit!r} is not the unit here.\n  found:  {str(question.plan.table.unit)!r} in the policy"
            )
        dialect_of(self.dialect).accepts(question.plan)
        return question

    def offer(self, wanted: Wanted) -> Offer:
        """The noise that this much privacy or accuracy buys, and its loss."""
        question, delta = self.plan(wanted), self.policy.question_delta
        if wanted.epsilon is None:
            return offer_for_error(question, float(wanted.error or 0), delta, self.policy.epsilon, self.currency)
        if wanted.relative_error is not None and is_grouped_count(question):
            return offer_for_relative_error(
                question, float(wanted.epsilon), delta, float(wanted.relative_error), self.currency
            )
        return offer_for_epsilon(question, float(wanted.epsilon), delta, self.currency)

    def answer(self, offer: Offer, noisy: bytes) -> Answer:
        """The columns that were asked for, made of stored noisy values alone; what is left of the budget is not known
        here."""
        missing = left_out(offer, json.loads(noisy)) if offer.scaled else None
        ratios, readings = tuple(ratio_columns(offer)), estimates(offer, noisy)
        if missing is not None and missing.people is not None:
            missing = replace(missing, by_row=left_out_by_row(offer, noisy, readings))
        return self.show(offer, readings, coverage_by_column(offer), missing, ratios)

    def show(
        self, offer: Offer, rows: Estimates, coverage: dict[str, float], missing: LeftOut | None = None,
        ratios: tuple[int, ...] = (),
    ) -> Answer:  # fmt: skip
        """The same from estimates; those of columns that are ratios come last."""
        names, cells = lay_out_rows(offer.question, rows, ratios)
        delta = self.policy.question_delta
        policy = policy_by_group_size(offer, delta)
        return Answer(
            names, cells, offer.paid_loss.epsilon(delta).upper, delta, False, "", odds(offer.paid_loss),
            " ".join(filter(None, [bounding_note(offer.plan, missing), describe_policy(policy)])), coverage, policy,
            missing,
        )  # fmt: skip
