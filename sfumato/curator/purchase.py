"""Purchases: find what is stored, or charge, read data, add noise and keep the result.

Everything that is released is bought here in one way: an answer (`Offer`), a step that an answer needs first (`Step`),
a sketch of contributions. A failure before the charge costs nothing. Reads are retried once, responses are padded, and
a question that fails after its charge is blocked (`Guard`). One per-question lock keeps two askers from paying twice.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Protocol

from sfumato.aggregates.price import Mu, Price, Pure
from sfumato.curator.affordable import budget_refusal
from sfumato.curator.bounded_cache import BoundedTables
from sfumato.curator.failure_guard import Clock, Guard, ResponsePadding, log
from sfumato.curator.offer import Offer, offer_for_epsilon
from sfumato.curator.precheck import CheckedRequests, Precheck
from sfumato.curator.price_for_error import FirstTry, offer_for_error, require_errors
from sfumato.curator.release import AnswerRelease, release
from sfumato.curator.scaling import Choice, NoisyNorms, cap_of
from sfumato.curator.steps import FIRST_SHARE, Step, Steps
from sfumato.engines.base import Engine
from sfumato.errors import BudgetExceeded, EngineUnavailable, NotStored, QueryRefused
from sfumato.ledger import Ledger, PureBudget, Receipt
from sfumato.ledger.shares import ANALYST, OTHERS, OWNER
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question

ENOUGH = 1 - 1e-9  # the share of a price from which on a stored result serves again
PATIENCE = 8  # time-outs: longer than a run, its retry, and the padding of both
LossAt = Callable[[float], PrivacyLoss]  # the loss of the same release at another ε


class Priced(Protocol):
    """A privacy loss that is charged under a canonical text."""

    @property
    def canonical(self) -> str: ...

    @property
    def loss(self) -> PrivacyLoss: ...


class Purchasable(Priced, Protocol):
    """A release: what the engine is asked, and noisy values from its tables."""

    @property
    def asked(self) -> str:
        """The question in words, as the ledger records it."""

    def requests(self, salt: int, dialect: Dialect) -> list[TableRequest]:
        """The tables that the engine is asked for."""

    def release(self, tables: Sequence[Sequence[Row]]) -> bytes:
        """Noisy values from exact tables, as they are stored."""


@dataclass(frozen=True)
class Purchase:
    """Noisy values, the offer that they are read by, and whether they were charged now or stored before."""

    offer: Offer
    noisy: bytes
    charged: bool


@dataclass(frozen=True)
class Buyer:
    """Buys releases for one person, on one engine and one ledger."""

    engine: Engine
    policy: Policy
    ledger: Ledger
    who: str
    charges: bool  # False: only stored answers are found
    bounded_tables: BoundedTables = field(repr=False)
    probe: Callable[[str], None] = field(repr=False)
    clock: Clock = field(repr=False)

    @property
    def currency(self) -> type[Price]:
        return Pure if isinstance(self.ledger.promise, PureBudget) else Mu

    @cached_property
    def salt(self) -> int:
        """The key of the hash that decides which groups of a unit are kept: fixed for this ledger."""
        return int.from_bytes(hashlib.sha256(self.ledger.line(1).text.encode()).digest()[:7])

    @cached_property
    def response(self) -> ResponsePadding:
        """The padding of response times."""
        return ResponsePadding(self.policy.limits.response_quantum, self.clock)

    @cached_property
    def precheck(self) -> Precheck:
        """The checks before a charge."""
        return Precheck(self.engine, self.policy)

    # ---- answers ----------------------------------------------------------------------------------------------------

    def find(self, offer: Offer, key: str | None = None) -> Purchase | None:
        """The answer stored under this idempotency key; or one to the same question that is at least as exact."""
        if key is not None and not offer.incomplete:  # an incomplete offer does not know its own loss yet
            before = self.ledger.find_receipt(offer.loss, question=offer.canonical, who=self.who, key=key)
            if before is not None and before.answer is not None:
                return Purchase(offer_as_stored(offer, before.answer), before.answer, False)
        found = find_stored(offer, self.ledger)
        return Purchase(*found, False) if found is not None else None

    def buy(self, offer: Offer, key: str | None = None) -> Purchase:
        """Check the engine, charge, release and keep. An answer that another asker has bought meanwhile is free."""
        if offer.incomplete:
            offer = self.complete(offer, key)
            if not offer.plan.parts:
                return Purchase(offer, release(offer, []), True)
        checked = self.check(offer)
        with self.question_lock(offer.canonical):
            if (found := self.find(offer, key)) is not None:
                return found
            noisy = self.buy_release(AnswerRelease.of(offer), self.loss_at(offer), key, checked)
            return Purchase(offer_as_stored(offer, noisy), noisy, True)

    # ---- steps before an answer -------------------------------------------------------------------------------------

    def complete(self, offer: Offer, key: str | None) -> Offer:
        """The offer with its private keys and its bounds, which are stored or bought now, one charge each.

        A retry under the same idempotency key splits the price as the first try did, and is charged for nothing twice.
        """
        bought: set[str] = set()

        def is_paid(step: Step) -> bool:
            return step.canonical in bought or self.is_charged(step, step.own_key(key))

        steps = Steps.of(offer, self.ledger, is_paid)
        trial = steps.complete_offer()
        if self.is_charged(trial, key):  # raises if the key was used for another request
            return trial
        self.check(trial)  # before the first charge
        if steps.missing:
            charges = [step.loss for step in steps.missing if not is_paid(step)]
            charges += [trial.loss] if offer.plan.parts else []
            self.require_affordable(charges, offer.loss, self.loss_at(offer))
        while steps.missing:
            if self.buy_step(steps.missing[0], self.loss_at(offer), key):
                bought.add(steps.missing[0].canonical)
            steps = Steps.of(offer, self.ledger, is_paid)  # another asker may have bought a step meanwhile
        return steps.complete_offer()

    def buy_step(self, step: Step, loss_at: LossAt, key: str | None = None) -> bool:
        """Buy a step unless it is stored; True if this call bought it."""
        checked = self.check_requests(step)
        with self.question_lock(step.canonical):
            if step.find(self.ledger) is not None:
                return False
            self.buy_release(step, loss_at, step.own_key(key), checked)
            if step.find(self.ledger) is None:  # charged under this key before the data changed: its result is outdated
                self.buy_release(step, loss_at, None, checked)
            return True

    def buy_for_error(self, question: Question, error: float, key: str | None) -> Purchase:
        """The answer with this error, where contributions are scaled. A retry under the same idempotency key has the
        price of the first try, whatever was bought meanwhile."""
        before = FirstTry.find(self.ledger, self.who, key, question, error, self.price_of(self.policy.epsilon))
        if before is not None and before.answer is not None:
            return Purchase(offer_as_stored(before.offer, before.answer), before.answer, False)
        first = self.first_offer(question)
        steps = Steps.of(first, self.ledger)
        if steps.missing and before is None:
            self.require_possible(error, steps)  # before the first charge
        while steps.missing:  # their norms decide what an error costs
            self.buy_step(steps.missing[0], self.loss_at(first), key)
            steps = steps.after_purchase(self.ledger)
        if before is not None:
            offer = replace(steps.at(before.offer.price).complete_offer(), promised=error)
        else:
            offer = self.offer_with_steps(question, error, steps)
        return self.find(offer, key) or self.buy(offer, key)

    def require_possible(self, error: float, steps: Steps) -> None:
        """Refuse an error that no histogram could make possible or affordable."""
        trial = steps.complete_offer()
        require_errors(trial)
        self.check(trial)
        best = offer_for_error(
            trial.question, error, self.policy.question_delta, self.policy.epsilon, self.currency,
            lambda offer: steps.at(offer.price).at_best(),
        )  # fmt: skip
        charges = [*(step.loss for step in steps.missing), best.loss]
        self.require_affordable(charges, steps.offer.loss, self.loss_at(steps.offer))

    def preview_offer_for_error(self, question: Question, error: float) -> Offer:
        """The cheapest offer with this error, from stored histograms alone; QueryRefused if one is missing."""
        steps = Steps.of(self.first_offer(question), self.ledger)
        if steps.missing:
            epsilon = max(step.loss.epsilon(self.policy.question_delta).upper for step in steps.missing)
            raise QueryRefused(
                "what this error costs depends on how much people contribute, which is not known yet.\n"
                f"  found:  no histogram of norms; asking buys it first, for about ε = {epsilon:.2g}\n"
                "  do:     ask; or preview by epsilon=; or let the owner buy histograms once (curator.register)"
            )
        return self.offer_with_steps(question, error, steps)

    def first_offer(self, question: Question) -> Offer:
        """The share of the budget that histograms of norms may cost, if a question names an error."""
        whole = offer_for_epsilon(question, self.policy.epsilon, self.policy.question_delta, self.currency)
        return replace(whole, price=whole.price.part(FIRST_SHARE))

    def offer_with_steps(self, question: Question, error: float, steps: Steps) -> Offer:
        offer = offer_for_error(
            question, error, self.policy.question_delta, self.policy.epsilon, self.currency,
            lambda offer: steps.at(offer.price).complete_offer(),
        )  # fmt: skip
        return replace(offer, promised=error)

    # ---- one release: charge, read, add noise, keep -----------------------------------------------------------------

    def buy_release(self, item: Purchasable, loss_at: LossAt, key: str | None, checked: CheckedRequests) -> bytes:
        """Charge, release and keep. The result is stored only when its response is due, so that reading the store
        reveals no more than waiting for the answer."""
        if not self.charges:
            raise NotStored("there is no stored answer to this question, and nothing was charged.\n  do:     ask it")
        receipt = self.charge(item, loss_at, key, checked.began)
        if receipt.answer is not None:
            return receipt.answer
        if not receipt.first:  # the process that charged under this key crashed: run again under its charge
            self.ledger.rerun(receipt)
        with Guard(self.ledger, receipt, self.response, checked.began) as guard:
            self.probe("data: before")
            exact = self.read_with_retry(checked.requests, receipt)  # the only line that sees data
            guard.noise_drawn = True  # from here on it may be
            self.probe("data: read")
            noisy = item.release(exact)
            self.probe("noise: drawn")
        self.probe("answer: due")
        return self.ledger.keep(receipt, noisy)

    def charge(self, item: Purchasable, loss_at: LossAt, key: str | None, began: float) -> Receipt:
        """A durable charge; BudgetExceeded says which ε would fit."""
        try:
            return self.ledger.charge(
                item.loss, question=item.canonical, who=self.who, key=key, account=self.paying_account, asked=item.asked
            )
        except BudgetExceeded:
            self.response.wait(began)  # opening an engine may take a time that depends on data
            raise budget_refusal(item.loss, loss_at, self.ledger, self.who, self.policy.question_delta) from None

    def read_with_retry(self, requests: Sequence[TableRequest], receipt: Receipt) -> list[list[Row]]:
        """Read exact tables, with one retry: sound, as the first result was not released and no noise was drawn."""
        try:
            return self.read(requests)
        except Exception:
            log.exception("charge %d: first run failed", receipt.seq)
            self.ledger.rerun(receipt)
            return self.read(requests)

    def read(self, requests: Sequence[TableRequest]) -> list[list[Row]]:
        """Exact tables, all of one snapshot."""
        with self.engine.snapshot():
            return [self.bounded_tables.rows(self.engine, request) for request in requests]

    @cached_property
    def paying_account(self) -> str | None:
        """The account that must pay under the policy; None if the ledger may choose."""
        if self.who in self.policy.analysts:
            return f"{ANALYST}{self.who}"
        return OTHERS if self.policy.others is not True and self.who != OWNER else None

    # ---- before the charge ------------------------------------------------------------------------------------------

    def check(self, offer: Offer) -> CheckedRequests:
        """The statements of an offer, after everything that can fail before the charge has been tried."""
        checked = self.check_requests(AnswerRelease.of(offer))
        offer.prepare()
        return checked

    def check_with_steps(self, offer: Offer) -> None:
        """Check an offer before its first charge; steps that it needs are taken to be bought."""
        self.check(Steps.of(offer, self.ledger).complete_offer() if offer.incomplete else offer)

    def check_requests(self, item: Purchasable) -> CheckedRequests:
        """The statements of a release, after the engine has said that it can run them."""
        began = self.clock.now()
        try:
            return self.precheck.check(partial(item.requests, self.salt), began)
        except EngineUnavailable:
            self.response.wait(began)
            raise

    def question_lock(self, question: str) -> AbstractContextManager[None]:
        """The per-question lock: one purchase of a question at a time."""
        return self.ledger.question_lock(question, PATIENCE * self.policy.limits.timeout, self.clock.sleep)

    def is_charged(self, item: Priced, key: str | None) -> bool:
        """Was this charged under this idempotency key before?"""
        return key is not None and (
            self.ledger.find_receipt(item.loss, question=item.canonical, who=self.who, key=key) is not None
        )

    def require_affordable(self, charges: Sequence[PrivacyLoss], loss: PrivacyLoss, loss_at: LossAt) -> None:
        """Refuse a purchase of several charges before the first of them, unless the account holds them all."""
        _, limit, spent = self.ledger.account(self.who)
        cost = reduce(add, (self.ledger.prices(one)[-1] for one in charges))
        if not cost.within(limit - spent):
            raise budget_refusal(loss, loss_at, self.ledger, self.who, self.policy.question_delta)

    def loss_at(self, offer: Offer) -> LossAt:
        return partial(offer.loss_at, delta=self.policy.question_delta)

    def price_of(self, epsilon: float) -> Price:
        """The price that ε pays at the δ of a question, if none of δ is a leak."""
        return self.currency.for_epsilon(float(epsilon), self.policy.question_delta, 0.0)

    def loss_of_epsilon(self, epsilon: float) -> PrivacyLoss:
        return self.price_of(epsilon).loss()


# ---- stored answers that serve a question again: the same canonical text, bought for at least the same price -----


def find_stored(offer: Offer, ledger: Ledger) -> tuple[Offer, bytes] | None:
    """The most exact stored answer to the same plan, with the offer that it is read by; None if none is as exact."""
    found: list[tuple[Offer, bytes]] = []
    for canonical in offer.served_by:
        for loss, answer in ledger.answers(canonical):
            if (stored := stored_offer(offer, loss, answer)) is not None:
                found.append((stored, answer))
    return max(found, key=lambda pair: (pair[0].whole or pair[0].price).amount, default=None)


def stored_offer(offer: Offer, loss: PrivacyLoss, answer: bytes) -> Offer | None:
    """The offer of the same plan that was charged as this loss, if it is at least as exact.

    A released answer with less noise may serve a request for more noise: showing it again is post-processing. Where
    contributions are scaled, what was paid for steps counts as paid.
    """
    inner, leak = (loss.inner, loss.failure) if isinstance(loss, LeakyLoss) else (loss, 0.0)
    price = offer.price.of(inner)
    if offer.scaled:
        return stored_scaled_offer(offer, price, leak, answer)
    if price is None or price.amount < offer.price.amount or leak != offer.leak:
        return None
    return offer.at_price(price)


def offer_as_stored(offer: Offer, answer: bytes) -> Offer:
    """The offer by which an answer that was charged as this one is read: the answer stores its own bounds and keys."""
    return (stored_scaled_offer(offer, offer.price, offer.leak, answer) or offer) if offer.scaled else offer


def stored_scaled_offer(offer: Offer, price: Price | None, leak: float, answer: bytes) -> Offer | None:
    """The offer of an answer about scaled contributions, if at least as much was paid for it and its steps."""
    if price is None or leak > offer.leak:
        return None
    data = json.loads(answer)
    whole = price.with_amount(data["paid"])
    if whole.amount < (offer.whole or offer.price).amount * ENOUGH:
        return None
    choices = tuple(
        Choice(block, one["bound"], NoisyNorms.of(one), cap_of(block, offer.plan))
        for block, one in zip(offer.blocks, data["choices"], strict=True)
    )
    stored = data.get("ranks")
    ranks = Choice(offer.rank_block, stored["bound"], NoisyNorms.of(stored)) if stored else None
    keys = tuple(tuple(key) for key in data["keys"]) if offer.plan.discovered else None
    return replace(
        offer, price=price, leak=leak, choices=choices, ranks=ranks, shown=keys, whole=whole,
        whole_leak=max(offer.leak, offer.whole_leak),
    )  # fmt: skip
