"""Which rows a question may be about: grouped by the unit, joined along keys, chosen by other rows of the same unit.

Where no bound cuts, answers are those of plain SQL; with and without one person, exact numbers move within the price.
"""

import random

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.errors import QueryRefused
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.emit.bounding import bounding_of, statement
from sfumato.sql.emit.unit_rows import rows_with_unit
from sfumato.sql.parse.unbounded import UnboundedValue
from sfumato.sql.policy import Policy

POLICY = """
version = 1
[budget]
epsilon = 20
delta = 1e-6
[tables.customers]
unit = "customer_id"
rows = 1
[tables.customers.columns]
age = {low = 0, high = 120, step = 1}
city = {type = "text"}
[tables.orders]
unit = "customer_id"
groups = 1000
rows = 1000
[tables.orders.columns]
order_id = {type = "number"}
shop = {type = "text"}
day = {type = "date"}
amount = {low = 0, high = 100, step = 0.25}
[tables.lines]
unit = "orders.customer_id"
key = "order_id"
groups = 1000
rows = 1000
[tables.lines.columns]
order_id = {type = "number"}
product = {type = "number"}
price = {low = 0, high = 10, step = 0.5}
[tables.products]
public = true
[tables.products.columns]
product = {type = "number"}
kind = {type = "text", keys = ["food", "toys"]}
most = {low = 0, high = 10}
[tables.events]
unit = "customer_id"
[tables.events.columns]
kind = {type = "text"}
[tables.guests]
unit = "row"
[tables.guests.columns]
city = {type = "text"}
"""
WIDE = Policy.read(POLICY)
TIGHT = Policy.read(POLICY.replace("groups = 1000\nrows = 1000", "groups = 2\nrows = 3"))


def shop(without=None):
    """Forty customers with up to nine orders each, of up to three lines, and an order of nobody."""
    dice = random.Random(3)
    rows = {"customers": [], "orders": [], "lines": [(-1, 1, 5.0)]}
    order = 0
    for who in range(40):
        mine = {name: [] for name in rows}
        if who % 7:
            mine["customers"].append((who, 20 + who, "abc"[who % 3]))
        for _ in range(dice.choice([0, 1, 2, 5, 9])):
            order += 1
            day = f"2024-0{dice.randrange(1, 4)}-{dice.randrange(10, 29)}"
            mine["orders"].append((who, order, dice.choice(["x", "y", None]), day, dice.randrange(440) / 4))
            mine["lines"] += [
                (order, dice.randrange(6), dice.randrange(20) / 2) for _ in range(dice.choice([0, 1, 2, 3]))
            ]
        for name in rows if who != without else ():
            rows[name] += mine[name]
    db = duckdb.connect(config={"threads": 1})
    db.execute("CREATE TABLE customers (customer_id BIGINT, age INTEGER, city TEXT)")
    db.execute("CREATE TABLE orders (customer_id BIGINT, order_id BIGINT, shop TEXT, day DATE, amount DOUBLE)")
    db.execute("CREATE TABLE lines (order_id BIGINT, product INTEGER, price DOUBLE)")
    db.execute(
        "CREATE TABLE products AS SELECT i AS product, ['toys', 'food'][1 + i % 2] AS kind, i * 1.5 AS most FROM"
        " range(5) r(i)"
    )
    for name, listed in rows.items():
        db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(listed[0]))})", listed)
    return db


@pytest.fixture(scope="module")
def shops():
    return {who: shop(who) for who in (None, 1, 5, 22)}


