"""The layout of an answer: from stored noisy values to the columns that were asked for, and to what was left out.

Everything here is post-processing.
"""

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from sfumato.aggregates.arithmetic_intervals import Cells
from sfumato.aggregates.count import CountReader
from sfumato.aggregates.intervals import clip, spread
from sfumato.aggregates.linear import Estimate
from sfumato.aggregates.mean import RatioColumn
from sfumato.aggregates.noisy_sums import CONFIDENCE
from sfumato.aggregates.price import IndependentNoise
from sfumato.curator.answer import BY_THE_TAIL, FOR_ALL_DATA, NOISE_ONLY, LeftOut, about_percent, percent
from sfumato.curator.expression_intervals import has_interval, interval_around, tree_of
from sfumato.curator.offer import Offer
from sfumato.curator.scaling import LEFT_OUT, Choice
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sql.aggregate import Aggregate, StandaloneAggregate
from sfumato.sql.domains import Kind, Scalar
from sfumato.sql.expressions import Output
from sfumato.sql.plan import Plan, What
from sfumato.sql.postprocess import Value, arrange_rows, evaluate
from sfumato.sql.question import Question
from sfumato.sql.units import RowUnit
from sfumato.wording import plural

ALARM = 1.64  # deviations of noise by which the number of people exceeds what the tail predicts, 5 % of the time


def left_out(offer: Offer, data: Mapping[str, Any]) -> LeftOut:
    """The left-out bound of a stored answer."""
    choice = next((one for one in offer.choices or () if one.norms is not None), None)
    if choice is None or choice.tail is None or choice.missing is None or offer.people_noise is None:
        return LeftOut(NOISE_ONLY)
    counts = data["people"] if isinstance(data["people"], list) else [data["people"]]  # one number, in old answers
    people = max(0, sum(counts) + upper_error(offer.people_noise, len(counts)))
    found = replace(expected_left_out(choice), people=people, warning=tail_warning(choice, offer, counts[-1]))
    return found if people else replace(found, about=0.0)  # nobody counts in part, with the confidence LEFT_OUT


def expected_left_out(choice: Choice) -> LeftOut:
    """The share that a bound leaves out, from the histogram that it was chosen from: known before the question."""
    if choice.tail is None or choice.missing is None:
        return LeftOut(NOISE_ONLY)
    unit, length = choice.block.unit, choice.length / choice.block.unit
    total, most = max(choice.tail.total(), 1.0), choice.missing.most / unit
    about = min(choice.tail.about(length), most)
    grade = FOR_ALL_DATA if choice.missing.certain else BY_THE_TAIL
    return LeftOut(grade, None, about / total, min(1.0, most / total))


def describe_expected_left_out(offer: Offer) -> tuple[str, ...]:
    """The expected left-out share, in words for a preview."""
    choice = next((one for one in offer.choices or () if one.norms is not None), None)
    if choice is None:
        return ()
    found = expected_left_out(choice)
    return (f"{about_percent(found.about)} will be left out, at most {percent(found.at_most)} ({found.grade})",)


def upper_error(noise: IndependentNoise, numbers: int = 1) -> int:
    """The amount by which the noise of a sum of so many whole numbers falls short with probability at most
    1 − LEFT_OUT, rounded up."""
    return math.ceil(spread(((Fraction(1), noise),) * numbers, 2 * LEFT_OUT - 1).radius)


def tail_warning(choice: Choice, offer: Offer, people: int) -> str:
    """More people are beyond the bin of the bound than the fitted tail predicts: then the interval may not hold the
    truth. Within that bin the histogram tells nothing, so those are not compared."""
    noise = offer.people_noise
    if choice.tail is None or noise is None or choice.missing is None or choice.missing.certain:
        return ""
    deviation = noise.sigma if isinstance(noise, Gaussian) else math.sqrt(2) * noise.scale
    length = choice.block.length(choice.far) / choice.block.unit
    if people - choice.tail.units_above(length) <= ALARM * deviation:
        return ""
    return (
        "WARNING: more people have long contributions than the shape of the others' suggests, so more may be left out "
        "than stated. Ask the owner to state `most` in the policy, or to buy a histogram of norms "
        "first (sfumato register)."
    )


