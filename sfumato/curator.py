"""The trusted curator: plan, price, charge, run, release. The only place where they meet."""

import hashlib
import json
import logging
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from sfumato.answers import Answer
from sfumato.bounds import LATER, Bounds, around, column_of, places, sizes, tidy, within
from sfumato.currency import Currency, Mu, Pure
from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import (
    AnswerFailed,
    BudgetExceeded,
    InvalidParameter,
    LedgerError,
    NotReached,
    PolicyError,
    QueryRefused,
)
from sfumato.exact import Row, released, tables
from sfumato.ledger import Amount, Budget, Ledger, Promise, PureBudget
from sfumato.ledger.ledger import Receipt
from sfumato.ledger.reading import odds
from sfumato.loss.base import PrivacyLoss
from sfumato.offer import Offer, accurate, offered
from sfumato.outlook import Preview, Standing, account, percent, previewed, share_left, standing, stored
from sfumato.readings import CONFIDENCE, Readout, quantile
from sfumato.refine import Refinement, rounds
from sfumato.response import Clock, Response
from sfumato.sketch import Sketch, named, sketched
from sfumato.sql.build import Rows
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.draft import plural
from sfumato.sql.expressions import Expression, Output
from sfumato.sql.policy import ROW, VIEWS, Limits, Policy
from sfumato.sql.post import Value, evaluated, shaped
from sfumato.sql.read import read
from sfumato.sql.release import Release
from sfumato.sql.spelling import spelled
from sfumato.views import Views, Wanted

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
    who: str = "owner"
    views: Views = field(default_factory=lambda: Views(VIEWS), repr=False)
    probe: Callable[[str], None] = field(default=lambda point: None, repr=False)  # told where it is: for fault tests
    clock: Clock = field(default=Clock(), repr=False)

    @staticmethod
    def open(
        data: str | os.PathLike[str] | Engine, policy: str | os.PathLike[str] | Policy, *,
        ledger: str | os.PathLike[str] | Ledger | None = None, anchor: str | os.PathLike[str] | None = None,
    ) -> "Curator":  # fmt: skip
        """The curator of this database under this policy: of a file or folder, of a database whose address begins with
        postgresql://, or of an engine. The ledger of a file lies beside it unless said otherwise."""
        stated = policy if isinstance(policy, Policy) else Policy.load(policy)
        engine = engine_of(data, stated.limits)
        if not isinstance(ledger, Ledger):
            place = Path(ledger) if ledger is not None else beside(engine)
            budget = promised(stated)
            book = Ledger.open(place, anchor=anchor) if place.exists() else Ledger.create(place, budget, anchor=anchor)
            agree(book, budget)
            caps(book, stated)
        else:
            book = ledger
        return Curator(engine, stated, book, views=Views(stated.limits.views))

    def analyst(self, who: str) -> "Curator":
        """The same curator, asked by this person."""
        return replace(self, who=who)

    def table(self, name: str) -> "Rows[Answer, Preview]":
        """A question put together in Python: table("visits").where(…).group_by(…).agg(…).ask(epsilon=…)."""
        return Rows.of(self, name)

    # ---- asking -----------------------------------------------------------------------------------------------------

    def preview(self, sql: str, *, epsilon: float | None = None, error: float | None = None) -> Preview:
        """Price, errors and odds. Free, and no data are touched."""
        return previewed(self.priced(sql, epsilon, error), self.ledger, self.who, self.policy.question_delta)

    def ask(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, key: str | None = None,
    ) -> Answer:  # fmt: skip
        """A private answer. Charged durably before data are read, stored durably before it is returned.

        With `relative_error`, ε is the most that may be spent: see `refined`.
        """
        self.probe("ask: asked")
        if relative_error is not None and not spelled(sql).explained:
            return self.refined(sql, epsilon, error, relative_error, key)
        offer = self.priced(sql, epsilon, error)
        self.probe("ask: priced")
        if spelled(sql).explained:
            return self.explained(previewed(offer, self.ledger, self.who, self.policy.question_delta))
        return self.answer(offer, key)

    def explained(self, preview: Preview) -> Answer:
        """EXPLAIN PRIVACY: the preview as an answer, which costs nothing."""
        rows = tuple((line,) for line in str(preview).splitlines())
        delta = self.policy.question_delta
        return Answer(("privacy",), rows, preview.offer.loss.epsilon(delta).upper, delta, False, self.remaining(), "")

    def refined(
        self, sql: str, epsilon: float | None, error: float | None, goal: float, key: str | None
    ) -> Answer:  # fmt: skip
        """Rounds of growing price until every number is within this share of itself, at 95 %; ε is the most they cost.

        If that does not suffice, or the budget ends, `NotReached` holds the best answer so far.
        """
        limit = spelled(sql).epsilon or epsilon
        share = not isinstance(goal, bool) and isinstance(goal, int | float) and 0 < goal < 1
        if limit is None or error is not None or not share:
            raise InvalidParameter(
                "a relative error is a share, and needs a limit to its price.\n"
                f"  found:  relative_error = {goal!r}, epsilon = {limit!r}, error = {error!r}\n"
                "  do:     give such as relative_error=0.05, epsilon=1.0"
            )
        question = self.priced(sql, limit, None).question
        bought, charged = Refinement(), False
        try:
            for i, offer in enumerate(rounds(question, float(limit), self.policy.question_delta, self.currency)):
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
        asked = tables(offer, self.salt, self.dialect)  # before the charge, should it fail
        with self.turn(offer.canonical):
            if (found := self.kept(offer, key)) is not None:
                return found
            return offer, self.paid(offer.loss, offer.canonical, key, asked, partial(released, offer)), True

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
        self, loss: PrivacyLoss, question: str, key: str | None, asked: list[Wanted],
        release: Callable[[list[list[Row]]], bytes],
    ) -> bytes:  # fmt: skip
        """Charge, run, wait until a response is due, and only then store: who looks for it in store learns no more."""
        response = Response(self.policy.limits.response_quantum, self.clock)
        began = self.clock.now()
        receipt = self.ledger.charge(loss, question=question, who=self.who, key=key)
        if receipt.answer is not None:
            return receipt.answer
        if not receipt.first:  # who asked before with this key has died: it was his turn, and is ours now
            self.ledger.rerun(receipt)
        drawn = False
        try:
            exact = self.read(receipt, asked)
            drawn = True
            noisy = release(exact)
            self.probe("noise: drawn")
        except Exception:  # one fixed error, whatever went wrong, and never the same again
            log.exception("charge %d failed", receipt.seq)
            response.wait(began)
            self.block(receipt, drawn)
            raise AnswerFailed(FAILED) from None
        response.wait(began)
        self.probe("answer: due")
        return self.ledger.keep(receipt, noisy)

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
        first = self.answer(rough)
        low, high = around(numbers(first), deviation(rough))
        fine = self.best(Offer(places(table, of, low, high), whole.part(0.5)))
        second = self.answer(fine)
        low, high = within(numbers(second), deviation(fine), later(whole, fine.release), low, high)
        return Bounds(column, tidy(low, up=False), tidy(high, up=True), float(epsilon), first.charged or second.charged)

    def register(self, *, epsilon: float) -> None:
        """Buy the sketch of contributions, once: previews then say what the bounds of the policy cut off."""
        budgeted("epsilon", epsilon)
        tables = [table for table in sketched(self.policy) if self.ledger.recall(named(table)) is None]
        whole = self.currency.bought(float(epsilon), self.policy.question_delta, 0.0)
        for table in tables:
            sketch = Sketch(table, whole.part(1 / len(tables)))
            asked = [Wanted(sql) for sql in sketch.statements(self.dialect)]
            with self.turn(named(table)):
                if self.ledger.recall(named(table)) is None:
                    self.paid(sketch.loss(), named(table), None, asked, sketch.released)

    def priced(self, sql: str, epsilon: float | None, error: float | None) -> Offer:
        """Pure: from the text and the policy alone. An ε that the text itself names goes before."""
        asked = spelled(sql)
        if asked.epsilon is not None:
            epsilon, error = asked.epsilon, None
        if (epsilon is None) == (error is None):
            raise InvalidParameter("say how much privacy or how much accuracy: epsilon=0.5, or error=5")
        for name, value in (("epsilon", epsilon), ("error", error)):
            if value is not None:
                budgeted(name, value)
        question = read(asked.text, self.policy)
        if asked.unit not in (None, question.release.table.unit):
            raise QueryRefused(
                f"{asked.unit!r} is not the unit here.\n  found:  {question.release.table.unit!r} in the policy"
            )
        dialect_of(self.engine.dialect).accepts(question.release)
        if epsilon is not None:
            return offered(question, float(epsilon), self.policy.question_delta, self.currency)
        return accurate(question, float(error or 0), self.policy.question_delta, self.policy.epsilon, self.currency)

    @property
    def currency(self) -> type[Currency]:
        """What this ledger is paid in."""
        return Pure if isinstance(self.ledger.promise, PureBudget) else Mu

    # ---- the only lines that see data -------------------------------------------------------------------------------

    def read(self, receipt: Receipt, asked: list[Wanted]) -> list[list[Row]]:
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

    def exact(self, asked: list[Wanted]) -> list[list[Row]]:
        """All of a question, of one moment."""
        with self.engine.snapshot():
            return [self.views.rows(self.engine, wanted) for wanted in asked]

    @cached_property
    def dialect(self) -> Dialect:
        """How the engine is told, with what it says of its columns where that makes a difference."""
        spoken = dialect_of(self.engine.dialect)
        return replace(spoken, schema=self.engine.schema()) if spoken.by_type else spoken

    @cached_property
    def salt(self) -> int:
        """The key of the hash that decides which groups of a unit are kept: fixed for this ledger."""
        first = self.ledger.history()[0].text
        return int.from_bytes(hashlib.sha256(first.encode()).digest()[:7])

    # ---- post-processing --------------------------------------------------------------------------------------------

    def shown(self, offer: Offer, readings: Readout, charged: bool, held: dict[str, float]) -> Answer:
        """The columns that were asked for, made of stored noisy values alone."""
        question, width = offer.question, len(offer.release.keys)
        values: list[list[Value]] = [[*key, *[value for value, _, _ in found]] for key, found in readings]
        kept = shaped(question, values)
        names: list[str] = []
        columns: list[list[Value]] = []
        for name, e in question.columns:
            names.append(name)
            columns.append([finite(evaluated(e, values[i])) for i in kept])
            if isinstance(e, Output) and bare(e, width):
                own = [readings[i][1][e.place - width] for i in kept]
                names += [f"{name} low", f"{name} high"]
                columns += [[low for _, low, _ in own], [high for _, _, high in own]]
        rows = zip(*columns, strict=True)
        delta = self.policy.question_delta
        return Answer(
            tuple(names), tuple(rows), offer.loss.epsilon(delta).upper, delta, charged, self.remaining(),
            odds(offer.loss), bounds(offer.release), held,
        )  # fmt: skip

    def remaining(self) -> str:
        """What is left of the account that pays for this person."""
        return f"{percent(share_left(*account(self.ledger, self.who)))} of the budget left"

    @property
    def budget(self) -> Standing:
        """Promised, spent and left, and what that means."""
        return standing(self.ledger, self.who)


