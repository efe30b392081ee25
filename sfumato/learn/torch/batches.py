"""Physical batches: fixed shapes, whatever the sampler drew. Examples are in random places, absent ones are masked."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.engine import Shape
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sampling.base import Batch, Sampling
from sfumato.sampling.poisson_units import PoissonUnits

Augment = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Physical:
    """One physical batch: tensors with `places × rows` rows, which places hold an example, and is it the last one?"""

    tensors: tuple[Tensor, ...]
    mask: Tensor
    share: Tensor  # the weight of each row in the loss of its example
    last: bool


class Data:
    """Examples by number. Fields are tensors whose first dimension is the example, or anything with len and []."""

    def __init__(self, data: Any, units: Sequence[int] | None = None, per_unit: int = 1, versions: int = 1) -> None:
        self.tensors, self.rows = read(data)
        self.each = per_unit * versions  # rows of one example
        self.table: Tensor | None = None
        if units is not None:
            self.table = unit_table(units, self.rows, per_unit).repeat_interleave(versions, 1)

    @property
    def people(self) -> int:
        return self.rows if self.table is None else len(self.table)

    def in_random_order(self, source: Source) -> "Data":
        """The same data, with units (if there are any) in random order.

        Units are numbered by their names, so another unit in the place of one would move others to other batches,
        where batches go by numbers. In random order, all others can keep theirs.
        """
        if self.table is None:
            return self
        found = copy(self)
        order = np.argsort(source.words(len(self.table), 64), kind="stable")
        found.table = self.table[torch.from_numpy(order)]
        return found

    def take(self, index: Tensor, rows: int) -> tuple[tuple[Tensor, ...], Tensor]:
        """The rows of these examples (−1: absent), and the share of each row in its example's loss."""
        if self.table is None:
            chosen = index.repeat_interleave(rows) if rows > 1 else index
            present = chosen >= 0
            share = present.double() / rows
        else:
            chosen = self.table[index.clamp(min=0)].masked_fill((index < 0)[:, None], -1).flatten()
            present = chosen >= 0
            count = present.view(len(index), -1).sum(1).clamp(min=1)
            share = present.double() / count.repeat_interleave(self.table.shape[1])
        return tuple(self.gather(field, chosen, present) for field in range(self.fields)), share

    @property
    def fields(self) -> int:
        return len(self.tensors) if isinstance(self.tensors, tuple) else len(self.sample(0))

    def sample(self, row: int) -> tuple[Tensor, ...]:
        return tuple(torch.as_tensor(x) for x in self.tensors[row])

    def gather(self, field: int, chosen: Tensor, present: Tensor) -> Tensor:
        """One field of the chosen rows; absent ones are zeros."""
        if not isinstance(self.tensors, tuple):
            found = [self.sample(int(row))[field] for row in chosen[present]]
            like = found[0] if found else self.sample(0)[field]
            total = torch.zeros(len(chosen), *like.shape, dtype=like.dtype)
            if found:
                total[present] = default_collate(found)
            return total
        source: Tensor = self.tensors[field]
        total = source.new_zeros(len(chosen), *source.shape[1:])
        total[present.to(source.device)] = source[chosen[present].to(source.device)]
        return total

    def made_up(self, count: int, seed: int, same: Tensor) -> tuple[Tensor, ...]:
        """Rows of the same types and shapes that have nothing to do with the data: random numbers, zeros and ones.

        The rows of the mask `same` do not depend on the seed.
        """
        first = self.tensors if isinstance(self.tensors, tuple) else tuple(x[None] for x in self.sample(0))
        fields = tuple(random_rows(x, count, seed) for x in first)
        for field, fixed in zip(fields, (random_rows(x, count, 0) for x in first), strict=True):
            mask = same.to(field.device)
            field[mask] = fixed[mask]
        return fields


def data_of(data: Any, sampler: Sampling, augmentations: int, units: Sequence[int] | None, per_unit: int) -> Data:
    """Data whose examples are rows, several versions of a row, or units with several rows."""
    versions, rows = checks.whole("augmentations", augmentations, 1), checks.whole("per_unit", per_unit, 1)
    if units is None and rows > 1:
        raise InvalidParameter(
            f"per_unit is about units.\n  found:  per_unit = {rows}, and no units\n"
            "  do:     give units=, the unit of each row"
        )
    if units is None and isinstance(sampler, PoissonUnits):
        raise InvalidParameter(
            "PoissonUnits samples whole units.\n  found:  no units\n"
            "  do:     give units=, the unit of each row, and per_unit=, the most rows of one that are used"
        )
    return Data(data, units, rows, versions)


