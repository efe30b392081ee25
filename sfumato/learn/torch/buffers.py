"""Buffers of a model: numbers beside its parameters, which no noise protects, so a forward pass must not write them."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

Mark = tuple[Tensor | None, int, Tensor | None]  # a buffer, torch's counter of writes to it, and a copy


@dataclass(eq=False)
class Buffers:
    """The buffers of a model as they were before a forward pass, to find and undo what it writes.

    Writes show in torch's counter and in the identity of each tensor; copies are made again only where one of these has
    changed between two passes.
    """

    model: nn.Module
    before: dict[tuple[str, str], Mark] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.owners = list(self.model.named_modules())

    def remember(self) -> None:
        """Look at them before a forward pass."""
        known, self.before = self.before, {}
        for name, module in self.owners:
            for key, tensor in module._buffers.items():
                old = known.get((name, key))
                self.before[name, key] = old if old is not None and unchanged(old, tensor) else mark(tensor)

    @torch.no_grad()
    def put_back(self) -> list[str]:
        """The names of those that were written, replaced or added since; all are what they were again."""
        changed = []
        for name, module in self.owners:
            for key, tensor in list(module._buffers.items()):
                old = self.before.get((name, key))
                if old is not None and unchanged(old, tensor):
                    continue
                changed.append(f"{name}.{key}" if name else key)
                if old is None:
                    del module._buffers[key]
                    continue
                original, _, copy = old
                if original is not None and copy is not None:
                    original.copy_(copy)
                module._buffers[key] = original
        return changed


def mark(tensor: Tensor | None) -> Mark:
    return (None, 0, None) if tensor is None else (tensor, tensor._version, tensor.detach().clone())


def unchanged(old: Mark, tensor: Tensor | None) -> bool:
    """Is this the same buffer, not written since?"""
    return old[0] is tensor and (tensor is None or old[1] == tensor._version)
