"""The two algorithms of the open problem: what they cost, by closed forms and by numbers known from elsewhere."""

import json
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import groups
from sfumato.errors import InvalidParameter
from tests.audit.wrong import Wrong

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "groups.json").read_text(encoding="utf-8"))


# ---- noise in proportion ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["proportional_renyi"]["values"], ids=str)
def test_divergences_of_proportional_noise(row):
    x, r, a = row["x"], row["r"], row["alpha"]
    for p, q, wanted in ((x, x + 1, row["fwd"]), (x + 1, x, row["rev"])):
        assert groups.ScaledPair(p, q, r).renyi(a) == pytest.approx(float(wanted), rel=1e-10)


@pytest.mark.parametrize("row", GOLDEN["proportional_delta"]["values"], ids=str)
def test_the_profile_of_proportional_noise(row):
    x, r, eps = row["x"], row["r"], row["eps"]
    for p, q, wanted in ((x, x + 1, row["fwd"]), (x + 1, x, row["rev"])):
        pair = groups.ScaledPair(p, q, r)
        assert pair.delta(eps) == pytest.approx(float(wanted), rel=1e-9, abs=1e-15)
        tabulated = pair.loss().remove.delta(eps)
        assert tabulated.lower * (1 - 1e-6) <= float(wanted) + 1e-14 and float(wanted) <= tabulated.upper


@pytest.mark.parametrize("row", GOLDEN["proportional_truncated"]["values"], ids=str)
def test_truncated_concentrated_privacy_of_proportional_noise(row):
    mechanism, x = groups.ProportionalGaussian(row["r"]), row["x"]
    order = row["tau"] * x * x / (2 * x - 1)
    assert order == pytest.approx(float(row["omega"]), rel=1e-8)
    found = mechanism.truncated(x, order)
    assert found.upper == pytest.approx(float(row["rho"]), rel=1e-8)
    for a in np.linspace(1.0001, order, 40):
        for p, q in ((x, x - 1), (x - 1, x), (x, x + 1), (x + 1, x)):
            assert groups.ScaledPair(p, q, row["r"]).renyi(a) <= found.upper * a * (1 + 1e-9)


@given(x=st.integers(2, 10**6), share=st.floats(0.01, 0.99), r=st.floats(0.01, 1))
def test_divergence_over_order_rises_up_to_the_last_order(x, share, r):
    last = float(groups.ProportionalGaussian(r).last_order(x))
    pair = groups.ScaledPair(x, x - 1, r)
    a = 1 + (last - 1) * share
    b = a + (last - a) / 2
    assert pair.renyi(a) / a <= pair.renyi(b) / b * (1 + 1e-9)
    assert pair.renyi(last * (1 + 1e-9)) == math.inf
    assert groups.ScaledPair(x - 1, x, r).renyi(a) <= pair.renyi(a) * (1 + 1e-9) + 1e-12


def test_proportional_noise_is_never_priced_as_zcdp():
    mechanism = groups.ProportionalGaussian(0.1)
    assert mechanism.policy.v(1000).lower == math.inf
    assert mechanism.loss().delta(50.0).upper == 1.0
    assert mechanism.delta(1, 10.0).lower == 1.0 and mechanism.policy.delta(0, 10.0).lower > 1 - 1e-12
    assert mechanism.delta(100, 0.5).upper == pytest.approx(mechanism.policy.delta(100, 0.5).upper, rel=1e-4)
    with pytest.raises(InvalidParameter, match=r"infinite from order 50\.25"):
        mechanism.truncated(100, 51.0)


