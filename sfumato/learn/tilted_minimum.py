"""The minimum of a logistic objective with a random linear term: found by Newton steps, and released under pure ε.

Noise is in the objective, all of it at once, so that descent of any length costs nothing more.
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.learn.spending import LESS, joint
from sfumato.learn.tables import Matrix, Vector

SOLVED = 1e-5  # length of the gradient at the approximate minimum, rounding of noise and of sums included
MOST_STEPS = 10_000
CURVATURE_SHARE = 0.15  # of ε, for the change of volume: the ridge follows from it
OUTPUT_SHARE = 0.02  # of ε, for noise on the minimum, which is found approximately
STEPS = 1 << 24  # of the lattice of the linear term in what one row may add to it
PARTS = 64  # steps of the output's lattice in the distance of an approximate minimum


@dataclass(frozen=True)
class PureTilt:
    """The minimum of Σ w·log(1 + e^{−s·z·θ}) + ½·ridge·|θ|² + b·θ, s = ±1, all |zⱼ| ≤ 1, ε-DP for units whose weights w
    sum to at most `rows`. All of this is public.

    Proof. Let b be drawn on a lattice by joint Laplace noise of ε₁, and u be uniform in its cell. The law of b + u has
    a density, which a move of at most `rows` in each coordinate changes by a factor of e^ε₁ at most, as it moves cells
    by at most ⌈rows/step⌉. θ ↦ b + u = −Σw∇ℓ − ridge·θ is a bijection with derivative −H. With a unit more, b + u moves
    by at most Σw ≤ rows in each coordinate, and 1 ≤ det H′/det H ≤ exp(tr H⁻¹(H′ − H)) ≤ exp(Σw·|z|²/(4·ridge)), which
    is e^a for ridge = rows·d/(4a) and d coordinates. So the exact minimum of the objective with b + u is (ε₁ + a)-DP.
    Given it, the data decide only which point at most t = (SOLVED + step·√d)/ridge away is found for b; in steps of
    t/64 that point, rounded, moves by at most 2·64 + 1, and noise of ε₂ is added to it. Both compose. ∎

    Theorem: the minimum of a randomly tilted objective is ε-DP [the proof above; Chaudhuri, Monteleoni & Sarwate 2011]
    """

    eps: float
    coordinates: int
    rows: int = 1

    @property
    def ridge(self) -> float:
        return self.rows * self.coordinates / (4 * CURVATURE_SHARE * self.eps) * (1 + 1e-9)

    @property
    def tilt_eps(self) -> float:
        """What is left for the linear term."""
        return (1 - CURVATURE_SHARE - OUTPUT_SHARE) * self.eps * LESS

    @property
    def distance(self) -> float:
        """Of an approximate minimum from the exact one, at most."""
        return (SOLVED + math.sqrt(self.coordinates) / STEPS) / self.ridge

    @property
    def deviation(self) -> float:
        """Of each coordinate of the linear term, nearly."""
        return (self.coordinates + 1) / math.sqrt(3) * self.rows / self.tilt_eps

    def release(self, signed: Matrix, weights: Vector) -> Vector:
        """θ for rows s·z with these weights, with noise."""
        d, zeros = self.coordinates, np.zeros((1, self.coordinates), np.int64)
        tilt = joint(self.tilt_eps, self.rows * STEPS, d).release(zeros)[0] / STEPS
        theta = minimum(signed, self.ridge, tilt, weights)
        step = self.distance / PARTS
        nearest = np.clip(np.rint(theta / step), -(2.0**60), 2.0**60).astype(np.int64)
        noisy = joint(OUTPUT_SHARE * self.eps * LESS, 2 * PARTS + 1, d).release(nearest[None])[0]
        return np.asarray(noisy, np.float64) * step


def minimum(signed: Matrix, ridge: float, linear: Vector, weights: Vector | None = None) -> Vector:
    """Where the gradient is shorter than SOLVED/2, by damped Newton steps: the objective is smooth and strongly convex,
    so that they get there from anywhere."""
    theta, given = np.zeros(signed.shape[1]), np.ones(len(signed)) if weights is None else weights
    value, gradient, curvature = objective(theta, signed, ridge, linear, given)
    for _ in range(MOST_STEPS):
        if float(np.linalg.norm(gradient)) < SOLVED / 4:
            break
        direction = np.linalg.solve(curvature, gradient)
        rate, slope = 1.0, float(gradient @ direction)
        while rate > 1e-12:
            tried = objective(theta - rate * direction, signed, ridge, linear, given)
            shorter = float(np.linalg.norm(tried[1])) < float(np.linalg.norm(gradient)) * (1 - rate / 4)
            if shorter or tried[0] <= value - rate * slope / 4:
                break
            rate /= 2
        theta = theta - rate * direction
        value, gradient, curvature = tried
    return theta


def objective(
    theta: Vector, signed: Matrix, ridge: float, linear: Vector, weights: Vector
) -> tuple[float, Vector, Matrix]:
    """Value, gradient and curvature. Sums are pairwise, so that rounding stays far below SOLVED."""
    scores = np.zeros(len(signed))
    for column, slope in zip(signed.T, theta, strict=True):
        scores += column * slope
    wrong = 0.5 * (1 - np.tanh(scores / 2))  # 1/(1 + e^score)
    pull = weights * wrong
    value = float((weights * np.logaddexp(0.0, -scores)).sum()) + ridge / 2 * float(theta @ theta)
    gradient = -np.array([(column * pull).sum() for column in signed.T]) + ridge * theta + linear
    curvature = (signed * (pull * (1 - wrong))[:, None]).T @ signed + ridge * np.eye(len(theta))
    return value + float(linear @ theta), gradient, curvature
