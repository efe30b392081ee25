"""SKEWNESS(x), KURTOSIS(x): the shape of a distribution, from the sums of values and of their powers."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from sfumato.aggregates.formula_of_means import FormulaReader, Interval
from sfumato.aggregates.linear import Linear
from sfumato.aggregates.noisy_sums import NoisySums
from sfumato.aggregates.sum import bounded_argument
from sfumato.sql.expressions import Constant, Expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Measure, What
from sfumato.sql.simplify import call
from sfumato.sql.value_lattice import WIDE, Lattices, lattice_middle

BITS = 20  # of values in steps, so that their squares fit


@dataclass(frozen=True)
class Shape(Linear):
    """An aggregate of the means of x, x², x³ (and x⁴) about the middle of the range; sums divide by n."""

    highest: ClassVar[int] = 3
    least: ClassVar[float] = -math.inf
    is_ratio = True
    bits = BITS

    of: Expression

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> Linear:
        return cls(bounded_argument(node, rows))

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.of,)

    def with_arguments(self, *values: Expression) -> Linear:
        return type(self)(*values)

    def sums(self, lattices: Lattices) -> tuple[Measure, ...]:
        x = call("clamp", self.of, Constant(self.of.domain.low), Constant(self.of.domain.high))
        step = lattices.exponent_within(x, self.name, BITS, centred=True)
        middle = lattice_middle(x, step)
        y = call("-", x, Constant(middle))
        found = [
            Measure(What.VALUES, x),
            Measure(What.SUM, x, middle, step),
            Measure(What.SQUARES, x, middle, 2 * step),
        ]
        power = call("*", y, y)
        for _ in range(3, self.highest + 1):
            power = call("*", power, y)
            found.append(
                Measure(What.SUM, power, 0.0, lattices.exponent_within(power, self.name, WIDE, centred=False), x)
            )
        return tuple(found)

    def reader(self, sums: NoisySums) -> FormulaReader:
        return FormulaReader(sums, self.formula, (self.least, math.inf))

    def formula(self, means: list[Interval]) -> Interval:
        spread = means[1].minus(means[0].square)
        return self.combine(Interval(max(0.0, spread.low), max(0.0, spread.high)), means)

    @abstractmethod
    def combine(self, variance: Interval, means: Sequence[Interval]) -> Interval:
        """From the variance and the means of y, y², y³, …"""


class Skewness(Shape):
    """SKEWNESS(x) = E[(x − m)³] / σ³; the corrections of samples for small n are hidden by noise."""

    name = "skewness"
    spellings = (exp.Skewness,)
    listed = "SKEWNESS"
    methods = ("skew = SKEWNESS(x)",)
    forms = ("SKEWNESS({B})",)
    example = "SELECT ward, SKEWNESS(stay) FROM visits GROUP BY ward"

    def combine(self, variance: Interval, means: Sequence[Interval]) -> Interval:
        m, m2, m3 = means
        three, two = Interval(3.0, 3.0), Interval(2.0, 2.0)
        third = m3.minus(three.times(m).times(m2).minus(two.times(m).times(m.square)))
        return third.over(Interval(variance.low**1.5, variance.high**1.5))


class Kurtosis(Shape):
    """KURTOSIS(x) = E[(x − m)⁴] / σ⁴ − 3."""

    name = "kurtosis"
    spellings = (exp.Kurtosis,)
    listed = "KURTOSIS"
    methods = ("kurtosis = KURTOSIS(x)",)
    forms = ("KURTOSIS({B})",)
    example = "SELECT ward, KURTOSIS(stay) FROM visits GROUP BY ward"
    highest = 4
    least = -2.0

    def combine(self, variance: Interval, means: Sequence[Interval]) -> Interval:
        m, m2, m3, m4 = means
        four, six, three = (Interval(k, k) for k in (4.0, 6.0, 3.0))
        rest = four.times(m).times(m3).minus(six.times(m.square).times(m2)).minus(
            Interval(0.0, 0.0).minus(three.times(m.square.square))
        )  # fmt: skip
        return m4.minus(rest).over(variance.square).minus(three)
