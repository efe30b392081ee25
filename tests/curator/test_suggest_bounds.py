"""Suggested bounds: charged like anything else, and good."""

import math

import duckdb
import numpy as np
import pytest

from sfumato.aggregates.price import Mu
from sfumato.curator import Curator
from sfumato.curator.offer import Offer
from sfumato.curator.release import statements
from sfumato.curator.suggest_bounds import (
    number_column,
    refined_range,
    rough_range,
    round_outward,
    tail_end,
)
from sfumato.curator.value_votes import magnitude_histogram, position_histogram
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.sql.functions.numbers import SIZES
from sfumato.sql.policy import Policy

POLICY = """
version = 1
[budget]
epsilon = 20.0
delta = 1e-6
[tables.people]
unit = "row"
[tables.people.columns]
income = {type = "number"}
name = {type = "text"}
"""


@pytest.fixture
def curator(tmp_path):
    connection = duckdb.connect(str(tmp_path / "people.duckdb"))
    income = "-20000 * ln((i + 0.5) / 50000)"
    connection.execute(f"CREATE TABLE people AS SELECT {income} AS income, 'x' AS name FROM range(50000) t(i)")
    connection.execute("INSERT INTO people VALUES ('nan', ''), ('inf', ''), ('-inf', ''), (NULL, ''), (1e300, '')")
    connection.close()
    return Curator.open(tmp_path / "people.duckdb", Policy.read(POLICY))


def test_bounds_hold_nearly_all_and_not_much_more(curator):
    bounds = curator.suggest_bounds("people.income", epsilon=3.0)
    assert 0 <= bounds.low < 5_000
    assert 60_000 < bounds.high < 530_000  # of 50,000 exponential incomes of mean 20,000 the largest is near 230,000
    assert f"high = {bounds.high:g}" in str(bounds)
    assert bounds.charged


def test_they_cost_what_was_said_once(curator):
    before = curator.ledger.verify().spent.gauss
    first = curator.suggest_bounds("people.income", epsilon=1.0)
    spent = curator.ledger.verify().spent.gauss
    whole = curator.ledger.prices(curator.offer("SELECT COUNT(*) FROM people", 1.0, None).loss)[-1].gauss
    assert 0.99 * whole < spent - before <= whole + 2
    again = curator.suggest_bounds("people.income", epsilon=1.0)
    assert not again.charged
    assert (again.low, again.high) == (first.low, first.high)
    assert curator.ledger.verify().spent.gauss == spent


@pytest.mark.parametrize("column", ["people.name", "people.nothing", "nobody.income", "income", "", "people.income.x"])
def test_only_numbers_of_private_tables_have_bounds(curator, column):
    with pytest.raises(QueryRefused):
        curator.suggest_bounds(column, epsilon=1.0)


def test_odd_prices_are_refused(curator):
    for bad in (0, -1, math.nan, True, None):
        with pytest.raises(InvalidParameter):
            curator.suggest_bounds("people.income", epsilon=bad)
    assert curator.ledger.verify().seq == 1


def test_one_person_is_in_one_bin(tmp_path):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT unnest([-1e308, -5, 0, 1e-9, 2.0, 'inf', 'nan', NULL]) AS income")
    table, of = number_column("people.income", Policy.read(POLICY))
    for question in (magnitude_histogram(table, of), position_histogram(table, of, 0.0, 64.0)):
        (text,) = statements(Offer(question, Mu(1.0)), 1, "duckdb")
        found = connection.execute(text).fetchall()
        assert sum(n for _, n in found) == 6  # all but NaN and NULL
        assert {key for key, _ in found} <= {key for (key,) in question.plan.public}


def histogram(x, low, high, bins=400):
    return np.bincount(
        np.clip(np.floor((x - low) / (high - low) * bins) + 1, 0, bins + 1).astype(int), minlength=bins + 2
    )


@pytest.mark.parametrize("name", ["exponential", "uniform", "normal"])
def test_about_as_many_lie_beyond_as_are_aimed_at(name):
    """Without noise but with room for it: the tail is continued from what is clearly seen."""
    x = getattr(np.random.default_rng(1), name)(size=200_000)
    low, high = -8.0, 16.0
    a, b = refined_range(histogram(x, low, high).tolist(), 20.0, 10.0, low, high)
    assert a <= np.quantile(x, 0.002)
    assert np.quantile(x, 0.999) < b < 1.6 * x.max()


def test_nothing_seen_suggests_something_all_the_same():
    assert rough_range([0.0] * (2 * SIZES + 1), 1.0) == (0.0, 2.0**-10)
    assert tail_end([0.0] * 402, 1.0, 1.0) is None
    assert refined_range([0.0] * 402, 1.0, 1.0, 0.0, 8.0) == (0.0, 8.0)


@pytest.mark.parametrize(
    ("x", "up", "tidied"), [(123.4, True, 124), (123.4, False, 123), (-0.0012345, False, -0.00124), (0, True, 0)]
)
def test_three_digits_are_shown_rounded_outward(x, up, tidied):
    assert round_outward(x, up) == tidied


def test_sizes_are_found_on_both_sides_of_zero():
    counts = [0.0] * (2 * SIZES + 1)
    counts[SIZES + 11] = counts[SIZES - 12] = 100.0  # [1, 2) and (−4, −2]
    assert rough_range(counts, 1.0) == (-8.0, 4.0)
    counts[SIZES - 12] = 0.0
    assert rough_range(counts, 1.0) == (1.0, 4.0)
    counts[SIZES] = 100.0
    assert rough_range(counts, 1.0) == (0.0, 4.0)
    assert rough_range(counts[::-1], 1.0) == (-4.0, 0.0)


def test_no_bounds_are_suggested_that_a_policy_cannot_state(tmp_path):
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        incomes = "SELECT (i - 2500) * 1e290 AS income, '' AS name FROM range(5000) t(i)"
        connection.execute(f"CREATE TABLE people AS {incomes}")
    bounds = Curator.open(tmp_path / "people.duckdb", Policy.read(POLICY)).suggest_bounds("people.income", epsilon=9.0)
    assert (bounds.low, bounds.high) == (-1e15, 1e15)
