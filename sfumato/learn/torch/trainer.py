"""The trainer: a model, a loss, data, a sampler; priced and charged once, then trained step by step."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.batches import Augment, Physical, data_of, physical_batches, shared
from sfumato.learn.torch.charge import Charge, Funds, charge_run
from sfumato.learn.torch.checkpoint import load_checkpoint, save_checkpoint
from sfumato.learn.torch.clipping import Clipping
from sfumato.learn.torch.engine import Engine, Shape
from sfumato.learn.torch.noise import Noise
from sfumato.learn.torch.noisy_loss import NoisyLoss
from sfumato.learn.torch.prepare import Prepared
from sfumato.learn.torch.private import hidden_errors, refuse_closures, refuse_strays, update
from sfumato.learn.torch.progress import Progress
from sfumato.learn.torch.sums import FloatError
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.sampling.base import Sampling

Loss = Callable[..., Tensor]


@dataclass(frozen=True)
class Step:
    """What may be shown after a step: its number, what the whole run was charged, and a noisy loss that was bought."""

    number: int
    steps: int
    epsilon: float
    delta: float
    loss: float | None = None


class Trainer:
    """DP-SGD of a model on data: `fit()` trains it, `loss` is what that costs, charged once before the first batch.

    `sampler` draws the batches and decides the price. `clip` is a norm or a kind of clipping. `noise` is a multiple of
    that norm or a kind of noise; without it, the least one that meets the budget is taken. `batch_size` is the public
    number that sums are divided by. `budget` is a ledger or (ε, δ).

    Gradients are clipped example by example without being formed, summed in float64 and rounded to a public lattice,
    with exact noise on the sum. Training losses are data without noise, so they are not shown, unless `watch` buys a
    noisy one. Large batches take several physical ones of `physical` examples; `most` is a cap beyond which examples
    are left out, and the probability of that is priced.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        data: Any,
        *,
        sampler: Sampling,
        steps: int,
        budget: Funds,
        clip: Clipping | float = 1.0,
        noise: Noise | float | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        batch_size: int | None = None,
        physical: int | None = None,
        most: int | None = None,
        watch: NoisyLoss | None = None,
        augment: Augment | None = None,
        augmentations: int = 1,
        units: Sequence[int] | None = None,
        per_unit: int = 1,
        sums: torch.dtype | None = None,
        source: Source = SYSTEM,
        who: str | None = None,
    ) -> None:
        self.model, self.criterion, self.sampler = model, per_example(loss), sampler
        self.steps = checks.whole("steps", steps, 1)
        self.augment, self.source = augment, source
        self.data = data_of(data, sampler, augmentations, units, per_unit)
        self.prepared = Prepared(
            model, self._made_up, sampler=sampler, steps=self.steps, budget=budget, clip=clip, noise=noise,
            batch_size=batch_size, physical=physical, most=most, watch=watch, rows=self.data.each, sums=sums,
            source=source, who=who,
        )  # fmt: skip
        self.engine: Engine = self.prepared.engine
        self.float_error: FloatError = self.prepared.float_error
        self.optimizer = optimizer or torch.optim.SGD(self.engine.keeper.parameters, lr=0.1)
        refuse_closures(self.optimizer)
        refuse_strays(self.engine, self.optimizer)
        self.loss: PrivacyLoss = self.prepared.loss_after(self.steps)
        self.budget, self.who = budget, who
        self.charge: Charge | None = None
        self.done = 0

    # ---- what is known before data are read ----------------------------------------------------------------

    @property
    def noise(self) -> Noise:
        return self.engine.noise

    def epsilon(self, delta: float) -> float:
        """ε of the whole run at δ, never below the truth."""
        return self.loss.epsilon(delta).upper

    def epsilon_so_far(self, delta: float) -> float:
        """ε of the steps that were done. The charge is for all steps: stopping refunds nothing."""
        return self.prepared.loss_after(self.done).epsilon(delta).upper if self.done else 0.0

    def _made_up(self, shape: Shape, seed: int, same: Tensor) -> Tensor:
        share = torch.full((shape.total,), 1 / shape.rows, dtype=torch.float64)
        return self._losses(self.data.made_up(shape.total, seed, same), share)

    # ---- training ------------------------------------------------------------------------------------------

    def fit(self, progress: bool = True) -> "Trainer":
        """All steps. A keyboard interrupt ends the run after the last whole step: the charge stays."""
        shown = Progress(self.steps, progress)
        try:
            for step in self:
                shown.update(step.number, step.epsilon, partial(self.epsilon_so_far, step.delta), step.loss)
        except KeyboardInterrupt:
            shown.interrupt(self.done)
        shown.close()
        return self

    def __iter__(self) -> Iterator[Step]:
        """Train step by step. The first one charges the whole run; a run is trained once."""
        if self.charge is not None:
            raise InvalidParameter(
                "this run was charged and begun already.\n  found:  a second call of fit or iter\n"
                "  do:     make a new Trainer to go on: that is a new charge"
            )
        self.charge = charge_run(self.budget, self.loss, self.describe(), self.who)
        batches = physical_batches(self.data, self.sampler, self.engine.shape, self.steps, self.source)
        for batch in batches:
            self._add(batch)
            if batch.last:
                update(self.engine, self.optimizer)
                self.done += 1
                yield Step(self.done, self.steps, self.charge.epsilon, self.charge.delta, self.engine.seen_loss)

    def _add(self, batch: Physical) -> None:
        self.engine.try_again(partial(self._made_up, self.engine.shape))  # train() or eval() may have been called
        with self.engine.recording() as tape:
            with hidden_errors(f"data of step {self.done + 1}; made-up data had passed"):
                losses = self._losses(batch.tensors, batch.share)
            self.engine.add(losses, tape, batch.mask.to(losses.device))

    def _losses(self, tensors: tuple[Tensor, ...], share: Tensor) -> Tensor:
        """The loss of each row, weighted by its share in its example."""
        *inputs, target = tensors
        if self.augment is not None:
            inputs[0] = self.augment(inputs[0])
        device = next(self.model.parameters()).device
        found = self.criterion(self.model(*(x.to(device) for x in inputs)), target.to(device))
        return shared(found, share)

    # ---- keeping -------------------------------------------------------------------------------------------

    def describe(self) -> str:
        """The run in words, for the ledger: public parameters only."""
        engine = self.engine
        return (
            f"train {type(self.model).__name__} for {self.steps} steps: {self.sampler!r}, {engine.clipping!r}, "
            f"{engine.noise!r}; {self.float_error}"
        )

    def save(self, path: str | Path) -> None:
        """A checkpoint: weights, optimizer, and what was charged. Never random state: what goes on, draws afresh."""
        charge = self.charge
        content = {
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "done": self.done,
            "steps": self.steps,
            "loss": self.loss.to_json(),
            "charged": None if charge is None else {"epsilon": charge.epsilon, "delta": charge.delta},
            "ledger": None if charge is None or charge.receipt is None else charge.receipt.seq,
            "run": self.describe(),
        }
        save_checkpoint(Path(path), content)

    @staticmethod
    def load(path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> dict[str, Any]:
        """Put a checkpoint's weights into a model (and optimizer); what was charged for them is returned.

        To go on training is a new run: a new Trainer, with a new charge.
        """
        return load_checkpoint(Path(path), model, optimizer)

    def __str__(self) -> str:
        charged = "not charged yet" if self.charge is None else str(self.charge)
        return f"{self.describe()}\n  {charged}; {self.done} of {self.steps} steps done"


def per_example(loss: Loss) -> Loss:
    """The same loss without its reduction, if it has one."""
    if not callable(loss):
        raise InvalidParameter(
            "a loss takes the outputs and the targets, and gives one number for each example.\n"
            f"  found:  a {type(loss).__name__}\n  do:     give e.g. nn.CrossEntropyLoss()"
        )
    if getattr(loss, "reduction", "none") == "none":
        return loss
    each = copy.copy(loss)
    each.reduction = "none"  # type: ignore[attr-defined]
    return each