def engine_of(data: str | os.PathLike[str] | Engine, limits: Limits) -> Engine:
    if isinstance(data, str) and data.startswith(("postgresql://", "postgres://")):
        from sfumato.engines.postgres import Postgres  # an extra

        return Postgres(data, timeout=limits.timeout)
    if isinstance(data, str | os.PathLike):
        return DuckDB(Path(data), timeout=limits.timeout, memory=limits.memory, spill=limits.spill)
    return data


def beside(engine: Engine) -> Path:
    """Where the ledger of a file is."""
    if isinstance(engine, DuckDB):
        return Path(f"{engine.path}.ledger")
    raise InvalidParameter(
        "a ledger has no place of its own here.\n  found:  data that are not in a file\n"
        "  do:     say where it is: ledger=…, a path or a Ledger"
    )


def readout(offer: Offer, noisy: bytes) -> Readout:
    """Keys, and (value, low, high) of each aggregate, from what is stored."""
    data, windows = json.loads(noisy), offer.release.windows
    how = [(offer.readings.get(a), a.window) for a in offer.question.aggregates]
    return [
        (key, [
            reading.read(row) if reading is not None else quantile(windows[place], *data["chosen"][i][place])
            for reading, place in how
        ])
        for i, (key, row) in enumerate(zip(data["keys"], data["noisy"], strict=True))
    ]  # fmt: skip


