"""Checks of the numbers and texts that users give, before they are used."""

import math
import numbers
from collections.abc import Sequence
from typing import SupportsFloat

from sfumato.errors import InvalidParameter

NOT_NUMBERS = ("bool", "bool_", "str", "str_", "bytes", "bytes_", "complex128", "complex64")
LEAST, MOST = 1e-100, 1e100  # magnitudes of parameters: their squares and products stay finite
MOST_WHOLE = 10**15  # whole numbers up to here are exact in a float


def number(name: str, value: SupportsFloat, low: float, high: float, *, allowed: str) -> float:
    """`value` as a float within [low, high]; `allowed` describes the range in words."""
    if type(value) is float and low <= value <= high:  # the usual case, kept fast
        return value
    if type(value).__name__ in NOT_NUMBERS or getattr(value, "ndim", False) or not hasattr(value, "__float__"):
        raise InvalidParameter(
            f"{name} must be a number.\n  found:  a {type(value).__name__}\n  do:     give {allowed}"
        )
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError) as problem:
        raise InvalidParameter(
            f"{name} must be one number.\n  found:  a {type(value).__name__}\n  do:     give {allowed}"
        ) from problem
    if not low <= result <= high:  # also refuses NaN
        raise InvalidParameter(f"{name} is out of range.\n  found:  {name} = {result!r}\n  do:     give {allowed}")
    return result


def non_negative(name: str, value: SupportsFloat) -> float:
    """0, or a number of reasonable size."""
    result = number(name, value, 0.0, MOST, allowed="0, or a number from 1e-100 to 1e100")
    return 0.0 if result == 0 else number(name, result, LEAST, MOST, allowed="0, or a number from 1e-100 to 1e100")


def positive(name: str, value: SupportsFloat) -> float:
    """A number > 0 of reasonable size."""
    return number(name, value, LEAST, MOST, allowed="a number from 1e-100 to 1e100")


def extended_number(name: str, value: SupportsFloat) -> float:
    """A number ≥ 0, or infinity."""
    return number(name, value, 0.0, math.inf, allowed="a number ≥ 0 (math.inf is allowed)")


def probability(name: str, value: SupportsFloat) -> float:
    """A number in [0, 1]."""
    return number(name, value, 0.0, 1.0, allowed="a number between 0 and 1")


def whole(name: str, value: object, low: int, high: int = MOST_WHOLE) -> int:
    """An integer from low to high. A float with a whole value is accepted; nothing is rounded."""
    if type(value) is int and low <= value <= high:
        return value
    allowed = f"a whole number from {low} to {high:,}"
    if type(value).__name__ in NOT_NUMBERS or not isinstance(value, numbers.Real):
        raise InvalidParameter(
            f"{name} must be a whole number.\n  found:  a {type(value).__name__}\n  do:     give {allowed}"
        )
    if isinstance(value, numbers.Integral):
        exact = int(value)
    else:
        size = float(value)
        exact = int(size) if math.isfinite(size) and size == math.floor(size) else low - 1
    if not low <= exact <= high:
        found = str(value)[:40]
        raise InvalidParameter(f"{name} is out of range.\n  found:  {name} = {found}\n  do:     give {allowed}")
    return exact


def distribution(name: str, values: Sequence[SupportsFloat]) -> tuple[float, ...]:
    """Probabilities that sum to 1 up to rounding."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InvalidParameter(
            f"{name} must be a sequence of probabilities.\n  found:  a {type(values).__name__}\n"
            "  do:     give a list or array of numbers between 0 and 1"
        )
    result = tuple(probability(f"{name}[{i}]", v) for i, v in enumerate(values))
    total = math.fsum(result)
    if not abs(total - 1) <= 1e-12 * max(1, len(result)):
        raise InvalidParameter(
            f"{name} is not a probability distribution.\n  found:  {len(result)} entries that sum to {total!r}\n"
            "  do:     divide by the sum, or add the outcome that is missing"
        )
    return result


def text(name: str, value: object, longest: int = 200) -> str:
    """A text of 1 to `longest` characters that can be stored: no NUL character, and valid Unicode."""
    if not isinstance(value, str) or not 0 < len(value) <= longest or "\0" in value or not is_unicode(value):
        found = f"{len(value)} characters" if isinstance(value, str) else f"a {type(value).__name__}"
        raise InvalidParameter(f"{name} must be a text.\n  found:  {found}\n  do:     give 1 to {longest:,} characters")
    return value


def is_unicode(value: str) -> bool:
    """Lone surrogates (halves of characters) cannot be encoded."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
