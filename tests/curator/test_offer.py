"""Noise on all parts of a plan at once, under pure ε: how much it is, what is said about it, and what keys cost."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.aggregates import joint_law as boxes
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import Offer, offer_for_epsilon
from sfumato.curator.release import add_noise
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.joint_laplace import OneOf
from sfumato.mechanisms.keys.threshold_selection import StabilityHistogram, ThresholdSelection, threshold
from sfumato.noise import Margin
from sfumato.sql.policy import Policy

F = Fraction
RULES = """
version = 1
[budget]
epsilon = 9
delta = 0.05
question_delta = 1e-6
kind = "pure"
[tables.t]
unit = "u"
groups = 5
rows = 2
[tables.t.columns]
x = {{low = 0, high = 50}}
k = {{type = "number"{keys}}}
"""


def asked(aggregates, price=None, public=True):
    rules = Policy.read(RULES.format(keys=f", keys = {list(range(1000))}" if public else ""))
    question = parse_question(f"SELECT k, {aggregates} FROM t GROUP BY k", rules)
    return Offer(question, price) if price else offer_for_epsilon(question, 1.0, 1e-6, Pure)


# ---- how much noise --------------------------------------------------------------------------------------------------


def mean_size(offer, aggregate):
    """E|noise| of a count or a sum, from the law: over boxes, over the count, over the sum's part in closed form."""
    (joint,) = {noise.joint.law for noise in offer.noise if noise is not None}
    made = offer.joint.coefficients
    indexes = offer.question.sum_indexes[aggregate]
    measure = offer.plan.measures[indexes[0]]
    first, *more = (made[j] for j in indexes)
    scale = F(2) ** measure.exponent if aggregate.name == "sum" else F(1)
    factors = [c * scale for c in first]
    if more:
        factors = [a + F(measure.centre) * b for a, b in zip(factors, more[0], strict=True)]
    count = [part.parent is None for part in offer.joint.parts].index(True)
    (own,) = [j for j in range(len(factors)) if j != count]
    a, b = float(factors[count]), float(factors[own])
    levels = np.arange(600)
    chances, total = boxes.level_probabilities(joint, levels), 0.0
    for chance, level in zip(chances, levels.tolist(), strict=True):
        side, n = joint.side(count, level), joint.side(own, level)
        k = np.arange(-side, side + 1)
        weights = np.exp(-float(joint.slopes[count]) * np.abs(k))
        total += chance * float(weights @ distance(a * k, b, n)) / weights.sum()
    return total


def distance(x, b, n):
    """The mean of |x + b·d| over whole d from −n to n."""
    if not b:
        return np.abs(x)
    t = np.clip(-x / b, -n - 1, n)
    k = np.floor(t)
    sums = (k + n + 1) * t - (k - n) * (k + n + 1) / 2 + (n - k) * (n + k + 1) / 2 - (n - k) * t
    return np.where(np.abs(x / b) >= n, np.abs(x), b * sums / (2 * n + 1))


@pytest.mark.parametrize("aggregates", ["COUNT(*), SUM(x)", "COUNT(x), SUM(x), AVG(x)"])
def test_counts_and_sums_have_less_noise_than_with_a_divided_epsilon(aggregates):
    """5 groups of 2 rows, values from 0 to 50, ε = 1: a divided ε gives 20 and 1,000. A bar of 1.4 times less."""
    offer = asked(aggregates)
    count, total = [mean_size(offer, a) for a in offer.question.aggregates if a.name in ("count", "sum")]
    assert 13.5 < count < 14.0 < 20 / 1.4
    assert 580 < total < 600 < 1000 / 1.4


def test_the_mean_size_is_the_one_that_tails_have():
    """The sums above against others: of tails, which need no boxes."""
    offer = asked("COUNT(*), SUM(x)")
    law = offer.noise[0].joint.law
    tails = [float(Margin(law, 0).beyond(m, 64)) for m in range(600)]
    assert mean_size(offer, offer.question.aggregates[0]) == pytest.approx(math.fsum(tails), rel=1e-9)


MANY = ["COUNT(*), SUM(x)", "COUNT(x), AVG(x)", "COUNT(DISTINCT u), COUNT(*), SUM(x)", "COUNT(*), VARIANCE(x)",
        "SUM(x), SUM(x * x), COUNT(x)", "COUNT(x), SUM(x), COUNT(x + 1), SUM(x + 1)",
        "COUNT(DISTINCT x), COUNT(DISTINCT k)"]  # fmt: skip


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("aggregates", MANY)
def test_no_part_has_more_noise_than_a_share_of_its_own_would_give(aggregates, public):
    offer = asked(aggregates, public=public)
    noisy = [(noise, j) for j, noise in enumerate(offer.noise) if noise is not None]
    assert len(noisy) > 1
    for noise, j in noisy:
        apart = offer.price.part(offer.shares[j]).noise(offer.joint.parts[j].size)
        assert noise.error(0.95) < apart.error(0.95)


