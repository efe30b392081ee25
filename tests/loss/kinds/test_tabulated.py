"""Tables enclose what they were made from; what is no profile, trade-off curve or density is refused."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special

from sfumato.errors import InvalidParameter
from sfumato.loss.describe import from_json
from sfumato.loss.kinds.bounded_range import BoundedRangeLoss
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss
from sfumato.loss.kinds.finite import FinitePairLoss
from sfumato.loss.kinds.from_curves import from_profile, from_trade_off
from sfumato.loss.kinds.from_densities import from_cdfs, from_densities
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.kinds.tabulated import TabulatedLoss
from sfumato.loss.views.convex_bounds import chord, convex
from sfumato.sensitivity import Relation

mus = st.floats(0.02, 8)


def gaussian_profile(mu):
    return lambda eps: special.ndtr(mu / 2 - eps / mu) - np.exp(eps) * special.ndtr(-mu / 2 - eps / mu)


def normal(mean):
    return lambda x: np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi)


def encloses(table, loss, *, floor, gap, count=997):
    """The table's bounds lie around the loss everywhere, and close to it where δ ≥ floor."""
    eps = np.linspace(0, 1.1 * table.nodes[-1], count)
    for found, truth in (
        (table.forward(eps), loss.forward(eps)),
        (table.backward(eps), loss.backward(eps)),
    ):
        assert np.all(found.lower <= truth.upper)
        assert np.all(truth.lower <= found.upper)
        large = truth.lower >= floor
        assert np.all(found.upper[large] - found.lower[large] <= gap * found.upper[large])
    return True


# ---- the class ------------------------------------------------------------------------------------------------------


@st.composite
def small_tables(draw):
    """A finite pair and a coarse table of exact values at a few of its points, widened a little."""
    n = draw(st.integers(2, 5))
    counts = st.lists(st.integers(0, 20), min_size=n, max_size=n)
    p, q = draw(counts), draw(counts)
    assume(sum(p) and sum(q))
    loss = FinitePairLoss(tuple(x / sum(p) for x in p), tuple(x / sum(q) for x in q))
    nodes = np.array(sorted({0.0, *draw(st.lists(st.floats(0.01, 5), min_size=1, max_size=6))}))
    slack = 10.0 ** draw(st.floats(-15, -2))
    ahead, back = loss.forward(nodes), loss.backward(nodes)
    columns = [np.minimum(ahead.upper * (1 + slack), 1), ahead.lower * (1 - slack)]
    columns += [np.minimum(back.upper * (1 + slack), 1), back.lower * (1 - slack)]
    columns[0], columns[2] = np.minimum.accumulate(columns[0]), np.minimum.accumulate(columns[2])
    columns[1] = np.maximum.accumulate(columns[1][::-1])[::-1]
    columns[3] = np.maximum.accumulate(columns[3][::-1])[::-1]
    return loss, TabulatedLoss(tuple(nodes), *(tuple(values) for values in columns))


@given(case=small_tables(), eps=st.lists(st.floats(0, 8), min_size=1, max_size=20))
def test_convexity_fills_the_gaps_between_nodes(case, eps):
    loss, table = case
    eps = np.array([*eps, 1e4])
    for found, truth in ((table.forward(eps), loss.forward(eps)), (table.backward(eps), loss.backward(eps))):
        assert np.all(found.lower <= truth.upper)
        assert np.all(truth.lower <= found.upper)


@given(case=small_tables())
def test_a_table_keeps_its_values_at_the_nodes(case):
    _, table = case
    found = table.forward(np.array(table.nodes))
    assert found.upper == pytest.approx(table.ahead_upper, rel=1e-14)
    assert np.all(found.lower >= np.array(table.ahead_lower) * (1 - 1e-14))


