"""Replay of SQL questions: how far one unit moves the exact tables of a plan, against the noise that was priced.

The curator's noise depends on nothing but these tables. So for two databases that differ in one unit: no statement may
raise, at most as many groups may differ as the plan says, and the loss of the noise on each part, at the distance by
which it moved, must not exceed the loss of the offer. If all keys are public, the release is replayed as well.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato.aggregates.price import Mu, Price, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.audit.corpus import Database, NeighbouringDatabases
from sfumato.audit.primitive_prices import SLACK, price_counts, price_rows
from sfumato.audit.replay import Replay, Step, replay, undercharge
from sfumato.audit.scaled_replay import Read, release_all, replay_scaled
from sfumato.curator.offer import Offer, offer_for_epsilon, offer_for_relative_error
from sfumato.curator.relative_counts import is_grouped_count
from sfumato.curator.release import keys_and_integers, release, statements
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.joint_laplace import OneOf
from sfumato.sensitivity import Sensitivity
from sfumato.sql.dp_syntax import parse_dp_syntax
from sfumato.sql.plan import What
from sfumato.sql.policy import Policy

SALT = 12345


@dataclass(frozen=True)
class SqlQuestion:
    """A question as the curator answers it, without a ledger: a mechanism on databases."""

    sql: str
    policy: Policy = field(repr=False)
    epsilon: float = 1.0
    delta: float = 1e-6

    @cached_property
    def offer(self) -> Offer:
        """Plan, price and noise; reads no data."""
        currency: type[Price] = Pure if self.policy.pure else Mu
        asked = parse_dp_syntax(self.sql)
        question = parse_question(asked.text, self.policy, bounds=asked.bounds)
        if asked.relative_error is not None and is_grouped_count(question):
            return offer_for_relative_error(question, self.epsilon, self.delta, asked.relative_error, currency)
        return offer_for_epsilon(question, self.epsilon, self.delta, currency)

    def exact(self, database: Database) -> list[list[Any]]:
        """The exact tables, the input of the noise."""
        return database.run(statements(self.offer, SALT, "duckdb"))

    def release(self, database: Database) -> object:
        """Keys and noisy parts, as the ledger stores them."""
        return self.many(database, 1)[0]

    def many(self, database: Database, count: int) -> list[object]:
        """`count` releases with fresh noise; the data are read once."""
        if self.offer.incomplete:
            read = cached_read(database)
            return [json.loads(release_all(self.offer, read, SALT)) for _ in range(count)]
        exact = self.exact(database)
        return [json.loads(release(self.offer, exact)) for _ in range(count)]

    def loss(self) -> PrivacyLoss:
        """The loss that the ledger is charged."""
        return self.offer.loss

    def replay(self, pair: NeighbouringDatabases) -> Replay:
        """How far the unit in which the databases differ moves the tables, and the loss of that move."""
        if self.offer.incomplete:
            return replay_scaled(self.offer, cached_read(pair.whole), cached_read(pair.without), SALT)
        try:
            exact = [self.exact(database) for database in (pair.whole, pair.without)]
            tables = [self.measures(rows) for rows in exact]
        except Exception as problem:
            return Replay((), (f"a statement raises {type(problem).__name__}, which an analyst may see",), self.loss())
        steps, problems = self.price_moves(*tables)
        if not problems:
            problems = undercharge([step.price for step in steps], self.loss())
        result = Replay(tuple(steps), tuple(problems), self.loss())
        if problems or self.offer.plan.discovered:
            return result
        return replay(lambda side: release(self.offer, exact[side]), 0, 1, self.loss())

    def measures(self, tables: Sequence[Sequence[Any]]) -> dict[tuple[object, ...], list[int]]:
        """The exact measures of each group, as `release` reads them."""
        plan, left = self.offer.plan, list(tables)
        summed = [j for j, m in enumerate(plan.measures) if m.what is not What.DISTINCT]
        alone = [[j] for j in range(len(plan.measures)) if j not in summed]
        found: dict[tuple[object, ...], list[int]] = {}
        for places in [*([summed] if summed else []), *alone]:
            for key, row in keys_and_integers(self.offer, left.pop(0)):
                for j, value in zip(places, row, strict=True):
                    found.setdefault(key, [0] * len(plan.measures))[j] = value
        return found

    def price_moves(
        self, one: dict[tuple[object, ...], list[int]], other: dict[tuple[object, ...], list[int]]
    ) -> tuple[list[Step], list[str]]:
        """How far each part moved over all groups with its loss, and problems: moves beyond the bounds of the plan."""
        offer, zeros = self.offer, [0] * len(self.offer.plan.measures)
        keys = [key for key in {**one, **other} if one.get(key, zeros) != other.get(key, zeros)]
        if len(keys) > offer.plan.groups:
            return [], [f"one unit moved {len(keys)} groups; the plan covers {offer.plan.groups}"]
        changes = [
            offer.joint.parts_of([a - b for a, b in zip(one.get(key, zeros), other.get(key, zeros), strict=True)])
            for key in keys
        ]
        if offer.relative is not None:
            counting = offer.relative.contract.mechanism
            counts = [[table.get(key, zeros)[0] for key in keys] for table in (one, other)]
            return [Step(repr(counting), *price_counts(counting, *counts))], []
        steps: list[Step] = []
        for j, (noise, part) in enumerate(zip(offer.noise, offer.joint.parts, strict=True)):
            far = [abs(change[j]) for change in changes if change[j]]
            if not far:
                continue
            if noise is None:
                return [], [f"{offer.plan.measures[j]!r} moved, and has no noise"]
            if max(far) > part.size:
                words = f"{offer.plan.measures[j]!r} moved by {max(far)} in one group; the plan covers {part.size}"
                return [], [words]
            if isinstance(noise, OneOf):
                continue
            size = Sensitivity(
                l0=len(far),
                linf=max(far) * (1 - SLACK),
                l1=float(sum(far)) * (1 - SLACK),
                l2=math.sqrt(sum(Fraction(d) ** 2 for d in far)) * (1 - SLACK),
            )
            moved = f"{offer.plan.measures[j]!r} moved by {max(far)} in {len(far)} groups"
            steps.append(Step(repr(noise), moved, noise.loss(size)))
        together = {j: noise.joint for j, noise in enumerate(offer.noise) if isinstance(noise, OneOf)}
        for joint in set(together.values()):
            steps.append(Step(repr(joint), *price_rows(joint, [[row[j] for j in together] for row in changes])))
        return steps, []


def cached_read(database: Database) -> Read:
    """Each statement is run once."""
    connection, known = database.connect(), dict[str, list[Any]]()

    def read(statements: list[str]) -> list[list[Any]]:
        for sql in statements:
            if sql not in known:
                known[sql] = connection.execute(sql).fetchall()
        return [known[sql] for sql in statements]

    return read


Asked = SqlQuestion  # the name before version 0.2
