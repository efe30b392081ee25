"""Book-keeping: one forward and one backward pass note what gradients are made of; clipped sums are formed from that.

Inside `recording` the layers of a model run by the rules of `layers`; outside, the model is what it was.

Theorem: clipped sums need one forward and one backward pass [Bu, Wang, Zha & Karypis 2023, book-keeping]
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.buffers import Buffers
from sfumato.learn.torch.layers import LAYERS, Layer, Tape
from sfumato.learn.torch.parts import Part, full_products, join

INSTEAD = "nn.GroupNorm or nn.LayerNorm, whose statistics are those of one example"


class Bookkeeper:
    """The layers of one model that are trained, each with its rule."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.rules: list[tuple[nn.Module, Layer]] = []
        self.names = {id(parameter): name for name, parameter in model.named_parameters()}
        refuse_lazy(model)
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.buffers = Buffers(model)
        if not self.parameters:
            raise InvalidParameter(
                "this model has nothing to train.\n  found:  no parameter with requires_grad\n"
                "  do:     unfreeze some of its parameters"
            )
        for name, module in model.named_modules():
            refuse_mixing(name, module)
            whole = isinstance(module, nn.MultiheadAttention)  # runs its output projection itself
            if any(p.requires_grad for p in module.parameters(recurse=whole)):
                self.rules.append((module, rule_for(name, module)))

    @contextmanager
    def recording(self, examples: int, change: Callable[[Part], Part] = lambda part: part) -> Iterator[Tape]:
        """Inside, the model notes its gradients on the tape that this yields."""
        for name, module in self.model.named_modules():
            refuse_mixing(name, module)  # again: a call of train() may have changed it
        tape = Tape(examples, change)
        self.buffers.remember()
        for module, rule in self.rules:
            module.forward = partial(rule.forward, module, tape)
        try:
            yield tape
        finally:
            for module, _ in self.rules:
                del module.forward
            changed = self.buffers.put_back()
        if changed:
            raise InvalidParameter(
                "the forward pass writes data into buffers, where no noise protects them.\n"
                f"  found:  {', '.join(changed)} (put back now)\n"
                "  do:     remove these statistics, or freeze their module with eval()"
            )

    @property
    def modes(self) -> tuple[object, ...]:
        """What the model computes with, but for its weights: modules, their mode, hooks, and replaced forwards."""
        return tuple(
            (module, module.training, *map(tuple, hooks_of(module)), vars(module).get("forward"))
            for module in self.model.modules()
        )

    def gradients(self, losses: Tensor, tape: Tape) -> list[Part]:
        """Run the backward pass of the sum of the losses; one part for each parameter or block of its rows."""
        if not losses.requires_grad:
            raise InvalidParameter(
                "the loss has no gradient.\n  found:  losses that do not depend on the parameters\n"
                "  do:     compute them from the output of the model, without detach() and no_grad()"
            )
        tape.open = True
        everything = list(self.model.parameters())  # also those that were unfrozen since
        kept = [p.grad for p in everything]
        for p in everything:
            p.grad = None
        try:
            with full_products(losses.device.type):
                losses.sum().backward()  # type: ignore[no-untyped-call]
            strays = [self.names.get(id(p), "a new parameter") for p in everything if p.grad is not None]
        finally:
            tape.open = False
            for p, grad in zip(everything, kept, strict=True):
                p.grad = grad
        own = {id(p) for p in self.parameters}
        if any(id(part.parameter) not in own for part in tape.parts):
            raise InvalidParameter(
                "a layer was changed, so its gradients are not those of the parameters that are trained.\n"
                "  found:  a weight that is computed (weight_norm, pruning), or was replaced or unfrozen later\n"
                "  do:     remove that, or freeze the layer; change layers before the run is made"
            )
        if strays:
            raise InvalidParameter(
                "these parameters are used outside of their layers, so their examples cannot be told apart.\n"
                f"  found:  {', '.join(strays)}\n"
                "  do:     use them only by calling their modules, or freeze them: parameter.requires_grad_(False)"
            )
        groups: dict[object, list[Part]] = {}
        for part in tape.parts:
            groups.setdefault(part.place, []).append(part)
        whole = {id(group[0].parameter) for group in groups.values() if group[0].rows is None}
        if any(group[0].rows is not None and id(group[0].parameter) in whole for group in groups.values()):
            raise InvalidParameter(
                "one attention layer is used both for self-attention and with other keys.\n"
                "  found:  two kinds of calls\n  do:     use a layer of its own for each"
            )
        return [join(group) for group in groups.values()]


def rule_for(name: str, module: nn.Module) -> Layer:
    """The rule that covers a module with trainable parameters of its own, or a refusal by name."""
    where = f"{name or 'the model itself'} ({type(module).__name__})"
    if "forward" in vars(module):
        raise InvalidParameter(
            f"the forward of this layer was replaced, so what it computes is not known.\n  found:  {where}\n"
            "  do:     give a class of its own to a layer with another forward"
        )
    rule = next((rule for rule in LAYERS if rule.covers(module)), None)
    if rule is None:
        raise InvalidParameter(
            f"gradients of this layer cannot be clipped example by example.\n  found:  {where}\n"
            "  do:     put the parameters that this module has beside those of its layers into small modules of their\n"
            "          own, called with the batch; or freeze it: module.requires_grad_(False)"
        )
    if reason := rule.refusal(module):
        raise InvalidParameter(f"this layer is refused: {reason}.\n  found:  {where}\n  do:     change or freeze it")
    return rule


def hooks_of(module: nn.Module) -> tuple[dict[int, object], ...]:
    """The hooks of a module, by number: numbers are not used again."""
    return module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks  # type: ignore[return-value]


def refuse_lazy(model: nn.Module) -> None:
    lazy = [name for name, p in model.named_parameters() if nn.parameter.is_lazy(p)]
    if lazy:
        raise InvalidParameter(
            "some parameters have no shape yet.\n"
            f"  found:  {', '.join(lazy)} of lazy modules\n  do:     call the model once on made-up data before"
        )


def refuse_mixing(name: str, module: nn.Module) -> None:
    """Batch normalisation lets every example see all others; running statistics are data without noise."""
    mixing = isinstance(module, _BatchNorm) and (module.training or module.running_mean is None)
    if mixing or (isinstance(module, _NormBase) and module.training and module.track_running_stats):
        raise InvalidParameter(
            "batch normalisation and running statistics mix examples, so no clipping bounds what one of them does.\n"
            f"  found:  {name or 'the model itself'} ({type(module).__name__})\n  do:     use {INSTEAD};\n"
            "          or, for a pre-trained model, freeze this layer and call its eval()"
        )
