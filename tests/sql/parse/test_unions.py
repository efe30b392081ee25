"""UNION ALL: it means what SQL means, and nobody moves more than the bounds of all its branches together."""

import random
import re
from functools import cache

import duckdb
import pytest

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.errors import QueryRefused
from sfumato.sql.emit.bounding import bounding_of, statement
from sfumato.sql.plan import What
from sfumato.sql.policy import Policy
from tests.curator.questions import changed, exact_numbers

POLICY = """
version = 1
[budget]
epsilon = 200
delta = 1e-6
[tables.visits]
unit = "person"
groups = {groups}
rows = {rows}
[tables.visits.columns]
ward = {{type = "text", keys = ["a", "b"]}}
note = {{type = "text"}}
stay = {{low = 0, high = 60, step = 0.5}}
day = {{type = "date"}}
[tables.labs]
unit = "person"
groups = {groups}
rows = {labs}
[tables.labs.columns]
place = {{type = "text", keys = ["b", "c"]}}
value = {{low = -8, high = 9, step = 0.25}}
[tables.kids]
unit = "row"
[tables.kids.columns]
height = {{low = 0, high = 200, step = 1}}
weight = {{low = 0, high = 100, step = 0.5}}
[tables.pets]
unit = "row"
[tables.pets.columns]
weight = {{low = 0, high = 50}}
[tables.other]
unit = "firm"
[tables.other.columns]
place = {{type = "text"}}
[tables.wards]
public = true
[tables.wards.columns]
ward = {{type = "text"}}
floor = {{type = "number", keys = [1, 2]}}
"""
RULES = Policy.read(POLICY.format(groups=2, rows=3, labs=2))
LOOSE = Policy.read(POLICY.format(groups=100_000, rows=100_000, labs=100_000))
NUMBERS = ["'nan'", "'inf'", "'-inf'", "NULL", "-0.0", "0.0", "1e308", "-1e308", "5e-324", "60", "7.3", "-8", "9"]
WORDS = ["'a'", "'b'", "'c'", "NULL", "''", "'A'"]
DAYS = ["'2024-02-29'", "'infinity'", "NULL", "'2024-03-01'"]

