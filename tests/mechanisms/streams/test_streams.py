"""Above threshold and the tree counter: prices by enumeration, what they remember, and that they do so once."""

import copy
import math
import os
import pickle
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
from flint import arb

import sfumato as sf
from sfumato.errors import Exhausted, InvalidParameter, OneOfAKind
from sfumato.mechanisms import AboveThreshold, DiscreteLaplace, Gaussian, TreeCounter
from sfumato.mechanisms.additive import combined_noise as sums
from tests.mechanisms import laws
from tests.mechanisms.oracle import assert_within, e, exact
from tests.noise.sources import RanOut, Recorded, Scripted

STARTS = [(0, 0, 0), (2, -1, 0), (-3, 3, 1), (1, 1, 5)]
BOTH_WAYS = [np.array(change) for change in product([-1, 0, 1], repeat=3)]
UPWARDS = [np.array(change) for change in product([0, 1], repeat=3)]


@exact
def transcripts(scales, threshold, count, answers, reach=100):
    """The law of all answers, summed over the threshold's noise; e^-80 of it is left out."""
    r, s = (e(-1 / Fraction(scale)) for scale in scales)

    def above(t):
        return s**t / (1 + s) if t >= 0 else 1 - s ** (1 - t) / (1 + s)

    law = {}
    limit = int(reach * Fraction(scales[0]))
    for rho in range(-limit, limit + 1):
        runs = {(): (1 - r) / (1 + r) * r ** abs(rho)}
        for q in answers:
            yes = above(threshold + rho - int(q))
            following = {}
            for said, p in runs.items():
                if sum(said) == count:
                    following[said] = p
                else:
                    following[(*said, True)], following[(*said, False)] = p * yes, p * (1 - yes)
            runs = following
        for said, p in runs.items():
            law[said] = law.get(said, arb(0)) + p
    return law


def pairs(mechanism, changes, starts=STARTS):
    scales = [law.scale for law in mechanism.laws]
    found = {}

    def law(answers):
        key = tuple(int(q) for q in answers)
        if key not in found:
            found[key] = transcripts(scales, mechanism.threshold, mechanism.count, key)
        return found[key]

    return [(law(np.array(start)), law(np.array(start) + change)) for start in starts for change in changes]


@pytest.mark.parametrize("count", [1, 2])
def test_above_threshold_is_pure(count):
    mechanism = AboveThreshold(3.0, 0, count)
    one, two = (Fraction(law.scale) for law in mechanism.laws)
    assert 1 / one + 2 * count / two == 3  # exactly
    assert_within(mechanism.loss(), pairs(mechanism, BOTH_WAYS[::2]))


def test_monotone_queries_need_half_the_noise_and_others_do_not_get_it():
    mechanism = AboveThreshold.monotone(3.0, 0, 2)
    one, two = (Fraction(law.scale) for law in mechanism.laws)
    assert 1 / one + 2 / two == 3
    assert_within(mechanism.loss(), pairs(mechanism, UPWARDS))


def test_the_worst_queries_cost_all_of_epsilon_and_more_if_they_are_not_monotone():
    """Four that go up say no, and one that goes down says yes: ε₁ + moves·…, nearly."""
    for mechanism, worst in ((AboveThreshold(3.0, 0), 3.0), (AboveThreshold.monotone(3.0, 0), 4.5)):
        ((p, q),) = pairs(mechanism, [np.array([1, 1, 1, 1, -1])], [(4, 4, 4, 4, -1)])
        said = (False, False, False, False, True)
        assert worst - 1e-3 < float((p[said] / q[said]).log()) < worst + 1e-12


def test_the_oracle_sees_too_little_noise():
    """Sparse vector without the factor `count`: one of the famous mistakes."""
    wrong = AboveThreshold(1.0, 0, 2)
    wrong.__dict__["laws"] = (wrong.laws[0], type(wrong.laws[1])(Fraction(wrong.laws[1].scale) / 4))
    with pytest.raises(AssertionError):
        assert_within(wrong.loss(), pairs(wrong, BOTH_WAYS, [(0, 0, 0), (-5, 5, 5)]))


