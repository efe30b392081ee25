"""Columns that are computed from several released values: how their intervals are found.

Which columns have an interval follows from the text alone. Where nothing bounds a value, such as a ratio to a number
that may be 0, both ends are open.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sfumato.aggregates.arithmetic_intervals import Apply, Cell, Cells, Form, Known, NoisyPart, Tree, interval
from sfumato.aggregates.linear import Estimate, Linear, Reader
from sfumato.aggregates.noisy_sums import CONFIDENCE
from sfumato.curator.offer import Offer
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Call, Constant, Expression, Output
from sfumato.sql.postprocess import Value, evaluate
from sfumato.sql.question import Question

CALLS = {name: name for name in ("+", "-", "*", "/", "abs", "floor", "ceil", "round", "least", "greatest", "sqrt", "ln",
                                 "log10", "log2", "exp", "sign", "number", "case", "coalesce")}  # fmt: skip
CALLS |= {"negative": "neg", "round to": "round", "power": "^"}
NO_ENDS = (None, None, None)


def aggregates_in(question: Question, expression: Expression) -> set[int]:
    """The places of the aggregates that an expression over released values is made of."""
    if isinstance(expression, Output):
        place = expression.place - len(question.plan.keys)
        return {place} if place >= 0 else set()
    if isinstance(expression, Call):
        return set().union(*(aggregates_in(question, one) for one in expression.arguments))
    return set()


def has_interval(question: Question, expression: Expression) -> bool:
    """Does a column that is no plain aggregate come with an interval? From the text alone."""
    return (
        isinstance(expression, Call)
        and expression.domain.kind is Kind.NUMBER
        and bool(aggregates_in(question, expression))
        and is_arithmetic(question, expression)
    )


def is_arithmetic(question: Question, expression: Expression) -> bool:
    """Are all functions of noisy values such that intervals are known for them?"""
    noisy = aggregates_in(question, expression)
    if not noisy or not isinstance(expression, Call):
        return all(question.aggregates[place].has_interval for place in noisy)
    parts = expression.arguments
    if expression.name == "case":  # which branch is taken is decided by released values
        parts = (*parts[1::2], parts[-1])
    return expression.name in CALLS and all(is_arithmetic(question, one) for one in parts)


def tree_of(question: Question, expression: Expression, values: Sequence[Value], cells: Cells, row: int) -> Tree:
    """An expression over the released values of one row; branches are those that these values take."""
    if not aggregates_in(question, expression):
        return known_value(evaluate(expression, values))
    if isinstance(expression, Output):
        return Cell(cells, row, expression.place - len(question.plan.keys))
    assert isinstance(expression, Call)
    parts = expression.arguments
    if expression.name == "case":
        pairs = zip(parts[:-1:2], parts[1::2], strict=True)
        chosen = next((then for when, then in pairs if evaluate(when, values) is True), parts[-1])
        return tree_of(question, chosen, values, cells, row)
    if expression.name in ("coalesce", "least", "greatest"):  # NULL is passed over
        parts = tuple(one for one in parts if evaluate(one, values) is not None) or (Constant(None),)
        if expression.name == "coalesce":
            return tree_of(question, parts[0], values, cells, row)
    return Apply(CALLS[expression.name], tuple(tree_of(question, one, values, cells, row) for one in parts))


def known_value(value: object) -> Known:
    return Known(float(value) if isinstance(value, int | float) and math.isfinite(value) else None)


def interval_around(value: object, tree: Tree) -> Estimate:
    """The value with its interval, which always holds it: it is made of rounded counts."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return NO_ENDS
    found = interval(tree)
    return (value, min(found[0], value), max(found[1], value)) if found is not None else NO_ENDS


# ---- where estimates come from --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReleasedCells:
    """The estimates of a stored answer, at any confidence."""

    offer: Offer
    data: Mapping[str, Any]
    estimates: Sequence[Sequence[Estimate]]  # of each row, each aggregate at 95 %

    @property
    def left_out_bounds(self) -> int:
        return len(self.offer.choices or ()) if self.offer.scaled else 0

    @cached_property
    def linear(self) -> bool:
        """Are noisy parts all that there is? Not where something was left out that intervals must hold as well."""
        return self.offer.relative is None and not self.offer.scaled

    def form(self, row: int, place: int) -> Form | None:
        reader = self.offer.readers.get(self.offer.question.aggregates[place])
        if reader is None or not self.linear or reader.coefficients is None:
            return None
        found = Form({})
        for j, c in enumerate(reader.coefficients):
            noise, value = self.offer.noise[j], self.data["noisy"][row][j]
            if c and noise is not None:
                found.coefficients[NoisyPart(id(self), row, j, value, noise)] = c
        return found

    def estimate(self, row: int, place: int, confidence: float) -> Estimate:
        if confidence <= CONFIDENCE:
            return self.estimates[row][place]
        reader = self.reader(place, confidence)
        return NO_ENDS if reader is None else reader.read(self.data["noisy"][row])

    def reader(self, place: int, confidence: float) -> Reader | None:
        known = self._readers.get((place, confidence))
        aggregate = self.offer.question.aggregates[place]
        if known is None and isinstance(aggregate, Linear) and self.offer.relative is None:
            indexes = self.offer.question.sum_indexes[aggregate]
            known = self._readers[place, confidence] = aggregate.reader(self.offer.noisy_sums(indexes, confidence))
        return known

    @cached_property
    def _readers(self) -> dict[tuple[int, float], Reader]:
        return {}


@dataclass(frozen=True, eq=False)
class FixedCells:
    """Estimates with intervals at 95 % alone."""

    estimates: Sequence[Sequence[Estimate]]
    left_out_bounds: int = 0

    def form(self, row: int, place: int) -> Form | None:
        return None

    def estimate(self, row: int, place: int, confidence: float) -> Estimate:
        return self.estimates[row][place] if confidence <= CONFIDENCE else NO_ENDS
