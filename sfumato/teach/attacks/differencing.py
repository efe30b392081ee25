"""Differencing: two large, harmless counts that differ by one person."""

from collections.abc import Sequence

import numpy as np

from sfumato.ledger import Budget
from sfumato.teach.attacks.fixture import DELTA, House, coins, house, noisy, promised, share
from sfumato.teach.attacks.outcome import Chart, Demonstration, Line, Reached, best_guess, measured

EVERYONE = "SELECT COUNT(*) AS n FROM people WHERE secret"
STORY = """
Is patient 17 HIV positive? Count all who are, and then all but patient 17:
   SELECT COUNT(*) FROM people WHERE secret
   SELECT COUNT(*) FROM people WHERE secret AND id <> 17
Both counts are large. Their difference is one person's secret. The curator's whole budget is spent on these two
questions; then, by an attacker who knows everybody else's secret, on the first one alone.
"""
LESSON = """
That queries are large protects nobody: it is the noise, and that questions share a budget. Who knows everything else
and asks one question reaches the bound: nobody can do better, whatever he asks, computes or knows.
"""


def demonstrate(epsilon: float = 1.0, seed: int = 0, targets: int = 60) -> Demonstration:
    """Guess the secrets of some people, each with the whole budget of a curator."""
    secret = coins(2 * targets, np.random.default_rng(seed))
    bound, claim = best_guess(Budget(epsilon, DELTA).loss()), promised(epsilon)
    with house("people", {"id": np.arange(len(secret)), "secret": secret}) as home:
        victims = range(targets)
        exact = right([home.exact(EVERYONE) - home.exact(but(i)) for i in victims], secret)
        two = right([two_counts(home, i, epsilon) for i in victims], secret)
        one = right([one_count(home, secret, i, epsilon) for i in victims], secret)
    return Demonstration(
        "differencing", "Differencing: two counts that differ by one person", STORY, "secrets right", 0.5,
        (
            Reached("the database itself", exact, targets),
            Reached("curator, two counts", two, targets, claim, bound),
            Reached("curator, others known", one, targets, claim, bound),
        ),
        LESSON,
    )  # fmt: skip


def but(victim: int) -> str:
    return f"{EVERYONE} AND id <> {victim}"


def two_counts(home: House, victim: int, epsilon: float) -> float:
    """The victim's secret, estimated from both counts at half of the budget each."""
    curator = home.curator(epsilon)
    each = share(curator, 2)
    return noisy(curator, EVERYONE, each) - noisy(curator, but(victim), each)


def one_count(home: House, secret: np.ndarray[tuple[int], np.dtype[np.bool_]], victim: int, epsilon: float) -> float:
    """The same from one count at the whole budget, less what is known of the others."""
    curator = home.curator(epsilon)
    return noisy(curator, EVERYONE, share(curator, 1)) - float(secret.sum() - secret[victim])


def right(estimates: Sequence[float], secret: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    """The share of right guesses: whoever is nearer to 1 than to 0 has the secret."""
    return float(np.mean((np.array(estimates) > 0.5) == secret[: len(estimates)]))


def chart(epsilon: float = 1.0, seed: int = 0, targets: int = 300) -> Chart:
    """What both attackers reach, by the budget: from half of ε to sixteen times."""
    x = [epsilon * factor for factor in (0.5, 1, 2, 4, 8, 16)]
    found = list(zip(*(demonstrate(eps, seed, targets).rows for eps in x), strict=True))
    fine = np.geomspace(x[0], x[-1], 40).tolist()
    most = tuple(best_guess(Budget(eps, DELTA).loss()) for eps in fine)
    return Chart(
        "Differencing a curator", "ε of the whole budget, at δ = 1e-6", "secrets right",
        (
            measured("asked of the database itself", x, found[0], "open"),
            measured("two counts", x, found[1], "private"),
            measured("one count, knowing all others", x, found[2], "private"),
            Line("the most that anybody can reach", tuple(fine), most, "bound"),
        ),
    )  # fmt: skip
