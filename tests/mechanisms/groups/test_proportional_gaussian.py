"""Algorithm 2 of the open problem, proportional noise: closed forms, and what the auditor finds."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import groups
from sfumato.errors import InvalidParameter
from tests.audit.wrong import Wrong

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "groups.json").read_text(encoding="utf-8"))


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
