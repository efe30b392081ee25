"""Shuffled losses against enumeration, against numbers made without this code, and against each other."""

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import bdtrc

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.local.shuffle import shuffle_file, shuffle_lines, shuffled_exactly
from sfumato.loss.kinds.binomial_tails import binomial_mass, mean_excess, mean_excess_along, window
from sfumato.loss.kinds.blanket_sums import Crowd, positive_part, upper_nodes
from tests.local.laws import SMALL, channel

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "local.json").read_text(encoding="utf-8"))
L = sf.loss


def response(k, eps, n):
    """The shuffled loss of randomized response with exactly this ε, which whole odds only come near."""
    r = 1 / (math.exp(eps) + k - 1)
    return L.ShuffledLoss(eps, n, r, 0.0, (k - 2) * r, third=r if k > 2 else 0.0, relation=sf.ReplaceOne)


@pytest.mark.parametrize("row", GOLDEN["shuffle_epsilon"]["rows"], ids=lambda row: f"{row['eps0']} {row['n']}")
def test_binary_response_and_clones_agree_with_the_oracle(row):
    eps, n, delta = row["eps0"], row["n"], row["delta"]
    found = response(2, eps, n).epsilon(delta)
    assert found.upper == pytest.approx(row["binary_rr_blanket"], rel=1e-7)
    assert found.lower == pytest.approx(row["binary_rr_exact_all_others_equal"], rel=1e-7)
    assert sf.local.Shuffled(eps, n).epsilon(delta).upper == pytest.approx(row["any_randomizer_clones"], rel=1e-7)


@pytest.mark.parametrize("row", GOLDEN["shuffle_krr"]["rows"], ids=lambda row: f"{row['k']} {row['eps0']} {row['n']}")
def test_randomized_response_over_k_values_agrees_with_the_oracle(row):
    found = response(row["k"], row["eps0"], row["n"]).epsilon(row["delta"])
    assert found.upper == pytest.approx(row["blanket"], rel=1e-4)
    assert found.lower == pytest.approx(row["lower_exact_others_at_third_value"], rel=1e-4)
    assert found.upper >= row["lower_exact_others_at_third_value"]


@pytest.mark.parametrize(
    "row", GOLDEN["shuffle_oue_blanket_approx"]["rows"], ids=lambda row: f"{row['eps0']} {row['n']}"
)
def test_unary_encoding_agrees_with_the_oracle(row):
    found = sf.local.Shuffled(sf.local.UnaryEncoding.of(1000, row["eps0"]), row["n"]).epsilon(row["delta"])
    assert found.upper == pytest.approx(row["eps"], rel=3e-3)


@pytest.mark.parametrize(
    "row", GOLDEN["shuffle_small_exact"]["rows"], ids=lambda row: f"{row['k']} {row['eps0']} {row['n']}"
)
def test_enumerated_crowds_lie_between_the_two_sides(row):
    found = response(row["k"], row["eps0"], row["n"]).delta(row["eps"])
    assert found.upper >= row["exact"] * (1 - 1e-5) and found.lower <= row["exact"] * (1 + 1e-5)
    assert found.upper == pytest.approx(row["blanket"], rel=2e-5)
    clones = sf.local.Shuffled(row["eps0"], row["n"]).delta(row["eps"])
    assert clones.upper == pytest.approx(min(row["clones"], clones.upper), rel=1e-5)


def test_delta_agrees_with_forty_digits():
    for row in GOLDEN["shuffle_delta_points"]["rows"]:
        loss = (
            sf.local.Shuffled(row["eps0"], row["n"]) if "clones" in row["gamma"] else response(2, row["eps0"], row["n"])
        )
        assert loss.delta(row["eps"]).upper == pytest.approx(row["delta"], rel=1e-8)
        assert loss.delta(row["eps"]).upper >= row["delta"] * (1 - 1e-12)