ANSWERED = [
    # one row for each unit
    "SELECT COUNT(*), SUM(n) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t WHERE n > 3",
    "SELECT COUNT(*), SUM(s) FROM (SELECT customer_id, SUM(LEAST(amount, 100)) AS s FROM orders GROUP BY 1"
    " HAVING COUNT(*) > 1) t",
    "SELECT COUNT(*), SUM(m) FROM (SELECT customer_id, AVG(CASE WHEN shop = 'x' THEN 1 ELSE 0 END) AS m FROM orders"
    " GROUP BY customer_id)",
    "SELECT MONTH(last) AS m, COUNT(*) FROM (SELECT customer_id, MAX(day) AS last FROM orders GROUP BY customer_id)"
    " GROUP BY m",
    "SELECT f, COUNT(*) FROM (SELECT customer_id, FIRST(shop ORDER BY day, order_id) AS f FROM orders GROUP BY 1)"
    " GROUP BY f",
    "SELECT f, COUNT(*) FROM (SELECT customer_id, LAST(shop ORDER BY order_id) AS f FROM orders GROUP BY 1) GROUP BY f",
    "SELECT f, COUNT(*) FROM (SELECT customer_id, ARG_MAX(shop, order_id) AS f FROM orders GROUP BY 1) GROUP BY f",
    "SELECT COUNT(*) FROM (SELECT customer_id, BOOL_OR(shop = 'x') AS has_x FROM orders GROUP BY customer_id) WHERE"
    " has_x",
    "WITH per AS (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id), big AS (SELECT n FROM per WHERE"
    " n > 2) SELECT COUNT(*), SUM(n) FROM big",
    # one row for each unit and key
    "WITH per AS (SELECT customer_id, shop, COUNT(DISTINCT day) AS n FROM orders GROUP BY customer_id, shop)"
    " SELECT shop, SUM(n), COUNT(*) FROM per GROUP BY shop",
    "SELECT COUNT(*), SUM(n) FROM (SELECT customer_id, MONTH(day) AS m, COUNT(*) AS n FROM orders GROUP BY ALL)",
    "SELECT COUNT(*), SUM(n) FROM (SELECT order_id, COUNT(*) AS n FROM lines WHERE order_id > 0 GROUP BY order_id)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT customer_id, shop FROM orders)",
    # joins
    "SELECT city, COUNT(*), SUM(price) FROM customers JOIN orders USING (customer_id) JOIN lines USING (order_id)"
    " GROUP BY city",
    "SELECT city, COUNT(*) FROM customers c, orders o, lines l WHERE c.customer_id = o.customer_id AND l.order_id ="
    " o.order_id AND l.price > 3 GROUP BY city",
    "SELECT COUNT(*), COUNT(age) FROM orders LEFT JOIN customers c ON c.customer_id = orders.customer_id AND c.age"
    " > 30",
    "SELECT COUNT(*) FROM orders a JOIN orders b ON a.customer_id = b.customer_id AND a.day < b.day",
    "SELECT COUNT(*), SUM(n) FROM orders JOIN (SELECT order_id, COUNT(*) AS n FROM lines GROUP BY order_id) l USING"
    " (order_id)",
    "SELECT COUNT(*), SUM(n) FROM orders LEFT JOIN (SELECT order_id, COUNT(*) AS n FROM lines WHERE price > 4 GROUP BY"
    " order_id HAVING COUNT(*) > 1) l USING (order_id)",
    "SELECT COUNT(*), SUM(b.n) FROM (SELECT customer_id, COUNT(*) AS n FROM orders WHERE shop = 'x' GROUP BY 1) a JOIN"
    " (SELECT customer_id, COUNT(*) AS n FROM orders WHERE shop = 'y' GROUP BY 1) b USING (customer_id)",
    "SELECT kind, COUNT(lines.price) FROM products LEFT JOIN lines USING (product) WHERE order_id > 0 GROUP BY kind",
    "SELECT kind, COUNT(*) FROM lines NATURAL JOIN products WHERE order_id > 0 GROUP BY kind",
    "WITH p AS (SELECT product, kind FROM products WHERE most > 2) SELECT kind, COUNT(*) FROM p JOIN lines USING"
    " (product)"
    " WHERE order_id > 0 GROUP BY kind",
    # other rows of the same unit, and public ones
    "SELECT COUNT(*) FROM customers WHERE customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id HAVING"
    " COUNT(*) > 2)",
    "SELECT COUNT(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders WHERE amount > 50)",
    "SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.order_id AND l.price > 5)",
    "SELECT COUNT(*) FROM orders o WHERE NOT EXISTS (SELECT * FROM orders p WHERE p.customer_id = o.customer_id AND"
    " p.day < o.day)",
    "SELECT COUNT(*) FROM lines WHERE order_id > 0 AND product NOT IN (SELECT product FROM products WHERE kind ="
    " 'food')",
    "SELECT COUNT(*) FROM lines WHERE order_id > 0 AND price > (SELECT AVG(most) FROM products)",
    "SELECT COUNT(*) FROM lines l WHERE order_id > 0 AND price > (SELECT most FROM products p WHERE p.product ="
    " l.product)",
    "SELECT COUNT(*) FROM orders o WHERE (SELECT COUNT(*) FROM lines l WHERE l.order_id = o.order_id) = 0",
    "SELECT COUNT(*) FROM orders o WHERE amount > (SELECT MAX(price) * 9 FROM lines l WHERE l.order_id = o.order_id)",
]  # fmt: skip


