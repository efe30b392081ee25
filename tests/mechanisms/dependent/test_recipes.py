"""Stable values, propose-test-release and the like: numbers computed apart, and laws by enumeration."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms.dependent import (
    Gate,
    GaussianStableValue,
    Instances,
    LeverageReport,
    Leverages,
    NoisyBound,
    PredictionVariance,
    ProposeTestRelease,
    Quantile,
    SearchTestRelease,
    Stable,
    StableValue,
    Stars,
    TestedRelease,
    Triangles,
    TrimmedMean,
    mode,
    top_set,
)
from sfumato.mechanisms.dependent.propose_test_release import difference
from sfumato.mechanisms.keys.optimal_coins import Keeping
from tests.mechanisms.dependent import brute
from tests.noise.sources import Recorded

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "dependent.json").read_text())
L = sf.loss

# ---- thresholds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["ptr_integers"]["thresholds"], ids=str)
def test_laplace_thresholds(row):
    for name, noise in (("discrete_laplace", sf.DiscreteLaplace), ("rounded_laplace", sf.Laplace)):
        gate = Gate(noise(1 / row["e1"]), row["delta"])
        threshold, chance = row[name]
        assert gate.threshold == threshold == math.ceil(row["continuous_T"])
        assert gate.failure == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize("row", GOLDEN["ptr_integers"]["gaussian"], ids=str)
def test_gaussian_thresholds(row):
    gate = Gate(sf.Gaussian(1 / row["mu1"]), row["delta"])
    assert gate.threshold == row["tau_p0"][0]
    assert gate.failure == pytest.approx(row["tau_p0"][1], rel=1e-12)
    assert gate.sure(0.5) == row["pass_half_at"]


def test_the_threshold_of_the_lecture_wastes_half_of_delta():
    for row in GOLDEN["ptr_continuous"]["thresholds"]:
        assert row["T_tight"] == pytest.approx(math.log(1 / (2 * row["delta"])) / row["eps"])
        assert math.exp(-row["eps"] * row["T_seed"]) / 2 == pytest.approx(row["pass0_seed"])
        assert row["pass0_seed"] == pytest.approx(row["delta"] / 2)


# ---- propose, test, release ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["ptr_integers"]["profile"], ids=lambda row: f"{row['e1']}")
def test_the_profile_on_whole_numbers(row):
    made = ProposeTestRelease(
        Quantile(0, 100), 1, sf.DiscreteLaplace(1 / row["e1"]), sf.DiscreteLaplace(1 / row["e2"]), row["delta"]
    )
    loss = made.loss()
    assert made.gate.threshold == row["tau"]
    for eps, delta, _ in row["values"]:
        assert loss.delta(eps).upper == pytest.approx(delta, rel=1e-9)
        assert loss.delta(eps).upper >= delta * (1 - 1e-12)


@pytest.mark.parametrize("row", GOLDEN["ptr_continuous"]["values"], ids=lambda row: f"{row['e1']}, {row['e2']}")
def test_the_profile_of_the_continuous_mechanism(row):
    """The same loss with the chances of continuous Laplace noise and the threshold ln(1/2δ)/ε."""
    reach = int(3 * row["T"]) + 5
    gaps = [row["e1"] * (row["T"] - d) for d in range(reach + 1)]
    small = [math.exp(-abs(gap)) / 2 for gap in gaps]
    passes = tuple(s if gap >= 0 else 1 - s for s, gap in zip(small, gaps, strict=True))
    fails = tuple(1 - s if gap >= 0 else s for s, gap in zip(small, gaps, strict=True))
    loss = L.GatedLoss(L.LaplaceLoss(row["e2"]), passes, fails, passes[0])
    both = L.LaplaceLoss(row["e1"]) + L.LaplaceLoss(row["e2"])
    for point in row["prof"]:
        assert loss.delta(point["eps"]).upper == pytest.approx(point["ptr"], rel=1e-6)
        found = both.delta(point["eps"])
        assert found.lower - 1e-9 <= point["two_laplace"] <= found.upper + 1e-9
        assert loss.delta(point["eps"]).upper <= max(point["two_laplace"], row["delta"]) * (1 + 1e-6)


def hockey_stick(p, q, eps):
    return sum(max(a - math.exp(eps) * b, 0.0) for a, b in zip(p, q, strict=True))


def test_no_pair_of_small_data_sets_exceeds_the_loss():
    """Outputs listed: None and the answers from −30 to 60, all pairs of neighbours among multisets of {0, 2, 30}."""
    median, scale = Quantile(0, 30), 1.5
    made = ProposeTestRelease(median, 2, sf.DiscreteLaplace(1.0), sf.DiscreteLaplace(scale), 0.05)
    loss, gate = made.loss(), made.gate
    chance = [float(gate.tail(gate.threshold - d)) for d in range(gate.cap + 1)]
    r = math.exp(-1 / scale)

    def law(x):
        p = chance[median.distance(x, 2, gate.cap)]
        return [1 - p] + [p * (1 - r) / (1 + r) * r ** abs(y - median.value(x)) for y in range(-30, 61)]

    worlds = brute.multisets((0, 2, 30), 8)
    near = brute.one_more_or_less((0, 2, 30), 8)
    laws = {x: law(x) for x in worlds}
    for eps in (0.0, 0.3, 1.0, 1.6, 3.0):
        worst = max(hockey_stick(laws[x], laws[y], eps) for x in worlds for y in near(x))
        assert worst <= loss.delta(eps).upper * (1 + 1e-9)
        if eps in (0.0, 3.0):
            assert worst >= 0.9 * loss.delta(eps).lower, "the loss is nearly attained"


def test_a_gaussian_ledger_is_charged_no_more_than_both_parts():
    made = ProposeTestRelease(TrimmedMean(0, 1000, trim=20), 2, sf.Gaussian(4.0), sf.Gaussian(8.0), 1e-6)
    price = made.loss().gdp(slack=made.gate.failure * (1 + 1e-9)).upper
    assert 0.25 < price <= math.hypot(0.25, (2 + 2**-20) / 8) * (1 + 1e-6)


def test_answers_come_where_data_are_far_from_breaking_the_bound():
    made = ProposeTestRelease(
        Quantile(0, 1000),
        4,
        sf.Gaussian(4.0, source=Recorded("test")),
        sf.Gaussian(8.0, source=Recorded("noise")),
        1e-6,
    )
    steady, loose = [400 + i // 20 for i in range(4000)], [0, 1000]
    answers = [made.release(steady) for _ in range(300)]
    assert made.sure(0.999) <= Quantile(0, 1000).distance(steady, 4, made.gate.cap)
    off = [abs(answer - 499) for answer in answers if answer is not None]
    assert len(off) >= 290 and np.mean(np.array(off) <= made.error(0.5)) > 0.4  # below 1e-6 each with other bits
    assert all(made.release(loose) is None for _ in range(300))  # 300·δ


def test_reals_are_answered_on_the_noises_lattice():
    made = ProposeTestRelease(
        TrimmedMean(0, 100, trim=3), 5, sf.DiscreteLaplace(1.0), sf.Laplace(0.5, 0.25, source=Recorded("reals")), 1e-3
    )
    answers = [made.release([50, 50, 51] * 300) for _ in range(50)]
    given = [a for a in answers if a is not None]
    assert given and all((Fraction(a) * 4).denominator == 1 for a in given)
    assert abs(np.mean(given) - 50.33) < 1


# ---- proposals from a grid -------------------------------------------------------------------------------------------


def test_the_chance_that_one_noise_beats_another_is_that_of_the_sum():
    a, b, reach = 0.6, 0.75, 300
    k = np.arange(-reach, reach + 1)
    both = np.convolve((1 - a) / (1 + a) * a ** abs(k), (1 - b) / (1 + b) * b ** abs(k))
    for t in (1, 2, 7, 40):
        assert float(difference(arb(a), arb(b), t)) == pytest.approx(both[2 * reach + t :].sum(), rel=1e-9)


def test_a_search_finds_the_least_bound_that_holds_with_room_to_spare():
    median = Quantile(0, 1000)
    made = SearchTestRelease(median, (1, 2, 4, 8, 16), 1.0, sf.Laplace(2.0, source=Recorded("s")), 1e-6)
    made = replace(made, source=Recorded("search"))
    steady = [400 + i // 6 for i in range(1200)]
    assert [median.distance(steady, b, made.cap) for b in made.bounds] == [11, 12, 24, 48, 96]
    found = [made.release(steady) for _ in range(60)]
    assert {passed.bound for passed in found} <= {4.0, 8.0, 16.0}
    off = [abs(passed.answer - 499) <= made.error(0.5, bound=passed.bound) for passed in found]
    assert np.mean(off) > 0.2  # below 1e-6 with other bits
    assert all(made.release([0, 1000]) is None for _ in range(60))  # 60·δ
    one = SearchTestRelease(median, (4,), 1.0, sf.Laplace(2.0), 1e-6)
    assert made.search.threshold - one.search.threshold <= 7  # ln 5, in units of the queries' noise
    assert made.loss() == one.loss()


# ---- what each person loses ------------------------------------------------------------------------------------------


def test_each_person_loses_what_the_answer_moves_without_her():
    mean, data = TrimmedMean(0, 100, trim=0), [10, 20, 90]
    found = Instances.of(mean, data)
    assert found.moves == (15, 10, 25)
    assert [loss.mu for loss in found.losses(sf.Gaussian(5.0))] == [3.0, 2.0, 5.0]
    assert max(found.moves) <= mean.at_distance(data, 0)
    assert "25" not in repr(found)
    assert Instances.of(Quantile(0, 100), data).moves == (0, 10, 10)  # medians 20; then 20, 10, 10


def test_a_report_of_leverages_bounds_what_each_person_loses():
    rng, variance = np.random.default_rng(3), PredictionVariance((0.6, 0.8), ridge=1.0)
    data = rng.normal(size=(300, 2))
    report = LeverageReport(variance, sf.DiscreteLaplace(2.0, source=Recorded("leverage")), 1e-9).release(data)
    assert 20 < report.least <= variance.eigenvalue(data)
    short = data / np.maximum(1, np.linalg.norm(data, axis=1, keepdims=True))
    moves = Instances.of(variance, data.tolist()).moves[:40]
    for move, row in zip(moves, short, strict=False):
        assert move <= report.moved(row) * (1 + 1e-5) < float(variance.everywhere) / 100
        assert report.loss(sf.Gaussian(1.0, 2**-20), row).mu == report.moved(row)
    assert Leverages(variance, 1).moved([1.0, 0.0]) >= variance.everywhere


# ---- any mechanism behind a test -------------------------------------------------------------------------------------


def test_unsafe_pairs_cost_what_passes_and_no_more():
    """Two coins of chances up to q and then disjoint answers: the proof's identity, over a grid."""
    for p, p2, eps in itertools.product((0.0, 0.01, 0.2), (0.0, 0.01, 0.2), (0.0, 0.1, 1.0)):
        direct = hockey_stick([1 - p, p, 0.0], [1 - p2, 0.0, p2], eps)
        assert direct <= max(p, p2) + 1e-15
        assert direct == pytest.approx(max(p, 1 - math.exp(eps) * (1 - p2)), abs=1e-15)


