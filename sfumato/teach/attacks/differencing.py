"""Differencing: two large counts that differ by one person."""

from collections.abc import Sequence

import numpy as np

from sfumato.ledger import Budget
from sfumato.teach.attacks.fixture import (
    DELTA,
    AttackedDatabase,
    ask_count,
    attacked_database,
    epsilon_each,
    format_claim,
    random_secrets,
)
from sfumato.teach.attacks.outcome import AttackResult, Chart, Demonstration, Line, best_guess, measured_line

EVERYONE = "SELECT COUNT(*) AS n FROM people WHERE secret"
STORY = """
Is patient 17 HIV positive? Count all who are, and then all but patient 17:
   SELECT COUNT(*) FROM people WHERE secret
   SELECT COUNT(*) FROM people WHERE secret AND id <> 17
Both counts are large. Their difference is one person's secret. The attacker spends the curator's whole budget on these
two questions. A second attacker, who knows everybody else's secret, spends it on the first one alone.
"""
LESSON = """
Large queries protect nobody; noise does, and a budget that all questions share. An attacker who knows everything else
and asks one question reaches the bound: no other attack can be better, with any questions, computation or knowledge.
"""


def demonstrate(epsilon: float = 1.0, seed: int = 0, targets: int = 60) -> Demonstration:
    """Guess the secrets of some people, each with the whole budget of a new curator."""
    secret = random_secrets(2 * targets, np.random.default_rng(seed))
    bound, claim = best_guess(Budget(epsilon, DELTA).loss()), format_claim(epsilon)
    with attacked_database("people", {"id": np.arange(len(secret)), "secret": secret}) as database:
        victims = range(targets)
        exact = accuracy([database.exact(EVERYONE) - database.exact(all_but(i)) for i in victims], secret)
        two = accuracy([two_counts(database, i, epsilon) for i in victims], secret)
        one = accuracy([one_count(database, secret, i, epsilon) for i in victims], secret)
    return Demonstration(
        "differencing", "Differencing: two counts that differ by one person", STORY, "secrets right", 0.5,
        (
            AttackResult("the database itself", exact, targets),
            AttackResult("curator, two counts", two, targets, claim, bound),
            AttackResult("curator, others known", one, targets, claim, bound),
        ),
        LESSON,
    )  # fmt: skip


def all_but(victim: int) -> str:
    """The count without one person."""
    return f"{EVERYONE} AND id <> {victim}"


def two_counts(database: AttackedDatabase, victim: int, epsilon: float) -> float:
    """The victim's secret, estimated from both counts at half of the budget each."""
    curator = database.curator(epsilon)
    each = epsilon_each(curator, 2)
    return ask_count(curator, EVERYONE, each) - ask_count(curator, all_but(victim), each)


def one_count(
    database: AttackedDatabase, secret: np.ndarray[tuple[int], np.dtype[np.bool_]], victim: int, epsilon: float
) -> float:
    """Estimate the victim's secret from one count at the whole budget, minus the known count of the others."""
    curator = database.curator(epsilon)
    return ask_count(curator, EVERYONE, epsilon_each(curator, 1)) - float(secret.sum() - secret[victim])


def accuracy(estimates: Sequence[float], secret: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """The share of right guesses; an estimate above ½ is guessed as a secret."""
    return float(np.mean((np.array(estimates) > 0.5) == secret[: len(estimates)]))


def chart(epsilon: float = 1.0, seed: int = 0, targets: int = 300) -> Chart:
    """The success rates of both attackers for budgets from ε/2 to 16ε."""
    x = [epsilon * factor for factor in (0.5, 1, 2, 4, 8, 16)]
    found = list(zip(*(demonstrate(eps, seed, targets).rows for eps in x), strict=True))
    fine = np.geomspace(x[0], x[-1], 40).tolist()
    most = tuple(best_guess(Budget(eps, DELTA).loss()) for eps in fine)
    return Chart(
        "Differencing a curator", "ε of the whole budget, at δ = 1e-6", "secrets right",
        (
            measured_line("asked of the database itself", x, found[0], "open"),
            measured_line("two counts", x, found[1], "private"),
            measured_line("one count, knowing all others", x, found[2], "private"),
            Line("the most that anybody can reach", tuple(fine), most, "bound"),
        ),
    )  # fmt: skip
