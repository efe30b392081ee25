"""A thousand questions from the grammar; `make fuzz` asks very many more.

What the generator reaches is checked against the registries, and that the checks can fail, by planted bugs.
"""

from collections import Counter
from pathlib import Path

import pytest
from sqlglot import exp, parse_one

from sfumato.aggregates.registry import AGGREGATES
from sfumato.sql.emit.bounding import Bounding
from sfumato.sql.expressions import Call
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.parse.date_syntax import refuse_today
from sfumato.sql.parse.expressions import SPELLED
from sfumato.sql.parse.function_syntax import SPECIAL, refuse_histogram
from sfumato.sql.plan import Plan
from tests.fuzz.grammar import INTERNAL
from tests.fuzz.rows import FAMILIES
from tests.fuzz.run import BATCH, Run

SEED, COUNT = 20, 1000
UNSPOKEN = {exp.DateSub, "date_add"}  # what this version of the parser makes of no text
KEPT = [
    line.split() for line in Path(__file__).with_name("seeds.txt").read_text().splitlines() if line[:1] not in ("#", "")
]


@pytest.fixture(scope="module")
def run():
    """A thousand questions about ten worlds, asked; failures are collected."""
    with Run(SEED) as found:
        found.failures = []
        for index in range(COUNT):
            number = index // 100 * BATCH + index % 100
            failure = found.one(number)
            if failure is not None:
                found.failures.append(found.report(number, failure))
    return found


@pytest.mark.slow
def test_questions_of_the_grammar_keep_the_promise(run):
    """With and without one unit, on odd data; the checks are in tests/fuzz/checks.py."""
    assert run.failures == []
    assert run.count["asked"] >= COUNT
    assert run.count["planned"] > 0.6 * COUNT
    assert run.count["moved"] > 0.2 * COUNT  # the unit counts
    assert run.count["respelled"] > 20 and run.count["plain"] > 12


@pytest.mark.parametrize("family", FAMILIES)
def test_questions_about_rows_keep_the_promise(family):
    """Grouped by the unit, joined, chosen by other rows; `python -m tests.fuzz --family` asks many more."""
    with Run(SEED, None, family) as run:
        for index in range(24):
            failure = run.one(index // 8 * BATCH + index % 8)
            assert failure is None, run.report(index // 8 * BATCH + index % 8, failure)
    assert run.count["planned"] > 12 and run.count["moved"] > 2


@pytest.mark.parametrize("family", FAMILIES)
def test_questions_about_rows_keep_the_promise_on_postgres(family, server):
    with Run(SEED, server.dsn, family) as run:
        for index in range(10):
            failure = run.one(index)
            assert failure is None, run.report(index, failure)
    assert run.count["planned"] >= 3


def test_questions_of_the_grammar_keep_the_promise_on_postgres(server):
    with Run(SEED, server.dsn) as run:
        for index in range(40):
            failure = run.one(index)
            assert failure is None, run.report(index, failure)
    assert run.count["planned"] > 10


def test_what_failed_once_holds(server):
    """All questions of seeds.txt."""
    for engine, seed, index in KEPT:
        with Run(int(seed), server.dsn if engine == "postgres" else None) as run:
            failure = run.one(int(index))
            assert failure is None, run.report(int(index), failure)


# ---- what the grammar reaches ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(run):
    """(text, question) of all that were answered."""
    return run.asked


def called(expression):
    if isinstance(expression, Call):
        yield expression.name
        for one in expression.arguments:
            yield from called(one)


def rows_of(plan):
    yield plan
    for branch in plan.table.branches:
        yield from rows_of(branch.rows)


@pytest.mark.slow
def test_every_function_is_reached(sample):
    """A new function that no form spells is missed here."""
    found = Counter()
    for _, question in sample:
        for plan in rows_of(question.plan):
            listed = [*plan.row_expressions, *(of for branch in plan.table.branches for _, of in branch.columns)]
            found.update(name for one in listed for name in called(one))
    assert set(FUNCTIONS) - set(found) == INTERNAL


@pytest.mark.slow
def test_every_spelling_aggregate_clause_and_join_is_reached(sample):
    """All nodes of the parser that questions may have."""
    found = set()
    for sql, _ in sample:
        root = parse_one(sql, read="duckdb")
        found |= {type(node) for node in root.walk()}
        found |= {node.name.lower() for node in root.find_all(exp.Anonymous)}
        found |= {(node.side, node.kind) for node in root.find_all(exp.Join)}
        found |= {name for node in root.find_all(exp.Select) for name, value in node.args.items() if value}
    never = {refuse_histogram, refuse_today}  # what is only refused
    refused = {one for one, of in SPECIAL.items() if of in never}
    assert {*SPECIAL, *SPELLED} - refused - found - UNSPOKEN == set()
    assert {spelling for one in AGGREGATES.classes for spelling in one.spellings} - found == set()
    assert {("", ""), ("LEFT", ""), ("", "INNER"), ("LEFT", "OUTER"), ("RIGHT", "")} <= found
    assert {"where", "group", "having", "order", "limit", "offset", "joins", "distinct"} <= found
    assert {"with_", "with"} & found and {exp.Union, exp.Subquery} <= found
    assert "histogram" in found


@pytest.mark.slow
def test_the_bounds_are_of_every_kind(sample):
    """Units that are a column, a row, an edge, or found by a key."""
    tables = [question.plan.table for _, question in sample]
    assert {type(table.unit).__name__ for table in tables} == {"ColumnUnit", "RowUnit", "EdgeUnit"}
    assert any(table.owner for table in tables) and any(table.branches for table in tables)
    assert any(question.plan.crossed for _, question in sample)
    assert any(join.once for _, question in sample for join in question.plan.joins)


# ---- the checks can fail --------------------------------------------------------------------------------------------


def kinds_of(count=3 * BATCH):
    """What fails, until something does."""
    run = Run(SEED)
    found = (run.one(index) for index in range(count))
    return next((failure.kind for failure in found if failure is not None), None)


def test_a_bound_that_is_not_kept_is_seen(monkeypatch):
    honest = Bounding.sensitivity
    monkeypatch.setattr(Bounding, "sensitivity", lambda self, measure: max(1, honest(self, measure) // 2))
    assert kinds_of() == "a unit moves more than is claimed"


@pytest.mark.slow
def test_a_bound_on_groups_that_is_not_kept_is_seen(monkeypatch):
    """Statements keep one group more than the price is for."""
    import sfumato.sql.emit.bounding as emit

    honest = emit.first_places
    monkeypatch.setattr(emit, "first_places", lambda rows, most: honest(rows, most + 1))
    assert kinds_of() == "a unit moves more than is claimed"


@pytest.mark.slow
def test_a_key_that_forgets_the_condition_is_seen(monkeypatch):
    honest = Plan.canonical.func
    monkeypatch.setattr(Plan, "canonical", property(lambda self: honest(self).replace(repr(self.where), "…")))
    assert kinds_of() == "two questions have one key"
