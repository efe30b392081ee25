"""Gradient boosting of trees with public splits: each round releases noisy sums of gradients by leaf."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.learn.base import Estimator, Table
from sfumato.learn.binning import measure_quantiles
from sfumato.learn.logistic_regression import probabilities
from sfumato.learn.naive_bayes import class_noise
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.supervised import Classifier, Regressor
from sfumato.learn.tables import Bounds, Data, Matrix, Vector
from sfumato.learn.trees import RandomTree, even_edges

EDGES_SHARE = 0.1  # of the budget, for thresholds at noisy quantiles
EDGES_NOISE = 0.02  # ranks less exact than this: thresholds at equal distances instead


@dataclass(frozen=True, eq=False)
class Boosted:
    """A sum of trees: leaf values of each, one column for each output."""

    trees: list[RandomTree]
    values: list[Matrix]

    def scores(self, X: Matrix, outputs: int) -> Matrix:
        total = np.zeros((len(X), outputs))
        for tree, values in zip(self.trees, self.values, strict=True):
            total += values[tree.leaves(X)]
        return total


def thresholds(estimator: Estimator, X: Matrix, table: Table, n: float, spending: Spending) -> tuple[Matrix, Spending]:
    """Noisy quantiles if they are exact enough for so many rows, else public places; and what is left to spend."""
    share = spending.part(EDGES_SHARE)
    each = share.part(1 / X.shape[1])
    if not isinstance(spending, GaussianSpending) or 8 * each.fold / each.amount / n > EDGES_NOISE:
        return even_edges(X.shape[1]), spending
    return measure_quantiles(estimator, X, table, 15, share), spending.part(1 - EDGES_SHARE)


def boost(
    estimator: Estimator, X: Matrix, goal: Matrix, table: Table, n: float, spending: Spending,
    rounds: int, depth: int, rate: float, link: bool, seed: int,
) -> Boosted:  # fmt: skip
    """Rounds of Newton steps with bounded gradients: a row adds (gradient, 1) to one leaf of each round's tree.

    Leaf values shrink towards 0 as counts approach their noise, and as all sums of a round do. Trees are grown without
    looking at rows.

    Theorem: a row moves one leaf of each round by at most the clipped norm; rounds compose adaptively
        [Dong, Roth & Su 2022, Cor. 3.3; splits as Maddock et al. 2022 choose them]
    """
    edges, rest = thresholds(estimator, X, table, n, spending)
    share, outputs = rest.part(1 / rounds), goal.shape[1]
    rng = np.random.default_rng(seed)  # public: splits are no noise
    norm = math.sqrt(2.0)
    noise = class_noise(norm, 1.0, outputs + 1, share)
    model, total = Boosted([], []), np.zeros(goal.shape)
    for _ in range(rounds):
        tree = RandomTree.grow(depth, edges, rng)
        wrong = (sigmoid_or_softmax(total) if link else total) - goal
        places = tree.leaves(X)
        rows = estimator.bound_rows(np.column_stack([wrong, np.ones(len(X))]), table, norm, 1.0)
        sums = estimator.noisy_sum_by_class(rows, places, tree.leaf_count, share)
        curvature = 0.25 if link else 1.0
        sizes = np.maximum(sums[:, -1:], 0.0) * curvature + 2.0 * noise * rows.rows
        above = np.mean(np.square(sums[:, :-1])) / (noise * rows.rows) ** 2  # 1 where noise is all there is
        trust = max(0.0, 1.0 - 1.0 / max(float(above), 1e-300))
        values = np.clip(-rate * trust * sums[:, :-1] / sizes, -2.0, 2.0)
        total = total + values[places]
        model.trees.append(tree)
        model.values.append(values)
    return model


def sigmoid_or_softmax(scores: Matrix) -> Matrix:
    return probabilities(scores)[:, -scores.shape[1] :]


@dataclass(eq=False, kw_only=True, repr=False)
class Boosting(Estimator):
    """The parameters of both boosted estimators."""

    rounds: int = 30
    depth: int = 3
    learning_rate: float = 0.3
    seed: int = 0

    def check_params(self) -> None:
        super().check_params()
        checks.whole("rounds", self.rounds, 1, 10_000)
        checks.whole("depth", self.depth, 1, 10)
        checks.number("learning_rate", self.learning_rate, 1e-6, 1.0, allowed="a number from 1e-6 to 1")
        checks.whole("seed", self.seed, 0)


@dataclass(eq=False, kw_only=True, repr=False)
class GradientBoostingClassifier(Boosting, Classifier):
    """Log odds of public classes as a sum of small trees.

    Theorem: rounds of leaf sums, each of norm √2 for a row under add/remove, compose [`boost`]
    """

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        labels, kinds = self.labels(table), len(self.class_list())
        goal = (labels == 1)[:, None] * 1.0 if kinds == 2 else (labels[:, None] == np.arange(kinds)) * 1.0
        count, rest = self.count_rows(table, spending)
        self.outputs_ = goal.shape[1]
        self.model_ = boost(self, X, goal, table, count, rest, self.rounds, self.depth, self.learning_rate, True,
                            self.seed)  # fmt: skip

    def predict_proba(self, X: Data) -> Matrix:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        return probabilities(self.model_.scores(scaled, self.outputs_))

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        share = self.spending().part(1 / self.rounds)
        noise = class_noise(math.sqrt(2), 1.0, 2, share) * 2**self.depth / n
        return noise * self.learning_rate * math.sqrt(self.rounds) * 4, "noise of a row's log odds"


@dataclass(eq=False, kw_only=True, repr=False)
class GradientBoostingRegressor(Boosting, Regressor):
    """A number as a sum of small trees.

    Theorem: rounds of leaf sums, each of norm √2 for a row under add/remove, compose [`boost`]
    """

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        goal = self.scaled_target(table)[:, None]
        count, rest = self.count_rows(table, spending)
        self.model_ = boost(self, X, goal, table, count, rest, self.rounds, self.depth, self.learning_rate, False,
                            self.seed)  # fmt: skip

    def predict(self, X: Data) -> Vector:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        target = Bounds.of(self.y_bounds, 1, None, "y bounds")
        found: Vector = target.middle[0] + target.half[0] * np.clip(self.model_.scores(scaled, 1)[:, 0], -1, 1)
        return found

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        share = self.spending().part(1 / self.rounds)
        noise = class_noise(math.sqrt(2), 1.0, 2, share) * 2**self.depth / n
        return noise * self.learning_rate * math.sqrt(
            self.rounds
        ), "noise of a prediction, in half widths of the target"
