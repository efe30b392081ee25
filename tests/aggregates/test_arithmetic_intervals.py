"""Intervals of arithmetic hold the truth as often as they say, and all numbers where nothing bounds a value."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from sfumato.aggregates.arithmetic_intervals import Apply, Cell, Form, Known, NoisyPart, as_form, as_ratio, interval
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian

TRUTH = (400, 250, 90, 700)
REPEATS = 200


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts, one in each row; place 1 is the same count as if only its interval were known."""

    values: tuple[float, ...]
    noise: Gaussian | DiscreteLaplace
    left_out_bounds: int = 0

    def form(self, row, place):
        part = NoisyPart(id(self), row, 0, self.values[row], self.noise)
        return Form({part: Fraction(1)}) if place == 0 else None

    def estimate(self, row, place, confidence):
        radius = self.noise.error(confidence)
        return self.values[row], self.values[row] - radius, self.values[row] + radius


def n(cells, row, place=0):
    return Cell(cells, row, place)


def share(c):
    return Apply("/", (Apply("*", (Known(100.0), n(c, 0))), Apply("sum", tuple(n(c, i) for i in range(4)))))


TREES = {
    "difference": (lambda c: Apply("-", (n(c, 0), n(c, 1))), lambda t: t[0] - t[1]),
    "twice the same": (lambda c: Apply("-", (Apply("*", (Known(3.0), n(c, 0))), n(c, 0))), lambda t: 2 * t[0]),
    "sum": (lambda c: Apply("sum", tuple(n(c, i) for i in range(4))), sum),
    "mean": (lambda c: Apply("mean", tuple(n(c, i) for i in range(4))), lambda t: sum(t) / 4),
    "ratio": (lambda c: Apply("/", (n(c, 0), n(c, 1))), lambda t: t[0] / t[1]),
    "share of total": (share, lambda t: 100 * t[0] / sum(t)),
    "growth": (lambda c: Apply("-", (Apply("/", (n(c, 0), n(c, 1))), Known(1.0))), lambda t: t[0] / t[1] - 1),
    "rounded share": (lambda c: Apply("round", (share(c), Known(1.0))), lambda t: 100 * t[0] / sum(t)),
    "product": (lambda c: Apply("*", (n(c, 0), n(c, 1))), lambda t: t[0] * t[1]),
    "root": (lambda c: Apply("sqrt", (n(c, 3),)), lambda t: math.sqrt(t[3])),
    "largest": (lambda c: Apply("max", tuple(n(c, i) for i in range(4))), max),
    "two intervals": (lambda c: Apply("-", (n(c, 0, 1), n(c, 1, 1))), lambda t: t[0] - t[1]),
    "ratio of ratios": (
        lambda c: Apply("/", (Apply("/", (n(c, 0), n(c, 1))), Apply("/", (n(c, 3), n(c, 0))))),
        lambda t: (t[0] / t[1]) / (t[3] / t[0]),
    ),
}


@pytest.mark.parametrize("noise", [Gaussian(12.0), DiscreteLaplace(9.0)], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("name", TREES)
def test_intervals_hold_the_truth(name, noise):
    """At 95 % or more: of 200, fewer than 179 are inside with probability below 0.001 (the drawn numbers are fixed)."""
    tree_of, truth_of = TREES[name]
    draws = np.random.default_rng(7)
    spread = noise.sigma if isinstance(noise, Gaussian) else noise.scale
    inside, truth = 0, truth_of(TRUTH)
    for _ in range(REPEATS):
        draw = draws.normal(0, spread, 4) if isinstance(noise, Gaussian) else draws.laplace(0, spread, 4)
        cells = Counts(tuple(t + round(float(d)) for t, d in zip(TRUTH, draw, strict=True)), noise)
        low, high = interval(tree_of(cells))
        inside += low <= truth <= high
    assert inside >= 179


def test_linear_intervals_are_no_wider_than_their_noise():
    cells = Counts(TRUTH, Gaussian(12.0))
    low, high = interval(TREES["sum"][0](cells))
    assert (high - low) / 2 == pytest.approx(1.96 * 12 * 2, rel=0.05)
    same = interval(Apply("-", (n(cells, 0), n(cells, 0))))
    assert same == (0.0, 0.0)


def test_a_ratio_to_a_number_that_may_be_0_has_no_ends():
    cells = Counts((5.0, 3.0), Gaussian(12.0))
    assert interval(Apply("/", (n(cells, 0), n(cells, 1)))) == (-math.inf, math.inf)
    assert interval(Apply("/", (n(cells, 0, 1), n(cells, 1, 1)))) == (-math.inf, math.inf)


def test_what_is_not_understood_has_no_interval():
    cells = Counts(TRUTH, Gaussian(12.0))
    assert interval(Apply("mod", (n(cells, 0), Known(7.0)))) is None
    assert interval(Apply("+", (n(cells, 0), Known(None)))) is None
    assert interval(Known(3.0)) is None


def test_two_bounds_on_what_was_left_out_are_not_taken_for_one():
    one, other = Counts(TRUTH, Gaussian(1.0), 1), Counts(TRUTH, Gaussian(1.0), 1)
    assert interval(Apply("*", (n(one, 0, 1), n(other, 0, 1)))) is None
    assert interval(Apply("*", (n(one, 0, 1), n(one, 1, 1)))) is not None


def test_constants_are_taken_through_ratios():
    cells = Counts(TRUTH, Gaussian(12.0))
    ratio = Apply("-", (Known(1.0), Apply("/", (n(cells, 0), n(cells, 1)))))
    above, below = as_ratio(ratio)
    assert above.value / below.value == pytest.approx(1 - 400 / 250)
    assert as_form(ratio) is None
    assert as_form(Apply("/", (n(cells, 0), Known(0.0)))) is None
