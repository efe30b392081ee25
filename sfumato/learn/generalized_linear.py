"""Generalised linear models of counts and positive numbers: noisy descent on the deviance, with bounded predictions."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.learn.base import Table
from sfumato.learn.descent import Schedule, choose_schedule, descend
from sfumato.learn.row_wise import row_products
from sfumato.learn.spending import Spending
from sfumato.learn.supervised import Regressor
from sfumato.learn.tables import Bounds, Data, Matrix, Vector, read_column

CLIP = 3.0
LONGEST = 100.0
TOLERATED = 1.0
PACE = 0.5
FAR = 6.0  # the largest logarithm of a prediction over its unit, either way
FAMILIES = ("poisson", "gamma")


@dataclass(eq=False, kw_only=True, repr=False)
class GeneralizedLinearRegression(Regressor):
    """E y = unit·e^{x·θ} for counts (`family="poisson"`) or positive numbers (`"gamma"`), columns scaled to [−1, 1].

    Targets are clipped to `y_bounds` and divided by `unit`, a public number of the size of a usual target (1 by
    default); predictions stay within `y_bounds`. Each gradient is clipped to norm 3.

    Theorem: T clipped gradient steps cost the budget [`descend`; Dong, Roth & Su 2022, Cor. 3.3]
    """

    family: str = "poisson"
    unit_of_target: float = 1.0

    def check_params(self) -> None:
        super().check_params()
        if self.family not in FAMILIES:
            raise InvalidParameter(
                f"family must be one of {', '.join(FAMILIES)}.\n  found:  {self.family!r}\n  do:     give one of these"
            )
        if Bounds.of(self.y_bounds, 1, None, "y bounds").low[0] < 0 or not 0 < self.unit_of_target < 1e100:
            raise InvalidParameter(
                "targets of these families are not negative, and their unit is positive.\n"
                "  found:  y_bounds below 0, or such a unit\n  do:     give y_bounds=(0, most)"
            )

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        target = Bounds.of(self.y_bounds, 1, None, "y bounds")
        y = np.clip(np.nan_to_num(read_column(table.y), nan=target.middle[0]), target.low[0], target.high[0])
        y = y / self.unit_of_target
        count, rest = self.count_rows(table, spending)
        rows = np.column_stack([X, np.ones(len(X))])

        def gradients(theta: Vector) -> Matrix:
            eta = np.clip(row_products(rows, theta[None])[:, 0], -FAR, FAR)
            wrong = np.exp(eta) - y if self.family == "poisson" else 1.0 - y * np.exp(-eta)
            return rows * wrong[:, None]

        schedule = self.schedule(count, rows.shape[1], rest)
        self.theta_ = descend(self, gradients, np.zeros(rows.shape[1]), schedule, table, count, rest, 2 * FAR)
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        self.coef_ = self.theta_[:-1] / bounds.half
        self.intercept_ = float(self.theta_[-1] + math.log(self.unit_of_target) - self.coef_ @ bounds.middle)

    def schedule(self, n: float, d: int, spending: Spending) -> Schedule:
        return choose_schedule(n, d, spending, CLIP, CLIP, LONGEST, TOLERATED, PACE)

    def predict(self, X: Data) -> Vector:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        eta = row_products(np.column_stack([scaled, np.ones(len(scaled))]), self.theta_[None])[:, 0]
        eta = np.clip(eta, -FAR, FAR)
        target = Bounds.of(self.y_bounds, 1, None, "y bounds")
        found: Vector = np.clip(self.unit_of_target * np.exp(eta), target.low[0], target.high[0])
        return found

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        spending = self.spending()
        schedule = self.schedule(float(n), d + 1, spending)
        return schedule.noise(float(n), d + 1, spending), "relative error of a prediction"
