"""What is read from noisy parts: each aggregate's value, and an interval around it. Post-processing.

An interval always holds its value. Counts and sums are unbiased and may be below 0; a mean stays in the range of its
column, a variance in what that range allows, and so do their intervals: the truth is there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sfumato.curator.intervals import Reach, Spread, Terms, ratio, spread
from sfumato.curator.noise_basis import Joint
from sfumato.curator.price import Noise
from sfumato.sql.domains import Scalar
from sfumato.sql.plan import Window
from sfumato.sql.question import Aggregate

CONFIDENCE = 0.95
MEAN, GIVEN_MEAN = 0.99, 0.96  # of a variance: that the mean is where it is taken to be, and the rest then
Number = float | int
Read = tuple[Number, Number, Number]
Told = tuple[Scalar, Scalar, Scalar]  # the same of any aggregate; one without an interval has no ends
Readout = Sequence[tuple[Sequence[str | float | None], Sequence[Told]]]  # keys, and each aggregate


@dataclass(frozen=True)
class Reading:
    """How an aggregate is read from the parts of a plan, which have this noise (None: no noise)."""

    joint: Joint
    aggregate: Aggregate
    noise: tuple[Noise | None, ...]
    confidence: float = CONFIDENCE
    averaged: bool = False  # parts are weighted means of several releases: Gaussian noise and at most ½ of rounding

    @property
    def exact(self) -> bool:
        """Is the coverage exactly known? Of a ratio it is at least 95 %."""
        return self.aggregate.name in ("count", "sum")

    @property
    def coverage(self) -> float:
        return self.spread.coverage if self.exact else self.confidence

    @property
    def error(self) -> float | None:
        """± at 95 % of a count or a sum; None where it depends on the (private) number of values."""
        return self.spread.radius if self.exact else None

    def read(self, row: Sequence[Number]) -> Read:
        """(value, low, high) from noisy parts."""
        mine = [self.joint.measure(j, row) for j in self.aggregate.measures]
        value = valued(self.aggregate, self.span, mine)
        if self.exact:
            middle = mine[0] if self.aggregate.name == "count" else value
            low, high = middle - self.spread.radius, middle + self.spread.radius
        elif self.aggregate.name == "avg":
            low, high = (self.aggregate.centre + end * self.step for end in self.mean(mine, self.mean_reach))
        else:
            low, high = (end * self.step**2 for end in self.variance(mine))
            if self.aggregate.name == "stddev":
                low, high = math.sqrt(low), math.sqrt(high)
        return value, min(low, value), max(high, value)

    def read_all(self, rows: Sequence[Sequence[Number]]) -> list[Read]:
        """`read` of each row; of the commonest kinds with all that does not change looked up once."""
        if not self.exact or len(self.aggregate.measures) > 1:
            return [self.read(row) for row in rows]
        measure, place = self.joint.measure, self.aggregate.measures[0]
        counted, step, radius = self.aggregate.name == "count", self.step, self.spread.radius
        found: list[Read] = []
        for row in rows:
            middle = measure(place, row)
            value: Number = round(middle) if counted else middle * step
            middle = middle if counted else value
            found.append((value, min(middle - radius, value), max(middle + radius, value)))
        return found

    # ---- public numbers -----------------------------------------------------------------------------------------

    @property
    def step(self) -> float:
        return 2.0**self.aggregate.exponent

    @cached_property
    def span(self) -> tuple[int, int]:
        """The least and the most of one value, in steps from the centre."""
        return self.joint.measures[self.aggregate.measures[0]].span()

    def terms(self, coefficients: Sequence[Fraction]) -> Terms:
        pairs = zip(coefficients, self.noise, strict=True)
        return tuple((c, noise) for c, noise in pairs if c and noise is not None)

    @cached_property
    def spread(self) -> Spread:
        """Of a count or sum."""
        first, *more = (self.joint.made_of[j] for j in self.aggregate.measures)
        if self.aggregate.name == "count":
            return self.spread_of(first)
        whole = [c * Fraction(2) ** self.aggregate.exponent for c in first]
        if more:
            whole = [a + Fraction(self.aggregate.centre) * b for a, b in zip(whole, more[0], strict=True)]
        return self.spread_of(whole)

    def spread_of(self, coefficients: Sequence[Fraction]) -> Spread:
        if not self.averaged:
            return spread(self.terms(coefficients), self.confidence)
        reach = Reach.of(self.terms(coefficients), (), self.confidence)
        return Spread(math.sqrt(reach.fixed) + reach.least, self.confidence)

    def own(self, place: int) -> tuple[Fraction, Terms]:
        """(κ, terms) of a measure that is κ times the number of values, and noise of its own."""
        j = self.aggregate.measures[place]
        part = self.joint.parts[j]
        alone = [Fraction(1, part.scale) if i == j else Fraction(0) for i in range(len(self.noise))]
        return Fraction(part.shift, part.scale), self.terms(alone)

    @cached_property
    def many(self) -> Terms:
        """Of the number of values."""
        return self.terms(self.joint.made_of[self.aggregate.measures[1]])

    @cached_property
    def mean_reach(self) -> Reach:
        return Reach.of(self.own(0)[1], self.many, self.confidence)

    @cached_property
    def sure_reach(self) -> Reach:
        return Reach.of(self.own(0)[1], self.many, MEAN)

    @cached_property
    def middles(self) -> tuple[float, ...]:
        """κ of the sum, and of the squares."""
        return tuple(float(self.own(place)[0]) for place in (0, 2) if place < len(self.aggregate.measures))

    @cached_property
    def square_reaches(self) -> tuple[Reach, Reach]:
        """With the squares' own noise, and with the sum's; the other's counts as 0 times itself."""
        own, square = self.own(0)[1], self.own(2)[1]
        no_own, no_square = (tuple((Fraction(0), noise) for _, noise in terms) for terms in (own, square))
        return Reach.of(square + no_own, self.many, GIVEN_MEAN), Reach.of(no_square + own, self.many, GIVEN_MEAN)

    def square_reach(self, factor: float) -> Reach:
        """With so many times the sum's own noise: what it adds grows with the factor, or with its square."""
        square, own = self.square_reaches
        fixed = square.fixed + own.fixed * factor * factor
        return Reach(fixed, square.growing, square.least + own.least * factor, square.slope)

    # ---- ratios -------------------------------------------------------------------------------------------------

    def mean(self, row: Sequence[Number], reach: Reach) -> tuple[float, float]:
        """Where S/n is, in steps from the centre, by Fieller: S − θ·n has the noise of its own part and (κ − θ) times
        that of n."""
        middle, n = self.middles[0], float(row[1])
        d = row[0] - middle * n
        low, high = ratio(d, d, n, reach)
        return max(middle + low, self.span[0]), min(middle + high, self.span[1])

    def variance(self, row: Sequence[Number]) -> tuple[float, float]:
        """Where Q/n − (S/n)² is, in steps², Q being the sum of squares.

        Theorem: with 95 % at least, whatever the data [the proof below]
        Proof. With 99 % the mean θ is in M = `mean`. For the true θ and variance τ, Q − 2θS + θ²n = τn; so its noisy
        value A(θ) is τn̂ up to the noise of Q's own part, −2θ times that of S, and (p(θ) − τ) times that of n, where
        p(θ) = κ_Q − 2θκ_S + θ². Over M the parabola A lies between its least value and that at an end, |θ| ≤ `far`,
        and p within ± half of its middle; a reach only grows with its factors. So with 96 % the ratio of some such A
        to n̂, from that middle, is in `ratio`. A union bound gives 95 %. ∎
        A hardly depends on θ near the mean, so nearly nothing is lost.
        """
        s, n, q = (float(x) for x in row)
        kappa, square = self.middles
        low, high = self.mean(row, self.sure_reach)
        most = ((self.span[1] - self.span[0]) / 2) ** 2
        if low > high:  # the mean is beyond its range: only with 1 %
            return 0.0, most
        far = max(abs(low), abs(high))
        bends = [square - 2 * t * kappa + t * t for t in (low, high, clipped(kappa, low, high))]
        middle, half = (min(bends) + max(bends)) / 2, (max(bends) - min(bends)) / 2
        reach = self.square_reach(2 * far).about(half)
        ends = [q - 2 * t * s + t * t * n for t in (low, high, clipped(s / n if n else 0.0, low, high))]
        least, largest = ratio(min(ends) - middle * n, max(ends) - middle * n, n, reach)
        return clipped(middle + least, 0.0, most), clipped(middle + largest, 0.0, most)


def valued(aggregate: Aggregate, span: tuple[int, int], row: Sequence[Number]) -> Number:
    """An aggregate from its measures."""
    step, first = 2.0**aggregate.exponent, row[0]
    if aggregate.name == "count":
        return round(first)  # halves to the even one, so that nothing is biased
    if aggregate.name == "sum":
        return first * step + (aggregate.centre * row[1] if len(row) > 1 else 0.0)
    many = max(1, row[1])
    mean = clipped(first / many, *span)
    if aggregate.name == "avg":
        return aggregate.centre + mean * step
    most = ((span[1] - span[0]) / 2) ** 2
    variance = clipped(row[2] / many - mean * mean, 0.0, most) * step * step
    return variance if aggregate.name == "variance" else math.sqrt(variance)


def clipped(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def quantile(window: Window, value: int, low: int, high: int) -> Read:
    """(value, low, high) of a quantile, in the column's own units."""
    return window.value(value), window.value(low, -window.spare), window.value(high, window.spare)
