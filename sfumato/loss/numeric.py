"""Floats with honest errors: enclosures, outward widening, and the special functions we rely on.

Rounding model. Elementary functions and scipy's ndtr, ndtri, log_ndtr, erfcx, gammaln and friends are taken to be
within 16 units in the last place (tests compare them with 50-digit arithmetic over the ranges used). Everything else
is ordinary float64 arithmetic whose error is bounded where it is used.
"""

import math
import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

ULP = 2.0**-52
TINY = 1e-300  # added to upper bounds of values that may underflow
LARGEST = sys.float_info.max  # what is known from below of a number that no float can hold


class Enclosure(NamedTuple):
    """Two arrays with lower ≤ truth ≤ upper, entry by entry."""

    lower: Floats
    upper: Floats


def floats(values: npt.ArrayLike) -> Floats:
    """An array of float64, whatever came in."""
    return np.asarray(values, dtype=np.float64)


def enclose(value: Floats, error: Floats | float) -> Enclosure:
    """value ± error, kept inside [0, 1]: for profiles."""
    low = np.maximum(value - error, 0.0)
    return Enclosure(low * (1 - ULP), np.minimum((value + error) * (1 + ULP), 1.0))


def relative(value: Floats, ulps: float) -> Enclosure:
    """value known to `ulps` units in the last place."""
    return enclose(value, np.abs(value) * (ulps * ULP))


def maximum(first: Enclosure, second: Enclosure) -> Enclosure:
    """Pointwise larger of two enclosed functions."""
    return Enclosure(np.maximum(first.lower, second.lower), np.maximum(first.upper, second.upper))


def exp(x: float) -> float:
    """e^x, infinite where it overflows: an upper bound; a lower one is min(exp(x), LARGEST)."""
    return math.exp(x) if x < 709.7 else math.inf


def share(x: Floats, width: Floats) -> Floats:
    """(e^x − 1)/(e^width − 1) for 0 ≤ x ≤ width > 0: where x lies in a cell that is measured in e^t, however wide."""
    return floats(np.exp(x - width) * (np.expm1(-x) / np.expm1(-width)))


def log_peak(s: float) -> float:
    """log of s^s/(1+s)^{1+s}, the largest e^{−sx}(1 − e^{−x}): without cancellation at any s > 0."""
    return -s * math.log1p(1 / s) - math.log1p(s)


def log_peaks(s: Floats) -> Floats:
    """log_peak at many s > 0."""
    return floats(-s * np.log1p(1 / s) - np.log1p(s))


def bend(x: float) -> tuple[float, float]:
    """x − 1 + e^{−x} for x ≥ 0, and its error: by the series where that cancels."""
    if x < 1e-3:
        value = x * x / 2 * (1 - x / 3 + x * x / 12)
        return value, 8 * ULP * value + x * x * (x * x * x / 100)
    return x + math.expm1(-x), 4 * ULP * x


def ndtr(x: Floats) -> Floats:
    """Φ(x), the normal distribution function."""
    return floats(special.ndtr(x))


def ndtri(p: Floats) -> Floats:
    """Φ⁻¹(p)."""
    return floats(special.ndtri(p))


def log_ndtr(x: Floats) -> Floats:
    """log Φ(x)."""
    return floats(special.log_ndtr(x))


def erfcx(x: Floats) -> Floats:
    """e^{x²} erfc(x)."""
    return floats(special.erfcx(x))


def gammaln(x: Floats) -> Floats:
    """log Γ(x)."""
    return floats(special.gammaln(x))


def logsumexp(x: Floats) -> float:
    """log Σ e^x for finite or −∞ entries."""
    top = float(np.max(x, initial=-np.inf))
    return top if not np.isfinite(top) else top + float(np.log(np.sum(np.exp(x - top))))
