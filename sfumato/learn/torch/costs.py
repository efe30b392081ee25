"""A cost model: which way to the norms and sums of a layer's gradients is the cheapest?

Gradients can be formed and kept, formed twice, formed for sums only (ghost norms), or never; many or a few at a time.
All are timed (processor time) when a layer's shapes are first seen, on made-up data: no time of private data decides
anything.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from sfumato.learn.torch.parts import Outers, Part, Streamed, Sums, Vectors

KEPT_KERNELS = 1 << 22  # numbers of formed gradients that may be kept for one convolution: this is 16 megabytes
KEPT_OUTERS = 1 << 20  # and for one linear layer: models have many of them, and forming them again is cheap
ROUNDS = 5
Way = Callable[[Any], Part]


def keep(part: Outers) -> Part:
    """Form all gradients now."""
    return Vectors(part.parameter, part.each(), part.rows)


def form_twice(part: Outers) -> Part:
    """Form them when they are needed."""
    return Streamed(part.parameter, len(part.inputs), part.form, part.rows)


def form_for_sums(part: Outers) -> Part:
    """Ghost norms, and gradients that are formed when they are summed."""
    return Streamed(part.parameter, len(part.inputs), part.form, part.rows, part.norm_squared)


def ghost(part: Outers) -> Part:
    """Never form them."""
    return part


WAYS: tuple[Way, ...] = (keep, form_twice, form_for_sums, ghost)
AT_ONCE = (
    1 << 18,
    1 << 19,
    1 << 20,
    KEPT_KERNELS,
)  # numbers that one call forms: more leave the cache, less are more calls


def by_kernel(size: int, part: Streamed) -> Streamed:
    """Form them a few at a time, for norms and once more for sums."""
    return replace(part, at_once=size)


def by_other(size: int, part: Streamed) -> Streamed:
    """The same, in the other way to form them if there is one."""
    return replace(part, at_once=size, form=part.other or part.form)


def keeping(way: Callable[[int, Streamed], Streamed], size: int, part: Streamed) -> Part:
    """Form them a few at a time, and keep them."""
    return way(size, part).kept()


STREAMS: tuple[Way, ...] = (
    *(partial(keeping, by_kernel, size) for size in AT_ONCE), *(partial(keeping, by_other, size) for size in AT_ONCE),
    *(partial(by_kernel, size) for size in AT_ONCE), *(partial(by_other, size) for size in AT_ONCE),
)  # fmt: skip
KEEPING = {WAYS: 1, STREAMS: 2 * len(AT_ONCE)}  # how many of the ways keep gradients


class Costs:
    """The cheapest way, for each shape of a layer's gradients."""

    def __init__(self, dtype: Sums) -> None:
        self.dtype = dtype
        self.ways: dict[object, int] = {}

    def choose(self, part: Part) -> Part:
        """The same gradients, in the cheapest way."""
        if isinstance(part, Outers) and part.inputs.shape[1] > 1:
            (count, _, d), p = part.inputs.shape, part.outputs.shape[2]
            key = (*part.inputs.shape, p)
            return self.cheapest(key, WAYS, part, partial(zeros, part), count * d * p <= KEPT_OUTERS)
        if isinstance(part, Streamed) and part.alike is not None:
            return self.cheapest(
                part.key, STREAMS, part, part.alike, part.count * part.parameter.numel() <= KEPT_KERNELS
            )
        return part

    def cheapest(
        self, key: object, ways: tuple[Way, ...], part: Part, made_up: Callable[[], Part], small: bool
    ) -> Part:
        if key not in self.ways:
            first = 0 if small else KEEPING[ways]  # large gradients are not kept
            alike = made_up()
            rounds = [[self.seconds(alike, way) for way in ways[first:]] for _ in range(ROUNDS)]
            least = [min(times) for times in zip(*rounds, strict=True)]
            self.ways[key] = first + least.index(min(least))
        return ways[self.ways[key]](part)

    def seconds(self, part: Part, way: Way) -> float:
        clock = time.process_time if part.parameter.device.type == "cpu" else finished_at
        started = clock()
        found = way(part)
        ones = torch.ones(len(found.norm_squared()), dtype=torch.float64, device=part.parameter.device)
        found.weighted_sum(ones, self.dtype)
        return clock() - started


def zeros(part: Outers) -> Outers:
    """Made-up data of the same shapes."""
    return Outers(part.parameter, torch.zeros_like(part.inputs), torch.zeros_like(part.outputs), part.rows)


def finished_at() -> float:
    """The time at which a graphics card has done all that it was given."""
    torch.cuda.synchronize()
    return time.perf_counter()
