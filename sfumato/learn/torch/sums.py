"""Clipped sums on a public lattice: from the parts of a batch to whole numbers, with a proved bound on rounding.

Sums are taken in units of the clip norm C and rounded to multiples of 2^-k. A physical batch has a fixed number of
places P, so its rounding error has a public bound; sums of several physical batches are exact, as they are whole.

Theorem: neighbours move the whole numbers by at most 1 + 4·err(P) + 2·√d·2^-k [docs/theorems/sgd.md, Theorem 3]
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor, nn

from sfumato.learn.torch.clipping import Clipping
from sfumato.learn.torch.parts import Part, Sums, full_products, unit
from sfumato.noise.draw_table import Integers
from sfumato.rounding import product_up, sqrt_up, sum_up


@dataclass(frozen=True)
class FloatError:
    """What rounding adds to the sensitivity, in units of the clip norm, and whether that is proved.

    `uncertain` names the parameters for which no bound is proved; `growth` then leaves them out.
    """

    growth: float
    uncertain: tuple[str, ...] = ()

    @property
    def certified(self) -> bool:
        return not self.uncertain

    def __str__(self) -> str:
        if self.certified:
            return f"float error certified: the sensitivity grows by {self.growth:.2g} of the clip norm"
        return f"float error not certified for {', '.join(self.uncertain)}"


@dataclass(eq=False)
class ClippedSum:
    """The sum of clipped gradients of one logical batch, as whole numbers, all parameters in one row."""

    parameters: Sequence[nn.Parameter]
    bits: int
    dtype: Sums
    multiples: Tensor | None = field(init=False)
    unclipped: float = field(init=False, default=0.0)  # examples below the norm less those above, halved
    pending: bool = field(init=False, default=False)  # was a physical batch added?

    def __post_init__(self) -> None:
        self.sizes = [parameter.numel() for parameter in self.parameters]
        ends = [0, *accumulate(self.sizes)]
        self.places = {id(p): slice(*ends[i : i + 2]) for i, p in enumerate(self.parameters)}
        self.clear()

    def clear(self) -> None:
        """Begin a new logical batch: its sum is 0, which is what an empty batch has."""
        self.multiples = None
        self.unclipped, self.pending = 0.0, False

    @torch.no_grad()
    def add(self, parts: Sequence[Part], mask: Tensor, clipping: Clipping) -> None:
        """Add one physical batch; examples outside the mask, and those whose gradient is not finite, add 0."""
        with full_products(mask.device.type):
            self._add(parts, mask, clipping)

    def _add(self, parts: Sequence[Part], mask: Tensor, clipping: Clipping) -> None:
        self.pending = True
        squared = [part.norm_squared() for part in parts]
        weights = clipping.weights(squared)
        whole = torch.stack(squared).sum(0)
        finite = torch.isfinite(whole)
        usable = mask & finite
        if not bool(finite.all()):  # 0·∞ is not 0
            broken = torch.nonzero(~finite).flatten()
            for part in parts:
                part.blank(broken)
        self.unclipped += float((usable & (whole.sqrt() <= clipping.norm)).sum()) - float(mask.sum()) / 2
        room = 1 - 4 * unit(self.dtype or torch.float32)  # products of weights and gradients are rounded in this type
        scale = room * 2.0**self.bits / clipping.norm  # in the weights: it then costs nothing
        found = torch.zeros(sum(self.sizes), dtype=torch.int64, device=whole.device)
        done: dict[int, Tensor] = {}
        for part, weight in zip(parts, weights, strict=True):
            if id(weight) not in done:
                done[id(weight)] = torch.where(usable, weight * scale, 0.0)
            self.place(found, part).copy_(part.weighted_sum(done[id(weight)], self.dtype).round_())
        self.multiples = found if self.multiples is None else self.multiples.add_(found)

    def place(self, row: Tensor, part: Part) -> Tensor:
        """Where a part belongs in the row of all parameters."""
        found = row[self.places[id(part.parameter)]].view(part.parameter.shape)
        return found if part.rows is None else found[slice(*part.rows)]

    def take(self) -> Integers:
        """The whole numbers of all parameters, as a row; the sum is empty then."""
        found = torch.zeros(sum(self.sizes), dtype=torch.int64) if self.multiples is None else self.multiples
        self.clear()
        return found.cpu().numpy()


def float_error(
    parts: Sequence[Part], places: int, bits: int, dtype: Sums, names: dict[int, str], trusted: bool
) -> FloatError:
    """The growth of the sensitivity for physical batches like this one; it depends on shapes only."""
    errors = {part.place: part.error(dtype) for part in parts}
    known = [error for error in errors.values() if error is not None]
    uncertain = {names[place[0]] for place, error in errors.items() if error is None or not trusted}
    near = max((product_up(error.block, min(error.size, places)) for error in known), default=0.0)
    all_over = max((error.all for error in known), default=0.0) + 4 * unit(torch.float64)
    count = sum(part.parameter.numel() for part in {id(part.parameter): part for part in parts}.values())
    rounding = product_up(2, sqrt_up(count), math.ldexp(1.0, -bits))
    growth = sum_up(product_up(4, near), product_up(4, all_over, places), rounding)
    return FloatError(growth, tuple(sorted(uncertain)))
