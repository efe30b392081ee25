"""Group-wise losses: guarantees by size, which add up, and why a budget per group is unsound."""

import math

import pytest

import sfumato as sf
from sfumato import groups
from sfumato.errors import InvalidParameter

POLICY = groups.contract(0.05, 10).policy


def test_members_of_larger_groups_are_told_less_about():
    sizes = (0, 10, 100, 1000, 10**6)
    epsilons = [POLICY.epsilon(size, 1e-6).upper for size in sizes]
    assert epsilons == sorted(epsilons, reverse=True) and epsilons[0] > 8 and epsilons[-1] < 1e-4
    assert POLICY.trade_off(1000, 0.05).lower > POLICY.trade_off(10, 0.05).lower
    assert POLICY.delta(1000, 0.1).upper < POLICY.delta(100, 0.1).lower


def test_the_fallback_covers_every_size():
    everyone = POLICY.everyone()
    for size in (0, 1, 2, 17, 10**15):
        assert POLICY.member(size).mu <= everyone.mu
    assert everyone == groups.contract(0.05, 10).mechanism.loss()


def test_losses_of_a_group_add_up():
    other = groups.RootMeanSquareError(0.2, 50).policy
    both = POLICY + other
    for size in (0, 30, 5000):
        assert both.v(size).upper == pytest.approx(POLICY.v(size).upper + other.v(size).upper, rel=1e-12)
        assert both.v(size).lower <= POLICY.v(size).upper + other.v(size).upper <= both.v(size).upper * (1 + 1e-15)
        assert both.member(size).delta(0.5).upper >= POLICY.member(size).delta(0.5).lower
        mu = math.hypot(POLICY.member(size).mu, other.member(size).mu)
        assert both.member(size).delta(0.7).upper == pytest.approx(float(sf.loss.GaussianLoss(mu).delta(0.7)), rel=1e-9)
    assert (3 * POLICY).v(40).upper == pytest.approx(3 * POLICY.v(40).upper, rel=1e-12)


def test_who_is_in_several_groups_is_told_about_by_each():
    found = POLICY.across([10, 100, 100])
    mus = [POLICY.member(size).mu for size in (10, 100, 100)]
    assert found.delta(1.0).upper == pytest.approx(float(sf.loss.GaussianLoss(math.hypot(*mus)).delta(1.0)), rel=1e-9)
    assert POLICY.across([]).delta(0.0).upper == 0


@pytest.mark.parametrize("size", [-1, 1.5, math.nan, "many"])
def test_sizes_are_whole_numbers(size):
    with pytest.raises(InvalidParameter):
        POLICY.v(size)


def test_a_policy_is_made_of_policies():
    with pytest.raises(InvalidParameter, match="at least one Policy"):
        groups.GroupwiseLoss(())
    with pytest.raises(InvalidParameter, match=r"Transform of sf\.groups"):
        groups.Transformed(math.log, 1.0)


def test_a_filter_for_each_group_would_tell_its_size():
    """The counter-example of docs/larger-groups.md: a group is dropped when its own Σμ² is spent.

    Between 100 and 101 people the 21st answer is given or not, for certain: no noise hides that.
    """
    here, there = (POLICY.member(size).mu ** 2 for size in (100, 101))
    budget = 21 * (here + there) / 2
    assert (math.floor(budget / here), math.floor(budget / there)) == (20, 21)
