"""Errors of report-noisy-max and above-threshold: the worst case found by trying all, and sums against balls."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb

from sfumato.mechanisms import AboveThreshold, ReportNoisyMax
from sfumato.mechanisms.choice.comparison_error import Contest, least_gap
from sfumato.noise import DiscreteLaplace
from sfumato.noise.balls import precision
from tests.mechanisms.oracle import PREC, e
from tests.noise.sources import Recorded


def laplace(scale, reach):
    """The discrete Laplace law from its definition, as floats."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(scale))
    return weights / weights.sum()


def at_most(scale, t):
    """P(N ≤ t), summed from far below."""
    t, r = np.asarray(t), math.exp(-1 / float(scale))
    tail = r ** np.abs(t.astype(float)) / (1 + r)
    return np.where(t < 0, tail, 1 - r * tail)


# ---- report noisy max ------------------------------------------------------------------------------------------------


def chosen(scale, scores, reach=120):
    """P(i is the first of the highest) for all i."""
    z, p = np.arange(-reach, reach + 1), laplace(scale, reach)
    law = []
    for i, u in enumerate(scores):
        wins = [at_most(scale, z + int(u - other) - (j < i)) for j, other in enumerate(scores) if j != i]
        law.append(float(np.sum(p * np.prod(wins, axis=0))))
    return np.array(law)


