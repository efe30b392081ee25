"""Previews: price, promised errors and odds of a question, and the state of the budget. No data are read."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from sfumato.curator.affordable import largest_affordable_epsilon
from sfumato.curator.answer import Deferred
from sfumato.curator.contribution_sketch import describe_truncation, sketch_key
from sfumato.curator.offer import Offer
from sfumato.curator.purchase import find_stored
from sfumato.curator.relative_counts import describe_policy, policy_by_group_size
from sfumato.ledger import Amount, Ledger
from sfumato.ledger.accounts import round_down_digits
from sfumato.ledger.amounts import share_left
from sfumato.ledger.meter import READING, epsilon_at, odds
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.expressions import Output
from sfumato.wording import format_share


@dataclass(frozen=True)
class Preview:
    """The price of a question and the promised errors of its answer; no data were read."""

    offer: Offer = field(repr=False)
    epsilon: float
    delta: float
    free: bool  # it was answered before
    fits: bool  # the account that pays holds enough
    left: float  # shares of the account's budget, before and after
    after: float
    odds_before: Deferred = field(default=Deferred(), repr=False)
    odds_after: Deferred = field(default=Deferred(), repr=False)
    largest: float | None = None  # if it does not fit: the largest ε of this question that does
    lost: tuple[str, ...] = ()  # what the policy's bounds leave out, from the sketch of contributions
    sharp: Offer | None = field(default=None, repr=False)  # with bounds chosen from what is stored: for errors
    unbounded: tuple[Aggregate, ...] = field(default=(), repr=False)  # those of values whose bounds are not known yet
    others: "tuple[Preview, ...]" = field(default=(), repr=False)  # of further aggregations that share the price

    def errors(self) -> Iterator[tuple[str, float | None]]:
        """Each aggregate by the name of its column, with its ± at 95 %; None where that depends on private numbers. Of
        several aggregations with a column of one name the largest error is given."""
        found: dict[str, list[float | None]] = {}
        for one in (self, *self.others):
            for name, aggregate in one.named_aggregates():
                found.setdefault(name, []).append(one.error(aggregate))
        for name, errors in found.items():
            yield name, None if None in errors else max(error for error in errors if error is not None)

    def named_aggregates(self) -> Iterator[tuple[str, Aggregate]]:
        """The aggregates of this offer, by the names of their columns."""
        question, width = self.offer.question, len(self.offer.plan.keys)
        names = {e.place - width: name for name, e in reversed(question.columns) if isinstance(e, Output)}
        for place, aggregate in enumerate(question.aggregates):
            yield names.get(place, aggregate.name), aggregate

    def error(self, aggregate: Aggregate) -> float | None:
        return (self.sharp or self.offer).error(aggregate) if aggregate not in self.unbounded else None

    def words(self, aggregate: Aggregate) -> str:
        """The promised accuracy of this column, in words."""
        if aggregate in self.unbounded:
            return "its error depends on the bounds of its values, which are found first"
        return (self.sharp or self.offer).promise(aggregate)

    @property
    def threshold(self) -> int | None:
        """Private keys with fewer people than about this are not shown."""
        return self.offer.threshold

    @property
    def policy(self) -> tuple[tuple[int, float], ...]:
        """For a count by group with a relative error: (least size of one's groups, ε at δ). Independent of the data."""
        count = self.offer.relative
        return policy_by_group_size(count, self.offer.plan.groups, self.delta) if count is not None else ()

    def to_json(self) -> str:
        data = {"epsilon": self.epsilon, "delta": self.delta, "free": self.free, "fits": self.fits, "left": self.left,
                "after": self.after, "errors": dict(self.errors()), "threshold": self.threshold,
                "lost": self.lost, "largest": self.largest,
                "odds_before": self.odds_before, "odds_after": self.odds_after, "policy": self.policy}  # fmt: skip
        return json.dumps(data, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        lines = [f"costs ε = {self.epsilon:.3g} at δ = {self.delta:.2g}; nothing has been charged"]
        for one in (self, *self.others):
            lines += [f"  {name}: {one.words(aggregate)}" for name, aggregate in one.named_aggregates()]
        if self.threshold is not None:
            lines.append(f"  keys with fewer than about {self.threshold:,} people vanish")
        lines += [f"  {words}" for words in self.lost]
        lines += [f"  {describe_policy(self.policy)}"] if self.policy else []
        if self.free:
            lines.append("This question was answered before: asking it again is free.")
        elif self.fits:
            lines.append(f"Budget left: {format_share(self.left)} now, {format_share(self.after)} afterwards.")
        else:
            fits = f"at most ε = {self.largest:g} fits" if self.largest else "nothing fits"
            lines.append(f"Budget left: {format_share(self.left)}. That is not enough: the question would be refused.")
            lines.append(f"Of this question, {fits}.")
        if self.fits and not self.free:
            return "\n".join([*lines, "", "Now:", self.odds_before, "Afterwards:", self.odds_after])
        return "\n".join([*lines, "", self.odds_before])

    def _repr_html_(self) -> str:
        from sfumato.curator.answer_html import meter_html

        return meter_html(
            "Nothing has been charged", self.after if self.fits and not self.free else self.left, str(self)
        )


@dataclass(frozen=True)
class Standing:
    """The budget of one person: promised, spent and left."""

    epsilon: float
    delta: float
    spent: float  # ε at δ: a reading
    left: float  # of the account that pays for `who`
    who: str
    odds: str = field(repr=False)
    largest: float  # ε of one question that still fits
    question_delta: float  # at this δ

    def to_json(self) -> str:
        return json.dumps(vars(self), ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        return (
            f"promised:  ε = {self.epsilon:g} at δ = {self.delta:g}, whatever is asked\n"
            f"spent:     ε = {self.spent:.4g} at δ = {self.delta:g}\n"
            f"           ({READING})\n"
            f"left:      {format_share(self.left)} for {self.who}: one question of up to ε = {self.largest:g}\n"
            f"           at δ = {self.question_delta:g}, or several smaller ones\n"
            f"renews:    not by itself; the owner can (sfumato ledger renew)\n\n{self.odds}"
        )

    def _repr_html_(self) -> str:
        from sfumato.curator.answer_html import meter_html

        return meter_html(f"Budget left for {self.who}", self.left, str(self))


def budget_standing(ledger: Ledger, who: str, delta: float | None = None) -> Standing:
    """The state of this ledger for one person, whose questions have this δ; by default that of the budget."""
    promise, meter = ledger.promise, ledger.meter()
    _, limit, spent = ledger.account(who)
    at = promise.delta if delta is None else delta
    fits = round_down_digits(promise.largest_epsilon(limit - spent, at))
    left = share_left(limit, spent)
    return Standing(promise.epsilon, promise.delta, meter.epsilon(), left, who, odds(meter.loss), fits, at)


def build_preview(offer: Offer, ledger: Ledger, who: str, delta: float) -> Preview:
    """A preview, from the offer and the ledger alone."""
    kept = find_stored(offer, ledger)
    offer = kept[0] if kept else offer  # what would be shown
    promise, price = ledger.promise, ledger.prices(offer.loss)[-1]
    _, limit, spent = ledger.account(who)
    total = ledger.meter().spent
    fits = (spent + price).within(limit)
    sketch = ledger.recall(sketch_key(offer.plan.table))
    truncation = tuple(describe_truncation(offer.plan, sketch)) if sketch else ()
    return Preview(
        offer, epsilon_at(offer.paid_loss, delta), delta, kept is not None, fits,
        share_left(limit, spent), share_left(limit, spent + price) if fits else 0.0,
        partial(odds, promise.loss_of(total)), partial(odds, promise.loss_of(total + price)),
        None if fits or kept else largest_fitting_epsilon(offer, ledger, limit - spent, delta),
        truncation,
    )  # fmt: skip


def largest_fitting_epsilon(offer: Offer, ledger: Ledger, left: Amount, delta: float) -> float:
    """The largest ε of this question that is covered by what is left."""
    asked = offer.loss.epsilon(delta).upper
    return largest_affordable_epsilon(partial(offer.loss_at, delta=delta), ledger, left, asked)
