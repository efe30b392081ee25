"""Numbers known from elsewhere lie inside our bounds, and our bounds are narrow."""

import json
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "accounting.json").read_text())
L = sf.loss


def sampled(rate, sigma, k):
    return k * sf.Poisson(rate).amplify(L.GaussianLoss(1 / sigma))


def distinct():
    parts = zip(np.linspace(0.01, 0.2, 100), np.geomspace(1e-12, 1e-9, 100), strict=True)
    return sum(L.ApproxLoss(float(eps), float(delta)) for eps, delta in parts)


def mix():
    gaussians = sum(L.GaussianLoss(1 / s) for s in np.linspace(20, 60, 50))
    laplaces = sum(L.LaplaceLoss(1 / b) for b in np.linspace(20, 80, 50))
    return gaussians + laplaces + 100 * L.RandomizedResponseLoss(0.05) + sampled(0.01, 1.0, 1000)


BUILD = {
    "gaussian": lambda mu, k: k * L.GaussianLoss(mu),
    "response": lambda eps, k: k * L.RandomizedResponseLoss(eps),
    "approx": lambda eps, delta, k=1: k * L.ApproxLoss(eps, delta),
    "laplace": lambda eps, k=1: k * L.LaplaceLoss(eps),
    "sampled": sampled,
    "distinct": distinct,
    "mix": mix,
    "pure": lambda eps: L.PureLoss(eps),
    "range": lambda eps: L.BoundedRangeLoss(eps),
    "discrete gaussian": lambda sigma, sensitivity: L.DiscreteGaussianLoss(sigma, sensitivity),
    "responses": lambda eps, k: k * L.RandomizedResponseLoss(eps),
    "sampled remove": lambda **params: sampled(**params).remove,
}


@pytest.mark.parametrize("row", GOLDEN["epsilons"], ids=lambda row: row["name"])
def test_epsilon_holds_the_known_value(row):
    parameters = dict(row["loss"])
    found = BUILD[parameters.pop("kind")](**parameters).epsilon(row["delta"])
    assert found.lower <= row["high"]
    assert row["low"] <= found.upper
    assert found.relative_gap <= row["gap"]


@pytest.mark.parametrize("row", GOLDEN["prices"], ids=lambda row: f"{row['kind']} {row['params']} {row['slack']}")
def test_the_price_on_a_gaussian_ledger_is_the_known_one(row):
    found = BUILD[row["kind"]](**row["params"]).gdp(row["slack"])
    assert found.lower <= row["mu"] + row["tol"]
    if row["kind"] == "discrete gaussian" and row["slack"] == 0:
        assert found.lower >= row["mu"] * 0.999  # from above nothing is proved at zero slack
        return
    assert row["mu"] - row["tol"] <= found.upper <= row["mu"] * (1 + 2e-6)
