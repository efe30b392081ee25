"""Adding noise: what is refused before a bit is drawn, what saturates, and what comes out."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.additive.bounded_laplace import WorstCentre
from sfumato.noise import radius
from sfumato.rounding import quotient_up, round_up
from tests.mechanisms import laws
from tests.noise.sources import Recorded, Scripted

LARGEST = 2**63 - 1
KINDS = {
    "Gaussian": lambda scale=3, **more: sf.Gaussian(scale, **more),
    "Laplace": lambda scale=3, **more: sf.Laplace(scale, **more),
    "DiscreteGaussian": lambda scale=3, **more: sf.DiscreteGaussian(scale, **more),
    "DiscreteLaplace": lambda scale=3, **more: sf.DiscreteLaplace(scale, **more),
    "Staircase": lambda scale=3, **more: sf.Staircase(1.0, scale, **more),
    "TruncatedLaplace": lambda scale=3, **more: sf.TruncatedLaplace(scale, 12, **more),
    "BoundedLaplace": lambda scale=3, **more: sf.BoundedLaplace(scale, -8, 8, **more),
}
REAL = ["Gaussian", "Laplace", "Staircase"]
WHOLE = sorted(set(KINDS) - set(REAL))
each = pytest.mark.parametrize("kind", KINDS)
BAD_SIZES = [math.nan, math.inf, -math.inf, -1, 5e-324, 1e-310, 1e300, 10**400, "1", None, True, 1j, [1.0]]


@each
@pytest.mark.parametrize("scale", [*BAD_SIZES, 0, 0.0, -0.0], ids=repr)
def test_a_scale_that_makes_no_sense_is_refused(kind, scale):
    with pytest.raises(InvalidParameter, match="do:"):
        KINDS[kind](scale)


@each
@pytest.mark.parametrize("step", [0, -1, 0.3, 3, math.nan, math.inf, "1", None, Fraction(1, 3)], ids=repr)
def test_a_step_that_is_no_power_of_two_is_refused(kind, step):
    with pytest.raises(InvalidParameter, match="do:"):
        KINDS[kind](step=step)


@each
@pytest.mark.parametrize("size", [x for x in BAD_SIZES if x is not None], ids=repr)
def test_a_sensitivity_that_makes_no_sense_is_refused(kind, size):
    with pytest.raises(InvalidParameter, match="do:"):
        KINDS[kind]().loss(size)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.Laplace(2).loss(sf.Sensitivity(l2=1)),
        lambda: sf.DiscreteLaplace(2).loss(sf.Sensitivity(linf=1)),
        lambda: sf.TruncatedLaplace(2, 9).loss(sf.Sensitivity(linf=1)),
        lambda: sf.BoundedLaplace(2, 0, 9).loss(sf.Sensitivity(l2=1)),
        lambda: sf.Gaussian(2).loss(sf.Sensitivity(linf=1)),
        lambda: sf.DiscreteGaussian(2).loss(sf.Sensitivity(linf=1)),
        lambda: sf.Staircase(1.0).loss(sf.Sensitivity(l1=1)),
        lambda: sf.Laplace.of(1.0, 0),
        lambda: sf.Laplace.of(0.0),
        lambda: sf.Laplace.of(math.nan),
        lambda: sf.DiscreteLaplace.of(1.0, 0),
        lambda: sf.Gaussian.analytic(1.0, 0.0),
        lambda: sf.Gaussian.analytic(1.0, 1e-6, 0),
        lambda: sf.Gaussian.analytic(1.0, 1e-300),
        lambda: sf.Gaussian.classical_2(1.0, 5e-324),
        lambda: sf.Gaussian.classical_1(1.5, 1e-6),
        lambda: sf.Gaussian.classical_2(1.0, 0.6),
        lambda: sf.TruncatedLaplace.of(1.0, 0.0),
        lambda: sf.TruncatedLaplace(1.0, 0.5),
        lambda: sf.TruncatedLaplace(1.0, math.inf),
        lambda: sf.BoundedLaplace(1.0, 0, 0),
        lambda: sf.BoundedLaplace(1.0, 5, 1),
        lambda: sf.BoundedLaplace(1.0, 0.5, 3),
        lambda: sf.BoundedLaplace(1.0, math.nan, 3),
        lambda: sf.BoundedLaplace(1e6, 0, 3),
        lambda: sf.BoundedLaplace.of(1.0, 3, 0),
        lambda: sf.Staircase(1.0, 1, 1.5),
        lambda: sf.Staircase(1.0, 1, math.nan),
        lambda: sf.Staircase(0.0, 1),
        lambda: sf.Laplace(1).clamped(2, 1),
        lambda: sf.Laplace(1).clamped(math.nan, 1),
        lambda: sf.Laplace(1).error(1.0),
        lambda: sf.Laplace(1).error(0.9, 0),
    ],
)
def test_other_nonsense_is_refused_in_words(make):
    with pytest.raises(InvalidParameter, match="do:"):
        make()


@each
@pytest.mark.parametrize(
    "value",
    [[[1, 2], [3]], "1", None, 1j, [None], ["1"], {1, 2}, np.array(["a"]), np.array([1j]), object(), [Fraction(1)]],
    ids=lambda x: type(x).__name__ + str(x)[:12],
)
def test_values_of_a_wrong_type_are_refused_before_a_bit_is_drawn(kind, value):
    with pytest.raises(InvalidParameter, match="do:"):
        KINDS[kind](source=Scripted("")).release(value)


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("value", [1.5, 1.0, [1.0], [1, 2.0], np.float32(1), np.array([1.0])], ids=repr)
def test_real_numbers_are_refused_where_noise_is_whole(kind, value):
    with pytest.raises(InvalidParameter, match="whole numbers"):
        KINDS[kind](source=Scripted("")).release(value)


@each
def test_no_values_need_no_noise(kind):
    mechanism = KINDS[kind](source=Scripted(""))
    for empty, shape in (([], (0,)), (np.zeros((3, 0), np.int64), (3, 0)), (np.zeros(0), (0,))):
        assert mechanism.release(empty).shape == shape


@each
def test_shapes_and_types_of_answers(kind):
    mechanism = KINDS[kind](source=Recorded(f"shape {kind}"))
    assert type(mechanism.release(5)) is int
    assert type(mechanism.release(np.int32(5))) is int
    assert type(mechanism.release(True)) is int
    assert mechanism.release([[1, 2, 3], [4, 5, 6]]).shape == (2, 3)
    assert mechanism.release(np.array([1, 2], np.uint8)).dtype == np.int64
    half = KINDS[kind](step=0.5, source=Recorded(f"half {kind}"))
    assert type(half.release(5)) is float
    found = half.release(range(100))
    assert found.dtype == np.float64 and np.all(found * 2 == np.rint(found * 2)) and np.any(found != np.rint(found))


@each
def test_private_integers_are_never_refused(kind):
    mechanism = KINDS[kind](source=Recorded(f"limits {kind}"))
    for value in (2**63 - 1, -(2**63), 2**64, -(10**400), 10**400, np.uint64(2**64 - 1), np.int64(-(2**63))):
        answer, end = mechanism.release(value), LARGEST if value > 0 else -LARGEST
        assert abs(answer) <= LARGEST
        assert abs(answer - end) < 100 if kind != "BoundedLaplace" else abs(answer) <= 8
    half = KINDS[kind](step=0.5, source=Recorded(f"half limits {kind}"))
    assert abs(half.release(2**63 - 1)) <= 2.0**62
    assert np.all(np.abs(mechanism.release([2**63 - 1, -(2**63), 10**400])) <= LARGEST)


@each
def test_an_array_of_int64_is_released_like_the_list_of_its_values(kind):
    """It is read without a copy, and left as it was."""
    values = np.array([[2**63 - 1, -(2**63), -(2**63) + 1], [0, 5, -7]])
    before = values.copy()
    made = [KINDS[kind](source=Recorded(f"array {kind}")) for _ in range(2)]
    answers = made[0].release(values)
    assert np.array_equal(answers, made[1].release(values.tolist()))
    assert not np.shares_memory(answers, values) and np.array_equal(values, before)
    assert made[0].release(np.zeros((3, 0), np.int64)).shape == (3, 0)


@pytest.mark.parametrize("kind", REAL)
def test_private_reals_are_never_refused(kind):
    mechanism = KINDS[kind](source=Recorded(f"reals {kind}"))
    values = [math.nan, math.inf, -math.inf, -0.0, 5e-324, -1e-310, 1e308, 2.0**63, np.float32(1.5)]
    for value in values:
        assert type(mechanism.release(value)) is int
    found = mechanism.release(values)
    assert found[1] == LARGEST and found[2] == -LARGEST and found[6] == LARGEST
    assert np.all(np.abs(found[[0, 3, 4, 5]]) < 300)
    near = sf.Gaussian(0.001, source=Recorded("nan"))
    assert near.release([math.nan, -0.0, 5e-324]).tolist() == [0, 0, 0]


def test_a_list_has_the_type_of_its_parts_and_not_of_its_values():
    """NumPy would choose uint64, float64 or objects by the size of an integer: by private data."""
    mechanism = sf.DiscreteLaplace(1, source=Recorded("types"))
    for values in ([1, 2], [1, 2**63], [1, 2**64], [-1, 2**63]):
        assert mechanism.release(values).dtype == np.int64


def test_integers_finer_than_the_lattice_are_refused():
    for kind in KINDS:
        make = KINDS[kind]
        mechanism = make(4, step=4, source=Scripted("")) if kind != "BoundedLaplace" else make(4, step=4)
        with pytest.raises(InvalidParameter, match="step"):
            mechanism.release(5)
    assert sf.Gaussian(4, step=4, source=Recorded("coarse")).release(5.0) % 4 == 0


# ---- what comes out -------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("confidence", [0.3, 0.9])
def test_errors_are_what_error_says(kind, confidence):
    """Binomial with n = 20000: an error rate off by 6 standard deviations has a chance below 1e-8."""
    mechanism, n = (
        KINDS[kind](source=Recorded(f"error {kind} {confidence}")),
        20_000 if kind != "BoundedLaplace" else 2000,
    )
    values = np.zeros(n, np.int64)
    inside = np.mean(np.abs(mechanism.release(values)) <= mechanism.error(confidence))
    slack = 6 * math.sqrt(confidence * (1 - confidence) / n)
    assert inside >= confidence - slack
    if mechanism.error(confidence) > 1 and kind != "BoundedLaplace":
        assert np.mean(np.abs(mechanism.release(values)) <= mechanism.error(confidence) - 1) <= confidence + slack


@pytest.mark.parametrize("kind", REAL)
def test_reals_are_off_by_at_most_one_step_more(kind):
    mechanism, n = KINDS[kind](source=Recorded(f"real error {kind}")), 20_000
    values = np.linspace(-3, 3, n)
    inside = np.mean(np.abs(mechanism.release(values) - values) <= mechanism.error(0.9) + 1)
    assert inside >= 0.9 - 6 * math.sqrt(0.09 / n)


def test_error_is_in_value_units_and_counts_coordinates():
    assert sf.Laplace(3).error(0.95) == radius(sf.Laplace(3).law(), 0.95) == 9
    assert sf.Laplace(3, step=0.25).error(0.95) == 9.0
    assert sf.Laplace(3 * 2.0**40, step=2.0**40).error(0.95) == 9 * 2.0**40
    assert sf.Laplace(3).error(0.95, 100) > sf.Laplace(3).error(0.95)
    assert sf.TruncatedLaplace(3, 12).error(1 - 1e-15) == 12
    assert sf.BoundedLaplace(100, 0, 4).error(0.95) == 4


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95])
def test_an_error_that_is_no_double_is_rounded_up(confidence):
    noise = sf.Laplace(2.0**58 + 2.0**7)
    assert Fraction(noise.error(confidence)) >= radius(noise.law(), confidence)


def test_bounded_answers_stay_inside_and_have_the_law_that_is_meant():
    """Pearson's statistic of 6000 draws over 7 cells, 6 degrees of freedom: above 40 with a chance below 1e-6."""
    mechanism, n = sf.BoundedLaplace(2, 0, 6, source=Recorded("bounded")), 6000
    found = np.bincount(mechanism.release(np.full(n, 1)), minlength=7)
    weights = np.exp(-np.abs(np.arange(7) - 1) / 2)
    expected = n * weights / weights.sum()
    assert len(found) == 7 and ((found - expected) ** 2 / expected).sum() < 40
    assert set(sf.BoundedLaplace(2, -3, -1, source=Recorded("clamped value")).release([50] * 200)) == {-3, -2, -1}


