"""Values and intervals from noisy parts: always in order, and as often right as they say."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.aggregates.intervals import Reach, Spread, ratio, spread
from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.curator.release import add_noise
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sql.policy import Policy
from tests.curator.coverage import PRICES, QUESTIONS, asked, of_ranks, of_sums, totals
from tests.curator.questions import exactly

OFFERS = [asked(name, price) for name in QUESTIONS for price in PRICES]
integers = st.one_of(st.integers(-3, 3), st.integers(-(2**20), 2**20), st.integers(-(2**62), 2**62))


@given(st.sampled_from(OFFERS), st.lists(integers, min_size=12, max_size=12))
def test_an_interval_holds_its_value_whatever_the_noise(offer, noisy):
    for reading in offer.readers.values():
        value, low, high = reading.read(noisy[: len(offer.noise)])
        assert low <= value <= high
        assert all(map(math.isfinite, (value, low, high)))


@given(st.sampled_from(OFFERS), st.lists(integers, min_size=12, max_size=12))
def test_parts_and_measures_are_the_same_numbers(offer, row):
    joint = offer.joint
    row = row[: len(joint.measures)]
    assert joint.measures_of(joint.parts_of(row)) == row


@pytest.mark.parametrize("price", [PRICES[0], PRICES[2], PRICES[4], PRICES[5]], ids=repr)
@pytest.mark.parametrize("name", QUESTIONS)
def test_intervals_hold_the_truth_as_often_as_they_say(name, price):
    """1,000 releases, recorded bits. With others each of 96 comparisons would fail with 6e-7 (5 σ; the computed number
    is at most 0.001 below the true one, another 0.15 σ)."""
    for seen in of_sums(name, price, 1000):
        assert 0.95 <= seen.coverage <= 1
        assert seen.off() < 5.2, seen


@pytest.mark.parametrize("price", [Mu(0.5), Pure(2.0)], ids=repr)
def test_intervals_of_quantiles_hold_the_truth(price):
    """150 releases: with 95 % each, more than 26 misses have 6e-8."""
    for seen in of_ranks(price, 150):
        assert seen.count - seen.held <= 26, seen


# ---- sums of noise --------------------------------------------------------------------------------------------------


def law(noise, most):
    """P(K = k) for |k| ≤ most, from tails that balls know."""
    beyond = [1.0, *(float(noise.law().beyond(m, 128)) for m in range(most + 1))]
    whole = {k: (beyond[abs(k)] - beyond[abs(k) + 1]) / 2 for k in range(-most, most + 1) if k}
    return {0: 1 - beyond[1], **whole}


def test_without_noise_there_is_nothing_to_miss():
    assert spread((), 0.95) == spread(((Fraction(0), Gaussian(3.0)),), 0.95) == Spread(radius=0.0, coverage=1.0)


@pytest.mark.parametrize("noise", [Gaussian(3.0), DiscreteLaplace(5.0)], ids=repr)
@pytest.mark.parametrize("below", [3, 7, 10])
def test_the_radius_of_a_fraction_of_noise_holds_the_last_step_that_it_counts(noise, below):
    """Steps over 3 are no double: one that is rounded down would leave the outermost step out."""
    found = spread(((Fraction(1, below), noise),), 0.95)
    steps = math.floor(Fraction(found.radius) * below)
    assert found.coverage == 1 - float(noise.law().beyond(steps, 128)) >= 0.95


@pytest.mark.parametrize(
    "terms",
    [
        ((Fraction(1), Gaussian(0.8)), (Fraction(-3), Gaussian(0.5))),
        ((Fraction(1, 2), Gaussian(2.0)), (Fraction(5, 2), Gaussian(0.4))),
        ((Fraction(1, 2), DiscreteLaplace(1.5)), (Fraction(7), DiscreteLaplace(0.2))),
        ((Fraction(1), DiscreteLaplace(0.05)), (Fraction(1), Gaussian(0.05))),
    ],
)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_coverage_of_a_sum_is_exact_where_lattices_are_coarse(terms, confidence):
    (a, first), (b, second) = terms
    both = {}
    for (i, p), (j, q) in product(law(first, 50).items(), law(second, 15).items()):
        m = abs(float(a) * i + float(b) * j)  # exact: halves
        both[m] = both.get(m, 0.0) + p * q
    found = spread(terms, confidence)
    held = {m: math.fsum(p for k, p in both.items() if k <= m) for m in both}
    assert found.radius == min(m for m, p in held.items() if p >= confidence)
    assert found.coverage == pytest.approx(held[found.radius], abs=1e-9)


@given(
    st.lists(st.tuples(st.floats(0.001, 1000), st.floats(0.3, 1e6)), min_size=2, max_size=4),
    st.sampled_from([0.5, 0.95, 0.99]),
)
def test_the_coverage_of_a_sum_of_fine_noise_is_that_of_a_normal_law(pairs, confidence):
    """Rounding moves a sum by at most half of each factor."""
    terms = tuple((Fraction(c), Gaussian(s)) for c, s in pairs)
    found = spread(terms, confidence)
    sigma, halves = math.hypot(*(c * s for c, s in pairs)), sum(c for c, _ in pairs) / 2
    normal = [math.erf(max(0.0, found.radius + by) / sigma / math.sqrt(2)) for by in (-halves, halves)]
    assert normal[0] - 0.01 <= found.coverage <= normal[1] + 1e-6
    assert found.coverage >= confidence


# ---- ratios ---------------------------------------------------------------------------------------------------------


@given(*(st.floats(0, 100) for _ in range(4)), st.floats(-1e4, 1e4), st.floats(0, 1e4))
def test_a_ratio_holds_every_number_that_fits(fixed, growing, least, slope, d, n):
    reach = Reach(fixed, growing, least, slope)
    low, high = ratio(d, d, n, reach)
    assert low <= high
    if not math.isfinite(low):
        assert n <= (math.sqrt(growing) + slope) * (1 + 1e-9)
        return
    for t in np.concatenate([np.linspace(low - 1, high + 1, 201), np.linspace(-1e4, 1e4, 51)]):
        fits = abs(d - t * n) <= math.sqrt(fixed + growing * t * t) + least + slope * abs(t)
        spare = 1e-6 * (1 + abs(t))
        assert not fits or low - spare <= t <= high + spare
        assert fits or not low + spare <= t <= high - spare


def test_the_interval_of_a_mean_is_as_short_as_one_of_known_n():
    """Within 2 % of ± 1.96 standard deviations, where the corners of a box gave half as much again."""
    offer = asked("mean", Mu(0.6))
    (aggregate,) = offer.question.aggregates
    row = totals(offer.joint)
    value, low, high = offer.readers[aggregate].read(offer.joint.parts_of(row))
    indexes = offer.question.sum_indexes[aggregate]
    total, many = (offer.noise[j].sigma for j in indexes)
    measure = offer.plan.measures[indexes[0]]
    share = (value - measure.centre) / 2**measure.exponent
    sigma = math.hypot(total, share * many) / row[indexes[1]] * 2**measure.exponent
    assert 2 * 1.95 * sigma < high - low < 2 * 2.0 * sigma


# ---- parts ----------------------------------------------------------------------------------------------------------


RULES = """
version = 1
[budget]
epsilon = 1.0
delta = 1e-6
[tables.t]
unit = "u"
rows = {rows}
[tables.t.columns]
u = {{type = "number"}}
k = {{type = "text"}}
x = {{low = {low}, high = {high}, step = 1}}
"""


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("bounds", [(0, 3), (-2, 5), (1, 3)])
@pytest.mark.parametrize("asks", ["COUNT(*)", "SUM(x)", "COUNT(*), SUM(x)", "COUNT(*), AVG(x)", "VARIANCE(x)",
                                  "COUNT(*), COUNT(x), SUM(x)", "COUNT(DISTINCT u), COUNT(*)"])  # fmt: skip
@pytest.mark.parametrize("by", ["", "k, "])
def test_nobody_moves_a_part_farther_than_its_size(rows, bounds, asks, by):
    low, high = bounds
    rules = Policy.read(RULES.format(rows=rows, low=low, high=high))
    question = parse_question(f"SELECT {by}{asks} FROM t" + (" GROUP BY k" if by else ""), rules)
    joint = NoiseBasis.of(question.plan)
    reached = [0] * len(joint.parts)
    for n in range(1, rows + 1):
        for many in range(n + 1):
            for values in product({low, 0 if low <= 0 else low, high}, repeat=many):
                row = [measured(m, n, values) for m in joint.measures]
                reached = [max(a, abs(z)) for a, z in zip(reached, joint.parts_of(row), strict=True)]
    assert all(a <= part.size for a, part in zip(reached, joint.parts, strict=True))
    assert all(2 * a >= part.size for a, part in zip(reached, joint.parts, strict=True))  # and sizes are not idle


def measured(measure, rows, values):
    """What a person of so many rows, some with values, adds to a measure."""
    steps = [round((v - measure.centre) / 2.0 ** (measure.exponent // (2 if measure.what.value == "squares" else 1)))
             for v in values]  # fmt: skip
    return {"units": 1, "rows": rows, "values": len(values), "sum": sum(steps),
            "squares": sum(s * s for s in steps)}[measure.what.value]  # fmt: skip


def test_private_keys_and_counts_are_nearly_as_good_together_as_each_alone():
    rules = Policy.read(RULES.format(rows=2, low=0, high=3))
    both = asked_of("SELECT k, COUNT(*) FROM t GROUP BY k", rules)
    units, rows = (reading_of(both, what) for what in ("units", "rows"))
    assert units < 1.21 * 1  # variances; alone they would be 1 and 2², and shared equally 2 and 8
    assert rows < 4.21


def test_a_count_and_a_sum_share_what_they_have_in_common():
    offer = asked_of("SELECT COUNT(*), SUM(x) FROM t", Policy.read(RULES.format(rows=1, low=0, high=50)))
    assert reading_of(offer, "rows") < 1.46  # alone 1, shared equally 2
    assert reading_of(offer, "sum") < 1.18 * 50**2  # likewise 50² and 2·50²


def test_of_people_with_one_row_units_and_rows_are_one_number():
    offer = asked_of("SELECT k, COUNT(*) FROM t GROUP BY k", Policy.read(RULES.format(rows=1, low=0, high=3)))
    assert sum(noise is not None for noise in offer.noise) == 1
    noisy = add_noise(offer, [[70, 70]] * 50)
    assert len({exactly(offer.question, offer.joint.measures_of(row))[0] for row in noisy}) > 1
    for row in noisy:
        assert offer.readers[offer.question.aggregates[0]].read(row)[0] == row[offer.unit_count_index]


def asked_of(sql, rules):
    question = parse_question(sql, rules)
    return type(OFFERS[0])(question, Mu(1.0), 1e-6 if question.plan.public is None else 0.0)


def reading_of(offer, what):
    """The variance of a measure."""
    place = [m.what.value for m in offer.joint.measures].index(what)
    return sum(
        (float(c) * n.sigma) ** 2 for c, n in zip(offer.joint.coefficients[place], offer.noise, strict=True) if n
    )


FINE = [
    ((Fraction(1), Gaussian(42.0)), (Fraction(1, 2**40), Gaussian(1e14))),
    ((Fraction(1, 3), Gaussian(42.0)), (Fraction(1, 2**40), Gaussian(1e13))),
    ((Fraction(1), Gaussian(0.001)), (Fraction(1, 2**60), Gaussian(1e17)), (Fraction(3, 7**9), Gaussian(1e3))),
]


@pytest.mark.parametrize("terms", FINE)
def test_lattices_may_be_as_fine_as_they_like(terms):
    """Then the sum is nearly a Gaussian, whose radius is known."""
    found = spread(terms, 0.95)
    whole = math.hypot(*(float(c) * noise.sigma for c, noise in terms))
    assert 1.9599 < found.radius / whole < 1.964
    assert 0.95 <= found.coverage < 0.951
    laplace = spread(((Fraction(1), DiscreteLaplace(10.0)), (Fraction(1, 2**60), DiscreteLaplace(1e15))), 0.95)
    assert 30 <= laplace.radius <= 30.01  # P(|K| > 30) is just below 5 %
    assert 0.95 <= laplace.coverage < 0.951
