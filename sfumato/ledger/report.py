"""What the owner reads: what was promised, what is spent, by whom, and what another accountant would have said."""

import json
from collections import defaultdict
from dataclasses import dataclass

from sfumato.ledger.amounts import MEANINGS, UNITS, Amount
from sfumato.ledger.budget_description import promised
from sfumato.ledger.budgets import Promise
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.meter import READING, odds
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import total
from sfumato.loss.describe import from_json
from sfumato.rounding import sum_up

PERIODS = ("opened", "renewed")


@dataclass(frozen=True)
class Report:
    """The ledger as public numbers: nothing in it comes from data."""

    lines: int
    version: int
    promises: tuple[tuple[str, float, float], ...]  # kind, ε, δ of each period
    union: float  # ε of all periods together, at the sum of their δ
    union_delta: float
    meter: float
    odometer: float
    delta: float
    accounts: dict[str, tuple[Amount, Amount]]
    charges: dict[str, int]  # by whom, how many
    elsewhere: float  # ε that optimal composition of questions fixed in advance would have had
    words: str

    def to_json(self) -> str:
        data = {**self.__dict__, "accounts": {n: [list(a), list(b)] for n, (a, b) in self.accounts.items()}}
        return json.dumps(data, indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        kinds = "\n".join(f"  {kind}: ε = {eps:g} at δ = {delta:g}" for kind, eps, delta in self.promises)
        if len(self.promises) > 1:
            kinds += (
                f"\n  people in the data throughout face the union: ε = {self.union:.4g} at δ = {self.union_delta:g}"
            )
        shares = "\n".join(
            f"  {name or 'common account':24} {left}" for name, (limit, spent) in self.accounts.items()
            for left in [", ".join(self._left(limit, spent)) or "empty"]
        )  # fmt: skip
        asked = ", ".join(f"{who} {count}" for who, count in sorted(self.charges.items())) or "nobody"
        return (
            f"The promise\n{kinds}\n"
            f"Spent so far ({READING})\n  meter     ε = {self.meter:.4g} at δ = {self.delta:g}\n"
            f"  odometer  ε = {self.odometer:.4g}, whenever you look\n"
            f"  had all questions been fixed in advance: ε = {self.elsewhere:.4g}\n"
            "    (for information: it frees nothing)\n"
            f"Accounts, used of what there is\n{shares}\n"
            f"Asked by: {asked}; {self.lines} lines, data version {self.version}\n{self.words}"
        )

    @staticmethod
    def _left(limit: Amount, spent: Amount) -> list[str]:
        parts = ((n, getattr(spent, n), getattr(limit, n)) for n in UNITS)
        return [f"{MEANINGS[n]} {100 * used / whole:.1f} %" for n, used, whole in parts if whole]


def report(ledger: Ledger) -> Report:
    """Verify a ledger and say what is in it."""
    state, history = ledger.verify(), [entry.content for entry in ledger.history()]
    periods = [content for content in history if content["kind"] in PERIODS]
    charges: dict[str, int] = defaultdict(int)
    for content in history:
        if content["kind"] == "charged":
            charges[str(content["who"])] += 1
    promise, delta = ledger.promise, ledger.promise.delta
    together, together_delta = union(ledger)
    return Report(
        lines=state.seq,
        version=state.version,
        promises=tuple(described(content["budget"]) for content in periods),
        union=together,
        union_delta=together_delta,
        meter=ledger.meter().epsilon(),
        odometer=ledger.odometer().reading(state.spent),
        delta=delta,
        accounts=state.accounts,
        charges=dict(charges),
        elsewhere=composed(history).epsilon(delta).upper,
        words=odds(promise.loss_of(state.spent)),
    )  # fmt: skip


def union(ledger: Ledger, *further: Promise) -> tuple[float, float]:
    """(ε, δ) of all periods together, and of further ones: what people face who are in the data throughout.

    The ε and the δ of the periods add up. Counters do as well, which is mostly sharper for ε at the same δ.
    """
    made = [promised(entry.content["budget"]) for entry in ledger.history() if entry.content["kind"] in PERIODS]
    periods = [*made, *further]
    if len(periods) == 1:
        return periods[0].epsilon, periods[0].delta
    delta = sum_up(*(one.delta for one in periods))
    counted = ledger.promise.epsilon_of(sum((one.amount for one in periods), Amount()), delta)
    return min(counted, sum_up(*(one.epsilon for one in periods))), delta


def composed(history: list[dict[str, object]]) -> PrivacyLoss:
    """All charged losses, composed as if they had been fixed in advance."""
    counts: dict[str, int] = defaultdict(int)
    for content in history:
        if content["kind"] == "charged":
            counts[str(content["loss"])] += 1
    return total(*((count, from_json(text)) for text, count in counts.items()))


def described(budget: object) -> tuple[str, float, float]:
    if not isinstance(budget, dict):
        raise TypeError("not a budget")
    return str(budget["promise"]), float(budget["epsilon"]), float(budget["delta"])