def test_above_threshold_follows_its_law():
    """3,000 recorded runs over five transcripts; a true law fails with probability below 1e-4."""
    mechanism = AboveThreshold(3.0, 1, 1, source=Recorded("above"))
    law = transcripts([law.scale for law in mechanism.laws], 1, 1, (0, 2, 1))
    found = [tuple(mechanism.release([0, 2, 1])) for _ in range(3000)]
    assert set(found) <= set(law)
    meant = np.array([3000 * float(p) for p in law.values()])
    counts = np.array([found.count(said) for said in law])
    assert ((counts - meant) ** 2 / meant).sum() < 21.1


def test_clear_answers_are_right_and_the_watch_ends_when_it_is_spent():
    watch = AboveThreshold(10.0, 1000, 2).begin()
    asked = [0, 10**9, -(10**30), 999_999, 5]
    answers = []
    for q in asked:
        if watch.left:
            answers.append(watch.above(q))
    assert answers == [False, True, False, True] and watch.left == 0
    with pytest.raises(Exhausted, match="said yes 2 times"):
        watch.above(10**9)
    assert AboveThreshold(10.0, 1000, 2).release(asked) == [False, True, False, True]
    assert AboveThreshold(10.0, 1000, 2).release([]) == []


def test_noise_is_shared_so_as_to_err_least():
    """ε₂/ε₁ = (2c)^{2/3}."""
    one, two = (float(law.scale) for law in AboveThreshold(1.0, 0, 32).laws)
    assert (64 / two) / (1 / one) == pytest.approx(16)


@pytest.mark.parametrize("answer", [0.5, math.nan, "x", None, [1]])
def test_streams_refuse_types_before_a_bit_is_drawn(answer):
    watch = AboveThreshold(1.0, 0).begin()
    counter = TreeCounter(8, Gaussian(1.0)).begin()
    for ask in (watch.above, counter.add):
        with pytest.raises(InvalidParameter, match="found:"):
            ask(answer)
    assert watch.left == 1 and counter.steps == 0
    for mechanism in (AboveThreshold(1.0, 0, source=Scripted()), TreeCounter(8, Gaussian(1.0, source=Scripted()))):
        with pytest.raises(InvalidParameter):
            mechanism.release([answer])
        with pytest.raises(RanOut):
            mechanism.release([1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: AboveThreshold(0.0, 0),
        lambda: AboveThreshold(-1.0, 0),
        lambda: AboveThreshold(1.0, 0.5),
        lambda: AboveThreshold(1.0, 0, 0),
        lambda: AboveThreshold(1.0, 0, 1, 0),
        lambda: AboveThreshold(1.0, 0, 1, math.nan),
        lambda: AboveThreshold(1e-30, 0),
        lambda: AboveThreshold(1.0, 0, moves=3),
        lambda: AboveThreshold.monotone(1.0, 0, 1, sf.Sensitivity(linf=1, relation=sf.ReplaceOne)),
        lambda: TreeCounter(0, Gaussian(1.0)),
        lambda: TreeCounter(10, 3.0),
        lambda: TreeCounter(10, Gaussian(1.0, step=0.5)),
        lambda: TreeCounter(10, Gaussian(1.0)).loss(sf.Sensitivity(l0=2, linf=1)),
        lambda: TreeCounter(2, Gaussian(1.0)).release([1, 2, 3]),
        lambda: TreeCounter(2, Gaussian(1.0)).release([[1, 2]]),
        lambda: AboveThreshold(1.0, 0).release([[1, 2]]),
    ],
)
def test_wrong_parameters_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


# ---- the tree --------------------------------------------------------------------------------------------------------


class Powers:
    """A pool whose n-th draw is 2ⁿ, far above all counts: a sum tells which draws are in it."""

    def __init__(self):
        self.n = 39

    def ready(self, count):
        pass

    def about(self, value):
        self.n += 1
        return value + (1 << self.n)


def tree(horizon):
    found = TreeCounter(horizon, DiscreteLaplace(1.0))
    found.noise.__dict__["pool"] = Powers()
    return found


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 20])
def test_each_count_is_the_sum_of_all_so_far_and_of_the_noise_of_its_binary_ones(horizon):
    counter = tree(horizon).begin()
    numbers = [3 * i + 1 for i in range(horizon)]
    for t, total in enumerate(accumulate(numbers), start=1):
        found = counter.add(numbers[t - 1])
        assert found % 2**40 == total
        ends = {t >> h << h for h in range(t.bit_length()) if t >> h & 1}  # 1-based ends of the intervals
        assert found >> 40 == sum(1 << (end - 1) for end in ends)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 7, 8, 13, 31, 32])
