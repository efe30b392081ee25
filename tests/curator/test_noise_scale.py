"""The noise that is drawn is that which was charged: scales are read where bits become numbers, and compared exactly.

Every question goes through `Curator.ask`. A recorder stands at the samplers, below all mechanisms, and notes the laws
that were really drawn from; the ledger says what was charged; how far one patient moves a number is written here by
hand, from the policy alone (two wards, three visits, stays from 0 to 60 in steps of 1/8). No statistics: noise that is
one part in 10⁹ too small fails, and noise that is one part in a million too large does.
"""

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.aggregates import price as currency
from sfumato.curator import Curator, offer
from sfumato.loss.kinds.bounded_range import BoundedRangeLoss
from sfumato.mechanisms.additive import discrete_laplace as geometric
from sfumato.mechanisms.additive import gaussian, joint_laplace
from sfumato.mechanisms.choice import quantile
from sfumato.mechanisms.groups import transformed
from sfumato.mechanisms.groups.relative_error import absolute_sigma
from sfumato.mechanisms.keys.threshold_selection import PREC, leak_probability, threshold
from sfumato.noise import DiscreteLaplace, Rounded, sampler
from sfumato.noise.balls import ball, precision
from sfumato.noise.gaussian import rounded_gaussian
from sfumato.noise.joint_laplace import Level
from sfumato.noise.lazy import Draw
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

PURE = POLICY.replace("delta = 1e-6", 'kind = "pure"')
BOTH = {"gaussian": POLICY, "pure": PURE}
POINTS = 481  # stays that there can be
LOOKS = 2 * ((POINTS - 1).bit_length() + 1).bit_length()  # for the two ends of a quantile's interval
ROWS, STEPS, GROUPS = 3, 3 * 30 * 8, 2  # visits, eighths of days about the middle, wards of one patient


class Recorder:
    """Laws that were drawn from, in order, each once; rates of choices by rank; draws at a scale of their own."""

    def __init__(self, patch):
        self.laws, self.rates, self.draws = {}, [], []
        block, one, run, rounded = (
            sampler.Sampler._block,
            sampler.Sampler.one,
            quantile.select_run,
            Draw.round_to_integer,
        )

        def blocks(its, values, start, beyond):
            self.laws[its.law] = None
            return block(its, values, start, beyond)

        def ones(its):
            self.laws[its.law] = None
            return one(its)

        def runs(scores, counts, rate, **more):
            self.rates.append(Fraction(rate))
            return run(scores, counts, rate, **more)

        def at_scale(its, value, scale):
            self.draws.append((its.formula, scale))
            return rounded(its, value, scale)

        patch.setattr(sampler.Sampler, "_block", blocks)
        patch.setattr(sampler.Sampler, "one", ones)
        patch.setattr(quantile, "select_run", runs)
        patch.setattr(Draw, "round_to_integer", at_scale)

    @property
    def sigmas(self):
        return [Fraction(law.density.sigma) for law in self.laws if isinstance(law, Rounded)]

    @property
    def scales(self):
        return [Fraction(law.scale) for law in self.laws if isinstance(law, DiscreteLaplace)]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    return built(tmp_path_factory.mktemp("clinic") / "clinic.duckdb")


@pytest.fixture
def asked(clinic, monkeypatch, tmp_path):
    """(kind of budget, question) ↦ what was drawn, what was charged."""

    def ask(kind, sql, **how):
        place = tmp_path / "clinic.duckdb"
        place.write_bytes(clinic.read_bytes())
        curator = Curator.open(place, Policy.read(BOTH[kind]))
        recorder = Recorder(monkeypatch)
        curator.ask(sql, **{"epsilon": 1.0, **how})
        (entry,) = [entry for entry in curator.ledger.history() if entry.content["kind"] == "charged"]
        return recorder, json.loads(entry.content["loss"])

    return ask


def adds_up(parts, whole):
    """Do the prices of the parts add up to what was charged: never more, and hardly less?"""
    spent = sum(parts, Fraction(0))
    assert spent <= Fraction(whole), "more is told than was charged: noise is too small"
    assert spent >= Fraction(whole) * (1 - Fraction(1, 10**6)), "noise is larger than its price says"


# ---- sums and counts ------------------------------------------------------------------------------------------------

