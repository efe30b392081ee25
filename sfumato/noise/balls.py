"""Ball arithmetic (python-flint): a real number as an interval that contains it, as narrow as needed."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
from flint import arb, ctx, fmpq

from sfumato.errors import InvalidParameter

Ball = arb


@runtime_checkable
class Real(Protocol):
    """A real number known by enclosures: `ball(prec)` holds it, and its radius tends to 0 as prec grows."""

    def ball(self, prec: int) -> Ball: ...


@dataclass(frozen=True)
class Exp:
    """e^x for a rational x."""

    x: Fraction

    def ball(self, prec: int) -> Ball:
        with precision(prec):
            return ball(self.x).exp()


@dataclass(frozen=True)
class Certified:
    """A real number given by a function prec → ball."""

    ball: Callable[[int], Ball]


class _Turn:
    """python-flint has one working precision for all threads, so they take turns."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)  # the parent's other threads cannot give it back there

    def renew(self) -> None:
        self.lock = threading.RLock()


_turn = _Turn()


class precision:  # noqa: N801  # reads as a word: `with precision(128):`
    """Work with so many bits inside the block."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __enter__(self) -> None:
        self.lock = _turn.lock
        self.lock.acquire()
        self.before, ctx.prec = ctx.prec, self.bits

    def __exit__(self, *_: object) -> None:
        ctx.prec = self.before
        self.lock.release()


def ball(x: Fraction | int) -> Ball:
    """A rational number at the working precision."""
    return arb(fmpq(x.numerator, x.denominator))


def ratio(above: int, below: int) -> Ball:
    """above/below at the working precision, without the detour over Fraction."""
    return arb(fmpq(above, below))


def enclosure(x: Fraction | Real, prec: int) -> Ball:
    """A number of either kind."""
    if isinstance(x, Real):
        return x.ball(prec)
    with precision(prec):
        return ball(x)


def _integer(x: Ball) -> int:
    found = x.unique_fmpz()
    if found is None:
        raise AssertionError("not one integer: the working precision is too small for this number")
    return int(found)


def floor(x: Ball) -> int:
    """The largest integer surely ≤ x."""
    return _integer(x.lower().floor())


def ceiling(x: Ball) -> int:
    """The least integer surely ≥ x."""
    return _integer(x.upper().ceil())


def below(x: Ball) -> Fraction:
    """A dyadic rational surely ≤ x."""
    digits, exponent = x.lower().man_exp()
    return Fraction(int(digits)) * Fraction(2) ** int(exponent)


def above(x: Ball) -> Fraction:
    """A dyadic rational surely ≥ x."""
    return -below(-x)


def rational(name: str, value: object, low: Fraction | int, high: Fraction | int) -> Fraction:
    """A parameter as the rational number it is (floats are dyadic rationals), within [low, high]."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidParameter(
            f"{name} must be a number.\n  found:  a {type(value).__name__}\n  do:     give {_range_text(low, high)}"
        )
    if not low <= value <= high:  # also refuses NaN
        raise InvalidParameter(
            f"{name} is out of range.\n  found:  {name} = {repr(value)[:60]}\n  do:     give {_range_text(low, high)}"
        )
    return Fraction(value)


def _range_text(low: Fraction | int, high: Fraction | int) -> str:
    return f"an int, float or Fraction from {float(low):g} to {float(high):g}"
