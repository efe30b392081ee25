"""Noise on all parts of a plan at once, under pure ε: how much it is, what is said about it, and what keys cost."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.aggregates import joint_law as boxes
from sfumato.aggregates.intervals import spread
from sfumato.aggregates.joint_law import Boxes
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import Offer, offer_for_epsilon
from sfumato.curator.release import add_noise
from sfumato.mechanisms.additive.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.additive.joint_laplace import JointLaplace, OneOf
from sfumato.mechanisms.keys.threshold_selection import StabilityHistogram, ThresholdSelection, threshold
from sfumato.noise import Margin
from sfumato.sql.policy import Policy
from tests.noise.sources import Recorded
from tests.noise.test_joint_laplace import points

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


# ---- intervals -------------------------------------------------------------------------------------------------------

SMALL = [
    (JointLaplace(1.0, (2, 5), (F(3, 8), 0)), (F(5, 2), F(1))),
    (JointLaplace(3.0, (2, 5), (F(3, 8), 0)), (F(1), F(-1, 2))),
    (JointLaplace(2.0, (3, 2)), (F(1, 3), F(7, 2))),
    (JointLaplace(2.0, (1, 3, 2), (F(1, 4), 0, 0)), (F(3), F(1), F(0))),
    (JointLaplace(3.0, (1, 3, 2), (F(1, 4), 0, 0)), (F(3), F(1), F(-2))),
]


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("joint", "factors"), SMALL, ids=repr)
def test_the_coverage_of_a_sum_is_that_of_the_law(joint, factors, confidence):
    """Up to the boxes that are left out; and the radius is the least but for these."""
    found = spread(tuple(zip(factors, joint.each, strict=True)), confidence)
    every, p = points(joint.law, 25.0)
    sums = np.abs(every @ np.array([float(c) for c in factors]))
    held = p[sums <= found.radius * (1 + 1e-12)].sum()
    assert held - 3 * boxes.MISSED <= found.coverage <= held + 1e-6
    assert p[sums < found.radius * (1 - 1e-12)].sum() < confidence + 3 * boxes.MISSED


@pytest.mark.parametrize("eps", [0.01, 0.0004])
def test_where_levels_are_taken_together_radii_are_a_little_larger_and_never_too_small(eps):
    """Scaled, they are those of a larger ε; recorded bits, 5 σ."""
    joint = JointLaplace(eps, (2, 50), (F(3, 8), 0), source=Recorded(f"together {eps}"))
    assert Boxes.of(joint.law).spare
    found = spread(((F(25), joint.each[0]), (F(1), joint.each[1])), 0.95)
    finer = JointLaplace(0.2, (200, 5000), (F(3, 8), 0))
    near = spread(((F(25), finer.each[0]), (F(1), finer.each[1])), 0.95)
    assert near.radius / 100 * 0.2 / eps < found.radius < 1.02 * near.radius / 100 * 0.2 / eps
    n = 40_000
    noise = joint.release(np.zeros((n, 2), np.int64))
    held = (np.abs(25 * noise[:, 0] + noise[:, 1]) <= found.radius).mean()
    assert found.coverage - 5 * math.sqrt(0.0475 / n) < held < found.coverage + 0.003 + 5 * math.sqrt(0.0475 / n)


def test_boxes_have_the_chances_that_balls_know():
    for joint, _ in SMALL:
        law, found = joint.law, Boxes.of(joint.law)
        above = [float(boxes.level_tail(law, r, 64)) for r in range(len(found.chances))]
        chances = -np.diff([1.0, *above])
        assert found.chances == pytest.approx(chances, rel=2 * boxes.MISSED, abs=1e-12)
        assert (found.chances <= chances + 1e-15).all()
        assert not found.spare


def test_levels_that_are_taken_together_are_taken_as_the_highest():
    """No box may stand for levels above its own: Theorem 5 goes one way only."""
    law = JointLaplace(0.001, (2, 50), (F(3, 8), 0)).law
    found = Boxes.of(law)
    assert law.levels == 1
    sums = np.cumsum(found.chances)
    for level, chance in list(zip((found.sides[:, 0] / 2).tolist(), sums.tolist(), strict=True))[::16]:
        assert chance == pytest.approx(1 - float(boxes.level_tail(law, int(level), 64)), abs=1e-12)
    assert 1 - 2 * boxes.MISSED < sums[-1] < 1


def test_an_absolute_error_can_be_bought():
    from sfumato.curator.price_for_error import offer_for_error

    question = asked("COUNT(*), SUM(x)").question
    offer = offer_for_error(question, 2000.0, 1e-6, 2.0, Pure)
    errors = [offer.error(a) for a in question.aggregates]
    assert 1990 < max(errors) <= 2000
    assert offer.price.eps < 0.9  # with a divided ε it would cost 1.15


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
