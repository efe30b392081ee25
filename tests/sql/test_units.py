"""Who is protected: a unit is a column, a row or an edge, whatever columns are called."""

import duckdb
import pytest

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.contribution_sketch import sketch_key
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.errors import PolicyError, QueryRefused
from sfumato.sql.policy import Policy
from sfumato.sql.policy_draft import check_policy
from sfumato.sql.schema_check import require_fit
from sfumato.sql.units import ColumnUnit, EdgeUnit, RowUnit
from tests.curator.questions import moved

BUDGET = "version = 1\n[budget]\nepsilon = 900\ndelta = 1e-6\n"
ROWS = "[tables.visits]\nunit = {unit}\nrows = 1\ncolumns.stay = {{low = 0, high = 9, step = 1}}\n"
LINKS = "[tables.links]\n{unit}edges = ['a', 'b']\ncolumns.a = {{type = 'number'}}\ncolumns.b = {{type = 'number'}}\n"


def policy(unit, more=""):
    return Policy.read(BUDGET + ROWS.format(unit=unit) + more)


def visits(place, column="row"):
    """One person has a hundred rows."""
    with duckdb.connect(str(place)) as connection:
        connection.execute(f'CREATE TABLE visits AS SELECT 7 AS "{column}", 7 AS person, 1 AS stay FROM range(100)')
    return place


@pytest.mark.parametrize("column", ["row", "Row", "ROW"])
@pytest.mark.parametrize("unit", ['"row"', '"Row"', '{each = "row"}', '{column = "row"}', '{column = "Row"}'])
def test_a_unit_column_called_row_is_never_taken_for_each_row(unit, column, tmp_path):
    place = visits(tmp_path / "t.duckdb", column)
    if unit.startswith('"'):
        with pytest.raises(PolicyError, match=r'unit = \{column = "row"\} or unit = \{each = "row"\}'):
            Curator.open(place, policy(unit))
        assert not (tmp_path / "t.duckdb.ledger").exists()
        with pytest.raises(PolicyError, match=r"\{each = "):
            policy(unit, f"columns.{column} = {{type = 'number'}}\n")
        return
    curator = Curator.open(place, policy(unit))
    answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=100.0)
    assert round(answer.column("n")[0]) == (100 if "each" in unit else 1)


def test_policy_check_tells_the_owner_of_a_column_called_row():
    schema = {"visits": {"ROW": "INTEGER", "stay": "INTEGER"}}
    assert any("could mean each row" in line for line in check_policy(policy('"row"'), schema).wrong)
    assert not check_policy(policy('{each = "row"}'), schema).wrong
    assert not check_policy(policy('"row"'), {"visits": {"stay": "INTEGER", "rows": "INTEGER"}}).wrong


def test_a_unit_is_a_type():
    assert policy('"row"').tables["visits"].unit == RowUnit()
    assert policy('"person"').tables["visits"].unit == ColumnUnit("person")
    assert (
        policy('{column = "Edge"}').tables["visits"].unit
        == policy('"edge"').tables["visits"].unit
        == ColumnUnit("edge")
    )
    for unit in ("", "unit = 'edge'\n", "unit = {each = 'edge'}\n"):
        assert Policy.read(BUDGET + LINKS.format(unit=unit)).tables["links"].unit == EdgeUnit()
    found = policy('{column = "a.b"}', "[tables.lines]\nunit = {column = 'a.b', table = 'visits'}\nkey = 'id'\n")
    assert found.tables["lines"].unit == found.tables["visits"].unit == ColumnUnit("a.b")
    assert found.tables["lines"].owner.table.name == "visits"


@pytest.mark.parametrize(
    "unit", ["3", "[]", "{}", '{each = "person"}', '{each = "edge"}', '{each = "row", column = "x"}', "{column = 3}",
             '{table = "visits"}', '{column = "x", rows = 3}', '{column = ""}', '""',
             '{column = "x", table = "visits"}']
)  # fmt: skip
def test_other_units_are_refused(unit):
    with pytest.raises(PolicyError):
        policy(unit)


def test_edges_are_not_a_column_called_edge():
    schema = {"links": {"a": "INTEGER", "b": "INTEGER", "edge": "INTEGER"}}
    bare = Policy.read(BUDGET + LINKS.format(unit="unit = 'edge'\n"))
    assert any("could mean each edge" in line for line in check_policy(bare, schema).wrong)
    with pytest.raises(PolicyError, match=r'\{each = "edge"\}'):
        require_fit(bare, schema)
    require_fit(Policy.read(BUDGET + LINKS.format(unit="")), schema)
    both = Policy.read(BUDGET + LINKS.format(unit="") + ROWS.format(unit='"edge"'))
    for sql in ("SELECT COUNT(*) FROM (SELECT edge FROM links UNION ALL SELECT edge FROM visits)",
                "SELECT COUNT(*) FROM links JOIN visits USING (edge)"):  # fmt: skip
        with pytest.raises(QueryRefused, match=r"unit|compares"):
            parse_question(sql, both)


