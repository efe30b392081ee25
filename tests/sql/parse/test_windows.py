"""Windows over the rows of one person: what they mean, that ties have no say, and that other people's rows are out."""

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.errors import QueryRefused
from sfumato.sql.emit.bounding import statement
from sfumato.sql.policy import Policy

RULES = Policy.read("""
version = 1
[budget]
epsilon = 1
delta = 1e-6
[tables.t]
unit = "u"
groups = 9
rows = 9
[tables.t.columns]
x = {low = 0, high = 100, step = 1}
w = {type = "text", keys = ["a", "b"]}
day = {type = "date"}
[tables.each]
unit = "row"
[tables.each.columns]
x = {low = 0, high = 100, step = 1}
""")
ROWS = [(u, x, "ab"[(u + x) % 2], f"2024-01-0{1 + x // 3}") for u in range(5) for x in range(u + 2)]  # days tie


def answered(sql, rows=ROWS):
    """The integers of a question over these rows, as the engine gives them."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (u BIGINT, x DOUBLE, w VARCHAR, day DATE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        return sorted(connection.execute(statement(parse_question(sql, RULES).plan, 7, "duckdb")).fetchall())


def plain(sql):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (u BIGINT, x DOUBLE, w VARCHAR, day DATE)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT x - LAG(x) OVER (PARTITION BY u ORDER BY x) AS d FROM t) WHERE d = 1",
        "SELECT COUNT(*) FROM (SELECT LEAD(x, 2, 99) OVER (PARTITION BY u ORDER BY x DESC) AS d FROM t) WHERE d = 99",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER w AS n FROM t WINDOW w AS (PARTITION BY u, w ORDER BY x))"
        " WHERE n > 1",
        "SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY u ORDER BY day) AS n FROM t) WHERE n > 1",
        "SELECT COUNT(*) FROM (SELECT u FROM t QUALIFY DENSE_RANK() OVER (PARTITION BY u ORDER BY day) = 2)",
        "SELECT COUNT(*) FROM (SELECT COUNT(*) OVER (PARTITION BY u) AS n FROM t) WHERE n > 3",
        "SELECT COUNT(*) FROM (SELECT SUM(x) OVER (PARTITION BY u ORDER BY day) AS s FROM t) WHERE s > 3",
        "SELECT COUNT(*) FROM (SELECT w, COUNT(*) AS n, RANK() OVER (PARTITION BY u ORDER BY COUNT(*) DESC, w) AS r"
        " FROM t GROUP BY u, w) WHERE r = 1 AND n > 1",
        "SELECT COUNT(*) FROM (SELECT DISTINCT ON (u) w FROM t ORDER BY u, x DESC) WHERE w = 'a'",
    ],
)
def test_a_window_means_what_it_means_in_plain_sql(sql):
    assert [row[-1] or 0 for row in answered(sql)] == [row[0] for row in plain(sql)]


@pytest.mark.parametrize("function", ["ROW_NUMBER()", "LAG(x)", "LEAD(x)", "FIRST_VALUE(x)"])
def test_the_order_in_which_rows_are_stored_has_no_say_in_ties(function):
    window = f"{function} OVER (PARTITION BY u ORDER BY day)"
    sql = f"SELECT COUNT(*) FROM (SELECT x, {window} AS n FROM t) WHERE n > x - 2"
    assert answered(sql) == answered(sql, ROWS[::-1]) == answered(sql, ROWS[7:] + ROWS[:7])


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        ("SELECT LAG(x) OVER (ORDER BY day) AS d FROM t", "other people's"),
        ("SELECT LAG(x) OVER (PARTITION BY w ORDER BY day) AS d FROM t", "PARTITION BY u"),
        ("SELECT LAG(x) OVER (PARTITION BY u) AS d FROM t", "no order"),
        ("SELECT LAST_VALUE(x) OVER (PARTITION BY u ORDER BY day) AS d FROM t", "FIRST_VALUE"),
        ("SELECT NTILE(4) OVER (PARTITION BY u ORDER BY day) AS d FROM t", "ROW_NUMBER"),
        ("SELECT SUM(x) OVER (PARTITION BY u ORDER BY day ROWS 1 PRECEDING) AS d FROM t", "ROWS and RANGE"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY x ORDER BY x) AS d FROM each", "each row is a person"),
        ("SELECT DISTINCT ON (w) x AS d FROM t ORDER BY w, x", "other people's"),
        ("SELECT x AS d FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY x) < 3", "other people's"),
    ],
)
def test_windows_over_other_people_and_unclear_ones_are_refused(inner, words):
    with pytest.raises(QueryRefused, match=words):
        parse_question(f"SELECT COUNT(*) FROM ({inner}) WHERE d > 0", RULES)


def test_bounds_that_where_gives_are_those_of_a_clamp():
    given = "FROM t WHERE EPOCH(day) BETWEEN 5 AND 9"
    one = parse_question(f"SELECT AVG(EPOCH(day)) {given}", RULES)
    assert one.plan == parse_question(f"SELECT AVG(CLAMP(EPOCH(day), 5, 9)) {given}", RULES).plan


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("w LIKE ANY ('a%', 'b')", "w LIKE 'a%' OR w LIKE 'b'"),
        ("w NOT LIKE ALL ('a%', 'b')", "w NOT LIKE 'a%' AND w NOT LIKE 'b'"),
        ("w NOT ILIKE ANY ('a%', 'b')", "w NOT ILIKE 'a%' OR w NOT ILIKE 'b'"),
        ("NOT w LIKE ANY ('a%', 'b')", "NOT (w LIKE 'a%' OR w LIKE 'b')"),
    ],
)
def test_like_of_several_patterns_is_that_of_each(short, long):
    one, other = (parse_question(f"SELECT COUNT(*) FROM t WHERE {text}", RULES).plan for text in (short, long))
    assert one.canonical == other.canonical


def test_bounds_on_one_side_are_not_enough():
    with pytest.raises(QueryRefused, match="no bounds"):
        parse_question("SELECT AVG(EPOCH(day)) FROM t WHERE EPOCH(day) > 5", RULES)
