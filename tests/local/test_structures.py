"""Ranges, heavy hitters, RAPPOR, memoised answers, and the table that compares randomizers."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import mpmath
import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, MixedRelations, OutOfReach
from sfumato.local.collection import charge_collection
from sfumato.local.ranges import LevelReport, consistent, isotonic
from sfumato.local.rappor import binomial_law
from tests.noise.sources import Recorded

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "local.json").read_text(encoding="utf-8"))


# ---- the default -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0, 3.0, 4.0])
def test_the_default_is_within_three_percent_of_the_optimum(eps):
    for k in (2, 3, 4, 5, 8, 13, 30, 64, 65, 79, 100, 127, 250, 700, 1000, 3000, 4096, 4097, 10**4, 10**5):
        found = sf.local.frequency_oracle(k, eps)
        assert found.total_variance <= 1.03 * sf.local.least_total_variance(k, eps)
        short = sf.local.frequency_oracle(k, eps, bits=64)
        assert short.bits <= 64 and short.total_variance <= 1.25 * found.total_variance
        assert found.total_variance <= min(short.total_variance, sf.local.Response.of(k, eps).total_variance)


def test_a_default_with_no_epsilon_still_randomises():
    assert sf.local.frequency_oracle(5, 0.0).epsilon == 0


# ---- ranges ----------------------------------------------------------------------------------------------------------


def test_consistent_trees_are_least_squares():
    """Against the normal equations of a full tree: 2 levels of 3 and 9 nodes."""
    rng = np.random.default_rng(5)
    top, leaves = rng.normal(size=3), rng.normal(size=9)
    variances = [0.3, 0.7]
    found = consistent([top, leaves], variances, 3)
    design = np.vstack([np.kron(np.eye(3), np.ones(3)), np.eye(9)])
    weight = np.diag([1 / 0.3] * 3 + [1 / 0.7] * 9)
    normal = design.T @ weight @ design
    # with Σ = 1 as a side condition, by a multiplier
    side = np.ones(9)
    system = np.block([[normal, side[:, None]], [side[None, :], np.zeros((1, 1))]])
    wanted = np.linalg.solve(system, np.append(design.T @ weight @ np.concatenate([top, leaves]), 1.0))[:9]
    assert found[1] == pytest.approx(wanted)
    assert found[0] == pytest.approx(wanted.reshape(3, 3).sum(axis=1))


def test_isotonic_regression_is_the_nearest_rising_sequence():
    assert isotonic(np.array([0.3, 0.1, 0.2, 0.9, 0.5])).tolist() == pytest.approx([0.2, 0.2, 0.2, 0.7, 0.7])


def test_ranges_and_quantiles_of_a_survey():
    tree = sf.local.RangeTree(60, 2.0, source=Recorded("ranges"))
    values = np.random.default_rng(2).binomial(59, 0.4, 20_000)
    found = tree.estimate(tree.randomize(values))
    assert abs(found.range(15, 30) - np.mean((values >= 15) & (values < 30))) <= found.range_error(0.9999)
    low, high = found.quantile_interval(0.5)
    assert low <= np.median(values) <= high
    assert np.all(np.diff(found.distribution) >= 0) and found.range(0, 60) == pytest.approx(1)
    assert abs(found.quantile(0.5) - np.median(values)) <= 4
    assert tree.loss().epsilon(0.0).upper <= 2.0


def test_reports_of_a_tree_are_checked():
    tree = sf.local.RangeTree(60, 1.0)
    for bad in ([], [LevelReport(9, 0)], [LevelReport(1, -1)], [LevelReport(1, 0)]):
        with pytest.raises(InvalidParameter):
            tree.estimate(bad)
    for k, eps in ((1, 1.0), (60, -1.0), (60, math.nan)):
        with pytest.raises(InvalidParameter):
            sf.local.RangeTree(k, eps)


# ---- heavy hitters ---------------------------------------------------------------------------------------------------


def test_frequent_strings_are_found_and_rare_ones_are_not():
    hitters = sf.local.HeavyHitters(4, 4.0, b"abcdefgh", source=Recorded("hitters"))
    rng = np.random.default_rng(1)
    texts = rng.choice(["head", "cafe", "bad", "gag"], p=[0.5, 0.35, 0.149, 0.001], size=8000)
    found = hitters.estimate([hitters.randomize(str(text)) for text in texts])
    assert set(found) == {"head", "cafe", "bad"}
    assert found["head"] == pytest.approx(0.5, abs=0.08)


def test_heavy_hitters_cost_one_report_and_refuse_nonsense():
    hitters = sf.local.HeavyHitters(3, 1.0)
    assert hitters.loss().epsilon(0.0).upper <= 1.0
    assert hitters.estimate([]) == {}
    report = hitters.randomize("abc")
    with pytest.raises(InvalidParameter):
        hitters.estimate([type(report)(9, 0, 0)])
    for alphabet in (b"", b"aa", b"\0a", "abc"):
        with pytest.raises(InvalidParameter):
            sf.local.HeavyHitters(3, 1.0, alphabet)


# ---- RAPPOR ----------------------------------------------------------------------------------------------------------


def test_rappor_over_time_agrees_with_the_oracle():
    wanted = GOLDEN["rappor_over_time"]
    rappor = sf.local.Rappor()
    for reports, eps in wanted["rows"]:
        assert rappor.epsilon(reports) == pytest.approx(eps, rel=1e-9)
    assert rappor.limit == pytest.approx(wanted["infinity"], rel=1e-9)


@pytest.mark.parametrize("f", [Fraction(1, 2), 1 - Fraction(3, 10**13)])
@pytest.mark.parametrize("apart", [Fraction(1, 10**12), Fraction(1, 7 * 10**7), Fraction(1, 4)])
def test_no_epsilon_of_rappor_is_below_the_truth_where_coins_are_nearly_fair(f, apart):
    """Odds near 1 lose their digits in doubles: ε was up to 1e-4 of itself too small."""
    rappor = sf.local.Rappor(f=f, low=Fraction(1, 2), high=Fraction(1, 2) + apart)
    with mpmath.workdps(60):
        a, b, p, q = (mpmath.mpf(x.numerator) / x.denominator for x in (1 - f / 2, f / 2, rappor.low, rappor.high))
        odds = (a * q + b * p) / (b * q + a * p) * (a * (1 - p) + b * (1 - q)) / (b * (1 - p) + a * (1 - q))
        true, limit = 2 * mpmath.log(odds), 4 * mpmath.log(a / b)
    for found, least in ((rappor.epsilon(), true), (rappor.limit, limit)):
        assert least <= found <= least * (1 + 2**-50)
    assert rappor.loss().epsilon(0).upper >= true


@pytest.mark.parametrize("reports", [1, 2, 3])
def test_the_loss_of_rappor_is_that_of_all_reports_of_one_bit(reports):
    """The likelihood ratio of T reports, over all bit strings, for one bit that is set or not; h = 1."""
    rappor = sf.local.Rappor(bits=2, hashes=1)
    a, b = 1 - rappor.f / 2, rappor.f / 2

    def law(first, second):
        found = {}
        for seen in product((0, 1), repeat=reports):
            one = math.prod((rappor.high if s else 1 - rappor.high) for s in seen)
            zero = math.prod((rappor.low if s else 1 - rappor.low) for s in seen)
            found[seen] = first * one + second * zero
        return found

    set_, unset = law(a, b), law(b, a)
    P = {(x, y): set_[x] * unset[y] for x in set_ for y in unset}  # the bit of the value, and that of the other value
    Q = {(x, y): unset[x] * set_[y] for x in set_ for y in unset}
    loss = rappor.loss(reports)
    for t in (0.0, 0.3, 0.8):
        exact = sum(max(0.0, float(P[z]) - math.exp(t) * float(Q[z])) for z in P)
        assert loss.delta(t).upper >= exact * (1 - 1e-9) and loss.delta(t).lower <= exact * (1 + 1e-9)
    assert math.log(max(P[z] / Q[z] for z in P)) == pytest.approx(rappor.epsilon(reports))


def test_rappor_estimates_bits_without_bias():
    """3,000 people: every Bloom bit within 5.5 standard errors of 1/(2√n·(q*−p*)) = 0.073."""
    rappor = sf.local.Rappor(bits=16, source=Recorded("rappor"))
    texts = ["dog"] * 2000 + ["cat"] * 1000
    reports = np.array([rappor.report(rappor.permanent(text)) for text in texts])
    truth = np.mean([rappor.bloom(text) for text in texts], axis=0)
    assert np.max(np.abs(rappor.estimate_bits(reports) - truth)) <= 5.5 * 0.5 / math.sqrt(3000) / 0.125
    shares = rappor.estimate(reports, ["dog", "cat", "horse"])
    assert shares[0] > shares[1] > shares[2] - 0.2


def test_rappor_refuses_nonsense():
    for wrong in ({"f": 0}, {"f": 1}, {"low": 1, "high": Fraction(1, 2)}, {"bits": 1}, {"hashes": 0}, {"f": math.nan}):
        with pytest.raises(InvalidParameter):
            sf.local.Rappor(**wrong)
    with pytest.raises(InvalidParameter):
        sf.local.Rappor().estimate_bits([[1, 0]])
    assert sum(binomial_law(5, Fraction(1, 3))) == 1


# ---- over time -------------------------------------------------------------------------------------------------------


def test_a_memo_answers_once_for_each_value_and_question():
    memo = sf.local.Memoised(sf.local.Response.of(5, 1.0).with_source(Recorded("memo")), "pets")
    first = [memo.report(v, "pets") for v in (0, 3, 0, 3, 0)]
    assert first[0] == first[2] == first[4] and first[1] == first[3] and len(memo.memo) == 2
    assert memo.loss(2).epsilon(0.0).upper == pytest.approx(2.0, rel=1e-5)
    assert memo.worst_epsilon() == pytest.approx(5.0, rel=1e-5)
    assert "memo=" not in repr(memo)
    with pytest.raises(InvalidParameter, match="one question"):
        memo.report(0, "income")


def test_loloha_costs_at_most_g_permanent_answers_and_is_unbiased():
    """2,000 devices, three reports each of changing values: shares of the last round within 5.5 standard errors."""
    scheme = replace(sf.local.Loloha.of(6, 3.0, 1.5), source=Recorded("loloha"))
    devices = [scheme.device() for _ in range(2000)]
    values = np.arange(2000) % 3
    reports = []
    for turn in range(3):
        reports = [device.report(int((v + turn) % 6)) for device, v in zip(devices, values, strict=True)]
    assert all(len(device.memo) <= 2 for device in devices)
    seeds = np.array([(device.a, device.b) for device in devices], np.uint32)
    found = scheme.estimate(seeds, np.array(reports))
    truth = np.bincount((values + 2) % 6, minlength=6) / 2000
    assert np.max(np.abs(found - truth)) <= 5.5 * 0.5 / math.sqrt(2000) / (float(scheme.p) - 0.5)
    assert scheme.limit == pytest.approx(6.0, rel=1e-5)
    assert "fresh noise each time would cost" in scheme.cost(30)


@pytest.mark.parametrize("buckets", [2, 3, 5])
def test_the_first_report_of_loloha_costs_what_was_asked(buckets):
    scheme = sf.local.Loloha.of(10, 2.0, 1.0, buckets)
    first, second = scheme.rounds
    high = first.p * second.p + (1 - first.p) * second.q
    low = first.q * second.p + (1 - first.q) * second.q
    assert math.log(high / low) == pytest.approx(1.0, rel=1e-4) and math.log(high / low) <= 1.0
    with pytest.raises(InvalidParameter):
        sf.local.Loloha.of(10, 1.0, 2.0)


# ---- choosing --------------------------------------------------------------------------------------------------------


def test_the_table_ranks_by_total_error_and_names_the_alternatives():
    found = sf.local.choose(1000, 10**5, 1.0)
    errors = [row.total_error for row in found.rows]
    assert errors == sorted(errors) and found.best.scheme == "subset"
    assert sf.local.choose(1000, 10**5, 1.0, bits=64).best.scheme == "pgr"
    text = str(found)
    assert "Prio" in text and "hostile" in text and "projective geometry" in text
    for row in GOLDEN["frequency_oracles"]["rows"]:
        if (row["k"], row["eps"]) == (1000, 1):
            assert errors[0] == pytest.approx(math.sqrt(row["oracles"]["best_total"] / 1e5), rel=1e-5)


def test_a_curator_is_better_by_the_root_of_half_the_people():
    for n in (8, 1000, 10**6):
        for eps in (0.5, math.log(3), 3.0):
            assert sf.local.choose(2, n, eps).central_gain == pytest.approx(math.sqrt(n / 2), rel=1e-9)


@pytest.mark.slow
def test_a_central_target_is_met_by_every_row():
    found = sf.local.choose(8, 1000, central=(0.5, 1e-6), bits=3)
    assert all(0.3 < row.shuffled_epsilon <= 0.5 for row in found.rows)
    assert all(row.oracle.bits <= 3 for row in found.rows)
    assert "if the shuffler is trusted" in str(found)


def test_choices_that_cannot_be_are_refused():
    with pytest.raises(OutOfReach):
        sf.local.choose(1000, 100, 1.0, bits=2)
    for wrong in ({}, {"epsilon": 1.0, "central": (1.0, 1e-6)}, {"epsilon": -1.0}, {"epsilon": math.nan}):
        with pytest.raises(InvalidParameter):
            sf.local.choose(10, 100, **wrong)
    with pytest.raises(InvalidParameter):
        sf.local.choose(1, 100, 1.0)


# ---- ledgers ---------------------------------------------------------------------------------------------------------


def test_a_collection_is_charged_to_a_replace_one_ledger_only(tmp_path):
    loss = sf.local.Response.two_coins().loss()
    ledger = sf.Ledger.create(tmp_path / "persons", sf.Budget(20.0, 1e-6, relation=sf.ReplaceOne))
    charge_collection(ledger, loss, question="pets")
    charge_collection(ledger, sf.local.Shuffled(sf.local.Response.two_coins(), 1000), question="pets, shuffled")
    ledger.close()
    other = sf.Ledger.create(tmp_path / "table", sf.Budget(20.0, 1e-6))
    with pytest.raises(MixedRelations) as refused:
        charge_collection(other, loss, question="pets")
    assert "replace_one" in str(refused.value) and "public list" in str(refused.value)
    charge_collection(other, sf.local.Response.two_coins().loss(sf.AddRemove), question="pets")
    other.close()
