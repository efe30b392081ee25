"""Averaging: ask the same question again and again, until the noise cancels."""

from collections.abc import Sequence

import numpy as np

from sfumato.ledger import Budget
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.teach.attacks.fixture import DELTA, coins, house, noisy, promised, share
from sfumato.teach.attacks.outcome import Chart, Demonstration, Line, Reached, best_guess, measured

COUNT = "SELECT COUNT(*) AS n FROM people WHERE secret"
SPELLINGS = (COUNT, COUNT.lower(), f"{COUNT} AND 1 = 1", COUNT.replace("n FROM", "m  FROM"), f"{COUNT} AND TRUE")
CURATORS = 60
STORY = """
An interface adds noise for ε to each answer, and charges a question once, by its text. The attacker knows everybody's
secret but one, asks for the same count again and again, and takes the mean. A curator is asked the same thing in other
words (blanks, capitals, AND 1 = 1), each time at the price of its whole budget.
"""
LESSON = """
Noise that is drawn anew for a question that is not charged anew is no protection: k answers are worth k times the loss,
and the claim is refuted. A curator gives its stored answer to whatever means the same, and charges what does not; when
the budget is used up, there are no more answers.
"""


def demonstrate(
    epsilon: float = 0.5, seed: int = 0, tries: int = 2000, repeats: Sequence[int] = (1, 10, 100)
) -> Demonstration:
    """Repeats against noise that is fresh and free; and against a curator."""
    rng = np.random.default_rng(seed)
    loss, claim = LaplaceLoss(epsilon), f"({epsilon:g}, 0)"
    rows = [
        Reached(f"fresh noise, {k} ×", averaged(epsilon, k, tries, rng), tries, claim, best_guess(loss))
        for k in repeats
    ]
    most, promise = best_guess(Budget(epsilon, DELTA).loss()), promised(epsilon)
    again = through_a_curator(epsilon, CURATORS, rng)
    rows.append(Reached(f"curator, {len(SPELLINGS)} spellings", again, CURATORS, promise, most))
    return Demonstration(
        "averaging", "Averaging: the same question, until the noise cancels", STORY, "secrets right", 0.5, tuple(rows),
        LESSON,
    )  # fmt: skip


def averaged(epsilon: float, repeats: int, tries: int, rng: np.random.Generator) -> float:
    """The share of secrets that the mean of so many answers gives away."""
    secret = coins(tries, rng)
    answers = Laplace(1 / epsilon, step=2**-20).release(np.repeat(secret[:, None].astype(float), repeats, axis=1))
    return float(np.mean((np.mean(answers, axis=1) > 0.5) == secret))


def through_a_curator(epsilon: float, tries: int, rng: np.random.Generator) -> float:
    """The same attack on a curator: one question, at the whole budget, in several spellings."""
    right = 0
    with house("people", {"id": np.arange(50), "secret": np.arange(50) < 25}) as home:
        for taking_part in coins(tries, rng):
            known = 24 if taking_part else 25  # of all people but one, who is the 25th or has no secret
            curator = home.curator(epsilon)
            price = share(curator, 1)
            answers = [noisy(curator, text, price) for text in SPELLINGS]
            right += bool((np.mean(answers) - known > 0.5) == taking_part)
    return right / tries


def chart(epsilon: float = 0.5, seed: int = 0, tries: int = 10_000) -> Chart:
    """What repeats reach, beside what they would be allowed if they were charged."""
    rng, loss, x = np.random.default_rng(seed), LaplaceLoss(epsilon), (1, 2, 5, 10, 20, 50, 100, 200)
    found = [Reached("", averaged(epsilon, k, tries, rng), tries) for k in x]
    return Chart(
        "Averaging repeats of one question", "times that it is asked", "secrets right",
        (
            measured("fresh noise each time", x, found, "open"),
            Line("the most, if each is charged", x, tuple(best_guess(k * loss) for k in x), "price"),
            Line(f"the most at ε = {epsilon:g}", x, (best_guess(loss),) * len(x), "bound"),
        ),
    )  # fmt: skip
