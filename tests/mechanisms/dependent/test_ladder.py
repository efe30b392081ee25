"""Rungs of a ladder: the least scale that suffices, exact even next to a scale."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

import sfumato as sf
from sfumato import dependent as dep
from sfumato.errors import InvalidParameter
from sfumato.noise.balls import below, precision


def median(low=0, high=16):
    return dep.Quantile(low, high, p=Fraction(1, 2))


@pytest.mark.parametrize(("t", "steps"), [(0.1, 1), (0.5, 1), (0.3, 4)])
def test_a_rung_is_the_least_scale_that_suffices(t, steps):
    ladder = dep.Ladder(t, 100, 1, steps)
    for size in (0, 1, Fraction(1, 3), 2, Fraction(7, 3), 50, 99, 100):
        j = ladder.least(size)
        assert math.exp(t * j / steps) >= float(size) * (1 - 1e-12)
        assert j == 0 or math.exp(t * (j - 1) / steps) < float(size) * (1 + 1e-12)
    assert ladder.least(10**6) == ladder.top == ladder.least(100)
    assert ladder.rung([]) == ladder.top  # nothing is known: the largest scale
    assert ladder.least(math.inf) == ladder.least(math.nan) == ladder.top and ladder.least(-1.0) == 0


def test_numbers_as_near_to_a_scale_as_one_likes_are_on_their_side():
    ladder = dep.Ladder(0.1, 100, 1, 1)
    with precision(192):
        near = below(ladder.scale(7).ball(192))  # below e^0.7 by less than 2^-180
    assert ladder.least(near) == 7 and ladder.least(near + Fraction(1, 2**170)) == 8
    with_more = Fraction(int(math.exp(0.7) * 2**40) + 1, 2**40)
    assert ladder.least(with_more) == 8
    assert ladder.least(1) == 0 and ladder.least(1 + Fraction(1, 2**300)) == 1


@pytest.mark.parametrize(("t", "steps"), [(0.2, 1), (0.7, 3)])
def test_rungs_of_neighbours_are_near_and_answers_closer_than_the_lower_scale(t, steps):
    """Theorem 3, over every data set of up to five people on {0, 1, 4, 16} and every person more."""
    statistic = median()
    mechanism = dep.Smooth(statistic, dep.StudentNoise(4), 0.5, t, steps)
    seen = set()
    for n in range(6):
        for x in combinations_with_replacement((0, 1, 4, 16), n):
            here, value = mechanism.rung(list(x)), statistic.value(list(x))
            for v in (0, 1, 4, 16):
                other = sorted([*x, v])
                there = mechanism.rung(other)
                assert abs(here - there) <= steps
                assert abs(value - statistic.value(other)) <= math.exp(t * min(here, there) / steps) * (1 + 1e-12)
                seen.add(abs(here - there))
    assert steps in seen  # the corner occurs, so no smaller set of dilations would do


def test_a_ladder_that_makes_no_sense_is_refused():
    for wrong in (
        lambda: dep.Ladder(0.0, 10),
        lambda: dep.Ladder(0.1, -1),
        lambda: dep.Ladder(0.1, 10, 0),
        lambda: dep.Ladder(0.1, math.nan),
        lambda: dep.Ladder(1e-4, 1e90, 1e-90, 64),
        lambda: dep.Smooth(len, dep.StudentNoise(4), 0.5, 0.1),
        lambda: dep.Smooth(median(), dep.StudentNoise(4), 0.5, 0.1, step=0.3),
        lambda: dep.SmoothWithError(sf.Laplace(1.0), 2.0),
    ):
        with pytest.raises(InvalidParameter, match="do:"):
            wrong()