# ---- noise on noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["product"]["values"], ids=lambda row: f"{row['x']}, {row['r']}, {row['rho']}")
def test_divergences_of_noise_on_noise(row):
    mechanism = groups.ProductOfGaussians(row["rho"], row["r"])
    laws = mechanism.law(row["x"]), mechanism.law(row["x"] + 1)
    there = groups.ProductPair(*laws)
    assert there.missing < 1e-11
    back = groups.ProductPair(laws[1], laws[0])
    vars(back)["logs"] = (there.logs[1], there.logs[0], there.logs[2])  # the same grid
    assert there.renyi(1) == pytest.approx(row["KL"][0], rel=1e-8)
    for a, wanted in row["renyi"].items():
        if float(a) <= 32:
            assert (there.renyi(float(a)), back.renyi(float(a))) == pytest.approx(wanted, rel=1e-7)
            assert max(there.renyi(float(a)), back.renyi(float(a))) <= float(a) * row["rho"]
    for eps in ("0.05", "0.5"):
        assert there.delta(float(eps)) == pytest.approx(row["hs"][eps][0], abs=6e-5)


def bessel_series(y, x, sigma, r):
    """The double series of Cui et al. 2016, Theorem 2.1."""
    mp.mp.dps = 30
    y, x, sigma, r = map(mp.mpf, (y, x, sigma, r))
    total, bessel = mp.mpf(0), [mp.besselk(k, abs(y) / (sigma * r)) for k in range(45)]
    for n in range(45):
        for m in range(2 * n + 1):
            total += (
                mp.binomial(2 * n, m) * x**m * y ** (2 * n - m) * abs(y) ** (m - n)
                / (mp.pi * mp.factorial(2 * n) * sigma ** (n + m + 1) * r ** (3 * n - m + 1))
                * bessel[abs(m - n)]
            )  # fmt: skip
    return total * mp.exp(-(x**2) / (2 * sigma**2) - 1 / (2 * r**2))


def test_the_density_is_the_series_of_bessel_functions_to_twelve_digits():
    y = np.array([1.3, -0.4])
    found = np.exp(groups.Product(1.0, 1.0, 0.5).log_density(y))
    assert found == pytest.approx([float(bessel_series(at, 1, 1, 0.5)) for at in y], rel=1e-12)
    assert found == pytest.approx([0.282998747214, 0.14224307473], rel=1e-11)


def test_large_orders_of_noise_on_noise_cost_half_of_rho_however_large_the_group():
    mechanism = groups.ProductOfGaussians(0.5, 0.1)
    for x, order in ((10, 256),):
        slope = groups.ProductPair(mechanism.law(x + 1), mechanism.law(x), largest=order).renyi(order) / order
        assert 0.9 * 0.25 < slope < 1.05 * 0.25
        assert mechanism.policy.v(x).lower == 0.25 and mechanism.policy.v(x).upper == 0.5


def test_draws_of_noise_on_noise_have_its_moments():
    """4,000 draws: within 6 standard errors, but for 1e-8; whole numbers add 1/12 to the variance."""
    found = groups.ProductOfGaussians(0.5, 0.1).release(np.full(4000, 30))
    variance = 0.01 * 900 + 1.01 + 1 / 12
    assert abs(found.mean() - 30) < 6 * math.sqrt(variance / 4000)
    assert abs(found.var() / variance - 1) < 6 * math.sqrt(2.5 / 4000)


# ---- the auditor -----------------------------------------------------------------------------------------------------


def proportional(r):
    """The algorithm as it is written, in whole numbers."""
    return lambda x, n, rng: np.rint(rng.normal(x, r * x, size=n))


def test_the_auditor_refutes_what_was_claimed_of_proportional_noise():
    mechanism = groups.ProportionalGaussian(1.0)
    draws = Wrong(proportional(1.0), np.random.default_rng(3))
    claim, truth = mechanism.claimed(2), mechanism.policy.member(2)
    found = sf.audit.audit(draws, 3, 2, loss=claim, samples=60_000)
    assert found.violated
    assert not sf.audit.audit(draws, 3, 2, loss=truth, samples=60_000).violated


def test_the_auditor_refutes_nothing_of_ours():
    contract = groups.MeanError(0.5, 2)

    class Rows:
        def many(self, value, n):
            return contract.release(np.full(n, value))

    for size in (0, 1, 2, 8):
        found = sf.audit.audit(Rows(), size, size + 1, loss=contract.policy.member(size), samples=60_000)
        assert not found.violated
        assert sf.audit.audit(Rows(), size, size + 1, loss=sf.loss.GaussianLoss(0.0), samples=60_000).violated
