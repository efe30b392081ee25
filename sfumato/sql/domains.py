"""The public domain of a column or an expression: kind, range, step, public keys. Never anything read from data."""

import math
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """The kinds of values that questions may use."""

    NUMBER = "number"
    TEXT = "text"
    TRUTH = "truth"
    DATE = "date"

    def __repr__(self) -> str:
        return self.name


Scalar = float | int | str | bool | None
LONGEST_TEXT = 1_000  # characters of any text value, on every engine: longer texts are truncated


@dataclass(frozen=True)
class Domain:
    """Kind and range (of numbers; −∞ … ∞ if the policy gives none), the `step` that values are multiples of, if any,
    and the public keys, if the values are listed. `sure`: never NULL. `length`: an upper bound on the characters of a
    text before truncation."""

    kind: Kind
    low: float = -math.inf
    high: float = math.inf
    step: float | None = None
    keys: tuple[Scalar, ...] | None = None
    sure: bool = field(default=False, repr=False)  # never NULL; not in the repr, which is part of stored texts
    length: float = field(default=math.inf, repr=False)  # not in the repr either

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def needs_cut(self) -> bool:
        """Can a text exceed the length limit, so that an engine must truncate it?"""
        return self.kind is Kind.TEXT and self.length > LONGEST_TEXT

    @property
    def longest(self) -> int:
        """Upper bound on the characters of a text, after truncation."""
        return int(min(self.length, LONGEST_TEXT)) if self.kind is Kind.TEXT else 0


TRUTH = Domain(Kind.TRUTH, keys=(False, True))
TEXT = Domain(Kind.TEXT)
DATE = Domain(Kind.DATE)


def text(length: float) -> Domain:
    """A text of at most `length` characters."""
    return Domain(Kind.TEXT, length=length)


def number(low: float = -math.inf, high: float = math.inf, step: float | None = None) -> Domain:
    """A number in [low, high]; a bound that is NaN counts as unknown."""
    low, high = double(low), double(high)
    low, high = (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    return Domain(Kind.NUMBER, min(low, high), max(low, high), step)


def double(x: float) -> float:
    """The nearest double; an infinity for an integer beyond the range of doubles."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
