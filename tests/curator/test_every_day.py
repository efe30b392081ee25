"""Counts that are published every day: one price, right counts, and a bound on what one person moves over all days."""

import dataclasses
from datetime import date, timedelta

import duckdb
import numpy as np
import pytest

from sfumato import Curator
from sfumato.aggregates.price import Mu, Pure
from sfumato.curator.every_day import Sums, length, schedule_of
from sfumato.curator.failure_guard import Clock
from sfumato.curator.planner import Wanted
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.dp_syntax import EveryDay, parse_dp_syntax
from sfumato.sql.policy import Policy
from sfumato.sql.question_bounds import QuestionBounds
from tests.curator import clinic

FIRST, DAYS = date(2024, 1, 1), 60
EVERY = f"SELECT COUNT(*) FROM visits EVERY DAY OF day FROM '{FIRST}' FOR {DAYS} DAYS"
POLICY = clinic.POLICY.replace("epsilon = 8.0", "epsilon = 900").replace("groups = 2\nrows = 3\n", "")


@pytest.fixture
def place(tmp_path):
    return clinic.built(tmp_path / "clinic.duckdb")


def opened(place, today):
    found = Curator.open(place, Policy.read(POLICY))
    return dataclasses.replace(found, clock=Clock(today=lambda: today))


def truth(place, rows, last):
    """Of each person the first rows by day."""
    with duckdb.connect(str(place), read_only=True) as connection:
        found = connection.execute(
            "SELECT patient_id, day FROM visits WHERE patient_id IS NOT NULL AND day >= ? AND day < ? ORDER BY day",
            [FIRST, FIRST + timedelta(days=DAYS)],
        ).fetchall()
    seen, counts = {}, np.zeros(DAYS, int)
    for person, day in found:
        seen[person] = seen.get(person, 0) + 1
        counts[(day - FIRST).days :] += seen[person] <= rows
    return counts[:last]


@pytest.mark.parametrize("rows", [1, 3, 50])
def test_counts_are_those_of_the_first_rows_of_each_person(rows, place):
    answer = opened(place, FIRST + timedelta(days=45)).ask(EVERY, epsilon=800, rows=rows)
    expected = truth(place, rows, 45)
    assert [row[0] for row in answer.rows] == [FIRST + timedelta(days=i) for i in range(45)]
    assert all(
        abs(n - m) <= 6 + rows and low <= n <= high for (_, n, low, high), m in zip(answer.rows, expected, strict=True)
    )
    assert "days" in answer.note and answer.columns == ("day", "count", "count low", "count high")


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
def test_each_day_counts_exactly_the_first_rows_of_each_person(rows, place):
    with duckdb.connect(str(place)) as connection:  # several rows of a person on one day, and a day without any
        connection.execute("INSERT INTO visits (patient_id, day) SELECT patient_id, day FROM visits WHERE stay > 3")
        connection.execute("DELETE FROM visits WHERE day = '2024-01-09'")
    curator = opened(place, FIRST)
    schedule = schedule_of(curator, Wanted.of(EVERY, 1.0, bounds=QuestionBounds(rows=rows)))
    to = dataclasses.replace(DIALECTS["duckdb"], schema=curator.engine.schema())
    found = {str(day)[:10]: int(n) for day, n in curator.engine.run(schedule.statement(45, to))}
    assert max(found) <= schedule.day(45).isoformat()
    counts = np.cumsum([found.get(schedule.day(number).isoformat(), 0) for number in range(1, 46)])
    assert np.array_equal(counts, truth(place, rows, 45))


