"""The curator, as an analyst meets it."""

import json

import pytest

from sfumato.curator import Curator
from sfumato.errors import AnswerFailed, BudgetExceeded, InvalidParameter, QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.wrapped import Wrapped


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb", patients=2000), Policy.read(POLICY))


def test_an_answer_is_near_the_truth_and_says_how_near(curator):
    answer = curator.ask("SELECT ward, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY ward", epsilon=4.0)
    assert answer.columns == ("ward", "n", "n low", "n high")
    assert [row[0] for row in answer.rows] == ["north", "south", "west"]
    for _, n, low, high in answer.rows:
        assert low <= n <= high
        assert 300 < n < 1500
    assert "budget left" in str(answer)


def test_the_same_question_however_spelled_is_free(curator):
    first = curator.ask("SELECT ward, COUNT(*) AS n, AVG(stay) FROM visits WHERE cost > 10 GROUP BY ward", epsilon=1.0)
    spent = curator.ledger.verify().spent
    again = curator.ask(
        "select avg(v.stay) a, count(*), v.ward w from visits v where 1 = 1 and 10 < v.cost group by w order by w",
        epsilon=1.0,
    )
    assert first.charged
    assert not again.charged
    assert curator.ledger.verify().spent == spent
    assert again.column("count") == first.column("n")


def test_having_order_and_limit_work_on_released_values(curator):
    answer = curator.ask(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 0 ORDER BY n DESC LIMIT 2", epsilon=2.0
    )
    counts = answer.column("n")
    assert len(counts) == 2
    assert counts == sorted(counts, reverse=True)


def test_private_keys_of_few_people_do_not_come_out(curator):
    answer = curator.ask("SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis", epsilon=1.0)
    assert None not in answer.column("diagnosis")  # one patient only
    assert answer.column("diagnosis") == sorted(answer.column("diagnosis"))


def test_a_preview_needs_no_data(curator):
    curator.engine.path = curator.engine.path.with_name("gone")
    curator.engine.close()
    words = str(curator.preview("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.5))
    assert "±" in words
    assert "attacker" in words


def test_an_error_that_is_asked_for_is_met_or_refused(curator):
    offer = curator.preview("SELECT ward, COUNT(*) FROM visits GROUP BY ward", error=40).offer
    assert offer.error(offer.question.aggregates[0]) <= 40
    with pytest.raises(QueryRefused, match="whole budget"):
        curator.preview("SELECT ward, COUNT(*) FROM visits GROUP BY ward", error=0.5)
    with pytest.raises(QueryRefused, match="counts and sums"):
        curator.preview("SELECT AVG(stay) FROM visits", error=0.5)


def test_the_budget_ends(curator):
    with pytest.raises(BudgetExceeded):
        for i in range(100):
            curator.ask(f"SELECT COUNT(*) FROM visits WHERE cost > {i}", epsilon=2.0)


def test_one_error_after_the_charge_whatever_went_wrong(curator):
    class Broken(Wrapped):
        def run(self, sql):
            raise RuntimeError("a secret value: 42")

    broken = Curator(Broken(curator.engine), curator.policy, curator.ledger)
    with pytest.raises(AnswerFailed) as failure:
        broken.ask("SELECT COUNT(*) FROM visits", epsilon=1.0)
    assert "42" not in str(failure.value)
    assert curator.ledger.verify().spent.gauss > 0


def test_a_key_gives_the_same_bytes_again(curator):
    first = curator.ask("SELECT COUNT(*) FROM visits", epsilon=1.0, key="a")
    second = curator.ask("SELECT COUNT(*) FROM visits", epsilon=1.0, key="a")
    assert json.loads(first.to_json())["rows"] == json.loads(second.to_json())["rows"]


@pytest.mark.parametrize(
    "bad", [{}, {"epsilon": 0}, {"epsilon": float("nan")}, {"epsilon": 1.0, "error": 1.0}, {"error": -3}]
)
def test_odd_parameters_cost_nothing(curator, bad):
    with pytest.raises(InvalidParameter):
        curator.ask("SELECT COUNT(*) FROM visits", **bad)
    assert curator.ledger.verify().seq == 1


def test_analysts_have_their_shares(tmp_path):
    policy = Policy.read(POLICY + "[analysts]\nann = 0.1\n")
    curator = Curator.open(built(tmp_path / "c.duckdb"), policy)
    with pytest.raises(BudgetExceeded):
        for i in range(20):
            curator.analyst("ann").ask(f"SELECT COUNT(*) FROM visits WHERE cost > {i}", epsilon=1.5)
    assert curator.ask("SELECT COUNT(*) FROM visits", epsilon=1.5).charged
