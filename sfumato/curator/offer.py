"""The price of a question, and the noise that it buys: known before any data are read."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property

from sfumato.aggregates.linear import Linear, Reader
from sfumato.aggregates.mean import MeanReader, Ratio, RatioColumn, asks_ratios_only
from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.noisy_sums import CONFIDENCE, Missing, NoisySums
from sfumato.aggregates.price import LESS, IndependentNoise, Mu, Noise, Price
from sfumato.aggregates.standalone import Standalone, StandaloneRelease
from sfumato.curator.relative_counts import LAYOUT, RelativeCount, relative_count, require_contract
from sfumato.curator.scaling import PEOPLE, Choice, blocks_of, summed_measures
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.additive.joint_laplace import OneOf
from sfumato.mechanisms.keys.threshold_selection import threshold
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.emit.norm import WHOLE, Block, RankBound
from sfumato.sql.expressions import Call
from sfumato.sql.plan import Plan, What
from sfumato.sql.question import Question
from sfumato.wording import short_number

REMEMBERED_PRICES = 64  # of one question


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
    draw: int = 0  # the round of a refinement, so that no stored answer is taken for fresh noise
    within: float | None = None  # a relative error, for one count by group
    choices: tuple[Choice, ...] | None = None  # the bound of each block, once chosen, where contributions are scaled
    ranks: Choice | None = None  # the bound of the weights by which rows count for ranks
    shown: tuple[tuple[object, ...], ...] | None = None  # private keys, once selected, where contributions are scaled
    whole: "Price | None" = None  # the price with that of the steps before, where contributions are scaled
    whole_leak: float = 0.0
    promised: float | None = None  # the error that its price follows from
    known: "dict[Hashable, Offer]" = field(default_factory=dict, repr=False)  # offers of the same question

    def at_price(self, price: Price) -> "Offer":
        """This offer at another price; each price of a question is worked out, and its answer laid out, once."""
        found = self if price == self.price else replace(self, price=price)
        for old in list(self.known)[:-REMEMBERED_PRICES]:
            self.known.pop(old, None)
        return self.known.setdefault((price, self.leak, self.draw, self.within), found)

    @cached_property
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
    def scaled(self) -> bool:
        return self.plan.table.scaled

    @cached_property
    def incomplete(self) -> bool:
        """Are bounds still to be chosen, and private keys to be selected? Then the price is for these, too."""
        return self.scaled and self.choices is None

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Measures that are scaled together."""
        return blocks_of(self.plan, self.price.squares) if self.scaled else ()

    @cached_property
    def block_share(self) -> float:
        """Blocks of scaled measures, counts of different values and standalone aggregates have the same share each."""
        return 1 / max(1, len(self.blocks) + self.joint.distinct + len(self.plan.standalone))

    @cached_property
    def paid_loss(self) -> PrivacyLoss:
        """The loss of the question together with the steps that it needed."""
        if self.whole is None:
            return self.loss
        return LeakyLoss(self.whole.loss(), self.whole_leak) if self.whole_leak else self.whole.loss()

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of each part, then of each standalone aggregate, in one group; 0 for a part that is constant."""
        alone = len(self.plan.standalone)
        if self.scaled:
            return (0.0,) * len(self.plan.measures) + (self.block_share / self.plan.groups,) * alone
        shares = self.price.shares([*self.joint.importances, *[1.0] * alone])
        return tuple(share / self.plan.groups for share in shares)

    @cached_property
    def noise(self) -> tuple[Noise | None, ...]:
        """The noise of each part, in units of that part."""
        try:
            if self.scaled:
                return self.scaled_noise
            return self.price.noises(self.joint, self.shares[: len(self.plan.measures)])
        except InvalidParameter as problem:  # depends on text, policy and price only
            raise QueryRefused(
                "the noise that this price buys cannot be drawn.\n"
                f"  found:  for all that one unit may add, {str(problem).splitlines()[0]}\n"
                "  do:     ask with a larger ε, or for fewer groups, or CLAMP to a range that is not so wide"
            ) from problem

    @property
    def scaled_noise(self) -> tuple[Noise | None, ...]:
        """The noise of parts that are whole multiples of 1/WHOLE; counts of different values have their own noise."""
        found: list[Noise | None] = [None] * len(self.plan.measures)
        for choice in self.choices or ():
            price = self.price.part(self.block_share * (1 - PEOPLE))
            for one in choice.block.coordinates:
                index = self.plan.measures.index(summed_measures(self.plan)[one.measure])
                found[index] = price.scaled_noise(WHOLE * one.size, choice.length)
        for j, measure in enumerate(self.plan.measures):
            if measure.what is What.DISTINCT:
                found[j] = self.price.part(self.block_share / self.plan.groups).noise(self.joint.parts[j].size)
        return tuple(found)

    @cached_property
    def people_noise(self) -> IndependentNoise | None:
        """The noise of the number of units that count in part; None if no bound was chosen."""
        chosen = any(choice.norms is not None for choice in self.choices or ())
        return self.price.part(self.block_share * PEOPLE).noise(1) if chosen else None

    @cached_property
    def counts_near(self) -> bool:
        """Are there two numbers of such units, near the bound and beyond the end of its bin? A unit is in one of them,
        so both together are moved by one."""
        chosen = next((choice for choice in self.choices or () if choice.norms is not None), None)
        return chosen is not None and chosen.far > chosen.bound

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
        if not self.plan.standalone:
            return ()
        aggregates = standalone_of(self.plan)
        slacks = [one.needs_slack(type(self.price)) for one in aggregates]
        spare = self.leak - self.key_delta
        slack = spare / (sum(slacks) * self.plan.groups) * LESS if any(slacks) else 0.0
        found = []
        for one, share, needs in zip(aggregates, self.shares[len(self.plan.measures) :], slacks, strict=True):
            if self.scaled and one.weighted:
                bound = RankBound(self.ranks.bound if self.ranks is not None else 1, self.price.squares)
                found.append(one.weighted_release(self.plan, self.price.part(self.block_share), bound))
            else:
                found.append(one.release(self.plan, self.price.part(share), slack if needs else 0.0))
        return tuple(found)

    @cached_property
    def key_delta(self) -> float:
        """The part of the leak that pays for private keys: all of it, unless aggregates need some. Where contributions
        are scaled, keys have been paid for before."""
        if not self.plan.discovered or self.scaled:
            return 0.0
        both = any(one.needs_slack(type(self.price)) for one in standalone_of(self.plan))
        return self.leak / 2 if both else self.leak

    @property
    def whole_key_delta(self) -> float:
        """The part of the leak that pays for private keys of scaled contributions, before anything else is bought."""
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
        """The threshold of partition selection: a private key is shown if its noisy unit count is at least this."""
        noise = self.noise[self.unit_count_index] if self.key_delta else None
        return threshold(noise.law(), self.key_delta, self.plan.groups) if noise is not None else None

    @cached_property
    def ratio_columns(self) -> dict[int, RatioColumn]:
        """The columns that are ratios with an interval, by their place."""
        found: dict[int, RatioColumn] = {}
        if self.relative is not None or self.incomplete:
            return found
        for place, (_, expression) in enumerate(self.question.columns):
            ratio = Ratio.of(self.question, expression) if isinstance(expression, Call) else None
            indexes = ratio.sum_indexes(self.question, self.joint) if ratio is not None else None
            if ratio is not None and indexes is not None:
                found[place] = RatioColumn(ratio, MeanReader(self.noisy_sums(indexes)))
        return found

    @cached_property
    def for_means(self) -> bool:
        """Are contributions scaled to a norm that is best for means? Counts of such an answer leave out more."""
        return self.scaled and asks_ratios_only(self.question)

    @cached_property
    def served_by(self) -> tuple[str, ...]:
        """The canonical texts of answers that serve this question: means are read from answers about counts too."""
        return (self.canonical, self.canonical.replace(", for means", "")) if self.for_means else (self.canonical,)

    @cached_property
    def canonical(self) -> str:
        """The key of stored answers. It names the layout of the noise, so no answer is read with another layout."""
        if self.scaled:
            marks = sorted({one.weighted_as for one in standalone_of(self.plan) if one.weighted and one.weighted_as})
            bound = ", ".join([f"weights of {WHOLE}", *marks, *(["for means"] if self.for_means else [])])
            return f"{self.plan.canonical} | {bound}" + (f" | round {self.draw}" if self.draw else "")
        layout = "together" if any(isinstance(noise, OneOf) for noise in self.noise) else "in parts"
        if self.within is not None:
            layout = f"within {self.within!r}, layout {LAYOUT}"
        return f"{self.plan.canonical} | {layout}" + (f" | round {self.draw}" if self.draw else "")

    @property
    def weighs_ranks(self) -> bool:
        """Is there an aggregate for whose ranks rows count with the weights of their units?"""
        return self.scaled and any(one.weighted for one in standalone_of(self.plan))

    @property
    def rank_block(self) -> Block:
        return RankBound(1, self.price.squares).block

    @cached_property
    def readers(self) -> dict[Aggregate, Reader]:
        """The reader of each aggregate that is made of sums."""
        if self.relative is not None:
            return dict.fromkeys(self.question.aggregates, self.relative.reader)
        if self.scaled and self.choices is None:
            return {}
        return {
            one: one.reader(self.noisy_sums(indexes))
            for one, indexes in self.question.sum_indexes.items()
            if isinstance(one, Linear)
        }

    def noisy_sums(self, indexes: tuple[int, ...], confidence: float = CONFIDENCE) -> NoisySums:
        """The sums of an aggregate with their left-out bound; if there is one, noise may miss half of 5 %."""
        missing = self.missing_of(indexes) if self.choices else None
        if missing is not None:
            confidence = (1 + confidence) / 2
        return NoisySums(self.joint, indexes, self.noise, confidence, missing=missing)

    def missing_of(self, indexes: tuple[int, ...]) -> Missing | None:
        """The left-out bound of the block of these measures and of their parents."""
        summed, parents = summed_measures(self.plan), [self.joint.parts[j].parent for j in indexes]
        seen = [self.plan.measures[j] for j in (*indexes, *parents) if j is not None]
        places = {summed.index(one) for one in seen if one in summed}
        for choice in self.choices or ():
            if places & {one.measure for one in choice.block.coordinates}:
                return choice.missing
        return None

    def standalone_release(self, aggregate: Aggregate) -> StandaloneRelease:
        return self.standalone[self.plan.standalone.index(aggregate)]

    def error(self, aggregate: Aggregate) -> float | None:
        """± at 95 %; None where it depends on private numbers."""
        return self.readers[aggregate].error if aggregate in self.readers else None

    def promise(self, aggregate: Aggregate) -> str:
        """The accuracy of its column, in words."""
        reader = self.readers.get(aggregate)
        if reader is None and self.scaled and self.choices is None:
            return unbounded_promise(self.price, aggregate)
        return reader.promise() if reader is not None else self.standalone_release(aggregate).promise()

    def prepare(self) -> None:
        """Compute everything that follows from public facts, so that it fails before the charge if it fails."""
        _ = self.noise, self.threshold
        if self.relative is not None:
            _ = self.relative.contract.mechanism.sampler
        for one in self.standalone:
            one.prepare()
        _ = self.people_noise
        for reader in self.readers.values():
            reader.read_all([[0] * len(self.joint.parts)])

    def loss_at(self, epsilon: float, delta: float) -> PrivacyLoss:
        """The loss of the same question at another ε."""
        return replace(self, price=type(self.price).for_epsilon(epsilon, delta, self.leak)).loss


def unbounded_promise(price: Price, aggregate: Aggregate) -> str:
    """The promise before the norms of contributions are known."""
    if not aggregate.is_count:
        return "± depends on how much people contribute, which a tenth of the price finds out"
    errors = [short_number(2.24 * price.deviation(k)) for k in (1, 10, 100)]
    return "± {} if people have 1 row each, ± {} if up to 10, ± {} if up to 100; a tenth of the price finds out".format(
        *errors
    )


def standalone_of(plan: Plan) -> tuple[Standalone, ...]:
    """The standalone aggregates of a plan, with the type that this room knows: plans know a smaller interface."""
    return tuple(one for one in plan.standalone if isinstance(one, Standalone))


def offer_for_epsilon(question: Question, epsilon: float, delta: float, currency: type[Price] = Mu) -> Offer:
    """The offer that (ε, δ) buys; a part of δ is for private keys."""
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
        "TRIANGLES, and MODE of values that the policy does not list, cannot be released under pure ε.\n"
        "  found:  a budget with delta = 0\n  do:     give the budget a delta, or list the values (keys = […])"
    )
