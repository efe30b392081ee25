"""A trial on made-up data, before real ones are read: does one example see another, or what came before it?

Three batches run through the model. Half of the examples are the same in the last two, and all of them differ in the
first one. The losses of this half must leave no gradient at any other example. Their losses and gradients must be the
same in both batches: up to rounding, or else the model is refused, and bit by bit for one of them, or else float errors
are not certified. Which half it is, is public and looks random, so that hardly any pairing of examples stays within it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.parts import Part, Sums, unit


def half_of(places: int) -> Tensor:
    """Half of the places, in a public order that looks random."""
    order = torch.randperm(places, generator=torch.Generator().manual_seed(places))
    return order[: max(1, places // 2)]


def of_rows(places: Tensor, count: int, rows: int) -> Tensor:
    """Which of the rows of data belong to these places, as a mask."""
    mask = torch.zeros(count, dtype=torch.bool)
    mask[places] = True
    return mask.repeat_interleave(rows)


def summed(part: Part, places: Tensor, sums: Sums) -> Tensor:
    """The gradients of these examples, added as the engine would add them."""
    chosen = torch.zeros(len(part.norm_squared()), dtype=torch.float64, device=part.parameter.device)
    chosen[places] = 1.0
    return part.weighted_sum(chosen, sums)


def refuse_mixing(parts: Sequence[Part], places: Tensor, names: dict[int, str]) -> None:
    """Refuse a model in which the losses of these examples have gradients at others."""
    for part in parts:
        touched = part.touched()
        touched[places] = False
        if bool(touched.any()):
            raise InvalidParameter(
                "examples of a batch see each other, so no clipping bounds what one of them does.\n"
                f"  found:  the loss of one example has gradients at others, in {names[id(part.parameter)]}\n"
                "  do:     let the first dimension be the example everywhere; compute losses for each example"
            )


def refuse_strangers(mine: Sequence[Tensor], again: Sequence[Tensor], size: Sequence[Tensor], low: bool) -> None:
    """Refuse a model in which what some examples have depends on others by more than rounding."""
    most = unit(torch.bfloat16 if low else torch.float32)  # its root is far above what rounding does
    changes = (torch.nan_to_num(a.double()) - torch.nan_to_num(b.double()) for a, b in zip(mine, again, strict=True))
    if sum(map(length, changes)) > most * sum(map(length, size)):
        raise InvalidParameter(
            "one example's loss or gradient depends on the others, so no clipping bounds what one of them does.\n"
            "  found:  another result for the same example in another batch of made-up data\n"
            "  do:     let no layer, loss or augmentation combine examples (batch statistics, mixing), or keep\n"
            "          anything for the next batch; and draw random numbers from torch's generator"
        )


def length(x: Tensor) -> float:
    """The squared norm of what is finite."""
    return float(torch.nan_to_num(x.double(), 0.0, 0.0, 0.0).square().sum())
