"""The trusted curator: plan, price, charge, run, plan. The only place where they meet."""

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from sfumato.curator.affordable import at_epsilon, refused
from sfumato.curator.answer import Answer
from sfumato.curator.bounded_cache import Views, Wanted
from sfumato.curator.contribution_sketch import Sketch, named, sketched
from sfumato.curator.estimates import Readout
from sfumato.curator.layout import at_least, coverage, laid_out, left_out, readout
from sfumato.curator.offer import Offer, accurate, offered, proportional
from sfumato.curator.open import account_of, admit, agree, engine_of, ledger_of
from sfumato.curator.precheck import Ready, ready, require_engine
from sfumato.curator.preview import Preview, Standing, account, percent, previewed, share_left, standing, stored
from sfumato.curator.price import Currency, Mu, Pure
from sfumato.curator.refinement import Refinement, rounds
from sfumato.curator.relative_counts import by_size, counted, told
from sfumato.curator.release import Row, released, tables
from sfumato.curator.response_padding import Clock, Response
from sfumato.curator.suggest_bounds import (
    Bounds,
    around,
    column_of,
    deviation,
    later,
    numbers,
    places,
    sizes,
    tidy,
    within,
)
from sfumato.engines.base import Engine
from sfumato.errors import (
    AnswerFailed,
    BudgetExceeded,
    EngineUnavailable,
    InvalidParameter,
    LedgerError,
    NotReached,
    QueryRefused,
)
from sfumato.ledger import Ledger, PureBudget
from sfumato.ledger.ledger import Receipt
from sfumato.ledger.meter import odds
from sfumato.ledger.shares import OWNER
from sfumato.loss.base import PrivacyLoss
from sfumato.sql.builder import Rows
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.dp_syntax import spelled
from sfumato.sql.parse.from_where import MAIN
from sfumato.sql.parse.text import read
from sfumato.sql.policy import VIEWS, Policy, names_unit
from sfumato.sql.question import Question

FAILED = "this question could not be answered. It stays charged; ask the operator, who can read why in the log."
PATIENT = 8  # time-outs
log = logging.getLogger("sfumato.curator")  # what an engine says may hold private values
log.addHandler(logging.NullHandler())  # so it goes nowhere unless the operator says where


