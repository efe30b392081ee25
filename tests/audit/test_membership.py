"""Membership inference: limits hold simultaneously, and a claim that is too strong is refuted."""

import json

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import sfumato as sf
from sfumato.errors import InvalidParameter


def normal(shift, n, seed):
    return ndtri(np.random.default_rng(seed).random(n)) + shift


def test_finds_and_alarms_are_within_their_limits_and_within_the_trade_off():
    """Scores N(1, 1) and N(0, 1) are the Gaussian pair itself; each limit is missed with probability < 1e-6."""
    found = sf.audit.membership(
        normal(1.0, 4000, 1), normal(0.0, 8000, 2), sf.loss.GaussianLoss(1.0), confidence=1 - 1e-6
    )
    for rate, wanted in zip(found.rates, (0.001, 0.01, 0.1, 0.5), strict=True):
        alarms, hits = ndtr(-rate.threshold), ndtr(1 - rate.threshold)
        assert rate.alarms == pytest.approx(wanted, rel=1, abs=0.002)
        assert alarms <= rate.alarms_upper and rate.found_lower <= hits
        assert rate.allowed == pytest.approx(ndtr(1 + ndtri(rate.alarms_upper)), abs=1e-4)
    assert not found.violated
    assert found.epsilon(0.0) > 0 and found.epsilon(0.1) < sf.loss.GaussianLoss(1.0).epsilon(0.1).upper


def test_a_claim_that_is_too_good_is_refuted():
    found = sf.audit.membership(normal(1.0, 4000, 1), normal(0.0, 8000, 2), sf.loss.GaussianLoss(0.5), confidence=0.999)
    assert found.violated and "VIOLATED" in str(found) and "more than allowed" in str(found)
    assert max(map(len, str(found).splitlines())) <= 80
    assert json.loads(found.to_json())["violated"]


def test_without_a_claim_everything_is_allowed():
    found = sf.audit.membership(np.full(50, np.inf), np.full(60, np.nan))
    assert not found.violated
    assert [rate.found for rate in found.rates] == [1.0] * 4 and found.epsilon() > 1
    assert json.loads(found.to_json())["outside"] == 60


def test_ties_do_not_count_as_finds():
    found = sf.audit.membership(np.zeros(50), np.zeros(50), rates=(0.5,))
    assert found.rates[0].found == found.rates[0].alarms == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"inside": [1.0]}, "too few scores"),
        ({"rates": ()}, "no rates"),
        ({"rates": (2.0,)}, r"rates\[0\]"),
        ({"confidence": 0.1}, "confidence"),
    ],
)
def test_wrong_use_of_membership_is_explained(words, told):
    with pytest.raises(InvalidParameter, match=told):
        sf.audit.membership(**{"inside": np.zeros(30), "outside": np.zeros(30), **words})
