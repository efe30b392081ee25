"""Public sizes: what sums are divided by, how many places a physical batch has, and what a batch beyond them costs."""

import math

from scipy.special import gammainc

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.torch.engine import Shape
from sfumato.rounding import product_up
from sfumato.sampling.base import Sampling

MOST_PLACES = 512  # of a physical batch: float errors grow with them, sums of physical batches are exact
SLACK = 1e-3  # of δ, for batches beyond their capacity
MOST_FAILURE = 1e-8  # the same where δ is large


def public_batch_size(sampler: Sampling, given: int | None) -> float:
    """The number that sums are divided by: given, or the batch size of a sampler that has a public one."""
    if given is not None:
        return checks.positive("batch_size", given)
    if fixed_size(sampler):
        return float(sampler.m)  # type: ignore[attr-defined]
    raise InvalidParameter(
        "batch_size is missing: the public number that sums of gradients are divided by.\n"
        f"  found:  {sampler!r}, whose batches have a private size\n"
        "  do:     give the number of examples that you expect in a batch, e.g. batch_size=256"
    )


def fixed_size(sampler: Sampling) -> bool:
    """Do all batches have the same, public size?"""
    return getattr(sampler, "m", None) is not None


def physical_shape(
    sampler: Sampling, size: float, rows: int, steps: int, delta: float, places: int | None = None,
    most: int | None = None,
) -> Shape:  # fmt: skip
    """Batches of a public size fit exactly; random ones but for a part of δ, if the expected size is as stated.

    `places` is the size of physical batches, `most` a cap on whole ones.
    """
    if fixed_size(sampler):
        capacity = max(1, int(size))
    elif most is None:
        capacity = random_capacity(sampler, size, steps, delta)
    else:
        capacity = checks.whole("most", most, 1)
    batches = -(-capacity // (MOST_PLACES if places is None else checks.whole("physical", places, 1)))
    return Shape(-(-capacity // batches) if places is None else places, rows, batches, most is not None)


def most_failure(delta: float) -> float:
    """The probability with which batches may exceed their capacity in a run."""
    return min(MOST_FAILURE, SLACK * delta)


def random_capacity(sampler: Sampling, size: float, steps: int, delta: float) -> int:
    """The least multiple of 8 that random batches of this expected size exceed rarely enough."""
    goal = most_failure(delta)
    capacity = 8 * math.ceil((size + 2) / 8)
    while overflow(sampler, size, capacity, steps) > goal:
        capacity += 8
    return capacity


def overflow(sampler: Sampling, size: float, capacity: int, steps: int) -> float:
    """At most the probability, in a whole run, that a batch of others fills its capacity where one example may join.

    Others in a batch are independent coins with at most `size` heads expected: no tail of theirs at size + 1 or more is
    above that of a Poisson variable. With coins of its own for each batch, an example is there for a `share` of them;
    if an epoch is drawn as a whole, all of its batches count.

    Theorem: P(Bin(n, p) ≥ k) ≤ P(Poisson(np) ≥ k) for k ≥ np + 1 [Anderson & Samuels 1967, Thm 2.1]
    Theorem: beyond the capacity everything may be lost, which costs its probability [docs/theorems/sgd.md, Theorem 4]
    """
    if fixed_size(sampler):
        return 0.0
    batches = -(-steps // sampler.span) * sampler.span
    exposures = product_up(batches, sampler.share) if sampler.span == 1 else float(batches)
    if capacity < size + 1:
        return 1.0
    return min(1.0, product_up(exposures, float(gammainc(capacity, size)), 1 + 1e-6))  # more than a tail may be off by
