"""The basis that noise is added to: the measures of a plan, each relative to a parent that bounds it.

A person with n rows in a group adds between low·n and high·n to a sum. Noise on the sum's distance from the middle,
and on n, serves both better than noise on each of them by itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from sfumato.sql.emit.norm import WHOLE
from sfumato.sql.plan import Measure, Plan, What

FAVOUR = Fraction(3, 8)


@dataclass(frozen=True)
class Part:
    """z = scale·m − shift·p for a measure m and its parent p (or m itself); |z| ≤ size for one unit in one group.

    Theorem: if low·p ≤ m ≤ high·p and 0 ≤ p ≤ most for every unit, then z = 2m − (low + high)·p has |z| ≤
        (high − low)·most [immediate]
    What is summed over units stays so under linear maps: one unit changes the total of each z by at most `size`.
    """

    size: int
    parent: int | None = None
    scale: int = 1
    shift: int = 0

    @staticmethod
    def between(low: int, high: int, most: int, parent: int) -> "Part":
        """From low·p to high·p, p ≤ most, seen from the middle; in halves only where the middle is one."""
        if (low + high) % 2:
            return Part((high - low) * most, parent, 2, low + high)
        return Part((high - low) // 2 * most, parent, 1, (low + high) // 2)


@dataclass(frozen=True)
class NoiseBasis:
    """The measures of a plan, of which a unit has so many `rows` in a group at most, as parts."""

    measures: tuple[Measure, ...]
    rows: int
    weight: int = 1  # of a row: where contributions are scaled, weighted parts are whole multiples of 1/weight

    @staticmethod
    def of(plan: Plan) -> "NoiseBasis":
        return shared_basis(plan.measures, plan.rows, WHOLE if plan.table.scaled else 1)

    def weight_of(self, measure: Measure) -> int:
        """The weight of a measure: 1 for counts of different values, which are not weighted."""
        return 1 if measure.what is What.DISTINCT else self.weight

    @property
    def distinct(self) -> int:
        """How many measures are counts of different values."""
        return sum(m.what is What.DISTINCT for m in self.measures)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """One part for each measure, in the order of measures."""
        return tuple(map(self.part, self.measures))

    def part(self, measure: Measure) -> Part:
        """A measure seen from the nearest one that bounds it, or by itself.

        Who is in a group has a row there. A row without a value adds 0 to a sum; if values are counted, it has no part
        in it. Different values (DISTINCT) are no sum over units, so they stand alone.
        """
        low, high = measure.span()
        parents = possible_parents(measure, bounded=self.weight == 1)
        parent = next((one for one in parents if one in self.measures), None)
        if parent is None:
            rows = 1 if measure.what is What.UNITS else self.rows
            return Part(max(abs(low), abs(high), 1) * rows)
        place = self.measures.index(parent)
        if parent.what is What.VALUES:
            return Part.between(low, high, self.rows, place)
        least, most = (1, 1) if measure.what is What.ROWS else (min(low, 0), max(high, 0))
        if parent.what is What.ROWS:
            return Part.between(least, most, self.rows, place)
        return Part.between(least if measure.what is What.ROWS else least * self.rows, most * self.rows, 1, place)

    @cached_property
    def coefficients(self) -> tuple[tuple[Fraction, ...], ...]:
        """Each measure as a sum of parts: m = (z + shift·p)/scale, and so on up."""
        return tuple(self._coefficients(place) for place in range(len(self.measures)))

    def _coefficients(self, place: int) -> tuple[Fraction, ...]:
        found, factor, at = [Fraction(0)] * len(self.parts), Fraction(1, self.weight_of(self.measures[place])), place
        while True:
            part = self.parts[at]
            found[at] = factor / part.scale
            factor *= Fraction(part.shift, part.scale)
            if part.parent is None:
                return tuple(found)
            at = part.parent

    @cached_property
    def importances(self) -> tuple[float, ...]:
        """Aⱼ, where Σ Aⱼ/wⱼ is the sum of all measures' variances under shares wⱼ, each against that which it would
        have alone; 0 for a part that nobody can move. No aggregate is asked, so that spelling does not change noise.

        A measure Σ cⱼzⱼ has the variance Σ (cⱼ·sizeⱼ)²/wⱼ, whose least value over all shares is (Σ |cⱼ|·sizeⱼ)².
        """
        found: list[list[float]] = [[] for _ in self.parts]
        for coefficients in self.coefficients:
            reach = [abs(float(c)) * part.size for c, part in zip(coefficients, self.parts, strict=True)]
            for j, one in enumerate(reach):
                found[j].append((one / math.fsum(reach)) ** 2 if one else 0.0)
        return tuple(math.fsum(each) for each in found)

    @cached_property
    def favours(self) -> tuple[Fraction, ...]:
        """How much of a joint norm (`JointLaplace`) each part has for itself: FAVOUR for one that others are seen from.

        Its noise is in everything. Of a count and a sum, FAVOUR is what still leaves the sum's own part a little less
        noise than half of ε would: with x = 1/(1 − w) its |noise| is x + 1/(1 + x) of that which it would have alone,
        and 2 at w = 0.382; the count's is 1 + 1/(1 + x). Of several such parts none is favoured.
        """
        seen_from = {part.parent for part in self.parts if part.size}
        bases = [j for j, part in enumerate(self.parts) if part.parent is None and j in seen_from]
        return tuple(FAVOUR if [j] == bases else Fraction(0) for j in range(len(self.parts)))

    @cached_property
    def integer_coefficients(self) -> tuple[tuple[int, tuple[tuple[int, int], ...]], ...]:
        """`coefficients` with whole numbers: (denominator, (place, numerator) of all that are not 0)."""
        found = []
        for coefficients in self.coefficients:
            below = max(c.denominator for c in coefficients)  # all are powers of two
            found.append((below, tuple((j, int(c * below)) for j, c in enumerate(coefficients) if c)))
        return tuple(found)

    def parts_of(self, row: Sequence[int]) -> list[int]:
        """The parts of exact measures."""
        return [column[0] for column in self.part_columns([row])]

    def part_columns(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """The parts of many rows of exact measures, as columns."""
        given = list(zip(*rows, strict=True)) or [()] * len(self.parts)
        return [
            [part.scale * m - part.shift * p for m, p in zip(given[j], given[part.parent or 0], strict=True)]
            for j, part in enumerate(self.parts)
        ]

    def measures_of(self, row: Sequence[float | int]) -> list[float | int]:
        """The measures, from (noisy) parts; integers where they are whole."""
        return [self.measure(place, row) for place in range(len(self.measures))]

    def measure(self, place: int, row: Sequence[float | int]) -> float | int:
        """One measure, from (noisy) parts."""
        denominator, coefficients = self.integer_coefficients[place]
        total: float | int = 0
        for j, c in coefficients:
            total += c * row[j]
        if denominator == 1:
            return total
        return total // denominator if total % denominator == 0 else total / denominator


@lru_cache(maxsize=256)
def shared_basis(measures: tuple[Measure, ...], rows: int, weight: int) -> NoiseBasis:
    """The basis does not depend on the price: it is worked out once for all offers of a question."""
    return NoiseBasis(measures, rows, weight)


def possible_parents(measure: Measure, bounded: bool) -> tuple[Measure, ...]:
    """The measures that may bound a measure, the nearest first: units only where the rows of each are bounded."""
    units, rows = (Measure(What.UNITS),) if bounded else (), Measure(What.ROWS)
    match measure.what:
        case What.ROWS:
            return units
        case What.VALUES:
            return rows, *units
        case What.SUM | What.SQUARES:
            return measure.counted_by, rows, *units
    return ()
