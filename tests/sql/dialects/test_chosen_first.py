"""Whole numbers as keys: hash and keys order a unit's groups together, before or after their rows are summed."""

import random
from collections import defaultdict

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.sql.dialects.duckdb import FEW, DuckDB
from sfumato.sql.emit.bounding import statement
from sfumato.sql.policy import Policy
from tests.curator.questions import changed

POLICY = """
version = 1
[budget]
epsilon = 20
delta = 1e-6
[tables.t]
unit = "u"
groups = 3
rows = {rows}
[tables.t.columns]
k = {{type = "number"}}
j = {{type = "number"}}
x = {{low = -4, high = 4, step = 1}}
"""
TYPED = DuckDB(schema={"t": {"u": "BIGINT", "k": "INTEGER", "j": "SMALLINT", "x": "DOUBLE"}})
QUESTIONS = [
    "SELECT k, COUNT(DISTINCT u) FROM t GROUP BY k",
    "SELECT k, COUNT(*), COUNT(x), SUM(x), COUNT(DISTINCT u) FROM t GROUP BY k",
    "SELECT k, j, COUNT(*), SUM(x) FROM t WHERE x > -3 GROUP BY k, j",
]


def rows_of(seed):
    """Few people with many groups each, NULL and doubles that are none among them."""
    chance = random.Random(seed)
    odd = [None, float("nan"), float("inf"), -7.0, 0.0, 1.0, 2.0, 3.0]
    choices = [[None, *range(8)], [None, *range(6)], [None, 0, 1], odd]
    return [tuple(chance.choice(values) for values in choices) for _ in range(300)]


@pytest.fixture
def database():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (u BIGINT, k INTEGER, j SMALLINT, x DOUBLE)")
        yield connection


def filled(connection, rows):
    words = ("(" + ", ".join("NULL" if x is None else f"'{x}'" for x in row) + ")" for row in rows)
    connection.execute(f"DELETE FROM t; INSERT INTO t VALUES {', '.join(words)}")
    return connection


def release_of(sql, rows=2):
    return parse_question(sql, Policy.read(POLICY.format(rows=rows))).plan


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("seed", range(5))
def test_before_or_after_the_same_groups_are_kept(sql, seed, database, monkeypatch):
    plan = release_of(sql)
    first = statement(plan, 5, TYPED)
    monkeypatch.setattr("sfumato.sql.dialects.duckdb.FEW", 0)
    later = statement(plan, 5, TYPED)
    assert "DENSE_RANK" in first
    assert "DENSE_RANK" not in later
    filled(database, rows_of(seed))
    both = [sorted(database.execute(text).fetchall(), key=repr) for text in (first, later)]
    assert both[0] == both[1]
    assert len(both[0]) > 3


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("rows", [1, FEW, FEW + 1])
def test_a_person_moves_few_groups_and_each_a_little(sql, rows, database):
    plan = release_of(sql, rows)
    text, everybody, moved = statement(plan, 5, TYPED), rows_of(1), 0
    for who in [None, *range(8)]:
        others = [row for row in everybody if row[0] != who]
        pair = [filled(database, some).execute(text).fetchall() for some in (everybody, others)]
        width = len(plan.keys)
        moved += changed(sql, plan, *({row[:width]: list(row[width:]) for row in found} for found in pair))
    assert moved > 10


@pytest.mark.parametrize("rows", [FEW, FEW + 1])
def test_equal_hashes_are_told_apart_by_the_keys(rows, database, monkeypatch):
    """The hash replaced by a constant: of a person with too many groups exactly so many are kept, of the least keys."""
    plan = release_of("SELECT k, COUNT(DISTINCT u) FROM t GROUP BY k", rows)
    monkeypatch.setattr("sfumato.sql.dialects.base.keyed_hash", lambda *_: "CAST(5 AS BIGINT)")
    tied = statement(plan, 5, TYPED)
    everybody, mine = rows_of(2), defaultdict(set)
    for u, k, *_ in everybody:
        mine[u].add(k)
    del mine[None]
    least = [sorted(keys, key=lambda k: (k is None, k))[:3] for keys in mine.values()]
    expected = {k: sum(k in keys for keys in least) for keys in least for k in keys}
    assert dict(filled(database, everybody).execute(tied).fetchall()) == expected
