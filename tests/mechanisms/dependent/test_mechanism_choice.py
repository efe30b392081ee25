"""The choice of a mechanism: it costs no more than asked, gives a reason, and depends on public facts alone."""

import inspect
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms.dependent import (
    ChosenQuantile,
    Everywhere,
    Given,
    Kept,
    Maximum,
    Minimum,
    NoisyBound,
    PredictionVariance,
    ProposeTestRelease,
    Quantile,
    Reciprocal,
    Smooth,
    StudentNoise,
    Triangles,
    TrimmedMean,
    at,
    on_ledger,
)
from sfumato.mechanisms.dependent.trimmed_mean import TrimmedShare

WAYS = [
    (Quantile(0, 1000), {}, ChosenQuantile),
    (Quantile(0, 1000), {"bound": 3}, ProposeTestRelease),
    (Kept.median(99, 0, 1000), {"bound": 3}, ProposeTestRelease),
    (Triangles(1000), {}, NoisyBound),
    (Triangles(10), {}, Everywhere),  # what the bound needs for itself is more than the worst case
    (Kept.trimmed(99, 40, 0, 1000, 0.25), {"step": 0.25}, Smooth),
    (TrimmedMean(0, 1000, trim=9), {}, Smooth),
    (Reciprocal(), {"step": 2**-10}, Smooth),
    (Reciprocal(), {"step": 0.5}, Everywhere),  # as coarse as the worst case
    (Reciprocal(), {}, Smooth),
    (Reciprocal(), {"bound": 1e-5}, ProposeTestRelease),
    (PredictionVariance((0.6, 0.8)), {}, Smooth),
    (TrimmedMean(0, 1, step=2**-10, trim=9), {}, Smooth),  # a range of one
]
each = pytest.mark.parametrize(("statistic", "more", "kind"), WAYS, ids=str)


@each
def test_a_way_on_a_ledger_costs_no_more_than_asked(statistic, more, kind):
    way = on_ledger(statistic, 0.5, 1e-6, **more)
    assert isinstance(way.mechanism, kind) and len(way.why) > 20
    assert way.mechanism.loss().relation is statistic.relation
    assert 0.4 < way.mechanism.loss().gdp(slack=1e-6 * (1 + 1e-9)).upper <= 0.5 * (1 + 5e-5)


@each
def test_a_way_at_epsilon_and_delta_costs_no_more_than_asked(statistic, more, kind):
    way = at(statistic, 1.0, 1e-6, **more)
    assert isinstance(way.mechanism, kind)
    assert way.mechanism.loss().delta(1.0).upper <= 1e-6 * (1 + 1e-9)
    assert way.mechanism.loss().delta(0.9).upper > 1e-6, "and not much less"


def test_pure_differential_privacy_has_its_ways_too():
    for statistic in (Quantile(0, 1000), Triangles(1000), Reciprocal()):
        way = at(statistic, 1.0)
        assert way.mechanism.loss().delta(1.0 + 1e-9).upper == 0
        assert not isinstance(way.mechanism, NoisyBound)


def test_ways_are_taken_before_data_are_there():
    for choose in (on_ledger, at):
        assert "data" not in inspect.signature(choose).parameters


def test_answers_come_out():
    assert 400 < on_ledger(Quantile(0, 1000), 2.0).mechanism.release([500] * 99 + [600]) < 600
    assert at(Quantile(0, 1000), 1.0, 1e-6, bound=3).mechanism.release([1, 1000]) is None
    assert isinstance(at(Reciprocal(), 1.0, step=2**-10).mechanism.release([1] * 9), float)


@pytest.mark.parametrize("choose", [on_ledger, at])
@pytest.mark.parametrize(
    ("statistic", "data", "near"),
    [
        (Reciprocal(), 1000, 1e-4),
        (PredictionVariance((0.6, 0.8)), [[0.6, 0.8], [0.8, -0.6]] * 200, 1e-3),
        (TrimmedMean(0, 1, step=2**-10, trim=5), [i / 256 for i in range(257)], 0.2),
        (TrimmedMean(0, 1000, trim=5), list(range(400, 600)), 90.0),
    ],
)
def test_answers_of_real_statistics_are_as_fine_as_their_range(choose, statistic, data, near):
    """Without a step: .001 is not answered by 0, 1 or −2."""
    mechanism = choose(statistic, 2.0, 1e-6).mechanism
    answers = [mechanism.release(data) for _ in range(5)]
    assert sum(abs(answer - float(statistic.value(data))) < near for answer in answers) >= 4
    assert len(set(answers)) == 5, "not rounded to few numbers"
    assert float(mechanism.lattice.step) <= float(statistic.span) / 2**30


def test_whole_statistics_have_whole_answers():
    assert isinstance(on_ledger(Triangles(10), 1.0).mechanism.release([(0, 1)]), int)
    assert at(Kept.median(9, 0, 8), 1.0, 1e-6).mechanism.release(list(range(9))) % 1 == 0


def test_a_step_is_asked_for_where_no_range_is_known():
    count = Given(len, lambda data, most: [1] * (most + 1), 1)
    for choose in (on_ledger, at):
        with pytest.raises(SfumatoError, match="give step="):
            choose(count, 1.0)
        assert choose(count, 1.0, step=1).mechanism.release([0] * 9) % 1 == 0
    with pytest.raises(SfumatoError, match="give step="):
        Smooth(count, StudentNoise(4), 0.5, 0.1)


def test_noise_so_fine_or_so_large_that_no_step_would_do_finds_one():
    assert abs(at(Reciprocal(), 1e-8).mechanism.release(1000)) < 1e10
    assert abs(at(Reciprocal(10**6), 1.0, 1e-6).mechanism.release(10**7)) < 1e-4


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: on_ledger(Minimum(0, 9), 1.0),
        lambda: at(Maximum(0, 9), 1.0),
        lambda: at(Quantile(0, 9), 1.0, bound=2),
        lambda: at(len, 1.0),
        lambda: on_ledger(Quantile(0, 9), -1.0),
        lambda: Everywhere(len, sf.Gaussian(1.0)),
        lambda: Everywhere(Reciprocal(), sf.DiscreteLaplace(1.0)),
        lambda: Everywhere(Reciprocal(), sf.Laplace(0.5)),  # integers, about numbers below 1
        lambda: at(Reciprocal(), 1.0, step=1),
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()


@pytest.mark.parametrize("rows", [1, 30, 10_000, 10**6])
@pytest.mark.parametrize("price", [1e-6, 0.01, 1.0, 3.0])
def test_no_way_works_on_more_numbers_than_fit_into_memory(rows, price):
    """A trimmed mean of people with a million rows each, at a tiny price, would need 10⁹ sensitivities."""
    statistic = TrimmedShare(0, 1000, 1, Fraction(1, 10), rows)
    for choose in (on_ledger, at):
        mechanism = choose(statistic, price, 1e-9, step=Fraction(1, 1024)).mechanism
        assert isinstance(mechanism, Everywhere) or statistic.work(mechanism.ladder.window - 1) <= 1 << 20
