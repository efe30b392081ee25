"""Replay finds what depends on the data and must not, deterministically, and accepts what is correct."""

import json
import math

import pytest

import sfumato as sf
from sfumato.audit import replay
from sfumato.audit.replay import NothingToReplay
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.base import Mechanism

NOISE = sf.Laplace(1.0)
ONE = NOISE.loss(1)


def test_a_sum_that_nobody_clips_costs_more_than_it_says():
    found = replay(lambda data: NOISE.release(sum(data)), [0, 1], [0, 1, 7], ONE)
    assert found.violated
    assert "exceeds the claim" in found.verdict
    assert not replay(lambda data: NOISE.release(sum(min(x, 1) for x in data)), [0, 1], [0, 1, 7], ONE).violated


def test_what_passes_beside_the_noise_is_seen():
    found = replay(lambda data: (NOISE.release(len(data)), len(data)), [1], [1, 2], ONE)
    assert "without passing through a primitive" in found.verdict
    assert replay(lambda data: NOISE.release(len(data)) / len(data), [1], [1, 2], ONE).violated


def test_control_flow_that_depends_on_data_is_seen():
    def twice(data):
        return [NOISE.release(0) for _ in range(len(data))]

    assert "goes on after" in replay(twice, [1], [1, 2], ONE).verdict
    assert "ended after" in replay(twice, [1, 2], [1], ONE).verdict
    scaled = replay(lambda data: sf.Laplace(float(max(data))).release(0), [1], [1, 2], ONE)
    assert "the noise depends on the data" in scaled.verdict
    assert replay(lambda data: NOISE.release([0] * len(data)).tolist(), [1], [1, 2], ONE).violated


def test_an_error_on_one_data_set_is_an_output():
    def careless(data):
        return NOISE.release(0) if 1 / (2 - len(data)) else None

    assert replay(careless, [1], [1, 2], ONE).violated


def test_prices_add_up():
    def both(data):
        return NOISE.release(len(data)), NOISE.release(len(data))

    assert replay(both, [1], [1, 2], ONE).violated
    assert not replay(both, [1], [1, 2], 2 * ONE).violated


def test_scores_responses_and_infinite_numbers_have_their_price():
    choice = sf.Exponential(1.0, 1)
    assert replay(choice, [0, 0], [2, 0], choice.loss()).violated
    assert not replay(choice, [0, 0], [1, 0], choice.loss()).violated
    response = sf.RandomizedResponse(1.0)
    assert replay(response, [True, True], [False, False], sf.loss.PureLoss(1.0)).violated
    assert not replay(response, [True, True], [False, True], sf.loss.PureLoss(1.0)).violated
    real = sf.Laplace(1.0, 2**-4)
    assert "infinite" in replay(real, 0.0, math.inf, real.loss(1)).verdict
    assert not replay(real, 0.0, math.nan, real.loss(1)).violated  # NaN counts as 0


def test_a_test_may_pass_where_it_must_not_since_delta_pays_for_that():
    tested = sf.dependent.TestedRelease(
        sf.Laplace(1.0).on(lambda data: 100 * len(data), 1),
        sf.loss.LaplaceLoss(1.0),
        lambda data: len(data) - 3,
        sf.DiscreteLaplace(50.0),
        0.4,
    )
    assert not any(replay(tested, [0] * 4, [0] * 3, tested.loss()).violated for _ in range(20))
    wrong = sf.dependent.TestedRelease(
        sf.Laplace(1.0).on(len, 1),
        sf.loss.LaplaceLoss(1.0),
        lambda data: 3 * len(data),
        sf.DiscreteLaplace(50.0),
        0.4,
    )
    assert "a distance moved by 3" in replay(wrong, [0] * 4, [0] * 3, wrong.loss()).verdict


def test_hooks_are_gone_afterwards_even_if_a_run_raises():
    before = {kind: vars(kind).get("release") for kind in Mechanism.known.values()}
    replay(lambda data: NOISE.release(0) / 0, [1], [2], ONE)
    with pytest.raises(NothingToReplay, match="do:"):
        replay(len, [1], [1, 2], ONE)
    assert before == {kind: vars(kind).get("release") for kind in Mechanism.known.values()}


def test_bad_input_is_refused_in_words():
    for change in ({"mechanism": 5}, {"loss": 1.0}, {"d1": [1]}):
        with pytest.raises(InvalidParameter, match="do:"):
            replay(**{"mechanism": NOISE, "d0": [1], "d1": [1, 2], "loss": ONE, **change})


def test_findings_are_for_people_and_machines_and_hold_no_data():
    found = replay(lambda data: NOISE.release(sum(data)), [0, 1], [0, 1, 7919], ONE)
    assert json.loads(found.to_json())["violated"] is True
    assert "VIOLATED" in str(found)
    assert "Call(" not in str(found)
    assert "7919" in str(found)  # how far the auditor's own data moved is what he asked for
