"""Parts: what one call of a layer adds to the gradient of one parameter, example by example, without forming it.

A part knows the squared norm of each example's gradient (rounded up), their weighted sum, and, if need be, all of them.
The first dimension of every tensor is the example. Gradients are those of the sum of all losses, so that row i of a
recorded tensor belongs to example i alone.

Theorem: ‖Σ_t g_t a_tᵀ‖² = Σ_{s,t} ⟨a_s, a_t⟩⟨g_s, g_t⟩ (ghost norm) [Li, Tramèr, Liang & Hashimoto 2022, Sec. 4]
Theorem: norms here are never below the exact norm of what is summed [docs/theorems/sgd.md, Theorem 2]
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sfumato.learn.torch.products import batched, outer

LEAST = 1.2e-38  # float32 loses what is smaller; float64 loses less
CHUNK = 1 << 22  # numbers that are held at once while examples are summed in float64
AT_ONCE = 1 << 20  # numbers of formed gradients at a time if they are not kept: they stay in the cache
TERMS = 64  # terms that are added in float32 before their sum joins others: fewer mean a smaller error bound

Sums = torch.dtype | None  # the type of sums; None: each part chooses the cheapest way that has a small proved error


def unit(dtype: torch.dtype) -> float:
    """The unit roundoff u of a floating-point type and a little more: n·unit ≥ nu/(1 − nu) for nu ≤ 1 %."""
    return 0.51 * float(torch.finfo(dtype).eps)


def gamma(terms: int, dtype: torch.dtype) -> float:
    """γ_n = nu/(1 − nu), rounded up, for any number of terms: without a bound where nu ≥ 1.

    Theorem: n roundings change a result by a factor in 1 ± γ_n [Higham 2002, Lemma 3.1]
    """
    part = terms * float(torch.finfo(dtype).eps) / 2
    return math.inf if part >= 1 else part / (1 - part) * (1 + 1e-12)


def squares(x: Tensor) -> Tensor:
    """Σx² over all but the first dimension in float64, never below the truth: summed in one or two stages.

    k non-negative terms in any order are off by less than a factor 1 − ku, and 1 + γ_k makes up for that; stages add
    their k, and a root that is squared again two. A square below LEAST may be lost. Long rows are summed fast: kernels
    of 3 × 3 are no stage.
    """
    flat = x[:, None] if x.dim() == 1 else x.flatten(2) if x.dim() > 2 else x
    total, terms = torch.linalg.vector_norm(flat, dim=-1).square(), flat.shape[-1] + 8
    if total.dim() > 1:
        terms += total.shape[-1]
        total = total.sum(-1)
    lost = LEAST * (x[0].numel() if len(x) else 0)
    found: Tensor = (total.double() + lost) * (1 + gamma(terms, x.dtype))
    return found


def full_products(device: str) -> AbstractContextManager[object]:
    """Inside, products are taken in the type of their factors, whatever mixed precision does outside."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def wide(x: Tensor) -> Tensor:
    """The same numbers in float32 if they have less: norms and sums are then those of float32."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def in_groups(x: Tensor, size: int) -> Tensor:
    """Rows in groups of so many."""
    return x.reshape(-1, size, *x.shape[1:])


def in_blocks(left: Tensor, right: Tensor, blocked: bool) -> Tensor:
    """leftᵀ @ right, a sum over examples: of all at once, or of blocks of TERMS, whose sums are then added."""
    if not blocked or len(left) <= TERMS:
        return outer(left, right)
    whole = len(left) // TERMS * TERMS
    if left.shape[1] == 1:  # one product for all blocks: what it writes is small
        blocks = [x[:whole].reshape(-1, TERMS, x.shape[1]) for x in (left, right)]
        total, done = torch.bmm(blocks[0].transpose(1, 2), blocks[1]).sum(0), whole
    else:
        total, done = outer(left[:TERMS], right[:TERMS]), TERMS
    for start in range(done, len(left), TERMS):
        total += outer(left[start : start + TERMS], right[start : start + TERMS])
    return total


class Error(NamedTuple):
    """Error of a weighted sum, in units of Σ_i weights_i·norm_i: over the block of the example that comes or goes, and
    over all examples; and how many examples a block has. Other blocks are the same on both sides, bit by bit."""

    block: float
    all: float
    size: int


def block_error(count: int, dtype: Sums, own: torch.dtype) -> Error:
    """Error of `in_blocks`: k terms in any order are off by γ_k, and so is the sum of k blocks."""
    if dtype is None and count > TERMS:
        return Error(gamma(TERMS + 3, own), gamma(-(-count // TERMS) + 1, own), TERMS)
    return Error(gamma(count + 3, dtype or own), 0.0, count)


class Part(ABC):
    """The gradients of one parameter (or of some of its rows), one for each example."""

    parameter: nn.Parameter
    rows: tuple[int, int] | None  # which rows of the parameter; None for all of them

    @abstractmethod
    def norm_squared(self) -> Tensor:
        """The squared norm of each example's gradient in float64, never below the truth."""

    @abstractmethod
    def weighted_sum(self, weights: Tensor, dtype: Sums) -> Tensor:
        """Σ_i weights_i · gradient_i, summed in this type."""

    @abstractmethod
    def each(self) -> Tensor:
        """The gradients of all examples, formed."""

    @abstractmethod
    def error(self, dtype: Sums) -> Error | None:
        """The error of `weighted_sum`; None if no bound is proved."""

    @abstractmethod
    def touched(self) -> Tensor:
        """Which examples have anything but zeros."""

    @abstractmethod
    def grouped(self, size: int) -> "Part":
        """`size` rows after each other as one example, whose gradient is their sum."""

    @abstractmethod
    def blank(self, rows: Tensor) -> None:
        """Make the gradients of these examples zero, in place: 0·∞ would not be."""

    @property
    @abstractmethod
    def shapes(self) -> tuple[object, ...]:
        """Shapes and types that bounds on rounding errors depend on."""

    @property
    def place(self) -> tuple[int, tuple[int, int] | None]:
        return id(self.parameter), self.rows


