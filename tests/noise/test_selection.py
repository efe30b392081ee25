"""Selection by score, coins and choices: bounds that hold, laws found from all bit strings, and real words.

Statistics use recorded bits: a test that passes once passes always. Each of about 25 would reject a true law with
probability 1e-4 on fresh bits.
"""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.noise import Certified, Exp, choose, exponential_coins, peel, permute_and_flip, select, select_run
from sfumato.noise.balls import ball, enclosure, precision
from sfumato.noise.draw_table import CHUNK, Words
from sfumato.noise.exponential_weights import STEPS, below_top, powers
from tests.noise.sources import Recorded, Scripted, all_bit_strings
from tests.noise.test_statistics import FALSE_ALARM, chi_square

TINY = Words(guide=2, word=3, coin=2, step=1)
EXTREMES = [0.0, 5e-324, 1e-320, 1e-300, 2.0**-60, 0.5, 1.0, math.log(2), 22.1, 28.0, 28.5, 44.0, 745.2, 1e300, 1.7e308]
SCORES = {
    "two": [0.0, 1.0],
    "ties": [2.5, 2.5, 2.5],
    "near and far": [0.0, -0.25, -1.75, -1000.0],
    "all that doubles span": [-1.7e308, 1.7e308, 1.7e308],
    "one": [-7.0],
    "next to each other": [0.3, np.nextafter(0.3, 1), 0.0],
    "signed zeros": [-0.0, 0.0, 5e-324],
    "integers": [3, 1, 2],
    "integers that no double holds": [2**63 - 1, 2**63 - 2, -(2**63)],
    "unsigned": np.array([2**64 - 1, 2**64 - 2, 0], np.uint64),
    "bytes": np.array([-128, 127, 126], np.int8),
    "halves": np.array([0.5, 0.25], np.float16),
}


def gaps(scores):
    exact = [Fraction(x) for x in np.asarray(scores).tolist()]
    return [max(exact) - x for x in exact]


# ---- bounds ----------------------------------------------------------------------------------------------------------


def assert_bounds_hold(x, rate, unit):
    bound = powers(rate, unit)
    y = bound.steps(np.array([x]))
    q = int(y[0])
    coarse, fine = (int(bound.low[q]), int(bound.high[q])), tuple(int(b[0]) for b in bound.bounds(y))
    with precision(400):
        exact = 2**unit * (-ball(Fraction(rate) * Fraction(x))).exp()
        for low, high in (coarse, fine):
            assert low == 0 or exact >= low, (x, rate, unit)  # a ball about 0 has two sides
            assert exact <= high, (x, rate, unit)
        assert coarse[1] - coarse[0] <= 2**unit * 2 / STEPS + 2
        assert fine[1] - fine[0] <= 2 ** (unit - 17) + 2
        assert int(bound.narrow[q]) == coarse[0]
        assert coarse[1] - coarse[0] <= bound.width


@pytest.mark.parametrize("unit", [1, 3, 16, 32, 40])
def test_powers_are_bounded_at_the_ends_of_the_range(unit):
    for x, rate in product(EXTREMES, [0, 1, Fraction(1, 3), 1e-100, 1e100, Fraction(10**40, 7), 1e-30]):
        assert_bounds_hold(x, rate, unit)


@pytest.mark.parametrize("rate", [1, Fraction(1, 3), 1e90, 1e-90])
def test_powers_are_bounded_beside_every_step(rate):
    """The doubles next to a step's start, where rounding could move a number across."""
    for q in [*range(64), *range(64, 41 * STEPS + 2, 97), 41 * STEPS - 1, 41 * STEPS, 41 * STEPS + 1]:
        with precision(200):
            x = float(arb.const_log2() * q / STEPS / ball(Fraction(rate)))
        for near in (x, np.nextafter(x, 0), np.nextafter(x, math.inf)):
            assert_bounds_hold(float(near), rate, 40)


def test_the_factor_is_a_double_next_to_the_real_one():
    for rate in (Fraction(1, 3), Fraction(1e-100), Fraction(1e100), Fraction(22, 7)):
        with precision(200):
            off = ball(Fraction(powers(rate, 40).factor)) * arb.const_log2() / ball(rate * STEPS) - 1
            assert abs(off) <= arb(2) ** -52