# ---- rows and columns -----------------------------------------------------------------------------------------------


Shown = Value | datetime.date  # a cell of an answer
Estimates = Sequence[tuple[Sequence[str | float | None], Sequence[Estimate]]]  # keys, and estimates


def estimates(offer: Offer, noisy: bytes) -> Estimates:
    """Keys, and (value, low, high) of each aggregate, then of each column that is a ratio, from what is stored."""
    data = json.loads(noisy)
    columns: list[Sequence[Estimate]] = []
    for aggregate in offer.question.aggregates:
        if aggregate in offer.readers:
            columns.append(offer.readers[aggregate].read_all(data["noisy"]))
        else:
            release, stored = offer.standalone_release(aggregate), stored_values(offer, aggregate, data)
            columns.append([release.read(values) for values in stored])
    columns += [column.read_all(data["noisy"]) for column in offer.ratio_columns.values()]
    rows = zip(*columns, strict=True) if columns else ((),) * len(data["keys"])
    return list(zip(data["keys"], map(list, rows), strict=True))


def stored_values(offer: Offer, aggregate: Aggregate, data: Mapping[str, Any]) -> list[Sequence[Scalar]]:
    """The stored values of a standalone aggregate, for each key."""
    assert isinstance(aggregate, StandaloneAggregate)
    together = [one for one in offer.plan.standalone if one.stored_as == aggregate.stored_as]
    index = together.index(aggregate)
    return [row[index] for row in data[aggregate.stored_as]]


def coverage_by_column(offer: Offer) -> dict[str, float]:
    """The probability that the interval of each column holds the truth: exact for counts and sums, a lower bound for
    others."""
    width = len(offer.plan.keys)
    found = {}
    for name, e in offer.question.columns:
        if isinstance(e, Output):
            if not is_plain_aggregate(offer.question, e):
                continue
            aggregate = offer.question.aggregates[e.place - width]
            exact = aggregate in offer.readers and not offer.scaled
            found[name] = offer.readers[aggregate].coverage if exact else CONFIDENCE
        elif has_interval(offer.question, e):
            found[name] = CONFIDENCE
    return found | {offer.question.columns[place][0]: CONFIDENCE for place in offer.ratio_columns}


def minimum_coverage(offer: Offer) -> dict[str, float]:
    """The least coverage of each column with an interval, where the exact one is not known."""
    return dict.fromkeys(coverage_by_column(offer), CONFIDENCE)


def is_plain_aggregate(question: Question, output: Output) -> bool:
    """Is this output an aggregate with an interval, which is then shown beside it? Keys and modes have none."""
    place = output.place - len(question.plan.keys)
    return place >= 0 and question.aggregates[place].has_interval


