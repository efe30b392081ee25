"""The contract of a supported kind of layer: a forward pass that notes on a tape what its gradients are made of."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.parts import Part


class Tape:
    """The parts of one backward pass, each changed as it is noted, and how many examples the batch has.

    `shapes` are those of the parts before they were changed: what is proved about rounding depends on them.
    """

    def __init__(self, examples: int, change: Callable[[Part], Part] = lambda part: part) -> None:
        self.parts: list[Part] = []
        self.examples, self.change = examples, change
        self.autocast = False  # did a layer run in mixed precision?
        self.open = False  # is this the backward pass of all losses?
        self.shapes: list[object] = []

    def note(self, part: Part) -> None:
        if not self.open:
            raise InvalidParameter(
                "the loss takes gradients itself, and these cannot be told from those of the examples.\n"
                "  found:  a backward pass inside the model or the loss (a gradient penalty, an inner step)\n"
                "  do:     use a loss that is computed from the outputs of the model"
            )
        self.shapes.append((*part.place, part.parameter.dtype, *part.shapes))
        self.parts.append(self.change(part))

    def check(self, layer: str, found: Tensor) -> None:
        """Refuse a layer whose first dimension is not the example: its gradients could not be told apart."""
        self.autocast |= torch.is_autocast_enabled(found.device.type)
        if found.dim() == 0 or found.shape[0] != self.examples:
            raise InvalidParameter(
                f"the first dimension of what {layer} is given must be the example.\n"
                f"  found:  shape {tuple(found.shape)} in a batch of {self.examples}\n"
                "  do:     use batch_first=True, and expand what all examples share (such as positions) to the batch"
            )


class Layer(ABC):
    """One kind of module. `forward` computes what the module's own forward does, and arranges the notes."""

    kinds: tuple[type[nn.Module], ...]

    def refusal(self, module: nn.Module) -> str | None:
        """Why this module cannot be clipped, or None if it can."""
        return None

    @abstractmethod
    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        """The output of the module."""

    def covers(self, module: nn.Module) -> bool:
        """Is this module of one of the kinds, with the forward of that kind?"""
        return any(isinstance(module, kind) and type(module).forward is kind.forward for kind in self.kinds)


def trainable(parameter: nn.Parameter | None) -> bool:
    """Does this parameter take part in training?"""
    return parameter is not None and parameter.requires_grad
