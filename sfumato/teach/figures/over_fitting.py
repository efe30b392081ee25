"""Figures of over-fitting: a plain hold-out and a reusable one, and what privacy promises about it."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sfumato.learn.holdout import ReusableHoldout
from sfumato.loss.kinds.coins import PureLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.sensitivity import ReplaceOne
from sfumato.teach.figures.style import BLUE, DOTS, FAINT, GREEN, GREY, LONG, RED, Pen, label, legend, panels

Bits = NDArray[np.int8]
Query = Callable[[Bits], NDArray[np.bool_]]
COUNTS = (10, 25, 50, 100, 150, 200, 300, 400, 500)


def adaptive_over_fitting(people: int = 10_000, columns: int = 2000, seed: int = 7) -> Figure:
    """An analyst looks for columns that predict the label, where none does: the label is a fair coin.

    Columns are kept if they lean to the same side on the training set and on the hold-out; the best k of them vote. A
    plain hold-out then confirms the vote, as the columns were chosen by its answers. The reusable hold-out repeats what
    the training set says about each column, so nothing is learned about it, and disagrees about the vote. (ε = 2 for
    the sparse vector, 40 answers with a deviation of 0.005.)
    """
    rng = np.random.default_rng(seed)
    train, rows, fresh = (rng.integers(0, 2, (people, columns + 1), np.int8) for _ in range(3))
    session = ReusableHoldout(people, 2.0, 0.04, 40, 0.005).begin(train, rows)
    counts = [k for k in COUNTS if k < columns / 3]
    figure, axes = panels(2, "plain hold-out", "reusable hold-out", inches=(7.6, 3.5))
    asked: tuple[Callable[[Query], float], ...] = (
        lambda query: mean(query, rows),
        lambda query: session.ask(query).value,
    )
    for axis, ask in zip(axes, asked, strict=True):
        votes = chosen_votes(train, ask, counts)
        Pen(GREY, LONG).draw(axis, counts, [mean(vote, train) for vote in votes], "on the training set")
        Pen(RED).draw(axis, counts, [ask(vote) for vote in votes], "as the hold-out says")
        Pen(BLUE, DOTS).draw(axis, counts, [mean(vote, fresh) for vote in votes], "on fresh data")
        axis.set_ylim(0.45, 0.75)
        label(axis, "columns that vote", "accuracy")
        legend(axis, "upper left")
    return figure


def mean(query: Query, rows: Bits) -> float:
    return float(np.mean(query(rows)))


def agreement(column: int) -> Query:
    """Is this column equal to the label, which is the last one?"""
    return lambda rows: rows[:, column] == rows[:, -1]


def chosen_votes(train: Bits, ask: Callable[[Query], float], counts: list[int]) -> list[Query]:
    """For each k the vote of the k columns that lean most, among those that lean alike on both sets."""
    columns = train.shape[1] - 1
    here = np.array([mean(agreement(j), train) for j in range(columns)]) - 0.5
    there = np.array([ask(agreement(j)) for j in range(columns)]) - 0.5
    best = sorted(np.flatnonzero(here * there > 0).tolist(), key=lambda j: -abs(float(here[j] + there[j])))
    return [vote_of(best[:k], np.sign(here[best[:k]])) for k in counts]


def vote_of(columns: list[int], signs: NDArray[np.float64]) -> Query:
    """Is the majority of these columns, each with its sign, equal to the label?"""
    return lambda rows: ((2.0 * rows[:, columns] - 1) @ signs > 0) == (rows[:, -1] == 1)


def over_fitting_bounds(people: int = 100_000, beta: float = 0.05) -> Figure:
    """The over-fitting bounds of a privacy loss for so many people: pure ε, and Gaussian noise of μ."""
    figure, axes = panels(2, "pure ε", "Gaussian noise, μ", inches=(7.6, 3.5))
    sizes = np.geomspace(0.003, 0.5, 12)
    pure = [PureLoss(float(x), relation=ReplaceOne).generalisation(people) for x in sizes]
    gaussian = [GaussianLoss(float(x), relation=ReplaceOne).generalisation(people) for x in sizes]
    for axis, found, name in zip(axes, (pure, gaussian), ("ε", "μ"), strict=True):
        Pen(BLUE).draw(axis, sizes, [float(g.expectation()) for g in found], "in expectation")
        Pen(GREEN, LONG).draw(axis, sizes, [float(g.answers(beta)) for g in found], "answers, 95 %")
        Pen(RED, DOTS).draw(axis, sizes, [float(g.high_probability(beta)) for g in found], "any statistic, 95 %")
        sampling = np.sqrt(np.log(2 / beta) / (2 * people))
        Pen(GREY, FAINT, 1.2).draw(axis, [sizes[0], sizes[-1]], [sampling, sampling], "sampling error, 95 %")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_ylim(1e-4, 1.1)
        label(axis, name, "over-fitting at most")
        legend(axis, "lower right")
    return figure
