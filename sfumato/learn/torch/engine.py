"""The engine of private training: from losses, one for each example, to noisy gradients in the parameters' `grad`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, nn

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.bookkeeping import Bookkeeper
from sfumato.learn.torch.clipping import Adaptive, Clipping
from sfumato.learn.torch.costs import Costs
from sfumato.learn.torch.layers import Tape
from sfumato.learn.torch.noise import Move, Noise, Session, sampler_of, total_move
from sfumato.learn.torch.noisy_loss import NoisyLoss
from sfumato.learn.torch.parts import Part, Sums, unit
from sfumato.learn.torch.sums import ClippedSum, FloatError, float_error
from sfumato.noise.entropy import SYSTEM, Source

Probe = Callable[[int, slice], Tensor]  # losses of made-up rows: by a seed, but for some rows that stay the same


@dataclass(frozen=True)
class Shape:
    """The public shape of physical batches: places for examples, rows of data for each example, and how many physical
    batches a logical one has: at least, or exactly if larger ones are cut."""

    places: int
    rows: int = 1
    batches: int = 1
    cut: bool = False

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
        sums: Sums = None, source: Source = SYSTEM, watch: NoisyLoss | None = None,
    ) -> None:  # fmt: skip
        self.keeper, self.clipping, self.noise, self.shape = Bookkeeper(model), clipping, noise, shape
        self.divisor, self.source, self.dtype = divisor, source, sums
        self.sum = ClippedSum(self.keeper.parameters, noise.bits, sums)
        self.costs = Costs(sums)
        self.session: Session = noise.begin(source)
        self.error: FloatError | None = None
        self.lowered = False  # did layers run in mixed precision when the model was tried?
        self.watch, self.watched = watch, 0  # the sum of this step's losses, in units
        self.seen: float | None = None  # the noisy loss of the last step

    # ---- before the charge ------------------------------------------------------------------------------------------

    def probe(self, losses: Probe) -> FloatError:
        """Run the model on made-up data: shapes, rounding errors, and that no example sees another one.

        The loss of one example alone must leave the gradients of all other rows zero; its loss and gradient must be the
        same, whatever the others are: up to rounding, or else the model is refused, and bit by bit, or else float
        errors are not certified.
        """
        buffers = {name: b.clone() for name, b in self.keeper.model.named_buffers()}
        one = self.shape.places // 2
        rows = slice(one * self.shape.rows, (one + 1) * self.shape.rows)
        devices = {p.device.index for p in self.keeper.parameters if p.device.type == "cuda"}
        with torch.random.fork_rng(devices=sorted(devices)):
            self.refuse_mixing(self.made_up(losses, 0, rows, alone=True)[1], one)
            each, parts = self.made_up(losses, 0, rows)
            fine, mine = trusted(parts), [each[rows], *(own(part, one, self.dtype) for part in parts)]
            error = float_error(parts, self.shape.places, self.noise.bits, self.dtype, self.keeper.names, fine)
            del parts  # before the next ones: they may be large
            other, parts = self.made_up(losses, 1, rows)
            again = [other[rows], *(own(part, one, self.dtype) for part in parts)]
        changed = [n for n, b in self.keeper.model.named_buffers() if not torch.equal(b, buffers[n])]
        if changed:
            raise InvalidParameter(
                "the forward pass writes data into buffers, where no noise protects them.\n"
                f"  found:  {', '.join(changed)}\n  do:     remove these statistics, or freeze their module with eval()"
            )
        self.refuse_strangers(mine[:1], again[:1], [each])
        self.refuse_strangers(mine[1:], again[1:], mine[1:])
        apart = all(torch.equal(a, b) for a, b in zip(mine, again, strict=True))
        everything = tuple(sorted(self.keeper.names[id(p)] for p in self.keeper.parameters))
        self.error = error if apart and not self.lowered else FloatError(error.growth, everything)
        return self.error

    def made_up(self, losses: Probe, seed: int, rows: slice, alone: bool = False) -> tuple[Tensor, list[Part]]:
        """The losses of a made-up batch, and the parts of it, or of one example's loss in it."""
        torch.manual_seed(0)  # dropout and augmentations are the same each time
        with self.recording() as tape:
            found = losses(seed, rows)
            parts = self.backward(found[rows] if alone else found, tape)
        self.lowered = tape.autocast
        return found.detach(), parts

    def refuse_strangers(self, mine: list[Tensor], again: list[Tensor], size: list[Tensor]) -> None:
        """Refuse a model in which what one example has depends on the others by more than rounding."""
        low = self.lowered or any(p.dtype not in (torch.float32, torch.float64) for p in self.keeper.parameters)
        most = unit(torch.bfloat16 if low else torch.float32)  # its root is far above what rounding does
        changes = (
            torch.nan_to_num(a.double()) - torch.nan_to_num(b.double()) for a, b in zip(mine, again, strict=True)
        )
        if sum(map(length, changes)) > most * sum(map(length, size)):
            raise InvalidParameter(
                "one example's loss or gradient depends on the others, so no clipping bounds what one of them does.\n"
                "  found:  another result for the same example in another batch of made-up data\n"
                "  do:     let no layer, loss or augmentation combine examples (batch statistics, mixing); and draw\n"
                "          random numbers from torch's generator"
            )

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
        """How far one example moves a step, with what is released beside its sum."""
        return total_move(0.0 if self.error is None else self.error.growth, aside_of(self.clipping, self.watch))

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
        if self.error is not None and self.error.certified and (tape.autocast or not full_precision()):
            raise InvalidParameter(
                "this run was priced for full precision.\n  found:  autocast or a lower precision of products\n"
                "  do:     use mixed precision from the start, inside the model: float errors are then not certified"
            )
        if self.watch is not None:
            self.watched += self.watch.units(losses.detach().view(-1, self.shape.rows).sum(1), mask)
        self.sum.add(self.backward(losses, tape), mask, self.clipping)

    @torch.no_grad()
    def release(self) -> None:
        """Add noise to the sum of this step, and leave the noisy mean gradient in the parameters. An empty sum too."""
        scale = self.clipping.norm / 2.0**self.noise.bits / self.divisor
        parameters, below = self.keeper.parameters, self.sum.unclipped
        wide = torch.float64 if any(p.dtype == torch.float64 for p in parameters) else torch.float32
        noisy = torch.from_numpy(self.session.release(self.sum.take()))
        grads = noisy.to(parameters[0].device, wide).mul_(scale)
        for parameter in parameters:
            grad = grads[self.sum.places[id(parameter)]].view(parameter.shape)
            parameter.grad = grad.to(parameter.device, parameter.dtype)
        if isinstance(self.clipping, Adaptive):
            self.clipping = self.adapted(self.clipping, below)
        if self.watch is not None:
            self.seen, self.watched = self.watch.release(self.watched, self.divisor, self.source), 0

    def adapted(self, clipping: Adaptive, below: float) -> Adaptive:
        """The clipping of the next step, by the noisy count of examples below the norm, in units of 2^-20."""
        sampler = sampler_of(Fraction(clipping.count_noise) * 2**20, self.source)
        count = sampler.one() + round(below * 2**20)
        return clipping.next(0.5 + count / 2**20 / self.divisor)


