"""Reports by which people see what an answer costs them, themselves private: for means, for medians and the like."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.base import Additive
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.additive.laplace import Laplace
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.ladder import Ladder
from sfumato.mechanisms.dependent.ordered import Ordered
from sfumato.mechanisms.dependent.statistic import OfValues, Statistic
from sfumato.mechanisms.dependent.trimmed_mean import TrimmedMean
from sfumato.rounding import round_up
from sfumato.sensitivity import Sensitivity

Whole = Gaussian | Laplace | DiscreteLaplace


@dataclass(frozen=True)
class Means:
    """For each person a bound on how far she moves a mean, from her own value alone: all in it is public.

    There are at least `least` people, and their mean is between `low` and `high`. Without x the mean T of n ≥ 2 people
    moves by |x − T|/(n − 1).
    """

    mean: TrimmedMean
    least: int
    low: Fraction
    high: Fraction

    def moved(self, value: float) -> float:
        """At most this, for a person with this value; never below it."""
        whole = Fraction(self.mean.exact(self.mean.ends[1] - self.mean.ends[0]))
        if self.least <= 1:
            return round_up(whole)
        x = Fraction(self.mean.exact(int(self.mean.ordered([value]).at([1])[0])))  # as it counts in the mean
        return round_up(min(max(abs(x - self.low), abs(x - self.high)) / (self.least - 1), whole))

    def loss(self, noise: Additive, value: float) -> PrivacyLoss:
        """What the mean with this noise costs her, at most."""
        return noise.loss(self.moved(value))


@dataclass(frozen=True)
class MeanReport(Mechanism[ArrayLike | Ordered, Means]):
    """A report about a mean: how many people there are at least, and where their mean lies.

    It buys a noisy number of people, and a noisy sum of distances from the middle of the range, in steps. Each is off
    by more than its radius with probability miss/2 at most: then bounds in the report may not hold, but privacy does.

    Theorem: a person's own loss is bounded by what is released about all [Wang 2019, Def. 2; Redberg & Wang 2021]

    >>> report = MeanReport(TrimmedMean(0, 100, trim=0), Gaussian(4.0), Gaussian(200.0)).release([40, 60] * 500)
    >>> report.moved(50.0) < report.moved(100.0) < 0.1
    True
    """

    mean: TrimmedMean
    count: Whole
    total: Whole
    miss: float = 1e-6

    def __post_init__(self) -> None:
        if not isinstance(self.mean, TrimmedMean) or self.mean.trim:
            raise InvalidParameter(
                f"this report is about a mean.\n  found:  {self.mean!r}\n  do:     give TrimmedMean(0, 100, trim=0)"
            )
        whole_noise("count", self.count)
        whole_noise("total", self.total)
        object.__setattr__(self, "miss", checks.number("miss", self.miss, 1e-12, 0.5, allowed="a small number"))

    @property
    def middle(self) -> int:
        return sum(self.mean.ends) // 2

    @property
    def half(self) -> int:
        """How far one person moves the sum, in steps."""
        return self.mean.ends[1] - self.middle

    @cached_property
    def radii(self) -> tuple[int, int]:
        each = 1 - self.miss / 2
        return math.ceil(self.count.error(each)), math.ceil(self.total.error(each))

    def loss(self) -> PrivacyLoss:
        return self.count.loss(1) + self.total.loss(self.half)

    def ready(self, count: int) -> None:
        self.count.ready(count)
        self.total.ready(count)

    def release(self, value: ArrayLike | Ordered) -> Means:
        self.ready(1)
        x = self.mean.ordered(value)
        far = int(x.up_to(x.size)) - int(x.up_to(0)) - self.middle * x.size
        n, s = drawn(self.count, x.size), drawn(self.total, far)
        many = [max(1, n + side * self.radii[0]) for side in (-1, 1)]
        ends = [self.middle + Fraction(s + side * self.radii[1], size) for side in (-1, 1) for size in many]
        low, high = (min(max(end, Fraction(self.mean.ends[0])), Fraction(self.mean.ends[1]))
                     for end in (min(ends), max(ends)))  # fmt: skip
        return Means(self.mean, many[0], low * self.mean.lattice.step, high * self.mean.lattice.step)


@dataclass(frozen=True)
class Moves:
    """Nobody of these data moves the answer by more than this: public."""

    most: float

    def loss(self, noise: Additive) -> PrivacyLoss:
        """What an answer with this noise costs anybody of them, at most."""
        return noise.loss(self.most)


@dataclass(frozen=True)
class MovesReport(Mechanism[Any, Moves]):
    """A report about a median, a quantile, a trimmed mean, or any statistic: how far one of these people moves it.

    The rung on which the data stand moves by at most `steps` between neighbours; whole noise is added, and a margin, so
    that what comes out is below the rung with probability `miss` at most: then the bound may not hold, privacy does.

    Theorem: the scale of a rung is at least the local sensitivity [docs/theorems/dilation.md, Theorem 3]

    >>> from sfumato.mechanisms.dependent.quantile import Quantile
    >>> MovesReport(Quantile(0, 1000), Gaussian(8.0)).release([i % 100 + 450 for i in range(5000)]).most < 60
    True
    """

    statistic: Statistic[Any]
    noise: Whole
    dilation: float = 0.1
    steps: int = 4
    miss: float = 1e-6

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidParameter(
                f"statistic must know its sensitivity.\n  found:  a {type(self.statistic).__name__}\n"
                "  do:     give one of sfumato.mechanisms.dependent, such as Quantile(0, 100)"
            )
        whole_noise("noise", self.noise)
        object.__setattr__(self, "miss", checks.number("miss", self.miss, 1e-12, 0.5, allowed="a small number"))
        assert self.ladder  # refuses what makes no sense

    @cached_property
    def ladder(self) -> Ladder:
        """Public: from a millionth of the worst case up, or from a step if that is more."""
        worst = Fraction(self.statistic.everywhere)
        step = self.statistic.lattice.step if isinstance(self.statistic, OfValues) else Fraction(0)
        return Ladder(self.dilation, worst, min(max(worst / 2**20, step), worst), self.steps)

    @cached_property
    def margin(self) -> int:
        return math.ceil(self.noise.error(1 - self.miss))

    def loss(self) -> PrivacyLoss:
        moves = float(self.ladder.steps)
        return self.noise.loss(Sensitivity(l0=1, linf=moves, l1=moves, l2=moves, relation=self.statistic.relation))

    def ready(self, count: int) -> None:
        self.noise.ready(count)

    def release(self, value: Any) -> Moves:
        self.ready(1)
        window = self.ladder.window
        rung = self.ladder.rung(self.statistic.curve(self.statistic.prepared(value), window - 1) if window else ())
        place = max(0, min(drawn(self.noise, rung) + self.margin, self.ladder.top))
        return Moves(round_up(min(Fraction(self.ladder.ceilings[place]), Fraction(self.statistic.everywhere))))


def drawn(noise: Whole, value: int) -> int:
    found = noise.release(value)
    assert isinstance(found, int)
    return found


def whole_noise(name: str, noise: object) -> None:
    if not isinstance(noise, Gaussian | Laplace | DiscreteLaplace) or noise.lattice.step != 1:
        raise InvalidParameter(
            f"{name} takes whole noise: Gaussian, Laplace or DiscreteLaplace with a step of 1.\n"
            f"  found:  {type(noise).__name__}\n  do:     give such as sf.Gaussian(8.0)"
        )
