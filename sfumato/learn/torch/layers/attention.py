"""Multi-head attention: its projections are linear maps, and attention itself has no parameters."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sfumato.learn.torch.layers.base import Layer, Tape
from sfumato.learn.torch.layers.linear import Owner

NAME = "an attention layer"


class Attention(Layer):
    """nn.MultiheadAttention with batch_first=True, without bias_kv and zero_attn."""

    kinds = (nn.MultiheadAttention,)

    def refusal(self, module: Any) -> str | None:
        if not module.batch_first:
            return "its first dimension is not the example; build it with batch_first=True"
        if module.bias_k is not None or module.add_zero_attn:
            return "add_bias_kv and add_zero_attn are not supported"
        return None

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        return attend(module, tape, *args, **kwargs)


def attend(
    module: Any, tape: Tape, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The arguments and results of nn.MultiheadAttention."""
    q, k, v = project(module, tape, query, key, value)
    heads = module.num_heads
    q, k, v = (x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in (q, k, v))
    mask = merged_mask(key_padding_mask, attn_mask, heads, q)
    drop = module.dropout if module.training else 0.0
    weights = None
    if need_weights:
        scores = q @ k.transpose(2, 3) * q.shape[3] ** -0.5
        weights = (scores if mask is None else scores + mask).softmax(3)
        out = functional.dropout(weights, drop) @ v
    else:
        out = functional.scaled_dot_product_attention(q, k, v, mask, drop, is_causal and mask is None)
    out = Owner(tape, module.out_proj.weight, module.out_proj.bias).apply(out.transpose(1, 2).flatten(2), NAME)
    return out, weights.mean(1) if weights is not None and average_attn_weights else weights


def project(module: Any, tape: Tape, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
    """Queries, keys and values: by one linear map if all come from the same input."""
    size = module.embed_dim
    if module.in_proj_weight is None:  # keys and values of other sizes have weights of their own
        weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        return tuple(
            Owner(tape, weight, module.in_proj_bias, None, (i * size, (i + 1) * size)).apply(x, NAME)
            for i, (weight, x) in enumerate(zip(weights, (query, key, value), strict=True))
        )
    if query is key and key is value:
        return Owner(tape, module.in_proj_weight, module.in_proj_bias).apply(query, NAME).chunk(3, 2)
    return tuple(
        Owner(tape, module.in_proj_weight, module.in_proj_bias, (i * size, (i + 1) * size)).apply(x, NAME)
        for i, x in enumerate((query, key, value))
    )


def merged_mask(padding: Tensor | None, mask: Tensor | None, heads: int, q: Tensor) -> Tensor | None:
    """Both masks as one that is added to the scores: −∞ where attention is not allowed."""
    found = None
    for given, shape in ((padding, "keys"), (mask, "pairs")):
        if given is None:
            continue
        closed = given.dtype == torch.bool
        added = torch.zeros_like(given, dtype=q.dtype).masked_fill(given, -torch.inf) if closed else given
        if shape == "keys":
            added = added[:, None, None, :]
        elif added.dim() == 3:
            added = added.view(-1, heads, *added.shape[1:])
        found = added if found is None else found + added
    return found
