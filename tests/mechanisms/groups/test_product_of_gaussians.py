"""Algorithm 1 of the open problem, noise on noise: divergences, density and draws."""

import json
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from sfumato import groups

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "groups.json").read_text(encoding="utf-8"))


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