@given(st.floats(0, 60), st.fractions(Fraction(1, 100), 100), st.integers(1, 40))
@settings(max_examples=50, deadline=None)
def test_powers_are_bounded(x, rate, unit):
    assert_bounds_hold(x, rate, unit)


def test_beyond_the_table_a_power_is_between_nothing_and_one():
    bound = powers(1, 40)
    y = bound.steps(np.array([29.0, 1e308, math.inf]))
    assert bound.low[y.astype(int)].tolist() == [0, 0, 0]
    assert bound.high[y.astype(int)].tolist() == [1, 1, 1]
    assert [b.tolist() for b in bound.bounds(y)] == [[0, 0, 0], [2, 2, 2]]  # 1, rounded up twice


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_gaps_are_exact_one_by_one_and_near_together(scores):
    found = below_top(scores)
    near, exact = found.near(0, len(scores)), gaps(scores)
    assert [found.exactly(i) for i in range(len(scores))] == exact
    for x, gap in zip(near.tolist(), exact, strict=True):
        assert abs(Fraction(x) - gap) <= gap / 2**53 if x < math.inf else gap >= 2**1023


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_gaps_of_integers_lose_no_bit(scores):
    found = below_top(scores)
    near, exact = found.near(0, len(scores)), gaps(scores)
    assert [found.exactly(i) for i in range(len(scores))] == exact
    assert all(abs(Fraction(x) - gap) <= gap / 2**53 for x, gap in zip(near.tolist(), exact, strict=True))


# ---- all bit strings -------------------------------------------------------------------------------------------------


def assert_law(found, left, exact):
    """found ≤ P ≤ found + left for every outcome, `exact` holding balls."""
    assert set(found) <= set(exact)
    with precision(300):
        for outcome, p in exact.items():
            assert not p < ball(found.get(outcome, Fraction(0))), outcome
            assert not p > ball(found.get(outcome, Fraction(0)) + left), outcome


@pytest.mark.parametrize(
    "words", [TINY, Words(word=2, step=2), Words(word=5, step=1)], ids=["tiny", "two bits", "five bits"]
)
@pytest.mark.parametrize("name", SCORES)
def test_selection_has_its_law(name, words):
    source, scores, rate = Scripted(), SCORES[name], Fraction(2, 3)
    found, left = all_bit_strings(lambda: select(scores, rate, words=words, source=source), source, 12)
    assert left < 0.6
    with precision(300):
        weights = [(-ball(rate * gap)).exp() for gap in gaps(scores)]
        total = sum(weights, arb(0))
        assert_law(found, left, dict(enumerate(w / total for w in weights)))


@pytest.mark.parametrize("runs", [([0, 1], [1, 2]), ([3, 0, 2**50], [2, 1, 3]), ([0], [3]), ([0, 0], [2, 1])], ids=str)
def test_a_selection_from_runs_has_its_law(runs):
    source, (apart, counts), rate = Scripted(), runs, Fraction(2, 3)
    found, left = all_bit_strings(lambda: select_run(apart, counts, rate, words=TINY, source=source), source, 12)
    assert left < 0.6
    with precision(300):
        weights = [(-ball(rate * gap)).exp() for gap in apart]
        total = sum((w * n for w, n in zip(weights, counts, strict=True)), arb(0))
        assert_law(found, left, {(i, k): w / total for i, w in enumerate(weights) for k in range(counts[i])})


def flipped(probabilities):
    """P(i) of a uniform choice among the heads, by the list of all coins."""
    law = {i: arb(0) for i in range(len(probabilities))}
    for coins in product([False, True], repeat=len(probabilities)):
        heads = [i for i, coin in enumerate(coins) if coin]
        p = arb(1)
        for coin, probability in zip(coins, probabilities, strict=True):
            p *= probability if coin else 1 - probability
        for i in heads:
            law[i] += p / len(heads)
    return law


def permuted(probabilities):
    """P(i) of the first head in a random order, by the list of all orders."""
    law = {i: arb(0) for i in range(len(probabilities))}
    orders = list(permutations(range(len(probabilities))))
    for order in orders:
        tails = arb(1) / len(orders)
        for i in order:
            law[i] += tails * probabilities[i]
            tails *= 1 - probabilities[i]
    return law