SAME = [  # the same in plain SQL, where nobody is NULL and no bound is met
    "SELECT COUNT(*) FROM (SELECT height FROM kids UNION ALL SELECT weight FROM pets) v",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL SELECT value FROM labs) v",
    "SELECT what, COUNT(*) FROM (SELECT 'stay' AS what FROM visits UNION ALL SELECT 'lab' FROM labs) v GROUP BY what",
    "SELECT w, COUNT(*) FROM (SELECT ward AS w FROM visits WHERE ward < 'c' UNION ALL SELECT place FROM labs"
    " UNION ALL SELECT note FROM visits) v GROUP BY w",
    "SELECT w, COUNT(*) FROM (SELECT ward AS w, person FROM visits UNION ALL SELECT 'z', person FROM labs) v"
    " WHERE w = 'z' OR w = 'a' GROUP BY w",
    "WITH one AS (SELECT ward, person FROM visits), two AS (SELECT * FROM one UNION ALL SELECT * FROM one)"
    " SELECT ward, COUNT(*) FROM (SELECT ward FROM two UNION ALL (SELECT place FROM labs UNION ALL SELECT NULL FROM"
    " labs)) v WHERE ward IN ('a', 'b') GROUP BY ward",
    "SELECT floor, COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT place FROM labs) v"
    " JOIN wards USING (ward) GROUP BY floor",
    "SELECT COUNT(*) FROM (SELECT day FROM visits UNION ALL SELECT '2024-03-01' FROM labs) v WHERE day = '2024-03-01'",
]
MOVED = [
    "SELECT COUNT(*), COUNT(DISTINCT person), SUM(x), AVG(x), STDDEV(x), COUNT(DISTINCT x) FROM"
    " (SELECT person, stay AS x FROM visits UNION ALL SELECT person, value FROM labs) v",
    "SELECT w, COUNT(*), SUM(x), COUNT(DISTINCT x), MEDIAN(x) FROM"
    " (SELECT ward AS w, stay AS x FROM visits UNION ALL SELECT place, value FROM labs) v GROUP BY w",
    "SELECT note, COUNT(*), AVG(x) FROM (SELECT note, stay AS x FROM visits UNION ALL SELECT note, -stay FROM visits"
    " UNION ALL SELECT place, 5 FROM labs WHERE value > 0) v GROUP BY note",
    "SELECT what, COUNT(*), SUM(x), COUNT(DISTINCT person) FROM (SELECT person, 'stay' AS what, stay AS x FROM visits"
    " UNION ALL SELECT person, 'twice', 2 * stay FROM visits) v GROUP BY what",
    "SELECT COUNT(*), SUM(x) FROM (SELECT person, stay AS x FROM visits UNION ALL SELECT person, value FROM labs) v"
    " JOIN labs USING (person)",
    "SELECT COUNT(*), SUM(x) FROM (SELECT stay + value AS x FROM visits JOIN labs USING (person)"
    " UNION ALL SELECT value FROM labs) v WHERE x > 0",
    "SELECT part, COUNT(*), SUM(x) FROM (SELECT 'h' AS part, height AS x FROM kids"
    " UNION ALL SELECT 'w', weight FROM kids) v GROUP BY part",
    "SELECT part, ROUND(x), COUNT(*) FROM (SELECT 'h' AS part, height AS x FROM kids UNION ALL SELECT 'w', weight"
    " FROM kids UNION ALL SELECT 'p', weight FROM pets) v GROUP BY 1, 2",
    "SELECT COUNT(*), SUM(x), MAX(x) FROM (SELECT weight AS x FROM kids UNION ALL SELECT weight FROM pets) v",
]


def filled(seed, odd=True):
    """Rows by person, of a small random database; −1 stands for rows that are persons themselves."""
    chance = random.Random(seed)
    numbers = NUMBERS if odd else NUMBERS[4:]
    people = [*map(str, range(1, 6)), *(["NULL", str(2**60), str(2**60 + 1)] if odd else [])]
    rows = []
    for person in people:
        for _ in range(chance.randrange(12)):
            line = (person, chance.choice(WORDS), chance.choice(WORDS), chance.choice(numbers), chance.choice(DAYS))
            rows.append((person, "visits", line))
        for _ in range(chance.randrange(8)):
            rows.append((person, "labs", (person, chance.choice(WORDS), chance.choice(numbers))))
    for i in range(chance.randrange(9)):
        rows.append((f"kid {i}", "kids", (chance.choice(numbers), chance.choice(numbers))))
        rows.append((f"pet {i}", "pets", (chance.choice(numbers),)))
    return rows


@cache
def database(seed, odd=True, without=None):
    rows = filled(seed, odd)
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE visits (person BIGINT, ward TEXT, note TEXT, stay DOUBLE, day DATE)")
    connection.execute("CREATE TABLE labs (person TEXT, place TEXT, value DOUBLE)")  # of another type
    connection.execute("CREATE TABLE kids (height DOUBLE, weight DOUBLE)")
    connection.execute("CREATE TABLE pets (weight DOUBLE)")
    connection.execute("CREATE TABLE other (firm BIGINT, place TEXT)")
    connection.execute("CREATE TABLE wards AS SELECT * FROM (VALUES ('a', 1), ('b', 2)) t(ward, floor)")
    for table in ("visits", "labs", "kids", "pets"):
        listed = ", ".join(f"({', '.join(line)})" for who, name, line in rows if name == table and who != without)
        if listed:
            connection.execute(f"INSERT INTO {table} VALUES {listed}")
    return connection


