"""A cost model: for each layer, is it cheaper to form the gradients of all examples, or to take ghost norms?

Both ways are timed when a layer's shapes are first seen, on made-up data: no time of private data decides anything.
"""

import time

import torch

from sfumato.learn.torch.parts import Outers, Part, Vectors

MOST = 1 << 22  # numbers of formed gradients that may be kept for one layer
ROUNDS = 3


class Costs:
    """Which way is cheaper, for each shape of a layer's gradients."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.formed: dict[tuple[int, ...], bool] = {}

    def choose(self, part: Part) -> Part:
        """The same part, formed if that is cheaper."""
        if not isinstance(part, Outers) or part.inputs.shape[1] == 1:
            return part
        key = (*part.inputs.shape, part.outputs.shape[2])
        if key not in self.formed:
            self.formed[key] = self.measure(part)
        return Vectors(part.parameter, part.each(), part.rows) if self.formed[key] else part

    def measure(self, part: Outers) -> bool:
        """Is forming cheaper than ghost norms?"""
        count, _, d = part.inputs.shape
        if count * d * part.outputs.shape[2] > MOST:
            return False
        made_up = Outers(part.parameter, torch.zeros_like(part.inputs), torch.zeros_like(part.outputs), part.rows)
        ghost = min(self.seconds(made_up) for _ in range(ROUNDS))
        formed = min(self.seconds(made_up, True) for _ in range(ROUNDS))
        return formed < ghost

    def seconds(self, part: Outers, form: bool = False) -> float:
        started = time.perf_counter()
        way: Part = Vectors(part.parameter, part.each(), part.rows) if form else part
        way.norm_squared()
        way.weighted_sum(torch.ones(len(part.inputs), dtype=torch.float64, device=part.inputs.device), self.dtype)
        return time.perf_counter() - started
