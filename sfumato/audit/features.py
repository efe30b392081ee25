"""What to look at in an output: features with finitely many values, learned on runs that are not used again.

Every feature is a fixed function from an output to a small code once it is learned, so that any set of codes is an
event. Which features there are decides how much is found; it has no influence on whether what is found is true.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.outputs import Floats, Labels, Numbers

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

BINS = 96
FEW = 256  # distinct values that all get a code of their own
TAILS = (0.0005, 0.001, 0.002, 0.005)
COLUMNS = 24  # numeric columns of wide outputs that are studied one by one
CLOSELY = 6  # of these, columns whose bits and magnitudes are looked at
NEIGHBOURS = 12  # differences of neighbouring columns


class Feature(ABC):
    """Codes [side, run] from 0 to size − 1."""

    codes: Codes
    fresh: (
        bool  # do the learning runs count like all others, as only cuts depend on them, and not which side they are of?
    )

    @property
    @abstractmethod
    def size(self) -> int:
        """How many codes there are."""

    @property
    @abstractmethod
    def ordered(self) -> bool:
        """Do codes follow an order in which tails make sense?"""

    @abstractmethod
    def words(self, keep: Flags) -> str:
        """The event that the code is one of these."""


@dataclass(frozen=True)
class Binned(Feature):
    """A number and where it lies among cuts c₀ < c₁ < …: 2i below cᵢ, 2i + 1 exactly there; the last code is NaN."""

    name: str
    cuts: Floats
    codes: Codes
    fresh: bool = True

    @property
    def size(self) -> int:
        return 2 * len(self.cuts) + 2

    @property
    def ordered(self) -> bool:
        return True

    def words(self, keep: Flags) -> str:
        stretches = []
        for kept, group in groupby(range(self.size - 1), key=lambda i: bool(keep[i])):
            if kept:
                inside = list(group)
                stretches.append(self.stretch(inside[0], inside[-1]))
        if keep[-1]:
            stretches.append("is no number")
        return f"{self.name} {several(stretches)}"

    def stretch(self, first: int, last: int) -> str:
        """Codes first … last in words."""
        low = None if first == 0 else f"{self.cuts[(first - 1) // 2]:.9g}"
        high = None if last == self.size - 2 else f"{self.cuts[last // 2]:.9g}"
        left, right = "≥" if first % 2 else ">", "≤" if last % 2 else "<"
        if first % 2:
            low = f"{self.cuts[first // 2]:.9g}"
        if first == last and first % 2:
            return f"= {low}"
        if low is None or high is None:
            return "is any number" if low is high else f"{right} {high}" if low is None else f"{left} {low}"
        return f"in {'[' if first % 2 else '('}{low}, {high}{']' if last % 2 else ')'}"


@dataclass(frozen=True)
class Named(Feature):
    """One of finitely many labels; the last code is anything else."""

    name: str
    labels: tuple[str, ...]
    codes: Codes
    fresh: bool = True

    @property
    def size(self) -> int:
        return len(self.labels) + 1

    @property
    def ordered(self) -> bool:
        return False

    def words(self, keep: Flags) -> str:
        chosen = [label for label, kept in zip((*self.labels, "something else"), keep, strict=True) if kept]
        return f"{self.name} is {several(chosen)}"


def several(parts: list[str], most: int = 4) -> str:
    """`a or b or c`, cut short."""
    shown = [part if len(part) <= 60 else f"{part[:57]}…" for part in parts[:most]]
    more = len(parts) - most
    return " or ".join(shown) + (f" or one of {more} more" if more > 0 else "")


# ---- learning --------------------------------------------------------------------------------------------------------


def binned(name: str, values: Floats, learn: int) -> Binned:
    """Cuts at quantiles of the learning runs, at frequent values, and at all values if there are few."""
    seen = values[:, :learn].ravel()
    distinct, count = np.unique(seen[~np.isnan(seen)], return_counts=True)
    if len(distinct) > FEW:
        at = np.concatenate([np.linspace(0, 1, BINS + 1)[1:-1], TAILS, 1 - np.array(TAILS)])
        spots = np.clip((at * count.sum()).astype(np.int64), 0, count.sum() - 1)
        quantiles = distinct[np.searchsorted(np.cumsum(count), spots, "right")]
        often = np.sort(np.argsort(-count, kind="stable")[:64])
        distinct = np.union1d(quantiles, distinct[often[count[often] > max(4, 2e-4 * len(seen))]])
    codes = np.searchsorted(distinct, values, "left") + np.searchsorted(distinct, values, "right")
    codes[np.isnan(values)] = 2 * len(distinct) + 1
    return Binned(name, distinct, codes)


def named(labels: Labels, learn: int) -> Named:
    """The labels seen most often while learning get a code each."""
    first, second = labels.values
    common = Counter(first[:learn]) + Counter(second[:learn])
    code = {label: i for i, (label, _) in enumerate(common.most_common(FEW))}
    codes = np.array([[code.get(label, len(code)) for label in side] for side in labels.values], np.int64)
    return Named(labels.name, tuple(map(str, code)), codes)


def one_sided(name: str, values: NDArray[np.generic], learn: int) -> Named:
    """Was exactly this value seen before, and where?"""
    here = [np.isin(values, np.unique(side[:learn])).astype(np.int64) for side in values]
    words = ("a value never seen before", "a value seen on d0 only", "a value seen on d1 only")
    return Named(name, (*words, "a value seen on both"), here[0] + 2 * here[1], fresh=False)


def unusual(column: Numbers) -> Named:
    """Which kind of double it is."""
    x = column.values
    kinds = [np.isnan(x), x == np.inf, x == -np.inf, (x == 0) & np.signbit(x)]
    return Named(column.name, ("a number", "NaN", "+∞", "−∞", "−0"), np.select(kinds, [1, 2, 3, 4], 0))


def lowest_bit(x: Floats) -> Floats:
    """The exponent of the lowest set bit of each double; NaN where there is none.

    Theorem: noisy doubles betray their centre by the grid they lie on [Mironov 2012; Haney et al. 2022]
    """
    significand, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = np.abs(significand * 2.0**53).astype(np.int64)
    zeros = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    return np.asarray(np.where(whole == 0, np.nan, exponent - 53 + zeros), np.float64)


def leading_bit(x: Floats) -> Floats:
    """⌊log₂|x|⌋; NaN for 0, ±∞ and NaN."""
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    return np.where(np.isfinite(x) & (x != 0), exponent - 1.0, np.nan)


# ---- the bank --------------------------------------------------------------------------------------------------------


def bank(found: list[Numbers], labels: list[Labels], learn: int) -> Iterator[Feature]:
    """All features of the outputs. Only the first `learn` runs on each side shape them."""
    for words in labels:
        yield named(words, learn)
    chosen = telling(found, learn)
    values = []
    for rank, column in enumerate(chosen):
        values.append(binned(column.name, column.values, learn))
        yield values[-1]
        yield unusual(column)
        if rank < CLOSELY:
            yield from closely(column, learn)
    if len(found) > 1:
        for joint in together(found):
            yield binned(joint.name, joint.values, learn)
        yield replace(binned("the learned score", score(values, learn), learn), fresh=False)
        yield one_sided("the output", fingerprints(found), learn)


def telling(found: list[Numbers], learn: int) -> list[Numbers]:
    """The columns whose means, magnitudes or gaps differ most between the sides while learning."""
    if len(found) <= COLUMNS:
        return found
    return [found[i] for i in np.argsort([-difference(c.values[:, :learn]) for c in found], kind="stable")[:COLUMNS]]


def difference(x: Floats) -> float:
    """The largest of three standardised differences between the sides."""
    gaps = np.isnan(x).astype(np.float64)
    clean = np.nan_to_num(x, posinf=0.0, neginf=0.0)
    middle = float(np.median(clean))
    large = float(np.quantile(np.abs(clean - middle), 0.99)) or 1.0
    tame = np.clip((clean - middle) / large, -3, 3)
    return max(float(abs(np.diff(y.mean(axis=1))[0])) / (float(y.std()) + 1e-12) for y in (tame, np.abs(tame), gaps))


def closely(column: Numbers, learn: int) -> Iterator[Feature]:
    """Magnitude and bits of one column."""
    x, name = column.values, column.name
    yield binned(f"|{name}|", np.abs(x), learn)
    lowest = lowest_bit(x)
    yield binned(f"log2 of the lowest set bit of {name}", lowest, learn)
    yield binned(f"the number of bits in use in {name}", leading_bit(x) - lowest, learn)
    yield one_sided(name, x, learn)


def together(found: list[Numbers]) -> Iterator[Numbers]:
    """Sums, extremes, places of extremes, ties and differences of neighbours."""
    x = np.stack([column.values for column in found], axis=-1)
    x = np.nan_to_num(x, posinf=1e300, neginf=-1e300)
    low, high = x.min(axis=-1), x.max(axis=-1)
    yield Numbers("the sum of the output", x.sum(axis=-1))
    yield Numbers("the largest entry", high)
    yield Numbers("the smallest entry", low)
    yield Numbers("the place of the largest entry", x.argmax(axis=-1).astype(np.float64))
    yield Numbers("the place of the smallest entry", x.argmin(axis=-1).astype(np.float64))
    yield Numbers("the range of the entries", high - low)
    yield Numbers("the number of positive entries", (x > 0).sum(axis=-1).astype(np.float64))
    yield Numbers("the number of ties", (np.diff(np.sort(x, axis=-1), axis=-1) == 0).sum(axis=-1).astype(np.float64))
    for i in range(min(x.shape[-1] - 1, NEIGHBOURS)):
        yield Numbers(f"{found[i].name} minus {found[i + 1].name}", x[..., i] - x[..., i + 1])


def score(values: list[Binned], learn: int) -> Floats:
    """Σ log of P₀(code)/P₁(code) over the columns: the best score if they were independent."""
    total = np.zeros(values[0].codes.shape)
    for feature in values:
        seen = [np.bincount(side[:learn], minlength=feature.size) + 1.0 for side in feature.codes]
        total += np.log(seen[0] / seen[1])[feature.codes]
    return total


def fingerprints(found: list[Numbers]) -> NDArray[np.uint64]:
    """A 64-bit number for each whole output, equal for equal ones."""
    total = np.zeros(found[0].values.shape, np.uint64)
    for column in found:
        bits = np.ascontiguousarray(column.values).view(np.uint64)
        total = (total ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total
