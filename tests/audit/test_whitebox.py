"""The white box accepts laws, draws and claims that agree, and detects an error of 1 %.

Random bits are recorded; with other bits, a correct mechanism would be reported with probability at most 1e-6.
"""

import json

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import white_box
from sfumato.audit.exhibits import all_exhibits
from sfumato.audit.stated_laws import StatedLaw, stated_law
from sfumato.audit.whitebox import check_entropy, check_fit, check_tails
from sfumato.errors import InvalidParameter
from tests.noise.sources import Recorded

KNOWN = [
    one for one in all_exhibits() if stated_law(one.mechanism, one.d0) is not None and stated_law(one.mechanism, one.d1)
]


@pytest.mark.parametrize("exhibit", KNOWN, ids=lambda one: f"{one.name[:60]} {one.d0}")
def test_law_draws_and_price_agree_for_what_is_shipped(exhibit):
    found = exhibit.white_box(1 << 15 if exhibit.rows else 1000, source=Recorded(exhibit.name))
    assert not found.violated, found
    assert found.worst > 0.8  # and the price is not far above the truth


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_one_percent_of_a_scale_is_seen(factor):
    for noise, other in (
        (sf.Gaussian(10.0), sf.Gaussian(10.0 * factor, source=Recorded("one percent"))),
        (sf.DiscreteLaplace(10.0), sf.DiscreteLaplace(10.0 * factor, source=Recorded("one percent"))),
    ):
        law = stated_law(noise, 0)
        assert list(check_fit(law, other.release(np.zeros(1 << 20, int)), 1e-6))
        assert not list(check_fit(stated_law(other, 0), other.release(np.zeros(1 << 18, int)), 1e-6))


def test_a_price_that_is_a_hair_too_low_is_seen_at_any_epsilon():
    noise = sf.Gaussian(0.2, 2**-6)
    assert white_box(noise, 0, 1, noise.loss(0.9999), samples=1000).violated
    assert not white_box(noise, 0, 1, noise.loss(1), samples=1000).violated
    assert white_box(noise, 0, 1, sf.loss.ApproxLoss(20.0, 1e-9), samples=1000).violated


def test_rows_of_numbers_are_judged_by_their_draws():
    noise = sf.Laplace(4.0, source=Recorded("rows"))
    right, wrong = noise.loss(sf.Sensitivity(l0=4, linf=2)), noise.loss(sf.Sensitivity(l0=2, linf=2))
    assert not white_box(noise, [0, 0, 0, 0], [2, 2, 2, 2], right, samples=20_000).violated
    found = white_box(noise, [0, 0, 0, 0], [2, 2, 2, 2], wrong, samples=20_000)
    assert "draws have δ" in found.verdict


def test_draws_that_should_never_be_and_shapes_that_are_wrong_are_seen():
    law = StatedLaw(0, np.array([0.25, 0.5, 0.25]))
    rng = np.random.default_rng(0)
    assert "impossible" in next(check_fit(law, np.array([0.5] * 100), 1e-6))
    assert list(check_tails(law, rng.choice(3, 5000, p=[0.3, 0.4, 0.3]), 1e-6))
    assert list(check_entropy(law, rng.choice(3, 5000, p=[0.1, 0.8, 0.1]), 1e-6))
    assert not list(check_fit(law, rng.choice(3, 5000, p=[0.25, 0.5, 0.25]), 1e-6))


def test_right_draws_are_denied_no_more_often_than_promised():
    """Of 300 fits at α = 0.1, more than 72 fail with probability < 1e-9 if each does with at most 0.1."""
    law, rng = stated_law(sf.DiscreteLaplace(2.0), 0), np.random.default_rng(1)
    chances = law.chances / law.chances.sum()
    draws = law.first + rng.choice(len(chances), size=(300, 400), p=chances)
    assert sum(bool(list(check_fit(law, row, 0.1))) for row in draws) <= 72


def test_findings_are_for_people_and_machines():
    noise = sf.Gaussian(1.0)
    found = white_box(noise, 0, 1, noise.loss(1), samples=1000)
    assert "agree" in str(found)
    assert json.loads(found.to_json())["violated"] is False


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": sf.TopK(2, 0.5, 1)},
        {"d0": 0.3},
        {"d1": 0},
        {"loss": 1.0},
        {"samples": 5},
        {"confidence": 2.0},
        {"mechanism": sf.Laplace(1.0, 2**-40), "d0": 0.0, "d1": 1.0},
    ],
)
def test_bad_input_is_refused_in_words(change):
    noise = sf.Laplace(1.0)
    with pytest.raises(InvalidParameter, match="do:"):
        white_box(**{"mechanism": noise, "d0": 0, "d1": 1, "loss": noise.loss(1), "samples": 100, **change})
