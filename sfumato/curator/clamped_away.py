"""The part of means and sums that clamping to automatic bounds removes, and intervals that include it.

Nobody can say for all data how far outside values lie: one of 10¹⁵ is seen by no private histogram. So this is a model,
as for long contributions (`norm_tail`). Of each doubling of the size there are at most as many values as noise allows,
and where none are seen at most a quarter of those in the doubling before, as where the variance is finite. Rows of a
group, and rows with the weights of their units, are outside at most UNEVEN times as often as votes are.

Theorem: if the mean of (x − high)⁺ is at most `up` and that of (low − x)⁺ at most `down`, the mean of x is between that
    of the clamped values − down and + up [linearity; x = clamped + (x − high)⁺ − (low − x)⁺]
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.aggregates.mean import Mean
from sfumato.aggregates.noisy_sums import UNEVEN
from sfumato.aggregates.quantile import Quantile
from sfumato.aggregates.sum import Sum
from sfumato.curator.answer import Answer
from sfumato.curator.value_votes import NoisyCounts
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.domains import Domain
from sfumato.sql.expressions import Column, Constant, Expression, Output, columns
from sfumato.sql.functions.numbers import LEAST_SIZE, SIZES
from sfumato.sql.parse.trace import outputs
from sfumato.sql.question import Question

EVERYWHERE = Constant(True)
SIDE = 2.33  # deviations of noise that are added: 1 % beyond
SEEN = 5.5  # from which a doubling is taken to hold values
FALL = 4.0  # from doubling to doubling where none are seen: a finite variance needs no less


@dataclass(frozen=True)
class ClampedAway:
    """Upper bounds of what clamping takes, downwards and upwards: from a mean; and from a sum, in all or as a share of
    what is left of it. A sum has neither where votes do not tell how many rows there are, and signs are mixed."""

    mean: tuple[float, float]
    amount: tuple[float, float] | None = None
    share: tuple[float, float] | None = None

    @staticmethod
    def of(
        sizes: NoisyCounts, places: NoisyCounts, ends: tuple[float, float], low: float, high: float, exact: bool
    ) -> "ClampedAway":
        """From noisy counts of sizes and of places between `ends`; `exact`: values begin their bins."""
        width = (ends[1] - ends[0]) / (len(places.counts) - 2)
        first = [ends[0] + i * width for i in range(len(places.counts) - 2)]
        last = [x if exact else x + width for x in first]
        seen, total = list(zip(first, last, places.counts[1:-1], strict=True)), lower_sum(places.counts, places.sigma)
        turned = [(-b, -a, n) for a, b, n in reversed(seen)]
        larger, smaller = sizes.counts[SIZES + 1 :], sizes.counts[:SIZES][::-1]
        everybody = lower_sum([n for n in sizes.counts if n > SIDE * sizes.sigma], sizes.sigma)
        up = mean_beyond(seen, total, larger, everybody, sizes.sigma, high, ends[1])
        down = mean_beyond(turned, total, smaller, everybody, sizes.sigma, -low, -ends[0])
        if not places.by_unit:
            many = math.fsum(places.counts) + SIDE * places.sigma * math.sqrt(len(places.counts))
            return ClampedAway((down, up), (many * down, many * up))
        kept = 0.0  # a lower bound of |mean| of what is left
        if low >= 0 or high <= 0:
            rows, by_size, (near, far) = (seen, larger, (low, high)) if low >= 0 else (turned, smaller, (-high, -low))
            starts = [(LEAST_SIZE * 2.0**i, n) for i, n in enumerate(by_size)]
            doubled = [(x, n) for x, n in starts if x < max(map(abs, ends)) * (1 - 1e-9)]
            kept = max(
                least_mean([(a, n) for a, b, n in rows if b > 0], places, near, far),
                least_mean(doubled, sizes, near, far),
            )
        return ClampedAway((down, up), share=(down / kept, up / kept) if kept > 0 else None)

    def widen(self, low: float, high: float, summed: bool, times: float) -> tuple[float, float] | None:
        """An interval of all values, where rows may be outside so many times as often; None if nothing is known."""
        if not summed:
            return low - times * self.mean[0], high + times * self.mean[1]
        if self.amount is not None:
            return low - self.amount[0], high + self.amount[1]
        if self.share is None:
            return None
        most = max(abs(low), abs(high)) * times
        return low - most * self.share[0], high + most * self.share[1]


def lower_sum(counts: Sequence[float], sigma: float) -> float:
    """A lower bound of the sum of noisy counts, and at least σ."""
    return max(math.fsum(counts) - SIDE * sigma * math.sqrt(len(counts)), sigma)


def mean_beyond(
    places: Sequence[tuple[float, float, float]], total: float, sizes: Sequence[float], people: float, sigma: float,
    high: float, end: float,
) -> float:  # fmt: skip
    """An upper bound of the mean of (x − high)⁺: from places up to the next power of two, and from sizes beyond it.

    `sizes` are noisy counts of x ≥ LEAST_SIZE·2ⁱ, below twice that. Values on the other side of 0 matter where
    high < 0, and only as far as there are places.
    """
    first = max(0, math.ceil(math.log2(high / LEAST_SIZE) - 1e-9)) if high > LEAST_SIZE else 0
    edge = LEAST_SIZE * 2.0**first if high > 0 else end
    near = [(min(b, edge) - high, n) for a, b, n in places if a < edge and b > high]
    found = math.fsum(d * n for d, n in near) + SIDE * sigma * math.hypot(*(d for d, _ in near))
    return max(0.0, found) / total + (amount_beyond(sizes, first, sigma, high, end) / people if high > 0 else 0.0)


def amount_beyond(sizes: Sequence[float], first: int, sigma: float, high: float, end: float) -> float:
    """An upper bound of Σ (x − high)⁺ over all x ≥ LEAST_SIZE·2^first: of each doubling as many as noise allows, and
    where none are seen a quarter of the doubling before at most. After the last one that adds what it had once more.
    """
    amount, before, i = 0.0, math.inf, first
    while i < len(sizes) and (i == first or LEAST_SIZE * 2.0**i < end * (1 - 1e-9)):
        most = max(0.0, sizes[i] + SIDE * sigma)
        before = most if sizes[i] > SEEN * sigma else min(most, before / FALL)
        amount += before * (LEAST_SIZE * 2.0 ** (i + 1) - high)
        i += 1
    return amount + (before * LEAST_SIZE * 2.0**i if i > first else 0.0)  # Σ (2/FALL)ʲ = 1


def least_mean(counts: Sequence[tuple[float, float]], of: NoisyCounts, low: float, high: float) -> float:
    """A lower bound of the mean of values clamped to 0 ≤ low < high, of which so many are at least x; 0 if noise hides
    it."""
    least = [(min(max(x, low), high), n) for x, n in counts]
    noise = SIDE * of.sigma * math.hypot(*(x for x, _ in least))
    total = max(math.fsum(of.counts), 0.0) + SIDE * of.sigma * math.sqrt(len(of.counts))
    return max(0.0, (math.fsum(x * n for x, n in least) - noise) / total)


# ---- answers --------------------------------------------------------------------------------------------------------


def include_clamped(
    answer: Answer, question: Question | None, found: Sequence[tuple[float, float, ClampedAway]]
) -> tuple[Answer, bool]:
    """The answer with wider intervals of AVG(x) and SUM(x), for columns x with these bounds; and whether no interval is
    left that does not include what clamping removes."""
    if question is None or question.outer is not None:
        return answer, False
    names, rows, complete = answer.columns, [list(row) for row in answer.rows], True
    plan = question.plan
    for name, expression in question.columns:
        for aggregate in aggregates_of(question, expression):
            away = next((one for low, high, one in found if reads_clamped(aggregate, low, high)), None)
            if away is None:
                continue
            if not (is_of_column(aggregate) and isinstance(expression, Output) and f"{name} low" in names):
                complete = False
                continue
            at, times = names.index(f"{name} low"), 1.0 if not plan.keys and plan.where == EVERYWHERE else UNEVEN
            for row in rows:
                low, high = row[at : at + 2]
                if isinstance(low, int | float) and isinstance(high, int | float):
                    if isinstance(aggregate, Quantile):
                        row[at : at + 2] = open_at(aggregate.lattice.of.domain, low, high)
                        continue
                    ends = away.widen(low, high, isinstance(aggregate, Sum), times)
                    complete &= ends is not None
                    row[at : at + 2] = ends or (low, high)
    return replace(answer, rows=tuple(map(tuple, rows)), coverage=dict(answer.coverage)), complete


def is_of_column(aggregate: Aggregate) -> bool:
    """Is it a mean, a sum or a quantile of a column as it is?"""
    if isinstance(aggregate, Quantile):
        return isinstance(aggregate.lattice.of, Column)
    return isinstance(aggregate, Mean | Sum) and isinstance(aggregate.of, Column)


def open_at(bounds: Domain, low: float, high: float) -> tuple[float | None, float | None]:
    """An interval of a quantile, open where it ends at a bound: clamping moves no value across another one, so a
    quantile between the bounds is where it was, and one at a bound may be any value beyond it."""
    return (None if low <= bounds.low else low), (None if high >= bounds.high else high)


def aggregates_of(question: Question, expression: Expression) -> list[Aggregate]:
    """The aggregates that a column is made of."""
    width = len(question.plan.keys)
    return [question.aggregates[place - width] for place in outputs(expression) if place >= width]


def reads_clamped(aggregate: Aggregate, low: float, high: float) -> bool:
    """Does it add up values with these bounds? A count of values is the same after clamping."""
    values = () if aggregate.is_count else aggregate.arguments
    return any((one.domain.low, one.domain.high) == (low, high) for value in values for one in columns(value))
