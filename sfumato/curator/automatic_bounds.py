"""Bounds of columns for which the policy states none: found inside the price of the first question that needs them.

They come from the same two noisy histograms as suggested bounds, which are stored, so later questions use them for
nothing. Values beyond are clamped, and the answer says so. Everything here is a function of the question's text, of the
policy and of what is stored: no data are in it.

Theorem: histograms for a share of a price, bounds that are any function of them, and an answer under these bounds for
    the rest cost the price together [docs/theorems/contributions.md, Theorem 2: adaptive composition]
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, product
from typing import TYPE_CHECKING

from sfumato.aggregates.price import Price
from sfumato.curator.answer import NOISE_ONLY, Answer, LeftOut, about_percent, percent
from sfumato.curator.clamped_away import ClampedAway, include_clamped
from sfumato.curator.offer import Offer
from sfumato.curator.planner import ColumnBounds, Planner, Wanted
from sfumato.curator.preview import Preview
from sfumato.curator.purchase import find_stored
from sfumato.curator.steps import step_key
from sfumato.curator.suggest_bounds import (
    FARTHEST,
    Outside,
    is_seen,
    number_column,
    rough_range,
    share_outside,
    suggested_range,
)
from sfumato.curator.value_votes import (
    NoisyCounts,
    buy_value_histogram,
    has_bin_per_value,
    magnitude_histogram,
    position_histogram,
)
from sfumato.errors import NotReached, QueryRefused, UnboundedColumn
from sfumato.ledger import Ledger
from sfumato.ledger.meter import epsilon_at, odds
from sfumato.loss.base import PrivacyLoss
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.expressions import Column, columns
from sfumato.sql.parse.unbounded import UnboundedValue, has_one_source
from sfumato.sql.plan import Table
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question

if TYPE_CHECKING:
    from sfumato.curator.curator import Curator

SHARE = 0.2  # of a question's price, for the bounds of all its columns
FIRST_SHARE = 0.02  # of the budget, if a question names an error: its price is known only after its bounds
WORN = 1 / 16  # of what this question would pay: bounds that cost less are bought anew
WIDEST = 2 * FARTHEST  # wider than any bounds that are found or stated: marks those that are not known yet
TRIED = 16  # combinations of stored bounds


@dataclass(frozen=True)
class Unbounded:
    """A column that a question needs bounds for: of the policy, or one that a GROUP BY inside the question computes."""

    table: str
    column: str
    name: str  # in the question
    owner: Table | None  # the table that has a computed column

    @staticmethod
    def of(refusal: UnboundedColumn, policy: Policy) -> "Unbounded":
        if isinstance(refusal, UnboundedValue):
            return Unbounded(refusal.table, refusal.column, refusal.title, refusal.owner)
        number_column(f"{refusal.table}.{refusal.column}", policy)
        return Unbounded(refusal.table, refusal.column, f"{refusal.table}.{refusal.column}", None)

    def with_bounds(self, low: float, high: float) -> ColumnBounds:
        return self.table, self.column, low, high

    def source(self, policy: Policy) -> tuple[Table, Column]:
        """The table and column whose values are counted."""
        if self.owner is None:
            return number_column(f"{self.table}.{self.column}", policy)
        return self.owner, Column(f"t0.{self.column}", self.owner.columns[self.column])


@dataclass(frozen=True)
class FoundBounds:
    """Bounds of one column from two stored histograms, and what those cost."""

    of: Unbounded
    low: float
    high: float
    outside: Outside
    away: ClampedAway  # what clamping takes from means and sums
    price: Price  # of the second histogram, which is that of the first
    histograms: tuple[str, ...]  # canonical texts

    @property
    def ends(self) -> ColumnBounds:
        return self.of.with_bounds(self.low, self.high)

    @property
    def name(self) -> str:
        return self.of.column if self.of.owner is None else self.of.name

    @property
    def words(self) -> str:
        return (
            f"values of {self.name} are clamped to [{self.low:g}, {self.high:g}]:"
            f" {about_percent(self.outside.values)} lie outside, at most {percent(self.outside.at_most)}"
        )


def unbounded_columns(planner: Planner, wanted: Wanted) -> tuple[Unbounded, ...]:
    """The columns that a question needs bounds for; QueryRefused if it would be refused all the same. What is allowed
    with the widest range is allowed with any: domains only shrink."""
    found: tuple[Unbounded, ...] = ()
    first: QueryRefused | None = None
    while True:
        try:
            question = planner.with_bounds(widest_bounds(found)).plan(wanted)
        except UnboundedColumn as refusal:
            first = first or QueryRefused(str(refusal))
            one = Unbounded.of(refusal, planner.policy)
            if any((one.table, one.column) == (other.table, other.column) for other in found):
                raise first from None
            found = (*found, one)
        except QueryRefused as refusal:  # such as a product of two columns, beyond what a sum can have
            raise first or refusal from None
        else:
            require_one_source(found, question)
            return found


def require_one_source(unknown: Sequence[Unbounded], question: Question) -> None:
    """Refuse bounds that would be found in some rows and applied to others."""
    plans = [one.plan for one in (question.outer.questions if question.outer is not None else (question,))]
    for one in unknown:
        if one.owner is not None and not has_one_source(one.column, plans):
            raise QueryRefused(
                f"bounds of {one.name} cannot be found: two GROUP BYs compute it alike, from different rows.\n"
                "  found:  no bounds in either\n"
                "  do:     state them where it is summed: CLAMP(n, 0, 100); or ask about one GROUP BY at a time"
            )


def widest_bounds(unknown: Sequence[Unbounded]) -> tuple[ColumnBounds, ...]:
    """The widest bounds that may be found."""
    return tuple(one.with_bounds(-WIDEST, WIDEST) for one in unknown)


def stored_bounds(unknown: Unbounded, policy: Policy, price: Price, ledger: Ledger) -> list[FoundBounds]:
    """All bounds of a column that stored histograms give, the most exact first."""
    of_table, of = unknown.source(policy)
    sizes, found = magnitude_histogram(of_table, of), []
    for first in NoisyCounts.find_stored(sizes, price, ledger):
        if not is_seen(first):
            continue
        ends = rough_range(first.counts, first.sigma)
        places = position_histogram(of_table, of, *ends)
        for second in NoisyCounts.find_stored(places, price, ledger):
            low, high = suggested_range(second, places.plan, *ends)
            exact = has_bin_per_value(of, *ends)
            outside = share_outside(second, first, ends, low, high, exact)
            away = ClampedAway.of(first, second, ends, low, high, exact)
            names = tuple(NoisyCounts.canonical(one, price) for one in (sizes, places))
            found.append(FoundBounds(unknown, low, high, outside, away, second.price, names))
    best_first = sorted(found, key=lambda one: -one.price.amount)
    coarse = {(one.low, one.high): one.away for one in best_first}  # what is bought later changes no answer
    return [replace(one, away=coarse[one.low, one.high]) for one in best_first]


@dataclass(frozen=True)
class AutomaticBounds:
    """The columns of one question that need bounds, and the price of these."""

    planner: Planner
    wanted: Wanted
    columns: tuple[Unbounded, ...]
    ledger: Ledger

    @staticmethod
    def of(planner: Planner, wanted: Wanted, ledger: Ledger) -> "AutomaticBounds":
        return AutomaticBounds(planner, wanted, unbounded_columns(planner, wanted), ledger)

    @cached_property
    def widest(self) -> Offer:
        """The question with the widest bounds, for its whole price, or for the budget if it names an error: what it
        costs at most, and whether it can be asked at all."""
        return self.offer_under(widest_bounds(self.columns), self.question_of(self.wanted))

    def offer_under(self, bounds: Sequence[ColumnBounds], wanted: Wanted) -> Offer:
        return self.planner.with_bounds(tuple(bounds)).offer(wanted)

    @property
    def share(self) -> float:
        return FIRST_SHARE if self.wanted.epsilon is None else SHARE

    @cached_property
    def price(self) -> Price:
        """The price of one histogram of one column."""
        return self.widest.price.part(self.share / (2 * len(self.columns)))

    @property
    def epsilon(self) -> float:
        """The ε of all histograms together."""
        return self.widest.price.part(self.share).loss().epsilon(self.planner.policy.question_delta).upper

    @cached_property
    def rest(self) -> Wanted:
        """The request after bounds were bought: its text at the rest of its price; a stated error stays unchanged."""
        if self.wanted.epsilon is None:
            return self.wanted
        left = replace(self.widest, price=self.widest.price.part(1 - SHARE))
        return replace(self.wanted, epsilon=left.loss.epsilon(self.planner.policy.question_delta).lower * (1 - 1e-9))

    @property
    def charges(self) -> list[PrivacyLoss]:
        """The losses of all charges at most, if the question names a price."""
        bounds = [self.price.loss()] * (2 * len(self.columns))
        if self.wanted.epsilon is None:
            return bounds
        return [*bounds, self.offer_under(widest_bounds(self.columns), self.question_of(self.rest)).loss]

    @property
    def plan_words(self) -> tuple[str, ...]:
        """The purchase of bounds, in words for a preview."""
        names = ", ".join(one.name for one in self.columns)
        price = "the price" if self.wanted.epsilon is not None else "the budget"
        return (
            f"the policy states no bounds of {names}: {100 * self.share:g} % of {price} (ε = {self.epsilon:.2g}) finds"
            " them first, once for all later questions; values beyond them will be clamped",
        )

    def combinations(self) -> Iterator[tuple[FoundBounds, ...]]:
        """Stored bounds of all columns, the most exact first."""
        each = [stored_bounds(one, self.planner.policy, self.price, self.ledger) for one in self.columns]
        return islice(product(*each), TRIED)

    def best_known(
        self, charged: str | None = None, bought: Callable[[str], bool] = lambda question: False
    ) -> "tuple[tuple[FoundBounds, ...], Wanted] | None":
        """Stored bounds, and what is asked for under them: the whole price; or the rest, if this request had bought
        them before it was interrupted, or where that finds a stored answer. None if bounds must be bought.

        Of a request with an idempotency key: what was charged under it, and whether this one bought a histogram.
        """
        usable = None
        for bounds in self.combinations():
            mine = any(bought(text) for one in bounds for text in one.histograms)
            offer = self.offer_under([one.ends for one in bounds], self.question_of(self.rest))
            if charged is not None:
                if offer.canonical == charged:
                    return bounds, self.rest if mine else self.wanted
            elif mine or (self.wanted.epsilon and find_stored(offer, self.ledger) is not None):
                return bounds, self.rest
            elif usable is None and self.good_enough(bounds):
                usable = bounds
        return (usable, self.wanted) if usable is not None else None

    def question_of(self, wanted: Wanted) -> Wanted:
        """The request with a price; if it names an error instead, the price is that of the budget."""
        return replace(wanted, epsilon=wanted.epsilon or self.planner.policy.epsilon, error=None, relative_error=None)

    def good_enough(self, found: Sequence[FoundBounds]) -> bool:
        return all(one.price.amount >= self.price.part(WORN).amount for one in found)


def reads_unbounded(aggregate: Aggregate) -> bool:
    """Does this aggregate read a column whose bounds are not known yet? Its bounds are then wider than any policy's."""
    return any(one.domain.high >= WIDEST for value in aggregate.arguments for one in columns(value))


