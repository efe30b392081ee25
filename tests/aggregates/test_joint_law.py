"""The law of joint noise as a mean over boxes: its chances, and the intervals that are computed from it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.aggregates import joint_law as boxes
from sfumato.aggregates.intervals import spread
from sfumato.aggregates.joint_law import Boxes
from sfumato.mechanisms.additive.joint_laplace import JointLaplace
from tests.noise.sources import Recorded
from tests.noise.test_joint_laplace import points

F = Fraction


SMALL = [
    (JointLaplace(1.0, (2, 5), (F(3, 8), 0)), (F(5, 2), F(1))),
    (JointLaplace(3.0, (2, 5), (F(3, 8), 0)), (F(1), F(-1, 2))),
    (JointLaplace(2.0, (3, 2)), (F(1, 3), F(7, 2))),
    (JointLaplace(2.0, (1, 3, 2), (F(1, 4), 0, 0)), (F(3), F(1), F(0))),
    (JointLaplace(3.0, (1, 3, 2), (F(1, 4), 0, 0)), (F(3), F(1), F(-2))),
]


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("joint", "factors"), SMALL, ids=repr)
def test_the_coverage_of_a_sum_is_that_of_the_law(joint, factors, confidence):
    """Up to the boxes that are left out; and the radius is the least but for these."""
    found = spread(tuple(zip(factors, joint.each, strict=True)), confidence)
    every, p = points(joint.law, 25.0)
    sums = np.abs(every @ np.array([float(c) for c in factors]))
    held = p[sums <= found.radius * (1 + 1e-12)].sum()
    assert held - 3 * boxes.MISSED <= found.coverage <= held + 1e-6
    assert p[sums < found.radius * (1 - 1e-12)].sum() < confidence + 3 * boxes.MISSED


@pytest.mark.parametrize("eps", [0.01, 0.0004])
def test_where_levels_are_taken_together_radii_are_a_little_larger_and_never_too_small(eps):
    """Scaled, they are those of a larger ε; recorded bits, 5 σ."""
    joint = JointLaplace(eps, (2, 50), (F(3, 8), 0), source=Recorded(f"together {eps}"))
    assert Boxes.of(joint.law).spare
    found = spread(((F(25), joint.each[0]), (F(1), joint.each[1])), 0.95)
    finer = JointLaplace(0.2, (200, 5000), (F(3, 8), 0))
    near = spread(((F(25), finer.each[0]), (F(1), finer.each[1])), 0.95)
    assert near.radius / 100 * 0.2 / eps < found.radius < 1.02 * near.radius / 100 * 0.2 / eps
    n = 40_000
    noise = joint.release(np.zeros((n, 2), np.int64))
    held = (np.abs(25 * noise[:, 0] + noise[:, 1]) <= found.radius).mean()
    assert found.coverage - 5 * math.sqrt(0.0475 / n) < held < found.coverage + 0.003 + 5 * math.sqrt(0.0475 / n)


def test_boxes_have_the_chances_that_balls_know():
    for joint, _ in SMALL:
        law, found = joint.law, Boxes.of(joint.law)
        above = [float(boxes.level_tail(law, r, 64)) for r in range(len(found.chances))]
        chances = -np.diff([1.0, *above])
        assert found.chances == pytest.approx(chances, rel=2 * boxes.MISSED, abs=1e-12)
        assert (found.chances <= chances + 1e-15).all()
        assert not found.spare


def test_levels_that_are_taken_together_are_taken_as_the_highest():
    """No box may stand for levels above its own: Theorem 5 goes one way only."""
    law = JointLaplace(0.001, (2, 50), (F(3, 8), 0)).law
    found = Boxes.of(law)
    assert law.levels == 1
    sums = np.cumsum(found.chances)
    for level, chance in list(zip((found.sides[:, 0] / 2).tolist(), sums.tolist(), strict=True))[::16]:
        assert chance == pytest.approx(1 - float(boxes.level_tail(law, int(level), 64)), abs=1e-12)
    assert 1 - 2 * boxes.MISSED < sums[-1] < 1
