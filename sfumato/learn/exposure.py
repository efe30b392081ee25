"""Who is exposed how much by a linear model: per-instance privacy of ridge regression, and its release behind a test.

Coefficients minimise ½Σ(y − x·θ)² + ½·ridge·|θ|² in the ball |θ| ≤ radius, for rows |x| ≤ 1 and targets |y| ≤ 1 (longer
ones are clipped), and are released with Gaussian noise. What that costs a person depends on the least eigenvalue λ of
XᵀX + ridge, on the person's residual and on the length of their row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.dependent.prediction_variance import BITS, UNIT, PredictionVariance, whole_rows
from sfumato.mechanisms.dependent.private_test import IntegerNoise
from sfumato.mechanisms.dependent.propose_test_release import TestedRelease
from sfumato.mechanisms.examples import Example, Inputs, Neighbours
from sfumato.rounding import round_up
from sfumato.sensitivity import AddRemove, Sensitivity

STEP = 2.0**-20  # of coefficients, before and after noise
Rows = tuple[ArrayLike, ArrayLike]  # X and y
Vector = NDArray[np.float64]
ONE_OR_TWO = Neighbours(([[1.0], [1.0]], [1.0, 1.0]), ([[1.0]], [1.0]))
ROWS_AND_TARGETS = Inputs("rows and targets", (([], []), ([[math.nan]], [math.inf])), ())


@dataclass(frozen=True)
class RidgeFit:
    """Ridge regression in a ball: its coefficients, and how far one person moves them. Everything here is private.

    Removing (x, y) moves the coefficients by at most |x|·|y − x·θ′|/λ, θ′ those without the person and λ the least
    eigenvalue with the person. Proof. Let F be the objective with the person, F′ = F − ½(y − x·θ)². F is λ-strongly
    convex: λ|θ − θ′|² ≤ ⟨∇F(θ) − ∇F(θ′), θ − θ′⟩. As minimisers in a convex set, ⟨∇F(θ), θ − θ′⟩ ≤ 0 and
    ⟨∇F′(θ′), θ − θ′⟩ ≥ 0, so this is at most ⟨∇F′(θ′) − ∇F(θ′), θ − θ′⟩ ≤ |x|·|y − x·θ′|·|θ − θ′|. ∎

    `rounding` covers the lattice, and float64 for up to 10⁷ rows.

    Theorem: the minimiser of a strongly convex objective moves by at most one person's gradient over λ [the proof
        above; Chaudhuri, Monteleoni & Sarwate 2011]
    """

    columns: int
    ridge: float = 1.0
    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", checks.whole("columns", self.columns, 1, 64))
        allowed = "a number from 0.01 to 1e6"
        object.__setattr__(self, "ridge", checks.number("ridge", self.ridge, 0.01, 1e6, allowed=allowed))
        object.__setattr__(self, "radius", checks.number("radius", self.radius, 0.01, 100.0, allowed="0.01 to 100"))

    @cached_property
    def variance(self) -> PredictionVariance:
        """The statistic whose Gram matrix, eigenvalue and clipping are exact."""
        return PredictionVariance((1.0,) + (0.0,) * (self.columns - 1), self.ridge)

    @property
    def rounding(self) -> Fraction:
        """What the lattice of coefficients and float64 add to a move: |round a − round b| ≤ |a − b| + step, twice."""
        return Fraction(STEP) * math.isqrt(4 * self.columns) + Fraction(STEP)

    def moves(self, least: Fraction | float) -> float:
        """The most by which anybody moves the coefficients if the least eigenvalue is at least this, or the ridge."""
        return round_up((1 + Fraction(self.radius)) / max(Fraction(least), Fraction(self.ridge)) + self.rounding)

    def coefficients(self, data: Rows) -> Vector:
        """Multiples of 2⁻²⁰, one for each column."""
        gram, cross = self.sums(data)
        return lattice(minimise_in_ball(gram, cross, self.radius))

    def sums(self, data: Rows) -> tuple[Vector, Vector]:
        """XᵀX + ridge and Xᵀy of the clipped rows, each sum exact before it becomes a float."""
        X, y = data
        gram = np.array(self.variance.gram(X), object).astype(np.float64) / UNIT
        rows, target = self.read_rows(X), read_target(y)
        check_lengths(rows, target)
        return gram, (rows.T @ target).astype(np.float64) / UNIT

    def read_rows(self, X: ArrayLike) -> NDArray[np.int64]:
        table = np.asarray(X, np.float64)
        return whole_rows(table.reshape(-1, self.columns) if table.size == 0 else table)

    def eigenvalue(self, data: Rows) -> Fraction:
        """The least eigenvalue of XᵀX + ridge, rounded down: certified, and of sensitivity 1."""
        return self.variance.eigenvalue(data[0])

    def exposures(self, data: Rows, noise: Gaussian) -> list[GaussianLoss]:
        """Each person's own loss from the release, exactly: how far they move the coefficients, over σ. Private."""
        gram, cross = self.sums(data)
        rows, target = self.read_rows(data[0]) / 2**BITS, read_target(data[1]) / 2**BITS
        here = lattice(minimise_in_ball(gram, cross, self.radius))
        found = []
        for x, y in zip(rows, target, strict=True):
            there = lattice(minimise_in_ball(gram - np.outer(x, x), cross - y * x, self.radius))
            found.append(GaussianLoss(float(np.linalg.norm(here - there)) / noise.sigma))
        return found