def test_beyond_the_last_node_the_last_value_is_leak():
    table = TabulatedLoss((0.0, 1.0, 2.0), (0.5, 0.2, 0.1), (0.4, 0.1, 0.05), (0.5, 0.2, 0.0), (0.4, 0.1, 0.0))
    assert table.leak() == (0.1, 0.0)
    assert table.supremum() == (2.0, 2.0)
    assert table.delta(50.0).upper == pytest.approx(0.1)
    assert table.delta(50.0).lower == 0
    assert table.delta(math.inf).lower == 0
    assert table.delta(1e6).upper == pytest.approx(0.1)
    assert not table.sharp_ends
    moment = table.log_moment(1.0)
    assert (moment.lower, moment.upper) == (0.0, math.inf)
    assert table.epsilon(0.05).upper == math.inf
    assert math.isfinite(table.epsilon(0.05).lower)


def test_reverse_swaps_the_sides_and_a_symmetric_table_is_its_own_reverse():
    table = TabulatedLoss((0.0, 1.0), (0.5, 0.2), (0.4, 0.1), (0.5, 0.0), (0.4, 0.0))
    assert table.reverse != table
    assert table.reverse.reverse == table
    assert table.reverse.leak() == (0.0, 0.2)
    assert from_profile(gaussian_profile(1.0)).reverse == from_profile(gaussian_profile(1.0))


def test_the_description_comes_back():
    table = from_profile(lambda eps: -math.expm1(min(eps - 1, 0) / 2), top=1, relation=Relation.ReplaceOne)
    assert from_json(table.to_json()) == table


def test_the_repr_is_short_and_says_that_it_leaves_numbers_out():
    table = TabulatedLoss((0.0, 1.0, 2.0), (0.5, 0.2, 0.1), (0.4, 0.1, 0.05), (0.5, 0.2, 0.0), (0.4, 0.1, 0.0))
    assert repr(table).startswith("TabulatedLoss(<3 nodes up to 2.0>, leak=(0.1, 0.0), relation=")
    large = from_profile(gaussian_profile(1.0), relation=Relation.ReplaceOne)
    assert len(repr(large)) < 200
    assert f"<{len(large.nodes)} nodes" in repr(large) and "ReplaceOne" in repr(large)
    assert repr(3 * large + GaussianLoss(1.0, relation=Relation.ReplaceOne)).count("TabulatedLoss(<") == 1
    assert from_json(large.to_json()) == large  # the description keeps every number


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (((0.0,), (0.5,), (0.5,), (0.5,), (0.5,)), "at least two"),
        (((0.1, 1.0), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1)), "rise from 0"),
        (((0.0, 0.0), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1)), "without repeats"),
        (((0.0, math.inf), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1)), "infinity"),
        (((0.0, 1.0), (0.5,), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1)), "one per node"),
        (((0.0, 1.0), (0.5, 1.1), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1)), "ahead_upper is no bound"),
        (((0.0, 1.0), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1), (0.1, 0.5)), "back_lower is no bound"),
        (((0.0, 1.0), (0.5, 0.1), (0.5, 0.2), (0.5, 0.1), (0.5, 0.1)), "ahead_lower is above"),
        (((0.0, 1.0), "ab", (0.5, 0.2), (0.5, 0.1), (0.5, 0.1)), "sequence of numbers"),
        (((0.0, 1.0), 3, (0.5, 0.2), (0.5, 0.1), (0.5, 0.1)), "sequence of numbers"),
    ],
)
def test_a_table_that_is_none_is_refused(columns, found):
    with pytest.raises(InvalidParameter, match=found):
        TabulatedLoss(*columns)


# ---- geometry -------------------------------------------------------------------------------------------------------


@given(
    ends=st.tuples(st.floats(-5, 5), st.floats(-5, 5)).filter(lambda e: abs(e[0] - e[1]) > 1e-3).map(sorted),
    values=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    share=st.floats(0.01, 0.99),
)
def test_chords_are_straight_lines_in_both_directions(ends, values, share):
    # H = d for t ≥ 0 and 1 − e^t + e^t·d for t < 0; a chord of H in e^t, read back into d
    def full(t, d):
        return d if t >= 0 else 1 - mp.exp(t) + mp.exp(t) * d

    (t0, t1), t = ends, ends[0] + share * (ends[1] - ends[0])
    with mp.workdps(40):
        a, b, c = mp.exp(mp.mpf(t0)), mp.exp(mp.mpf(t)), mp.exp(mp.mpf(t1))
        h = (full(mp.mpf(t0), mp.mpf(values[0])) * (c - b) + full(mp.mpf(t1), mp.mpf(values[1])) * (b - a)) / (c - a)
        truth = h if t >= 0 else (h - 1 + b) / b
    found = chord(*(np.array([x]) for x in (t, t0, values[0], t1, values[1])))[0]
    assert found == pytest.approx(float(truth), rel=1e-12, abs=1e-30)