@pytest.mark.parametrize("sql", SAME)
def test_it_means_what_sql_means(sql):
    for seed in range(3):
        connection = database(seed, odd=False)
        plan = parse_question(sql, LOOSE).plan
        width = len(plan.keys)
        place = width + [m.what for m in plan.measures].index(What.ROWS)
        found = {row[:width]: row[place] or 0 for row in connection.execute(statement(plan, 1, "duckdb")).fetchall()}
        truth = {row[:-1]: row[-1] for row in connection.execute(sql).fetchall()}
        assert found == truth


@cache
def texts_of(sql):
    question = parse_question(sql, RULES)
    return question.plan, statements(offer_for_epsilon(question, 1.0, 1e-9, Mu), 99, "duckdb")


@pytest.mark.parametrize("sql", MOVED)
def test_nobody_moves_more_than_is_claimed(sql):
    most, (plan, texts) = 0, texts_of(sql)
    for seed in range(2):
        whole = exact_numbers(plan, texts, database(seed))
        for who in sorted({who for who, _, _ in filled(seed)}):
            other = exact_numbers(plan, texts, database(seed, without=who))
            changed(sql, plan, whole, other)
            for key, row in whole.items():
                far = zip(row, other.get(key, [0] * len(row)), plan.measures, strict=True)
                most = max(most, *(abs(a - b) / bounding_of(plan).sensitivity(measure) for a, b, measure in far))
    assert most > 0.5  # so that a bound half as large would not have passed


def test_bounds_are_the_sums_of_the_branches():
    both = "SELECT w, COUNT(*) FROM (SELECT ward AS w FROM visits UNION ALL SELECT place FROM labs) v GROUP BY w"
    plan = parse_question(both, RULES).plan
    assert (plan.rows, plan.groups) == (5, 3)  # of four, three are there
    assert plan.public == (("a",), ("b",), ("c",))
    apart = parse_question(MOVED[3], RULES).plan  # in one group there are rows of one branch only
    assert (apart.rows, apart.groups) == (3, 2)


def test_domains_are_joined():
    (measure,) = (m for m in parse_question(MOVED[1], RULES).plan.measures if m.what is What.SUM)
    domain = measure.of.domain
    assert (domain.low, domain.high, domain.step) == (-8, 60, 0.25)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT x FROM (SELECT stay AS x FROM visits UNION ALL SELECT value FROM labs)",
         "SELECT y FROM (SELECT value AS y FROM labs UNION ALL SELECT stay FROM visits)"),
        ("SELECT x FROM (SELECT stay AS x FROM visits UNION ALL SELECT value FROM labs)",
         "SELECT x FROM (SELECT person, stay AS x, ward FROM visits UNION ALL SELECT person, value, place FROM labs)"),
        ("SELECT x FROM (SELECT 'a' w, stay AS x FROM visits UNION ALL SELECT 'b', -stay FROM visits) WHERE w = 'a'",
         "SELECT x FROM (SELECT -stay AS x, 'b' w FROM visits UNION ALL SELECT stay, 'a' FROM visits) WHERE w = 'a'"),
        ("SELECT x FROM (SELECT stay AS x FROM visits UNION ALL (SELECT value FROM labs UNION ALL SELECT 1 FROM labs))",
         "SELECT x FROM ((SELECT 1 x FROM labs UNION ALL SELECT value FROM labs) UNION ALL SELECT stay FROM visits)"),
    ],
)  # fmt: skip
def test_another_order_is_no_other_question(one, other):
    texts = [
        parse_question(re.sub(r"SELECT (\w)", r"SELECT SUM(CLAMP(\1, 0, 9))", sql, count=1), RULES)
        for sql in (one, other)
    ]
    assert texts[0].plan.canonical == texts[1].plan.canonical


def test_values_that_are_paired_otherwise_are_another_question():
    """The columns hold the same values of the same tables, but not in the same rows."""
    sql = "SELECT COUNT(*) FROM (SELECT 1 AS x, {} FROM visits UNION ALL SELECT 2, {} FROM visits) v WHERE x = y"
    one, other = (
        parse_question(sql.format("1 AS y", "2"), RULES).plan,
        parse_question(sql.format("2 AS y", "1"), RULES).plan,
    )
    assert one.canonical != other.canonical
    connection = database(1, odd=False)
    found = [connection.execute(statement(plan, 1, "duckdb")).fetchone()[0] for plan in (one, other)]
    assert found[0] > 0
    assert not found[1]