@pytest.mark.parametrize("name", SCORES)
def test_permute_and_flip_has_its_law(name):
    source, scores, rate = Scripted(), SCORES[name], Fraction(2, 3)
    found, left = all_bit_strings(lambda: permute_and_flip(scores, rate, words=TINY, source=source), source, 13)
    assert left < 0.3
    with precision(300):
        coins = [(-ball(rate * gap)).exp() for gap in gaps(scores)]
        by_order, by_heads = permuted(coins), flipped(coins)
        assert all(by_order[i].overlaps(by_heads[i]) for i in by_order)
        assert_law(found, left, by_order)


@pytest.mark.parametrize("x", [0.0, 5e-324, 0.5, 3.0, 1e300, 2, 2**63 - 1])
def test_exponential_coins_have_their_probabilities(x):
    source, rate = Scripted(), Fraction(1, 3)
    for words in (TINY, Words(coin=4, step=1)):
        found, left = all_bit_strings(
            lambda words=words: bool(exponential_coins([x], rate, words=words, source=source)[0]), source, 11
        )
        assert left <= Fraction(2, 2**11)
        with precision(300):
            p = (-ball(rate * Fraction(x))).exp()
            assert_law(found, left, {True: p, False: 1 - p})


class Given:
    """These words once, and then recorded bits."""

    def __init__(self, words):
        self.given, self.bits = words, Recorded("given").bits

    def words(self, count, bits):
        assert (count, bits) == (self.given.size, 32)
        return self.given


@pytest.mark.parametrize("x", [0.0, 1e-12, 0.001, 0.7, 5.0, 15.0, 22.0, 30.0, 1e300])
def test_32_bits_decide_what_they_can(x):
    """Words about 2^32·e^-x: those surely below are heads, those surely above are not, however close."""
    with precision(200):
        scaled = (-ball(Fraction(x))).exp() * 2**32
        middle, least = int(float(scaled)), max(0, int(float(scaled * (1 - arb(2) ** -7))))
    around = np.arange(middle - 40_000, middle + 40_000, dtype=np.int64)
    ends = [0, 1, 2, least, least + 1, 2**32 - 2, 2**32 - 1]
    u = np.unique(np.clip(np.append(around, ends), 0, 2**32 - 1))[: CHUNK * 2]
    for part in (u[:CHUNK], u[CHUNK:]):
        heads = exponential_coins(np.full(part.size, x), source=Given(part.astype(np.uint32)))
        with precision(200):
            yes, no = (
                np.array([bool(f(int(v))) for v in part]) for f in (lambda v: v + 1 <= scaled, lambda v: v >= scaled)
            )
        assert heads[yes].all()
        assert not heads[no].any()
        assert (~yes & ~no).sum() <= 1


def test_exponential_coins_are_independent():
    source, x = Scripted(), [0.25, 1.5]
    found, left = all_bit_strings(lambda: tuple(exponential_coins(x, words=TINY, source=source).tolist()), source, 13)
    assert left < 0.01
    with precision(300):
        first, second = ((-ball(Fraction(v))).exp() for v in x)
        exact = {(a, b): (first if a else 1 - first) * (second if b else 1 - second) for a in (0, 1) for b in (0, 1)}
        assert_law(found, left, exact)


def test_peeling_has_its_law():
    source, scores = Scripted(), [0.0, -0.5, -2.0]
    run = lambda: tuple(peel(scores, 2, 1, words=TINY, source=source).tolist())  # noqa: E731
    found, left = all_bit_strings(run, source, 13)
    assert left < 0.3
    with precision(300):
        w = [ball(Fraction(s)).exp() for s in scores]
        total = sum(w, arb(0))
        assert_law(found, left, {(a, b): w[a] / total * w[b] / (total - w[a]) for a, b in permutations(range(3), 2)})


WEIGHTS = {
    "integers": [1, 2, 0, 4],
    "doubles": [0.1, 0.2, 0.7],
    "the least doubles": [5e-324, 1e-323],
    "the largest doubles": [1.7e308, 1e308, 1e-300],
    "one": [7.0],
    "words": np.array([2**64 - 1, 2**63, 1], np.uint64),
    "fractions": [Fraction(1, 3), Fraction(1, 2), 0],
    "balls": [Exp(Fraction(-1)), Certified(lambda prec: arb.pi() / 7), 1],
    "large integers": [10**30, 10**30 + 1],
}


