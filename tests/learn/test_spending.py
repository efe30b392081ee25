"""What blocks of sums cost where one unit may be in several of them."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.learn import spending
from sfumato.learn.bounded_rows import UNIT
from sfumato.learn.spending import PureSpending
from sfumato.sensitivity import AddRemove, Sensitivity


@pytest.mark.parametrize("eps", [0.1, 3.0])
@pytest.mark.parametrize("blocks", [2, 10])
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_a_unit_with_a_row_in_every_block_costs_what_one_row_costs(eps, blocks, relation, monkeypatch):
    """Under pure ε: joint noise rounds the cost of each block's move up, and the sum must stay below ε."""
    made = []
    own = spending.joint
    monkeypatch.setattr(spending, "joint", lambda *args: made.append(own(*args)) or made[-1])
    columns = 5
    moved = Sensitivity(l0=columns, l2=3 * UNIT, linf=UNIT)
    PureSpending(eps, relation).add_noise_by_block(np.zeros((blocks, columns), np.int64), moved)
    fold = 1 if relation is AddRemove else 2
    for share in (Fraction(1, blocks), Fraction(1, 7 * blocks)):
        each = made[0].law.cost([int(UNIT * share)] * columns)
        assert fold * blocks * each <= eps
    assert fold * made[0].law.cost([UNIT] * columns) == pytest.approx(eps, rel=0.01)
