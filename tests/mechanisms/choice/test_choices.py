"""Permute-and-flip, report-noisy-max, top-k and the stable argmax: price by enumeration, errors, odd input."""

import math
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from flint import arb

import sfumato as sf
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.mechanisms import (
    Exponential,
    PermuteAndFlip,
    ReportNoisyMax,
    StableArgmax,
    TopK,
    argmax,
    monotone_argmax,
)
from sfumato.mechanisms.choice.noisy_max import HALF, index_of_highest
from sfumato.mechanisms.keys.partition_selection import ONE, Keeping
from sfumato.noise.balls import ball, precision
from tests.mechanisms.oracle import PREC, assert_within, e, exact
from tests.noise.sources import RanOut, Recorded, Scripted

BOTH_WAYS = [np.array(change) for change in product([-1, 0, 1], repeat=3)]
UPWARDS = [np.array(change) for change in product([0, 1], repeat=3)]
STARTS = [(0, 0, 0), (0, -3, -3), (2, 0, -2), (0, -1, -9)]


def pairs(law, changes, starts=STARTS):
    return [(law(np.array(start)), law(np.array(start) + change)) for start in starts for change in changes]


# ---- permute-and-flip ------------------------------------------------------------------------------------------------


@exact
def flipped(rate, scores):
    """The definition: all orders, and the first head."""
    coins = [e(-Fraction(rate) * int(max(scores) - u)) for u in scores]
    law = {i: arb(0) for i in range(len(scores))}
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = arb(1) / len(orders)
        for i in order:
            law[i] += left * coins[i]
            left *= 1 - coins[i]
    return law


@pytest.mark.parametrize("eps", [0.3, 1.0, 3.0])
def test_permute_and_flip_is_pure(eps):
    mechanism, monotone = PermuteAndFlip(eps, 1), PermuteAndFlip.monotone(eps, 1)
    assert (mechanism.rate, monotone.rate) == (Fraction(eps) / 2, Fraction(eps))
    far = [*STARTS, (0, -20, -20)]
    assert_within(mechanism.loss(), pairs(lambda u: flipped(mechanism.rate, u), BOTH_WAYS, far))
    assert_within(monotone.loss(), pairs(lambda u: flipped(monotone.rate, u), UPWARDS, far))
    with pytest.raises(AssertionError):
        assert_within(monotone.loss(), pairs(lambda u: flipped(monotone.rate, u), BOTH_WAYS, far))


def test_permute_and_flip_costs_more_than_bounded_range():
    """Why the loss is pure: the cheaper bounded range would be a lie."""
    with pytest.raises(AssertionError):
        assert_within(
            sf.loss.BoundedRangeLoss(3.0), pairs(lambda u: flipped(Fraction(3, 2), u), BOTH_WAYS, [(0, -2, -2)])
        )


def test_permute_and_flip_follows_its_law():
    """4,000 recorded releases; a true law fails with probability below 1e-4."""
    mechanism = PermuteAndFlip(2.0, 1, source=Recorded("flips"))
    counts = np.bincount([mechanism.release([0, -1, -2]) for _ in range(4000)], minlength=3)
    meant = 4000 * np.array([float(p) for p in flipped(1, np.array([0, -1, -2])).values()])
    assert ((counts - meant) ** 2 / meant).sum() < 18.5


@pytest.mark.parametrize(("k", "confidence"), list(product([2, 5, 1000, 10**9], [0.3, 0.9, 0.9999])))
def test_the_error_of_permute_and_flip_is_attained_by_equal_others(k, confidence):
    mechanism = PermuteAndFlip(0.7, 1.5)
    t, miss = mechanism.error(confidence, candidates=k), 1 - confidence
    assert t <= Exponential(0.7, 1.5).error(confidence, candidates=k) * (1 + 1e-12)
    with precision(PREC):
        p = e(-mechanism.rate * Fraction(t))
        missed = float(1 - (1 - (1 - p) ** k) / (k * p)) if t else (k - 1) / k
    assert missed <= miss * (1 + 1e-15)
    assert t == 0 or missed == pytest.approx(miss, rel=1e-6)


# ---- report noisy max ------------------------------------------------------------------------------------------------