def test_bounded_noise_draws_the_same_number_of_bits_wherever_the_value_is():
    used = set()
    for value in (0, 3, 50, 99, 100, 10**6):
        source = Recorded("equal")
        mechanism = sf.BoundedLaplace(0.25, 0, 100, source=source)
        mechanism.release(value)
        used.add(source.used)
    assert len(used) == 1


def test_clamped_answers_stay_in_their_range():
    mechanism = sf.DiscreteLaplace(50, source=Recorded("clamp")).clamped(0, 10)
    found = mechanism.release([5] * 500)
    assert found.min() == 0 and found.max() == 10 and found.dtype == np.int64
    assert type(mechanism.release(5)) is int


@each
def test_a_mechanism_can_be_copied_and_pickled_and_shows_no_draws(kind):
    mechanism = KINDS[kind]()
    mechanism.release(5)
    for twin in (copy.copy(mechanism), copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):
        assert twin == mechanism and repr(twin) == repr(mechanism)
        assert type(twin.release(5)) is int
    draws = [pickle.loads(pickle.dumps(mechanism)).release([0] * 64) for _ in range(2)]
    assert not np.array_equal(*draws)  # equal with a chance below 2^-64
    assert mechanism.loss(1).to_json() == KINDS[kind]().loss(1).to_json()


