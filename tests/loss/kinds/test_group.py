"""Groups and replacement: generic answers lie around closed forms and around exact compositions of polygons."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, MixedRelations
from sfumato.loss.compose.sums import nothing
from sfumato.loss.describe import from_json
from sfumato.loss.kinds.bounded_range import BoundedRangeLoss
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss, RandomizedResponseLoss
from sfumato.loss.kinds.discrete_gaussian import DiscreteGaussianLoss
from sfumato.loss.kinds.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.kinds.finite import FinitePairLoss
from sfumato.loss.kinds.from_curves import from_profile
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.group import group, replace_one
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss
from sfumato.loss.kinds.tabulated import TabulatedLoss
from sfumato.loss.kinds.wrappers import either
from sfumato.sensitivity import Relation

ROUNDING = 1e-14  # of the floats with which the truths below are computed


def encloses(table, truth, *, gap, floor=1e-12, count=500):
    """Bounds around the truth in both directions; close to it where δ ≥ floor."""
    eps = np.linspace(0, 1.1 * table.nodes[-1], count)
    for found, known in ((table.forward(eps), truth.forward(eps)), (table.backward(eps), truth.backward(eps))):
        assert np.all(found.lower <= known.upper * (1 + ROUNDING))
        assert np.all(known.lower * (1 - ROUNDING) <= found.upper)
        large = known.lower >= floor
        assert np.all(found.upper[large] - found.lower[large] <= gap * found.upper[large])
    return True


# ---- an independent oracle: corners as fractions --------------------------------------------------------------------


def corners(p, q):
    """(Q-tail, P-tail) in falling order of the loss."""
    order = sorted(zip(p, q, strict=True), key=lambda pair: -pair[0] / pair[1] if pair[1] else -math.inf)
    found = [(Fraction(0), Fraction(0))]
    for mass, other in order:
        found.append((found[-1][0] + other, found[-1][1] + mass))
    return found


def reversed_corners(curve):
    return [(1 - r, 1 - x) for x, r in reversed(curve)]


def value(curve, x):
    """The largest r at x: curves may start with a jump."""
    edges = [(a, b) for a, b in pairwise(curve) if a[0] <= x <= b[0]]
    return max(b[1] if a[0] == b[0] else a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]) for a, b in edges)


def place(curve, r):
    """The least x at which the curve reaches r."""
    for a, b in pairwise(curve):
        if a[1] <= r <= b[1]:
            return a[0] if b[1] == a[1] else a[0] + (b[0] - a[0]) * (r - a[1]) / (b[1] - a[1])
    raise AssertionError


def composed(first, second):
    """second ∘ first at the corners of both."""
    xs = {x for x, _ in first} | {place(first, x) for x, _ in second}
    return [(Fraction(0), Fraction(0)), *((x, value(second, value(first, x))) for x in sorted(xs))]


def profile(curve, eps):
    return np.array([max(float(r) - math.exp(t) * float(x) for x, r in curve) for t in eps])


counts = st.lists(st.integers(0, 20), min_size=2, max_size=5)


@st.composite
def finite_pairs(draw):
    p = draw(counts)
    q = draw(st.lists(st.integers(0, 20), min_size=len(p), max_size=len(p)))
    assume(sum(p) and sum(q))
    fractions = [[Fraction(n, sum(law)) for n in law] for law in (p, q)]
    return FinitePairLoss(*(tuple(map(float, law)) for law in fractions)), corners(*fractions)


def lies_around(table, ahead, back):
    eps = np.linspace(0, 1.1 * table.nodes[-1] + 0.1, 60)
    for found, curve in ((table.forward(eps), ahead), (table.backward(eps), back)):
        truth = profile(curve, eps)
        assert np.all(found.lower <= truth + ROUNDING)
        assert np.all(truth <= found.upper + ROUNDING)
        assert np.all(found.upper - found.lower <= 2e-3 * found.upper + 1e-9)
    return True


@settings(max_examples=20)
@given(case=finite_pairs(), size=st.integers(2, 5))
def test_groups_of_finite_pairs_are_compositions_of_polygons(case, size):
    loss, one = case
    many = one
    for _ in range(size - 1):
        many = composed(one, many)
    assert lies_around(group(loss, size), many, reversed_corners(many))


@settings(max_examples=15)
@given(case=finite_pairs())
def test_replacing_is_removing_and_adding_in_the_worse_order(case):
    loss, one = case
    other = reversed_corners(one)
    table = replace_one(loss)
    assert table.relation is Relation.ReplaceOne
    assert table.reverse == table
    eps = np.linspace(0, 1.1 * table.nodes[-1] + 0.1, 60)
    truth = np.maximum(profile(composed(other, one), eps), profile(composed(one, other), eps))
    found = table.forward(eps)
    assert np.all(found.lower <= truth + ROUNDING)
    assert np.all(truth <= found.upper + ROUNDING)
    assert np.all(found.upper - found.lower <= 2e-3 * found.upper + 1e-9)


# ---- closed forms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "gap"), [(2, 5e-4), (3, 6e-4), (10, 1e-3)])
def test_k_people_at_a_gaussian_are_a_gaussian_of_k_mu(size, gap):
    found = group(GaussianLoss(0.5), size)
    assert encloses(found, GaussianLoss(0.5 * size), gap=gap)
    assert found.leak()[0] < 1e-17
    assert len(found.nodes) <= 3000


@settings(max_examples=6)
@given(mu=st.floats(1e-3, 2), size=st.integers(2, 40))
def test_gaussian_groups_of_any_size(mu, size):
    assume(mu * size < 12)
    assert encloses(group(GaussianLoss(mu), size), GaussianLoss(mu * size), gap=5e-3)


def test_a_million_people():
    assert encloses(group(GaussianLoss(2e-6), 10**6), GaussianLoss(2.0), gap=3e-3)


@pytest.mark.parametrize("loss", [GaussianLoss(0.3), LaplaceLoss(0.2), PoissonSampledLoss(LaplaceLoss(1.0), 0.2)])
def test_polygons_with_few_corners_are_wide_but_honest(loss, monkeypatch):
    sharp = group(loss, 12)
    monkeypatch.setattr("sfumato.loss.kinds.group.NODES", 150)
    rough = group(loss, 12)
    eps = np.linspace(0, 6, 200)
    for first, second in ((sharp.forward(eps), rough.forward(eps)), (sharp.backward(eps), rough.backward(eps))):
        assert np.all(second.lower <= first.upper)
        assert np.all(first.lower <= second.upper)
    assert sharp.delta(0.0).gap < rough.delta(0.0).gap < 0.1


@pytest.mark.parametrize(
    ("loss", "size", "truth"),
    [
        (LaplaceLoss(0.3), 2, LaplaceLoss(0.6)),
        (LaplaceLoss(0.3), 7, LaplaceLoss(2.1)),
        (DiscreteLaplaceLoss(3.0), 3, DiscreteLaplaceLoss(3.0, 3)),
        (DiscreteGaussianLoss(3.0), 4, DiscreteGaussianLoss(3.0, 4)),
        (BoundedRangeLoss(0.5), 4, BoundedRangeLoss(2.0)),  # a logistic law shifted four times
    ],
)
def test_location_families_shift_on(loss, size, truth):
    found = group(loss, size)
    assert encloses(found, truth, gap=1e-4, floor=1e-6)
    if math.isfinite(truth.supremum()[0]):
        assert found.supremum()[0] == pytest.approx(truth.supremum()[0], rel=1e-12)
        assert found.leak() == (0.0, 0.0)


@given(eps=st.floats(1e-3, 3), size=st.integers(1, 10**6))
def test_ranges_add_up(eps, size):
    many = BoundedRangeLoss(eps, relation=Relation.ReplaceOne).group(size)
    assert isinstance(many, BoundedRangeLoss) and many.relation is Relation.ReplaceOne
    assert size * Fraction(eps) <= Fraction(many.eps) <= size * Fraction(eps) * (1 + Fraction(1, 10**15))


@given(
    steps=st.lists(st.lists(st.floats(-0.5, 0.5), min_size=4, max_size=4), min_size=1, max_size=6),
    eps=st.floats(0.01, 2),
)
def test_a_chain_of_exponential_mechanisms_keeps_to_its_range(steps, eps):
    scores = np.cumsum([[0.3, -0.2, 0.7, 0.0], *steps], axis=0)  # each changes by at most ½ either way per step
    q, p = (np.exp(eps * row) / np.exp(eps * row).sum() for row in (scores[0], scores[-1]))
    many = BoundedRangeLoss(eps).group(len(steps))
    assert np.ptp(np.log(p) - np.log(q)) <= many.eps + ROUNDING
    at = np.linspace(0.0, many.eps, 7)
    chain = [float(np.maximum(p - math.exp(t) * q, 0.0).sum()) for t in at]
    assert np.all(chain <= many.forward(at).upper + ROUNDING)


def classical(eps, failure, size):
    """(kε, δ(e^{kε} − 1)/(e^ε − 1))."""
    return ApproxLoss(size * eps, min(1.0, failure * math.expm1(size * eps) / math.expm1(eps)))


@settings(max_examples=15)
@given(eps=st.floats(0.01, 2), failure=st.floats(-12, -2).map(lambda x: 10.0**x), size=st.integers(2, 6))
def test_the_classical_bound_holds_and_is_met_at_its_own_eps(eps, failure, size):
    found, known = group(ApproxLoss(eps, failure), size), classical(eps, failure, size)
    assume(known.failure < 0.4)  # beyond, r leaves its first edge, and the classical bound is not tight
    at = np.array([0.0, 0.5, 0.9, 1.0, 1.5]) * known.eps
    assert np.all(found.forward(at).lower <= known.forward(at).upper)
    value = known.forward(at[3:]).lower
    assert np.all(value * (1 - 1e-9) <= found.forward(at[3:]).upper)
    assert found.forward(at[3:]).upper == pytest.approx(value, rel=1e-5, abs=1e-11)


def chain(growth, failure, size):
    """Corners of k steps of randomized response with e^ε = growth that leaks."""
    heads, tails = (1 - failure) * growth / (1 + growth), (1 - failure) / (1 + growth)
    one = many = corners((failure, heads, tails, Fraction(0)), (Fraction(0), tails, heads, failure))
    for _ in range(size - 1):
        many = composed(one, many)
    return many


@settings(max_examples=20)
@given(
    growth=st.fractions(Fraction(101, 100), 8, max_denominator=100),
    failure=st.integers(1, 12).map(lambda n: Fraction(9, 10**n)) | st.just(Fraction(0)),
    size=st.integers(1, 7),
)
def test_groups_at_eps_and_delta_lie_between_the_exact_chain_and_the_classical_bound(growth, failure, size):
    eps, many = math.log(growth), chain(growth, failure, size)
    found, known = ApproxLoss(eps, float(failure)).group(size), classical(eps, float(failure), size)
    at = np.linspace(0.0, 1.2 * size * eps, 40)
    upper = found.forward(at).upper
    assert np.all(profile(many, at) <= upper + ROUNDING)
    assert np.all(upper <= known.forward(at).upper + 1e-13)
    assert found.leak()[0] == pytest.approx(known.failure, rel=1e-12)
    assert found.reverse == found


@given(
    growth=st.fractions(Fraction(101, 100), 8, max_denominator=100),
    failure=st.integers(6, 12).map(lambda n: Fraction(1, 10**n)),
    size=st.integers(2, 6),
)
def test_what_is_given_away_over_the_exact_chain_is_what_the_proof_says(growth, failure, size):
    eps, many, noise = math.log(growth), chain(growth, failure, size), chain(growth, Fraction(0), size)
    spread = sum(growth**i for i in range(size))
    assume(failure * spread < Fraction(1, 2))
    for i in range(size + 1):
        slope = growth ** (size - 2 * i)
        exact = max(r - slope * x for x, r in many)
        pure = max(r - slope * x for x, r in noise)
        excess = failure * (1 - growth**-i) * sum(growth**j for j in range(size - i))
        assert failure * spread + (1 - failure * spread) * pure == exact + excess
        if 2 * i <= size:
            found = ApproxLoss(eps, float(failure)).group(size).forward(np.array([(size - 2 * i) * eps]))
            assert found.upper[0] == pytest.approx(float(exact + excess), abs=1e-13)


@pytest.mark.parametrize(
    ("loss", "size", "eps", "leak"),
    [
        (ApproxLoss(0.0, 1e-9), 1000, 0.0, 1e-6),
        (ApproxLoss(0.5, 1e-9), 0, 0.0, 0.0),
        (ApproxLoss(1e-9, 1e-9), 5, 5e-9, 5e-9),
        (ApproxLoss(1e-6, 1e-15), 10**6, 1.0, 1e-15 * math.expm1(1) * 1e6),
        (ApproxLoss(699.0, 1e-200), 2, 1398.0, 1.0),  # e^699·1e-200 is more than 1
        (ApproxLoss(350.0, 1e-160), 3, 1050.0, 1.0),
        (ApproxLoss(2000.0, 0.1), 5, 10_000.0, 1.0),
        (ApproxLoss(2000.0, 0.0), 5, 10_000.0, 0.0),
        (ApproxLoss(1.0, 0.3), 5, 5.0, 1.0),
    ],
)
def test_extreme_groups_keep_the_classical_bound(loss, size, eps, leak):
    found = loss.group(size)
    assert isinstance(found, ApproxLoss)
    assert found.eps == pytest.approx(eps, rel=1e-14) and found.eps >= eps
    assert found.failure == pytest.approx(leak, rel=1e-6)


def test_a_loss_that_leaks_is_the_sum_with_a_leak():
    inner = DiscreteLaplaceLoss(2.0, 3)
    leaky, total = LeakyLoss(inner, 1e-4), inner + ApproxLoss(0.0, 1e-4)
    for eps in (0.0, 0.7, 1.4, 3.0):
        one, two = leaky.delta(eps), total.delta(eps)
        assert one.lower <= two.upper and two.lower <= one.upper
        assert one.relative_gap < 1e-12
    assert leaky.log_moment(-0.5).upper == pytest.approx(inner.log_moment(-0.5).upper + math.log1p(-1e-4))
    assert leaky.log_moment(1.0).lower == leaky.kl().lower == math.inf
    assert LeakyLoss(inner, 0.0).renyi(2.0) == inner.renyi(2.0)
    assert LeakyLoss(inner, 1.0).delta(9.0).lower == pytest.approx(1.0)
    assert from_json(leaky.to_json()) == leaky


def test_a_leak_belongs_to_a_loss_about_the_same_neighbours():
    with pytest.raises(MixedRelations, match="replace-one"):
        LeakyLoss(GaussianLoss(1.0, relation=Relation.ReplaceOne), 0.1)
    with pytest.raises(InvalidParameter, match="a loss inside"):
        LeakyLoss(1.0, 0.1)
    with pytest.raises(InvalidParameter, match="failure"):
        LeakyLoss(GaussianLoss(1.0), 1.5)


def test_a_pure_loss_is_tighter_in_groups_than_its_eps_says():
    two = group(PureLoss(0.4), 2)
    assert two.supremum()[0] == pytest.approx(0.8)
    assert float(two.delta(0.0)) < float(PureLoss(0.8).delta(0.0)) - 0.05
    assert float(two.delta(0.79)) <= float(PureLoss(0.8).delta(0.79)) * (1 + 1e-6)


# ---- laws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", [PoissonSampledLoss(GaussianLoss(1.0), 0.1), FinitePairLoss((0.5, 0.3, 0.2), (0.05, 0.3, 0.65))]
)
def test_reversing_commutes_with_grouping(loss):
    one, other = loss.reverse.group(3), loss.group(3).reverse
    eps = np.linspace(0, 5, 50)
    for first, second in ((one.forward(eps), other.forward(eps)), (one.backward(eps), other.backward(eps))):
        assert np.all(first.lower <= second.upper)
        assert np.all(second.lower <= first.upper)


@settings(max_examples=5)
@given(case=finite_pairs(), first=st.integers(2, 3), second=st.integers(2, 3))
def test_a_group_of_groups_is_a_group(case, first, second):
    loss, _ = case
    eps = np.linspace(0, 6, 40)
    once, twice = group(loss, first * second).forward(eps), group(group(loss, first), second).forward(eps)
    assert np.all(once.lower <= twice.upper)
    assert np.all(twice.lower <= once.upper)


def test_more_people_cost_more():
    loss = PoissonSampledLoss(GaussianLoss(1.0), 0.1)
    deltas = [group(loss, size).delta(1.0) for size in (1, 2, 5)]
    assert all(a.upper < b.lower for a, b in pairwise(deltas))


def test_nobody_and_one_person():
    loss = FinitePairLoss((0.5, 0.5), (0.2, 0.8), relation=Relation.ReplaceOne)
    assert group(loss, 1) is loss
    assert group(loss, 0) == nothing(Relation.ReplaceOne)
    assert loss.group(2).relation is Relation.ReplaceOne


@pytest.mark.parametrize("size", [-1, 1.5, True, "two", None])
def test_a_group_has_a_whole_size(size):
    with pytest.raises(InvalidParameter, match="size"):
        group(PureLoss(1.0), size)


@pytest.mark.parametrize(
    ("loss", "everything"),
    [
        (FinitePairLoss((1.0, 0.0), (0.0, 1.0)), True),
        (GaussianLoss(40.0), True),
        (PureLoss(300.0), True),
        (FinitePairLoss((0.3, 0.7), (0.3, 0.7)), False),
        (GaussianLoss(0.0), False),
    ],
)
def test_extremes(loss, everything):
    found = group(loss, 5)
    assert found.delta(0.5).upper == (1 if everything else 0)
    assert found.delta(0.5).gap < 1e-13


def test_a_table_can_be_grouped_and_described():
    table = from_profile(lambda t: -math.expm1(min(t - 0.5, 0) / 2), top=0.5)
    two = table.group(2)
    assert isinstance(two, TabulatedLoss)
    assert encloses(two, LaplaceLoss(1.0), gap=1e-4, floor=1e-6)
    assert from_json(two.to_json()) == two


# ---- replacement ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "replaced"),
    [
        (GaussianLoss(0.7), GaussianLoss(1.4, relation=Relation.ReplaceOne)),
        (LaplaceLoss(0.7), LaplaceLoss(1.4, relation=Relation.ReplaceOne)),
        (PureLoss(0.7), PureLoss(0.7, relation=Relation.ReplaceOne).group(2)),
        (DiscreteLaplaceLoss(2.0, 3), DiscreteLaplaceLoss(2.0, 6, relation=Relation.ReplaceOne)),
        (DiscreteGaussianLoss(2.0, 3), DiscreteGaussianLoss(2.0, 6, relation=Relation.ReplaceOne)),
        (nothing(), nothing(Relation.ReplaceOne)),
        (
            3 * GaussianLoss(0.7) + LaplaceLoss(0.1),
            3 * GaussianLoss(1.4, relation=Relation.ReplaceOne) + LaplaceLoss(0.2, relation=Relation.ReplaceOne),
        ),
        (
            either(GaussianLoss(0.7), LaplaceLoss(0.1)),
            either(GaussianLoss(1.4, relation=Relation.ReplaceOne), LaplaceLoss(0.2, relation=Relation.ReplaceOne)),
        ),
    ],
)
def test_replacing_has_closed_forms(loss, replaced):
    assert replace_one(loss) == replaced


def test_replacing_at_an_approximate_loss_is_a_group_of_two():
    assert replace_one(ApproxLoss(0.5, 1e-6)) == ApproxLoss(0.5, 1e-6, relation=Relation.ReplaceOne).group(2)
    assert replace_one(ApproxLoss(0.5, 1e-6)).relation is Relation.ReplaceOne


def test_replacing_one_of_two_alike_is_a_group_of_two():
    loss = RandomizedResponseLoss(0.6, 3)
    eps = np.linspace(0, 1.3, 30)
    one, two = replace_one(loss).forward(eps), group(loss, 2).forward(eps)
    assert one.upper == pytest.approx(two.upper, rel=1e-6, abs=1e-9)
    assert one.lower == pytest.approx(two.lower, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    "loss", [GaussianLoss(1.0, relation=Relation.ReplaceOne), GaussianLoss(1.0).remove, GaussianLoss(1.0).add]
)
def test_only_add_remove_losses_can_be_replaced(loss):
    with pytest.raises(MixedRelations, match="add/remove"):
        replace_one(loss)
