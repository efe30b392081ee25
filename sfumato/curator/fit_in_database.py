"""Fits in the database: the moments of a regression as one question, whose noisy sums are solved like any Gram matrix.

The question is an ordinary one, so it is planned, bounded, priced, charged, stored and free on repetition as any other;
units may own any number of rows. What is made of its answer is post-processing.
"""

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import sqlglot
from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.learn.base import Table
from sfumato.learn.linear_regression import LinearRegression, Moments
from sfumato.learn.tables import Bounds

if TYPE_CHECKING:
    from sfumato.curator.answer import Answer

NORMAL = 1.959964  # half widths of intervals at 95 % are so many deviations


def selected_columns(sql: str) -> list[str]:
    """The names of what a SELECT selects: each must have one. The text is checked again when it is asked."""
    try:
        root = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.errors.SqlglotError as problem:
        raise QueryRefused(
            "this is not a SELECT.\n  do:     give such as SELECT age, stay, cost FROM visits"
        ) from problem
    names = root.named_selects if isinstance(root, exp.Select) else []
    if len(names) < 2 or not all(names) or len(set(names)) != len(names) or "*" in names:
        raise QueryRefused(
            "a fit needs a SELECT of at least two columns with different names.\n"
            f"  found:  {len(names)} names\n  do:     give such as SELECT age, stay, cost FROM visits"
        )
    return names


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def moments_question(sql: str, columns: list[str], bounds: Bounds) -> str:
    """One SELECT of a count, sums and sums of products of columns scaled to [−1, 1]; rows with a NULL are left out."""
    scaled = ", ".join(
        f"(CLAMP({quoted(name)}, {low!r}, {high!r}) - {middle!r}) / {half!r} AS c{j}"
        for j, (name, low, high, middle, half) in enumerate(
            zip(columns, *(end.tolist() for end in (bounds.low, bounds.high, bounds.middle, bounds.half)), strict=True)
        )
    )
    given = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in columns)
    places = range(len(columns))
    sums = [f"SUM(c{j})" for j in places]
    products = [f"SUM(c{i} * c{j})" for i, j in combinations_with_replacement(places, 2)]
    inner = f"SELECT {scaled} FROM ({sql}) AS chosen WHERE {given}"
    return f"SELECT {', '.join(['COUNT(*)', *sums, *products])} FROM ({inner}) AS rows_of_fit"


def moments_of(answer: "Answer", count: int) -> Moments:
    """The released numbers as moments, the target last; their deviation from the half widths of their intervals."""
    (row,) = answer.rows
    values, lows, highs = (np.array(row[start::3], np.float64) for start in range(3))  # each number with its interval
    gram = np.zeros((count + 1, count + 1))
    gram[0, 0] = max(float(values[0]), 1.0)
    gram[0, 1:] = gram[1:, 0] = values[1 : count + 1]
    for (i, j), value in zip(combinations_with_replacement(range(count), 2), values[count + 1 :], strict=True):
        gram[i + 1, j + 1] = gram[j + 1, i + 1] = value
    halves = (highs - lows)[count + 1 :] / 2
    return Moments.of(gram, float(np.sqrt(np.mean(halves**2))) / NORMAL, None)


def regression_question(estimator: object, sql: str, y: str) -> tuple[LinearRegression, str, list[str]]:
    """The question of a fit and the columns in its order, the target last. Pure: parameters and text only."""
    if not isinstance(estimator, LinearRegression):
        raise QueryRefused(
            f"only a linear regression can be fitted in the database so far.\n  found:  a {type(estimator).__name__}\n"
            "  do:     give sf.learn.LinearRegression(bounds=…, y_bounds=…), or fit rows outside"
        )
    names = selected_columns(sql)
    if y not in names:
        raise QueryRefused(
            f"the target is not among the columns.\n  found:  {', '.join(names)}\n  do:     select {y}, too"
        )
    features = [name for name in names if name != y]
    columns = Bounds.of(estimator.bounds, len(features), features, "bounds")
    target = Bounds.of(estimator.y_bounds, 1, None, "y bounds")
    bounds = Bounds(np.append(columns.low, target.low), np.append(columns.high, target.high))
    return estimator, moments_question(sql, [*features, y], bounds), features


def fit_from(answer: "Answer", estimator: LinearRegression, features: list[str]) -> LinearRegression:
    """The estimator, fitted to the moments of an answer: post-processing."""
    moments = moments_of(answer, len(features) + 1)
    fitted = moments.solve()
    estimator.moments_, estimator.fit_ = moments, fitted
    table = Table(np.zeros((0, len(features))), None, tuple(features), None)
    estimator.set_coefficients(fitted.coef, fitted.intercept, table)
    estimator.n_features_in_ = len(features)
    estimator.feature_names_in_ = np.array(features, object)
    return estimator
