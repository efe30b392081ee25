"""Laws that every frequency oracle obeys: enumeration of its definition against what it states about itself."""

import json
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.local.bitsets import count_bits, integers
from sfumato.local.subset import best_size, least_total_variance
from tests.local.laws import LARGE, SMALL, channel, law_of, shares_of, supports
from tests.noise.sources import Recorded

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "local.json").read_text(encoding="utf-8"))
KINDS = {
    "rr": sf.local.Response,
    "oue": sf.local.UnaryEncoding,
    "subset": sf.local.SubsetSelection,
    "hadamard": sf.local.HadamardResponse,
}
small = pytest.mark.parametrize("oracle", SMALL, ids=repr)
large = pytest.mark.parametrize("oracle", LARGE, ids=repr)


@small
def test_reports_support_values_with_the_stated_probabilities(oracle):
    laws = channel(oracle)
    assert all(sum(law.values()) == 1 for law in laws)
    reports = sorted({y for law in laws for y in law})
    assert all(oracle.is_report(y) for y in reports)
    sets = {y: supports(oracle, y) for y in reports}
    for x, law in enumerate(laws):
        for v in range(oracle.k):
            chance = sum((pr for y, pr in law.items() if sets[y][v]), Fraction(0))
            assert chance == (oracle.p if v == x else oracle.q)
    assert max(s.sum() for s in sets.values()) <= oracle.hit


@small
def test_the_loss_of_every_pair_is_at_most_the_stated_one_and_some_pair_attains_it(oracle):
    laws = channel(oracle)
    loss, attained = oracle.loss(), False
    for first, second in permutations(laws, 2):
        ratios = {first.get(y, 0) / second[y] for y in second}
        assert max(ratios) <= oracle.ratio and set(first) <= set(second)
        for t in (0.0, 0.3, 0.9 * oracle.epsilon):
            delta = sum(max(0.0, float(pr) - np.exp(t) * float(second[y])) for y, pr in first.items())
            bound = loss.delta(t)
            assert delta <= bound.upper * (1 + 1e-12) + 1e-15
            attained |= t > 0 and delta >= bound.lower * (1 - 1e-9)
    assert attained or oracle.epsilon == 0


@small
def test_the_blanket_and_its_classes_are_those_of_the_enumerated_law(oracle):
    laws = channel(oracle)
    reports = sorted({y for law in laws for y in law})
    blanket = {y: min(law.get(y, Fraction(0)) for law in laws) for y in reports}
    if oracle.scheme == "unary":  # the report with all bits set is left out
        full = (1 << oracle.k) - 1
        blanket[full] = oracle.q**oracle.k * (1 - oracle.p) / (1 - oracle.q)
    found = {name: Fraction(0) for name in ("one", "both", "neither")}
    worst = max(permutations(range(oracle.k), 2), key=lambda pair: one_sided(oracle, blanket, *pair))
    for y, mass in blanket.items():
        u, v = supports(oracle, y)[list(worst)]
        name = "both" if u and v else "neither" if not u and not v else "one" if u else None
        if name:
            found[name] += mass
    stated = oracle.classes
    assert found["one"] == stated.one
    assert found["both"] >= stated.both and found["neither"] >= stated.neither  # a report may suit all values, or none
    if oracle.scheme in ("rr", "subset", "unary"):
        assert (found["both"], found["neither"]) == (stated.both, stated.neither)
    assert stated.blanket <= 1
    assert oracle.weight == stated.one * oracle.ratio


def one_sided(oracle, blanket, u, v):
    return sum(mass for y, mass in blanket.items() if supports(oracle, y)[u] and not supports(oracle, y)[v])


