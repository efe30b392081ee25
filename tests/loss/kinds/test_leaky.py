"""Losses that now and then give everything away: as one loss, in sums, and on a Gaussian ledger."""

import pytest

import sfumato as sf
from sfumato.loss.kinds.leaky import LeakyLoss

L = sf.loss
INNER = [L.GaussianLoss(0.447), L.DiscreteLaplaceLoss(1.0), 3 * L.LaplaceLoss(0.2)]


@pytest.mark.parametrize("inner", INNER, ids=str)
@pytest.mark.parametrize("leak", [1e-6, 0.1])
def test_a_sum_of_leaky_losses_is_as_sharp_as_one(inner, leak):
    """k leaky losses: everything with probability 1 − (1 − leak)^k, else k inner ones."""
    together = 1 - (1 - leak) ** 10
    for eps in (0.0, 0.5, 2.0):
        found, sure = (10 * LeakyLoss(inner, leak)).delta(eps), (10 * inner).delta(eps)
        low, high = (together + (1 - together) * side for side in (sure.lower, sure.upper))
        assert found.lower <= high * (1 + 1e-9) and low <= found.upper * (1 + 1e-9)
        assert found.upper - found.lower <= 2e-4 * found.upper


def test_leaky_losses_mix_with_others():
    mixed = LeakyLoss(L.GaussianLoss(0.3), 1e-3) + L.GaussianLoss(0.4)
    assert mixed.delta(1.0).upper == pytest.approx(1e-3 + 0.999 * L.GaussianLoss(0.5).delta(1.0).upper, rel=1e-4)
    nested = LeakyLoss(LeakyLoss(L.GaussianLoss(0.3), 1e-3), 1e-3)
    assert (2 * nested).delta(1.0).upper == pytest.approx(
        (4 * L.ApproxLoss(0, 1e-3) + 2 * L.GaussianLoss(0.3)).delta(1.0).upper
    )


@pytest.mark.parametrize("inner", INNER[:2], ids=str)
def test_the_price_at_a_slack_is_that_of_what_does_not_leak(inner):
    loss = LeakyLoss(inner, 1e-6)
    assert loss.gdp(1e-6).upper == pytest.approx(inner.gdp(0).upper, rel=1e-9)
    assert loss.gdp(2e-6).upper == pytest.approx(inner.gdp(1e-6 / (1 - 1e-6)).upper, rel=1e-5)
    assert loss.gdp(0.9e-6).lower > 1e300


@pytest.mark.parametrize("inner", [L.GaussianLoss(0.3), L.LaplaceLoss(0.2), L.BoundedRangeLoss(0.5)], ids=str)
def test_leaky_losses_compose_for_every_relation_and_direction(inner):
    about = type(inner)(
        *[getattr(inner, name) for name in ("mu", "eps") if hasattr(inner, name)], relation=sf.ReplaceOne
    )
    expected = (2 * LeakyLoss(inner, 1e-3) + L.GaussianLoss(0.1)).delta(0.3)
    replaced = 2 * LeakyLoss(about, 1e-3, relation=sf.ReplaceOne) + L.GaussianLoss(0.1, relation=sf.ReplaceOne)
    for loss in (replaced, (2 * LeakyLoss(inner, 1e-3) + L.GaussianLoss(0.1)).remove):
        assert loss.delta(0.3).upper == pytest.approx(expected.upper, rel=1e-3)