def exact(question, db):
    """keys → the value of each count and sum."""
    plan, width = question.plan, len(question.plan.keys)
    found = {}
    for row in db.execute(statement(plan, 7, "duckdb")).fetchall():
        values = [(row[width + question.sum_indexes[one][0]], plan.measures[question.sum_indexes[one][0]])
                  for one in question.aggregates]  # fmt: skip
        found[row[:width]] = [float(v or 0) * (2.0**m.exponent if m.what.value == "sum" else 1) for v, m in values]
    return found


@pytest.mark.parametrize("sql", ANSWERED)
def test_where_nothing_is_cut_the_rows_are_those_of_plain_sql(sql, shops):
    question = parse_question(sql, WIDE)
    width, listed = len(question.plan.keys), question.plan.public
    plain = {row[:width]: [float(x or 0) for x in row[width:]] for row in shops[None].execute(sql).fetchall()}
    found = exact(question, shops[None])
    for key in plain:
        if listed is None or key in listed:
            assert found[key] == pytest.approx(plain[key], abs=1e-4), key  # sums are of steps of 2**-20
    assert set(found) <= set(plain)


def test_a_comparison_with_the_outer_row_is_that_of_plain_sql(shops):
    """Each row equals itself, so that < and <= differ, and many people have one order, so that <> does."""
    for word in ("EXISTS", "NOT EXISTS"):
        for sign in ("<", "<=", ">", ">=", "<>"):
            other = f"SELECT 1 FROM orders p WHERE p.customer_id = o.customer_id AND p.day {sign} o.day"
            sql = f"SELECT COUNT(*) FROM orders o WHERE {word} ({other})"
            [[plain]] = shops[None].execute(sql).fetchall()
            assert exact(parse_question(sql, WIDE), shops[None]) == {(): [plain]}, sql


@pytest.mark.parametrize("sql", ANSWERED)
@pytest.mark.parametrize("policy", [WIDE, TIGHT])
def test_one_person_moves_exact_numbers_within_the_price(sql, policy, shops):
    plan = parse_question(sql, policy).plan
    text, width = statement(plan, 77, "duckdb"), len(plan.keys)
    tables = {who: {row[:width]: [x or 0 for x in row[width:]] for row in db.execute(text).fetchall()}
              for who, db in shops.items()}  # fmt: skip
    zeros = [0] * len(plan.measures)
    for who in (1, 5, 22):
        changes = 0
        for key in set(tables[None]) | set(tables[who]):
            by = [abs(a - b) for a, b in zip(tables[None].get(key, zeros), tables[who].get(key, zeros), strict=True)]
            changes += any(by)
            assert all(far <= bounding_of(plan).sensitivity(m) for m, far in zip(plan.measures, by, strict=True))
        assert changes <= plan.groups