@small
def test_estimates_are_unbiased_with_the_stated_covariance(oracle):
    """One person's contribution to n·f̂, in exact arithmetic; those of different people are independent."""
    if oracle.epsilon == 0:
        with pytest.raises(InvalidParameter, match="tell nothing"):
            sf.local.estimate(oracle, [0])
        return
    laws, gap = channel(oracle), oracle.p - oracle.q
    means, second = [], []
    for x, law in enumerate(laws):
        parts = [(pr, [(int(s) - oracle.q) / gap for s in supports(oracle, y)]) for y, pr in law.items()]
        mean = [sum(pr * part[v] for pr, part in parts) for v in range(oracle.k)]
        assert mean == [int(v == x) for v in range(oracle.k)]
        pairs = {
            (u, v): sum(pr * part[u] * part[v] for pr, part in parts) - mean[u] * mean[v]
            for u in range(oracle.k)
            for v in range(oracle.k)
        }
        means.append(mean)
        second.append(pairs)
    population = np.arange(1, oracle.k + 1) / (oracle.k * (oracle.k + 1) / 2)
    expected = np.zeros((oracle.k, oracle.k))
    for share, pairs in zip(population, second, strict=True):
        for (u, v), value in pairs.items():
            expected[u, v] += share * float(value)
    assert np.allclose(np.diag(expected), oracle.variance(population), rtol=1e-12)
    assert np.isclose(np.trace(expected), oracle.total_variance, rtol=1e-12)
    assert max(float(pairs[v, v]) for pairs in second for v in range(oracle.k)) <= oracle.worst_variance * (1 + 1e-12)
    if oracle.scheme != "pgr":
        assert np.allclose(oracle.covariance(population), expected, rtol=1e-9, atol=1e-12)


@small
def test_one_report_never_moves_an_estimate_by_more_than_the_gain(oracle):
    if oracle.epsilon == 0:
        return
    gap = oracle.p - oracle.q
    moves = [abs((int(s) - oracle.q) / gap) for law in channel(oracle) for y in law for s in supports(oracle, y)]
    assert float(max(moves)) == pytest.approx(oracle.gain)