@pytest.mark.parametrize("word", [4, 6])
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_choice_has_its_law(name, word):
    source, words, weights = Scripted(), Words(word=word, step=1), list(WEIGHTS[name])
    found, left = all_bit_strings(lambda: int(choose(WEIGHTS[name], words=words, source=source)[0]), source, 12)
    assert left < 0.5
    with precision(300):
        exact = [
            enclosure(
                w if isinstance(w, Exp | Certified) else Fraction(int(w) if isinstance(w, np.generic) else w), 300
            )
            for w in weights
        ]
        total = sum(exact, arb(0))
        assert_law(found, left, dict(enumerate(w / total for w in exact)))


def test_integer_weights_ask_for_no_more_bits_than_they_need():
    source = Scripted()
    found, left = all_bit_strings(lambda: int(choose([1, 2, 0, 5], source=source)[0]), source, 3)
    assert left == 0
    assert found == {0: Fraction(1, 8), 1: Fraction(2, 8), 3: Fraction(5, 8)}


# ---- real words ------------------------------------------------------------------------------------------------------


def test_selections_look_like_their_law():
    n, rate, scores = 10_000, Fraction(1, 2), np.array([0.0, 1, 1, 3.5, -200, 2.25])
    source = Recorded("selection")
    w = np.exp(0.5 * scores)
    found = np.bincount([select(scores, rate, source=source) for _ in range(n)], minlength=6)
    assert chi_square(found, n * w / w.sum()) > FALSE_ALARM
    flip = np.exp(0.5 * (scores - 3.5))
    with precision(100):
        law = np.array([float(p) for p in permuted([arb(float(p)) for p in flip]).values()])
    found = np.bincount([permute_and_flip(scores, rate, source=source) for _ in range(n)], minlength=6)
    assert chi_square(found, n * law) > FALSE_ALARM


def test_three_bits_give_the_same_law_as_forty():
    n, scores, words = 10_000, np.array([0.0, 0.3, -0.7, 1.1, 1.1]), Words(word=3, coin=3, step=2)
    source = Recorded("three bits")
    w = np.exp(scores)
    found = np.bincount([select(scores, 1, words=words, source=source) for _ in range(n)], minlength=5)
    assert chi_square(found, n * w / w.sum()) > FALSE_ALARM
    coins = exponential_coins(np.full(n, 0.4), words=words, source=source)
    assert abs(coins.sum() - n * math.exp(-0.4)) < 3.9 * (n * math.exp(-0.4) * (1 - math.exp(-0.4))) ** 0.5
    found = np.bincount(choose(w, n, words=words, source=source), minlength=5)
    assert chi_square(found, n * w / w.sum()) > FALSE_ALARM


