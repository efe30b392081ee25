"""SQL around private aggregations: bound before the charge, free over what is stored, with intervals where known."""

import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.errors import PostprocessingFailed, QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

RULES = Policy.read(
    POLICY.replace("epsilon = 8.0", "epsilon = 1000.0")
    .replace("groups = 2", "groups = 3")
    .replace("rows = 3", "rows = 7")
)
HUGE = 250.0  # noise is nearly nothing
ROWS = "visits WHERE cost < CASE WHEN ward = 'south' THEN 1500 WHEN ward = 'west' THEN 7000 ELSE 9000 END"
WARDS = f"SELECT ward, COUNT(*) AS n, SUM(cost) AS paid FROM {ROWS} GROUP BY ward"
INNER = parse_question(WARDS, RULES).plan


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outer")
    found = Curator.open(built(folder / "clinic.duckdb", patients=400), RULES, ledger=folder / "ledger")
    return found


OUTER = {
    "share of total": f"SELECT ward, n, 100.0 * n / SUM(n) OVER () AS share FROM ({WARDS})",
    "in the same SELECT": "SELECT ward, COUNT(*) AS n, SUM(cost) AS paid, RANK() OVER (ORDER BY COUNT(*) DESC) AS place"
    f" FROM {ROWS} GROUP BY ward",
    "running sums": f"WITH t AS ({WARDS}) SELECT ward, SUM(n) OVER (ORDER BY ward) AS up, n - LAG(n) OVER"
    " (ORDER BY ward) AS more FROM t ORDER BY ward",
    "aggregates of aggregates": f"SELECT SUM(n) AS n, AVG(paid) AS p, MAX(n) AS most, COUNT(*) AS c FROM ({WARDS})",
    "a public table": f"SELECT floor, SUM(n) AS n FROM ({WARDS}) t JOIN wards USING (ward) GROUP BY floor ORDER BY 1",
    "a subquery": f"WITH t AS ({WARDS}) SELECT ward FROM t WHERE n > (SELECT AVG(n) FROM t) ORDER BY 1",
    "a union with itself": f"WITH t AS ({WARDS}) SELECT ward, n FROM t UNION ALL SELECT 'all', SUM(n) FROM t",
    "pivot": f"SELECT * FROM (SELECT ward, n FROM ({WARDS})) PIVOT (SUM(n) FOR ward IN ('north', 'south'))",
    "texts": f"SELECT STRING_AGG(UPPER(ward), ', ' ORDER BY ward) AS wards FROM ({WARDS}) WHERE n > 3",
    "distinct": f"SELECT DISTINCT n > 3 AS many FROM ({WARDS})",
    "qualify": f"SELECT ward, COUNT(*) AS n, SUM(cost) AS paid FROM {ROWS} GROUP BY ward QUALIFY ROW_NUMBER() OVER"
    " (ORDER BY COUNT(*) DESC, ward) = 1",
}


@pytest.mark.parametrize("name", OUTER)
def test_one_release_serves_every_query_over_it(curator, name):
    """The plan is that of the inner SELECT, so only the first of all these is charged."""
    question = parse_question(OUTER[name], RULES)
    assert question.plan == INNER
    assert question.outer is not None
    curator.ask(WARDS, epsilon=HUGE)
    assert not curator.ask(OUTER[name], epsilon=HUGE).charged


@pytest.mark.parametrize("name", [name for name in OUTER if name != "pivot"])
def test_answers_are_those_of_plain_sql(curator, name):
    """With nearly no noise: the policy's keys are those of plain SQL, but for wards that it does not list."""
    known = "visits WHERE ward IN ('north', 'south', 'west') AND NOT patient_id IS NULL AND"
    clamped = OUTER[name].replace("SUM(cost)", "SUM(LEAST(cost, 1000))")
    plain = curator.engine.run(clamped.replace("visits WHERE", known))
    answer = curator.ask(OUTER[name], epsilon=HUGE)
    titles = [one for one in answer.columns if not one.endswith((" low", " high"))]
    found = [tuple(row[answer.columns.index(title)] for title in titles) for row in answer.rows]
    assert len(found) == len(plain)
    for mine, theirs in zip(sorted(found, key=repr), sorted(plain, key=repr), strict=True):
        for one, other in zip(mine, theirs, strict=True):
            if isinstance(other, int | float) and not isinstance(other, bool):
                assert one == pytest.approx(float(other), rel=0.05, abs=5.0)
            else:
                assert one == other


def test_intervals_come_through(curator):
    answer = curator.ask(OUTER["share of total"], epsilon=HUGE)
    assert answer.columns == ("ward", "n", "n low", "n high", "share", "share low", "share high")
    assert sum(answer.column("share")) == pytest.approx(100.0)
    for row in answer.rows:
        assert row[2] <= row[1] <= row[3]
        assert row[5] <= row[4] <= row[6]
    placed = curator.ask(OUTER["in the same SELECT"], epsilon=HUGE)
    assert "place low" not in placed.columns
    assert "No interval is known for place" in placed.note


