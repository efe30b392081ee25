"""Generalised linear models of counts and positive numbers: noisy descent on the deviance, with bounded predictions."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidParameter
from sfumato.learn.base import Table
from sfumato.learn.descent import CURVED, Schedule, choose_schedule, descend, kept_part
from sfumato.learn.row_wise import row_products
from sfumato.learn.spending import Spending
from sfumato.learn.supervised import Regressor
from sfumato.learn.tables import Bounds, Data, Matrix, Vector, read_column
from sfumato.learn.target_spread import Target

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
    default); predictions stay within `y_bounds`. Each gradient is clipped to norm 3. Descent starts at a noisy mean,
    and what cannot be told from noise is drawn towards it.

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
        measured = Target.measure(self, self.scaled_target(table), table, spending)
        count, rest, spread = measured.count, measured.spending, measured.spread
        rows = np.column_stack([X, np.ones(len(X))])

        def gradients(theta: Vector) -> Matrix:
            eta = np.clip(row_products(rows, theta[None])[:, 0], -FAR, FAR)
            wrong = np.exp(eta) - y if self.family == "poisson" else 1.0 - y * np.exp(-eta)
            return rows * wrong[:, None]

        start, mean = np.zeros(rows.shape[1]), self.usual_target(spread.start)
        start[-1] = math.log(mean)
        relative = spread.deviation * target.half[0] / self.unit_of_target / mean  # deviation of a target over its mean
        schedule = self.schedule(count, rows.shape[1], rest)
        noise = schedule.prediction_noise(count, rows.shape[1], rest)
        if not measured.counted or noise > relative**2:
            self.theta_ = start
            self.theta_[-1] = math.log(self.usual_target(measured.mean_alone()))
        else:
            theta = descend(self, gradients, start, schedule, table, count, rest, 2 * FAR)
            way = theta - start
            seen = CURVED * float(way[:-1] @ way[:-1]) + float(way[-1] ** 2)
            self.theta_ = start + kept_part(seen, noise + relative**2 * len(way) / count) * way
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        self.coef_ = self.theta_[:-1] / bounds.half
        self.intercept_ = float(self.theta_[-1] + math.log(self.unit_of_target) - self.coef_ @ bounds.middle)

    def usual_target(self, scaled: float) -> float:
        """A mean in [−1, 1] over its unit: not so near 0, nor so large, that predictions could not reach it."""
        ends = Bounds.of(self.y_bounds, 1, None, "y bounds")
        mean = float(ends.middle[0] + ends.half[0] * scaled) / self.unit_of_target
        return float(np.clip(mean, math.exp(-FAR / 2), math.exp(FAR / 2)))

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
