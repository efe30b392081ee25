"""A value of given rank on a public lattice, chosen exactly, with an interval around the true one."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.bounded_range import range_of
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.mechanisms.additive.base import Additive
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.examples import Example, Inputs, Neighbours
from sfumato.noise import select_run
from sfumato.noise.draw_table import Integers

MOST_POINTS = 1 << 40
MOST_PARTS = 10**6  # of a fraction
FARTHEST = 1 << 52  # scores are capped here at most: doubles hold them
UNLIKELY = 1e-4  # that a choice falls where scores are capped, if half of it lies on one point
OUTSIDE = 0.05  # that the interval misses, and that MIN and MAX leave the data
POINT = 0.75  # of μ² for the value, the rest for its interval
HALF = 0.5  # of ε, likewise: looks share it by their number, not by its root


@dataclass(frozen=True, eq=False)
class Ranked:
    """Values 0 … points − 1 in order: how many have each, and how many have it or less; and how many there are.

    A part of them is enough: all whose score is not capped.
    """

    total: int = field(repr=False)
    values: Integers = field(repr=False)
    counts: Integers = field(repr=False)
    sums: Integers = field(repr=False)

    @staticmethod
    def of(total: int, values: Sequence[int], counts: Sequence[int], sums: Sequence[int]) -> "Ranked":
        return Ranked(total, *(np.array(row, np.int64) for row in (values, counts, sums)))

    @property
    def before(self) -> int:
        """How many are below the first value."""
        return int(self.sums[0] - self.counts[0]) if self.values.size else 0

    def up_to(self, value: int) -> int:
        """How many are `value` or less, or so many that the score is capped as well."""
        place = int(np.searchsorted(self.values, value, "right"))
        return int(self.sums[place - 1]) if place else self.before


def rank_values(*values: int) -> Ranked:
    """These values, in any order, as examples use them."""
    places, counts = np.unique(np.array(values, np.int64), return_counts=True)
    return Ranked(len(values), places, counts.astype(np.int64), np.cumsum(counts, dtype=np.int64))


ONE_MORE = (Neighbours(rank_values(2), rank_values(2, 6)), Neighbours(rank_values(), rank_values(7)))
RANKED = Inputs("values in order", (rank_values(), rank_values(0), rank_values(7, 7, 7), rank_values(*range(8))), ())


class ByRank(Mechanism[Ranked, tuple[int, int, int]]):
    """The value of rank p·n among n values on a lattice, of which one person has at most `values`.

    With p = a/b let T = a·n, L(v) and L⁻(v) the numbers of values ≤ v and < v, and
    score(v) = max(0, T − b·L(v), b·L⁻(v) − T): how many values, in parts of b, must move until v is the p-quantile, the
    least v with T − b·L(v) ≤ 0. P(v) ∝ e^{−rate·score(v)}, rate = η/(2·values·max(a, b − a)).
    p = 0 and 1 (MIN, MAX): T = depth and n − depth, so that the weight of what lies beyond all data is small.

    Theorem: one more value moves every score by at most max(a, b − a); so the choice has bounded range η
        [Smith 2011, Alg. 2; Asi & Duchi 2020; docs/quantiles.md]
    Proof. Adding x moves T − b·L(v) by a (x > v) or a − b (x ≤ v), and b·L⁻(v) − T by −a or b − a; a maximum moves no
    farther than its terms, a cap at any public number takes nothing away; `values` of them move `values` times as far.

    The interval comes from noisy T − b·L(u), capped too, at points u that halve what is left of 1, 2, 4, … steps from
    the value: each errs with at most 5 % divided by their number, whatever came before. It holds the true p-quantile;
    for MIN and MAX only the end inside the data is searched, and the other is the end of the lattice.
    """

    fraction: Fraction
    points: int
    values: int

    def check(self) -> None:
        """Refuse parameters out of range."""
        checks.whole("points", self.points, 1, MOST_POINTS)
        checks.whole("values", self.values, 1)
        if not 0 <= self.fraction <= 1 or self.fraction.denominator > MOST_PARTS:
            raise InvalidParameter(
                f"a quantile is a fraction from 0 to 1, with at most six digits.\n  found:  {float(self.fraction):g}\n"
                "  do:     ask for such as 0.5"
            )

    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """The loss of the choice and of all noisy looks together."""

    @property
    @abstractmethod
    def range(self) -> float:
        """η."""

    @property
    @abstractmethod
    def noise(self) -> Additive:
        """The noise of one look at the data."""

    # ---- public numbers -----------------------------------------------------------------------------------------

    @property
    def extreme(self) -> bool:
        return self.fraction in (0, 1)

    @property
    def most(self) -> int:
        """The sensitivity of a score."""
        a, b = self.fraction.numerator, self.fraction.denominator
        return self.values * max(a, b - a)

    @cached_property
    def rate(self) -> Fraction:
        return Fraction(self.range) / (2 * self.most)

    @cached_property
    def shift(self) -> int:
        """T − a·n."""
        depth = min(FARTHEST // 4, math.ceil(math.log(self.points / OUTSIDE) / float(self.rate)))
        return depth if self.fraction == 0 else -depth if self.fraction == 1 else 0

    @cached_property
    def looks(self) -> int:
        """How many points the search for an end looks at, at most: it finds one of `reach` + 2 outcomes."""
        return (self.reach + 1).bit_length()

    @property
    def reach(self) -> int:
        return (self.points - 1).bit_length()

    @property
    def both(self) -> int:
        """How many looks there are for both ends, at most."""
        return self.looks if self.extreme else 2 * self.looks

    @cached_property
    def sure(self) -> int:
        """A noisy number beyond this has the right sign, but for its share of OUTSIDE."""
        return math.ceil(float(self.noise.error(1 - 2 * OUTSIDE / self.both)))

    @cached_property
    def cap(self) -> int:
        """Scores are equal from here on, so that only values of nearby ranks are read."""
        far = math.log(self.points / UNLIKELY) / float(self.rate)
        return min(FARTHEST, math.ceil(max(far, 2 * self.sure)) + abs(self.shift))

    def ranks(self, confidence: float = 1 - OUTSIDE) -> float:
        """The chosen value is at most so many ranks off with this probability, whatever the data.

        Proof. As for `Exponential.error`: all other points of the lattice at one gap t are the worst case.
        """
        odds = max(1.0, (self.points - 1) * confidence / (1 - confidence))
        return math.log(odds) / float(self.rate) / self.fraction.denominator

    # ---- data ---------------------------------------------------------------------------------------------------

    def release(self, data: Ranked) -> tuple[int, int, int]:
        """(value, low, high)."""
        value = self.choose(data)
        return value, self.lowest(data, value), self.highest(data, value)

    def excess(self, total: int, up_to: int) -> int:
        """T − b·L."""
        return self.fraction.numerator * total + self.shift - self.fraction.denominator * up_to

    def runs(self, data: Ranked) -> tuple[Integers, Integers, Integers]:
        """(first, how many, score): the lattice in runs of one score, gaps and values in turn; gaps may be empty."""
        size = data.values.size
        first, score = (np.empty(2 * size + 1, np.int64) for _ in range(2))
        first[0], first[1::2], first[2::2] = 0, data.values, data.values + 1
        target = self.excess(data.total, 0)
        below = self.fraction.denominator * np.concatenate([[data.before], data.sums])  # b·L in each gap
        score[::2] = np.abs(target - below)
        score[1::2] = np.maximum(target - below[1:], self.fraction.denominator * (data.sums - data.counts) - target)
        return first, np.diff(first, append=self.points), np.clip(score, 0, self.cap)

    def cap_score(self, score: int) -> int:
        return max(-self.cap, min(self.cap, score))

    def choose(self, data: Ranked) -> int:
        """A point of the lattice by its score."""
        first, counts, score = self.runs(data)
        i, k = select_run(score - score[counts > 0].min(), counts, self.rate, source=self.source)
        return int(first[i]) + k

    def noisy(self, data: Ranked, at: int) -> int:
        return int(self.noise.release(self.cap_score(self.excess(data.total, data.up_to(at)))))

    def lowest(self, data: Ranked, value: int) -> int:
        """A point that the true value is not below: it is above u if T − b·L(u) > 0."""
        if self.fraction == 0:
            return 0

        def sure(j: int) -> bool:
            return value < 1 << j or self.noisy(data, value - (1 << j)) > self.sure

        return max(0, value - (1 << first_sure(sure, self.reach + 1)) + 1)

    def highest(self, data: Ranked, value: int) -> int:
        """A point that the true value is not above: it is at most u if T − b·L(u) ≤ 0."""
        last = self.points - 1
        if self.fraction == 1:
            return last

        def sure(j: int) -> bool:
            u = value + (1 << j) - 1
            return u >= last or self.noisy(data, u) < -self.sure

        return min(last, value + (1 << first_sure(sure, self.reach + 1)) - 1)


@dataclass(frozen=True)
class Quantile(ByRank):
    """A value by its rank for μ-GDP: the choice has POINT of μ², the looks of the search have the rest.

    Theorem: Gaussian losses compose by μ² = Σμᵢ² [Dong, Roth & Su 2022, Cor. 3.3]
    """

    mu: float
    fraction: Fraction
    points: int
    values: int = 1
    use = "for a value by its rank, with an interval, on a Gaussian ledger"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checks.positive("mu", self.mu))
        self.check()

    def loss(self) -> GaussianLoss:
        return GaussianLoss(self.mu)

    @property
    def range(self) -> float:
        return range_of(math.sqrt(POINT) * self.mu * (1 - 1e-14))

    @cached_property
    def noise(self) -> Gaussian:
        return Gaussian(self.most * math.sqrt(self.both / (1 - POINT)) / self.mu * (1 + 1e-14), source=self.source)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        most = Neighbours(rank_values(0, 0, 0), rank_values(0, 0, 0, 7))
        extremes = Inputs(RANKED.name, (rank_values(), rank_values(0)), ())
        return (
            Example(cls(2.0, Fraction(1, 2), 8), ONE_MORE, RANKED, step=Fraction(1)),
            Example(cls(4.0, Fraction(1), 8), (most,), extremes, step=Fraction(1)),
        )


@dataclass(frozen=True)
class PureQuantile(ByRank):
    """A value by its rank for pure ε: the choice has HALF of it, the looks of the search share the rest.

    Theorem: a choice of bounded range η is η-DP [Durfee & Rogers 2019], and epsilons add up [Dwork & Roth 2014, Thm
        3.16]
    """

    eps: float
    fraction: Fraction
    points: int
    values: int = 1
    use = "for a value by its rank, with an interval, under pure ε"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.positive("eps", self.eps))
        self.check()

    def loss(self) -> PureLoss:
        return PureLoss(self.eps)

    @property
    def range(self) -> float:
        return HALF * self.eps * (1 - 1e-14)

    @cached_property
    def noise(self) -> DiscreteLaplace:
        found = DiscreteLaplace.of((1 - HALF) * self.eps / self.both * (1 - 1e-14), self.most)
        return DiscreteLaplace(found.scale, source=self.source)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example(cls(2.0, Fraction(1, 2), 8), ONE_MORE, RANKED, step=Fraction(1)),)


def first_sure(sure: Callable[[int], bool], most: int) -> int:
    """Binary search: some j ≤ most at which it was sure, or `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if sure(middle) else (middle + 1, high)
    return low
