"""Transforms against their definitions: M(z) = E[e^{zL}; L < ∞] in as many digits as it takes.

What is certified at a tilt θ: log M(θ) within its slip, ∏φ^k within its discs, and |φ|^k below its ceiling at every
later frequency, recurrences included.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.loss.compose.choose_engine import engine, group_transforms
from sfumato.loss.compose.contour import Totals
from sfumato.loss.compose.transforms.base import product
from sfumato.loss.compose.transforms.sampled_gaussian import SampledGaussianTransform, drop
from sfumato.loss.numeric import ULP
from tests import truth
from tests.configurations import Random, magnitude

L = sf.loss
seeds = st.integers(0, 10**6)
DIGITS = 40


# ---- M(z), from the definitions -------------------------------------------------------------------------------------


def gaussian(mu):
    return lambda z: mp.exp(z * (z + 1) * mp.mpf(mu) ** 2 / 2)


def listed(pair):
    """Σ p·(p/q)^z over the outcomes that both can have."""
    return lambda z: mp.fsum(p * mp.exp(z * mp.log(p / q)) for p, q in pair() if p > 0 and q > 0)


def laplace(eps):
    """Atoms ½ at ε and ½e^{−ε} at −ε, density ¼e^{(l−ε)/2} between."""

    def moment(z):
        e, s = mp.mpf(eps), z + mp.mpf(1) / 2
        between = mp.exp(-e / 2) * (mp.exp(s * e) - mp.exp(-s * e)) / (4 * s)
        return (mp.exp(z * e) + mp.exp(-(1 + z) * e)) / 2 + between

    return moment


class Sampled:
    """One sampled Gaussian by a trapezoid sum that is fine enough for every frequency up to `most`."""

    def __init__(self, rate, mu, sign, theta, most, people=1):
        need = 2.31 * (DIGITS + 10)
        strip = min(math.sqrt(2 * need), 0.75 * math.pi / mu)
        grow = strip**2 / 2 + most * people * mu * strip
        if sign < 0:
            strip = min(strip, math.sqrt(2 * need / (1 + theta * people * mu * mu / 4)))
            grow = strip**2 / 2 + people * (most * mu * strip - theta * math.log(math.cos(mu * strip / 2)))
        reach = math.sqrt(2 * (need - (theta * people * math.log1p(-rate) if sign < 0 else 0.0))) + 1
        step = 2 * math.pi * strip / (need + grow)
        self.points = truth.sampled_moment(rate, mu, sign, mp.mpf(theta), reach, step, people)
        self.moment = mp.fsum(w for w, _ in self.points)

    def phi(self, omega):
        turn = mp.mpf(float(omega))
        return mp.fsum(w * mp.expj(turn * loss) for w, loss in self.points) / self.moment


def term(r, scale):
    """A loss that ends in atoms, or a Gaussian, and its M."""
    eps, kind = scale * magnitude(r, 0.1, 3), r.randrange(6)
    if kind == 0:
        return L.PureLoss(eps), listed(lambda: truth.coin(eps))
    if kind == 1:
        leak = magnitude(r, 1e-15, 0.5)
        return L.ApproxLoss(eps, leak), listed(lambda: truth.coin(eps, leak))
    if kind == 2:
        k = r.choice([3, 5, 100])
        return L.RandomizedResponseLoss(eps, k), listed(lambda: truth.responses(eps, k))
    if kind == 3:
        return L.DiscreteLaplaceLoss(1 / eps), listed(lambda: truth.discrete_laplace(1 / eps, 1))
    if kind == 4:
        return L.GaussianLoss(eps), gaussian(eps)
    return L.LaplaceLoss(eps), laplace(eps)


# ---- what is checked ------------------------------------------------------------------------------------------------


def check_moment(view, exact):
    assert abs(mp.mpf(view.log_moment) - exact) <= view.slip


def check_discs(found, centre, blur, omega, exact):
    """The centre is rounded once more; the engine allows for that by its drift (`Contour.delta`)."""
    for w, log, radius, value in zip(omega, found.log, found.radius, exact, strict=True):
        here = mp.exp(mp.mpc(complex(log))) * mp.expj(mp.mpf(float(w)) * mp.mpf(centre))
        assert abs(here - value) <= float(radius) + blur * float(w) * abs(value) + mp.mpf(10) ** (5 - DIGITS), w


def check_ceiling(log_ceiling, omega, sizes):
    """Non-increasing, and above log|φ|^k here and at every later frequency."""
    assert len(log_ceiling) == len(omega)
    assert np.all(np.diff(log_ceiling) <= 0)
    later = mp.mpf(0)
    for w, ceiling, size in reversed(list(zip(omega, log_ceiling, sizes, strict=True))):
        later = max(later, size)
        assert mp.log(later) <= ceiling + mp.mpf(10) ** -30, w


def spaced(step, nodes):
    """0, D, 2D, … with a D whose multiples are exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * 2**30), exponent - 30) * np.arange(nodes + 1.0)


