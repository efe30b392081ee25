"""Propose-test-release and its variants: independently computed numbers, and laws by enumeration."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms.dependent import (
    ProposeTestRelease,
    Quantile,
    SearchTestRelease,
    TestedRelease,
    TrimmedMean,
)
from sfumato.mechanisms.dependent.propose_test_release import difference
from tests.mechanisms.dependent import brute
from tests.noise.sources import Recorded

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "dependent.json").read_text())


L = sf.loss


@pytest.mark.parametrize("row", GOLDEN["ptr_integers"]["profile"], ids=lambda row: f"{row['e1']}")
def test_the_profile_on_whole_numbers(row):
    made = ProposeTestRelease(
        Quantile(0, 100), 1, sf.DiscreteLaplace(1 / row["e1"]), sf.DiscreteLaplace(1 / row["e2"]), row["delta"]
    )
    loss = made.loss()
    assert made.gate.threshold == row["tau"]
    for eps, delta, _ in row["values"]:
        assert loss.delta(eps).upper == pytest.approx(delta, rel=1e-9)
        assert loss.delta(eps).upper >= delta * (1 - 1e-12)


@pytest.mark.parametrize("row", GOLDEN["ptr_continuous"]["values"], ids=lambda row: f"{row['e1']}, {row['e2']}")
def test_the_profile_of_the_continuous_mechanism(row):
    """The same loss with the chances of continuous Laplace noise and the threshold ln(1/2δ)/ε."""
    reach = int(3 * row["T"]) + 5
    gaps = [row["e1"] * (row["T"] - d) for d in range(reach + 1)]
    small = [math.exp(-abs(gap)) / 2 for gap in gaps]
    passes = tuple(s if gap >= 0 else 1 - s for s, gap in zip(small, gaps, strict=True))
    fails = tuple(1 - s if gap >= 0 else s for s, gap in zip(small, gaps, strict=True))
    loss = L.GatedLoss(L.LaplaceLoss(row["e2"]), passes, fails, passes[0])
    both = L.LaplaceLoss(row["e1"]) + L.LaplaceLoss(row["e2"])
    for point in row["prof"]:
        assert loss.delta(point["eps"]).upper == pytest.approx(point["ptr"], rel=1e-6)
        found = both.delta(point["eps"])
        assert found.lower - 1e-9 <= point["two_laplace"] <= found.upper + 1e-9
        assert loss.delta(point["eps"]).upper <= max(point["two_laplace"], row["delta"]) * (1 + 1e-6)


def hockey_stick(p, q, eps):
    return sum(max(a - math.exp(eps) * b, 0.0) for a, b in zip(p, q, strict=True))


def test_no_pair_of_small_data_sets_exceeds_the_loss():
    """Outputs listed: None and the answers from −30 to 60, all pairs of neighbours among multisets of {0, 2, 30}."""
    median, scale = Quantile(0, 30), 1.5
    made = ProposeTestRelease(median, 2, sf.DiscreteLaplace(1.0), sf.DiscreteLaplace(scale), 0.05)
    loss, gate = made.loss(), made.gate
    chance = [float(gate.tail(gate.threshold - d)) for d in range(gate.cap + 1)]
    r = math.exp(-1 / scale)

    def law(x):
        p = chance[median.distance(x, 2, gate.cap)]
        return [1 - p] + [p * (1 - r) / (1 + r) * r ** abs(y - median.value(x)) for y in range(-30, 61)]

    worlds = brute.multisets((0, 2, 30), 8)
    near = brute.one_more_or_less((0, 2, 30), 8)
    laws = {x: law(x) for x in worlds}
    for eps in (0.0, 0.3, 1.0, 1.6, 3.0):
        worst = max(hockey_stick(laws[x], laws[y], eps) for x in worlds for y in near(x))
        assert worst <= loss.delta(eps).upper * (1 + 1e-9)
        if eps in (0.0, 3.0):
            assert worst >= 0.9 * loss.delta(eps).lower, "the loss is nearly attained"


def test_a_gaussian_ledger_is_charged_no_more_than_both_parts():
    made = ProposeTestRelease(TrimmedMean(0, 1000, trim=20), 2, sf.Gaussian(4.0), sf.Gaussian(8.0), 1e-6)
    price = made.loss().gdp(slack=made.gate.failure * (1 + 1e-9)).upper
    assert 0.25 < price <= math.hypot(0.25, (2 + 2**-20) / 8) * (1 + 1e-6)


def test_answers_come_where_data_are_far_from_breaking_the_bound():
    made = ProposeTestRelease(
        Quantile(0, 1000),
        4,
        sf.Gaussian(4.0, source=Recorded("test")),
        sf.Gaussian(8.0, source=Recorded("noise")),
        1e-6,
    )
    steady, loose = [400 + i // 20 for i in range(4000)], [0, 1000]
    answers = [made.release(steady) for _ in range(300)]
    assert made.sure(0.999) <= Quantile(0, 1000).distance(steady, 4, made.gate.cap)
    off = [abs(answer - 499) for answer in answers if answer is not None]
    assert len(off) >= 290 and np.mean(np.array(off) <= made.error(0.5)) > 0.4  # below 1e-6 each with other bits
    assert all(made.release(loose) is None for _ in range(300))  # 300·δ


def test_reals_are_answered_on_the_noises_lattice():
    made = ProposeTestRelease(
        TrimmedMean(0, 100, trim=3), 5, sf.DiscreteLaplace(1.0), sf.Laplace(0.5, 0.25, source=Recorded("reals")), 1e-3
    )
    answers = [made.release([50, 50, 51] * 300) for _ in range(50)]
    given = [a for a in answers if a is not None]
    assert given and all((Fraction(a) * 4).denominator == 1 for a in given)
    assert abs(np.mean(given) - 50.33) < 1


def test_the_chance_that_one_noise_beats_another_is_that_of_the_sum():
    a, b, reach = 0.6, 0.75, 300
    k = np.arange(-reach, reach + 1)
    both = np.convolve((1 - a) / (1 + a) * a ** abs(k), (1 - b) / (1 + b) * b ** abs(k))
    for t in (1, 2, 7, 40):
        assert float(difference(arb(a), arb(b), t)) == pytest.approx(both[2 * reach + t :].sum(), rel=1e-9)


def test_a_search_finds_the_least_bound_that_holds_with_room_to_spare():
    median = Quantile(0, 1000)
    made = SearchTestRelease(median, (1, 2, 4, 8, 16), 1.0, sf.Laplace(2.0, source=Recorded("s")), 1e-6)
    made = replace(made, source=Recorded("search"))
    steady = [400 + i // 6 for i in range(1200)]
    assert [median.distance(steady, b, made.cap) for b in made.bounds] == [11, 12, 24, 48, 96]
    found = [made.release(steady) for _ in range(60)]
    assert {passed.bound for passed in found} <= {4.0, 8.0, 16.0}
    off = [abs(passed.answer - 499) <= made.error(0.5, bound=passed.bound) for passed in found]
    assert np.mean(off) > 0.2  # below 1e-6 with other bits
    assert all(made.release([0, 1000]) is None for _ in range(60))  # 60·δ
    one = SearchTestRelease(median, (4,), 1.0, sf.Laplace(2.0), 1e-6)
    assert made.search.threshold - one.search.threshold <= 7  # ln 5, in units of the queries' noise
    assert made.loss() == one.loss()


def test_unsafe_pairs_cost_what_passes_and_no_more():
    """Two coins of chances up to q and then disjoint answers: the proof's identity, over a grid."""
    for p, p2, eps in itertools.product((0.0, 0.01, 0.2), (0.0, 0.01, 0.2), (0.0, 0.1, 1.0)):
        direct = hockey_stick([1 - p, p, 0.0], [1 - p2, 0.0, p2], eps)
        assert direct <= max(p, p2) + 1e-15
        assert direct == pytest.approx(max(p, 1 - math.exp(eps) * (1 - p2)), abs=1e-15)


