"""Naive Bayes: noisy sums of each class, made sceptical by what is known of their noise."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.learn.base import Table
from sfumato.learn.database_pass import NoisyPass, moment_terms
from sfumato.learn.row_wise import row_products, row_sums
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.supervised import Classifier
from sfumato.learn.tables import Bounds, Data, Matrix
from sfumato.sql.emit.lattice_rows import Block, ByLabel

NORM = 0.3  # mean of x² + x⁴ over columns in [−1, 1]: about its usual size
USUAL = 0.1  # variance of a column within a class, where it is not measured
WORTHWHILE = 0.1  # noise of a class mean up to which variances are measured
LEAST_KEPT = 0.2
PRIOR = 0.05  # how much variances of columns in [−1, 1] differ between classes and columns, before data are seen


def class_noise(norm: float, box: float, columns: int, spending: Spending) -> float:
    """The deviation of the noise of a class sum: rows have this norm, and entries up to `box`."""
    if isinstance(spending, GaussianSpending):
        return norm * spending.fold / spending.amount
    return (columns + 1) / math.sqrt(3) * box * spending.fold / spending.amount


def shrunk_means(sums: Matrix, sizes: Matrix, noise: float) -> tuple[Matrix, Matrix]:
    """Noisy means of classes, drawn towards that of all rows as far as their distance may be noise; and how much of
    the distance is kept. A class that is rare is then not predicted because of noise. Some distance is always kept:
    where classes are equally large, even weak evidence tells them apart.

    Theorem: the positive part of 1 − noise/|distance|² [James & Stein 1961; Baranchik 1964]
    """
    whole = np.clip(sums.sum(axis=0) / sizes.sum(), -1, 1)
    away = np.clip(sums / sizes, -1, 1) - whole
    energy = np.mean(away**2, axis=1, keepdims=True)
    keep: Matrix = np.maximum(LEAST_KEPT, 1.0 - (noise / sizes) ** 2 / np.maximum(energy, 1e-300))
    return whole + keep * away, keep


def moments_norm(d: int, squares: bool, spending: Spending) -> float:
    """The norm to which rows (x, x², 1) or (x, 1) are clipped: few rows of real tables are longer.

    Clipping scales all of a row, so that quotients of sums stay weighted means. Under pure ε only the box matters.
    """
    if not isinstance(spending, GaussianSpending):
        return math.sqrt((2 if squares else 1) * d + 1)
    return math.sqrt(NORM * d + 1)


@dataclass(eq=False, kw_only=True, repr=False)
class GaussianNB(Classifier):
    """Each column normal within a class, independently of the others.

    The sums of (x, x², 1) of each class get noise; columns are scaled to [−1, 1]. Variances are drawn towards
    their mean over classes and columns as far as noise demands, and the noise of a mean is added to its variance.

    Theorem: a row is in one class and is clipped to a public norm; under pure ε classes are disjoint parts of the data
        [`BoundedRows`; McSherry 2009, Thm 4]
    """

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        labels, kinds, d = self.labels(table), len(self.class_list()), table.columns
        count, rest = self.count_rows(table, spending)
        squares = self.measures_squares(count, d, rest)
        norm = moments_norm(d, squares, rest)
        parts = [X, X**2, np.ones((len(X), 1))] if squares else [X, np.ones((len(X), 1))]
        rows = self.bound_rows(np.column_stack(parts), table, norm, 1.0)
        sums = self.noisy_sum_by_class(rows, labels, kinds, rest)
        self.learn_from_class_sums(sums, d, squares, class_noise(norm, 1.0, sums.shape[1], rest) * rows.rows)

    def database_blocks(self, columns: int) -> tuple[Block, ...]:
        return (Block(moment_terms(columns), ByLabel(), len(self.class_list())),)

    def learn_from_sums(self, found: NoisyPass, table: Table, spending: Spending) -> None:
        self.learn_from_class_sums(found.sums[0], table.columns, True, found.deviations[0])

    def learn_from_class_sums(self, sums: Matrix, d: int, squares: bool, noise: float) -> None:
        """Post-processing of the noisy sums of (x, 1) or (x, x², 1) of each class."""
        sizes = np.maximum(sums[:, -1:], noise)
        mean, keep = shrunk_means(sums[:, :d], sizes, noise)
        self.theta_ = mean
        error = noise / sizes  # of a mean
        usual, trust = USUAL, np.zeros_like(error)
        variance = np.full(mean.shape, USUAL)
        if squares:  # a noisy mean's square is too large by error²
            own = np.clip(sums[:, :d] / sizes, -1, 1)
            variance = np.clip(np.clip(sums[:, d:-1] / sizes, 0, 1) - own**2 + error**2, 0.0, 1.0)
            trust = PRIOR**2 / (PRIOR**2 + error**2)
            weight = trust * sizes
            usual = float(np.clip(np.sum(weight * variance) / (np.sum(weight) * d), 0.01, 0.4))
        alone = np.clip(trust * variance + (1 - trust) * usual, 0.002, 1.0)
        own_spread = alone + error**2
        same = np.sum(sizes * own_spread, axis=0) / np.sum(sizes)
        sure = (keep - LEAST_KEPT) / (1 - LEAST_KEPT)  # where means tell nothing apart, spreads must not, either
        self.var_ = sure * own_spread + (1 - sure) * same
        self.class_prior_ = (sizes / sizes.sum())[:, 0]

    def measures_squares(self, n: float, d: int, spending: Spending) -> bool:
        """Variances are measured if there is little noise for so many rows; else one usual variance is taken."""
        noise = class_noise(moments_norm(d, True, spending), 1.0, 2 * d + 1, spending)
        return noise * len(self.class_list()) / n < WORTHWHILE

    def predict_proba(self, X: Data) -> Matrix:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        away = [
            row_sums((scaled - mean) ** 2 / var + np.log(var)) for mean, var in zip(self.theta_, self.var_, strict=True)
        ]
        return normalised(np.log(self.class_prior_) - np.column_stack(away) / 2)

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        squares = self.measures_squares(float(n), d, self.spending())
        columns = (2 if squares else 1) * d + 1
        noise = class_noise(moments_norm(d, squares, self.spending()), 1.0, columns, self.spending())
        return noise * len(self.class_list()) / n, "error of a class mean, in half widths of the bounds"


@dataclass(eq=False, kw_only=True, repr=False)
class MultinomialNB(Classifier):
    """Counts (of words, say) whose shares depend on the class. `most_count` is the longest row that counts fully.

    Rows of counts below 0 or NaN count as 0. Rows are scaled to L1 norm `most_count`, so a row adds at most that to the
    sums of its class; no bounds of columns are needed.

    Theorem: the class sums have L1 and L2 sensitivity `most_count`, and the class counts 1 [one row is in one class]
    """

    most_count: float | None = None
    alpha: float = 1.0

    def check_params(self) -> None:
        super().check_params()
        checks.number("most_count", self.most_count or 0.0, 1e-6, 1e9, allowed="a public number such as 100")
        checks.number("alpha", self.alpha, 1e-6, 1e6, allowed="a number from 1e-6 to 1e6")

    def check_columns(self, columns: int, names: object) -> None:
        return

    def learn(self, table: Table, spending: Spending) -> None:
        labels, kinds, most = self.labels(table), len(self.class_list()), float(self.most_count or 1.0)
        with np.errstate(over="ignore"):
            counts = np.clip(np.nan_to_num(table.X, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1e100)
            length = np.maximum(row_sums(counts)[:, None], most)
        shares = counts / length  # of L1 norm at most 1
        rows = self.bound_rows(np.column_stack([shares, np.ones(len(shares))]) / math.sqrt(2), table, 1.0)
        sums = self.noisy_sum_by_class(rows, labels, kinds, spending) * math.sqrt(2)
        sizes = np.maximum(sums[:, -1], 1.0)
        words = np.maximum(sums[:, :-1] * most, 0.0) + self.alpha
        self.feature_log_prob_ = np.log(words / words.sum(axis=1, keepdims=True))
        self.class_prior_ = sizes / sizes.sum()

    def predict_proba(self, X: Data) -> Matrix:
        counts = np.clip(np.nan_to_num(self.new_rows(X), nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1e100)
        return normalised(np.log(self.class_prior_) + row_products(counts, self.feature_log_prob_))

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        noise = class_noise(math.sqrt(2), 1.0, d + 1, self.spending())
        return noise * len(self.class_list()) / n, "error of a word's share in a class"


def normalised(logs: Matrix) -> Matrix:
    """Probabilities from their logarithms, up to a constant for each row."""
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    found: Matrix = powers / row_sums(powers)[:, None]
    return found
