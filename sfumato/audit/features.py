"""Features of outputs: functions with finitely many values, learned on runs that are not used for certification.

Once it is learned, a feature is a fixed function from an output to a small code, so any set of codes is an event. The
choice of features affects the power of the audit, never its validity. Held-out runs are read through the one chosen
feature, and only after it was chosen.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.outputs import Floats, Labels, Numbers

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

BINS = 96
FEW = 256  # up to so many distinct values each get a code of their own
TAILS = (0.0005, 0.001, 0.002, 0.005)
GROUPS, ENOUGH = 24, 300  # groups of codes for the learned score, and runs in each
DISTINCT = 8  # up to so many codes are groups of their own
COLUMNS = 48  # numeric columns of a wide output that get features of their own
CLOSELY = 6  # of these, columns whose bits and magnitudes are features too
NEIGHBOURS = 12  # differences of neighbouring columns


@dataclass(frozen=True)
class Split:
    """The use of the runs: the first `learn` shape features, those up to `known` choose the event, the rest certify."""

    learn: int
    known: int


@dataclass(frozen=True)
class Feature(ABC):
    """Codes [side, run] from 0 to size − 1 of the known runs, and on demand those of the held-out runs."""

    name: str
    codes: Codes = field(repr=False)
    held_out: Callable[[], Codes] = field(repr=False)
    # True if the feature ignores which side the learning runs are from: then they may be counted when choosing, too
    fresh: bool = field(default=True, kw_only=True)

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of codes."""

    @property
    @abstractmethod
    def ordered(self) -> bool:
        """Do the codes have an order, so that tails are natural events?"""

    @abstractmethod
    def describe(self, keep: Flags) -> str:
        """The event "the code is one of these", in words."""


@dataclass(frozen=True)
class Binned(Feature):
    """The position of a number among cuts c₀ < c₁ < …: 2i just below cᵢ, 2i + 1 exactly at cᵢ; the last code is NaN."""

    cuts: Floats

    @property
    def size(self) -> int:
        return 2 * len(self.cuts) + 2

    @property
    def ordered(self) -> bool:
        return True

    def describe(self, keep: Flags) -> str:
        stretches = []
        for kept, group in groupby(range(self.size - 1), key=lambda i: bool(keep[i])):
            if kept:
                inside = list(group)
                stretches.append(self.stretch(inside[0], inside[-1]))
        if keep[-1]:
            stretches.append("is not a number")
        return f"{self.name} {join_words(stretches)}"

    def stretch(self, first: int, last: int) -> str:
        """The codes first … last, in words."""
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

    labels: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.labels) + 1

    @property
    def ordered(self) -> bool:
        return False

    def describe(self, keep: Flags) -> str:
        chosen = [label for label, kept in zip((*self.labels, "something else"), keep, strict=True) if kept]
        return f"{self.name} is {join_words(chosen)}"


def join_words(parts: list[str], most: int = 4) -> str:
    """`a or b or c`, shortened."""
    short = [part if len(part) <= 60 else f"{part[:57]}…" for part in parts[:most]]
    more = len(parts) - most
    return " or ".join(short) + (f" or one of {more} more" if more > 0 else "")


# ---- learning --------------------------------------------------------------------------------------------------------


def bin_numbers(name: str, values: Floats, at: Split, held_out: Callable[[], Floats] | None = None) -> Binned:
    """Cuts at quantiles of the learning runs and at frequent values; at all values if there are few.

    `values` are those of all runs, or of the known runs if those of the rest are computed on demand by `held_out`.
    """
    seen = values[:, : at.learn].ravel()
    distinct, count = np.unique(seen[~np.isnan(seen)], return_counts=True)
    if len(distinct) > FEW:
        places = np.concatenate([np.linspace(0, 1, BINS + 1)[1:-1], TAILS, 1 - np.array(TAILS)])
        spots = np.clip((places * count.sum()).astype(np.int64), 0, count.sum() - 1)
        quantiles = distinct[np.searchsorted(np.cumsum(count), spots, "right")]
        often = np.flatnonzero(count > max(4, 2e-4 * len(seen)))
        often = often[np.argsort(-count[often], kind="stable")[:64]]
        distinct = np.union1d(quantiles, distinct[often])
    rest = held_out or (lambda: values[:, at.known :])
    return Binned(name, codes_among(values[:, : at.known], distinct), lambda: codes_among(rest(), distinct), distinct)


def codes_among(values: Floats, cuts: Floats) -> Codes:
    """The codes of numbers among cuts."""
    left = np.searchsorted(cuts, values, "left")
    codes = 2 * left
    if len(cuts):
        codes += cuts[np.minimum(left, len(cuts) - 1)] == values
    codes[np.isnan(values)] = 2 * len(cuts) + 1
    return codes


def code_labels(labels: Labels, at: Split) -> Named:
    """The most frequent labels of the learning runs get a code each."""
    first, second = labels.values
    common = Counter(first[: at.learn]) + Counter(second[: at.learn])
    code = {label: i for i, (label, _) in enumerate(common.most_common(FEW))}

    def read(start: int, end: int) -> Codes:
        return np.array([[code.get(x, len(code)) for x in side[start:end]] for side in labels.values], np.int64)

    count = len(first)
    return Named(labels.name, read(0, at.known), lambda: read(at.known, count), tuple(map(str, code)))


def seen_before(name: str, values: NDArray[np.generic], at: Split) -> Named:
    """Was exactly this value seen in the learning runs, and on which side?"""
    before = [np.unique(side[: at.learn]) for side in values]

    def read(later: NDArray[np.generic]) -> Codes:
        here = [np.isin(later, seen).astype(np.int64) for seen in before]
        return here[0] + 2 * here[1]

    words = ("a value never seen before", "a value seen on d0 only", "a value seen on d1 only", "a value seen on both")
    return Named(name, read(values[:, : at.known]), lambda: read(values[:, at.known :]), words, fresh=False)


