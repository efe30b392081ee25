"""Linear regression: from a noisy Gram matrix where there are many rows, by noisy descent where there are few."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.base import Table
from sfumato.learn.database_pass import NoisyPass, gram_of, gram_terms
from sfumato.learn.descent import CURVED, Schedule, choose_schedule, descend, kept_part
from sfumato.learn.row_wise import row_lengths, row_products
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.supervised import Regressor
from sfumato.learn.tables import Bounds, Data, Matrix, Vector
from sfumato.learn.target_spread import USUAL, Target
from sfumato.sql.emit.lattice_rows import Block

SOLVERS = ("auto", "statistics", "boosted", "descent")
CLIP = 0.4  # what one row may add to a gradient, for columns and targets in [−1, 1]
TOLERATED = 0.4  # length of the noise on all coefficients
LEAST = 0.5  # of that, where targets have a small spread
LONGEST = 60.0
HOPELESS = 1.0  # noise of predictions, as a part of the target's variance, from which on the mean is all that is told
FARTHEST = 20.0  # length of all coefficients of columns and targets in [−1, 1]
BOOST_SHARE = 0.5  # of the budget, for the Gram matrix of the columns; the rest pays for rounds
BOOST_ROUNDS = 10
SCALABLE = 0.05  # noise of the Gram matrix, as a part of the rows, from which on gradients are scaled by its inverse
RELIABLE = 0.02  # noise of the Gram matrix, as a part of the rows, from which on it is solved


def usual_norm(columns: int) -> float:
    """The norm to which rows of columns in [−1, 1] are clipped: few rows of real tables are longer."""
    return min(math.sqrt(columns), max(1.5, 0.5 * math.sqrt(columns)))


@dataclass(frozen=True, eq=False)
class Moments:
    """Noisy first and second moments of (1, x, y), columns scaled to [−1, 1]; released, so free to use.

    `deviation` is that of the noise on each sum. Whatever is computed from here on is post-processing.
    """

    count: float
    x: Vector
    y: float
    xx: Matrix
    xy: Vector
    yy: float
    deviation: float
    normal: bool = True  # is that noise normal?

    @staticmethod
    def of(gram: Matrix, deviation: float, count: float | None, normal: bool) -> "Moments":
        rows = max(float(gram[0, 0]) if count is None else count, 1.0)
        return Moments(rows, gram[0, 1:-1], float(gram[0, -1]), gram[1:-1, 1:-1], gram[1:-1, -1],
                       float(gram[-1, -1]), deviation, normal)  # fmt: skip

    def solve(self) -> "Fit":
        """Ridge regression of the centred moments, after their projection to positive semi-definite matrices.

        The ridge is the size of the noise's largest eigenvalue, about deviation·√d, as in AdaSSP: it vanishes against
        the data as rows are added. If what the fit explains is not above what noise alone would explain (that of the
        products with the target, and that of the matrix times the coefficients), it is shrunk towards the mean: a fit
        is not worse than the trivial predictor, but for the noise of that mean.

        Theorem: ridge regression on noisy sufficient statistics; post-processing is free [Wang 2018, Alg. 2 (AdaSSP)]
        """
        d, n = len(self.x), self.count
        centred = self.xx - np.outer(self.x, self.x) / n
        values, vectors = np.linalg.eigh((centred + centred.T) / 2)
        ridge = self.deviation * math.sqrt(d + 1)
        inverse = (vectors / (np.maximum(values, 0.0) + ridge)) @ vectors.T
        cross = self.xy - self.x * self.y / n
        coef = inverse @ cross
        psd = (vectors * np.maximum(values, 0.0)) @ vectors.T
        explained = float(2 * coef @ cross - coef @ psd @ coef)
        means = np.clip(self.x / n, -1.0, 1.0)
        size = 1.0 + float(coef @ coef) + float(np.clip(self.y / n, -1, 1)) ** 2 + float(means @ means)
        chance = self.deviation**2 * float(np.trace(inverse)) * size
        keep = max(0.0, 1.0 - chance / max(explained, 1e-300)) if explained > 0 else 0.0
        coef = coef * keep
        mean = float(np.clip(self.y / n, -1.0, 1.0))
        mean *= max(0.0, 1.0 - (self.deviation / n) ** 2 / max(mean**2, 1e-300))  # no farther than it is known
        return Fit(coef, mean - float(coef @ means), inverse, ridge, self)


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients for scaled columns, and what their intervals need."""

    coef: Vector
    intercept: float
    inverse: Matrix
    ridge: float
    moments: Moments

    def half_widths(self, confidence: float) -> Vector:
        """Of intervals for the least-squares coefficients of the clipped data: noise to first order, and the ridge.

        With A, b the centred moments without noise and E, e their noise, (A + E + ridge)(θ̂ − θ) = e − Eθ − ridge·θ for
        the coefficients θ without noise or ridge. On the right stands a vector with independent coordinates of
        variance at most σ²(1 + ‖θ‖² + maxⱼ θⱼ²), to first order in the noise of means, and a bias.
        """
        m = self.moments
        share = (abs(m.y) / m.count, *np.abs(m.x / m.count))  # the noise of means enters through what they are
        size = 1.0 + float(np.sum(self.coef**2)) + float(np.max(self.coef**2, initial=0.0))
        size *= 1.0 + float(np.sum(np.square(share)))
        noise = m.deviation * math.sqrt(size) * np.sqrt(np.sum(self.inverse**2, axis=1))
        bias = self.ridge * np.abs(self.inverse @ self.coef)
        found: Vector = ndtri(0.5 + confidence / 2) * noise + bias
        return found


