"""What makes no sense is refused in words before a bit is drawn; private values are never refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.noise import (
    Bernoulli,
    Categorical,
    DiscreteGaussian,
    DiscreteLaplace,
    Exp,
    GaussianDensity,
    Geometric,
    LaplaceDensity,
    Lattice,
    Pool,
    Rounding,
    Sampler,
    StaircaseDensity,
    Uniform,
    exponential_coin,
    geometric,
    rounded_gaussian,
    rounded_laplace,
    rounded_staircase,
    sampler,
)
from sfumato.noise.draw_table import CHUNK
from sfumato.noise.sampler import FAR, NEAR, add_near, add_saturating, saturating_sum
from tests.noise.sources import Recorded, Scripted

LARGEST = 2**63 - 1
SCALED = [DiscreteGaussian, DiscreteLaplace, rounded_gaussian, rounded_laplace, geometric]
SCALED += [lambda s: rounded_staircase(1, s), lambda s: rounded_staircase(s, 1), GaussianDensity, LaplaceDensity]
BAD = [math.nan, math.inf, -math.inf, 0, 0.0, -0.0, -1, 5e-324, 1e-310, 1e300, 10**400, "1", None, True, 1j, [1]]


@pytest.mark.parametrize("make", SCALED)
@pytest.mark.parametrize("scale", [*BAD, np.nan, np.float64(0), np.array([1.0]), np.bool_(True)], ids=repr)
def test_a_scale_that_makes_no_sense_is_refused(make, scale):
    with pytest.raises(InvalidParameter, match="found"):
        make(scale)


@pytest.mark.parametrize("scale", [3, 3.0, np.int64(3), np.float32(3), Fraction(3)])
def test_a_scale_is_the_rational_number_it_is(scale):
    assert DiscreteLaplace(scale) == DiscreteLaplace(3)
    assert DiscreteLaplace(0.1) != DiscreteLaplace(Fraction(1, 10))


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan, "1", Exp(Fraction(1)), None])
def test_a_probability_that_is_none_is_refused(p):
    with pytest.raises(InvalidParameter):
        Bernoulli(p)


@pytest.mark.parametrize(
    "make",
    [
        lambda: exponential_coin(-1),
        lambda: exponential_coin(math.inf),
        lambda: Geometric(1),
        lambda: Geometric(2),
        lambda: Geometric(-0.5),
        lambda: Geometric(Exp(Fraction(1))),
        lambda: Uniform(0),
        lambda: Uniform(2**63 + 1),
        lambda: Uniform(1.5),
        lambda: Categorical([]),
        lambda: Categorical([0, 0]),
        lambda: Categorical([1, -1]),
        lambda: Categorical([1, math.nan]),
        lambda: StaircaseDensity(1, 1, 1.5),
        lambda: StaircaseDensity(1e-9, 1e17, 0.5),
        lambda: Lattice(0.5),
        lambda: Lattice.within(0),
        lambda: Lattice.within(math.nan),
        lambda: Lattice(0).exactly([0.5]),
        lambda: Pool(Sampler(DiscreteLaplace(1)), 0),
    ],
)
def test_other_nonsense_is_refused(make):
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("count", [-1, 1.5, math.nan, "1", None])
def test_a_count_that_is_none_is_refused_before_a_bit_is_drawn(count):
    source = Scripted("")  # one bit would be too many
    drawers = [Sampler(DiscreteLaplace(1), source=source), Bernoulli(0.5, source=source), Uniform(5, source)]
    for drawer in drawers:
        with pytest.raises(InvalidParameter):
            drawer.draw(count)
        assert drawer.draw(0).size == 0


def test_draws_that_leave_64_bits_are_put_at_the_end():
    draws = Sampler(DiscreteLaplace(10**18), source=Recorded("far")).draw(200_000)
    assert draws.max() == LARGEST  # 9.2 scales: about ten of these; none with probability e^-10
    assert draws.min() == -LARGEST


def test_a_value_near_the_end_is_not_told_by_noise_beyond_it():
    """−5 + N for N far beyond 2⁶³ is at the end, and not 5 before it."""
    sampler = Sampler(DiscreteLaplace(10**18), source=Recorded("far"))
    answers = sampler.about(np.full(200_000, -5))
    assert (answers == LARGEST).sum() >= 5
    assert not np.any((answers > LARGEST - 5000) & (answers < LARGEST))  # by chance once in 10^13
    pool = Pool(Sampler(DiscreteLaplace(10**18), source=Recorded("far")), 200_000)
    pool.ready(200_000)
    assert max(abs(pool.take()) for _ in range(200_000)) > LARGEST


def test_private_values_are_never_refused():
    values = [math.nan, math.inf, -math.inf, -0.0, 5e-324, -5e-324, 2.0**52 + 0.5, 2.0**63, -(2.0**63), 1e308, 0.0]
    answers = Rounding(GaussianDensity(Fraction(1, 1000)), source=Recorded("values")).about(values)
    exact = [0, LARGEST, -LARGEST, 0, 0, 0, None, LARGEST, -LARGEST, LARGEST, 0]
    assert [a for a, e in zip(answers.tolist(), exact, strict=True) if e is not None] == [
        e for e in exact if e is not None
    ]
    assert answers[6] in (2**52, 2**52 + 1)
    for exponent in (-900, -3, 0, 70, 900):
        lattice = Lattice(exponent)
        found = lattice.unrounded(values).with_noise(Rounding(LaplaceDensity(2), source=Recorded("v"))).multiples
        assert found[1] == LARGEST
        assert found[2] == -LARGEST
        assert lattice.rounded(values).multiples[2] == -LARGEST


def test_sums_saturate():
    a = np.array([LARGEST, -LARGEST, LARGEST, 5, -LARGEST - 1, -5], np.int64)
    b = np.array([1, -2, -LARGEST, -7, 0, -LARGEST + 3], np.int64)
    assert saturating_sum(a, b).tolist() == [LARGEST, -LARGEST, 0, -2, -LARGEST, -LARGEST]


def saturated(v: int, k: int) -> int:
    """What a sum should be, in Python's integers."""
    return max(-LARGEST, min(LARGEST, max(-LARGEST, v) + k))


