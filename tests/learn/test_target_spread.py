"""The trivial predictor is where a fit starts, and targets of a small spread bear less noise."""

import numpy as np
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.learn.target_spread import Target
from tests.learn.catalogue import REGRESSION


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_mean_and_deviation_are_found_within_a_small_part_of_the_budget(delta, relation):
    """200,000 rows: errors are below a tenth of what is allowed here."""
    y = np.random.default_rng(1).normal(-0.6, 0.1, 200_000)
    model = learn.LinearRegression(epsilon=1, delta=delta, relation=relation, **REGRESSION)
    table = model.read_table(np.zeros((len(y), 1)), y, None)
    found = Target.measure(model, y, table, model.spending())
    spread, rest = found.spread, found.spending
    assert found.count == pytest.approx(len(y), rel=0.01)
    assert (spread.mean, spread.deviation) == pytest.approx((-0.6, 0.1), abs=0.03)
    assert 0.95 * model.spending().amount < rest.amount < model.spending().amount


def test_a_small_spread_is_looked_at_again():
    """400 rows far from the middle: the error of the mean is bought down to what the spread bears, or all is spent."""
    y = np.random.default_rng(4).normal(-0.8, 0.1, 400)
    model = learn.LinearRegression(epsilon=0.5, delta=1e-6, **REGRESSION)
    table = model.read_table(np.zeros((400, 1)), y, None)
    found = Target.measure(model, y, table, model.spending())
    assert found.spread.start == pytest.approx(-0.8, abs=0.4)
    spent = 1 - (found.spending.amount / model.spending().amount) ** 2
    assert spent == pytest.approx(0.15, abs=0.01) or spent == pytest.approx(0.63, abs=0.01)
    assert found.mean_alone() == pytest.approx(-0.8, abs=0.4)


def test_what_cannot_be_told_from_noise_is_taken_to_be_usual():
    model = learn.LinearRegression(epsilon=0.1, delta=1e-6, **REGRESSION)
    y = np.full(20, 0.9)
    found = Target.measure(model, y, model.read_table(np.zeros((20, 1)), y, None), model.spending())
    assert found.spread.deviation == found.spread.bearable == 1


def beside_the_mean(kind, X, y, **options):
    """R² over ten fits, less that of the plain mean, which is 0 on the rows of the fit."""
    return np.mean([kind(**REGRESSION | {"bounds": (-1, 1)} | options).fit(X, y).public_score(X, y) for _ in range(10)])


REGRESSIONS = [learn.LinearRegression, learn.GradientBoostingRegressor, learn.PosteriorSample]


@pytest.mark.parametrize("kind", REGRESSIONS, ids=lambda kind: kind.__name__)
def test_a_fit_is_hardly_worse_than_the_trivial_predictor(kind):
    """Columns that tell nothing, and targets near one end of their bounds: R² was −0.4, −0.7 and −2 here."""
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-1, 1, (400, 8)), np.clip(rng.lognormal(-2.2, 0.8, 400) - 1, -1, 1)
    assert beside_the_mean(kind, X, y, epsilon=1, delta=1e-5) > -0.2


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_a_generalised_linear_model_is_hardly_worse_than_the_trivial_predictor(family):
    rng = np.random.default_rng(7)
    X, y = rng.uniform(-1, 1, (400, 8)), rng.uniform(0, 2, 400)
    found = beside_the_mean(
        learn.GeneralizedLinearRegression, X, y, family=family, y_bounds=(0, 2), epsilon=0.5, delta=1e-5
    )
    assert found > -0.1


@pytest.mark.parametrize("kind", [learn.LinearRegression, learn.GradientBoostingRegressor])
def test_targets_that_hardly_vary_are_predicted_by_their_mean(kind):
    """20,000 rows near one end of wide bounds, and columns of noise: R² is −0.01, of deviation 0.01, by trials."""
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-1, 1, (20_000, 5)), rng.normal(-0.8, 0.05, 20_000)
    assert kind(epsilon=1, delta=1e-6, **REGRESSION).fit(X, y).public_score(X, y) > -0.2