@dataclass(frozen=True)
class NoisyCoefficients(Mechanism[Rows, list[float]]):
    """Coefficients of ridge regression with Gaussian noise, priced for the worst data: λ ≥ ridge is all that is known.

    Theorem: coefficients move by at most (1 + radius)/ridge [`RidgeFit`]
    """

    ridge_fit: RidgeFit
    noise: Gaussian

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Gaussian) or float(self.noise.lattice.step) != STEP:
            raise InvalidParameter(
                f"noise must be Gaussian with the step of the coefficients.\n  found:  {self.noise!r}\n"
                "  do:     give sf.Gaussian(sigma, 2**-20)"
            )

    def release(self, value: Rows) -> list[float]:
        self.ready(1)
        noisy = self.noise.release(self.ridge_fit.coefficients(value))
        return [float(c) for c in np.asarray(noisy)]

    def ready(self, count: int) -> None:
        self.noise.ready(count * self.ridge_fit.columns)

    def loss(self) -> PrivacyLoss:
        return self.noise.loss(length(self.ridge_fit.moves(self.ridge_fit.ridge)))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example(cls(RidgeFit(1), Gaussian(2.0, STEP)), (ONE_OR_TWO,), ROWS_AND_TARGETS),)


@dataclass(frozen=True)
class Margin:
    """How far data are from a least eigenvalue below `proposed`: ⌊λ − proposed⌋ + 1, or 0 below it. Sensitivity 1."""

    ridge_fit: RidgeFit
    proposed: float

    def __call__(self, value: Rows) -> int:
        return max(0, math.floor(self.ridge_fit.eigenvalue(value) - Fraction(self.proposed)) + 1)


def regression_behind_test(
    ridge_fit: RidgeFit, proposed: float, noise: Gaussian, test: IntegerNoise, delta: float
) -> TestedRelease:
    """Coefficients with noise for data whose least eigenvalue is at least `proposed`, behind a private test of that.

    Good data have λ ≥ proposed. A neighbour has one person more or less, and the λ of the larger data set counts: it is
    at least that of the good one, so the coefficients move by at most (1 + radius)/proposed.

    Theorem: generalised propose-test-release costs the larger of a failed test and of test and promise
        [docs/theorems/recipes.md, Theorem 1; Redberg, Zhu & Wang 2023]
    """
    least = checks.number("proposed", proposed, ridge_fit.ridge, 1e9, allowed="an eigenvalue of at least the ridge")
    promised = noise.loss(length(ridge_fit.moves(least)))
    return TestedRelease(NoisyCoefficients(ridge_fit, noise), promised, Margin(ridge_fit, least), test, delta)


