"""Examples of every mechanism, with neighbours that are as bad as any and with private values at the edge of numbers.

They are found through the register of classes: a new class without an example fails a test.
"""

import importlib
import inspect
import math
import pkgutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate

import numpy as np

import sfumato as sf
import sfumato.mechanisms
import sfumato.mechanisms.dependent
import sfumato.mechanisms.groups
from sfumato import dependent, groups
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.choice.quantile import PureQuantile, Quantile, Ranked
from sfumato.noise.entropy import Source

S = sf.Sensitivity
HUGE = 10**400
WHOLE = [0, -1, True, 2**63 - 1, -(2**63), 2**64, HUGE, -HUGE, np.uint64(2**64 - 1), np.int64(-(2**63)), np.int8(-128)]
WHOLE_ROWS = [[], [0, HUGE, -HUGE], np.array([-(2**63), 2**63 - 1]), np.array([], np.int32), [[1, 2], [3, 4]]]
TINY, FAR = 5e-324, 1.7976931348623157e308
REAL = [0.0, -0.0, math.nan, math.inf, -math.inf, TINY, -TINY, 2e-308, FAR, -FAR, 2.0**53, 2.0**63, np.float32("nan")]
REAL_ROWS = [np.array(REAL, np.float64), [1.5, math.nan, HUGE], [0.5, -HUGE], np.zeros((0, 3))]
WHOLE_SCORES = [[0], [0, 0, 0], [-HUGE, HUGE, 0], np.array([-(2**63), 2**63 - 1, 0]), [2**63, 2**63 - 1, 2**63 - 2]]
SCORES = [*WHOLE_SCORES, [math.nan] * 3, [math.inf, -math.inf, math.nan], [TINY, -TINY, -0.0], [FAR, -FAR, 0.0]]
PEOPLE = [{}, {"a": 0}, {"a": -5, "b": 2**63}, {"a": HUGE, "b": -HUGE}, {math.nan: 3, math.inf: 1, -0.0: 2, TINY: 1}]
DATA = (
    [],
    [math.nan, math.inf, -math.inf, TINY, -0.0, FAR, HUGE, -HUGE],
    ["x", None, 1j, [], True],
    np.array([-(2**63), 2**63 - 1]),
    np.array([math.nan, 1.0], np.float16),
    range(3),
)


def part_of_a_hundred(data):
    """A question that one person moves by at most 3 if there are six people or more."""
    return round(100 / max(len(data), 1))


def people_beyond_five(data):
    return len(data) - 5


def larger_than_the_last(data, answers):
    """A question that looks at an answer."""
    return sum(x > min(answers[-1], 5) for x in data) if answers else len(data)


def ranked(*values: int) -> Ranked:
    """Values as `Quantile` reads them."""
    counts = sorted(Counter(values).items())
    return Ranked.of(len(values), [v for v, _ in counts], [n for _, n in counts], [*accumulate(n for _, n in counts)])


