"""The trivial predictor is where a fit starts, and targets of a small spread bear less noise."""

import numpy as np
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.learn.target_spread import measure_target
from tests.learn.catalogue import REGRESSION


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_mean_and_deviation_are_found_within_a_small_part_of_the_budget(delta, relation):
    """200,000 rows: errors are below a tenth of what is allowed here."""
    y = np.random.default_rng(1).normal(-0.6, 0.1, 200_000)
    model = learn.LinearRegression(epsilon=1, delta=delta, relation=relation, **REGRESSION)
    table = model.read_table(np.zeros((len(y), 1)), y, None)
    count, spread, rest = measure_target(model, y, table, model.spending())
    assert count == pytest.approx(len(y), rel=0.01)
    assert (spread.mean, spread.deviation) == pytest.approx((-0.6, 0.1), abs=0.03)
    assert 0.95 * model.spending().amount < rest.amount < model.spending().amount


def test_what_cannot_be_told_from_noise_is_taken_to_be_usual():
    model = learn.LinearRegression(epsilon=0.1, delta=1e-6, **REGRESSION)
    y = np.full(20, 0.9)
    _, spread, _ = measure_target(model, y, model.read_table(np.zeros((20, 1)), y, None), model.spending())
    assert spread.deviation == spread.bearable == 1


@pytest.mark.parametrize("kind", [learn.LinearRegression, learn.GradientBoostingRegressor])
def test_targets_that_hardly_vary_are_predicted_by_their_mean(kind):
    """20,000 rows near one end of wide bounds, and columns of noise: R² is −0.01, of deviation 0.01, by trials."""
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-1, 1, (20_000, 5)), rng.normal(-0.8, 0.05, 20_000)
    assert kind(epsilon=1, delta=1e-6, **REGRESSION).fit(X, y).public_score(X, y) > -0.2
