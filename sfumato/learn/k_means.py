"""k-means: noisy means of many public cells are clustered, then refined by rounds of noisy sums and counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.learn.base import Estimator, Table
from sfumato.learn.naive_bayes import class_noise
from sfumato.learn.row_wise import row_products
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.tables import Bounds, BoundsLike, Data, Matrix, Vector

COARSE_SHARE = 0.5  # of the budget, for the first look
STARTS = 5
NORM = 0.4  # mean of x² over columns in [−1, 1]: about its usual size


def spread_points(count: int, columns: int, seed: int) -> Matrix:
    """Points in [−0.7, 0.7]^d, each far from the others: public, the same for any data."""
    rng = np.random.default_rng(seed)  # no noise: a public choice
    cloud = rng.uniform(-0.7, 0.7, (max(50, 20 * count), columns))
    found = [cloud[0]]
    while len(found) < count:
        distance = np.min([np.sum((cloud - point) ** 2, axis=1) for point in found], axis=0)
        found.append(cloud[int(np.argmax(distance))])
    return np.array(found)


def cluster_cells(means: Matrix, weights: Vector, count: int, seed: int) -> Matrix:
    """k-means of released cells, weighted by released counts: the best of several starts. Post-processing."""
    rng, mass = np.random.default_rng(seed), np.maximum(weights, 1e-9)
    best, least = means[:count], math.inf
    for _ in range(STARTS):
        chosen = [int(rng.choice(len(means), p=mass / mass.sum()))]
        for _ in range(count - 1):
            away = np.min(((means[:, None] - means[chosen]) ** 2).sum(axis=2), axis=1) * mass + 1e-12
            chosen.append(int(rng.choice(len(means), p=away / away.sum())))
        centres = means[chosen]
        for _ in range(10):
            place = nearest(means, centres)
            centres = np.array(
                [np.average(means[place == k], axis=0, weights=mass[place == k]) if (place == k).any() else centres[k]
                 for k in range(count)]
            )  # fmt: skip
        cost = float((np.min(((means[:, None] - centres) ** 2).sum(axis=2), axis=1) * mass).sum())
        best, least = (centres, cost) if cost < least else (best, least)
    return best


def nearest(rows: Matrix, centres: Matrix) -> NDArray[np.int64]:
    scores = row_products(rows, centres) - np.sum(centres**2, axis=1) / 2
    found: NDArray[np.int64] = np.argmax(scores, axis=1).astype(np.int64)
    return found


@dataclass(eq=False, kw_only=True, repr=False)
class KMeans(Estimator):
    """Centres of `n_clusters` groups of rows; `bounds` are public, columns are scaled to [−1, 1].

    First a row adds (x, 1) to the nearest of several public points for each cluster. The noisy means of these cells,
    weighted by their noisy counts, are clustered without looking at rows again. The rest of the budget refines the
    centres in `rounds` rounds of Lloyd's algorithm; a centre with few rows stays where it is in part.

    Theorem: a row is in one cell or cluster and has norm at most √(d + 1); rounds compose
        [Su, Cao, Li, Bertino & Jin 2016]
    """

    n_clusters: int = 8
    bounds: BoundsLike | None = None
    rounds: int | None = None
    seed: int = 0

    def check_params(self) -> None:
        super().check_params()
        checks.whole("n_clusters", self.n_clusters, 1, 1000)
        checks.whole("rounds", 1 if self.rounds is None else self.rounds, 1, 1000)

    def check_columns(self, columns: int, names: Sequence[str] | None) -> None:
        Bounds.of(self.bounds, columns, names, "bounds")

    def fit(self, X: Data, y: object = None, *, units: object = None) -> Self:
        return super().fit(X, None, units=units)

    def learn(self, table: Table, spending: Spending) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        X = bounds.scale(table.X)
        count, rest = self.count_rows(table, spending)
        norm = (
            math.sqrt(NORM * table.columns + 1) if isinstance(rest, GaussianSpending) else math.sqrt(table.columns + 1)
        )
        rows = self.bound_rows(np.column_stack([X, np.ones(len(X))]), table, norm, 1.0)
        first, later = rest.part(COARSE_SHARE), rest.part(1 - COARSE_SHARE)
        noise = class_noise(norm, 1.0, table.columns + 1, first) * rows.rows
        points = spread_points(self.cell_count(count, noise), table.columns, self.seed)
        cells = self.noisy_sum_by_class(rows, nearest(X, points), len(points), first)
        centres = cluster_cells(self.moved(points, cells, noise), cells[:, -1] - noise, self.n_clusters, self.seed)
        rounds = self.chosen_rounds(count, table.columns, later)
        share = later.part(1 / rounds)
        noise = class_noise(norm, 1.0, table.columns + 1, share) * rows.rows
        for _ in range(rounds):
            sums = self.noisy_sum_by_class(rows, nearest(X, centres), len(centres), share)
            centres = self.moved(centres, sums, noise)
        self.scaled_centres_ = centres
        self.cluster_centers_ = bounds.middle + bounds.half * centres

    def cell_count(self, n: float, noise: float) -> int:
        """From two to eight public points for each cluster: so many that a cell holds more rows than noise."""
        return int(np.clip(n / (4 * noise), 2 * self.n_clusters, 8 * self.n_clusters))

    def moved(self, centres: Matrix, sums: Matrix, noise: float) -> Matrix:
        """The noisy means; where noise is as large as the count, in part the centre before."""
        sizes = np.maximum(sums[:, -1:], noise)
        means = np.clip(sums[:, :-1] / sizes, -1, 1)
        trust = np.clip(1 - (noise / sizes) ** 2, 0.0, 1.0)
        found: Matrix = trust * means + (1 - trust) * centres
        return found

    def chosen_rounds(self, n: float, d: int, spending: Spending) -> int:
        """As many as leave the noise of a centre below a tenth, from 1 to 5."""
        if self.rounds is not None:
            return self.rounds
        found = 5
        while found > 1 and self.centre_noise(n, d, spending.part(1 / found)) > 0.1:
            found -= 1
        return found

    def centre_noise(self, n: float, d: int, spending: Spending) -> float:
        return class_noise(math.sqrt(d + 1), 1.0, d + 1, spending) * self.n_clusters / n

    def predict(self, X: Data) -> NDArray[np.int64]:
        """The nearest centre of each row, columns scaled to [−1, 1]."""
        rows = self.new_rows(X)
        bounds = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds")
        return nearest(bounds.scale(rows), self.scaled_centres_)

    def fit_predict(self, X: Data, y: object = None, *, units: object = None) -> NDArray[np.int64]:
        """Fit, which costs, then the nearest centre of each of the same rows, which says something about that row."""
        return self.fit(X, units=units).predict(X)

    def public_inertia(self, X: Data) -> float:
        """Σ of squared distances to the nearest centre, in the units of public data."""
        rows = self.new_rows(X)
        away: Vector = np.min(((rows[:, None, :] - self.cluster_centers_) ** 2).sum(axis=2), axis=1)
        return float(away.sum())

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        spending = self.spending()
        rounds = self.chosen_rounds(float(n), d, spending.part(1 - COARSE_SHARE))
        return self.centre_noise(
            float(n), d, spending.part((1 - COARSE_SHARE) / rounds)
        ), "error of a centre, in half widths"
