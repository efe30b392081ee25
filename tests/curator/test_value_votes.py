"""One vote of norm 1 for each unit: what a histogram of values counts where nobody states how many rows people have."""

import math

import duckdb
import pytest

from sfumato.aggregates.price import Mu, Pure
from sfumato.curator import Curator
from sfumato.curator.suggest_bounds import number_column
from sfumato.curator.value_votes import (
    NoisyCounts,
    ValueVotes,
    buy_value_histogram,
    magnitude_histogram,
    position_histogram,
)
from sfumato.sql.dialects import dialect_of
from sfumato.sql.emit.norm import WHOLE
from sfumato.sql.policy import Policy

POLICY = """
version = 1
[budget]
epsilon = 40.0
delta = 1e-6
{kind}
[tables.visits]
unit = "person"
[tables.visits.columns]
stay = {{type = "number"}}
"""


def policy(kind=""):
    return Policy.read(POLICY.format(kind=kind))


def votes(connection, price, question):
    (request,) = ValueVotes(question.plan, price).requests(1, dialect_of("duckdb"))
    return {key: int(n) for key, n in connection.execute(request.direct).fetchall()}


@pytest.fixture
def connection():
    """A heavy person, one with one row, one without values, one with rows in many bins, and rows of nobody."""
    found = duckdb.connect()
    found.execute(
        "CREATE TABLE visits AS SELECT 1 AS person, (i % 7)::DOUBLE AS stay FROM range(100000) t(i)"
        " UNION ALL SELECT 2, 3.0 UNION ALL SELECT 3, NULL UNION ALL SELECT 3, 'nan'::DOUBLE"
        " UNION ALL SELECT 4, i * 0.37 FROM range(300) t(i) UNION ALL SELECT NULL, 5.0 FROM range(1000)"
    )
    return found


@pytest.mark.parametrize("price", [Mu(1.0), Pure(1.0)])
@pytest.mark.parametrize("shape", ["sizes", "places"])
def test_a_unit_moves_all_bins_together_by_norm_1(connection, price, shape):
    table, of = number_column("visits.stay", policy())
    question = magnitude_histogram(table, of) if shape == "sizes" else position_histogram(table, of, 0.0, 64.0)
    whole = votes(connection, price, question)
    assert {(key,) for key in whole} <= set(question.plan.public)
    for person in (1, 2, 3, 4):
        connection.execute(f"CREATE OR REPLACE TABLE kept AS SELECT * FROM visits WHERE person = {person}")
        connection.execute("ALTER TABLE visits RENAME TO everybody")
        connection.execute("CREATE VIEW visits AS SELECT * FROM everybody WHERE person IS DISTINCT FROM " + str(person))
        rest = votes(connection, price, question)
        connection.execute("DROP VIEW visits")
        connection.execute("ALTER TABLE everybody RENAME TO visits")
        moved = [whole.get(key, 0) - rest.get(key, 0) for key in {*whole, *rest}]
        norm = sum(n * n for n in moved) if price.squares else sum(map(abs, moved))
        assert norm <= WHOLE ** (2 if price.squares else 1)
        if person != 3:
            assert norm > 0.99 * WHOLE ** (2 if price.squares else 1)


def test_votes_are_never_taken_for_an_answer(tmp_path, connection):
    """An analyst may ask for the same bins: votes of norm 1 must not be served as numbers of visits."""
    connection.execute(f"ATTACH '{tmp_path / 'a.duckdb'}' AS a")
    connection.execute("CREATE TABLE a.visits AS SELECT * FROM visits")
    connection.execute("DETACH a")
    curator = Curator.open(tmp_path / "a.duckdb", policy())
    table, of = number_column("visits.stay", curator.policy)
    counts, new = buy_value_histogram(curator.buyer, position_histogram(table, of, 0.0, 64.0), Mu(3.0))
    assert new and sum(counts.counts) < 80
    assert not buy_value_histogram(curator.buyer, position_histogram(table, of, 0.0, 64.0), Mu(2.0))[1]
    answer = curator.ask("SELECT WIDTH_BUCKET(stay, 0, 64, 400) AS b, COUNT(*) AS n FROM visits GROUP BY b", epsilon=1)
    assert answer.charged


@pytest.mark.parametrize("kind", ["", 'kind = "pure"'])
def test_bounds_need_no_rows_and_no_groups(tmp_path, kind):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as made:
        made.execute(
            "CREATE TABLE visits AS SELECT (hash(i) % 3000)::INT AS person,"
            " 50 - 10 * ln((hash(i * 7) % 9973 + 1) / 9974) AS stay FROM range(60000) t(i)"
        )
        truth = made.execute("SELECT quantile_cont(stay, [0.01, 0.98]), min(stay), max(stay) FROM visits").fetchone()
    curator = Curator.open(tmp_path / "a.duckdb", policy(kind))
    bounds = curator.suggest_bounds("visits.stay", epsilon=4.0)
    assert bounds.low <= truth[0][0] and bounds.high >= truth[0][1]
    assert bounds.high < 4 * truth[2]
    assert 0 <= bounds.outside.values <= bounds.outside.at_most < 0.2
    assert "of values" in str(bounds) and "lie outside" in str(bounds)
    again = curator.suggest_bounds("visits.stay", epsilon=2.0)
    assert not again.charged and (again.low, again.high) == (bounds.low, bounds.high)


def test_what_is_stored_is_read_the_most_exact_first(tmp_path, connection):
    connection.execute(f"ATTACH '{tmp_path / 'a.duckdb'}' AS a")
    connection.execute("CREATE TABLE a.visits AS SELECT * FROM visits")
    connection.execute("DETACH a")
    curator = Curator.open(tmp_path / "a.duckdb", policy())
    question = magnitude_histogram(*number_column("visits.stay", curator.policy))
    for mu in (0.1, 0.3, 0.2):
        buy_value_histogram(curator.buyer, question, Mu(mu))
    stored = NoisyCounts.find_stored(question, Mu(0.1), curator.ledger)
    assert [one.price.amount for one in stored] == pytest.approx([0.3, 0.1])  # 0.2 was served by 0.3
    assert stored[0].by_unit and math.isclose(stored[0].sigma, 1 / 0.3)
