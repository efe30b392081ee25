"""Logistic and softmax regression: noisy descent on standardised columns, from a start at noisy class means."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learn.base import Table
from sfumato.learn.descent import Schedule, choose_schedule, descend, joint_deviation
from sfumato.learn.naive_bayes import shrunk_means
from sfumato.learn.row_wise import row_products, row_sums
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.standard_scaler import Spreads, measure_spreads, spread_noise
from sfumato.learn.supervised import Classifier
from sfumato.learn.tables import Bounds, Data, Matrix, Vector
from sfumato.learn.tilted_minimum import PureTilt

SPREAD_SHARE = 0.15  # of the budget, for means and deviations of columns
PURE_NOISE = 0.02  # more than this under pure ε: the nearest class mean instead of descent
SPREAD_NOISE = 0.1  # more noise than this on a mean, in half widths: columns are left as they are
CLIP = 1.0  # what one row may add to a gradient; standardised rows have length about 1
TOLERATED = 10.0  # length of the noise of all coefficients of such rows; under pure ε, a tenth
BOX = 1.0  # and to one coordinate of it, times √d: what matters under pure ε
LONGEST = 200.0
PACE = 4.0
CURVATURE_SHARE = 0.15  # of the budget, for the Gram matrix of standardised rows
CURVATURE_NORM = 2.0
NEWTON_STEPS = 30
NEWTON_CLIP = 1.0
NEWTON_NOISE = 8.0  # length of the noise up to which steps are scaled by the curvature
TILT_CURVATURE = 0.015  # of a row of usual columns: a quarter of their variance
TILT_NOISE = 0.27  # noise of a coefficient of columns in [−1, 1], up to which the objective is tilted
STEEP = 4.0  # 1/variance of columns in [−1, 1] within a class, where it is not measured


@dataclass(eq=False, kw_only=True, repr=False)
class LogisticRegression(Classifier):
    """Linear log odds of two or more public classes.

    Where rows suffice, a part of the budget measures means and deviations of the columns. With Gaussian noise the rest
    pays for descent with clipped gradients and averaged iterates. Under pure ε it pays for a random linear term in the
    objective (objective perturbation) if there are two classes and many rows; else for noisy class sums, each row being
    in one class, and the model is that of the nearest class mean.

    Theorem: T clipped gradient steps with Gaussian noise are μ-GDP together [`descend`; Dong, Roth & Su 2022, Cor. 3.3]
    Theorem: the minimum of a tilted objective is ε-DP [`PureTilt`; Chaudhuri, Monteleoni & Sarwate 2011]
    Theorem: class sums on disjoint rows cost the largest of them [McSherry 2009, Thm 4]
    """

    def learn(self, table: Table, spending: Spending) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        X = bounds.scale(table.X)
        labels, d, kinds = self.labels(table), table.columns, len(self.class_list())
        count, rest = self.count_rows(table, spending)
        noise = spread_noise(d, count, rest.part(SPREAD_SHARE))
        if not isinstance(spending, GaussianSpending):
            several = 1 if table.weights is None else self.rows_per_unit
            tilt = PureTilt(rest.amount / rest.fold, d + 1, several)
            tilted = kinds == 2 and is_clear(tilt, count)
            if tilted or noise > PURE_NOISE:
                self.spreads_ = Spreads(np.zeros(d), np.ones(d))
                way = (
                    self.tilted(X, labels, table, tilt) if tilted else self.nearest_means(X, labels, kinds, table, rest)
                )
                self.set_coefficients(way, bounds)
                return
        if noise < SPREAD_NOISE:
            spreads = measure_spreads(self, X, table, rest.part(SPREAD_SHARE))
            rest = rest.part(1 - SPREAD_SHARE)
        else:
            spreads = Spreads(np.zeros(d), np.full(d, UNKNOWN))
        self.spreads_ = spreads
        rows = self.features(X)
        rows[labels < 0] = 0.0
        scaling = None
        if self.newton_noise(count, kinds, d, rest) < NEWTON_NOISE:
            scaling = self.inverse_curvature(rows, kinds, table, count, rest.part(CURVATURE_SHARE))
            rest = rest.part(1 - CURVATURE_SHARE)
        theta = self.descent(rows, labels, kinds, table, count, rest, scaling)
        self.set_coefficients(theta.reshape(-1, d + 1), bounds)

    def nearest_means(
        self, X: Matrix, labels: NDArray[np.int64], kinds: int, table: Table, spending: Spending
    ) -> Matrix:
        """The log odds of classes with these noisy means and one spread: linear in x.

        The squared length of a noisy mean is too long by what noise adds on average, which is public and taken off.
        """
        d = X.shape[1]
        rows = self.bound_rows(np.column_stack([X, np.ones(len(X))]), table, math.sqrt(d + 1), 1.0)
        sums = self.noisy_sum_by_class(rows, labels, kinds, spending)
        noise = block_noise(d + 1, spending) * rows.rows
        sizes = np.maximum(sums[:, -1], noise)
        means, keep = shrunk_means(sums[:, :-1], sizes[:, None], noise)
        added = d * (keep[:, 0] * noise / sizes) ** 2
        lengths = np.maximum(np.sum(means**2, axis=1) - added, 0.0)
        prior = np.log(sizes / sizes.sum())
        theta = np.column_stack([STEEP * means * math.sqrt(d), prior - STEEP * lengths / 2])
        return theta if kinds > 2 else theta[1:] - theta[:1]

    def tilted(self, X: Matrix, labels: NDArray[np.int64], table: Table, tilt: PureTilt) -> Matrix:
        """Objective perturbation of two classes; about replaced rows each of both moves has half of ε."""
        weights = np.ones(len(X)) if table.weights is None else table.weights.weights * (1 - 1e-12)
        signed = np.column_stack([X, np.ones(len(X))]) * np.where(labels == 1, 1.0, -1.0)[:, None]
        theta = tilt.release(signed[labels >= 0], weights[labels >= 0])[None]
        theta[:, :-1] *= math.sqrt(X.shape[1])  # as features are scaled
        return theta

    def features(self, X: Matrix) -> Matrix:
        """Standardised, of length about 1, with a constant column."""
        rows = self.spreads_.standardise(X) / math.sqrt(X.shape[1])
        return np.column_stack([rows, np.ones(len(rows))])

    def newton_noise(self, n: float, kinds: int, d: int, spending: Spending) -> float:
        """The length of the noise of all coefficients if steps are scaled by a curvature of about 1/(4d); and whether
        that can be measured at all."""
        if not isinstance(spending, GaussianSpending):
            return math.inf
        width = 1 if kinds == 2 else kinds
        steps = CLIP * spending.fold * math.sqrt(NEWTON_STEPS) / (spending.amount * n)
        gram = 2 * CURVATURE_NORM**2 / (spending.part(CURVATURE_SHARE).amount * n) * math.sqrt(d)
        return math.inf if gram > 0.5 / d else steps * 4 * d * math.sqrt(width * (d + 1))

    def inverse_curvature(self, rows: Matrix, kinds: int, table: Table, n: float, spending: Spending) -> Matrix:
        """The inverse of an upper bound of the mean curvature, from a noisy Gram matrix of the rows.

        Theorem: the curvature of the logistic loss is at most XᵀX/4, of the softmax loss at most XᵀX/2 for each class,
            so that no step overshoots [Böhning 1992]
        """
        gram, deviation = self.noisy_gram(self.bound_rows(rows, table, CURVATURE_NORM), spending)
        values, vectors = np.linalg.eigh(gram / n)
        ridge = deviation * math.sqrt(len(gram)) / n
        most = np.maximum(values, 0.0) + 2 * ridge
        inverse: Matrix = (vectors / most) @ vectors.T * (4.0 if kinds == 2 else 2.0)
        return inverse if kinds == 2 else np.asarray(np.kron(np.eye(kinds), inverse), np.float64)

    def descent(
        self, rows: Matrix, labels: NDArray[np.int64], kinds: int, table: Table, n: float, spending: Spending,
        scaling: Matrix | None,
    ) -> Vector:  # fmt: skip
        """Averaged iterates; for two classes one vector of coefficients, else one for each class."""
        width = 1 if kinds == 2 else kinds
        goal = (labels == 1)[:, None] * 1.0 if kinds == 2 else (labels[:, None] == np.arange(kinds)) * 1.0

        def gradients(theta: Vector) -> Matrix:
            wrong = probabilities(row_products(rows, theta.reshape(width, -1)))[:, -width:] - goal
            found: Matrix = (wrong[:, :, None] * rows[:, None, :]).reshape(len(rows), width * rows.shape[1])
            return found

        size = width * rows.shape[1]
        schedule = self.schedule(n, width, rows.shape[1], spending)
        if scaling is not None:
            schedule = Schedule(NEWTON_STEPS, 1.0, NEWTON_CLIP, NEWTON_CLIP)
        return descend(self, gradients, np.zeros(size), schedule, table, n, spending, scaling=scaling)

    def schedule(self, n: float, width: int, d: int, spending: Spending) -> Schedule:
        tolerated = TOLERATED if isinstance(spending, GaussianSpending) else TOLERATED / 10
        return choose_schedule(n, width * d, spending, CLIP, BOX / math.sqrt(d), LONGEST, tolerated, PACE)

    def set_coefficients(self, theta: Matrix, bounds: Bounds) -> None:
        """For standardised features, `theta_`; for the columns themselves, `coef_` and `intercept_`."""
        unit = self.spreads_.deviation * math.sqrt(len(bounds.half)) * bounds.half
        self.theta_, self.coef_ = theta, theta[:, :-1] / unit
        self.intercept_ = theta[:, -1] - self.coef_ @ (bounds.middle + bounds.half * self.spreads_.mean)

    def predict_proba(self, X: Data) -> Matrix:
        rows = self.new_rows(X)
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        return probabilities(row_products(self.features(bounds.scale(rows)), self.theta_))

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        width = 1 if len(self.class_list()) == 2 else len(self.class_list())
        spending = self.spending().part(1 - SPREAD_SHARE)
        schedule = self.schedule(float(n), width, d + 1, spending)
        noise = schedule.noise(float(n), width * (d + 1), spending)
        return noise / math.sqrt(d + 1), "noise of a row's log odds"


def is_clear(tilt: PureTilt, n: float) -> bool:
    """Is the noise of a coefficient small for so many rows of usual columns? The objective is tilted then."""
    return tilt.deviation / (n * TILT_CURVATURE + tilt.ridge) < TILT_NOISE


UNKNOWN = 0.4  # deviation of a column in [−1, 1] where it is not measured


def block_noise(d: int, spending: Spending) -> float:
    """The deviation of the noise of a class sum of d columns in [−1, 1] under pure ε."""
    return joint_deviation(d) * spending.fold / spending.amount


def probabilities(logits: Matrix) -> Matrix:
    """Of each class; one column of logits means two classes."""
    if logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Matrix = powers / row_sums(powers)[:, None]
    return found
