"""Normalisation within one example: layer, group and root-mean-square norms. Their gradients are short vectors."""

from typing import Any

import torch
from torch import Tensor, nn

from sfumato.learn.torch.layers.base import Layer, Tape, trainable
from sfumato.learn.torch.parts import Vectors


class Affine(torch.autograd.Function):
    """x̂ ↦ x̂·w + b, where w and b have the shape of x̂'s last (or channel) dimensions, the same for all examples."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: nn.Parameter, bias: nn.Parameter | None, tape: Tape, shape: tuple[int, ...]
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.weight, ctx.bias, ctx.tape, ctx.shape = weight, bias, tape, shape
        scaled = x * weight.view(shape)
        return scaled if bias is None else scaled.add_(bias.view(shape))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        g = grads[0].detach()
        shape = ctx.shape
        over = [1 + i for i, size in enumerate(shape) if size == 1 and x.shape[1 + i] != 1]
        missing = x.dim() - 1 - len(shape)  # dimensions between the example and the parameter's
        over = [*range(1, 1 + missing), *(i + missing for i in over)]

        def each(values: Tensor, parameter: nn.Parameter) -> Tensor:
            return (values.sum(over) if over else values).reshape(len(x), *parameter.shape)

        if trainable(ctx.weight):
            ctx.tape.note(Vectors(ctx.weight, each(g * x, ctx.weight)))
        if ctx.bias is not None and trainable(ctx.bias):
            ctx.tape.note(Vectors(ctx.bias, each(g, ctx.bias)))
        return (g * weight.view(shape) if ctx.needs_input_grad[0] else None), None, None, None, None


class LayerNormCall(torch.autograd.Function):
    """Layer norm by the library's own kernels: x̂ is made again in the backward pass, not kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, module: nn.LayerNorm, weight: Tensor, tape: Tape) -> Tensor:
        shape = list(module.normalized_shape)
        y, mean, rstd = torch.native_layer_norm(x, shape, module.weight, module.bias, module.eps)
        ctx.save_for_backward(x, mean, rstd)
        ctx.module, ctx.tape = module, tape
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, mean, rstd = ctx.saved_tensors
        module, g = ctx.module, grads[0].detach()
        shape = list(module.normalized_shape)
        over = list(range(1, x.dim() - len(shape)))
        if trainable(module.weight):
            normal = (x.detach() - mean).mul_(rstd).mul_(g)
            ctx.tape.note(Vectors(module.weight, normal.sum(over) if over else normal))
        if module.bias is not None and trainable(module.bias):
            ctx.tape.note(Vectors(module.bias, g.sum(over) if over else g))
        gx = None
        if ctx.needs_input_grad[0]:
            gx = torch.ops.aten.native_layer_norm_backward(
                g, x, shape, mean, rstd, module.weight, module.bias, [True, False, False]
            )[0]
        return gx, None, None, None


class LayerNorm(Layer):
    """nn.LayerNorm."""

    kinds = (nn.LayerNorm,)

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        (x,) = args
        tape.check("a layer norm", x)
        return LayerNormCall.apply(x, module, module.weight, tape)  # type: ignore[no-untyped-call]

    def refusal(self, module: Any) -> str | None:
        return None


class GroupNorm(Layer):
    """nn.GroupNorm: statistics of one example only."""

    kinds = (nn.GroupNorm,)

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        (x,) = args
        tape.check("a group norm", x)
        normal = nn.functional.group_norm(x, module.num_groups, None, None, module.eps)
        shape = (module.num_channels, *[1] * (x.dim() - 2))
        return Affine.apply(normal, module.weight, module.bias, tape, shape)  # type: ignore[no-untyped-call]


class RmsNorm(Layer):
    """nn.RMSNorm."""

    kinds = (nn.RMSNorm,)

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        (x,) = args
        tape.check("an RMS norm", x)
        normal = nn.functional.rms_norm(x, module.normalized_shape, None, module.eps)
        return Affine.apply(normal, module.weight, None, tape, tuple(module.normalized_shape))  # type: ignore[no-untyped-call]