whole64 = st.integers(-LARGEST - 1, LARGEST) | st.sampled_from([-LARGEST - 1, -LARGEST, LARGEST, FAR, -FAR, FAR - 1, 0])
near64 = st.integers(-NEAR, NEAR) | st.sampled_from([-NEAR, NEAR, 0, 1, -1])
any64 = st.integers(-LARGEST, LARGEST) | st.sampled_from([-LARGEST, LARGEST, 0])


@given(st.lists(st.tuples(whole64, near64), min_size=1, max_size=8))
def test_a_sum_with_near_noise_is_the_exact_sum_saturated(pairs):
    values, noise = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    add_near(values, noise)
    assert noise.tolist() == [saturated(v, k) for v, k in pairs]


@given(st.lists(st.tuples(whole64, any64), min_size=1, max_size=8))
def test_a_sum_with_any_noise_is_the_exact_sum_saturated(pairs):
    values, noise = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    add_saturating(values, noise)
    assert noise.tolist() == [saturated(v, k) for v, k in pairs]


@given(whole64, near64)
def test_the_rare_path_of_a_sum_is_taken_by_the_answer_alone(v, k):
    """Its time must not tell more about a private value than the answer does."""
    with pytest.MonkeyPatch.context() as patch:
        taken = []
        patch.setattr(sampler, "add_saturating", lambda *_: taken.append(True))
        add_near(np.array([v], np.int64), np.array([k], np.int64))
    assert bool(taken) == (abs(saturated(v, k)) >= FAR)


@pytest.mark.parametrize("scale", [1, 1000, 10**12, 10**18])
def test_noise_about_values_is_the_drawn_noise_plus_the_values(scale):
    """Also where tables end before NEAR, beyond it, and where draws leave 64 bits."""
    count = 3 * CHUNK + 5
    noise, beyond = Sampler(DiscreteLaplace(scale), source=Recorded("sum")).draw_with_beyond(count)
    ends = [0, 5, -7, FAR, -FAR, LARGEST, -LARGEST, LARGEST - 3, -LARGEST - 1]
    values = np.array([ends[i % len(ends)] if i >= CHUNK else i for i in range(count)], np.int64)
    kept = values.copy()
    answers = Sampler(DiscreteLaplace(scale), source=Recorded("sum")).about(values)
    pairs = zip(values.tolist(), noise.tolist(), strict=True)
    exact = [saturated(v, beyond.get(i, k)) for i, (v, k) in enumerate(pairs)]
    assert answers.tolist() == exact
    assert np.array_equal(values, kept)
    assert bool(beyond) == (scale == 10**18)


def test_a_lattice_is_coarsest_within_a_public_step():
    for step, exponent in ((1, 0), (1.5, 0), (2, 1), (0.3, -2), (0.25, -2), (Fraction(1, 3), -2), (1000, 9)):
        assert Lattice.within(step) == Lattice(exponent)
    assert Lattice(-2).units(3) == 12


def test_rounding_first_tells_what_it_costs_and_is_another_type():
    lattice = Lattice(-1)
    first = lattice.rounded([0.3, 0.8, -1.1])
    assert first.multiples.tolist() == [1, 2, -2]
    l1, l2, linf = first.growth()
    assert (l1, linf) == (1.5, 0.5)
    assert l2**2 >= 0.75
    assert not hasattr(first, "with_noise")
    assert first.paid().with_noise(Sampler(DiscreteLaplace(1))).multiples.shape == (3,)


def test_no_repr_shows_a_private_value():
    lattice = Lattice(0)
    for private in (lattice.exactly([12345]), lattice.rounded([12345.0]), lattice.unrounded([12345.0])):
        assert "12345" not in repr(private)
    pool = Pool(Sampler(DiscreteLaplace(10**9)), 4)
    pool.ready(4)
    assert repr(pool) == repr(Pool(pool.sampler, 4))


def test_answers_are_exact_until_they_are_printed():
    answer = Lattice(-3).exactly([1, 2**62 + 1]).with_noise(Sampler(rounded_gaussian(Fraction(1, 1000))))
    assert answer.fractions() == [Fraction(1, 8), Fraction(2**62 + 1, 8)]
    assert answer.floats().tolist() == [0.125, 2.0**59]


def test_laws_of_one_outcome_are_laws():
    assert Sampler(Geometric(0)).draw(3).tolist() == [0, 0, 0]
    assert Sampler(Categorical([0, 7])).draw(3).tolist() == [1, 1, 1]
    assert Uniform(1).draw(3).tolist() == [0, 0, 0]
    assert Uniform(1).one() == 0
    assert Uniform(2**63).draw(3).min() >= 0
