"""A noisy bound on the local sensitivity: how far that moves, and the loss of both noises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms.dependent import (
    NoisyBound,
    Quantile,
    Stars,
    Triangles,
)
from tests.mechanisms.dependent import brute
from tests.noise.sources import Recorded

L = sf.loss


@pytest.mark.parametrize("statistic", [Triangles(5), Stars(5)], ids=str)
def test_the_local_sensitivity_drifts_by_no_more_than_it_says(statistic):
    edges = brute.edges(5)
    local = [statistic.local([edge for i, edge in enumerate(edges) if code >> i & 1]) for code in range(1 << 10)]
    assert max(abs(local[code] - local[code ^ 1 << i]) for code in range(1 << 10) for i in range(10)) == statistic.drift


def test_a_noisy_bound_holds_and_its_loss_is_that_of_both_noises_and_delta():
    made = NoisyBound(
        Triangles(60), sf.DiscreteLaplace(2.0, source=Recorded("a")), sf.Laplace(2.0, source=Recorded("b")), 1e-6
    )
    pairs = np.random.default_rng(1).integers(0, 60, (900, 2))
    local, exact = Triangles(60).local(pairs), Triangles(60).value(pairs)
    found = [made.release(pairs) for _ in range(200)]
    assert all(local <= bound <= 58 for _, bound in found)  # 200·δ
    within = np.mean([abs(answer - exact) <= made.error(0.5, bound=bound) for answer, bound in found])
    assert within > 0.3  # below 1e-6 with other bits
    both = L.DiscreteLaplaceLoss(2.0) + L.LaplaceLoss(0.5)
    for eps in (0.0, 0.5, 1.0, 2.0):
        low = float(made.gate.failure) + both.delta(eps).upper
        assert low <= made.loss().delta(eps).upper * (1 + 1e-9)
    assert made.loss().delta(2.0).upper == pytest.approx(1e-6)


@given(bound=st.integers(1, 10**6))
def test_scaled_noise_is_never_too_small(bound):
    made = NoisyBound(Triangles(5), sf.Gaussian(2.0), sf.Gaussian(0.7), 1e-6)
    assert made.noise_for(bound).loss(bound).mu <= made.unit.loss(1).mu


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: NoisyBound(Quantile(0, 9), sf.Gaussian(1.0), sf.Gaussian(1.0), 1e-6),
        lambda: NoisyBound(Stars(9, 3), sf.Gaussian(1.0), sf.Gaussian(1.0), 1e-6),
        lambda: NoisyBound(Triangles(9), sf.Gaussian(1.0), sf.DiscreteLaplace(1.0), 1e-6),
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()
