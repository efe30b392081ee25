"""Replay of questions about scaled contributions: votes, norms and weighted sums, each against what it is charged.

A question has several releases, and later ones depend on what was drawn before. So their moves are priced at several
bounds, whatever a histogram would have chosen; and where all keys are public, the whole chain is replayed as it runs.
The two histograms from which bounds of a column are found are replayed in the same way (`FoundBounds`).
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from sfumato.aggregates.price import Mu, Price, Pure
from sfumato.audit.corpus import Database, NeighbouringDatabases
from sfumato.audit.primitive_prices import NoPrice, price_numbers
from sfumato.audit.replay import Replay, Step, replay, undercharge
from sfumato.curator.norm_tail import BINS
from sfumato.curator.offer import Offer
from sfumato.curator.release import release, split_keys, table_requests
from sfumato.curator.scaling import Choice, NoisyNorms, is_free
from sfumato.curator.steps import KeyVotes, NormHistogram, Steps
from sfumato.curator.steps import Step as Purchase
from sfumato.curator.suggest_bounds import number_column, rough_range
from sfumato.curator.value_votes import NoisyCounts, ValueVotes, magnitude_histogram, position_histogram
from sfumato.ledger import Ledger
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.base import Additive
from sfumato.mechanisms.keys.threshold_selection import PREC
from sfumato.noise.balls import above
from sfumato.sql.dialects import dialect_of
from sfumato.sql.emit.norm import WHOLE
from sfumato.sql.plan import What
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question

Table = Sequence[Sequence[Any]]
Read = Callable[[list[str]], list[list[Any]]]  # statements in, tables out
BOUNDS = (1, 9, 1000)  # whole norms: none may cost more than another
DIALECT = dialect_of("duckdb")


@dataclass(frozen=True)
class OwnLedger:
    """The releases of one run so far: all that `Steps` reads of a ledger."""

    kept: dict[str, list[tuple[PrivacyLoss, bytes]]] = field(default_factory=dict)

    def answers(self, question: str) -> list[tuple[PrivacyLoss, bytes]]:
        return self.kept.get(question, [])


def release_all(offer: Offer, read: Read, salt: int) -> bytes:
    """All steps of a question and its answer, with fresh noise, as the curator makes them."""
    own = OwnLedger()
    ledger = cast(Ledger, own)
    while missing := Steps.of(offer, ledger).missing:
        step = missing[0]
        tables = read([one.direct for one in step.requests(salt, DIALECT)])
        own.kept.setdefault(step.canonical, []).append((step.loss, step.release(tables)))
    complete = Steps.of(offer, ledger, lambda step: step.canonical in own.kept).complete_offer()
    return release(complete, read([one.direct for one in table_requests(complete, salt, DIALECT)]))


def replay_scaled(offer: Offer, whole: Read, without: Read, salt: int) -> Replay:
    """How far the unit in which the data differ moves each release of a question, and the loss of that move."""
    moves: list[Step] = []
    for part in (priced_steps, priced_sums):
        try:
            for claim, found, problems in part(offer, whole, without, salt):
                moves += found
                if problems := problems or undercharge([move.price for move in found], claim):
                    return Replay(tuple(moves), tuple(problems), offer.loss)
        except NoPrice as problem:
            return Replay(tuple(moves), (str(problem),), offer.loss)
        except Exception as problem:
            words = f"a statement raises {type(problem).__name__}, which an analyst may see"
            return Replay(tuple(moves), (words,), offer.loss)
    result = Replay(tuple(moves), (), offer.loss)
    if offer.plan.discovered or offer.plan.standalone:
        return result
    sides = (whole, without)
    played = replay(lambda side: release_all(offer, sides[cast(int, side)], salt), 0, 1, offer.loss)
    return played if played.violated else result


Priced = tuple[PrivacyLoss, list[Step], list[str]]  # what is charged, what moved, and what is wrong


def priced_steps(offer: Offer, whole: Read, without: Read, salt: int) -> list[Priced]:
    """Votes for private keys, and histograms of norms."""
    found: list[Priced] = []
    for step in Steps.of(offer, cast(Ledger, OwnLedger())).missing:
        sql = [one.direct for one in step.requests(salt, DIALECT)]
        tables = whole(sql)[0], without(sql)[0]
        found.append((step.loss, *priced_step(step, *tables)))
    return found


def priced_step(step: Purchase, one: Table, other: Table) -> tuple[list[Step], list[str]]:
    if isinstance(step, KeyVotes):
        return priced_votes(step, one, other)
    assert isinstance(step, NormHistogram)
    bins = [{int(place): int(many) for place, many in table} for table in (one, other)]
    places = sorted(bins[0].keys() | bins[1].keys())
    apart = [abs(bins[0].get(place, 0) - bins[1].get(place, 0)) for place in places]
    if sum(apart) > 1:
        return [], [f"one unit moved {sum(apart)} units of a histogram of norms; each is in one bin"]
    exact = [[WHOLE * table.get(place, 0) for place in places] for table in bins]
    return [Step(repr(step.noise), *price_numbers(step.noise, "release", *exact))], []


def priced_votes(step: KeyVotes, one: Table, other: Table) -> tuple[list[Step], list[str]]:
    """Keys that others have, too, by their votes; those of one unit alone by the chance that one of them is shown."""
    width = len(step.plan.keys)
    votes = [{repr(key): int(rest[0]) for key, rest in split_keys(list(table), width)} for table in (one, other)]  # type: ignore[arg-type,call-overload]
    shared = sorted(votes[0].keys() & votes[1].keys())
    alone = [votes[0].get(key, 0) + votes[1].get(key, 0) for key in votes[0].keys() ^ votes[1].keys()]
    leak = -math.expm1(math.fsum(math.log1p(-chance_shown(step, many)) for many in alone))
    if leak > step.leak * (1 + 1e-9):
        return [], [f"a key of one unit alone is shown with a chance of {leak:.3g}; the claim is {step.leak:.3g}"]
    before, after = ([found[key] for key in shared] for found in votes)
    moved, price = price_numbers(step.noise, "release", before, after) if shared else ("did not move", None)
    return ([Step(repr(step.noise), moved, price)] if price is not None else []), []


def chance_shown(step: KeyVotes, votes: int) -> float:
    """P(votes + noise ≥ threshold), or a half where that is certain to be too much."""
    if votes >= step.threshold:
        return 0.5
    return float(above(step.noise.law().beyond(step.threshold - votes - 1, PREC) / 2))


def priced_sums(offer: Offer, whole: Read, without: Read, salt: int) -> list[Priced]:
    """Weighted sums, and the number of units that count in part, at each of several bounds."""
    found: list[Priced] = []
    for bound in BOUNDS:
        complete = at_bound(offer, bound)
        sql = [one.direct for one in table_requests(complete, salt, DIALECT)]
        if not complete.choices or not any(m.what is not What.DISTINCT for m in complete.plan.measures):
            continue
        tables = whole(sql), without(sql)
        found.append((complete.loss, *priced_tables(complete, *tables)))
    return found


def at_bound(offer: Offer, bound: int) -> Offer:
    """The offer for the rest of its price, with this bound in every block that has a choice."""
    complete = Steps.of(offer, cast(Ledger, OwnLedger())).complete_offer()
    nobody = NoisyNorms((0,) * BINS, 1.0)
    choices = tuple(
        one if is_free(one.block, offer.plan) else Choice(one.block, bound, nobody) for one in complete.choices or ()
    )
    return replace(complete, choices=choices, shown=())


def priced_tables(offer: Offer, one: list[list[Any]], other: list[list[Any]]) -> tuple[list[Step], list[str]]:
    """How far each part moved over all groups: as the release reads the tables, whichever keys are shown."""
    places = [j for j, m in enumerate(offer.plan.measures) if m.what is not What.DISTINCT]
    sums = [sums_by_key(offer, tables[0], places) for tables in (one, other)]
    keys = sorted(sums[0].keys() | sums[1].keys())
    zeros = [0] * len(offer.plan.measures)
    parts = [[offer.joint.parts_of(table.get(key, zeros)) for key in keys] for table in sums]
    steps: list[Step] = []
    for j in places:
        before, after = ([row[j] for row in table] for table in parts)
        noise = offer.noise[j]
        if before == after:
            continue
        if not isinstance(noise, Additive):
            return [], [f"{offer.plan.measures[j]!r} moved, and has no noise"]
        steps.append(Step(repr(noise), *price_numbers(noise, "release", before, after)))
    if offer.people_noise is not None:
        people = [[int(many) for many in tables[1][0]] for tables in (one, other)]
        if people[0] != people[1]:
            noise = offer.people_noise
            steps.append(Step(repr(noise), *price_numbers(noise, "release", *people)))
    return steps, []


def sums_by_key(offer: Offer, table: list[Any], places: Sequence[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for key, rest in split_keys(table, len(offer.plan.keys)):
        row = [0] * len(offer.plan.measures)
        for j, value in zip(places, rest, strict=True):
            row[j] = int(value or 0)  # type: ignore[call-overload]
        found[repr(key)] = row
    return found


# ---- found bounds ---------------------------------------------------------------------------------------------------


RANGES = ((0.0, 1.0), (-64.0, 2.0**50))  # of places: none may cost more than another


@dataclass(frozen=True)
class FoundBounds:
    """The histograms by which bounds of a column are found where contributions are scaled: a mechanism on databases.

    The second histogram depends on the first one, so it is priced at several ranges, whichever would have been chosen;
    then both are replayed one after the other, as they run.

    Theorem: each unit has one vote of norm 1 in either histogram, and each has half of the price, so both cost the
        price together, whichever range the first one leads to [docs/theorems/contributions.md, Theorems 1 and 2]
    """

    column: str
    policy: Policy = field(repr=False)
    epsilon: float = 1.0
    delta: float = 1e-6

    @property
    def price(self) -> Price:
        currency: type[Price] = Pure if self.policy.pure else Mu
        return currency.for_epsilon(self.epsilon, self.delta, 0.0)

    def loss(self) -> PrivacyLoss:
        """The loss of both histograms."""
        return self.price.loss()

    def sizes(self) -> Question:
        return magnitude_histogram(*number_column(self.column, self.policy))

    def places(self, low: float, high: float) -> Question:
        return position_histogram(*number_column(self.column, self.policy), low, high)

    def votes(self, question: Question) -> ValueVotes:
        return ValueVotes(question.plan, self.price.part(0.5))

    def read(self, database: Database, step: ValueVotes) -> list[list[Any]]:
        return database.run([one.direct for one in step.requests(0, DIALECT)])

    def release(self, database: Database) -> list[float]:
        """The noisy votes of sizes, and those of places between the ends that they show."""
        sizes, first = self.sizes(), self.votes(self.sizes())
        counts = NoisyCounts.read(sizes, first.price, first.release(self.read(database, first)))
        second = self.votes(self.places(*rough_range(counts.counts, counts.sigma)))
        return [*counts.counts, *json.loads(second.release(self.read(database, second)))["votes"]]

    def many(self, database: Database, count: int) -> list[object]:
        return [self.release(database) for _ in range(count)]

    def replay(self, pair: NeighbouringDatabases) -> Replay:
        """How far the unit in which the databases differ moves each histogram, and the loss of that move."""
        moves: list[Step] = []
        try:
            for question in (self.sizes(), *(self.places(*ends) for ends in RANGES)):
                step = self.votes(question)
                found = self.price_histogram(step, *(self.read(one, step)[0] for one in (pair.whole, pair.without)))
                moves += found
                if problems := undercharge([move.price for move in found], step.loss):
                    return Replay(tuple(moves), tuple(problems), self.loss())
        except NoPrice as problem:
            return Replay(tuple(moves), (str(problem),), self.loss())
        except Exception as problem:
            words = f"a statement raises {type(problem).__name__}, which an analyst may see"
            return Replay(tuple(moves), (words,), self.loss())
        sides = (pair.whole, pair.without)
        played = replay(lambda side: self.release(sides[side]), 0, 1, self.loss())
        return played if played.violated else Replay(tuple(moves), (), self.loss())

    def price_histogram(self, step: ValueVotes, one: list[Any], other: list[Any]) -> list[Step]:
        """All bins are public, so all are compared."""
        tables = [{key: int(votes or 0) for key, (votes,) in split_keys(rows, 1)} for rows in (one, other)]  # type: ignore[call-overload]
        before, after = ([table.get(key, 0) for key in step.plan.public or ()] for table in tables)
        return [Step(repr(step.noise), *price_numbers(step.noise, "release", before, after))] if before != after else []