@given(values=st.lists(st.floats(1e-12, 1), min_size=3, max_size=30), middle=st.integers(1, 28))
def test_the_convex_curve_below_points_is_convex_and_below(values, middle):
    t = 0.3 * (np.arange(len(values)) - min(middle, len(values) - 2))
    d = np.array(values)
    found = convex(t, d)
    assert np.all(found <= d)
    roof = chord(t[1:-1], t[:-2], found[:-2], t[2:], found[2:])
    assert np.all(found[1:-1] <= roof * (1 + 1e-12))
    assert convex(t, found) == pytest.approx(found, rel=1e-12)


# ---- from profiles --------------------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(mu=mus)
def test_a_gaussian_profile_becomes_a_sharp_table(mu):
    table = from_profile(gaussian_profile(mu))
    assert encloses(table, GaussianLoss(mu), floor=1e-16, gap=2e-3)
    assert len(table.nodes) <= 3000
    assert table.leak()[0] < 1e-17


@settings(max_examples=8)
@given(eps=st.floats(0.01, 10))
def test_bounded_losses_need_few_nodes_and_have_a_top(eps):
    table = from_profile(lambda t: -math.expm1(min(t - eps, 0) / 2), top=eps)
    assert encloses(table, LaplaceLoss(eps), floor=1e-9, gap=1e-5)
    assert table.leak() == (0.0, 0.0)
    assert table.supremum()[0] == eps
    smooth = from_profile(lambda t: BoundedRangeLoss(eps).forward(np.asarray(t)).upper, top=eps)
    assert encloses(smooth, BoundedRangeLoss(eps), floor=1e-9, gap=1e-3)


def test_a_function_of_one_number_does_as_well_as_one_of_arrays():
    mu = 1.5

    def one(eps):
        return max(
            0.0, float(special.ndtr(mu / 2 - eps / mu)) - math.exp(eps) * float(special.ndtr(-mu / 2 - eps / mu))
        )

    assert from_profile(one).ahead_upper == pytest.approx(from_profile(gaussian_profile(mu)).ahead_upper, rel=1e-6)


def test_the_two_directions_may_differ():
    loss = PoissonSampledLoss(GaussianLoss(1.0), 0.2)
    table = from_profile(
        lambda eps: loss.forward(np.atleast_1d(eps)).upper, backward=lambda eps: loss.backward(np.atleast_1d(eps)).upper
    )
    assert table.reverse != table
    assert encloses(table, loss, floor=1e-14, gap=2e-3)


def test_what_stays_is_leak():
    loss = ApproxLoss(1.0, 1e-5)
    table = from_profile(lambda eps: loss.forward(np.atleast_1d(eps)).upper)
    assert table.leak()[0] == pytest.approx(1e-5, rel=1e-9)
    assert encloses(table, loss, floor=1e-9, gap=1e-6)


def test_moments_of_a_bounded_table_are_those_of_the_loss():
    table, loss = from_profile(lambda t: -math.expm1(min(t - 1, 0) / 2), top=1), LaplaceLoss(1.0)
    for order in (0.5, 1.0, 2.0, 8.0):
        found, known = table.renyi(order), loss.renyi(order)
        assert found.lower <= known.upper
        assert known.lower <= found.upper
        assert found.relative_gap < 1e-5