def kinds_of_double(column: Numbers, at: Split) -> Named:
    """The kind of double: an ordinary number, NaN, ±∞ or −0."""

    def read(x: Floats) -> Codes:
        kinds = [np.isnan(x), x == np.inf, x == -np.inf, (x == 0) & np.signbit(x)]
        return np.asarray(np.select(kinds, [1, 2, 3, 4], 0), np.int64)

    x, words = column.values, ("a number", "NaN", "+∞", "−∞", "−0")
    return Named(column.name, read(x[:, : at.known]), lambda: read(x[:, at.known :]), words)


def lowest_bit(x: Floats) -> Floats:
    """The exponent of the lowest set bit of each double; NaN where there is none.

    Theorem: noisy doubles betray their centre by the grid they lie on [Mironov 2012; Haney et al. 2022]
    """
    significand, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    integer = np.abs(significand * 2.0**53).astype(np.int64)
    zeros = np.log2(np.maximum(integer & -integer, 1).astype(np.float64))
    return np.asarray(np.where(integer == 0, np.nan, exponent - 53 + zeros), np.float64)


def leading_bit(x: Floats) -> Floats:
    """⌊log₂|x|⌋; NaN for 0, ±∞ and NaN."""
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    return np.where(np.isfinite(x) & (x != 0), exponent - 1.0, np.nan)


# ---- all features ----------------------------------------------------------------------------------------------------


def all_features(numbers: list[Numbers], labels: list[Labels], at: Split) -> Iterator[Feature]:
    """All features of the outputs, shaped by the learning runs only."""
    for column in labels:
        yield code_labels(column, at)
    chosen = most_different(numbers, at.learn)
    values = []
    for rank, numeric in enumerate(chosen):
        values.append(bin_numbers(numeric.name, numeric.values, at))
        yield values[-1]
        yield kinds_of_double(numeric, at)
        if rank < CLOSELY:
            yield from bit_features(numeric, at)
    if len(numbers) > 1:
        for joint in joint_columns(numbers):
            yield bin_numbers(joint.name, joint.values, at)
        weights = [log_ratios(feature, at.learn) for feature in values]
        early = score(weights, [feature.codes for feature in values])
        late = lambda: score(weights, [feature.held_out() for feature in values])  # noqa: E731  # passed as a value
        yield replace(bin_numbers("the learned score", early, at, late), fresh=False)
        yield seen_before("the output", fingerprints(numbers), at)


def most_different(numbers: list[Numbers], learn: int) -> list[Numbers]:
    """The columns whose means, magnitudes or NaNs differ most between the sides of the learning runs."""
    if len(numbers) <= COLUMNS:
        return numbers
    order = np.argsort([-difference(column.values[:, :learn]) for column in numbers], kind="stable")
    return [numbers[i] for i in order[:COLUMNS]]


def difference(x: Floats) -> float:
    """The largest of three standardised differences between the sides."""
    gaps = np.isnan(x).astype(np.float64)
    clean = np.nan_to_num(x, posinf=0.0, neginf=0.0)
    middle = float(np.median(clean))
    large = float(np.quantile(np.abs(clean - middle), 0.99)) or 1.0
    tame = np.clip((clean - middle) / large, -3, 3)
    return max(float(abs(np.diff(y.mean(axis=1))[0])) / (float(y.std()) + 1e-12) for y in (tame, np.abs(tame), gaps))


def bit_features(column: Numbers, at: Split) -> Iterator[Feature]:
    """The magnitude and the bits of one column."""
    x, name = column.values, column.name
    yield bin_numbers(f"|{name}|", np.abs(x), at)
    lowest = lowest_bit(x)
    yield bin_numbers(f"log2 of the lowest set bit of {name}", lowest, at)
    yield bin_numbers(f"the number of bits in use in {name}", leading_bit(x) - lowest, at)
    yield seen_before(name, x, at)


def joint_columns(numbers: list[Numbers]) -> Iterator[Numbers]:
    """Functions of all columns: sum, extremes and their places, range, and differences of adjacent columns."""
    x = np.stack([column.values for column in numbers], axis=-1)
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
        yield Numbers(f"{numbers[i].name} minus {numbers[i + 1].name}", x[..., i] - x[..., i + 1])


def log_ratios(feature: Binned, learn: int) -> Floats:
    """An estimate of log P₀(code)/P₁(code) for each code; adjacent codes are pooled until they have enough runs."""
    seen = np.stack([np.bincount(side[:learn], minlength=feature.size) for side in feature.codes])
    count = seen.sum(axis=0)
    group = np.arange(feature.size)
    if np.count_nonzero(count) > DISTINCT:
        group = (np.cumsum(count) - count) // max(ENOUGH, int(count.sum()) // GROUPS)
        group[-1] = group[-2] + 1  # NaN is a group of its own
        _, group = np.unique(group, return_inverse=True)
    pooled = np.stack([np.bincount(group, side) for side in seen]) + 1.0
    return np.asarray(np.log(pooled[0] / pooled[1])[group], np.float64)


def score(weights: list[Floats], codes: list[Codes]) -> Floats:
    """Σ log P₀(code)/P₁(code) over the columns: the best score if the columns were independent."""
    return np.asarray(sum(weight[code] for weight, code in zip(weights, codes, strict=True)), np.float64)


def fingerprints(numbers: list[Numbers]) -> NDArray[np.uint64]:
    """A 64-bit hash of each output; equal outputs have equal hashes."""
    total = np.zeros(numbers[0].values.shape, np.uint64)
    for column in numbers:
        bits = np.ascontiguousarray(column.values).view(np.uint64)
        total = (total ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total
