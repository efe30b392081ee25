"""The curator on a synthetic clinic: a dozen questions, then an attack. `make demo`, or `sfumato demo`."""

import argparse
import json
import statistics
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sfumato.curator import Curator
from sfumato.curator.answer import Answer, Cell, format_columns, format_table
from sfumato.errors import SfumatoError
from sfumato.progress import show_progress
from sfumato.sql.policy import Policy
from sfumato.teach.demo import clinic
from sfumato.wording import short_number

WIDTH = 80
TARGETS = 24


@dataclass(frozen=True)
class Question:
    """A question of the demo, with a price (epsilon) or a wanted accuracy (error)."""

    title: str
    sql: str
    epsilon: float | None = 0.3
    error: float | None = None
    who: str = "owner"

    @property
    def price(self) -> str:
        who = f"{self.who} asks, " if self.who != "owner" else ""
        return f"{who}epsilon={self.epsilon:g}" if self.epsilon else f"{who}error={self.error:g}"


QUESTIONS = (
    Question("How many visits, by how many patients?",
          "SELECT COUNT(*) AS visits, COUNT(DISTINCT patient_id) AS patients FROM visits", 0.2),
    Question("How busy are the wards, and how long do people stay?",
          "SELECT ward, COUNT(*) AS visits, AVG(stay) AS days FROM visits GROUP BY ward", 0.8),
    Question("The same question, in other words: free",
          "select avg(v.stay) as mean_stay, v.ward, count(*) as n from visits as v "
          "where 1 = 1 group by v.ward order by n desc", 0.8),
    Question("What do people come for? (Which diagnoses there are is private.)",
          "SELECT diagnosis, COUNT(DISTINCT patient_id) AS people FROM visits "
          "GROUP BY diagnosis ORDER BY people DESC", 0.6),
    Question("What does a visit cost, by age?",
          "SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'elder' END AS who, "
          "AVG(cost) AS cost FROM visits GROUP BY who", 0.6),
    Question("Which floor brings in what? (Joined with a public table.)",
          "SELECT floor, SUM(cost) AS income FROM visits JOIN wards USING (ward) GROUP BY floor", 0.6),
    Question("How many of us smoke, to within 150 people?",
          "SELECT COUNT(*) AS smokers FROM patients WHERE smoker", None, 150),
    Question("How much do stays vary?", "SELECT AVG(stay) AS mean, STDDEV(stay) AS spread FROM visits", 0.4),
    Question("Busy months only (HAVING sees noisy counts, so it costs nothing more)",
          "SELECT MONTH(day) AS month, COUNT(*) AS visits FROM visits WHERE ward = 'emergency' "
          "GROUP BY month HAVING visits > 1200", 0.7),
    Question("Long stays in surgery, of a journalist's own share",
          "SELECT COUNT(*) AS long_stays FROM visits WHERE ward = 'surgery' AND stay > 14", 0.2, None, "journalist"),
    Question("A question that would show people", "SELECT * FROM patients WHERE patient_id = 17", 0.1),
    Question("A sum without bounds", "SELECT SUM(age * patient_id) FROM patients", 0.1),
)  # fmt: skip


@dataclass(frozen=True)
class Clinic:
    """The synthetic clinic: its curator, and the exact data, to which only a demo has access."""

    curator: Curator
    exact: duckdb.DuckDBPyConnection

    @staticmethod
    def build(folder: Path) -> "Clinic":
        place = folder / "clinic.duckdb"
        clinic.build(place)
        return Clinic(Curator.open(place, Policy.read(clinic.POLICY)), duckdb.connect(str(place), read_only=True))


# ---- questions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The answer to one question or its refusal, and the truth."""

    question: Question
    answer: Answer | None
    truth: tuple[Cell, ...]  # of the first aggregate, row by row
    refusal: str
    left: float

    def plain(self) -> dict[str, object]:
        answer = json.loads(self.answer.to_json()) if self.answer else None
        return {"title": self.question.title, "sql": self.question.sql, "epsilon": self.question.epsilon,
                "error": self.question.error, "answer": answer, "truth": list(self.truth), "refusal": self.refusal,
                "left": self.left}  # fmt: skip