@pytest.mark.parametrize(
    ("profile", "options", "found"),
    [
        (lambda eps: -eps, {}, r"must lie in \[0, 1\]"),
        (lambda eps: 2.0, {}, r"must lie in \[0, 1\]"),
        (lambda eps: math.nan, {}, r"must lie in \[0, 1\]"),
        (lambda eps: 0.1 + 0.1 * np.sin(eps), {}, "does not rise"),
        (lambda eps: 0.5 * np.exp(-10 * eps), {}, "no pair of distributions"),  # falls too fast at 0
        (lambda eps: 0.3 * np.maximum(1 - eps**2 / 4, 0), {"top": 2}, "no pair of distributions"),  # bends down
        (gaussian_profile(1.0), {"backward": gaussian_profile(1.1)}, "no pair of distributions"),
        (lambda eps: "much", {}, "turn a number into a number"),
        (gaussian_profile(1.0), {"top": 1e9}, "top is out of range"),
    ],
)
def test_what_is_not_a_profile_is_refused(profile, options, found):
    with pytest.raises(InvalidParameter, match=found):
        from_profile(profile, **options)


# ---- from trade-off curves ------------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(mu=st.floats(0.05, 4))
def test_the_trade_off_curve_of_a_gaussian_is_enough(mu):
    table = from_trade_off(lambda x: special.ndtr(-special.ndtri(x) - mu))
    assert encloses(table, GaussianLoss(mu), floor=1e-8, gap=2e-2)
    assert table.delta(0.0).relative_gap < 1e-3


def test_trade_off_curves_with_corners_and_leak():
    pure = from_trade_off(lambda x: np.maximum(1 - math.e * x, (1 - x) / math.e))
    assert encloses(pure, PureLoss(1.0), floor=1e-9, gap=1e-5)
    leaky = from_trade_off(lambda x: np.maximum(np.maximum(1 - 1e-3 - math.e * x, (1 - 1e-3 - x) / math.e), 0))
    assert encloses(leaky, ApproxLoss(1.0, 1e-3), floor=1e-9, gap=1e-5)


def test_an_asymmetric_trade_off_curve_gives_both_directions():
    loss = FinitePairLoss((0.5, 0.3, 0.2), (0.1, 0.3, 0.6))
    corners = np.array([(0, 0), (0.1, 0.5), (0.4, 0.8), (1, 1)])  # (Q-tail, P-tail) in falling order of the loss
    table = from_trade_off(lambda x: 1 - np.interp(x, corners[:, 0], corners[:, 1]))
    assert encloses(table, loss, floor=1e-9, gap=1e-4)


@pytest.mark.parametrize(
    "curve",
    [
        lambda x: special.ndtr(special.ndtri(1 - x) - 1.0),  # 1 − x forgets small x
        lambda x: 1 - x / 2,  # above 1 − x
        lambda x: 0 * x + 0.5,
        lambda x: -x,
        lambda x: (1 - x) * (1 + 0.2 * np.sin(9 * x)) / 2,
    ],
)
def test_what_is_not_a_trade_off_curve_is_refused(curve):
    with pytest.raises(InvalidParameter, match="convex, falls"):
        from_trade_off(curve)


# ---- from densities -------------------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(mu=st.floats(0.05, 6))
def test_two_normal_densities_are_a_gaussian_loss(mu):
    table = from_densities(normal(mu), normal(0.0), -12, 12 + mu)
    assert encloses(table, GaussianLoss(mu), floor=1e-9, gap=2e-3)
    assert table.leak()[0] < 1e-14


def test_pieces_are_added_up():
    table = from_densities(
        lambda x: np.exp(-abs(x - 1)) / 2, lambda x: np.exp(-abs(x)) / 2, -40, 41, turning_points=(0, 1)
    )
    assert encloses(table, LaplaceLoss(1.0), floor=1e-9, gap=1e-3)