@pytest.mark.parametrize("sql", ANSWERED)
def test_every_dialect_writes_it_or_refuses_it_by_name(sql):
    plan = parse_question(sql, WIDE).plan
    for name, dialect in DIALECTS.items():
        try:
            dialect.accepts(plan)
        except QueryRefused as refusal:
            assert name != "duckdb" and name in str(refusal)
        else:
            assert statement(plan, 7, name)


SAME = [
    ("SELECT COUNT(*) FROM lines l JOIN orders o ON l.order_id = o.order_id WHERE price > 3",
     "SELECT COUNT(*) FROM orders o, lines l WHERE l.price > 3 AND o.order_id = l.order_id"),
    ("SELECT COUNT(*) FROM lines JOIN products USING (product)", "SELECT COUNT(*) FROM products NATURAL JOIN lines"),
    ("SELECT COUNT(*) FROM lines JOIN products USING (product)",
     "SELECT COUNT(*) FROM lines JOIN (SELECT product AS p FROM products) x ON x.p = lines.product"),
    ("SELECT COUNT(*) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY 1) WHERE n > 3",
     "WITH o AS (SELECT COUNT(1) AS many, customer_id AS c FROM orders GROUP BY c HAVING COUNT(*) > 3) SELECT"
     " COUNT(*) FROM o"),
    ("SELECT SUM(n) FROM (SELECT order_id, COUNT(*) AS n FROM lines GROUP BY order_id)",
     "SELECT SUM(n) FROM (SELECT order_id, COUNT(*) AS n, MAX(price) AS unused FROM lines GROUP BY customer_id,"
     " order_id)"),
    ("SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.order_id)",
     "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT price FROM lines WHERE orders.order_id = lines.order_id)"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_spellings_are_one_question(one, other):
    assert parse_question(one, WIDE).plan.canonical == parse_question(other, WIDE).plan.canonical


def test_questions_that_look_alike_have_texts_of_their_own():
    per = "SELECT COUNT(*) FROM (SELECT customer_id, {0} AS n FROM orders{1} GROUP BY customer_id) WHERE n > 3"
    texts = [
        *(per.format(of, "") for of in ("COUNT(*)", "COUNT(shop)", "COUNT(DISTINCT shop)", "SUM(amount)", "AVG(amount)",
                                        "MIN(amount)", "MAX(amount)", "ARG_MIN(amount, day)", "ARG_MAX(amount, day)",
                                        "FIRST(amount ORDER BY day)", "FIRST(amount ORDER BY day NULLS FIRST)")),
        per.format("COUNT(*)", " WHERE shop = 'x'"),
        "SELECT COUNT(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM customers)",
        "SELECT COUNT(*) FROM orders WHERE customer_id NOT IN (SELECT customer_id FROM customers)",
        "SELECT COUNT(*) FROM orders WHERE customer_id IN (SELECT customer_id FROM customers WHERE age > 30)",
        "SELECT COUNT(*) FROM orders JOIN customers USING (customer_id)",
        "SELECT COUNT(*) FROM orders LEFT JOIN customers USING (customer_id)",
    ]  # fmt: skip
    assert len({parse_question(text, WIDE).plan.canonical for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM (SELECT customer_id, FIRST(shop) AS f FROM orders GROUP BY 1)",
        "SELECT COUNT(*) FROM (SELECT customer_id, MEDIAN(amount) AS f FROM orders GROUP BY 1)",
        "SELECT customer_id, n FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY 1)",
        "SELECT AVG(n) FROM (SELECT customer_id, COUNT(*) AS n FROM events GROUP BY 1)",
        "SELECT COUNT(*) FROM lines WHERE product IN (SELECT product FROM lines WHERE price > 5)",
        "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)",
        "SELECT COUNT(*) FROM customers WHERE EXISTS (SELECT 1 FROM orders)",
        "SELECT COUNT(*) FROM customers WHERE age IN (SELECT customer_id FROM orders)",
        "SELECT COUNT(*) FROM lines JOIN (SELECT product FROM products WHERE product IN (SELECT product FROM lines)) p"
        " USING (product)",
        "SELECT COUNT(*) FROM guests WHERE city IN (SELECT city FROM customers)",
        "SELECT COUNT(*) FROM lines l JOIN (SELECT product, COUNT(*) AS n FROM lines GROUP BY product) p USING"
        " (product)",
        "SELECT COUNT(*) FROM lines, products",
        "SELECT COUNT(*) FROM orders a, orders b WHERE a.shop = b.shop",
        "SELECT COUNT(*) FROM (SELECT product FROM products UNION ALL SELECT product FROM lines)",
        "SELECT COUNT(*) FROM products p WHERE p.product IN (SELECT product FROM lines)",
        "SELECT COUNT(*) FROM customers FULL JOIN orders USING (customer_id)",
    ],
)
def test_rows_of_many_people_never_become_one(sql):
    with pytest.raises(QueryRefused):
        parse_question(sql, WIDE)


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT shop, COUNT(*) AS n FROM orders GROUP BY shop",
        "SELECT customer_id + 0 AS c, COUNT(*) AS n FROM orders GROUP BY 1",
        "SELECT COUNT(*) AS n FROM orders",
        "SELECT city, COUNT(*) AS n FROM guests GROUP BY city",
    ],
)
def test_aggregates_of_rows_of_many_people_are_released_before_others_are_made_of_them(inner):
    found = parse_question(f"SELECT AVG(n) FROM ({inner})", WIDE)
    assert [one.plan for one in found.outer.questions] == [parse_question(inner, WIDE).plan]


