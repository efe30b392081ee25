"""From what a user asks for to an engine whose price is known: sizes, noise, and a try on made-up data."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.charge import Funds, run_loss, target
from sfumato.learn.torch.clipping import Clipping, clipping_of
from sfumato.learn.torch.engine import Engine, Shape, aside_of
from sfumato.learn.torch.noise import Noise, noise_of, total_move
from sfumato.learn.torch.noisy_loss import NoisyLoss
from sfumato.learn.torch.planning import ROOM, calibrated_noise
from sfumato.learn.torch.sizes import overflow, physical_shape, public_batch_size
from sfumato.learn.torch.sums import FloatError
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import Source
from sfumato.sampling.base import Sampling

MadeUp = Callable[[Shape, int, Tensor], Tensor]  # losses of made-up rows: by a seed, but for a mask of fixed rows


class Prepared:
    """An engine, tried on made-up data before anything is charged, and what its steps cost."""

    def __init__(
        self, model: nn.Module, made_up: MadeUp, *, sampler: Sampling, steps: int, budget: Funds,
        clip: Clipping | float, noise: Noise | float | None, batch_size: int | None, physical: int | None,
        most: int | None, watch: NoisyLoss | None, rows: int, sums: torch.dtype | None, source: Source,
        who: str | None = None,
    ) -> None:  # fmt: skip
        check_kinds(model, sampler)
        self.sampler, divisor, clipping = sampler, public_batch_size(sampler, batch_size), clipping_of(clip)
        shape = physical_shape(sampler, divisor, rows, steps, target(budget)[1], physical, most)
        self.failure = overflow(sampler, divisor, shape.capacity, steps)

        def tried(chosen: Noise) -> tuple[Engine, FloatError]:
            engine = Engine(model, clipping, chosen, shape, divisor, sums, source, watch)
            return engine, engine.probe(lambda seed, same: made_up(shape, seed, same))

        def calibrated(growth: float) -> Noise:
            move = total_move(growth, aside_of(clipping, watch))
            return calibrated_noise(sampler, move, steps, budget, self.failure, who)

        self.engine, self.float_error = tried(calibrated(ROOM) if noise is None else noise_of(noise))
        if noise is None and self.float_error.growth > ROOM:
            self.engine, self.float_error = tried(calibrated(1.01 * self.float_error.growth))

    def loss_after(self, steps: int) -> PrivacyLoss:
        """What so many steps cost together."""
        return run_loss(self.engine.noise, self.sampler, self.engine.move(), steps, self.failure)


def check_kinds(model: object, sampler: object) -> None:
    """Refuse what is no model or no sampler before anything is asked of it."""
    if not isinstance(model, nn.Module) or isinstance(model, torch.jit.ScriptModule):
        raise InvalidParameter(
            "a model is a torch module, and no compiled script of one.\n"
            f"  found:  a {type(model).__name__}\n  do:     give the module itself, e.g. nn.Sequential(…)"
        )
    if not isinstance(sampler, Sampling):
        raise InvalidParameter(
            "the sampler draws the batches and decides the price, so there is no default.\n"
            f"  found:  a {type(sampler).__name__}\n  do:     give e.g. sf.Poisson(rate=0.01)"
        )
