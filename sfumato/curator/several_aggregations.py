"""Questions with several private aggregations: they share one price, and SQL over their answers makes one answer.

Theorem: shares of a price that sum to 1 cost the price together, and leaks add up [`Price.part`; `LeakyLoss`]
All of them are planned, bound and checked, and found affordable together, before the first is charged. Each is stored
separately: asking one of them again, alone or in another text, costs nothing.
"""

from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING

from sfumato.aggregates.price import LESS, Price
from sfumato.curator.answer import Answer
from sfumato.curator.grouping_sets import shares_of
from sfumato.curator.offer import Offer, required_leak
from sfumato.curator.preview import Preview, build_preview
from sfumato.curator.purchase import Purchase
from sfumato.errors import QueryRefused
from sfumato.ledger.amounts import share_left
from sfumato.ledger.meter import epsilon_at, odds
from sfumato.sql.question import Outer, Question

if TYPE_CHECKING:
    from sfumato.curator.curator import Curator
    from sfumato.curator.planner import Wanted


def offers_of(outer: Outer, epsilon: float, delta: float, currency: type[Price]) -> tuple[Offer, ...]:
    """An offer for each different plan, of shares of what (ε, δ) buys."""
    questions: dict[str, Question] = {}
    for one in outer.questions:
        questions.setdefault(one.plan.canonical, one)
    leaks = [required_leak(one, delta, currency) for one in questions.values()]
    leaky = sum(leak > 0 for leak in leaks)
    whole = currency.for_epsilon(epsilon, delta, max(leaks))
    shares = shares_of(outer)
    return tuple(
        Offer(question, whole.part(shares[name]), leak / leaky * LESS if leak else 0.0)
        for (name, question), leak in zip(questions.items(), leaks, strict=True)
    )


def require_epsilon(wanted: "Wanted") -> float:
    if wanted.epsilon is None or wanted.relative_error is not None:
        raise QueryRefused(
            "a question with several private aggregations is asked by epsilon=, which they share.\n"
            "  do:     give epsilon=, or ask each aggregation by itself with an error; SQL over stored answers is free"
        )
    return float(wanted.epsilon)


def ask_several(curator: "Curator", question: Question, wanted: "Wanted", key: str | None) -> Answer:
    """The answer to SQL over several private aggregations; a retry under the same key is charged once."""
    outer, planner, buyer = question.outer, curator.planner, curator.buyer
    assert outer is not None
    offers = offers_of(outer, require_epsilon(wanted), curator.policy.question_delta, planner.currency)
    keys = [None if key is None else f"{key} part {i}" for i in range(len(offers))]
    found = [buyer.find(offer, own) for offer, own in zip(offers, keys, strict=True)]
    missing = [offer for offer, one in zip(offers, found, strict=True) if one is None]
    if missing and curator.charges:
        for offer in missing:
            buyer.check_with_steps(offer)
        losses = [offer.loss for offer in missing]
        buyer.require_affordable(losses, reduce(add, losses), buyer.loss_at(missing[0]))
    bought: list[Purchase] = [
        one or buyer.buy(offer, own) for offer, one, own in zip(offers, found, keys, strict=True)
    ]  # fmt: skip
    answer = planner.outer_answer(outer, tuple(one.offer for one in bought), tuple(one.noisy for one in bought))
    return answer.with_account(any(one.charged for one in bought), curator.remaining())


def preview_several(curator: "Curator", question: Question, wanted: "Wanted") -> Preview:
    """The price of all aggregations together; `others` are those beside the first."""
    assert question.outer is not None
    delta, ledger = curator.policy.question_delta, curator.ledger
    offers = offers_of(question.outer, require_epsilon(wanted), delta, curator.planner.currency)
    first, *rest = [build_preview(offer, ledger, curator.who, delta) for offer in offers]
    due = [one.offer for one in (first, *rest) if not one.free]
    price = reduce(add, (ledger.prices(offer.loss)[-1] for offer in due or [first.offer]))
    _, limit, spent = ledger.account(curator.who)
    fits = not due or (spent + price).within(limit)
    loss = reduce(add, (one.offer.paid_loss for one in (first, *rest)))
    promise, total = ledger.promise, ledger.meter().spent
    return replace(
        first, epsilon=epsilon_at(loss, delta), free=not due, fits=fits,
        after=share_left(limit, spent + price) if fits else 0.0, others=tuple(rest), largest=None,
        odds_after=partial(odds, promise.loss_of(total + price)),
    )  # fmt: skip