def test_a_column_twice_is_one_branch_twice():
    once = parse_question("SELECT COUNT(*) FROM (SELECT stay FROM visits) v", RULES).plan
    twice = parse_question(
        "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL SELECT stay FROM visits) v", RULES
    ).plan
    assert once.canonical != twice.canonical
    assert (once.rows, twice.rows) == (3, 6)


REFUSED = {
    "SELECT stay FROM visits UNION ALL SELECT value FROM labs": "would show them",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION SELECT value FROM labs) v": "only UNION ALL is supported",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits EXCEPT ALL SELECT value FROM labs) v": "only UNION ALL is supported",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits INTERSECT SELECT value FROM labs) v": "depends on all rows of labs",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL BY NAME SELECT value AS stay FROM labs) v": "same order",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL SELECT value, place FROM labs) v": "1 and 2 columns",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL SELECT place FROM labs) v": "CAST one",
    "SELECT COUNT(*) FROM (SELECT day FROM visits UNION ALL SELECT place FROM labs) v": "CAST one",
    "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT place FROM other) v": "share one unit",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL SELECT height FROM kids) v": "who is in both",
    "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM wards) v": "public",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL SELECT value FROM labs LIMIT 3) v": "LIMIT",
    "SELECT COUNT(*) FROM (SELECT stay FROM visits UNION ALL SELECT COUNT(*) FROM labs) v": "rows of many",
    "SELECT COUNT(*) FROM (SELECT height FROM kids UNION ALL SELECT weight FROM kids) v": "GROUP BY part",
    "SELECT part, COUNT(*) FROM (SELECT 'x' AS part FROM kids UNION ALL SELECT 'x' FROM kids) v GROUP BY part": "GROUP",
    "SELECT x, COUNT(*) FROM (SELECT 0.0 AS x FROM kids UNION ALL SELECT -0.0 FROM kids) v GROUP BY x": "GROUP BY",
    "SELECT person, COUNT(*) FROM (SELECT person FROM visits UNION ALL SELECT person FROM labs) v GROUP BY 1": "person",
    "SELECT SUM(x / x) FROM (SELECT stay AS x FROM visits UNION ALL SELECT value FROM labs) v": "has no bounds",
    "SELECT COUNT(*) FROM (SELECT stay, stay * 2 AS stay FROM visits) v": "two columns",
    "WITH " + ", ".join(f"a{i + 1} AS (SELECT * FROM a{i} UNION ALL SELECT * FROM a{i})" for i in range(30)).replace(
        "a0", "visits") + " SELECT COUNT(*) FROM a30": "at most 16",
}  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_stacked_is_refused_in_words(sql):
    with pytest.raises(QueryRefused, match=REFUSED[sql]):
        parse_question(sql, RULES)


def test_a_union_of_aggregations_is_two_questions():
    found = parse_question("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM labs", RULES)
    assert len(found.outer.questions) == 2


def test_a_stack_is_asked_and_previewed(tmp_path):
    place = tmp_path / "clinic.duckdb"
    connection = database(3)
    connection.execute(f"ATTACH '{place}' AS copy")
    connection.execute("COPY FROM DATABASE memory TO copy")
    connection.execute("DETACH copy")
    curator = Curator.open(place, RULES)
    curator.register(epsilon=1.0)
    for sql in MOVED:
        answer = curator.ask(sql, epsilon=1.0)
        assert answer.charged
        assert not curator.ask(sql, epsilon=1.0).charged
        assert curator.preview(sql, epsilon=1.0).free
    assert "at most 5 rows" in curator.ask(MOVED[0], epsilon=1.0).note
