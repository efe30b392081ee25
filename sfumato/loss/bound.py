"""An answer with its two certified sides."""

import math
from dataclasses import dataclass
from typing import Literal

from sfumato.loss.numeric import LARGEST


@dataclass(frozen=True)
class Bound:
    """The truth lies in [lower, upper]; `float()` gives the side that errs towards privacy.

    `safe` is "upper" for costs (ε, δ, divergences, μ, ρ) and "lower" for what protects (trade-off, calibrated rates).
    `method` names how the number came about. Where only one side is known, the other is 0 or infinity. Comparisons with
    numbers and with each other are true only if certain.
    """

    lower: float
    upper: float
    method: str
    safe: Literal["lower", "upper"] = "upper"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))
        if not self.lower <= self.upper:  # also refuses NaN: a bound that crosses itself is a bug, never an answer
            raise AssertionError(f"crossed bound: lower {self.lower!r} > upper {self.upper!r} ({self.method})")

    def __float__(self) -> float:
        return self.upper if self.safe == "upper" else self.lower

    def __int__(self) -> int:
        return int(float(self))

    def __round__(self, digits: int = 0) -> float:
        return round(float(self), digits)

    # a comparison is true only if it is certain: `bound < 1` and `bound >= 1` may both be false

    def __lt__(self, other: "float | Bound") -> bool:
        return self.upper < least(other)

    def __le__(self, other: "float | Bound") -> bool:
        return self.upper <= least(other)

    def __gt__(self, other: "float | Bound") -> bool:
        return self.lower > most(other)

    def __ge__(self, other: "float | Bound") -> bool:
        return self.lower >= most(other)

    @property
    def gap(self) -> float:
        """upper − lower (0 where both are the same infinity)."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """gap / upper."""
        return 0.0 if self.gap == 0 else 1.0 if math.isinf(self.upper) else self.gap / self.upper

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __str__(self) -> str:
        return f"{float(self):.6g}"

    def __repr__(self) -> str:
        digits = 6 if self.relative_gap == 0 else min(17, max(4, 2 - math.floor(math.log10(self.relative_gap))))
        low, high = f"{self.lower:.{digits}g}", f"{self.upper:.{digits}g}"
        return f"{low if low == high else f'[{low}, {high}]'}  ({self.method})"


def least(value: float | Bound) -> float:
    """The lower side of a bound, or the number itself."""
    return value.lower if isinstance(value, Bound) else float(value)


def most(value: float | Bound) -> float:
    """The upper side of a bound, or the number itself."""
    return value.upper if isinstance(value, Bound) else float(value)


def worst(first: Bound, second: Bound) -> Bound:
    """The larger of two costs, side by side."""
    return Bound(max(first.lower, second.lower), max(first.upper, second.upper), first.method, first.safe)


def widen(value: float, error: float, method: str) -> Bound:
    """value ± error as a Bound, rounded outward; what overflows is larger than every float, and log 0 is exact."""
    if not math.isfinite(value):
        return Bound(LARGEST if value > 0 else value, value, method)
    error += 2.0**-51 * abs(value)
    return Bound(value - error, value + error, method)
