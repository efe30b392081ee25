"""For people's own training loops: `make_private` turns an optimizer and data into private ones.

optimizer, batches = make_private(model, optimizer, (x, y), sampler=…, batch_size=256, steps=1000, budget=(3, 1e-5))
for x, y in batches:
    optimizer.backward(lambda: criterion(model(x), y))   # one loss for each example: reduction="none"
    optimizer.step()
"""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sfumato import checks
from sfumato.errors import InvalidParameter, SfumatoError, TrainingFailed
from sfumato.learn.torch.batches import Data, Physical, data_of, physical_batches, shared
from sfumato.learn.torch.charge import Charge, Funds, charge_run
from sfumato.learn.torch.clipping import Clipping
from sfumato.learn.torch.engine import Engine, Shape
from sfumato.learn.torch.noise import Noise
from sfumato.learn.torch.noisy_loss import NoisyLoss
from sfumato.learn.torch.prepare import Prepared, check_kinds
from sfumato.learn.torch.sums import FloatError
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sampling.base import Sampling


class PrivateOptimizer(torch.optim.Optimizer):
    """Any torch optimizer, fed with noisy gradients only. Schedulers of the learning rate take it like any other.

    `backward` is called once for each physical batch; `step` updates the weights once all physical batches of a logical
    one are added, and does nothing before.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, engine: Engine, data: Data) -> None:
        self.optimizer, self.engine, self.data = optimizer, engine, data  # not torch's own __init__: it has no state
        self.batch: Physical | None = None
        self.before = 0  # physical batches before this one
        for name in ("step_pre", "step_post", "state_dict_pre", "state_dict_post"):
            setattr(self, f"_optimizer_{name}_hooks", OrderedDict())
        for name in ("load_state_dict_pre", "load_state_dict_post"):
            setattr(self, f"_optimizer_{name}_hooks", OrderedDict())

    def begin(self, batch: Physical) -> None:
        """The next physical batch; the one before must have been added."""
        if self.batch is not None and not self.added:
            raise out_of_order("a batch was left out", "call optimizer.backward and optimizer.step for every batch")
        if self.batch is not None and self.added and self.batch.last and self.engine.sum.pending:
            raise out_of_order("a whole batch was added without a step", "call optimizer.step after each batch")
        self.batch, self.before = batch, self.engine.added

    @property
    def added(self) -> bool:
        """Was this physical batch added?"""
        return self.engine.added > self.before

    def backward(self, losses: Callable[[], Tensor]) -> None:
        """Clip and add this batch. `losses` runs the model and returns one loss for each row of the batch.

        It runs on made-up data first, if it did not yet: these are written into the tensors of the batch for a moment.
        """
        if self.batch is None or self.added:
            raise out_of_order("backward without a batch of its own", "call it once for each batch that is drawn")
        batch = self.batch
        self.try_loop(losses, batch.tensors)
        with self.engine.recording() as tape:
            with hidden_errors("a batch of this loop"):
                found = losses()
            found = shared(found, batch.share)
            self.engine.add(found, tape, batch.mask.to(found.device))

    def try_loop(self, losses: Callable[[], Tensor], batch: tuple[Tensor, ...]) -> None:
        """Run the loop's own losses on made-up data, if modules were not tried in this mode."""
        if self.engine.is_tried:
            return
        shape, real = self.engine.shape, [x.clone() for x in batch]

        def made_up(seed: int, same: Tensor) -> Tensor:
            for x, fake in zip(batch, self.data.made_up(shape.total, seed, same), strict=True):
                x.copy_(fake)
            with hidden_errors("made-up data"):
                found = losses()
            return shared(found, torch.full((shape.total,), 1 / shape.rows, dtype=torch.float64))

        try:
            self.engine.try_again(made_up)
        finally:
            for x, mine in zip(batch, real, strict=True):
                x.copy_(mine)

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        """Release the noisy gradient and update the weights, if the logical batch is complete."""
        if closure is not None:
            raise out_of_order("step with a closure, which would see data without noise", "call step()")
        if self.batch is None or not self.added:
            raise out_of_order("step without backward", "call optimizer.backward first")
        if self.batch.last and self.engine.sum.pending:
            update(self.engine, self.optimizer)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Gradients are released and cleared by `step`."""

    def state_dict(self) -> dict[str, Any]:
        """That of the optimizer: momenta and the like, made of noisy gradients."""
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state_dict)

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Those of the optimizer, also after it was loaded."""
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self.optimizer.state

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        return self.optimizer.defaults

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise out_of_order("a group of parameters that comes later", "give all of them before make_private")

    @property
    def loss(self) -> float | None:
        """The noisy training loss of the last step, if `watch` bought one."""
        return self.engine.seen_loss


