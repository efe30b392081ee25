"""Public lattices: values as multiples of a power of two, chosen from the range and the step in the policy alone."""

import math
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass

from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Expression, columns
from sfumato.sql.plan import Measure, What

GENERATED = "a column of a SELECT in FROM"
STACKED = re.compile(r"t\d+\.c[0-9a-f]{32}x*")  # columns of SELECTs in FROM, whose names are generated
FINE = 2**20  # steps across a range without a step in the policy
FINEST = 2**40  # steps across a range from which values are selected
WIDE = 40  # sums of 10^6 rows of 2^40 steps stay far below 2^63, whatever the data are
LARGEST = 2.0**102  # a product of two columns whose bounds are still to be found is no more


@dataclass(frozen=True)
class Lattice:
    """The values of an expression in steps of 2^exponent from `origin`: 0 … points − 1."""

    of: Expression
    exponent: int

    @staticmethod
    def over(expression: Expression, text: str) -> "Lattice":
        """The lattice of a sum, unless that has more than FINEST points; `text` is how errors call the aggregate."""
        domain = expression.domain
        least = _power((domain.high - domain.low) / (FINEST / 8)) if domain.bounded else 0
        return Lattice(expression, max(exponent(expression, text), least))

    @property
    def origin(self) -> float:
        return float(self.of.domain.low // 2.0**self.exponent * 2.0**self.exponent)

    @property
    def points(self) -> int:
        return int(-(-(self.of.domain.high - self.origin) // 2.0**self.exponent)) + 1

    @property
    def spare(self) -> float:
        """Largest distance of a value from its lattice point."""
        step = 2.0**self.exponent
        return 0.0 if self.of.domain.step and self.of.domain.step % step == 0 else step / 2

    def value(self, place: int, spare: float = 0.0) -> float:
        """The number of a lattice point, clamped to the range."""
        found = self.origin + place * 2.0**self.exponent + spare
        return min(max(found, self.of.domain.low), self.of.domain.high)


@dataclass(frozen=True)
class Lattices:
    """The lattice of each expression: the same for all aggregates of a question, so AVG(x) and SUM(x) share one sum."""

    centred: Set[Expression]  # those whose mean is asked for: measured from the middle of the range
    bits: Mapping[Expression, int]  # of values in steps, where an aggregate allows no more
    scaled: bool = False  # are contributions scaled to a norm?

    def sum(self, of: Expression, name: str) -> Measure:
        """The sum of these values, measured from the middle of the range if a mean is asked for as well."""
        return Measure(What.SUM, of, self.centre(of, name), self.exponent(of, name))

    def squares(self, of: Expression, name: str) -> Measure:
        return Measure(What.SQUARES, of, self.centre(of, name), 2 * self.exponent(of, name))

    def centre(self, of: Expression, name: str) -> float:
        """Where values are measured from: 0, or the middle of the range."""
        return lattice_middle(of, self.exponent(of, name)) if of in self.centred else 0.0

    def exponent(self, of: Expression, name: str) -> int:
        """Exponent of the step. Where squares are summed it is larger, so that sums stay within 64 bits; and where rows
        have weights, so that noise does."""
        return self.exponent_within(of, name, self.bits.get(of, WIDE), of in self.centred)

    def exponent_within(self, of: Expression, name: str, bits: int, centred: bool) -> int:
        """Exponent of the step for values of at most so many bits, in steps; fewer bits where rows have weights."""
        return exponent(of, name, bits * 3 // 5, centred) if self.scaled else exponent(of, name, bits)


def exponent(expression: Expression, text: str, wide: int = WIDE, centred: bool = False) -> int:
    """The lattice of a sum: the policy's step, else a fine one, but never more than 2^wide steps from 0, or from the
    middle of the range (`centred`); all public facts."""
    domain = expression.domain
    if domain.kind is not Kind.NUMBER or not domain.bounded:
        if domain.kind is not Kind.NUMBER:
            days = "; of a date, DATE_DIFF('day', DATE '2020-01-01', x)" if domain.kind is Kind.DATE else ""
            raise QueryRefused(
                f"{text} takes numbers.\n  found:  a {domain.kind.value}\n"
                f"  do:     ask about a number made of it, such as CLAMP(LENGTH(x), 0, 100){days}"
            )
        used = list(columns(expression))
        free = {c.origin for c in used if not c.domain.bounded} or {c.origin for c in used}
        names = {GENERATED if STACKED.fullmatch(o) else o.split(".", 1)[1] for o in free}
        found = f", of {', '.join(sorted(names)[:5])}" if names else ""
        words = (
            f"{text} has no bounds, so one person could change it without limit.\n"
            f"  found:  a {domain.kind.value} of unknown range{found}\n"
            "  do:     give low and high in the policy, or ask for CLAMP(…, low, high) with ends that no value exceeds"
        )
        endless = sorted({c.origin for c in used if c.domain.kind is Kind.NUMBER and not c.domain.bounded})
        raise UnboundedColumn(words, endless[0]) if endless else QueryRefused(words)
    largest = max(abs(domain.low), abs(domain.high))
    if largest > LARGEST:
        raise QueryRefused(
            f"{text} is bounded by {largest:.2g}, too much for a sum.\n"
            "  do:     ask for CLAMP(…, low, high) with ends that no value exceeds"
        )
    fine = _power(domain.step or (domain.high - domain.low) / FINE)
    farthest = (domain.high - domain.low) / 2 if centred else largest
    return max(fine, math.frexp(farthest)[1] - wide, -200)


def lattice_middle(expression: Expression, exponent: int) -> float:
    """The middle of a range, on the lattice: from any other place, whole steps would round every value the same way."""
    step = 2.0**exponent
    return float((expression.domain.low + expression.domain.high) / 2 // step * step)


def _power(step: float) -> int:
    """The largest e with 2^e ≤ step; 0 for none."""
    return math.frexp(step)[1] - 1 if step else 0