def smooth(source: Source) -> Mechanism:
    """A median with noise at the scale of its smooth sensitivity."""
    middle = sf.dependent.Quantile(0, 8, p=Fraction(1, 2))
    return sf.dependent.Smooth(middle, sf.dependent.StudentNoise(4), 1.5, 0.3, source=source)


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets, and what `loss` is told about them."""

    d0: object
    d1: object
    told: tuple[object, ...] = ()


@dataclass(frozen=True)
class Example:
    """A mechanism as a function of its source of bits.

    `step`: numbers come out as multiples of it. `distance(value, output)`: what `error(…)` promises to bound, at the
    first data set of the first pair. `rows`: an array of values is answered value by value, quickly. `nonsense`: values
    whose type alone is wrong.
    """

    make: Callable[[Source], Mechanism]
    pairs: tuple[Pair, ...]
    edges: tuple[object, ...]
    step: Fraction | None = None
    distance: Callable[[object, object], float] | None = None
    promise: dict[str, int] = field(default_factory=dict)
    rows: bool = False
    nonsense: tuple[object, ...] = (None, "1", object(), 1j, [None], [[1, 2], [3]])

    def __str__(self) -> str:
        return repr(self.make(sf.noise.Keystream()))


def number(
    make: Callable[..., Mechanism], *pairs: Pair, edges: tuple = (*WHOLE, *WHOLE_ROWS), step: float = 1
) -> Example:
    """Noise on numbers."""
    return Example(
        lambda source: make(source=source),
        pairs,
        tuple(edges),
        Fraction(step),
        lambda value, output: abs(output - value),
        rows=True,
    )


def one(d0: float, d1: float) -> Pair:
    """A number, told by how much it moves."""
    return Pair(d0, d1, (abs(d1 - d0),))


def several(d0: list[float], d1: list[float]) -> Pair:
    """Several numbers that move by the same amount."""
    return Pair(d0, d1, (S(l0=len(d0), linf=abs(d1[0] - d0[0])),))


def choice(make: Callable[..., Mechanism], *pairs: Pair, edges: list = SCORES) -> Example:
    """One of several candidates by score; what is promised is how far below the best it lies."""
    return Example(
        lambda source: make(source=source),
        pairs,
        tuple(edges),
        Fraction(1),
        lambda scores, chosen: max(scores) - scores[chosen],
        {"candidates": len(pairs[0].d0)},
    )


ZERO_ONE, TEN = one(0, 1), one(10, 11)
BOTH = several([0, 0], [1, 1])
REALS = (one(0.0, 1.0), one(0.3, -0.7), several([0.25, -0.75], [1.25, 0.25]))
EVERY = (*WHOLE, *WHOLE_ROWS, *REAL, *REAL_ROWS)
UP, DOWN = Pair([0, 1, 1, 1], [1, 0, 0, 0]), Pair([2, 0, 0, 0], [1, 1, 1, 1])
HALVES = Pair([0.0, 0.5, 0.5], [0.5, 0.0, 0.0])

EXAMPLES: list[Example] = [
    number(lambda **s: sf.Gaussian(1.0, **s), ZERO_ONE, BOTH, *REALS, edges=EVERY),
    number(lambda **s: sf.Gaussian(0.7, 2**-10, **s), ZERO_ONE, *REALS, edges=EVERY, step=2**-10),
    number(lambda **s: sf.Gaussian(1e9, **s), one(0, 10**9), one(0.0, 1e9), edges=EVERY),
    number(lambda **s: sf.Laplace(1.0, **s), ZERO_ONE, BOTH, *REALS, edges=EVERY),
    number(lambda **s: sf.Laplace(1.0, 2**-40, **s), ZERO_ONE, *REALS, edges=EVERY, step=2**-40),
    number(lambda **s: sf.Laplace(20.0, 8, **s), one(0.0, 20.0), edges=(*REAL, *REAL_ROWS), step=8),
    number(lambda **s: sf.DiscreteGaussian(1.0, **s), ZERO_ONE, TEN, BOTH),
    number(lambda **s: sf.DiscreteGaussian(3.0, 0.5, **s), one(0, 3), step=0.5),
    number(lambda **s: sf.DiscreteLaplace(1.0, **s), ZERO_ONE, TEN, BOTH),
    number(lambda **s: sf.DiscreteLaplace(0.5, 2**-20, **s), ZERO_ONE, step=2**-20),
    Example(
        lambda source: sf.JointLaplace(1.0, (1, 3), (0.375, 0), source=source),
        (Pair([0, 0], [1, 3]), Pair([5, -7], [4, -4])),
        ([0, HUGE], [-HUGE, 0], [[1, 2], [3, 4]], np.array([-(2**63), 2**63 - 1]), np.zeros((0, 2), np.int32)),
        Fraction(1),
        rows=True,
        nonsense=(None, "1", object(), 1j, [None], [[1, 2], [3]], 3, [1], [1, 2, 3], [0.5, 1.0], []),
    ),
    number(lambda **s: sf.Staircase(1.0, **s), ZERO_ONE, BOTH, *REALS, edges=EVERY),
    number(lambda **s: sf.Staircase(1.0, 1.0, 0.3, 2**-8, **s), *REALS, edges=EVERY, step=2**-8),
    number(lambda **s: sf.TruncatedLaplace(2.0, 6, **s), ZERO_ONE, BOTH),
    replace(number(lambda **s: sf.BoundedLaplace(1.0, 0, 4, **s), ZERO_ONE, one(4, 3), BOTH), rows=False),
    Example(
        lambda source: sf.Laplace(1.0, source=source).clamped(0, 3),
        (ZERO_ONE, one(3, 2), one(0.0, 1.0)),
        EVERY,
        Fraction(1),
        rows=True,
    ),
    Example(
        lambda source: sf.RandomizedResponse(1.0, source=source),
        (Pair(False, True), Pair(0, 1), Pair([False], [True])),
        (*WHOLE, *WHOLE_ROWS, [True, False], np.array([True]), np.zeros((2, 0), bool)),
        Fraction(1),
        rows=True,
    ),
    Example(
        lambda source: sf.RandomizedResponse(0.5, 5, source=source),
        (Pair(0, 1), Pair(4, 2), Pair([0], [3])),
        (*WHOLE, *WHOLE_ROWS),
        Fraction(1),
        rows=True,
    ),
    choice(lambda **s: sf.Exponential(1.0, 1, **s), UP, DOWN),
    choice(lambda **s: sf.Exponential(1.0, 0.5, **s), HALVES),
    choice(lambda **s: sf.PermuteAndFlip(1.0, 1, **s), UP, DOWN),
    choice(lambda **s: sf.PermuteAndFlip(1.0, 0.5, **s), HALVES),
    choice(lambda **s: sf.ReportNoisyMax(1.0, 1, **s), UP, DOWN, edges=WHOLE_SCORES),
    Example(
        lambda source: sf.TopK(2, 0.5, 1, source=source),
        (UP, DOWN),
        tuple(row for row in SCORES if len(row) > 1),
        Fraction(1),
        lambda scores, chosen: max(max(scores) - scores[chosen[0]], sorted(scores)[-2] - scores[chosen[1]]),
        {"candidates": 4},
    ),
    Example(
        lambda source: sf.StableArgmax(0.5, 0.05, 1, source=source),
        (Pair([8, 0], [7, 1]), Pair([2, 0], [1, 1])),
        tuple(SCORES),
        Fraction(1),
    ),
    Example(
        lambda source: sf.PartitionSelection(0.5, 0.05, source=source),
        (Pair({"a": 1}, {}), Pair({"a": 4}, {"a": 3}), Pair({"a": 3, "b": 1}, {"a": 3})),
        tuple(PEOPLE),
    ),
    Example(
        lambda source: sf.PartitionSelection(0.5, 0.05, 2, source=source),
        (Pair({"a": 1, "b": 1}, {}), Pair({"a": 4, "b": 1}, {"a": 3})),
        tuple(PEOPLE),
    ),
    Example(
        lambda source: sf.ThresholdSelection(1.0, 0.2, 2, source=source),
        (Pair({"a": 1, "b": 1}, {}), Pair({"a": 4, "b": 1}, {"a": 3}), Pair({"a": 9, "b": 9}, {"a": 8, "b": 8})),
        tuple(PEOPLE),
        Fraction(1),
    ),
    Example(
        lambda source: sf.StabilityHistogram(1.0, 0.05, source=source),
        (Pair({"a": 1}, {}), Pair({"a": 4}, {"a": 3}), Pair({"a": 9}, {"a": 8})),
        tuple(PEOPLE),
        Fraction(1),
    ),
    Example(
        lambda source: sf.AboveThreshold(1.0, 0, source=source),
        (Pair([0] * 5 + [1], [1] * 5 + [0]), Pair([0, 0], [-1, 1])),
        tuple(row for row in WHOLE_ROWS if np.ndim(row) == 1),
        Fraction(1),
    ),
    Example(
        lambda source: sf.AboveThreshold(1.0, 0, 2, moves=1, source=source),
        (Pair([0] * 4, [1] * 4), Pair([1, 1, 0, 0], [0, 0, -1, -1])),
        tuple(row for row in WHOLE_ROWS if np.ndim(row) == 1),
        Fraction(1),
    ),
    Example(
        lambda source: sf.TreeCounter(4, sf.DiscreteLaplace(3.0, source=source)),
        (Pair([1, 0, 0, 0], [0, 0, 0, 0]), Pair([0, 0, 1, 0], [0, 0, 0, 0])),
        tuple(row for row in WHOLE_ROWS if np.ndim(row) == 1),
        Fraction(1),
        lambda row, counts: abs(counts[2] - sum(row[:3])),  # the sum of two noises, as many as there are
    ),
    Example(
        lambda source: sf.Laplace(1.0, source=source).on(len, 1),
        (Pair([7, 7], [7]),),
        ([], [math.nan], {}),
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: sf.Laplace(1.0, source=source).following(larger_than_the_last, 1),
        (Pair(([7, 7], (0,)), ([7], (0,))),),
        (([], ()), ([math.nan], (3,))),
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: sf.Chain(
            (
                sf.Count(sf.Laplace(2.0, source=source)),
                sf.Gaussian(2.0, source=source).following(larger_than_the_last, 1),
            )
        ),
        (Pair([7, 7], [7]),),
        ([], [1, 2]),
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: sf.Count(sf.DiscreteLaplace(1.0, source=source)),
        (Pair("ab", "a"), Pair([], [math.nan])),
        ([], {}, "", np.zeros((0, 2))),
        Fraction(1),
        lambda data, output: abs(len(data) - output),
        nonsense=(None, 1j),
    ),
    Example(
        lambda source: sf.BoundedSum(sf.Laplace(3.0, source=source), 0, 3),
        (Pair([3, 1], [1]), Pair([FAR, -1.0], [-1.0]), Pair([math.inf, "x"], ["x"])),
        DATA,
        Fraction(1),
        lambda data, output: abs(sum(data) - output),
        nonsense=(None, 1j, 3, "123"),
    ),
    Example(
        lambda source: sf.BoundedSum(sf.Gaussian(1.0, 2**-20, source=source), -1, 1, sf.ReplaceOne),
        (Pair([0.5, -1.0], [0.5, 1.0]), Pair([-FAR, 0.1], [FAR, 0.1])),
        DATA,
        Fraction(2) ** -20,
        nonsense=(None, 1j, 3, "123"),
    ),
    Example(
        lambda source: sf.BoundedMean(sf.Laplace(1.0, source=source), sf.Laplace(1.0, source=source), 0, 4),
        (Pair([4], []), Pair([0, 0], [0])),
        DATA,
        None,
        lambda data, output: abs(output - sum(data) / len(data)),
        {"count": 1},
        nonsense=(None, 1j, 3, "123"),
    ),
    Example(
        lambda source: sf.Histogram(sf.DiscreteLaplace(1.0, source=source), ("a", 1, None)),
        (Pair(["a", 1], ["a"]), Pair([None], [])),
        ([], [math.nan, [], "a", 1, True], np.array([1, 2])),
        Fraction(1),
        lambda data, output: max(abs(output - np.array([data.count("a"), data.count(1), data.count(None)]))),
        nonsense=(None, 1j),
    ),
    Example(
        lambda source: sf.Histogram(sf.Laplace(1.0, source=source), (0, 1), sf.ReplaceOne),
        (Pair([0, 0], [0, 1]),),
        ([],),
        Fraction(1),
        nonsense=(None, 1j),
    ),
    Example(
        lambda source: dependent.StableValue(0.5, 0.05, source=source),
        (
            Pair(dependent.Stable("a", 3), dependent.Stable("a", 2)),
            Pair(dependent.Stable("a", 0), dependent.Stable("b", 0)),
        ),
        tuple(dependent.Stable(1, d) for d in (0, -5, HUGE, -HUGE, np.int64(3), True)),
        Fraction(1),
    ),
    Example(
        lambda source: dependent.GaussianStableValue(3.0, 0.3, source=source),
        (
            Pair(dependent.Stable("a", 3), dependent.Stable("a", 2)),
            Pair(dependent.Stable("a", 0), dependent.Stable("b", 0)),
        ),
        tuple(dependent.Stable(1, d) for d in (0, -5, HUGE, -HUGE, np.int64(3), True)),
        Fraction(1),
    ),
    Example(
        lambda source: dependent.ProposeTestRelease(
            dependent.Quantile(0, 30),
            2,
            sf.DiscreteLaplace(1.0, source=source),
            sf.DiscreteLaplace(2.0, source=source),
            0.1,
        ),
        (Pair([], [30]), Pair([0] * 4 + [2] * 4, [0] * 4 + [2] * 5)),
        DATA[:2] + DATA[3:],
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: dependent.TestedRelease(
            sf.Laplace(3.0, source=source).on(part_of_a_hundred, 3),
            sf.loss.LaplaceLoss(1.0),
            people_beyond_five,
            sf.Gaussian(3.0, source=source),
            0.3,
        ),
        (Pair([0] * 12, [0] * 11), Pair([0], [0, 0]), Pair([0] * 5, [0] * 6)),
        ([], [math.nan], {}),
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: dependent.NoisyBound(
            dependent.Triangles(6), sf.DiscreteLaplace(1.0, source=source), sf.Laplace(1.0, source=source), 0.1
        ),
        (Pair([(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]),),
        ([], np.zeros((0, 2), int), [(0, 0), (-1, 99), (2**62, 1)]),
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: dependent.SearchTestRelease(
            dependent.Quantile(0, 30), (1, 2, 4), 1.0, sf.Laplace(2.0, source=source), 0.2, source=source
        ),
        (Pair([], [30]), Pair([0] * 9 + [2] * 9, [0] * 9 + [2] * 10)),
        DATA[:2] + DATA[3:],
        None,
        nonsense=(),
    ),
    Example(
        lambda source: dependent.LeverageReport(
            dependent.PredictionVariance((0.6, 0.8)), sf.DiscreteLaplace(1.0, source=source), 0.1
        ),
        (Pair([[0.0, 1.0], [1.0, 0.0]] * 4, [[0.0, 1.0], [1.0, 0.0]] * 3 + [[0.0, 1.0]]),),
        ([], np.zeros((0, 2)), [[math.nan, math.inf], [FAR, -FAR], [TINY, -0.0]]),
        None,
        nonsense=(),
    ),
    Example(
        lambda source: dependent.MeanReport(
            dependent.TrimmedMean(0, 8, trim=0), sf.Laplace(2.0, source=source), sf.Laplace(8.0, source=source), 0.1
        ),
        (Pair([2] * 9, [2] * 8), Pair([0, 8], [0, 8, 8])),
        DATA[:2] + DATA[3:],
        None,
        nonsense=(),
    ),
    Example(
        lambda source: dependent.MovesReport(
            dependent.Quantile(0, 8), sf.DiscreteLaplace(4.0, source=source), 0.3, miss=0.4
        ),
        (Pair([4] * 5, [4] * 6), Pair([4] * 4, [4] * 5)),
        DATA[:2] + DATA[3:],
        None,
        nonsense=(),
    ),
    Example(
        lambda source: dependent.Everywhere(dependent.TrimmedMean(0, 8), sf.Laplace(4.0, source=source)),
        (Pair([0, 0], [0, 0, 8]), Pair([0, 8], [0, 8, 8])),
        DATA[:2] + DATA[3:],
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: dependent.ChosenQuantile(dependent.Quantile(0, 8), 1.0, source=source),
        (Pair([2], [2, 6]), Pair([], [7]), Pair([0, 0, 8], [0, 0, 8, 8])),
        DATA[:2] + DATA[3:],
        Fraction(1),
        nonsense=(None, "1", object(), 1j, [None], [[1, 2], [3]]),
    ),
    Example(
        lambda source: Quantile(2.0, Fraction(1, 2), 8, source=source),
        (Pair(ranked(2), ranked(2, 6)), Pair(ranked(), ranked(7))),
        (ranked(), ranked(0), ranked(7, 7, 7), ranked(*range(8))),
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: PureQuantile(2.0, Fraction(1, 2), 8, source=source),
        (Pair(ranked(2), ranked(2, 6)), Pair(ranked(), ranked(7))),
        (ranked(), ranked(0), ranked(7, 7, 7), ranked(*range(8))),
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: smooth(source),
        (Pair([], [8]),),
        ([], [0] * 9, [8, 0, 4], [math.nan, math.inf]),
        Fraction(1),
        nonsense=(),
    ),
    Example(
        lambda source: smooth(source).with_error(4.0),
        (Pair([0, 0, 8, 8, 8], [0, 0, 8, 8]),),
        ([], [0] * 9),
        nonsense=(),
    ),
    Example(
        lambda source: Quantile(4.0, Fraction(1), 8, source=source),
        (Pair(ranked(0, 0, 0), ranked(0, 0, 0, 7)),),
        (ranked(), ranked(0)),
        Fraction(1),
        nonsense=(),
    ),
    *(
        Example(
            lambda source, transform=transform, sigma=sigma: groups.Transformed(transform, sigma, source=source),
            (Pair(0, 1), Pair(1, 2), Pair(6, 5)),
            (*WHOLE, *WHOLE_ROWS),
            rows=True,
            nonsense=(None, "1", object(), 1j, [None], [[1, 2], [3]], 1.5, math.nan),
        )
        for transform, sigma in ((groups.Asinh(2.0), 0.4), (groups.Log(), 0.8), (groups.SquareRoot(), 0.9))
    ),
    Example(
        lambda source: groups.ProductOfGaussians(0.5, 0.3, source=source),
        (Pair(0, 1), Pair(9, 8)),
        tuple(WHOLE),
        Fraction(1),
    ),
    Example(lambda source: groups.ProportionalGaussian(0.5, source=source), (Pair(4, 3),), tuple(WHOLE), Fraction(1)),
]


def concrete_classes() -> set[type]:
    """Every mechanism that can be built, and whatever else has a release and a loss; those of tests do not count."""
    found: set[type] = set(Mechanism.known.values())
    places = (sfumato.mechanisms, sfumato.mechanisms.dependent, sfumato.mechanisms.groups)
    for module in (found for place in places for found in pkgutil.iter_modules(place.__path__, f"{place.__name__}.")):
        here = vars(importlib.import_module(module.name)).values()
        found |= {thing for thing in here if isinstance(thing, type) and {"release", "loss"} <= set(dir(thing))}
    return {kind for kind in found if kind.__module__.startswith("sfumato.") and not inspect.isabstract(kind)}


def classes_with_examples() -> set[type]:
    """Classes of the examples."""
    return {type(example.make(sf.noise.Keystream())) for example in EXAMPLES}