def ask(question: Question, demo: Clinic) -> Outcome:
    """Ask a question of the curator, and look up the truth."""
    curator = demo.curator.analyst(question.who)
    try:
        answer = curator.ask(question.sql, epsilon=question.epsilon, error=question.error)
    except SfumatoError as problem:
        return Outcome(question, None, (), str(problem), curator.budget.left)
    return Outcome(question, answer, truth(answer, demo.exact.execute(question.sql)), "", curator.budget.left)


def truth(answer: Answer, exact: duckdb.DuckDBPyConnection) -> tuple[Cell, ...]:
    """The exact value of the first aggregate, for each row of the answer."""
    names = [column[0] for column in exact.description or []]
    spans = {name for name in answer.columns if f"{name} low" in answer.columns}
    keys = [name for name in names if name not in spans]
    first = next(name for name in names if name in spans)
    rows = [dict(zip(names, row, strict=True)) for row in exact.fetchall()]
    values = {tuple(with_doubles(row[key]) for key in keys): row[first] for row in rows}
    ours = zip(*(answer.column(key) for key in keys), strict=True) if keys else [()]
    return tuple(values.get(tuple(map(with_doubles, key))) for key in ours)


def with_doubles(value: object) -> object:
    return float(value) if isinstance(value, int | float) else value


def format_outcome(number: int, outcome: Outcome) -> str:
    """A question and its answer, with the truth and the budget."""
    head = [f"{number}. {outcome.question.title}"]
    head += [f"   {line}" for line in textwrap.wrap(outcome.question.sql, WIDTH - 3)]
    head += [f"   {outcome.question.price}", ""]
    if outcome.answer is None:
        return "\n".join([*head, *format_refusal(outcome.refusal), ""])
    names, rows, right = format_columns(outcome.answer.columns, outcome.answer.rows)
    exact = [row[0].replace("NULL", "") for row in format_columns(["truth"], [[cell] for cell in outcome.truth])[1]]
    width = max(map(len, ["truth", *exact]))
    beside = [[*row, f"│ {text:>{width}}"] for row, text in zip(rows, exact, strict=True)]
    body = format_table([*names, f"│ {'truth':>{width}}"], beside, [*right, False])
    price = f"ε = {outcome.answer.epsilon:.2g}" if outcome.answer.charged else "free"
    whose = "budget" if outcome.question.who == "owner" else f"{outcome.question.who}'s share"
    foot = f"{price:>10} · {whose} {bar(outcome.left)} {100 * outcome.left:.0f} % left"
    return "\n".join([*head, *(f"   {line}" for line in body.splitlines()), f"   {foot}", ""])


def format_refusal(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines()):
        yield from textwrap.wrap(
            line.strip(), WIDTH, initial_indent="   ✗ " if number == 0 else "     ", subsequent_indent="     "
        )


def bar(share: float, width: int = 24) -> str:
    full = round(share * width)
    return "█" * full + "░" * (width - full)


# ---- the attack -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attack:
    """The result of a differencing attack: two counts that differ by one patient, exact and through the curator."""

    targets: int
    exact: int  # right guesses from exact counts
    noisy: int  # right guesses through the curator
    differences: tuple[float, ...]  # of the curator's counts
    epsilon: float

    def plain(self) -> dict[str, object]:
        return {"title": "differencing", **self.__dict__}

    def __str__(self) -> str:
        seen = ", ".join(f"{d:+,.0f}" for d in self.differences[:8])
        spread = statistics.pstdev(self.differences)
        text = f"""
A differencing attack
─────────────────────
To learn whether patient 17 is HIV positive, count all who are, and then all but her:

   SELECT COUNT(*) FROM patients WHERE hiv
   SELECT COUNT(*) FROM patients WHERE hiv AND patient_id <> 17

The difference is her secret, although both counts are large. Tried on {self.targets} patients, half of them positive:

   asked of the database itself   {self.exact} of {self.targets} right: differences are 1 or 0
   asked of the curator           {self.noisy} of {self.targets} right: blind guessing gets about {self.targets // 2}

Through the curator the differences were {seen}, …: their standard deviation is {short_number(spread, 2)}, and
one person changes them by 1. Asking again does not help: the same question gets the same stored answer, other
questions are charged, and when ε = {self.epsilon:g} is used up there are no more answers."""
        return "\n".join(
            line if line.startswith((" ", "─")) else textwrap.fill(line, WIDTH)
            for line in join_paragraphs(text.strip("\n"))
        )


