"""Prices, budgets and pure shares against numbers computed independently with forty digits (golden/ledger.json)."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.ledger import Amount, Budget, PureBudget, ZcdpBudget
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.rounding import sqrt_up

L = sf.loss
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "ledger.json").read_text())


def sampled(q, sigma, k, direction):
    loss = k * sf.Poisson(float(Fraction(q))).amplify(L.GaussianLoss(1 / sigma))
    return loss.remove if direction == "remove" else loss.add


LOSSES = {
    "pure / randomized response": lambda p: L.PureLoss(p["eps"]),
    "Laplace": lambda p: L.LaplaceLoss(p["eps"]),
    "exponential mechanism, range eps": lambda p: L.BoundedRangeLoss(p["eps"]),
    "(eps,delta)": lambda p: L.ApproxLoss(p["eps"], p["delta"]),
    "discrete Gaussian (one integer)": lambda p: L.DiscreteGaussianLoss(p["sigma"], p["sensitivity"]),
    "Poisson-subsampled Gaussian, composed": lambda p: sampled(**p),
    "100 x randomized response 0.1, composed first": lambda p: p["k"] * L.RandomizedResponseLoss(p["eps"]),
}
ROWS = [row for row in GOLDEN["prices"] if row["loss"] in LOSSES and row.get("kind") != "lower bound only"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['loss']} {row['params']} {row['slack']}")
def test_the_price_is_safe_and_within_a_millionth(row):
    found = LOSSES[row["loss"]](row["params"]).gdp(row["slack"]).upper
    assert row["mu"] - row["tol"] <= found <= row["mu"] * (1 + 1e-6)


def test_without_slack_training_costs_more_than_anybody_has():
    (row,) = [row for row in GOLDEN["prices"] if row.get("kind") == "lower bound only"]
    assert LOSSES[row["loss"]](row["params"]).gdp(0.0).upper >= row["mu"]


def test_gaussian_keys_and_gaussian_tests_cost_what_their_pair_says():
    for row in GOLDEN["prices"]:
        p, slack = row["params"], row["slack"]
        if row["loss"].startswith("Gaussian-threshold"):
            mu = Fraction(p["L0"]) / Fraction(str(p["sigma"])) ** 2
            loss = LeakyLoss(L.GaussianLoss(p["L0"] ** 0.5 / p["sigma"]), slack)
        elif row["loss"] == "stable release, Gaussian test":
            mu = 1 / Fraction(str(p["sigma"])) ** 2
            loss = LeakyLoss(L.GaussianLoss(1 / p["sigma"]), slack)
        else:
            continue
        cost = Budget(4.0, 1e-3).price(loss)
        assert cost.leak == -(-Fraction(slack) * 10**19 // 1)
        assert abs(cost.gauss - mu * 10**15) <= 2 + 1e-15 * mu * 10**15 * 10
        assert abs(sqrt_up(cost.real("gauss")) - row["mu"]) <= 1e-9


@pytest.mark.parametrize("row", GOLDEN["budgets"]["rows"], ids=lambda row: f"{row['eps']} {row['delta']}")
def test_a_budget_holds_the_most_that_it_may(row):
    found = Budget(float(row["eps"]), float(row["delta"]), slack=float(row["Delta"])).amount
    assert row["mu2_units"] * (1 - 1e-11) - 2 <= found.gauss <= row["mu2_units"]
    assert 0 <= row["delta_units"] - found.leak <= 1  # δ/2 as a double may be a little less


@pytest.mark.parametrize("row", GOLDEN["pure_share"]["B_left"], ids=lambda row: row["pure"])
def test_what_a_pure_share_leaves(row):
    found = Budget(float(row["eps"]), row["delta"], slack=row["Delta"], pure=float(row["pure"]))
    b = sqrt_up(found.amount.real("gauss"))
    assert row["B"] * (1 - 3e-6) <= b <= row["B"] * (1 + 1e-11)


@pytest.mark.parametrize("row", GOLDEN["pure_share"]["profile"])
def test_the_profile_of_a_pure_share(row):
    amount = Amount(
        gauss=round(row["B"] ** 2 * 10**15), pure=round(row["pure"] * 10**15), leak=round(row["Delta"] * 1e19)
    )
    found = Budget(1.0, 1e-6).loss_of(amount).delta(row["eps"])
    assert found.lower <= row["delta"] * (1 + 1e-9)
    assert found.upper >= row["delta"] * (1 - 1e-9)
    assert found.upper <= row["delta"] * (1 + 1e-4)


def kernel(eps, delta):
    """How likely a key with d people is kept, at most: π₀ = 0, then as (ε, δ) allows."""
    kept = [0.0]
    while kept[-1] < 1:
        p = kept[-1]
        kept.append(min(math.exp(eps) * p + delta, 1 - math.exp(-eps) * (1 - p - delta), 1.0))
    return kept


@pytest.mark.parametrize("row", [row for row in GOLDEN["prices"] if row["loss"] == "stable release, optimal kernel"])
def test_the_optimal_kernel_of_key_selection_costs_less_than_pure_noise(row):
    kept = kernel(row["params"]["eps"], row["params"]["delta"])
    pairs = [L.FinitePairLoss((p, 1 - p), (q, 1 - q)) for p, q in itertools.pairwise(kept)]
    found = L.either(*pairs).gdp(row["slack"] * (1 + 1e-9)).upper  # δ as a difference of doubles is a little more
    assert row["mu"] - row["tol"] <= found <= row["mu"] * (1 + 1e-6)


counters = st.one_of(st.integers(1, 10**6), st.integers(2**53, 2**63 - 1))


@given(spent=counters, leak=st.integers(0, 10**9))
def test_a_loss_that_is_said_of_what_was_spent_is_never_below_it(spent, leak):
    """Doubles are coarser than counters."""
    for promise, name, said in (
        (PureBudget(1.0, 1e-6), "pure", lambda loss: loss.eps),
        (ZcdpBudget(1.0, 1e-6), "rho", lambda loss: loss.rho),
        (Budget(1.0, 1e-6), "gauss", lambda loss: loss.mu**2),
    ):
        amount = Amount(**{name: spent, "leak": leak})
        loss = promise.loss_of(amount)
        inner = loss.inner if isinstance(loss, LeakyLoss) else loss
        exact = amount.real(name)
        if name == "gauss":
            assert Fraction(inner.mu) ** 2 >= exact
        else:
            assert Fraction(said(inner)) >= exact
        assert Fraction(max(loss.leak())) >= amount.real("leak")
