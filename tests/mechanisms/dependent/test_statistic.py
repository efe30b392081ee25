"""Local and smooth sensitivities: by definition in small worlds, and against independently computed numbers."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.mechanisms.dependent import (
    Given,
    Kept,
    Maximum,
    Minimum,
    Ordered,
    PredictionVariance,
    Quantile,
    Reciprocal,
    Stars,
    Triangles,
    TrimmedMean,
    TrimmedShare,
    refute,
)
from tests.mechanisms.dependent import brute

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "dependent.json").read_text())
VALUES = (0, 1, 3, 7)
FRACTIONS = ["1/2", "1/4", "1/3", "2/5", "3/4", "2/3", "9/10", "1/10", "3/7"]
ADD_REMOVE = [
    *(Quantile(0, 7, p=Fraction(p)) for p in FRACTIONS),
    Minimum(0, 7),
    Maximum(0, 7),
    *(TrimmedMean(0, 7, trim=m, centre=c) for m in (0, 1, 2) for c in (2, 7)),
]
SIZED = [*(Kept.rank(r, 5, 0, 7) for r in (1, 2, 3, 5)), *(Kept(0, 7, 1, 5, a, b) for a, b in ((1, 1), (0, 0), (2, 1)))]

SHARES = ["1/10", "1/4", "2/5", "49/100", "0"]

# ---- by definition ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", ADD_REMOVE, ids=str)
def test_local_sensitivities_are_those_of_the_definition_under_add_remove(statistic):
    people = 8
    worlds = brute.multisets(VALUES, people)
    curve = brute.worst_within(worlds, statistic.value, brute.one_more_or_less(VALUES, people))
    for x in (world for world in worlds if len(world) <= 4):
        most = people - 1 - len(x)
        truth = curve(x, most)
        assert list(statistic.curve(x, most)) == truth
        assert max(truth) <= statistic.everywhere


@pytest.mark.parametrize("share", SHARES)
def test_a_share_cut_off_is_never_more_sensitive_than_its_bound(share):
    """A_k is at least LS_k, and A_k(x) ≤ A_{k+1}(x′), also for people who have two values each."""
    people, alone, twice = 6, *(TrimmedShare(0, 7, share=Fraction(share), values=r) for r in (1, 2))
    worlds, neighbours = brute.multisets(VALUES, people), brute.one_more_or_less(VALUES, people)
    curve = brute.worst_within(worlds, alone.value, neighbours)
    one, two = ({x: statistic.curve(x, 7) for x in worlds} for statistic in (alone, twice))
    for x in (world for world in worlds if len(world) < people):
        truth = curve(x, people - 1 - len(x))
        assert all(a <= b for a, b in zip(truth, one[x], strict=False))
        for y in neighbours(x):
            assert all(a <= b for a, b in zip(one[x], one[y][1:], strict=False))
            for z in neighbours(y):
                assert abs(alone.value(x) - alone.value(z)) <= two[x][0]
                assert all(a <= b for a, b in zip(two[x], two[z][1:], strict=False))


@pytest.mark.parametrize(("size", "trim"), [(101, 10), (501, 10), (2001, 20)])
def test_a_share_cut_off_costs_little_more_than_a_number_of_values(size, trim):
    x = np.random.default_rng(size).normal(size=size)
    share, exact = TrimmedShare(-50, 50, 2**-20, Fraction(trim, size - 1)), TrimmedMean(-50, 50, 2**-20, trim=trim)
    assert share.value(x) == exact.value(x)
    assert 0.95 <= share.smooth(x, 0.3) / exact.smooth(x, 0.3) <= 1.06


@pytest.mark.parametrize("values", [1, 3])
def test_the_ends_of_what_is_kept_are_all_that_is_read(values):
    statistic = TrimmedShare(0, 1000, share=Fraction(1, 5), values=values)
    for size in (0, 1, 2, 7, 40, 400):
        x = statistic.order_values(np.random.default_rng(size).integers(0, 1000, size))
        part = x.window(statistic.ranks(size, 12))
        assert statistic.curve(part, 12) == statistic.curve(x, 12)
        assert statistic.value(part) == statistic.value(x)


def test_more_than_half_at_either_end_is_too_much():
    for share in (Fraction(1, 2), -1, Fraction(1, 10**7)):
        with pytest.raises(InvalidParameter, match="share"):
            TrimmedShare(0, 1, share=share)


@pytest.mark.parametrize("statistic", SIZED, ids=str)
def test_local_sensitivities_are_those_of_the_definition_under_replacement(statistic):
    worlds = list(itertools.combinations_with_replacement(VALUES, 5))
    curve = brute.worst_within(worlds, statistic.value, brute.one_replaced(VALUES))
    for x in worlds:
        found = list(statistic.curve(x, 6))
        assert found == curve(x, 6)
        assert found[-1] == statistic.everywhere
        for t in (0.1, 0.7):
            truth = max(float(size) * math.exp(-t * k) for k, size in enumerate(found))
            assert truth <= statistic.smooth(x, t) <= truth + 1e-12 * 7


@pytest.mark.parametrize("statistic", [Triangles(5), Stars(5, 2), Stars(5, 3)], ids=str)
def test_local_sensitivities_are_those_of_the_definition_for_graphs(statistic):
    """Graphs as bits: all of them at once, and every 11th is looked at."""
    edges = brute.edges(5)
    codes = np.arange(1 << len(edges))
    graphs = [[edge for i, edge in enumerate(edges) if code >> i & 1] for code in codes.tolist()]
    values = np.array([statistic.value(graph) for graph in graphs])
    local = np.max([np.abs(values - values[codes ^ 1 << i]) for i in range(len(edges))], axis=0)
    for code in range(0, codes.size, 11):
        away = np.array([int(other).bit_count() for other in codes ^ code])
        truth = [int(local[away <= k].max()) for k in range(len(edges) + 1)]
        assert list(statistic.curve(graphs[code], len(edges))) == truth
    if isinstance(statistic, Triangles):
        assert max(np.abs(local - local[codes ^ 1 << i]).max() for i in range(len(edges))) == 1


@pytest.mark.parametrize("least", [1, 3])
def test_one_over_a_count_is_as_sensitive_as_its_definition_says(least):
    one_over = Reciprocal(least)
    curve = brute.worst_within(range(40), one_over.value, lambda n: {n + 1, max(n - 1, 0)} & set(range(40)))
    for n in range(12):
        assert list(one_over.curve(n, 20)) == curve(n, 20)
        assert one_over.at_distance([0] * n, 3) == curve(n, 3)[-1]


# ---- independently computed numbers ----------------------------------------------------------------------------------


def named(row):
    """The statistic of a row of the golden file."""
    if row["statistic"] == "trimmed mean":
        return TrimmedMean(0, 20, trim=row["m"], centre=row["c0"])
    if row["statistic"] in ("median", "quantile"):
        return Quantile(0, 20, p=Fraction(row.get("p", "1/2")))
    return {"min": Minimum, "max": Maximum}[row["statistic"][:3]](0, 20)


@pytest.mark.parametrize(
    "row", GOLDEN["add_remove"]["values"], ids=lambda row: f"{row['statistic']} {row.get('p', '')}"
)
def test_add_remove_numbers(row):
    statistic = named(row)
    assert list(statistic.curve(row["x"], 9)) == [Fraction(size) for size in row["lsk_first_10"]]
    for t, smooth in row["smooth"].items():
        assert statistic.smooth(row["x"], float(t)) == pytest.approx(smooth, rel=1e-12)
        assert statistic.smooth(row["x"], float(t)) >= smooth * (1 - 1e-15)
    if "value" in row:
        assert statistic.value(row["x"]) == row["value"]


@pytest.mark.parametrize("kind", ["median", "trimmed", "min"])
def test_replacement_numbers(kind):
    for row in GOLDEN["replace_one"][kind]:
        size, ends = len(row["x"]), (row["lo"], row["hi"], 0.5)
        made = {"median": Kept.median(size, *ends), "min": Kept.rank(1, size, *ends)}
        statistic = made.get(kind) or Kept.trimmed(size, row["m"], *ends)
        assert statistic.smooth(row["x"], row["beta"]) == pytest.approx(row["S"], rel=1e-12)


def test_numbers_of_one_over_a_count():
    for row in GOLDEN["reciprocal"]["values"]:
        assert Reciprocal().smooth(row["n"], row["beta"]) == pytest.approx(row["S"], rel=1e-12)


def test_the_corner_of_scale_and_shift_is_attained():
    """Both ends of the pair to be priced: scales a factor e^t apart and answers a whole smaller scale apart."""
    median = Quantile(0, 16)
    for pair in (GOLDEN["corner"]["adding_grows"], GOLDEN["corner"]["removing_grows"]):
        here, there = (median.smooth(pair[name], math.log(2)) for name in ("x", "x2"))
        assert (here, there) == pytest.approx(tuple(pair["S"]), rel=1e-12)
        assert abs(median.value(pair["x"]) - median.value(pair["x2"])) == min(pair["S"])


# ---- laws ------------------------------------------------------------------------------------------------------------

rows = st.lists(st.integers(-3, 40), max_size=30)
EVERY = [*(Quantile(0, 32, p=Fraction(p)) for p in FRACTIONS), Minimum(0, 32), TrimmedMean(0, 32, trim=4)]


@settings(max_examples=15)
@given(row=rows, extra=st.integers(-3, 40), k=st.integers(0, 12))
def test_bounds_cover_neighbours(row, extra, k):
    for statistic in EVERY:
        assert refute(statistic, [(row, [*row, extra])], most=k + 1) is None


@settings(max_examples=15)
@given(row=st.lists(st.integers(0, 1 << 20), min_size=1, max_size=300), k=st.integers(0, 12))
def test_a_window_of_ranks_is_enough(row, k):
    for statistic in (
        *(Quantile(0, 1 << 20, p=Fraction(p)) for p in FRACTIONS),
        Minimum(0, 1 << 20),
        Maximum(0, 1 << 20),
        TrimmedMean(0, 1 << 20, trim=len(row) // 3),
        Kept.trimmed(len(row), (len(row) - 1) // 3, 0, 1 << 20),
    ):
        everything = statistic.order_values(row)
        window = everything.window(statistic.ranks(len(row), k))
        assert sum(block.size for block in window.blocks) <= 4 * k + 16
        assert statistic.curve(window, k) == statistic.curve(everything, k)
        assert statistic.value(window) == statistic.value(row)


@settings(max_examples=9)
@given(row=rows, t=st.floats(0.05, 2))
def test_the_smooth_sensitivity_is_smooth_and_above_the_local_one(row, t):
    for statistic in EVERY:
        here, there = statistic.smooth(row, t), statistic.smooth([*row, 7], t)
        assert here >= statistic.local(row)
        assert here <= there * math.exp(t) * (1 + 1e-12) and there <= here * math.exp(t) * (1 + 1e-12)


@given(row=st.lists(st.integers(0, 10**6), min_size=1, max_size=120), t=st.floats(1e-6, 1))
def test_dividing_and_conquering_finds_the_largest_of_all_pairs(row, t):
    statistic = Kept.rank(1 + len(row) // 3, len(row), 0, 10**6)
    x = [0, *sorted(row), 10**6]
    j = 1 + len(row) // 3
    pairs = ((a, b) for a in range(j + 1) for b in range(j, len(x)) if a < b)
    truth = max((x[b] - x[a]) * math.exp(-t * (b - a - 1)) for a, b in pairs)
    assert truth * (1 - 1e-14) <= statistic.smooth(row, t) <= truth + 1e-12 * 10**6


@given(row=rows, bound=st.integers(0, 32), most=st.integers(0, 10))
def test_the_distance_to_more_than_a_bound_is_counted_and_moves_by_at_most_one(row, bound, most):
    median = Quantile(0, 32)
    here, there = median.distance(row, bound, most), median.distance([*row, 5], bound, most)
    assert abs(here - there) <= 1 and 0 <= here <= most
    assert here == most or median.at_distance(row, here) > bound
    assert here == 0 or median.at_distance(row, here - 1) <= bound


def random_rows(rng, size):
    rows = rng.normal(size=(size, 3)) * rng.choice([0.2, 1.0, 4.0])
    return rows * np.array([1.0, 1.0, rng.choice([0.05, 1.0])])


def test_the_bound_of_prediction_variance_covers_random_neighbours():
    rng, variance = np.random.default_rng(5), PredictionVariance((0.6, 0.8, 0.0), ridge=0.5)
    pairs = [(x[:-1], x) for x in (random_rows(rng, int(rng.integers(1, 14))) for _ in range(120))]
    assert refute(variance, pairs) is None
    data = random_rows(rng, 40)
    short = data / np.maximum(1, np.linalg.norm(data, axis=1, keepdims=True))
    gram = short.T @ short + 0.5 * np.eye(3)
    assert float(variance.value(data)) == pytest.approx(np.linalg.inv(gram)[:2, :2] @ [0.6, 0.8] @ [0.6, 0.8], rel=1e-4)
    assert float(variance.eigenvalue(data)) == pytest.approx(np.linalg.eigvalsh(gram)[0], abs=2e-3)


def test_the_bound_of_prediction_variance_is_nearly_attained():
    """All rows along z: λ = n + ridge, and the last row removed changes 1/λ by 1/(λ(λ−1))."""
    variance = PredictionVariance((1.0,), ridge=1.0)
    rows = np.full((20, 1), 1 - 2.0**-25)
    moved = variance.value(rows[:-1]) - variance.value(rows)
    assert moved == pytest.approx(float(variance.local(rows)), rel=1e-3)


# ---- your own --------------------------------------------------------------------------------------------------------

PAIRS = [([3] * n, [3] * (n + 1)) for n in range(12)]


def test_a_true_bound_of_ones_own_is_not_refuted():
    own = Given(lambda data: 1 / max(len(data), 1), Reciprocal().curve, 0.5)
    assert refute(own, PAIRS, believed=1e-12) is None
    smooth = Given.smoothly(lambda data: 1 / max(len(data), 1), lambda data: Reciprocal().smooth(data, 0.1), 0.1, 0.5)
    assert refute(smooth, PAIRS, believed=1e-12) is None
    assert smooth.smooth([3] * 10, 0.1 + 1e-9) == pytest.approx(Reciprocal().smooth(10, 0.1), rel=1e-8)


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        (lambda data, most: [Reciprocal().local(data)] * (most + 1), "a neighbour's bound"),
        (lambda data, most: [Fraction(1, 9)] * (most + 1), "moves by more"),
        (lambda data, most: [s / 2 for s in Reciprocal().curve(data, most)], "moves by more"),
    ],
)
def test_a_false_bound_of_ones_own_is_refuted(bounds, reason):
    found = refute(Given(Reciprocal().value, bounds, 0.5), PAIRS)
    assert reason in found.reason
    assert "3" not in repr(found), "data are not shown"


def test_what_is_no_number_counts_as_the_worst():
    own = Given(lambda data: math.nan, lambda data, most: [math.nan, -1, math.inf], 2)
    assert own.value([]) == 0 and own.curve([], 4) == (2, 2, 2, 2, 2)


# ---- values at the edge ----------------------------------------------------------------------------------------------

ODD = [
    [],
    [math.nan],
    [math.inf, -math.inf, math.nan, 1e308, -0.0],
    [10**400, -(10**400)],
    np.array([-(2**63), 2**63 - 1]),
    np.array([2**64 - 1], np.uint64),
    [True, False],
]


@pytest.mark.parametrize("make", [Quantile, Minimum, Maximum, TrimmedMean])
@pytest.mark.parametrize("step", [1, 0.25, 16])
def test_private_values_are_never_refused(make, step):
    statistic = make(-64, 64, step)
    for data in ODD:
        assert -64 <= statistic.value(data) <= 64
        assert all(0 <= size <= 128 for size in statistic.curve(data, 5))


def test_reals_are_rounded_to_the_step_and_integers_too():
    median = Quantile(0, 10, 0.5)
    assert median.value([1.1, 2.3, 4.9]) == Fraction(5, 2)
    assert Quantile(0, 64, 16).value([23, 24.0, 40]) == Quantile(0, 64, 16).value([23.0, 24.0, 40.0]) == 32
    assert Quantile(0, 64, 16).value([23, 23, 23]) == 16


def test_sums_beyond_64_bits_are_exact():
    far = 1 << 60
    mean = TrimmedMean(-far, far, trim=0)
    assert mean.value([far] * 9 + [far - 7]) == far - Fraction(7, 10)
    assert mean.curve([far] * 9 + [-far], 0) == (Fraction(9 * 2 * far, 90),)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Quantile(0, 10, p=1.0),
        lambda: Quantile(0, 10, p="x"),
        lambda: Quantile(5, 5),
        lambda: Quantile(0, 10, 0.3),
        lambda: TrimmedMean(0, 10, trim=-1),
        lambda: TrimmedMean(0, 10, centre=11),
        lambda: Kept(0, 10, 1, 5, 3, 2),
        lambda: Kept.median(3, 0, 10).value([1, 2]),
        lambda: Quantile(0, 10).value([[1, 2]]),
        lambda: Quantile(0, 10).value(["a"]),
        lambda: Triangles(2),
        lambda: Triangles(4).value([(0.5, 1)]),
        lambda: Stars(5, 1),
        lambda: Reciprocal(0),
        lambda: Reciprocal().value(1.5),
        lambda: PredictionVariance((0.0,)),
        lambda: PredictionVariance(3),
        lambda: PredictionVariance((1.0,), ridge=0),
        lambda: PredictionVariance((1.0,)).value([[1.0, 2.0]]),
        lambda: Given(3, len, 1),
        lambda: Given(len, len, 0),
        lambda: Given(len, len, 1, "add"),
        lambda: Quantile(0, 10).at_distance([1], -1),
        lambda: Quantile(0, 10).smooth([1], 0),
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()


def test_odd_edges_count_as_nothing():
    count = Triangles(4)
    clean = [(0, 1), (1, 2), (0, 2)]
    odd = [*clean, (1, 0), (0, 1), (2, 2), (-1, 0), (3, 99), (2**62, 1)]
    assert count.value(odd) == count.value(clean) == 1
    assert count.curve(odd, 3) == count.curve(clean, 3)
    assert count.value([]) == 0 and count.curve([], 4) == (0, 0, 1, 1, 2)


def test_nothing_private_is_shown():
    assert "17" not in repr(Ordered.of([17, 18], 0, 99))
    assert repr(Quantile(0, 20).sensitivity) == repr(sf.Sensitivity.of(20))


def test_a_window_that_is_too_small_is_an_error():
    with pytest.raises(AssertionError, match="too small"):
        Quantile(0, 99).curve(Ordered.of(range(50), 0, 99).window([(24, 26)]), 9)
