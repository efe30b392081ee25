"""Joins of private tables, and units that another table knows: still nobody moves more than the bounds say."""

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.errors import PolicyError, QueryRefused
from sfumato.sql.emit.bounding import bounding_of, statement
from sfumato.sql.parse.joins import root_below
from sfumato.sql.policy import Policy

POLICY = """
version = 1
[budget]
epsilon = 20
delta = 1e-6
[tables.people]
unit = "person"
[tables.people.columns]
age = {low = 0, high = 120, step = 1}
[tables.orders]
unit = "person"
groups = 2
rows = 3
[tables.orders.columns]
order_id = {type = "number"}
shop = {type = "text"}
[tables.lines]
unit = "orders.person"
key = "order_id"
groups = 2
rows = 4
[tables.lines.columns]
line_id = {type = "text"}
order_id = {type = "number"}
price = {low = 0, high = 10, step = 0.5}
[tables.returns]
unit = "lines.person"
key = "line"
parent_key = "line_id"
rows = 2
[tables.returns.columns]
line = {type = "text"}
reason = {type = "text"}
[tables.shops]
public = true
[tables.shops.columns]
shop = {type = "text"}
other = {type = "text"}
[tables.visitors]
unit = "row"
[tables.visitors.columns]
shop = {type = "text"}
"""
RULES = Policy.read(POLICY)
LARGE = 2**60  # ids of neighbours are one double


