"""Private help with bounds: two noisy histograms, bought like any answer, and what they suggest."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sfumato.aggregates.count import Count
from sfumato.aggregates.price import Price
from sfumato.curator.answer import Answer
from sfumato.curator.offer import Offer
from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Column, Constant, Expression, Output
from sfumato.sql.functions.numbers import LEAST_SIZE, SIZES
from sfumato.sql.plan import Measure, Plan, Table, What
from sfumato.sql.policy import Policy
from sfumato.sql.question import Question
from sfumato.sql.simplify import call

SURE = 5.5  # σ: a bin that holds nothing is above this with 2e-8
CLEAR = (8.0, 5.0, 3.5)  # σ of a sum of bins from which on its place is known: well, rather, at all
LATER = 3.0  # a question that uses the bounds is taken to have so many times the μ
BINS = 400


@dataclass(frozen=True)
class Bounds:
    """Suggested low and high for a column."""

    column: str
    low: float
    high: float
    epsilon: float
    charged: bool

    def __str__(self) -> str:
        name = self.column.split(".")[-1]
        price = f"ε = {self.epsilon:.3g}" if self.charged else "free: this was asked before"
        return f"{name} = {{low = {self.low:g}, high = {self.high:g}}}    # {price}"


def number_column(column: str, policy: Policy) -> tuple[Table, Column]:
    """The column of this name, if it has numbers and is private."""
    table_name, _, name = column.lower().partition(".")
    table = policy.tables.get(table_name)
    domain = table.columns.get(name) if table is not None else None
    if table is None or table.public or domain is None or domain.kind is not Kind.NUMBER:
        raise QueryRefused(
            f"{column!r} is not a column of numbers of a private table.\n  do:     give it as 'visits.stay'"
        )
    return table, Column(f"t0.{name}", domain)


def magnitude_histogram(table: Table, of: Column) -> Question:
    """How many values there are of each size: a bin to a doubling, from 2⁻¹⁰ to 2⁵⁰, on both sides of 0."""
    return count_by_key(table, call("magnitude", of))


def position_histogram(table: Table, of: Column, low: float, high: float) -> Question:
    """How many values lie in each of BINS equal parts of a range, and on both sides of it."""
    return count_by_key(table, call("width_bucket", of, Constant(low), Constant(high), Constant(BINS)))


def count_by_key(table: Table, key: Expression) -> Question:
    plan = Plan(table, (), Constant(True), (key,), (Measure(What.ROWS),))
    columns = (("place", Output(0, key.domain)), ("n", Output(1, key.domain)))
    return Question(plan, (Count(),), columns, Constant(True), (), None)


# ---- what is made of noisy counts -----------------------------------------------------------------------------------


def rough_range(counts: Sequence[float], sigma: float) -> tuple[float, float]:
    """A range that surely holds nearly all, from counts of sizes −SIZES … SIZES: one doubling more where it grows."""
    seen = [i - SIZES for i, n in enumerate(counts) if n > SURE * sigma]
    if not seen:
        return 0.0, LEAST_SIZE
    low, high = -outer_end(-seen[0]), outer_end(seen[-1])
    low = 0.0 if abs(low) < high / 16 else low
    high = 0.0 if abs(high) < -low / 16 else high
    return (low, high) if low < high else (0.0, LEAST_SIZE)


def outer_end(size: int) -> float:
    """The outer end of a bin."""
    if size > 0:
        return LEAST_SIZE * 2.0 ** (size + 1)
    return LEAST_SIZE if size == 0 else -LEAST_SIZE * 2.0 ** (-size - 1)


def refined_range(counts: Sequence[float], sigma: float, aim: float, low: float, high: float) -> tuple[float, float]:
    """Low and high such that about `aim` values lie beyond each, from counts of `places`.

    `aim` is where a wider range costs as much noise as it saves truncation: the noise of a sum grows by 0.8·rows/μ for
    each unit of range, on average, and its bias falls by the number of values beyond.
    """
    width = (high - low) / BINS
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
    must look at what is less clear; and the end is never inside what is seen at all.
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
    return max(0.0, min(left, seen[-1][0][0]))


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
    """Three digits are enough, rounded outward."""
    if x == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(x))) - 2)
    return float(f"{(math.ceil if up else math.floor)(x / unit) * unit:.12g}")


def noisy_counts(answer: Answer) -> list[float]:
    return [float(n) for n in answer.column("n") if isinstance(n, int | float)]


def count_deviation(offer: Offer) -> float:
    """Of the noise of a question that only counts rows."""
    return offer.price.part(1 / offer.plan.groups).deviation(offer.plan.rows)


def target_outside(whole: Price, plan: Plan) -> float:
    """How many values may lie beyond suggested bounds: where the noise of a later sum, with LATER times this price's
    accuracy, grows by as much for a wider range as its bias falls."""
    return 0.8 * whole.deviation(plan.rows) / LATER
