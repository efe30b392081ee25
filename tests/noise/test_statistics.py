"""The laws as statistics see them, on recorded bits: a test that passes once passes always.

Each chi-square and z-value would reject a true law with probability 1e-4 on fresh bits; there are under 100 of them, so
the whole file would give a false alarm with probability below 1 % when the code or its order of bits changes. Exactness
is shown elsewhere (test_exact, test_certificates); here the real words, guides and blocks are run as users run them.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaincc, ndtr

from sfumato.noise import (
    Bernoulli,
    Categorical,
    DiscreteGaussian,
    DiscreteLaplace,
    Exp,
    Floored,
    GaussianDensity,
    LaplaceDensity,
    Rounding,
    Sampler,
    StaircaseDensity,
    Uniform,
    geometric,
    rounded_gaussian,
    rounded_laplace,
    rounded_staircase,
)
from sfumato.noise.balls import precision
from sfumato.noise.draw_table import Words
from sfumato.noise.monotone import _magnitude
from tests.noise.sources import Recorded

FALSE_ALARM = 1e-4
LAWS = {
    "discrete Laplace": DiscreteLaplace,
    "discrete Gaussian": DiscreteGaussian,
    "rounded Gaussian": rounded_gaussian,
    "floored Gaussian": lambda scale: Floored(GaussianDensity(scale)),
    "rounded Laplace": rounded_laplace,
    "staircase": lambda scale: rounded_staircase(2, scale),
    "geometric": geometric,
}


def chi_square(counts, expected):
    """P-value of counts; cells that expect fewer than 10 are pooled."""
    large = expected >= 10
    seen, meant = np.append(counts[large], counts[~large].sum()), np.append(expected[large], expected[~large].sum())
    seen, meant = (seen, meant) if meant[-1] >= 10 else (seen[:-1], meant[:-1])
    return float(gammaincc((len(meant) - 1) / 2, ((seen - meant) ** 2 / meant).sum() / 2))


def probabilities(law, reach):
    """P(k) for |k| ≤ reach from balls, the rest being negligible."""
    with precision(100):
        ks = range(-reach if len(law.sides) == 2 else 0, reach + 1)
        weights = np.array([float(law.weight(_magnitude(law, k), 64)) for k in ks])
    return np.array(ks), weights / weights.sum()


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [Fraction(1, 3), 4, 150])
def test_draws_follow_their_law(name, scale):
    law, n = LAWS[name](scale), 200_000
    draws = Sampler(law, source=Recorded(f"{name} {scale}")).draw(n)
    ks, p = probabilities(law, int(40 * scale) + 40)
    assert draws.min() >= ks[0]
    assert draws.max() <= ks[-1]
    assert chi_square(np.bincount(draws - ks[0], minlength=len(ks)), n * p) > FALSE_ALARM


@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_their_law_when_words_are_tiny(name):
    law, n = LAWS[name](30), 30_000
    words = Words(guide=4, word=12, coin=6, step=2, bins=3, reach=6)
    draws = Sampler(law, words, Recorded(f"tiny {name}")).draw(n)
    ks, p = probabilities(law, 1500)
    assert (
        chi_square(np.bincount((draws - ks[0]) // 4, minlength=len(ks) // 4 + 1), n * np.bincount((ks - ks[0]) // 4, p))
        > FALSE_ALARM
    )


@pytest.mark.parametrize("scale", [10**6, 10**12, 10**17])
@pytest.mark.parametrize("name", ["discrete Gaussian", "rounded Gaussian", "discrete Laplace", "rounded Laplace"])
def test_wide_laws_look_like_their_densities(name, scale):
    n, cells = 200_000, 256
    x = Sampler(LAWS[name](scale), source=Recorded(f"wide {name} {scale}")).draw(n) / scale
    half = np.exp(-np.abs(x)) / 2
    u = ndtr(x) if "Gaussian" in name else np.where(x < 0, half, 1 - half)
    assert chi_square(np.bincount((u * cells).astype(int), minlength=cells), np.full(cells, n / cells)) > FALSE_ALARM


def test_moments_and_symmetry():
    n = 400_000
    x = Sampler(rounded_gaussian(1000), source=Recorded("moments")).draw(n).astype(float)
    assert abs(x.mean()) < 3.9 * 1000 / n**0.5
    assert abs((x**2).mean() / (1000**2 + 1 / 12) - 1) < 3.9 * (2 / n) ** 0.5
    assert abs((x > 0).sum() - (x < 0).sum()) < 3.9 * n**0.5
    y = Sampler(DiscreteLaplace(50), source=Recorded("more moments")).draw(n).astype(float)
    q = np.exp(-1 / 50)
    variance = 2 * q / (1 - q) ** 2
    assert abs(y.mean()) < 3.9 * (variance / n) ** 0.5
    assert abs((y**2).mean() / variance - 1) < 3.9 * (5 / n) ** 0.5


def test_the_difference_of_two_geometric_draws_is_a_laplace_draw():
    n, source = 200_000, Recorded("difference")
    one = Sampler(geometric(6), source=source)
    difference = one.draw(n) - one.draw(n)
    ks, p = probabilities(DiscreteLaplace(6), 300)
    assert chi_square(np.bincount(difference - ks[0], minlength=len(ks)), n * p) > FALSE_ALARM


@pytest.mark.parametrize("value", [0.3, -7.75, -1e-20, 1234567.891])
@pytest.mark.parametrize("density", [GaussianDensity(2), LaplaceDensity(3), StaircaseDensity(1, 2, 0.3)], ids=type)
def test_rounding_about_a_value_follows_its_law(value, density):
    n = 100_000
    found = Rounding(density, source=Recorded(f"about {value}")).about(np.full(n, value)) - round(value)
    f, ks = Fraction(value) - round(value), np.arange(-100, 101)
    with precision(100):
        tails = [float(density.mass(Fraction(0), abs(k - f + Fraction(1, 2)), 64)) for k in range(-101, 101)]
    signed = np.where(np.arange(-101, 101) + 0.5 < float(f), -1.0, 1.0) * tails
    p = np.diff(signed)
    assert chi_square(np.bincount(found - ks[0], minlength=len(ks)), n * p / p.sum()) > FALSE_ALARM


def test_coins_dice_and_categories():
    n = 200_000
    for p, exact in ((Fraction(1, 3), 1 / 3), (Exp(Fraction(-1, 2)), np.exp(-0.5)), (1e-3, 1e-3)):
        heads = int(Bernoulli(p, source=Recorded(f"coin {p}")).draw(n).sum())
        assert abs(heads - n * exact) < 3.9 * (n * exact * (1 - exact)) ** 0.5
    dice = np.bincount(Uniform(6, Recorded("dice")).draw(n), minlength=6)
    assert chi_square(dice, np.full(6, n / 6)) > FALSE_ALARM
    weights = np.array([1, 5, 0, 2.5, 100])
    found = np.bincount(Sampler(Categorical(weights.tolist()), source=Recorded("urn")).draw(n), minlength=5)
    assert found[2] == 0
    assert chi_square(np.delete(found, 2), n * np.delete(weights, 2) / weights.sum()) > FALSE_ALARM


def test_recorded_bits_give_the_same_draws_again():
    law = rounded_gaussian(1000)
    first, second = (Sampler(law, source=Recorded("again")).draw(1000) for _ in range(2))
    assert (first == second).all()
