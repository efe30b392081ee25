"""Keys of answers: which are public, which of them a condition leaves, in which order and as what they are shown."""

import datetime
import itertools
import math

import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.answer import Answer
from sfumato.errors import PolicyError, QueryRefused
from sfumato.sql.emit.bounding import statement
from sfumato.sql.parse.from_where import Rows
from sfumato.sql.parse.text import parse_statement
from sfumato.sql.policy import WHOLE, Policy
from tests.curator.clinic import POLICY, built
from tests.curator.spellings import CONDITIONS, odd_visits
from tests.sql.test_simplify import RULES as ODD

RULES = Policy.read(
    POLICY.replace('day = {type = "date"}', 'day = {type = "date", keys = ["2024-01-01", "2024-01-02 10:00:00"]}')
)
NARROWED = {
    "ward IN ('south', 'west')": ["south", "west"],
    "ward = 'north'": ["north"],
    "ward <> 'north'": ["south", "west"],
    "ward NOT IN ('north', 'west')": ["south"],
    "ward NOT IN ('north', NULL)": [],
    "ward > 'north'": ["south", "west"],
    "ward BETWEEN 'o' AND 't' OR ward = 'north'": ["north", "south"],
    "(ward = 'north' AND stay > 3) OR ward = 'west'": ["north", "west"],
    "(ward = 'north' AND 1 = 2) OR ward = 'west'": ["west"],
    "ward = 'north' OR stay > 3": ["north", "south", "west"],
    "NOT (ward = 'north' OR stay > 3)": ["south", "west"],
    "(ward = 'west') IS TRUE": ["west"],
    "(ward = 'west') IS NOT TRUE": ["north", "south"],
    "ward IS NOT NULL": ["north", "south", "west"],
    "ward IS DISTINCT FROM 'north'": ["south", "west"],
    "UPPER(ward) = 'NORTH'": ["north", "south", "west"],  # not understood: all are kept
    "ward LIKE 'north'": ["north"],
    "ward LIKE 'n%'": ["north", "south", "west"],
    "diagnosis = 'north'": ["north", "south", "west"],
}


@pytest.mark.parametrize("condition", NARROWED)
def test_where_leaves_the_public_keys_that_can_have_rows(condition):
    sql = f"SELECT ward, COUNT(*) AS n FROM visits WHERE {condition} GROUP BY ward"
    if not NARROWED[condition]:
        with pytest.raises(QueryRefused, match="no group"):
            parse_question(sql, RULES)
        return
    assert parse_question(sql, RULES).plan.public == tuple((key,) for key in NARROWED[condition])


def test_numbers_and_dates_are_narrowed_by_ranges():
    def left(key, condition):
        sql = f"SELECT {key} AS k, COUNT(*) FROM visits JOIN wards USING (ward) WHERE {condition} GROUP BY k"
        return [key for (key,) in parse_question(sql, RULES).plan.public]

    assert left("MONTH(day)", "MONTH(day) BETWEEN 3 AND 5") == [3.0, 4.0, 5.0]
    assert left("floor", "floor > 1") == [2.0]
    assert left("day", "day > '2024-01-01'") == ["2024-01-02 10:00:00"]
    assert left("stay > 3", "NOT (stay > 3)") == [False, True]  # it is another condition by now: all are kept
    assert left("CASE WHEN stay > 3 THEN 'long' ELSE 'short' END", "cost > 3") == ["long", "short"]