@dataclass(eq=False)
class Vectors(Part):
    """Gradients that are formed already: of biases, of scales, of small kernels."""

    parameter: nn.Parameter
    values: Tensor
    rows: tuple[int, int] | None = None
    certain: bool = True  # do values depend on their own example alone, to the last bit?

    def __post_init__(self) -> None:
        self.values = wide(self.values)

    @property
    def shapes(self) -> tuple[object, ...]:
        return self.values.shape, self.values.dtype, self.values.device, self.certain

    def norm_squared(self) -> Tensor:
        return squares(self.values)

    def weighted_sum(self, weights: Tensor, dtype: Sums) -> Tensor:
        flat = self.values.flatten(1)
        if dtype is None or dtype == flat.dtype:
            summed = in_blocks(weights.to(flat.dtype)[:, None], flat, dtype is None)
            return summed.view(self.values.shape[1:])
        total = torch.zeros(flat.shape[1], dtype=dtype, device=flat.device)
        size = max(1, CHUNK // max(1, flat.shape[1]))  # so that the copy in the wider type stays small
        for start in range(0, len(flat), size):
            total += weights[start : start + size].to(dtype) @ flat[start : start + size].to(dtype)
        return total.view(self.values.shape[1:])

    def each(self) -> Tensor:
        return self.values

    def error(self, dtype: Sums) -> Error | None:
        return block_error(len(self.values), dtype, self.values.dtype) if self.certain else None

    def touched(self) -> Tensor:
        return self.values.flatten(1).any(1)

    def grouped(self, size: int) -> "Vectors":
        return Vectors(self.parameter, in_groups(self.values, size).sum(1), self.rows, self.certain)

    def blank(self, rows: Tensor) -> None:
        self.values = self.values.index_fill(0, rows, 0.0)


@dataclass(eq=False)
class Outers(Part):
    """Σ_t g_t a_tᵀ over the T places of an example: the weight of a linear layer."""

    parameter: nn.Parameter
    inputs: Tensor  # a: examples × places × features in
    outputs: Tensor  # g: examples × places × features out
    rows: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self.inputs, self.outputs = wide(self.inputs), wide(self.outputs)

    @property
    def shapes(self) -> tuple[object, ...]:
        return self.inputs.shape, self.outputs.shape, self.outputs.dtype, self.outputs.device

    def norm_squared(self) -> Tensor:
        a, g = self.inputs, self.outputs
        if a.shape[1] == 1:
            return squares(a) * squares(g) * (1 + unit(torch.float64))
        gram = batched(a, a.transpose(1, 2)).mul_(batched(g, g.transpose(1, 2))).sum(2).sum(1)
        return gram.double() + self.slack() * self.spread().square()

    def slack(self) -> float:
        """The error of the ghost norm in units of the squared spread; it also covers a negative sum, and the error of
        gradients that are formed: (‖∇‖ + γ_T·spread)² ≤ ‖∇‖² + (2T + 1)u·spread²."""
        (_, places, d), p = self.inputs.shape, self.outputs.shape[2]
        return gamma(d + p + 4 * places + 20, self.inputs.dtype)

    def spread(self) -> Tensor:
        """Σ_t ‖g_t‖‖a_t‖ of each example: what rounding errors are relative to. Never below the truth."""
        lengths = [
            (x.square().sum(2).double() + LEAST * x.shape[2]).sqrt() * (1 + gamma(x.shape[2] + 3, x.dtype))
            for x in (self.inputs, self.outputs)
        ]
        return (lengths[0] * lengths[1]).sum(1) * (1 + gamma(lengths[0].shape[1] + 3, torch.float64))

    def weighted_sum(self, weights: Tensor, dtype: Sums) -> Tensor:
        a, g = self.inputs, self.outputs
        if a.shape[1] == 1 and (dtype is None or dtype == a.dtype):
            return in_blocks(g[:, 0] * weights.to(g.dtype)[:, None], a[:, 0], dtype is None)
        dtype = torch.float64 if dtype is None else dtype
        scaled = g.to(dtype, copy=True).mul_(weights.to(dtype)[:, None, None])
        return scaled.flatten(0, 1).t() @ a.flatten(0, 1).to(dtype)

    def each(self) -> Tensor:
        return self.form(slice(None))

    def form(self, chunk: slice) -> Tensor:
        return batched(self.outputs[chunk].transpose(1, 2), self.inputs[chunk])

    def error(self, dtype: Sums) -> Error | None:
        """With one place, the norm is the size of the summed terms. With more, terms may cancel: their size is at most
        norm/√slack, as `norm_squared` contains slack·spread²; in float32 that is too much to be useful."""
        count, places = self.inputs.shape[:2]
        if places == 1:
            return block_error(count, dtype, self.inputs.dtype)
        if dtype not in (None, torch.float64):
            return None
        return Error(gamma(count * places + 3, torch.float64) / math.sqrt(self.slack()), 0.0, count)

    def touched(self) -> Tensor:
        return self.outputs.flatten(1).any(1)

    def grouped(self, size: int) -> "Outers":
        a, g = (in_groups(x, size).flatten(1, 2) for x in (self.inputs, self.outputs))
        return Outers(self.parameter, a, g, self.rows)

    def blank(self, rows: Tensor) -> None:
        self.inputs, self.outputs = (x.index_fill(0, rows, 0.0) for x in (self.inputs, self.outputs))


@dataclass(eq=False)
class Lookups(Part):
    """Rows of an embedding: gradient g_t belongs to row index_t."""

    parameter: nn.Parameter
    index: Tensor  # examples × places
    outputs: Tensor  # examples × places × features
    rows: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self.outputs = wide(self.outputs)

    @property
    def shapes(self) -> tuple[object, ...]:
        return self.index.shape, self.outputs.shape, self.outputs.dtype, self.outputs.device

    def norm_squared(self) -> Tensor:
        g = self.outputs
        same = (self.index[:, :, None] == self.index[:, None, :]).to(g.dtype)
        gram = torch.bmm(g, g.transpose(1, 2)).mul_(same).sum(2).sum(1)
        return gram.double() + self.slack() * self.spread().square()

    def slack(self) -> float:
        return gamma(self.outputs.shape[2] + 2 * self.outputs.shape[1] + 16, self.outputs.dtype)

    def spread(self) -> Tensor:
        g = self.outputs
        lengths = (g.square().sum(2).double() + LEAST * g.shape[2]).sqrt() * (1 + gamma(g.shape[2] + 3, g.dtype))
        return lengths.sum(1) * (1 + gamma(g.shape[1] + 3, torch.float64))

    def weighted_sum(self, weights: Tensor, dtype: Sums) -> Tensor:
        dtype = torch.float64 if dtype is None else dtype
        scaled = self.outputs.to(dtype, copy=True).mul_(weights.to(dtype)[:, None, None])
        total = torch.zeros(self.parameter.shape, dtype=dtype, device=scaled.device)
        return total.index_add_(0, self.index.flatten(), scaled.flatten(0, 1))

    def each(self) -> Tensor:
        g = self.outputs
        total = g.new_zeros(len(g), *self.parameter.shape)
        return total.scatter_add_(1, self.index[:, :, None].expand_as(g), g)

    def error(self, dtype: Sums) -> Error | None:
        if dtype not in (None, torch.float64):
            return None
        relative = gamma(self.index.numel() + 3, torch.float64) / math.sqrt(self.slack())
        return Error(relative, 0.0, len(self.index))

    def touched(self) -> Tensor:
        return self.outputs.flatten(1).any(1)

    def grouped(self, size: int) -> "Lookups":
        index, g = (in_groups(x, size).flatten(1, 2) for x in (self.index, self.outputs))
        return Lookups(self.parameter, index, g, self.rows)

    def blank(self, rows: Tensor) -> None:
        self.outputs = self.outputs.index_fill(0, rows, 0.0)


@dataclass(eq=False)
class Streamed(Part):
    """Gradients that are too large to keep: a few examples at a time are formed for sums, and once more for norms
    unless `norms` finds these in another way. It must not be below the norms of what is formed."""

    parameter: nn.Parameter
    count: int
    form: Callable[[slice], Tensor]
    rows: tuple[int, int] | None = None
    norms: Callable[[], Tensor] | None = None
    blanks: Tensor | None = None
    at_once: int = AT_ONCE
    key: object = None  # names its shapes
    alike: Callable[[], "Streamed"] | None = None  # the same with made-up data, to measure times
    other: Callable[[slice], Tensor] | None = None  # another way to form the same

    @property
    def shapes(self) -> tuple[object, ...]:
        return self.count, self.at_once, self.key, self.parameter.dtype, self.parameter.device

    def chunks(self) -> list[slice]:
        size = max(1, self.at_once // max(1, self.parameter.numel()))
        return [slice(start, min(start + size, self.count)) for start in range(0, self.count, size)]

    def kept(self) -> "Streamed":
        """Form all gradients now, and take their norms while they are in the cache."""
        stored, norms = {}, []
        for chunk in self.chunks():
            found = self.formed(chunk)
            stored[chunk.start] = found.values
            norms.append(found.norm_squared())
        whole = torch.cat(norms)
        return replace(self, form=lambda chunk: stored[chunk.start], norms=lambda: whole, alike=None, other=None)

    def formed(self, chunk: slice) -> Vectors:
        values = self.form(chunk)
        if self.blanks is not None:
            inside = self.blanks[(self.blanks >= chunk.start) & (self.blanks < chunk.stop)] - chunk.start
            values = values.index_fill(0, inside, 0.0)
        return Vectors(self.parameter, values, self.rows)

    def norm_squared(self) -> Tensor:
        if self.norms is not None:
            return self.norms()
        return torch.cat([self.formed(chunk).norm_squared() for chunk in self.chunks()])

    def weighted_sum(self, weights: Tensor, dtype: Sums) -> Tensor:
        sums = (self.formed(chunk).weighted_sum(weights[chunk], dtype) for chunk in self.chunks())
        total = next(sums)
        for more in sums:
            total += more
        return total

    def each(self) -> Tensor:
        return torch.cat([self.formed(chunk).values for chunk in self.chunks()])

    def error(self, dtype: Sums) -> Error:
        first = self.formed(self.chunks()[0])
        inner, own = block_error(len(first.values), dtype, first.values.dtype), first.values.dtype
        return inner._replace(all=inner.all + gamma(len(self.chunks()) + 1, own if dtype is None else dtype))

    def touched(self) -> Tensor:
        return torch.cat([self.formed(chunk).touched() for chunk in self.chunks()])

    def grouped(self, size: int) -> Part:
        return Vectors(self.parameter, self.each(), self.rows).grouped(size)

    def blank(self, rows: Tensor) -> None:
        self.blanks = rows


def join(parts: list[Part]) -> Part:
    """One part for one parameter that was used several times: norms of sums need the terms across calls."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    outers = [part for part in parts if isinstance(part, Outers)]
    if len(outers) == len(parts):
        a, g = torch.cat([part.inputs for part in outers], 1), torch.cat([part.outputs for part in outers], 1)
        return Outers(first.parameter, a, g, first.rows)
    lookups = [part for part in parts if isinstance(part, Lookups)]
    if len(lookups) == len(parts):
        index, g = torch.cat([part.index for part in lookups], 1), torch.cat([part.outputs for part in lookups], 1)
        return Lookups(first.parameter, index, g, first.rows)
    total = first.each()
    for part in parts[1:]:
        total = total + part.each()
    return Vectors(first.parameter, total, first.rows, all(getattr(part, "certain", True) for part in parts))
