"""Certificates of tables: weights enclose the law, acceptance probabilities lie in [0, 1], squeezes hold."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Floored,
    GaussianDensity,
    LaplaceDensity,
    Sampler,
    TruncatedLaplace,
    geometric,
    rounded_gaussian,
    rounded_laplace,
    rounded_staircase,
)
from sfumato.noise.balls import ball, precision
from sfumato.noise.draw_table import Words
from sfumato.noise.gaussian import ENOUGH
from sfumato.noise.staircase import LOW_STAIRS

LAWS = {
    "discrete Laplace": DiscreteLaplace,
    "discrete Gaussian": DiscreteGaussian,
    "rounded Gaussian": rounded_gaussian,
    "floored Gaussian": lambda scale: Floored(GaussianDensity(scale)),
    "rounded Laplace": rounded_laplace,
    "floored Laplace": lambda scale: Floored(LaplaceDensity(scale)),
    "staircase": lambda scale: rounded_staircase(1, scale),
    "geometric": geometric,
    "truncated Laplace": lambda scale: TruncatedLaplace(scale, max(1, int(3.3 * scale))),
    "nearly uniform": lambda scale: TruncatedLaplace(scale, max(1, int(scale / 7))),
}
scales = st.one_of(
    st.floats(-3, 18).map(lambda e: min(1e18, max(1e-3, 10.0**e))),
    st.sampled_from([1e-3, 1, 127.99, 128, 10**18, Fraction(1, 3)]),
)


@pytest.mark.parametrize("name", LAWS)
@given(scale=scales, choices=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=4, max_size=4))
@settings(max_examples=8, deadline=None)
def test_every_probability_to_keep_lies_in_its_range_and_in_its_squeeze(name, scale, choices):
    table = Sampler(LAWS[name](scale)).table
    assert sum(table.low) + sum(table.rest) + sum(tail.weight for tail in table.tails) < 2**64
    width = 1 << table.bits
    for which, where in choices:
        q = min(int(which * len(table.base)), len(table.base) - 1)
        k = table.base[q] + min(int(where * width), width - 1)
        with precision(400):
            if table.rest[q]:
                accepted = table.acceptance(q, k, 300)
                assert not accepted < 0
                assert not accepted > 1
                at = np.array([k]), np.array([q])
                if table.squeeze is not None and not table.squeeze.undecided(*at)[0]:
                    chord = int(table.squeeze.chord(*at)[0])
                    slack = int(table.squeeze.slack[q])
                    assert abs(accepted * 2**32 - chord) <= slack + 1
    for side, tail in enumerate(table.tails):
        for g in range(4):
            for place in (0, (1 << tail.bits) - 1):
                with precision(400):
                    accepted = tail.acceptance(g, (g << tail.bits) + place, 300)
                    assert not accepted > 1, side
                    assert not accepted < 0


@given(sigma=st.floats(ENOUGH, 1e9), z=st.floats(0, 6.99))
@settings(max_examples=20, deadline=None)
def test_the_midpoint_rule_encloses_the_mass_of_a_cell(sigma, z):
    density = GaussianDensity(sigma)
    twice = int(2 * z * sigma)
    a, b = Fraction(abs(twice - 1), 2), Fraction(twice + 1, 2)
    with precision(400):
        exact = density.mass(a, b, 300) if twice else 2 * density.mass(Fraction(0), b, 300)
        quick = density.cell(twice, 128)
        assert quick.contains(exact)
        assert density.cell(twice, 300).overlaps(exact)
        assert quick.rel_accuracy_bits() > 4 * np.log2(sigma) - 4


@pytest.mark.parametrize("eps", [Fraction(1, 20), 1, 7])
@pytest.mark.parametrize("period", [Fraction(1, 7), 1, Fraction(22, 7), 40])
def test_the_mass_under_stairs_is_the_sum_of_its_pieces(eps, period):
    density = rounded_staircase(eps, period, Fraction(2, 7)).density
    gamma = Fraction(2, 7)
    for a, b in ((Fraction(0), Fraction(1, 2)), (Fraction(5, 2), Fraction(7, 2)), (Fraction(1, 9), Fraction(13))):
        edges = [j * period + part * period for j in range(int(b / period) + 2) for part in (Fraction(0), gamma)]
        with precision(300):
            total, heights = arb(0), [(j + (i % 2)) for i, j in enumerate(i // 2 for i in range(len(edges)))]
            for height, start, end in zip(heights, edges, [*edges[1:], edges[-1] + period], strict=True):
                length = max(Fraction(0), min(b, end) - max(a, start))
                total += ball(length) * (-ball(Fraction(eps)) * height).exp()
            assert total.overlaps(density.mass(a, b, 250))
            assert density.mass(a, b, 250).rel_accuracy_bits() > 200


def test_the_words_chosen_do_not_change_what_is_certified():
    for words in (Words(guide=8, word=20, coin=6, bins=4), Words(guide=4, word=40, bins=16)):
        table = Sampler(DiscreteGaussian(300), words).table
        for q in range(0, len(table.base), 7):
            with precision(300):
                if table.rest[q]:
                    accepted = table.acceptance(q, table.base[q], 200)
                    assert not accepted < 0
                    assert not accepted > 1


STAIRS = [rounded_staircase(1, 700), rounded_staircase(4, 3000), rounded_staircase(0.1, 90), rounded_staircase(1, 50)]
STAIRS += [rounded_staircase(1, 80.3, gamma) for gamma in (0, 1e-3, 0.5, 1)] + [rounded_staircase(0.01, 10)]
STAIRS += [rounded_staircase(0.004, size, 0.3) for size in (0.7, 3, 11.5)] + [rounded_staircase(0.001, 2.2)]
STAIRS += [Floored(law.density) for law in STAIRS[::3]]


@pytest.mark.parametrize("law", STAIRS, ids=str)
def test_the_squeeze_holds_in_every_cell_of_stairs(law):
    """All cells of some bins with breaks; unless stairs are low, none is left to balls."""
    table = Sampler(law).table
    decided = total = 0
    broken = [q for q, rest in enumerate(table.rest) if rest > 2**20]
    for q in broken[:: max(1, len(broken) // 40)]:
        for k in range(table.base[q], table.base[q] + (1 << table.bits)):
            at = np.array([k]), np.array([q])
            total += 1
            if table.squeeze.undecided(*at)[0]:
                continue
            decided += 1
            with precision(400):
                accepted = table.acceptance(q, k, 300)
                assert abs(accepted * 2**32 - int(table.squeeze.chord(*at)[0])) <= int(table.squeeze.slack[q]) + 1
            assert law.density.eps < LOW_STAIRS or table.squeeze.slack[q] < 2**20
    assert total > 0
    assert decided == total or (decided >= total - 2 and law.density.eps < LOW_STAIRS)  # all but k = 0


class AllCoins:
    """Every value of a word of so many bits, once."""

    def words(self, count, bits):
        assert count == 1 << bits
        return np.arange(count, dtype=np.uint64)


class Asking(Sampler):
    """Counts the coins that the squeeze leaves open, and drops them."""

    def accepts(self, q, k, u=0, known=0):
        ASKED.append((q, k, u, known))
        return False


ASKED = []
SQUEEZED = [DiscreteGaussian(40), DiscreteLaplace(40), rounded_gaussian(40), rounded_laplace(40), geometric(40)]


@pytest.mark.parametrize("law", [*SQUEEZED, Floored(GaussianDensity(40)), rounded_staircase(3, 300)], ids=str)
def test_all_coins_of_a_squeeze_keep_what_they_should_and_ask_about_the_rest(law):
    """In every cell, of 2^10 coins: kept at once ≤ 2^10·f ≤ kept at once or asked about. No coin is misjudged."""
    words = Words(guide=4, word=30, coin=10, bins=4)
    table, sampler = Sampler(law, words).table, Asking(law, words, AllCoins())
    asked = coins = 0
    for q, base in enumerate(table.base):
        for k in range(base, base + (1 << table.bits)):
            ASKED.clear()
            keep = sampler._accepts(np.full(1024, k), np.full(1024, q))
            assert all(known == 10 for *_, known in ASKED)
            with precision(300):
                f = table.acceptance(q, k, 200) * 1024
                assert not f < int(keep.sum())
                assert not f > int(keep.sum()) + len(ASKED)
            asked, coins = asked + len(ASKED), coins + 1024
    assert 0 < asked < 0.9 * coins  # the squeeze decides, and not everything
