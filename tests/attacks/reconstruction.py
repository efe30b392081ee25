"""Reconstruction: count many random subsets, solve for everybody's secret. Dinur & Nissim 2003; Dwork & Yekhanin 2008.

The attacker knows every id and asks how many of a random half of them have the secret; least squares does the rest.
Against exact answers it finds everything; a curator whose budget all questions share must leave it guessing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from sfumato.curator import Curator
from sfumato.engines.duckdb import DuckDB
from sfumato.ledger import Budget, Ledger
from sfumato.ledger.amounts import UNITS
from sfumato.loss.gaussian import GaussianLoss
from sfumato.sql.policy import Policy

PRIME = 10007
POLICY = """
version = 1
[budget]
epsilon = {epsilon}
delta = 1e-6
[tables.people]
unit = "id"
[tables.people.columns]
id = {{low = 0, high = 10000, step = 1}}
secret = {{type = "boolean"}}
"""


@dataclass(frozen=True)
class Found:
    """Shares of secrets that the attacker got right."""

    exact: float
    curator: float
    left: float  # of the budget, afterwards


def attacked(folder: Path, people: int, questions: int, seed: int, epsilon: float = 1.0) -> Found:
    """One made-up database, attacked directly and through a curator."""
    rng = np.random.default_rng(seed)
    secret = rng.random(people) < 0.5
    place = folder / f"{people} {questions} {seed}.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, secret BOOLEAN)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", list(enumerate(secret.tolist())))
    subsets = rng.integers(1, PRIME, size=(questions, 2))
    inside = (subsets[:, :1] * np.arange(people) + subsets[:, 1:]) % PRIME * 2 < PRIME
    texts = [
        f"SELECT COUNT(*) AS n FROM people WHERE secret AND MOD({a} * id + {b}, {PRIME}) * 2 < {PRIME}"
        for a, b in subsets.tolist()
    ]
    curator = Curator(
        DuckDB(place), Policy.read(POLICY.format(epsilon=epsilon)), Ledger.create(":memory:", Budget(epsilon, 1e-6))
    )
    each = float(share(curator, questions))
    noisy = guesses(inside, texts, lambda sql: float(curator.ask(sql, epsilon=each).rows[0][0] or 0))
    exact = guesses(inside, texts, lambda sql: float(curator.engine.run(sql)[0][0]))  # type: ignore[arg-type]
    return Found(float((exact == secret).mean()), float((noisy == secret).mean()), curator.budget.left)


def share(curator: Curator, questions: int) -> float:
    """ε of each of so many questions that use up the budget together."""
    mu = (curator.ledger.promise.amount.gauss / UNITS["gauss"] / questions) ** 0.5
    return GaussianLoss(mu * (1 - 1e-6)).epsilon(curator.policy.question_delta).lower


def guesses(inside: np.ndarray, texts: list[str], answer: Callable[[str], float]) -> np.ndarray:
    """Everybody's secret, by least squares."""
    counts = np.array([answer(sql) for sql in texts])
    return np.linalg.lstsq(inside.astype(float), counts, rcond=None)[0] > 0.5
