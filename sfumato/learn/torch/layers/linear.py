"""Linear layers: the gradient of an example is Σ_t g_t a_tᵀ over its places t."""

from typing import Any

import torch
from torch import Tensor, nn

from sfumato.learn.torch.layers.base import Layer, Tape, trainable
from sfumato.learn.torch.parts import Outers, Vectors
from sfumato.learn.torch.products import linear

Rows = tuple[int, int] | None


class LinearCall(torch.autograd.Function):
    """x ↦ xWᵀ + b. Backward returns the gradient of x alone, and notes what the others are made of."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, owner: "Owner") -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.owner = owner
        return linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (g,) = grads
        ctx.owner.note(x.detach(), g.detach())
        return (linear(g, weight.to(g.dtype).t()) if ctx.needs_input_grad[0] else None), None, None, None


class Owner:
    """The parameters of a linear map, whole or some of their rows, and the tape that their gradients go to."""

    def __init__(
        self, tape: Tape, weight: nn.Parameter, bias: nn.Parameter | None, rows: Rows = None, bias_rows: Rows = None
    ) -> None:
        self.tape, self.weight, self.bias, self.rows, self.bias_rows = tape, weight, bias, rows, bias_rows or rows

    def note(self, a: Tensor, g: Tensor) -> None:
        a, g = (x.unsqueeze(1) if x.dim() == 2 else x.flatten(1, -2) for x in (a, g))
        if trainable(self.weight):
            self.tape.note(Outers(self.weight, a, g, self.rows))
        if self.bias is not None and trainable(self.bias):
            self.tape.note(Vectors(self.bias, g[:, 0] if g.shape[1] == 1 else g.sum(1), self.bias_rows))

    def apply(self, x: Tensor, name: str) -> Tensor:
        """The linear map itself."""
        self.tape.check(name, x)
        weight, bias = (
            p if p is None or rows is None else p[rows[0] : rows[1]].detach().requires_grad_(p.requires_grad)
            for p, rows in ((self.weight, self.rows), (self.bias, self.bias_rows))
        )
        found: Tensor = LinearCall.apply(x, weight, bias, self)  # type: ignore[no-untyped-call]
        return found


class Linear(Layer):
    """nn.Linear."""

    kinds = (nn.Linear,)

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        (x,) = args
        return Owner(tape, module.weight, module.bias).apply(x, "a linear layer")
