"""A random forest with public splits and noisy class counts in its leaves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato import checks
from sfumato.learn.base import Table
from sfumato.learn.database_pass import NoisyPass
from sfumato.learn.naive_bayes import normalised
from sfumato.learn.spending import GaussianSpending, Spending
from sfumato.learn.supervised import Classifier
from sfumato.learn.tables import Bounds, Data, Matrix
from sfumato.learn.trees import RandomTree, even_edges
from sfumato.sql.emit.lattice_rows import Block, ByLeaf

DATABASE_TREES, DATABASE_DEPTH = 8, 4  # where each tree is a pass over a table
FULL = 3.0  # noise deviations that an average leaf holds
SUREST = 3.0  # log odds that one leaf moves


@dataclass(eq=False, kw_only=True, repr=False)
class RandomForestClassifier(Classifier):
    """Class shares of leaves, averaged over trees whose splits do not depend on data.

    A row adds 1 to one leaf and class of each tree. Log odds are those of all rows, and the evidence of leaves, whose
    noise together stays below 1. Unless `n_trees` says otherwise there are 40 trees with Gaussian noise, and 8 under
    pure ε.

    Theorem: a histogram has L1 and L2 sensitivity 1 under add/remove, and T of them compose [Dwork & Roth 2014, 3.3]
    """

    n_trees: int | None = None
    depth: int | None = None
    seed: int = 0

    def check_params(self) -> None:
        super().check_params()
        checks.whole("n_trees", 1 if self.n_trees is None else self.n_trees, 1, 10_000)
        checks.whole("depth", 1 if self.depth is None else self.depth, 1, 16)
        checks.whole("seed", self.seed, 0)

    def learn(self, table: Table, spending: Spending) -> None:
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        labels, kinds = self.labels(table), len(self.class_list())
        count, rest = self.count_rows(table, spending)
        share = rest.part(1 / self.tree_count())
        depth = self.chosen_depth(count, share)
        self.trees_ = self.grow(table.columns, self.tree_count(), depth)
        ones = self.bound_rows(np.ones((len(X), 1)), table, 1.0)
        noise = vote_noise(share) * ones.rows
        tables = []
        for tree in self.trees_:
            cells = np.where(labels >= 0, tree.leaves(X) * kinds + labels, -1)
            counts = self.noisy_sum_by_class(ones, cells, tree.leaf_count * kinds, share)[:, 0]
            tables.append(counts.reshape(-1, kinds))
        self.set_leaves(tables, noise)

    def grow(self, columns: int, count: int, depth: int) -> list[RandomTree]:
        rng = np.random.default_rng(self.seed)  # public: splits are no noise
        return [RandomTree.grow(depth, even_edges(columns), rng) for _ in range(count)]

    def grow_for_database(self, columns: int) -> list[RandomTree]:
        """Fewer and shallower trees: each one takes a pass of its own, and how many rows there are is not known."""
        return self.grow(columns, self.n_trees or DATABASE_TREES, self.depth or DATABASE_DEPTH)

    def database_blocks(self, columns: int) -> tuple[Block, ...]:
        kinds, trees = len(self.class_list()), self.grow_for_database(columns)
        return tuple(Block(((0, 0),), ByLeaf(tree.splits(), kinds), tree.leaf_count * kinds) for tree in trees)

    def learn_from_sums(self, found: NoisyPass, table: Table, spending: Spending) -> None:
        self.trees_ = self.grow_for_database(table.columns)
        kinds = len(self.class_list())
        self.set_leaves([counts.reshape(-1, kinds) for counts in found.sums], found.deviations[0])

    def set_leaves(self, tables: Sequence[Matrix], noise: float) -> None:
        """Post-processing of the noisy class counts of the leaves of each tree."""
        whole = np.maximum(np.mean([found.sum(axis=0) for found in tables], axis=0), 0.0) + noise
        self.class_prior_ = whole / whole.sum()
        scale = 1 / math.sqrt(len(tables))  # trees say much the same; their noise is independent
        self.values_ = [scale * leaf_evidence(found, self.class_prior_, noise) for found in tables]

    def tree_count(self) -> int:
        if self.n_trees is not None:
            return self.n_trees
        return 40 if isinstance(self.spending(), GaussianSpending) else 8

    def chosen_depth(self, n: float, share: Spending) -> int:
        """So deep that an average leaf holds `FULL` deviations of noise, if all trees are averaged."""
        if self.depth is not None:
            return self.depth
        full = n * math.sqrt(self.tree_count()) / (FULL * max(vote_noise(share), 1.0))
        return int(np.clip(math.floor(math.log2(max(full, 2.0))), 1, 8))

    def predict_proba(self, X: Data) -> Matrix:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        logs = sum(values[tree.leaves(scaled)] for tree, values in zip(self.trees_, self.values_, strict=True))
        return normalised(np.log(self.class_prior_) + logs)

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        share = self.spending().part(1 / self.tree_count())
        leaf = n / 2 ** self.chosen_depth(float(n), share)
        return vote_noise(share) / math.sqrt(self.tree_count()) / leaf, "error of a class's share in a leaf"


def vote_noise(spending: Spending) -> float:
    """The deviation of the noise of a count to which a row adds 1."""
    if isinstance(spending, GaussianSpending):
        return spending.fold / spending.amount
    return math.sqrt(2) * spending.fold / spending.amount


def leaf_evidence(counts: Matrix, prior: Matrix, noise: float) -> Matrix:
    """How much more of each class a leaf has than the prior says, over what is expected and noise together.

    A logarithm of noisy shares would be of one sign where a class is rare: counts that are cut at 0 are too large on
    average, and dozens of trees add that up. This is 0 on average where noise is all there is.
    """
    expected = np.maximum(counts.sum(axis=1, keepdims=True), 0.0) * prior
    found: Matrix = np.clip((counts - expected) / (expected + 2.0 * noise), -SUREST, SUREST)
    return found
