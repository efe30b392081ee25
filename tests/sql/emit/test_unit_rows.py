"""Which rows of a unit are joined depends on that unit alone, and nothing that a row holds makes a join fail."""

import random
import re

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.engines.duckdb import COLUMNS, OPTIMIZER, schema_from_rows
from sfumato.errors import QueryRefused
from sfumato.sql.dialects.base import raw
from sfumato.sql.dialects.duckdb import DuckDB
from sfumato.sql.emit.bounding import bounding_of, statement
from sfumato.sql.emit.unit_rows import row_select
from sfumato.sql.policy import Policy

RULES = """
version = 1
[budget]
epsilon = 10
delta = 1e-6
[tables.a]
unit = "person"
rows = {rows}
groups = 1
columns = {{person = {{type = "number"}}, y = {{low = 0, high = 1}}}}
[tables.b]
unit = "person"
rows = {rows}
groups = 1
columns = {{person = {{type = "number"}}, x = {{low = -1, high = 1}}}}
"""
SCALED = RULES.replace("rows = {rows}\ngroups = 1\n", "")


def exact(rules, sql, connection):
    """The one sum of a question, without noise, and how much a unit may move it."""
    plan = parse_question(sql, rules).plan
    dialect = DuckDB(schema=schema_from_rows(connection.execute(COLUMNS).fetchall()))
    ((found,),) = connection.execute(statement(plan, 12345, dialect)).fetchall()
    return int(found or 0), bounding_of(plan).sensitivity(plan.measures[0])


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("zeros", ["('0', '-0')", "('nan', '-nan')", "('0', '-0', '1', 'inf')"])
def test_of_values_that_are_equal_but_differ_others_do_not_choose(rows, zeros):
    """Thousands of rows, so that an unstable sort really leaves ties open."""
    dice, rules = random.Random(5), Policy.read(RULES.format(rows=rows))
    listed = [text.strip("' ") for text in zeros.strip("()").split(",")]
    people = [(p, dice.choice(listed)) for p in range(300) for _ in range(40)]
    dice.shuffle(people)
    sqls = [
        f"SELECT COUNT(*) FROM a JOIN b USING (person) WHERE CAST(b.x AS TEXT) = {text}" for text in ("'0'", "'-0'")
    ]
    found = []
    for without in (None, 0, 1, 2):
        connection = duckdb.connect(config={"threads": 1, "disabled_optimizers": OPTIMIZER})
        connection.execute("CREATE TABLE a AS SELECT i AS person, 1.0::DOUBLE AS y FROM range(300) r(i)")
        connection.execute("CREATE TABLE b (person BIGINT, x DOUBLE)")
        connection.execute(
            "INSERT INTO b SELECT UNNEST(?), CAST(UNNEST(?) AS DOUBLE)",
            [[p for p, _ in people if p != without], [x for p, x in people if p != without]],
        )
        found.append([exact(rules, sql, connection) for sql in sqls])
    for neighbour in found[1:]:
        for (whole, most), (less, _) in zip(found[0], neighbour, strict=True):
            assert abs(whole - less) <= most


ODD_ON = [
    "SELECT COUNT(*) FROM a JOIN b ON a.person = b.person AND a.person + 0 = b.person",
    "SELECT COUNT(*) FROM a JOIN b ON a.person = b.person AND a.person * 1.5 = b.x",
    "SELECT COUNT(*) FROM a JOIN (SELECT person, COUNT(*) AS n FROM b GROUP BY person) t"
    " ON a.person = t.person AND a.y + 1 = t.person",
]


@pytest.mark.parametrize("sql", ODD_ON)
@pytest.mark.parametrize("people", [["1", "2"], ["1", "2", "zz"], ["1", "", "1e999", "nan"]])
def test_no_ones_id_makes_a_join_fail(tmp_path, sql, people):
    for name, column in (("a", "y"), ("b", "x")):
        (tmp_path / f"{name}.csv").write_text(f"person,{column}\n" + "".join(f"{who},1\n" for who in people))
    curator = Curator.open(tmp_path, Policy.read(RULES.format(rows=2)), ledger=":memory:")
    assert len(curator.ask(sql, epsilon=1.0).rows) == 1