def test_a_tested_mechanism_costs_the_larger_of_both():
    made = TestedRelease(
        sf.Laplace(1.0).on(len, 1), L.LaplaceLoss(0.5), lambda data: len(data) - 10, sf.DiscreteLaplace(2.0), 1e-6
    )
    assert made.loss().delta(1.0).upper == pytest.approx(made.gate.failure, rel=1e-9)
    assert made.loss().delta(0.0).upper < (L.LaplaceLoss(0.5) + L.DiscreteLaplaceLoss(2.0)).delta(0.0).upper
    assert made.release([0] * 5) is None and made.release([0] * 100_000) is not None


# ---- stable values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["stable"]["values"], ids=lambda row: f"{row['eps']}, {row['delta']}")
def test_stable_values_come_out_as_often_as_can_be(row):
    keeping = Keeping(row["eps"], row["delta"])
    for d, chance in enumerate(row["first20"]):
        assert float(keeping.probability(d + 1)) == pytest.approx(chance, rel=1e-9)
    made = StableValue(row["eps"], row["delta"])
    for level, (ours, laplace) in row["need"].items():
        if level == "1.0":
            assert keeping.probability(ours + 1) == 1 and keeping.probability(ours) < 1
            continue
        assert made.error(float(level)) == ours
        gate = Gate(sf.Laplace(1 / row["eps"]), row["delta"])
        assert laplace <= gate.sure(float(level)) + 1 and ours <= gate.sure(float(level))


