"""The engine of private training: from losses, one for each example, to noisy gradients in the parameters' `grad`."""

from collections.abc import Callable, Iterator, Sequence
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
from sfumato.learn.torch.parts import Part, Sums
from sfumato.learn.torch.sums import ClippedSum, FloatError, float_error
from sfumato.learn.torch.trial import half_of, of_rows, refuse_mixing, refuse_strangers, summed
from sfumato.noise.entropy import SYSTEM, Source

Probe = Callable[[int, Tensor], Tensor]  # losses of made-up rows: by a seed, but for a mask of rows that stay the same


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
        self.divisor, self.source, self.dtype = divisor, source, check_sums(sums, self.keeper.parameters)
        check_range(clipping, noise)
        self.sum = ClippedSum(self.keeper.parameters, noise.bits, sums)
        self.costs = Costs(sums)
        self.session: Session = noise.begin(source)
        self.error: FloatError | None = None
        self.lowered = False  # did layers run in mixed precision when the model was tried?
        self.tried: set[tuple[object, ...]] = set()  # modes (and hooks) of modules in which the model was tried
        self.seen: set[tuple[object, ...]] = set()  # shapes of parts for which errors are bounded
        self.broken, self.added = False, 0  # was something interrupted half-way? physical batches so far
        self.watch, self.watched = watch, 0  # the sum of this step's losses, in units
        self.seen_loss: float | None = None  # the noisy loss of the last step

    # ---- before the charge ------------------------------------------------------------------------------------------

    def probe(self, losses: Probe) -> FloatError:
        """Run the model on made-up data: shapes, rounding errors, and that no example sees another one."""
        half = half_of(self.shape.places)
        rows, none = (of_rows(p, self.shape.places, self.shape.rows) for p in (half, half[:0]))
        one, names = half[len(half) // 2 :][:1], self.keeper.names
        devices = {p.device.index for p in self.keeper.parameters if p.device.type == "cuda"}
        with torch.random.fork_rng(devices=sorted(devices)):
            refuse_mixing(self.made_up(losses, 2, none, rows)[1], half, names)
            each, parts = self.made_up(losses, 0, rows)
            fine, low = trusted(parts), self.low
            mine = [each[rows], *(summed(part, half, self.dtype) for part in parts)]
            bits = [summed(part, one, self.dtype) for part in parts]
            error = float_error(parts, self.shape.places, self.noise.bits, self.dtype, names, fine)
            del parts  # before the next ones: they may be large
            other, parts = self.made_up(losses, 1, rows)
            again = [other[rows], *(summed(part, half, self.dtype) for part in parts)]
            bits_again = [summed(part, one, self.dtype) for part in parts]
        refuse_strangers(mine[:1], again[:1], [each], low)
        refuse_strangers(mine[1:], again[1:], mine[1:], low)
        apart = all(torch.equal(a, b) for a, b in zip([mine[0], *bits], [again[0], *bits_again], strict=True))
        everything = tuple(sorted(names[id(p)] for p in self.keeper.parameters))
        self.error = error if apart and not self.lowered else FloatError(error.growth, everything)
        self.tried.add(self.keeper.modes)
        return self.error

    def made_up(self, losses: Probe, seed: int, same: Tensor, only: Tensor | None = None) -> tuple[Tensor, list[Part]]:
        """The losses of a made-up batch, and the parts of it, or of the losses of some rows only."""
        torch.manual_seed(0)  # dropout and augmentations are the same each time
        with self.recording() as tape:
            found = losses(seed, same)
            parts = self.backward(found if only is None else found[only.to(found.device)], tape)
        self.lowered = tape.autocast
        self.seen.add(tuple(tape.shapes))
        return found.detach().cpu(), parts

    @property
    def low(self) -> bool:
        """Is something computed in less than float32?"""
        return self.lowered or any(p.dtype not in (torch.float32, torch.float64) for p in self.keeper.parameters)

    @property
    def is_tried(self) -> bool:
        """Were modules tried in the mode, and with the hooks, that they have now?"""
        return self.keeper.modes in self.tried

    def try_again(self, losses: Probe) -> None:
        """Probe once more where modules were not tried in the mode in which they are now; refuse a larger error."""
        if self.is_tried:
            return
        priced = self.error
        found = self.probe(losses)
        self.error = priced
        if priced is not None and not set(found.uncertain) <= set(priced.uncertain):
            raise priced_for(f"full precision and a proof: {priced}", str(found))
        self.refuse_growth(found)

    def refuse_growth(self, found: FloatError) -> None:
        if self.error is not None and found.growth > self.error.growth:
            raise priced_for(f"a float error of {self.error.growth:.2g}", f"one of {found.growth:.2g}")

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
        if self.certified and (tape.autocast or not full_precision()):
            raise priced_for("full precision", "autocast or a lower precision of products")
        parts = self.backward(losses, tape)
        self.refuse_new_shapes(parts, tuple(tape.shapes))
        with self.whole():
            if self.watch is not None:
                self.watched += self.watch.units(losses.detach().view(-1, self.shape.rows).sum(1), mask)
            self.sum.add(parts, mask, self.clipping)
            self.added += 1

    @property
    def certified(self) -> bool:
        return self.error is not None and self.error.certified

    def refuse_new_shapes(self, parts: list[Part], shapes: tuple[object, ...]) -> None:
        """What was proved on made-up data is about these shapes and types."""
        if shapes in self.seen:
            return
        if self.certified:
            raise priced_for("the shapes and types of made-up data", "others")
        everything = self.error.uncertain if self.error is not None else ()
        found = float_error(parts, self.shape.places, self.noise.bits, self.dtype, self.keeper.names, not everything)
        self.refuse_growth(found)
        self.seen.add(shapes)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What is interrupted inside is never gone on with: a batch could count twice, or noise be missing."""
        if self.broken:
            raise InvalidParameter(
                "an earlier step of this run was interrupted, and half of it may be done.\n"
                "  found:  a call after an error or a keyboard interrupt inside of a step\n"
                "  do:     make a new run from the weights as they are: that is a new charge"
            )
        self.broken = True
        yield
        self.broken = False

    @torch.no_grad()
    def release(self) -> None:
        """Add noise to the sum of this step, and leave the noisy mean gradient in the parameters. An empty sum too."""
        with self.whole():
            self._release()

    def _release(self) -> None:
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
            self.seen_loss, self.watched = self.watch.release(self.watched, self.divisor, self.source), 0

    def adapted(self, clipping: Adaptive, below: float) -> Adaptive:
        """The clipping of the next step, by the noisy count of examples below the norm, in units of 2^-20."""
        sampler = sampler_of(Fraction(clipping.count_noise) * 2**20, self.source)
        count = sampler.one() + round(below * 2**20)
        return clipping.next(0.5 + count / 2**20 / self.divisor)


def check_sums(sums: Sums, parameters: Sequence[Tensor]) -> Sums:
    """Sums are taken in float32 or float64, and never in less than the parameters have: large numbers would be lost."""
    double = any(p.dtype == torch.float64 for p in parameters)
    if sums in (None, torch.float64) or (sums == torch.float32 and not double):
        return sums
    raise InvalidParameter(
        "sums are taken in float32 or float64, and in no less than the parameters have.\n"
        f"  found:  sums={sums}{' for parameters in float64' if double else ''}\n"
        "  do:     leave sums out: each layer then takes the cheapest type whose error is small"
    )


def check_range(clipping: Clipping, noise: Noise) -> None:
    """Refuse a clip norm so small that weights of examples would leave the range of float32.

    A gradient whose square is finite has numbers below 2^64, weights are at most 2^k/C, and float32 ends at 2^128.
    """
    least = 2.0 ** (noise.bits - 60)
    if clipping.norm < least:
        raise InvalidParameter(
            f"this clip norm is too small for so little noise.\n  found:  {clipping.norm:g}, below {least:.2g}\n"
            "  do:     multiply the loss by a large number and the clip norm with it; that changes nothing else"
        )


def aside_of(clipping: Clipping, watch: NoisyLoss | None) -> Fraction:
    """μ² of what a step releases beside the sum: the count of adaptive clipping, and a noisy loss."""
    count = clipping.aside if isinstance(clipping, Adaptive) else Fraction(0)
    return count if watch is None else count + watch.aside


def priced_for(priced: str, found: str) -> InvalidParameter:
    return InvalidParameter(
        f"this run was priced for {priced}.\n  found:  {found}\n"
        "  do:     let all batches have one shape, and set modes and precision before the run is made (mixed\n"
        "          precision inside the model); give make_private a probe= that does what your loop does"
    )


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
