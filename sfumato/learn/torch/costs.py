"""A cost model: which way to the norms and sums of a layer's gradients is the cheapest?

Gradients can be formed and kept, formed twice, or never (ghost norms). All are timed when a layer's shapes are first
seen, on made-up data: no time of private data decides anything.
"""

import time

import torch

from sfumato.learn.torch.parts import FormedTwice, Outers, Part, Sums, Vectors

KEPT = 1 << 23  # numbers of formed gradients that may be kept for one layer
ROUNDS = 3
Shape = tuple[int, ...]


def keep(part: Outers) -> Part:
    """Form all gradients now."""
    return Vectors(part.parameter, part.each(), part.rows)


def form_twice(part: Outers) -> Part:
    """Form them when they are needed."""
    return FormedTwice(part.parameter, len(part.inputs), part.form, part.rows)


def ghost(part: Outers) -> Part:
    """Never form them."""
    return part


WAYS = (keep, form_twice, ghost)


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
        started = time.perf_counter()
        found = WAYS[way](part)
        found.norm_squared()
        found.weighted_sum(torch.ones(len(part.inputs), dtype=torch.float64, device=part.inputs.device), self.dtype)
        return time.perf_counter() - started
