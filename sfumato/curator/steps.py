"""Steps before an answer about scaled contributions: selection of private keys, and histograms of norms.

Each step is a purchase of its own, with its own price, canonical text and stored result, so it serves every later
question about the same rows for nothing, and a retry never draws twice. The steps and the rest of a question cost what
the question costs: prices are split before anything is read.

Theorem: a histogram of norms with noise for μ₁, any bound that is a function of it, and scaled sums for μ₂ cost
    √(μ₁² + μ₂²) together [docs/theorems/contributions.md, Theorem 2]
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.aggregates.price import IndependentNoise, Price
from sfumato.curator.norm_tail import EDGES
from sfumato.curator.offer import Offer
from sfumato.curator.release import split_keys
from sfumato.curator.scaling import (
    PEOPLE,
    Choice,
    NoisyNorms,
    blocks_of,
    cap_of,
    histogram_edges,
    is_additive,
    is_free,
    scaling_of,
    summed_measures,
)
from sfumato.ledger import Ledger
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.keys.threshold_selection import threshold_of_votes
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.norm import WHOLE, Block, RankBound
from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.plan import Plan
from sfumato.sql.postprocess import sort_key

FIRST_SHARE = 0.1  # of the budget: by its price the norms are found out of a question that names an error, not an ε
KEYS_SHARE = 0.75  # of a question's price, if it shows private keys and more: about what boxes give to numbers of units
NORMS_SHARE = 0.1  # of the rest, or of NORMS_BASE of the price if that is more: for histograms of norms
NORMS_BASE = 0.5  # so what was bought beside keys serves the same question again, which pays for no keys (HALF)
MOST_KEYS = 48  # that one unit votes for; of more, as many are chosen by a hash
ENOUGH = 1 - 1e-9  # of a price: what was bought with it serves again
HALF = 0.49  # the same of a histogram of norms, which need not be as exact: keys that were paid for double its price


def step_key(key: str | None, question: str) -> str | None:
    """The idempotency key of a step, of a question that has this one."""
    return None if key is None else hashlib.sha256(f"{key} {question}".encode()).hexdigest()


@dataclass(frozen=True)
class Step(ABC):
    """A release that others are made with."""

    plan: Plan
    price: Price

    @property
    @abstractmethod
    def canonical(self) -> str:
        """The key of its stored result."""

    @property
    @abstractmethod
    def asked(self) -> str:
        """The result of the step, in words for the ledger."""

    @property
    def loss(self) -> PrivacyLoss:
        return self.price.loss()

    @abstractmethod
    def requests(self, salt: int, dialect: Dialect) -> list[TableRequest]:
        """The tables that the engine is asked for."""

    @abstractmethod
    def release(self, tables: Sequence[Sequence[Row]]) -> bytes:
        """Noisy numbers, as they are stored."""

    def find(self, ledger: Ledger) -> bytes | None:
        """The most exact stored result that cost at least about this much, or None."""
        found: list[tuple[float, bytes]] = []
        for loss, answer in ledger.answers(self.canonical):
            inner, leak = (loss.inner, loss.failure) if isinstance(loss, LeakyLoss) else (loss, 0.0)
            price = self.price.of(inner)
            if price is not None and price.amount >= self.least_amount and self.accepts(leak):
                found.append((price.amount, answer))
        return max(found, key=lambda one: one[0], default=(0.0, None))[1]

    @property
    def least_amount(self) -> float:
        """The least price of a stored result that serves instead."""
        return self.price.amount * ENOUGH

    def accepts(self, leak: float) -> bool:
        return leak == 0

    def own_key(self, key: str | None) -> str | None:
        """The idempotency key of this step, of a question that has this one."""
        return step_key(key, self.canonical)


@dataclass(frozen=True)
class NormHistogram(Step):
    """How many units have contributions of each length, for one block of a plan's measures.

    A unit is in one bin, so one unit changes one number by one.
    """

    place: int = 0  # of the block

    @property
    def asked(self) -> str:
        return f"a step: norms of contributions in {self.plan.table.name}"

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return blocks_of(self.plan, self.price.squares)

    @cached_property
    def alone(self) -> Plan:
        """The plan of these norms. A sum of counts over groups is the count of all rows, so under pure ε one histogram
        without keys serves every grouping: rows whose keys are not listed make its norms larger, never smaller."""
        measures, block = summed_measures(self.plan), self.blocks[self.place]
        mine = tuple(measures[one.measure] for one in block.coordinates)
        plan = replace(self.plan, measures=mine, standalone=())
        return replace(plan, keys=()) if is_additive(block, measures) else plan

    @property
    def canonical(self) -> str:
        kind = "L2" if self.price.squares else "L1"
        return f"norms | {kind}, {len(EDGES)} bins | {self.alone.of_columns_read().canonical}"

    @property
    def least_amount(self) -> float:
        return self.price.part(HALF).amount

    @cached_property
    def noise(self) -> IndependentNoise:
        return self.price.scaled_noise(WHOLE, 1.0)

    def requests(self, salt: int, dialect: Dialect) -> list[TableRequest]:
        edges, shared = histogram_edges(self.blocks[self.place]), self.alone.keys != self.plan.keys
        scaling = scaling_of(self.alone if shared else self.plan, self.price.squares, dialect)
        return [scaling.request(scaling.histogram(0 if shared else self.place, edges))]

    def release(self, tables: Sequence[Sequence[Row]]) -> bytes:
        exact = [0] * len(histogram_edges(self.blocks[self.place]))
        for place, many in tables[0]:
            exact[int(place)] = int(many) * WHOLE  # type: ignore[call-overload]
        noisy = [int(n) for n in np.atleast_1d(self.noise.release(exact))]
        return json.dumps({"counts": noisy, "sigma": self.price.deviation(1)}).encode()

    def find_norms(self, ledger: Ledger) -> NoisyNorms | None:
        stored = self.find(ledger)
        return None if stored is None else NoisyNorms.of(json.loads(stored))


@dataclass(frozen=True)
class KeyVotes(Step):
    """Selection of private keys: each unit has one vote of norm 1, shared evenly by its keys.

    Theorem: showing keys whose noisy votes reach `threshold_of_votes` has a profile of at most δ + (1 − δ)·H, H that of
        the noise [docs/theorems/contributions.md, Theorem 6]
    """

    leak: float = 0.0

    @property
    def asked(self) -> str:
        return f"a step: private keys of {self.plan.table.name}"

    @property
    def canonical(self) -> str:
        return f"keys | {replace(self.plan, measures=(), standalone=()).of_columns_read().canonical}"

    @property
    def loss(self) -> PrivacyLoss:
        return LeakyLoss(self.price.loss(), self.leak)

    def accepts(self, leak: float) -> bool:
        return leak >= self.leak * ENOUGH

    @cached_property
    def noise(self) -> IndependentNoise:
        return self.price.scaled_noise(WHOLE, 1.0)

    @cached_property
    def threshold(self) -> int:
        """In parts of 1/WHOLE of a vote."""
        return threshold_of_votes(self.noise.law(), self.leak, MOST_KEYS, WHOLE, self.price.squares)

    def requests(self, salt: int, dialect: Dialect) -> list[TableRequest]:
        scaling = scaling_of(self.plan, self.price.squares, dialect)
        return [scaling.request(scaling.votes(MOST_KEYS, salt))]

    def release(self, tables: Sequence[Sequence[Row]]) -> bytes:
        """The selected keys, in an order that reveals nothing else."""
        votes = split_keys(tables[0], len(self.plan.keys))
        if not votes:
            return json.dumps({"keys": []}).encode()
        noisy = np.atleast_1d(self.noise.release([int(many) for _, (many,) in votes]))  # type: ignore[call-overload]
        shown = [key for (key, _), many in zip(votes, noisy, strict=True) if many >= self.threshold]
        shown.sort(key=lambda key: tuple(map(sort_key, key)))
        return json.dumps({"keys": shown}, ensure_ascii=False).encode()

    @staticmethod
    def read(stored: bytes) -> tuple[Row, ...]:
        return tuple(tuple(key) for key in json.loads(stored)["keys"])


@dataclass(frozen=True)
class Steps:
    """The steps of one offer: what is stored of them, what must be bought, and the price that is left for the rest."""

    offer: Offer
    keys: KeyVotes | None  # to be bought
    norms: tuple[NormHistogram, ...]  # of each block that has a choice, and of ranks at the end
    known: tuple[NoisyNorms | None, ...]  # what is stored of these
    shown: tuple[Row, ...] | None
    rest: Price  # what is left when all steps are paid

    @staticmethod
    def of(offer: Offer, ledger: Ledger, is_paid: Callable[[Step], bool] = lambda step: False) -> "Steps":
        """Prices are split by what must be bought: KEYS_SHARE for keys, and a tenth for norms, evenly.

        What this question `is_paid` for already has its share, too: so a retry splits the price as the first try did.
        """
        rest, keys, shown = 1.0, None, None
        if offer.plan.discovered:
            share = KEYS_SHARE if offer.plan.parts else 1.0
            keys = KeyVotes(offer.plan, offer.price.part(share), offer.whole_key_delta)
            stored = keys.find(ledger)
            if stored is None or is_paid(keys):
                rest = 1 - share
            if stored is not None:
                keys, shown = None, KeyVotes.read(stored)
        plans = [(offer.plan, i) for i, block in enumerate(offer.blocks) if not is_free(block, offer.plan)]
        plans += [(RankBound.plan(offer.plan), 0)] if offer.weighs_ranks else []
        each = max(rest, NORMS_BASE) * NORMS_SHARE / max(1, len(plans))
        norms = tuple(NormHistogram(plan, offer.price.part(each), i) for plan, i in plans)
        known = tuple(step.find_norms(ledger) for step in norms)
        mine = sum(found is None or is_paid(step) for step, found in zip(norms, known, strict=True))
        left = rest - each * mine
        return Steps(offer, keys, norms, known, shown, offer.price.part(left) if left else offer.price)

    @property
    def missing(self) -> tuple[Step, ...]:
        norms = (step for step, known in zip(self.norms, self.known, strict=True) if known is None)
        return (*([self.keys] if self.keys else []), *norms)

    def after_purchase(self, ledger: Ledger) -> "Steps":
        """The steps after a purchase, whose results are known now; the split of the price stays unchanged."""
        keys, shown = self.keys, self.shown
        if keys is not None and (stored := keys.find(ledger)) is not None:
            keys, shown = None, KeyVotes.read(stored)
        return replace(self, keys=keys, shown=shown, known=tuple(step.find_norms(ledger) for step in self.norms))

    def at(self, price: Price) -> "Steps":
        """These stored results, for another price of the rest."""
        return replace(self, offer=replace(self.offer, price=price), rest=price)

    def losses(self) -> list[PrivacyLoss]:
        """All that will be charged."""
        last = [self.complete_offer().loss] if self.offer.plan.parts else []
        return [*(step.loss for step in self.missing), *last]

    @property
    def groups(self) -> int:
        """The number of groups, if it is public or released; else one."""
        plan = self.offer.plan
        return len(self.shown or ()) or 1 if plan.discovered else max(1, plan.combinations)

    def complete_offer(self) -> Offer:
        """The offer for the rest of the price, with bounds chosen from what is known; 1 where nothing is known yet."""
        offer, norms = self.offer, list(zip(self.norms, self.known, strict=True))
        means = offer.for_means
        ranks = self.choice(offer.rank_block, norms.pop()[1], True) if offer.weighs_ranks else None
        known = {step.place: found for step, found in norms}
        choices = tuple(self.choice(block, known.get(i), means) for i, block in enumerate(offer.blocks))
        return replace(
            offer, price=self.rest, leak=offer.leak - offer.whole_key_delta, choices=choices, ranks=ranks,
            shown=self.shown, whole=offer.price, whole_leak=offer.leak,
        )  # fmt: skip

    def at_best(self) -> Offer:
        """The offer with shorter bounds than any that a histogram gives: a lower bound on its errors."""
        offer = self.complete_offer()
        choices = (
            one if one.norms is not None else replace(one, bound=one.block.bound(one.block.unit / 2))
            for one in offer.choices or ()
        )
        return replace(offer, choices=tuple(choices))

    def choice(self, block: Block, norms: NoisyNorms | None, means: bool) -> Choice:
        if norms is None:
            return Choice(block, block.bound(1.0))
        price = self.rest.part(self.offer.block_share * (1 - PEOPLE))
        return Choice.of(block, norms, price, self.groups, means, cap_of(block, self.offer.plan))
