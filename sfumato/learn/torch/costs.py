"""A cost model: which way to the norms and sums of a layer's gradients is the cheapest?

Gradients can be formed and kept, formed twice, formed for sums only (ghost norms), or never. All are timed (processor
time) when a layer's shapes are first seen, on made-up data: no time of private data decides anything.
"""

import time

import torch

from sfumato.learn.torch.parts import Outers, Part, Streamed, Sums, Vectors

KEPT = 1 << 22  # numbers of formed gradients that may be kept for one layer
ROUNDS = 3
Shape = tuple[int, ...]


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


WAYS = (keep, form_twice, form_for_sums, ghost)


class Costs:
    """The cheapest way, for each shape of a layer's gradients."""

    def __init__(self, dtype: Sums) -> None:
        self.dtype = dtype
        self.ways: dict[Shape, int] = {}

    def choose(self, part: Part) -> Part:
        """The same gradients, in the cheapest way."""
        if not isinstance(part, Outers) or part.inputs.shape[1] == 1:
            return part
        key = (*part.inputs.shape, part.outputs.shape[2])
        if key not in self.ways:
            self.ways[key] = self.measure(part)
        return WAYS[self.ways[key]](part)

    def measure(self, part: Outers) -> int:
        """The number of the cheapest way; large gradients are not kept."""
        (count, _, d), p = part.inputs.shape, part.outputs.shape[2]
        made_up = Outers(part.parameter, torch.zeros_like(part.inputs), torch.zeros_like(part.outputs), part.rows)
        ways = range(0 if count * d * p <= KEPT else 1, len(WAYS))
        return min(ways, key=lambda way: min(self.seconds(made_up, way) for _ in range(ROUNDS)))

    def seconds(self, part: Outers, way: int) -> float:
        clock = time.process_time if part.inputs.device.type == "cpu" else finished_at
        started = clock()
        found = WAYS[way](part)
        found.norm_squared()
        found.weighted_sum(torch.ones(len(part.inputs), dtype=torch.float64, device=part.inputs.device), self.dtype)
        return clock() - started


def finished_at() -> float:
    """The time at which a graphics card has done all that it was given."""
    torch.cuda.synchronize()
    return time.perf_counter()
