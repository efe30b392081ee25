"""Embeddings: the gradient of an example lies in the rows that it looks up."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sfumato.learn.torch.layers.base import Layer, Tape
from sfumato.learn.torch.parts import Lookups


class EmbeddingCall(torch.autograd.Function):
    """Index ↦ rows. Backward has nothing to return: an index has no gradient."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, weight: nn.Parameter, tape: Tape, padding: int | None) -> Tensor:
        ctx.index, ctx.weight, ctx.tape, ctx.padding = index, weight, tape, padding
        return functional.embedding(index, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        (g,) = grads
        index = ctx.index.flatten(1) if ctx.index.dim() > 1 else ctx.index.unsqueeze(1)
        g = g.detach().reshape(*index.shape, g.shape[-1])
        if ctx.padding is not None:
            g = g.masked_fill((index == ctx.padding).unsqueeze(2), 0.0)
        ctx.tape.note(Lookups(ctx.weight, index, g))
        return None, None, None, None


class Embedding(Layer):
    """nn.Embedding without max_norm, scale_grad_by_freq and sparse gradients."""

    kinds = (nn.Embedding,)

    def refusal(self, module: Any) -> str | None:
        if module.max_norm is not None:
            return "max_norm changes the weights in the forward pass, without noise"
        if module.scale_grad_by_freq:
            return "scale_grad_by_freq mixes the examples of a batch"
        return "sparse gradients would show which rows were looked up" if module.sparse else None

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        (index,) = args
        tape.check("an embedding", index)
        return EmbeddingCall.apply(index, module.weight, tape, module.padding_idx)  # type: ignore[no-untyped-call]
