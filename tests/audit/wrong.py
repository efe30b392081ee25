"""Mechanisms that break their privacy claim, for the auditor to refute. Never use these.

Each draws from a given generator, so that tests are repeatable. The sparse vector variants are numbered as in Lyu, Su &
Li 2017, Figure 1; a vector holds one entry for each query: 1 for "above", 0 for "below", and NaN after the end.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

Draw = Callable[[object, int, Generator], np.ndarray]


@dataclass(frozen=True)
class Wrong:
    """A mechanism that draws from a generator of its own."""

    draw: Draw
    rng: Generator

    def __call__(self, data):
        return self.draw(data, 1, self.rng)[0]

    def many(self, data, n):
        return self.draw(data, n, self.rng)


def naive_laplace(eps):
    """v + Laplace(1/ε) in doubles. Mironov 2012."""
    return lambda value, n, rng: value + rng.laplace(scale=1 / eps, size=n)


def naive_gaussian(sigma):
    """v + N(0, σ²) in doubles."""
    return lambda value, n, rng: value + rng.normal(scale=sigma, size=n)


def half_the_noise(eps):
    """Laplace noise on a grid of 2⁻¹⁰, with half the scale it should have."""
    return lambda value, n, rng: np.round((value + rng.laplace(scale=0.5 / eps, size=n)) * 1024) / 1024


def tilted_response(eps):
    """Randomized response that tells the truth with the chance that belongs to 1.2·ε."""
    return lambda bit, n, rng: np.where(rng.random(n) < 1 / (1 + np.exp(1.2 * eps)), 1 - bit, bit)


# ---- the sparse vector technique, threshold 0, sensitivity 1 ---------------------------------------------------------


def above(answers, n, rng, threshold_scale, noise_scale):
    """Noisy answers, and which of them are above the noisy threshold."""
    q, rho = np.asarray(answers, float), rng.laplace(scale=threshold_scale, size=(n, 1))
    noisy = q + (rng.laplace(scale=noise_scale, size=(n, len(q))) if noise_scale else 0.0)
    return noisy, noisy >= rho


def cut_off(values, hits, c):
    """Nothing more after the c-th hit."""
    before = np.cumsum(hits, axis=1) - hits
    return np.where(before < c, values, np.nan)


def sparse_vector_1(eps, c):
    """The right one: threshold noise 2/ε, query noise 4c/ε, cut off after c."""

    def draw(answers, n, rng):
        _, hits = above(answers, n, rng, 2 / eps, 4 * c / eps)
        return cut_off(hits.astype(float), hits, c)

    return draw


def sparse_vector_3(eps, c):
    """Roth's lecture notes of 2011: gives out the noisy answer that passed (on a grid: its bits are not the point)."""

    def draw(answers, n, rng):
        noisy, hits = above(answers, n, rng, 2 / eps, 2 * c / eps)
        return cut_off(np.where(hits, np.round(noisy * 64) / 64, -np.inf), hits, c)

    return draw


def sparse_vector_4(eps, c):
    """Lee & Clifton 2014: query noise that does not grow with c."""

    def draw(answers, n, rng):
        _, hits = above(answers, n, rng, 4 / eps, 4 / (3 * eps))
        return cut_off(hits.astype(float), hits, c)

    return draw


def sparse_vector_5(eps):
    """Stoddard et al. 2014: no query noise, no cut-off."""
    return lambda answers, n, rng: above(answers, n, rng, 2 / eps, 0)[1].astype(float)


def sparse_vector_6(eps):
    """Chen et al. 2015: no cut-off."""
    return lambda answers, n, rng: above(answers, n, rng, 2 / eps, 2 / eps)[1].astype(float)
