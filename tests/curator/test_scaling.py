"""Bounds, noise and intervals of scaled contributions: what the price says, exactly, and what scaling takes away."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.noisy_sums import COUNT_PART, ROUNDED, UNEVEN, Missing, NoisySums
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.aggregates.variance import GIVEN_MEAN, MEAN, VarianceReader
from sfumato.curator.layout import upper_error
from sfumato.curator.norm_tail import BINS, SQUARES, Tail
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import release, table_requests
from sfumato.curator.scaling import PEOPLE, Choice, NoisyNorms, blocks_of, cap_of, choose_for_sums, histogram_edges
from sfumato.curator.steps import NormHistogram
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sql.emit.norm import LARGEST, WHOLE
from tests.curator.people import DEFAULT, GAUSSIAN, PURE, opened, stated

QUESTIONS = (
    "SELECT k, COUNT(*) FROM t GROUP BY k",
    "SELECT k, COUNT(*), SUM(x), COUNT(DISTINCT u) FROM t GROUP BY k",
    "SELECT VARIANCE(y), COVAR_POP(x, y) FROM t",
    "SELECT SUM(x) FROM t",
    "SELECT COUNT(DISTINCT u) FROM t",
)


def offer_of(sql, budget=GAUSSIAN, epsilon=1.0, more=""):
    question = parse_question(sql, stated(budget, more))
    return offer_for_epsilon(question, epsilon, 1e-6, Pure if budget == PURE else Mu)


def with_bounds(offer, bounds, norms=None):
    """The offer with these bounds, as if they had been chosen."""
    pairs = zip(offer.blocks, bounds, strict=True)
    return replace(offer, choices=tuple(Choice(block, bound, norms) for block, bound in pairs))


# ---- noise is what the price says ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("budget", [GAUSSIAN, PURE])
@settings(max_examples=9)
@given(bound=st.integers(1, 2**40), epsilon=st.floats(0.05, 5))
def test_noise_is_never_smaller_than_its_price_says(sql, budget, bound, epsilon):
    """Σ over blocks of (U·C/σ)² ≤ μ² in exact fractions, sizes taken out; Σ U·C/scale ≤ ε under pure ε."""
    norms = NoisyNorms((0,) * BINS, 1.0)
    offer = offer_of(sql, budget, epsilon)
    bound = min(bound, 2**16) if budget == PURE else bound  # beyond, noise cannot be drawn
    offer = with_bounds(offer, [bound] * len(offer.blocks), norms)
    price, total = Fraction(offer.price.amount), Fraction(0)
    for choice in offer.choices:
        block, worst = choice.block, Fraction(0)
        for one in block.coordinates:
            noise = offer.noise[one.measure]
            spread = Fraction(noise.sigma if isinstance(noise, Gaussian) else noise.scale)
            worst = max(worst, Fraction(one.size * WHOLE) / spread)
        length = Fraction(bound, block.resolution**2) if block.squares else Fraction(bound, block.resolution)
        total += worst**2 * length if block.squares else worst * length
    people = offer.people_noise
    if isinstance(people, Gaussian):
        assert total + 1 / Fraction(people.sigma) ** 2 <= price**2
    else:
        assert total + 1 / Fraction(people.scale) <= price


@pytest.mark.parametrize("budget", [GAUSSIAN, PURE])
def test_the_histogram_has_noise_for_one_vote(budget):
    offer = offer_of(QUESTIONS[0], budget)
    step = NormHistogram(offer.plan, offer.price.part(0.1))
    spread = Fraction(step.noise.sigma if budget == GAUSSIAN else step.noise.scale)
    assert WHOLE / spread <= Fraction(step.price.amount)
    assert step.loss == step.price.loss()
    edges = histogram_edges(step.blocks[0])
    assert len(edges) == BINS and edges == sorted(set(edges))


def test_a_share_for_people_is_taken_from_each_block():
    offer = offer_of(QUESTIONS[1])
    offer = with_bounds(offer, [5] * len(offer.blocks), NoisyNorms((0,) * BINS, 1.0))
    assert len(offer.blocks) == 2 and offer.block_share == 0.5
    assert offer.people_noise.sigma >= 1 / (offer.price.amount * math.sqrt(PEOPLE / 2))


@pytest.mark.parametrize("budget", [GAUSSIAN, PURE])
def test_people_near_the_bound_and_beyond_its_bin_are_counted_apart_and_each_once(tmp_path, budget):
    """60 people have 10 rows, 200 have one. A unit is in one of the two numbers, so both together move by one."""
    curator = opened(tmp_path, *DEFAULT, budget=budget)
    offer = offer_of("SELECT COUNT(*) FROM t", budget)
    (block,) = offer.blocks
    for length, near, far in ((3, 0, 60), (9, 60, 0), (12, 0, 0), (1, 0, 60)):
        choice = Choice(block, block.bound(length), NoisyNorms((0,) * BINS, 1.0))
        assert choice.bound <= choice.far <= block.bound(2 * length)
        complete = replace(offer, choices=(choice,))
        rows = curator.engine.run(table_requests(complete, 1, "duckdb")[1].direct)
        assert rows == [(near, far)]
        assert complete.counts_near == (choice.far > choice.bound)
        assert len(json.loads(release(complete, [[(0,)], rows]))["people"]) == 1 + complete.counts_near


def test_so_many_people_are_not_exceeded_though_two_numbers_are_added():
    """The sum of two noises falls short by more than its bound in 2.5 % at most; 5 deviations of 20,000 draws."""
    for price in (Mu(0.7), Pure(0.7)):
        noise = price.noise(1)
        for numbers in (1, 2):
            drawn = np.asarray(noise.release([0] * (20_000 * numbers))).reshape(-1, numbers).sum(1)
            assert (drawn < -upper_error(noise, numbers)).mean() <= 0.025 + 5 * math.sqrt(0.025 / 20_000)


# ---- what scaling takes away -----------------------------------------------------------------------------------------


def weight_of(q, bound, squares):
    """Never above √(B/q), and as far below as the statement may be."""
    if q <= bound:
        return WHOLE
    return max(0, math.isqrt(WHOLE**2 * bound // q) - 2) if squares else WHOLE * bound // q


@given(
    counts=st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=8),
    bound=st.integers(1, 900),
    squares=st.booleans(),
)
def test_a_count_is_between_the_scaled_one_and_that_plus_what_was_left_out(counts, bound, squares):
    """Theorem 3 (b), with a margin of 10⁻⁹ for the roots."""
    norms = [sum(c * c if squares else c for c in row) for row in counts]
    weights = [weight_of(q, bound, squares) for q in norms]
    out = sum(max(0.0, math.sqrt(q) - math.sqrt(bound)) if squares else max(0, q - bound) for q in norms)
    sums = NoisySums(NoiseBasis((), 1, WHOLE), (), (), missing=Missing(out, 0.1))
    for k in range(3):
        plain = sum(row[k] for row in counts)
        scaled = float(Fraction(sum(w * row[k] for w, row in zip(weights, counts, strict=True)), WHOLE))
        low, high = sums.widen(scaled, scaled, 0.0, 1.0)
        assert low - 1e-9 <= plain <= high + 1e-9
        share = Missing(out, 2.0).share(scaled)
        assert plain - scaled <= share * plain + 1e-9


@given(
    counts=st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=8),
    bound=st.integers(1, 60),
    aside=st.integers(0, 3),
)
def test_a_group_leaves_out_its_share_of_what_the_tail_leaves_out_and_no_more_than_all_that_others_do(
    counts, bound, aside
):
    """Theorem 3 (e) in fractions, L1: where shares are no more uneven than UNEVEN, `of_group` bounds what is taken;
    `aside` units are those that no shape explains."""
    norms = [sum(row) for row in counts]
    taken = [max(0, q - bound) for q in norms]
    kept = sum(min(q, bound) for q in norms)
    tail = sum(taken[aside:])
    for k in range(3):
        scaled = sum(
            (Fraction(row[k] * min(q, bound), q) for row, q in zip(counts, norms, strict=True) if q), Fraction(0)
        )
        lost = [
            Fraction(row[k] * out, q) if q else Fraction(0) for row, q, out in zip(counts, norms, taken, strict=True)
        ]
        if sum(lost[aside:]) * kept > Fraction(UNEVEN) * scaled * tail:
            continue  # people with long contributions have far more of this group than others: not what is assumed
        missing = Missing(float(sum(taken)), 0.1, shared=float(tail), kept=float(kept))
        assert sum(lost) <= Fraction(missing.of_group(float(scaled))) + Fraction(1, 10**9)
        assert sum(lost) <= Fraction(missing.share(float(scaled))) * (scaled + sum(lost)) + Fraction(1, 10**9)


def test_where_everybody_is_alike_the_share_of_a_group_is_exact():
    """Contributions of one direction and different lengths: L_k·M = S_k·E in every group, so UNEVEN is room alone."""
    direction, lengths, bound = (6, 3, 1), (1, 2, 5, 40), 30
    norms = [10 * length for length in lengths]
    kept, out = sum(min(q, bound) for q in norms), sum(max(0, q - bound) for q in norms)
    for part in direction:
        scaled = sum(Fraction(part * length * min(q, bound), q) for length, q in zip(lengths, norms, strict=True))
        lost = sum(part * length for length in lengths) - scaled
        assert lost * kept == scaled * out


def test_a_group_may_hold_all_that_no_shape_explains_but_not_all_of_the_tail():
    missing = Missing(100.0, 0.1, shared=80.0, kept=1000.0)
    assert missing.of_group(0.0) == 20.0
    assert missing.of_group(100.0) == pytest.approx(20 + 80 * UNEVEN / 10)
    assert missing.of_group(1000.0) == missing.of_group(math.inf) == 100.0
    assert Missing(100.0, 2.0, certain=True).of_group(0.0) == 100.0  # for all data, nothing is known of groups
    shares = [missing.share(count) for count in range(0, 2000, 10)]
    assert shares == sorted(shares, reverse=True)  # so a lower end of the count bounds it


@given(rows=st.lists(st.tuples(st.floats(0, 1), st.floats(0.0, 1.0)), min_size=2, max_size=12))
def test_a_variance_moves_by_at_most_the_left_out_share_of_the_squared_range(rows):
    """Theorem 3 (d): values in [0, 1] with weights w; λ is the share of 1 − w."""
    x, w = (np.array(column) for column in zip(*rows, strict=True))
    if w.sum() < 1e-6:
        return
    share = float((1 - w).sum() / len(w))
    inside = float((w * (x - (w * x).sum() / w.sum()) ** 2).sum() / w.sum())
    assert -share * inside - 1e-9 <= float(x.var()) - inside <= share * (1 - inside) + 1e-9


def test_weights_are_rounded_down_by_less_than_what_intervals_allow_for():
    assert ROUNDED >= 2 + 2**-30


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 8, 14])
@pytest.mark.parametrize("people", [500, 5000])
def test_people_who_all_have_the_same_number_of_rows_are_not_left_out(rows, people):
    """Norms at one point of a bin: a histogram cannot tell where, so the bound must not be inside of that bin."""
    rng, missed, errors = np.random.default_rng(rows), 0, []
    counts = np.zeros(BINS)
    counts[int(np.searchsorted(SQUARES, rows**2))] = people
    for mu in (0.2, 1.0) * 20:
        sigma = 1 / (mu * math.sqrt(0.1))
        tail = Tail.of(counts + rng.normal(0, sigma, BINS), sigma)
        bound = choose_for_sums(tail, 1 / mu, 3)
        out, error = people * max(0.0, rows - bound), rng.normal(0, bound / mu)
        missed += not error - 2.24 * bound / mu <= out <= error + 2.24 * bound / mu + tail.at_most(bound)
        errors.append(out / (rows / mu))
    assert missed <= 5 and max(errors) <= 10


# ---- caps ------------------------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(data=st.data())
def test_nobody_with_as_many_rows_as_the_owner_states_has_a_longer_norm(data):
    """Rows of a unit spread over groups, each coordinate at most its size: q ≤ the cap's."""
    offer = offer_of("SELECT k, COUNT(*), SUM(x), COUNT(y) FROM t GROUP BY k", more="most = 12")
    (block,) = offer.blocks
    cap, q = cap_of(block, offer.plan), 0
    for rows in data.draw(st.lists(st.integers(0, 4), min_size=3, max_size=3)):
        for one in block.coordinates:
            z = data.draw(st.integers(-rows * one.size, rows * one.size))
            q += (-(-block.resolution * abs(z) // one.size)) ** 2
    assert q <= block.bound(cap)


def test_a_cap_whose_norm_does_not_fit_its_type_is_none():
    offer = offer_of(QUESTIONS[1], more="most = 1000000000")
    assert cap_of(offer.blocks[0], offer.plan) is None
    offer = offer_of(QUESTIONS[1], more="most = 10000000")
    cap = cap_of(offer.blocks[0], offer.plan)
    assert cap is not None and offer.blocks[0].bound(cap) <= LARGEST


# ---- all of it, in small: profiles enumerated against the price ------------------------------------------------------


def scaled_counts(units, bound, whole):
    """Σ W·z with weights of `whole`."""
    total = [0] * len(units[0])
    for z in units:
        q = sum(c * c for c in z)
        w = whole if q <= bound else max(0, math.isqrt(whole**2 * bound // q) - 1)
        total = [t + w * c for t, c in zip(total, z, strict=True)]
    return total


def rounded(mean, sigma, reach):
    """P(whole number) of a rounded Gaussian."""
    x = np.arange(-reach, reach + 1)
    upper, lower = ((x + d - mean) / (sigma * math.sqrt(2)) for d in (0.5, -0.5))
    return np.array([0.5 * (math.erf(b) - math.erf(a)) for a, b in zip(lower, upper, strict=True)])


@pytest.mark.parametrize("mu", [0.7, 1.5])
@pytest.mark.parametrize("own", [(1, 0), (3, 2), (6, 0), (1, 1), (9, 9)])
def test_choice_and_release_together_cost_no_more_than_the_price(mu, own):
    """Histogram of three bins, a bound that is any function of it, and the sums: all outputs enumerated."""
    others, whole, bins = [(1, 0), (0, 2), (2, 1)], 4, (1, 4, 36)
    split = (mu**2 * 0.3, mu**2 * 0.7)
    first, second = 1 / math.sqrt(split[0]), 1 / math.sqrt(split[1])
    sides = []
    for units in (others, [*others, own]):
        histogram = [0, 0, 0]
        for z in units:
            q = sum(c * c for c in z)
            histogram[next((j for j, edge in enumerate(bins[:-1]) if q <= edge), 2)] += 1
        tops = [rounded(n, first, 12) for n in histogram]
        seen = np.einsum("a,b,c->abc", *tops)
        outcomes = []
        for bound in bins:  # chosen by the fullest noisy bin
            sums = scaled_counts(units, bound, whole)
            sigma = second * whole * math.sqrt(bound)
            grids = [rounded(total, sigma, int(8 * sigma) + 80)[::1] for total in sums]
            outcomes.append(np.outer(*grids).ravel())
        sides.append((seen, outcomes))
    place = np.indices(sides[0][0].shape).reshape(3, -1).T
    best = np.argmax(place, axis=1)
    chosen = [[side[0].ravel()[best == j] for j in range(3)] for side in sides]
    for epsilon in (-1.0, -0.2, 0.0, 0.3, 1.0, 2.5):
        spent = sum(hockey(chosen[0][j], chosen[1][j], sides[0][1][j], sides[1][1][j], epsilon) for j in range(3))
        allowed = Mu(mu).loss().delta(abs(epsilon)).upper
        allowed = allowed if epsilon >= 0 else 1 - math.exp(epsilon) * (1 - allowed)
        assert spent <= allowed + 1e-6


def hockey(p1, q1, p2, q2, epsilon):
    """H of a product, in pieces of ratios: Σ (p1·p2 − e^ε·q1·q2)⁺, by sorting the second factor by its ratio."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p2 > 0, p2 / np.maximum(q2, 1e-300), 0))
    p, q = np.cumsum(p2[order]), np.cumsum(q2[order])
    ratio = p2[order] / np.maximum(q2[order], 1e-300)
    need = math.exp(epsilon) * q1 / np.maximum(p1, 1e-300)
    many = np.searchsorted(-ratio, -need, "left")
    top = np.where(many > 0, p[np.maximum(many - 1, 0)], 0.0)
    low = np.where(many > 0, q[np.maximum(many - 1, 0)], 0.0)
    return float(np.sum(np.maximum(p1 * top - math.exp(epsilon) * q1 * low, 0)))


def test_blocks_have_every_measure_that_somebody_can_move():
    for sql in QUESTIONS:
        plan = offer_of(sql).plan
        places = [one.measure for block in blocks_of(plan, True) for one in block.coordinates]
        assert sorted(places) == list(range(len(plan.measures)))


def test_noise_and_the_count_that_bounds_a_share_miss_no_more_than_allowed():
    """With what was left out, which has the other half, an interval of a mean, a sum or a variance misses 5 %."""
    offer = offer_for_epsilon(parse_question("SELECT AVG(y), VARIANCE(y) FROM t", stated()), 1.0, 1e-6, Mu)
    norms = NoisyNorms((2**24,) * BINS, 1.0)
    found = replace(offer, choices=tuple(Choice(block, block.bound(2.0), norms) for block in offer.blocks))
    for aggregate, indexes in found.question.sum_indexes.items():
        sums = found.noisy_sums(indexes)
        assert sums.missing is not None
        assert 1 - sums.confidence == pytest.approx(0.025)
        reader, noise = aggregate.reader(sums), 1 - sums.noise_confidence
        if isinstance(reader, VarianceReader):
            noise = sum(1 - reader.confidence_of(part) for part in (MEAN, GIVEN_MEAN))
        assert noise + COUNT_PART * 0.025 <= 0.025 * (1 + 1e-9)
        assert sums.count_radius(indexes[1]) > sums.spread(sums.joint.coefficients[indexes[1]]).radius
