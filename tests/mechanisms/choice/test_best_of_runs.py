"""The best of a random number of runs: what is released, and what is refused."""

import math

import pytest

import sfumato as sf
from sfumato.mechanisms.choice.best_of_runs import BestOfRuns
from tests.noise.sources import Recorded

L = sf.loss
LAW = L.NegativeBinomialRuns.of_mean(12.0)


def silent(value):
    """A mechanism that costs something and always says the same."""
    return sf.Laplace(1.0).on(len, 1).then(lambda _: value)


def test_the_best_score_wins_and_says_which_candidate_it_was():
    made = BestOfRuns((silent(1.0), silent(5.0), silent(3.0)), float, LAW, source=Recorded("best"))
    found = [made.release([1]) for _ in range(200)]
    assert {(run.candidate, run.output, run.score) for run in found} <= {(0, 1.0, 1.0), (1, 5.0, 5.0), (2, 3.0, 3.0)}
    share = sum(run.candidate == 1 for run in found) / 200
    expected = 1 - LAW.miss_chance(1 / 3)
    assert abs(share - expected) < 0.13  # Hoeffding: fails with probability at most 0.0025


def test_nan_is_the_worst_score():
    made = BestOfRuns((silent(math.nan), silent(-1e300)), float, L.NegativeBinomialRuns(1e-3), source=Recorded("nan"))
    assert [made.release([1]).candidate for _ in range(5)] == [1] * 5


def test_no_run_releases_nothing():
    made = BestOfRuns((silent(1.0),), float, L.PoissonRuns(0.5), source=Recorded("none"))
    found = [made.release([1]) for _ in range(300)]
    assert abs(sum(run is None for run in found) / 300 - math.exp(-0.5)) < 0.1  # fails with probability ≤ 0.005


def test_the_price_is_that_of_the_worst_candidate():
    one = BestOfRuns((sf.Laplace(1.0).on(len, 1),), float, LAW)
    both = BestOfRuns((sf.Laplace(1.0).on(len, 1), sf.Laplace(9.0).on(len, 1)), float, LAW)
    assert float(one.loss().epsilon(1e-6)) == pytest.approx(float(both.loss().epsilon(1e-6)), rel=1e-3)
    assert both.chance(1.0) == 1.0 and 0 < both.chance() < 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": ()},
        {"candidates": (sf.Laplace(1.0),)},
        {"candidates": (3,)},
        {"score": 3},
        {"runs": 20},
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    good = {"candidates": (silent(1.0),), "score": float, "runs": LAW}
    with pytest.raises(sf.errors.InvalidParameter, match="do:"):
        BestOfRuns(**(good | wrong))


def test_candidates_about_different_neighbours_are_refused():
    other = sf.Laplace(1.0).on(len, sf.Sensitivity(l0=1, linf=1, l1=1, l2=1, relation=sf.ReplaceOne))
    with pytest.raises(sf.errors.MixedRelations):
        BestOfRuns((silent(1.0), other), float, LAW)
