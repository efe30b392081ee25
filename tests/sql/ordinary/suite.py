"""Ordinary questions of analysts about eight databases, and what plain DuckDB says to them.

Each database is three files: its data, its policy, and its questions, which are in the shape of public sources
(TPC-H and TPC-DS, interview tasks, metrics of dbt) and were written before any was asked. A question is answered with
noise switched off, under bounds that cut nothing, and compared with DuckDB: of the same text, or of what follows
`-- plain:`, where DuckDB cannot read it or the documents say that something else is meant.

    python -m tests.sql.ordinary            all of them (about two minutes)
    python -m tests.sql.ordinary shop web   those of two databases
"""

import datetime
import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import duckdb

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator, release
from sfumato.curator.open import budget_of
from sfumato.errors import QueryRefused, SfumatoError
from sfumato.ledger import Ledger
from sfumato.sql.policy import Policy

HERE = Path(__file__).parent
DATABASES = ("shop", "web", "taxi", "census", "metrics", "tasks", "tpch", "tpcds")
EPSILON, TOLERANCE = 900.0, 2e-3
BY_RANK = re.compile(r"\b(median|quantile\w*|percentile\w*|min|max|mode|approx_top_k|trimmed_mean)\b", re.IGNORECASE)
PUBLIC_ROWS, MISSING_ROWS = "shown although nobody is there", "hidden, as few people are there"


@dataclass(frozen=True)
class Ordinary:
    """A question: what it is about, its SQL, and the SQL of plain DuckDB."""

    database: str
    title: str
    sql: str
    plain: str


@dataclass(frozen=True)
class Outcome:
    question: Ordinary
    kind: str  # same, refused, different, or the name of an error
    words: str = ""


def questions_about(database: str) -> list[Ordinary]:
    found: list[Ordinary] = []
    for part in re.split(r"^-- (?=(?!plain:))", (HERE / f"{database}.sql").read_text(), flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        sql, _, plain = rest.partition("-- plain:")
        sql, plain = (one.strip().rstrip(";").strip() for one in (sql, plain))
        found.append(Ordinary(database, title.strip(), sql, plain or sql))
    return found


def policy_of(database: str) -> Policy:
    return Policy.read((HERE / f"{database}.toml").read_text())


def refusal(question: Ordinary, policy: Policy) -> str:
    """Why it is refused; "" if it is read."""
    try:
        parse_question(question.sql, policy)
    except QueryRefused as problem:
        return str(problem)
    return ""


# ---- asking and comparing -------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """A database, asked by a curator without noise and by plain DuckDB."""

    curator: Curator
    plain: duckdb.DuckDBPyConnection
    folder: Path
    asked: int = 0

    @staticmethod
    def of(database: str, folder: Path) -> "Bench":
        script = (HERE / f"{database}.data.sql").read_text()
        with duckdb.connect(str(folder / f"{database}.duckdb")) as connection:
            connection.execute(script)
        plain = duckdb.connect()
        plain.execute(script)
        return Bench(Curator.open(folder / f"{database}.duckdb", policy_of(database)), plain, folder)

    def outcome(self, question: Ordinary) -> Outcome:
        self.asked += 1
        ledger = Ledger.create(self.folder / f"{question.database}.{self.asked}", budget_of(self.curator.policy))
        try:
            with patch.object(release, "add_noise", without_noise):
                answer = replace(self.curator, ledger=ledger).ask(question.sql, epsilon=EPSILON)
        except SfumatoError as problem:
            return Outcome(question, "refused" if isinstance(problem, QueryRefused) else type(problem).__name__,
                           str(problem))  # fmt: skip
        found = self.plain.execute(question.plain)
        titles = [one[0] for one in found.description]
        shown = [i for i, name in enumerate(answer.columns) if name in titles or not name.endswith((" low", " high"))]
        mine = [tuple(comparable(row[i]) for i in shown) for row in answer.rows]
        truth = [tuple(map(comparable, row)) for row in found.fetchall()]
        private = self.private_keys(question)
        words = difference(mine, truth, private, bool(BY_RANK.search(question.sql)))
        return Outcome(question, "different" if words else "same", words)

    def private_keys(self, question: Ordinary) -> bool:
        asked = parse_question(question.sql, self.curator.policy)
        parts = asked.outer.questions if asked.outer is not None else (asked,)
        return any(one.plan.discovered for one in parts)


def without_noise(offer, exact):
    columns = offer.joint.part_columns(exact)
    return [list(map(int, row)) for row in zip(*columns, strict=True)] if columns else [[] for _ in exact]


def comparable(value):
    """A value as both sides have it: numbers as doubles, dates as texts."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    number = float(value)
    return None if math.isnan(number) else number


def same(one, other, loose=False):
    if isinstance(one, str) and isinstance(other, list):
        one = json.loads(one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b, loose) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return loose or math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return one == other or (loose and isinstance(one, int | float) and other is None)


def difference(mine, truth, private, by_rank):
    """What differs, in words; "" if nothing does. Ranks are chosen by a mechanism of their own, which keeps its noise:
    of questions about them keys and rows are compared.

    Public groups without people are shown, and private ones with few people are not.
    """
    left, extra = list(truth), []
    for row in mine:
        place = next((i for i, one in enumerate(left) if len(one) == len(row) and all(map(same, row, one))), None)
        if place is None and by_rank:
            loosely = (i for i, one in enumerate(left) if len(one) == len(row)
                       and all(same(a, b, True) for a, b in zip(row, one, strict=True)))  # fmt: skip
            place = next(loosely, None)
        if place is None:
            extra.append(row)
        else:
            del left[place]
    extra = [row for row in extra if not is_empty(row)]
    if extra or (left and not (private and len(left) <= max(1, len(truth) // 4))):
        return f"{len(mine)} rows for {len(truth)}; {extra[:2]} instead of {left[:2]}"
    return ""


def is_empty(row):
    """A group in which nobody is: its numbers behind the keys are 0 or nothing."""
    return row[-1] is None or (isinstance(row[-1], float) and abs(row[-1]) < 1e-6)
