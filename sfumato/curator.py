"""The trusted curator: plan, price, charge, run, release. The only place where they meet."""

import hashlib
import json
import logging
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from sfumato.answers import Answer
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import AnswerFailed, InvalidParameter, PolicyError, QueryRefused
from sfumato.ledger import Amount, Budget, Ledger
from sfumato.ledger.ledger import Receipt
from sfumato.ledger.reading import odds
from sfumato.offer import Offer, accurate, offered, valued
from sfumato.sql.emit import statement
from sfumato.sql.expressions import Expression, Output
from sfumato.sql.policy import Policy
from sfumato.sql.post import Value, evaluated, shaped
from sfumato.sql.read import read

FAILED = "this question could not be answered. It stays charged; ask the operator, who can read why in the log."
MOST_KEYS = 1_000_000
log = logging.getLogger("sfumato.curator")


class Engine(Protocol):
    """SQL text in, exact integers out."""

    dialect: str

    def run(self, sql: str) -> list[tuple[object, ...]]: ...


@dataclass(frozen=True)
class Preview:
    """What a question would cost and how good its answer would be; no data were read."""

    offer: Offer
    epsilon: float
    delta: float
    before: str
    after: str

    def __str__(self) -> str:
        question = self.offer.question
        lines = [f"costs ε = {self.epsilon:.4g} at δ = {self.delta:.2g} (μ = {self.offer.mu:.4g})"]
        for aggregate in question.aggregates:
            error = self.offer.error(aggregate)
            words = f"± {error:.4g} at 95 %" if error is not None else "error depends on how many values there are"
            lines.append(f"  {aggregate.name}: {words}")
        if self.offer.threshold is not None:
            lines.append(f"  keys with fewer than about {self.offer.threshold} people vanish")
        return "\n".join([*lines, "an attacker, before:", self.before, "after:", self.after])


@dataclass(frozen=True)
class Curator:
    """Stands between a database and people who may ask anything."""

    engine: Engine
    policy: Policy
    ledger: Ledger
    who: str = "owner"

    @staticmethod
    def open(
        data: str | os.PathLike[str], policy: str | os.PathLike[str] | Policy, *,
        ledger: str | os.PathLike[str] | Ledger | None = None, anchor: str | os.PathLike[str] | None = None,
    ) -> "Curator":  # fmt: skip
        """The curator of this database under this policy; its ledger lies beside the data unless said otherwise."""
        stated = policy if isinstance(policy, Policy) else Policy.load(policy)
        engine = DuckDB(Path(data))
        if not isinstance(ledger, Ledger):
            place = Path(ledger) if ledger is not None else Path(f"{os.fspath(data)}.ledger")
            budget = Budget(stated.epsilon, stated.delta)
            book = Ledger.open(place, anchor=anchor) if place.exists() else Ledger.create(place, budget, anchor=anchor)
            agree(book, budget)
            caps(book, stated)
        else:
            book = ledger
        return Curator(engine, stated, book)

    def analyst(self, who: str) -> "Curator":
        """The same curator, asked by this person."""
        return Curator(self.engine, self.policy, self.ledger, who)

    # ---- asking -----------------------------------------------------------------------------------------------------

    def preview(self, sql: str, *, epsilon: float | None = None, error: float | None = None) -> Preview:
        """Price, errors and odds. Free, and no data are touched."""
        offer = self.priced(sql, epsilon, error)
        promise, spent = self.ledger.promise, self.ledger.verify().spent
        after = spent + self.ledger.prices(offer.loss)[-1]
        delta = self.policy.question_delta
        return Preview(
            offer, offer.loss.epsilon(delta).upper, delta, odds(promise.loss_of(spent)), odds(promise.loss_of(after))
        )

    def ask(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None, key: str | None = None
    ) -> Answer:
        """A private answer. Charged durably before data are read, stored durably before it is returned."""
        offer = self.priced(sql, epsilon, error)
        if (stored := self.ledger.recall(offer.canonical)) is not None:
            return self.shown(offer, stored, charged=False)
        receipt = self.ledger.charge(offer.loss, question=offer.canonical, who=self.who, key=key)
        if receipt.answer is not None:
            return self.shown(offer, receipt.answer, charged=False)
        return self.shown(offer, self.ledger.keep(receipt, self.answered(offer, receipt)), charged=True)

    def priced(self, sql: str, epsilon: float | None, error: float | None) -> Offer:
        """Pure: from the text and the policy alone."""
        if (epsilon is None) == (error is None):
            raise InvalidParameter("say how much privacy or how much accuracy: epsilon=0.5, or error=5")
        for name, value in (("epsilon", epsilon), ("error", error)):
            if value is not None and not (isinstance(value, int | float) and 1e-6 <= value <= 1e15):
                raise InvalidParameter(
                    f"{name} is out of range.\n  found:  {value!r}\n  do:     give a positive number"
                )
        question = read(sql, self.policy)
        keys = question.release.public
        if keys is not None and len(keys) > MOST_KEYS:
            raise QueryRefused(f"too many groups.\n  found:  {len(keys):,} combinations of public keys")
        if epsilon is not None:
            return offered(question, float(epsilon), self.policy.question_delta)
        return accurate(question, float(error or 0), self.policy.question_delta, self.policy.epsilon)

    # ---- the only lines that see data -------------------------------------------------------------------------------

    def answered(self, offer: Offer, receipt: Receipt) -> bytes:
        """Run, add noise, encode. One fixed error, whatever went wrong; one more try, as the first was not seen."""
        sql = statement(offer.release, self.salt, self.engine.dialect)
        try:
            try:
                rows = self.engine.run(sql)
            except Exception:
                log.exception("charge %d: first run failed", receipt.seq)
                self.ledger.rerun(receipt)
                rows = self.engine.run(sql)
            return released(offer, rows)
        except Exception:
            log.exception("charge %d failed", receipt.seq)
            raise AnswerFailed(FAILED) from None

    @cached_property
    def salt(self) -> int:
        """The key of the hash that decides which groups of a unit are kept: fixed for this ledger."""
        first = self.ledger.history()[0].text
        return int.from_bytes(hashlib.sha256(first.encode()).digest()[:7])

    # ---- post-processing --------------------------------------------------------------------------------------------

    def shown(self, offer: Offer, stored: bytes, charged: bool) -> Answer:
        """The columns that were asked for, made of stored noisy values alone."""
        question, data = offer.question, json.loads(stored)
        errors = [offer.errors(a) for a in question.aggregates]
        values: list[list[Value]] = []
        spans: list[list[tuple[Value, Value] | None]] = []
        for key, row in zip(data["keys"], data["noisy"], strict=True):
            found = [valued(a, row, e) for a, e in zip(question.aggregates, errors, strict=True)]
            values.append([*key, *(value for value, _, _ in found)])
            spans.append([*(None for _ in key), *((low, high) for _, low, high in found)])
        names, rows = [], []
        kept = shaped(question, values)
        for i in kept:
            rows.append(tuple(cell for _, e in question.columns for cell in cells(e, values[i], spans[i])))
        for name, e in question.columns:
            names += [name] if not bare(e, len(question.release.keys)) else [name, f"{name} low", f"{name} high"]
        delta = self.policy.question_delta
        return Answer(
            tuple(names), tuple(rows), offer.loss.epsilon(delta).upper, delta, charged, self.remaining(),
            odds(offer.loss),
        )  # fmt: skip

    def remaining(self) -> str:
        """What is left of the account that pays for this person."""
        accounts = self.ledger.accounts()
        limit, spent = accounts.get(f"analyst {self.who}", accounts[""])
        return f"{100 * (1 - spent.gauss / max(1, limit.gauss)):.1f} % of the budget left"

    @property
    def budget(self) -> str:
        """Spent and left, and what that means."""
        return f"{self.ledger.meter()}\n{self.remaining()}"


