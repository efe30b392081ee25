"""Each noise family: density, slope, disc, variance, moments and draws agree with independent formulas."""

import math

import mpmath as mp
import numpy as np
import pytest

from sfumato import dependent as dep
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.dependent.cells import ROUNDING, Pair, cells, log_tail_bound, refine_cells
from sfumato.mechanisms.dependent.noise_family import NEAR
from sfumato.noise.lazy import Draw
from tests.mechanisms.dependent.families import EVERY, density
from tests.noise.sources import Recorded

NOISES = [noise for noise, _, _ in EVERY]
every = pytest.mark.parametrize("noise", NOISES, ids=str)
PLACES = np.array([1e-6, 0.01, 0.3, 1.0, 2.7, 11.0, 60.0])


@every
def test_the_density_is_what_it_should_be(noise):
    with mp.workdps(22):
        found = noise.log_density(PLACES)
        slope = noise.slope(PLACES)
        for z, value, g in zip(PLACES, found, slope, strict=True):
            if value < -250:
                continue
            truth = mp.log(density(noise, z))
            assert abs(value - truth) <= ROUNDING * (1 + abs(value) + g)
            h = mp.mpf(z) * mp.mpf(10) ** -8
            rise = (mp.log(density(noise, z + h)) - mp.log(density(noise, z - h))) / (2 * h)
            assert abs(-z * rise - g) <= 1e-9 * g + 1e-9
            assert noise.rough_slope(np.array([z]))[0] >= g * (1 - 1e-12)


@every
def test_the_slope_does_not_fall(noise):
    z = np.geomspace(1e-4, 300, 400)
    slope = noise.slope(z)
    assert np.all(np.diff(slope) >= -1e-9 * slope[1:]) and slope[-1] <= noise.steepest


def analytic(noise, z):
    """ln p on the complex plane, in closed form or by the same mean."""
    match noise:
        case dep.StudentNoise(d):
            return -(d + 1) / 2 * np.log(d + z * z)
        case dep.CauchyNoise(g):
            return -np.log(1 + np.exp(g * np.log(z)))
        case dep.ArsinhNormalNoise(s):
            return -((np.arcsinh(s * z) / s) ** 2) / 2 - np.log(1 + (s * z) ** 2) / 2
        case dep.LaplaceLogNormalNoise(s):
            y = np.arange(-15, 25, 0.02)
            return np.log(np.sum(np.exp(-y * y / 2 - s * y - z[:, None] * np.exp(-s * y)), axis=1))
        case dep.UniformLogNormalNoise(s):
            return np.array([complex(mp.log(mp.erfc(mp.mpc(s + np.log(x) / s) / mp.sqrt(2)))) for x in z])
        case dep.LaplaceNoise():
            return -z
        case dep.GaussianNoise():
            return -z * z / 2


@every
def test_the_logarithm_stays_near_within_the_disc(noise):
    """On circles (the maximum principle): continuous along each circle, so branches are followed by unwrapping."""
    turn = np.exp(1j * np.linspace(0, 2 * np.pi, 181))
    for z in (0.02, 0.4, 1.5, 6.0, 25.0):
        circle = z + 0.999 * noise.radius(np.array([z]))[0] * turn
        values = analytic(noise, circle)
        values = values.real + 1j * np.unwrap(values.imag)
        centre = analytic(noise, np.array([z + 0j]))[0]
        assert abs(values[-1] - values[0]) < 1e-6, "a zero or a branch inside"
        assert np.max(np.abs(values - centre)) <= NEAR + 1e-6


@pytest.mark.parametrize(("noise", "shift", "dilation"), EVERY, ids=str)
def test_mass_variance_and_tails_agree_with_the_density(noise, shift, dilation):
    """All mass is in the cells, up to 1e-12, though each was measured on its own; so is the second moment."""
    found = cells(noise, shift, dilation, 1.0)  # spelt as `directions` does, so that they are made once
    assert abs(found.p[1:-1].sum() - 1) < 1e-12 and abs(found.q[1:-1].sum() - 1) < 1e-12
    z = np.sinh(np.linspace(0, math.asinh(1e9), 8001 if noise.grain > 1 else 100_001))
    p = np.exp(noise.log_density(z))
    if noise.variance < 50 and noise.steepest > 5:
        assert 2 * np.trapezoid(p * z * z, z) == pytest.approx(noise.variance, rel=2e-4)
    for start in (3.0, 20.0):
        tail = np.trapezoid(np.where(z >= start, p, 0), z)
        assert tail <= math.exp(log_tail_bound(noise, start)) * 1.01
    if noise.log_power(2.0) < math.inf:
        assert math.log(noise.variance) <= noise.log_power(2.0) + 1e-12
        assert noise.log_power(40.0) / 1600 <= noise.power_limit(30.0)


