"""The examples that every mechanism states beside itself; a class without one fails a test.

Mechanisms of `dependent` and `groups` that state none yet are listed here.
"""

import inspect
import math
from fractions import Fraction

import numpy as np

import sfumato as sf
from sfumato import dependent, groups
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.base import shipped_mechanisms
from sfumato.mechanisms.examples import (
    HUGE,
    INTEGERS,
    LARGEST_DOUBLE,
    LEAST_DOUBLE,
    NO_NUMBERS,
    ROWS_OF_NUMBERS,
    WHOLE,
    Example,
    Inputs,
    Neighbours,
)

STABLE = Inputs("stable values", tuple(dependent.Stable(1, d) for d in (0, -5, HUGE, -HUGE, np.int64(3), True)))
STABLE_PAIRS = (
    Neighbours(dependent.Stable("a", 3), dependent.Stable("a", 2)),
    Neighbours(dependent.Stable("a", 0), dependent.Stable("b", 0)),
)
ROWS = Inputs("numbers, one per person", ROWS_OF_NUMBERS, ())
AXES = [[0.0, 1.0], [1.0, 0.0]]


def part_of_a_hundred(data):
    """A question that one person moves by at most 3 if there are six people or more."""
    return round(100 / max(len(data), 1))


def people_beyond_five(data):
    return len(data) - 5


def smooth() -> Mechanism:
    """A median with noise at the scale of its smooth sensitivity."""
    middle = dependent.Quantile(0, 8, p=Fraction(1, 2))
    return dependent.Smooth(middle, dependent.StudentNoise(4), 1.5, 0.3)


def listed() -> list[Example]:
    """Examples of classes that state none."""
    one = Fraction(1)
    counts = Inputs("integers", INTEGERS.extremes, (*NO_NUMBERS, 1.5, math.nan))
    return [
        Example(dependent.StableValue(0.5, 0.05), STABLE_PAIRS, STABLE, step=one),
        Example(dependent.GaussianStableValue(3.0, 0.3), STABLE_PAIRS, STABLE, step=one),
        Example(
            dependent.ProposeTestRelease(
                dependent.Quantile(0, 30), 2, sf.DiscreteLaplace(1.0), sf.DiscreteLaplace(2.0), 0.1
            ),
            (Neighbours([], [30]), Neighbours([0] * 4 + [2] * 4, [0] * 4 + [2] * 5)),
            ROWS,
            step=one,
        ),
        Example(
            dependent.TestedRelease(
                sf.Laplace(3.0).on(part_of_a_hundred, 3),
                sf.loss.LaplaceLoss(1.0),
                people_beyond_five,
                sf.Gaussian(3.0),
                0.3,
            ),
            (Neighbours([0] * 12, [0] * 11), Neighbours([0], [0, 0]), Neighbours([0] * 5, [0] * 6)),
            Inputs("data", ([], [math.nan], {}), ()),
            step=one,
        ),
        Example(
            dependent.NoisyBound(dependent.Triangles(6), sf.DiscreteLaplace(1.0), sf.Laplace(1.0), 0.1),
            (Neighbours([(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]),),
            Inputs("edges", ([], np.zeros((0, 2), int), [(0, 0), (-1, 99), (2**62, 1)]), ()),
            step=one,
        ),
        Example(
            dependent.SearchTestRelease(dependent.Quantile(0, 30), (1, 2, 4), 1.0, sf.Laplace(2.0), 0.2),
            (Neighbours([], [30]), Neighbours([0] * 9 + [2] * 9, [0] * 9 + [2] * 10)),
            ROWS,
        ),
        Example(
            dependent.LeverageReport(dependent.PredictionVariance((0.6, 0.8)), sf.DiscreteLaplace(1.0), 0.1),
            (Neighbours(AXES * 4, AXES * 3 + AXES[:1]),),
            Inputs(
                "rows of numbers",
                (
                    [],
                    np.zeros((0, 2)),
                    [[math.nan, math.inf], [LARGEST_DOUBLE, -LARGEST_DOUBLE], [LEAST_DOUBLE, -0.0]],
                ),
                (),
            ),
        ),
        Example(
            dependent.MeanReport(dependent.TrimmedMean(0, 8, trim=0), sf.Laplace(2.0), sf.Laplace(8.0), 0.1),
            (Neighbours([2] * 9, [2] * 8), Neighbours([0, 8], [0, 8, 8])),
            ROWS,
        ),
        Example(
            dependent.MovesReport(dependent.Quantile(0, 8), sf.DiscreteLaplace(4.0), 0.3, miss=0.4),
            (Neighbours([4] * 5, [4] * 6), Neighbours([4] * 4, [4] * 5)),
            ROWS,
        ),
        Example(
            dependent.Everywhere(dependent.TrimmedMean(0, 8), sf.Laplace(4.0)),
            (Neighbours([0, 0], [0, 0, 8]), Neighbours([0, 8], [0, 8, 8])),
            ROWS,
            step=one,
        ),
        Example(
            dependent.ChosenQuantile(dependent.Quantile(0, 8), 1.0),
            (Neighbours([2], [2, 6]), Neighbours([], [7]), Neighbours([0, 0, 8], [0, 0, 8, 8])),
            Inputs(ROWS.name, ROWS_OF_NUMBERS),
            step=one,
        ),
        Example(
            smooth(),
            (Neighbours([], [8]),),
            Inputs(ROWS.name, ([], [0] * 9, [8, 0, 4], [math.nan, math.inf]), ()),
            step=one,
        ),
        Example(
            smooth().with_error(4.0),
            (Neighbours([0, 0, 8, 8, 8], [0, 0, 8, 8]),),
            Inputs(ROWS.name, ([], [0] * 9), ()),
        ),
        *(
            Example(
                groups.Transformed(transform, sigma),
                (Neighbours(0, 1), Neighbours(1, 2), Neighbours(6, 5)),
                counts,
                rows=True,
            )
            for transform, sigma in ((groups.Asinh(2.0), 0.4), (groups.Log(), 0.8), (groups.SquareRoot(), 0.9))
        ),
        Example(
            groups.ProductOfGaussians(0.5, 0.3),
            (Neighbours(0, 1), Neighbours(9, 8)),
            Inputs("integers", tuple(WHOLE)),
            step=one,
        ),
        Example(groups.ProportionalGaussian(0.5), (Neighbours(4, 3),), Inputs("integers", tuple(WHOLE)), step=one),
    ]


STATED = [example for kind in shipped_mechanisms() for example in kind.examples()]
EXAMPLES = [*STATED, *(one for one in listed() if not type(one.mechanism).examples())]


def concrete_classes() -> set[type]:
    """Every mechanism of the package that can be built."""
    return {kind for kind in shipped_mechanisms() if not inspect.isabstract(kind)}


def classes_with_examples() -> set[type]:
    """Classes of the examples."""
    return {type(example.mechanism) for example in EXAMPLES}