def chain(many):
    return "a a0 " + " ".join(f"JOIN a a{i} ON a0.person = a{i}.person" for i in range(1, many))


@pytest.mark.parametrize("rules", [RULES.format(rows=64), RULES.format(rows=1000), SCALED.format()])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM {}",
        "SELECT COUNT(*) FROM (SELECT a0.person, COUNT(*) AS n FROM {} GROUP BY a0.person) t",
        "SELECT COUNT(*) FROM (SELECT a0.person FROM {} UNION ALL SELECT person FROM b) t",
        "SELECT COUNT(*) FROM b WHERE EXISTS (SELECT 1 FROM {} WHERE a0.person = b.person)",
        "SELECT COUNT(*) FROM b WHERE person IN (SELECT a0.person FROM {})",
        "SELECT COUNT(*) FROM b JOIN (SELECT a0.person, MAX(a0.y) AS n FROM {} GROUP BY a0.person) t USING (person)",
    ],
)
def test_what_joins_make_of_one_persons_rows_is_limited(rules, sql):
    """A person with many rows would else decide how long a question takes, and whether it ends."""
    with pytest.raises(QueryRefused, match="too many rows of one unit after this join"):
        parse_question(sql.format(chain(6)), Policy.read(rules))


@pytest.mark.parametrize("rules", [RULES.format(rows=64), SCALED.format()])
def test_pairs_and_triples_of_events_may_be_asked(rules):
    for many in (2, 3):
        parse_question(f"SELECT COUNT(*) FROM {chain(many)}", Policy.read(rules))


@pytest.mark.parametrize(("sql", "kept"), [
    ("a a0 JOIN b ON a0.person = b.person", {1000}), (chain(3), {100}), ("a a0", {64}),
    ("a a0 JOIN (SELECT person, COUNT(*) AS n FROM b GROUP BY person) t ON a0.person = t.person", {64}),
])  # fmt: skip
def test_the_fewer_tables_multiply_rows_the_more_rows_of_a_unit_are_joined(sql, kept):
    """Where nothing is multiplied nothing is cut, and the table is described as it always was."""
    plan = parse_question(f"SELECT COUNT(*) FROM {sql}", Policy.read(SCALED.format())).plan
    assert {table.rows for table in plan.tables if table.scaled} == kept
    limits = set(re.findall(r"_sf_place <= (\d+)", row_select(plan, {"n": raw("1")}, DuckDB().about(plan)).sql()))
    assert {int(one) for one in limits} - {1} == (kept if plan.crossed else set())


def test_the_doubles_zero_and_minus_zero_are_one_unit_in_several_tables():
    """As texts they differ, and the person would count twice."""
    connection = duckdb.connect()
    for name, unit in (("a", "0.0"), ("b", "-0.0")):
        connection.execute(f"CREATE TABLE {name} AS SELECT CAST('{unit}' AS DOUBLE) AS person")
    schema = {name: {"person": "DOUBLE"} for name in "ab"}
    text = "version = 1\n[budget]\nepsilon = 1\ndelta = 1e-6\n" + "".join(
        f"[tables.{name}]\nunit = 'person'\ngroups = 1\nrows = 1\n" for name in "ab"
    )
    sql = "SELECT COUNT(*) FROM (SELECT 1 AS x FROM a UNION ALL SELECT 1 AS x FROM b) v"
    plan = parse_question(sql, Policy.read(text)).plan
    units = row_select(plan, {"n": raw("1")}, DuckDB(schema=schema).about(plan)).sql("duckdb")
    assert connection.execute(f"SELECT COUNT(DISTINCT _sf_unit) FROM ({units})").fetchall() == [(1,)]
