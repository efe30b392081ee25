"""A decision tree whose splits are chosen by private votes, level by level, with noisy class counts in its leaves."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.base import Table
from sfumato.learn.forest import vote_noise
from sfumato.learn.naive_bayes import normalised
from sfumato.learn.spending import Spending, spending_of
from sfumato.learn.supervised import Classifier
from sfumato.learn.tables import Bounds, Data, Matrix
from sfumato.learn.trees import RandomTree, even_edges

LEAVES_SHARE = 0.3


@dataclass(eq=False, kw_only=True, repr=False)
class DecisionTreeClassifier(Classifier):
    """Splits that would classify most rows rightly, among public thresholds of every column.

    A candidate's utility is how many rows of the node its two sides would classify rightly. Adding a row adds 0 or 1
    to each utility, so the choice costs what one row may tilt it. Nodes of a level have different rows.

    Theorem: Σ over both sides of the largest class count rises by 0 or 1 with a row [the largest of counts, of which
        one rises by 1]; a choice by such utilities is monotone [McSherry & Talwar 2007; Dong et al. 2020]
    Theorem: choices in nodes of disjoint rows cost the largest of them [McSherry 2009, Thm 4]
    """

    depth: int | None = None
    thresholds: int = 15

    def check_params(self) -> None:
        super().check_params()
        checks.whole("depth", 1 if self.depth is None else self.depth, 1, 10)
        checks.whole("thresholds", self.thresholds, 1, 255)
        if self.unit is not None or self.rows_per_unit != 1:
            raise unit_refusal()

    def spending(self) -> Spending:
        """Pure ε, which keeps (ε, δ) too, and chooses better; μ only if the budget or the ledger is Gaussian."""
        if self.budget is None and self.ledger is None:
            return spending_of(self.epsilon, 0.0, None, self.relation)
        return super().spending()

    def read_table(self, X: Data, y: object, units: object) -> Table:
        if units is not None:
            raise unit_refusal()
        return super().read_table(X, y, units)

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        labels, kinds = self.labels(table), len(self.class_list())
        X, labels = X[labels >= 0], labels[labels >= 0]
        count, rest = self.count_rows(table, spending)
        depth = self.chosen_depth(count, table.columns, rest)
        level_share = rest.part((1 - LEAVES_SHARE) / depth)
        leaves_share = rest.part(LEAVES_SHARE)
        edges = even_edges(table.columns, self.thresholds)
        bins = np.searchsorted(edges[0], X)  # the same edges for every column
        inner = (1 << depth) - 1
        columns, cuts, node = np.zeros(inner, np.int64), np.zeros(inner), np.zeros(len(X), np.int64)
        for place in range(inner):
            here = node == place
            utilities = split_utilities(bins[here], labels[here], kinds, self.thresholds)
            chosen = level_share.choose(utilities)
            columns[place], cut = divmod(chosen, self.thresholds)
            cuts[place] = edges[columns[place]][cut]
            node[here] = 2 * place + 1 + (bins[here, columns[place]] > cut)
        self.tree_ = RandomTree(columns, cuts)
        ones = self.bound_rows(np.ones((len(X), 1)), Table(X, None, None, None), 1.0)
        cells = (node - inner) * kinds + labels
        counts = self.noisy_sum_by_class(ones, cells, (inner + 1) * kinds, leaves_share)[:, 0].reshape(-1, kinds)
        noise = vote_noise(leaves_share)
        whole = np.maximum(counts.sum(axis=0), 0.0) + noise
        self.class_prior_ = whole / whole.sum()
        self.values_ = shrunk_shares(counts, self.class_prior_, noise / 4)

    def chosen_depth(self, n: float, d: int, spending: Spending) -> int:
        """As deep as choices and leaves still tell signal from noise."""
        if self.depth is not None:
            return self.depth
        found = 6
        while found > 1:
            choice = math.log(d * self.thresholds) * spending.fold / spending.part((1 - LEAVES_SHARE) / found).amount
            if n / 2 ** (found - 1) > 6 * choice:
                break
            found -= 1
        return found

    def predict_proba(self, X: Data) -> Matrix:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        return normalised(np.log(self.class_prior_) + self.values_[self.tree_.leaves(scaled)])

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        depth = self.chosen_depth(float(n), d, self.spending())
        leaf = n / 2**depth
        return vote_noise(self.spending().part(LEAVES_SHARE)) / leaf, "error of a class's share in a leaf"


def split_utilities(bins: NDArray[np.int64], labels: NDArray[np.int64], kinds: int, thresholds: int) -> list[int]:
    """How many rows each candidate (column, threshold) would classify rightly."""
    found = []
    for j in range(bins.shape[1]):
        counts = np.bincount(bins[:, j] * kinds + labels, minlength=(thresholds + 1) * kinds).reshape(-1, kinds)
        left = np.cumsum(counts, axis=0)[:-1]
        right = counts.sum(axis=0) - left
        found += (left.max(axis=1) + right.max(axis=1)).tolist()
    return found


def shrunk_shares(counts: Matrix, prior: Matrix, noise: float) -> Matrix:
    """Evidence of each leaf for each class: the logarithm of its share over the prior, as if `noise` more rows with the
    prior's shares were there; zero where noise is all there is."""
    sizes = np.maximum(counts, 0.0).sum(axis=1, keepdims=True)
    extra = 2.0 * noise
    shares = (np.maximum(counts, 0.0) + extra * prior) / (sizes + extra)
    found: Matrix = np.log(shares / prior)
    return found


def unit_refusal() -> InvalidParameter:
    return InvalidParameter(
        "a decision tree protects rows, not units of several rows.\n  found:  units\n"
        "  do:     give one row of each unit, or use RandomForestClassifier"
    )
