"""One place where numbers from users are looked at before they are used."""

import math
import numbers
from collections.abc import Sequence
from typing import SupportsFloat

from sfumato.errors import InvalidParameter


def number(name: str, value: SupportsFloat, low: float, high: float, *, allowed: str) -> float:
    """`value` as a float within [low, high]; `allowed` describes the range in words."""
    if isinstance(value, bool | str | bytes) or not isinstance(value, SupportsFloat):
        raise InvalidParameter(
            f"{name} must be a number.\n  found:  {name} = {value!r} ({type(value).__name__})\n  do:     give {allowed}"
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
    """A finite number ≥ 0."""
    return number(name, value, 0.0, math.nextafter(math.inf, 0), allowed="a finite number ≥ 0")


def positive(name: str, value: SupportsFloat) -> float:
    """A finite number > 0."""
    return number(name, value, math.ulp(0.0), math.nextafter(math.inf, 0), allowed="a finite number > 0")


def extended(name: str, value: SupportsFloat) -> float:
    """A number ≥ 0, or infinity."""
    return number(name, value, 0.0, math.inf, allowed="a number ≥ 0 (math.inf is allowed)")


def probability(name: str, value: SupportsFloat) -> float:
    """A number in [0, 1]."""
    return number(name, value, 0.0, 1.0, allowed="a number between 0 and 1")


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """An integer ≥ low (floats with a whole value are taken; nothing is rounded)."""
    ceiling = "" if high is None else f" and ≤ {high:,}"
    allowed = f"a whole number ≥ {low}{ceiling}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameter(
            f"{name} must be a whole number.\n  found:  {name} = {value!r} ({type(value).__name__})\n"
            f"  do:     give {allowed}"
        )
    whole_part = int(float(value)) if math.isfinite(value) else low - 1
    exact = value if isinstance(value, int) else whole_part
    if exact != value or exact < low or (high is not None and exact > high):
        raise InvalidParameter(f"{name} is out of range.\n  found:  {name} = {value!r}\n  do:     give {allowed}")
    return exact


def distribution(name: str, values: Sequence[SupportsFloat]) -> tuple[float, ...]:
    """Probabilities that sum to one up to rounding."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InvalidParameter(f"{name} must be a sequence of probabilities, found {type(values).__name__}.")
    result = tuple(probability(f"{name}[{i}]", v) for i, v in enumerate(values))
    total = math.fsum(result)
    if not abs(total - 1) <= 1e-12 * max(1, len(result)):
        raise InvalidParameter(
            f"{name} is not a probability distribution.\n  found:  {len(result)} entries that sum to {total!r}\n"
            "  do:     divide by the sum, or add the outcome that is missing"
        )
    return result
