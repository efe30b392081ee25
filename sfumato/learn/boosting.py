"""Gradient boosting of trees with public splits: each round releases noisy sums of gradients by leaf."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.learn.base import Estimator, Table
from sfumato.learn.binning import measure_quantiles
from sfumato.learn.early_stopping import HELD_BACK, choose_rounds, hold_back, take
from sfumato.learn.logistic_regression import probabilities
from sfumato.learn.naive_bayes import class_noise
from sfumato.learn.row_wise import row_sums
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.supervised import Classifier, Regressor
from sfumato.learn.tables import Bounds, Data, Matrix, Vector
from sfumato.learn.target_spread import Target
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

    def qualities(self, X: Matrix, goal: Matrix, link: bool) -> Matrix:
        """How well rows are predicted by no tree, the first one, the first two, …: from 0 to 1, each row by itself."""
        total, found = np.zeros(goal.shape), []
        for values, tree in [(None, None), *zip(self.values, self.trees, strict=True)]:
            total = total if tree is None or values is None else total + values[tree.leaves(X)]
            if link:
                says = sigmoid_or_softmax(total)
                found.append(row_sums(np.abs(1 - goal - says) if goal.shape[1] == 1 else goal * says))
            else:
                found.append(1 - np.minimum((total - goal)[:, 0] ** 2, 1.0))
        return np.column_stack(found)


def thresholds(estimator: Estimator, X: Matrix, table: Table, n: float, spending: Spending) -> tuple[Matrix, Spending]:
    """Noisy quantiles if they are exact enough for so many rows, else public places; and what is left to spend."""
    share = spending.part(EDGES_SHARE)
    each = share.part(1 / X.shape[1])
    if not isinstance(spending, GaussianSpending) or 8 * each.fold / each.amount / n > EDGES_NOISE:
        return even_edges(X.shape[1]), spending
    return measure_quantiles(estimator, X, table, 15, share), spending.part(1 - EDGES_SHARE)


@dataclass(frozen=True)
class Shape:
    """How many trees, how deep, and how far each goes; for noise of a prediction up to `most`. All of it is public."""

    rounds: int
    depth: int
    rate: float
    most: float = math.inf

    def noise(self, n: float, outputs: int, spending: Spending) -> float:
        """Of a prediction, all rounds together, in half widths of the target."""
        each = class_noise(math.sqrt(2.0), 1.0, outputs + 1, spending.part(1 / self.rounds))
        return each * math.sqrt(self.rounds) * self.rate * float(1 << self.depth) / n


SHAPES = (
    Shape(1, 1, 1.0),
    Shape(2, 2, 1.0, 0.15),
    Shape(4, 2, 1.0, 0.25),
    Shape(8, 2, 0.6, 0.3),
    Shape(15, 3, 0.4, 0.42),
    Shape(30, 3, 0.3, 0.3),
    Shape(60, 4, 0.2, 0.3),
)
MORE_FOR_CLASSES = 1.5  # log odds bear more noise


def boost(
    estimator: "Boosting", X: Matrix, goal: Matrix, table: Table, n: float, spending: Spending, link: bool
) -> Boosted:
    """Rounds of Newton steps with bounded gradients: a row adds (gradient, 1) to one leaf of each round's tree.

    Leaf values shrink towards 0 as counts approach their noise, and as all sums of a round do. Trees are grown without
    looking at rows. With early stopping, rows that were held back choose how many trees are kept.

    Theorem: a row moves one leaf of each round by at most the clipped norm; rounds compose adaptively
        [Dong, Roth & Su 2022, Cor. 3.3; splits as Maddock et al. 2022 choose them]
    """
    edges, rest = thresholds(estimator, X, table, n, spending)
    if not estimator.early_stopping:
        return add_trees(estimator, X, goal, table, n, rest, edges, link)
    later = hold_back(table)
    model = add_trees(
        estimator, X[~later], goal[~later], take(table, ~later), n * (1 - 1 / HELD_BACK), rest, edges, link
    )
    quality = model.qualities(X[later], goal[later], link)
    kept = choose_rounds(estimator, quality, take(table, later), rest)
    return Boosted(model.trees[:kept], model.values[:kept])


def add_trees(
    estimator: "Boosting", X: Matrix, goal: Matrix, table: Table, n: float, spending: Spending, edges: Matrix,
    link: bool,
) -> Boosted:  # fmt: skip
    """All rounds, each of an equal share."""
    shape = estimator.shape(n, goal.shape[1], spending, link)
    share, outputs = spending.part(1 / shape.rounds), goal.shape[1]
    rng = np.random.default_rng(estimator.seed)  # public: splits are no noise
    norm = math.sqrt(2.0)
    noise = class_noise(norm, 1.0, outputs + 1, share)
    model, total = Boosted([], []), np.zeros(goal.shape)
    for _ in range(shape.rounds):
        tree = RandomTree.grow(shape.depth, edges, rng)
        wrong = (sigmoid_or_softmax(total) if link else total) - goal
        places = tree.leaves(X)
        rows = estimator.bound_rows(np.column_stack([wrong, np.ones(len(X))]), table, norm, 1.0)
        sums = estimator.noisy_sum_by_class(rows, places, tree.leaf_count, share)
        curvature = 0.25 if link else 1.0
        sizes = np.maximum(sums[:, -1:], 0.0) * curvature + 2.0 * noise * rows.rows
        above = np.mean(np.square(sums[:, :-1])) / (noise * rows.rows) ** 2  # 1 where noise is all there is
        trust = max(0.0, 1.0 - 1.0 / max(float(above), 1e-300))
        values = np.clip(-shape.rate * trust * sums[:, :-1] / sizes, -2.0, 2.0)
        total = total + values[places]
        model.trees.append(tree)
        model.values.append(values)
    return model


def sigmoid_or_softmax(scores: Matrix) -> Matrix:
    return probabilities(scores)[:, -scores.shape[1] :]


@dataclass(eq=False, kw_only=True, repr=False)
class Boosting(Estimator):
    """The parameters of both boosted estimators. Those that are None follow from the price and the (noisy) number of
    rows: the more noise there is, the fewer and smaller are the trees."""

    rounds: int | None = None
    depth: int | None = None
    learning_rate: float | None = None
    early_stopping: bool = False
    seed: int = 0

    def shape(self, n: float, outputs: int, spending: Spending, link: bool) -> Shape:
        more = MORE_FOR_CLASSES if link else self.bearable()
        found = [one for one in SHAPES if one.noise(n, outputs, spending) <= more * one.most][-1]
        rate = found.rate if self.learning_rate is None else float(self.learning_rate)
        return Shape(self.rounds or found.rounds, self.depth or found.depth, rate)

    def bearable(self) -> float:
        """How much noise targets of this spread bear, as a part of what usual ones do."""
        return 1.0

    def check_params(self) -> None:
        super().check_params()
        checks.whole("rounds", 1 if self.rounds is None else self.rounds, 1, 10_000)
        checks.whole("depth", 1 if self.depth is None else self.depth, 1, 10)
        rate = 1.0 if self.learning_rate is None else self.learning_rate
        checks.number("learning_rate", rate, 1e-6, 1.0, allowed="a number from 1e-6 to 1")
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
        self.model_ = boost(self, X, goal, table, count, rest, link=True)

    def predict_proba(self, X: Data) -> Matrix:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        return probabilities(self.model_.scores(scaled, self.outputs_))

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        spending, kinds = self.spending(), len(self.class_list())
        outputs = 1 if kinds == 2 else kinds
        shape = self.shape(float(n), outputs, spending, link=True)
        return 4 * shape.noise(float(n), outputs, spending), "noise of a row's log odds"


@dataclass(eq=False, kw_only=True, repr=False)
class GradientBoostingRegressor(Boosting, Regressor):
    """A number as a sum of small trees.

    Theorem: rounds of leaf sums, each of norm √2 for a row under add/remove, compose [`boost`]
    """

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        y = self.scaled_target(table)
        target = Target.measure(self, y, table, spending)
        self.spread_, count, rest = target.spread, target.count, target.spending
        self.start_ = self.spread_.start
        if not target.counted or self.shape(count, 1, rest, link=False).noise(count, 1, rest) > self.spread_.deviation:
            self.start_, self.model_ = target.mean_alone(), Boosted([], [])
            return
        self.model_ = boost(self, X, (y - self.start_)[:, None], table, count, rest, link=False)

    def predict(self, X: Data) -> Vector:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        return self.in_target_units(self.start_ + self.model_.scores(scaled, 1)[:, 0])

    def bearable(self) -> float:
        spread = getattr(self, "spread_", None)
        return 1.0 if spread is None else float(spread.bearable)

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        spending = self.spending()
        noise = self.shape(float(n), 1, spending, link=False).noise(float(n), 1, spending)
        return noise, "noise of a prediction, in half widths of the target"
