"""Columns that vary with the target are found, also among many that do not."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from sfumato import learn
from sfumato.errors import InvalidParameter


def table(n=5000, d=20):
    rng = np.random.default_rng(5)
    X = np.clip(0.3 * rng.standard_normal((n, d)), -1, 1)
    return X, np.clip(X[:, 3] - X[:, 11], -1, 1)


@pytest.mark.parametrize("target", [{"y_bounds": (-1, 1)}, {"classes": [0, 1, 2]}])
def test_the_columns_that_matter_are_kept(target):
    X, y = table()
    goal = y if "y_bounds" in target else np.digitize(y, [-0.2, 0.2])
    chosen = learn.SelectColumns(epsilon=1, delta=1e-6, count=2, bounds=(-1, 1), **target).fit(X, goal)
    assert chosen.get_support(indices=True).tolist() == [3, 11]
    assert chosen.get_support().sum() == 2
    assert chosen.transform(X) == pytest.approx(X[:, [3, 11]])
    assert chosen.bounds_kept() == ([-1, -1], [1, 1])


def test_it_stands_before_an_estimator():
    X, y = table()
    chosen = learn.SelectColumns(epsilon=1, delta=1e-6, count=3, bounds=(-1, 1), y_bounds=(-1, 1))
    model = learn.LinearRegression(epsilon=1, delta=1e-6, bounds=(-1, 1), y_bounds=(-1, 1))
    assert make_pipeline(chosen, model).fit(X, y)[-1].public_score(chosen.transform(X), y) > 0.9


@pytest.mark.parametrize("wrong", [{}, {"y_bounds": (0, 1), "classes": [0, 1]}, {"y_bounds": (0, 1), "count": 9}])
def test_senseless_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        learn.SelectColumns(epsilon=1, bounds=(0, 1), **{"count": 1} | wrong).fit(np.zeros((3, 2)), np.zeros(3))
