"""Several people under Poisson sampling, against enumeration of who is in the batch and against 40 digits."""

import itertools
import math
import random

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.loss.compose.lattice import Lattice
from sfumato.loss.describe import from_json
from sfumato.loss.kinds.group import one_step
from sfumato.loss.kinds.polygons import mean_of_curves
from tests.configurations import Random, magnitude

L = sf.loss
rates = st.floats(1e-3, 0.999)
ROUNDING = 1e-13


def hockey_stick(p, q, eps):
    return sum(max(a - math.exp(eps) * b, 0.0) for a, b in zip(p, q, strict=True))


def subsets(people):
    return (set(some) for size in range(len(people) + 1) for some in itertools.combinations(people, size))


def sampled_output(mechanism, people, rate):
    """The law of the mechanism's output on a sampled batch, by enumeration of all batches."""
    total = 0
    for batch in subsets(sorted(people)):
        total = total + rate ** len(batch) * (1 - rate) ** (len(people) - len(batch)) * mechanism(batch)
    return total


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), rate=st.floats(0.01, 0.99), size=st.integers(2, 3))
def test_no_mechanism_loses_more_than_its_group_loss(seed, rate, size):
    """Random mechanisms on sets of people: what is known about one person bounds the group, in both directions."""
    r, everybody = random.Random(seed), range(size + 1)
    outputs = {frozenset(some): np.array([r.uniform(0.2, 1) for _ in range(4)]) for some in subsets(everybody)}
    outputs = {some: law / law.sum() for some, law in outputs.items()}
    pairs = [(outputs[a], outputs[a - {x}]) for a in outputs for x in a]
    eps = max(float(np.abs(np.log(p / q)).max()) for p, q in pairs)
    bound = sf.Poisson(rate).amplify(L.PureLoss(eps * (1 + 1e-12))).group(size)
    outside = set(everybody) - set(range(size))
    with_group = sampled_output(lambda batch: outputs[frozenset(batch)], set(everybody), rate)
    without = sampled_output(lambda batch: outputs[frozenset(batch)], outside, rate)
    for at in np.linspace(0, size * eps, 7):
        known = bound.forward(np.array([at])), bound.backward(np.array([at]))
        assert hockey_stick(with_group, without, at) <= known[0].upper[0] + ROUNDING
        assert hockey_stick(without, with_group, at) <= known[1].upper[0] + ROUNDING


@settings(max_examples=6)
@given(rate=rates, size=st.integers(2, 4), scale=st.floats(0.5, 4))
def test_a_noisy_count_attains_it(rate, size, scale):
    """Discrete Laplace noise on a count: all batches enumerated, both sides of the bound."""
    places = np.arange(-400, 401 + size)

    def noisy_count(batch):
        law = np.exp(-np.abs(places - len(batch)) / scale)
        return law / law.sum()

    p, q = sampled_output(noisy_count, range(size), rate), noisy_count(set())
    found = sf.Poisson(rate).amplify(L.DiscreteLaplaceLoss(scale)).group(size)
    for at in (0.0, 0.01, 0.3, 1.0):
        for bound, true in (
            (found.forward(np.array([at])), hockey_stick(p, q, at)),
            (found.backward(np.array([at])), hockey_stick(q, p, at)),
        ):
            assert bound.lower[0] - ROUNDING <= true <= bound.upper[0] + ROUNDING
            assert bound.upper[0] - bound.lower[0] <= 1e-4 * true + ROUNDING


