"""One pass over a table of a database: the exact integer sums that an estimator is fitted to, and their noise.

An estimator that can be fitted so names blocks of sums; the curator has them summed where the data are, and noise is
added here. Estimators that look at rows more than once, each time depending on what was released before, name none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from sfumato.learn.spending import Spending
from sfumato.learn.tables import Matrix
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import Sensitivity
from sfumato.sql.emit.lattice_rows import STEPS, Block, Term, whole_steps

WHOLE = STEPS * STEPS  # sums are in steps of 1/WHOLE


def gram_terms(coordinates: int) -> tuple[Term, ...]:
    """All products of two of the coordinates, the first of which is 1: the upper triangle of a Gram matrix."""
    return tuple(combinations_with_replacement(range(coordinates), 2))


def moment_terms(columns: int) -> tuple[Term, ...]:
    """x, x² and 1, in this order."""
    first = tuple((0, j) for j in range(1, columns + 1))
    return (*first, *((j, j) for j in range(1, columns + 1)), (0, 0))


def block_sensitivity(block: Block) -> Sensitivity:
    """How far one row moves the sums of a block, in steps of 1/WHOLE.

    Theorem: a row adds at most 1 to each of T sums of products of numbers in [−1, 1], in one cell, so it moves them by
        at most √T in L2 norm [each coordinate is an integer of at most STEPS]
    """
    count = len(block.terms)
    l2 = math.nextafter(math.sqrt(count) * WHOLE, math.inf)
    return Sensitivity(l0=count, linf=WHOLE, l1=count * WHOLE, l2=l2)


@dataclass(frozen=True, eq=False)
class NoisyPass:
    """Noisy sums of each block, a row for each cell, in the unit of the columns; and the deviation of their noise."""

    sums: tuple[Matrix, ...]
    deviations: tuple[float, ...]


def add_noise(blocks: Sequence[Block], exact: Sequence[Integers], spending: Spending) -> list[Integers]:
    """Exact sums, one row for each cell, with noise. Blocks are about the same rows, so they share the budget; cells of
    one block are about different ones."""
    share = spending.part(1 / len(blocks))
    found = []
    for block, sums in zip(blocks, exact, strict=True):
        whole = sums * np.array([whole_steps(term) for term in block.terms], np.int64)
        moved = block_sensitivity(block)
        if block.cell is None:
            found.append(share.add_noise(whole[0], moved)[None])
        else:
            found.append(share.add_noise_by_block(whole, moved))
    return found


def read_noisy(blocks: Sequence[Block], noisy: Sequence[Integers], spending: Spending) -> NoisyPass:
    """Released integers as numbers: post-processing."""
    share = spending.part(1 / len(blocks))
    deviations = tuple(share.deviation(block_sensitivity(block), len(block.terms)) / WHOLE for block in blocks)
    return NoisyPass(tuple(one.astype(np.float64) / WHOLE for one in noisy), deviations)


def gram_of(sums: Matrix, coordinates: int) -> Matrix:
    """A symmetric matrix from its upper triangle."""
    found = np.zeros((coordinates, coordinates))
    found[np.triu_indices(coordinates)] = sums[0]
    return found + np.triu(found, 1).T
