"""Laws of the fit of a histogram of norms, edge cases, and how often its bounds hold on simulated data."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.curator.norm_tail import (
    APART,
    BINS,
    EDGES,
    HANDFUL,
    ROOT_NORMS,
    SQUARES,
    WHOLE_NORMS,
    Tail,
    farthest_seen,
    laplace_quantile,
)
from sfumato.curator.scaling import (
    CANDIDATES,
    candidates_below,
    capped_left_out,
    choose_capped,
    choose_for_means,
    choose_for_sums,
)

Floats = NDArray[np.float64]

histograms = st.lists(
    st.one_of(st.floats(-1e3, 1e3), st.floats(-1e9, 1e9), st.just(0.0)), min_size=BINS, max_size=BINS
).map(np.array)
sigmas = st.floats(0.5, 1e3)


def histogram_of(norms: Floats) -> Floats:
    place = np.minimum(np.searchsorted(EDGES, norms), BINS - 1)
    return np.bincount(place, minlength=BINS).astype(float)


def left_out_of(norms: Floats, bound: float) -> float:
    return float(np.maximum(norms - bound, 0).sum())


def one_bin(place: int, units: float) -> Floats:
    found = np.zeros(BINS)
    found[place] = units
    return found


def test_edges_are_roots_of_whole_numbers() -> None:
    assert list(SQUARES[:7]) == [1, 4, 16, 64, 128, 256, 512]
    assert [round(edge * edge) for edge in EDGES] == list(SQUARES)
    assert np.allclose(EDGES[4:] / EDGES[3:-1], math.sqrt(2))


def test_candidates_are_increasing_roots_of_whole_numbers() -> None:
    squares = [round(bound * bound) for bound in CANDIDATES]
    assert all(math.sqrt(square) == bound for square, bound in zip(squares, CANDIDATES.tolist(), strict=True))
    assert squares == sorted(set(squares)) and squares[0] == 1


@settings(deadline=None, max_examples=20)
@given(counts=histograms, sigma=sigmas, laplace=st.booleans())
def test_every_number_is_finite_and_monotone(counts: Floats, sigma: float, laplace: bool) -> None:
    tail = Tail.of(counts, sigma, laplace=laplace)
    bounds = CANDIDATES[::20]
    out = tail.left_out(bounds)
    assert np.isfinite(out).all() and (out >= 0).all() and (np.diff(out, axis=0) <= 1e-9 * (1 + out[:-1])).all()
    for what in (tail.about, tail.at_most, tail.units_above):
        values = [what(bound) for bound in bounds.tolist()]
        assert all(math.isfinite(value) and value >= 0 for value in values)
        assert all(later <= value * (1 + 1e-9) for value, later in pairwise(values))
    bound = float(bounds[2])
    assert tail.about(bound) <= tail.at_most(bound, 0.9) <= tail.at_most(bound) <= tail.at_most(bound, 0.999)
    assert math.isfinite(tail.total()) and tail.about(bound) <= tail.total() * (1 + 1e-9)
    assert choose_for_sums(tail, 5.0, 3) in CANDIDATES
    assert choose_for_means(tail, 5.0, 3) in CANDIDATES


@given(counts=histograms, groups=st.integers(1, 10**4), deviation=st.floats(0.1, 100))
@settings(deadline=None, max_examples=15)
def test_more_noise_never_raises_the_bound(counts: Floats, groups: int, deviation: float) -> None:
    tail = Tail.of(counts, 10.0)
    for choose in (choose_for_sums, choose_for_means):
        assert choose(tail, 2 * deviation, groups) <= choose(tail, deviation, groups)
        assert choose(tail, deviation, 4 * groups) <= choose(tail, deviation, groups)
        assert choose(tail, lambda bounds: np.full(len(bounds), deviation), groups) == choose(tail, deviation, groups)


def test_an_empty_table_has_nothing_left_out() -> None:
    tail = Tail.of(np.zeros(BINS), 10.0)
    assert tail.total() == tail.about(1.0) == tail.units_above(1.0) == 0
    assert tail.at_most(1.0) == tail.apart(1.0) == 10 * APART and tail.at_most(2.0) == 0
    assert tail.apart(1.0, HANDFUL) == HANDFUL and tail.apart(1.0, 100.0) == 10 * APART
    assert choose_for_sums(tail, 5.0, 1) == choose_for_means(tail, 5.0, 1) == 1


@pytest.mark.parametrize("units", [1, 30, 10**4, 10**9])
def test_units_of_one_row_have_bound_one(units: int) -> None:
    tail = Tail.of(one_bin(0, units), 10.0)
    assert choose_for_sums(tail, 5.0, 10) == 1


@pytest.mark.parametrize("place", [1, 4, 10, 30, BINS - 1])
@pytest.mark.parametrize("units", [10**3, 10**6])
def test_units_all_equal_have_a_bound_near_them(place: int, units: int) -> None:
    tail = Tail.of(one_bin(place, units), 10.0)
    bound = choose_for_sums(tail, 5.0, 1)
    assert 0.5 * EDGES[place - 1] <= bound <= 2 * EDGES[place]
    assert 0.5 * units * EDGES[place - 1] <= tail.total() <= 2 * units * EDGES[place]


def test_a_single_unit_is_not_seen() -> None:
    assert choose_for_sums(Tail.of(one_bin(40, 1), 10.0), 5.0, 1) < 2


def test_units_far_from_the_rest_are_a_tail_of_their_own() -> None:
    tail = Tail.of(one_bin(1, 6000) + one_bin(20, 200), 10.0)
    assert EDGES[18] < choose_for_sums(tail, 5.0, 1) < EDGES[22]
    assert 50 < tail.units_above(float(EDGES[17])) < 400


def test_units_that_noise_hides_are_allowed_for() -> None:
    """16 people with two or three times as many rows as all others, as in a table of laboratory tests.

    90 % of 100; fewer than 80 would come by chance with 10⁻³.
    """
    counts = one_bin(8, 1600) + one_bin(9, 800) + one_bin(10, 240) + one_bin(11, 50)
    hidden = one_bin(13, 6) + one_bin(14, 6)
    rng, held = np.random.default_rng(15), 0
    for _ in range(100):
        tail = Tail.of(counts + hidden + rng.normal(0, 7, BINS), 7.0)
        bound = choose_for_sums(tail, 2.3, 1)
        held += sum(6 * max(EDGES[place] - bound, 0) for place in (13, 14)) <= tail.at_most(bound)
    assert held >= 80


def test_laplace_noise_needs_more_to_be_seen() -> None:
    """Exponential tails reach 10 deviations once in 10⁶ bins."""
    counts = one_bin(0, 5000) + one_bin(40, 100)
    assert choose_for_sums(Tail.of(counts, 10.0), 5.0, 1) > 1000
    assert choose_for_sums(Tail.of(counts, 10.0, laplace=True), 5.0, 1) < 10


def test_false_sightings_are_rare() -> None:
    """10,000 empty histograms of either noise: that any bin is seen in one has a probability below 0.03."""
    rng = np.random.default_rng(5)
    assert not any(farthest_seen(one, 1.0, laplace=False) for one in rng.normal(0, 1, (10_000, BINS)))
    assert not any(farthest_seen(one, math.sqrt(2), laplace=True) for one in rng.laplace(0, 1, (10_000, BINS)))


@pytest.mark.parametrize("counts", [np.zeros(3), np.full(BINS, math.nan), np.full(BINS, math.inf)])
def test_what_is_no_histogram_is_refused(counts: Floats) -> None:
    with pytest.raises(ValueError, match="finite numbers"):
        Tail.of(counts, 1.0)
    with pytest.raises(ValueError, match="positive deviation"):
        Tail.of(np.zeros(BINS), 0.0)


def lognormal(rng: np.random.Generator) -> Floats:
    return np.ceil(np.exp(rng.normal(1.5, 1, 20_000)))


def weibull(rng: np.random.Generator) -> Floats:
    return np.ceil(8 * rng.weibull(0.6, 20_000))


def sharp(rng: np.random.Generator) -> Floats:
    return rng.integers(1, 100, 5_000).astype(float)


@pytest.mark.parametrize("law", [lognormal, weibull, sharp])
@pytest.mark.parametrize("sigma", [6.0, 60.0])
def test_what_is_left_out_is_at_most_what_is_said(law: object, sigma: float) -> None:
    """97.5 % of 150; 137 or fewer of them would come by chance with 2·10⁻⁴."""
    rng = np.random.default_rng(11)
    norms = law(rng)  # type: ignore[operator]
    counts, held = histogram_of(norms), 0
    for _ in range(150):
        tail = Tail.of(counts + rng.normal(0, sigma, BINS), sigma)
        bound = choose_for_sums(tail, sigma / 3, 1)
        held += left_out_of(norms, bound) <= tail.at_most(bound)
    assert held > 137


def test_the_total_is_about_right() -> None:
    rng = np.random.default_rng(12)
    norms = lognormal(rng)
    tail = Tail.of(histogram_of(norms) + rng.normal(0, 10, BINS), 10.0)
    assert tail.total() == pytest.approx(norms.sum(), rel=0.15)
    assert tail.units_above(40.0) == pytest.approx((norms > 40).sum(), abs=60)


@pytest.mark.parametrize("law", [lognormal, weibull, sharp])
def test_nobody_is_longer_than_what_is_said(law: object) -> None:
    """97.5 % of 100; 90 or fewer of them would come by chance with 2·10⁻⁴."""
    rng = np.random.default_rng(16)
    norms = law(rng)  # type: ignore[operator]
    counts = histogram_of(norms)
    tails = [Tail.of(counts + rng.normal(0, 10, BINS), 10.0) for _ in range(100)]
    assert sum(norms.max() <= tail.longest() for tail in tails) > 90
    assert all(tail.longest(0.9) <= tail.longest(0.975) for tail in tails)


@given(seed=st.integers(0, 10**6), cap=st.floats(1, 1e4), bound=st.floats(1, 1e4))
@settings(deadline=None, max_examples=25)
def test_a_cap_bounds_what_is_left_out_without_noise(seed: int, cap: float, bound: float) -> None:
    """Every norm is at most the upper end of its bin, and at most the cap."""
    norms = np.minimum(np.exp(np.random.default_rng(seed).normal(3, 2, 50)), cap)
    most = capped_left_out(histogram_of(norms), 1e-9, bound, cap, 0.975, 1)
    assert most >= left_out_of(norms, bound) * (1 - 1e-12)


def test_nothing_is_left_out_at_the_cap() -> None:
    assert capped_left_out(np.full(BINS, 100.0), 10.0, 50.0, 50.0, 0.975, 40) == 0


def worst_bound(noise: Floats, sigma: float, bounds: Floats) -> float:
    """Of all bounds the one where noise takes most from what is said."""
    counts = np.zeros(BINS)
    gap = [capped_left_out(counts + noise, sigma, bound, 100.0, 0.9, len(bounds)) for bound in bounds.tolist()]
    return float(bounds[np.argmin(gap)])


def test_a_cap_holds_for_a_bound_that_was_chosen_from_the_same_histogram() -> None:
    """Units at the upper ends of their bins; 90 % of 300, fewer than 252 would come by chance with 10⁻³."""
    rng = np.random.default_rng(13)
    norms = np.repeat(np.minimum(EDGES[:10], 100.0), 50)
    counts, bounds, held = histogram_of(norms), candidates_below(100.0), 0
    for _ in range(300):
        noise = rng.normal(0, 10, BINS)
        bound = worst_bound(noise, 10.0, bounds)
        held += left_out_of(norms, bound) <= capped_left_out(counts + noise, 10.0, bound, 100.0, 0.9, len(bounds))
    assert held >= 252


def test_rounded_noise_and_laplace_noise_are_paid_for() -> None:
    counts = one_bin(3, 100)
    plain = capped_left_out(counts, 10.0, 4.0, 50.0, 0.975, 40)
    assert plain < capped_left_out(counts, 10.0, 4.0, 50.0, 0.975, 40, step=1.0)
    assert plain < capped_left_out(counts, 10.0, 4.0, 50.0, 0.975, 40, laplace=True)


def test_the_capped_choice_makes_the_interval_shortest() -> None:
    counts = one_bin(0, 1000)
    assert choose_capped(counts, 10.0, 5.0, 30.0, 0.975, 2.24) == 30  # the histogram's noise alone is more than (H − C)
    assert choose_capped(counts, 1e-3, 5.0, 30.0, 0.975, 2.24) == 1
    assert candidates_below(30.0)[-1] == 30 and len(candidates_below(1.0)) == 1


@pytest.mark.parametrize("weights", [[1.0], [1.0] * 4, [3.0, 1.0, 0.0]])
def test_the_laplace_quantile_is_never_too_small(weights: list[float]) -> None:
    """At 10⁻², from 10⁵ draws: 1,130 or more would come by chance with less than 10⁻⁴."""
    draws = np.random.default_rng(14).laplace(0, 1, (100_000, len(weights))) @ np.array(weights)
    assert (draws > laplace_quantile(np.array(weights), 0.01)).sum() < 1130
    assert laplace_quantile(np.zeros(3), 0.01) == 0


@pytest.mark.parametrize(("groups", "keyed"), [(1, False), (10, True)])
def test_one_row_per_person_costs_the_noise_of_one_row(groups: int, keyed: bool) -> None:
    """Noise beyond the first bin is not taken for people with more rows: at most once in a hundred histograms."""
    rng, sigma = np.random.default_rng(29), 30.0
    draws = [one_bin(0, 20_000) + rng.normal(0, sigma, BINS) for _ in range(300)]
    tails = [Tail.of(one, sigma, points=ROOT_NORMS if keyed else WHOLE_NORMS) for one in draws]
    assert sum(choose_for_sums(tail, 10.0, groups) > 1 for tail in tails) <= 3


@pytest.mark.parametrize("beyond", [150, 1_000])
def test_people_with_more_rows_than_noise_explains_are_not_taken_for_people_with_one(beyond: int) -> None:
    tail = Tail.of(one_bin(0, 20_000) + one_bin(2, beyond), 30.0)
    assert not tail.alike
    assert choose_for_sums(tail, 10.0, 1) > 1


def test_few_people_are_not_taken_for_people_with_one_row_each() -> None:
    assert not Tail.of(one_bin(0, 100), 30.0).alike
