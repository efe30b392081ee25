"""Per-instance privacy: the bounds of published reports hold for each person, and reports cost what they state."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.mechanisms.dependent import (
    Instances,
    Kept,
    LeverageReport,
    Leverages,
    MeanReport,
    Means,
    Moves,
    MovesReport,
    PredictionVariance,
    Quantile,
    Reciprocal,
    TrimmedMean,
    TrimmedShare,
)
from tests.noise.sources import Recorded

MEAN = TrimmedMean(-10, 30, 0.5, trim=0)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 60, 400])
def test_a_mean_moves_by_no_more_than_the_report_says_for_each_value(size):
    """Fails by chance for one in a million reports."""
    rng = np.random.default_rng(size)
    values = [*rng.normal(12, 9, size)]
    report = MeanReport(MEAN, sf.Gaussian(3.0), sf.Gaussian(60.0)).release(values)
    moves = Instances.of(MEAN, values).moves
    for value, move in zip(values, moves, strict=True):
        assert move <= Fraction(report.moved(value)) <= 40
    if size == 400:
        near, far = report.moved(12.0), report.moved(-1000.0)
        assert near < far < 0.1 and far == report.moved(-10.0) == report.moved(float("nan"))
        assert report.loss(sf.Gaussian(0.5), 12.0).mu < report.loss(sf.Gaussian(0.5), 25.0).mu < 0.2


def test_a_mean_report_says_nothing_about_nobody():
    assert Means(MEAN, 1, Fraction(0), Fraction(0)).moved(3.0) == 40.0
    assert Means(MEAN, 3, Fraction(2), Fraction(4)).moved(10.0) == 4.0


def test_a_mean_report_costs_its_count_and_its_sum():
    report = MeanReport(MEAN, sf.Gaussian(2.0), sf.Gaussian(100.0))
    assert report.half == 40
    assert report.loss() == sf.Gaussian(2.0).loss(1) + sf.Gaussian(100.0).loss(40)
    for one in ([30.0], [-10.0], [0.0]):  # a person more moves the sum by no more than that
        x, y = (MEAN.order_values([*([5.0] * 9), *more]) for more in ([], one))
        sums = [int(z.up_to(z.size)) - report.middle * z.size for z in (x, y)]
        assert abs(sums[0] - sums[1]) <= report.half


@pytest.mark.parametrize(
    "statistic",
    [Quantile(0, 1000), Quantile(0, 1000, p=Fraction(9, 10)), TrimmedMean(0, 1000, trim=3),
     TrimmedShare(0, 1000, share=Fraction(1, 10))],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("size", [0, 3, 40, 300])
def test_nobody_moves_a_statistic_by_more_than_its_report_says(statistic, size):
    """Fails by chance for one in a million reports."""
    values = np.random.default_rng(size).normal(500, 60, size)
    report = MovesReport(statistic, sf.Gaussian(16.0)).release(values)
    assert all(move <= Fraction(report.most) for move in Instances.of(statistic, values).moves)
    assert Fraction(report.most) >= statistic.local(values)
    assert size < 300 or report.most < 500


def test_a_report_on_moves_costs_its_noise():
    report = MovesReport(Quantile(0, 1000), sf.Gaussian(8.0))
    assert report.loss().mu == 0.5  # four rungs
    assert MovesReport(Kept.median(9, 0, 100), sf.Gaussian(8.0)).loss().relation is sf.ReplaceOne
    assert MovesReport(Reciprocal(), sf.Gaussian(8.0)).release(1000).most < 0.05
    assert Moves(2.0).loss(sf.Gaussian(8.0)) == sf.Gaussian(8.0).loss(2)


def test_what_is_no_report_is_refused():
    for wrong in (
        lambda: MeanReport(TrimmedMean(0, 1, trim=1), sf.Gaussian(1.0), sf.Gaussian(1.0)),
        lambda: MeanReport(MEAN, sf.Gaussian(1.0, 0.5), sf.Gaussian(1.0)),
        lambda: MeanReport(MEAN, sf.Gaussian(1.0), 3.0),
        lambda: MeanReport(MEAN, sf.Gaussian(1.0), sf.Gaussian(1.0), miss=0),
        lambda: MovesReport(3, sf.Gaussian(1.0)),
        lambda: MovesReport(Quantile(0, 9), "noise"),
    ):
        with pytest.raises(InvalidParameter):
            wrong()


def test_each_person_loses_what_the_answer_moves_without_her():
    mean, data = TrimmedMean(0, 100, trim=0), [10, 20, 90]
    found = Instances.of(mean, data)
    assert found.moves == (15, 10, 25)
    assert [loss.mu for loss in found.losses(sf.Gaussian(5.0))] == [3.0, 2.0, 5.0]
    assert max(found.moves) <= mean.at_distance(data, 0)
    assert "25" not in repr(found)
    assert Instances.of(Quantile(0, 100), data).moves == (0, 10, 10)  # medians 20; then 20, 10, 10


def test_a_report_of_leverages_bounds_what_each_person_loses():
    rng, variance = np.random.default_rng(3), PredictionVariance((0.6, 0.8), ridge=1.0)
    data = rng.normal(size=(300, 2))
    report = LeverageReport(variance, sf.DiscreteLaplace(2.0, source=Recorded("leverage")), 1e-9).release(data)
    assert 20 < report.least <= variance.eigenvalue(data)
    short = data / np.maximum(1, np.linalg.norm(data, axis=1, keepdims=True))
    moves = Instances.of(variance, data.tolist()).moves[:40]
    for move, row in zip(moves, short, strict=False):
        assert move <= report.moved(row) * (1 + 1e-5) < float(variance.everywhere) / 100
        assert report.loss(sf.Gaussian(1.0, 2**-20), row).mu == report.moved(row)
    assert Leverages(variance, 1).moved([1.0, 0.0]) >= variance.everywhere


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Instances.of(len, [1]),
        lambda: LeverageReport(Quantile(0, 9), sf.Gaussian(1.0)),
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()
