"""Refusals: an interface that looks at the data to decide what it answers, answers by refusing.

Kenthapadi, Mishra & Nissim 2005 call an auditor simulatable if the attacker could decide about refusals himself.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import QueryRefused
from sfumato.ledger import Budget
from sfumato.teach.attacks.fixture import DELTA, coins, house, noisy, promised, share
from sfumato.teach.attacks.outcome import Demonstration, Reached, best_guess

FEW, SHAMS = 5, 4
STORY = f"""
Two interfaces that answer exactly, and refuse where that would tell too much. The first refuses counts below {FEW}. The
attacker has opened {SHAMS} accounts with the secret himself, and counts these and the victim:
   SELECT COUNT(*) FROM people
   WHERE secret AND id IN (9001, 9002, 9003, 9004, 17)
An answer means that the victim has the secret; a refusal, that not. The second answers MAX(salary), unless with all
earlier answers it would determine somebody's salary. The attacker asks for the highest of three people, then of the
first two. If that is refused, the third earns most, and how much is known.
"""
LESSON = """
A refusal that depends on data is an answer, and an exact one. A curator refuses by the text, the policy and the ledger
only, which the attacker knows already; everything else gets an answer, and noise.
"""


class TooFew(Exception):
    """A count that is too small to be told."""


class TooTelling(Exception):
    """A maximum that would give somebody away."""


@dataclass
class Maxima:
    """Answers MAX over sets of people, unless somebody's value would follow: the auditor of the slides, at work."""

    values: NDArray[np.float64]
    known: dict[frozenset[int], float] = field(default_factory=dict)

    def highest(self, people: frozenset[int]) -> float:
        answer = float(self.values[list(people)].max())
        if self.determined({**self.known, people: answer}):
            raise TooTelling
        self.known[people] = answer
        return answer

    @staticmethod
    def determined(known: dict[frozenset[int], float]) -> bool:
        """Does some answer leave only one person who can have it? Nobody has more than the least maximum over him."""
        everybody = frozenset().union(*known)
        most = {i: min(answer for people, answer in known.items() if i in people) for i in everybody}
        return any(sum(most[i] >= answer for i in people) == 1 for people, answer in known.items())


def refused_counts(secret: NDArray[np.bool_]) -> float:
    """The share of secrets that follow from whether counts below FEW are refused."""

    def count(ids: NDArray[np.int64], has: NDArray[np.bool_]) -> int:
        found = int(has[ids].sum())
        if found < FEW:
            raise TooFew
        return found

    everyone = np.append(secret, [True] * SHAMS)
    shams = np.arange(len(secret), len(everyone))
    right = 0
    for victim, truth in enumerate(secret):
        try:
            count(np.append(shams, victim), everyone)
            guess = True
        except TooFew:
            guess = False
        right += bool(guess == truth)
    return right / len(secret)


def refused_maxima(third_earns_most: NDArray[np.bool_], rng: np.random.Generator) -> float:
    """The share of threes of whom the attacker learns whether the third earns most."""
    right = 0
    for truth in third_earns_most:
        salaries = np.sort(rng.choice(np.arange(20_000, 90_000), 3, replace=False)).astype(float)
        auditor = Maxima(salaries if truth else salaries[[2, 0, 1]])
        auditor.highest(frozenset({0, 1, 2}))
        try:
            auditor.highest(frozenset({0, 1}))
            guess = False
        except TooTelling:
            guess = True
        right += bool(guess == truth)
    return right / len(third_earns_most)


def through_a_curator(secret: NDArray[np.bool_], epsilon: float) -> tuple[float, int]:
    """The first attack on a curator, at its whole budget: the share of secrets right, and how often it refused."""
    everyone = np.append(secret, [True] * SHAMS)
    right = refusals = 0
    with house("people", {"id": np.arange(len(everyone)), "secret": everyone}) as home:
        for victim, truth in enumerate(secret):
            curator = home.curator(epsilon)
            ids = ", ".join(str(i) for i in [*range(len(secret), len(everyone)), victim])
            sql = f"SELECT COUNT(*) AS n FROM people WHERE secret AND id IN ({ids})"
            try:
                right += bool((noisy(curator, sql, share(curator, 1)) > SHAMS + 0.5) == truth)
            except QueryRefused:
                refusals += 1
    return right / len(secret), refusals


def demonstrate(epsilon: float = 1.0, seed: int = 0, targets: int = 80) -> Demonstration:
    """Both auditors, and a curator."""
    rng = np.random.default_rng(seed)
    secret = coins(targets, rng)
    private, refused = through_a_curator(secret, epsilon)
    assert not refused, "a curator refused because of data"
    rows = (
        Reached(f"counts from {FEW} on", refused_counts(secret), targets),
        Reached("maxima, not telling", refused_maxima(secret, rng), targets),
        Reached("a curator", private, targets, promised(epsilon), best_guess(Budget(epsilon, DELTA).loss())),
    )
    return Demonstration(
        "refusals", "Refusals: what is not said says enough", STORY, "secrets right", 0.5, rows, LESSON
    )
