"""A whole conversation: a curator, its ledger, and an adaptive analyst who asks until the budget is used up.

The transcript is everything that the curator shows: answers, refusals, errors, and the budget that is left. Replayed on
a neighbouring database with the same noise, the transcript must be the same, and the loss of all inputs that one unit
moved must not exceed the budget. One run on each of two databases is enough; runs are too expensive for the black box.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property

import duckdb

from sfumato.audit.corpus import Database
from sfumato.audit.question_replay import SALT
from sfumato.curator import Curator
from sfumato.errors import BudgetExceeded, SfumatoError
from sfumato.ledger import Ledger, Promise, PureBudget
from sfumato.loss.base import PrivacyLoss
from sfumato.sql.policy import Policy

MOST = 100  # questions, in case the budget never ends
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
    """An engine that runs on a database of the corpus."""

    database: Database
    dialect: str = "duckdb"

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self.database.connect()

    def run(self, sql: str) -> list[tuple[object, ...]]:
        return self.connection.execute(sql).fetchall()

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        rows = self.run("SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal")
        schema: dict[str, dict[str, str]] = {}
        for table, column, kind in rows:
            schema.setdefault(str(table), {})[str(column)] = str(kind)
        return schema

    def check(self, sql: str) -> None:
        self.connection.execute(f"DESCRIBE {sql}")

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Conversation:
    """Everything that an analyst sees of a curator with this budget.

    The analyst asks the `questions`, whether they are answered or refused, and then `again` until the budget is used
    up, each time with {} replaced by a number that depends on the last answer.
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
        vars(curator)["salt"] = SALT  # the contribution bound hashes with the ledger's salt: the same in both runs
        seen = [self.ask(curator, sql) for sql in self.questions]
        for i in range(MOST):
            seen.append(self.ask(curator, self.again.format(10 * i + len(str(seen[-1])) % 10)))
            if seen[-1][0] == BudgetExceeded.__name__:
                break
        return [*seen, curator.budget.to_json()]

    def ask(self, curator: Curator, sql: str) -> tuple[object, ...]:
        """An answer with its price, or the type and text of an error."""
        try:
            answer = curator.ask(sql, epsilon=self.epsilon)
        except SfumatoError as problem:
            return type(problem).__name__, str(problem)
        return answer.rows, answer.epsilon, answer.charged, answer.left

    def loss(self) -> PrivacyLoss:
        """The loss that the ledger promises not to exceed."""
        return self.budget.loss()
