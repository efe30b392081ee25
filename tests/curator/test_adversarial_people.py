"""Hostile data under a policy without bounds, through the curator: nothing raises, nothing is told, books are right."""

import math

import pytest

from tests.curator.people import DEFAULT, FEW, GAUSSIAN, MANY, PURE, charges, opened, spent

COUNTS = ("SELECT COUNT(*) FROM t", "SELECT k, COUNT(*), SUM(x), AVG(y) FROM t GROUP BY k", "SELECT SUM(x) FROM t",
          "SELECT k, COUNT(DISTINCT u), VARIANCE(y) FROM t GROUP BY k", "SELECT MEDIAN(y) FROM t")  # fmt: skip
PRIVATE = ("SELECT w, COUNT(*) FROM t GROUP BY w", "SELECT n, AVG(y) FROM t GROUP BY n",
           "SELECT d, w, COUNT(*) FROM t GROUP BY d, w")  # fmt: skip
GROUPS = "INSERT INTO t SELECT {}, 'a', 5, 5, 'w' || i, i, NULL FROM range(20000) r(i)"
DATA = {
    "empty": (),
    "all units NULL": ("INSERT INTO t SELECT NULL, 'a', 1, 1, 'w', 1, NULL FROM range(500)",),
    "one unit with all rows": ("INSERT INTO t SELECT 'me', 'a', 10, 10, 'w', 1, NULL FROM range(100000)",),
    "one unit beside others": (*DEFAULT, "INSERT INTO t SELECT 'me', 'a', 10, 10, 'w', 1, NULL FROM range(100000)"),
    "all equal": ("INSERT INTO t SELECT 'u' || (i // 4), 'a', 5, 5, 'w', 1, NULL FROM range(2000) r(i)",),
    "a group for each row": (GROUPS.format("'u' || (i // 100)"),),
    "one unit in many groups": (*DEFAULT, GROUPS.format("'me'")),
    "odd numbers": (
        *DEFAULT,
        "INSERT INTO t SELECT 'o' || i, 'a', v, v, 'w0', v, NULL FROM range(300) r(i), "
        "(VALUES ('NaN'::DOUBLE), ('inf'), ('-inf'), ('-0'::DOUBLE), (1e308), (5e-324), (NULL)) AS s(v)",
    ),
    "odd units": (*DEFAULT, """INSERT INTO t SELECT v, 'a', 1, 1, 'w0', 1, NULL FROM range(50), (VALUES (''), (' '),
        ('NULL'), ('é'), ('É'), ('e' || chr(769)), ('''; DROP TABLE t; --'), ('u1 '), (repeat('x', 5000))) AS s(v)"""),
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("budget", [GAUSSIAN, PURE])
def test_hostile_data_are_answered_at_the_price_and_the_books_are_right(tmp_path, name, budget):
    curator = opened(tmp_path, *DATA[name], budget=budget)
    for question in COUNTS if budget == PURE else (*COUNTS, *PRIVATE):
        before, whole = spent(curator), curator.offer(question, epsilon=0.5)
        answer = curator.ask(question, epsilon=0.5)
        price = curator.ledger.prices(whole.price.loss())[-1]
        for was, now, paid in zip(before, spent(curator), (price.gauss, price.pure), strict=True):
            assert now - was <= paid + 3
        for row in answer.rows:
            assert not any(isinstance(one, float) and math.isnan(one) for one in row)
        assert curator.ask(question, epsilon=0.5).rows == answer.rows
    curator.ledger.verify()


def test_keys_of_few_people_are_never_shown(tmp_path):
    curator = opened(tmp_path, *DATA["a group for each row"])
    assert curator.ask("SELECT w, COUNT(*) FROM t GROUP BY w", epsilon=1).rows == ()
    assert curator.ask("SELECT n, SUM(y) FROM t GROUP BY n", epsilon=1).rows == ()


@pytest.mark.parametrize("key", ["w", "n", "d", "w, d", "d, n"])
def test_private_keys_of_every_type_find_their_counts_again(tmp_path, key):
    """Keys go through the stored votes and back: texts, numbers with −0 and NaN, dates, NULL."""
    odd = """INSERT INTO t SELECT 'z' || i, 'b', 1, 1, NULL, v, DATE '1999-12-31' FROM range(3000) r(i),
        (VALUES ('-0'::DOUBLE), ('NaN'::DOUBLE), (0.1), (1e300)) AS s(v)"""
    curator = opened(tmp_path, MANY, FEW, odd, odd.replace("'z'", "'y'"))
    answer = curator.ask(f"SELECT {key}, COUNT(*) AS c FROM t GROUP BY {key}", epsilon=3)
    width = key.count(",") + 1
    rows = {row[:width]: row[width] for row in answer.rows}
    assert rows, "some keys have thousands of people"
    assert sum(rows.values()) > 20000 and min(rows.values()) > -200
    assert max(rows.values()) > 3000


def test_units_are_told_apart_exactly(tmp_path):
    """'é' and 'É' and 'é' of two characters are three people; each counts for itself."""
    rows = """INSERT INTO t SELECT v || i, 'a', 1, 1, 'w0', 1, NULL FROM range(400) r(i),
        (VALUES ('é'), ('É'), ('e' || chr(769))) AS s(v)"""
    curator = opened(tmp_path, rows)
    answer = curator.ask("SELECT COUNT(DISTINCT u) FROM t", epsilon=5)
    assert abs(answer.rows[0][0] - 1200) < 20


def test_everybody_with_the_same_number_of_rows_is_inside_of_the_interval(tmp_path):
    curator, inside = opened(tmp_path, *DATA["all equal"]), 0
    for i in range(30):
        row = curator.ask(f"SELECT COUNT(*) FROM t WHERE x > {-99.5 + i}", epsilon=0.3).rows[0]
        inside += row[1] <= 2000 <= row[2]
    assert inside >= 25


def test_a_kept_table_serves_no_other_rows(tmp_path):
    """PAIRS and NORMS of one question are never read for another filter, key or measure."""
    rows = "INSERT INTO t SELECT 'u' || i, chr((97 + (i % 4 > 0)::INT)::INT), 5, 5, 'w', 1, NULL FROM range(2000) r(i)"
    curator = opened(tmp_path, rows)
    conditions = {"TRUE": 2000, "k = 'a'": 500, "k <> 'a'": 1500, "y < 3": 0}
    for condition, truth in conditions.items():
        found = curator.ask(f"SELECT COUNT(*) FROM t WHERE {condition}", epsilon=3).rows[0][0]
        total = curator.ask(f"SELECT SUM(y) FROM t WHERE {condition}", epsilon=3).rows[0][0]
        assert abs(found - truth) < 50 and abs(total - 5 * truth) < 500
    assert len(charges(curator)) == len(set(charges(curator))) == 4 * len(conditions)
