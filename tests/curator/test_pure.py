"""A budget of pure ε, from the policy to the answer."""

import pytest

from sfumato.aggregates.price import Mu, Pure
from sfumato.curator import Curator
from sfumato.curator.offer import Offer
from sfumato.errors import BudgetExceeded, PolicyError, QueryRefused
from sfumato.ledger import Ledger, PureBudget
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

PURE = POLICY.replace("delta = 1e-6", 'kind = "pure"')
LEAKY = POLICY.replace("delta = 1e-6", 'kind = "pure"\ndelta = 1e-3')


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb", patients=2000), Policy.read(PURE))


def test_the_ledger_is_one_of_pure_epsilon(curator, tmp_path):
    assert curator.ledger.promise == PureBudget(8.0)
    answer = curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
    assert answer.epsilon == 0.5
    assert answer.delta == 0
    assert curator.ledger.verify().spent.pure == 5 * 10**14
    assert curator.budget.spent == 0.5
    again = Curator.open(tmp_path / "clinic.duckdb", Policy.read(PURE))
    assert again.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.5).rows == answer.rows
    with pytest.raises(PolicyError, match="pure ε = 8, δ = 0 in the ledger"):
        Curator.open(tmp_path / "clinic.duckdb", Policy.read(POLICY))


def test_all_kinds_of_questions_are_answered(curator):
    sql = "SELECT ward, COUNT(*) AS n, AVG(stay) AS a, MEDIAN(stay) AS m FROM visits GROUP BY ward"
    answer = curator.ask(sql, epsilon=4.0)
    for _, n, low, high, *_ in answer.rows:
        assert low <= n <= high
        assert abs(n - 1500) < 1000
    assert answer.coverage["n"] >= 0.95
    assert "ε = 4 at δ = 0" in str(curator.preview(sql, epsilon=4.0))
    assert curator.preview("SELECT COUNT(*) FROM visits", error=40).epsilon < 1


def test_pure_noise_adds_up_to_the_price(curator):
    offer = curator.offer(
        "SELECT ward, COUNT(*), SUM(stay), AVG(cost), MEDIAN(stay) FROM visits GROUP BY ward", 1.0, None
    )
    groups = offer.plan.groups
    (together,) = {noise.joint for noise in offer.noise}
    assert together.sizes == tuple(part.size for part in offer.joint.parts)
    spent = [mechanism.loss().supremum()[0] for mechanism in (together, *(one.mechanism for one in offer.standalone))]
    assert 1 - 1e-9 <= groups * sum(spent) <= 1
    assert spent[0] > 2 * spent[1]  # the parts have as much as if each had noise of its own


def test_of_one_number_pure_noise_is_less(curator):
    question = curator.offer("SELECT COUNT(DISTINCT patient_id) FROM visits", 1.0, None).question
    pure, gauss = (Offer(question, kind.for_epsilon(1.0, 1e-6, 0.0)) for kind in (Pure, Mu))
    (aggregate,) = question.aggregates
    assert 2 * pure.error(aggregate) < gauss.error(aggregate)


def test_private_keys_need_a_delta(curator, tmp_path):
    sql = "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis"
    before = curator.ledger.verify().seq
    with pytest.raises(QueryRefused, match="list the keys"):
        curator.ask(sql, epsilon=1.0)
    assert curator.ledger.verify().seq == before
    other = Curator.open(built(tmp_path / "other.duckdb", patients=2000), Policy.read(LEAKY))
    answer = other.ask(sql, epsilon=1.0)
    assert None not in answer.column("diagnosis")  # one patient only
    assert len(answer) > 5
    spent = other.ledger.verify().spent
    assert spent.pure == 10**15
    assert 10**13 <= spent.leak <= 10**13 + 1  # a thousandth of δ


def test_the_budget_ends_and_analysts_have_their_shares(tmp_path):
    policy = Policy.read(PURE + "[analysts]\nann = 0.1\n")
    curator = Curator.open(built(tmp_path / "c.duckdb"), policy)
    with pytest.raises(BudgetExceeded):
        curator.analyst("ann").ask("SELECT COUNT(*) FROM visits", epsilon=0.81)
    assert curator.analyst("ann").ask("SELECT COUNT(*) FROM visits", epsilon=0.79).charged
    assert Ledger.open(tmp_path / "c.duckdb.ledger").accounts()["analyst ann"][0].pure == 8 * 10**14


def test_bounds_and_sketches_are_bought_with_pure_epsilon_too(curator):
    bounds = curator.suggest_bounds("visits.cost", epsilon=2.0)
    assert bounds.low <= 0
    assert bounds.high > 500
    curator.register(epsilon=1.0)
    assert 2.99 < curator.budget.spent <= 3.0
    assert curator.preview("SELECT COUNT(*) FROM visits", epsilon=0.1).lost


@pytest.mark.parametrize("kind", ['"zcdp"', "1", '"Pure"'])
def test_another_kind_is_refused(kind):
    with pytest.raises(PolicyError, match=r"budget\.kind"):
        Policy.read(POLICY.replace("delta = 1e-6", f"delta = 1e-6\nkind = {kind}"))