def test_rows_of_a_public_table_alone_are_never_counted(shops):
    """Plain SQL counts a product without lines once; here it belongs to nobody."""
    for sql in ("SELECT kind, COUNT(*) FROM products LEFT JOIN lines USING (product) GROUP BY kind",
                "SELECT kind, COUNT(*) FROM lines RIGHT JOIN products USING (product) GROUP BY kind"):  # fmt: skip
        inner = parse_question(sql.replace("LEFT JOIN", "JOIN").replace("RIGHT JOIN", "JOIN"), WIDE)
        assert parse_question(sql, WIDE).plan.canonical == inner.plan.canonical


def test_a_sum_inside_is_the_same_in_any_order_of_rows():
    """Doubles added in another order differ, and another person's rows can change the order; whole steps do not."""
    dice, db = random.Random(1), duckdb.connect()
    values = [dice.uniform(0, 100) for _ in range(400)]
    plan = parse_question("SELECT MAX(s) FROM (SELECT customer_id, SUM(amount) AS s FROM orders GROUP BY 1)", WIDE).plan
    inner = next(iter(plan.table.columns))
    found = set()
    for _ in range(4):
        dice.shuffle(values)
        db.execute("CREATE OR REPLACE TABLE orders (customer_id INTEGER, amount DOUBLE)")
        db.executemany("INSERT INTO orders VALUES (1, ?)", [(one,) for one in values])
        text = rows_with_unit(plan.table, DIALECTS["duckdb"].about(plan)).sql("duckdb")
        found.add(db.execute(f'SELECT "{inner}" FROM ({text})').fetchone())
    assert len(found) == 1


@pytest.mark.parametrize("aggregate", ["AVG(n)", "SUM(n)", "MEDIAN(n)"])
def test_a_number_of_rows_without_a_bound_is_named_as_in_the_question(aggregate):
    rows = "(SELECT customer_id, COUNT(*) AS n FROM events GROUP BY customer_id)"
    with pytest.raises(UnboundedValue) as refusal:
        parse_question(f"SELECT {aggregate} FROM {rows}", Policy.read(POLICY))
    assert refusal.value.title == "n" and refusal.value.column not in str(refusal.value)
    parse_question(f"SELECT {aggregate.replace('n', 'CLAMP(n, 0, 50)')} FROM {rows}", Policy.read(POLICY))
