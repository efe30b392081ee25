"""The trusted curator: plan, price, charge, run, plan. The only place where they meet."""

import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import add

from sfumato.aggregates.builder import Rows
from sfumato.aggregates.price import Mu, Price, Pure
from sfumato.curator.affordable import budget_refusal, loss_by_epsilon
from sfumato.curator.answer import Answer
from sfumato.curator.bounded_cache import BoundedTables
from sfumato.curator.contribution_sketch import Sketch, missing_norms, sketch_key, tables_to_sketch
from sfumato.curator.failure_guard import Guard
from sfumato.curator.fit_in_database import fit_from, regression_question
from sfumato.curator.layout import minimum_coverage
from sfumato.curator.left_out import expected_words, left_out
from sfumato.curator.offer import Offer, offer_for_error, required_leak
from sfumato.curator.open import Data, account_of, open_engine, open_ledger, require_admitted, require_same_promise
from sfumato.curator.planner import Planner
from sfumato.curator.precheck import CheckedRequests, check_requests, require_engine
from sfumato.curator.preview import (
    Preview,
    Standing,
    budget_standing,
    build_preview,
    find_stored,
    format_share,
    limit_and_spent,
    share_left,
)
from sfumato.curator.refinement import Refinement, rounds
from sfumato.curator.relative_counts import is_grouped_count
from sfumato.curator.release import release, table_requests
from sfumato.curator.response_padding import Clock, Response
from sfumato.curator.retried_errors import FirstTry
from sfumato.curator.steps import FIRST_SHARE, Step, Steps, step_key
from sfumato.curator.suggest_bounds import Bounds, number_column, rough_range, share_outside, suggested_range
from sfumato.curator.unbounded_questions import ask_unbounded, preview_unbounded
from sfumato.curator.value_votes import NoisyCounts, ValueVotes, magnitude_histogram, position_histogram
from sfumato.curator.wanted import Wanted, require_positive
from sfumato.engines.base import Engine
from sfumato.errors import BudgetExceeded, EngineUnavailable, NotReached, NotStored, QueryRefused, UnboundedColumn
from sfumato.learn.linear_regression import LinearRegression
from sfumato.ledger import Ledger, PureBudget
from sfumato.ledger.shares import OWNER
from sfumato.loss.base import PrivacyLoss
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.parse.from_where import MAIN
from sfumato.sql.policy import VIEWS, Policy
from sfumato.sql.question import Question
from sfumato.sql.tighten import QuestionBounds

PATIENT = 8  # time-outs


@dataclass(frozen=True)
class Purchase:
    """Noisy values and the offer by which they are read; `charged` just now, or stored before."""

    offer: Offer
    noisy: bytes
    charged: bool


