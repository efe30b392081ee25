"""A whole conversation: a curator, its ledger, and an analyst who goes by earlier answers until the budget ends.

What he sees is all that leaves the house: answers, refusals, errors, and what is said to be left. Replayed on a
neighbour with the same noise, he must see the same, and what one unit moved in all answers together may not cost more
than the budget. One run on each of two databases says all; runs are too dear for the black box.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property

import duckdb

from sfumato.audit.corpus import Database
from sfumato.audit.plans import SALT
from sfumato.curator import Curator
from sfumato.errors import BudgetExceeded, SfumatoError
from sfumato.ledger import Ledger, Promise, PureBudget
from sfumato.loss.base import PrivacyLoss
from sfumato.sql.policy import Policy

MOST = 100  # questions, should the budget never end
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT ward, AVG(stay) AS mean FROM visits GROUP BY ward",
    "select count(*) as again from visits",
    "SELECT * FROM visits",
    "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis",
    "SELECT SUM(1 / stay) AS s FROM visits",
)
AGAIN = "SELECT COUNT(*) AS n FROM visits WHERE stay > {} / 4"


@dataclass(frozen=True)
class InMemory:
    """A database of the corpus as an engine."""

    database: Database
    dialect: str = "duckdb"

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self.database.opened()

    def run(self, sql: str) -> list[tuple[object, ...]]:
        return self.connection.execute(sql).fetchall()

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        rows = self.run("SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal")
        found: dict[str, dict[str, str]] = {}
        for table, column, kind in rows:
            found.setdefault(str(table), {})[str(column)] = str(kind)
        return found

    def check(self, sql: str) -> None:
        self.connection.execute(f"DESCRIBE {sql}")

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Conversation:
    """Everything that an analyst sees of a curator with this budget.

    He asks the `questions`, whatever becomes of them, and then `again` until the budget ends, each time with a number
    in the place of {} that depends on what he has just seen.
    """

    budget: Promise
    policy: Policy = field(repr=False)
    questions: tuple[str, ...] = field(default=QUESTIONS, repr=False)
    again: str = field(default=AGAIN, repr=False)
    epsilon: float = 0.25  # of each

    def release(self, database: Database) -> list[object]:
        stated = replace(
            self.policy, epsilon=self.budget.epsilon, delta=self.budget.delta, pure=isinstance(self.budget, PureBudget)
        )
        curator = Curator.open(InMemory(database), stated, ledger=Ledger.create(":memory:", self.budget))
        vars(curator)["salt"] = SALT  # which rows are kept depends on the ledger, and both runs are of one
        seen = [self.told(curator, sql) for sql in self.questions]
        for i in range(MOST):
            seen.append(self.told(curator, self.again.format(10 * i + len(str(seen[-1])) % 10)))
            if seen[-1][0] == BudgetExceeded.__name__:
                break
        return [*seen, curator.budget.to_json()]

    def told(self, curator: Curator, sql: str) -> tuple[object, ...]:
        """An answer with its price, or a refusal with its words."""
        try:
            answer = curator.ask(sql, epsilon=self.epsilon)
        except SfumatoError as problem:
            return type(problem).__name__, str(problem)
        return answer.rows, answer.epsilon, answer.charged, answer.left

    def loss(self) -> PrivacyLoss:
        """What the ledger promises."""
        return self.budget.loss()