def with_clamping(answer: Answer, bounds: Sequence[FoundBounds], question: Question | None) -> Answer:
    """The answer with a note on the values that were clamped; given the question, with intervals that include what that
    removes."""
    answer, included = include_clamped(answer, question, [(one.low, one.high, one.away) for one in bounds])
    clamped = {one.name: [one.low, one.high, one.outside.values, one.outside.at_most] for one in bounds}
    missing = replace(answer.left_out or LeftOut(NOISE_ONLY), clamped=clamped, clamped_included=included)
    return replace(
        answer, note=f"{answer.note} {missing.beyond_bounds}".strip(), left_out=missing, coverage=dict(answer.coverage)
    )


# ---- asking under bounds that were found ----------------------------------------------------------------------------


def ask_unbounded(curator: "Curator", wanted: Wanted, key: str | None) -> Answer:
    """The answer under bounds that are stored, or bought now, inside the question's price."""
    if wanted.explained:
        return curator.explain(preview_unbounded(curator, wanted))
    found = AutomaticBounds.of(curator.planner, wanted, curator.ledger)
    charge = curator.ledger.find_charge(who=curator.who, key=key) if key is not None else None
    known = found.best_known(charge[0] if charge else None, lambda text: was_charged(curator, text, key))
    bounds, rest = known if known is not None else (buy_bounds(curator, found, key), found.rest)
    exact = wanted.error is None and wanted.relative_error is None  # else the interval is what was asked for
    question = found.offer_under([one.ends for one in bounds], found.question_of(rest)).question if exact else None
    try:
        answer = under_bounds(curator, bounds).ask(
            rest.text,
            epsilon=rest.epsilon,
            error=rest.error,
            relative_error=rest.relative_error,
            key=key,
            rows=rest.bounds.rows,
            groups=rest.bounds.groups,
            most=rest.bounds.most,
        )
    except NotReached as short:
        best = with_clamping(short.answer, bounds, question) if isinstance(short.answer, Answer) else None
        raise NotReached(str(short), best) from None
    if known is None and rest.epsilon is not None and rest.relative_error is None:  # the loss of all charges together
        loss = found.widest.loss
        answer = replace(
            answer, epsilon=epsilon_at(loss, answer.delta), odds=partial(odds, loss), charged=True,
            coverage=dict(answer.coverage),
        )  # fmt: skip
    return with_clamping(answer, bounds, question)


