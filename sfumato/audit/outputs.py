"""Outputs of a mechanism: run it many times, and read outputs of any type as columns of numbers and of labels."""

import dataclasses
import numbers
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter

Floats = NDArray[np.float64]
Path = tuple[Hashable, ...]
Sides = tuple[Sequence[object], Sequence[object]]

PATIENCE = 2.0  # seconds before progress is shown
LONGEST = 64  # entries of a sequence or table that become columns of their own
MOST_PATHS = 256


@dataclass(frozen=True)
class Raised:
    """The output of a run that ended in an exception: the type of the exception, without its message."""

    kind: str


@dataclass(frozen=True)
class Missing:
    """Marks a path that an output does not have."""


MISSING = Missing()
PLAIN = (float, int, bool, str, bytes, type(None), Raised)


# ---- running ---------------------------------------------------------------------------------------------------------


def run_many(mechanism: object, pair: tuple[object, object], count: int) -> Sides:
    """`count` outputs on each data set: by `many` if the mechanism has it and it does not raise, else one by one."""
    many, kind = getattr(mechanism, "many", None), type(mechanism).__name__
    if not callable(mechanism):
        mechanism = getattr(mechanism, "release", None)
    if not callable(mechanism) and not callable(many):
        raise InvalidParameter(
            "the mechanism must be a function from data to an output.\n"
            f"  found:  a {kind}, which cannot be called and has no `release`\n"
            "  do:     give a function, for instance lambda data: laplace.release(sum(data))"
        )
    if callable(many):
        try:
            return check_batch(many(pair[0], count), count), check_batch(many(pair[1], count), count)
        except InvalidBatch as problem:
            raise InvalidParameter(str(problem)) from None
        except Exception:
            if not callable(mechanism):
                raise
    return run_one_by_one(mechanism, pair, count)  # type: ignore[arg-type]  # callable, as seen above


def append_runs(before: Sides, after: Sides) -> Sides:
    """All runs of the same mechanism, earlier ones first."""

    def concatenate(first: Sequence[object], second: Sequence[object]) -> Sequence[object]:
        if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and form(first) == form(second):
            return np.concatenate([first, second])
        return [*first, *second]

    return concatenate(before[0], after[0]), concatenate(before[1], after[1])


def require_different_data(d0: object, d1: object) -> None:
    """Refuse the same data set twice: it cannot refute any mechanism."""
    try:
        same = d0 is d1 or (type(d0) is type(d1) and bool(np.all(d0 == d1)) and repr(d0) == repr(d1))
    except Exception:  # inputs that cannot be compared count as different
        same = False
    if same:
        raise InvalidParameter(
            "d0 and d1 are the same data, so no mechanism can be refuted.\n"
            "  found:  two equal inputs\n  do:     give two neighbours: data with one person, and without"
        )


class InvalidBatch(Exception):
    """`many` did not return n outputs."""


def check_batch(batch: object, count: int) -> Sequence[object]:
    """The result of `many` as a sequence of `count` outputs (rows of a table, of a tensor, …); else refused."""
    batch = np.asarray(batch) if hasattr(batch, "__array__") else batch
    size = len(batch) if hasattr(batch, "__len__") and hasattr(batch, "__getitem__") else None
    if size != count or isinstance(batch, str | bytes | Mapping):
        found = f"a {type(batch).__name__}" + ("" if size is None else f" of length {size:,}")
        raise InvalidBatch(
            f"many(data, n) must return n outputs.\n  found:  {found} for n = {count:,}\n"
            "  do:     return an array or a list with one entry (or row) for each output"
        )
    return batch  # type: ignore[return-value]  # it has a length and entries


def run_one_by_one(
    mechanism: Callable[[object], object], pair: tuple[object, object], count: int
) -> tuple[list[object], list[object]]:
    """Alternate between the data sets, so that slow drifts of the machine affect both sides alike."""
    sides: tuple[list[object], list[object]] = ([], [])
    problem: Exception | None = None
    progress = Progress(count)
    for i in range(count):
        for data, outputs in zip(pair, sides, strict=True):
            try:
                outputs.append(mechanism(data))
            except Exception as error:
                problem = problem or error
                outputs.append(Raised(type(error).__name__))
        progress.show(i)
    progress.done()
    if problem is not None and all(output == sides[0][0] for outputs in sides for output in outputs):
        raise InvalidParameter(
            f"the mechanism raised {type(problem).__name__} on every run.\n"
            "  found:  no output on either data set\n  do:     check that mechanism(d0) works"
        ) from problem
    return sides