@dataclass(frozen=True)
class Curator:
    """Stands between a database and people who may ask anything."""

    engine: Engine
    policy: Policy
    ledger: Ledger
    who: str = OWNER
    charges: bool = True  # False: only what is stored
    bounded_tables: BoundedTables = field(default_factory=lambda: BoundedTables(VIEWS), repr=False)
    probe: Callable[[str], None] = field(default=lambda point: None, repr=False)  # told where it is: for fault tests
    clock: Clock = field(default=Clock(), repr=False)

    @staticmethod
    def open(
        data: Data, policy: str | os.PathLike[str] | Policy, *,
        ledger: str | os.PathLike[str] | Ledger | None = None, anchor: str | os.PathLike[str] | None = None,
    ) -> "Curator":  # fmt: skip
        """The curator of this database under this policy: of a file, a folder or a pattern of Parquet files, of a
        database whose address begins with postgresql://, of data frames by name ({"visits": frame}), of a connection of
        DuckDB, or of an engine. The ledger of a file lies beside it unless said otherwise: another file, an address
        (postgresql://…?schema=clinic), or a Ledger. Whichever it is, it must keep the policy's promise, and the
        policy's shares are set in it; that is an act in its book if they are new."""
        stated = policy if isinstance(policy, Policy) else Policy.load(policy)
        engine = open_engine(data, stated.limits, stated.delimiters)
        require_engine(engine, stated)
        return Curator(
            engine,
            stated,
            open_ledger(ledger, engine, stated, anchor),
            bounded_tables=BoundedTables(stated.limits.views),
        )

    def __post_init__(self) -> None:
        """However a curator is made: the ledger keeps the policy's promise, and the policy lets this person ask."""
        if isinstance(self.ledger, Ledger):
            require_same_promise(self.ledger, self.policy)
        require_admitted(self.policy, self.who)

    def analyst(self, who: str) -> "Curator":
        """The same curator, asked by this person."""
        asked = replace(self, who=who)
        vars(asked)["planner"] = self.planner  # plans do not depend on who asks
        return asked

    def stored_only(self) -> "Curator":
        """The same curator, which answers what is stored and charges nothing: anything else is NotStored."""
        asked = replace(self, charges=False)
        vars(asked)["planner"] = self.planner
        return asked

    @cached_property
    def planner(self) -> Planner:
        """The pure half: plans, prices and layouts."""
        currency = Pure if isinstance(self.ledger.promise, PureBudget) else Mu
        return Planner(self.policy, getattr(self.engine, "namespace", MAIN), self.engine.dialect, currency)

    def table(self, name: str) -> "Rows[Answer, Preview]":
        """A question put together in Python: table("visits").where(…).group_by(…).agg(…).ask(epsilon=…)."""
        return Rows.of(self, name)

    # ---- the road of a question -------------------------------------------------------------------------------------

    def preview(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, rows: int | None = None, groups: int | None = None,
        most: int | None = None,
    ) -> Preview:  # fmt: skip
        """Price, errors and odds. Free, and no data are touched."""
        wanted = Wanted.of(sql, epsilon, error, relative_error, QuestionBounds(rows, groups, most))
        try:
            question = self.planner.plan(wanted)
        except UnboundedColumn:
            return preview_unbounded(self, wanted)
        if question.plan.table.scaled and wanted.epsilon is None:
            return self.preview_of(self.offer_within(question, float(wanted.error or 0.0), buy=False))
        return self.preview_of(self.planner.offer(wanted))

    def ask(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, key: str | None = None, rows: int | None = None,
        groups: int | None = None, most: int | None = None,
    ) -> Answer:  # fmt: skip
        """A private answer. Charged durably before data are read, stored durably before it is returned.

        With a relative error ε is what a count by group costs, and the most that other questions may: see `refine`.
        `key` is an idempotency key: the same request with the same key is charged once.
        `rows`, `groups`, `most`: tighter bounds than the policy's, for this question alone.
        """
        self.probe("ask: asked")
        wanted = Wanted.of(sql, epsilon, error, relative_error, QuestionBounds(rows, groups, most))
        try:
            question = self.planner.plan(wanted)  # pure: text and policy, or QueryRefused
        except UnboundedColumn:
            return ask_unbounded(self, wanted, key)
        if wanted.relative_error is not None and not is_grouped_count(question) and not wanted.explained:
            return self.refine(question, wanted, key)
        if question.plan.table.scaled and wanted.epsilon is None:
            return self.ask_within(question, float(wanted.error or 0.0), key, explained=wanted.explained)
        offer = self.planner.offer(wanted)  # pure: noise, loss, promised errors
        self.probe("ask: priced")
        if wanted.explained:
            return self.explain(self.preview_of(offer))
        return self.answer(offer, key)

    def fit(self, estimator: LinearRegression, sql: str, *, y: str, epsilon: float, key: str | None = None) -> Answer:
        """Fit a linear regression of column `y` to the rows of a SELECT, in the database, for ε in all.

        The estimator's bounds are public. What leaves the database are the noisy moments, one answer, which is charged,
        stored and free on repetition; it is returned, and the estimator is fitted to it.
        """
        known, question, features = regression_question(estimator, sql, y)
        answer = self.ask(question, epsilon=epsilon, key=key)
        fit_from(answer, known, features)
        return answer

    def answer(self, offer: Offer, key: str | None = None) -> Answer:
        """The stored answer, or a new one."""
        purchase = self.find(offer, key) or self.buy(offer, key)
        answer = self.planner.answer(purchase.offer, purchase.noisy)
        self.probe("ask: shown")
        return self.with_account(answer, purchase.charged)

    def offer(
        self, sql: str, epsilon: float | None = None, error: float | None = None, relative_error: float | None = None
    ) -> Offer:  # fmt: skip
        """Pure: what a preview is made of."""
        return self.planner.offer(Wanted.of(sql, epsilon, error, relative_error))

    def find(self, offer: Offer, key: str | None = None) -> Purchase | None:
        """The answer stored under this idempotency key; or one to the same question that is at least as exact."""
        if key is not None and not offer.incomplete:  # else its own loss is not known yet
            before = self.ledger.find_receipt(offer.loss, question=offer.canonical, who=self.who, key=key)
            if before is not None and before.answer is not None:
                return Purchase(offer.reading(before.answer), before.answer, False)
        found = find_stored(offer, self.ledger)
        return Purchase(*found, False) if found is not None else None

    def buy(self, offer: Offer, key: str | None = None) -> Purchase:
        """Check the engine, charge, run and keep, under the lock of this question; what somebody else has bought
        meanwhile is free."""
        if offer.incomplete:
            offer = self.complete(offer, key)
            if not offer.plan.parts:
                return Purchase(offer, release(offer, []), True)
        checked = self.checked_requests(partial(table_requests, offer, self.salt))  # before the charge, should it fail
        offer.prepare()
        with self.question_lock(offer.canonical):
            if (found := self.find(offer, key)) is not None:
                return found
            loss_at = loss_by_epsilon(offer, self.policy.question_delta)
            noisy = self.purchase(offer.loss, loss_at, offer.canonical, key, checked, partial(release, offer))
            return Purchase(offer.reading(noisy), noisy, True)

    def complete(self, offer: Offer, key: str | None) -> Offer:
        """The offer with its private keys and its bounds: what is stored of them, or bought now, one charge each.

        A retry under the same idempotency key splits the price as the first try did, and is charged for nothing twice.
        """
        bought: set[str] = set()

        def is_paid(step: Step) -> bool:
            return step.canonical in bought or self.is_charged(step.loss, step.canonical, step.own_key(key))

        steps = Steps.of(offer, self.ledger, is_paid)
        trial = steps.completed()
        if self.is_charged(trial.loss, trial.canonical, key):  # or raises, if the key was used for something else
            return trial
        self.checked_requests(partial(table_requests, trial, self.salt))  # before the first charge
        trial.prepare()
        loss_at = loss_by_epsilon(offer, self.policy.question_delta)
        if steps.missing:
            first = [step.loss for step in steps.missing if not is_paid(step)]
            self.require_affordable([*first, trial.loss] if offer.plan.parts else first, offer.loss, loss_at)
        while steps.missing:
            if self.buy_step(steps.missing[0], loss_at, key):
                bought.add(steps.missing[0].canonical)
            steps = Steps.of(offer, self.ledger, is_paid)  # what somebody else has bought meanwhile is free
        return steps.completed()

    def ask_within(self, question: Question, error: float, key: str | None, *, explained: bool) -> Answer:
        """The answer with this error, where contributions are scaled."""
        if explained:
            return self.explain(self.preview_of(self.offer_within(question, error, buy=False)))
        before = FirstTry.find(self, question, error, key)
        if before is not None and before.answer is not None:
            shown = self.planner.answer(before.offer.reading(before.answer), before.answer)
            return self.with_account(shown, False)
        return self.answer(self.offer_within(question, error, buy=True, key=key, before=before), key)

    def offer_within(
        self, question: Question, error: float, *, buy: bool, key: str | None = None, before: FirstTry | None = None
    ) -> Offer:  # fmt: skip
        """The cheapest offer with this error, where contributions are scaled: how long they are decides what it costs,
        so a histogram of norms is bought first, as a charge of its own. What was charged `before` is the price."""
        delta, currency = self.policy.question_delta, self.planner.currency
        leak = required_leak(question, delta, currency)
        whole = Offer(question, currency.for_epsilon(self.policy.epsilon, delta, leak), leak)
        first = replace(whole, price=whole.price.part(FIRST_SHARE))
        steps = Steps.of(first, self.ledger)
        if steps.missing and not buy:
            epsilon = max(step.loss.epsilon(delta).upper for step in steps.missing)
            raise QueryRefused(
                "what this error costs depends on how much people contribute, which is not known yet.\n"
                f"  found:  no histogram of norms; asking buys it first, for about ε = {epsilon:.2g}\n"
                "  do:     ask; or preview by epsilon=; or let the owner buy histograms once (curator.register)"
            )
        while steps.missing:
            self.buy_step(steps.missing[0], loss_by_epsilon(first, delta), key)
            steps = steps.bought(self.ledger)
        if before is not None:
            return replace(steps.at(before.offer.price).completed(), promised=error)
        found = offer_for_error(
            question, error, delta, self.policy.epsilon, currency, lambda offer: steps.at(offer.price).completed()
        )
        return replace(found, promised=error)

    def is_charged(self, loss: PrivacyLoss, question: str, key: str | None) -> bool:
        """Was this charged under this idempotency key before?"""
        return key is not None and self.ledger.find_receipt(loss, question=question, who=self.who, key=key) is not None

    def buy_step(self, step: Step, loss_at: Callable[[float], PrivacyLoss], key: str | None) -> bool:
        """Buy what a question needs first, unless somebody else has bought it meanwhile: did we?"""
        checked = self.checked_requests(partial(step.requests, self.salt))
        with self.question_lock(step.canonical):
            if step.find(self.ledger) is not None:
                return False
            self.purchase(step.loss, loss_at, step.canonical, step.own_key(key), checked, step.release)
            if step.find(self.ledger) is None:  # charged under this key before the data changed: what it gave is old
                self.purchase(step.loss, loss_at, step.canonical, None, checked, step.release)
            return True

    def purchase(
        self, loss: PrivacyLoss, loss_at: Callable[[float], PrivacyLoss], question: str, key: str | None,
        checked: CheckedRequests, release: Callable[[list[list[Row]]], bytes],
    ) -> bytes:  # fmt: skip
        """Charge, run, wait until a response is due, and only then store: a reader of the store learns no more.

        If the account holds too little, `loss_at` tells what the same costs at another ε.
        """
        if not self.charges:
            raise NotStored("there is no stored answer to this question, and nothing was charged.\n  do:     ask it")
        response = Response(self.policy.limits.response_quantum, self.clock)
        try:
            payer = account_of(self.policy, self.who)
            receipt = self.ledger.charge(loss, question=question, who=self.who, key=key, account=payer)
        except BudgetExceeded:
            response.wait(checked.began)  # how long an engine takes to open may depend on data
            raise budget_refusal(loss, loss_at, self.ledger, self.who, self.policy.question_delta) from None
        if receipt.answer is not None:
            return receipt.answer
        if not receipt.first:  # the first holder of this key crashed: run again under its charge
            self.ledger.rerun(receipt)
        with Guard(self.ledger, receipt, response, checked.began) as guard:
            self.probe("data: before")
            exact = guard.retry(lambda: self.read(checked.requests))  # the only line that sees data
            self.probe("data: read")
            noisy = release(exact)
            self.probe("noise: drawn")
        self.probe("answer: due")
        return self.ledger.keep(receipt, noisy)

    def read(self, requests: Sequence[TableRequest]) -> list[list[Row]]:
        """Exact tables, all of one moment."""
        with self.engine.snapshot():
            return [self.bounded_tables.rows(self.engine, request) for request in requests]

    # ---- around the road --------------------------------------------------------------------------------------------

    def refine(self, question: Question, wanted: Wanted, key: str | None) -> Answer:
        """Rounds of growing price until every number is within this share of itself, at 95 %; ε is the most they cost.

        If that does not suffice, or the budget ends, `NotReached` holds the best answer so far.
        """
        limit, goal = float(wanted.epsilon or 0.0), float(wanted.relative_error or 0.0)
        offers = rounds(question, limit, self.policy.question_delta, self.planner.currency)
        bought, charged = Refinement(), False
        if question.plan.table.scaled:
            whole = self.planner.currency.for_epsilon(limit, self.policy.question_delta, 0.0)
            first = self.complete(Offer(question, whole), key)
            offers = tuple(
                replace(first, price=one.price.part(first.price.amount**2 / whole.amount**2), whole=None, draw=one.draw)
                for one in offers
            )
            bought = Refinement(steps=math.sqrt(max(0.0, whole.amount**2 - first.price.amount**2)))
        try:
            for i, offer in enumerate(offers):
                own_key = f"{key} round {i}" if key is not None else None
                purchase = self.find(offer, own_key) or self.buy(offer, own_key)
                bought, charged = bought.with_round(purchase.offer, purchase.noisy), charged or purchase.charged
                if bought.largest_relative_error() <= goal:
                    return self.with_account(self.refined_answer(bought), charged)
        except BudgetExceeded:
            if not bought.offers:
                raise
        answer = self.with_account(self.refined_answer(bought), charged)
        raise NotReached(
            f"a relative error of {100 * goal:.3g} % was not reached.\n"
            f"  found:  {100 * bought.largest_relative_error():.3g} % after ε = {answer.epsilon:.3g}, already charged\n"
            "  do:     use the `answer` of this error, or ask with a larger epsilon: what was bought counts",
            answer,
        )

    def refined_answer(self, bought: Refinement) -> Answer:
        last, missing = bought.offers[-1], None
        if last.scaled:
            missing = left_out(last, json.loads(bought.tables[-1]))
        return self.planner.show(bought.combined_offer, bought.read(), minimum_coverage(bought.combined_offer), missing)

    def preview_of(self, offer: Offer) -> Preview:
        """The preview of an offer; errors are known where the histograms of norms that it needs are stored."""
        preview = build_preview(offer, self.ledger, self.who, self.policy.question_delta)
        steps = Steps.of(offer, self.ledger) if offer.scaled and offer.choices is None and not preview.free else None
        if steps is None or None in steps.known or not offer.plan.parts:
            return preview
        sharp = steps.completed()
        return replace(preview, sharp=sharp, lost=(*preview.lost, *expected_words(sharp)))

    def explain(self, preview: Preview) -> Answer:
        """EXPLAIN PRIVACY: the preview as an answer, which costs nothing."""
        rows = tuple((line,) for line in str(preview).splitlines())
        delta = self.policy.question_delta
        return Answer(("privacy",), rows, preview.offer.loss.epsilon(delta).upper, delta, False, self.remaining(), "")

    def question_lock(self, question: str) -> AbstractContextManager[None]:
        """One purchase of a question at a time. Nobody waits longer than the time-outs of a run and of another one, and
        what they are padded to."""
        return self.ledger.question_lock(question, PATIENT * self.policy.limits.timeout, self.clock.sleep)

    def checked_requests(self, make: Callable[[Dialect], list[TableRequest]]) -> CheckedRequests:
        """These statements, after the engine has said that it can run them; if it cannot, nobody has paid yet."""
        began = self.clock.now()
        try:
            return check_requests(self.engine, self.policy, make, began)
        except EngineUnavailable:
            Response(self.policy.limits.response_quantum, self.clock).wait(began)
            raise

    # ---- what is bought for previews and policies -------------------------------------------------------------------

    def loss_of_epsilon(self, epsilon: float) -> PrivacyLoss:
        """The loss of what ε buys, if none of it is a leak."""
        return self.planner.currency.for_epsilon(epsilon, self.policy.question_delta, 0.0).loss()

    def require_affordable(
        self, charges: Sequence[PrivacyLoss], loss: PrivacyLoss, loss_at: Callable[[float], PrivacyLoss]
    ) -> None:
        """Refuse what is bought in several charges before the first of them, if the account does not hold them all."""
        _, limit, spent = self.ledger.account(self.who)
        cost = reduce(add, (self.ledger.prices(one)[-1] for one in charges))
        if not cost.within(limit - spent):
            raise budget_refusal(loss, loss_at, self.ledger, self.who, self.policy.question_delta)

    def suggest_bounds(self, column: str, *, epsilon: float) -> Bounds:
        """Bounds for a column such as "visits.stay", from two noisy histograms; charged like any answer.

        The first finds the sizes of the values, the second their places between the ends that it found. Each has half
        of the price. What is made of them is post-processing.
        """
        require_positive("epsilon", epsilon)
        table, of = number_column(column, self.policy)
        whole = self.planner.currency.for_epsilon(float(epsilon), self.policy.question_delta, 0.0)
        half, sizes = whole.part(0.5), magnitude_histogram(table, of)
        if not any(one.serves(half) for one in NoisyCounts.stored(sizes, half, self.ledger)):
            self.require_affordable([whole.loss()], whole.loss(), self.loss_of_epsilon)
        first, bought = self.value_histogram(sizes, half)
        ends = rough_range(first.counts, first.sigma)
        places = position_histogram(table, of, *ends)
        second, bought_too = self.value_histogram(places, half)
        low, high = suggested_range(second, places.plan, *ends)
        outside = share_outside(second, first, ends, low, high)
        return Bounds(column, low, high, float(epsilon), bought or bought_too, outside)

    def value_histogram(self, question: Question, price: Price, key: str | None = None) -> tuple[NoisyCounts, bool]:
        """The most exact histogram that is stored and cost at least this much, or a new one; and whether it is new."""
        stored = [one for one in NoisyCounts.stored(question, price, self.ledger) if one.serves(price)]
        if stored:
            return stored[0], False
        if question.plan.table.scaled:
            self.buy_step(ValueVotes(question.plan, price), self.loss_of_epsilon, key)
        else:
            offer = Offer(question, price)
            self.buy(offer, step_key(key, offer.canonical))
            if not NoisyCounts.stored(question, price, self.ledger):  # charged under this key before the data changed
                self.buy(offer)
        return next(one for one in NoisyCounts.stored(question, price, self.ledger) if one.serves(price)), True

    def register(self, *, epsilon: float) -> None:
        """Buy what tells how much people contribute, once: previews then say how exact an answer will be, and questions
        need not buy it again.

        Of each table whose contributions are scaled that is a histogram of norms for COUNT(*) alone and by each column
        that may be a key; of others, a sketch of what the bounds of the policy cut off. Tables share ε evenly, and so
        do the histograms of a table. What is stored already and cost as much is not bought again.
        """
        require_positive("epsilon", epsilon)
        whole = self.planner.currency.for_epsilon(float(epsilon), self.policy.question_delta, 0.0)
        tables = tables_to_sketch(self.policy)
        norms = missing_norms(
            [table for table in tables if table.scaled], whole.part(1 / max(1, len(tables))), self.ledger
        )
        cut = [table for table in tables if not table.scaled and self.ledger.recall(sketch_key(table)) is None]
        items = len(cut) + len({step.plan.table.name for step in norms})
        if items:
            self.require_affordable([whole.loss()], whole.loss(), self.loss_of_epsilon)
        for step in missing_norms([one.plan.table for one in norms], whole.part(1 / max(1, items)), self.ledger):
            self.buy_step(step, self.loss_of_epsilon, None)
        for table in cut:
            sketch = Sketch(table, whole.part(1 / items))
            checked = self.checked_requests(sketch.table_requests)
            with self.question_lock(sketch_key(table)):
                if self.ledger.recall(sketch_key(table)) is None:
                    self.purchase(
                        sketch.loss(), self.loss_of_epsilon, sketch_key(table), None, checked, sketch.noisy_histograms
                    )

    @property
    def dialect(self) -> Dialect:
        """How the engine is told, with what it says of its columns now where that makes a difference."""
        return replace(dialect_of(self.engine.dialect), schema=self.engine.schema())

    @cached_property
    def salt(self) -> int:
        """The key of the hash that decides which groups of a unit are kept: fixed for this ledger."""
        first = self.ledger.line(1).text
        return int.from_bytes(hashlib.sha256(first.encode()).digest()[:7])

    # ---- post-processing --------------------------------------------------------------------------------------------

    def with_account(self, answer: Answer, charged: bool) -> Answer:
        """An answer with what it cost just now, and what is left."""
        return replace(answer, charged=charged, left=self.remaining(), coverage=dict(answer.coverage))

    def remaining(self) -> str:
        """What is left of the account that pays for this person."""
        return f"{format_share(share_left(*limit_and_spent(self.ledger, self.who)))} of the budget left"

    @property
    def budget(self) -> Standing:
        """Promised, spent and left, and what that means."""
        return budget_standing(self.ledger, self.who, self.policy.question_delta)
