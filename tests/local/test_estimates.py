"""Estimates: intervals cover their own target, projections are distributions, hostile reports move what is stated."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.local.estimate import FrequencyEstimate, project_to_simplex
from tests.noise.sources import Recorded

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "local.json").read_text(encoding="utf-8"))
PEOPLE, POPULATION = sf.local.Target.PEOPLE, sf.local.Target.POPULATION


def test_the_two_coin_survey_of_the_oracle():
    wanted = GOLDEN["confidence"]["two_coin"]
    n, yes = wanted["n"], wanted["yes"]
    found = sf.local.estimate(sf.local.Response.two_coins(), np.arange(n) < yes)
    assert found.raw[1] == pytest.approx(2 * (yes / n - 0.25)) == pytest.approx(wanted["estimate"])
    low, high = found.interval(POPULATION)
    assert (low[1], high[1]) == pytest.approx(wanted["mapped"], rel=1e-9)


def simulated(oracle, n, holders, repeats, name):
    """Counts of value 1 in many surveys: Bin(m, p) + Bin(n − m, q); people are drawn if holders < 1."""
    rng = np.random.default_rng(abs(hash_of(name)))
    m = holders if holders >= 1 else rng.binomial(n, holders, repeats)
    return rng.binomial(m, float(oracle.p), repeats) + rng.binomial(n - m, float(oracle.q), repeats)


def hash_of(name):
    return int.from_bytes(name.encode()[:8].ljust(8, b"."), "big")


def coverage(interval, truth, counts):
    low, high = interval
    return np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12))


@pytest.mark.parametrize("oracle", [sf.local.Response.two_coins(), sf.local.SubsetSelection.of(20, 1.0)], ids=repr)
@pytest.mark.parametrize(("n", "share"), [(60, 0.2), (1000, 0.3), (1000, 0.005), (20_000, 0.3), (20_000, 0.001)])
def test_intervals_cover_their_own_target(oracle, n, share):
    """20,000 surveys: the standard error of a coverage is 0.0016, so 0.944 and 0.942–0.958 are 4 and 5 of them off."""
    people = simulated(oracle, n, int(n * share), 20_000, f"people {n} {share}")
    drawn = simulated(oracle, n, share, 20_000, f"drawn {n} {share}")
    fixed = FrequencyEstimate(oracle, n, people)
    fresh = FrequencyEstimate(oracle, n, drawn)
    truth = int(n * share) / n
    assert coverage(fixed.interval(PEOPLE), truth, people) >= 0.944
    assert coverage(fresh.interval(POPULATION), share, drawn) >= 0.944
    if n >= 10_000:
        assert 0.942 <= coverage(fixed.normal_interval(PEOPLE), truth, people) <= 0.958
        assert 0.942 <= coverage(fresh.normal_interval(POPULATION), share, drawn) <= 0.958


def test_one_interval_cannot_serve_both_targets():
    """The noise-only interval misses the population: 0.913, as the oracle's 200,000 repeats say (se 0.002)."""
    oracle = sf.local.Response.two_coins()
    drawn = FrequencyEstimate(oracle, 1000, simulated(oracle, 1000, 0.3, 20_000, "both"))
    assert coverage(drawn.normal_interval(PEOPLE), 0.3, None) == pytest.approx(0.9133, abs=0.012)
    wanted = {row["target"]: row for row in GOLDEN["coverage_two_coin_95"]["rows"]}
    assert wanted["population"]["noise_only_normal"] == 0.9133


def test_simultaneous_intervals_cover_all_values_at_once():
    """300 surveys of 12 values: at least 95 % are covered everywhere; 0.9 is four standard errors below."""
    oracle = sf.local.SubsetSelection.of(12, 1.5)
    values = np.repeat(np.arange(12), [400, 200, 100, 100, 50, 50, 50, 20, 10, 10, 5, 5])
    truth, drawn = np.bincount(values) / values.size, oracle.with_source(Recorded("simultaneous"))
    hits = 0
    for _ in range(300):
        low, high = sf.local.estimate(oracle, drawn.randomize(values)).interval(PEOPLE, simultaneous=True)
        hits += bool(np.all((low <= truth) & (truth <= high)))
    assert hits >= 270


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=30))
def test_a_projection_is_the_nearest_distribution(values):
    found = project_to_simplex(values)
    assert np.all(found >= 0) and found.sum() == pytest.approx(1)
    rng = np.random.default_rng(len(values))
    for other in rng.dirichlet(np.ones(len(values)), 20):
        assert np.sum((found - values) ** 2) <= np.sum((other - values) ** 2) + 1e-9


def test_hostile_reports_move_a_share_by_no_more_than_stated():
    oracle = sf.local.ProjectiveResponse.of(50, 1.0)
    values = np.zeros(2000, np.int64)
    honest = oracle.with_source(Recorded("hostile")).randomize(values)
    before = sf.local.estimate(oracle, honest)
    points = np.arange(oracle.space.points)
    most = 0.0
    for report in points:
        after = sf.local.estimate(oracle, np.concatenate([honest[:-100], np.full(100, report)]))
        most = max(most, float(np.max(np.abs(after.raw - before.raw))))
    lost = 100 / 2000 * float(1 / oracle.gap)  # the honest reports that are gone may have said the opposite
    assert before.poisoned(100) == pytest.approx(0.05 * oracle.gain)
    assert most <= lost
    assert most > before.poisoned(100) / 2


def test_poisoning_agrees_with_the_oracle():
    wanted = GOLDEN["poisoning"]["rows"]
    k, eps = GOLDEN["poisoning"]["k"], GOLDEN["poisoning"]["eps"]
    assert sf.local.Response.of(k, eps).gain == pytest.approx(wanted["rr"], rel=1e-5)
    assert sf.local.UnaryEncoding.of(k, eps).gain == pytest.approx(wanted["oue"], rel=1e-5)
    assert sf.local.HadamardResponse.of(k, eps).gain == pytest.approx(wanted["hadamard"], rel=1e-5)


@pytest.mark.parametrize("confidence", [0.0, 1.0, float("nan"), 2, "0.9"])
def test_a_confidence_that_makes_no_sense_is_refused(confidence):
    found = sf.local.estimate(sf.local.Response.two_coins(), [0, 1])
    with pytest.raises(InvalidParameter):
        found.interval(PEOPLE, confidence)
