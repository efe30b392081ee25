"""The exponential mechanism: its law, its price by enumeration, its error, and input that is no number."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Exponential
from tests.mechanisms.oracle import assert_within, e, exact, normalised
from tests.noise.sources import RanOut, Recorded, Scripted

NEIGHBOURS = [np.array(change) for change in product([-1, 0, 1], repeat=3)]
UPWARDS = [np.array(change) for change in product([0, 1], repeat=3)]


@exact
def law(rate, scores):
    return normalised({i: e(Fraction(rate) * Fraction(float(u))) for i, u in enumerate(scores)})


def pairs(rate, changes, starts):
    return [(law(rate, start), law(rate, np.array(start) + change)) for start in starts for change in changes]


STARTS = [(0, 0, 0), (0, -3, -3), (2, 0, -2), (0, 0, -9)]


@pytest.mark.parametrize("eps", [0.3, 1.0, 3.0])
def test_the_loss_covers_every_neighbour_and_no_more(eps):
    mechanism = Exponential(eps, 1)
    assert mechanism.rate == Fraction(eps) / 2
    assert_within(mechanism.loss(), pairs(mechanism.rate, NEIGHBOURS, STARTS), tight=0.9)


@pytest.mark.parametrize("eps", [0.3, 1.0, 3.0])
def test_monotone_scores_get_twice_the_rate_at_the_same_price(eps):
    mechanism = Exponential.monotone(eps, 1)
    assert mechanism.rate == Fraction(eps)
    assert_within(mechanism.loss(), pairs(mechanism.rate, UPWARDS, STARTS), tight=0.9)
    with pytest.raises(AssertionError):  # and scores that are not monotone do cost more: the oracle can fail
        assert_within(mechanism.loss(), pairs(mechanism.rate, NEIGHBOURS, STARTS))


def test_monotone_scores_are_not_about_replacing_people():
    with pytest.raises(InvalidParameter, match="not monotone"):
        Exponential.monotone(1.0, sf.Sensitivity(linf=1, relation=sf.ReplaceOne))


def test_the_relation_is_that_of_the_scores():
    about = sf.Sensitivity(linf=2, relation=sf.ReplaceOne)
    assert Exponential(1.0, about).loss() == sf.loss.BoundedRangeLoss(1.0, relation=sf.ReplaceOne)
    assert Exponential(1.0, 2).loss() == sf.loss.BoundedRangeLoss(1.0)


def test_releases_follow_the_law():
    """Chi-square by hand: 4,000 recorded releases; a true law fails with probability below 1e-4."""
    mechanism = Exponential(2.0, 1, source=Recorded("exponential"))
    scores = [0.0, -1.0, -2.0, -4.0]
    counts = np.bincount([mechanism.release(scores) for _ in range(4000)], minlength=4)
    meant = 4000 * np.array([float(p) for p in law(1, scores).values()])
    assert ((counts - meant) ** 2 / meant).sum() < 21.1  # 3 degrees of freedom


def test_candidates_are_chosen_by_name():
    mechanism = Exponential(1.0, 1)
    assert mechanism.choose(["no", "yes", "no"], [0, 10**6, 5]) == "yes"
    with pytest.raises(InvalidParameter, match="must be a list"):
        Exponential(1.0, 1, source=Scripted()).choose({"a", "b"}, [0, 1])
    with pytest.raises(InvalidParameter, match="2 candidates and 3 scores"):
        mechanism.choose(["a", "b"], [0, 1, 2])


# ---- error -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "confidence"), list(product([2, 3, 100], [0.5, 0.9, 0.999])))
def test_the_error_is_the_worst_case_and_attained(k, confidence):
    mechanism = Exponential(0.7, 1.5)
    t = mechanism.error(confidence, candidates=k)
    rate = float(mechanism.rate)
    missed = (k - 1) * math.exp(-rate * t) / (1 + (k - 1) * math.exp(-rate * t))
    if t:
        assert missed == pytest.approx(1 - confidence, rel=1e-9)
        assert missed <= 1 - confidence
    else:
        assert (k - 1) / k <= 1 - confidence + 1e-15


@pytest.mark.parametrize("others", list(product([0.0, 0.5, 1.99, 2.01, 3.0], repeat=3)))
def test_no_other_scores_do_worse(others):
    mechanism = Exponential(2.0, 1)
    t, bound = 2.0, 3 * math.exp(-2.0) / (1 + 3 * math.exp(-2.0))
    weights = [math.exp(-float(mechanism.rate) * gap) for gap in (0.0, *others)]
    assert sum(w for w, gap in zip(weights, (0.0, *others), strict=True) if gap > t) / sum(weights) <= bound


def test_without_privacy_loss_nothing_is_sure():
    assert Exponential(0.0, 1).error(0.9, candidates=100) == math.inf
    assert Exponential(0.0, 1).error(0.9, candidates=1) == 0
    assert Exponential(1.0, 1).error(0.2, candidates=2) == 0


# ---- input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ([math.nan, 0.0, math.nan], 1),
        ([-math.inf, -1e300, math.nan], 1),
        ([math.inf, 1e300, 0.0], 0),
        ([2**63 - 1, -(2**63), 0], 0),
        ([10**400, 0, 0], 0),
        (np.array([0, 2**64 - 1], np.uint64), 1),
        ([-0.0, -1e9], 0),
        ([5e-324, -1e9], 0),
        ([7], 0),
        ([math.nan], 0),
    ],
)
def test_private_scores_are_never_refused(scores, chosen):
    assert Exponential(1.0, 1e-3).release(scores) == chosen


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]], 3.0, ["a"], [[1], [2, 3]], None, np.array([1j])])
def test_what_is_no_row_of_numbers_is_refused_before_a_bit_is_drawn(scores):
    with pytest.raises(InvalidParameter, match="found:"):
        Exponential(1.0, 1, source=Scripted()).release(scores)
    with pytest.raises(RanOut):
        Exponential(1.0, 1, source=Scripted()).release([1.0, 2.0])


@pytest.mark.parametrize(
    "arguments", [(-1, 1), (math.nan, 1), (1, 0), (1, -1), (1, math.inf), ("1", 1), (1e90, 1e-90), (1e-90, 1e90)]
)
def test_wrong_parameters_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        Exponential(*arguments)


def test_many_candidates_are_no_trouble():
    scores = np.zeros(10**5)
    scores[77_777] = 50.0
    assert Exponential(1.0, 1).release(scores * 4) == 77_777
