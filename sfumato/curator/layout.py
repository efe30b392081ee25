"""From what is stored to the columns that were asked for: post-processing."""

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.aggregates.count import CountReader
from sfumato.aggregates.linear import CONFIDENCE, Estimate
from sfumato.curator.answer import LeftOut
from sfumato.curator.offer import Offer
from sfumato.curator.ratios import ratio_columns
from sfumato.sql.aggregate import Aggregate, StandaloneAggregate
from sfumato.sql.domains import Kind, Scalar
from sfumato.sql.expressions import Expression, Output
from sfumato.sql.plan import Plan, What
from sfumato.sql.postprocess import Value, arrange_rows, evaluate
from sfumato.sql.question import Question
from sfumato.sql.units import RowUnit
from sfumato.wording import plural

Shown = Value | datetime.date  # what an answer holds
Estimates = Sequence[tuple[Sequence[str | float | None], Sequence[Estimate]]]  # keys, and each aggregate


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
    columns += [column.read_all(data["noisy"]) for column in ratio_columns(offer).values()]
    rows = zip(*columns, strict=True) if columns else ((),) * len(data["keys"])
    return list(zip(data["keys"], map(list, rows), strict=True))


def stored_values(offer: Offer, aggregate: Aggregate, data: Mapping[str, Any]) -> list[Sequence[Scalar]]:
    """What is stored of a standalone aggregate, for each key."""
    assert isinstance(aggregate, StandaloneAggregate)
    together = [one for one in offer.plan.standalone if one.stored_as == aggregate.stored_as]
    index = together.index(aggregate)
    return [row[index] for row in data[aggregate.stored_as]]


def coverage_by_column(offer: Offer) -> dict[str, float]:
    """With which probability the interval of each column holds the truth: exactly for counts and sums, at least for
    others."""
    width = len(offer.plan.keys)
    found = {}
    for name, e in offer.question.columns:
        if is_plain_aggregate(offer.question, e) and isinstance(e, Output):
            aggregate = offer.question.aggregates[e.place - width]
            exact = aggregate in offer.readers and not offer.scaled
            found[name] = offer.readers[aggregate].coverage if exact else CONFIDENCE
    return found | {offer.question.columns[place][0]: CONFIDENCE for place in ratio_columns(offer)}


def minimum_coverage(offer: Offer) -> dict[str, float]:
    """The same where only that is known."""
    ratios = {offer.question.columns[place][0] for place in ratio_columns(offer)}
    return dict.fromkeys(set(coverage_by_column(offer)) - ratios, CONFIDENCE)


def is_plain_aggregate(question: Question, expression: Expression) -> bool:
    """Is it an aggregate as it is, so that its interval is shown beside it? A mode has none."""
    place = expression.place - len(question.plan.keys) if isinstance(expression, Output) else -1
    if place < 0:
        return False
    return question.aggregates[place].has_interval


def finite_or_none(value: Value) -> Value:
    """None for a product that no double holds, and for the end of an interval that is open on that side."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def bounding_note(plan: Plan, missing: LeftOut | None = None) -> str:
    """What an interval does not cover, or what it covers beside noise: rows that are left out, or count in part."""
    table = plan.table
    if isinstance(table.unit, RowUnit):
        return ""
    if table.scaled:
        supposed = (
            f"Supposed: no {table.unit} has more than {plural(table.most or 0, 'row')}." if table.supposed else ""
        )
        return " ".join(filter(None, [str(missing) if missing is not None else "", supposed, cut_note(plan)]))
    rows = plural(plan.rows if table.branches else table.rows, "row")
    most = f"{rows} in each of {plural(plan.groups, 'group')}" if plan.groups > 1 else rows
    return f"95 % is about the noise; of each {table.unit} at most {most} can count."


def cut_note(plan: Plan) -> str:
    """Which rows of a unit count where contributions cannot be scaled: for what is no sum, and before joins."""
    unit, found = plan.table.unit, []
    weighted = [isinstance(one, StandaloneAggregate) and one.weighted for one in plan.standalone]
    if any(weighted):
        found.append(f"Ranks are of rows with weights: a {unit} with very many rows counts for less in each.")
    if not all(weighted) or any(m.what is What.DISTINCT for m in plan.measures):
        groups = f" in each of at most {plural(plan.groups, 'group')}" if plan.keys else ""
        found.append(f"For what is no sum, one row of each {unit}{groups} counts, chosen by a hash.")
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


def around(cell: Shown, estimate: Estimate) -> Estimate:
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
    question: Question, readings: Estimates, ratios: Sequence[int] = ()
) -> tuple[tuple[str, ...], tuple[tuple[Shown, ...], ...]]:
    """Names and rows: all that comes after the aggregates, and beside each of them, and of the columns at the places
    `ratios`, its interval."""
    width = len(question.plan.keys)
    values = plain_values(readings)
    kept = arrange_rows(question, values)
    names: list[str] = []
    columns: list[list[Shown]] = []
    for place, (name, e) in enumerate(question.columns):
        names.append(name)
        cells: list[Shown] = [
            finite_or_none(values[i][e.place] if isinstance(e, Output) else evaluate(e, values[i])) for i in kept
        ]
        columns.append(parse_dates(cells) if e.domain.kind is Kind.DATE else cells)
        plain = isinstance(e, Output) and is_plain_aggregate(question, e)
        if plain or place in ratios:
            at = e.place - width if isinstance(e, Output) else len(question.aggregates) + list(ratios).index(place)
            own = [readings[i][1][at] for i in kept]
            if place in ratios:
                own = [around(cell, one) for cell, one in zip(cells, own, strict=True)]
            names += [f"{name} low", f"{name} high"]
            columns += [[finite_or_none(low) for _, low, _ in own], [finite_or_none(high) for _, _, high in own]]
    return tuple(names), tuple(zip(*columns, strict=True))
