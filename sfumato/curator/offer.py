"""The price of a question, and the noise that it buys: known before any data are read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.aggregates.linear import Linear, NoisySums, Reader
from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.price import LESS, Mu, Noise, Price
from sfumato.aggregates.standalone import Standalone, StandaloneRelease
from sfumato.curator.relative_counts import LAYOUT, RelativeCount, relative_count, require_contract
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.additive.joint_laplace import OneOf
from sfumato.mechanisms.keys.threshold_selection import threshold
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.plan import Plan, What
from sfumato.sql.question import Question

CLOSE = 1e-4  # how near the least budget is found


@dataclass(frozen=True, eq=False)
class Offer:
    """Noise on all parts of the measures, and a mechanism for each standalone aggregate, which share a price; and a
    leak for keys that are private and aggregates that need one.

    Theorem: shares wⱼ of a price that sum to 1, wⱼ/L for part j in each of the L groups that a unit moves, with noise
        made for the part's size, cost the price together [`Price.part`: μ² and ε add up]
    Proof. A unit changes at most L groups, and in each of them every part by at most its size (`Part`). Joint noise is
    made for all sizes at once, and has the shares of its parts together (`JointLaplace`). ∎
    """

    question: Question
    price: Price
    leak: float = 0.0  # for keys that must be found in the data, and for aggregates that need a slack
    draw: int = 0  # fresh noise has a number of its own: a stored answer is never taken for it
    within: float | None = None  # a relative error, for one count by group

    @property
    def plan(self) -> Plan:
        return self.question.plan

    @cached_property
    def joint(self) -> NoiseBasis:
        return NoiseBasis.of(self.plan)

    @cached_property
    def loss(self) -> PrivacyLoss:
        inner = self.price.loss()
        return LeakyLoss(inner, self.leak) if self.leak else inner

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of each part, then of each standalone aggregate, in one group; 0 for a part that nobody moves."""
        alone = len(self.plan.standalone)
        shares = self.price.shares([*self.joint.importances, *[1.0] * alone])
        return tuple(share / self.plan.groups for share in shares)

    @cached_property
    def noise(self) -> tuple[Noise | None, ...]:
        """Of each part, in its own steps."""
        try:
            return self.price.noises(self.joint, self.shares[: len(self.plan.measures)])
        except InvalidParameter as problem:  # of text, policy and price alone
            raise QueryRefused(
                "the noise that this price buys cannot be drawn.\n"
                f"  found:  for all that one unit may add, {str(problem).splitlines()[0]}\n"
                "  do:     ask with a larger ε, or for fewer groups, or CLAMP to a range that is not so wide"
            ) from problem

    @cached_property
    def relative(self) -> RelativeCount | None:
        """The mechanism of a count by group whose error is relative, in one group."""
        piece = self.price.part(self.shares[0]) if self.within is not None else None
        if self.within is None or not isinstance(piece, Mu):
            return None
        return relative_count(self.within, piece.mu, self.joint.parts[0].size)

    @cached_property
    def standalone(self) -> tuple[StandaloneRelease, ...]:
        """The mechanism of each standalone aggregate, in one group; those that need a slack share it evenly."""
        aggregates = standalone_of(self.plan)
        slacks = [one.needs_slack(type(self.price)) for one in aggregates]
        spare = self.leak - self.key_delta
        slack = spare / (sum(slacks) * self.plan.groups) * LESS if any(slacks) else 0.0
        prices = map(self.price.part, self.shares[len(self.plan.measures) :])
        triples = zip(aggregates, prices, slacks, strict=True)
        return tuple(one.release(self.plan, price, slack if needs else 0.0) for one, price, needs in triples)

    @cached_property
    def key_delta(self) -> float:
        """The part of the leak that pays for private keys: all of it, unless aggregates need some."""
        if not self.plan.discovered:
            return 0.0
        both = any(one.needs_slack(type(self.price)) for one in standalone_of(self.plan))
        return self.leak / 2 if both else self.leak

    @cached_property
    def unit_count_index(self) -> int:
        """Index of the unit count, which is released without a parent and so is its own part."""
        return [m.what for m in self.plan.measures].index(What.UNITS)

    @cached_property
    def threshold(self) -> int | None:
        """The noisy number of units from which on a private key is shown."""
        noise = self.noise[self.unit_count_index] if self.key_delta else None
        return threshold(noise.law(), self.key_delta, self.plan.groups) if noise is not None else None

    @cached_property
    def canonical(self) -> str:
        """What answers are stored under. How noise is laid out is part of it: none must be read with another layout."""
        layout = "together" if any(isinstance(noise, OneOf) for noise in self.noise) else "in parts"
        if self.within is not None:
            layout = f"within {self.within!r}, layout {LAYOUT}"
        return f"{self.plan.canonical} | {layout}" + (f" | round {self.draw}" if self.draw else "")

    def stored_offer(self, loss: PrivacyLoss) -> "Offer | None":
        """The offer of the same plan that was charged as this loss, if it is at least as exact.

        An answer with less noise serves who asked for more: it was released, so showing it tells nothing new.
        """
        inner, leak = (loss.inner, loss.failure) if isinstance(loss, LeakyLoss) else (loss, 0.0)
        price = self.price.of(inner)
        if price is None or price.amount < self.price.amount or leak != self.leak:
            return None
        return self.at_price.setdefault(price, replace(self, price=price))

    @cached_property
    def at_price(self) -> dict[Price, "Offer"]:
        """Offers of the same plan at other prices: each is worked out once."""
        return {self.price: self}

    @cached_property
    def readers(self) -> dict[Aggregate, Reader]:
        """How each aggregate that is made of sums is read."""
        if self.relative is not None:
            return dict.fromkeys(self.question.aggregates, self.relative.reader)
        return {
            one: one.reader(NoisySums(self.joint, indexes, self.noise))
            for one, indexes in self.question.sum_indexes.items()
            if isinstance(one, Linear)
        }

    def standalone_release(self, aggregate: Aggregate) -> StandaloneRelease:
        return self.standalone[self.plan.standalone.index(aggregate)]

    def error(self, aggregate: Aggregate) -> float | None:
        """± at 95 %; None where it depends on private numbers."""
        return self.readers[aggregate].error if aggregate in self.readers else None

    def promise(self, aggregate: Aggregate) -> str:
        """How good its column will be."""
        reader = self.readers.get(aggregate)
        return reader.promise() if reader is not None else self.standalone_release(aggregate).promise()

    def prepare(self) -> None:
        """Work out all that follows from public facts, so that what could fail in it fails before the charge."""
        _ = self.noise, self.threshold
        if self.relative is not None:
            _ = self.relative.contract.mechanism.sampler
        for release in self.standalone:
            release.prepare()
        for reader in self.readers.values():
            reader.read([0] * len(self.joint.parts))

    def add_noise(self, exact: Sequence[list[int]]) -> list[list[int]]:
        """Noise on every part of every group: the only place where it is added."""
        columns = self.joint.part_columns(exact)
        if self.relative is not None:
            return [[step] for step in self.relative.release(columns[0]).tolist()]
        together = {j: noise.joint for j, noise in enumerate(self.noise) if isinstance(noise, OneOf)}
        for joint in set(together.values()):  # one, or none
            noisy = joint.release(np.stack([read_numbers(columns[j]) for j in together], axis=-1))
            for j, column in zip(together, noisy.T.tolist(), strict=True):
                columns[j] = column
        for j, noise in enumerate(self.noise):
            if noise is not None and not isinstance(noise, OneOf):  # none only where a part is 0, whatever the data
                columns[j] = np.atleast_1d(noise.release(columns[j])).tolist()
        return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in exact]


