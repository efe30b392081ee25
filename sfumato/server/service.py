"""The service behind every door: named data sets, who may do what, how much at a time, and a record of every act.

A door authenticates once (`authenticate`, or the methods of `sign_in` for SCRAM), and then calls acts with the person.
Acts block: from asyncio they are called through `call`. They return the curator's own objects, and raise the errors of
`sfumato.errors`, whose texts may be shown. No door takes a decision about privacy, money or rights.

    person = await service.call(service.authenticate, token, door="http", source=address)
    answer = await service.call(service.ask, person, "clinic", "SELECT COUNT(*) FROM visits", epsilon=0.1, key=key)
"""

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sfumato.curator import Curator
from sfumato.curator.answer import Answer
from sfumato.curator.preview import Preview, Standing, budget_standing
from sfumato.curator.suggest_bounds import Bounds
from sfumato.errors import (
    FAILED_SERVICE,
    NotAllowed,
    NotAuthenticated,
    NotReached,
    NotStored,
    ServiceFailed,
    SfumatoError,
    TooManyRequests,
)
from sfumato.ledger.hash_chain import Entry
from sfumato.server.acts import Act, clean_text, new_key, note_answer, request_id
from sfumato.server.admission import Admission
from sfumato.server.audit_log import AuditLog
from sfumato.server.call_threads import CallThreads
from sfumato.server.catalogue import Catalogue
from sfumato.server.configuration import Configuration, Limits
from sfumato.server.identity import WRONG, Role, Token
from sfumato.server.logs import unforeseen
from sfumato.server.metrics import Metrics
from sfumato.server.oidc import Issuer
from sfumato.server.open_data import OpenData, open_data
from sfumato.server.policy_change import PolicyChange, publish, review, text_hash, writable
from sfumato.server.rights import Person
from sfumato.server.sign_in import SignIn
from sfumato.server.spending import Spending, own_lines, shares_left, spending_of
from sfumato.server.what_if import WhatIf, what_if

P = ParamSpec("P")
T = TypeVar("T")

FINISHED = 1000  # long questions whose outcome is kept
MARKS = 3  # of an anchor that are shown


