"""The service behind every door: named data sets, who may do what, how much at a time, and a record of every act.

A door authenticates once (`authenticate`, or `challenge` and `prove` for SCRAM), and then calls acts with the person.
Acts block: from asyncio they are called through `call`. They return the curator's own objects, and raise the errors of
`sfumato.errors`, whose texts may be shown. No door takes a decision about privacy, money or rights.

    person = await service.call(service.authenticate, token, door="http", source=address)
    answer = await service.call(service.ask, person, "clinic", "SELECT COUNT(*) FROM visits", epsilon=0.1, key=key)
"""

import asyncio
import hashlib
import json
import logging
import math
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ParamSpec, TypeVar

from sfumato.curator import Curator
from sfumato.curator.answer import Answer
from sfumato.curator.open import apply_policy
from sfumato.curator.preview import Preview, Standing, budget_standing
from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.pool import WorkerPool
from sfumato.errors import (
    FAILED_SERVICE,
    InvalidParameter,
    NotAllowed,
    NotAuthenticated,
    NotReached,
    NotStored,
    QueryRefused,
    ServiceFailed,
    SfumatoError,
    TooManyRequests,
)
from sfumato.ledger.hash_chain import Entry
from sfumato.ledger.location import ADDRESS, store_at
from sfumato.server.admission import Admission, FailedAttempts
from sfumato.server.audit_log import AuditLog
from sfumato.server.catalogue import Catalogue
from sfumato.server.configuration import Configuration, DataSet, Limits
from sfumato.server.identity import WRONG, Challenge, Identity, Role, Token
from sfumato.server.logs import event, unforeseen
from sfumato.server.metrics import Metrics
from sfumato.server.spending import Spending, spending_of
from sfumato.sql.policy import Policy
from sfumato.sql.policy_draft import Check, check_policy

P = ParamSpec("P")
T = TypeVar("T")

READ = frozenset({"catalogue", "budget", "policy", "history"})
ASK = READ | {"ask", "preview", "answer"}
INSPECT = READ | {"whole history", "verify", "audit"}
RIGHTS: Mapping[Role, frozenset[str]] = {
    Role.ANALYST: ASK,
    Role.AUDITOR: INSPECT,
    Role.STEWARD: ASK | INSPECT | {"check policy", "tokens"},
    Role.OWNER: ASK | INSPECT | {"check policy", "tokens", "publish policy"},
}
QUICK = 16  # threads for calls that are no questions
ANALYSTS, FINISHED = 1000, 1000  # analysts whose curators are kept; long questions whose outcome is


@dataclass(frozen=True)
class Person:
    """Somebody who has shown a token: their name, and their role in each data set that knows it."""

    name: str
    roles: Mapping[str, Role]
    token: str  # its public ID
    door: str = ""

    def may(self, data: str, act: str) -> bool:
        return data in self.roles and act in RIGHTS[self.roles[data]]


@dataclass(frozen=True)
class PolicyChange:
    """What a policy would mean if it were published: nothing has changed."""

    check: Check
    differences: tuple[str, ...]
    problem: str | None  # why it cannot be published

    def to_dict(self) -> Mapping[str, object]:
        return {**vars(self.check), "differences": self.differences, "problem": self.problem}


@dataclass(eq=False)
class OpenData:
    """A data set that is open: its curator, and the people who may ask it."""

    settings: DataSet
    curator: Curator
    identity: Identity
    analysts: OrderedDict[str, Curator] = field(default_factory=OrderedDict)

    def curator_of(self, who: str) -> Curator:
        """The curator, asked by this person; raises QueryRefused if the policy does not let them."""
        found = self.analysts.get(who)
        if found is None:
            found = self.analysts[who] = self.curator.analyst(who)
            while len(self.analysts) > ANALYSTS:
                self.analysts.popitem(last=False)
        return found

    @property
    def policy_text(self) -> str:
        return self.settings.policy.read_text("utf-8")


@dataclass(eq=False)
class Act:
    """What is recorded of one act, when it ends."""

    content: dict[str, object]
    durable: bool = False


