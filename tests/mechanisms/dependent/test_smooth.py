"""Releases at the smooth scale, their error bars, and the formulas of the literature beside them."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import bdtrc

import sfumato as sf
from sfumato import dependent as dep
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.dependent.cells import noise_radius
from sfumato.mechanisms.dependent.shifted_pairs import directions
from sfumato.mechanisms.dependent.smooth import Off
from sfumato.noise.lazy import Draw
from sfumato.teach.classical import smooth_noise_prices as published
from tests.mechanisms.dependent.families import EVERY, ORACLE
from tests.noise.sources import Recorded


def median(low=0, high=16):
    return dep.Quantile(low, high, p=Fraction(1, 2))


def test_the_law_of_a_release_is_the_rounded_noise_of_its_rung():
    """The oracle's exact sums over integers at rung 10: δ of shifts by 7, from 4000 draws each.

    The share of an event in n draws is off by more than 0.05 with probability below 2e^{-2·n·0.05²} < 5e-9.
    """
    oracle = ORACLE["ladder_discrete"]
    loss = dep.SmoothLoss(dep.StudentNoise(oracle["d"]), oracle["s"], oracle["t"])
    for row in oracle["rows"]:
        assert row["discrete"] <= loss.delta(row["eps"]).upper
        assert row["continuous"] == pytest.approx(loss.delta(row["eps"]).upper, rel=1e-5)
    noise, ladder = dep.StudentNoise(oracle["d"]), dep.Ladder(oracle["t"], 1000, 1, 1)
    count = dep.Given(len, lambda data, most: [1] * (most + 1), 1)
    mechanism = dep.Smooth(count, noise, oracle["s"], oracle["t"], 1, step=1)
    width = mechanism.width(10)
    assert float(width.ball(80).mid()) == pytest.approx(math.exp(2.0) / oracle["s"])
    assert float(ladder.scale(10).ball(80).mid()) == pytest.approx(math.exp(2.0))
    here, there = (
        np.array([Draw(noise, Recorded(f"rung {v}, {i}")).round_to_integer(v, width) for i in range(4000)])
        for v in (0, 7)
    )
    best = max(np.mean(here <= k) - np.mean(there <= k) for k in range(-10, 20))
    row = next(row for row in oracle["rows"] if row["eps"] == 0 and row["rung"] == 10)
    assert abs(best - row["discrete"]) < 0.05


def test_answers_are_exact_about_rational_values_on_a_public_lattice():
    """round(f + noise) about f itself: a trimmed mean of thirds, in quarters, far below its noise."""
    statistic = dep.TrimmedMean(0, 30, trim=1)
    mechanism = dep.Smooth(statistic, dep.StudentNoise(5), 0.7, 0.5, step=0.25, source=Recorded("thirds"))
    found = [mechanism.release([1, 2, 3, 5, 30]) for _ in range(50)]
    assert all(Fraction(x) % Fraction(1, 4) == 0 for x in found)
    assert mechanism.loss() == dep.SmoothLoss(dep.StudentNoise(5), 0.7, 0.5, 4)


def test_tied_data_get_tiny_noise_and_spread_data_large_noise():
    """A thousand equal ages: rung 0; the answer is off by a step or two. Two people: the top."""
    mechanism = dep.Smooth(median(0, 1 << 20), dep.StudentNoise(5), 0.7, 0.2, source=Recorded("ages"))
    assert mechanism.rung([40] * 1000) == 0 and mechanism.rung([]) == mechanism.ladder.top
    assert all(abs(mechanism.release([40] * 1000) - 40) < 100 for _ in range(30))


def test_error_bars_hold_as_often_as_they_say_and_are_charged():
    """400 releases at 90 %: more than 70 misses have probability below 1e-6."""
    inner = dep.Smooth(median(0, 1024), dep.ArsinhNormalNoise(0.5), 0.7, 0.3, source=Recorded("bars"))
    data = list(range(0, 1024, 64))
    mechanism = inner.with_error(8.0, 0.9)
    found = [mechanism.release(data) for _ in range(400)]
    misses = sum(abs(x.value - median(0, 1024).value(data)) > x.error for x in found)
    assert bdtrc(max(misses - 1, 0), 400, 0.1) > 1e-6 and misses < 40
    assert len({x.error for x in found}) > 5  # a noisy bound, not the scale
    assert mechanism.loss() == inner.loss() + sf.loss.GaussianLoss(0.5)
    assert isinstance(found[0], Off)
    assert not hasattr(inner, "error")


@pytest.mark.parametrize("noise", [noise for noise, _, _ in EVERY if noise.grain == 1], ids=str)
def test_radii_are_quantiles(noise):
    """At most one cell (a few per cent) above what integration gives."""
    z = np.concatenate([[0.0], np.geomspace(1e-9, 1e8, 200_001)])
    p = np.exp(noise.log_density(z))
    inside = np.concatenate([[0.0], np.cumsum((p[1:] + p[:-1]) * np.diff(z))])
    for outside in (0.5, 0.05, 1e-3):
        truth = float(np.interp(1 - outside, inside, z))
        assert truth * (1 - 1e-4) <= noise_radius(noise, outside) <= truth * 1.1


def test_admissible_noise_is_what_its_two_properties_say():
    """Cauchy noise by the rule of 2007 has δ = 0 for both at ε/2, with room; Laplace noise needs its δ."""
    found = dep.admissibility(dep.CauchyNoise(2), 1 / 6, 1 / 6, 1.0)
    assert found.holds(0.0)
    shift, dilation = published.laplace(1.0, 1e-6)
    light = dep.admissibility(dep.LaplaceNoise(), shift, dilation, 1.0)
    assert light.holds(1e-6) and not light.holds(1e-12)
    assert light.dilating.lower > 1e-9  # the oracle's price is of both together, at ε


@pytest.mark.parametrize("row", ORACLE["noise_laplace_gauss_nrs_exact_delta"]["laplace"], ids=str)
def test_laplace_noise_by_the_published_rule_has_a_tiny_delta(row):
    shift, dilation = published.laplace(row["eps"], row["delta"])
    if row["beta_rule"] == "ln1/d":
        dilation = row["eps"] / (2 * math.log(1 / row["delta"]))
    found = dep.SmoothLoss(dep.LaplaceNoise(), shift, dilation, 4).delta(row["eps"])
    assert found.lower <= float(row["exact_delta"]) * (1 + 1e-9) and found.upper <= row["delta"]


@pytest.mark.parametrize("row", ORACLE["noise_laplace_gauss_nrs_exact_delta"]["gauss"], ids=str)
def test_gaussian_noise_by_the_published_rule_has_a_tiny_delta(row):
    found = dep.SmoothLoss(dep.GaussianNoise(), *published.gaussian(row["eps"], row["delta"]), 1).delta(row["eps"])
    assert found.lower <= float(row["exact_delta"]) * (1 + 1e-9) and found.upper <= row["delta"]


@pytest.mark.parametrize("row", ORACLE["noise_pure_dp"]["student_t"] + ORACLE["noise_pure_dp"]["gen_cauchy"], ids=str)
def test_published_pure_epsilon_is_above_the_envelope(row):
    """The old numbers are for the wider set of pairs, so the envelope is below them too."""
    noise = dep.StudentNoise(row["d"]) if "d" in row else dep.CauchyNoise(row["gamma"])
    formula = published.student if "d" in row else published.cauchy
    parameter = row["d"] if "d" in row else row["gamma"]
    assert formula(parameter, row["s"], row["t"]).upper == pytest.approx(
        row["thm31" if "d" in row else "nrs"], rel=1e-12
    )
    if row["s"]:
        top = max(dep.SmoothLoss(noise, row["s"], row["t"], 1, 8.0).supremum())
        assert top <= row["exact"] * (1 + 1e-5) <= row["ours"] * (1 + 2e-5)


def test_lemmas_19_and_20_hold_for_the_exact_curve():
    noise = dep.LaplaceLogNormalNoise(0.1)
    for order in (1.5, 4.0, 50.0):
        for way in directions(noise, 0.0, 0.1, 4.0):
            bound = published.laplace_log_normal_dilated(0.1, 0.1, order).upper
            assert way.log_moment(order - 1)[0] / (order - 1) <= bound
        (way, _) = directions(noise, 0.1, 0.0, 4.0)
        assert way.log_moment(order - 1)[0] / (order - 1) <= published.laplace_log_normal_shifted(0.1, 0.1, order).upper


def test_formulas_beyond_their_range_are_refused():
    with pytest.raises(InvalidParameter, match="do:"):
        published.uniform_log_normal(1.0, 0.1, 0.1)
    assert published.uniform_log_normal(1.5, 0.01, 0.1).upper < published.uniform_log_normal(1.5, 0.02, 0.1).upper
    assert (
        published.arsinh_normal(0.4, 0.1, 0.1).upper > dep.SmoothLoss(dep.ArsinhNormalNoise(0.4), 0.1, 0.1).zcdp().upper
    )


def test_nothing_printed_of_a_mechanism_is_private():
    mechanism = dep.Smooth(median(), dep.StudentNoise(4), 0.5, 0.1)
    before = repr(mechanism)
    mechanism.release([3, 4, 5])
    assert repr(mechanism) == before and "rung" not in before
    assert json.loads(mechanism.loss().to_json())["noise"] == {"part": "StudentNoise", "degrees": 4.0}