@exact
def noisy_max(scale, scores, reach=60):
    """P(i) = Σ P(N = z)·Π P(N < …)·Π P(N ≤ …): the first of the highest."""
    r = e(-1 / Fraction(scale))
    reach = int(reach * Fraction(scale)) + 40

    def at_most(t):
        return 1 - r ** (t + 1) / (1 + r) if t >= 0 else r ** (-t) / (1 + r)

    law = {}
    for i, u in enumerate(scores):
        law[i] = arb(0)
        for z in range(-reach, reach + 1):
            p = (1 - r) / (1 + r) * r ** abs(z)
            for j, other in enumerate(scores):
                if j != i:
                    p *= at_most(z + int(u - other) - (j < i))
            law[i] += p
    return law


@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_report_noisy_max_is_pure_ties_included(eps):
    starts = [(0, 0, 0), (0, -2, -2), (3, 0, -1)]
    mechanism, monotone = ReportNoisyMax(eps, 1), ReportNoisyMax.monotone(eps, 1)
    assert (mechanism.law().scale, monotone.law().scale) == (2 / Fraction(eps), 1 / Fraction(eps))
    assert_within(mechanism.loss(), pairs(lambda u: noisy_max(2 / Fraction(eps), u), BOTH_WAYS[::2], starts))
    assert_within(monotone.loss(), pairs(lambda u: noisy_max(1 / Fraction(eps), u), UPWARDS, starts))


def test_report_noisy_max_follows_its_law():
    """4,000 recorded releases; a true law fails with probability below 1e-4."""
    mechanism = ReportNoisyMax(2.0, 1, source=Recorded("noisy max"))
    counts = np.bincount([mechanism.release([0, 0, -2]) for _ in range(4000)], minlength=3)
    meant = 4000 * np.array([float(p) for p in noisy_max(1, np.array([0, 0, -2])).values()])
    assert ((counts - meant) ** 2 / meant).sum() < 18.5


def test_sums_neither_wrap_nor_saturate():
    zeros = np.zeros(3, np.int64)
    limits = np.array([2**63 - 1, -(2**63), 2**63 - 1])
    assert index_of_highest(limits, zeros, {}) == 0
    assert index_of_highest(limits, np.array([0, 0, 1]), {}) == 2
    assert index_of_highest(limits, np.array([HALF, HALF, HALF + 1]), {}) == 2
    assert index_of_highest(zeros, np.array([2**63 - 1, 0, 2**63 - 1]), {0: 2**64, 2: 2**64 + 1}) == 2
    assert index_of_highest(zeros, zeros, {}) == 0


# ---- top k -----------------------------------------------------------------------------------------------------------


@exact
def peeled(rate, scores, k):
    weights = [e(Fraction(rate) * int(u)) for u in scores]
    law = {}
    for chosen in permutations(range(len(scores)), k):
        left, p = sum(weights, arb(0)), arb(1)
        for i in chosen:
            p *= weights[i] / left
            left -= weights[i]
        law[chosen] = p
    return law


@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_top_k_costs_k_bounded_ranges(eps):
    mechanism = TopK(2, eps, 1)
    assert mechanism.loss() == 2 * sf.loss.BoundedRangeLoss(eps)
    assert_within(mechanism.loss(), pairs(lambda u: peeled(mechanism.one.rate, u, 2), BOTH_WAYS))
    monotone = TopK.monotone(2, eps, 1)
    assert_within(monotone.loss(), pairs(lambda u: peeled(monotone.one.rate, u, 2), UPWARDS))


def test_top_k_follows_its_law():
    """4,000 recorded releases; a true law fails with probability below 1e-4."""
    mechanism = TopK(2, 2.0, 1, source=Recorded("top two"))
    law = peeled(1, np.array([0, -1, -3]), 2)
    found = [tuple(mechanism.release([0, -1, -3]).tolist()) for _ in range(4000)]
    meant = np.array([4000 * float(p) for p in law.values()])
    counts = np.array([found.count(chosen) for chosen in law])
    assert ((counts - meant) ** 2 / meant).sum() < 25.7