def budgeted(name: str, value: object) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | float) and 1e-6 <= value <= 1e15):
        raise InvalidParameter(f"{name} is out of range.\n  found:  {value!r}\n  do:     give a positive number")


def numbers(answer: Answer) -> list[float]:
    return [float(n) for n in answer.column("n") if isinstance(n, int | float)]


def bare(expression: Expression, keys: int) -> bool:
    """Is it an aggregate as it is, so that its interval is shown beside it?"""
    return isinstance(expression, Output) and expression.place >= keys


def finite(value: Value) -> Value:
    """None for a product that no double holds."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def bounds(release: Release) -> str:
    """What an interval does not cover: rows that the policy's bounds leave out."""
    table = release.table
    if table.unit == ROW:
        return ""
    rows = plural(release.rows if table.branches else table.rows, "row")
    most = f"{rows} in each of {plural(release.groups, 'group')}" if release.groups > 1 else rows
    return f"95 % is about the noise; of each {table.unit} at most {most} can count."


def coverage(offer: Offer) -> dict[str, float]:
    """With which probability the interval of each column holds the truth: exactly for counts and sums, at least for
    others."""
    width = len(offer.release.keys)
    found = {}
    for name, e in offer.question.columns:
        if bare(e, width) and isinstance(e, Output):
            aggregate = offer.question.aggregates[e.place - width]
            found[name] = offer.readings[aggregate].coverage if aggregate.measures else CONFIDENCE
    return found


