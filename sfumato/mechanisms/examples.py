"""Examples that a mechanism states beside itself: parameters, neighbouring inputs, and values at the edge of numbers.

The auditor, the common checks of the tests and the table in docs/mechanisms.md are generated from these, so that a new
mechanism is one file. Everything here is public: the values are made up.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.mechanisms.base import Mechanism
from sfumato.noise.entropy import Source
from sfumato.sensitivity import Sensitivity

HUGE = 10**400
LEAST_DOUBLE, LARGEST_DOUBLE = 5e-324, 1.7976931348623157e308
NO_NUMBERS = (None, "1", object(), 1j, [None], [[1, 2], [3]])


@dataclass(frozen=True)
class Inputs:
    """A kind of private input: extreme values, none of which may be refused, and values whose type must be."""

    name: str
    extremes: tuple[object, ...] = field(repr=False)
    refused: tuple[object, ...] = field(default=NO_NUMBERS, repr=False)


WHOLE = (
    0, -1, True, 2**63 - 1, -(2**63), 2**64, HUGE, -HUGE, np.uint64(2**64 - 1), np.int64(-(2**63)), np.int8(-128),
)  # fmt: skip
WHOLE_STREAMS: tuple[object, ...] = ([], [0, HUGE, -HUGE], np.array([-(2**63), 2**63 - 1]), np.array([], np.int32))
REAL = (
    0.0, -0.0, math.nan, math.inf, -math.inf, LEAST_DOUBLE, -LEAST_DOUBLE, 2e-308, LARGEST_DOUBLE, -LARGEST_DOUBLE,
    2.0**53, 2.0**63, np.float32("nan"),
)  # fmt: skip
REAL_ROWS = (np.array(REAL, np.float64), [1.5, math.nan, HUGE], [0.5, -HUGE], np.zeros((0, 3)))
SCORE_ROWS = ([0], [0, 0, 0], [-HUGE, HUGE, 0], np.array([-(2**63), 2**63 - 1, 0]), [2**63, 2**63 - 1, 2**63 - 2])
REAL_SCORES = (
    [math.nan] * 3,
    [math.inf, -math.inf, math.nan],
    [LEAST_DOUBLE, -LEAST_DOUBLE, -0.0],
    [LARGEST_DOUBLE, -LARGEST_DOUBLE, 0.0],
)

INTEGERS = Inputs("integers", (*WHOLE, *WHOLE_STREAMS, [[1, 2], [3, 4]]))
REALS = Inputs("reals", (*REAL, *REAL_ROWS))
NUMBERS = Inputs("integers, reals", (*INTEGERS.extremes, *REALS.extremes))
STREAM = Inputs("a stream of integers", WHOLE_STREAMS)
WHOLE_SCORES = Inputs("whole scores", SCORE_ROWS)
SCORES = Inputs("scores", (*SCORE_ROWS, *REAL_SCORES))
KEY_COUNTS = Inputs(
    "people per key",
    (
        {},
        {"a": 0},
        {"a": -5, "b": 2**63},
        {"a": HUGE, "b": -HUGE},
        {math.nan: 3, math.inf: 1, -0.0: 2, LEAST_DOUBLE: 1},
    ),
)
ROWS_OF_NUMBERS: tuple[object, ...] = (
    [],
    [math.nan, math.inf, -math.inf, LEAST_DOUBLE, -0.0, LARGEST_DOUBLE, HUGE, -HUGE],
    np.array([-(2**63), 2**63 - 1]),
    np.array([math.nan, 1.0], np.float16),
    range(3),
)
DATA = Inputs("one value per person", (*ROWS_OF_NUMBERS, ["x", None, 1j, [], True]), (None, 1j, 3, "123"))


@dataclass(frozen=True)
class Neighbours:
    """Two inputs that differ in one person, and the arguments of `loss` for them: a sensitivity, or nothing."""

    first: object
    second: object
    loss_arguments: tuple[object, ...] = ()

    @staticmethod
    def numbers(first: float, second: float) -> "Neighbours":
        """A number, and by how much it moves."""
        return Neighbours(first, second, (abs(second - first),))

    @staticmethod
    def vectors(first: Sequence[float], second: Sequence[float]) -> "Neighbours":
        """Several numbers that move by the same amount."""
        return Neighbours(first, second, (Sensitivity(l0=len(first), linf=abs(second[0] - first[0])),))


@dataclass(frozen=True)
class Example:
    """A mechanism with its parameters, and neighbours on which its price is tight; the auditor takes the first pair.

    `inputs`: the kind of private value. `rows`: an array of values is answered value by value, quickly. `step`: numbers
    come out as multiples of it. `distance(value, answer)`: the number that `error(…, **error_arguments)` bounds, at the
    first value of the first pair.
    """

    mechanism: Mechanism[Any, Any]
    neighbours: tuple[Neighbours, ...]
    inputs: Inputs
    rows: bool = False
    step: Fraction | None = None
    distance: Callable[[Any, Any], float] | None = field(default=None, repr=False)
    error_arguments: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return repr(self.mechanism)

    def make(self, source: Source) -> Mechanism[Any, Any]:
        """The mechanism, drawing from this source."""
        return self.mechanism.with_source(source)


ZERO_ONE = Neighbours.numbers(0, 1)
BOTH = Neighbours.vectors([0, 0], [1, 1])
REAL_PAIRS = (
    Neighbours.numbers(0.0, 1.0),
    Neighbours.numbers(0.3, -0.7),
    Neighbours.vectors([0.25, -0.75], [1.25, 0.25]),
)
UP, DOWN = Neighbours([0, 1, 1, 1], [1, 0, 0, 0]), Neighbours([2, 0, 0, 0], [1, 1, 1, 1])
HALVES = Neighbours([0.0, 0.5, 0.5], [0.5, 0.0, 0.0])


def number_example(mechanism: Mechanism[Any, Any], *neighbours: Neighbours, inputs: Inputs = INTEGERS) -> Example:
    """Noise on numbers, which has a `step`; `error` bounds the largest error of all coordinates."""
    first = neighbours[0].first
    return Example(
        mechanism,
        neighbours,
        inputs,
        rows=True,
        step=Fraction(getattr(mechanism, "step")),  # noqa: B009  # not every mechanism has one
        distance=lambda value, answer: float(np.max(np.abs(np.subtract(answer, value)))),
        error_arguments={"coordinates": len(first)} if isinstance(first, list) else {},
    )


def score_example(mechanism: Mechanism[Any, Any], *neighbours: Neighbours, inputs: Inputs = SCORES) -> Example:
    """One of several candidates by score; `error` bounds how far below the best it lies."""
    first = neighbours[0].first
    assert isinstance(first, list)
    return Example(
        mechanism,
        neighbours,
        inputs,
        step=Fraction(1),
        distance=lambda scores, chosen: float(max(scores) - scores[chosen]),
        error_arguments={"candidates": len(first)},
    )
