"""Replay of found bounds: the two histograms of a column's values, each against what it is charged.

The second histogram depends on what the first one showed, so it is priced at several ranges, whatever would have been
chosen; then both are replayed one after the other, as they run.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from sfumato.aggregates.price import Mu, Price, Pure
from sfumato.audit.corpus import Database, NeighbouringDatabases
from sfumato.audit.primitive_prices import NoPrice, price_numbers
from sfumato.audit.replay import Replay, Step, replay, undercharge
from sfumato.curator.release import split_keys
from sfumato.curator.suggest_bounds import number_column, rough_range
from sfumato.curator.value_votes import NoisyCounts, ValueVotes, magnitude_histogram, position_histogram
from sfumato.loss.base import PrivacyLoss
from sfumato.sql.dialects import dialect_of
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question

RANGES = ((0.0, 1.0), (-64.0, 2.0**50))  # of places: none may cost more than another
DIALECT = dialect_of("duckdb")


@dataclass(frozen=True)
class FoundBounds:
    """The histograms by which bounds of a column are found where contributions are scaled: a mechanism on databases.

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
        """Of both histograms."""
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
                found = self.priced(step, *(self.read(one, step)[0] for one in (pair.whole, pair.without)))
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

    def priced(self, step: ValueVotes, one: list[Any], other: list[Any]) -> list[Step]:
        """All bins are public, so all are compared."""
        tables = [{key: int(votes or 0) for key, (votes,) in split_keys(rows, 1)} for rows in (one, other)]  # type: ignore[call-overload]
        before, after = ([table.get(key, 0) for key in step.plan.public or ()] for table in tables)
        return [Step(repr(step.noise), *price_numbers(step.noise, "release", before, after))] if before != after else []