@dataclass(frozen=True)
class Curator:
    """Stands between a database and people who may ask anything."""

    engine: Engine
    policy: Policy
    ledger: Ledger
    who: str = OWNER
    views: Views = field(default_factory=lambda: Views(VIEWS), repr=False)
    probe: Callable[[str], None] = field(default=lambda point: None, repr=False)  # told where it is: for fault tests
    clock: Clock = field(default=Clock(), repr=False)

    @staticmethod
    def open(
        data: str | os.PathLike[str] | Engine, policy: str | os.PathLike[str] | Policy, *,
        ledger: str | os.PathLike[str] | Ledger | None = None, anchor: str | os.PathLike[str] | None = None,
    ) -> "Curator":  # fmt: skip
        """The curator of this database under this policy: of a file or folder, of a database whose address begins with
        postgresql://, or of an engine. The ledger of a file lies beside it unless said otherwise: another file, an
        address (postgresql://…?schema=clinic), or a Ledger. Whichever it is, it must keep the policy's promise, and the
        policy's shares are set in it; that is an act in its book if they are new."""
        stated = policy if isinstance(policy, Policy) else Policy.load(policy)
        engine = engine_of(data, stated.limits)
        require_engine(engine, stated)
        return Curator(engine, stated, ledger_of(ledger, engine, stated, anchor), views=Views(stated.limits.views))

    def __post_init__(self) -> None:
        """However a curator is made: the ledger keeps the policy's promise, and the policy lets this person ask."""
        if isinstance(self.ledger, Ledger):
            agree(self.ledger, self.policy)
        admit(self.policy, self.who)

    def analyst(self, who: str) -> "Curator":
        """The same curator, asked by this person."""
        return replace(self, who=who)

    def table(self, name: str) -> "Rows[Answer, Preview]":
        """A question put together in Python: table("visits").where(…).group_by(…).agg(…).ask(epsilon=…)."""
        return Rows.of(self, name)

    # ---- asking -----------------------------------------------------------------------------------------------------

    def preview(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None,
    ) -> Preview:  # fmt: skip
        """Price, errors and odds. Free, and no data are touched."""
        offer = self.priced(sql, epsilon, error, relative_error)
        return previewed(offer, self.ledger, self.who, self.policy.question_delta)

    def ask(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, key: str | None = None,
    ) -> Answer:  # fmt: skip
        """A private answer. Charged durably before data are read, stored durably before it is returned.

        With a relative error ε is what a count by group costs, and the most that other questions may: see `refined`.
        """
        self.probe("ask: asked")
        asked = spelled(sql)
        goal = asked.relative_error if asked.relative_error is not None else relative_error
        offer = self.priced(sql, epsilon, error, goal)
        if goal is not None and offer.within is None and not asked.explained:
            return self.refined(offer.question, float(asked.epsilon or epsilon or 0.0), goal, key)
        self.probe("ask: priced")
        if asked.explained:
            return self.explained(previewed(offer, self.ledger, self.who, self.policy.question_delta))
        return self.answer(offer, key)

    def explained(self, preview: Preview) -> Answer:
        """EXPLAIN PRIVACY: the preview as an answer, which costs nothing."""
        rows = tuple((line,) for line in str(preview).splitlines())
        delta = self.policy.question_delta
        return Answer(("privacy",), rows, preview.offer.loss.epsilon(delta).upper, delta, False, self.remaining(), "")

    def refined(self, question: Question, limit: float, goal: float, key: str | None) -> Answer:
        """Rounds of growing price until every number is within this share of itself, at 95 %; ε is the most they cost.

        If that does not suffice, or the budget ends, `NotReached` holds the best answer so far.
        """
        bought, charged = Refinement(), False
        try:
            for i, offer in enumerate(rounds(question, limit, self.policy.question_delta, self.currency)):
                found, noisy, fresh = self.noisy(offer, f"{key} round {i}" if key is not None else None)
                bought, charged = bought.more(found, noisy), charged or fresh
                if bought.reached() <= goal:
                    return self.shown(bought.whole, bought.read(), charged, at_least(bought.whole))
        except BudgetExceeded:
            if not bought.offers:
                raise
        answer = self.shown(bought.whole, bought.read(), charged, at_least(bought.whole))
        raise NotReached(
            f"a relative error of {100 * goal:.3g} % was not reached.\n"
            f"  found:  {100 * bought.reached():.3g} % after ε = {answer.epsilon:.3g}, which is paid for\n"
            "  do:     use the `answer` of this error, or ask with a larger epsilon: what was bought counts",
            answer,
        )

    def answer(self, offer: Offer, key: str | None = None) -> Answer:
        """What was kept before, or a new one."""
        found, noisy, charged = self.noisy(offer, key)
        answer = self.shown(found, readout(found, noisy), charged, coverage(found))
        self.probe("ask: shown")
        return answer

    def noisy(self, offer: Offer, key: str | None) -> tuple[Offer, bytes, bool]:
        """(offer, noisy values, whether they were charged): what was kept before; or charge, run and keep, after
        anybody who is busy with the same question."""
        if (found := self.kept(offer, key)) is not None:
            return found
        asked = self.ready(partial(tables, offer, self.salt))  # before the charge, should it fail
        offer.work_out()
        with self.turn(offer.canonical):
            if (found := self.kept(offer, key)) is not None:
                return found
            loss_at = at_epsilon(offer, self.policy.question_delta)
            return offer, self.paid(offer.loss, loss_at, offer.canonical, key, asked, partial(released, offer)), True

    def kept(self, offer: Offer, key: str | None) -> tuple[Offer, bytes, bool] | None:
        """What is stored for this key; or for the same question, if it is at least as exact: both are free."""
        if key is not None:
            before = self.ledger.known(offer.loss, question=offer.canonical, who=self.who, key=key)
            if before is not None and before.answer is not None:
                return offer, before.answer, False
        found = stored(offer, self.ledger)
        return (*found, False) if found is not None else None

    def best(self, offer: Offer) -> Offer:
        """The offer whose answer would be shown: a stored one may be more exact."""
        found = stored(offer, self.ledger)
        return found[0] if found is not None else offer

    def turn(self, question: str) -> AbstractContextManager[None]:
        """Nobody waits longer than the time-outs of a run and another one, and what they are padded to."""
        return self.ledger.turn(question, PATIENT * self.policy.limits.timeout, self.clock.sleep)

    def paid(
        self, loss: PrivacyLoss, loss_at: Callable[[float], PrivacyLoss], question: str, key: str | None,
        asked: Ready, release: Callable[[list[list[Row]]], bytes],
    ) -> bytes:  # fmt: skip
        """Charge, run, wait until a response is due, and only then store: who looks for it in store learns no more.

        Were the account to hold too little, `loss_at` tells what the same costs at another ε.
        """
        response = Response(self.policy.limits.response_quantum, self.clock)
        account = account_of(self.policy, self.who)
        try:
            receipt = self.ledger.charge(loss, question=question, who=self.who, key=key, account=account)
        except BudgetExceeded:
            response.wait(asked.began)  # how long an engine takes to open may depend on data
            raise refused(loss, loss_at, self.ledger, self.who, self.policy.question_delta) from None
        if receipt.answer is not None:
            return receipt.answer
        if not receipt.first:  # who asked before with this key has died: it was his turn, and is ours now
            self.ledger.rerun(receipt)
        drawn = False
        try:
            exact = self.read(receipt, asked.statements)
            drawn = True
            noisy = release(exact)
            self.probe("noise: drawn")
        except Exception:  # one fixed error, whatever went wrong, and never the same again
            log.exception("charge %d failed", receipt.seq)
            response.wait(asked.began)
            self.block(receipt, drawn)
            raise AnswerFailed(FAILED) from None
        response.wait(asked.began)
        self.probe("answer: due")
        return self.ledger.keep(receipt, noisy)

    def bought(self, epsilon: float) -> PrivacyLoss:
        """The loss of what ε buys, if none of it is a leak."""
        return self.currency.bought(epsilon, self.policy.question_delta, 0.0).loss()

    def ready(self, make: Callable[[Dialect], list[Wanted]]) -> Ready:
        """These statements, after the engine has said that it can run them; if it cannot, nobody has paid yet."""
        began = self.clock.now()
        try:
            return ready(self.engine, self.policy, make, began)
        except EngineUnavailable:
            Response(self.policy.limits.response_quantum, self.clock).wait(began)
            raise

    def cover(self, loss: PrivacyLoss, loss_at: Callable[[float], PrivacyLoss]) -> None:
        """Refuse what is bought in several charges before the first of them, if the account does not hold them all."""
        _, limit, spent = self.ledger.account(self.who)
        if not any(price.within(limit - spent) for price in self.ledger.prices(loss)):
            raise refused(loss, loss_at, self.ledger, self.who, self.policy.question_delta)

    def block(self, receipt: Receipt, drawn: bool) -> None:
        try:
            self.ledger.block(receipt, drawn=drawn)
        except LedgerError:
            log.exception("charge %d failed, and could not be blocked", receipt.seq)

    def suggest_bounds(self, column: str, *, epsilon: float) -> Bounds:
        """Bounds for a column such as "visits.stay", from two noisy histograms; charged like any answer.

        The first finds the sizes of the values, the second their places between the ends that it found. Each has half
        of the price. What is made of them is post-processing.
        """
        budgeted("epsilon", epsilon)
        table, of = column_of(column, self.policy)
        whole = self.currency.bought(float(epsilon), self.policy.question_delta, 0.0)
        rough = self.best(Offer(sizes(table, of), whole.part(0.5)))
        if stored(rough, self.ledger) is None:
            self.cover(whole.loss(), self.bought)
        first = self.answer(rough)
        low, high = around(numbers(first), deviation(rough))
        fine = self.best(Offer(places(table, of, low, high), whole.part(0.5)))
        second = self.answer(fine)
        low, high = within(numbers(second), deviation(fine), later(whole, fine.plan), low, high)
        return Bounds(column, tidy(low, up=False), tidy(high, up=True), float(epsilon), first.charged or second.charged)

    def register(self, *, epsilon: float) -> None:
        """Buy the sketch of contributions, once: previews then say what the bounds of the policy cut off."""
        budgeted("epsilon", epsilon)
        tables = [table for table in sketched(self.policy) if self.ledger.recall(named(table)) is None]
        whole = self.currency.bought(float(epsilon), self.policy.question_delta, 0.0)
        if tables:
            self.cover(whole.loss(), self.bought)
        for table in tables:
            sketch = Sketch(table, whole.part(1 / len(tables)))
            asked = self.ready(sketch.wanted)
            with self.turn(named(table)):
                if self.ledger.recall(named(table)) is None:
                    self.paid(sketch.loss(), self.bought, named(table), None, asked, sketch.released)

    def priced(
        self, sql: str, epsilon: float | None, error: float | None, relative_error: float | None = None
    ) -> Offer:  # fmt: skip
        """Pure: from the text and the policy alone. What the text itself names goes before: ε, and a relative error."""
        asked = spelled(sql)
        goal = asked.relative_error if asked.relative_error is not None else relative_error
        if goal is not None:
            shared(goal, asked.epsilon or epsilon, error)
        if asked.epsilon is not None:
            epsilon, error = asked.epsilon, None
        if (epsilon is None) == (error is None):
            raise InvalidParameter("say how much privacy or how much accuracy: epsilon=0.5, or error=5")
        for name, value in (("epsilon", epsilon), ("error", error)):
            if value is not None:
                budgeted(name, value)
        question = read(asked.text, self.policy, getattr(self.engine, "namespace", MAIN))
        if not names_unit(asked.unit, question.plan.table):
            raise QueryRefused(
                f"{asked.unit!r} is not the unit here.\n  found:  {str(question.plan.table.unit)!r} in the policy"
            )
        dialect_of(self.engine.dialect).accepts(question.plan)
        if goal is not None and epsilon is not None and counted(question):
            return proportional(question, float(epsilon), self.policy.question_delta, float(goal), self.currency)
        if epsilon is not None:
            return offered(question, float(epsilon), self.policy.question_delta, self.currency)
        return accurate(question, float(error or 0), self.policy.question_delta, self.policy.epsilon, self.currency)

    @property
    def currency(self) -> type[Currency]:
        """What this ledger is paid in."""
        return Pure if isinstance(self.ledger.promise, PureBudget) else Mu

    # ---- the only lines that see data -------------------------------------------------------------------------------

    def read(self, receipt: Receipt, asked: Sequence[Wanted]) -> list[list[Row]]:
        """Exact tables; with one more try, as nothing of the first was seen, and no noise was drawn."""
        self.probe("data: before")
        try:
            exact = self.exact(asked)
        except Exception:
            log.exception("charge %d: first run failed", receipt.seq)
            self.ledger.rerun(receipt)
            exact = self.exact(asked)
        self.probe("data: read")
        return exact

    def exact(self, asked: Sequence[Wanted]) -> list[list[Row]]:
        """All of a question, of one moment."""
        with self.engine.snapshot():
            return [self.views.rows(self.engine, wanted) for wanted in asked]

    @property
    def dialect(self) -> Dialect:
        """How the engine is told, with what it says of its columns now where that makes a difference."""
        return replace(dialect_of(self.engine.dialect), schema=self.engine.schema())

    @cached_property
    def salt(self) -> int:
        """The key of the hash that decides which groups of a unit are kept: fixed for this ledger."""
        first = self.ledger.history()[0].text
        return int.from_bytes(hashlib.sha256(first.encode()).digest()[:7])

    # ---- post-processing --------------------------------------------------------------------------------------------

    def shown(self, offer: Offer, readings: Readout, charged: bool, held: dict[str, float]) -> Answer:
        """The columns that were asked for, made of stored noisy values alone."""
        names, rows = laid_out(offer.question, readings)
        delta = self.policy.question_delta
        policy = by_size(offer, delta)
        return Answer(
            names, rows, offer.loss.epsilon(delta).upper, delta, charged, self.remaining(),
            odds(offer.loss), " ".join(filter(None, [left_out(offer.plan), told(policy)])), held, policy,
        )  # fmt: skip

    def remaining(self) -> str:
        """What is left of the account that pays for this person."""
        return f"{percent(share_left(*account(self.ledger, self.who)))} of the budget left"

    @property
    def budget(self) -> Standing:
        """Promised, spent and left, and what that means."""
        return standing(self.ledger, self.who, self.policy.question_delta)


def budgeted(name: str, value: object) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | float) and 1e-6 <= value <= 1e15):
        raise InvalidParameter(f"{name} is out of range.\n  found:  {value!r}\n  do:     give a positive number")


def shared(goal: object, epsilon: float | None, error: float | None) -> None:
    """A relative error is a share, and ε limits its price."""
    share = not isinstance(goal, bool) and isinstance(goal, int | float) and 0 < goal < 1
    if epsilon is None or error is not None or not share:
        raise InvalidParameter(
            "a relative error is a share, and needs a limit to its price.\n"
            f"  found:  relative_error = {goal!r}, epsilon = {epsilon!r}, error = {error!r}\n"
            "  do:     give such as relative_error=0.05, epsilon=1.0"
        )