@pytest.mark.parametrize(
    "row", GOLDEN["variation_ratio_counterexamples"]["rows"], ids=lambda row: f"{row['k']} {row['n']}"
)
def test_the_variation_ratio_formula_is_no_bound_and_ours_is(row):
    """Enumerated crowds exceed the published formula with the parameters of k-ary response."""
    loss = response(row["k"], row["eps0"], row["n"])
    if "exact_eps" in row:
        found = loss.epsilon(row["delta"])
        assert row["claimed_eps"] < row["exact_eps"] <= found.upper
        assert found.lower > row["claimed_eps"]
        return
    a, b = math.exp(row["eps0"]), 1.0
    rows = [{y: (a if x == y else b) / (a + row["k"] - 1) for y in range(row["k"])} for x in range(row["k"])]
    exact = float(
        shuffled_exactly([{y: Fraction(p) for y, p in law.items()} for law in rows], row["n"], math.exp(row["eps"]))
    )
    assert exact >= row["exact_delta"] * (1 - 1e-5) > row["claimed_delta"]
    assert loss.delta(row["eps"]).upper >= exact * (1 - 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [one for one in SMALL if one.epsilon and one.report_bound <= 16], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_randomizer_is_covered_by_its_shuffled_loss(oracle, n):
    """All values of the victim and of the others, in exact arithmetic."""
    laws = channel(oracle)
    if math.comb(n + len(laws), n) * math.comb(n + 16, n) > 20_000:
        laws = laws[:4]
    loss, clones = sf.local.Shuffled(oracle, n), sf.local.Shuffled(oracle.epsilon, n)
    for t in (0.0, 0.4 * oracle.epsilon, 0.9 * oracle.epsilon):
        exact = float(shuffled_exactly(laws, n, math.exp(t)))
        assert exact <= loss.delta(t).upper * (1 + 1e-9)
        assert loss.delta(t).upper <= clones.delta(t).upper * (1 + 1e-9)
        if len(laws) == oracle.k:
            assert loss.delta(t).lower <= exact * (1 + 1e-9)
        if n == 1:
            assert exact == pytest.approx(loss.delta(t).upper, rel=3e-9)


def test_two_classes_of_others_are_summed_as_by_brute_force():
    """Subset selection of 2 of 6 among 12 people: the expectation over all class counts, term by term."""
    oracle, n = sf.local.SubsetSelection(6, sf.local.Odds(3, 1), 2), 12
    one, both, neither = (float(x) for x in (oracle.classes.one, oracle.classes.both, oracle.classes.neither))
    masses = [one, one, both, neither, 1 - 2 * one - both - neither]
    loss = sf.local.Shuffled(oracle, n)
    for t in (0.0, 0.2, 0.7):
        a = math.exp(t)
        gains = [3 - a, 1 - 3 * a, 3 * (1 - a), 1 - a, 0.0]
        total = 0.0
        for counts in product(range(n + 1), repeat=4):
            left = n - sum(counts)
            if left >= 0:
                every = (*counts, left)
                ways = math.factorial(n) / math.prod(map(math.factorial, every))
                chance = ways * math.prod(m**c for m, c in zip(masses, every, strict=True))
                total += chance * max(0.0, sum(g * c for g, c in zip(gains, every, strict=True)))
        assert loss.delta(t).upper == pytest.approx(total / n, rel=1e-3)
        assert loss.delta(t).upper >= total / n


@pytest.mark.slow
def test_large_crowds_with_two_classes_are_bounded_by_a_spread():
    """From 100,000 people on classes are merged; the two ways to sum differ by less than 1 in 1,000."""
    loss = sf.local.Shuffled(sf.local.SubsetSelection.of(40, 1.0), 50_000)
    merged = Crowd(50_000, 2 * loss.one, 0.5, ((loss.both + loss.neither / math.e, math.e),))
    t = loss.epsilon(1e-6).upper
    gain, cost = math.e - math.exp(t), math.expm1(1 + t)
    coarse = positive_part(upper_nodes(merged), merged, gain, cost, math.expm1(t))
    assert 1e-6 * (1 - 1e-3) < coarse < 1e-6 * (1 + 1e-2)


def test_more_people_and_less_epsilon_hide_better():
    found = [
        [sf.local.Shuffled(sf.local.Response.of(4, eps), n).epsilon(1e-5).upper for n in (50, 500, 5000)]
        for eps in (0.5, 1, 2)
    ]
    assert np.all(np.diff(found, axis=0) > 0) and np.all(np.diff(found, axis=1) < 0)


def test_only_honest_people_count():
    loss = sf.local.Shuffled(sf.local.Response.two_coins(), 1000, honest=700)
    assert loss == sf.local.Shuffled(sf.local.Response.two_coins(), 700)
    with pytest.raises(InvalidParameter):
        sf.local.Shuffled(sf.local.Response.two_coins(), 1000, honest=1001)


def test_the_statement_names_the_preconditions_and_the_fallback():
    words = sf.local.Shuffled(sf.local.Response.two_coins(), 1000).statement(1e-6)
    assert "1,000 honest people" in words and "trusted" in words and "ε = 1.099, whatever the shuffler does" in words


@pytest.mark.slow
def test_rounds_compose_as_the_oracle_says():
    loss = response(2, 1.0, 10_000)
    for row in GOLDEN["shuffle_composition"]["rows"][:2]:
        found = (row["rounds"] * loss).epsilon(1e-6)
        assert found.upper >= row["grid_lower"] * (1 - 1e-6)
        assert found.upper == pytest.approx(row["eps_from_tabulated_profile"], rel=2e-3)


def test_rounds_cost_more_than_one_and_less_than_their_sum():
    loss = sf.local.Shuffled(sf.local.Response.two_coins(), 200)
    one, two = loss.epsilon(1e-5), (loss + loss).epsilon(1e-5)
    assert one.upper < two.upper < 2 * one.upper
    with pytest.raises(sf.errors.MixedRelations):
        loss + L.GaussianLoss(1.0)


@pytest.mark.parametrize(
    "wrong",
    [{"people": 0}, {"people": 2.5}, {"randomizer": -1.0}, {"randomizer": "rr"}, {"randomizer": math.nan}],
    ids=repr,
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        sf.local.Shuffled(**{"randomizer": 1.0, "people": 10, **wrong})


def test_classes_that_no_blanket_has_are_refused():
    with pytest.raises(InvalidParameter, match="blanket"):
        L.ShuffledLoss(1.0, 100, 0.3, 0.1, 0.1)


def test_too_many_histograms_are_refused():
    with pytest.raises(InvalidParameter, match="too many"):
        shuffled_exactly([{y: Fraction(1, 30) for y in range(30)}] * 30, 20, 1.0)


# ---- binomial tails --------------------------------------------------------------------------------------------------


def test_binomial_masses_against_whole_numbers():
    for n, s in ((1, 0.5), (7, 0.2), (40, 0.731), (200, 0.5)):
        k = np.arange(1, n + 1)
        p = Fraction(s)
        exact = [float(math.comb(n, int(i)) * p ** int(i) * (1 - p) ** (n - int(i))) for i in k]
        assert np.allclose(binomial_mass(np.full(n, float(n)), k.astype(float), s), exact, rtol=2e-13, atol=1e-300)


def test_mean_excesses_against_plain_sums():
    for n, s in ((5, 0.5), (60, 0.3), (400, 0.5)):
        k = np.arange(n + 1)
        mass = np.array(
            [float(math.comb(n, int(i)) * Fraction(s) ** int(i) * (1 - Fraction(s)) ** (n - int(i))) for i in k]
        )
        for t in (-3.0, 0.0, 0.5, n * s, n * s + 2.3, n - 0.5, n + 1.0):
            plain = float(np.sum(mass * np.maximum(k - t, 0)))
            assert mean_excess(np.array([float(n)]), np.array([t]), s)[0] == pytest.approx(plain, rel=1e-11, abs=1e-300)


def test_tails_along_a_line_are_those_point_by_point():
    n = np.arange(40_000.0, 44_000.0)[None]
    for slope, s in ((0.512, 0.5), (0.74, 0.731)):
        t = slope * n + 3.7
        assert np.allclose(mean_excess_along(n, t, s), mean_excess(n, t, s), rtol=1e-9)
    assert mean_excess(n, 0.512 * n + 3.7, 0.5)[0, 7] == pytest.approx(
        sum(
            (a - 0.512 * 40_007 - 3.7) * float(bdtrc(a - 1, 40_007, 0.5) - bdtrc(a, 40_007, 0.5))
            for a in range(20_488, 22_000)
        ),
        rel=1e-5,
    )


def test_a_window_holds_all_but_a_trace():
    for n, p in ((10, 0.3), (1000, 0.5), (10**6, 0.01)):
        i, mass = window(n, p)
        assert mass.sum() == pytest.approx(1) and np.all(np.diff(i) == 1)
        assert i[0] == 0 or mass[0] < 1e-26
        assert i[-1] == n or mass[-1] < 1e-26


# ---- the shuffler of files -------------------------------------------------------------------------------------------


def test_shuffled_lines_do_not_depend_on_their_order_and_have_no_identifier(tmp_path):
    lines = [
        '{"report": 2, "id": "a", "design": "x"}',
        '{"design":"x","report":1,"id":"b"}',
        "no object",
        "[1]",
        '{"report":',
    ]
    assert (
        shuffle_lines(lines) == shuffle_lines(lines[::-1]) == ['{"design":"x","report":1}', '{"design":"x","report":2}']
    )
    (tmp_path / "in").write_text("\n".join(lines))
    assert shuffle_file(tmp_path / "in", tmp_path / "out") == 2
    assert (tmp_path / "out").read_text().count("\n") == 2


# ---- what rounds surely reveal ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k, eps, n", [(2, 1.0, 4), (2, 3.0, 50), (2, 1.0, 10_000), (3, 1.0, 400), (16, 2.0, 30_000)])
def test_what_is_attained_lies_below_the_blanket_and_near_the_attack(k, eps, n):
    loss = response(k, eps, n)
    for t in np.linspace(0.0, loss.guess(1e-9), 8):
        here = loss.attained.delta(float(t))
        assert here.upper <= loss.upper(float(t))
        assert here.upper <= loss.lower(float(t)) * (1 + 1e-6) + 1e-12
    assert loss.attained.epsilon(1e-4).lower >= loss.epsilon(1e-4).lower * (1 - 3e-3)


def test_two_rounds_reveal_at_least_what_is_enumerated():
    """Everybody else holds 0 in both rounds: the histograms of the two rounds, exactly."""
    n, odds = 4, sf.local.Odds(3, 1)
    p, law = Fraction(3, 4), {}
    for victim in (0, 1):
        chances = [p if victim else 1 - p, *[1 - p] * (n - 1)]  # of a yes
        ones = {0: Fraction(1)}
        for chance in chances:
            grown: dict[int, Fraction] = {}
            for count, mass in ones.items():
                grown[count] = grown.get(count, 0) + mass * (1 - chance)
                grown[count + 1] = grown.get(count + 1, 0) + mass * chance
            ones = grown
        law[victim] = ones
    rounds = 2 * sf.local.Shuffled(sf.local.Response(2, odds), n)
    for eps in (0.1, 0.5, 1.0):
        truth = max(
            sum(max(0.0, float(law[a][i] * law[a][j]) - math.exp(eps) * float(law[b][i] * law[b][j]))
                for i in law[a] for j in law[a])
            for a, b in ((0, 1), (1, 0))
        )  # fmt: skip
        found = rounds.delta(eps)
        assert found.lower <= truth * (1 + 1e-9) <= found.upper * (1 + 1e-9)
        assert found.lower >= truth * 0.98


def test_rounds_have_a_lower_side_that_an_attack_attains():
    loss = response(3, 1.0, 1000)
    found = (3 * loss).epsilon(1e-6)
    assert found.lower == pytest.approx((3 * loss.attained).epsilon(1e-6).lower, rel=1e-12)
    assert 0.995 * found.upper < found.lower < found.upper
    assert np.all((3 * loss).delta([0.1, 0.2]).lower <= (3 * loss).delta([0.1, 0.2]).upper)
    mixed = (loss + sf.local.Response.of(2, 0.1).loss()).epsilon(1e-6)
    assert loss.epsilon(1e-6).lower < mixed.lower < mixed.upper
