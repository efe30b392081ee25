"""Private help with bounds: two noisy histograms, bought like any answer, and what they suggest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from sfumato.curator.answer import about_percent, percent
from sfumato.curator.planner import require_positive
from sfumato.curator.purchase import Buyer
from sfumato.curator.value_votes import (
    NoisyCounts,
    buy_value_histogram,
    has_bin_per_value,
    magnitude_histogram,
    position_histogram,
)
from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Column
from sfumato.sql.functions.numbers import LEAST_SIZE, SIZES
from sfumato.sql.plan import Plan, Table
from sfumato.sql.policy import Policy

SURE = 5.5  # σ: a bin that holds nothing is above this with 2e-8
SURE_RUN = 4.5  # the same of a run of bins, of which there are fewer
CLEAR = (8.0, 5.0, 3.5)  # σ of a sum of bins from which on its place is known: well, rather, at all
LATER = 3.0  # a question that uses the bounds is taken to have so many times the μ
FARTHEST = 1e15  # bounds that a policy may state
CERTAIN = 1.64  # deviations of noise that are added for an upper bound, which then fails in 5 %


@dataclass(frozen=True)
class Outside:
    """The share beyond bounds, estimated from noisy histograms: of the values, where each person's have the same
    weight together; `at_most` with 95 %. And of the people at least which share has such a value; None if unknown."""

    values: float
    at_most: float
    people: float | None = None

    def __str__(self) -> str:
        people = f", of at least about {percent(self.people)} of people" if self.people else ""
        return f"{about_percent(self.values)} of values{people} lie outside, at most {percent(self.at_most)}"


@dataclass(frozen=True)
class Bounds:
    """Suggested low and high for a column, and what lies outside."""

    column: str
    low: float
    high: float
    epsilon: float
    charged: bool
    outside: Outside = Outside(0.0, 1.0)

    def __str__(self) -> str:
        name = self.column.split(".")[-1]
        price = f"ε = {self.epsilon:.3g}" if self.charged else "free: this was asked before"
        return f"{name} = {{low = {self.low:g}, high = {self.high:g}}}    # {price}; {self.outside}"


def number_column(column: str, policy: Policy) -> tuple[Table, Column]:
    """The column of this name, if it has numbers and is private."""
    table_name, _, name = column.lower().partition(".")
    table = policy.tables.get(table_name)
    domain = table.columns.get(name) if table is not None else None
    if table is None or table.public or domain is None or domain.kind is not Kind.NUMBER:
        raise QueryRefused(
            f"{column!r} is not a column of numbers of a private table.\n  do:     give it as 'visits.stay'"
        )
    free = replace(domain, low=-math.inf, high=math.inf, keys=None)  # where values lie does not depend on bounds
    if table.scaled and not table.edges:  # what is stored stays valid when the policy says more about other columns
        table = replace(table, columns={name: free})
    return table, Column(f"t0.{name}", free)


def suggest_bounds(buyer: Buyer, column: str, epsilon: float) -> Bounds:
    """Bounds for a column such as "visits.stay", from two noisy histograms, each for half of the price.

    The first histogram counts the sizes of the values, the second their places in the range that the first one gives.
    Choosing the bounds from them is post-processing.
    """
    require_positive("epsilon", epsilon)
    table, of = number_column(column, buyer.policy)
    whole = buyer.price_of(epsilon)
    half, sizes = whole.part(0.5), magnitude_histogram(table, of)
    if not bounds_are_stored(buyer, column, epsilon):
        buyer.require_affordable([whole.loss()], whole.loss(), buyer.loss_of_epsilon)
    first, bought = buy_value_histogram(buyer, sizes, half)
    ends = rough_range(first.counts, first.sigma)
    places = position_histogram(table, of, *ends)
    second, bought_too = buy_value_histogram(buyer, places, half)
    low, high = suggested_range(second, places.plan, *ends)
    outside = share_outside(second, first, ends, low, high, has_bin_per_value(of, *ends))
    return Bounds(column, low, high, float(epsilon), bought or bought_too, outside)


def bounds_are_stored(buyer: Buyer, column: str, epsilon: float) -> bool:
    """Is the first histogram of such a purchase stored? If it is, so is the second, unless a crash came between."""
    half = buyer.price_of(epsilon).part(0.5)
    sizes = magnitude_histogram(*number_column(column, buyer.policy))
    return any(one.serves(half) for one in NoisyCounts.find_stored(sizes, half, buyer.ledger))


# ---- what is made of noisy counts -----------------------------------------------------------------------------------


def rough_range(counts: Sequence[float], sigma: float) -> tuple[float, float]:
    """A range that very likely holds nearly all values, from counts of sizes −SIZES … SIZES; where it grows, it is
    doubled once more."""
    seen = [i - SIZES for i, n in enumerate(counts) if n > SURE * sigma]
    if not seen:
        return 0.0, LEAST_SIZE
    low, high = -outer_end(-seen[0]), outer_end(seen[-1])
    low = 0.0 if abs(low) < high / 16 else low
    high = 0.0 if abs(high) < -low / 16 else high
    return (low, high) if low < high else (0.0, LEAST_SIZE)


def is_seen(sizes: NoisyCounts) -> bool:
    """Is there a size whose noisy count is clearly above noise?"""
    return any(n > SURE * sizes.sigma for n in sizes.counts)


def outer_end(size: int) -> float:
    """The outer end of a bin."""
    if size > 0:
        return LEAST_SIZE * 2.0 ** (size + 1)
    return LEAST_SIZE if size == 0 else -LEAST_SIZE * 2.0 ** (-size - 1)


def inner_end(size: int) -> float:
    """The end of a bin that is nearer to 0."""
    return math.copysign(LEAST_SIZE * 2.0 ** (abs(size) - 1), size) if size else 0.0


def refined_range(counts: Sequence[float], sigma: float, aim: float, low: float, high: float) -> tuple[float, float]:
    """Low and high such that about `aim` values lie beyond each, from counts of `places`.

    `aim` is where a wider range costs as much noise as it saves truncation: the noise of a sum grows by 0.8·rows/μ for
    each unit of range, on average, and its bias falls by the number of values beyond.
    """
    width = (high - low) / (len(counts) - 2)
    below, above = tail_end(counts, sigma, aim), tail_end(counts[::-1], sigma, aim)
    if below is None or above is None:
        return low, high
    a, b = low + below * width, high - above * width
    if low == 0 and counts[0] > SURE * sigma:
        a = -high / 4  # some lie on the other side of 0
    if high == 0 and counts[-1] > SURE * sigma:
        b = -low / 4
    return (a, b) if a < b else (low, high)


def tail_end(counts: Sequence[float], sigma: float, aim: float) -> float | None:
    """How many bins inside the range its end is, from the left; None if nothing is seen.

    Where values are clearly there, where four times as many are, and where sixteen times as many are: these two steps
    tell how the tail falls. They are continued down to `aim`, and grow as one does to the other. With few values one
    must look at what is less clear; and the end is never inside what is seen at all, as a sum or as a run of bins.
    """
    seen = [tail_marks(counts, sigma, aim, clear) for clear in CLEAR]
    marks, many = next((one for one in seen if len(one[0]) == 3), seen[-1])
    if not marks:
        return None
    steps = [max(0.5, b - a) for a, b in pairwise(marks)] or [1.0]
    growth = min(2.0, max(0.25, steps[0] / steps[-1]))
    step = math.sqrt(steps[0] * steps[-1] * growth)
    left, more = marks[0], max(0.0, math.log(many / aim) / math.log(4))
    while more > 0:
        step *= growth
        left, more = left - min(1.0, more) * step, more - 1
    return max(0.0, min(left, seen[-1][0][0], outermost(counts, sigma)))


def outermost(counts: Sequence[float], sigma: float) -> float:
    """Where the run of 1, 2, 4, 8, … bins begins that surely holds values and ends leftmost; all bins if none does.

    A sum from the left has the noise of all empty bins before; a run has only its own, so it sees an end that is not
    a tail, such as that of evenly spread values.
    """
    sums = list(accumulate(counts, initial=0.0))
    begin, end, length = len(counts), len(counts), 1
    while length < end:
        least = sigma * math.sqrt(length) * (SURE if length < 4 else SURE_RUN)
        ends = (i for i in range(length, end) if sums[i] - sums[i - length] > least)
        if (found := next(ends, None)) is not None:
            begin, end = found - length, found
        length *= 2
    return float(begin)


def tail_marks(counts: Sequence[float], sigma: float, aim: float, clear: float) -> tuple[list[float], float]:
    """Where the sum from the left is clearly above noise, at 4 and at 16 times that; and how many that is."""
    marks: list[float] = []
    many = total = 0.0
    for i, n in enumerate(counts):
        before, total = total, total + n
        if not marks and total > aim + clear * sigma * math.sqrt(i + 1):
            marks, many = [float(i)], total
        while marks and len(marks) < 3 and total >= (goal := many * 4 ** len(marks)):
            marks.append(i + (goal - before) / n if before < goal else float(i))
    return marks, many


def round_outward(x: float, up: bool) -> float:
    """Both ends with three digits, rounded outward."""
    if x == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(x))) - 2)
    return float(f"{(math.ceil if up else math.floor)(x / unit) * unit:.12g}")


def target_outside(counts: NoisyCounts, plan: Plan) -> float:
    """How many values (or votes) may lie beyond suggested bounds: where the noise of a later sum, with LATER times the
    accuracy of both histograms, grows by as much for a wider range as its bias falls."""
    return 0.8 * counts.price.part(2.0).deviation(plan.rows) / LATER


def suggested_range(counts: NoisyCounts, plan: Plan, low: float, high: float) -> tuple[float, float]:
    """Low and high from counts of places between these ends, with three digits, as far as a policy may state them."""
    a, b = refined_range(counts.counts, counts.sigma, target_outside(counts, plan), low, high)
    return max(-FARTHEST, round_outward(a, up=False)), min(FARTHEST, round_outward(b, up=True))


def share_outside(
    places: NoisyCounts, sizes: NoisyCounts, ends: tuple[float, float], low: float, high: float, exact: bool = False
) -> Outside:
    """The share beyond low and high, from counts of places between `ends` and counts of sizes; `exact`: values begin
    their bins.

    A vote for a bin is 1 at most, so at least so many people are outside as there are votes; and a unit has one vote of
    norm 1 for few sizes, so there are about as many votes for sizes as people.
    """
    first, last = ends
    width = (last - first) / (len(places.counts) - 2)
    centres = [first + (i - (1.0 if exact else 0.5)) * width for i in range(len(places.counts))]
    beyond = [n for x, n in zip(centres, places.counts, strict=True) if not low <= x <= high]
    if low < first or high > last:  # the ends were moved outwards, where only sizes tell something
        beyond += [n for i, n in enumerate(sizes.counts) if not low < inner_end(i - SIZES) < high]
    total = max(math.fsum(places.counts), places.sigma)
    votes, noise = max(0.0, math.fsum(beyond)), CERTAIN * places.sigma * math.sqrt(len(beyond))
    people = max(math.fsum(n for n in sizes.counts if n > SURE * sizes.sigma), 1.0)
    return Outside(
        min(1.0, votes / total),
        min(1.0, (votes + noise) / total),
        min(1.0, votes / people) if places.by_unit else None,
    )