def join_paragraphs(text: str) -> Iterator[str]:
    """The lines of a paragraph joined to one line; indented blocks are kept."""
    for block in text.split("\n\n"):
        lines = block.split("\n")
        if any(line.startswith((" ", "─")) for line in lines):
            yield from lines
        else:
            yield " ".join(lines)
        yield ""


def attack(demo: Clinic, folder: Path) -> Attack:
    """Guess the secrets of some patients from differences of two counts, with a separate budget."""
    everyone = "SELECT COUNT(*) AS n FROM patients WHERE hiv"
    curator = Curator.open(demo.curator.engine, demo.curator.policy, ledger=folder / "attack.ledger")
    half = TARGETS // 2
    secrets = demo.exact.execute(
        f"(SELECT patient_id, hiv FROM patients WHERE hiv ORDER BY patient_id LIMIT {half}) UNION ALL "
        f"(SELECT patient_id, hiv FROM patients WHERE NOT hiv ORDER BY patient_id LIMIT {half})"
    ).fetchall()
    right_exact, right_noisy, differences = 0, 0, []
    for who, secret in secrets:
        without = f"{everyone} AND patient_id <> {who}"
        exact = [demo.exact.execute(sql).fetchall()[0][0] for sql in (everyone, without)]
        noisy = [curator.ask(sql, epsilon=0.3).rows[0][0] for sql in (everyone, without)]
        first, second = (float(cell) if isinstance(cell, int | float) else 0.0 for cell in noisy)
        differences.append(first - second)
        right_exact += (exact[0] - exact[1] > 0.5) == secret
        right_noisy += (differences[-1] > 0.5) == secret
    return Attack(len(secrets), right_exact, right_noisy, tuple(differences), curator.policy.epsilon)


# ---- the demo -------------------------------------------------------------------------------------------------------

WELCOME = f"""A clinic, its curator, and a dozen questions
────────────────────────────────────────────
{clinic.PATIENTS:,} patients and {clinic.VISITS:,} visits, synthetic, made from a seed. The owner's
policy promises every patient ε = 2 at δ = 1e-6 for all answers together. It
does not say how many visits a patient has: each question finds that out, for a
tenth of its price, and scales down the few patients with very many visits. The
95 % intervals cover the noise and what that leaves out. The truth on the right
is shown here only; the curator releases it to nobody.
"""


def show(folder: Path, as_json: bool) -> None:
    with show_progress("building a clinic"):
        demo = Clinic.build(folder)
    outcomes = []
    if not as_json:
        print(WELCOME, flush=True)
    for number, question in enumerate(QUESTIONS, 1):
        with show_progress(question.title):
            outcomes.append(ask(question, demo))
        if not as_json:
            print(format_outcome(number, outcomes[-1]), flush=True)
    budget = demo.curator.budget
    with show_progress("attacking"):
        attacked = attack(demo, folder)
    if as_json:
        data = {
            "questions": [outcome.plain() for outcome in outcomes],
            "budget": json.loads(budget.to_json()),
            "attack": attacked.plain(),
        }
        print(json.dumps(data, ensure_ascii=False, allow_nan=False))
    else:
        print(f"The budget after these questions\n{'─' * 32}\n{budget}\n", flush=True)
        print(attacked)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m sfumato.teach.demo", description="The curator on a synthetic clinic."
    )
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
            show(Path(folder), options.json)
            if not options.json:
                print("\nAsk it yourself, in a browser, from psql or from Python: make serve")
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