@dataclass(frozen=True)
class Exposure:
    """A public bound on each person's own loss from released coefficients, as a function of their own row and target.

    λ is at least `least`, and the coefficients without noise are within `off` of the released ones. Then
    |θ − θ′| ≤ |x|·|y − x·θ|/(λ − |x|²), since |y − x·θ′| ≤ |y − x·θ| + |x|·|θ − θ′|; and
    |y − x·θ| ≤ |y − x·released| + |x|·off.

    Theorem: a person's own loss is bounded by a function of public aggregates [Redberg & Wang 2021; `RidgeFit`]
    """

    ridge_fit: RidgeFit
    released: tuple[float, ...]
    least: int
    off: float
    sigma: float

    def loss(self, row: ArrayLike, target: float) -> GaussianLoss:
        """At most this for a person with this row and target."""
        x = self.ridge_fit.read_rows(np.asarray(row, np.float64).reshape(1, -1))[0] / 2**BITS
        y, long = float(read_target([target])[0]) / 2**BITS, float(np.linalg.norm(x))
        most = self.ridge_fit.moves(self.least)
        if self.least > long**2:
            residual = min(abs(y - float(x @ np.array(self.released))) + long * self.off, 1 + self.ridge_fit.radius)
            own = long * residual / (self.least - long**2) + float(self.ridge_fit.rounding)
            most = min(most, own)
        return GaussianLoss(most / self.sigma * (1 + 1e-12))


@dataclass(frozen=True)
class ExposureReport(Mechanism[Rows, Exposure]):
    """Released coefficients, and a report from which everybody can compute what these cost them.

    The least eigenvalue has sensitivity 1: it is released with noise, less a margin. The report holds but for
    probability `miss`; its privacy does not depend on that.

    Theorem: a noisy least eigenvalue bounds everybody's loss [Redberg & Wang 2021; Weyl 1912]
    """

    coefficients: NoisyCoefficients
    count: IntegerNoise
    miss: float = field(default=1e-6)

    def __post_init__(self) -> None:
        object.__setattr__(self, "miss", checks.number("miss", self.miss, 1e-12, 0.5, allowed="a small number"))

    def release(self, value: Rows) -> Exposure:
        fit, noise = self.coefficients.ridge_fit, self.coefficients.noise
        self.ready(1)
        noisy = self.count.release(int(fit.eigenvalue(value)))
        assert isinstance(noisy, int)
        least = max(0, noisy - math.ceil(self.count.error(1 - self.miss / 2)))
        off = math.sqrt(fit.columns) * noise.error(1 - self.miss / 2, coordinates=fit.columns)
        return Exposure(fit, tuple(self.coefficients.release(value)), least, off, noise.sigma)

    def ready(self, count: int) -> None:
        self.count.ready(count)
        self.coefficients.ready(count)

    def loss(self) -> PrivacyLoss:
        return self.coefficients.loss() + self.count.loss(1)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        made = cls(NoisyCoefficients(RidgeFit(1), Gaussian(2.0, STEP)), Gaussian(2.0), 0.1)
        return (Example(made, (ONE_OR_TWO,), ROWS_AND_TARGETS),)


def minimise_in_ball(gram: Vector, cross: Vector, radius: float) -> Vector:
    """argmin ½θ·Gθ − c·θ over |θ| ≤ radius: (G + s)⁻¹c with the least s ≥ 0 for which it is short enough."""
    values, vectors = np.linalg.eigh(gram)
    along, values = vectors.T @ cross, np.maximum(values, 1e-9)

    def at(s: float) -> Vector:
        return np.asarray(along / (values + s))

    low, high = 0.0, float(np.linalg.norm(cross)) / radius
    if np.linalg.norm(at(0.0)) <= radius:
        return np.asarray(vectors @ at(0.0))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.linalg.norm(at(middle)) > radius else (low, middle)
    return np.asarray(vectors @ at(high))


def lattice(values: Vector) -> Vector:
    return np.asarray(np.rint(values / STEP) * STEP)


def length(move: float) -> Sensitivity:
    """A vector that moves by at most this."""
    return Sensitivity(l2=move, linf=move, relation=AddRemove)


def read_target(y: ArrayLike | Sequence[float]) -> NDArray[np.int64]:
    """Targets clipped to [−1, 1] in units of 2⁻²⁰; NaN counts as 0."""
    safe = np.clip(np.nan_to_num(np.asarray(y, np.float64).reshape(-1), nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    found: NDArray[np.int64] = np.trunc(safe * 2**BITS).astype(np.int64)
    return found


def check_lengths(rows: NDArray[np.int64], target: NDArray[np.int64]) -> None:
    if len(rows) != len(target):
        raise InvalidParameter(
            f"X and y must have as many rows.\n  found:  {len(rows)} and {len(target)}\n"
            "  do:     give one target for each row"
        )
