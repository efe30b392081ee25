"""What one person can change in the integers that leave the engine: never more than the noise is made for."""

import duckdb
import pytest

from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.registry import parse_question
from sfumato.sql.emit.bounding import bounding_of, statement
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.questions import exactly

QUESTIONS = [
    "SELECT COUNT(*) FROM visits",
    "SELECT ward, COUNT(*), SUM(stay), AVG(cost) FROM visits GROUP BY ward",
    "SELECT diagnosis, COUNT(stay), SUM(cost) FROM visits GROUP BY diagnosis",
    "SELECT diagnosis, ward, COUNT(DISTINCT patient_id) FROM visits WHERE stay < 50 OR cost > 0 GROUP BY 1, 2",
    "SELECT floor, STDDEV(stay) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT month(day), AVG(CASE WHEN stay > 5 THEN stay ELSE 0 END) FROM visits GROUP BY 1",
    "WITH v AS (SELECT ward w, stay / cost AS r, diagnosis FROM visits WHERE NOT cost IS NULL)"
    " SELECT UPPER(diagnosis) d, SUM(CLAMP(r, 0, 1)) FROM v WHERE w IN ('north', 'west') GROUP BY d",
    "SELECT SUM(stay * cost - 3 * stay) FROM visits",
]
PEOPLE = [0, 3, 6, 13, 27, 39]


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    return {who: duckdb.connect(str(built(folder / f"{who}.duckdb", without=who))) for who in [None, *PEOPLE]}


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_person_moves_few_groups_and_each_a_little(sql, databases):
    plan = parse_question(sql, Policy.read(POLICY)).plan
    text = statement(plan, 12345, "duckdb")
    width = len(plan.keys)
    tables = {
        who: {row[:width]: [x or 0 for x in row[width:]] for row in connection.execute(text).fetchall()}
        for who, connection in databases.items()
    }
    zeros, joint = [0] * len(plan.measures), NoiseBasis.of(plan)
    moved = 0
    for who in PEOPLE:
        both = set(tables[None]) | set(tables[who])
        changes = [
            [a - b for a, b in zip(tables[None].get(k, zeros), tables[who].get(k, zeros), strict=True)] for k in both
        ]
        changes = [change for change in changes if any(change)]
        assert len(changes) <= plan.groups
        for change in changes:
            for measure, by in zip(plan.measures, change, strict=True):
                assert abs(by) <= bounding_of(plan).sensitivity(measure)
            for part, by in zip(joint.parts, joint.parts_of(change), strict=True):
                assert abs(by) <= part.size
        moved += bool(changes)
    assert moved > 0  # somebody counts


def test_a_person_with_many_groups_keeps_few_of_them(databases, tmp_path):
    place = tmp_path / "many.duckdb"
    connection = duckdb.connect(str(built(place)))
    connection.execute("INSERT INTO visits SELECT 7, 'north', 'x' || i, 1, 1, NULL FROM range(1000) t(i)")
    plan = parse_question("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", Policy.read(POLICY)).plan
    found = connection.execute(statement(plan, 1, "duckdb")).fetchall()
    assert sum(1 for row in found if str(row[0]).startswith("x")) <= 2


def test_equal_hashes_at_the_cut_keep_fewer_not_more(databases, monkeypatch):
    """The hash replaced by a constant: all tie, so of a person with too many groups none is kept."""
    plan = parse_question(
        "SELECT diagnosis, COUNT(DISTINCT patient_id) FROM visits GROUP BY 1", Policy.read(POLICY)
    ).plan
    monkeypatch.setattr("sfumato.sql.dialects.base.keyed_hash", lambda *_: "CAST(5 AS BIGINT)")
    tied = statement(plan, 1, "duckdb")
    per_person = databases[None].execute(
        "SELECT patient_id, COUNT(DISTINCT COALESCE(diagnosis, '')) FROM visits WHERE patient_id IS NOT NULL GROUP BY 1"
    ).fetchall()  # fmt: skip
    few = sum(n for _, n in per_person if n <= 2)
    assert sum(row[-1] for row in databases[None].execute(tied).fetchall()) == few


def test_a_mean_is_not_pulled_by_who_has_many_rows(tmp_path):
    """Everybody's stays are 2 in the mean, some people have four times the rows that may count."""
    place = tmp_path / "many.duckdb"
    connection = duckdb.connect(str(built(place, patients=0)))
    connection.execute("DELETE FROM visits")
    connection.execute(
        "INSERT INTO visits SELECT p, 'north', 'x', CASE WHEN v % 2 = 0 THEN 1 ELSE 3 END, 1, NULL"
        " FROM range(50) a(p), range(12) b(v) WHERE v < 2 OR p % 3 = 0"
    )
    question = parse_question("SELECT AVG(stay), VARIANCE(stay) FROM visits", Policy.read(POLICY))
    row = connection.execute(statement(question.plan, 1, "duckdb")).fetchall()[0]
    mean, variance = exactly(question, row)
    assert mean == pytest.approx(2.0, abs=0.05)  # each sum is a whole number of steps of 1/8
    assert variance == pytest.approx(1.0, abs=0.1)


def test_a_person_with_one_row_adds_that_row_though_three_may_count(tmp_path):
    """Of values from 2 to 4 and at most three rows each, the least sum of a person is not three times 2."""
    place = tmp_path / "few.duckdb"
    connection = duckdb.connect(str(built(place, patients=0)))
    connection.execute("DELETE FROM visits")
    connection.execute("INSERT INTO visits SELECT p, 'north', 'x', 3, 1, NULL FROM range(50) a(p)")
    question = parse_question("SELECT SUM(CLAMP(stay, 2, 4)) FROM visits", Policy.read(POLICY))
    assert question.plan.rows == 3
    (row,) = connection.execute(statement(question.plan, 1, "duckdb")).fetchall()
    assert exactly(question, row) == [150.0]