def finite_or_none(value: Value) -> Value:
    """The value; None if it is not finite: a product that overflows, or the open end of an interval."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def bounding_note(plan: Plan, missing: LeftOut | None = None) -> str:
    """A note on contribution bounds: which rows are left out or count in part, and whether intervals cover that."""
    table = plan.table
    if isinstance(table.unit, RowUnit):
        return ""
    if table.scaled:
        supposed = (
            f"Supposed: no {table.unit_column} has more than {plural(table.most or 0, 'row')}."
            if table.supposed
            else ""
        )
        return " ".join(filter(None, [str(missing) if missing is not None else "", supposed, cut_note(plan)]))
    rows = plural(plan.rows if table.derived else table.rows, "row")
    most = f"{rows} in each of {plural(plan.groups, 'group')}" if plan.groups > 1 else rows
    return f"95 % is about the noise; of each {table.unit_column} at most {most} can count."


def cut_note(plan: Plan) -> str:
    """A note on rows that are cut where scaling is impossible: for aggregates that are no sums, and before joins."""
    unit, found = plan.table.unit_column, []
    weighted = [isinstance(one, StandaloneAggregate) and one.weighted for one in plan.standalone]
    if any(weighted):
        found.append(f"Ranks and modes are of rows with weights: a {unit} with very many rows counts for less in each.")
    distinct = any(m.what is What.DISTINCT for m in plan.measures)
    if distinct or not all(weighted):
        groups = f" in each of at most {plural(plan.groups, 'group')}" if plan.keys else ""
        about = "There may be more different values." if distinct else "Intervals are about these rows."
        found.append(f"For what is no sum, one row of each {unit}{groups} counts, chosen by a hash. {about}")
    if plan.crossed:
        cut = f"Of each {unit} at most {plural(plan.table.rows, 'row')} of a table are joined"
        found.append(f"{cut}; intervals do not include what that leaves out.")
    return " ".join(found)


def parse_dates(texts: Sequence[Shown]) -> list[Shown]:
    """A column of dates as Python has them: days, or moments if one of them has a time. What its calendar does not hold
    (infinite dates, years before 1 or after 9999) stays a text."""
    found = [parse_moment(text) for text in texts]
    days = all(len(str(text)) == 10 for text, one in zip(texts, found, strict=True) if one is not text)
    return [one.date() if days and isinstance(one, datetime.datetime) else one for one in found]


def parse_moment(text: Shown) -> Shown:
    try:
        return datetime.datetime.fromisoformat(text) if isinstance(text, str) else text
    except ValueError:
        return text


def widen_to_value(cell: Shown, estimate: Estimate) -> Estimate:
    """The interval of a ratio, wide enough for the value that is shown, which is made of rounded counts."""
    value, low, high = estimate
    if not all(isinstance(x, int | float) for x in (cell, low, high)):
        return None, None, None
    return value, min(low, cell), max(high, cell)  # type: ignore[type-var, return-value]


def plain_values(readings: Estimates) -> list[list[Value]]:
    """Keys and values of each group, without intervals."""
    return [[*key, *[value for value, _, _ in found]] for key, found in readings]


def left_out_by_row(offer: Offer, noisy: bytes, readings: Estimates) -> tuple[float, ...]:
    """The share that was left out at most, for each row that is shown: known where rows are counted."""
    counts = [one for one in offer.readers.values() if isinstance(one, CountReader) and one.sums.missing is not None]
    if not counts:
        return ()
    shares = counts[0].left_out_at_most(json.loads(noisy)["noisy"])
    return tuple(shares[i] for i in arrange_rows(offer.question, plain_values(readings)))


def lay_out_rows(
    question: Question, readings: Estimates, cells: Cells, ratios: Mapping[int, RatioColumn] = MappingProxyType({})
) -> tuple[tuple[str, ...], tuple[tuple[Shown, ...], ...]]:
    """Names and rows: all that comes after the aggregates, and beside each column its interval, if it has one.

    Columns at the places `ratios` come last in the readings. A ratio that no true numbers can have, such as a negative
    share, is moved to the nearest one that they can.
    """
    values = plain_values(readings)
    kept = arrange_rows(question, values)
    names: list[str] = []
    columns: list[list[Shown]] = []
    for place, (name, e) in enumerate(question.columns):
        names.append(name)
        shown: list[Shown] = [
            finite_or_none(values[i][e.place] if isinstance(e, Output) else evaluate(e, values[i])) for i in kept
        ]
        if place in ratios:
            shown = [clip(cell, *ratios[place].ends) if isinstance(cell, int | float) else cell for cell in shown]
        columns.append(parse_dates(shown) if e.domain.kind is Kind.DATE else shown)
        own: list[Estimate] = []
        if isinstance(e, Output):
            if not is_plain_aggregate(question, e):
                continue
            own = [readings[i][1][e.place - len(question.plan.keys)] for i in kept]
        elif place in ratios:
            at = len(question.aggregates) + list(ratios).index(place)
            own = [widen_to_value(cell, readings[i][1][at]) for cell, i in zip(shown, kept, strict=True)]
        elif has_interval(question, e):
            pairs = zip(shown, kept, strict=True)
            own = [interval_around(cell, tree_of(question, e, values[i], cells, i)) for cell, i in pairs]
        else:
            continue
        names += [f"{name} low", f"{name} high"]
        columns += [[finite_or_none(low) for _, low, _ in own], [finite_or_none(high) for _, _, high in own]]
    return tuple(names), tuple(zip(*columns, strict=True))