def test_one_step_moves_as_many_noisy_sums_as_there_are_levels(horizon):
    """Every noisy sum, as it is made: those of a stream that is 1 at one step and 0 elsewhere."""
    moved = []
    for step in range(horizon):
        counter, sums = TreeCounter(horizon, DiscreteLaplace(0.01)).begin(), []
        for at in range(horizon):
            counter.add(int(at == step))
            level = (counter.steps & -counter.steps).bit_length() - 1
            sums.append(counter._exact[level])
        assert set(sums) <= {0, 1}
        moved.append(sum(sums))
    assert max(moved) == TreeCounter(horizon, Gaussian(1.0)).levels == horizon.bit_length()


def test_a_counter_in_a_chain_must_know_how_far_a_step_can_move():
    with pytest.raises(InvalidParameter, match="sensitivity"):
        sf.Chain((TreeCounter(4, Gaussian(1.0)),))
    with pytest.raises(InvalidParameter, match="sensitivity"):
        TreeCounter(4, Gaussian(1.0)).on(list)
    daily = TreeCounter(4, Gaussian(1.0)).on(list, 3)
    assert daily.loss() == 3 * Gaussian(1.0).loss(3) and len(daily.release([1, 2, 3])) == 3


def test_the_loss_is_one_noise_for_each_level():
    assert TreeCounter(1000, Gaussian(10.0)).loss() == 10 * Gaussian(10.0).loss(1)
    assert TreeCounter(1023, DiscreteLaplace(5.0)).loss(2) == 10 * DiscreteLaplace(5.0).loss(2)
    about = sf.Sensitivity(l0=1, linf=1, relation=sf.ReplaceOne)
    assert TreeCounter(4, Gaussian(1.0)).loss(about).relation is sf.ReplaceOne
    assert TreeCounter(1000, Gaussian(10.0)).loss().gdp().upper == pytest.approx(math.sqrt(10) / 10)


def test_counts_are_near_and_saturate():
    found = TreeCounter(1000, Gaussian(5.0)).release(np.ones(1000, np.int64))
    assert found.dtype == np.int64 and np.abs(found - np.arange(1, 1001)).max() < 5 * 10 * 8
    assert TreeCounter(4, DiscreteLaplace(0.01)).release([2**63 - 1, 2**63 - 1]).tolist() == [2**63 - 1] * 2
    assert TreeCounter(4, DiscreteLaplace(0.01)).release([True, False, True]).tolist() == [1, 1, 2]
    assert TreeCounter(4, DiscreteLaplace(0.01)).release(np.array([], np.int64)).tolist() == []


def test_the_counter_ends_at_its_horizon():
    counter = TreeCounter(2, Gaussian(1.0)).begin()
    counter.add(1)
    counter.add(1)
    with pytest.raises(Exhausted, match="horizon of 2 steps"):
        counter.add(1)


NOISES = {
    Gaussian(4.0): lambda reach: laws.rounded_gaussian(4, reach),
    DiscreteLaplace(3.0): lambda reach: laws.discrete_laplace(3, reach),
    sf.Laplace(2.5): lambda reach: laws.rounded_laplace(Fraction(5, 2), reach),
    sf.DiscreteGaussian(2.0): lambda reach: laws.discrete_gaussian(2, reach),
    sf.Staircase(0.5, 3.0, 0.25): lambda reach: laws.rounded_staircase(Fraction(1, 2), 3, Fraction(1, 4), reach),
    sf.TruncatedLaplace(3.0, 9): lambda reach: laws.truncated_laplace(3, 9),
}


def of_sum(law, terms):
    """The law of a sum of so many: all terms are positive, so that each chance is known to many digits."""
    one = np.array([float(law[k]) for k in sorted(law)])
    found = one
    for _ in range(terms - 1):
        found = np.convolve(found, one)
    return np.arange(found.size) - found.size // 2, found


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_error_of_the_tree_is_the_least(noise):
    law = NOISES[noise](300)
    for horizon, terms in ((1, 1), (7, 3), (8, 3), (31, 5)):
        values, chances = of_sum(law, terms)
        for miss in (0.5, 0.05, 1e-6, 2.0**-45):
            t = TreeCounter(horizon, noise).error(1 - miss)
            assert chances[np.abs(values) > t].sum() <= miss
            assert t == 0 or chances[np.abs(values) > t - 1].sum() > miss
            assert t <= terms * noise.error(1 - miss, terms)


