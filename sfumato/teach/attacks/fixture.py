"""A database of made-up people to attack: as it is, and behind a curator whose whole budget the attacker may spend."""

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
[tables.people.columns]
id = {low = 0, high = 10000, step = 1}
secret = {type = "boolean"}
"""


@dataclass(frozen=True)
class House:
    """The data, and the policy under which a curator answers about them."""

    engine: DuckDB
    tables: str

    def exact(self, sql: str) -> float:
        """What a database without a curator answers."""
        return float(self.engine.run(sql)[0][0])  # type: ignore[arg-type]  # attacks ask for counts

    def curator(self, epsilon: float) -> Curator:
        """A curator who has answered nothing yet, and never tells more than (ε, 1e-6) in all."""
        policy = Policy.read(f"version = 1\n[budget]\nepsilon = {epsilon!r}\ndelta = {DELTA!r}\n{self.tables}")
        return Curator.open(self.engine, policy, ledger=":memory:")


@contextmanager
def house(
    table: str, columns: Mapping[str, NDArray[np.generic]], tables: str = PEOPLE, select: str = "*"
) -> Iterator[House]:  # fmt: skip
    """A database with one table, in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
        place = Path(folder) / "attacked.duckdb"
        with duckdb.connect(str(place)) as connection:
            connection.register("made", dict(columns))
            connection.execute(f"CREATE TABLE {table} AS SELECT {select} FROM made")
        engine = DuckDB(place)
        try:
            yield House(engine, tables)
        finally:
            engine.close()


def noisy(curator: Curator, sql: str, epsilon: float) -> float:
    """The curator's answer to a question for one number."""
    found = curator.ask(sql, epsilon=epsilon).rows[0][0]
    return float(found) if isinstance(found, int | float) else 0.0


def share(curator: Curator, questions: int) -> float:
    """ε of each of so many questions that use up the budget together."""
    mu = (curator.ledger.promise.amount.gauss / UNITS["gauss"] / questions) ** 0.5
    return GaussianLoss(mu * (1 - 1e-6)).epsilon(curator.policy.question_delta).lower


def coins(count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Secrets by fair coins: whoever knows all but one has even odds about that."""
    return rng.random(count) < 0.5


def promised(epsilon: float) -> str:
    """The claim of a curator with this budget, in a few words."""
    return f"({epsilon:g}, {DELTA:g})"