def shared(found: Tensor, share: Tensor) -> Tensor:
    """Losses of rows, each weighted by its share in its example; absent rows have none."""
    if found.dim() == 0 or len(found) != len(share):
        raise InvalidParameter(
            "the loss must be one number for each example.\n"
            f"  found:  shape {tuple(found.shape)} for {len(share)} rows\n"
            "  do:     use reduction='none', or return a vector"
        )
    each, weights = found.flatten(1).mean(1) if found.dim() > 1 else found, share.to(found.device, found.dtype)
    return torch.where(weights > 0, each * weights, torch.zeros_like(each))


def random_rows(like: Tensor, count: int, seed: int) -> Tensor:
    """Public random numbers of this type and shape: this is no noise."""
    generator, shape = torch.Generator().manual_seed(seed), (count, *like.shape[1:])
    if like.dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(like.device, like.dtype)
    return torch.randint(0, 2, shape, generator=generator).to(like.device, like.dtype)


def read(data: Any) -> tuple[Any, int]:
    """The tensors (or the data set) and the number of rows."""
    if isinstance(data, TensorDataset):
        data = data.tensors
    if isinstance(data, list | tuple) and data and all(isinstance(x, Tensor) for x in data):
        if len({len(x) for x in data}) > 1:
            raise InvalidParameter(
                "all tensors must have one row for each example.\n  found:  tensors of different lengths\n"
                "  do:     give (inputs, targets) with the same first dimension"
            )
        return tuple(data), len(data[0])
    if isinstance(data, Dataset) and hasattr(data, "__len__"):
        return data, len(data)
    instead = "its .dataset: the sampler draws the batches" if isinstance(data, DataLoader) else "a torch Dataset"
    raise InvalidParameter(
        f"data are tensors or a data set with a length.\n  found:  a {type(data).__name__}\n"
        f"  do:     give (inputs, targets) as tensors, or {instead}"
    )


def unit_table(units: Sequence[int], rows: int, per_unit: int) -> Tensor:
    """For each unit its first `per_unit` rows; −1 where it has fewer."""
    names, owner = np.unique(np.asarray(units), return_inverse=True)
    if len(owner) != rows:
        raise InvalidParameter(
            "units names the unit of each row.\n  found:  another number of rows\n  do:     give one entry per row"
        )
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(names)))
    place = np.arange(rows) - starts[owner[order]]
    table = np.full((len(names), per_unit), -1, np.int64)
    kept = place < per_unit
    table[owner[order][kept], place[kept]] = order[kept]
    return torch.from_numpy(table)


def places_of(batch: Batch, places: int, capacity: int, source: Source) -> Tensor:
    """Row numbers in random places, −1 where there is none: whole physical batches, as many as the capacity has.

    All injections into the capacity are equally likely. So if one example leaves, all others stay where they are (for a
    suitable coupling), and their gradients stay the same bit by bit. Beyond the capacity there are further physical
    batches; an example that comes then moves one other there. This is rare, and priced (`sizes.overflow`).
    """
    order = batch[np.argsort(source.words(len(batch), 64), kind="stable")]  # equal keys: no matter
    main = np.full(capacity, -1, np.int64)
    inside = order[:capacity]
    main[np.argsort(source.words(capacity, 64), kind="stable")[: len(inside)]] = inside
    rest = order[capacity:]
    further = np.full(-(-len(rest) // places) * places, -1, np.int64)
    further[: len(rest)] = rest
    return torch.from_numpy(np.concatenate([main, further])).view(-1, places)


def physical_batches(
    data: Data, sampling: Sampling, shape: Shape, steps: int, source: Source = SYSTEM
) -> Iterator[Physical]:
    """The physical batches of so many logical ones; an empty logical batch has them, too, without examples."""
    data, stream = data.in_random_order(source), sampling.stream(data.people, source)
    for _ in range(steps):
        table = places_of(next(stream), shape.places, shape.capacity, source)
        table = table[: shape.batches] if shape.cut else table
        for number, index in enumerate(table):
            tensors, share = data.take(index, shape.rows)
            yield Physical(tensors, index >= 0, share, number + 1 == len(table))
