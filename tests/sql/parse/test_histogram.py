"""HISTOGRAM: all bins are public and shown, edges beside counts; nothing is lost below, above, or without a value."""

import duckdb
import pytest

import sfumato as sf
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.errors import QueryRefused
from sfumato.sql.emit.bounding import statement
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.sql.parse.test_select import LOOSE

RULES = Policy.read(POLICY)


def test_every_row_is_in_one_bin(tmp_path):
    """NaN counts as no value, infinities lie outside; the bins are those of plain SQL."""
    connection = duckdb.connect(str(built(tmp_path / "clinic.duckdb")))
    plan = parse_question("SELECT HISTOGRAM(stay, 0, 60, 12) FROM visits", LOOSE).plan
    found = dict(connection.execute(statement(plan, 1, "duckdb")).fetchall())
    plain = """
        SELECT CASE WHEN stay IS NULL OR isnan(stay) THEN -1 WHEN stay < 0 THEN 0 WHEN stay >= 60 THEN 13
               ELSE floor(stay / 5) + 1 END AS bin, COUNT(*) FROM visits WHERE patient_id IS NOT NULL GROUP BY bin
    """
    truth = dict(connection.execute(plain).fetchall())
    assert found == truth
    assert {-1, 0, 13} <= set(found)
    assert plan.public == tuple((float(k),) for k in [*range(14), -1])


def test_bins_come_with_their_edges_in_order(tmp_path):
    curator = Curator.open(built(tmp_path / "clinic.duckdb", patients=500), RULES)
    answer = curator.ask("SELECT HISTOGRAM(stay, 0, 60, 4) AS n FROM visits", epsilon=4.0)
    assert answer.columns == ("bin_from", "bin_to", "n", "n low", "n high")
    edges = [row[:2] for row in answer.rows]
    assert edges == [(None, 0), (0, 15), (15, 30), (30, 45), (45, 60), (60, None), (None, None)]
    assert all(row[3] <= max(0, row[2]) <= row[4] for row in answer.rows)
    same = curator.ask(
        "SELECT HISTOGRAM(stay, 4) FROM visits HAVING COUNT(*) > -1e9", epsilon=4.0
    )  # the policy's range
    assert not same.charged
    assert same.columns[2] == "count"


def test_a_histogram_of_each_group(tmp_path):
    curator = Curator.open(built(tmp_path / "clinic.duckdb"), RULES)
    sql = "SELECT ward, HISTOGRAM(cost, -100, 1000, 2) AS n, AVG(stay) AS mean FROM visits GROUP BY ward"
    answer = curator.ask(sql, epsilon=1.0)
    assert answer.columns[:4] == ("ward", "bin_from", "bin_to", "n")
    assert answer.column("ward") == [ward for ward in ("north", "south", "west") for _ in range(5)]
    top = curator.ask(f"{sql} HAVING n > 5 ORDER BY n DESC LIMIT 3", epsilon=1.0)
    assert not top.charged
    assert top.column("n") == sorted((n for n in answer.column("n") if n > 5), reverse=True)[:3]


def test_python_asks_for_the_same():
    visits = sf.Curator(None, RULES, None).table("visits")
    mine = parse_question(visits.group_by("ward").agg(n=sf.col("stay").histogram(0, 60, 12)).sql, RULES)
    theirs = parse_question("SELECT ward, HISTOGRAM(stay, 12) AS n FROM visits GROUP BY ward", RULES)
    assert mine == theirs


@pytest.mark.parametrize(
    "asked",
    ["HISTOGRAM(stay)", "HISTOGRAM()",
     "HISTOGRAM(stay, 0, 60)", "HISTOGRAM(stay, 60, 0, 5)", "HISTOGRAM(stay, 0, 60, 0)",
     "HISTOGRAM(stay, 0, 60, 2.5)", "HISTOGRAM(stay, 0, cost, 5)", "HISTOGRAM(ward, 5)", "HISTOGRAM(patient_id, 5)",
     "HISTOGRAM(stay, 5) / 2", "SUM(HISTOGRAM(stay, 5))", "HISTOGRAM(stay, 5), HISTOGRAM(cost, 5)",
     "HISTOGRAM(stay, 1000000)", "HISTOGRAM(stay, [0, 10, 20])"],
)  # fmt: skip
def test_what_makes_no_histogram_is_refused(asked):
    with pytest.raises(QueryRefused, match=r"HISTOGRAM|WIDTH_BUCKET"):
        parse_question(f"SELECT {asked} FROM visits", RULES)
    with pytest.raises(QueryRefused):
        parse_question(f"SELECT COUNT(*) FROM (SELECT {asked} AS h FROM visits) v", RULES)
