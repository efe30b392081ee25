"""The engine of private training: from losses, one for each example, to noisy gradients in the parameters' `grad`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor, nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.bookkeeping import Bookkeeper
from sfumato.learn.torch.clipping import Adaptive, Clipping
from sfumato.learn.torch.costs import Costs
from sfumato.learn.torch.layers import Tape
from sfumato.learn.torch.noise import Move, Noise, Session, sampler_of, total_move
from sfumato.learn.torch.parts import Part, Sums
from sfumato.learn.torch.sums import ClippedSum, FloatError, float_error
from sfumato.noise.entropy import SYSTEM, Source

Probe = Callable[[int, slice], Tensor]  # losses of made-up rows: by a seed, but for some rows that stay the same


@dataclass(frozen=True)
class Shape:
    """The public shape of physical batches: places for examples, rows of data for each example, and how many physical
    batches a logical one has at least."""

    places: int
    rows: int = 1
    batches: int = 1

    @property
    def total(self) -> int:
        return self.places * self.rows

    @property
    def capacity(self) -> int:
        return self.places * self.batches


class Engine:
    """Clips, sums and adds noise for one model. Everything that it keeps between steps is public or noisy."""

    def __init__(
        self, model: nn.Module, clipping: Clipping, noise: Noise, shape: Shape, divisor: float,
        sums: Sums = None, source: Source = SYSTEM,
    ) -> None:  # fmt: skip
        self.keeper, self.clipping, self.noise, self.shape = Bookkeeper(model), clipping, noise, shape
        self.divisor, self.source, self.dtype = divisor, source, sums
        self.sum = ClippedSum(self.keeper.parameters, noise.bits, sums)
        self.costs = Costs(sums)
        self.session: Session = noise.begin(source)
        self.error: FloatError | None = None

    # ---- before the charge ------------------------------------------------------------------------------------------

    def probe(self, losses: Probe) -> FloatError:
        """Run the model on made-up data: shapes, rounding errors, and that no example sees another one.

        The loss of one example alone must leave the gradients of all other rows zero; and its gradient must be the same
        bit by bit, whatever the others are.
        """
        buffers = {name: b.clone() for name, b in self.keeper.model.named_buffers()}
        one = self.shape.places // 2
        rows = slice(one * self.shape.rows, (one + 1) * self.shape.rows)
        with torch.random.fork_rng(devices=[]):
            self.refuse_mixing(self.made_up(losses, 0, rows, alone=True), one)
            parts, again = (self.made_up(losses, seed, rows) for seed in (0, 1))
        changed = [n for n, b in self.keeper.model.named_buffers() if not torch.equal(b, buffers[n])]
        if changed:
            raise InvalidParameter(
                "the forward pass writes data into buffers, where no noise protects them.\n"
                f"  found:  {', '.join(changed)}\n  do:     remove these statistics, or freeze their module with eval()"
            )
        apart = all(torch.equal(own(a, one), own(b, one)) for a, b in zip(parts, again, strict=True))
        self.error = float_error(
            parts, self.shape.places, self.noise.bits, self.dtype, self.keeper.names, apart and trusted(parts)
        )
        return self.error

    def made_up(self, losses: Probe, seed: int, rows: slice, alone: bool = False) -> list[Part]:
        """The parts of a made-up batch, or of one example's loss in it."""
        torch.manual_seed(0)  # dropout and augmentations are the same each time
        with self.recording() as tape:
            found = losses(seed, rows)
            return self.backward(found[rows] if alone else found, tape)

    def refuse_mixing(self, parts: list[Part], one: int) -> None:
        for part in parts:
            touched = part.touched()
            touched[one] = False
            if bool(touched.any()):
                raise InvalidParameter(
                    "examples of a batch see each other, so no clipping bounds what one of them does.\n"
                    f"  found:  the loss of one example has gradients at others, in {self.name(part)}\n"
                    "  do:     let the first dimension be the example everywhere; compute losses for each example"
                )

    def name(self, part: Part) -> str:
        return self.keeper.names[id(part.parameter)]

    def move(self) -> Move:
        """How far one example moves a step. Adaptive clipping also releases a count, which an example moves by ½."""
        aside = self.clipping.aside if isinstance(self.clipping, Adaptive) else Fraction(0)
        return total_move(0.0 if self.error is None else self.error.growth, aside)

    # ---- one step ---------------------------------------------------------------------------------------------------

    @contextmanager
    def recording(self) -> Iterator[Tape]:
        with self.keeper.recording(self.shape.total, self.choose if self.shape.rows == 1 else same) as tape:
            yield tape

    def choose(self, part: Part) -> Part:
        return self.costs.choose(part)

    def backward(self, losses: Tensor, tape: Tape) -> list[Part]:
        parts = self.keeper.gradients(losses, tape)
        if self.shape.rows == 1:
            return parts
        return [self.choose(part.grouped(self.shape.rows)) for part in parts]

    def add(self, losses: Tensor, tape: Tape, mask: Tensor) -> None:
        """Add one physical batch to the sum of this step."""
        self.sum.add(self.backward(losses, tape), mask, self.clipping)

    @torch.no_grad()
    def release(self) -> None:
        """Add noise to the sum of this step, and leave the noisy mean gradient in the parameters. An empty sum too."""
        scale = self.clipping.norm / 2.0**self.noise.bits / self.divisor
        for slot, parameter in enumerate(self.keeper.parameters):
            noisy = torch.from_numpy(self.session.release(slot, self.sum.take(slot)))
            grad = noisy.to(parameter.device, torch.float64 if parameter.dtype == torch.float64 else torch.float32)
            parameter.grad = grad.mul_(scale).view(parameter.shape).to(parameter.dtype)
        if isinstance(self.clipping, Adaptive):
            self.adapt(self.clipping)
        self.session.advance()
        self.sum.clear()

    def adapt(self, clipping: Adaptive) -> None:
        """Move the clip norm by the noisy count of examples below it, in units of 2^-20."""
        sampler = sampler_of(Fraction(clipping.count_noise) * 2**20, self.source)
        count = sampler.one() + round(self.sum.unclipped * 2**20)
        self.clipping = clipping.next(0.5 + count / 2**20 / self.divisor)


def own(part: Part, one: int) -> Tensor:
    """The gradient of one example, as the engine would add it."""
    alone = torch.zeros(len(part.norm_squared()), dtype=torch.float64, device=part.parameter.device)
    alone[one] = 1.0
    return part.weighted_sum(alone, torch.float64)


def same(part: Part) -> Part:
    """No change."""
    return part


def trusted(parts: list[Part]) -> bool:
    """Are products taken in full precision, on a processor whose kernels add in the given type?"""
    fine = all(part.parameter.dtype in (torch.float32, torch.float64) for part in parts)
    here = all(part.parameter.device.type == "cpu" for part in parts)
    return fine and here and torch.get_float32_matmul_precision() == "highest" and not torch.is_autocast_enabled("cpu")
