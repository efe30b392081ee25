"""Data-dependent mechanisms."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sfumato.audit.collection import Exhibit
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.mechanisms import DiscreteLaplace, Gaussian, Laplace
from sfumato.mechanisms.dependent import (
    ChosenQuantile,
    Everywhere,
    GaussianStableValue,
    LeverageReport,
    MeanReport,
    MovesReport,
    NoisyBound,
    PredictionVariance,
    ProposeTestRelease,
    Quantile,
    SearchTestRelease,
    Smooth,
    Stable,
    StableValue,
    StudentNoise,
    TestedRelease,
    Triangles,
    TrimmedMean,
)
from sfumato.noise.entropy import Source


def shown(make: Callable[[Source], Any], d0: object, d1: object) -> Exhibit:
    return Exhibit("dependent", make, d0, d1)


def part_of_a_hundred(data: list[int]) -> int:
    """A question that one person moves by at most 3 if there are six people or more."""
    return round(100 / max(len(data), 1))


def people_beyond_five(data: list[int]) -> int:
    return len(data) - 5


def smooth(source: Source) -> Smooth:
    """A median with noise at the scale of its smooth sensitivity."""
    return Smooth(Quantile(0, 8, p=Fraction(1, 2)), StudentNoise(4), 1.5, 0.3, source=source)


AXES = [[0.0, 1.0], [1.0, 0.0]]
EXHIBITS = (
    shown(lambda source: StableValue(0.5, 0.05, source=source), Stable("a", 0), Stable("b", 0)),
    shown(lambda source: GaussianStableValue(3.0, 0.3, source=source), Stable("a", 3), Stable("a", 2)),
    shown(
        lambda source: ProposeTestRelease(
            Quantile(0, 30), 2, DiscreteLaplace(1.0, source=source), DiscreteLaplace(2.0, source=source), 0.1
        ),
        [0] * 4 + [2] * 4,
        [0] * 4 + [2] * 5,
    ),
    shown(
        lambda source: TestedRelease(
            Laplace(3.0, source=source).on(part_of_a_hundred, 3),
            LaplaceLoss(1.0),
            people_beyond_five,
            Gaussian(3.0, source=source),
            0.3,
        ),
        [0] * 12,
        [0] * 11,
    ),
    shown(
        lambda source: NoisyBound(Triangles(6), DiscreteLaplace(1.0, source=source), Laplace(1.0, source=source), 0.1),
        [(0, 1), (1, 2), (0, 2)],
        [(0, 1), (1, 2)],
    ),
    shown(
        lambda source: SearchTestRelease(
            Quantile(0, 30), (1, 2, 4), 1.0, Laplace(2.0, source=source), 0.2, source=source
        ),
        [0] * 9 + [2] * 9,
        [0] * 9 + [2] * 10,
    ),
    shown(
        lambda source: LeverageReport(PredictionVariance((0.6, 0.8)), DiscreteLaplace(1.0, source=source), 0.1),
        AXES * 4,
        AXES * 3 + AXES[:1],
    ),
    shown(
        lambda source: MeanReport(
            TrimmedMean(0, 8, trim=0), DiscreteLaplace(2.0, source=source), DiscreteLaplace(8.0, source=source), 0.1
        ),
        [8] * 6,
        [8] * 5,
    ),
    shown(
        lambda source: MovesReport(Quantile(0, 8), DiscreteLaplace(4.0, source=source), 0.5, 4, 0.1),
        [4] * 3,
        [4] * 2,
    ),
    shown(lambda source: Everywhere(TrimmedMean(0, 8), Laplace(4.0, source=source)), [0, 8], [0, 8, 8]),
    shown(lambda source: ChosenQuantile(Quantile(0, 8), 1.0, source=source), [2], [2, 6]),
    shown(smooth, [], [8]),
    shown(lambda source: smooth(source).with_error(4.0), [0, 0, 8, 8, 8], [0, 0, 8, 8]),
)