BAD = [
    f"SELECT nothing FROM ({WARDS}) t, wards",
    f"SELECT ward, RANDOM() OVER () FROM ({WARDS})",
    f"SELECT DISTINCT ward, now() FROM ({WARDS})",
    f"SELECT ward, SUM(n) OVER (ORDER BY nothing) FROM ({WARDS})",
    f"SELECT * FROM ({WARDS}), read_csv('/etc/passwd')",
    f"SELECT * FROM ({WARDS}) t JOIN released_0 USING (ward)",
    f"SELECT * FROM ({WARDS}) t JOIN visits USING (ward)",
    f"SELECT ward IN (SELECT ward FROM visits) FROM ({WARDS})",
]


@pytest.mark.parametrize("sql", BAD)
def test_a_bad_outer_query_is_refused_for_free(curator, sql):
    before = len(curator.ledger.entries()) if hasattr(curator.ledger, "entries") else curator.remaining()
    with pytest.raises(QueryRefused):
        curator.ask(sql, epsilon=1.5)
    after = len(curator.ledger.entries()) if hasattr(curator.ledger, "entries") else curator.remaining()
    assert before == after


def test_a_failure_over_released_values_is_told_and_the_release_stays(curator):
    with pytest.raises(PostprocessingFailed, match="stored"):
        curator.ask(f"SELECT CAST(ward AS INT) AS x, SUM(n) OVER () FROM ({WARDS})", epsilon=HUGE)
    assert not curator.ask(WARDS, epsilon=HUGE).charged


SEVERAL = """SELECT a.ward, a.n / b.people AS each FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) a
             JOIN (SELECT ward, COUNT(DISTINCT patient_id) AS people FROM visits GROUP BY ward) b USING (ward)"""


def test_several_aggregations_share_one_price(curator):
    preview = curator.preview(SEVERAL, epsilon=2.0)
    assert preview.epsilon == pytest.approx(2.0, rel=1e-6)
    assert preview.epsilon <= 2.0
    assert {name for name, _ in preview.errors()} == {"n", "people"}
    answer = curator.ask(SEVERAL, epsilon=2.0, key="several")
    assert answer.charged
    assert answer.epsilon == pytest.approx(2.0, rel=1e-6)
    assert answer.columns == ("ward", "each", "each low", "each high")
    again = curator.ask(SEVERAL, epsilon=2.0, key="several")
    assert not again.charged
    assert again.rows == answer.rows
    with pytest.raises(QueryRefused, match="epsilon="):
        curator.ask(SEVERAL, error=3.0)


def test_several_aggregations_are_charged_together_or_not_at_all(tmp_path):
    poor = Policy.read(POLICY)
    curator = Curator.open(built(tmp_path / "clinic.duckdb"), poor, ledger=tmp_path / "ledger")
    left = curator.remaining()
    with pytest.raises(Exception, match=r"budget|account"):
        curator.ask(SEVERAL, epsilon=50.0)
    assert curator.remaining() == left


def test_scalar_subqueries_and_unions_of_aggregations(curator):
    long = "SELECT COUNT(*) FROM visits WHERE stay > 7"
    answer = curator.ask(f"SELECT ({long}) / (SELECT COUNT(*) FROM visits) AS share", epsilon=HUGE)
    ((share, low, high),) = answer.rows
    assert low <= share <= high
    both = curator.ask(f"SELECT 'long' AS what, n FROM ({long.replace('COUNT(*)', 'COUNT(*) AS n')})"
                       " UNION ALL SELECT 'all', COUNT(*) FROM visits", epsilon=HUGE)  # fmt: skip
    assert both.column("what") == ["long", "all"]
    assert both.column("n")[0] / both.column("n")[1] == pytest.approx(share, rel=0.1)


def test_the_processes_of_free_sql_hold_no_tables_of_the_owner(curator):
    with pytest.raises(ValueError, match="no table"):
        curator.planner.processor.compute({}, "SELECT * FROM visits")


WINDOWS = [
    "SELECT COUNT(*) OVER () FROM visits",
    "SELECT patient_id, ROW_NUMBER() OVER () FROM visits",
    "SELECT * FROM visits UNION ALL SELECT * FROM visits",
    "WITH t AS (SELECT * FROM visits) SELECT * FROM t",
    "SELECT DISTINCT ward FROM visits",
    f"SELECT (SELECT MAX(cost) FROM visits v WHERE v.ward = t.ward) FROM ({WARDS}) t",
    "SELECT ward, COUNT(*), stay, RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY ward",
    "SELECT COUNT(*), SUM(COUNT(*)) OVER (PARTITION BY patient_id) FROM visits GROUP BY patient_id",
]


@pytest.mark.parametrize("sql", WINDOWS)
def test_rows_are_shown_by_no_outer_query(sql):
    with pytest.raises(QueryRefused):
        parse_question(sql, RULES)