def test_stored_answers_of_one_unit_are_not_served_for_another():
    sql, units = (
        "SELECT COUNT(*) FROM visits",
        ['{each = "row"}', '{column = "row"}', '"edge"', '"column row"', '"person"'],
    )
    assert len({parse_question(sql, policy(unit)).plan.canonical for unit in units}) == len(units)
    assert (
        parse_question(sql, policy('"row"')).plan.canonical
        == parse_question(sql, policy('{each = "row"}')).plan.canonical
    )
    edges = Policy.read(BUDGET + LINKS.format(unit="").replace("links", "visits")).tables["visits"]
    assert sketch_key(edges) != sketch_key(policy('"edge"').tables["visits"])


def test_texts_of_stored_answers_are_those_of_before():
    """What answers are stored under is made of this; otherwise everybody would be charged again."""
    stated = policy('"person"', "[tables.pets]\nunit = 'row'\n" + LINKS.format(unit=""))
    for name, words in (("visits", "unit='person'"), ("pets", "unit='row'"), ("links", "unit='edge'")):
        assert words in repr(stated.tables[name])
    assert "bare" not in repr(stated)
    assert parse_question("SELECT SUM(stay) FROM visits", stated).plan.canonical.startswith(
        "visits | () | True | () | (sum(t0.stay, 0, 0),) | "
    )


def test_a_column_called_row_may_be_grouped_by_where_each_row_is_a_person():
    stated = policy('{each = "row"}', "columns.row = {type = 'text', keys = ['a', 'b']}\n")
    assert len(parse_question("SELECT row, COUNT(*) FROM visits GROUP BY row", stated).plan.keys) == 1
    with pytest.raises(QueryRefused, match="each person"):
        column = policy('{column = "row"}', "columns.row = {type = 'text', keys = ['a', 'b']}\n")
        parse_question("SELECT row, COUNT(*) FROM visits GROUP BY row", column)


@pytest.mark.parametrize(
    ("unit", "more", "word", "right"),
    [('{each = "row"}', "", "row", True), ('{column = "row"}', "", "row", True), ('"person"', "", "person", True),
     ('"person"', "", "row", False), ('{each = "row"}', "columns.row = {type = 'text'}\n", "row", False)],
)  # fmt: skip
def test_a_question_may_say_whose_unit_it_takes_for_granted(unit, more, word, right, tmp_path):
    curator = Curator.open(visits(tmp_path / "t.duckdb"), policy(unit, more))
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, privacy_unit_column = {word}) COUNT(*) FROM visits"
    if right:
        assert curator.preview(sql).epsilon <= 1
    else:
        with pytest.raises(QueryRefused, match="is not the unit here"):
            curator.preview(sql)


# ---- whose a joined row is ------------------------------------------------------------------------------------------

JOINED = """
[tables.people]
unit = "person"
rows = 1
columns.age = {low = 0, high = 100, step = 1}
[tables.orders]
unit = "person"
rows = 2
columns.order_id = {type = "number"}
columns.cost = {low = 0, high = 10, step = 1}
[tables.lines]
unit = "orders.person"
key = "order_id"
rows = 2
columns.price = {low = 0, high = 10, step = 1}
[tables.shops]
public = true
columns.cost = {type = "number"}
columns.town = {type = "text", keys = ["a", "b"]}
columns.size = {low = 0, high = 100, step = 1}
"""