class PrivateBatches:
    """The batches of one run, as tuples of tensors. The first one charges the run."""

    def __init__(
        self, data: Data, sampler: Sampling, steps: int, optimizer: PrivateOptimizer, loss: PrivacyLoss, budget: Funds,
        float_error: FloatError, source: Source,
    ) -> None:  # fmt: skip
        self.data, self.sampler, self.steps, self.optimizer = data, sampler, steps, optimizer
        self.loss, self.budget, self.float_error, self.source = loss, budget, float_error, source
        self.charge: Charge | None = None

    def epsilon(self, delta: float) -> float:
        """ε of the whole run at δ, never below the truth."""
        return self.loss.epsilon(delta).upper

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        if self.charge is not None:
            raise InvalidParameter(
                "these batches were charged and drawn already.\n  found:  a second loop\n"
                "  do:     call make_private again to go on: that is a new charge"
            )
        words = f"train for {self.steps} steps: {self.sampler!r}, {self.optimizer.engine.noise!r}; {self.float_error}"
        self.charge = charge_run(self.budget, self.loss, words, None)
        shape = self.optimizer.engine.shape
        for batch in physical_batches(self.data, self.sampler, shape, self.steps, self.source):
            self.optimizer.begin(batch)
            yield batch.tensors


def make_private(
    model: nn.Module, optimizer: torch.optim.Optimizer, data: Any, *, sampler: Sampling, steps: int, budget: Funds,
    clip: Clipping | float = 1.0, noise: Noise | float | None = None, batch_size: int | None = None,
    physical: int | None = None, most: int | None = None, watch: NoisyLoss | None = None, augmentations: int = 1,
    units: Sequence[int] | None = None, per_unit: int = 1, sums: torch.dtype | None = None,
    probe: Callable[..., Tensor] | None = None, source: Source = SYSTEM,
) -> tuple[PrivateOptimizer, PrivateBatches]:  # fmt: skip
    """A private optimizer and the batches to feed it with; see the top of this file.

    `probe(*tensors)` runs the model on a made-up batch before anything is charged, and returns one number for each
    row; by default the model is called with all tensors but the last. With `augmentations` or `units`, an example has
    several rows after each other (of which the loop may make different versions); their losses are averaged.
    """
    check_kinds(model, sampler)
    count, examples = checks.whole("steps", steps, 1), data_of(data, sampler, augmentations, units, per_unit)
    device = next(model.parameters()).device
    run = probe or (lambda *tensors: model(*(x.to(device) for x in tensors[:-1])).flatten(1).sum(1))
    refuse_closures(optimizer)

    def made_up(shape: Shape, seed: int, same: Tensor) -> Tensor:
        share = torch.full((shape.total,), 1 / shape.rows, dtype=torch.float64)
        return shared(run(*examples.made_up(shape.total, seed, same)), share)

    ready = Prepared(
        model, made_up, sampler=sampler, steps=count, budget=budget, clip=clip, noise=noise, batch_size=batch_size,
        physical=physical, most=most, watch=watch, rows=examples.each, sums=sums, source=source,
    )  # fmt: skip
    refuse_strays(ready.engine, optimizer)
    ready.engine.tried.clear()  # what the loop does is tried with its first batch
    private = PrivateOptimizer(optimizer, ready.engine, examples)
    loss = ready.loss_after(count)
    return private, PrivateBatches(examples, sampler, count, private, loss, budget, ready.float_error, source)


def update(engine: Engine, optimizer: torch.optim.Optimizer) -> None:
    """One step of the weights: noise on the sum, then the optimizer sees that and nothing else."""
    refuse_strays(engine, optimizer)
    engine.release()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def refuse_strays(engine: Engine, optimizer: torch.optim.Optimizer) -> None:
    """An optimizer moves what it is given: parameters whose gradients the engine does not make have raw ones."""
    own = {id(p) for p in engine.keeper.parameters}
    given = [p for group in optimizer.param_groups for p in group["params"]]
    strays = sum(1 for p in given if id(p) not in own and (p.requires_grad or p.grad is not None))
    if strays or not any(id(p) in own for p in given):
        raise InvalidParameter(
            "an optimizer may train the parameters of the private model only: others would get gradients without noise."
            f"\n  found:  {strays} parameters that are not in the model, or were unfrozen later\n"
            "  do:     give model.parameters(); put what the loss learns into the model, or freeze it"
        )


def refuse_closures(optimizer: torch.optim.Optimizer) -> None:
    """An optimizer that evaluates the model itself would see data without noise."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise InvalidParameter(
            "this optimizer evaluates the loss several times in a step, and each time would be a release.\n"
            f"  found:  {type(optimizer).__name__}, whose step needs a closure\n"
            "  do:     use one that takes gradients, such as SGD or Adam"
        )


@contextmanager
def hidden_errors(where: str) -> Iterator[None]:
    """An error of the model or the loss, whose text may show data, becomes one without that text."""
    try:
        yield
    except SfumatoError:
        raise
    except Exception as problem:
        raise TrainingFailed(
            "the model or the loss raised an error; its text may show data, so it is left out.\n"
            f"  found:  {type(problem).__name__} on {where}\n"
            "  do:     run the model and the loss on rows of your own, and look for labels or indices out of range;\n"
            "          the charge for all steps stays"
        ) from None


def out_of_order(found: str, do: str) -> InvalidParameter:
    return InvalidParameter(
        f"each batch is added once, in the order in which it was drawn.\n  found:  {found}\n  do:     {do}"
    )
