"""Randomizers for numbers and vectors: exact laws on small lattices, theory, and simulation with fixed draws."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.local.mean import STEPS
from sfumato.local.unit_vector import mean_of_largest, vectors
from tests.local.laws import law_of
from tests.noise.sources import Recorded

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "local.json").read_text(encoding="utf-8"))
KINDS = {"duchi": sf.local.DuchiMean, "piecewise": sf.local.PiecewiseMean, "hybrid": sf.local.HybridMean}
every = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize("row", GOLDEN["means"]["rows"], ids=lambda row: f"eps={row['eps']}")
def test_worst_variances_agree_with_the_oracle(row):
    for name, kind in KINDS.items():
        assert kind.of(row["eps"]).worst_variance == pytest.approx(row[name], rel=3e-5)


def cell_law(oracle, place):
    """The law of the reported cell given its place: one draw."""
    return law_of(lambda below: oracle.answer(-STEPS + 2 * STEPS * place // oracle.places, fixed_first(below)))


def fixed_first(below):
    drawn = []

    def draw(bound):
        if not drawn:
            drawn.append(bound)
            return bound - 1  # the random rounding: numbers at a place stay there
        return below(bound)

    return draw


def test_the_piecewise_law_is_unbiased_and_has_the_stated_loss():
    oracle = sf.local.PiecewiseMean(sf.local.Odds(5, 2), 4, 12)
    laws = [cell_law(oracle, place) for place in range(0, 9, 8)]
    slope, offset = oracle.line
    for law, x in zip(laws, (-1, 1), strict=True):
        assert sum(law.values()) == 1
        mean = sum(float(p) * (slope * cell + offset) for cell, p in law.items())
        assert mean == pytest.approx(x, abs=1e-12)
        second = sum(float(p) * (slope * cell + offset) ** 2 for cell, p in law.items())
        assert second - 1 == pytest.approx(float(oracle.variance(x)), rel=1e-12)
    first, second = laws
    assert max(first[y] / second[y] for y in first) == oracle.ratio
    assert sum(p for y, p in first.items() if p > second[y]) == oracle.weight
    assert sum(min(first[y], second[y]) for y in first) == oracle.classes.blanket


def test_the_random_rounding_of_the_piecewise_randomizer_is_unbiased():
    oracle = sf.local.PiecewiseMean.of(1.0)
    for number in (-STEPS, -12345, 0, 1, 7_654_321, STEPS):
        whole, part = divmod((number + STEPS) * oracle.places, 2 * STEPS)
        assert oracle.place(number, 0) == whole + (part > 0) and oracle.place(number, 2 * STEPS - 1) == whole
        assert Fraction(whole * 2 * STEPS + part, oracle.places) == number + STEPS


def test_duchi_is_a_rational_coin():
    oracle = sf.local.DuchiMean(sf.local.Odds(3, 1))
    for number in (-STEPS, 0, STEPS // 2, STEPS):
        chance = Fraction(oracle.plus(number), oracle.total)
        assert chance == Fraction(1, 2) + Fraction(number, STEPS) / 4
    assert (oracle.reach, oracle.weight) == (2.0, Fraction(3, 4))


@every
def test_means_are_unbiased_with_the_stated_variance_and_loss(kind):
    """100,000 reports: mean within 5 standard errors, variance within 3 %."""
    oracle = kind.of(1.2).with_source(Recorded(f"means {kind}"))
    for x in (-1.0, -0.3, 0.0, 0.62, 1.0):
        decoded = oracle.decode(oracle.randomize(np.full(100_000, x)))
        assert abs(decoded.mean() - x) <= 5 * math.sqrt(float(oracle.variance(x)) / 1e5)
        assert decoded.var() == pytest.approx(float(oracle.variance(x)), rel=0.03)
        assert float(oracle.variance(x)) <= oracle.worst_variance
        assert np.max(np.abs(decoded)) <= oracle.reach * (1 + 1e-12)
    loss = oracle.loss()
    assert loss.epsilon(0.0).upper <= 1.2
    assert 0 < oracle.classes.blanket <= 1


@every
def test_single_numbers_have_the_same_law_as_arrays(kind):
    """2,000 single reports and 2,000 in an array: their means differ by less than 5.5 standard errors."""
    oracle = kind.of(1.0).with_source(Recorded(f"single {kind}"))
    one = oracle.decode(np.array([oracle.randomize(0.5) for _ in range(2000)]))
    many = oracle.decode(oracle.randomize(np.full(2000, 0.5)))
    assert abs(one.mean() - many.mean()) <= 5.5 * math.sqrt(2 * oracle.worst_variance / 2000)


@every
def test_intervals_for_means_cover(kind):
    """400 surveys of 500 people: at least 95 % covered; 0.9 is more than four standard errors below."""
    oracle = kind.of(1.0).with_source(Recorded(f"cover {kind}"))
    x = np.linspace(-1, 0.6, 500)
    hits = 0
    for _ in range(400):
        found = oracle.estimate(oracle.randomize(x))
        hits += found.low <= x.mean() <= found.high
    assert hits >= 380


@every
@pytest.mark.parametrize("bad", [1.5, -1.0001, math.nan, math.inf, "x", None, [0.1, 2.0]])
def test_numbers_outside_are_refused(kind, bad):
    with pytest.raises(InvalidParameter):
        kind.of(1.0).randomize(bad)


@every
def test_reports_that_make_no_sense_are_refused(kind):
    oracle = kind.of(1.0)
    for reports in ([], [-1], [10**9], [0.5], ["a"]):
        with pytest.raises(InvalidParameter):
            oracle.estimate(reports)
    with pytest.raises(InvalidParameter):
        kind.of(0.0)


# ---- vectors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["privunit"]["rows"], ids=lambda row: f"d={row['d']} eps={row['eps']}")
def test_a_codebook_comes_close_to_privunit(row):
    """Within 1 % up to ε = 4 and 4 % at 8; at 16 a codebook of 1,024 is too small."""
    found = sf.local.UnitVector.of(row["d"], row["eps"]).variance
    if row["eps"] <= 8:
        assert row["var"] * (1 - 1e-3) <= found <= row["var"] * (1.01 if row["eps"] <= 4 else 1.04)


def test_the_report_of_a_vector_has_exact_odds():
    oracle = sf.local.UnitVector(3, sf.local.Odds(5, 2), 2, 6)
    laws = [law_of(lambda below, v=v: oracle.answer(v, below)) for v in range(6)]
    assert all(max(first[y] / second[y] for y in first) <= oracle.ratio for first in laws for second in laws)
    opposite = laws[0], laws[3]
    assert sum(p for y, p in opposite[0].items() if p > opposite[1][y]) == oracle.weight


def test_the_mean_of_the_largest_coordinates_agrees_with_simulation():
    """4,000 codebooks of 30 vectors: 5 standard errors."""
    rng = np.random.default_rng(3)
    drawn = rng.standard_normal((4000, 30, 7))
    first = np.sort((drawn / np.linalg.norm(drawn, axis=2, keepdims=True))[:, :, 0], axis=1)[:, -4:].mean(axis=1)
    assert mean_of_largest(7, 30, 4) == pytest.approx(first.mean(), abs=5 * first.std() / math.sqrt(4000))


def test_estimates_of_directions_are_unbiased():
    """1,500 reports: every coordinate within 5 standard errors."""
    oracle = sf.local.UnitVector.of(6, 3.0, 128).with_source(Recorded("directions"))
    v = np.array([3.0, -4.0, 0, 0, 0, 0])
    found = oracle.estimate([oracle.randomize(v) for _ in range(1500)])
    assert np.all(np.abs(found - v / 5) <= 5 * math.sqrt(oracle.variance / 1500 / 6) * 1.5)
    assert np.linalg.norm(vectors(5, 10, 6), axis=1) == pytest.approx(np.ones(10))


@pytest.mark.parametrize("bad", [[0.0] * 6, [math.nan] * 6, [1.0] * 5, [math.inf, 0, 0, 0, 0, 0]])
def test_vectors_without_a_direction_are_refused(bad):
    with pytest.raises(InvalidParameter):
        sf.local.UnitVector.of(6, 1.0, 16).randomize(bad)
