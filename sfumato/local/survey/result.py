"""The result of a survey: shares with both intervals, what hostile reports could do, and what it cost each person."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.estimate import FrequencyEstimate, Target, estimate
from sfumato.local.shuffle import Shuffled
from sfumato.local.survey.design import Design
from sfumato.local.survey.reports import Tallied, read_reports
from sfumato.wording import plural, short_number

DELTA = 1e-6


@dataclass(frozen=True, eq=False)
class SurveyResult:
    """The estimate of a survey and everything that belongs beside it."""

    design: Design
    tallied: Tallied
    estimate: FrequencyEstimate
    confidence: float
    hostile: int

    @property
    def plain(self) -> dict[str, object]:
        """The result as JSON holds it."""
        people = self.estimate.interval(Target.PEOPLE, self.confidence)
        population = self.estimate.interval(Target.POPULATION, self.confidence)
        rows = [
            {
                "answer": answer,
                "share": float(self.estimate.raw[v]),
                "projected": float(self.estimate.projected[v]),
                "these_people": [float(people.low[v]), float(people.high[v])],
                "population": [float(population.low[v]), float(population.high[v])],
            }
            for v, answer in enumerate(self.design.answers)
        ]
        return {
            "question": self.design.question,
            "design": self.design.hash,
            "accepted": self.estimate.people,
            "malformed": self.tallied.malformed,
            "duplicate": self.tallied.duplicate,
            "other_design": self.tallied.other_design,
            "confidence": self.confidence,
            "shares": rows,
            "hostile": self.hostile,
            "hostile_move": self.estimate.poisoned(self.hostile),
            "epsilon": self.design.randomizer.epsilon,
            "epsilon_shuffled": Shuffled(self.design.randomizer, self.estimate.people).epsilon(DELTA).upper,
            "delta_shuffled": DELTA,
        }

    def to_json(self) -> str:
        return json.dumps(self.plain, indent=1, ensure_ascii=False)

    def __str__(self) -> str:
        found, tallied, n = self.plain, self.tallied, self.estimate.people
        level = f"{100 * self.confidence:g} %"
        width = max(6, *(columns(answer) for answer in self.design.answers))
        lines = [
            self.design.question,
            f"{n:,} accepted · {tallied.malformed:,} malformed · {tallied.duplicate:,} duplicate · "
            f"{tallied.other_design:,} of another design",
            "",
            f"{'answer'.ljust(width)}  share   {level} for these people   {level} for the population",
        ]
        rows, moved = found["shares"], 100 * self.estimate.poisoned(self.hostile)
        assert isinstance(rows, list)
        for row in rows:
            (a, b), (c, d) = row["these_people"], row["population"]
            name = row["answer"] + " " * (width - columns(row["answer"]))
            lines.append(
                f"{name}  {100 * row['share']:5.1f} %   {100 * a:5.1f} … {100 * b:5.1f} %"
                f"          {100 * c:5.1f} … {100 * d:5.1f} %"
            )
        lines += [
            "",
            f"{plural(self.hostile, 'hostile report')} could move a share by {short_number(moved, 2)} points",
            f"privacy: ε = {self.design.randomizer.epsilon:.4g} for each person, from everybody, the server included",
            Shuffled(self.design.randomizer, n).statement(DELTA),
        ]
        return "\n".join(lines)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide characters, none for marks on others."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def estimate_survey(
    design: Design, lines: Iterable[str | bytes], *, confidence: float = 0.95, hostile: int | None = None
) -> SurveyResult:
    """The result of all lines; free, as it only reads reports."""
    tallied = read_reports(design, lines)
    if not tallied.reports:
        raise InvalidParameter(
            "no report of this survey was found.\n"
            f"  found:  {tallied.malformed:,} malformed lines, {tallied.other_design:,} of another design\n"
            "  do:     give the file of reports that belongs to this design"
        )
    found = estimate(design.randomizer, list(tallied.reports))
    count = max(1, found.people // 100) if hostile is None else checks.whole("hostile", hostile, 0)
    return SurveyResult(design, tallied, found, confidence, count)


def simulate(design: Design, people: int, shares: Sequence[float] | None = None) -> SurveyResult:
    """The result of n made-up people; shares are equal unless given. Fresh noise each time."""
    n, k = checks.whole("people", people, 1, 10**8), design.randomizer.k
    wanted = np.full(k, 1 / k) if shares is None else np.asarray(checks.distribution("shares", shares))
    if wanted.size != k:
        raise InvalidParameter(f"give one share for each of the {k} answers.\n  found:  {wanted.size} shares")
    ends = np.rint(np.cumsum(wanted) * n).astype(np.int64)
    values = np.repeat(np.arange(k), np.diff(ends, prepend=0))
    oracle = design.randomizer
    reports = oracle.read_reports(oracle.randomize(values))
    found = FrequencyEstimate(oracle, n, oracle.support(reports))
    return SurveyResult(design, Tallied((), 0, 0, 0), found, 0.95, max(1, n // 100))
