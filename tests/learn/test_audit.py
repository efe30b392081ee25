"""The auditor attacks every estimator with one extreme row, and refutes one whose noise is too small.

An audit of a correct estimator fails with probability at most 1e-6 with other bits.
"""

import numpy as np
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.learn.spending import GaussianSpending, PureSpending
from tests.learn.catalogue import ESTIMATORS, example

SURE = 1 - 1e-6
EXTREME = np.ones((1, 3))
FAST = {"rounds": 2, "n_trees": 2, "solver": "statistics", "depth": 1}


class Fitted:
    """A fit as a mechanism: from a table with its target to a number of the model that the extra row moves most."""

    def __init__(self, estimator):
        self.estimator = estimator

    def release(self, data):
        fitted = self.estimator.fit(*data)
        if isinstance(fitted, learn.Classifier):
            return float(fitted.predict_proba(EXTREME)[0, 1])
        if isinstance(fitted, learn.Regressor):
            return float(fitted.predict(EXTREME)[0])
        if isinstance(fitted, learn.Covariance):
            return float(fitted.covariance_[0, 0])
        found = {
            "StandardScaler": "mean_",
            "KMeans": "cluster_centers_",
            "QuantileBinner": "bin_edges_",
            "SelectColumns": "scores_",
        }
        return float(np.ravel(getattr(fitted, found[type(fitted).__name__])).max())


def neighbours(kind):
    """Four rows in a corner, and the same with a row in the opposite one."""
    few = -np.ones((4, 3)) if kind is not learn.MultinomialNB else np.tile([0.0, 0.0, 1.0], (4, 1))
    target = np.zeros(4, int) if issubclass(kind, learn.Classifier) else -np.ones(4)
    return (few, target), (np.vstack([few, EXTREME]), np.append(target, 1))


def audited(kind, samples=400, **options):
    estimator, _, _ = example(kind, **options)
    estimator.set_params(**{name: value for name, value in FAST.items() if name in estimator.get_params()})
    d0, d1 = neighbours(kind)
    return sf.audit.audit(Fitted(estimator), d0, d1, samples=samples, confidence=SURE, loss=estimator.loss)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_the_auditor_passes_every_estimator(kind):
    assert not audited(kind, samples=64, delta=1e-4).violated


@pytest.mark.parametrize("kind", [learn.LinearRegression, learn.RandomForestClassifier])
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_auditor_refutes_an_estimator_with_a_twentieth_of_the_noise(kind, delta, monkeypatch):
    for cls in (GaussianSpending, PureSpending):
        part = cls.part
        monkeypatch.setattr(
            cls, "part", lambda self, share, part=part: type(self)(20 * part(self, share).amount, self.relation)
        )
    assert audited(kind, delta=delta).violated


CLASSIFIERS = [kind for kind in ESTIMATORS if issubclass(kind, learn.Classifier) and kind is not learn.MultinomialNB]


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_canaries_in_one_fit_are_not_found(kind):
    """Two hundred rows with corners of their own, each included or not: an attacker guesses from one model."""
    rng = np.random.default_rng(9)
    canaries = [tuple(row) for row in rng.choice([-1.0, 1.0], (200, 20))]
    estimator = kind(epsilon=1, delta=1e-5, bounds=(-1, 1), classes=[0, 1])

    def train(included):
        rows = np.array([*included, *rng.uniform(-1, 1, (300, 20))])
        labels = np.append(np.ones(len(included), int), rng.integers(0, 2, 300))
        return estimator.fit(rows, labels)

    found = sf.audit.one_run(
        train,
        canaries,
        lambda model, row: float(model.predict_proba([row])[0, 1]),
        loss=estimator.loss,
        confidence=SURE,
    )
    assert not found.violated
