"""Early stopping: rows that a fit did not see choose how many of its rounds are kept.

Theorem: a secret coin sends each unit to the rows that are fitted or to those that choose; given its coin it is in one
    of the two, so a fit that stops early costs what one that does not costs [McSherry 2009, Thm 4; a mixture of pairs
    that are both dominated is dominated: Zhu, Dong & Wang 2022]
"""

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.learn.base import Estimator, Table
from sfumato.learn.bounded_rows import UNIT, UnitWeights
from sfumato.learn.spending import Spending
from sfumato.learn.tables import Matrix
from sfumato.noise.uniform import below_each

HELD_BACK = 5  # one unit of so many chooses


def hold_back(table: Table) -> NDArray[np.bool_]:
    """Which rows choose: those of units whose coin says so. All rows of a unit are on one side."""
    place = np.arange(len(table)) if table.weights is None else table.weights.units
    coins = below_each(np.full(int(place.max(initial=-1)) + 1, HELD_BACK, np.int64))
    return np.asarray((coins == 0)[place])


def take(table: Table, rows: NDArray[np.bool_]) -> Table:
    """Some rows, with the weights that they had."""
    own = table.weights
    return Table(table.X[rows], None, table.names, None if own is None else UnitWeights(own.weights[rows],
                                                                                        own.units[rows]))  # fmt: skip


def choose_rounds(estimator: Estimator, quality: Matrix, table: Table, spending: Spending) -> int:
    """The number of rounds with the largest sum of qualities, nearly: each in [0, 1], a column for each number."""
    rows = estimator.bound_rows(quality, table, math.sqrt(quality.shape[1]), 1.0)
    return spending.choose(rows.sum().tolist(), UNIT * rows.rows)
