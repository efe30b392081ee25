"""Contracts are kept, for every size, and certificates say how far from the best they are."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato import groups
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.groups.lower_bound import energy_margin, energy_margin_half, psi, scaled_psi
from sfumato.mechanisms.groups.transforms import kappa

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "groups.json").read_text(encoding="utf-8"))
ABSOLUTE = [groups.MeanError, groups.MeanErrorAtMost, groups.ProportionalError]
SIZES = [0, 1, 2, 5, 9, 10, 11, 20, 100, 10**4, 10**9, 10**15]


def table_adds(mechanism, x):
    """The most that a table adds to an error: (e^{os} − 1)·κe^{s²/2}·√(x² + c²), or x + a."""
    s, t = mechanism.sigma, mechanism.transform
    size = x + t.offset if isinstance(t, groups.Log) else math.hypot(x, t.scale)
    return math.expm1(mechanism.table.off * s) * kappa(s, mechanism.estimator) * math.exp(s * s / 2) * size


@pytest.mark.parametrize("kind", ABSOLUTE)
@pytest.mark.parametrize(("r", "floor"), [(0.002, 10), (0.05, 0.5), (0.05, 1e6), (0.5, 10), (0.99, 1e6)])
def test_mean_errors_are_kept_table_included_and_hardly_missed(kind, r, floor):
    contract = kind(r, floor)
    shares = [
        (contract.mechanism.absolute_error(x) + table_adds(contract.mechanism, x)) / contract.tolerance(x)
        for x in [*SIZES, floor]
    ]
    assert 0.998 < max(shares) <= 1


@settings(max_examples=8)  # a table is made for each
@given(r=st.floats(0.01, 0.9), floor=st.floats(0.1, 1e6), x=st.floats(0, 1e12), kind=st.sampled_from(ABSOLUTE))
def test_mean_errors_are_kept_at_any_size(r, floor, x, kind):
    contract = kind(r, floor)
    transform, sigma = contract.mechanism.transform, contract.mechanism.sigma
    assert transform.absolute_error(x, sigma, groups.Estimator.CLOSEST) <= contract.tolerance(x) * (1 + 1e-9)


@pytest.mark.parametrize("r", [0.01, 0.1, 0.9])
def test_root_mean_squares_are_kept(r):
    contract = groups.RootMeanSquareError(r, 10)
    for x in SIZES:
        spare = math.expm1(contract.mechanism.table.off * contract.mechanism.sigma) * math.exp(
            contract.mechanism.sigma**2
        )
        found = contract.mechanism.root_mean_square_error(x) + spare * math.hypot(x, contract.mechanism.transform.scale)
        assert 0.99 * contract.tolerance(x) < found <= contract.tolerance(x)


def test_draws_keep_the_contract():
    """200,000 draws a size: the mean of |x̂ − x| is within 6 standard errors, passed with less than 1e-8."""
    contract = groups.contract(relative_error=0.1, floor=10)
    for x in (0, 10, 500):
        found = np.abs(contract.release(np.full(200_000, x)) - x)
        assert abs(found.mean() - contract.mechanism.absolute_error(x)) < 6 * found.std() / math.sqrt(200_000)
        assert found.mean() < contract.tolerance(x) + 6 * found.std() / math.sqrt(200_000)


def test_an_empty_group_and_a_huge_one_have_answers():
    contract = groups.contract(0.05, 10)
    small, huge = contract.release([0, 10**15])
    assert abs(small) < 10 and abs(huge / 1e15 - 1) < 0.6
    assert float(contract.policy.v(0)) == float(contract.policy.v(1)) > float(contract.policy.v(2)) > 0
    assert float(contract.policy.v(10**15)) == float(contract.policy.v(10**20)) < 1e-20


@pytest.mark.parametrize(
    ("r", "says"),
    [(0, "cannot be private"), (1, "promises nothing"), (1.5, "promises nothing"), (1e-9, "0.0001 to 0.99"),
     (-0.1, "0.0001"), (math.nan, "0.0001"), ("5 %", "must be a number"), (True, "must be a number"),
     (0.995, "0.0001 to 0.99")],
)  # fmt: skip
def test_shares_that_make_no_sense_are_refused(r, says):
    for kind in (*ABSOLUTE, groups.RootMeanSquareError):
        with pytest.raises(InvalidParameter, match=says):
            kind(r, 10)


@pytest.mark.parametrize("floor", [0, -1, math.inf, math.nan, 1e8])
def test_floors_that_make_no_sense_are_refused(floor):
    with pytest.raises(InvalidParameter, match="floor"):
        groups.contract(0.05, floor)


def test_more_rows_cost_what_as_many_people_cost():
    one, five = groups.contract(0.05, 10), groups.contract(0.05, 10, rows=5)
    assert five.policy.member(1000).mu == pytest.approx(5 * one.policy.member(1000).mu, rel=0.01)
    assert five.certificate.ratio == one.certificate.ratio


# ---- lower bounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["lower_bound"]["values"], ids=lambda row: f"r = {row['r']}")
def test_the_lower_bound_is_the_ground_state(row):
    found = psi(row["r"])
    assert found.lower / 2 == pytest.approx(row["psi_half"], rel=2e-6 if row["r"] != 0.9 else 1e-6)
    assert found.lower / 2 <= row["psi_half"] * (1 + 1e-6)
    assert found.upper / 2 == pytest.approx(row["loggauss_opt"], rel=1e-9)


def test_energies_that_are_too_large_are_not_certified():
    """By differences on fine grids the energies are 34.2319 and 16124.97."""
    assert energy_margin(100.0, 34.231) > 0 and energy_margin(100.0, 34.233) < 0
    assert energy_margin(100.0, 99.9) is None and energy_margin(1.0, 2.0) is None
    assert energy_margin_half(1e6, 16124.9) > 0 and energy_margin_half(1e6, 16125.1) < 0


def test_small_errors_tend_to_the_airy_constant():
    """Below 1 % the bound is that of a smaller well, scaled: less than 1 % below the limit, and never above it."""
    limit = GOLDEN["airy"]["value"]
    for r in (1e-4, 0.005, 0.0099):
        assert 0.99 * limit < psi(r).lower * r * r < limit
    assert scaled_psi() * 1e-4 < psi(0.01).lower * 1e-4 < limit


@pytest.mark.parametrize(("r", "ratio"), [(0.1, 1.0205), (0.01, 1.0160), (0.2, 1.0348), (0.5, 1.1614)])
def test_a_contract_is_as_near_the_best_as_its_certificate_says(r, ratio):
    for kind in (groups.MeanError, groups.ProportionalError):
        found = kind(r, 10).certificate
        assert ratio - 1e-4 <= found.ideal / found.best.lower < ratio * 1.0003
        assert found.ratio < ratio * 1.0015  # with the table


def test_an_unbiased_contract_is_a_little_further():
    at_equal_error = next(v for v in GOLDEN["lower_bound"]["values"] if v["r"] == 0.1)
    assert at_equal_error["loggauss_unbiased"] / at_equal_error["psi_half"] == pytest.approx(1.0246, abs=1e-4)
    ours = groups.RootMeanSquareError(0.125916, 10)
    assert ours.large == pytest.approx(
        0.1, rel=1e-4
    ) and ours.certificate.ideal / ours.certificate.best.lower == pytest.approx(1.0246, abs=1e-4)


@pytest.mark.parametrize("kind", [groups.MeanError, groups.RootMeanSquareError, groups.ProportionalError])
@pytest.mark.parametrize("rows", [1, 4])
def test_no_large_group_is_above_the_limit_of_its_certificate(kind, rows):
    contract = kind(0.1, 10, rows)
    sizes = [int(10 ** (k / 31)) + j for k in range(4 * 31, 10 * 31) for j in (0, 1)]
    found = [
        (x / rows) ** 2 * contract.policy.v(x).upper / contract.certificate.limit * (1 - rows / x) ** 2 for x in sizes
    ]
    assert 0.999 < max(found) <= 1


def test_certificates_for_finite_sizes():
    """Over groups of a thousand to 10¹²; nothing is known over a short range."""
    certificate = groups.contract(0.1, 10).certificate
    assert certificate.ratio < certificate.averaged(1e3, 1e12) < 1.04
    assert certificate.averaged(100, 1e3) > certificate.averaged(100, 1e6)
    assert certificate.averaged(100, 110) == math.inf == certificate.averaged(1, 1e9)
    assert "of the best" in str(certificate)


def test_the_bound_that_no_mechanism_beats_is_the_lower_side():
    """float() of what is certified from below is the lower side: the upper one is only what some mechanism reaches."""
    found = psi(0.1)
    assert float(found) == found.lower == pytest.approx(62.0539, abs=1e-3)
    assert found.upper > 63
    best = groups.MeanError(0.1, 10).certificate.best
    assert float(best) == best.lower


def test_the_auditor_refutes_nothing_of_ours():
    contract = groups.MeanError(0.5, 2)

    class Rows:
        def many(self, value, n):
            return contract.release(np.full(n, value))

    for size in (0, 1, 2, 8):
        found = sf.audit.audit(Rows(), size, size + 1, loss=contract.policy.member(size), samples=60_000)
        assert not found.violated
        assert sf.audit.audit(Rows(), size, size + 1, loss=sf.loss.GaussianLoss(0.0), samples=60_000).violated