@pytest.mark.parametrize(("k", "eps", "confidence"), [(2, 1.0, 0.9), (3, 1.0, 0.8), (3, 2.5, 0.95), (4, 2.0, 0.6)])
def test_no_scores_make_report_noisy_max_err_more_and_some_err_as_much(k, eps, confidence):
    """All scores from 0 down to twice the error, in every order."""
    t = int(ReportNoisyMax(eps, 1).error(confidence, candidates=k))
    rows = [row for row in product(range(-t - 4, 1), repeat=k) if max(row) == 0]
    laws = [(np.array(row), chosen(2 / eps, row)) for row in rows[:: 1 + len(rows) // 3000]]
    worst = (*[-t - 1] * (k - 1), 0)
    laws.append((np.array(worst), chosen(2 / eps, worst)))
    assert max(law[row < -t].sum() for row, law in laws) <= 1 - confidence
    assert t == 0 or chosen(2 / eps, (*[-t] * (k - 1), 0))[: k - 1].sum() > 1 - confidence
    assert max(law[row < -t].sum() for row, law in laws) == pytest.approx(laws[-1][1][: k - 1].sum())


def missed_by_balls(scales, gap, low, high, reach=50):
    """1 − E[a^low·b^high], number by number, at 300 bits."""
    with precision(PREC):
        r, s = (e(-1 / Fraction(scale)) for scale in scales)

        def inside(t):
            return 1 - s ** (t + 1) / (1 + s) if t >= 0 else s**-t / (1 + s)

        limit = int(reach * scales[0]) + 2
        terms = [
            (1 - r) / (1 + r) * r ** abs(x) * inside(x + gap - 1) ** low * inside(gap - x) ** high
            for x in range(-limit, limit + 1)
        ]
        return float(1 - sum(terms, arb(0)))


@pytest.mark.parametrize("scales", [(0.05, 0.05), (1.0, 4.0), (30.0, 5.0)])
@pytest.mark.parametrize(("gap", "low", "high"), [(1, 1, 0), (9, 10**12, 0), (40, 3, 2), (200, 10**6, 10)])
def test_sums_are_never_below_the_truth_and_hardly_above(scales, gap, low, high):
    contest = Contest(*(DiscreteLaplace(scale) for scale in scales), 1e-3)
    found, truth = contest.miss_probability(contest.sides(gap), low, high), missed_by_balls(scales, gap, low, high)
    assert truth <= found <= truth * (1 + 3e-11) + 1e-16


@pytest.mark.parametrize("scale", [3000, 20_000])
def test_cells_of_many_numbers_cost_less_than_a_nine_hundredth_of_the_scale(scale):
    """The chances at the gap found, and at one that is less by the slack, summed number by number in floats."""
    for k, confidence in ((2, 0.5), (1000, 0.99)):
        gap = int(ReportNoisyMax(2 / scale, 1).error(confidence, candidates=k)) + 1
        x, p = np.arange(-40 * scale, 40 * scale + 1), laplace(scale, 40 * scale)

        def missed(g, k=k, x=x, p=p, scale=scale):
            return 1 - float(np.sum(p * at_most(scale, x + g - 1) ** (k - 1)))

        assert missed(gap) <= 1 - confidence < missed(gap - scale // 900)


def test_errors_of_report_noisy_max_at_the_edges():
    mechanism = ReportNoisyMax(1.0, 1)
    assert mechanism.error(0.9, candidates=1) == 0 == mechanism.error(0.0, candidates=10**15)
    assert ReportNoisyMax(2000.0, 1).error(1 - 1e-16, candidates=10**15) == 0
    assert ReportNoisyMax(1e-15, 1).error(1 - 1e-16, candidates=10**15) < 1.6e17
    assert mechanism.error(0.95, candidates=2) == 6  # the union bound said so, too; for a hundred it said 18
    assert mechanism.error(0.95, candidates=100) == 15


@pytest.mark.parametrize("confidence", [0.6, 0.8, 0.9, 0.95])
def test_errors_that_are_no_doubles_are_rounded_up(confidence):
    """Of noise beyond 2⁵³, where a gap less one is between two doubles."""
    best, watch = ReportNoisyMax(1e-17, 1), AboveThreshold(1e-17, 0)
    contest = Contest(best.law(), best.law(), 1 - confidence)
    gap = least_gap(contest, lambda gap: contest.miss_probability(contest.sides(gap), 4, 0))
    assert gap - 1 <= Fraction(best.error(confidence, candidates=5)) <= gap * (1 + Fraction(2) ** -52)
    contest = Contest(*watch.laws, 1 - confidence)
    gap = least_gap(contest, lambda gap: contest.missed_most(gap, 5, 1))
    assert gap - 1 <= Fraction(watch.error(confidence, queries=5)) <= gap * (1 + Fraction(2) ** -52)


# ---- above threshold -------------------------------------------------------------------------------------------------


class Watched:
    """Above threshold by its definition: weights over the threshold's noise, and what is said given it."""

    def __init__(self, mechanism, reach=80):
        one, two = (float(law.scale) for law in mechanism.laws)
        self.x = np.arange(-int(reach * one) - 5, int(reach * one) + 6)
        self.start = laplace(one, int(reach * one) + 5)
        self.scale, self.count = two, mechanism.count

    def yes(self, q):
        """P(q + ν ≥ x), T = 0."""
        return at_most(self.scale, q - self.x)

    def right(self, row, t, weights=None, left=None):
        """P(all queries of the row that lie beyond t are answered rightly, as far as they are asked)."""
        weights = self.start if weights is None else weights
        left = self.count if left is None else left
        if not row or not left:
            return float(weights.sum())
        yes, rest = self.yes(row[0]), row[1:]
        total = 0.0
        if row[0] >= -t:  # also where it is too near to matter
            total += self.right(rest, t, weights * yes, left - 1)
        if row[0] <= t:
            total += self.right(rest, t, weights * (1 - yes), left)
        return total

    def least(self, choices, t, n, weights=None, left=None):
        """The least P(all right) of whoever chooses each query in the light of all answers."""
        weights = self.start if weights is None else weights
        left = self.count if left is None else left
        if not n or not left:
            return float(weights.sum())
        found = []
        for q in choices:
            yes, total = self.yes(q), 0.0
            if q >= -t:
                total += self.least(choices, t, n - 1, weights * yes, left - 1)
            if q <= t:
                total += self.least(choices, t, n - 1, weights * (1 - yes), left)
            found.append(total)
        return min(found)


@pytest.mark.parametrize(
    ("mechanism", "n", "confidence"),
    [
        (AboveThreshold(3.0, 0), 1, 0.9),
        (AboveThreshold(3.0, 0), 4, 0.8),
        (AboveThreshold(4.0, 0, 2), 3, 0.6),
        (AboveThreshold.monotone(2.0, 0, 3), 3, 0.7),
    ],
)
def test_no_queries_make_above_threshold_err_more_and_some_err_as_much(mechanism, n, confidence):
    """All rows of queries at, just beyond, and well within the error."""
    t, watched = int(mechanism.error(confidence, queries=n)), Watched(mechanism)
    choices = [-t - 2, -t - 1, -t, 0, t, t + 1, t + 3]
    assert min(watched.right(row, t) for row in product(choices, repeat=n)) >= confidence
    closer = t - 1
    worst = min(watched.right(row, closer) for row in product([-closer - 1, closer + 1], repeat=n))
    assert worst < confidence


def test_queries_chosen_by_answers_to_near_ones_need_a_count_more():
    mechanism, confidence, n = AboveThreshold(4.0, 0, 2), 0.75, 4
    watched = Watched(mechanism)
    t = int(mechanism.error(confidence, queries=n + 2))
    assert watched.least([-t - 1, -t // 2, 0, t // 2, t + 1], t, n) >= confidence
    far = watched.least([-t - 1, t + 1], t, n)  # nothing is learned from far ones
    assert far == pytest.approx(min(watched.right(row, t) for row in product([-t - 1, t + 1], repeat=n)))


def test_the_worst_share_of_high_queries_is_found():
    contest = Contest(DiscreteLaplace(3), DiscreteLaplace(5), 0.1)
    for gap, most in ((5, 40), (12, 7), (30, 40)):
        sides = contest.sides(gap)
        each = [contest.miss_probability(sides, 40 - j, j) for j in range(most + 1)]
        assert max(each) <= contest.missed_most(gap, 40, most) <= max(each) * (1 + 1e-9)


def test_errors_of_above_threshold_are_missed_as_often_as_said():
    """4,000 recorded runs of the worst row; 4.9 standard deviations: a true law fails with probability below 1e-6."""
    mechanism = AboveThreshold(2.0, 100, 1, source=Recorded("alarms"))
    g = int(mechanism.error(0.8, queries=20)) + 1
    row, runs = [100 - g] * 19 + [100 + g], 4000
    wrong = sum(mechanism.release(row) != [False] * 19 + [True] for _ in range(runs))
    contest = Contest(*mechanism.laws, 0.2)
    p = contest.miss_probability(contest.sides(g), 19, 1)
    assert 0.1 < p <= 0.2 and abs(wrong - runs * p) < 4.9 * math.sqrt(runs * p * (1 - p))


def test_errors_of_above_threshold_at_the_edges():
    assert AboveThreshold(1.0, 0).error(0.0, queries=10**15) == 0
    assert AboveThreshold(900.0, 0).error(1 - 1e-16, queries=10**15) < 2
    assert AboveThreshold(1e-12, 0).error(1 - 1e-16, queries=10**15) < 2.5e14
