"""Per-instance privacy of a linear model: bounds hold for each person, and the release behind a test is as priced."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import sfumato as sf
from sfumato.learn.exposure import ExposureReport, NoisyCoefficients, RidgeFit, minimise_in_ball, regression_behind_test
from tests.noise.sources import Recorded

NOISE = sf.Gaussian(0.05, 2**-20)
values = st.floats(-2, 2)


def people(n, seed, columns=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, columns))
    return X, np.clip(X @ np.linspace(0.6, -0.4, columns) + rng.normal(0, 0.2, n), -1, 1)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 3), st.lists(st.lists(values, min_size=4, max_size=4), min_size=1, max_size=12), st.floats(0.05, 3)
)
def test_nobody_moves_the_coefficients_farther_than_the_bound(columns, rows, radius):
    """In both directions: λ of the data with the person, which is at least λ without."""
    fit, table = RidgeFit(columns, 0.5, radius), np.array(rows)
    X, y = table[:, :columns], table[:, 3]
    here, there = fit.coefficients((X, y)), fit.coefficients((X[1:], y[1:]))
    moved = float(np.linalg.norm(here - there))
    assert moved <= fit.moves(fit.eigenvalue((X, y)))
    assert abs(fit.eigenvalue((X, y)) - fit.eigenvalue((X[1:], y[1:]))) <= 1
    own = fit.exposures((X, y), NOISE)[0]
    assert own.mu == pytest.approx(moved / NOISE.sigma, abs=4e-5)


def test_the_fit_is_the_minimiser_in_the_ball():
    rng = np.random.default_rng(5)
    for radius in (0.1, 0.5, 10.0):
        a = rng.normal(size=(6, 3))
        gram, cross = a.T @ a + np.eye(3), rng.normal(size=3) * 3
        found = minimise_in_ball(gram, cross, radius)
        inside = {"type": "ineq", "fun": lambda t, r=radius: r**2 - t @ t}
        best = minimize(lambda t, g=gram, c=cross: t @ g @ t / 2 - c @ t, np.zeros(3), constraints=[inside], tol=1e-12)
        np.testing.assert_allclose(found, best.x, atol=1e-4)
        assert np.linalg.norm(found) <= radius * (1 + 1e-9)


def test_a_report_bounds_everybodys_own_loss_and_most_are_far_below_the_worst():
    data, fit = people(800, 1), RidgeFit(3)
    report = ExposureReport(NoisyCoefficients(fit, NOISE), sf.Gaussian(3.0, source=Recorded("report"))).release(data)
    bounds = np.array([report.loss(x, y).mu for x, y in zip(*data, strict=True)])
    own = np.array([loss.mu for loss in fit.exposures(data, NOISE)])
    assert np.all(own <= bounds)  # the report fails with probability at most 1e-6
    assert np.median(bounds) < 0.3 < NoisyCoefficients(fit, NOISE).loss().mu / 100
    assert own.max() > 4 * np.median(own)


def test_a_test_of_the_eigenvalue_makes_the_release_cheap_where_it_passes():
    fit, noise = RidgeFit(3), sf.Gaussian(0.1, 2**-20)
    tested = regression_behind_test(fit, 40.0, noise, sf.Gaussian(4.0), 1e-6)
    loss = tested.loss()
    assert float(loss.epsilon(1e-6)) < 3.5 < float(NoisyCoefficients(fit, noise).loss().epsilon(1e-6)) / 50
    assert tested.release(people(4000, 2)) is not None  # λ is near 330, 290 above: 70 deviations
    assert tested.release(people(100, 3)) is None  # λ is below 10
    assert tested.release((np.zeros((0, 3)), [])) is None


def test_no_audit_of_the_tested_release_refutes_its_loss():
    """At the margin where the test decides; bits are recorded."""
    source = Recorded("tested regression")
    tested = regression_behind_test(
        RidgeFit(1), 6.0, sf.Gaussian(0.4, 2**-20, source=source), sf.Gaussian(2.0, source=source), 0.05
    )
    assert tested.sure(0.5) > 0
    n = 6 + tested.sure(0.5)
    here, there = (np.ones((n, 1)), np.ones(n)), (np.ones((n - 1, 1)), np.ones(n - 1))
    run = lambda data: (lambda out: 99.0 if out is None else round(out[0], 3))(tested.release(data))  # noqa: E731
    assert not sf.audit.audit(run, here, there, loss=tested.loss(), samples=3000).violated


def test_odd_rows_are_clipped_and_nothing_is_refused_for_its_values():
    fit = RidgeFit(2)
    odd = np.array([[math.nan, 1.0], [math.inf, -math.inf], [1e308, 1e308], [0.0, -0.0]])
    found = fit.coefficients((odd, [math.nan, math.inf, -1e9, 0.5]))
    assert np.all(np.isfinite(found)) and np.linalg.norm(found) <= 1 + 1e-5
    assert np.array_equal(fit.coefficients((np.zeros((0, 2)), [])), np.zeros(2))


def test_nonsense_is_refused():
    for wrong in ({"columns": 0}, {"columns": 3, "ridge": 0.0}, {"columns": 3, "radius": math.nan}):
        with pytest.raises(sf.errors.InvalidParameter):
            RidgeFit(**wrong)
    with pytest.raises(sf.errors.InvalidParameter, match="step"):
        NoisyCoefficients(RidgeFit(2), sf.Gaussian(1.0))
    with pytest.raises(sf.errors.InvalidParameter, match="as many rows"):
        RidgeFit(2).coefficients((np.zeros((3, 2)), np.zeros(4)))
    with pytest.raises(sf.errors.InvalidParameter):
        regression_behind_test(RidgeFit(2), 0.1, NOISE, sf.Gaussian(4.0), 1e-6)