def deviation(offer: Offer) -> float:
    """Of the noise of a question that only counts rows."""
    return offer.price.part(1 / offer.release.groups).deviation(offer.release.rows)


def at_least(offer: Offer) -> dict[str, float]:
    """The same where only that is known."""
    return dict.fromkeys(coverage(offer), CONFIDENCE)


def later(whole: Currency, release: Release) -> float:
    """How many values may lie beyond suggested bounds: where the noise of a later sum, with LATER times this price's
    accuracy, grows by as much for a wider range as its bias falls."""
    return 0.8 * whole.deviation(release.rows) / LATER


def promised(policy: Policy) -> Promise:
    """The budget that the policy states."""
    if policy.pure:
        return PureBudget(policy.epsilon, policy.delta)
    return Budget(policy.epsilon, policy.delta)


def agree(ledger: Ledger, budget: Promise) -> None:
    mine, theirs = ((type(one), one.epsilon, one.delta) for one in (budget, ledger.promise))
    if mine != theirs:
        raise PolicyError(
            "the policy's budget is not the ledger's.\n"
            f"  found:  {in_words(budget)} in the policy, {in_words(ledger.promise)} in the ledger\n"
            "  do:     keep the promise that was made; a further budget is an act of the owner: Ledger.renew"
        )


def in_words(promise: Promise) -> str:
    kind = "pure " if isinstance(promise, PureBudget) else ""
    return f"{kind}ε = {promise.epsilon:g}, δ = {promise.delta:g}"


def caps(ledger: Ledger, policy: Policy) -> None:
    """Each analyst's share, set aside when the policy first names it."""
    whole, there = ledger.promise.amount, ledger.accounts()
    for who, share in policy.analysts.items():
        if share > 0 and f"analyst {who}" not in there:
            ledger.cap(who, Amount(*(int(units * share) for units in whole)))
