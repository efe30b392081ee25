"""The least price of an error: what is promised holds, and less would not do."""

import math

import pytest

from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.curator.price_for_error import CLOSE, least_share, offer_for_error
from sfumato.errors import QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY
from tests.curator.test_offer import asked


def test_an_absolute_error_can_be_bought():
    question = asked("COUNT(*), SUM(x)").question
    offer = offer_for_error(question, 2000.0, 1e-6, 2.0, Pure)
    errors = [offer.error(a) for a in question.aggregates]
    assert 1990 < max(errors) <= 2000
    assert offer.price.eps < 0.9  # with a divided ε it would cost 1.15


@pytest.mark.parametrize("power", [0.3, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("ratio", [1.0, 1.001, 3.0, 1e4])
def test_the_least_share_meets_the_error_and_a_smaller_one_does_not(power, ratio):
    """Errors that are a power of the share, with a bend in the middle: the answer is within CLOSE of the least."""

    def worst(share):
        return share**-power + (0.1 if share < 0.5 else 0.0)

    share = least_share(worst, worst(1.0), ratio)
    assert worst(share) <= ratio
    assert share <= 2e-12 or worst(share / (1 + 2 * CLOSE)) > ratio


@pytest.mark.parametrize(("sql", "error", "match"), [
    ("SELECT AVG(stay) FROM visits", 1.0, "counts and sums only"),
    ("SELECT COUNT(*) FROM visits", 1e-3, "more than the whole budget"),
])  # fmt: skip
def test_an_error_that_cannot_be_promised_is_refused(sql, error, match):
    with pytest.raises(QueryRefused, match=match):
        offer_for_error(parse_question(sql, Policy.read(POLICY)), error, 1e-9, 8.0, Mu)


def test_a_smaller_error_costs_more():
    question = parse_question("SELECT ward, COUNT(*), SUM(stay) FROM visits GROUP BY ward", Policy.read(POLICY))
    prices = [offer_for_error(question, error, 1e-9, 8.0, Mu).price.mu for error in (5000.0, 1000.0, 600.0)]
    assert prices == sorted(prices) and not math.isclose(prices[0], prices[-1])
