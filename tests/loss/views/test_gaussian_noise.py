"""Three formulas for Gaussian noise: each holds where it says so, and one is the least."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.views.gaussian_noise import analytic, classical_1, classical_2, noise_table, slides_2

deltas = st.one_of(st.floats(-200, -1).map(lambda x: 10.0**x), st.floats(0.1, 0.4999))


def true_delta(sigma, eps):
    """δ(ε) of the Gaussian mechanism with 60 digits more than it needs."""
    with mp.workdps(300):
        sigma, eps = mp.mpf(sigma), mp.mpf(eps)
        a, b = (1 / (2 * sigma) - eps * sigma) / mp.sqrt(2), (1 / (2 * sigma) + eps * sigma) / mp.sqrt(2)
        return (mp.erfc(-a) - mp.exp(eps) * mp.erfc(b)) / 2


@given(eps=st.floats(1e-6, 0.9999), delta=st.one_of(deltas, st.floats(0.5, 0.9999)))
def test_the_first_formula_is_enough_below_one(eps, delta):
    assert true_delta(classical_1(eps, delta).upper, eps) <= delta


@given(eps=st.floats(-6, 3).map(lambda x: 10.0**x), delta=deltas)
def test_the_second_formula_is_enough_everywhere(eps, delta):
    assert true_delta(classical_2(eps, delta).upper, eps) <= delta


@given(eps=st.floats(-6, 3).map(lambda x: 10.0**x), delta=deltas)
def test_the_slides_formula_is_enough_and_noisier(eps, delta):
    ratio = slides_2(eps, delta).upper / classical_2(eps, delta).upper
    assert true_delta(slides_2(eps, delta).upper, eps) <= delta
    assert 1 <= ratio <= math.sqrt(2) * (1 + 1e-9)


def test_the_slides_formula_wants_forty_per_cent_more():
    assert slides_2(0.1, 1e-6).upper / classical_2(0.1, 1e-6).upper == pytest.approx(1.413, abs=1e-3)


@given(eps=st.floats(-6, 3).map(lambda x: 10.0**x), delta=st.one_of(deltas, st.floats(0.5, 0.9999)))
def test_the_analytic_scale_is_the_least(eps, delta):
    found = analytic(eps, delta)
    assert true_delta(found.upper, eps) <= delta
    assert true_delta(found.lower, eps) > delta
    assert found.relative_gap <= 1e-4  # for tiny ε the profile itself is known no better


@given(eps=st.floats(1e-3, 0.99), delta=deltas)
def test_no_formula_beats_the_analytic_scale(eps, delta):
    least = analytic(eps, delta).lower
    assert least <= min(classical_1(eps, delta).upper, classical_2(eps, delta).upper)


def test_the_analytic_scale_has_known_values():
    """Balle & Wang's reference code gives 4.224678889 at (1, 1e-6); σ at ε = 0 is 1/(2Φ⁻¹((1 + δ)/2))."""
    assert 4.224678889327 in analytic(1, 1e-6)
    assert analytic(1, 1e-6).relative_gap <= 3e-12
    truth = 1 / (2 * mp.sqrt(2) * mp.erfinv(mp.mpf("0.3")))
    assert analytic(0, 0.3).lower <= truth <= analytic(0, 0.3).upper


def test_the_first_formula_is_untrue_at_twenty():
    sigma = math.sqrt(2 * math.log(1.25 / 0.01)) / 20
    assert GaussianLoss(1 / sigma).delta(20).lower == pytest.approx(0.483, abs=1e-3)
    with pytest.raises(InvalidParameter, match=r"epsilon < 1 only\.\n  found:  epsilon = 20"):
        classical_1(20, 0.01)


def test_the_bound_on_erfc_that_the_second_formula_rests_on():
    for x in np.concatenate([np.linspace(0, 6, 301), np.geomspace(1e-6, 30, 50)]):
        assert mp.erfc(x) <= (mp.exp(-(mp.mpf(x) ** 2)) + mp.exp(-2 * mp.mpf(x) ** 2)) / 2


def test_both_forms_of_the_exponent_agree():
    for delta in (1e-9, 1e-3, 0.2, 0.4999):
        square = mp.log(2 / (mp.sqrt(16 * mp.mpf(delta) + 1) - 1))
        sigma = (mp.sqrt(square) + mp.sqrt(square + 1)) / mp.sqrt(2)
        assert classical_2(1, delta).upper >= sigma
        assert classical_2(1, delta).upper == pytest.approx(float(sigma), rel=1e-9)


@pytest.mark.parametrize("formula", [classical_1, classical_2, slides_2, analytic])
@pytest.mark.parametrize(
    ("eps", "delta"), [(0.5, 0), (0.5, 1), (-1, 0.1), (math.nan, 0.1), (0.5, math.nan), ("a", 0.1)]
)
def test_nonsense_is_refused(formula, eps, delta):
    with pytest.raises(InvalidParameter):
        formula(eps, delta)


@pytest.mark.parametrize("formula", [classical_2, slides_2])
def test_half_is_too_much_for_the_second_formula(formula):
    with pytest.raises(InvalidParameter, match=r"less than 0\.5"):
        formula(0.5, 0.5)


@given(eps=st.floats(1e-3, 100), delta=st.one_of(deltas, st.floats(0.5, 0.9999)))
def test_the_table_is_narrow_and_honest(eps, delta):
    table = noise_table(eps, delta)
    assert all(len(line) <= 80 for line in str(table).splitlines())
    assert [row.name for row in table.rows] == ["analytic", "classical 1", "classical 2", "slides 2"]
    for row in table.rows:
        assert row.sigma is None or (row.ratio >= 1 and row.delta.upper <= delta * (1 + 1e-9))
    assert (table.rows[1].sigma is None) == (eps >= 1)


def test_the_table_shows_what_does_not_apply():
    text = str(noise_table(20, 0.01))
    assert "needs ε < 1" in text
    assert "0.220728" in text
    assert noise_table(20, 0.01)._repr_html_().count("<tr>") == 5
