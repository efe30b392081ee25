"""Joint noise as a mechanism: what it costs, what it saves, and what an auditor finds."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanisms.additive.joint_laplace import JointLaplace
from sfumato.noise import Margin, radius
from tests.noise.sources import Recorded

CORNERS = [(1, 3, 2), (1, -3, 2), (-1, 3, -2), (1, 0, 0), (0, 3, 0)]


class Rows:
    """Many answers at once."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def many(self, value, n):
        return self.mechanism.release(np.full((n, len(value)), value))


def audited(claimed, true, move):
    """Recorded bits; with others, noise that keeps its promise would be refuted with less than 0.001."""
    mechanism = JointLaplace(true, (1, 3, 2), (0.25, 0, 0), source=Recorded(f"audited {true} {move}"))
    return sf.audit.audit(Rows(mechanism), (0, 0, 0), move, loss=sf.loss.PureLoss(claimed), samples=1 << 14)


@pytest.mark.parametrize("move", CORNERS)
def test_no_move_in_the_box_is_seen_more_than_said(move):
    assert not audited(1.0, 1.0, move).violated


@pytest.mark.parametrize("move", CORNERS[:3])
def test_too_little_noise_is_noticed(move):
    assert audited(1.0, 2.5, move).violated


def test_a_move_out_of_the_box_is_noticed():
    assert audited(1.0, 1.0, (3, 9, 6)).violated


def test_the_loss_is_pure_and_rows_add_up():
    mechanism = JointLaplace(0.5, (1, 3))
    assert mechanism.loss() == sf.loss.PureLoss(0.5)
    assert (5 * mechanism.loss()).epsilon(0.0).upper == pytest.approx(2.5)


@pytest.mark.parametrize("change", [(1, 0), (0, 1), (1, 1), (2, 5)])
def test_what_a_change_costs_is_rounded_up(change):
    mechanism = JointLaplace(0.7, (3, 7))
    assert Fraction(mechanism.loss_of_move(change).eps) >= mechanism.law.cost(change)


def mean_size(law, place):
    """E|z|, from tails."""
    total, m = 0.0, 0
    while (tail := float(Margin(law, place).beyond(m, 64))) > 1e-12:
        total, m = total + tail, m + 1
    return total


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_noise_grows_with_half_of_the_number_of_parts(parts):
    """(d + 1)/2 where a divided ε gives d; a little more for levels."""
    law = JointLaplace(0.2, (1,) * parts).law
    assert mean_size(law, 0) * 0.2 == pytest.approx((parts + 1) / 2, rel=0.01)


def test_a_favour_is_worth_what_the_theorem_says():
    law, x = JointLaplace(0.2, (1, 2), (Fraction(3, 8), 0)).law, 1.6
    assert mean_size(law, 0) * 0.2 == pytest.approx(1 + 1 / (1 + x), rel=0.01)
    assert mean_size(law, 1) * 0.1 == pytest.approx(x + 1 / (1 + x), rel=0.01)


def test_the_error_of_one_number_is_the_least_that_holds():
    for one in JointLaplace(1.0, (2, 5, 3), (0.25, 0, 0)).each:
        m = one.error(0.9)
        assert m == radius(one.law(), 0.9)
        assert float(one.law().beyond(m, 64)) <= 0.1 < float(one.law().beyond(m - 1, 64))


def test_a_move_costs_its_norm_and_never_more_than_epsilon_inside_the_box():
    mechanism = JointLaplace(1.0, (2, 5), (0.25, 0))
    for change in [(2, 5), (-2, 0), (2, -5)]:
        assert mechanism.loss_of_move(change).eps == 1.0
    assert 0.5 < mechanism.loss_of_move((1, 3)).eps < 1.0
    assert mechanism.loss_of_move((4, 10)).eps == 2.0


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_replay_prices_every_row_that_moves(rows):
    mechanism = JointLaplace(0.5, (1, 3))
    moved = np.zeros((5, 2), np.int64)
    moved[:rows] = [1, -3]
    found = sf.audit.replay(mechanism, np.zeros((5, 2), np.int64), moved, 2 * mechanism.loss())
    assert found.violated == (rows > 2)
    wide = sf.audit.replay(mechanism, [0, 0], [2, 0], mechanism.loss())
    assert wide.violated