def all_right(gaps, k, p):
    """P(every choice is within t of the best left): weights are powers of p = e^{−rate·t}, `gaps` in units of t."""
    if not k:
        return 1.0
    weights, best = [p**gap for gap in gaps], min(gaps)
    right = [i for i, gap in enumerate(gaps) if gap <= best + 1]
    return sum(weights[i] * all_right(gaps[:i] + gaps[i + 1 :], k - 1, p) for i in right) / sum(weights)


@pytest.mark.parametrize(("n", "k", "confidence"), [(2, 2, 0.9), (4, 2, 0.6), (4, 3, 0.9), (5, 2, 0.99), (5, 5, 0.8)])
def test_no_scores_make_top_k_err_more(n, k, confidence):
    """All scores on half-steps of the error and just beyond whole ones; the promise holds, and is at most 0.75 high."""
    mechanism = TopK(k, 1.0, 1)
    y = float(mechanism.one.rate) * mechanism.error(confidence, candidates=n)
    rows = [
        (0.0, *row) for row in product([0, 0.5, 1, 1.001, 1.5, 2.002, 3.003], repeat=n - 1) if row == tuple(sorted(row))
    ]
    assert min(all_right(row, k, math.exp(-y)) for row in rows) >= confidence
    assert min(all_right(row, k, math.exp(-(y - 0.75))) for row in rows) < confidence


@pytest.mark.parametrize(("n", "k", "above"), [(1000, 10, 0.04), (10**6, 100, 0.03), (100, 2, 0.05), (10**9, 50, 0.03)])
def test_equal_best_candidates_nearly_attain_the_error_of_top_k(n, k, above):
    mechanism = TopK(k, 1.0, 1)
    y = float(mechanism.one.rate) * mechanism.error(0.95, candidates=n)

    def missed(y):
        return 1 - math.prod(j / (j + (n - k) * math.exp(-y)) for j in range(1, k + 1))

    assert missed(y) <= 0.05 < missed(y - above)
    assert mechanism.error(0.95, candidates=n) < Exponential(1.0, 1).error(0.95 ** (1 / k), candidates=n)


def test_errors_of_top_k_at_the_edges():
    assert TopK(1, 0.7, 1).error(0.9, candidates=30) == Exponential(0.7, 1).error(0.9, candidates=30)
    assert TopK(5, 0.7, 1).error(0.9, candidates=1) == 0 == TopK(5, 0.7, 1).error(0.0, candidates=1000)
    assert TopK(2, 0.0, 1).error(0.9, candidates=3) == math.inf
    assert TopK(10**15, 1.0, 1).error(1 - 1e-16, candidates=10**15) < 200


def test_more_choices_than_candidates_are_refused():
    with pytest.raises(InvalidParameter, match="fewer than 4"):
        TopK(4, 1.0, 1, source=Scripted()).release([1, 2, 3])


# ---- coins under (ε, δ) ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eps", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (3.0, 1e-19), (0.0, 0.01), (1e-3, 0.2), (1e90, 1e-9), (0.5, 1.0)]
)
def test_chances_obey_all_four_inequalities_and_are_the_largest(eps, delta):
    chances = Keeping(eps, delta).chances
    assert chances[0] == 0 and chances[-1] == ONE and len(set(chances)) == len(chances)
    with precision(600):
        up, leak, best = e(min(eps, 200.0)), ball(Fraction(delta)), arb(0)
        for before, after in pairwise(chances):
            p, q = ball(Fraction(before, ONE)), ball(Fraction(after, ONE))
            if eps < 200:
                for one, two in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
                    assert not one > up * two + leak
            best = min(up * best + leak, 1 - (1 - best - leak) / up, arb(1), key=lambda x: float(x.mid()))
            assert float(best) == pytest.approx(after / ONE, rel=1e-12)