@settings(max_examples=20)
@given(seed=seeds)
def test_gaussians_and_losses_that_end_in_atoms(seed):
    """Up to six terms with counts up to a million, through the same grouping as in a sum."""
    r = Random(f"transforms {seed}")
    scale, theta = magnitude(r, 1e-3, 5), magnitude(r, 1e-6, 100)
    terms = [(r.choice([1, 1, 3, round(magnitude(r, 1, 1e6))]), *term(r, scale)) for _ in range(r.randrange(1, 7))]
    parts = group_transforms((count, loss) for count, loss, _ in terms)
    spread = scale * math.sqrt(sum(count for count, _, _ in terms))
    near = spaced(r.uniform(0.5, 8) / spread / 12, 12)
    far = np.geomspace(0.1 / spread, 1e5 / scale, 40)
    recurring = np.sort([math.pi * n / loss.supremum()[0] for _, loss, _ in terms for n in (1, 2, 100)])
    far = np.sort(np.concatenate([far, recurring[recurring > 0]]))
    with mp.workdps(DIGITS + 10):
        at = [(count, moment, moment(mp.mpf(theta))) for count, _, moment in terms]

        def phi(omega):
            z = mp.mpc(theta, float(omega))
            return mp.fprod((moment(z) / one) ** count for count, moment, one in at)

        views = [part.tilt(theta) for part in parts]
        exact = mp.fsum(count * mp.log(one) for count, _, one in at)
        assert abs(mp.fsum(view.log_moment for view in views) - exact) <= sum(view.slip for view in views)
        check_discs(
            product([view.discs(near) for view in views]),
            mp.fsum(view.centre for view in views),
            4 * ULP * sum(view.drift + abs(view.centre) for view in views),
            near,
            [phi(omega) for omega in near],
        )
        log_ceiling = sum(view.log_ceiling(far) for view in views)
        check_ceiling(log_ceiling, far, [abs(phi(omega)) for omega in far])


@pytest.mark.slow
@settings(max_examples=12)
@given(seed=seeds)
def test_sampled_gaussians_in_both_directions(seed):
    r = Random(f"sampled transforms {seed}")
    rate = r.choice([magnitude(r, 1e-5, 0.99), 1 - magnitude(r, 1e-3, 0.5)])
    mu, theta, sign = magnitude(r, 0.01, 5), magnitude(r, 1e-3, 60), r.choice([1, -1])
    count = r.choice([1, round(magnitude(r, 1, 1e9))])
    check_sampled(rate, mu, sign, theta, count, r.uniform(0.5, 8), 4)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("rate", "mu", "theta", "count"),
    [(0.999, 1.0, 2.0, 100), (0.01, 5.0, 0.5, 1), (1e-5, 0.01, 300.0, 10**9), (0.5, 0.3, 40.0, 10**4)],
)
def test_sampled_gaussians_at_the_edges(rate, mu, theta, count, sign):
    check_sampled(rate, mu, sign, theta, count, 8.0, 4)


@settings(max_examples=8)
@given(seed=seeds)
def test_groups_under_sampling_in_both_directions(seed):
    r = Random(f"sampled groups {seed}")
    rate, people = magnitude(r, 1e-4, 0.99), r.choice([2, 3, 5])
    mu, theta, sign = magnitude(r, 0.01, 3), magnitude(r, 1e-3, 20), r.choice([1, -1])
    count = r.choice([1, round(magnitude(r, 1, 1e7))])
    check_sampled(rate, mu, sign, theta, count, r.uniform(0.5, 8), 3, people)


