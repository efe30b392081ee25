"""The trade-off curve from samples: its bands cover the truth, and only wrong claims are refuted."""

import json
import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import trade_off
from sfumato.errors import InvalidParameter
from tests.noise.sources import Recorded


class Rows:
    def __init__(self, mechanism):
        self.mechanism = mechanism

    def many(self, value, n):
        return self.mechanism.release(np.full(n, value))


def gaussian(name, sigma):
    return Rows(sf.Gaussian(sigma, 2**-6, source=Recorded(name)))


def test_a_right_mechanism_stays_above_its_claim_and_comes_near_it():
    """With other bits: some interval fails with probability at most 0.001."""
    curve = trade_off(gaussian("curve", 1.0), 0.0, 1.0, loss=sf.Gaussian(1.0).loss(1), samples=20_000)
    assert not curve.violated
    assert len(curve.points) > 20
    for point in curve.points:
        truth = sf.Gaussian(1.0).loss(1).trade_off(point.false_alarm.seen).lower
        assert point.false_alarm.low <= point.false_alarm.seen <= point.false_alarm.high
        assert point.miss.low <= point.miss.high
        assert abs(point.miss.seen - truth) < 0.04
        assert point.miss.high >= sf.Gaussian(1.0).loss(1).trade_off(point.false_alarm.high).lower


def test_too_little_noise_is_refuted_point_by_point():
    curve = trade_off(gaussian("too little", 0.8), 0.0, 1.0, loss=sf.Gaussian(1.0).loss(1), samples=20_000)
    assert curve.violated
    assert sum(point.violated for point in curve.points) > 10
    assert "VIOLATED" in str(curve)
    assert json.loads(curve.to_json())["violated"] is True


def test_epsilon_and_delta_are_claims_too():
    laplace = Rows(sf.DiscreteLaplace(1.0, source=Recorded("curve, pure")))
    assert not trade_off(laplace, 0, 1, epsilon=1.0, samples=5000).violated
    assert trade_off(laplace, 0, 1, epsilon=0.4, samples=5000).violated
    assert not trade_off(laplace, 0, 1, epsilon=0.4, delta=0.3, samples=5000).violated


def test_bands_fail_no_more_often_than_promised():
    """Of 100 curves at confidence 0.8, more than 42 fail with probability < 1e-6 if each does with at most 0.2."""
    rng, eps, failures = np.random.default_rng(0), 1.0, 0
    truth = sf.loss.PureLoss(eps)
    lie = 1 / (1 + math.exp(eps))

    class Response:
        def many(self, bit, n):
            return np.where(rng.random(n) < lie, 1 - bit, bit)

    for _ in range(100):
        failures += trade_off(Response(), 0, 1, loss=truth, samples=200, confidence=0.8).violated
    assert failures <= 42


def test_outputs_without_numbers_and_outputs_that_never_change_have_a_curve():
    assert trade_off(lambda data: "ab"[data], 0, 1, samples=200).violated
    assert not trade_off(lambda data: "always", 0, 1, samples=200).violated


@pytest.mark.parametrize(
    "change", [{"loss": 1.0}, {"loss": sf.loss.PureLoss(1.0).remove}, {"loss": sf.loss.PureLoss(1.0), "epsilon": 2.0}]
)
def test_claims_that_make_no_sense_are_refused_in_words(change):
    with pytest.raises(InvalidParameter, match="do:"):
        trade_off(lambda data: 0, 0, 1, samples=100, **change)