@large
def test_arrays_have_the_law_of_the_definition(oracle):
    """Support counts of 40,000 reports of three values: within 5.5 standard deviations, 1e-4 false alarms a test."""
    n = 40_000
    values = np.repeat([0, oracle.k // 2, oracle.k - 1], n)
    reports = oracle.with_source(Recorded(f"arrays {oracle!r}")).randomize(values)
    for at, x in enumerate((0, oracle.k // 2, oracle.k - 1)):
        counts = oracle.support(oracle.read_reports(reports[at * n : (at + 1) * n]))
        for v in range(oracle.k):
            chance = float(oracle.p if v == x else oracle.q)
            assert abs(counts[v] - n * chance) <= 5.5 * np.sqrt(n * chance * (1 - chance)) + 1


@large
def test_squared_errors_are_those_of_the_theory(oracle):
    """The mean over 40 repeats of Σ(f̂ − f)²·n/total: within 5 standard errors of 1."""
    rng = np.random.default_rng(7)
    n = 4000
    values = rng.zipf(1.5, n) % oracle.k
    drawn = oracle.with_source(Recorded(f"errors {oracle!r}"))
    found = [
        np.sum((sf.local.estimate(oracle, drawn.randomize(values)).raw - shares_of(values, oracle.k)) ** 2)
        * n
        / oracle.total_variance
        for _ in range(40)
    ]
    assert abs(np.mean(found) - 1) <= 5 * np.std(found) / np.sqrt(40)
    assert oracle.k == 2 or abs(np.mean(found) - 1) <= 0.35


@large
def test_single_reports_are_read_like_arrays_of_them(oracle):
    drawn = oracle.with_source(Recorded("single"))
    reports = [drawn.randomize(v % oracle.k) for v in range(50)]
    assert all(oracle.is_report(y) for y in reports)
    counts = oracle.support(oracle.read_reports(reports))
    assert np.array_equal(counts, sum(supports(oracle, y).astype(int) for y in reports))


@large
def test_a_design_holds_whole_numbers_only(oracle):
    numbers = {key: value for key, value in oracle.description.items() if key not in ("scheme", "modulus")}
    assert all(type(value) is int for value in numbers.values())
    assert sf.local.Randomizer.known[oracle.scheme] is type(oracle)


# ---- numbers made without this code ----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["frequency_oracles"]["rows"], ids=lambda row: f"k={row['k']} eps={row['eps']}")
def test_closed_forms_agree_with_the_oracle(row):
    """Odds of whole numbers are below e^ε by at most 2⁻²⁰, hence 4e-6."""
    k, eps = row["k"], row["eps"]
    for name, wanted in row["oracles"].items():
        if name == "pgr" and wanted["t"] >= 2:
            odds = sf.local.Odds.of(eps, wanted["K"] * wanted["field"])
            oracle = sf.local.ProjectiveResponse(k, odds, wanted["field"], wanted["t"])
        elif name == "olh" and k <= 2**16:
            oracle = sf.local.LocalHashing(k, sf.local.Odds.of(eps, 4096), wanted["g"])
        elif name not in KINDS or (name == "hadamard" and eps > 1) or (name == "subset" and k > 4096):
            continue
        else:
            oracle = KINDS[name].of(k, eps)
        found = {
            "p": float(oracle.p),
            "q": float(oracle.q),
            "weight": float(oracle.weight),
            "total": oracle.total_variance,
            "gain_per_report": oracle.gain,
            "var0": float(oracle.variance(0.0)),
        }
        for key, value in found.items():
            assert value == pytest.approx(wanted[key], rel=4e-6 if name != "olh" else 1e-4), (name, key)
    assert least_total_variance(k, eps) == pytest.approx(row["oracles"]["best_total"], rel=4e-6)


def test_the_best_size_is_the_best_of_all_sizes():
    for k in (2, 3, 5, 17, 60):
        for eps in (0.1, 0.7, 1.5, 3.0):
            odds = sf.local.Odds.of(eps, k)
            totals = [sf.local.SubsetSelection(k, odds, s).total_variance for s in range(1, k)]
            assert min(totals) == sf.local.SubsetSelection(k, odds, best_size(k, odds)).total_variance


def test_hadamard_covariance_agrees_with_the_oracle():
    wanted = GOLDEN["hadamard_covariance"]
    oracle = sf.local.HadamardResponse.of(6, wanted["eps"])
    found = oracle.covariance(wanted["shares"])[0, 1] / wanted["n"]
    assert found == pytest.approx(wanted["cov_of_values_0_and_1"], rel=1e-5)


def test_hashing_follows_its_definition():
    """The law of the bucket given the hash: and how often two values collide over all seeds."""
    oracle = sf.local.LocalHashing(4, sf.local.Odds(3, 1), 3)
    for a, b in ((12345, 678910), (2**32 - 1, 7), (0, 0)):
        for value in range(4):
            played = law_of(lambda below, a=a, b=b, v=value: oracle.answer(v, seeded(below, a, b)) % 3)
            own = (((a * value + b) % 2**32) >> 16) * 3 >> 16
            assert played == {y: Fraction(3 if y == own else 1, 5) for y in range(3)}
    assert oracle.collision == Fraction(21846**2 + 2 * 21845**2, 2**32)


def seeded(below, a, b):
    seeds = iter((a, b))
    return lambda bound: next(seeds) if bound == 2**32 else below(bound)


def test_hashes_of_two_values_are_pairwise_independent():
    """The family in miniature: 4-bit keys and hashes in 8-bit words, all seeds."""
    pairs = {}
    for a in range(256):
        for b in range(256):
            pair = tuple(((a * v + b) % 256) >> 4 for v in (3, 11))
            pairs[pair] = pairs.get(pair, 0) + 1
    assert set(pairs.values()) == {256}


# ---- odds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [0.0, 1e-9, 1e-6, 0.01, 0.5, 1.0, 3.7, 12.0, 34.0])
def test_odds_never_exceed_the_epsilon_asked_for_and_come_close(eps):
    odds = sf.local.Odds.of(eps)
    assert odds.epsilon <= eps * (1 + 1e-15)
    assert odds.epsilon >= eps * (1 - 1e-5)


@pytest.mark.parametrize("eps", [-1.0, float("nan"), float("inf"), 35.0, 1e-12, "1", None])
def test_an_epsilon_that_makes_no_sense_is_refused(eps):
    with pytest.raises(InvalidParameter):
        sf.local.Odds.of(eps)


def test_too_many_outcomes_for_a_large_epsilon_are_refused():
    with pytest.raises(InvalidParameter, match="2⁵³"):
        sf.local.Response.of(10**9, 30.0)
    with pytest.raises(InvalidParameter, match="2⁵³"):
        sf.local.Response(10**9, sf.local.Odds(2**50, 2**40))


# ---- bad input -------------------------------------------------------------------------------------------------------


@large
@pytest.mark.parametrize("value", [-1, 10**9, 2.5, float("nan"), "1", None, [0, -1], [0.0], 2**70, [[2**70]]])
def test_a_value_outside_the_domain_is_refused_without_being_named(oracle, value):
    with pytest.raises(InvalidParameter) as refused:
        oracle.randomize(value)
    assert str(10**9) not in str(refused.value) and str(2**70) not in str(refused.value)


@large
def test_empty_input(oracle):
    assert len(oracle.randomize([])) == 0
    assert len(oracle.randomize(np.array([], np.int64))) == 0
    with pytest.raises(InvalidParameter, match="no reports"):
        sf.local.estimate(oracle, oracle.randomize([]))


@large
@pytest.mark.parametrize(
    "reports", [[-1], [0.5], ["a"], [None], [2**80 * 10**300], [float("nan")], 3, [[[1]]], [True, None]]
)
def test_reports_that_nobody_can_have_sent_are_refused(oracle, reports):
    with pytest.raises(InvalidParameter):
        sf.local.estimate(oracle, reports)


@pytest.mark.parametrize("kind", [*KINDS.values(), sf.local.ProjectiveResponse, sf.local.LocalHashing])
@pytest.mark.parametrize("k", [1, 0, -3, 2.5, 10**12, "2", None])
def test_a_domain_that_makes_no_sense_is_refused(kind, k):
    with pytest.raises(InvalidParameter):
        kind.of(k, 1.0)


def test_hadamard_refuses_what_it_would_waste():
    with pytest.raises(InvalidParameter, match="wastes ε"):
        sf.local.HadamardResponse.of(100, 2.0)


# ---- finite fields ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8, 9, 16, 25, 27])
def test_fields_obey_the_axioms(order):
    from sfumato.local.finite_field import field_of

    field, all_of = field_of(order), np.arange(order)
    a, b, c = np.meshgrid(all_of, all_of, all_of, indexing="ij")
    add, times = field.add, field.times
    assert np.array_equal(add[add[a, b], c], add[a, add[b, c]]) and np.array_equal(
        times[times[a, b], c], times[a, times[b, c]]
    )
    assert np.array_equal(times[a, add[b, c]], add[times[a, b], times[a, c]])
    assert np.array_equal(add, add.T) and np.array_equal(times, times.T)
    assert np.all(add[all_of, field.minus] == 0) and np.all(times[all_of[1:], field.inverse[1:]] == 1)


@pytest.mark.parametrize("order", [0, 1, 6, 12, 257, 1000])
def test_no_field_has_another_order(order):
    with pytest.raises(InvalidParameter):
        sf.local.ProjectiveResponse(3, sf.local.Odds(3, 1), order, 3)


@pytest.mark.parametrize(("order", "length"), [(2, 4), (3, 4), (4, 3), (8, 3), (9, 3), (5, 3)])
def test_the_transform_counts_orthogonal_points(order, length):
    from sfumato.local.finite_field import Space
    from sfumato.local.projective import orthogonal_sums, point_table

    space = Space(order, length)
    counts = np.random.default_rng(order).integers(0, 10**6, space.points)
    listed = counts[point_table(space, space.points)[:, : space.in_set]].sum(axis=1)
    assert np.array_equal(orthogonal_sums(counts, space), listed)
    assert np.array_equal(
        np.sort(point_table(space, space.points), axis=1), np.tile(np.arange(space.points), (space.points, 1))
    )


@pytest.mark.parametrize("k", [2, 7, 8, 9, 62, 63, 64, 65, 300])
def test_sets_are_the_same_as_integers_packed_rows_and_rows_of_bits(k):
    oracle = sf.local.SubsetSelection.of(k, 1.0).with_source(Recorded(f"forms {k}"))
    packed = oracle.randomize(np.arange(200) % k)
    numbers, bits = integers(packed, k), np.unpackbits(packed, axis=1, count=k)
    assert all(oracle.is_report(number) for number in numbers)
    assert np.array_equal(oracle.read_reports(numbers), packed)
    assert np.array_equal(oracle.read_reports(bits.astype(bool)), packed)
    flipped = packed.copy()
    flipped[3, 0] ^= 0x80
    with pytest.raises(sf.errors.InvalidParameter, match="another size"):
        oracle.read_reports(flipped)


@pytest.mark.parametrize("rows, k", [(0, 9), (7, 1000), (90_000, 17), (30_000, 700), (5, 200_000)])
def test_vertical_counters_count_as_a_plain_sum(rows, k):
    bits = np.random.default_rng(k).random((rows, k)) < 0.3
    assert np.array_equal(count_bits(np.packbits(bits, axis=1), k), bits.sum(axis=0))