def test_a_ratio_that_turns_is_cut_there():
    # N(0, 1) against N(0, 1.2²): the ratio is largest in the middle; the truth by integration
    wide = lambda x: normal(0.0)(x / 1.2) / 1.2  # noqa: E731
    table = from_densities(normal(0.0), wide, -14, 14, turning_points=(0,))
    for eps in (0.0, 0.05, 0.15):
        edge = mp.sqrt(2 * (mp.log(1.2) - eps) / (1 - mp.mpf(1) / mp.mpf(1.2) ** 2))
        inside = mp.erf(edge / mp.sqrt(2)) - mp.exp(eps) * mp.erf(edge / 1.2 / mp.sqrt(2))
        found = table.remove.delta(eps)
        assert found.lower <= inside <= found.upper
        assert found.relative_gap < 1e-3
    with pytest.raises(InvalidParameter, match="turning_points"):
        from_densities(normal(0.0), wide, -14, 14)


def test_densities_that_vanish_leak():
    # uniform on [0, 1] against uniform on [0, 2]; and a triangle against its mirror image
    half = from_densities(lambda x: 1.0 * (x <= 1), lambda x: 0.5 + 0 * x, 0, 2, turning_points=(1,))
    assert half.remove.delta(0.0).upper == pytest.approx(0.5, rel=1e-9)
    assert half.add.delta(3.0).lower == pytest.approx(0.5, rel=1e-9)
    triangle = from_densities(lambda x: 2 * x, lambda x: 2 - 2 * x, 0, 1)
    for eps in (0.0, 1.0, 5.0):
        truth = 1 / (1 + math.exp(eps))  # x > e^ε/(1 + e^ε): 1 − x² − e^ε(1 − x)² there
        found = triangle.delta(eps)
        assert found.lower <= truth <= found.upper
        assert found.relative_gap < 1e-3


def test_mass_outside_is_leak():
    table = from_densities(normal(1.0), normal(0.0), -2, 3)
    outside = 1 - special.ndtr(2.0) + special.ndtr(-3.0)
    assert table.leak()[0] == pytest.approx(outside, rel=1e-9)
    assert table.delta(0.0).upper >= float(GaussianLoss(1.0).delta(0.0))
    assert table.delta(0.0).lower <= float(GaussianLoss(1.0).delta(0.0))


@settings(max_examples=8)
@given(mu=st.floats(0.05, 4))
def test_two_distribution_functions_are_a_loss(mu):
    def right(x):
        return special.ndtr(x - mu)

    table = from_cdfs(right, special.ndtr, lambda x: mu * x - mu * mu / 2, -12, 12 + mu)
    assert encloses(table, GaussianLoss(mu), floor=1e-3, gap=1e-2)
    mirrored = from_cdfs(lambda x: special.ndtr(x + mu), special.ndtr, lambda x: -mu * x - mu * mu / 2, -12 - mu, 12)
    eps = np.linspace(0, mirrored.nodes[-1], 500)
    found, truth = mirrored.forward(eps), GaussianLoss(mu).forward(eps)
    large = truth.lower > 1e-9  # high losses on the left: all digits are there
    assert np.all((found.upper - found.lower)[large] <= 2e-3 * found.upper[large])


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (lambda: from_densities(lambda x: 2.0 + 0 * x, lambda x: 1.0 + 0 * x, 0, 1), "at most 1"),
        (lambda: from_densities(lambda x: -1.0 + 0 * x, lambda x: 1.0 + 0 * x, 0, 1), "must be a density"),
        (lambda: from_densities(lambda x: 1 / x, lambda x: 1.0 + 0 * x, 0, 1), "must be a density"),
        (lambda: from_densities(normal(0), normal(1), 1, -1), "must rise"),
        (lambda: from_densities(normal(0), normal(1), -9, 9, turning_points=(10,)), "must rise"),
        (lambda: from_densities(normal(0), normal(1), -math.inf, 9), "finite numbers"),
        (lambda: from_cdfs(lambda x: x, lambda x: 2 * x, lambda x: 0 * x, 0, 1), "distribution function"),
        (lambda: from_cdfs(lambda x: x, lambda x: x, lambda x: np.sin(9 * x), 0, 1), "turning_points"),
    ],
)
def test_what_is_no_pair_of_densities_is_refused(build, found):
    with pytest.raises(InvalidParameter, match=found):
        build()
