"""Counts, sums, means and histograms: how far one person moves them, and that nobody's value is refused."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.loss import DiscreteLaplaceLoss, GaussianLoss, LaplaceLoss
from sfumato.mechanisms.additive.bounded_statistics import clip_to_steps, exact_sum, value_sensitivity
from sfumato.noise import Lattice
from tests.noise.sources import Recorded

QUIET = 0.001  # noise that is 0 but for a chance of e^-500
quiet = sf.DiscreteLaplace(QUIET)
ODD = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 10**400, -(10**400), None, "7", "x", [1], {}, Decimal("NaN"), 1j]
ODD += [Fraction(7, 2), True, np.float32(2.5), np.int8(3), 2**63, -(2**63), 1e308, object()]
people = st.lists(
    st.one_of(
        st.integers(),
        st.integers(-20, 20),
        st.floats(),
        st.sampled_from(ODD),
        st.integers(2**53, 2**54),
    ),
    max_size=8,
)


def test_what_is_released_is_the_statistic():
    assert sf.Count(quiet).release([3, 1, 2]) == 3
    assert sf.BoundedSum(quiet, 1, 10).release([3, 1, 20, -4]) == 3 + 1 + 10 + 1
    assert sf.BoundedSum(sf.Gaussian(QUIET, step=0.25), 0, 2).release([0.3, 0.4, 9.0]) == 0.25 + 0.5 + 2
    assert sf.BoundedMean(quiet, quiet, 1, 10).release([1, 2, 3, 10]) == 4
    assert sf.BoundedMean(sf.Laplace(QUIET / 4, step=0.25), quiet, 0, 10).release(np.array([1.0, 2.5])) == 1.75
    assert sf.Histogram(quiet, range(1, 4)).release([1, 3, 3, 7, 1.0, "x"]).tolist() == [2, 0, 2]
    assert sf.Histogram(quiet, "ab").release(np.array(["a", "b", "b"])).tolist() == [1, 2]


def test_prices_are_those_of_the_sensitivities():
    noise = sf.Laplace(10)
    assert sf.Count(noise).loss() == LaplaceLoss(0.1)
    assert sf.Count(noise, sf.ReplaceOne).loss() == LaplaceLoss(0.1, relation=sf.ReplaceOne)
    assert sf.BoundedSum(noise, -5, 10).loss() == LaplaceLoss(1.0)
    assert sf.BoundedSum(noise, -5, 10, sf.ReplaceOne).loss() == LaplaceLoss(1.5, relation=sf.ReplaceOne)
    assert sf.Histogram(noise, "abc").loss() == LaplaceLoss(0.1)
    assert sf.Histogram(noise, "abc", sf.ReplaceOne).loss() == 2 * LaplaceLoss(0.1, relation=sf.ReplaceOne)
    assert sf.Histogram(noise, "a", sf.ReplaceOne).loss() == LaplaceLoss(0.1, relation=sf.ReplaceOne)
    assert sf.Histogram(sf.Gaussian(10), "abc").loss() == GaussianLoss(0.1)
    mean = sf.BoundedMean(sf.DiscreteLaplace(20), sf.DiscreteLaplace(4), 1, 10)
    assert mean.loss() == DiscreteLaplaceLoss(20, 5) + DiscreteLaplaceLoss(4, 1)  # the middle is 5


@given(people, people, people)
def test_one_person_moves_a_sum_by_no_more_than_the_sensitivity(before, one, after):
    """Whoever the others are: their values are the same steps with and without the one."""
    for low, high, step in ((-3, 10, 1), (2, 2**60, 0.5), (-(2**61), 2**61, 1), (-8, 8, 4)):
        lattice = Lattice.within(step)
        first, last = int(Fraction(low) / lattice.step), int(Fraction(high) / lattice.step)
        rest = clip_to_steps(before + after, lattice, first, last).tolist()
        for x in one:
            with_one = clip_to_steps([*before, x, *after], lattice, first, last).tolist()
            assert with_one[: len(before)] + with_one[len(before) + 1 :] == rest
            assert first <= with_one[len(before)] <= last


@given(st.lists(st.integers(-(2**62), 2**62), max_size=50))
def test_sums_do_not_wrap(values):
    assert exact_sum(np.array(values, np.int64)) == sum(values)


def test_sums_beyond_64_bits_are_put_at_the_end():
    noise = sf.DiscreteLaplace(1, source=Recorded("end"))
    found = sf.BoundedSum(noise, 0, 2**61).release(np.full(9, 2**62))
    assert 2**63 - 100 < found <= 2**63 - 1


@pytest.mark.parametrize("data", [[], ODD, [None] * 3, np.array([]), np.array(ODD, dtype=object), (x for x in ODD)])
def test_no_value_is_refused(data):
    data = list(data) if not isinstance(data, np.ndarray) else data
    assert type(sf.BoundedSum(quiet, -5, 10).release(data)) is int
    assert -5 <= sf.BoundedMean(quiet, quiet, -5, 10).release(data) <= 10
    assert sf.Histogram(quiet, [1, 2, None]).release(data).shape == (3,)
    assert sf.Count(quiet).release(data) == len(data)


def test_what_is_no_number_counts_as_the_value_next_to_zero():
    assert sf.BoundedSum(quiet, 3, 10).release([None, math.nan, "x"]) == 9
    assert sf.BoundedSum(quiet, -9, 10).release([None, math.nan, "x"]) == 0
    assert sf.BoundedSum(quiet, -9, 10).release(np.array([math.nan, math.inf, -math.inf])) == 1


def test_an_array_and_a_list_give_the_same_sum():
    rng = np.random.default_rng(5)
    for step in (0.25, 1, 4):
        noise = sf.DiscreteLaplace(QUIET * step, step)
        total = sf.BoundedSum(noise, -64, 64)
        for values in (rng.normal(0, 50, 200), rng.integers(-90, 90, 200), rng.integers(0, 250, 200).astype(np.uint8)):
            assert total.release(values) == total.release(values.tolist())


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.Count(3),
        lambda: sf.Count(sf.Gaussian(4, step=4)),
        lambda: sf.Count(quiet).release(5),
        lambda: sf.BoundedSum(quiet, 10, 1),
        lambda: sf.BoundedSum(quiet, 0.5, 1),
        lambda: sf.BoundedSum(quiet, math.nan, 1),
        lambda: sf.BoundedSum(quiet, 0, math.inf),
        lambda: sf.BoundedSum(quiet, 0, 1, "add"),
        lambda: sf.BoundedSum(quiet, 0, 1).release(np.zeros((2, 2))),
        lambda: sf.BoundedSum(quiet, 0, 1).release(5),
        lambda: sf.BoundedSum(quiet, 0, 1).release("123"),
        lambda: sf.BoundedMean(quiet, sf.Gaussian(4, step=4), 0, 1),
        lambda: sf.BoundedMean.of(0, 0, 1),
        lambda: sf.BoundedMean.of(1, 1, 1),
        lambda: sf.Histogram(quiet, []),
        lambda: sf.Histogram(quiet, "aa"),
    ],
)
def test_nonsense_is_refused_in_words(make):
    with pytest.raises(InvalidParameter, match="do:"):
        make()


def test_a_mean_by_name_is_pure_and_near():
    """The distance from 5.5: 2.25 times 10⁴ people; noise of scale 10 and 2 is below 500 but for a chance of e^-50."""
    mean = sf.BoundedMean.of(1.0, 1, 10)
    assert mean.loss().epsilon(0).upper <= 1 + 1e-12
    assert abs(mean.release([10, 6] * 5000) - 8) < 0.2


def test_the_error_of_a_histogram_is_about_all_its_counts():
    """P(all 10 within the 90 % radius) ≥ 0.9: 2000 histograms, off by 6 deviations with a chance below 1e-8."""
    histogram = sf.Histogram(sf.Gaussian(3, source=Recorded("histogram")), range(10))
    data, radius = [3] * 7 + [4] * 2, histogram.error(0.9)
    truth = np.array([Counter(data)[k] for k in range(10)])
    inside = np.mean([np.all(np.abs(histogram.release(data) - truth) <= radius) for _ in range(2000)])
    assert inside >= 0.9 - 6 * math.sqrt(0.09 / 2000)
    assert histogram.error(0.9) > sf.Count(sf.Gaussian(3)).error(0.9)


def test_no_repr_shows_private_values_and_statistics_are_parts_of_chains():
    chain = sf.Chain((sf.Count(sf.Laplace(2)), sf.BoundedSum(sf.Laplace(20), 1, 10)))
    assert chain.loss() == 2 * LaplaceLoss(0.5)
    assert len(chain.release([1, 2, 3])) == 2


# ---- the error of a mean ---------------------------------------------------------------------------------------------


def mean_missed(mechanism, scales, n, t):
    """The largest P(|answer − mean| > t) over all sums that n values from low to high can have, noise by noise."""
    low, high = int(mechanism.low), int(mechanism.high)
    noise, more = (np.arange(-int(18 * scale) - 3, int(18 * scale) + 4) for scale in scales)
    chances = [np.exp(-np.abs(x) / scale) for x, scale in zip((noise, more), scales, strict=True)]
    joint = np.outer(*(weights / weights.sum() for weights in chances))
    middle, people, worst = (low + high) // 2, np.maximum(1, n + more)[None, :], 0.0
    for total in range(n * low, n * high + 1):
        answer = np.clip(middle + (total - n * middle + noise[:, None]) / people, low, high)
        worst = max(worst, joint[np.abs(answer - total / n) > t].sum())
    return worst


@pytest.mark.parametrize(("high", "n"), [(4, 15), (9, 20), (1, 40), (2, 90)])
def test_the_error_of_a_mean_holds_for_all_values_and_is_not_wasteful(high, n):
    scales = (0.75 * (high + 1), 1.25)
    noises = [sf.DiscreteLaplace(scale) for scale in scales]
    mechanism = sf.BoundedMean(*noises, 0, high)
    for confidence in (0.5, 0.9, 0.99):
        t = mechanism.error(confidence, count=n)
        assert mean_missed(mechanism, scales, n, t) <= 1 - confidence
        assert mean_missed(mechanism, scales, n, 0.99 * t - 1.0 / n) > 1 - confidence


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_error_of_a_mean_of_few_holds(n):
    mechanism = sf.BoundedMean(sf.DiscreteLaplace(1.0), sf.DiscreteLaplace(0.6), -1, 2)
    for confidence in (0.2, 0.5, 0.8, 0.95):
        t = mechanism.error(confidence, count=n)
        assert t <= 3 and mean_missed(mechanism, (1.0, 0.6), n, t) <= 1 - confidence


def test_the_error_of_a_mean_falls_with_the_count_and_never_exceeds_the_range():
    mechanism = sf.BoundedMean(sf.Gaussian(40.0, 0.25), sf.DiscreteGaussian(3.0), 0, 50)
    errors = [mechanism.error(0.95, count=n) for n in (1, 5, 10, 30, 100, 1000, 10**6, 10**15)]
    assert errors == sorted(errors, reverse=True) and errors[0] == 50 and errors[-1] < 1e-12
    wide = sf.BoundedMean.of(1.0, 0, 1, 2**-40)
    assert wide.error(0.95, count=1000) == pytest.approx(
        sf.BoundedMean.of(1.0, 0, 1, 2**-9).error(0.95, count=1000), rel=0.01
    )


@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_means_miss_their_error_no_more_often_than_said(share):
    """2,000 recorded releases; 5 standard deviations above the promise: by chance below 1e-6."""
    source = Recorded(f"means {share}")
    mechanism = sf.BoundedMean(sf.Laplace(10.0, source=source), sf.Laplace(2.0, source=source), 0, 10)
    data = np.array([10] * int(100 * share) + [0] * (100 - int(100 * share)))
    t = mechanism.error(0.9, count=100)
    wrong = sum(abs(mechanism.release(data) - data.mean()) > t for _ in range(2000))
    assert wrong <= 200 + 5 * np.sqrt(180)


@pytest.mark.parametrize("count", [0, -1, 2.5, "3", None])
def test_a_mean_of_nobody_has_no_error(count):
    with pytest.raises(InvalidParameter):
        sf.BoundedMean.of(1.0, 0, 1).error(count=count)


@given(first=st.integers(-(2**70), 2**70), width=st.integers(0, 2**70), exponent=st.sampled_from([-40, 0, 20]))
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_what_one_value_moves_a_sum_by_is_never_below_the_exact_distance(relation, first, width, exponent):
    """Of more steps than a double has bits as well."""
    last, lattice = first + width, Lattice(exponent)
    found = value_sensitivity(lattice, first, last, relation)
    moves = [abs(first), abs(last)] if relation is sf.AddRemove else [width]
    assert min(Fraction(size) for size in (found.linf, found.l1, found.l2)) >= max(moves) * lattice.step
