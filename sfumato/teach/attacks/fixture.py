"""A synthetic database to attack: directly, and through a curator whose whole budget the attacker may spend."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from sfumato.curator import Curator
from sfumato.engines.duckdb import DuckDB
from sfumato.ledger.amounts import UNITS
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.sql.policy import Policy

DELTA = 1e-6
PEOPLE = """
[tables.people]
unit = "id"
rows = 1
[tables.people.columns]
id = {low = 0, high = 10000, step = 1}
secret = {type = "boolean"}
"""


@dataclass(frozen=True)
class AttackedDatabase:
    """The data, and the tables of the curator's policy."""

    engine: DuckDB
    tables: str

    def exact(self, sql: str) -> float:
        """The exact answer, without a curator."""
        return float(self.engine.run(sql)[0][0])  # type: ignore[arg-type]  # attacks ask for counts

    def curator(self, epsilon: float) -> Curator:
        """A new curator with a total budget of (ε, 1e-6)."""
        policy = Policy.read(f"version = 1\n[budget]\nepsilon = {epsilon!r}\ndelta = {DELTA!r}\n{self.tables}")
        return Curator.open(self.engine, policy, ledger=":memory:")


@contextmanager
def attacked_database(
    table: str, columns: Mapping[str, NDArray[np.generic]], tables: str = PEOPLE, select: str = "*"
) -> Iterator[AttackedDatabase]:  # fmt: skip
    """A database with one table, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        place = Path(folder) / "attacked.duckdb"
        with duckdb.connect(str(place)) as connection:
            connection.register("made", dict(columns))
            connection.execute(f"CREATE TABLE {table} AS SELECT {select} FROM made")
        engine = DuckDB(place)
        try:
            yield AttackedDatabase(engine, tables)
        finally:
            engine.close()


def ask_count(curator: Curator, sql: str, epsilon: float) -> float:
    """The curator's answer to a question for one number."""
    answer = curator.ask(sql, epsilon=epsilon).rows[0][0]
    return float(answer) if isinstance(answer, int | float) else 0.0


def epsilon_each(curator: Curator, questions: int) -> float:
    """The ε of each of so many equal questions that use up the budget together."""
    mu = (curator.ledger.promise.amount.gauss / UNITS["gauss"] / questions) ** 0.5
    return GaussianLoss(mu * (1 - 1e-6)).epsilon(curator.policy.question_delta).lower


def random_secrets(count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Independent fair coins, so that even an attacker who knows all others has even odds about one."""
    return rng.random(count) < 0.5


def format_claim(epsilon: float) -> str:
    """The claim of a curator with this budget, as text."""
    return f"({epsilon:g}, {DELTA:g})"
