"""Noisy histograms of the values of a column: their sizes, and their places in a range.

Where contributions are scaled each unit has one vote of norm 1, so nothing must be known about how many rows people
have. Where the policy states `rows` and `groups`, or each row is a person, they are ordinary counts by public keys.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.aggregates.count import Count
from sfumato.aggregates.price import IndependentNoise, Price
from sfumato.curator.offer import Offer
from sfumato.curator.purchase import Buyer
from sfumato.curator.release import split_keys
from sfumato.curator.scaling import blocks_of
from sfumato.curator.steps import ENOUGH, Step, step_key
from sfumato.ledger import Ledger
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.norm import WHOLE, Scaling
from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.expressions import Column, Constant, Expression, Output
from sfumato.sql.plan import Measure, Plan, Table, What
from sfumato.sql.question import Question
from sfumato.sql.simplify import call

BINS = 400


def magnitude_histogram(table: Table, of: Column) -> Question:
    """The number of values of each magnitude: one bin for each power of two from 2⁻¹⁰ to 2⁵⁰, on both sides of 0."""
    return count_by_key(table, call("magnitude", of))


def position_histogram(table: Table, of: Column, low: float, high: float) -> Question:
    """How many values lie in each of so many equal parts of a range, and on both sides of it."""
    return count_by_key(
        table, call("width_bucket", of, Constant(low), Constant(high), Constant(bins_of(of, low, high)))
    )


def bins_of(of: Column, low: float, high: float) -> int:
    """One bin for each value of a column with steps, such as whole numbers, if these are few: fewer bins have less
    noise together."""
    return round((high - low) / of.domain.step) if has_bin_per_value(of, low, high) else BINS  # type: ignore[operator]


def has_bin_per_value(of: Column, low: float, high: float) -> bool:
    """Do the values of a column with steps begin bins of one value each?"""
    step = of.domain.step
    return bool(step) and 1 <= (high - low) / step <= BINS and low % step == high % step == 0  # type: ignore[operator]


def count_by_key(table: Table, key: Expression) -> Question:
    rows = (Measure(What.ROWS),)
    plan = Plan(table, (), Constant(True), (key,), rows)
    columns = (("place", Output(0, key.domain)), ("n", Output(1, key.domain)))
    return Question(plan, (Count(),), (rows,), columns, Constant(True), (), None)


@dataclass(frozen=True)
class ValueVotes(Step):
    """Where values lie: each unit has one vote of norm 1, shared by the bins as its values are.

    Theorem: a unit with cₖ values in bin k, q = Σ cₖ², votes ⌊WHOLE·cₖ/√q⌋ for bin k, so it moves all bins together by
        an L2 norm of at most WHOLE; with ⌊WHOLE·cₖ/Σc⌋ by an L1 norm of at most WHOLE
        [docs/theorems/contributions.md, Theorem 1 with B = 1]
    """

    @property
    def asked(self) -> str:
        return f"a step: where values of {self.plan.table.name} lie"

    @property
    def canonical(self) -> str:
        return f"votes | {'L2' if self.price.squares else 'L1'} | {self.plan.of_columns_read().canonical}"

    @cached_property
    def noise(self) -> IndependentNoise:
        return self.price.scaled_noise(WHOLE, 1.0)

    def requests(self, salt: int, dialect: Dialect) -> list[TableRequest]:
        plan = self.plan
        scaling = Scaling(plan, plan.measures, blocks_of(plan, self.price.squares), dialect_of(dialect).about(plan))
        return [scaling.request(scaling.value_votes())]

    def release(self, tables: Sequence[Sequence[Row]]) -> bytes:
        """Noise on every bin, including empty ones."""
        exact = {key: int(votes or 0) for key, (votes,) in split_keys(tables[0], 1)}  # type: ignore[call-overload]
        noisy = np.atleast_1d(self.noise.release([exact.get(key, 0) for key in self.plan.public or ()])).tolist()
        return json.dumps({"votes": noisy}).encode()


@dataclass(frozen=True)
class NoisyCounts:
    """A released histogram: votes or values in each bin, with noise of this deviation, for this price."""

    counts: tuple[float, ...]
    sigma: float
    price: Price
    by_unit: bool  # are these votes of norm 1?

    @staticmethod
    def canonical(question: Question, price: Price) -> str:
        """The canonical text of this histogram, at any price."""
        if question.plan.table.scaled:
            return ValueVotes(question.plan, price).canonical
        return Offer(question, price).canonical

    @staticmethod
    def find_stored(question: Question, price: Price, ledger: Ledger) -> "list[NoisyCounts]":
        """All stored histograms of this question, at any price; the most exact first."""
        found = []
        for loss, answer in ledger.answers(NoisyCounts.canonical(question, price)):
            if (paid := price.of(loss)) is not None:
                found.append(NoisyCounts.read(question, paid, answer))
        return sorted(found, key=lambda one: -one.price.amount)

    @staticmethod
    def read(question: Question, price: Price, answer: bytes) -> "NoisyCounts":
        data, plan = json.loads(answer), question.plan
        if plan.table.scaled:
            return NoisyCounts(tuple(n / WHOLE for n in data["votes"]), price.deviation(1), price, True)
        sigma = price.part(1 / plan.groups).deviation(plan.rows)
        return NoisyCounts(tuple(float(n) for (n,) in data["noisy"]), sigma, price, False)

    def serves(self, price: Price) -> bool:
        """Did it cost at least this price?"""
        return self.price.amount >= price.amount * ENOUGH


def buy_value_histogram(
    buyer: Buyer, question: Question, price: Price, key: str | None = None
) -> tuple[NoisyCounts, bool]:  # fmt: skip
    """The most exact stored histogram that cost at least this much, or a new one; and whether it is new."""
    stored = [one for one in NoisyCounts.find_stored(question, price, buyer.ledger) if one.serves(price)]
    if stored:
        return stored[0], False
    if question.plan.table.scaled:
        buyer.buy_step(ValueVotes(question.plan, price), buyer.loss_of_epsilon, key)
    else:
        offer = Offer(question, price)
        buyer.buy(offer, step_key(key, offer.canonical))
        if not NoisyCounts.find_stored(question, price, buyer.ledger):  # charged under this key before the data changed
            buyer.buy(offer)
    return next(one for one in NoisyCounts.find_stored(question, price, buyer.ledger) if one.serves(price)), True
