"""The laws that every loss obeys, run over every class."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest

import sfumato as sf
from sfumato.loss.kinds.gaussian import gaussian_profile
from sfumato.sensitivity import Relation
from tests.checks.examples import EXAMPLES, classes_with_examples, concrete_classes

L = sf.loss
EPS = np.concatenate([[0.0], np.geomspace(1e-3, 12, 60)])
every = pytest.mark.parametrize("loss", EXAMPLES, ids=str)


def test_every_class_has_an_example():
    missing = concrete_classes() - classes_with_examples()
    assert not missing, f"add examples of {missing} to tests/checks/examples.py"


@every
def test_bounds_do_not_cross_and_the_profile_falls(loss):
    found = loss.delta(EPS)
    assert np.all((found.lower >= 0) & (found.lower <= found.upper) & (found.upper <= 1))
    assert np.all(found.lower[1:] <= found.upper[:-1])


@every
def test_the_profile_is_convex_in_the_exponential(loss):
    for curve in (loss.forward, loss.backward):
        found = curve(EPS)
        x = np.exp(EPS)
        share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
        chord = found.upper[:-2] * (1 - share) + found.upper[2:] * share
        assert np.all(found.lower[1:-1] <= chord * (1 + 1e-12) + 1e-300)


@every
def test_both_directions_agree_at_zero_and_reversal_twice_is_nothing(loss):
    ahead, back = loss.forward(EPS), loss.backward(EPS)
    assert ahead.lower[0] <= back.upper[0] and back.lower[0] <= ahead.upper[0]
    turned = loss.reverse
    assert np.all(turned.forward(EPS).lower <= back.upper) and np.all(back.lower <= turned.forward(EPS).upper)
    again = turned.reverse.forward(EPS)
    assert np.all(again.lower <= ahead.upper) and np.all(ahead.lower <= again.upper)
    assert turned.reverse.relation is loss.relation


@every
def test_hockey_sticks_below_one_follow_by_reversal(loss):
    for alpha in (0.0, 0.2, 0.9):
        found = loss.hockey_stick(alpha)
        assert found.upper >= 1 - alpha - 1e-15
        assert found.upper <= 1 - alpha + alpha * max(loss.forward(EPS).upper[0], loss.backward(EPS).upper[0]) + 1e-12


@pytest.mark.slow
@every
def test_trade_off_and_profile_are_conjugate(loss):
    found = loss.delta(EPS)
    levels = (0.0, 1e-3, 0.05, 0.3, 0.7, 1.0)
    curve = [loss.trade_off(a) for a in levels]
    for a, f in zip(levels, curve, strict=True):
        assert 0 <= f.lower <= f.upper <= 1 - a + 1e-12
        assert f.upper >= np.max(1 - found.upper - np.exp(EPS) * a) - 1e-12
        if not loss.relation.one_way:
            assert f.upper >= np.max(np.exp(-EPS) * (1 - found.upper - a)) - 1e-12
    assert all(g.lower <= f.upper for f, g in pairwise(curve))
    slack = 1e-9
    for eps, lower in zip(EPS[::10], found.lower[::10], strict=True):  # δ(ε) ≥ 1 − f(a) − e^ε a at every a
        best = max(1 - f.upper - math.exp(eps) * a for a, f in zip(levels, curve, strict=True))
        assert found.upper[list(EPS).index(eps)] >= best - slack
        assert lower <= 1


@every
def test_divergences_grow_with_the_order_and_meet_at_one(loss):
    orders = (0.3, 0.9, 0.999, 1.0, 1.001, 1.7, 2.0, 6.0, math.inf)
    found = [loss.renyi(a) for a in orders]
    assert all(one.lower <= two.upper * (1 + 1e-12) + 1e-15 for one, two in pairwise(found))
    assert loss.kl() == loss.renyi(1)


@every
def test_divergences_obey_the_classical_inequalities(loss):
    tv, kl, hellinger, chi = loss.total_variation(), loss.kl(), loss.hellinger(), loss.chi_squared()
    assert 2 * tv.lower**2 <= kl.upper * (1 + 1e-9) + 1e-15  # Pinsker
    assert hellinger.lower <= tv.upper + 1e-12
    h = math.sqrt(hellinger.upper)
    assert tv.lower <= h * math.sqrt(max(2 - h * h, 0.0)) + 1e-9
    assert kl.lower <= (math.log1p(chi.upper) if chi.upper < math.inf else math.inf) * (1 + 1e-9) + 1e-15


@every
def test_rho_covers_the_renyi_curve(loss):
    rho = loss.zcdp()
    for order in (1.01, 1.5, 3.0, 20.0, 300.0):
        assert loss.renyi(order).lower <= rho.upper * order * (1 + 1e-9) + 1e-15


@every
@pytest.mark.parametrize("slack", [0.0, 1e-6, 1e-2])
def test_mu_covers_the_profile(loss, slack):
    mu = loss.gdp(slack)
    if not math.isfinite(mu.upper):
        return
    gaussian = gaussian_profile(max(mu.upper, 1e-200), EPS).upper if mu.upper > 0 else 0 * EPS
    assert np.all(loss.delta(EPS).lower <= (slack + (1 - slack) * gaussian) * (1 + 1e-12) + 1e-15)


@every
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-8])
def test_epsilon_inverts_delta(loss, delta):
    found = loss.epsilon(delta)
    if math.isfinite(found.upper):
        assert loss.delta(found.upper).lower <= delta
        if found.upper > 0:
            assert loss.delta(found.upper * (1 + 1e-3) + 1e-9).lower <= delta
    if 0 < found.lower < math.inf:
        assert loss.delta(found.lower * (1 - 1e-9)).upper >= delta * (1 - 1e-9)


@every
def test_repetition_is_repeated_addition(loss):
    assert 3 * loss == loss + loss + loss
    assert 1 * loss == loss and 0 * loss == L.nothing(loss.relation)
    assert (2 * loss).delta(0.5).upper >= loss.delta(0.5).lower
    assert loss.then("anything at all") == loss


@every
def test_descriptions_come_back(loss):
    text = loss.to_json()
    again = L.from_json(text)
    assert again == loss and again.to_json() == text and again.description == loss.description
    assert eval_free(repr(loss))


def eval_free(text):
    """A repr is a plain line of names and numbers."""
    return isinstance(text, str) and "\n" not in text


@every
def test_the_docstring_cites_a_theorem_and_a_year(loss):
    text = type(loss).__doc__ or ""
    assert "Theorem:" in text and re.search(r"(19|20)\d\d|docs/theorems", text)


@every
def test_groups_cost_more_than_one(loss):
    assert loss.group(1).delta(0.4).upper >= loss.delta(0.4).lower
    assert loss.group(2).delta(0.4).upper >= loss.delta(0.4).lower


@every
def test_sampling_never_costs_more_and_more_sampling_costs_more(loss):
    if loss.relation is not Relation.AddRemove:
        return
    rarely, often = sf.Poisson(0.05).amplify(loss).delta(EPS[::6]), sf.Poisson(0.5).amplify(loss).delta(EPS[::6])
    assert np.all(rarely.lower <= often.upper + 1e-15)
    assert np.all(often.lower <= loss.delta(EPS[::6]).upper + 1e-15)


@every
def test_either_covers_both(loss):
    other = L.PureLoss(0.3, relation=loss.relation)
    both = L.either(loss, other).delta(EPS)
    assert np.all(both.upper >= loss.delta(EPS).lower) and np.all(both.upper >= other.delta(EPS).lower)


@pytest.mark.parametrize(
    "loss", [100 * L.LaplaceLoss(0.1), 30 * L.PoissonSampledLoss(L.GaussianLoss(1.0), 0.1)], ids=str
)
def test_a_smaller_tolerance_gives_a_smaller_gap(loss):
    gaps = [loss.epsilon(1e-5, tolerance=t).relative_gap for t in (1e-2, 1e-4, 1e-6)]
    assert gaps[0] <= 1e-2 and gaps[1] <= 1e-4
    assert gaps[2] <= min(gaps[0], 1e-4)
    found = [loss.epsilon(1e-5, tolerance=t) for t in (1e-2, 1e-4, 1e-6)]
    assert all(a.lower <= b.upper and b.lower <= a.upper for a in found for b in found)