def shop(without=None):
    """Fifty people; only three have orders. Lines have a column `person` of their own, which is somebody else."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE people (person INTEGER, age INTEGER)")
    connection.execute("CREATE TABLE orders (person TEXT, order_id INTEGER, cost INTEGER)")
    connection.execute("CREATE TABLE lines (order_id INTEGER, price INTEGER, person INTEGER)")
    connection.execute("CREATE TABLE shops (cost INTEGER, town TEXT, size INTEGER)")
    shops = [(c, town, size) for c in range(10) for town in "ba" for size in (50, 3, 3)]
    people = [(p, p) for p in range(50) if p != without]
    orders = [
        (str(p), 100 * p + o, o % 10) for p, many in ((3, 2), (4, 1), (5, 30)) for o in range(many) if p != without
    ]
    lines = [(order, cost, 3) for _, order, cost in orders]
    for name, rows in (("shops", shops), ("people", people), ("orders", orders), ("lines", lines)):
        connection.execute(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}")
    return connection


def exactly(sql, connection, schema=None):
    offer = offer_for_epsilon(parse_question(sql, Policy.read(BUDGET + JOINED)), 1.0, 1e-9, Mu)
    return [connection.execute(text).fetchall() for text in statements(offer, 12345, "duckdb")]


@pytest.mark.parametrize(
    ("sql", "truth"),
    [
        ("SELECT COUNT(*), SUM(age) FROM people LEFT JOIN orders USING (person)", (50 + 1 + 1, sum(range(50)) + 3 + 5)),
        ("SELECT COUNT(DISTINCT person) FROM people LEFT JOIN orders USING (person)", (50,)),
        ("SELECT COUNT(DISTINCT person) FROM people JOIN orders USING (person)", (3,)),
        ("SELECT COUNT(DISTINCT o.person) FROM orders o LEFT JOIN people p ON o.person = p.person", (3,)),
        ("SELECT COUNT(*) FROM lines", (2 + 1 + 2,)),
        ("SELECT COUNT(DISTINCT person) FROM lines", (3,)),
        ("SELECT COUNT(DISTINCT person) FROM lines WHERE person > 3", (2,)),
    ],
)
def test_a_joined_row_is_of_the_unit_of_its_first_table(sql, truth):
    """Not of the table that was joined, which has none where nothing was found; nor of a column that happens to be
    called like the unit of the table in which it is looked up."""
    assert exactly(sql, shop()) == [[truth]]
    assert sum(moved(sql, Policy.read(BUDGET + JOINED), shop(), shop(without)) for without in (5, 20)) >= 1


@pytest.mark.parametrize(
    ("sql", "truth"),
    [
        ("SELECT COUNT(*) FROM orders JOIN shops USING (cost)", [(5,)]),
        ("SELECT SUM(size) FROM orders JOIN shops USING (cost)", [(99,)]),
        ("SELECT town, COUNT(*) FROM orders JOIN shops USING (cost) GROUP BY town", [("a", 5)]),
        ("SELECT COUNT(*), SUM(size) FROM orders LEFT JOIN shops ON order_id = shops.cost", [(5, 0)]),
    ],
)
def test_different_rows_of_a_public_table_for_one_key_count_once(sql, truth):
    """Of several, the least: the same for everybody, and at most one for each row."""
    assert exactly(sql, shop()) == [truth]
    assert moved(sql, Policy.read(BUDGET + JOINED), shop(), shop(5)) >= 1


ALONE = "[tables.kids]\nunit = 'row'\ncolumns.height = {low = 0, high = 9, step = 1}\n"


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT COUNT(*) FROM ({} UNION ALL {})", None),
        ("SELECT COUNT(*) FROM (SELECT * FROM ({} UNION ALL {}) UNION ALL {})", None),
        ("SELECT part, COUNT(*) FROM (SELECT 'x' AS part, height FROM kids UNION ALL SELECT 'y', height FROM kids)"
         " GROUP BY part", 2),
        ("SELECT part, COUNT(*) FROM (SELECT 'x' AS part, height FROM (SELECT height FROM kids UNION ALL"
         " SELECT height FROM kids) UNION ALL SELECT 'y', height FROM kids) GROUP BY part", None),
        ("SELECT part, SUM(height) FROM (SELECT part, height FROM (SELECT 'x' AS part, height FROM kids UNION ALL"
         " SELECT 'y', height FROM kids) UNION ALL SELECT 'z', height FROM kids) GROUP BY part", None),
        ("SELECT part, COUNT(*) FROM (SELECT 'x' AS part FROM (SELECT height FROM (SELECT height FROM kids)) UNION ALL"
         " SELECT 'y' FROM kids UNION ALL SELECT 'z' FROM kids) GROUP BY part", 3),
    ],
)  # fmt: skip
def test_a_row_that_is_a_person_counts_once_in_each_group_of_nested_unions(sql, most):
    """Each time that a row is listed counts: also inside a UNION ALL that is inside another."""
    stated, sql = Policy.read(BUDGET + ALONE), sql.replace("{}", "SELECT height FROM kids")
    if most is None:
        with pytest.raises(QueryRefused, match="lists a row more than once"):
            parse_question(sql, stated)
        return
    assert parse_question(sql, stated).plan.groups == most
    one, other = (duckdb.connect(config={"threads": 1}) for _ in range(2))
    for connection, many in ((one, 5), (other, 4)):
        connection.execute(f"CREATE TABLE kids AS SELECT 9 AS height FROM range({many})")
    assert moved(sql, stated, one, other) == most
