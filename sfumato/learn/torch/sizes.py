"""Public sizes: what sums are divided by, and how many places a physical batch has."""

import math

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.engine import Shape
from sfumato.sampling.base import Sampling

MOST_PLACES = 512  # of a physical batch: float errors grow with them, sums of physical batches are exact


def public_batch_size(sampler: Sampling, given: int | None) -> float:
    """The number that sums are divided by: given, or the batch size of a sampler that has a public one."""
    if given is not None:
        return checks.positive("batch_size", given)
    if (size := getattr(sampler, "m", None)) is not None:
        return float(size)
    raise InvalidParameter(
        "batch_size is missing: the public number that sums of gradients are divided by.\n"
        f"  found:  {sampler!r}, whose batches have a private size\n"
        "  do:     give the number of examples that you expect in a batch, e.g. batch_size=256"
    )


def physical_shape(sampler: Sampling, size: float, rows: int, places: int | None) -> Shape:
    """Batches of a public size fit exactly; random ones but for one in 30,000, if the expected size is as stated."""
    fixed = getattr(sampler, "m", None) is not None
    capacity = max(1, int(size)) if fixed else 8 * math.ceil((size + 4 * math.sqrt(size)) / 8)
    each = min(capacity, MOST_PLACES) if places is None else checks.whole("physical", places, 1)
    return Shape(each, rows, -(-capacity // each))
