"""A small training run by noisy gradients, and the same with a bug that was found in real libraries."""

import math
from dataclasses import dataclass

import numpy as np

import sfumato as sf

PEOPLE, FEATURES, SIZE = 200, 3, 40.0


@dataclass(frozen=True)
class Canary:
    """A record whose features are its own: nobody else moves that weight."""

    place: int


@dataclass(frozen=True)
class Training:
    """Logistic regression by full-batch gradients, each record's clipped to norm 1, with noise on their sum."""

    canaries: int
    steps: int = 3
    sigma: float = 4.0

    def loss(self):
        return self.steps * sf.Gaussian(self.sigma).loss(1)

    def data(self, included):
        rng = np.random.default_rng(0)
        x = np.zeros((PEOPLE + len(included), FEATURES + self.canaries))
        x[:PEOPLE, :FEATURES] = rng.normal(size=(PEOPLE, FEATURES))
        x[np.arange(PEOPLE, len(x)), [FEATURES + canary.place for canary in included]] = SIZE
        return x, np.where(x[:, 0] >= 0, 1.0, -1.0)

    def clipped(self, gradients):
        return (gradients / np.maximum(1, np.linalg.norm(gradients, axis=1, keepdims=True))).sum(axis=0)

    def train(self, included):
        x, y = self.data(included)
        noise = sf.Gaussian(self.sigma, step=2**-20)
        weights, gained = np.zeros(x.shape[1]), np.zeros(x.shape[1])
        for _ in range(self.steps):
            gradients = (y / (1 + np.exp(y * (x @ weights))))[:, None] * x
            moved = noise.release(self.clipped(gradients))
            weights, gained = weights + 1e-4 * moved, gained + moved
        return gained

    def score(self, gained, canary):
        return gained[FEATURES + canary.place]


@dataclass(frozen=True)
class MeanClipped(Training):
    """Clips the mean of all gradients and not each: one record moves the sum by its whole gradient."""

    def clipped(self, gradients):
        mean = gradients.mean(axis=0)
        return mean / max(1, math.sqrt(mean @ mean)) * len(gradients)
