"""EXPLAIN PRIVACY, and SELECT WITH DIFFERENTIAL_PRIVACY as other systems write it."""

import pytest

from sfumato.curator import Curator
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.sql.dp_syntax import parse_dp_syntax
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

SELECT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({}) ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb"), Policy.read(POLICY))


def test_the_epsilon_of_the_text_is_the_price(curator):
    answer = curator.ask(SELECT.format("epsilon = 0.5, privacy_unit_column = patient_id"), epsilon=7.0)
    assert 0.49 < answer.epsilon <= 0.5
    again = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
    assert again.rows == answer.rows
    assert not again.charged


def test_without_options_the_argument_counts(curator):
    sql = "select with differential_privacy COUNT(*) FROM visits"
    assert 0.9 < curator.ask(sql, epsilon=1.0).epsilon <= 1.0


@pytest.mark.parametrize(
    "options",
    ["delta = 1e-3", "max_groups_contributed = 5", "epsilon = 1e999", "epsilon = x", "epsilon = 1, epsilon = 2",
     "epsilon",      "privacy_unit_column = ward", "noise = none", "epsilon = -1", "= 3", "epsilon = (SELECT 1)"],
)  # fmt: skip
def test_other_options_are_refused(options, curator):
    with pytest.raises((QueryRefused, InvalidParameter)):
        curator.ask(SELECT.format(options), epsilon=1.0)
    assert curator.ledger.verify().seq == 1


def test_explaining_is_free_and_needs_no_data(curator):
    curator.engine.path = curator.engine.path.with_name("gone")
    answer = curator.ask("EXPLAIN PRIVACY SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.5)
    assert answer.columns == ("privacy",)
    assert any("±" in row[0] for row in answer.rows)
    assert curator.ledger.verify().seq == 1
    same = curator.ask(f"explain privacy {SELECT.format('epsilon=0.5')}")
    assert same.rows == answer.rows


def test_a_name_that_begins_alike_is_no_explanation():
    assert not parse_dp_syntax("EXPLAIN PRIVACYX SELECT 1").explained
    assert not parse_dp_syntax("SELECT 1 -- EXPLAIN PRIVACY").explained