def test_no_key_is_left_out_that_some_row_has():
    """Random conditions over odd values: each group that plain SQL finds is among the keys."""
    db, dropped = odd_visits(), 0
    conditions = [*CONDITIONS, *NARROWED, "MONTH(day) < 3", "NOT (MONTH(day) IN (1, 2))", "urgent IS NULL"]
    pairs = list(itertools.combinations(conditions, 2))[::3]
    for (c, d), key in zip(pairs, itertools.cycle(["ward", "MONTH(day)", "urgent"]), strict=False):
        for both in (f"({c}) AND ({d})", f"({c}) OR NOT ({d})"):
            sql = f"SELECT {key} AS k, COUNT(*) FROM visits WHERE {both} GROUP BY k"
            known = parse_question(f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY k", ODD).plan.public
            found = {row[:1] for row in db.execute(sql).fetchall()} & set(known)
            try:
                kept = set(parse_question(sql, ODD).plan.public)
            except QueryRefused:
                kept = set()
            assert found <= kept, sql
            dropped += len(known) - len(kept)
    assert dropped > 100


def test_a_narrowed_question_is_another_one_and_is_answered(tmp_path):
    curator = Curator.open(built(tmp_path / "clinic.duckdb", patients=300), RULES)
    answer = curator.ask(
        "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN ('south', 'west') GROUP BY 1", epsilon=2.0
    )
    assert answer.column("ward") == ["south", "west"]
    assert min(answer.column("n")) > 50


# ---- whole numbers --------------------------------------------------------------------------------------------------

MONTHS = POLICY.replace("[tables.wards]", 'month = {type = "integer", low = 1, high = 12}\n[tables.wards]')


def test_whole_numbers_of_a_short_range_are_public_keys():
    plan = parse_question("SELECT month, COUNT(*) FROM visits WHERE month > 9 GROUP BY month", Policy.read(MONTHS)).plan
    assert plan.public == ((10.0,), (11.0,), (12.0,))
    assert not plan.discovered


@pytest.mark.parametrize(
    ("said", "many"),
    [("low = 0.5, high = 3.2", 3), (f"low = 1, high = {WHOLE}", WHOLE), (f"low = 0, high = {WHOLE}", None),
     ("low = -1e15, high = 1e15", None), ("low = 0.2, high = 0.8", None)],
)  # fmt: skip
def test_long_ranges_are_not(said, many):
    keys = Policy.read(MONTHS.replace("low = 1, high = 12", said)).tables["visits"].columns["month"].keys
    assert (keys and len(keys)) == many


def test_numbers_with_a_step_of_one_are_not_said_to_be_whole():
    rules = Policy.read(MONTHS.replace('type = "integer"', "step = 1"))
    assert parse_question("SELECT month, COUNT(*) FROM visits GROUP BY month", rules).plan.discovered
    with pytest.raises(PolicyError, match="step"):
        Policy.read(MONTHS.replace('type = "integer"', 'type = "integer", step = 0.5'))


def test_what_is_not_a_whole_number_of_the_range_is_in_no_group():
    db = odd_visits()
    db.execute("ALTER TABLE visits ADD COLUMN month DOUBLE")
    db.execute("UPDATE visits SET month = CAST(['1', '2.5', '13', NULL, 'nan', '12'][1 + patient_id % 6] AS DOUBLE)")
    rules = Policy.read(MONTHS.replace("groups = 2", "groups = 99").replace("rows = 3", "rows = 99999"))
    plan = parse_question("SELECT month, COUNT(*) FROM visits GROUP BY month", rules).plan
    found = dict(db.execute(statement(plan, 1, "duckdb")).fetchall())
    truth = "SELECT month, COUNT(*) FROM visits WHERE month IN (1, 12) GROUP BY month"
    assert found == dict(db.execute(truth).fetchall())


# ---- bounds ---------------------------------------------------------------------------------------------------------

BOUNDED = {
    "LEAST(GREATEST(patient_id, 0), 150)": (0, 150),
    "GREATEST(LEAST(patient_id, 150), 0)": (0, 150),
    "GREATEST(0, LEAST(150, patient_id, stay))": (0, 150),
    "LEAST(stay, 5)": (0, 5),
    "LEAST(GREATEST(stay, cost), 2000)": (-100, 2000),  # where both are NULL
}
UNBOUNDED = [
    "LEAST(patient_id, 150)", "GREATEST(patient_id, 0)", "LEAST(patient_id, stay)",
    "LEAST(patient_id, CASE WHEN stay > 3 THEN 5 END)",
    "LEAST(GREATEST(patient_id, CASE WHEN stay > 1 THEN 0 END), 150)",
]  # fmt: skip


@pytest.mark.parametrize("value", BOUNDED)
def test_least_and_greatest_of_constants_are_bounds(value):
    """They pass over NULL, so only what is never NULL bounds them."""
    (measure,) = parse_question(f"SELECT SUM({value}) FROM visits", RULES).plan.measures
    assert (measure.of.domain.low, measure.of.domain.high) == BOUNDED[value]
    clamped = value.replace("stay", "CLAMP(stay, 0, 60)").replace("cost", "CLAMP(cost, -100, 1000)")
    wide = Policy.read(POLICY.replace("low = 0, high = 60, step = 0.125", 'type = "number"').replace(
        "low = -100, high = 1000", 'type = "number"'))  # fmt: skip
    again = parse_question(f"SELECT SUM({clamped}) FROM visits", wide).plan.measures[0].of.domain
    assert (again.low, again.high) == BOUNDED[value]


def test_values_are_within_these_bounds():
    for value in ("LEAST(GREATEST(stay, 0), 150)", "GREATEST(0, LEAST(150, cost, stay))"):
        assert odd_visits().execute(f"SELECT MIN({value}) >= 0, MAX({value}) <= 150 FROM visits").fetchone() == (1, 1)


@pytest.mark.parametrize("value", UNBOUNDED)
def test_what_may_be_null_bounds_nothing(value):
    with pytest.raises(QueryRefused, match="no bounds"):
        parse_question(f"SELECT SUM({value}) FROM visits", RULES)


# ---- how they are shown ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    rules = Policy.read(POLICY.replace("epsilon = 8.0", "epsilon = 80.0"))
    return Curator.open(built(tmp_path_factory.mktemp("clinic") / "clinic.duckdb", patients=4000), rules)


@pytest.mark.slow
def test_numbers_are_sorted_as_numbers(clinic):
    answer = clinic.ask("SELECT ROUND(cost / 5000) AS k, COUNT(*) AS n FROM visits GROUP BY k", epsilon=8.0)
    keys = answer.column("k")
    assert keys == sorted(keys)
    assert keys != sorted(keys, key=repr)


def test_dates_are_dates(clinic):
    answer = clinic.ask("SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY m", epsilon=8.0)
    assert datetime.date(2024, 2, 1) in answer.column("m")
    assert {type(key) for key in answer.column("m")} <= {datetime.date, type(None)}
    assert Answer.from_json(answer.to_json()) == answer
    assert "2024-02-01" in str(answer)
    again = clinic.ask("SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY m", epsilon=8.0)
    assert not again.charged
    assert again.rows == answer.rows
    few = clinic.ask(
        "SELECT DATE_TRUNC('month', day) AS m, YEAR(m) AS y, COUNT(*) AS n FROM visits GROUP BY m"
        " HAVING m < '2024-03-01' ORDER BY m DESC", epsilon=8.0,
    )  # fmt: skip
    assert not few.charged
    assert few.column("m") == [datetime.date(2024, 2, 1), datetime.date(2024, 1, 1)]
    assert few.column("y") == [2024, 2024]


def test_moments_are_moments_and_what_no_calendar_holds_stays_a_text():
    from sfumato.curator.layout import parse_dates

    noon = datetime.datetime(2024, 1, 2, 12)
    assert parse_dates(["2024-01-01", "2024-01-02 12:00:00", None]) == [datetime.datetime(2024, 1, 1), noon, None]
    assert parse_dates(["infinity", "2024-01-01", "10000-01-01"]) == [
        "infinity",
        datetime.date(2024, 1, 1),
        "10000-01-01",
    ]
    assert parse_dates([]) == []


def test_dates_reach_pandas(clinic):
    pytest.importorskip("pandas")
    answer = clinic.ask("SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY m", epsilon=8.0)
    assert datetime.date(2024, 2, 1) in list(answer.to_pandas()["m"])


# ---- FROM -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) FROM main.visits", "SELECT COUNT(*) FROM visits"),
        ("WITH visits AS (SELECT * FROM visits WHERE stay > 3) SELECT COUNT(*) FROM main.visits",
         "FROM visits SELECT COUNT(*)"),
        ("SELECT floor, COUNT(*) FROM main.wards w JOIN main.visits v USING (ward) GROUP BY floor",
         "SELECT floor, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY floor"),
        ("SELECT COUNT(*) FROM wards RIGHT JOIN visits USING (ward)",
         "SELECT COUNT(*) FROM visits LEFT JOIN wards USING (ward)"),
        ("SELECT COUNT(*) FROM wards w JOIN wards x ON x.floor = w.floor JOIN visits v ON v.ward = w.ward",
         "SELECT COUNT(*) FROM visits v JOIN wards w ON v.ward = w.ward JOIN wards x ON x.floor = w.floor"),
        ("WITH v AS (SELECT ward FROM visits WHERE stay > 3) SELECT COUNT(*) FROM wards JOIN v USING (ward)",
         "SELECT COUNT(*) FROM visits JOIN wards USING (ward) WHERE stay > 3"),
    ],
)  # fmt: skip
def test_schemas_and_public_tables_in_front_are_understood(one, other):
    assert parse_question(one, RULES).plan.canonical == parse_question(other, RULES).plan.canonical


