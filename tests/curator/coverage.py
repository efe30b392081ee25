"""How often intervals hold the truth: many releases of the same exact numbers."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate

from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import Offer
from sfumato.curator.release import add_noise
from sfumato.mechanisms.choice.quantile import Ranked
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY
from tests.curator.questions import exactly

PRICES = (Mu(0.05), Mu(0.6), Mu(6.0), Pure(0.1), Pure(1.5), Pure(12.0))  # of fine to very coarse lattices
COUNTS = "COUNT(*), COUNT(DISTINCT patient_id), COUNT(DISTINCT ward)"
QUESTIONS = {
    "count": "SELECT COUNT(*) FROM visits",
    "sum": "SELECT SUM(cost) FROM visits",
    "count and sum": "SELECT COUNT(*), SUM(stay) FROM visits",
    "mean": "SELECT AVG(cost) FROM visits",
    "all": f"SELECT {COUNTS}, SUM(cost), SUM(stay), AVG(stay), VARIANCE(stay), STDDEV(stay) FROM visits",
    "by public key": "SELECT ward, COUNT(stay), SUM(stay), AVG(stay) FROM visits GROUP BY ward",
    "by private key": "SELECT diagnosis, COUNT(*), AVG(cost) FROM visits GROUP BY diagnosis",
}
RANKS = (Fraction(1, 2), Fraction(9, 10), Fraction(0), Fraction(1))


@dataclass(frozen=True)
class Seen:
    """How often an interval held the truth, and how often it should."""

    name: str
    held: int
    count: int
    coverage: float
    exact: bool

    def off(self) -> float:
        """In standard deviations; for what holds at least so often, only what is missing."""
        away = self.held / self.count - self.coverage
        sigma = math.sqrt(max(1e-9, self.coverage * (1 - self.coverage)) / self.count)
        return abs(away) / sigma if self.exact else max(0.0, -away) / sigma


def asked(name, price):
    question = parse_question(QUESTIONS[name], Policy.read(POLICY))
    private = question.plan.public is None
    return Offer(question, price, 1e-6 if private else 0.0)


def totals(joint, people=300_000):
    """Exact measures of many people who all have two of three rows, of values a fifth below the top."""
    found = []
    for measure in joint.measures:
        low, high = measure.span()
        each = 1 if measure.what.value == "units" else 2
        middle = low + (high - low) * 4 // 5 if high > 1 else 1
        found.append(people * each * (middle if measure.what.value != "squares" else high * 9 // 25))
    return found


def of_sums(name, price, count):
    """Each aggregate of a question, released so often."""
    offer = asked(name, price)
    row = totals(NoiseBasis.of(offer.plan))
    truths = exactly(offer.question, row)
    noisy = add_noise(offer, [row] * count)
    for aggregate, truth in zip(offer.question.aggregates, truths, strict=True):
        reading, held = offer.readers[aggregate], 0
        for parts in noisy:
            value, low, high = reading.read(parts)
            assert low <= value <= high
            held += low - 1e-9 * abs(truth) <= truth <= high + 1e-9 * abs(truth)
        yield Seen(f"{name}: {aggregate.name} at {price}", held, count, reading.coverage, reading.error is not None)


def of_ranks(price, count):
    """Each quantile of 2,000 values, released so often."""
    for part in RANKS:
        question = parse_question("SELECT MEDIAN(stay) FROM visits", Policy.read(POLICY))
        (median,) = question.plan.standalone
        release = replace(median, part=part).release(question.plan, price, 0.0)
        window, choice = median.lattice, release.mechanism
        values = sorted(int(window.points * ((i * 0.6180339887) % 1) ** 2) for i in range(2000))
        places = sorted(set(values))
        counts = [values.count(v) for v in places]
        data = Ranked.of(2000, places, counts, list(accumulate(counts)))
        truth = release.read([values[max(0, math.ceil(part * 2000) - 1)]] * 3)[0]
        held = 0
        for _ in range(count):
            value, low, high = release.read(choice.release(data))
            assert low <= value <= high
            held += low <= truth <= high
        yield Seen(f"quantile {part} at {price}", held, count, 0.95, False)