SUMS = [
    ("SELECT COUNT(*) FROM visits", 1, [ROWS]),
    ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", GROUPS, [ROWS]),
    ("SELECT ward, COUNT(*), SUM(stay) FROM visits GROUP BY ward", GROUPS, [ROWS, STEPS]),
    ("SELECT AVG(stay) FROM visits", 1, [STEPS, ROWS]),
    ("SELECT COUNT(DISTINCT patient_id) FROM visits", 1, [1]),
    ("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", GROUPS, [1, 1]),  # visits are 2 ± 1 to a patient
]


@pytest.mark.parametrize(("sql", "groups", "sizes"), SUMS)
def test_gaussian_noise_has_the_scale_that_was_charged(asked, sql, groups, sizes):
    found, loss = asked("gaussian", sql)
    assert len(found.laws) == len(sizes) == len(found.sigmas)
    mu = loss.get("inner", loss)["mu"]
    adds_up([groups * (size / sigma) ** 2 for size, sigma in zip(sizes, found.sigmas, strict=True)], Fraction(mu) ** 2)


@pytest.mark.parametrize(("sql", "groups", "sizes"), [one for one in SUMS if "diagnosis" not in one[0]])
def test_pure_noise_has_the_scale_that_was_charged(asked, sql, groups, sizes):
    """Alone: discrete Laplace. Together: a level, and discrete Laplace for parts that are favoured."""
    found, loss = asked("pure", sql)
    levels = [law.rate * law.levels for law in found.laws if isinstance(law, Level)]
    assert len(levels) == (len(sizes) > 1) and len(found.laws) == len(levels) + len(found.scales)
    sides = [law.sizes for law in found.laws if isinstance(law, Level)]
    favoured = [size for size in sizes if not sides or size not in sides[0]]
    each = [size / scale for size, scale in zip(favoured, found.scales, strict=True)]
    adds_up([groups * one for one in (*levels, *each)], loss["eps"])


def test_an_error_that_was_asked_for_is_charged_for_the_noise_that_gives_it(asked):
    found, loss = asked("gaussian", "SELECT COUNT(*) FROM visits", epsilon=None, error=40)
    adds_up([(ROWS / sigma) ** 2 for sigma in found.sigmas], Fraction(loss["mu"]) ** 2)


# ---- keys -----------------------------------------------------------------------------------------------------------


def test_private_keys_leak_what_was_charged(clinic, asked):
    """The threshold belongs to the noise that is drawn on numbers of patients: one lower would leak more."""
    sql = "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis"
    found, loss = asked("gaussian", sql)
    offered = Curator.open(clinic, Policy.read(POLICY)).preview(sql, epsilon=1.0).offer
    law = rounded_gaussian(found.sigmas[offered.unit_count_index])
    assert offered.key_delta == loss["failure"]
    with precision(PREC):
        at, below = (
            leak_probability(law.beyond(least - 2, PREC) / 2, GROUPS)
            for least in (offered.threshold, offered.threshold - 1)
        )
        assert at <= ball(Fraction(loss["failure"])) < below


# ---- by rank --------------------------------------------------------------------------------------------------------


def test_a_gaussian_median_is_chosen_and_searched_at_the_charged_price(asked):
    found, loss = asked("gaussian", "SELECT MEDIAN(stay) FROM visits")
    (rate,), (sigma,) = found.rates, found.sigmas
    chosen = BoundedRangeLoss(float(rate * 2 * ROWS)).gdp(tolerance=1e-9).lower
    adds_up([Fraction(chosen) ** 2, LOOKS * (ROWS / sigma) ** 2], Fraction(loss["mu"]) ** 2)


def test_a_pure_median_is_chosen_and_searched_at_the_charged_price(asked):
    found, loss = asked("pure", "SELECT MEDIAN(stay) FROM visits")
    (rate,), (scale,) = found.rates, found.scales
    adds_up([rate * 2 * ROWS, LOOKS * ROWS / scale], loss["eps"])


# ---- noise that depends on data -------------------------------------------------------------------------------------


