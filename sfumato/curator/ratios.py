"""Ratios of released sums, such as COUNT_IF(c) / COUNT(*): they are means, and get the interval of a mean.

Only where the denominator counts the rows that the numerator is made of: then all weights and all noise that they share
cancel. Other ratios are shown without an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.aggregates.linear import Number, NumberEstimate
from sfumato.aggregates.mean import MeanReader
from sfumato.sql.aggregate import Aggregate
from sfumato.sql.expressions import Call, Constant, Expression, Output
from sfumato.sql.question import Question

if TYPE_CHECKING:
    from sfumato.curator.offer import Offer

ZERO = Constant(0.0)


@dataclass(frozen=True)
class Ratio:
    """factor·numerator/denominator, two aggregates of a question."""

    numerator: Aggregate
    denominator: Aggregate
    factor: float = 1.0

    @staticmethod
    def of(question: Question, expression: Expression) -> "Ratio | None":
        """The ratio that an expression over released values is; None if it is none."""
        match expression:
            case Call("*", (Constant(float() | int() as c), inner)) | Call(
                "*", (inner, Constant(float() | int() as c))
            ):
                found = Ratio.of(question, inner)
                return None if found is None else Ratio(found.numerator, found.denominator, found.factor * float(c))
            case Call("/", (above, below)):
                factor, numerator = multiple_of(question, above)
                under, denominator = multiple_of(question, below)
                if numerator is not None and denominator is not None and under == 1.0:
                    return Ratio(numerator, denominator, factor)
        return None

    def reader(self, offer: "Offer") -> MeanReader | None:
        """How its interval is read: None unless noise is added to the numerator as seen from the denominator."""
        indexes = [offer.question.sum_indexes.get(one, ()) for one in (self.numerator, self.denominator)]
        if not all(len(one) == 1 for one in indexes) or (offer.scaled and offer.choices is None):
            return None
        (above,), (below,) = indexes
        seen_from = offer.joint.parts[above].parent == below and offer.joint.parts[below].parent is None
        return MeanReader(offer.noisy_sums((above, below))) if seen_from else None


def multiple_of(question: Question, expression: Expression) -> tuple[float, Aggregate | None]:
    """(factor, aggregate) of an expression that is a multiple of one aggregate; without casts and guards against 0."""
    match expression:
        case Output():
            place = expression.place - len(question.plan.keys)
            return 1.0, question.aggregates[place] if place >= 0 else None
        case Call("*", arguments):
            factor, rest = constant_factor(arguments)
            inner_factor, found = multiple_of(question, rest) if rest is not None else (1.0, None)
            return factor * inner_factor, found
        case Call("number", (inner,)):
            return multiple_of(question, inner)
        case Call("case", (Call("=", (zero, Output() as tested)), Constant(None), Output() as inner)):
            return multiple_of(question, inner) if zero == ZERO and tested == inner else (1.0, None)
    return 1.0, None


def constant_factor(arguments: Sequence[Expression]) -> tuple[float, Expression | None]:
    """(c, e) of a product c·e; no e if neither factor is a constant."""
    for constant, other in (arguments, arguments[::-1]):
        if isinstance(constant, Constant) and isinstance(constant.value, int | float):
            return float(constant.value), other
    return 1.0, None


@dataclass(frozen=True)
class RatioColumn:
    """A column of an answer that is a ratio, with its reader."""

    ratio: Ratio
    reader: MeanReader

    def read_all(self, rows: Sequence[Sequence[Number]]) -> list[NumberEstimate]:
        found = [self.reader.read(row) for row in rows]
        c = self.ratio.factor
        return [(c * value, min(c * low, c * high), max(c * low, c * high)) for value, low, high in found]


def ratio_columns(offer: "Offer") -> dict[int, RatioColumn]:
    """The columns of a question that are ratios with an interval, by their place."""
    found = {}
    for place, (_, expression) in enumerate(offer.question.columns):
        ratio = Ratio.of(offer.question, expression)
        reader = ratio.reader(offer) if ratio is not None and offer.relative is None else None
        if ratio is not None and reader is not None:
            found[place] = RatioColumn(ratio, reader)
    return found


def asks_ratios_only(question: Question) -> bool:
    """Are all columns keys, means and ratios? Then the noise of a mean decides, not that of a count."""
    width, asked = len(question.plan.keys), False
    for _, expression in question.columns:
        if isinstance(expression, Output) and expression.place < width:
            continue
        mean = isinstance(expression, Output) and question.aggregates[expression.place - width].is_ratio
        if not mean and Ratio.of(question, expression) is None:
            return False
        asked = True
    return asked