def check_sampled(rate, mu, sign, theta, count, reach, nodes, people=1):
    view = SampledGaussianTransform(rate, mu, sign, count, people).tilt(theta)
    grid = view.grid
    one = math.sqrt(float(grid.weights @ (sign * grid.losses - view.mean) ** 2))  # only says where to look
    most = min(reach / (one * math.sqrt(count)), 40 / (mu * people))  # further on the truth takes too many points
    near = spaced(most / nodes, nodes)
    far = near[-1] * np.array([0.01, 0.3, 1.0, 1.7, 4.0])
    with mp.workdps(DIGITS + 15):
        exact = Sampled(rate, mu, sign, theta, far[-1], people)
        check_moment(view, count * mp.log(exact.moment))
        values = [exact.phi(omega) ** count for omega in near]
        check_discs(view.discs(near), view.centre, 4 * ULP * (view.drift + abs(view.centre)), near, values)
        dust = mp.mpf(10) ** (5 - DIGITS)  # of the trapezoid sum
        check_ceiling(view.log_ceiling(far) / count, far, [max(abs(exact.phi(w)) - dust, dust**2) for w in far])
    assert np.all(np.diff(view.log_ceiling(np.geomspace(1e-3 / one, 1e6 / one, 300))) <= 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_long_lines_of_a_sampled_gaussian(sign):
    """So many nodes that they come from a matrix product."""
    rate, mu, theta, count = 0.02, 0.7, 5.0, 30
    view = SampledGaussianTransform(rate, mu, sign, count).tilt(theta)
    omega = spaced(0.01, 6000)
    found, some = view.discs(omega), np.array([0, 1, 77, 78, 2500, 5999, 6000])
    with mp.workdps(DIGITS + 10):
        exact = Sampled(rate, mu, sign, theta, float(omega[-1]))
        part = type(found)(found.log[some], found.radius[some])
        values = [exact.phi(w) ** count for w in omega[some]]
        check_discs(part, view.centre, 4 * ULP * (view.drift + abs(view.centre)), omega[some], values)


def test_the_truth_of_the_sampled_gaussian_is_its_integral():
    rate, mu, theta, omega = 0.1, 1.5, 2.0, 6.0
    with mp.workdps(30):
        for sign, power in ((1, mp.mpc(theta + 1, omega)), (-1, -mp.mpc(theta, omega))):
            exact = Sampled(rate, mu, sign, theta, omega)
            found = mp.quad(
                lambda x, power=power: (
                    mp.npdf(x) * mp.exp(power * mp.log1p(mp.mpf(rate) * mp.expm1(mu * x - mp.mpf(mu) ** 2 / 2)))
                ),
                mp.linspace(-12, 18, 31),
            )
            assert abs(found - exact.phi(omega) * exact.moment) < mp.mpf(10) ** -22


def sine_over(v):
    return abs(mp.sin(v) / v) if v else mp.mpf(1)


@mp.workdps(DIGITS)
def test_what_a_uniform_law_loses_beyond_a_frequency():
    """1 − sup_{v ≥ u}|sin v/v|, from the next peak after u: the peaks fall, and lie where tan v = v."""
    for u in [1e-9, 1e-4, *np.linspace(0.01, 30, 400).tolist(), 2.4, 4.6, 1e3, 1e6]:
        n = max(1, math.ceil((u - math.pi / 2) / math.pi))
        middles = [(m + mp.mpf(1) / 2) * mp.pi for m in (n, n + 1)]
        peaks = [mp.findroot(lambda v: v * mp.cos(v) - mp.sin(v), middle - 1 / middle) for middle in middles]
        most = max([sine_over(mp.mpf(u)), *(sine_over(peak) for peak in peaks if peak >= u)])
        found = float(drop(np.array([u]))[0])
        assert 0 <= found * (1 - 1e-9) <= 1 - most
        assert found >= 0.9 * (1 - most)


@given(seed=seeds)
def test_steering_is_close_to_the_certified_moment(seed):
    r = Random(f"steering {seed}")
    rate, mu, sign = magnitude(r, 1e-5, 0.99), magnitude(r, 0.01, 4), r.choice([1, -1])
    part = SampledGaussianTransform(rate, mu, sign, round(magnitude(r, 1, 1e6)))
    theta = magnitude(r, 1e-3, 30) * np.array([0.5, 1.0, 2.0])
    for found, one in zip(part.log_moments(theta), theta.tolist(), strict=True):
        assert math.isclose(found, part.tilt(one).log_moment, rel_tol=1e-3, abs_tol=1e-3)


def test_twice_backwards_is_the_transform_itself():
    part = SampledGaussianTransform(0.1, 1.0, 1, 5)
    assert part.reverse != part
    assert part.reverse.reverse == part


def test_counts_multiply_totals():
    """k terms at once say the same as the product of k terms."""
    line = engine(L.LaplaceLoss(0.3) + 40 * L.LaplaceLoss(0.1)).composition.contour(1.0, 1e-6).line
    one = Totals.of(L.LaplaceLoss(0.2).transform(), line)
    three, apart = Totals.of(L.LaplaceLoss(0.2).transform().times(3), line), Totals.together([one, one, one])
    assert math.isclose(three.log_moment, apart.log_moment, rel_tol=1e-14)
    assert np.allclose(np.exp(three.discs.log), np.exp(apart.discs.log), rtol=0, atol=1e-13)
    assert np.allclose(three.log_ceiling, apart.log_ceiling, rtol=1e-12, atol=1e-12)
