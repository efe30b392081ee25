"""Linear regression: accuracy, intervals, safeguards."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.learn import LinearRegression
from tests.learn.data import line

EASY = {"bounds": (-1, 1), "y_bounds": (-1, 1)}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("solver", ["statistics", "descent"])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_it_finds_a_line(delta, solver, relation):
    X, y = line(4000)
    fitted = LinearRegression(epsilon=3, delta=delta, solver=solver, relation=relation, **EASY).fit(X, y)
    assert fitted.public_score(X, y) > 0.8
    assert fitted.predict(X).shape == y.shape


def test_the_noise_vanishes_as_the_budget_grows():
    X, y = line(2000)
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    fitted = LinearRegression(epsilon=1000, delta=1e-6, solver="statistics", row_norm=2, **EASY).fit(X, y)
    assert fitted.coef_ == pytest.approx(exact[:-1], abs=0.01)
    assert fitted.intercept_ == pytest.approx(exact[-1], abs=0.01)


def test_bounds_in_other_units_give_the_same_model():
    X, y = line(4000)
    fitted = LinearRegression(
        epsilon=3, delta=1e-6, bounds=([0, -10, 5], [2, 10, 7]), y_bounds=(90, 110), relation=sf.ReplaceOne
    ).fit(X * [1, 10, 1] + [1, 0, 6], 100 + 10 * y)
    assert fitted.coef_ == pytest.approx([5, 0.1, -3], rel=0.3)
    assert fitted.public_score(X * [1, 10, 1] + [1, 0, 6], 100 + 10 * y) > 0.8


def test_intervals_cover_the_coefficients_without_noise():
    """At least 95 % of 300 intervals (100 fits): fewer than 270 has a probability below 1e-4."""
    X, y = line(3000)
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0][:-1]
    inside = 0
    for _ in range(100):
        fitted = LinearRegression(epsilon=1, delta=1e-6, solver="statistics", row_norm=2, **EASY).fit(X, y)
        inside += sum(low <= c <= high for c, (low, high) in zip(exact, fitted.coef_intervals(), strict=True))
    assert inside >= 270


def test_a_fit_is_not_worse_than_the_mean_where_there_is_nothing_to_learn():
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, (500, 10)), rng.choice([-1.0, 1.0], 500)
    scores = [LinearRegression(epsilon=0.5, delta=1e-5, **EASY).fit(X, y).public_score(X, y) for _ in range(10)]
    assert np.mean(scores) > -0.1


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("solver", ["statistics", "descent"])
def test_few_or_no_rows_are_fitted_all_the_same(rows, solver):
    X, y = np.full((rows, 7), math.nan), np.full(rows, math.inf)
    fitted = LinearRegression(epsilon=1, delta=1e-6, solver=solver, **EASY).fit(X, y)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.predict(np.full((3, 7), -math.inf))).all()


def test_predictions_stay_within_the_bounds():
    X, y = line(50)
    fitted = LinearRegression(epsilon=0.01, **EASY).fit(X, y)
    assert np.abs(fitted.predict(1e9 * X)).max() <= 1


def test_a_constant_column_is_no_problem():
    X, y = line(1000)
    X[:, 0] = 0.3
    fitted = LinearRegression(epsilon=3, delta=1e-6, bounds=([0.3, -1, -1], [0.3, 1, 1]), y_bounds=(-1, 1)).fit(X, y)
    assert np.isfinite(fitted.predict(X)).all()


def test_intervals_need_gaussian_noise_on_statistics():
    X, y = line(100)
    for options in ({"delta": 1e-6, "solver": "descent"}, {"solver": "statistics"}):
        fitted = LinearRegression(epsilon=1, **options, **EASY).fit(X, y)
        with pytest.raises(InvalidParameter, match="intervals"):
            fitted.coef_intervals()