def test_one_part_has_the_noise_that_it_always_had():
    offer = asked("COUNT(*)")
    assert offer.noise == (DiscreteLaplace.of(Pure(1.0).part(1 / 5).eps, 2),)
    assert offer.canonical.endswith("| in parts")
    assert asked("COUNT(*), SUM(x)").canonical.endswith("| together")


def test_a_gaussian_budget_has_the_noise_that_it_always_had():
    offer = asked("COUNT(*), SUM(x)", Mu(1.0))
    shares = Mu.shares(offer.joint.importances)
    assert [n.sigma for n in offer.noise] == [
        Mu(1.0).part(w / 5).noise(p.size).sigma for w, p in zip(shares, offer.joint.parts, strict=True)
    ]
    assert offer.canonical.endswith("| in parts")


def test_a_count_that_others_are_seen_from_is_favoured():
    assert asked("COUNT(*), SUM(x)").joint.favours == (F(3, 8), 0)
    chain = asked("COUNT(DISTINCT u), COUNT(*), SUM(x)").joint
    assert [w for w, part in zip(chain.favours, chain.parts, strict=True) if part.parent is None] == [F(3, 8)]
    assert not any(asked("COUNT(x), SUM(x), COUNT(x + 1), SUM(x + 1)").joint.favours)  # two such counts
    assert not any(asked("COUNT(DISTINCT x), COUNT(DISTINCT k)").joint.favours)


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def test_all_parts_are_drawn_in_one_box():
    """Sizes go together, signs do not; no part is without noise. 5.5 σ on recorded bits."""
    offer = asked("COUNT(*), SUM(x)")
    exact = [[1000 * i, 7 * i] for i in range(20_000)]
    noise = np.array(add_noise(offer, exact), float) - np.array([offer.joint.parts_of(row) for row in exact], float)
    assert (noise != 0).mean() > 0.9
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.045
    assert 0.2 < np.corrcoef(np.abs(noise.T))[0, 1] < 0.4
    assert np.abs(noise[:, 0]).mean() == pytest.approx(mean_size(offer, offer.question.aggregates[0]), rel=0.05)


def test_empty_tables_and_numbers_of_any_size_are_answered():
    offer = asked("COUNT(*), SUM(x)")
    assert add_noise(offer, []) == []
    ((count, total),) = add_noise(offer, [[10**30, -(10**30)]])
    assert 2**62 < count < 2**63
    assert -(2**63) < total < -(2**62)


# ---- private keys ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregates", ["COUNT(*)", "COUNT(*), SUM(x)", "COUNT(DISTINCT u)"])
def test_the_threshold_is_the_least_that_leaks_no_more_than_delta(aggregates):
    offer = asked(aggregates, public=False)
    law, keys = offer.noise[offer.unit_count_index].law(), offer.plan.groups

    def leak(reached):
        """Somebody's five own keys, of which one comes out: 1 + N ≥ threshold."""
        return -math.expm1(keys * math.log1p(-float(law.beyond(reached - 2, 128)) / 2))

    assert leak(offer.threshold) <= offer.key_delta < leak(offer.threshold - 1)


def test_thresholds_of_noise_alone_are_those_of_its_own_mechanisms():
    for noise, mechanism in product((Pure(0.3).noise(1), Mu(0.2).noise(1)), (StabilityHistogram, ThresholdSelection)):
        named = "scale" if mechanism is StabilityHistogram else "sigma"
        if hasattr(noise, named):
            for delta, groups in ((1e-6, 1), (1e-9, 5), (0.4, 2), (0.9, 1)):
                assert (
                    threshold(noise.law(), delta, groups) == mechanism(getattr(noise, named), delta, groups).threshold
                )


def test_private_keys_have_joint_noise_and_a_lower_threshold():
    offer = asked("COUNT(*), SUM(x)", public=False)
    assert all(isinstance(noise, OneOf) for noise in offer.noise)
    apart = offer.price.part(offer.shares[offer.unit_count_index]).noise(1)
    assert 1.3 * offer.threshold < threshold(apart.law(), offer.key_delta, offer.plan.groups)
