"""TRIMMED_MEAN(x, part): the mean without so many of the values at either end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from sqlglot import exp

from sfumato.aggregates.linear import Estimate
from sfumato.aggregates.price import IndependentNoise, Mu, Price
from sfumato.aggregates.quantile import fraction
from sfumato.aggregates.standalone import SURE, Standalone, StandaloneRelease, integers
from sfumato.errors import QueryRefused
from sfumato.mechanisms.dependent.additive_noise import Everywhere
from sfumato.mechanisms.dependent.cells import noise_radius
from sfumato.mechanisms.dependent.noisy_bound import NoisyBound
from sfumato.mechanisms.dependent.ordered_values import Ordered, merge_ranges
from sfumato.mechanisms.dependent.smooth import Smooth
from sfumato.mechanisms.dependent.trimmed_mean import TrimmedShare
from sfumato.noise.lazy import Draw
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Scalar
from sfumato.sql.emit.bounding import group_by, key_names, partition_by
from sfumato.sql.emit.request import Row
from sfumato.sql.emit.values import RankWindow, frequencies
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import node_text, require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Plan
from sfumato.sql.reserved_names import ALL, COUNT, COUNTED, RANKED, SUM, SUM_UP_TO, UP_TO, VALUE, VALUES, qualify
from sfumato.sql.value_lattice import Lattice

RUNG = 0.1  # of the price: how large the noise is, which the interval is made of
FINE = 20  # the least number of bits, of the range, with which the mean is released


@dataclass(frozen=True)
class TrimmedMean(Standalone):
    """TRIMMED_MEAN(x, part), of values in steps of a lattice.

    A trimmed mean has no cheap score, so its noise is smooth: docs/dependent.md.
    """

    name = "trimmed mean"
    spellings = ("trimmed_mean",)
    listed = "TRIMMED_MEAN"
    methods = ("trimmed_mean = TRIMMED_MEAN(x, part)",)
    example = "SELECT ward, TRIMMED_MEAN(stay, 0.1) FROM visits GROUP BY ward"

    lattice: Lattice
    part: Fraction

    def __repr__(self) -> str:
        return f"trimmed mean of quantile({self.lattice.of!r}, {self.lattice.exponent}, {self.part})"

    @classmethod
    def parse(cls, node: exp.Expression, rows: Scope, keys: Sequence[Expression]) -> "TrimmedMean":
        require_known_parts(node)
        arguments = node.expressions
        if not 1 <= len(arguments) <= 2 or isinstance(arguments[0], exp.Distinct):
            raise QueryRefused(f"{node_text(node)}: TRIMMED_MEAN takes a column and a number: TRIMMED_MEAN(x, 0.1).")
        part = fraction(arguments[1] if len(arguments) == 2 else None)
        if not 0 < part < Fraction(1, 2):
            raise QueryRefused(
                f"{node_text(node)} leaves nothing, or everything.\n"
                f"  found:  {float(part):g} of the values cut off at either end\n"
                "  do:     ask TRIMMED_MEAN(x, 0.1), or AVG(x) for the mean of all"
            )
        return TrimmedMean(Lattice.over(parse_expression(arguments[0], rows), node_text(node)), part)

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return (self.lattice.of,)

    def with_arguments(self, *values: Expression) -> "TrimmedMean":
        (of,) = values
        return TrimmedMean(Lattice.over(of, self.name), self.part)

    def needs_slack(self, price: type[Price]) -> bool:
        return price is Mu

    def release(self, plan: Plan, price: Price, slack: float) -> "TrimmedMeanRelease":
        return TrimmedMeanRelease(plan, price, slack, self)


@dataclass(frozen=True)
class TrimmedMeanRelease(StandaloneRelease):
    """A trimmed mean with noise at the smooth scale of the data, and a noisy bound on that scale for its interval.

    Theorem: a rung moves by at most `steps` between neighbours, so it is bought like a count that moves so far
        [docs/theorems/dilation.md, Theorem 3]
    """

    aggregate: TrimmedMean

    @cached_property
    def mean(self) -> TrimmedShare:
        """The trimmed mean over positions on the lattice."""
        lattice = self.aggregate.lattice
        return TrimmedShare(0, max(lattice.points - 1, 1), 1, self.aggregate.part, self.plan.rows)

    @cached_property
    def step(self) -> Fraction:
        """Answers are multiples of this part of a step: means lie between values."""
        return Fraction(1, 1 << max(0, FINE - self.mean.ends[1].bit_length()))

    @cached_property
    def mechanism(self) -> Smooth | Everywhere:
        found = self.price.part(1 - RUNG).data_dependent_mechanism(self.mean, self.slack, self.step)
        assert not isinstance(found, NoisyBound)
        return found

    @cached_property
    def window(self) -> int:
        """The largest distance, in people, at which local sensitivities are considered."""
        return max(self.mechanism.ladder.window - 1, 0) if isinstance(self.mechanism, Smooth) else 0

    def statement(self, salt: int, dialect: str | Dialect) -> str:
        return trimmed_statement(self.plan, self.aggregate, (self.window + 1) * self.mean.values + 4, salt, dialect)

    def prepare(self) -> None:
        if isinstance(self.mechanism, Smooth):
            _ = self.mechanism.ladder.floors, self.mechanism.ladder.ceilings
            self.noise.ready(1)
        self.read([0.0, self.off(0)])

    @cached_property
    def noise(self) -> IndependentNoise:
        """The noise on the rung."""
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
        return noise_radius(self.mechanism.noise, (1 - SURE) / 2)

    def release(self, rows: Sequence[Row]) -> list[Scalar]:
        mechanism = self.mechanism
        if isinstance(mechanism, Everywhere):
            return [float(np.asarray(mechanism.release(self.ordered_values(rows))).item()), self.off(0)]
        draw = Draw(mechanism.noise, mechanism.source)
        x = self.ordered_values(rows)
        rung = mechanism.rung(x)
        return [mechanism.noisy(draw, self.mean.value(x), rung), self.off(int(self.noise.release(rung)))]

    def ordered_values(self, rows: Sequence[Row]) -> Ordered:
        """The values of the ranks that count; a very frequent value is listed only as often as needed."""
        low, high = self.mean.ends
        if not rows or not rows[0][0]:
            return Ordered(0, low, high, (1,), (np.zeros(0, np.int64),))
        n, (values, counts, upto, sums) = int(str(rows[0][0])), (integers(column) for column in rows[0][1:])
        parts = merge_ranges([(max(first, 1), min(last, n)) for first, last in self.mean.ranks(n, self.window)])
        places = np.array(upto)

        def total(rank: int) -> int:
            """The sum of the values up to this rank."""
            at = int(np.searchsorted(places, rank))
            return sums[at] - (upto[at] - rank) * values[at]

        blocks = []
        for first, last in parts:
            i, j = np.searchsorted(places, [first, last]).tolist()
            often = [min(upto[k], last) - max(upto[k] - counts[k], first - 1) for k in range(i, j + 1)]
            blocks.append(np.repeat(np.array(values[i : j + 1], np.int64), often))
        gaps = tuple(total(first - 1) - total(last) for (_, last), (first, _) in pairwise(parts))
        return Ordered(n, low, high, tuple(first for first, _ in parts), tuple(blocks), gaps)

    def read(self, stored: Sequence[Scalar]) -> Estimate:
        lattice, (place, off) = self.aggregate.lattice, (float(x or 0) for x in stored)
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

    def promise(self) -> str:
        return "± depends on how the values are spread; an interval comes with the answer"


def trimmed_statement(plan: Plan, trimmed: TrimmedMean, reach: int, salt: int, dialect: str | Dialect) -> str:
    """keys, how many values there are, and in order: values, how many have each, how many have it or less, and the sum
    of these; for all values that are within `reach` ranks of either end of what is kept."""
    to, names = dialect_of(dialect).about(plan), key_names(plan)
    value, count, total = qualify(COUNTED, [VALUE, COUNT, SUM])
    split = partition_by(qualify(COUNTED, names))
    running = [f"{to.total(of)} OVER ({split} ORDER BY {value}) AS {name}" for name, of in
               ((UP_TO, count), (SUM_UP_TO, total))]  # fmt: skip
    mine = [*qualify(COUNTED, names), value, count, *running, f"{to.total(count)} OVER ({split}) AS {ALL}"]
    ranked = f"SELECT {', '.join(mine)} FROM {COUNTED}"
    part = trimmed.part
    windows = [RankWindow(one, 0, reach * part.denominator) for one in (part, Fraction(1) - part)]
    near = " OR ".join(window.holds() for window in windows)
    kept = qualify(RANKED, names)
    lists = to.lists(*qualify(RANKED, [VALUE, COUNT, UP_TO, SUM_UP_TO]))
    shown = ", ".join([*kept, f"CAST(MAX({RANKED}.{ALL}) AS BIGINT)", *lists])
    counted = frequencies(plan, trimmed.lattice, salt, to, f"{to.total(f'{VALUES}.{VALUE}')} AS {SUM}")
    return f"WITH {counted} SELECT {shown} FROM ({ranked}) AS {RANKED} WHERE {near} {group_by(kept)}"