def test_a_contract_of_counts_has_the_noise_of_its_table(clinic, asked):
    """σ on asinh(n/c): a patient with three visits moves that by asinh(3/c) at most, which the table rounds up."""
    sql, how = "SELECT ward, COUNT(*) FROM visits GROUP BY ward", {"epsilon": 4.0, "relative_error": 0.5}
    found, loss = asked("gaussian", sql, **how)
    contract = Curator.open(clinic, Policy.read(POLICY)).preview(sql, **how).offer.relative.contract
    (steps,) = found.sigmas
    told = contract.mechanism.table.rise(0, ROWS) / steps
    assert told >= math.asinh(ROWS / contract.floor) / absolute_sigma(0.5) * (1 - 1e-12)
    assert (1 - 2e-5) * loss["mu"] <= math.sqrt(GROUPS) * told <= loss["mu"]


def test_smooth_noise_stands_on_a_rung_of_the_ladder_that_was_priced(clinic, asked):
    sql = "SELECT TRIMMED_MEAN(stay, 0.1) FROM visits"
    found, _ = asked("gaussian", sql)
    mechanism = Curator.open(clinic, Policy.read(POLICY)).preview(sql, epsilon=1.0).offer.standalone[0].mechanism
    ((noise, scale),) = found.draws
    assert noise == mechanism.loss().noise
    width = Fraction(str(scale.ball(120).mid().str(25, radius=False)))
    ratio = width * mechanism.lattice.step * Fraction(mechanism.loss().shift) / Fraction(mechanism.ladder.unit)
    rung = math.log(ratio) * mechanism.loss().steps / mechanism.loss().dilation
    assert rung >= -1e-6 and abs(rung - round(rung)) < 1e-6


# ---- these tests can fail -------------------------------------------------------------------------------------------


def planted_in_gaussian(patch):
    patch.setattr(gaussian, "rounded_gaussian", lambda units: rounded_gaussian(units * Fraction(99, 100)))


def planted_in_discrete_laplace(patch):
    law = geometric.DiscreteLaplace.law
    patch.setattr(
        geometric.DiscreteLaplace, "law", lambda self: replace(law(self), scale=law(self).scale * Fraction(99, 100))
    )


def planted_in_joint(patch):
    made = joint_laplace.noise.JointLaplace
    patch.setattr(
        joint_laplace.noise, "JointLaplace", lambda eps, *more: made(Fraction(eps) * Fraction(101, 100), *more)
    )


def planted_in_parts(patch):
    patch.setattr(currency, "LESS", 1.005)


def planted_in_choice(patch):
    patch.setattr(quantile, "POINT", quantile.POINT * 1.01)
    patch.setattr(quantile, "range_of", lambda mu, old=quantile.range_of: old(mu) * 1.01)


def planted_in_threshold(patch):
    patch.setattr(offer, "threshold", lambda law, delta, groups: threshold(law, delta, 1))


def planted_in_table(patch):
    patch.setattr(offer, "relative_count", offer.relative_count.__wrapped__)  # not one whose sampler was made before
    patch.setattr(transformed, "rounded_gaussian", lambda spread: rounded_gaussian(spread * Fraction(99, 100)))


PLANTED = [
    (planted_in_gaussian, test_gaussian_noise_has_the_scale_that_was_charged, SUMS[0]),
    (planted_in_gaussian, test_gaussian_noise_has_the_scale_that_was_charged, SUMS[2]),
    (planted_in_threshold, test_private_keys_leak_what_was_charged, None),
    (planted_in_table, test_a_contract_of_counts_has_the_noise_of_its_table, None),
    (planted_in_discrete_laplace, test_pure_noise_has_the_scale_that_was_charged, SUMS[0]),
    (planted_in_joint, test_pure_noise_has_the_scale_that_was_charged, SUMS[2]),
    (planted_in_parts, test_gaussian_noise_has_the_scale_that_was_charged, SUMS[2]),
    (planted_in_choice, test_a_gaussian_median_is_chosen_and_searched_at_the_charged_price, ()),
    (planted_in_discrete_laplace, test_a_pure_median_is_chosen_and_searched_at_the_charged_price, ()),
]


@pytest.mark.parametrize(("plant", "check", "case"), PLANTED)
def test_noise_one_hundredth_too_small_is_noticed(clinic, asked, monkeypatch, plant, check, case):
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(clinic, asked) if case is None else check(asked, *case)