def test_columns_stay_in_the_order_of_the_text():
    """UNION ALL goes by place: the first column of wards is a text, that of visits a number."""
    names = Rows(RULES).scope(parse_statement("SELECT COUNT(*) FROM wards w JOIN visits v ON v.ward = w.ward")).names
    assert list(names)[:3] == [("w", "ward"), ("w", "floor"), ("v", "patient_id")]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM other.visits",
        "SELECT COUNT(*) FROM main.main.visits",
        "SELECT COUNT(*) FROM wards FULL JOIN visits USING (ward)",
        "SELECT COUNT(*) FROM wards, visits",
        "SELECT COUNT(*) FROM wards",
        "SELECT COUNT(*) FROM wards w JOIN wards x ON x.floor = w.floor RIGHT JOIN visits v ON v.ward = w.ward",
    ],
)
def test_rows_of_nobody_and_other_schemas_are_refused(sql):
    with pytest.raises(QueryRefused):
        parse_question(sql, RULES)


def test_a_schema_of_another_name_is_the_engines():
    assert parse_question("SELECT COUNT(*) FROM clinic.visits", RULES, "clinic").plan
    with pytest.raises(QueryRefused, match="no schema"):
        parse_question("SELECT COUNT(*) FROM main.visits", RULES, "clinic")


def test_a_key_of_minus_zero_is_zero():
    """Engines group both as one value: a public key that is written otherwise would never be found."""
    rules = Policy.read(
        POLICY.replace("stay = {low = 0, high = 60, step = 0.125}", 'stay = {type = "number", keys = [-0.0, 1, 2]}')
    )
    assert [math.copysign(1.0, key) for key in rules.tables["visits"].columns["stay"].keys] == [1.0, 1.0, 1.0]
