"""Tuning of estimators: the best by a private score, at the price of the best run."""

from dataclasses import dataclass

import numpy as np
import pytest

import sfumato as sf
from sfumato.learn.tuning import FitAndScore, Tuned, run_budget, tune

L = sf.loss


@dataclass
class NoisyMean:
    """A model of y by one number in [0, 1], shrunk towards ½: an estimator as tuning wants it."""

    shrink: float
    mu: float = 0.1
    ledger: object = None

    @property
    def loss(self):
        return L.GaussianLoss(self.mu, relation=sf.ReplaceOne)

    @property
    def score_loss(self):
        return L.GaussianLoss(self.mu, relation=sf.ReplaceOne)

    def fit(self, X, y=None):
        noise = sf.Gaussian(1 / self.mu / len(y), 2**-30).release(float(np.mean(y)))
        self.mean_ = 0.5 + (1 - self.shrink) * (noise - 0.5)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)

    def score(self, X, y):
        return -float(sf.Gaussian(1 / self.mu / len(y), 2**-30).release(float(np.mean((y - self.mean_) ** 2))))


X, Y = np.zeros((4000, 1)), np.full(4000, 0.9)
MANY = [NoisyMean(shrink) for shrink in np.linspace(0, 1, 20)]


def test_the_best_candidates_win():
    found = tune(MANY, X, Y, runs=L.NegativeBinomialRuns(1e-3, 1.0))  # so many fits that the best are among them
    assert found.best_index_ <= 4 and abs(found.predict(X[:1])[0] - 0.9) < 0.1
    assert not hasattr(MANY[found.best_index_], "mean_")  # a copy was fitted
    assert not hasattr(found, "runs_")


def test_twenty_candidates_cost_about_one_and_a_half_runs_and_less_than_splitting():
    one = FitAndScore(MANY[0]).loss()
    tuned, all_of_them = Tuned(MANY).loss, 20 * one
    ratio = float(tuned.epsilon(1e-6)) / float(one.epsilon(1e-6))
    assert 1 < ratio < 1.7 < float(all_of_them.epsilon(1e-6)) / float(one.epsilon(1e-6))
    assert tuned.relation is sf.ReplaceOne


@pytest.mark.slow
def test_a_budget_for_the_best_run_leaves_each_run_more_than_a_split():
    law = L.NegativeBinomialRuns.of_mean(20.0)
    one = run_budget(1.0, 1e-6, law)
    assert float(L.SelectedLoss(one, law).epsilon(1e-6)) <= 1.0
    split = float(sf.calibrate(lambda mu: 20 * L.GaussianLoss(mu), epsilon=1.0, delta=1e-6))
    assert one.mu > 2.5 * split


def test_a_ledger_is_charged_once_before_data_are_read():
    ledger = sf.Ledger.create(":memory:", sf.Budget(3.0, 1e-6, relation=sf.ReplaceOne))
    candidates, charged = [NoisyMean(0.0), NoisyMean(0.5)], []

    class Watched:
        def charge(self, loss, **about):
            charged.append(loss)
            return ledger.charge(loss, **about)

    with pytest.raises(TypeError):  # the fit fails, the charge stays
        Tuned(candidates, ledger=Watched()).fit(X, None)
    Tuned(candidates, ledger=Watched()).fit(X, Y)
    assert charged == [Tuned(candidates).loss] * 2


def test_candidates_with_a_ledger_or_without_a_price_are_refused():
    with pytest.raises(sf.errors.InvalidParameter, match="charged once"):
        Tuned([NoisyMean(0.0, ledger=object())]).fit(X, Y)
    with pytest.raises(sf.errors.InvalidParameter, match="score_loss"):
        Tuned([object()]).fit(X, Y)
    with pytest.raises(sf.errors.InvalidParameter, match="nothing to choose"):
        Tuned([]).fit(X, Y)
    with pytest.raises(sf.errors.InvalidParameter, match="call fit"):
        Tuned(MANY).predict(X)