def test_coins_are_compared_with_all_their_bits():
    class Words(Scripted):
        def __init__(self, word, bits):
            self.word, self.next = word, bits

        def words(self, count, bits):
            assert bits == 64
            return np.full(count, self.word, np.uint64)

        def bits(self, count):
            return self.next

    keeping, n = Keeping(1.0, 1e-6), np.array([5])
    chance = keeping.chances[5]
    first, second = chance >> 64, chance % 2**64
    assert keeping.flip_coins(n, Words(first - 1, None)).all()
    assert not keeping.flip_coins(n, Words(first + 1, None)).any()
    assert keeping.flip_coins(n, Words(first, second - 1)).all()
    assert not keeping.flip_coins(n, Words(first, second)).any()
    everything = np.array([-(2**63), -1, 0, 10**6, 2**63 - 1])
    assert keeping.flip_coins(everything, Words(0, 0)).tolist() == [False, False, False, True, True]
    assert keeping.flip_coins(everything, Words(2**64 - 1, 0)).tolist() == [False, False, False, True, True]


def test_the_least_sure_number_is_found():
    keeping = Keeping(1.0, 1e-6)
    for confidence in (0.0, 1e-6, 0.3, 0.95, 1.0):
        n = keeping.sure(confidence)
        assert keeping.probability(n) >= confidence and (n == 0 or keeping.probability(n - 1) < confidence)


@pytest.mark.parametrize(
    "arguments", [(1.0, 0.0), (1.0, -1.0), (-1.0, 0.1), (1.0, 1.5), (math.nan, 0.1), (1.0, math.nan)]
)
def test_wrong_chances_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        Keeping(*arguments)


def test_a_tiny_epsilon_is_out_of_reach():
    with pytest.raises(OutOfReach, match="larger eps"):
        Keeping(0.0, 1e-9)


# ---- the stable argmax -----------------------------------------------------------------------------------------------


@exact
def stable(mechanism, scores):
    best = int(np.argmax(scores))
    lead = int(scores[best]) - max(int(u) for i, u in enumerate(scores) if i != best)
    p = ball(mechanism.keeping.probability(math.ceil(lead / (2 * Fraction(mechanism.sensitivity.linf)))))
    return {best: p, None: 1 - p}


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 1e-2), (0.3, 0.1), (2.0, 1e-4)])
def test_the_stable_argmax_is_private_where_the_best_changes_and_where_not(eps, delta):
    starts = [(lead, 0, rest) for lead in range(24) for rest in (0, -1)]
    mechanism, monotone = StableArgmax(eps, delta, 1), StableArgmax.monotone(eps, delta, 1)
    assert_within(
        mechanism.loss(), pairs(lambda u: stable(mechanism, u), BOTH_WAYS, starts), [0.0, eps / 2, eps, 2 * eps]
    )
    assert_within(monotone.loss(), pairs(lambda u: stable(monotone, u), UPWARDS, starts), [eps], tight=0.999)
    with pytest.raises(AssertionError):
        assert_within(monotone.loss(), pairs(lambda u: stable(monotone, u), BOTH_WAYS, starts), [eps])


def test_the_stable_argmax_releases_what_the_oracle_says():
    """2,000 recorded releases at a chance of about one half; within 4.5 standard deviations."""
    mechanism = StableArgmax(0.5, 1e-3, 1, source=Recorded("stable"))
    half = mechanism.keeping.sure(0.4)
    scores = [0.0, 2.0 * half, -5.0]
    p = float(mechanism.keeping.probability(half))
    found = [mechanism.release(scores) for _ in range(2000)]
    assert set(found) == {1, None}
    assert abs(found.count(1) - 2000 * p) < 4.5 * math.sqrt(2000 * p * (1 - p))


@pytest.mark.parametrize("scores", [[0, 0, 0], [1.0, 1.0], [math.nan, math.nan], [math.inf, math.inf, 0.0]])
def test_ties_are_never_named(scores):
    assert {StableArgmax(1.0, 0.5, 1).release(scores) for _ in range(50)} == {None}


def test_a_lead_that_is_large_enough_is_always_named():
    mechanism = StableArgmax(1.0, 1e-6, 1)
    assert mechanism.release([7]) == 0
    assert mechanism.release([0, -(10**18), 10**18]) == 2
    assert mechanism.release([-math.inf, math.inf]) == 1
    assert mechanism.release(np.array([0.0, 2.0 * (len(mechanism.keeping.chances) - 1)])) == 1