def test_a_tested_mechanism_costs_the_larger_of_both():
    made = TestedRelease(
        sf.Laplace(1.0).on(len, 1), L.LaplaceLoss(0.5), lambda data: len(data) - 10, sf.DiscreteLaplace(2.0), 1e-6
    )
    assert made.loss().delta(1.0).upper == pytest.approx(made.gate.failure, rel=1e-9)
    assert made.loss().delta(0.0).upper < (L.LaplaceLoss(0.5) + L.DiscreteLaplaceLoss(2.0)).delta(0.0).upper
    assert made.release([0] * 5) is None and made.release([0] * 100_000) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ProposeTestRelease(len, 1, sf.Gaussian(1.0), sf.Gaussian(1.0), 1e-6),
        lambda: ProposeTestRelease(TrimmedMean(0, 9), 1, sf.Gaussian(1.0), sf.DiscreteLaplace(1.0), 1e-6),
        lambda: ProposeTestRelease(Quantile(0, 9), 1, sf.Gaussian(1.0), "noise", 1e-6),
        lambda: TestedRelease(sf.Gaussian(1.0), 0.5, len, sf.Gaussian(1.0), 1e-6),
        lambda: TestedRelease(sf.Gaussian(1.0), L.GaussianLoss(1.0), 3, sf.Gaussian(1.0), 1e-6),
        lambda: SearchTestRelease(Quantile(0, 9), (2, 1), 1.0, sf.Laplace(1.0), 1e-6),
        lambda: SearchTestRelease(Quantile(0, 9), [1, 2], 1.0, sf.Laplace(1.0), 1e-6),
        lambda: SearchTestRelease(Quantile(0, 9), (1, 2), 1.0, sf.DiscreteLaplace(1.0), 1e-6),
        lambda: SearchTestRelease(len, (1, 2), 1.0, sf.Laplace(1.0), 1e-6),
    ],
)
def test_nonsense_is_refused_in_words(wrong):
    with pytest.raises(SfumatoError, match="do:"):
        wrong()