def standalone_of(plan: Plan) -> tuple[Standalone, ...]:
    """The standalone aggregates of a plan; plans know them by less."""
    return tuple(one for one in plan.standalone if isinstance(one, Standalone))


def offer_for_epsilon(question: Question, epsilon: float, delta: float, currency: type[Price] = Mu) -> Offer:
    """What (ε, δ) buys; a part of δ is for keys that are private."""
    leak = required_leak(question, delta, currency)
    return Offer(question, currency.for_epsilon(epsilon, delta, leak), leak)


def offer_for_relative_error(
    question: Question, epsilon: float, delta: float, goal: float, currency: type[Price]
) -> Offer:
    """One count by group, within a share of itself above a size that (ε, δ) buys."""
    require_contract(question, goal, currency)
    return Offer(question, currency.for_epsilon(epsilon, delta, 0.0), within=goal)


def required_leak(question: Question, delta: float, currency: type[Price]) -> float:
    """The δ of private keys and of statistics that need a slack, or 0."""
    slack = any(one.needs_slack(currency) for one in standalone_of(question.plan))
    if not question.plan.discovered and not slack:
        return 0.0
    if leak := currency.leak(delta):
        return leak
    if question.plan.discovered:
        raise QueryRefused(
            "groups whose names are private cannot be shown under pure ε.\n"
            "  found:  a budget with delta = 0: one person's own key must never come out, so none may\n"
            "  do:     list the keys in the policy (keys = […]), or give the budget a delta"
        )
    raise QueryRefused(
        "TRIANGLES, and MODE of values that the policy does not list, cannot be told under pure ε.\n"
        "  found:  a budget with delta = 0\n  do:     give the budget a delta, or list the values (keys = […])"
    )


def offer_for_error(question: Question, error: float, delta: float, most: float, currency: type[Price]) -> Offer:
    """The least price with which every count and sum is within `error` at 95 %; at most what `most` (ε) buys."""
    leak = required_leak(question, delta, currency)
    whole = currency.for_epsilon(most, delta, leak)
    if any(Offer(question, whole, leak).error(one) is None for one in question.aggregates):
        raise QueryRefused(
            "an absolute error can be promised for counts and sums only.\n"
            "  found:  an aggregate whose error depends on how many values there are\n"
            "  do:     ask by epsilon=, and look at the interval of the answer"
        )

    def worst(offer: Offer) -> float:
        return max(offer.error(one) or 0.0 for one in question.aggregates)

    if (found := worst(Offer(question, whole, leak))) > error:
        raise QueryRefused(
            f"± {error:g} would cost more than the whole budget.\n  found:  ± {found:.3g} at ε = {most:g}\n"
            "  do:     ask for a larger error, or for fewer aggregates or groups"
        )
    high = least_share(lambda share: worst(Offer(question, whole.part(share), leak)), found, error)
    return Offer(question, whole.part(high) if high < 1 else whole, leak)


def least_share(worst: Callable[[float], float], found: float, error: float) -> float:
    """The least share, nearly, whose error is small enough; that of the whole is `found`.

    Errors are nearly a power of the share, so the next one to try follows from the last two, a little to the side where
    the bound is farther off; every third time, and where that makes no sense, the middle is tried.
    """
    low, high, share, power, turn = 1e-12, 1.0, 1.0, 1.0, 0
    while high / low > 1 + CLOSE:
        aim = share * (found / error) ** power
        aim *= 1 / (1 + CLOSE / 3) if share == high else 1 + CLOSE / 3
        turn += 1
        if turn % 3 == 0 or not low < aim < high:
            aim = math.sqrt(low * high)
        now = worst(aim)
        if 0 < now != found > 0:
            power = min(max(math.log(aim / share) / math.log(found / now), 0.5), 3.0)
        share, found = aim, now
        low, high = (low, aim) if now <= error else (aim, high)
    return high