def preview_unbounded(curator: "Curator", wanted: Wanted) -> Preview:
    """The preview of a question about columns without bounds; stored bounds are used as if the policy stated them."""
    found = AutomaticBounds.of(curator.planner, wanted, curator.ledger)
    known = found.best_known()
    if known is not None:
        bounds, wanted = known
        preview = under_bounds(curator, bounds).preview(
            wanted.text,
            epsilon=wanted.epsilon,
            error=wanted.error,
            relative_error=wanted.relative_error,
            rows=wanted.bounds.rows,
            groups=wanted.bounds.groups,
            most=wanted.bounds.most,
        )
        return replace(preview, lost=(*preview.lost, *(one.words for one in bounds)))
    if wanted.epsilon is None:
        raise QueryRefused(
            "what this error costs depends on bounds that are not known yet.\n"
            f"  found:  {'; '.join(found.plan_words)}\n"
            "  do:     ask; or preview by epsilon=; or let the owner buy bounds once: sfumato policy suggest"
        )
    preview, aggregates = curator.preview_of(found.widest), found.widest.question.aggregates
    unknown = tuple(one for one in aggregates if reads_unbounded(one))
    return replace(preview, lost=(*preview.lost, *found.plan_words), unbounded=unknown)


def buy_bounds(curator: "Curator", found: AutomaticBounds, key: str | None) -> tuple[FoundBounds, ...]:
    """Bounds of all columns of a question that have none; each histogram is a charge of its own."""
    buyer = curator.buyer
    buyer.is_charged(found.widest, key)  # raises if the key was used for another request
    buyer.check_with_steps(found.widest)  # before the first charge
    buyer.require_affordable(found.charges, found.widest.loss, buyer.loss_at(found.widest))
    for one in found.columns:
        table, of = one.source(buyer.policy)
        sizes, _ = buy_value_histogram(buyer, magnitude_histogram(table, of), found.price, key)
        if not is_seen(sizes):
            raise NotReached(
                f"no bounds of {one.name} were found for this price.\n"
                f"  found:  too few people for ε = {found.epsilon:.2g}, of which a part is charged\n"
                "  do:     ask with a larger ε, or CLAMP it, or let the owner state low and high in the policy",
                None,
            )
        ends = rough_range(sizes.counts, sizes.sigma)
        buy_value_histogram(buyer, position_histogram(table, of, *ends), found.price, key)
    return next(found.combinations())


def under_bounds(curator: "Curator", bounds: Sequence[FoundBounds]) -> "Curator":
    """The curator under a policy with these bounds."""
    planner = curator.planner.with_bounds(tuple(one.ends for one in bounds))
    asked = replace(curator, policy=planner.policy)
    vars(asked)["planner"] = planner
    return asked


def was_charged(curator: "Curator", question: str, key: str | None) -> bool:
    """Was this step bought under this request's key?"""
    own = step_key(key, question)
    return own is not None and curator.ledger.find_charge(who=curator.who, key=own) is not None