@pytest.mark.parametrize("noise", [n for n in NOISES if n.growth(5.0)], ids=str)
def test_slopes_of_log_normal_tails_grow_as_said(noise):
    z = np.geomspace(5.0, 1e4, 50)
    a, b = noise.growth(5.0)
    slope = noise.slope(z)
    assert np.all(slope <= (a + b * np.log(z)) * (1 + 1e-9))
    assert np.all(slope / z <= noise.far_score(5.0))


def test_the_cells_hold_the_loss():
    """At random points of every bounded cell."""
    rng = np.random.default_rng(1)
    for noise, shift, dilation in EVERY:
        pair = Pair(noise, shift, dilation)
        end = pair.outer_end()
        row = refine_cells(pair, end, 1.0)
        low, high = pair.ranges(row, pair.discs(row))
        for _ in range(3):
            z = row.left + (row.right - row.left) * rng.random(len(row.left))
            loss = pair.first.log_density(z) - pair.second.log_density(z)
            assert np.all((low <= loss) & (loss <= high)), noise


@every
def test_draws_have_the_law(noise):
    """Counts of round(3Z) in 11 bins, 1500 draws: χ² with 10 degrees exceeds 60 with probability 4e-9."""
    source = Recorded(f"draws of {noise}")
    drawn = np.array([Draw(noise, source).round_to_integer(0, 3) for _ in range(1500)])
    edges = np.array([-6.5, -4.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 4.5, 6.5]) / 3
    z = np.concatenate([np.zeros(1), np.geomspace(1e-9, 1e6, 20_001 if noise.grain > 1 else 200_001)])
    p = np.exp(noise.log_density(z))
    inner = np.concatenate([[0.0], np.cumsum((p[1:] + p[:-1]) / 2 * np.diff(z))])
    below = 0.5 + np.sign(edges) * np.interp(np.abs(edges), z, inner)
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * len(drawn)
    counts = np.histogram(drawn, np.concatenate([[-np.inf], edges * 3, [np.inf]]))[0]
    assert ((counts - expected) ** 2 / expected).sum() < 60


def test_a_draw_does_not_depend_on_how_many_bits_are_read_at_first(monkeypatch):
    """The same bits, looked at one by one: answers agree, so more bits never change one."""
    for noise in NOISES:
        source = Recorded(f"{noise} once")
        draws = [Draw(noise, source) for _ in range(5)]
        first = [d.round_to_integer(7, 11) for d in draws]
        for d in draws:
            d.uniforms.more()
        assert [d.round_to_integer(7, 11) for d in draws] == first


def test_answers_saturate():
    draw = Draw(dep.CauchyNoise(), Recorded("far"))
    assert abs(draw.round_to_integer(0, 10**30)) == 2**63 - 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: dep.StudentNoise(0.5),
        lambda: dep.StudentNoise(math.nan),
        lambda: dep.CauchyNoise(1.5),
        lambda: dep.ArsinhNormalNoise(0.0),
        lambda: dep.LaplaceLogNormalNoise("1"),
        lambda: dep.UniformLogNormalNoise(math.inf),
        lambda: dep.SmoothLoss("student", 0.5, 0.1),
        lambda: dep.SmoothLoss(dep.StudentNoise(5), 0.0, 0.1),
        lambda: dep.SmoothLoss(dep.StudentNoise(5), 0.5, -0.1),
        lambda: dep.SmoothLoss(dep.StudentNoise(5), 0.5, 0.1, 0),
        lambda: dep.SmoothLoss(dep.StudentNoise(5), math.nan, 0.1),
    ],
)
def test_parameters_out_of_range_are_refused(make):
    with pytest.raises(InvalidParameter, match="do:"):
        make()