def test_ready_draws_ahead_and_releases_hand_out():
    source = Recorded("ahead")
    mechanism = sf.Gaussian(10, source=source)
    mechanism.ready(100)
    used = source.used
    assert [mechanism.release(7) for _ in range(100)] and source.used == used


# ---- rounding up ----------------------------------------------------------------------------------------------------

sizes = st.floats(1e-50, 1e50)


@given(sizes, sizes)
def test_a_quotient_is_the_least_double_that_is_not_below(a, b):
    found, truth = quotient_up(a, b), Fraction(a) / Fraction(b)
    assert Fraction(found) >= truth
    assert Fraction(math.nextafter(found, 0)) < truth


@given(st.fractions(0, 10**30))
def test_a_fraction_is_rounded_up_to_the_next_double(x):
    assert Fraction(math.nextafter(round_up(x), -1)) < x <= Fraction(round_up(x))


@pytest.mark.parametrize(("scale", "width"), [(1.0, 4), (1.0, 5), (3.0, 40), (100.0, 9), (0.3, 1), (2.0, 7)])
def test_the_error_of_bounded_noise_is_the_least_for_the_worst_value(scale, width):
    """Every value of the range, by balls; some error is the middle's, some an end's."""
    mechanism = sf.BoundedLaplace(scale, 0, width)
    each = [laws.bounded_laplace(scale, 0, width, v) for v in range(width + 1)]

    def missed(m):
        return max(sum(float(p) for k, p in law.items() if abs(k - v) > m) for v, law in enumerate(each))

    for confidence in (0.3, 0.5, 0.8, 0.95, 0.999):
        t = mechanism.error(confidence)
        assert missed(t) <= 1 - confidence and (t == 0 or missed(t - 1) > 1 - confidence)


@pytest.mark.parametrize("scale", [3.0, 1e6, 3.3e7, 1.1e8])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_error_of_bounded_noise_is_never_below_its_radius(scale, confidence):
    """Of more steps than a double has bits as well: the doubles there are steps apart."""
    noise = sf.BoundedLaplace(scale, -1e9, 1e9, 2**-30)
    first, last = noise.ends
    inside = math.floor(Fraction(noise.error(confidence)) / noise.lattice.step)
    missed = float(WorstCentre(noise.units, last - first).beyond(inside, 100).upper())
    assert missed <= math.nextafter(1 - confidence, 1)
