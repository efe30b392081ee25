"""The report to the owner: what is promised, what is spent and by whom, and the ε of optimal composition."""

import json
from collections import defaultdict
from dataclasses import dataclass

from sfumato.ledger.amounts import MEANINGS, UNITS, Amount
from sfumato.ledger.budgets import Promise, budget_from_description
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.meter import READING, odds
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import total
from sfumato.loss.describe import from_json
from sfumato.rounding import sum_up

PERIODS = ("opened", "renewed")


@dataclass(frozen=True)
class OwnerReport:
    """The state of a ledger in public numbers: none of them comes from data."""

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
    elsewhere: float  # ε of the optimal composition, had all questions been fixed in advance
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
            for left in [", ".join(self._describe_use(limit, spent)) or "empty"]
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
    def _describe_use(limit: Amount, spent: Amount) -> list[str]:
        counters = ((n, getattr(spent, n), getattr(limit, n)) for n in UNITS)
        return [f"{MEANINGS[n]} {100 * used / most:.1f} %" for n, used, most in counters if most]


def report(ledger: Ledger) -> OwnerReport:
    """Verify a ledger, and report on it."""
    state, history = ledger.verify(), [entry.content for entry in ledger.history()]
    periods = [content for content in history if content["kind"] in PERIODS]
    charges: dict[str, int] = defaultdict(int)
    for content in history:
        if content["kind"] == "charged":
            charges[str(content["who"])] += 1
    promise, delta = ledger.promise, ledger.promise.delta
    together, together_delta = union(ledger)
    return OwnerReport(
        lines=state.seq,
        version=state.version,
        promises=tuple(kind_and_promise(content["budget"]) for content in periods),
        union=together,
        union_delta=together_delta,
        meter=ledger.meter().epsilon(),
        odometer=ledger.odometer().reading(state.spent),
        delta=delta,
        accounts=state.accounts,
        charges=dict(charges),
        elsewhere=compose_charges(history).epsilon(delta).upper,
        words=odds(promise.loss_of(state.spent)),
    )  # fmt: skip


def union(ledger: Ledger, *further: Promise) -> tuple[float, float]:
    """(ε, δ) of all periods together, with further ones: the guarantee for people in the data throughout.

    The ε and the δ of the periods add up. The counters add up too, which mostly gives a smaller ε at the same δ.
    """
    past = [
        budget_from_description(entry.content["budget"])
        for entry in ledger.history()
        if entry.content["kind"] in PERIODS
    ]
    periods = [*past, *further]
    if len(periods) == 1:
        return periods[0].epsilon, periods[0].delta
    delta = sum_up(*(period.delta for period in periods))
    counted = ledger.promise.epsilon_of(sum((period.amount for period in periods), Amount()), delta)
    return min(counted, sum_up(*(period.epsilon for period in periods))), delta


def compose_charges(history: list[dict[str, object]]) -> PrivacyLoss:
    """The composition of all charged losses, as if they had been fixed in advance."""
    counts: dict[str, int] = defaultdict(int)
    for content in history:
        if content["kind"] == "charged":
            counts[str(content["loss"])] += 1
    return total(*((count, from_json(text)) for text, count in counts.items()))


def kind_and_promise(budget: object) -> tuple[str, float, float]:
    if not isinstance(budget, dict):
        raise TypeError("not a budget")
    return str(budget["promise"]), float(budget["epsilon"]), float(budget["delta"])
