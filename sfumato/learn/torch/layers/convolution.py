"""Convolutions in one to three dimensions: the kernel's gradients of all examples, by one grouped convolution.

An example's gradient is the convolution of its input with its output gradient. With the examples as groups, one call
of the library's own kernel forms all of them: nothing is unfolded.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sfumato.learn.torch.layers.base import Layer, Tape, trainable
from sfumato.learn.torch.parts import Streamed, Vectors

FEW = 4  # channels of a first layer, for which a forward convolution is tried


@dataclass(frozen=True)
class Geometry:
    """How a kernel moves: the library's arguments."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int

    def backward(self, g: Tensor, x: Tensor, weight: Tensor, examples: int, which: list[bool]) -> Any:
        """The library's backward pass; `examples` > 0 makes each example a group of its own."""
        groups = self.groups * max(1, examples)
        none = [0] * len(self.stride)
        return torch.ops.aten.convolution_backward(
            g, x, weight, None, self.stride, self.padding, self.dilation, False, none, groups, which
        )

    def kernels(self, x: Tensor, g: Tensor, weight: Tensor) -> Tensor:
        """The gradient of the kernel for each example."""
        count = len(x)
        wide = weight.new_empty(count * weight.shape[0], *weight.shape[1:])  # its shape matters: nothing is read
        inputs, outputs = (t.reshape(1, count * t.shape[1], *t.shape[2:]) for t in (x, g))
        found: Tensor = self.backward(outputs, inputs, wide, count, [False, True, False])[1]
        return found.reshape(count, *weight.shape)

    def kernels_forward(self, x: Tensor, g: Tensor, weight: Tensor) -> Tensor:
        """The same as a forward convolution of inputs with output gradients: channels are the batch of that."""
        count, (p, d) = len(x), weight.shape[:2]
        outputs, none = g.reshape(count * p, 1, *g.shape[2:]), [0] * len(self.stride)
        found: Tensor = torch.ops.aten.convolution(
            x.transpose(0, 1), outputs, None, self.dilation, self.padding, self.stride, False, none, count
        )
        for dim, size in enumerate(weight.shape[2:], 2):  # strides may leave more places than the kernel has
            found = found.narrow(dim, 0, size)
        return found.reshape(d, count, p, *weight.shape[2:]).movedim(0, 2).reshape(count, *weight.shape)


class ConvolutionCall(torch.autograd.Function):
    """The convolution; backward returns the gradient of x alone."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, module: Any, weight: Tensor, bias: Tensor | None, tape: Tape, geometry: Geometry
    ) -> Tensor:
        ctx.save_for_backward(x)
        ctx.module, ctx.tape, ctx.geometry = module, tape, geometry
        none = [0] * len(geometry.stride)
        found: Tensor = torch.ops.aten.convolution(
            x, weight, bias, geometry.stride, geometry.padding, geometry.dilation, False, none, geometry.groups
        )
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x,) = ctx.saved_tensors
        geometry: Geometry = ctx.geometry
        module, g = ctx.module, grads[0].detach()
        x, weight = x.detach().to(g.dtype), module.weight.detach().to(g.dtype)
        if trainable(module.weight):
            ctx.tape.note(convolved(module.weight, geometry, x, g, weight))
        if module.bias is not None and trainable(module.bias):
            ctx.tape.note(Vectors(module.bias, g.flatten(2).sum(2)))
        gx = geometry.backward(g, x, weight, 0, [True, False, False])[0] if ctx.needs_input_grad[0] else None
        return gx, None, None, None, None, None


def convolved(parameter: nn.Parameter, geometry: Geometry, x: Tensor, g: Tensor, weight: Tensor) -> Streamed:
    """The kernel's gradients, formed a few examples at a time."""

    def form(chunk: slice) -> Tensor:
        return geometry.kernels(x[chunk], g[chunk], weight)

    def other(chunk: slice) -> Tensor:
        return geometry.kernels_forward(x[chunk], g[chunk], weight)

    def alike() -> Streamed:
        return convolved(parameter, geometry, torch.zeros_like(x), torch.zeros_like(g), weight)

    few = geometry.groups == 1 and weight.shape[1] <= FEW
    key = (
        x.shape,
        g.shape,
        g.dtype,
        weight.shape,
        *(tuple(v) for v in (geometry.stride, geometry.padding, geometry.dilation)),
    )
    return Streamed(parameter, len(x), form, key=key, alike=alike, other=other if few else None)


class Convolution(Layer):
    """nn.Conv1d, nn.Conv2d and nn.Conv3d."""

    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d)

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        (x,) = args
        tape.check("a convolution", x)
        x, padding = _padded(module, x)
        geometry = Geometry(list(module.stride), padding, list(module.dilation), module.groups)
        return ConvolutionCall.apply(x, module, module.weight, module.bias, tape, geometry)  # type: ignore[no-untyped-call]


def _padded(module: Any, x: Tensor) -> tuple[Tensor, list[int]]:
    """The input, padded where the convolution itself cannot do it, and the padding that is left to the convolution."""
    dims = len(module.kernel_size)
    if module.padding_mode == "zeros" and not isinstance(module.padding, str):
        return x, list(module.padding)
    around = list(module._reversed_padding_repeated_twice)
    if module.padding_mode == "zeros":
        return (nn.functional.pad(x, around), [0] * dims) if any(around) else (x, [0] * dims)
    return nn.functional.pad(x, around, mode=module.padding_mode), [0] * dims