@dataclass(eq=False)
class Service:
    """All data sets of one configuration."""

    data: Mapping[str, OpenData]
    limits: Limits
    audit_log: AuditLog
    admission: Admission
    failed: FailedAttempts = field(default_factory=FailedAttempts)
    metrics: Metrics = field(default_factory=Metrics)
    stopping: bool = False
    _threads: ThreadPoolExecutor = field(init=False, repr=False)  # questions, which may take long
    _quick: ThreadPoolExecutor = field(init=False, repr=False)  # everything else, which must not wait for them
    _jobs: "OrderedDict[str, Future[Answer]]" = field(default_factory=OrderedDict, repr=False)
    _waiting: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(self.limits.threads, "sfumato ask")
        self._quick = ThreadPoolExecutor(QUICK, "sfumato call")

    @staticmethod
    def open(configuration: Configuration) -> "Service":
        """Open every data set, after verifying its ledger; and the audit log, which one service writes."""
        limits = configuration.limits
        log = AuditLog.open(configuration.audit_log)
        try:
            data = {name: open_data(one, limits) for name, one in configuration.data.items()}
        except BaseException:
            log.close()
            raise
        return Service(data, limits, log, Admission(limits.concurrent, limits.rate, limits.burst))

    # ---- who is this? -------------------------------------------------------------------------------------------

    def authenticate(self, token: str, *, door: str = "") -> Person:
        """The holder of a token, in every data set that knows it. Raises NotAuthenticated."""
        found: dict[str, Token] = {}
        for name, data in self.data.items():
            with suppress(NotAuthenticated):
                found[name] = data.identity.authenticate(token)
        return self._person(found, door)

    def challenge(self, who: str, data: str) -> Challenge:
        """The salt for a SCRAM log-in to one data set; also of people and data sets that do not exist."""
        known = self.data.get(data) or next(iter(self.data.values()))
        return known.identity.challenge(who)

    def prove(self, who: str, data: str, message: bytes, proof: bytes, *, door: str = "") -> tuple[Person, bytes]:
        """The person who made this SCRAM proof, and the server's signature. Raises NotAuthenticated."""
        if data not in self.data:
            raise NotAuthenticated(WRONG)
        token, signature = self.data[data].identity.prove(who, message, proof)
        return self._person({data: token}, door), signature

    def _person(self, tokens: Mapping[str, Token], door: str) -> Person:
        if not tokens:
            raise NotAuthenticated(WRONG)
        first = next(iter(tokens.values()))
        roles = {name: token.role for name, token in tokens.items() if token.who == first.who}
        return Person(first.who, roles, first.id, door)

    def delay(self, source: str) -> float:
        """Seconds that the reply to a failed log-in from this source must wait; a door sleeps, and blocks nobody."""
        event("log-in failed", logging.WARNING, source=source)
        return self.failed.delay(source)

    def choose_data(self, person: Person, name: str | None) -> str:
        """The data set of this name; without a name the only one that this person may use."""
        if name is None and len(person.roles) == 1:
            return next(iter(person.roles))
        if name is not None and name in person.roles:
            return name
        raise NotAllowed(
            f"which data set?\n  found:  {'none' if name is None else 'one that this token does not open'}\n"
            f"  do:     name one of {', '.join(sorted(person.roles))}"
        )

    # ---- acts of analysts ---------------------------------------------------------------------------------------

    def ask(
        self, person: Person, data: str, text: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, key: str | None = None,
    ) -> Answer:  # fmt: skip
        """A private answer: `Curator.ask`, under an idempotency key (`new_key()` if none is given)."""
        key = new_key() if key is None else key
        asked = {"question": text, "epsilon": epsilon, "error": error, "relative_error": relative_error, "key": key}
        with self._act(person, data, "ask") as act:
            curator = self._curator(person, data)
            id_ = request_id(data, person.name, key)
            self._record({**act.content, **asked, "id": id_})
            act.content |= {"act": "answer to", "id": id_}
            try:
                answer = curator.ask(text, epsilon=epsilon, error=error, relative_error=relative_error, key=key)
            except NotReached as short:
                if isinstance(short.answer, Answer):
                    note_answer(act, short.answer)
                raise
            note_answer(act, answer)
            return answer

    def preview(
        self, person: Person, data: str, text: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None,
    ) -> Preview:  # fmt: skip
        """Price, errors and odds: `Curator.preview`. Free, and no data are read."""
        with self._act(person, data, "preview") as act:
            act.content |= {"question": text, "epsilon": epsilon, "error": error, "relative_error": relative_error}
            curator = self._curator(person, data)
            return curator.preview(text, epsilon=epsilon, error=error, relative_error=relative_error)

    def budget(self, person: Person, data: str) -> Standing:
        """Promised, spent and left: `Curator.budget`."""
        with self._act(person, data, "budget"):
            curator = self.data[data].curator
            return budget_standing(curator.ledger, person.name, curator.policy.question_delta)

    def catalogue(self, person: Person, data: str) -> Catalogue:
        """Tables, columns, bounds, keys and example questions."""
        with self._act(person, data, "catalogue"):
            return Catalogue.of(self.data[data].curator.policy)

    def stored(self, person: Person, data: str, id_: str) -> Answer:
        """The answer to an earlier request of this person, by its id. Charges nothing, whatever happens."""
        with self._act(person, data, "answer") as act:
            act.content |= {"id": id_}
            request = self.audit_log.request(id_)
            if request is None or (request["who"], request["data"]) != (person.name, data):
                raise NotStored(
                    "no request of yours has this id here.\n  do:     ask again with the same idempotency key:"
                    " a request is charged once"
                )
            job = self._jobs.get(id_)
            if job is not None and job.done():
                return job.result()
            curator = self._curator(person, data).stored_only()
            wanted = {name: request.get(name) for name in ("epsilon", "error", "relative_error", "key")}
            return curator.ask(str(request["question"]), **wanted)  # type: ignore[arg-type]

    def is_running(self, person: Person, data: str, id_: str) -> bool:
        """Is the answer to this request of this person still being made?"""
        request = self.audit_log.request(id_)
        job = self._jobs.get(id_)
        mine = request is not None and (request["who"], request["data"]) == (person.name, data)
        return mine and job is not None and not job.done()

    # ---- acts of owners, stewards and auditors -------------------------------------------------------------------

    def history(self, person: Person, data: str, *, start: int = 1, most: int = 100) -> list[Entry]:
        """Lines of the ledger from number `start` on: one's own, or all for whoever may see them."""
        with self._act(person, data, "history"):
            return self._visible_lines(person, data, start, most)

    def search(self, person: Person, data: str, words: str = "", *, most: int = 100) -> list[Entry]:
        """The newest lines of `history` that hold all of these words, the last one first."""
        with self._act(person, data, "history"):
            wanted = words.casefold().split()
            lines = reversed(self._visible_lines(person, data, 1, None))
            found = (line for line in lines if all(word in line.text.casefold() for word in wanted))
            return list(islice(found, most))

    def spending(self, person: Person, data: str) -> Spending:
        """How the budget was spent, by the lines that this person may see; and the trade-off curves of the ledger."""
        with self._act(person, data, "budget"):
            return spending_of(self.data[data].curator.ledger, self._visible_lines(person, data, 1, None))

    def _visible_lines(self, person: Person, data: str, start: int, most: int | None) -> list[Entry]:
        lines = self.data[data].curator.ledger.history(start, most)
        if person.may(data, "whole history"):
            return lines
        return [line for line in lines if line.content.get("who") == person.name]

    def verify(self, person: Person, data: str) -> tuple[int, str]:
        """Read the whole ledger again: its number of lines and its head. Raises LedgerDamaged."""
        with self._act(person, data, "verify"):
            state = self.data[data].curator.ledger.verify()
            return state.seq, state.hash

    def audit(self, person: Person, data: str, *, after: int = 0, most: int = 1000) -> list[Entry]:
        """Lines of the audit log about a data set."""
        with self._act(person, data, "audit"):
            return [line for line in self.audit_log.lines(after, most) if line.content.get("data") == data]

    def policy_text(self, person: Person, data: str) -> str:
        """The policy, which is public."""
        with self._act(person, data, "policy"):
            return self.data[data].policy_text

    def check_policy(self, person: Person, data: str, text: str) -> PolicyChange:
        """What this policy would mean for the data set. Reads no values and changes nothing."""
        with self._act(person, data, "check policy"):
            return policy_change(self.data[data].curator, Policy.read(text))

    def publish_policy(self, person: Person, data: str, text: str) -> PolicyChange:
        """Put this policy in force: its shares become an act in the ledger, and later questions follow it."""
        with self._act(person, data, "publish policy") as act:
            act.durable = True
            opened, policy = self.data[data], Policy.read(text)
            change = policy_change(opened.curator, policy)
            if change.problem is not None or change.check.wrong:
                raise QueryRefused(
                    "this policy cannot be published.\n  found:  "
                    + "; ".join(filter(None, [*change.check.wrong, change.problem]))
                )
            published = with_limits(policy, self.limits)
            apply_policy(opened.curator.ledger, published)
            write_atomically(opened.settings.policy, text)
            opened.curator = Curator(opened.curator.engine, published, opened.curator.ledger)
            opened.analysts.clear()
            return change

    def tokens(self, person: Person, data: str) -> list[Token]:
        """All tokens of a data set, without their secrets."""
        with self._act(person, data, "tokens"):
            return self.data[data].identity.list()

    def new_token(self, person: Person, data: str, who: str, role: Role, days: float) -> str:
        """A token for somebody. Only an owner makes owners and stewards."""
        with self._act(person, data, "tokens") as act:
            act.content |= {"act": "new token", "for": who, "role of it": role.value}
            act.durable = True
            if role in (Role.OWNER, Role.STEWARD) and person.roles[data] is not Role.OWNER:
                raise NotAllowed(f"only the owner makes a token for {role.value}s.")
            return self.data[data].identity.new(who, role, days)

    def revoke_token(self, person: Person, data: str, id_: str) -> bool:
        """End a token. Only an owner ends those of owners and stewards."""
        with self._act(person, data, "tokens") as act:
            act.content |= {"act": "revoke token", "token of it": id_}
            act.durable = True
            found = self.data[data].identity.find(id_)
            if found and found.role in (Role.OWNER, Role.STEWARD) and person.roles[data] is not Role.OWNER:
                raise NotAllowed(f"only the owner ends the token of {found.role.value}s.")
            return self.data[data].identity.revoke(id_)

    # ---- around every act ---------------------------------------------------------------------------------------

    @contextmanager
    def _act(self, person: Person, data: str, act: str) -> Iterator[Act]:
        """Checks before an act, and its line in the audit log after it; unforeseen errors get one fixed text."""
        found = Act({"act": act, "who": person.name, "data": data, "door": person.door, "token": person.token})
        problem: BaseException | None = None
        try:
            self._require(person, data, act)
            with self.admission.enter(person.name):
                yield found
        except SfumatoError as error:
            problem = error
            raise
        except Exception as error:
            problem = error
            unforeseen(error, **found.content)
            raise ServiceFailed(FAILED_SERVICE) from None
        finally:
            if not isinstance(problem, TooManyRequests):
                outcome = {} if problem is None else {"refused": type(problem).__name__}
                self._record({**found.content, **outcome}, found.durable)
            self.metrics.count(person.door, act, problem)

    def _require(self, person: Person, data: str, act: str) -> None:
        if self.stopping:
            raise TooManyRequests("the service is stopping.\n  do:     try again in a moment", 5.0)
        if data not in self.data or data not in person.roles:
            raise NotAllowed("this token does not open this data set.")
        identity = self.data[data].identity
        token = identity.find(person.token)  # it may have been revoked while a connection lasts
        if token is None or not token.valid(identity.clock()):
            raise NotAuthenticated(WRONG)
        if not person.may(data, act):
            raise NotAllowed(
                f"the role {person.roles[data].value} does not include this.\n  found:  {act}\n"
                "  do:     ask the owner for another role"
            )

    def _curator(self, person: Person, data: str) -> Curator:
        return self.data[data].curator_of(person.name)

    def _record(self, content: Mapping[str, object], durable: bool = False) -> None:
        clean = {name: clean_text(value) for name, value in content.items() if value is not None}
        self.audit_log.append(clean, durable)

    # ---- from asyncio -------------------------------------------------------------------------------------------

    def submit(self, act: Callable[P, T], *args: P.args, **named: P.kwargs) -> "Future[T]":
        """Run an act in a thread of a bounded pool. Raises TooManyRequests if too many wait."""
        with self._lock:
            if self._waiting >= self.limits.waiting + self.limits.threads:
                raise TooManyRequests("the service is busy.\n  do:     try again in a moment", 1.0)
            self._waiting += 1
        threads = self._threads if getattr(act, "__func__", None) is Service.ask else self._quick
        future = threads.submit(partial(act, *args, **named))
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        with self._lock:
            self._waiting -= 1

    async def call(self, act: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """The same, awaited. If the caller goes away, the act goes on: what was charged is stored."""
        return await asyncio.wrap_future(self.submit(act, *args, **named))

    async def ask_within(
        self, seconds: float, person: Person, data: str, text: str, *, epsilon: float | None = None,
        error: float | None = None, relative_error: float | None = None, key: str | None = None,
    ) -> Answer | str:  # fmt: skip
        """The answer; or, if it takes longer than this, the id under which `stored` will find it."""
        key = new_key() if key is None else key
        future = self.submit(
            self.ask, person, data, text, epsilon=epsilon, error=error, relative_error=relative_error, key=key
        )
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), seconds)
        except TimeoutError:
            id_ = request_id(data, person.name, key)
            self._jobs[id_] = future
            while len(self._jobs) > FINISHED:
                self._jobs.popitem(last=False)
            return id_

    def stop(self) -> None:
        """Take no more calls; those under way finish."""
        self.stopping = True

    def idle(self) -> bool:
        """Has every call ended?"""
        with self._lock:
            return not self._waiting

    def close(self) -> None:
        """Close what is open. A call that has not ended stays charged; its answer is stored, or can be made again."""
        for threads in (self._threads, self._quick):
            threads.shutdown(wait=False, cancel_futures=True)
        for data in self.data.values():
            data.curator.engine.close()
            data.curator.ledger.close()
            data.identity.store.close()
        self.audit_log.close()


