"""Reconstruction: count many random subsets, and solve for everybody's secret. Dinur & Nissim 2003.

The attacker knows every id, asks how many people of a random half have the secret, and solves the equations by least
squares (Dwork & Yekhanin 2008). From exact or rounded answers it recovers everything; through a curator, whose budget
all questions share, it is hardly better than guessing.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.ledger import Budget
from sfumato.loss.kinds.coins import ApproxLoss
from sfumato.teach.attacks.fixture import (
    DELTA,
    ask_count,
    attacked_database,
    epsilon_each,
    format_claim,
    random_secrets,
)
from sfumato.teach.attacks.outcome import AttackResult, Chart, Demonstration, Line, best_guess, measured_line

PRIME = 10007
ROUNDED = (5, 10)
STORY = """
No question is about one person: each counts how many of a random half of all people have a secret.
   SELECT COUNT(*) FROM people
   WHERE secret AND MOD(271 * id + 828, 10007) * 2 < 10007
{questions} such counts about {people} people are a system of linear equations, and least squares solves it.
"""
LESSON = """
Too many answers that are too accurate reveal everything, rounded or not: that is a theorem (Dinur & Nissim 2003). A
curator whose answers share one budget stays within the bound of its trade-off function for any number of questions.
"""


@dataclass(frozen=True)
class Reconstruction:
    """The shares of secrets that the attacker recovered from one database."""

    exact: float
    rounded: dict[int, float]
    curator: float
    left: float  # the share of the budget left afterwards


def reconstruct(people: int, questions: int, seed: int, epsilon: float = 1.0) -> Reconstruction:
    """Attack one synthetic database directly, with rounded answers, and through a curator."""
    rng = np.random.default_rng(seed)
    secret = random_secrets(people, rng)
    subsets = rng.integers(1, PRIME, size=(questions, 2))
    inside = (subsets[:, :1] * np.arange(people) + subsets[:, 1:]) % PRIME * 2 < PRIME
    texts = [
        f"SELECT COUNT(*) AS n FROM people WHERE secret AND MOD({a} * id + {b}, {PRIME}) * 2 < {PRIME}"
        for a, b in subsets.tolist()
    ]

    def right(answer: Callable[[str], float]) -> float:
        return float(np.mean(solve(inside, np.array([answer(sql) for sql in texts])) == secret))

    with attacked_database("people", {"id": np.arange(people), "secret": secret}) as database:
        exact = {sql: database.exact(sql) for sql in texts}
        curator = database.curator(epsilon)
        each = epsilon_each(curator, questions)
        return Reconstruction(
            right(exact.__getitem__),
            {base: right(lambda sql, base=base: base * round(exact[sql] / base)) for base in ROUNDED},  # type: ignore[misc]
            right(lambda sql: ask_count(curator, sql, each)),
            curator.budget.left,
        )


def solve(inside: NDArray[np.bool_], counts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Everybody's secret, by least squares."""
    return np.asarray(np.linalg.lstsq(inside.astype(float), counts, rcond=None)[0] > 0.5)


def demonstrate(epsilon: float = 1.0, seed: int = 0, people: int = 60, questions: int = 240) -> Demonstration:
    """The attack on one database, through four interfaces."""
    found = reconstruct(people, questions, seed, epsilon)
    loss, all_of_it = Budget(epsilon, DELTA).loss(), ApproxLoss(0.0, 1.0)
    open_ways = {"the database itself": found.exact} | {f"counts rounded to {b}": s for b, s in found.rounded.items()}
    rows = [AttackResult(name, share, people, at_once=all_of_it) for name, share in open_ways.items()]
    rows.append(AttackResult("a curator", found.curator, people, format_claim(epsilon), best_guess(loss), loss))
    return Demonstration(
        "reconstruction", "Reconstruction: everybody's secret from harmless counts",
        STORY.format(questions=questions, people=people), "secrets right", 0.5, tuple(rows), LESSON,
    )  # fmt: skip


def chart(epsilon: float = 1.0, seed: int = 0, people: int = 100, databases: int = 3) -> Chart:
    """The mean success rates over some databases, by the number of questions that share the curator's budget."""
    x = (50, 200, 400, 800)
    found = [[reconstruct(people, count, seed + i, epsilon) for i in range(databases)] for count in x]

    def line(label: str, share: Callable[[Reconstruction], float], role: str) -> Line:
        shares = [float(np.mean([share(one) for one in several])) for several in found]
        return measured_line(label, x, [AttackResult("", one, databases * people) for one in shares], role)

    bound = best_guess(Budget(epsilon, DELTA).loss())
    return Chart(
        f"Reconstruction of {people} secrets", "questions", "secrets right",
        (
            line("exact counts", lambda one: one.exact, "open"),
            line("rounded to 5", lambda one: one.rounded[5], "open"),
            line("rounded to 10", lambda one: one.rounded[10], "open"),
            line(f"a curator, ε = {epsilon:g}", lambda one: one.curator, "private"),
            Line("the most that anybody can reach", x, (bound,) * len(x), "bound"),
        ),
    )  # fmt: skip
