"""Mechanisms, each on neighbours where its promise is tightest, as far as we know."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sfumato.audit.collection import Exhibit
from sfumato.mechanisms import (
    AboveThreshold,
    BoundedLaplace,
    BoundedMean,
    BoundedSum,
    Chain,
    Count,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Histogram,
    JointLaplace,
    Laplace,
    PartitionSelection,
    PermuteAndFlip,
    RandomizedResponse,
    ReportNoisyMax,
    StabilityHistogram,
    StableArgmax,
    Staircase,
    ThresholdSelection,
    TopK,
    TreeCounter,
    TruncatedLaplace,
)
from sfumato.mechanisms.choice.quantile import PureQuantile, Quantile, Ranked
from sfumato.sensitivity import ReplaceOne, Sensitivity

UP, DOWN = ([0, 1, 1, 1], [1, 0, 0, 0]), ([2, 0, 0, 0], [1, 1, 1, 1])
BOTH = (Sensitivity(l0=2, linf=1),)


def shown(
    make: Callable[..., Any], d0: object, d1: object, told: tuple[object, ...] = (), rows: bool = False
) -> Exhibit:
    return Exhibit("mechanisms", lambda source: make(source=source), d0, d1, told, rows)


def number(make: Callable[..., Any], d0: float = 0, d1: float = 1) -> Exhibit:
    """Noise on one number."""
    return shown(make, d0, d1, (abs(d1 - d0),), rows=True)


def several(make: Callable[..., Any], d0: object, d1: object) -> Exhibit:
    """Noise on two numbers, each of which moves by 1."""
    return shown(make, d0, d1, BOTH, rows=True)


def inside(make: Callable[..., Any], d0: object, d1: object, rows: bool = False) -> Exhibit:
    """A mechanism whose noise has the bits."""
    return Exhibit("mechanisms", make, d0, d1, rows=rows)


def larger_than_the_last(data: list[int], answers: tuple[int, ...]) -> int:
    """A question that looks at an answer."""
    return sum(x > min(answers[-1], 5) for x in data) if answers else len(data)


def ranked(*values: int) -> Ranked:
    """Values as `Quantile` reads them."""
    return Ranked.of(len(values), list(values), [1] * len(values), list(range(1, len(values) + 1)))


EXHIBITS = (
    number(lambda **s: Gaussian(1.0, **s)),
    number(lambda **s: Gaussian(1.0, 2**-10, **s), 0.0, 1.0),
    number(lambda **s: Gaussian(1.0, 2**-10, **s), 0.3, -0.7),
    several(lambda **s: Gaussian(2.0, **s), [0, 0], [1, 1]),
    number(lambda **s: Laplace(1.0, **s)),
    number(lambda **s: Laplace(1.0, 2**-40, **s), 0.25, 1.25),
    several(lambda **s: Laplace(2.0, **s), [0, 0], [1, 1]),
    number(lambda **s: DiscreteGaussian(1.0, **s)),
    number(lambda **s: DiscreteLaplace(1.0, **s)),
    number(lambda **s: DiscreteLaplace(1.0, **s), 2**63 - 2, 2**63 - 1),
    shown(lambda **s: JointLaplace(1.0, (1, 3), (0.375, 0), **s), [0, 0], [1, 3], rows=True),
    shown(lambda **s: JointLaplace(1.0, (2, 2), **s), [5, 0], [3, 2], rows=True),
    number(lambda **s: Staircase(1.0, **s)),
    number(lambda **s: Staircase(1.0, 1.0, 0.3, 2**-8, **s), 0.0, 1.0),
    number(lambda **s: TruncatedLaplace(2.0, 6, **s)),
    shown(lambda **s: BoundedLaplace(1.0, 0, 4, **s), 0, 1, (1,)),
    inside(lambda source: Laplace(1.0, source=source).clamped(0, 3).on(len, 1), [7], []),
    Exhibit("mechanisms", lambda source: Laplace(1.0, source=source).clamped(0, 3), 3, 2, (1,), rows=True),
    shown(lambda **s: RandomizedResponse(1.0, **s), False, True, rows=True),
    shown(lambda **s: RandomizedResponse(0.5, 5, **s), 4, 2, rows=True),
    shown(lambda **s: Exponential(1.0, 1, **s), *UP),
    shown(lambda **s: PermuteAndFlip(1.0, 1, **s), *DOWN),
    shown(lambda **s: ReportNoisyMax(1.0, 1, **s), *UP),
    shown(lambda **s: TopK(2, 0.5, 1, **s), *UP),
    shown(lambda **s: StableArgmax(0.5, 0.05, 1, **s), [2, 0], [1, 1]),
    shown(lambda **s: PartitionSelection(0.5, 0.05, 2, **s), {"a": 4, "b": 1}, {"a": 3}),
    shown(lambda **s: ThresholdSelection(1.0, 0.2, 2, **s), {"a": 1, "b": 1}, {}),
    shown(lambda **s: StabilityHistogram(1.0, 0.05, **s), {"a": 4}, {"a": 3}),
    shown(lambda **s: AboveThreshold(1.0, 0, **s), [0] * 5 + [1], [1] * 5 + [0]),
    shown(lambda **s: AboveThreshold(1.0, 0, 2, moves=1, **s), [0] * 4, [1] * 4),
    inside(lambda source: TreeCounter(4, DiscreteLaplace(3.0, source=source)), [1, 0, 0, 0], [0, 0, 0, 0]),
    inside(lambda source: Laplace(1.0, source=source).on(len, 1), [7, 7], [7]),
    inside(lambda source: Laplace(1.0, source=source).following(larger_than_the_last, 1), ([7, 7], (0,)), ([7], (0,))),
    inside(
        lambda source: Chain(
            (Count(Laplace(2.0, source=source)), Gaussian(2.0, source=source).following(larger_than_the_last, 1))
        ),
        [7, 7],
        [7],
    ),
    inside(lambda source: Count(DiscreteLaplace(1.0, source=source)), [1, 2], [1]),
    inside(lambda source: BoundedSum(Laplace(3.0, source=source), 0, 3), [float("inf"), 1], [1]),
    inside(lambda source: BoundedSum(Gaussian(1.0, 2**-20, source=source), -1, 1, ReplaceOne), [0.5, -9], [0.5, 9]),
    inside(lambda source: BoundedMean(Laplace(1.0, source=source), Laplace(1.0, source=source), 0, 4), [4], []),
    inside(lambda source: Histogram(DiscreteLaplace(1.0, source=source), ("a", 1, None)), ["a", 1], ["a"]),
    inside(lambda source: Histogram(Laplace(1.0, source=source), (0, 1), ReplaceOne), [0, 0], [0, 1]),
    shown(lambda **s: Quantile(2.0, Fraction(1, 2), 8, **s), ranked(2), ranked(2, 6)),
    shown(lambda **s: PureQuantile(2.0, Fraction(1, 2), 8, **s), ranked(2), ranked(2, 6)),
)