def test_more_noises_err_more():
    for law in (make(120) for make in NOISES.values()):
        sums = [of_sum(law, terms) for terms in (1, 2, 3, 4)]
        for t in (0, 1, 5, 20):
            missed = [chances[np.abs(values) > t].sum() for values, chances in sums]
            assert missed == sorted(missed)


@pytest.mark.parametrize("scale", [500, 3001])
def test_wide_cells_cost_little(scale):
    """The chance at the error found and at one that is less by the slack, without tilt: at 5 % a transform will do."""
    noise, terms = DiscreteLaplace(float(scale)), 5
    t, size = int(TreeCounter(31, noise).error(0.95)), 1 << 20
    k = np.minimum(np.arange(size), size - np.arange(size))
    one = np.exp(-k / scale)
    law = np.fft.irfft(np.fft.rfft(one / one.sum()) ** terms, size)
    cells = sums.NoiseCells.of(noise.law(), 0.05e-16 / terms)
    slack = (terms + 1) * (cells.width - 1)
    assert cells.width > 1 and slack < scale / 20
    assert law[k > t].sum() <= 0.05 + 1e-10 and law[k > t - slack - 1].sum() > 0.05 - 1e-10


@pytest.mark.parametrize("noise", [Gaussian(1e9), DiscreteLaplace(1e9)], ids=repr)
def test_the_error_of_the_tree_scales(noise):
    small = TreeCounter(31, type(noise)(100.0)).error(0.95)
    assert TreeCounter(31, noise).error(0.95) == pytest.approx(1e7 * small, rel=0.01)
    assert TreeCounter(31, noise).error(1 - 1e-12) > TreeCounter(31, noise).error(1 - 1e-6)
    assert TreeCounter(10**15, type(noise)(0.01)).error(1 - 1e-16) == 0


def test_counts_miss_their_error_as_often_as_said():
    """2,000 recorded runs of seven steps; 5 standard deviations above the promise: by chance below 1e-6."""
    counter = TreeCounter(7, DiscreteLaplace(2.0, source=Recorded("tree")))
    t, runs = counter.error(0.9), 2000
    wrong = sum(abs(int(counter.release([1] * 7)[-1]) - 7) > t for _ in range(runs))
    assert wrong <= runs * 0.1 + 5 * math.sqrt(runs * 0.09)


# ---- once only -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [AboveThreshold(1.0, 0).begin, TreeCounter(8, Gaussian(1.0)).begin])
@pytest.mark.parametrize("double", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_state_cannot_be_copied(begin, double):
    with pytest.raises(OneOfAKind, match="cannot be copied"):
        double(begin())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the test process has threads; the child does nothing much
def test_a_forked_child_does_not_answer():
    watch, counter = AboveThreshold(1.0, 0).begin(), TreeCounter(8, Gaussian(1.0)).begin()
    if (child := os.fork()) == 0:
        refused = 0
        for ask in (lambda: watch.above(10**9), lambda: counter.add(1)):
            try:
                ask()
            except OneOfAKind:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert watch.above(10**9) and counter.add(1) > -100


def test_nothing_secret_is_printed():
    watch = AboveThreshold(1.0, 1000).begin()
    assert repr(watch) == "Watch(AboveThreshold(eps=1.0, threshold=1000, count=1, sensitivity=1, moves=2), left=1)"
    counter = TreeCounter(8, Gaussian(1.0)).begin()
    counter.add(77)
    assert repr(counter) == "Counter(TreeCounter(horizon=8, noise=Gaussian(sigma=1.0, step=1)), steps=1)"


@pytest.mark.parametrize("wrong", [[[1, 2], [3, 4]], [[1], [2]], 5])
def test_a_counter_takes_one_row_of_numbers(wrong):
    with pytest.raises(InvalidParameter, match=r"a row of at most 8(.|\n)*an array of shape"):
        TreeCounter(8, DiscreteLaplace(1)).release(wrong)