def test_one_price_and_each_sum_is_drawn_once(place):
    first = opened(place, FIRST + timedelta(days=10)).ask(EVERY, epsilon=1.0, rows=5)
    assert first.charged and len(first.rows) == 10
    spent = opened(place, FIRST).budget.spent
    later = opened(place, FIRST + timedelta(days=33)).ask(EVERY, epsilon=1.0, rows=5)
    curator = opened(place, FIRST + timedelta(days=33))
    curator.ledger.new_version("visits of February")
    again = curator.ask(EVERY, epsilon=1.0, rows=5)
    assert not later.charged and not again.charged
    assert later.rows[:10] == first.rows and again.rows == later.rows and len(later.rows) == 33
    assert opened(place, FIRST).budget.spent == spent > 0
    assert opened(place, FIRST + timedelta(days=5)).ask(EVERY, epsilon=1.0, rows=5).rows == first.rows, (
        "of all that is out"
    )
    assert len(opened(place, date(2030, 1, 1)).ask(EVERY, epsilon=1.0, rows=5).rows) == DAYS
    assert opened(place, date(2020, 1, 1)).ask(EVERY, epsilon=2.0, rows=5).rows == ()


def test_a_person_moves_all_sums_of_the_tree_within_the_price(tmp_path):
    """Rows come late and in many states: on each level the sums move by at most `rows` in all, for every person."""
    policy, rng, days, rows = Policy.read(POLICY), np.random.default_rng(5), 8, 2
    engine = DuckDB(clinic.built(tmp_path / "grow.duckdb", patients=0))
    with duckdb.connect(str(engine.path)) as connection:
        connection.execute("DELETE FROM visits")
    curator = Curator.open(engine, policy)
    text = f"SELECT COUNT(*) FROM visits EVERY DAY OF day FROM '{FIRST}' FOR {days} DAYS"
    schedule = schedule_of(curator, Wanted.of(text, 1.0, bounds=QuestionBounds(rows=rows)))
    to = dataclasses.replace(DIALECTS["duckdb"], schema=engine.schema())
    levels = {}
    for number in range(1, days + 1):
        engine.close()
        with duckdb.connect(str(engine.path)) as connection:
            for _ in range(int(rng.integers(0, 3))):  # all of one person's, also of days that are over
                day = FIRST + timedelta(days=int(rng.integers(0, number)))
                connection.execute("INSERT INTO visits (patient_id, day) VALUES (1, ?)", [day])
        found = {str(day)[:10]: int(n) for day, n in engine.run(schedule.statement(number, to))}
        daily = [found.get(schedule.day(t).isoformat(), 0) for t in range(1, number + 1)]
        levels.setdefault(length(number), []).append(sum(daily[number - length(number) :]))
    engine.close()
    assert all(min(sums) >= 0 and sum(sums) <= rows for sums in levels.values())
    assert max(map(sum, levels.values())) == rows
    assert len(levels) == schedule.levels


def test_the_price_is_that_of_all_levels(place):
    curator = opened(place, FIRST)
    schedule = schedule_of(curator, Wanted.of(EVERY, 1.0, bounds=QuestionBounds(rows=7)))
    assert schedule.levels == 6
    mu = 7 * schedule.levels**0.5 / schedule.noise.sigma
    assert mu <= schedule.price.mu <= mu * (1 + 1e-9)
    pure = dataclasses.replace(schedule, price=Pure(1.0))
    assert 7 * 6 / pure.noise.scale <= 1.0 <= 7 * 6 / pure.noise.scale * (1 + 1e-9)
    assert Sums(schedule, 1, 3).loss.epsilon(0.0).upper == 0
    assert isinstance(schedule.price, Mu)


def test_intervals_hold_what_is_counted(place):
    """240 counts that are correlated, about 24 free draws: below 70 % where 95 % are promised with less than 1e-4."""
    inside = []
    for i in range(4):
        answer = opened(place, FIRST + timedelta(days=DAYS)).ask(EVERY, epsilon=0.5 + i / 1000, rows=3)
        inside += [low <= m <= high for (_, _, low, high), m in zip(answer.rows, truth(place, 3, DAYS), strict=True)]
    assert np.mean(inside) > 0.7


