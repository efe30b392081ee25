"""Facts of losses are shared by equal losses, and yet each is itself."""

import pytest

import sfumato.loss as L  # noqa: N812
from sfumato.loss.compose.facts import facts
from sfumato.sampling import Poisson


@pytest.mark.parametrize(
    "make",
    [
        lambda: L.GaussianLoss(0.37),
        lambda: L.LaplaceLoss(0.21),
        lambda: 7 * L.LaplaceLoss(0.21) + L.GaussianLoss(0.37),
    ],
)
def test_a_symmetric_loss_that_is_made_again_is_its_own_reverse(make):
    """Otherwise both directions of a sum would be computed, and found equal."""
    for loss in (make(), make()):
        assert facts(loss).reverse is loss
        assert facts(loss).attained is loss


def test_a_sum_of_a_loss_that_is_made_again_is_composed_once():
    for _ in range(2):
        step = Poisson(rate=0.01).amplify(L.GaussianLoss(1.25))
        total = 1000 * step
        assert facts(step).attained is step
        assert facts(total).attained is total
        assert facts(total).reverse != total