@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_a_million_candidates(kind):
    """Classes of candidates by score, over all parts: the class chosen has its law, and so has the place in it."""
    n, rate = 10**6, Fraction(1, 2)
    scores = (np.arange(n) % 7).astype(kind)
    source = Recorded(f"a million {kind}")
    found = np.array([select(scores, rate, source=source) for _ in range(120)])
    w = np.exp(np.arange(7) / 2)
    assert chi_square(np.bincount(found % 7, minlength=7), 120 * w / w.sum()) > FALSE_ALARM
    assert chi_square(np.bincount(found * 10 // n, minlength=10), np.full(10, 12.0)) > FALSE_ALARM
    flipped_ = np.array([permute_and_flip(scores, rate, source=source) for _ in range(60)])
    assert chi_square(np.bincount(flipped_ * 5 // n, minlength=5), np.full(5, 12.0)) > FALSE_ALARM


@pytest.mark.parametrize("at", [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK + 1, 3 * CHUNK])
def test_one_candidate_above_all_others_is_chosen_wherever_it_is(at):
    scores = np.full(3 * CHUNK + 1, -1e5)
    scores[at] = 0
    assert select(scores, 1) == at
    assert permute_and_flip(scores, 1) == at
    assert select(scores.astype(np.int64), 1) == at
    assert choose(scores == 0, 3).tolist() == [at] * 3


def test_many_coins_look_like_their_law():
    n = 400_000
    x = np.repeat([0.0, 0.1, 1.0, 3.0, 30.0, 1e300], n // 6 + 1)[:n]
    heads = exponential_coins(x, Fraction(3, 2), source=Recorded("coins"))
    for value in np.unique(x):
        there, p = heads[x == value], math.exp(-1.5 * value)
        assert abs(there.sum() - there.size * p) <= 3.9 * (there.size * p * (1 - p)) ** 0.5


def test_many_choices_look_like_their_law():
    n, source = 200_000, Recorded("choices")
    for weights in (np.arange(50), np.arange(50) / 7, np.arange(50, dtype=np.uint64) << np.uint64(57)):
        found = np.bincount(choose(weights, n, source=source), minlength=50)
        assert found[0] == 0
        assert chi_square(found[1:], n * np.arange(1, 50) / 1225) > FALSE_ALARM


def test_peeling_takes_each_candidate_once():
    order = peel(np.array([0, 100, 10_000, -5000]), 4, 1, source=Recorded("peel"))
    assert order.tolist() == [2, 1, 0, 3]
    assert sorted(peel(np.zeros(50), 50, 1).tolist()) == list(range(50))
    assert peel([1.0], 0, 1).size == 0


def test_a_rate_of_zero_ignores_scores():
    source = Recorded("zero")
    found = np.bincount([select([-1.7e308, 1.7e308, 0.0], 0, source=source) for _ in range(3000)], minlength=3)
    assert chi_square(found, np.full(3, 1000.0)) > FALSE_ALARM
    assert exponential_coins([0.0, 1e308], 0).all()


def test_private_scores_are_not_changed():
    scores = np.array([3.0, 1.0, 2.0])
    for run in (lambda: select(scores, 1), lambda: permute_and_flip(scores, 1), lambda: peel(scores, 2, 1)):
        run()
        assert scores.tolist() == [3.0, 1.0, 2.0]
    exponential_coins(scores)
    choose(scores)
    assert scores.tolist() == [3.0, 1.0, 2.0]


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scores",
    [[], [[1.0, 2.0]], 3.0, [1.0, math.nan], [math.inf, 0.0], [-math.inf, 0.0], ["a"], [1j], [None], np.zeros(2, "O")],
    ids=repr,
)
def test_scores_that_make_no_sense_are_refused_before_a_bit_is_drawn(scores):
    source = Scripted("")
    for run in (select, permute_and_flip, lambda s, r, source: peel(s, 1, r, source=source)):
        with pytest.raises(InvalidParameter, match="found"):
            run(scores, 1, source=source)


@pytest.mark.parametrize("rate", [-1, math.nan, math.inf, 1e-200, 1e200, "1", None, True, np.ones(2)], ids=repr)
def test_rates_that_make_no_sense_are_refused_before_a_bit_is_drawn(rate):
    source = Scripted("")
    for run in (select, permute_and_flip, exponential_coins):
        with pytest.raises(InvalidParameter, match="found"):
            run([1.0, 2.0], rate, source=source)


def test_other_nonsense_is_refused_before_a_bit_is_drawn():
    source = Scripted("")
    for x in ([-1.0], [math.inf], [math.nan], [-1], ["1"]):
        with pytest.raises(InvalidParameter, match="found"):
            exponential_coins(x, source=source)
    for weights in ([], [0.0, 0.0], [0], [-1.0, 2.0], [math.nan], [math.inf], ["1"], [Fraction(-1)]):
        with pytest.raises(InvalidParameter, match="found"):
            choose(weights, source=source)
    for count in (-1, 1.5, 4, math.nan):
        with pytest.raises(InvalidParameter, match="found"):
            peel([1.0, 2.0, 3.0], count, 1, source=source)
    assert exponential_coins([], source=source).size == 0
    assert choose([1.0], 0, source=source).size == 0


def test_no_refusal_shows_a_score():
    with pytest.raises(InvalidParameter) as refused:
        select([12345.0, math.nan], 1)
    assert "12345" not in str(refused.value)
