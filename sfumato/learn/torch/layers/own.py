"""Modules without a rule of their own: the gradients of their parameters, formed example by example with torch.func.

So PReLU, transposed convolutions, learned scales and other small modules can be trained. Their forward pass is that of
the whole batch; their gradients are those of one example at a time, mapped over the batch. What such code does with
floats is not proved, so float errors of its parameters are reported as not certified.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.layers.base import Layer, Tape, trainable
from sfumato.learn.torch.parts import Vectors


class Bare(nn.Module):
    """A module's own forward, without its hooks and without notes, as a function of the tensors among its arguments."""

    def __init__(self, inner: nn.Module, arguments: list[Any], shape: TreeSpec) -> None:
        super().__init__()
        self.inner, self.arguments, self.shape = inner, arguments, shape

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        rest = iter(tensors)
        args, kwargs = tree_unflatten([next(rest) if x is None else x[0] for x in self.arguments], self.shape)
        found = type(self.inner).forward(self.inner, *args, **kwargs)
        return found if isinstance(found, tuple) else (found,)


class OwnCall(torch.autograd.Function):
    """The module on the batch; backward maps the gradient of one example over the batch."""

    @staticmethod
    def forward(ctx: Any, bare: Bare, tape: Tape, weights: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        inputs = tensors[weights:]  # weights are among the arguments so that there is a backward pass
        ctx.save_for_backward(*inputs)
        ctx.bare, ctx.tape, ctx.weights = bare, tape, weights
        found: tuple[Tensor, ...] = bare(*inputs)
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        bare, inputs = ctx.bare, ctx.saved_tensors
        module = bare.inner
        values = {f"inner.{name}": p.detach() for name, p in module.named_parameters(recurse=False) if trainable(p)}
        floats = [i for i, x in enumerate(inputs) if x.dtype.is_floating_point]

        def one(row: tuple[Tensor, ...], g: tuple[Tensor, ...]) -> Any:
            def run(weights: dict[str, Tensor], xs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
                given = list(row)
                for i, x in zip(floats, xs, strict=True):
                    given[i] = x
                out = torch.func.functional_call(bare, weights, tuple(x[None] for x in given))
                return tuple(x[0] for x in out)

            return torch.func.vjp(run, values, tuple(row[i] for i in floats))[1](g)

        found, moved = mapped(one, tuple(x.detach() for x in inputs), tuple(g.detach() for g in grads), module)
        for name, p in module.named_parameters(recurse=False):
            if trainable(p):
                ctx.tape.note(Vectors(p, found[f"inner.{name}"], certain=False))
        back: list[Tensor | None] = [None] * len(inputs)
        for i, x in zip(floats, moved, strict=True):
            back[i] = x
        return None, None, None, *[None] * ctx.weights, *back


def mapped(one: Callable[..., Any], rows: tuple[Tensor, ...], grads: tuple[Tensor, ...], module: nn.Module) -> Any:
    """The gradients of all examples: at once, or one after the other where torch.func cannot map an operation."""
    try:
        return torch.func.vmap(one)(rows, grads)
    except Exception:  # this depends on the code of the module, not on data
        pass
    try:
        count = range(len(grads[0]))
        found = [one(tuple(x[i] for x in rows), tuple(g[i] for g in grads)) for i in count]
    except Exception:
        raise refused(module) from None  # its text may show data
    weights = {name: torch.stack([row[0][name] for row in found]) for name in found[0][0]}
    return weights, tuple(torch.stack(x) for x in zip(*(row[1] for row in found), strict=True))


class Own(Layer):
    """Any module with trainable parameters of its own, and none below it."""

    kinds = (nn.Module,)

    def covers(self, module: nn.Module) -> bool:
        mine = {id(p) for p in module.parameters(recurse=False)}
        return all(id(p) in mine or not p.requires_grad for p in module.parameters())

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        found, shape = tree_flatten((args, kwargs))
        tensors = [x for x in found if isinstance(x, Tensor)]
        for x in tensors:
            tape.check(type(module).__name__, x)
        bare = Bare(module, [None if isinstance(x, Tensor) else (x,) for x in found], shape)
        weights = list(filter(trainable, module.parameters(recurse=False)))
        before = torch.get_rng_state()
        out: tuple[Tensor, ...] = OwnCall.apply(bare, tape, len(weights), *weights, *tensors)  # type: ignore[no-untyped-call]
        if not tensors or not torch.equal(before, torch.get_rng_state()):  # the backward pass would draw others
            raise refused(module)
        return out if len(out) > 1 else out[0]


def refused(module: nn.Module) -> InvalidParameter:
    return InvalidParameter(
        "gradients of this layer cannot be taken example by example.\n"
        f"  found:  {type(module).__name__}, which has no rule, and does not map tensors to tensors one by one\n"
        "  do:     let its forward take tensors whose first dimension is the example, without random numbers;\n"
        "          or freeze it: module.requires_grad_(False)"
    )
