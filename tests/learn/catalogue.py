"""One easy instance of every estimator, for the laws that hold for all of them."""

import numpy as np

import sfumato as sf
from sfumato import learn
from tests.learn.data import blobs, line

WIDE = {"bounds": (-1, 1)}
REGRESSION = WIDE | {"y_bounds": (-1, 1)}
CLASSES = WIDE | {"classes": [0, 1]}

ESTIMATORS = {
    learn.LinearRegression: REGRESSION,
    learn.PosteriorSample: REGRESSION,
    learn.GradientBoostingRegressor: REGRESSION | {"rounds": 5, "depth": 2},
    learn.GeneralizedLinearRegression: WIDE | {"y_bounds": (0, 1)},
    learn.LogisticRegression: CLASSES,
    learn.ObjectivePerturbation: CLASSES,
    learn.GaussianNB: CLASSES,
    learn.MultinomialNB: {"classes": [0, 1], "most_count": 3},
    learn.DecisionTreeClassifier: CLASSES,
    learn.RandomForestClassifier: CLASSES | {"n_trees": 3},
    learn.GradientBoostingClassifier: CLASSES | {"rounds": 5, "depth": 2},
    learn.StandardScaler: WIDE,
    learn.Covariance: WIDE,
    learn.PCA: WIDE,
    learn.SelectColumns: REGRESSION | {"count": 2},
    learn.KMeans: WIDE | {"n_clusters": 2},
    learn.QuantileBinner: WIDE | {"bins": 4},
}


APPROXIMATE = {
    learn.ObjectivePerturbation,
    learn.PosteriorSample,
}  # (ε, δ), about adding or removing a row, and no other loss
ROWS_ONLY = {learn.ObjectivePerturbation, learn.PosteriorSample, learn.DecisionTreeClassifier}


def example(kind, n=60, **options):
    """An estimator, its rows and its target."""
    if kind in APPROXIMATE:
        options = options | {"delta": options.get("delta") or 1e-6, "relation": sf.AddRemove}
    X, y = blobs(n) if issubclass(kind, learn.Classifier) else line(n)
    return kind(**{"epsilon": 1.0} | ESTIMATORS[kind] | options), X, y


def outputs(fitted, X):
    """Whatever a fitted estimator says about rows."""
    if hasattr(fitted, "predict"):
        return fitted.predict(X)
    return fitted.transform(X) if hasattr(fitted, "transform") else np.resize(fitted.covariance_, (len(X), 1))
