"""Integer bounds of 2^unit·e^{−rate·x} for whole arrays of x ≥ 0, each of which is also known exactly.

The bounds use IEEE + − ·, truncation, and tables that balls certify; no library exp is trusted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, Exp, ball, ceiling, floor, precision, rational
from sfumato.noise.draw_table import Integers
from sfumato.noise.entropy import Unsigned, word_type

Floats = NDArray[np.float64]

STEPS = 1 << 8  # of the coarse table, for each halving: all of it stays in the cache
FINER = 1 << 10  # fine steps in a coarse one
SLACK = Fraction(1, 1 << 20)  # of a step: more than the doubles' error
PREC = 128
MOST_UNIT = 40
COARSE, FINE = 40, 22  # bits of the two factors: their product fits into 63
LEAST_RATE, MOST_RATE = Fraction(1e-100), Fraction(1e100)
Numbers = NDArray[np.float64 | np.int64 | np.uint64]


@dataclass(frozen=True, eq=False)
class Powers:
    """low[q] ≤ 2^unit·e^{−rate·x} ≤ high[q] for every x ≥ 0 whose step is q: coarse, one look; `bounds` is finer.

    The step of x is y = rate·x·STEPS/ln 2, truncated and at most `end`. In doubles y has four roundings, so it is off
    by less than SLACK fine steps up to `end`, where 2^unit·e^{−rate·x} < 1: low = 0 and high = 1 hold for all x beyond.
    No library function such as exp is trusted.
    Theorem: the bounds hold for every double x ≥ 0, taken as the real number it is [docs/theorems/noise.md, Lemma 6]
    """

    rate: Fraction
    unit: int
    factor: float
    end: float
    low: Integers
    high: Integers
    narrow: Unsigned  # low once more, in the type of words of `unit` bits
    width: int  # the largest high − low

    def steps(self, x: Floats) -> Floats:
        """y for each x (or for a double next to x), at most `end`. Overwrites x, which may hold +∞."""
        if not self.rate:
            x.fill(0.0)  # 0·∞ is none
            return x
        with np.errstate(over="ignore"):
            x *= self.factor
        return np.minimum(x, self.end, out=x)

    def bounds(self, y: Floats) -> tuple[Integers, Integers]:
        """Integers low ≤ 2^unit·e^{−rate·x} ≤ high for the steps y of x, within 2⁻¹⁸ of each other and two units."""
        fine = (y * FINER).astype(np.int64)
        q, j = fine // FINER, fine % FINER
        (coarse_low, coarse_high), (fine_low, fine_high) = _factors()
        shift = COARSE + FINE - self.unit
        return coarse_low[q] * fine_low[j] >> shift, -(-coarse_high[q] * fine_high[j] >> shift)

    def exactly(self, x: Fraction | int, prec: int) -> Ball:
        """e^{−rate·x}."""
        return Exp(-self.rate * x).ball(prec)


def powers(rate: Fraction | float, unit: int) -> Powers:
    """Bounds for a public rate ≥ 0, in units of 2^−unit. Tables are built once, when first needed."""
    exact = rational("rate", rate, 0, MOST_RATE)
    if exact:
        rational("rate", exact, LEAST_RATE, MOST_RATE)
    return _powers(exact, min(unit, MOST_UNIT))


@lru_cache(maxsize=256)
def _powers(rate: Fraction, unit: int) -> Powers:
    with precision(PREC):
        factor = float(ball(rate * STEPS) / arb.const_log2())  # within 2⁻⁵² of it
    end = (unit + 1) * STEPS
    return Powers(rate, unit, factor, float(end), *_table(unit))


@lru_cache(maxsize=64)
def _table(unit: int) -> tuple[Integers, Integers, Unsigned, int]:
    """⌊2^unit·2^(−(q+1+SLACK)/STEPS)⌋ and ⌈2^unit·2^(−(q−SLACK)/STEPS)⌉ for q = 0, …, (unit + 1)·STEPS."""
    low = _halvings([floor(_power(q + 1 + SLACK, STEPS, 62)) for q in range(STEPS)], unit, unit)
    high = -_halvings([-ceiling(_power(q - SLACK, STEPS, 62)) for q in range(STEPS)], unit, unit)
    return low, high, low.astype(word_type(unit)), int((high - low).max())


@lru_cache(maxsize=1)
def _factors() -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
    """2^COARSE·2^(−q/STEPS) and 2^FINE·2^(−j/(STEPS·FINER)), bounded from below and above for steps [j, j + 1]."""
    low = _halvings([floor(_power(Fraction(q), STEPS, 62)) for q in range(STEPS)], COARSE, MOST_UNIT)
    high = -_halvings([-ceiling(_power(Fraction(q), STEPS, 62)) for q in range(STEPS)], COARSE, MOST_UNIT)
    fine = STEPS * FINER
    after = np.array([floor(_power(j + 1 + SLACK, fine, FINE)) for j in range(FINER)], np.int64)
    before = np.array([ceiling(_power(j - SLACK, fine, FINE)) for j in range(FINER)], np.int64)
    return (low, high), (after, before)


def _power(step: Fraction, steps: int, unit: int) -> Ball:
    """2^unit·2^(−step/steps)."""
    with precision(PREC):
        return (arb.const_log2() * ball(unit - step / steps)).exp()


def _halvings(first: list[int], unit: int, halvings: int) -> Integers:
    """One halving in units of 2⁻⁶² continued to all, rounded down to units of 2^−unit: shifts are exact."""
    shifts = np.arange(62 - unit, 62 - unit + halvings + 2)[:, None]
    every: Integers = np.right_shift(np.array(first, np.int64), np.minimum(shifts, 63)).reshape(-1)
    return every[: (halvings + 1) * len(first) + 1]


@dataclass(frozen=True, eq=False, repr=False)
class Gaps:
    """`exactly(i)` is the i-th number; `near(start, stop)` are doubles within a relative 2⁻⁵³ of some, or +∞ beyond.

    Integers are subtracted as integers and rounded once, so that no bit of an int64 is lost.
    """

    size: int
    near: Callable[[int, int], Floats]
    exactly: Callable[[int], Fraction | int]


def finite_numbers(name: str, values: ArrayLike) -> Numbers:
    """A row of at least one finite number: float64, int64 or uint64, whichever holds them exactly."""
    row = np.asarray(values)
    if row.ndim != 1 or not row.size:
        raise InvalidParameter(
            f"{name} must be a row of numbers.\n  found:  an array of shape {row.shape}\n"
            "  do:     give one dimension and at least one number"
        )
    if row.dtype.kind in "bi":
        return row.astype(np.int64, copy=False)
    if row.dtype.kind == "u":
        return row.astype(np.uint64, copy=False)
    if row.dtype.kind != "f" or row.dtype.itemsize > 8:
        raise InvalidParameter(
            f"{name} must be floats or integers.\n  found:  {row.dtype}\n  do:     give float64 or int64"
        )
    row = row.astype(np.float64, copy=False)
    if not (row.min() > -np.inf and row.max() < np.inf):  # also refuses NaN
        raise InvalidParameter(
            f"{name} must be finite.\n  found:  an infinity or NaN\n"
            "  do:     clamp values to public bounds and replace NaN before this"
        )
    return row


def below_top(scores: ArrayLike) -> Gaps:
    """How far each score lies below the highest one."""
    row = finite_numbers("scores", scores)
    top = row.max()
    if row.dtype == np.float64:
        summit = Fraction(float(top))

        def near(start: int, stop: int) -> Floats:
            with np.errstate(over="ignore"):
                difference: Floats = top - row[start:stop]
            return difference

        return Gaps(row.size, near, lambda i: summit - Fraction(float(row[i])))
    # Differences modulo 2⁶⁴ are the differences: they are below 2⁶⁴, signed or not.
    unsigned, highest = row.view(np.uint64), np.array(top).view(np.uint64)[()]
    return Gaps(
        row.size,
        lambda start, stop: (highest - unsigned[start:stop]).astype(np.float64),
        lambda i: int(top) - int(row[i]),
    )


def above_zero(name: str, values: ArrayLike) -> Gaps:
    """Numbers that are ≥ 0 already."""
    row = finite_numbers(name, values)
    if row.min() < 0:
        raise InvalidParameter(f"{name} must be ≥ 0.\n  found:  a negative number\n  do:     give numbers ≥ 0")
    return Gaps(
        row.size,
        lambda start, stop: row[start:stop].astype(np.float64),
        lambda i: Fraction(row[i].item()),
    )
