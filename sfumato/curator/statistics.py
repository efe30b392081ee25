"""Trimmed means, modes and triangles: what a price buys, what is made of exact rows, and how that is read.

Theorem: each has the price that its mechanism states, (μ², slack) or (ε, slack), and slacks add up beside it
    [`LeakyLoss`; docs/theorems/price.md]
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from sfumato.curator.estimates import Told
from sfumato.curator.price import Alone, Currency, Mu
from sfumato.mechanisms.choice.exponential import Exponential
from sfumato.mechanisms.choice.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.dependent.cells import radius
from sfumato.mechanisms.dependent.global_noise import Everywhere
from sfumato.mechanisms.dependent.noisy_bound import Bounded, NoisyBound
from sfumato.mechanisms.dependent.ordered import Ordered, merged
from sfumato.mechanisms.dependent.precomputed import Counted
from sfumato.mechanisms.dependent.smooth import Smooth
from sfumato.mechanisms.dependent.stable import GaussianStableValue, Stable, StableValue
from sfumato.mechanisms.dependent.trimmed_share import TrimmedShare
from sfumato.noise.lazy import Draw
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Scalar
from sfumato.sql.emit.statistics import ends, triangles, votes
from sfumato.sql.plan import Plan
from sfumato.sql.statistics import Mode, Statistic, Triangles, Trimmed

Row = tuple[object, ...]
RUNG = 0.1  # of a trimmed mean's price: how large its noise is, which its interval is made of
FINE = 20  # bits of a range that a trimmed mean is told with, at least
SURE = 0.95


@dataclass(frozen=True)
class Way(ABC):
    """How a statistic of one group is released at a price, and with a slack where its mechanism needs one."""

    plan: Plan
    price: Currency
    slack: float

    @abstractmethod
    def statement(self, salt: int, dialect: str | Dialect) -> str:
        """What the engine is asked: keys first."""

    @abstractmethod
    def work_out(self) -> None:
        """All that follows from public facts."""

    @abstractmethod
    def released(self, rows: Sequence[Row]) -> list[Scalar]:
        """What is stored, from the exact rows of one group: the only place where noise is drawn."""

    @abstractmethod
    def read(self, kept: Sequence[Scalar]) -> Told:
        """(value, low, high) from what is stored."""

    @abstractmethod
    def words(self) -> str:
        """How good it will be."""


def leaky(statistic: Statistic, currency: type[Currency]) -> bool:
    """Does its mechanism need a slack?"""
    if isinstance(statistic, Mode):
        return statistic.choices is None
    return isinstance(statistic, Triangles) or currency is Mu


def way(statistic: Statistic, plan: Plan, price: Currency, slack: float) -> Way:
    """The mechanism for a statistic, by public facts alone.

    Trimmed means have no cheap score, so their noise is smooth; one of few values is chosen, of many only a stable one
    is shown; the local sensitivity of triangles is bought first. See docs/dependent.md.
    """
    match statistic:
        case Trimmed():
            return TrimmedWay(plan, price, slack, statistic)
        case Triangles():
            return TrianglesWay(plan, price, slack, statistic)
        case Mode(choices=None):
            return StableWay(plan, price, slack, statistic)
    return ChosenWay(plan, price, slack, statistic)


@dataclass(frozen=True)
class TrimmedWay(Way):
    """A trimmed mean with noise at the smooth scale of the data, and a noisy bound on that scale for its interval.

    Theorem: a rung moves by at most `steps` between neighbours, so it is bought like a count that moves so far
        [docs/theorems/dilation.md, Theorem 3]
    """

    statistic: Trimmed

    @cached_property
    def mean(self) -> TrimmedShare:
        """Of places on the lattice."""
        lattice = self.statistic.lattice
        return TrimmedShare(0, max(lattice.points - 1, 1), 1, lattice.part, self.plan.rows)

    @cached_property
    def step(self) -> Fraction:
        """Answers are multiples of this part of a step: means lie between values."""
        return Fraction(1, 1 << max(0, FINE - self.mean.ends[1].bit_length()))

    @cached_property
    def mechanism(self) -> Smooth | Everywhere:
        found = self.price.part(1 - RUNG).routed(self.mean, self.slack, self.step)
        assert not isinstance(found, NoisyBound)
        return found

    @cached_property
    def most(self) -> int:
        """How many people away sensitivities are looked at."""
        return max(self.mechanism.ladder.window - 1, 0) if isinstance(self.mechanism, Smooth) else 0

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return ends(self.plan, self.statistic, (self.most + 1) * self.mean.values + 4, salt, dialect)

    def work_out(self) -> None:
        if isinstance(self.mechanism, Smooth):
            _ = self.mechanism.ladder.floors, self.mechanism.ladder.ceilings
            self.noise.ready(1)
        self.read([0.0, self.off(0)])

    @cached_property
    def noise(self) -> Alone:
        """Of the rung."""
        assert isinstance(self.mechanism, Smooth)
        return self.price.part(RUNG).noise(self.mechanism.steps)

    @cached_property
    def margin(self) -> int:
        """The noisy rung is farther below the true one with 2.5 % at most."""
        return math.ceil(self.noise.error(SURE))

    @cached_property
    def far(self) -> float:
        """|Z| is larger with 2.5 % at most."""
        assert isinstance(self.mechanism, Smooth)
        return radius(self.mechanism.noise, (1 - SURE) / 2)

    def released(self, rows: Sequence[Row]) -> list[Scalar]:
        mechanism = self.mechanism
        if isinstance(mechanism, Everywhere):
            return [float(np.asarray(mechanism.release(self.ordered(rows))).item()), self.off(0)]
        draw = Draw(mechanism.noise, mechanism.source)
        x = self.ordered(rows)
        rung = mechanism.rung(x)
        return [mechanism.noisy(draw, self.mean.value(x), rung), self.off(int(self.noise.release(rung)))]

    def ordered(self, rows: Sequence[Row]) -> Ordered:
        """The values of the ranks that count; one that very many have is listed as often as it is needed."""
        low, high = self.mean.ends
        if not rows or not rows[0][0]:
            return Ordered(0, low, high, (1,), (np.zeros(0, np.int64),))
        n, (values, counts, upto, sums) = int(str(rows[0][0])), (whole(column) for column in rows[0][1:])
        parts = merged([(max(first, 1), min(last, n)) for first, last in self.mean.ranks(n, self.most)])
        places = np.array(upto)

        def total(rank: int) -> int:
            """Of the first so many."""
            at = int(np.searchsorted(places, rank))
            return sums[at] - (upto[at] - rank) * values[at]

        blocks = []
        for first, last in parts:
            i, j = np.searchsorted(places, [first, last]).tolist()
            often = [min(upto[k], last) - max(upto[k] - counts[k], first - 1) for k in range(i, j + 1)]
            blocks.append(np.repeat(np.array(values[i : j + 1], np.int64), often))
        gaps = tuple(total(first - 1) - total(last) for (_, last), (first, _) in pairwise(parts))
        return Ordered(n, low, high, tuple(first for first, _ in parts), tuple(blocks), gaps)

    def read(self, kept: Sequence[Scalar]) -> Told:
        lattice, (place, off) = self.statistic.lattice, (float(x or 0) for x in kept)
        off = off * 2.0**lattice.exponent + lattice.spare
        value = lattice.origin + place * 2.0**lattice.exponent
        low, high = lattice.of.domain.low, lattice.of.domain.high
        return tuple(min(max(x, low), high) for x in (value, value - off, value + off))  # type: ignore[return-value]

    def off(self, rung: int) -> float:
        """How far an answer is off with 5 % at most, in steps, if this is the noisy rung."""
        if isinstance(self.mechanism, Everywhere):
            return self.mechanism.error(SURE)
        ladder = self.mechanism.ladder
        power = float(ladder.power(max(0, min(rung + self.margin, ladder.top))))
        wide = float(ladder.unit) * math.exp(power) / self.mechanism.shift
        return (wide * self.far + float(self.step) / 2) * (1 + 1e-9)

    def words(self) -> str:
        return "± depends on how the values are spread; an interval comes with the answer"


@dataclass(frozen=True)
class ChosenWay(Way):
    """The most common of few public values: chosen by how many have it.

    Theorem: a unit adds to counts, by at most `rows` to each, so that choices ∝ e^{η·count/rows} have range η
        [Durfee & Rogers 2019, section 3]
    """

    statistic: Mode

    @cached_property
    def choices(self) -> Sequence[Scalar]:
        return self.statistic.choices or ()

    @cached_property
    def mechanism(self) -> Exponential | PermuteAndFlip:
        return self.price.among(self.plan.rows)

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return votes(self.plan, self.statistic, salt, dialect)

    def work_out(self) -> None:
        _ = self.mechanism.error(SURE, candidates=len(self.choices))

    def released(self, rows: Sequence[Row]) -> list[Scalar]:
        counts = {unsigned(value): int(str(many)) for value, many in rows}
        return [self.mechanism.release([counts.get(value, 0) for value in self.choices])]

    def read(self, kept: Sequence[Scalar]) -> Told:
        return shown(self.statistic, self.choices[int(kept[0] or 0)])

    def words(self) -> str:
        gap = self.mechanism.error(SURE, candidates=len(self.choices))
        return f"a value that the most common one leads by at most {gap:,.0f} rows, at 95 %"


@dataclass(frozen=True)
class StableWay(Way):
    """The most common of very many values, if it leads by so much that few people could not change it; else NULL.

    With a lead of g rows, ⌊(g − 1)/rows⌋ units may come or go: as `Stable` asks, this moves by at most one with a unit,
    and is 0 at both of two neighbours whose most common values differ, whichever of equals is named.

    Theorem: what few people cannot change may be shown as it is [docs/theorems/recipes.md, Theorems 3 and 4]
    """

    statistic: Mode

    @cached_property
    def mechanism(self) -> StableValue | GaussianStableValue:
        return self.price.stable(self.slack)

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return votes(self.plan, self.statistic, salt, dialect)

    def work_out(self) -> None:
        self.mechanism.ready(1)
        _ = self.mechanism.error(SURE)

    def released(self, rows: Sequence[Row]) -> list[Scalar]:
        return [self.mechanism.release(self.lead(rows))]

    def lead(self, rows: Sequence[Row]) -> Stable:
        """The most common value, and how many units it withstands."""
        counts = sorted(((int(str(many)), value) for value, many in rows), key=lambda one: one[0], reverse=True)
        (most, first), (next_, _) = [*counts, (0, None), (0, None)][:2]
        return Stable(first, max(0, (most - next_ - 1) // self.plan.rows))

    def read(self, kept: Sequence[Scalar]) -> Told:
        return shown(self.statistic, kept[0])

    def words(self) -> str:
        lead = self.mechanism.error(SURE) * self.plan.rows + 1
        return f"shown with 95 % if it leads by {lead:,} rows, and NULL if there is no clear lead"


@dataclass(frozen=True)
class TrianglesWay(Way):
    """Triangles: the most common neighbours of two nodes are bought first, then noise for them.

    Theorem: that number bounds what an edge does to triangles, and moves by at most one with an edge
        [docs/theorems/recipes.md, Theorem 5; Nissim, Raskhodnikova & Smith 2007]
    """

    statistic: Triangles

    @cached_property
    def mechanism(self) -> NoisyBound:
        found = self.price.routed(Counted(), self.slack, Fraction(1))
        assert isinstance(found, NoisyBound)
        return found

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return triangles(self.plan, self.statistic, dialect)

    def work_out(self) -> None:
        self.mechanism.ready(1)
        self.read([0, 1])

    def released(self, rows: Sequence[Row]) -> list[Scalar]:
        return list(self.mechanism.release(tuple(whole(rows[0]))))

    def read(self, kept: Sequence[Scalar]) -> Told:
        found = Bounded(*(int(x or 0) for x in kept))
        off = self.mechanism.error(SURE, bound=found.bound)
        return found.answer, found.answer - off, found.answer + off

    def words(self) -> str:
        return "± depends on how many neighbours two nodes share; an interval comes with the answer"


def whole(numbers: object) -> list[int]:
    """Exact integers of an engine."""
    assert isinstance(numbers, Iterable)
    return [int(x) for x in numbers]


def unsigned(value: object) -> object:
    """As public values are written: numbers as doubles, but places on a lattice."""
    return value + 0.0 if isinstance(value, float) else value


def shown(mode: Mode, value: Scalar) -> Told:
    """A mode as it is shown, without an interval."""
    if mode.lattice is not None and value is not None:
        value = mode.lattice.value(int(value))
    return value, None, None
