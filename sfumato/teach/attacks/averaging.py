"""Averaging: repeat a question until the mean of the answers has little noise left."""

from collections.abc import Sequence

import numpy as np

from sfumato.ledger import Budget
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.teach.attacks.fixture import (
    DELTA,
    ask_count,
    attacked_database,
    epsilon_each,
    format_claim,
    random_secrets,
)
from sfumato.teach.attacks.outcome import AttackResult, Chart, Demonstration, Line, best_guess, measured_line

COUNT = "SELECT COUNT(*) AS n FROM people WHERE secret"
SPELLINGS = (COUNT, COUNT.lower(), f"{COUNT} AND 1 = 1", COUNT.replace("n FROM", "m  FROM"), f"{COUNT} AND TRUE")
CURATORS = 60
STORY = """
An interface adds noise for ε to each answer, and charges each text of a question once. The attacker knows everybody's
secret but one, asks for the same count again and again, and takes the mean. A curator is asked the same question in
other spellings (blanks, capitals, AND 1 = 1), each time at the price of its whole budget.
"""
LESSON = """
Fresh noise without a fresh charge does not protect: k answers have k times the loss, and the claim is refuted. A
curator returns its stored answer to every spelling of the same question, and charges every other question; when the
budget is used up, it gives no more answers.
"""


def demonstrate(
    epsilon: float = 0.5, seed: int = 0, tries: int = 2000, repeats: Sequence[int] = (1, 10, 100)
) -> Demonstration:
    """Repeats against fresh noise that is charged once, and against a curator."""
    rng = np.random.default_rng(seed)
    loss, claim = LaplaceLoss(epsilon), f"({epsilon:g}, 0)"
    rows = [
        AttackResult(f"fresh noise, {k} ×", accuracy_of_mean(epsilon, k, tries, rng), tries, claim, best_guess(loss))
        for k in repeats
    ]
    most, promise = best_guess(Budget(epsilon, DELTA).loss()), format_claim(epsilon)
    again = attack_curator(epsilon, CURATORS, rng)
    rows.append(AttackResult(f"curator, {len(SPELLINGS)} spellings", again, CURATORS, promise, most))
    return Demonstration(
        "averaging", "Averaging: the same question, until the noise cancels", STORY, "secrets right", 0.5, tuple(rows),
        LESSON,
    )  # fmt: skip


def accuracy_of_mean(epsilon: float, repeats: int, tries: int, rng: np.random.Generator) -> float:
    """The share of secrets that are guessed right from the mean of so many answers."""
    secret = random_secrets(tries, rng)
    answers = Laplace(1 / epsilon, step=2**-20).release(np.repeat(secret[:, None].astype(float), repeats, axis=1))
    return float(np.mean((np.mean(answers, axis=1) > 0.5) == secret))


def attack_curator(epsilon: float, tries: int, rng: np.random.Generator) -> float:
    """Averaging against a curator: one question at the price of the whole budget, in several spellings."""
    right = 0
    with attacked_database("people", {"id": np.arange(50), "secret": np.arange(50) < 25}) as database:
        for taking_part in random_secrets(tries, rng):
            known = (
                24 if taking_part else 25
            )  # the count without the victim, who is the 25th with the secret or has none
            curator = database.curator(epsilon)
            price = epsilon_each(curator, 1)
            answers = [ask_count(curator, text, price) for text in SPELLINGS]
            right += bool((np.mean(answers) - known > 0.5) == taking_part)
    return right / tries


def chart(epsilon: float = 0.5, seed: int = 0, tries: int = 10_000) -> Chart:
    """The success rate by the number of repeats, and the bounds for one charge and for a charge each time."""
    rng, loss, x = np.random.default_rng(seed), LaplaceLoss(epsilon), (1, 2, 5, 10, 20, 50, 100, 200)
    found = [AttackResult("", accuracy_of_mean(epsilon, k, tries, rng), tries) for k in x]
    return Chart(
        "Averaging repeats of one question", "times that it is asked", "secrets right",
        (
            measured_line("fresh noise each time", x, found, "open"),
            Line("the most, if each is charged", x, tuple(best_guess(k * loss) for k in x), "price"),
            Line(f"the most at ε = {epsilon:g}", x, (best_guess(loss),) * len(x), "bound"),
        ),
    )  # fmt: skip
