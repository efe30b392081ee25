"""What is publicly known of a column or an expression: its kind, its range, its keys. Never anything seen in data."""

import math
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """The kinds of values that questions may speak of."""

    NUMBER = "number"
    TEXT = "text"
    TRUTH = "truth"
    DATE = "date"

    def __repr__(self) -> str:
        return self.name


Scalar = float | int | str | bool | None
LONGEST_TEXT = 1_000  # characters of any text value, on every engine: what is longer is cut there


@dataclass(frozen=True)
class Domain:
    """kind, range (numbers; −∞ … ∞ if nobody has said), `step` of the values if they are whole multiples of one,
    and the public keys if the values are known by name; `sure`: it is never NULL; `length`: characters of a text, if
    that is known before it is cut."""

    kind: Kind
    low: float = -math.inf
    high: float = math.inf
    step: float | None = None
    keys: tuple[Scalar, ...] | None = None
    sure: bool = field(default=False, repr=False)  # never NULL; what ledgers have stored does not speak of it
    length: float = field(default=math.inf, repr=False)  # nor of this

    @property
    def bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def needs_cut(self) -> bool:
        """Could a text outgrow the length limit, so that an engine must cut it?"""
        return self.kind is Kind.TEXT and self.length > LONGEST_TEXT

    @property
    def longest(self) -> int:
        """Characters of a text at most, after the cut."""
        return int(min(self.length, LONGEST_TEXT)) if self.kind is Kind.TEXT else 0


TRUTH = Domain(Kind.TRUTH, keys=(False, True))
TEXT = Domain(Kind.TEXT)
DATE = Domain(Kind.DATE)


def text(length: float) -> Domain:
    """A text of at most so many characters."""
    return Domain(Kind.TEXT, length=length)


def number(low: float = -math.inf, high: float = math.inf, step: float | None = None) -> Domain:
    """A number in [low, high]; what is not a number becomes unknown range."""
    low, high = double(low), double(high)
    low, high = (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    return Domain(Kind.NUMBER, min(low, high), max(low, high), step)


def double(x: float) -> float:
    """The nearest double; of an integer that none is near, an infinity."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
