"""The law that comes out of all bit strings is the law that is meant: no statistics, every string up to a length."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from sfumato.noise import (
    Bernoulli,
    Categorical,
    Certified,
    DiscreteGaussian,
    DiscreteLaplace,
    Exp,
    Floored,
    GaussianDensity,
    Geometric,
    LaplaceDensity,
    Rounding,
    Sampler,
    StaircaseDensity,
    TruncatedLaplace,
    Uniform,
    exponential_coin,
    geometric,
    rounded_gaussian,
    rounded_laplace,
    rounded_staircase,
)
from sfumato.noise.balls import ball, enclosure, precision
from sfumato.noise.bernoulli import happens
from sfumato.noise.categorical import integer_bounds
from sfumato.noise.draw_table import Words
from sfumato.noise.monotone import MonotoneLaw, _magnitude
from sfumato.noise.uniform import uniform_below
from tests.noise.sources import RanOut, Scripted, all_bit_strings

TINY = Words(guide=2, word=5, coin=2, step=1, bins=2, reach=2)

LAWS = {
    "discrete Laplace": DiscreteLaplace(Fraction(3, 2)),
    "narrow discrete Laplace": DiscreteLaplace(Fraction(1, 3)),
    "discrete Laplace in bins": DiscreteLaplace(9),
    "discrete Gaussian": DiscreteGaussian(1),
    "discrete Gaussian in bins": DiscreteGaussian(5.5),
    "rounded Gaussian": rounded_gaussian(1),
    "rounded Gaussian in bins": rounded_gaussian(6),
    "floored Gaussian": Floored(GaussianDensity(Fraction(5, 4))),
    "floored Gaussian in bins": Floored(GaussianDensity(5)),
    "rounded Laplace": rounded_laplace(Fraction(2, 3)),
    "rounded Laplace in bins": rounded_laplace(5),
    "floored Laplace": Floored(LaplaceDensity(1)),
    "staircase": rounded_staircase(1, 2, Fraction(2, 5)),
    "staircase in bins": rounded_staircase(Fraction(1, 2), Fraction(5, 2)),
    "fine staircase": rounded_staircase(Fraction(1, 10), Fraction(1, 4), Fraction(1, 3)),
    "geometric": geometric(2),
    "rational geometric": Geometric(Fraction(1, 3)),
    "geometric in bins": geometric(7),
    "truncated Laplace": TruncatedLaplace(Fraction(3, 2), 4),
    "truncated Laplace in bins": TruncatedLaplace(9, 7),
    "nearly uniform": TruncatedLaplace(1000, 5),
    "categorical": Categorical([1, 0, 2, Fraction(1, 3), Exp(Fraction(-1)), Certified(lambda prec: arb.pi() / 7)]),
}


def weight(law, k, prec=200):
    """C·p(k), from the definition."""
    with precision(prec + 50):
        if isinstance(law, MonotoneLaw):
            if k < 0 and len(law.sides) == 1:
                return arb(0)
            return law.weight(_magnitude(law, k), prec)
        return enclosure(law.weights[k], prec)


def assert_proportional(found, left, weights):
    """found[k] ≤ c·w(k) ≤ found[k] + left for one c: up to `left`, all that strings can show.

    c must lie in [found[k]/w(k), (found[k] + left)/w(k)] for every k, so these intervals must have a common point.
    """
    with precision(300):
        lows = [ball(p) / weights(k) for k, p in found.items()]
        highs = [ball(p + left) / weights(k) for k, p in found.items()]
        assert all(not low > high for low in lows for high in highs)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("many", [False, True], ids=["one", "draw"])
def test_one_round_of_every_law_gives_each_integer_its_weight(name, many):
    law, source = LAWS[name], Scripted()
    run = OneRound(law, TINY, source).many if many else Sampler(law, TINY, source).round
    found, left = all_bit_strings(run, source, 14)
    assert found.pop(None, 0) < 1
    assert left < 0.35
    assert len(found) >= (4 if isinstance(law, Categorical) else 6)
    assert_proportional(found, left, lambda k: weight(law, k))


class Again(Exception):
    """A round ended without a draw."""


class OneRound(Sampler):
    """Stops where a draw starts again."""

    def _rounds(self, *arguments):
        again = super()._rounds(*arguments)
        if again.any():
            raise Again
        return again

    def many(self):
        try:
            values, beyond = self.draw_with_beyond(1)
        except Again:
            return None
        return beyond.get(0, int(values[0]))


def test_a_table_of_64_words_has_the_weights_that_a_hand_would_give():
    law = DiscreteLaplace(1)
    words = Words(guide=3, word=6, coin=2, step=2, reach=2)
    table = Sampler(law, words).table
    sure, rest, tails = list(table.low), list(table.rest), [tail.weight for tail in table.tails]
    assert sum(sure) + sum(rest) + sum(tails) < 64
    for word in range(64):  # the guide's three bits say the same as the six
        i = int(np.searchsorted(table.ends, word, "right"))
        assert table.guide[word >> 3] in (np.iinfo(np.int64).min, table.base[i] if i < len(sure) else None)
    for k, s, r in zip(table.base, sure, rest, strict=True):
        with precision(200):  # in one round: s + r·(C·p − s)/r = C·p
            total = s + r * table.acceptance(table.base.index(k), k, 150) if r else arb(s)
            assert (total / weight(law, k)).overlaps((sure[0] + rest[0] * table.acceptance(0, 0, 150)) / weight(law, 0))


@pytest.mark.parametrize(
    "theta", [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(3, 8), Fraction(1, 3), Fraction(1, 1000)]
)
@pytest.mark.parametrize("step", [1, 3])
def test_a_lazy_comparison_is_right_for_dyadic_and_other_numbers(theta, step):
    source = Scripted()
    found, left = all_bit_strings(lambda: happens(lambda prec: ball(theta), source, step=step), source, 12)
    assert left <= Fraction(2, 2**12)
    assert found.get(True, 0) <= theta <= found.get(True, 0) + left


def test_a_lazy_comparison_continues_the_bits_it_is_given():
    # 1/3 = 0.010101…: after 01 01 the next two bits decide; 00 is below, 10 above, 01 is still open.
    third = lambda prec: ball(Fraction(1, 3))  # noqa: E731
    assert happens(third, Scripted("00"), 0b0101, 4, step=2)
    assert not happens(third, Scripted("10"), 0b0101, 4, step=2)
    with pytest.raises(RanOut):
        happens(third, Scripted("01"), 0b0101, 4, step=2)
    assert happens(third, Scripted(""), 0b0100, 4)


def test_a_probability_outside_its_range_is_noticed():
    with pytest.raises(AssertionError, match="outside"):
        happens(lambda prec: ball(Fraction(3, 2)), Scripted("0" * 99), step=4)
    with pytest.raises(AssertionError, match="outside"):
        happens(lambda prec: ball(Fraction(-1, 2)), Scripted("0" * 99), step=4)


@pytest.mark.parametrize(
    "p",
    [
        Fraction(0),
        Fraction(1),
        Fraction(1, 4),
        Fraction(1, 3),
        0.1,
        Exp(Fraction(-1, 2)),
        Certified(lambda prec: arb.pi() / 4),
    ],
)
def test_a_coin_has_its_probability(p):
    source = Scripted()
    coin = Bernoulli(p, Words(guide=2, step=1), source)
    exact = enclosure(p if not isinstance(p, float) else Fraction(p), 200)
    for run in (coin.one, lambda: bool(coin.draw(1)[0])):
        found, left = all_bit_strings(run, source, 12)
        assert left <= Fraction(2, 2**12)
        with precision(100):
            assert not exact < ball(found.get(True, Fraction(0)))
            assert not exact > ball(found.get(True, Fraction(0)) + left)


def test_an_exponential_coin_is_a_coin():
    assert exponential_coin(Fraction(1, 2)).p == Exp(Fraction(-1, 2))


def test_an_empty_range_is_noticed():
    with pytest.raises(AssertionError, match="no integer"):
        uniform_below(0, Scripted("0" * 99))


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8])
def test_a_uniform_integer_is_uniform(bound):
    source = Scripted()
    uniform = Uniform(bound, source)
    for run in (uniform.one, lambda: int(uniform.draw(1)[0])):
        found, left = all_bit_strings(run, source, 12)
        assert len(found) == bound
        assert len(set(found.values())) == 1
        assert left <= Fraction(1, 8)


@pytest.mark.parametrize(
    "density", [GaussianDensity(1), LaplaceDensity(Fraction(2, 3)), StaircaseDensity(3, Fraction(5, 4), Fraction(1, 3))]
)
@pytest.mark.parametrize("value", [0.0, 0.25, 0.3, -0.3, -1e-20, 5e-324, 0.5 - 2**-54])
def test_rounding_about_a_real_value_is_exact(density, value):
    source = Scripted()
    rounding = Rounding(density, Words(guide=2, word=5, coin=2, step=1, reach=3), source, fine=1)
    found, left = all_bit_strings(lambda: int(rounding.about(np.array([value]))[0]), source, 12)
    assert left < 0.35
    v = Fraction(value)
    with precision(300):
        total = 2 * density.mass(Fraction(0), Fraction(60), 250)
        for k, p in found.items():
            edges = k - v - Fraction(1, 2), k - v + Fraction(1, 2)
            a, b = sorted(map(abs, edges))
            same_side = edges[0] * edges[1] >= 0
            sides = (
                density.mass(a, b, 250)
                if same_side
                else density.mass(Fraction(0), a, 250) + density.mass(Fraction(0), b, 250)
            )
            assert not ball(p) > sides / total * (1 + arb(10) ** -15)
            assert not ball(p + left) < sides / total


def test_two_draws_are_independent():
    source = Scripted()
    round_ = Sampler(DiscreteLaplace(1), Words(guide=2, word=4, coin=2, step=1, reach=2), source).round
    single, missed = all_bit_strings(round_, source, 7)
    double, left = all_bit_strings(lambda: (round_(), round_()), source, 14)
    for (a, b), p in double.items():
        assert single.get(a, 0) * single.get(b, 0) <= p + left
        assert p <= (single.get(a, 0) + missed) * (single.get(b, 0) + missed)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_the_integers_of_a_list_of_weights_enclose_them_and_fit_into_a_word(bits):
    """low ≤ C·w ≤ low + rest; sums of 2^bits and more would leave out the last weights."""
    for weights in ([1], [1, 0, 2, Fraction(1, 3)], [Fraction(i + 1, 7) for i in range(20)], [10**9, 1], [0.1] * 40):
        C, low, rest = integer_bounds(Categorical(weights), bits)
        assert sum(low) + sum(rest) < 2**bits
        assert sum(low) + sum(rest) >= 2**bits * Fraction(1, 2)
        for w, least, more in zip(weights, low, rest, strict=True):
            assert least <= C * Fraction(w) <= least + more