def aside_of(clipping: Clipping, watch: NoisyLoss | None) -> Fraction:
    """μ² of what a step releases beside the sum: the count of adaptive clipping, and a noisy loss."""
    count = clipping.aside if isinstance(clipping, Adaptive) else Fraction(0)
    return count if watch is None else count + watch.aside


def own(part: Part, one: int, sums: Sums) -> Tensor:
    """The gradient of one example, as the engine would add it."""
    alone = torch.zeros(len(part.norm_squared()), dtype=torch.float64, device=part.parameter.device)
    alone[one] = 1.0
    return part.weighted_sum(alone, sums)


def length(x: Tensor) -> float:
    """The squared norm of what is finite."""
    return float(torch.nan_to_num(x.double(), 0.0, 0.0, 0.0).square().sum())


def same(part: Part) -> Part:
    """No change."""
    return part


def trusted(parts: list[Part]) -> bool:
    """Are products taken in full precision, on a processor whose kernels add in the given type?"""
    fine = all(part.parameter.dtype in (torch.float32, torch.float64) for part in parts)
    here = all(part.parameter.device.type == "cpu" for part in parts)
    return fine and here and full_precision()


def full_precision() -> bool:
    """Do the libraries take products of float32 in float32?"""
    second: Any = torch.backends.mkldnn
    settings = (torch.backends, second, second.matmul, second.conv, second.rnn)
    return torch.get_float32_matmul_precision() == "highest" and all(
        getattr(found, "fp32_precision", "none") in ("none", "ieee") for found in settings
    )