def test_the_text_says_what_is_published(place):
    assert parse_dp_syntax(EVERY).every_day == EveryDay("day", FIRST, DAYS)
    assert parse_dp_syntax("SELECT COUNT(*) FROM t -- EVERY DAY OF day FROM '2024-01-01' FOR 3 DAYS").every_day is None
    lines = opened(place, FIRST).ask(f"EXPLAIN PRIVACY {EVERY}", epsilon=1.0, rows=3)
    assert "one charge for 60 days" in lines.rows[0][0] and not lines.charged
    schedule = schedule_of(opened(place, FIRST), Wanted.of(EVERY, 1.0, bounds=QuestionBounds(rows=3)))
    worst = max(schedule.error(number) for number in range(1, DAYS + 1))
    assert f"± {worst:,.0f} at most" in lines.rows[1][0] and worst == schedule.error(31)  # a sum of five


@pytest.mark.parametrize("price", [{"epsilon": 1.0, "groups": 2}, {"error": 10.0}, {}])
def test_other_prices_are_refused(price, place):
    with pytest.raises((QueryRefused, InvalidParameter)):
        opened(place, FIRST).ask(EVERY, rows=3, **price)


def test_a_column_is_called_what_the_text_says(place):
    sql = EVERY.replace("COUNT(*)", "COUNT(*) AS people")
    assert opened(place, FIRST).ask(sql, epsilon=1.0, rows=3).columns == ("day", "people", "people low", "people high")


@pytest.mark.parametrize(
    ("sql", "rows"),
    [("SELECT COUNT(*) FROM visits", None), ("SELECT SUM(stay) FROM visits", 3),
     ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", 3), ("SELECT COUNT(*) FROM wards", 3),
     ("SELECT COUNT(*) + 1 FROM visits", 3), ("SELECT MEDIAN(stay) FROM visits", 3),
     ("SELECT COUNT(*), COUNT(*) FROM visits", 3), ("SELECT 5, COUNT(*) FROM visits", 3),
     ("SELECT COUNT(*) FROM visits HAVING COUNT(*) > 9", 3), ("SELECT COUNT(*) FROM visits ORDER BY 1", 3),
     ("SELECT COUNT(*) AS day FROM visits", 3), ("SELECT COUNT(*) FROM visits LIMIT 0", 3),
     ("SELECT COUNT(*) FROM visits OFFSET 1", 3),
     ("SELECT * FROM (SELECT COUNT(*) AS n FROM visits) WHERE n > 9", 3),
     ("SELECT COUNT(*) FROM visits a JOIN visits b USING (patient_id)", 3),
     # rows that are added, or another public table, decide whether earlier rows count: one person moves each day
     ("SELECT COUNT(*) FROM visits v WHERE day = (SELECT MAX(day) FROM visits w WHERE w.patient_id = v.patient_id)", 1),
     ("SELECT COUNT(*) FROM visits v WHERE NOT EXISTS"
      " (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.day > v.day)", 1),
     ("SELECT COUNT(*) FROM visits v LEFT JOIN wards w ON v.ward = w.ward WHERE floor IS NULL", 3),
     ("SELECT COUNT(*) FROM visits WHERE NOT ward IN (SELECT ward FROM wards)", 3),
     # the last day of a person moves when rows are added
     ("SELECT COUNT(*) FROM (SELECT patient_id, MAX(day) AS day FROM visits GROUP BY patient_id)", 3)],
)  # fmt: skip
def test_other_questions_are_refused(sql, rows, place):
    with pytest.raises(QueryRefused, match=r"EVERY DAY publishes one count|wards is public"):
        opened(place, FIRST).ask(f"{sql} EVERY DAY OF day FROM '2024-01-01' FOR 9 DAYS", epsilon=1.0, rows=rows)
    with pytest.raises(QueryRefused):
        opened(place, FIRST).ask(
            "SELECT COUNT(*) FROM visits EVERY DAY OF day FROM '2024-02-31' FOR 9 DAYS", epsilon=1.0
        )
