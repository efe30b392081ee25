"""Products of float32 matrices by the faster of two kernels, chosen for each shape by its time on made-up numbers.

torch takes them with one library, and has a second one, made for other layers. On processors of some makers the second
one is twice as fast. Both add in float32, each in an order of its own, which the error bounds here allow; and a row of
a product has the same bits whatever the other rows are, which each run tries and tests show.
"""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]
SMALL = 1 << 20  # multiplications of a product for which the choice does not matter
ROUNDS = 3


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x weightᵀ + bias, for the last dimension of x."""
    if not fits(x, weight) or x.numel() * len(weight) < SMALL:
        return functional.linear(x, weight, bias)
    flat = x.flatten(0, -2)
    if not second_is_faster(len(flat), *weight.shape, turned(flat), turned(weight)):
        return functional.linear(x, weight, bias)
    return second(flat, weight, bias).view(*x.shape[:-1], len(weight))


def outer(left: Tensor, right: Tensor) -> Tensor:
    """leftᵀ right: a sum over rows."""
    return linear(left.t(), right.t())


def batched(left: Tensor, right: Tensor) -> Tensor:
    """left_i right_i for each i."""
    count, rows, inner = left.shape
    if not fits(left, right) or rows * inner * right.shape[2] < SMALL:
        return torch.bmm(left, right)
    turns = turned(left[0]), turned(right[0].t())
    if not second_is_faster(rows, right.shape[2], inner, *turns):
        return torch.bmm(left, right)
    found = left.new_empty(count, rows, right.shape[2])
    for total, a, b in zip(found, left, right, strict=True):
        total.copy_(second(a, b.t(), None))
    return found


def fits(x: Tensor, weight: Tensor) -> bool:
    """Can the second kernel take these? Mixed precision is left to torch."""
    here = x.device.type == "cpu" and x.dtype == weight.dtype == torch.float32 and len(x) > 0
    return here and torch.backends.mkldnn.is_available() and not torch.is_autocast_enabled("cpu")  # type: ignore[no-untyped-call]


def turned(x: Tensor) -> bool:
    """Is a matrix laid out by columns?"""
    return x.stride(0) == 1 != x.stride(1)


def second(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x weightᵀ + bias by the second library (oneDNN)."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


@lru_cache(maxsize=1024)
def second_is_faster(rows: int, columns: int, inner: int, left_turned: bool, right_turned: bool) -> bool:
    """For matrices of these shapes and layouts. No time of private data decides anything."""
    left, right = (
        torch.zeros(inner, count).t() if by_columns else torch.zeros(count, inner)
        for count, by_columns in ((rows, left_turned), (columns, right_turned))
    )
    best, ways = [float("inf")] * 2, (cast("Product", functional.linear), second)
    for number in range(ROUNDS + 1):  # the first round makes kernels
        for way, call in enumerate(ways):
            started = time.process_time()
            call(left, right, None)
            if number:
                best[way] = min(best[way], time.process_time() - started)
    return best[1] < 0.9 * best[0]