def open_data(settings: DataSet, limits: Limits) -> OpenData:
    """A data set with its own worker processes, its ledger and its people."""
    policy = with_limits(Policy.load(settings.policy), limits)
    engine = open_engine(settings, policy, limits)
    curator = Curator.open(engine, policy, ledger=settings.ledger, anchor=settings.anchor)
    identity = Identity.open(store_at(settings.ledger))  # its own connection: log-ins do not wait for charges
    return OpenData(settings, curator, identity)


def open_engine(settings: DataSet, policy: Policy, limits: Limits) -> Engine:
    if settings.source.startswith(ADDRESS):
        from sfumato.engines.postgres import Postgres  # an extra

        return Postgres(settings.source, timeout=policy.limits.timeout)
    own = policy.limits
    engine = DuckDB(
        Path(settings.source), timeout=own.timeout, memory=own.memory, spill=own.spill, delimiters=policy.delimiters
    )
    return WorkerPool(engine, limits.workers)


def with_limits(policy: Policy, limits: Limits) -> Policy:
    """The policy with a service's padding and time limit, where these are stricter."""
    quantum = max(policy.limits.response_quantum, limits.response_quantum)
    timeout = min(policy.limits.timeout, limits.timeout)
    return replace(policy, limits=replace(policy.limits, response_quantum=quantum, timeout=timeout))