def test_the_best_of_many_candidates():
    """Exponential selection, permute-and-flip and stable release at the gaps and sizes of the golden file."""
    for row in GOLDEN["argmax"]["values"]:
        keeping, p = Keeping(row["eps"], 1e-9), math.exp(-row["eps"] * row["gap"] / 2)
        assert float(keeping.probability(row["gap"])) == pytest.approx(row["stable_opt_delta1e9"], rel=1e-6)
        assert 1 / (1 + (row["k"] - 1) * p) == pytest.approx(row["EM_general"], rel=1e-9)
        flipped = -math.expm1(row["k"] * math.log1p(-p)) / (row["k"] * p)
        assert flipped == pytest.approx(row["PF_general"], rel=1e-9) and row["PF_general"] >= row["EM_general"]


def test_on_a_gaussian_ledger_noise_needs_less_distance():
    made = GaussianStableValue(1.0, 1e-6)
    assert made.error(0.5) == 6 < StableValue(1.0, 1e-6).error(0.5) == 13
    assert made.loss().gdp(slack=1e-6).upper <= 1.0 + 1e-6
    assert made.loss().delta(50.0).upper == pytest.approx(made.gate.failure, rel=1e-9)


LABELS = ("a", "b", "c")


@pytest.mark.parametrize("read", [mode, lambda votes: top_set(votes, 2)], ids=["mode", "top set"])
def test_distances_to_instability_are_safe_and_exact_where_a_label_that_wins_ties_exists(read):
    """Every multiset of three labels and of one that stands before them; those of the first kind are compared."""
    universe, people = ("A", *LABELS), 8
    value = {world: read(world) for world in brute.multisets(universe, people)}
    near = brute.one_more_or_less(universe, people)
    for x in brute.multisets(LABELS, 4):
        seen, edge, distance = {x}, {x}, 0
        while all(value[y].value == value[x].value for y in edge) and distance < people - len(x):
            edge = {z for y in edge for z in near(y)} - seen
            seen |= edge
            distance += 1
        if any(value[y].value != value[x].value for y in edge):
            assert value[x].distance == distance - 1
    for x in value:
        for y in near(x):
            assert abs(value[x].distance - value[y].distance) <= 1
            if value[x].value != value[y].value:
                assert value[x].distance == value[y].distance == 0