def released(offer: Offer, rows: list[tuple[object, ...]]) -> bytes:
    """Exact integers in, noisy ones out, in an order and with a length that tell nothing but what was released."""
    width = len(offer.release.keys)
    found = {tuple(row[:width]): [int(x) if x is not None else 0 for x in row[width:]] for row in rows}  # type: ignore[call-overload]
    keys = offer.release.public
    if keys is not None:
        zeros = [0] * len(offer.release.measures)
        listed, exact = list(keys), [found.get(key, zeros) for key in keys]
    else:
        listed, exact = list(found), list(found.values())
    noisy = offer.drawn(exact) if exact else []
    if offer.threshold is not None:
        units = [m.what.value for m in offer.release.measures].index("units")
        kept = [i for i, row in enumerate(noisy) if row[units] >= offer.threshold]
        kept.sort(key=lambda i: tuple(repr(part) for part in listed[i]))
        listed, noisy = [listed[i] for i in kept], [noisy[i] for i in kept]
    plain = [
        [part if isinstance(part, str | int | float | bool | None) else str(part) for part in key] for key in listed
    ]
    return json.dumps({"keys": plain, "noisy": noisy}, ensure_ascii=False).encode()


def bare(expression: Expression, keys: int) -> bool:
    """Is it an aggregate as it is, so that its interval is shown beside it?"""
    return isinstance(expression, Output) and expression.place >= keys


def cells(expression: Expression, row: list[Value], spans: list[tuple[Value, Value] | None]) -> list[Value]:
    found = evaluated(expression, row)
    if isinstance(expression, Output) and (span := spans[expression.place]) is not None:
        return [found, *span]
    return [found]


def agree(ledger: Ledger, budget: Budget) -> None:
    if (ledger.promise.epsilon, ledger.promise.delta) != (budget.epsilon, budget.delta):
        raise PolicyError(
            "the policy's budget is not the ledger's.\n"
            f"  found:  ε = {budget.epsilon:g} in the policy, ε = {ledger.promise.epsilon:g} in the ledger\n"
            "  do:     keep the promise that was made; a further budget is an act of the owner: Ledger.renew"
        )


def caps(ledger: Ledger, policy: Policy) -> None:
    """Each analyst's share, set aside when the policy first names it."""
    whole, there = ledger.promise.amount, ledger.accounts()
    for who, share in policy.analysts.items():
        if share > 0 and f"analyst {who}" not in there:
            ledger.cap(who, Amount(gauss=int(whole.gauss * share), leak=int(whole.leak * share)))
