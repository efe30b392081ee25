"""The ledger: a privacy budget that survives crashes, races and adversarial analysts.

Charge durably, then read data; store durably, then answer. A charge is never refunded once data could have been read.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from sfumato import checks
from sfumato.errors import AlreadyRun, CommitUnknown, InvalidParameter, LedgerUnavailable
from sfumato.ledger import accounts, charges, tables
from sfumato.ledger.amounts import Amount
from sfumato.ledger.budgets import Promise, budget_from_description, describe_budget, not_a_loss
from sfumato.ledger.charges import Receipt, Request
from sfumato.ledger.hash_chain import Anchor, Entry, digest
from sfumato.ledger.journal import Journal, Mark, Probe, ignore, random_name
from sfumato.ledger.location import AnchorPlace, Place, anchor_for, require_file, require_unused, store_at
from sfumato.ledger.meter import Meter, Odometer
from sfumato.ledger.shares import ANALYST, COMMON, FORMER, OWNER, PLAN, Shares
from sfumato.ledger.state import State, read_amount, replay_entries, verify
from sfumato.ledger.store import Store
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.describe import from_json

SHORTEST_PAUSE, LONGEST_PAUSE = 0.001, 0.05  # seconds between two attempts to get a lock
T = TypeVar("T")

described_loss = lru_cache(1024)(from_json)  # losses are immutable: each text is read once


@dataclass(frozen=True, eq=False)
class Ledger:
    """The ledger of one data set. Make a new one with `create`; open an existing one with `open`."""

    store: Store
    anchor: Anchor
    promise: Promise
    clock: Callable[[], float] = field(default=time.time, repr=False)
    probe: Probe = field(default=ignore, repr=False)
    seen: list[Mark] = field(default_factory=list, repr=False)  # the newest line that this object knows of

    # ---- creating and opening ---------------------------------------------------------------------------------------

    @staticmethod
    def create(
        place: Place, promise: Promise, *, anchor: AnchorPlace = None, clock: Callable[[], float] = time.time
    ) -> "Ledger":
        """Create a ledger with this budget where there is none.

        Unless `anchor` says otherwise, the anchor of a file is a second file beside it. Another disk or machine is
        better.
        """
        if not isinstance(promise, Promise):
            raise InvalidParameter(
                f"a ledger needs a budget.\n  found:  a {type(promise).__name__}\n"
                "  do:     give sf.Budget(epsilon=1.0, delta=1e-6)"
            )
        ledger = Ledger(store_at(place), anchor_for(place, anchor), promise, clock)
        require_unused(ledger.store, ledger.anchor)
        ledger._journal.start(promise)
        return ledger

    @staticmethod
    def open(
        place: Place,
        *,
        anchor: AnchorPlace = None,
        clock: Callable[[], float] = time.time,
        probe: Probe | None = None,
    ) -> "Ledger":
        """Open the ledger at this place, after verifying all of it."""
        store, its_anchor = store_at(place), anchor_for(place, anchor)
        require_file(store)
        state, first = verify(store, its_anchor)
        ledger = Ledger(store, its_anchor, budget_from_description(first.content["budget"]), clock, probe or ignore)
        ledger._journal.mark(state.seq, state.hash)  # a crash may have come between a commit and its mark
        return ledger

    def close(self) -> None:
        self.store.close()

    # ---- answering a question ---------------------------------------------------------------------------------------

    def prices(self, loss: PrivacyLoss) -> tuple[Amount, ...]:
        """The amounts that may be charged for this loss, in order of preference."""
        if not isinstance(loss, PrivacyLoss):
            raise not_a_loss(loss)  # it may have no hash to look it up by
        return cached_prices(self.promise, loss)

    def charge(
        self, loss: PrivacyLoss, *, question: str, who: str = OWNER, key: str | None = None, plan: str | None = None,
        account: str | None = None, asked: str = "",
    ) -> Receipt:  # fmt: skip
        """Charge the price of `loss` to the account of `who`, or of a plan; durable when this returns.

        `key` is an idempotency key: the same key by the same person is charged once, however often it is sent, and the
        receipt then comes with the stored answer, if there is one. If the connection breaks during the commit, the
        ledger looks up whether it got through. If `account` is given, a charge to any other account is refused.
        `asked` is the question as people read it; it is recorded, and decides nothing.
        """
        prices = self.prices(loss)
        request = Request.of(loss, question, who, random_name() if key is None else key)
        self.probe("charge: asked")

        def attempt() -> Receipt:
            with self._journal.append("charge") as line:
                return charges.charge(line, request, self.promise, prices, plan, account, asked)

        return retry_if_unknown(attempt)

    def find_receipt(self, loss: PrivacyLoss, *, question: str, who: str, key: str) -> Receipt | None:
        """The receipt of this request if it was charged before. Charges nothing."""
        with self.store.reading() as transaction:
            return charges.find_receipt(transaction, Request.of(loss, question, who, key))

    def find_charge(self, *, who: str, key: str) -> tuple[str, PrivacyLoss] | None:
        """(question, loss) that this person was charged for under this idempotency key, if anything."""
        with self.store.reading() as transaction:
            content = charges.charged_under(transaction, who, key)
        return None if content is None else (str(content["question"]), described_loss(str(content["loss"])))

    def keep(self, receipt: Receipt, answer: bytes) -> bytes:
        """Store the answer to a charge. Only what this returns may be sent: the first answer stored is the answer."""
        if not isinstance(answer, bytes):
            raise InvalidParameter(f"an answer is stored as bytes.\n  found:  a {type(answer).__name__}")

        def attempt() -> bytes:
            with self._journal.append("answer") as line:
                return charges.store_answer(line, receipt.seq, answer)

        return retry_if_unknown(attempt)

    def recall(self, question: str) -> bytes | None:
        """The stored answer to the same question about the same data version: free."""
        with self.store.reading() as transaction:
            return charges.first_answer(transaction, question)

    def answers(self, question: str) -> list[tuple[PrivacyLoss, bytes]]:
        """Stored answers to a question about the same data version, the newest first, each with its loss: free.

        They serve a request with other noise if they are at least as accurate. The newest few are enough: nobody pays
        for an answer that is less accurate than a stored one.
        """
        with self.store.reading() as transaction:
            stored = charges.newest_answers(transaction, question)
        return [(described_loss(str(charge.content["loss"])), answer.answer) for charge, answer in stored]

    @contextmanager
    def question_lock(
        self, question: str, seconds: float, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[None]:
        """Per-question lock; waits for a concurrent ask of the same question, whose stored answer can then be recalled.

        It is freed when its process ends, however that ends. Raises `LedgerUnavailable` after about `seconds`.
        """
        name = int.from_bytes(digest(question.encode())[:7])
        waited, pause = 0.0, SHORTEST_PAUSE
        while not self.store.try_lock(name):
            if waited >= seconds:
                raise LedgerUnavailable(
                    "the same question is being answered for somebody else.\n  found:  no answer in time\n"
                    "  do:     ask again later; nothing more was charged"
                )
            sleep(pause)
            waited, pause = waited + pause, min(2 * pause, LONGEST_PAUSE)
        try:
            yield
        finally:
            self.store.unlock(name)

    turn = question_lock  # the name until version 0.2

    def rerun(self, receipt: Receipt) -> None:
        """Permission to run a charged question once more whose answer was never stored.

        Sound only if the failure cannot depend on the noise that was drawn: a crash, not an answer that is rejected.
        """
        with self._journal.append("rerun") as line:
            charges.refuse_blocked(line.transaction, receipt.question)
            if not charges.may_rerun(line.transaction, receipt.seq):
                raise AlreadyRun(
                    f"this question was already answered, or run again.\n  found:  charge {receipt.seq}\n"
                    "  do:     ask it as a new question, with a key of its own"
                )
            line.write({"kind": "rerun", "charge": receipt.seq})

    def block(self, receipt: Receipt, *, drawn: bool) -> None:
        """Block a question for everybody, at any price, until the owner unblocks it: the engine failed on it twice.

        `drawn`: did it fail after noise was drawn? Then this charge never runs again, since the failure might depend
        on that noise.
        """

        def attempt() -> None:
            with self._journal.append("block") as line:
                charges.block(line, receipt.seq, receipt.question, drawn)

        retry_if_unknown(attempt)

    # ---- acts of the owner ------------------------------------------------------------------------------------------

    def share(self, named: Mapping[str, float], others: float | bool = False) -> bool:
        """Set all shares of the whole budget in one act: name → share, 0 for nothing. True if anything changed.

        `others` is for all who are not named, together: a share, False (nothing), or True (they draw on the common
        account, as the owner does). Lowering a share returns what is unspent of it; somebody who is no longer named
        becomes one of the others. Refused, with nothing changed, if the shares do not fit what was spent.
        """
        shares = Shares(named, others)
        with self.store.reading() as transaction:
            if accounts.changed_limits(transaction, shares) is None:
                return False
        with self._journal.append("share") as line:
            return accounts.set_shares(line, shares)

    def would_share(self, named: Mapping[str, float], others: float | bool = False) -> bool:
        """Would `share` change anything? Raises as it would, and changes nothing."""
        with self.store.reading() as transaction:
            return accounts.changed_limits(transaction, Shares(named, others)) is not None

    def cap(self, who: str, share: Amount | Promise) -> None:
        """Set a part of the budget aside for one analyst, who can then spend that part only."""
        own = f"{ANALYST}{checks.text('who', who)}"
        if f"{FORMER}{own}" in self.accounts():
            raise InvalidParameter(
                f"the policy has withdrawn the share of {who}.\n  found:  no share of that name\n"
                "  do:     name them in the policy again, or set all shares: Ledger.share"
            )
        self._move(COMMON, own, share, "cap")

    def reserve(self, plan: str, share: Amount | Promise | PrivacyLoss, who: str | None = None) -> None:
        """Reserve a part for planned work: `charge(…, plan=plan)` draws on it, `release` returns what is unspent."""
        amount = self.prices(share)[-1] if isinstance(share, PrivacyLoss) else share
        name = f"{PLAN}{checks.text('plan', plan)}"
        with self.store.reading() as transaction:
            source = COMMON if who is None else tables.account_for(transaction, who, None)
            before = accounts.plan_source(transaction, name)
        if before not in (None, source):
            raise InvalidParameter(
                f"this plan was reserved from another account.\n  found:  {before or 'the common account'}\n"
                "  do:     choose another name for the plan"
            )
        self._move(source, name, amount, "reserve")

    def release(self, plan: str) -> None:
        """Return what a plan has not spent. The cost of its questions stays spent, whatever they returned."""
        name = f"{PLAN}{checks.text('plan', plan)}"
        with self._journal.append("move") as line:
            accounts.release_plan(line, self.promise, name)

    def renew(self, promise: Promise, why: str) -> None:
        """Add a further budget to the ones before. People in the data throughout face the union of all of them.

        Shares are parts of the whole, so they grow with it. That is an act of its own; if it is cut short, the next
        opening of a curator repeats it.
        """
        if type(promise) is not type(self.promise) or promise.relation is not self.promise.relation:
            raise InvalidParameter(
                "a ledger can only be renewed with a budget of the same kind.\n"
                f"  found:  {type(promise).__name__} for a {type(self.promise).__name__}\n"
                "  do:     give one of the same kind and neighbour relation"
            )
        why = checks.text("why", why)
        with self._journal.append("renew") as line:
            tables.raise_limit(line.transaction, COMMON, promise.amount)
            budget = {"budget": describe_budget(promise), "amount": list(promise.amount)}
            line.write({"kind": "renewed", **budget, "why": why})
        if (shares := self.shares()) is not None:
            self.share(shares.named, shares.others)

    def new_version(self, why: str) -> int:
        """Raise the data version: stored answers no longer serve. The owner raises it; it never depends on the data."""
        with self._journal.append("version") as line:
            number = line.version + 1
            line.write({"kind": "version", "number": number, "why": checks.text("why", why)}, version=number)
        return number

    def unblock(self, charge: int, why: str) -> None:
        """Let everybody ask the question of this charge again, after the cause of its failure was repaired.

        Whoever was charged for it may have it run once more with the same key.
        """
        why = checks.text("why", why)
        with self._journal.append("unblock") as line:
            charges.unblock(line, charge, why)

    def forfeit(self, why: str) -> None:
        """Count all that is left in every account as spent: for answers that no line records."""
        why = checks.text("why", why)
        for name, (limit, spent) in self.accounts().items():
            if any(rest := limit - spent):
                with self._journal.append("charge") as line:
                    charges.spend_rest(line, self.promise, name, rest, why)

    def reprice(self, seq: int, loss: PrivacyLoss) -> Amount:
        """Lower the cost of a charge to the present price of its loss, if no counter rises; the cost that holds now."""
        price = self.prices(loss)[-1]
        with self._journal.append("reprice") as line:
            state = replay_entries(tables.entries(line.transaction))
            if seq not in state.costs:
                raise InvalidParameter(f"only a charge can be repriced.\n  found:  line {seq!r}")
            account, before = state.costs[seq]
            stored = tables.entry(line.transaction, seq).content["loss"]
            if loss.to_json() != stored or not price.within(before) or price == before:
                return before
            tables.lower_spent(line.transaction, account, before - price)
            line.write({"kind": "repriced", "charge": seq, "cost": list(price)})
        return price

    # ---- reading ----------------------------------------------------------------------------------------------------

    def verify(self) -> State:
        """Read all lines again, follow their hash chain, and compare with the tables and the anchor."""
        return verify(self.store, self.anchor)[0]

    def history(self, start: int = tables.LEAST, most: int | None = None) -> list[Entry]:
        """All lines from number `start` on, the first one first; or so many of them."""
        with self.store.reading() as transaction:
            return list(islice(tables.entries(transaction, start), most))

    def line(self, seq: int) -> Entry:
        """One line, by its number."""
        with self.store.reading() as transaction:
            return tables.entry(transaction, seq)

    def blocked(self) -> list[Entry]:
        """The lines that block a question now."""
        with self.store.reading() as transaction:
            return charges.blocked_entries(transaction)

    def accounts(self) -> dict[str, tuple[Amount, Amount]]:
        """name → (limit, spent); "" is the common account."""
        with self.store.reading() as transaction:
            return tables.accounts(transaction)

    def account(self, who: str = OWNER) -> tuple[str, Amount, Amount]:
        """The account that pays for this person: its name, limit and spent."""
        all_accounts = self.accounts()
        name = tables.paying_account(all_accounts, who)
        return name, *all_accounts[name]

    def shares(self) -> Shares | None:
        """The shares that were set last, if any were."""
        with self.store.reading() as transaction:
            return accounts.latest_shares(transaction)

    def meter(self) -> Meter:
        """Spent so far: a reading, not a guarantee."""
        return Meter(self.promise, sum((spent for _, spent in self.accounts().values()), Amount()))

    def odometer(self) -> Odometer:
        """The ladder of levels fixed with the first budget: `odometer().reading(spent)` holds at all times."""
        return Odometer(self.promise, read_amount(self.line(1).content["amount"]))

    # ---- writing ----------------------------------------------------------------------------------------------------

    @property
    def _journal(self) -> Journal:
        return Journal(self.store, self.anchor, self.clock, self.probe, self.seen)

    def _move(self, source: str, to: str, share: Amount | Promise, why: str) -> None:
        with self._journal.append("move") as line:
            amount = share.amount if isinstance(share, Promise) else share
            accounts.move(line, self.promise, source, to, amount, why)


@lru_cache(maxsize=4096)
def cached_prices(promise: Promise, loss: PrivacyLoss) -> tuple[Amount, ...]:
    """Prices depend on the descriptions of the budget and the loss alone, so each is computed once."""
    return promise.prices(loss)


def retry_if_unknown(act: Callable[[], T]) -> T:
    """Do something idempotent. If it is unknown whether it was committed, do it again: that finds out."""
    try:
        return act()
    except CommitUnknown as unknown:
        try:
            return act()
        except LedgerUnavailable:
            raise unknown from None
