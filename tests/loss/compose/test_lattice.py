"""Laws on a lattice: their sums against plain ones, and laws of earlier questions that answer later ones."""

import math
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.loss.compose import lattice
from sfumato.loss.compose.discretise import discretise
from sfumato.loss.compose.lattice import Lattice, convolve, recent_laws, tilted_law
from sfumato.loss.compose.lattice_plan import rough

L = sf.loss
TERMS = ((7, L.LaplaceLoss(0.3)), (2, L.DiscreteGaussianLoss(2, 1)))


@pytest.fixture(scope="module")
def law():
    sketch = rough(TERMS)
    theta, eps = sketch.saddle(1e-4)
    return tilted_law(TERMS, sketch.plan(theta, eps, 1e-4, 1e-3))


def points(law):
    return law.origin + law.h * np.arange(len(law.masses))


def test_the_hockey_stick_of_a_law_is_its_plain_sum(law):
    eps = np.concatenate([[0.0], np.random.default_rng(5).uniform(0, 4, 300), [points(law)[-1] + 1.0]])
    found = law.hockey(eps)
    for t, value in zip(eps, found, strict=True):
        x = np.maximum(points(law) - t, 0.0)
        exact = math.fsum(law.masses * np.exp(-law.theta * x) * -np.expm1(-x))
        assert value == pytest.approx(exact, rel=1e-12, abs=1e-300)


def test_the_kernel_of_a_law_covers_its_plain_sum(law):
    scale, v = law.kernel_shape()
    eps = np.random.default_rng(6).uniform(0, 4, 40)
    for t, value in zip(eps, law.kernel(eps), strict=True):
        x = points(law) - t
        exact = scale * math.fsum(law.masses * np.exp(-law.theta * x - x * x / (2 * v)))
        assert exact * (1 - 1e-12) <= value <= 1.01 * exact + scale * (math.exp(-30) + 2 * law.lost)


@pytest.mark.parametrize("theta", [0.0, 1.5])
def test_powers_of_transforms_are_convolutions_within_their_error(theta):
    parts = [(3, discretise(loss, 0.125, 1e-12, 1e-9)) for _, loss in TERMS]
    exact = np.ones(1)
    for count, part in parts:
        tilted = part.masses * np.exp(theta * part.losses)
        for _ in range(count):
            exact = np.convolve(exact, tilted / tilted.sum())
    first = sum(count * part.start for count, part in parts)
    found = convolve(parts, theta, first, 512 * -(-len(exact) // 512))
    assert np.abs(found.masses[: len(exact)] - exact).max() <= found.entry_error + 1e-15
    assert found.entry_error < 1e-11


def test_vanished_frequencies_are_part_of_the_error():
    """So many steps that nearly all of the transform vanishes: the law is that of a binomial sum all the same."""
    loss, count = L.RandomizedResponseLoss(0.5), 4000
    step, offset = loss.atoms()
    part = discretise(loss, step, 1e-12, 1e-9)
    found = convolve([(count, part)], 0.0, count * part.start, 512 * 8)
    p = 1 / (1 + math.exp(-0.5))
    k = np.arange(count + 1)
    logs = [math.lgamma(count + 1) - math.lgamma(i + 1) - math.lgamma(count - i + 1) for i in range(count + 1)]
    exact = np.exp(np.array(logs) + k * math.log(p) + (count - k) * math.log1p(-p))
    places = np.rint((2 * k - count) * 0.5 / step - (count * offset) / step).astype(int) - count * part.start
    assert np.abs(found.masses[places] - exact).max() <= found.entry_error + 1e-12


def test_laws_of_earlier_questions_say_the_same():
    """Whatever was asked before, enclosures of one number overlap."""
    coins = ((3, L.RandomizedResponseLoss(0.4, 3)), (2, L.LaplaceLoss(0.3)))
    eps, answers = np.array([0.0, 0.3, 0.9, 1.5]), []
    for first, tolerance in product([None, 0.1, 1.4], [1e-2, 1e-4]):
        recent_laws.cache_clear()
        if first is not None:
            Lattice(coins).near(0.01, 1e-3, first)
        answers.append(Lattice(coins).forward(eps, tolerance))
        assert np.all(answers[-1].upper - answers[-1].lower <= 10 * tolerance * answers[-1].upper)
    highest = np.max([found.lower for found in answers], axis=0)
    assert np.all(highest <= np.min([found.upper for found in answers], axis=0))


def test_a_law_that_is_sharp_enough_is_used_again(monkeypatch):
    recent_laws.cache_clear()
    composed = []
    compose = lattice.compose
    monkeypatch.setattr(lattice, "compose", lambda *args: composed.append(1) or compose(*args))
    found = Lattice(TERMS)
    found.near(1e-3, 1e-3, 1.0)
    found.near(1e-3, 1e-3, 1.0)
    found.forward(np.array([1.0]), 1e-3)
    assert len(composed) == 1


def test_few_laws_are_remembered(monkeypatch):
    recent_laws.cache_clear()
    monkeypatch.setattr(lattice, "KEPT_POINTS", 4000)
    for eps in (0.1, 0.5, 1.0, 1.5, 2.0):
        Lattice(TERMS).near(1e-3, 1e-4, eps)
        laws = recent_laws(TERMS).values()
        assert len(laws) == 1 or sum(len(law.masses) for law in laws) <= 4000
    monkeypatch.setattr(lattice, "KEPT", 2)
    monkeypatch.setattr(lattice, "KEPT_POINTS", 10**9)
    for eps in (0.2, 0.6, 1.1):
        Lattice(TERMS).near(1e-3, 1e-5, eps)
    assert len(recent_laws(TERMS)) <= 2
