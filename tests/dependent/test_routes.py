"""Ways to an answer: each costs no more than asked, says why, and is taken by public facts alone."""

import inspect

import pytest

import sfumato as sf
from sfumato.dependent import (
    ChosenQuantile,
    Everywhere,
    Kept,
    Maximum,
    Minimum,
    NoisyBound,
    ProposeTestRelease,
    Quantile,
    Reciprocal,
    Smooth,
    Triangles,
    TrimmedMean,
    at,
    on_ledger,
)
from sfumato.errors import SfumatoError

WAYS = [
    (Quantile(0, 1000), {}, ChosenQuantile),
    (Quantile(0, 1000), {"bound": 3}, ProposeTestRelease),
    (Kept.median(99, 0, 1000), {"bound": 3}, ProposeTestRelease),
    (Triangles(1000), {}, NoisyBound),
    (Triangles(10), {}, Everywhere),  # what the bound needs for itself is more than the worst case
    (Kept.trimmed(99, 40, 0, 1000, 0.25), {"step": 0.25}, Smooth),
    (TrimmedMean(0, 1000, trim=9), {}, Smooth),
    (Reciprocal(), {"step": 2**-10}, Smooth),
    (Reciprocal(), {"step": 1}, Everywhere),  # finer than the answer needs
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
        way = at(statistic, 1.0, step=2**-10 if isinstance(statistic, Reciprocal) else 1)
        assert way.mechanism.loss().delta(1.0 + 1e-9).upper == 0
        assert not isinstance(way.mechanism, NoisyBound)


def test_ways_are_taken_before_data_are_there():
    for choose in (on_ledger, at):
        assert "data" not in inspect.signature(choose).parameters


def test_answers_come_out():
    assert 400 < on_ledger(Quantile(0, 1000), 2.0).mechanism.release([500] * 99 + [600]) < 600
    assert at(Quantile(0, 1000), 1.0, 1e-6, bound=3).mechanism.release([1, 1000]) is None
    assert isinstance(at(Reciprocal(), 1.0, step=2**-10).mechanism.release([1] * 9), float)


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
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()
