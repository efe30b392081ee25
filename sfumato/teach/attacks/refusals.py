"""Refusals: an interface whose refusals depend on the data reveals data by refusing.

Kenthapadi, Mishra & Nissim 2005 call an auditor of queries simulatable if the attacker can predict its refusals.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import QueryRefused
from sfumato.ledger import Budget
from sfumato.teach.attacks.fixture import (
    DELTA,
    ask_count,
    attacked_database,
    epsilon_each,
    format_claim,
    random_secrets,
)
from sfumato.teach.attacks.outcome import AttackResult, Demonstration, best_guess

FEW, SHAMS = 5, 4
STORY = f"""
Two interfaces answer exactly, and refuse where an answer would reveal too much. The first refuses counts below {FEW}.
The attacker has opened {SHAMS} accounts with the secret, and counts these and the victim:
   SELECT COUNT(*) FROM people
   WHERE secret AND id IN (9001, 9002, 9003, 9004, 17)
An answer means that the victim has the secret; a refusal means that she has not. The second answers MAX(salary) unless
that would, with all earlier answers, determine somebody's salary. The attacker asks for the maximum of three people,
then of the first two. If that is refused, the third earns most, and the first answer is that salary.
"""
LESSON = """
A refusal that depends on data is an answer without noise. A curator's refusals depend only on the text, the policy and
the ledger, which the attacker knows already; everything else gets a noisy answer.
"""


class TooFew(Exception):
    """The count is too small to be released."""


class TooRevealing(Exception):
    """The maximum would determine somebody's value."""


@dataclass
class Maxima:
    """An auditor of queries: answers MAX over sets of people, unless somebody's value would follow."""

    values: NDArray[np.float64]
    known: dict[frozenset[int], float] = field(default_factory=dict)

    def highest(self, people: frozenset[int]) -> float:
        answer = float(self.values[list(people)].max())
        if self.is_determined({**self.known, people: answer}):
            raise TooRevealing
        self.known[people] = answer
        return answer

    @staticmethod
    def is_determined(known: dict[frozenset[int], float]) -> bool:
        """Is there an answer that only one person can have? Nobody has more than the least maximum over their sets."""
        everybody = frozenset().union(*known)
        most = {i: min(answer for people, answer in known.items() if i in people) for i in everybody}
        return any(sum(most[i] >= answer for i in people) == 1 for people, answer in known.items())


def attack_counts(secret: NDArray[np.bool_]) -> float:
    """The share of secrets that follow from the refusal of counts below FEW."""

    def count(ids: NDArray[np.int64], has: NDArray[np.bool_]) -> int:
        total = int(has[ids].sum())
        if total < FEW:
            raise TooFew
        return total

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


def attack_maxima(third_earns_most: NDArray[np.bool_], rng: np.random.Generator) -> float:
    """The share of triples in which the attacker learns whether the third earns most."""
    right = 0
    for truth in third_earns_most:
        salaries = np.sort(rng.choice(np.arange(20_000, 90_000), 3, replace=False)).astype(float)
        auditor = Maxima(salaries if truth else salaries[[2, 0, 1]])
        auditor.highest(frozenset({0, 1, 2}))
        try:
            auditor.highest(frozenset({0, 1}))
            guess = False
        except TooRevealing:
            guess = True
        right += bool(guess == truth)
    return right / len(third_earns_most)


def attack_curator(secret: NDArray[np.bool_], epsilon: float) -> tuple[float, int]:
    """The first attack on a curator, at its whole budget: the share of secrets right, and the number of refusals."""
    everyone = np.append(secret, [True] * SHAMS)
    right = refusals = 0
    with attacked_database("people", {"id": np.arange(len(everyone)), "secret": everyone}) as database:
        for victim, truth in enumerate(secret):
            curator = database.curator(epsilon)
            ids = ", ".join(str(i) for i in [*range(len(secret), len(everyone)), victim])
            sql = f"SELECT COUNT(*) AS n FROM people WHERE secret AND id IN ({ids})"
            try:
                right += bool((ask_count(curator, sql, epsilon_each(curator, 1)) > SHAMS + 0.5) == truth)
            except QueryRefused:
                refusals += 1
    return right / len(secret), refusals


def demonstrate(epsilon: float = 1.0, seed: int = 0, targets: int = 80) -> Demonstration:
    """Both interfaces, and a curator."""
    rng = np.random.default_rng(seed)
    secret = random_secrets(targets, rng)
    private, refused = attack_curator(secret, epsilon)
    assert not refused, "a curator refused because of data"
    rows = (
        AttackResult(f"counts from {FEW} on", attack_counts(secret), targets),
        AttackResult("maxima, not telling", attack_maxima(secret, rng), targets),
        AttackResult("a curator", private, targets, format_claim(epsilon), best_guess(Budget(epsilon, DELTA).loss())),
    )
    return Demonstration("refusals", "Refusals: a refusal can be an answer", STORY, "secrets right", 0.5, rows, LESSON)