def policy_change(curator: Curator, policy: Policy) -> PolicyChange:
    """A policy beside the one in force, the schema and the ledger."""
    untyped = getattr(curator.engine, "untyped", lambda: frozenset[str]())()
    check = check_policy(policy, curator.engine.schema(), untyped)
    problem = None
    before = curator.policy
    try:
        if (policy.epsilon, policy.delta, policy.pure) != (before.epsilon, before.delta, before.pure):
            raise InvalidParameter("the budget is a promise, and cannot be changed by a policy: sfumato ledger renew")
        curator.ledger.would_share(policy.analysts, policy.others)
    except SfumatoError as error:
        problem = str(error)
    old = json.loads(json.dumps(policy_facts(before)))
    new = json.loads(json.dumps(policy_facts(policy)))
    return PolicyChange(check, tuple(differences(old, new)), problem)


def policy_facts(policy: Policy) -> dict[str, object]:
    """What a policy says, as a flat table of facts."""
    facts: dict[str, object] = {f"analysts.{who}": share for who, share in policy.analysts.items()}
    facts["others"] = policy.others
    for table in Catalogue.of(policy).tables:
        facts[f"tables.{table.name}"] = table.about
        for column in table.columns:
            facts[f"tables.{table.name}.{column.name}"] = {k: v for k, v in vars(column).items() if k != "name"}
    return facts


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        if name not in new:
            yield f"{name}: removed"
        elif name not in old:
            yield f"{name}: new, {json.dumps(new[name], ensure_ascii=False)}"
        elif old[name] != new[name]:
            yield f"{name}: {json.dumps(old[name], ensure_ascii=False)} → {json.dumps(new[name], ensure_ascii=False)}"


def write_atomically(place: Path, text: str) -> None:
    """Replace a file by another one in a single step, keeping the old one beside it."""
    new = place.with_name(f"{place.name}.new")
    new.write_text(text, "utf-8")
    place.with_name(f"{place.name}.before").write_bytes(place.read_bytes())
    new.replace(place)


def note_answer(act: Act, answer: Answer) -> None:
    """What the audit log holds of an answer: its price, and a hash of what was released."""
    released = json.dumps([answer.columns, answer.rows], default=str, ensure_ascii=False)
    hash_ = hashlib.sha256(released.encode("utf-8", "surrogatepass")).hexdigest()
    paid = {"epsilon": answer.epsilon, "delta": answer.delta, "charged": answer.charged, "answer": hash_}
    act.content |= paid
    act.durable = answer.charged


def new_key() -> str:
    """An idempotency key that nobody else has."""
    return secrets.token_hex(16)


def request_id(data: str, who: str, key: str) -> str:
    """The public name of a request: the same for the same key of the same person."""
    return hashlib.sha256(json.dumps([data, who, key]).encode()).hexdigest()[:32]


def clean_text(value: object) -> object:
    """A value that any file can hold: no broken text, and numbers that JSON does not have as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
