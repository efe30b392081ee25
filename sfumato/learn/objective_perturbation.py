"""Logistic regression by objective perturbation: a random linear term in the objective, then an approximate minimum."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.learn.base import Table
from sfumato.learn.logistic_regression import probabilities
from sfumato.learn.row_wise import row_products
from sfumato.learn.spending import Spending, gaussian, most_mu
from sfumato.learn.supervised import Classifier
from sfumato.learn.tables import Bounds, Data, Matrix, Vector
from sfumato.learn.tilted_minimum import SOLVED, minimum
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import ApproxLoss
from sfumato.sensitivity import Relation

CURVATURE_SHARE = 0.25  # of ε, for the change of volume: the ridge follows from it
OUTPUT_EPSILON, OUTPUT_DELTA = 0.02, 0.1  # of ε and δ, for noise on the minimum, which is found approximately
LEAST_RIDGE = 0.01
FINE = 1 << 30  # steps of the lattice in a deviation of noise
ROUGH = 13 / FINE**2  # total variation distance of discrete and rounded normal noise, of one coordinate


@dataclass(frozen=True)
class Perturbation:
    """The noise, the ridge and the noise of the output that together are (ε, δ)-DP. All of it is public."""

    sigma: float
    ridge: float
    output: float

    @staticmethod
    def of(epsilon: float, delta: float, coordinates: int) -> "Perturbation":
        needed = 0.25 / math.expm1(min(CURVATURE_SHARE * epsilon, 100.0)) * (1 + 1e-9)
        ridge = max(needed, LEAST_RIDGE)  # more costs less; a smaller one would make the noise of the output large
        left = (1 - OUTPUT_DELTA) * delta - coordinates * ROUGH
        if not left > 0:
            raise InvalidParameter(
                f"delta is too small for objective perturbation of {coordinates} coefficients.\n  found:  {delta}\n"
                f"  do:     give delta above {2 * coordinates * ROUGH:.2g}"
            )
        mu = most_mu((1 - CURVATURE_SHARE - OUTPUT_EPSILON) * epsilon, left / 2)
        small = most_mu(OUTPUT_EPSILON * epsilon, OUTPUT_DELTA * delta)
        sigma = (1 + 1e-9) / mu
        if sigma * math.sqrt(coordinates) / FINE > SOLVED / 2:
            raise InvalidParameter(
                f"epsilon is too small for objective perturbation.\n  found:  {epsilon}\n  do:     give more"
            )
        return Perturbation(sigma, ridge, 2 * SOLVED / ridge / small * (1 + 1e-9))


@dataclass(eq=False, kw_only=True, repr=False)
class ObjectivePerturbation(Classifier):
    """The minimum of Σ log(1 + e^{−s·z·θ}) + ½·ridge·|θ|² + b·θ, for two public classes s = ±1, rows |z| ≤ 1.

    z is (x, 1)/√(d + 1), columns scaled to [−1, 1]; b is normal with deviation σ. Rows are the units, added or removed.
    A fit costs (ε, δ) with δ > 0; a ledger that counts μ charges more for that than for a Gaussian loss.

    Proof. θ ↦ b = −Σ∇ℓ − ridge·θ is a bijection with derivative −H, so the exact minimum has the density
    ν(b(θ))·det H(θ). With one row more, b′ = b − c·z with |c| ≤ 1, and H′ = H + h·zzᵀ with 0 ≤ h ≤ ¼, so that
    1 ≤ det H′/det H = 1 + h·zᵀH⁻¹z ≤ 1 + 1/(4·ridge) = e^a. In either direction the log ratio of densities is at most
    a + |b·z|/σ² + 1/(2σ²), which is a + m|Z| + m²/2 at most, m = 1/σ and Z standard normal under the law that it is
    about. Hence H_{e^ε} ≤ E(1 − e^{ε − a − m|Z| − m²/2})₊ ≤ 2·H_{e^{ε−a}} of a Gaussian mechanism with μ = m. Given the
    exact minimum, which the data turn into an approximate one at most SOLVED/ridge away, output noise is a Gaussian
    mechanism of sensitivity 2·SOLVED/ridge; both compose. Noise b is drawn on a lattice: rounding a normal number
    moves the gradient by less than SOLVED/4, and discrete noise differs from rounded noise by ROUGH at most: up to
    12·s steps their probabilities differ by a factor of 1 ± 12/s², and farther out there is less than 2⁻¹⁰⁰. Sums in
    float64 move the gradient by less than SOLVED/4 for up to 10⁷ rows. ∎

    Theorem: objective perturbation of a generalised linear model is (ε, δ)-DP [the proof above; Chaudhuri, Monteleoni &
        Sarwate 2011; Redberg, Koskela & Wang 2023; approximate minima: Iyengar et al. 2019]
    """

    def check_params(self) -> None:
        super().check_params()
        if self.epsilon is None or not self.delta > 0 or self.relation is not Relation.AddRemove:
            raise InvalidParameter(
                "objective perturbation costs (ε, δ), about adding or removing a row.\n"
                "  found:  a loss as budget, no δ, or another relation\n  do:     give epsilon=1.0, delta=1e-6"
            )
        if len(self.class_list()) != 2 or self.unit is not None or self.rows_per_unit != 1:
            raise unit_refusal()
        Perturbation.of(float(self.epsilon), float(self.delta), 1)

    def check_columns(self, columns: int, names: object) -> None:
        super().check_columns(columns, names)  # type: ignore[arg-type]
        self.perturbation(columns)

    def perturbation(self, columns: int) -> Perturbation:
        return Perturbation.of(float(self.epsilon or 0.0), float(self.delta), columns + 1)

    @property
    def loss(self) -> PrivacyLoss:
        self.check_params()
        return ApproxLoss(float(self.epsilon or 0.0), float(self.delta))

    def read_table(self, X: Data, y: object, units: object) -> Table:
        if units is not None:
            raise unit_refusal()
        return super().read_table(X, y, units)

    def learn(self, table: Table, spending: Spending) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        labels, noise = self.labels(table), self.perturbation(table.columns)
        rows = self.features(bounds.scale(table.X))
        signed = rows * np.where(labels == 1, 1.0, np.where(labels == 0, -1.0, 0.0))[:, None]
        linear = add_noise(np.zeros(rows.shape[1]), noise.sigma)
        theta = minimum(signed[labels >= 0], noise.ridge, linear)
        self.theta_ = add_noise(theta, noise.output)
        unit = math.sqrt(table.columns + 1) * bounds.half
        self.coef_ = (self.theta_[:-1] / unit)[None]
        self.intercept_ = self.theta_[-1:] / math.sqrt(table.columns + 1) - self.coef_ @ bounds.middle

    def features(self, X: Matrix) -> Matrix:
        """(x, 1)/√(d + 1), a little shorter than 1 at most."""
        d = X.shape[1] + 1
        return np.column_stack([X, np.ones(len(X))]) * ((1 - 1e-9) / math.sqrt(d))

    def predict_proba(self, X: Data) -> Matrix:
        rows = self.new_rows(X)
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        return probabilities(row_products(self.features(bounds.scale(rows)), self.theta_[None]))

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        """Noise b moves the minimum by b/(n·v + ridge), v a usual curvature: about 1/(12(d + 1))."""
        noise = self.perturbation(d)
        curvature = n / (12 * (d + 1)) + noise.ridge
        return noise.sigma / curvature + noise.output, "noise of a row's log odds"


def add_noise(values: Vector, sigma: float) -> Vector:
    """Values on a lattice of a 2⁻³⁰ of a deviation, with normal noise of whole steps, drawn exactly."""
    steps = np.clip(np.rint(values * (FINE / sigma)), -(2.0**60), 2.0**60).astype(np.int64)
    multiples = gaussian(float(FINE)).answer(steps).multiples
    return np.asarray(multiples, np.float64) * (sigma / FINE)


def unit_refusal() -> InvalidParameter:
    return InvalidParameter(
        "objective perturbation protects rows, and tells two classes apart.\n  found:  units, or other classes\n"
        "  do:     give one row of each unit and two classes, or use LogisticRegression"
    )
