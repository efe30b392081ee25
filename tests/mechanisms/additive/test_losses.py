"""What additive noise costs, against laws written down anew; exact where it says so."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from tests.mechanisms import laws
from tests.mechanisms.laws import moved, seen, together
from tests.mechanisms.oracle import EPSILONS, assert_within, most_delta

S = sf.Sensitivity


@pytest.mark.parametrize("scale", [0.4, 1, 3.7])
@pytest.mark.parametrize("distance", [1, 2, 5])
def test_discrete_laplace_on_one_number_is_exact(scale, distance):
    law, loss = laws.discrete_laplace(scale, 160), sf.DiscreteLaplace(scale).loss(distance)
    assert_within(loss, [(moved(law, distance), law)], tight=1 - 1e-9)
    for eps in EPSILONS:
        assert loss.delta(eps).lower <= most_delta(moved(law, distance), law, eps) + 1e-12


@pytest.mark.parametrize("scale", [3.0, 7.0, 1e15 / 3, 1e17 / 7])
@pytest.mark.parametrize("distance", [2.0**51 + 1, 1e16 / 3])
def test_a_shift_of_very_many_steps_never_costs_less_than_it_does(scale, distance):
    size = math.ceil(distance)
    pure, rho = sf.DiscreteLaplace(scale).loss(distance), sf.DiscreteGaussian(scale).loss(distance)
    assert size / Fraction(scale) <= Fraction(pure.eps) <= size / Fraction(scale) * (1 + Fraction(2) ** -50)
    assert Fraction(rho.rho) >= Fraction(size) ** 2 / (2 * Fraction(scale) ** 2)
    assert rho.rho == pytest.approx(size**2 / (2 * scale**2), rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1, 1.3])
def test_the_scale_of_truncated_noise_is_never_too_small(epsilon):
    noise = sf.TruncatedLaplace.of(epsilon, 1e-6, 3)
    assert Fraction(noise.scale) * Fraction(epsilon) >= 3
    assert noise.loss(3).failure <= 1e-6


@pytest.mark.parametrize("sigma", [0.5, 2, 5.5])
@pytest.mark.parametrize("distance", [1, 3])
def test_discrete_gaussian_on_one_number_is_exact(sigma, distance):
    law, loss = laws.discrete_gaussian(sigma, 90), sf.DiscreteGaussian(sigma).loss(distance)
    for eps in EPSILONS:
        truth = most_delta(moved(law, distance), law, eps)
        assert loss.delta(eps).lower - 1e-12 <= truth <= loss.delta(eps).upper + 1e-15


@pytest.mark.parametrize(
    ("mechanism", "law", "tight"),
    [
        (sf.Laplace(2.5), lambda v: laws.rounded_laplace(2.5, 120, v), 1 - 1e-9),
        (sf.Laplace(0.3), lambda v: laws.rounded_laplace(0.3, 120, v), 1 - 1e-3),
        (sf.Gaussian(2.5), lambda v: laws.rounded_gaussian(2.5, 60, v), 0.99),
        (sf.Staircase(0.8, 3, 0.25), lambda v: laws.rounded_staircase(0.8, 3, 0.25, 60, v), 0.95),
        (sf.Staircase(0.8, 2, 0.75), lambda v: laws.rounded_staircase(0.8, 2, 0.75, 60, v), 0.95),
    ],
    ids=lambda x: repr(x) if isinstance(x, sf.mechanisms.Mechanism) else "",
)
def test_rounded_noise_about_real_values_costs_no_more_than_the_noise_itself(mechanism, law, tight):
    size = Fraction(getattr(mechanism, "sensitivity", 1))
    pairs = [
        (law(v + move), law(v)) for v in (Fraction(0), Fraction(1, 2), Fraction(37, 128)) for move in (size, size / 3)
    ]
    assert_within(mechanism.loss(float(size)), pairs, tight=tight)


@settings(max_examples=15)
@given(
    eps=st.sampled_from([0.5, 1.0, 2.5]),
    period=st.integers(1, 4),
    gamma=st.sampled_from([0.0, 0.125, 0.5, 0.625, 1.0]),
    share=st.fractions(0, 1, max_denominator=8),
)
def test_a_staircase_moved_by_less_than_its_width_costs_no_more(eps, period, gamma, share):
    at = Fraction(1, 8)
    one = laws.rounded_staircase(eps, period, gamma, 20, at)
    other = laws.rounded_staircase(eps, period, gamma, 20, at + share * period)
    assert_within(sf.Staircase(eps, period, gamma).loss(), [(other, one)], EPSILONS[:9])


def test_the_staircase_of_a_vector_is_paid_by_coordinate():
    """Two coordinates that move by half a stair each lose 2ε together: the L1 norm says nothing here."""
    mechanism = sf.Staircase(1.0, 2, 0.5)
    law = laws.rounded_staircase(1.0, 2, 0.5, 40)
    here, there = seen(law, 9), seen(moved(law, 1), 9)
    pair = together(there, there), together(here, here)
    assert most_delta(*pair, 1.0) > 0.01 > mechanism.loss(2).delta(1.0).upper
    assert_within(mechanism.loss(S(l0=2, linf=1)), [pair], [0.0, 0.5, 1.0, 1.5, 2.0])
    with pytest.raises(InvalidParameter, match="l0"):
        mechanism.loss(S(l1=2))


MOVES = [(1, 1), (2, 1), (1, -1, 1), (3, -2)]


@pytest.mark.parametrize("moves", MOVES, ids=str)
@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (sf.DiscreteLaplace(1.5), laws.discrete_laplace(1.5, 90)),
        (sf.TruncatedLaplace(2, 6), laws.truncated_laplace(2, 6)),
        (sf.Laplace(1.5), laws.rounded_laplace(1.5, 90)),
        (sf.DiscreteGaussian(1.5), laws.discrete_gaussian(1.5, 30)),
        (sf.Gaussian(1.5), laws.rounded_gaussian(1.5, 30)),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, sf.mechanisms.Mechanism) else "",
)
def test_vectors_cost_no_more_than_their_sensitivities_say(mechanism, law, moves):
    """Theorem 1, and sums over coordinates."""
    pair = together(*(seen(moved(law, m), 8) for m in moves)), together(*(seen(law, 8) for _ in moves))
    sizes = [abs(m) for m in moves]
    l2 = math.nextafter(math.hypot(*sizes), math.inf)
    for known in (S(l1=sum(sizes), l2=l2), S(l0=len(sizes), linf=max(sizes)), S(l1=sum(sizes))):
        assert_within(mechanism.loss(known), [pair], [0.0, 0.5, 1.0, 2.0])


@pytest.mark.slow
@given(a=st.floats(0.01, 3), b=st.floats(0.01, 3), at=st.floats(0, 1))
def test_two_laplace_moves_cost_no_more_than_their_sum(a, b, at):
    both, one = sf.loss.LaplaceLoss(a) + sf.loss.LaplaceLoss(b), sf.loss.LaplaceLoss(a + b)
    assert both.delta(at * (a + b)).lower <= one.delta(at * (a + b)).upper


def test_a_vector_is_priced_by_the_norms_that_are_known():
    tenth = sf.Laplace(10)
    assert tenth.loss(S(l1=10)) == sf.loss.LaplaceLoss(1.0)
    assert tenth.loss(S(l0=10, linf=1)) == 10 * sf.loss.LaplaceLoss(0.1)
    assert tenth.loss(S(l0=10, linf=1, l1=2)) == sf.loss.LaplaceLoss(0.2)
    assert tenth.loss(S(l0=10, linf=1)).epsilon(1e-3).upper < tenth.loss(S(l1=10)).epsilon(1e-3).lower
    gaussian = sf.DiscreteGaussian(5)
    assert gaussian.loss(S(l2=2)) == sf.loss.ZcdpLoss(0.08)
    assert gaussian.loss(S(l0=2, linf=1)) == 2 * sf.loss.DiscreteGaussianLoss(5, 1)
    assert gaussian.loss(S(l1=3)) == sf.loss.DiscreteGaussianLoss(5, 3)
    with pytest.raises(InvalidParameter, match="l1 sensitivity"):
        tenth.loss(S(l2=1))


def test_the_relation_of_the_sensitivity_is_that_of_the_loss():
    known = S(l0=2, linf=1, relation=sf.ReplaceOne)
    mechanisms = [sf.Laplace(2), sf.DiscreteLaplace(2), sf.Gaussian(2), sf.DiscreteGaussian(2)]
    mechanisms += [sf.Staircase(1, 1), sf.TruncatedLaplace(2, 9), sf.BoundedLaplace(2, 0, 9)]
    for mechanism in mechanisms:
        assert mechanism.loss(known).relation is sf.ReplaceOne


@pytest.mark.parametrize("scale", [0.7, 3, 20])
@pytest.mark.parametrize("bound", [1, 4, 9])
@pytest.mark.parametrize("distance", [1, 2, 3, 7, 18, 19])
def test_truncated_noise_leaks_what_a_move_brings_out_of_reach(scale, bound, distance):
    law, loss = laws.truncated_laplace(scale, bound), sf.TruncatedLaplace(scale, bound).loss(distance)
    pair = moved(law, distance), law
    assert_within(loss, [pair])
    top = distance / scale
    for eps in [top, top + 1] + [0.0, top / 2] * (distance == 1):  # exact there
        truth = most_delta(*pair, eps)
        assert loss.delta(eps).lower - 1e-12 <= truth <= loss.delta(eps).upper + 1e-15


@pytest.mark.parametrize(("scale", "high"), [(0.5, 3), (3, 10), (30, 4)])
@pytest.mark.parametrize("distance", [1, 2, 10])
def test_noise_drawn_again_until_it_fits_costs_exactly_its_epsilon(scale, high, distance):
    found = [laws.bounded_laplace(scale, 0, high, v) for v in range(high + 1)]
    loss = sf.BoundedLaplace(scale, 0, high).loss(distance)
    near = [(v, w) for v in range(high + 1) for w in range(high + 1) if 0 < abs(v - w) <= distance]
    worst = max(float((found[v][k] / found[w][k]).log()) for v, w in near for k in range(high + 1))
    assert worst <= loss.eps <= worst + 1e-12
    assert loss.eps <= 2 * distance / scale + 1e-12
    assert_within(loss, [(found[v], found[w]) for v, w in near[:12]], [0.0, loss.eps / 2, loss.eps])


def test_clamping_neither_costs_nor_saves():
    law, distance = laws.discrete_laplace(2, 90), 2

    def clamped(centre):
        answers = {}
        for k, p in moved(law, centre).items():
            end = max(0, min(7, k))
            answers[end] = answers.get(end, 0) + p
        return answers

    loss = sf.DiscreteLaplace(2).clamped(0, 7).loss(distance)
    assert_within(loss, [(clamped(v), clamped(v + distance)) for v in range(6)], tight=1 - 1e-9)
    for eps in (0.0, 0.3, 0.9):
        assert most_delta(clamped(0), clamped(distance), eps) >= loss.delta(eps).lower - 1e-9


# ---- noise by name --------------------------------------------------------------------------------------------------

targets = st.tuples(st.floats(0.01, 0.99), st.floats(-12, -1).map(lambda x: 10**x), st.floats(1e-2, 1e3))


@given(targets)
def test_noise_by_name_meets_its_target(target):
    eps, delta, size = target
    names = (sf.Gaussian.analytic, sf.Gaussian.classical_1, sf.Gaussian.classical_2)
    found = [name(eps, delta, size, step=2.0**-10) for name in names]
    assert all(noise.loss(size).delta(eps).upper <= delta for noise in found)
    assert found[0].sigma <= min(found[1].sigma, found[2].sigma)
    less = sf.Gaussian(found[0].sigma * (1 - 1e-9), step=2.0**-10)
    assert less.loss(size).delta(eps).lower > delta


@pytest.mark.parametrize(("eps", "delta"), [(1, 1e-250), (1e-3, 1e-100), (0.5, 0.49), (0.0, 1e-9), (100, 1e-12)])
def test_noise_by_name_meets_far_targets(eps, delta):
    names = (sf.Gaussian.analytic, sf.Gaussian.classical_2) if eps else (sf.Gaussian.analytic,)
    found = [name(eps, delta) for name in names]
    assert all(noise.loss(1).delta(eps).upper <= delta for noise in found)
    assert found[0].sigma <= found[-1].sigma


@given(st.floats(1e-3, 20), st.floats(1e-2, 1e3))
def test_pure_noise_by_name_meets_its_target(eps, size):
    for mechanism in (sf.Laplace.of(eps, size, 2.0**-10), sf.DiscreteLaplace.of(eps, size, 2.0**-10)):
        assert mechanism.loss(size).epsilon(0).upper <= eps
    assert sf.Laplace.of(eps, size, 2.0**-10).loss(size).eps <= eps
    assert sf.Laplace.of(eps, S(l0=3, linf=size), 2.0**-10).loss(S(l0=3, linf=size)).epsilon(0).upper <= eps * (
        1 + 1e-14
    )


@settings(max_examples=12)
@given(st.floats(0.1, 5), st.floats(-9, -1).map(lambda x: 10**x), st.integers(1, 9))
def test_truncated_noise_by_name_meets_its_target_with_the_least_bound(eps, delta, size):
    found = sf.TruncatedLaplace.of(eps, delta, size)
    assert found.loss(size).delta(eps).upper <= delta * (1 + 1e-14) + 1e-15
    if found.bound > 1:
        assert sf.TruncatedLaplace(found.scale, found.bound - 1).loss(size).delta(eps).lower > delta * (1 - 1e-12)


@pytest.mark.parametrize("count", [2, 1000, 10**15, 2**53, 10**17])
def test_bounded_noise_costs_more_the_more_coordinates_change(count):
    """Also where there are more than most losses can be told to repeat."""
    one = sf.BoundedLaplace(1.0, 0, 4)
    assert one.loss(sf.Sensitivity(l0=count, linf=1)).eps >= one.loss(1).eps * count * (1 - 1e-12)


@settings(max_examples=12)
@given(st.floats(0.05, 5), st.integers(1, 50), st.integers(1, 9))
def test_bounded_noise_by_name_meets_its_target(eps, high, size):
    found = sf.BoundedLaplace.of(eps, 0, high, size)
    assert found.loss(size).eps <= eps
    assert sf.BoundedLaplace(found.scale * (1 - 1e-5), 0, high).loss(size).eps > eps
    assert found.scale <= 2 * size / eps