@dataclass(frozen=True)
class Timed:
    """A mechanism whose output includes its running time: a timing side channel.

    Times on one machine are not quite independent, so a certificate about them holds only as far as they are.
    """

    mechanism: Callable[[object], object]
    clock: Callable[[], float] = time.perf_counter

    def __call__(self, data: object) -> dict[str, object]:
        began = self.clock()
        try:
            output = self.mechanism(data)
        except Exception as error:
            output = Raised(type(error).__name__)
        return {"output": output, "seconds": self.clock() - began}


class Progress:
    """A line on the terminal with the time left, shown only for long audits."""

    def __init__(self, count: int) -> None:
        self.count, self.started, self.shown = count, time.monotonic(), False
        self.visible = sys.stderr is not None and sys.stderr.isatty()
        self.next = self.started + PATIENCE

    def show(self, i: int) -> None:
        """Called after each run; prints at most twice a second."""
        if not self.visible or (now := time.monotonic()) < self.next:
            return
        self.shown, self.next = True, now + 0.5
        left = (now - self.started) / (i + 1) * (self.count - i - 1)
        print(f"\r… auditing: {(i + 1) / self.count:.0%}, {left:.0f} s left … ", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        """Erase the line."""
        if self.shown:
            print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


# ---- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, [side, run]; NaN where an output has no number."""

    name: str
    values: Floats


@dataclass(frozen=True)
class Labels:
    """A column of labels, [side][run], which can only be compared for equality."""

    name: str
    values: tuple[Sequence[Hashable], Sequence[Hashable]]


def output_columns(sides: Sides, known: int) -> tuple[list[Numbers], list[Labels]]:
    """All columns of the outputs. The set of columns depends only on the first `known` runs on each side."""
    if (blocks := matrices(sides, known)) is not None:
        return [Numbers(name, x) for name, x in blocks.items()], []
    plain = tuple([to_plain(value) for value in side] for side in sides)
    paths = all_leaf_paths([value for side in plain for value in side[:known]])
    numeric, labels = [], []
    for path in paths:
        name = "the output" + "".join(f"[{key!r}]" for key in path)
        leaves = tuple([leaf_at(value, path) for value in side] for side in plain)
        kinds_here = tuple([output_kind(leaf) for leaf in side] for side in leaves)
        labels.append(Labels(name, kinds_here))  # type: ignore[arg-type]  # a pair, as there are two sides
        seen = [leaf for side in leaves for leaf in side[:known]]
        if any(isinstance(leaf, numbers.Real) for leaf in seen):
            numeric.append(Numbers(name, np.array([[as_float(leaf) for leaf in side] for side in leaves])))
    if paths != [()]:
        shapes = tuple([shape_of(value) for value in side] for side in plain)
        labels.append(Labels("the shape of the output", shapes))  # type: ignore[arg-type]
        sizes = np.array([[float(len(v)) if hasattr(v, "__len__") else np.nan for v in side] for side in plain])
        numeric.append(Numbers("the length of the output", sizes))
        exact = tuple([text_of(value) for value in side] for side in plain)
        labels.append(Labels("the output", exact))  # type: ignore[arg-type]
    return numeric, labels


def matrices(sides: Sides, known: int) -> dict[str, Floats] | None:
    """The columns of outputs that are numbers of one type, or arrays of one shape, in all `known` runs; else None.

    A later output of another form becomes NaN in every column.
    """
    heads = [as_array(side[:known]) for side in sides]
    if heads[0] is None or heads[1] is None or form(heads[0]) != form(heads[1]):
        return None
    shape, flat = heads[0].shape[1:], []
    for side in sides:
        block = as_array(side)
        if block is None or form(block) != form(heads[0]):
            rows = [x[0] if (x := as_array([v])) is not None and x.shape[1:] == shape else np.nan for v in side]
            block = np.array([np.broadcast_to(row, shape) for row in rows])
        flat.append(block.reshape(len(block), -1).astype(np.float64))
    stacked = np.stack(flat)
    if not shape:
        return {"the output": stacked[:, :, 0]}
    indices = [", ".join(map(str, index)) for index in np.ndindex(shape)]
    return {f"the output[{place}]": stacked[:, :, j] for j, place in enumerate(indices)}


def form(x: NDArray[np.generic]) -> tuple[str, tuple[int, ...]]:
    """The kind of number and the shape of one output."""
    return x.dtype.kind, x.shape[1:]


def as_array(side: Sequence[object]) -> NDArray[np.generic] | None:
    """Outputs of one type as an array of numbers, or None."""
    if not isinstance(side, np.ndarray):
        kinds = set(map(type, side))
        if len(kinds) != 1 or not issubclass(kind := kinds.pop(), float | int | np.number | np.ndarray):
            return None
        if kind is np.ndarray and len({(x.shape, x.dtype) for x in side}) != 1:  # type: ignore[attr-defined]
            return None
    array: NDArray[np.generic] = np.asarray(side)
    return array if array.dtype.kind in "fiub" and array.size else None


def to_plain(value: object) -> object:
    """The output converted to dicts, lists and leaves."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, np.generic):
        item = value.item()
        return float(item) if isinstance(item, np.generic) else to_plain(item)  # long doubles
    if isinstance(value, Mapping):
        return {key: to_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(entry) for entry in value]
    if isinstance(value, set | frozenset):
        return sorted(map(text_of, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    for table in ("to_pydict", "to_dict"):  # pyarrow, pandas
        if callable(convert := getattr(value, table, None)):
            return to_plain(convert())
    if hasattr(value, "__array__"):  # tensors
        return to_plain(np.asarray(value))
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else float(value)
    return value if isinstance(value, numbers.Real) else text_of(value)


def text_of(value: object) -> str:
    """The repr; the type name if the repr has a memory address or is an integer too long to print."""
    try:
        text = repr(value)
    except ValueError:
        text = " at 0x"
    return type(value).__name__ if " at 0x" in text else text


def all_leaf_paths(values: list[object]) -> list[Path]:
    """The paths of the leaves of all these outputs, in order of first appearance."""
    paths: dict[Path, None] = {}
    for value in values:
        for path in leaf_paths(value, ()):
            if len(paths) < MOST_PATHS:
                paths[path] = None
    return list(paths)


def leaf_paths(value: object, path: Path) -> Iterator[Path]:
    """The paths of the leaves of one output. An empty table is a leaf."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not entries or not value:
        yield path
        return
    for (key, entry), _ in zip(entries, range(LONGEST), strict=False):
        yield from leaf_paths(entry, (*path, key))


def leaf_at(value: object, path: Path) -> object:
    """The leaf at a path; MISSING if there is none; the number of entries if it is not a leaf."""
    for key in path:
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        if key not in keys:
            return MISSING
        value = value[key]  # type: ignore[index]  # it has this key
    return f"{len(value)} entries" if isinstance(value, dict | list) else value


def output_kind(leaf: object) -> str:
    """A leaf as a label: texts and truth values themselves, the names of unusual numbers, else the type."""
    if isinstance(leaf, float):
        return "a float" if leaf - leaf == 0 and (leaf or str(leaf)[0] != "-") else repr(leaf)
    if isinstance(leaf, Raised):
        return f"an exception: {leaf.kind}"
    if isinstance(leaf, Missing):
        return "missing"
    if isinstance(leaf, str | bytes | bool | None):
        return repr(leaf)
    return "an integer" if isinstance(leaf, int) else f"a {type(leaf).__name__}"


def as_float(leaf: object) -> float:
    """A number as a double, saturated; NaN for anything else."""
    if not isinstance(leaf, numbers.Real):
        return np.nan
    try:
        return float(leaf)
    except OverflowError:
        return -np.inf if leaf < 0 else np.inf


def shape_of(value: object) -> str:
    """The outermost structure of an output: its type and length, or the keys of a table."""
    if isinstance(value, dict):
        return f"a table with keys {', '.join(sorted(map(text_of, value)))}"
    return f"a sequence of {len(value)}" if isinstance(value, list) else output_kind(value)