def exact_profiles(mu, rate, size, eps):
    """(forward, backward) from the definition, by a root of G and normal tails in 40 digits."""
    q, m = mp.mpf(rate), mp.mpf(mu)
    w = [mp.binomial(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]

    def log_g(x):
        return mp.log(mp.fsum(c * mp.exp(j * m * (x - j * m / 2)) for j, c in enumerate(w)))

    def place(goal):
        low, high = mp.mpf(-1), mp.mpf(1)
        while log_g(low) > goal:
            low *= 2
        while log_g(high) < goal:
            high *= 2
        for _ in range(160):
            middle = (low + high) / 2
            low, high = (middle, high) if log_g(middle) < goal else (low, middle)
        return low

    def above(x, sign):
        return mp.fsum(c * mp.erfc(sign * (x - j * m) / mp.sqrt(2)) / 2 for j, c in enumerate(w))

    t, alpha = mp.mpf(eps), mp.exp(mp.mpf(eps))
    x = place(t)
    forward = above(x, 1) - alpha * mp.erfc(x / mp.sqrt(2)) / 2
    if alpha * w[0] >= 1:
        return forward, mp.mpf(0)
    x = place(-t)
    return forward, mp.erfc(-x / mp.sqrt(2)) / 2 - alpha * above(x, -1)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_the_profile_of_gaussian_noise_encloses_the_truth(seed):
    r = Random(f"sampled group {seed}")
    mu, rate, size = (
        magnitude(r, 1e-3, 8),
        r.choice([magnitude(r, 1e-8, 0.9), 1 - magnitude(r, 1e-8, 0.5)]),
        r.choice([2, 3, 7]),
    )
    loss = L.SampledGaussianGroupLoss(mu, rate, size)
    eps = np.array(
        [0.0, magnitude(r, 1e-9, 1), r.uniform(0, 3), r.uniform(0, 40), loss.supremum()[1] * r.uniform(0.5, 1)]
    )
    forward, backward = loss.forward(eps), loss.backward(eps)
    with mp.workdps(60):
        for i, at in enumerate(eps.tolist()):
            for found, true in zip((forward, backward), exact_profiles(mu, rate, size, at), strict=True):
                assert found.lower[i] <= true <= found.upper[i]
                assert found.upper[i] - found.lower[i] <= 1e-6 * true + 1e-13 * rate * size or true < 1e-280


@pytest.mark.parametrize(
    ("mu", "rate", "size"), [(1e-90, 0.1, 2), (1e4, 1e-200, 3), (1e90, 0.5, 3), (3.0, 1 - 2**-53, 100)]
)
def test_extreme_parameters_stay_honest(mu, rate, size):
    loss, eps = L.SampledGaussianGroupLoss(mu, rate, size), np.array([0.0, 1e-200, 1e-9, 0.5, 30.0, 100.0, 1e4, 1e200])
    for found in (loss.forward(eps), loss.backward(eps)):
        assert np.all((found.lower >= 0) & (found.lower <= found.upper) & (found.upper <= 1))
    assert loss.forward(eps).upper[0] >= loss.backward(eps).lower[0]
    assert loss.delta(0.0).lower <= -math.expm1(size * math.log1p(-rate)) * (1 + 1e-14)


@pytest.mark.parametrize("inner", [L.GaussianLoss(1.25), L.GaussianLoss(0.3)])
@pytest.mark.parametrize("rate", [0.01, 0.4])
def test_curves_and_the_closed_form_agree(inner, rate):
    """Averages of polygons know nothing of thresholds."""
    closed = sf.Poisson(rate).amplify(inner).group(3)
    curves = mean_of_curves(closed.weights.shares, [one_step(inner.group(j)) for j in (1, 2, 3)])
    eps = np.linspace(0, 6, 40)
    for one, other in ((closed.forward(eps), curves.forward(eps)), (closed.backward(eps), curves.backward(eps))):
        assert np.all(one.lower <= other.upper)
        assert np.all(other.lower <= one.upper)
        assert np.all(other.upper - other.lower <= 1e-4 * other.upper + 1e-15)


@pytest.mark.parametrize(("mu", "rate", "size", "count"), [(1.25, 0.01, 3, 300), (0.5, 0.2, 2, 50), (2.0, 0.05, 4, 10)])
def test_composed_groups_agree_with_a_lattice(mu, rate, size, count):
    """The contour against the lattice of the closed-form profile, which knows no transform."""
    loss = (count * sf.Poisson(rate).amplify(L.GaussianLoss(mu))).group(size)
    assert loss.method == "contour"
    for one in (loss, loss.reverse):
        lattice, eps = Lattice(one.terms), np.array([0.1, 1.0, 3.0])
        found, other = one.forward(eps), lattice.forward(eps, 1e-4)
        assert np.all(found.lower <= other.upper)
        assert np.all(other.lower <= found.upper)
        assert np.all(found.upper - found.lower <= 2e-5 * found.upper + 1e-15)


def test_shares_that_underflow_still_count():
    """At rate 1e-200 the chance of two people is no float; one alone has a loss above 2,500 half of the time."""
    found = sf.Poisson(1e-200).amplify(L.LaplaceLoss(3000.0)).group(2)
    assert np.all(found.forward(np.array([0.0, 1.0, 650.0])).upper >= 0.99e-200)


def test_a_group_in_dp_sgd_is_sharp_and_cheaper_than_a_chain_of_pairs():
    """A chain of sampled pairs says [13.02, 14.94]."""
    step = sf.Poisson(0.01).amplify(L.GaussianLoss(1.25))
    found = (1000 * step).group(3).epsilon(1e-6)
    assert found.relative_gap < 1e-5
    assert 12.158 < found.lower < found.upper < 12.159
    assert step.group(3).epsilon(1e-6).upper < 2.64


def test_groups_of_groups_and_reversed_groups():
    step = sf.Poisson(0.1).amplify(L.GaussianLoss(1.0))
    assert step.group(2).group(3) == step.group(6)
    assert step.reverse.group(3) == step.group(3).reverse
    assert from_json(step.group(3).to_json()) == step.group(3)
    assert sf.Poisson(1.0).amplify(L.GaussianLoss(1.0)).group(3) == L.GaussianLoss(3.0)
    assert step.group(200).delta(1.0).upper >= step.group(100).delta(1.0).lower


def test_a_group_under_sampling_needs_add_or_remove():
    with pytest.raises(sf.errors.MixedRelations, match="add/remove"):
        L.SampledGaussianGroupLoss(1.0, 0.1, 3, relation=sf.ReplaceOne)