def test_leads_are_measured_without_rounding():
    """0.1 + 0.2 > 0.3 as doubles: the lead is more than one step of 0.3 by 2^-54."""
    mechanism = StableArgmax(1.0, 0.5, 0.15)
    assert mechanism.sensitivity.linf * 2 == 0.3
    answers = {mechanism.release([0.1 + 0.2, 0.0, -1.0]) for _ in range(200)}
    assert 0 in answers
    assert mechanism.keeping.probability(2) > mechanism.keeping.probability(1)


def test_the_error_of_the_stable_argmax_is_the_lead_it_needs():
    mechanism = StableArgmax(1.0, 1e-6, 3)
    t = mechanism.error(0.95)
    steps = round(t / 6)
    assert mechanism.keeping.probability(steps + 1) >= 0.95 > mechanism.keeping.probability(steps)


def test_the_route_turns_where_candidates_outnumber_one_over_delta():
    for delta in (1e-3, 1e-6, 1e-9):
        assert isinstance(argmax(1.0, delta, 1, candidates=int(0.05 / delta)), PermuteAndFlip)
        assert isinstance(argmax(1.0, delta, 1, candidates=int(20 / delta)), StableArgmax)
    assert isinstance(argmax(1.0, 0.0, 1, candidates=10**12), PermuteAndFlip)
    assert monotone_argmax(1.0, 1e-6, 1, candidates=50) == PermuteAndFlip.monotone(1.0, 1)


# ---- input -----------------------------------------------------------------------------------------------------------

MAKERS = {
    "permute and flip": PermuteAndFlip,
    "report noisy max": ReportNoisyMax,
    "top k": lambda eps, change, **kwargs: TopK(1, eps, change, **kwargs),
    "stable argmax": lambda eps, change, **kwargs: StableArgmax(eps, 1e-6, change, **kwargs),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every
@pytest.mark.parametrize("scores", [[], [[1, 2]], 3, ["a"], [[1], [2, 3]], None])
def test_what_is_no_row_of_numbers_is_refused_before_a_bit_is_drawn(make, scores):
    with pytest.raises(InvalidParameter, match="found:"):
        make(1.0, 1, source=Scripted()).release(scores)
    with pytest.raises(RanOut):
        make(1.0, 1, source=Scripted()).release([1, 2])


@every
@pytest.mark.parametrize("scores", [[2**63 - 1, -(2**63), 0], [10**30, -(10**30)], np.array([255, 0], np.uint8)])
def test_large_scores_saturate(make, scores):
    assert np.ravel(make(100.0, 1).release(scores)).tolist() == [0]


@every
@pytest.mark.parametrize("arguments", [(-1, 1), (math.nan, 1), (1, 0), (1, math.inf), ("1", 1)])
def test_wrong_parameters_are_refused(make, arguments):
    with pytest.raises(InvalidParameter):
        make(*arguments)


@every
def test_the_relation_is_that_of_the_scores(make):
    about = sf.Sensitivity(linf=2, relation=sf.ReplaceOne)
    assert make(1.0, about).loss().relation is sf.ReplaceOne
    assert make(1.0, 2).loss().relation is sf.AddRemove


def test_floats_are_not_for_report_noisy_max():
    with pytest.raises(InvalidParameter, match="whole scores"):
        ReportNoisyMax(1.0, 1).release([0.5, 1.0])


def test_choices_are_parts_of_chains():
    votes = [0, 1, 1, 2, 1] * 1000
    counted = sf.Chain(
        (
            Exponential.monotone(1.0, 1).on(lambda data: [data.count(i) for i in range(3)]),
            sf.Gaussian(2.0).following(lambda data, answers: data.count(answers[0]), 1),
            TopK(2, 1.0, 1).on(lambda data: [data.count(i) for i in range(3)]),
        )
    )
    winner, count, two = counted.release(votes)
    assert winner == two[0] == 1 and abs(count - 3000) < 40
    assert counted.loss() == 3 * sf.loss.BoundedRangeLoss(1.0) + sf.loss.GaussianLoss(0.5)


def test_candidates_are_chosen_by_name():
    assert PermuteAndFlip(1.0, 1).choose(["no", "yes"], [0, 10**6]) == "yes"