@dataclass(eq=False)
class Service:
    """All data sets of one configuration."""

    data: Mapping[str, OpenData]
    limits: Limits
    audit_log: AuditLog
    admission: Admission
    metrics: Metrics = field(default_factory=Metrics)
    stopping: bool = False
    issuer: InitVar[Issuer | None] = None
    report_place: Path | None = None  # of `sfumato audit`
    sign_in: SignIn = field(init=False, repr=False)
    _threads: CallThreads = field(init=False, repr=False)
    _publishing: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _jobs: "OrderedDict[str, Future[Answer]]" = field(default_factory=OrderedDict, repr=False)

    def __post_init__(self, issuer: Issuer | None) -> None:
        self.sign_in = SignIn(self.data, issuer)
        self._threads = CallThreads(self.limits.threads, self.limits.waiting)

    @staticmethod
    def open(configuration: Configuration) -> "Service":
        """Open every data set, after verifying its ledger; and the audit log, which one service writes."""
        limits = configuration.limits
        issuer = None if configuration.oidc is None else Issuer.load(configuration.oidc)
        log = AuditLog.open(configuration.audit_log)
        try:
            data = {name: open_data(one, limits) for name, one in configuration.data.items()}
        except BaseException:
            log.close()
            raise
        return Service(data, limits, log, Admission(limits.concurrent, limits.rate, limits.burst), issuer=issuer,
                       report_place=configuration.audit_report)  # fmt: skip

    def authenticate(self, token: str, *, door: str = "") -> Person:
        """The holder of a token, or of a signed identity. Raises NotAuthenticated."""
        return self.sign_in.authenticate(token, door=door)

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
        with self._act(person, data, "ask", text) as act:
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
        with self._act(person, data, "preview", text) as act:
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
            texts = ((line, f"{line.text} {self.audit_log.asked(data, line) or ''}".casefold()) for line in lines)
            return list(islice((line for line, text in texts if all(word in text for word in wanted)), most))

    def spending(self, person: Person, data: str) -> Spending:
        """How the budget was spent, by the lines that this person may see; and the trade-off curves of the ledger."""
        with self._act(person, data, "budget"):
            return spending_of(self.data[data].curator.ledger, self._visible_lines(person, data, 1, None))

    def _visible_lines(self, person: Person, data: str, start: int, most: int | None) -> list[Entry]:
        """At most so many lines that this person may see, of those from number `start` on."""
        ledger = self.data[data].curator.ledger
        return (
            ledger.history(start, most)
            if person.may(data, "whole history")
            else own_lines(ledger, person.name, start, most)
        )

    def verify(self, person: Person, data: str) -> tuple[int, str]:
        """Read the whole ledger again: its number of lines and its head. Raises LedgerDamaged."""
        with self._act(person, data, "verify"):
            state = self.data[data].curator.ledger.verify()
            return state.seq, state.hash

    def anchor_marks(self, person: Person, data: str) -> list[tuple[int, str]]:
        """The last lines whose hashes the anchor holds: (number of the line, hash)."""
        with self._act(person, data, "verify"):
            return list(self.data[data].curator.ledger.anchor.marks())[-MARKS:]

    def audit_report(self, person: Person, data: str) -> Mapping[str, Any] | None:
        """What `sfumato audit --out report.json` wrote, if the configuration names the file."""
        with self._act(person, data, "audit"):
            place = self.report_place
            return None if place is None or not place.exists() else dict(json.loads(place.read_text("utf-8")))

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
        with self._act(person, data, "check policy", text):
            return review(self.data[data], text)

    def draft(self, person: Person, data: str) -> str | None:
        """The policy that was drafted last, and is not published; None if there is none."""
        with self._act(person, data, "check policy"):
            place = self.data[data].draft_place
            return place.read_text("utf-8") if place.exists() else None

    def save_draft(self, person: Person, data: str, text: str) -> None:
        """Keep a policy for review, beside the one in force. Nothing else changes."""
        with self._act(person, data, "draft policy") as act:
            act.content |= {"policy": text_hash(text)}
            with writable(self.data[data].draft_place):
                self.data[data].draft_place.write_text(text, "utf-8")

    def publish_policy(self, person: Person, data: str, text: str, based_on: str | None = None) -> PolicyChange:
        """Put this policy in force: its shares become an act in the ledger, and later questions follow it.

        `based_on` is the hash of the policy in force with which it was reviewed: if another one was published since,
        nothing happens.
        """
        with self._act(person, data, "publish policy") as act, self._publishing:
            act.durable = True
            act.content |= {"policy": text_hash(text)}
            return publish(self.data[data], text, self.limits, based_on)

    def suggest_bounds(self, person: Person, data: str, column: str, epsilon: float) -> Bounds:
        """Bounds for a column such as "visits.stay", from noisy histograms that this person pays for."""
        with self._act(person, data, "suggest bounds") as act:
            act.content |= {"question": f"bounds of {column}", "epsilon": epsilon}
            found = self._curator(person, data).suggest_bounds(column, epsilon=epsilon)
            act.content |= {"epsilon": found.epsilon, "charged": found.charged}
            act.durable = found.charged
            return found

    def what_if(self, person: Person, data: str, question: str, epsilon: float, count: int) -> WhatIf:
        """What further questions would leave of this person's budget. Free, and no data are read."""
        with self._act(person, data, "preview", question) as act:
            act.content |= {"question": question, "epsilon": epsilon}
            return what_if(self._curator(person, data), question, epsilon, count)

    def shares(self, person: Person, data: str) -> dict[str, tuple[float, float]]:
        """The share of the budget of each person whom the policy names, and how much of it is left."""
        with self._act(person, data, "tokens"):
            curator = self.data[data].curator
            return shares_left(curator.ledger, curator.policy.analysts)

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
    def _act(self, person: Person, data: str, act: str, text: str = "") -> Iterator[Act]:
        """Checks before an act, and its line in the audit log after it; unforeseen errors get one fixed text."""
        found = Act(
            {"act": act, "who": person.name, "data": data, "door": person.door, "token": person.tokens.get(data)}
        )
        problem: BaseException | None = None
        try:
            self.require(person, data, act)
            with self.admission.enter(person.name, text):
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

    @contextmanager
    def looking(self, person: Person, data: str) -> Iterator[None]:
        """Around a look at what is public: free, and one of so many calls that a person may make."""
        self.require(person, data, "catalogue")
        with self.admission.enter(person.name):
            yield

    def require(self, person: Person, data: str, act: str) -> None:
        """Raises unless this person may do this now: their token may have ended while a connection lasts."""
        if self.stopping:
            raise TooManyRequests("the service is stopping.\n  do:     try again in a moment", 5.0)
        if data not in self.data or data not in person.roles:
            raise NotAllowed("this token does not open this data set.")
        identity = self.data[data].identity
        token = identity.find(person.tokens[data])
        now = identity.clock()
        if token is None or not token.valid(now) or now >= person.until:
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
        """Run an act in a thread; questions do not delay other acts. Raises TooManyRequests if too many wait."""
        long = getattr(act, "__func__", None) is Service.ask
        return self._threads.submit(long, act, *args, **named)

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
        return self._threads.idle()

    def close(self) -> None:
        """Close what is open. A call that has not ended stays charged; its answer is stored, or can be made again."""
        self._threads.close()
        for data in self.data.values():
            data.curator.engine.close()
            data.curator.ledger.close()
            data.identity.store.close()
        self.audit_log.close()