@dataclass(eq=False, kw_only=True, repr=False)
class LinearRegression(Regressor):
    """Least squares with bounded rows.

    `solver="statistics"` adds noise once to the Gram matrix of the rows (1, x, y) and solves it (AdaSSP); x, scaled to
    [−1, 1], is clipped to the norm `row_norm`. `"boosted"` measures the Gram matrix of (x, 1) once and corrects what is
    left of the target in rounds of clipped gradients, scaled by its inverse (boosted AdaSSP). `"descent"` takes noisy
    gradient steps with clipped gradients. `"auto"` boosts if the noise of the Gram matrix is small for so many rows (a
    noisy count unless rows are replaced), or, under pure ε, takes statistics then; else it descends.

    Theorem: one row of norm ≤ r moves the Gram matrix by r² in Frobenius norm, replacing one by √2·r²
        [`BoundedRows.gram_sensitivity`; Wang 2018]
    Theorem: a noisy Gram matrix and T rounds of clipped gradients compose adaptively [Dong, Roth & Su 2022, Cor. 3.3;
        the algorithm is that of Tang, Aydore, Kearns, Rho, Roth, Wang, Wang & Wu 2023]
    """

    solver: str = "auto"
    row_norm: float | None = None

    def check_params(self) -> None:
        super().check_params()
        if self.solver not in SOLVERS:
            raise InvalidParameter(
                f"solver must be one of {', '.join(SOLVERS)}.\n  found:  {self.solver!r}\n  do:     give one of these"
            )
        if self.row_norm is not None:
            checks.number("row_norm", self.row_norm, 1e-3, 1e3, allowed="a number from 0.001 to 1000")

    def norm(self, columns: int) -> float:
        return usual_norm(columns) if self.row_norm is None else float(self.row_norm)

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        y = self.scaled_target(table)
        if self.solver == "statistics":
            count, rest = self.count_rows(table, spending)
            self.learn_from_moments(self.measure(X, y, table, rest), table)
            return
        target = Target.measure(self, y, table, spending)
        count, rest = target.count, target.spending
        solver = self.chosen_solver(count, table.columns, rest)
        if solver == "statistics":
            self.learn_from_moments(self.measure(X, y, table, rest), table)
            return
        self.moments_: Moments | None = None
        self.fit_: Fit | None = None
        rows, scaling = np.column_stack([X, np.ones(len(X))]), None
        d, spread = table.columns + 1, target.spread
        start, tolerated = np.append(np.zeros(table.columns), spread.start), max(spread.bearable, LEAST) * TOLERATED
        schedule = choose_schedule(count, d, rest, CLIP, CLIP, LONGEST, tolerated)
        noise = schedule.prediction_noise(count, d, rest)
        if not target.counted or (solver == "descent" and noise > HOPELESS * spread.deviation**2):
            self.set_coefficients(np.zeros(table.columns), target.mean_alone(), table)
            return
        if solver == "boosted":
            scaling = self.inverse_gram(rows, table, count, rest.part(BOOST_SHARE))
            rest, schedule = rest.part(1 - BOOST_SHARE), Schedule(BOOST_ROUNDS, 1.0, CLIP, CLIP)
            step = Schedule(1, 1.0, CLIP, CLIP).noise(count, d, rest.part(1 / BOOST_ROUNDS)) ** 2 / d
            noise = step * float(np.trace(scaling)) / (BOOST_ROUNDS / 2)

        def gradients(theta: Vector) -> Matrix:
            return rows * np.clip(row_products(rows, theta[None])[:, 0] - y, -2, 2)[:, None]

        theta = descend(self, gradients, start, schedule, table, count, rest, FARTHEST, scaling)
        way = theta - start
        seen = CURVED * float(way[:-1] @ way[:-1]) + float(way[-1] ** 2)
        if scaling is not None:
            seen = float(way @ np.linalg.solve(scaling, way))
        sampled = min(spread.deviation, USUAL) ** 2 * d / count  # what few rows make of noise of the target
        theta = start + kept_part(seen, noise + sampled) * way
        self.set_coefficients(theta[:-1], float(theta[-1]), table)

    def learn_from_moments(self, moments: Moments, table: Table) -> None:
        fitted = moments.solve()
        self.moments_, self.fit_ = moments, fitted
        self.set_coefficients(fitted.coef, fitted.intercept, table)

    def database_blocks(self, columns: int) -> tuple[Block, ...]:
        return (Block(gram_terms(columns + 2)),)

    def learn_from_sums(self, found: NoisyPass, table: Table, spending: Spending) -> None:
        gram = gram_of(found.sums[0], table.columns + 2)
        normal = isinstance(spending, GaussianSpending)
        self.learn_from_moments(Moments.of(gram, found.deviations[0], None, normal), table)

    def inverse_gram(self, rows: Matrix, table: Table, count: float, spending: Spending) -> Matrix:
        """The inverse of the mean of (x, 1)(x, 1)ᵀ, from a noisy Gram matrix with a ridge of the size of the noise of
        all later rounds: what cannot be told from noise is corrected little."""
        norm = math.sqrt(self.norm(table.columns) ** 2 + 1)
        gram, deviation = self.noisy_gram(self.bound_rows(rows, table, norm, 1.0), spending)
        values, vectors = np.linalg.eigh(gram / count)
        ridge = deviation * math.sqrt(len(gram)) / count
        found: Matrix = (vectors / (np.maximum(values, 0.0) + 2 * ridge)) @ vectors.T
        return found

    def chosen_solver(self, n: float, d: int, spending: Spending) -> str:
        """A public choice: it depends on the price and on the number of rows, which is public or noisy."""
        if self.solver != "auto":
            return self.solver
        if isinstance(spending, GaussianSpending):
            return "boosted" if self.gram_noise(n, d, spending) < SCALABLE else "descent"
        return "statistics" if self.gram_noise(n, d, spending) < RELIABLE else "descent"

    def gram_noise(self, n: float, d: int, spending: Spending) -> float:
        """The largest eigenvalue of the noise, about, as a part of n."""
        fold = math.sqrt(2) if spending.fold == 2 else 1.0
        each = fold * (self.norm(d) ** 2 + 2) / spending.amount
        if not isinstance(spending, GaussianSpending):
            each = spending.fold * (d + 2) * (d + 3) / 2 / math.sqrt(3) / spending.amount
        return 2 * math.sqrt(d) * each / n

    def measure(self, X: Matrix, y: Vector, table: Table, spending: Spending) -> Moments:
        """The noisy Gram matrix: the only look at the data."""
        norm = self.norm(X.shape[1])
        short = X * np.minimum(1.0, norm / np.maximum(row_lengths(X), 1e-300))[:, None]
        rows = self.bound_rows(np.column_stack([np.ones(len(X)), short, y]), table, math.sqrt(norm**2 + 2), 1.0)
        public = self.count_share(table) == 0
        count = float(len(X)) if public else None
        return Moments.of(*self.noisy_gram(rows, spending), count, isinstance(spending, GaussianSpending))

    def set_coefficients(self, coef: Vector, intercept: float, table: Table) -> None:
        """From scaled columns and target to the units of the data."""
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        target = Bounds.of(self.y_bounds, 1, None, "y bounds")
        self.scaled_coef_, self.scaled_intercept_ = coef, intercept
        self.coef_ = coef * target.half[0] / bounds.half
        self.intercept_ = float(target.middle[0] + target.half[0] * intercept - self.coef_ @ bounds.middle)

    def coef_intervals(self, confidence: float = 0.95) -> list[tuple[float, float]]:
        """An interval for each least-squares coefficient of the clipped data: what privacy's noise and ridge may do.

        They do not contain the error of sampling people. Only with solver "statistics", and Gaussian noise.
        """
        self.check_fitted()
        checks.number("confidence", confidence, 0.5, 0.9999, allowed="a number from 0.5 to 0.9999")
        if self.fit_ is None or not self.fit_.moments.normal:
            raise InvalidParameter(
                "coefficients have intervals if noise is Gaussian and added to statistics.\n"
                '  found:  another solver, or pure ε\n  do:     give delta= and solver="statistics"'
            )
        unit = np.divide(self.coef_, self.scaled_coef_, out=np.ones_like(self.coef_), where=self.scaled_coef_ != 0)
        half = self.fit_.half_widths(confidence) * np.abs(unit)
        return [(float(c - h), float(c + h)) for c, h in zip(self.coef_, half, strict=True)]

    def predict(self, X: Data) -> Vector:
        rows = self.new_rows(X)
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        scaled = row_products(bounds.scale(rows), self.scaled_coef_[None])[:, 0] + self.scaled_intercept_
        return self.in_target_units(scaled)

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        spending = self.spending()
        if self.chosen_solver(float(n), d, spending) in ("statistics", "boosted"):
            noise = self.gram_noise(float(n), d, spending)
            return min(1.0, noise), "excess squared error, as a part of the target's half range squared"
        schedule = choose_schedule(float(n), d + 1, spending, CLIP, CLIP, LONGEST, TOLERATED)
        spread = schedule.noise(float(n), d + 1, spending)
        return min(1.0, spread**2), "excess squared error, as a part of the target's half range squared"