def filled(without=None):
    """Person p has p mod 6 orders, each with 3 lines; person 5 has 500 orders, too."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (person BIGINT, age INTEGER)")
    connection.execute("CREATE TABLE orders (person BIGINT, order_id BIGINT, shop TEXT)")
    connection.execute("CREATE TABLE lines (line_id BIGINT, order_id BIGINT, price DOUBLE)")
    connection.execute("CREATE TABLE returns (line TEXT, reason TEXT)")
    connection.execute("CREATE TABLE shops AS SELECT * FROM (VALUES ('a', 'A'), ('b', 'A'), ('A', 'a')) t(shop, other)")
    connection.execute("CREATE TABLE visitors AS SELECT 'a' AS shop")
    people, orders, lines, returns = [], [], [], []
    for p in range(20):
        if p == without:
            continue
        people.append((LARGE + p, 20 + p))
        for o in range(p % 6 + (500 if p == 5 else 0)):
            order = 1000 * p + o
            orders.append((LARGE + p, order, "abc"[o % 3]))
            lines += [(10 * order + i, order, (p + o + i) % 12) for i in range(3)]
            returns.append((str(10 * order), "torn"))
    lines.append((-1, -1, 5))  # nobody's
    for name, rows in (("people", people), ("orders", orders), ("lines", lines), ("returns", returns)):
        listed = ", ".join(str(row) for row in rows)
        connection.execute(f"INSERT INTO {name} VALUES {listed}")
    return connection


QUESTIONS = [
    "SELECT COUNT(*) FROM orders JOIN people USING (person)",
    "SELECT shop, COUNT(*), AVG(age) FROM orders o JOIN people p ON o.person = p.person GROUP BY shop",
    "SELECT COUNT(*) FROM orders a JOIN orders b USING (person)",
    "SELECT a.shop, SUM(age) FROM orders a JOIN orders b ON a.person = b.person AND a.shop = b.shop"
    " JOIN people p ON p.person = a.person WHERE age > 21 GROUP BY 1",
    "SELECT COUNT(*), SUM(price) FROM lines",
    "SELECT order_id, COUNT(*) FROM lines GROUP BY 1",
    "SELECT COUNT(DISTINCT person), COUNT(*) FROM returns",
    "SELECT reason, COUNT(*) FROM returns GROUP BY reason",
    "SELECT shop, SUM(price) FROM lines JOIN orders USING (person) GROUP BY shop",
    "SELECT shop, COUNT(*), SUM(price) FROM lines LEFT JOIN orders USING (person) GROUP BY shop",
    "SELECT COUNT(*), SUM(age), COUNT(shop) FROM people LEFT JOIN orders ON people.person = orders.person",
    "SELECT other, COUNT(*) FROM orders LEFT JOIN shops USING (shop) GROUP BY other",
    "SELECT shop, COUNT(*), SUM(price) FROM lines JOIN orders USING (order_id) GROUP BY shop",
    "SELECT COUNT(*), SUM(price) FROM orders o JOIN lines l ON o.order_id = l.order_id WHERE shop = 'a'",
    "SELECT shop, COUNT(*) FROM orders o LEFT JOIN lines l ON l.order_id = o.order_id GROUP BY shop",
    "SELECT shop, COUNT(*) FROM lines LEFT JOIN orders ON lines.order_id = orders.order_id GROUP BY 1",
    "SELECT shop, SUM(price) FROM returns r JOIN lines l ON r.line = l.line_id JOIN orders o ON o.order_id = l.order_id"
    " GROUP BY shop",
    "SELECT COUNT(*), SUM(a.price) FROM lines a JOIN lines b USING (person, order_id)",
]


@pytest.fixture(scope="module")
def shops():
    return {who: filled(who) for who in (None, 1, 5, 11)}


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_person_moves_few_groups_and_each_a_little(sql, shops):
    plan = parse_question(sql, RULES).plan
    text, width = statement(plan, 77, "duckdb"), len(plan.keys)
    tables = {
        who: {row[:width]: [x or 0 for x in row[width:]] for row in db.execute(text).fetchall()}
        for who, db in shops.items()
    }
    zeros, moved = [0] * len(plan.measures), 0
    for who in (1, 5, 11):
        changes = 0
        for key in set(tables[None]) | set(tables[who]):
            by = [abs(a - b) for a, b in zip(tables[None].get(key, zeros), tables[who].get(key, zeros), strict=True)]
            changes += any(by)
            for measure, far in zip(plan.measures, by, strict=True):
                assert far <= bounding_of(plan).sensitivity(measure)
        assert changes <= plan.groups
        moved += changes
    assert moved > 0


def test_a_join_on_the_unit_means_what_sql_means_within_the_bounds(shops):
    """Person 5 alone is over the bound of 3 orders: 3 are kept before the join."""
    found = shops[None].execute(statement(parse_question(QUESTIONS[0], RULES).plan, 1, "duckdb")).fetchone()[0]
    truth = (
        shops[None]
        .execute("SELECT SUM(LEAST(n, 3)) FROM (SELECT COUNT(*) n FROM orders GROUP BY person)")
        .fetchone()[0]
    )
    assert found == truth
    pairs = shops[None].execute(statement(parse_question(QUESTIONS[2], RULES).plan, 1, "duckdb")).fetchone()[0]
    squares = "SELECT SUM(LEAST(n, 3) ** 2) FROM (SELECT COUNT(*) n FROM orders GROUP BY person)"
    assert pairs == shops[None].execute(squares).fetchone()[0]
    assert parse_question(QUESTIONS[2], RULES).plan.rows == 9


WIDE = Policy.read(POLICY.replace("groups = 2", "groups = 99999").replace("rows = 4", "rows = 99999"))
BY_KEY = {  # a join on the key by which the policy finds the unit: what plain SQL makes of it
    "SELECT shop, COUNT(*) FROM lines JOIN orders USING (order_id) GROUP BY shop":
        "SELECT shop, COUNT(*) FROM lines JOIN orders USING (order_id) GROUP BY shop",
    "SELECT shop, COUNT(*) FROM orders o JOIN lines l ON o.order_id = l.order_id WHERE price > 3 GROUP BY shop":
        "SELECT shop, COUNT(*) FROM orders JOIN lines USING (order_id) WHERE price > 3 GROUP BY shop",
    "SELECT shop, COUNT(*) FROM lines LEFT JOIN orders ON lines.order_id = orders.order_id GROUP BY shop":
        "SELECT shop, COUNT(*) FROM lines JOIN orders USING (order_id) GROUP BY shop",
    "SELECT s, COUNT(*) FROM (SELECT order_id, shop AS s FROM orders WHERE shop <> 'a') JOIN lines USING (order_id)"
    " GROUP BY s":
        "SELECT shop, COUNT(*) FROM lines JOIN orders USING (order_id) WHERE shop <> 'a' GROUP BY shop",
    "SELECT shop, COUNT(*) FROM lines l JOIN orders o ON l.order_id = o.order_id AND l.person = o.person GROUP BY shop":
        "SELECT shop, COUNT(*) FROM lines JOIN orders USING (order_id) GROUP BY shop",
}  # fmt: skip


@pytest.mark.parametrize("sql", BY_KEY)
def test_a_join_on_the_key_of_the_unit_multiplies_no_rows_and_means_what_sql_means(sql, shops):
    """Once the hint to such a question was a join on the unit, which counts each line once for each order of its
    person: 39,308 for 4,530."""
    question = parse_question(sql, WIDE)
    assert question.plan.table.name == "lines"
    assert question.plan.rows == 99999  # those of a line, not lines times orders
    place = 1 + question.sum_indexes[question.aggregates[0]][0]
    found = {row[0]: row[place] for row in shops[None].execute(statement(question.plan, 1, "duckdb")).fetchall()}
    assert found == dict(shops[None].execute(BY_KEY[sql]).fetchall())


def test_a_column_whose_name_begins_with_that_of_a_key_and_a_dot_is_no_key():
    """Rows of one "order_id.x" may be of different people; "order_id" is what the policy finds the unit by."""
    rules = Policy.read(POLICY.replace("line_id = {type", '"order_id.x" = {type = "number"}\nline_id = {type'))
    dotted = 'SELECT COUNT(*) FROM lines JOIN orders ON lines."order_id.x" = orders.order_id'
    with pytest.raises(QueryRefused, match="rows of different people together"):
        parse_question(dotted, rules)
    named = POLICY.replace('key = "order_id"', 'key = "order_id.x"\nparent_key = "order_id"')
    named = named.replace("line_id = {type", '"order_id.x" = {type = "number"}\nline_id = {type', 1)
    assert parse_question(dotted, Policy.read(named)).plan.table.name == "lines"


def test_keys_of_two_people_that_are_one_double_are_not_mixed_and_a_key_is_found_once():
    connection = duckdb.connect()
    rows = [(1, LARGE, "a"), (2, LARGE + 1, "b"), (2, LARGE + 1, "c")]  # the second order is listed twice
    connection.execute("CREATE TABLE orders (person BIGINT, order_id BIGINT, shop TEXT)")
    connection.execute(f"INSERT INTO orders VALUES {', '.join(map(str, rows))}")
    connection.execute(
        f"CREATE TABLE lines AS SELECT 0 AS line_id, {LARGE} + i AS order_id, 1 AS price FROM range(3) r(i)"
    )
    sql = "SELECT shop, COUNT(*) FROM lines JOIN orders USING (order_id) GROUP BY shop"
    plan = parse_question(sql, WIDE).plan
    place = 1 + [m.what.value for m in plan.measures].index("rows")
    found = {row[0]: row[place] for row in connection.execute(statement(plan, 1, "duckdb")).fetchall()}
    assert found in ({"a": 1, "b": 1}, {"a": 1, "c": 1})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM orders JOIN people ON orders.order_id = people.age",
        "SELECT COUNT(*) FROM orders a JOIN orders b ON a.shop = b.shop",
        "SELECT COUNT(*) FROM lines a JOIN orders b ON a.price = b.order_id",
        "SELECT COUNT(*) FROM visitors JOIN orders USING (shop)",
    ],
)
def test_a_join_that_would_bring_people_together_is_refused_without_a_hint_to_another_question(sql):
    with pytest.raises(QueryRefused, match="different people") as refused:
        parse_question(sql, RULES)
    assert "do:" not in str(refused.value)


@pytest.mark.parametrize("on", ["USING (order_id)", "ON lines.order_id = orders.order_id"])
def test_a_key_that_is_no_column_is_named_and_no_other_column_is_hinted_at(on):
    policy = Policy.read(POLICY.replace('line_id = {type = "text"}\norder_id = {type = "number"}\n', ""))
    with pytest.raises(QueryRefused, match="the owner adds it to the columns of lines") as refused:
        parse_question(f"SELECT COUNT(*) FROM lines JOIN orders {on}", policy)
    assert "person" not in str(refused.value)


def test_a_chain_of_keys_finds_the_unit(shops):
    text = statement(parse_question("SELECT COUNT(DISTINCT person) FROM returns", RULES).plan, 1, "duckdb")
    truth = "SELECT COUNT(DISTINCT person) FROM orders"
    assert shops[None].execute(text).fetchall() == shops[None].execute(truth).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM orders JOIN people ON orders.person = people.age",
        "SELECT COUNT(*) FROM orders JOIN visitors USING (shop)",
        "SELECT COUNT(*) FROM orders JOIN people ON orders.person + 0 = people.person",
        "SELECT COUNT(*) FROM orders JOIN orders USING (person)",
        # a condition on the public table alone would match many of its rows
        "SELECT COUNT(*) FROM visitors JOIN shops ON UPPER(shops.shop) = shops.other",
        "SELECT COUNT(*) FROM visitors JOIN shops ON visitors.shop || shops.shop = shops.other",
    ],
)
def test_other_joins_are_refused(sql):
    with pytest.raises(QueryRefused):
        parse_question(sql, RULES)


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('unit = "orders.person"', 'unit = "orders.customer"'),
        ('unit = "orders.person"', 'unit = "shops.person"'),
        ('unit = "orders.person"', 'unit = "nothing.person"'),
        ('unit = "orders.person"', 'unit = "returns.person"'),
        ('unit = "orders.person"\nkey = "order_id"', 'unit = "orders.person"'),
        ('unit = "orders.person"\nkey = "order_id"', 'unit = "person"\nkey = "order_id"'),
    ],
)
def test_a_chain_that_leads_nowhere_is_refused(line, other):
    with pytest.raises(PolicyError):
        Policy.read(POLICY.replace(line, other))


def test_joined_tables_are_answered(tmp_path, shops):
    place = tmp_path / "shops.duckdb"
    shops[None].execute(f"ATTACH '{place}' AS copy")
    shops[None].execute("COPY FROM DATABASE memory TO copy")
    shops[None].execute("DETACH copy")
    curator = Curator.open(place, RULES)
    curator.register(epsilon=1.0)  # the sketch follows the chain, too
    for sql in QUESTIONS:
        assert curator.ask(sql, epsilon=1.0).charged
    assert curator.ask("SELECT MEDIAN(price) FROM lines", epsilon=1.0).charged


def test_a_unit_of_texts_is_joined_also_where_the_policy_does_not_describe_it():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 'p' || i AS person, i AS age FROM range(7) r(i)")
    connection.execute(
        "CREATE TABLE orders AS SELECT 'p' || i AS person, i AS order_id, 's' AS shop FROM range(3, 9) r(i)"
    )
    text = statement(parse_question("SELECT COUNT(*) FROM people JOIN orders USING (person)", RULES).plan, 1, "duckdb")
    assert connection.execute(text).fetchall() == [(4,)]


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_the_root_of_a_limit_is_the_largest_whole_number_below_it(degree):
    for whole in (1, 2, 63, 64, 999_999, 1_000_000):
        assert root_below(whole, degree) ** degree <= whole < (root_below(whole, degree) + 1) ** degree