def test_replacing_one_person_halves_the_distance():
    values = {world: mode(world).replaced for world in itertools.combinations_with_replacement(LABELS, 7)}
    for x in values:
        for y in brute.one_replaced(LABELS)(x):
            assert abs(values[x].distance - values[y].distance) <= 1
            if values[x].value != values[y].value:
                assert values[x].distance == values[y].distance == 0
    assert mode(["a"] * 10 + ["b"]).replaced.distance == 4


def test_nobody_sees_what_is_not_stable():
    made = StableValue(1.0, 1e-6, source=Recorded("stable"))
    assert {made.release(Stable("secret", 0)) for _ in range(200)} == {None}  # 200·δ
    assert {made.release(Stable("plain", 40)) for _ in range(50)} == {"plain"}
    assert "secret" not in repr(Stable("secret", 0))


# ---- a noisy bound ---------------------------------------------------------------------------------------------------


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
        lambda: Gate(sf.Staircase(1.0), 1e-6),
        lambda: Gate(sf.Gaussian(1.0, 0.5), 1e-6),
        lambda: Gate(sf.Gaussian(1e9), 1e-6),
        lambda: Gate(sf.Gaussian(1.0), 0.0),
        lambda: ProposeTestRelease(len, 1, sf.Gaussian(1.0), sf.Gaussian(1.0), 1e-6),
        lambda: ProposeTestRelease(TrimmedMean(0, 9), 1, sf.Gaussian(1.0), sf.DiscreteLaplace(1.0), 1e-6),
        lambda: ProposeTestRelease(Quantile(0, 9), 1, sf.Gaussian(1.0), "noise", 1e-6),
        lambda: NoisyBound(Quantile(0, 9), sf.Gaussian(1.0), sf.Gaussian(1.0), 1e-6),
        lambda: NoisyBound(Stars(9, 3), sf.Gaussian(1.0), sf.Gaussian(1.0), 1e-6),
        lambda: NoisyBound(Triangles(9), sf.Gaussian(1.0), sf.DiscreteLaplace(1.0), 1e-6),
        lambda: TestedRelease(sf.Gaussian(1.0), 0.5, len, sf.Gaussian(1.0), 1e-6),
        lambda: TestedRelease(sf.Gaussian(1.0), L.GaussianLoss(1.0), 3, sf.Gaussian(1.0), 1e-6),
        lambda: SearchTestRelease(Quantile(0, 9), (2, 1), 1.0, sf.Laplace(1.0), 1e-6),
        lambda: SearchTestRelease(Quantile(0, 9), [1, 2], 1.0, sf.Laplace(1.0), 1e-6),
        lambda: SearchTestRelease(Quantile(0, 9), (1, 2), 1.0, sf.DiscreteLaplace(1.0), 1e-6),
        lambda: SearchTestRelease(len, (1, 2), 1.0, sf.Laplace(1.0), 1e-6),
        lambda: Instances.of(len, [1]),
        lambda: LeverageReport(Quantile(0, 9), sf.Gaussian(1.0)),
        lambda: StableValue(1.0, 1e-6, "add"),
        lambda: StableValue(1.0, 1e-6).release("value"),
        lambda: StableValue(1.0, 1e-6).release(Stable("value", 1.5)),
        lambda: top_set({"a": 3}, 0),
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()
