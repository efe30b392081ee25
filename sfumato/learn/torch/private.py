"""For people's own training loops: `make_private` turns an optimizer and data into private ones.

optimizer, batches = make_private(model, optimizer, (x, y), sampler=…, batch_size=256, steps=1000, budget=(3, 1e-5))
for x, y in batches:
    optimizer.backward(lambda: criterion(model(x), y))   # one loss for each example: reduction="none"
    optimizer.step()
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.batches import Data, Physical, physical_batches
from sfumato.learn.torch.charge import Charge, Funds, charge_run
from sfumato.learn.torch.clipping import Clipping, clipping_of
from sfumato.learn.torch.engine import Engine
from sfumato.learn.torch.noise import Noise, noise_of
from sfumato.learn.torch.planning import calibrated_noise
from sfumato.learn.torch.sizes import physical_shape, public_batch_size
from sfumato.learn.torch.sums import FloatError
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sampling.base import Sampling


class PrivateOptimizer:
    """Any torch optimizer, fed with noisy gradients only.

    `backward` is called once for each physical batch; `step` updates the weights once all physical batches of a logical
    one are added, and does nothing before.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, engine: Engine) -> None:
        self.optimizer, self.engine = optimizer, engine
        self.batch: Physical | None = None
        self.added = False

    def begin(self, batch: Physical) -> None:
        """The next physical batch; the one before must have been added."""
        if self.batch is not None and not self.added:
            raise out_of_order("a batch was left out", "call optimizer.backward and optimizer.step for every batch")
        if self.batch is not None and self.added and self.batch.last and self.engine.sum.pending:
            raise out_of_order("a whole batch was added without a step", "call optimizer.step after each batch")
        self.batch, self.added = batch, False

    def backward(self, losses: Callable[[], Tensor]) -> None:
        """Clip and add this batch. `losses` runs the model and returns one loss for each example."""
        if self.batch is None or self.added:
            raise out_of_order("backward without a batch of its own", "call it once for each batch that is drawn")
        batch = self.batch
        with self.engine.recording() as tape:
            found = losses()
            if found.dim() != 1 or len(found) != len(batch.mask):
                raise InvalidParameter(
                    "the loss must be one number for each example.\n"
                    f"  found:  shape {tuple(found.shape)} for {len(batch.mask)} rows\n  do:     use reduction='none'"
                )
            self.engine.add(found, tape, batch.mask.to(found.device))
        self.added = True

    def step(self) -> None:
        """Release the noisy gradient and update the weights, if the logical batch is complete."""
        if self.batch is None or not self.added:
            raise out_of_order("step without backward", "call optimizer.backward first")
        if self.batch.last and self.engine.sum.pending:
            self.engine.release()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Gradients are released and cleared by `step`."""

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Those of the optimizer, for schedulers of the learning rate."""
        return self.optimizer.param_groups


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
    physical: int | None = None, sums: torch.dtype | None = None, probe: Callable[..., Tensor] | None = None,
    source: Source = SYSTEM,
) -> tuple[PrivateOptimizer, PrivateBatches]:  # fmt: skip
    """A private optimizer and the batches to feed it with; see the top of this file.

    `probe(*tensors)` runs the model on a made-up batch before anything is charged, and returns one number for each
    example; by default the model is called with all tensors but the last.
    """
    clipping, divisor = clipping_of(clip), public_batch_size(sampler, batch_size)
    count = checks.whole("steps", steps, 1)
    chosen = calibrated_noise(sampler, clipping, count, budget) if noise is None else noise_of(noise)
    shape = physical_shape(sampler, divisor, 1, physical)
    engine = Engine(model, clipping, chosen, shape, divisor, sums, source)
    examples = Data(data)
    run = probe or (lambda *tensors: model(*tensors[:-1]).flatten(1).sum(1))
    error = engine.probe(lambda seed, same: run(*examples.made_up(shape.total, seed, same)))
    loss = chosen.loss(sampler, engine.move(), count)
    private = PrivateOptimizer(optimizer, engine)
    return private, PrivateBatches(examples, sampler, count, private, loss, budget, error, source)


def out_of_order(found: str, do: str) -> InvalidParameter:
    return InvalidParameter(
        f"each batch is added once, in the order in which it was drawn.\n  found:  {found}\n  do:     {do}"
    )
