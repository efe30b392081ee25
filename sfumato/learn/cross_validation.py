"""Cross-validation at its price: every row is in all fits but one, and in one score."""

import copy
from typing import Any

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.learn.base import Estimator
from sfumato.learn.tables import Data, Vector, column_names, read_matrix, take_rows
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.uniform import below_each


def cross_validation_loss(estimator: Any, folds: int = 5) -> PrivacyLoss:
    """What `cross_val_score` costs: folds − 1 fits and one score, known before any data.

    Theorem: folds are drawn for each unit by itself, so a unit more changes nobody else's. Given its fold it is in the
        other folds' fits, and in one score; those of other folds see nothing of it [McSherry 2009, Thm 4]
    """
    count = checks.whole("folds", folds, 2, 100)
    found: PrivacyLoss = (count - 1) * estimator.loss + estimator.score_loss
    return found


def cross_val_score(estimator: Estimator, X: Data, y: object = None, *, folds: int = 5, units: object = None) -> Vector:
    """A noisy score of each fold, from a fit to all others. Charged once, to the estimator's ledger, before any fit.

    scikit-learn's function of this name works, too; it charges `folds` fits and `folds` scores, one after the other.
    """
    loss = cross_validation_loss(estimator, folds)
    if estimator.unit is not None and (units is not None or estimator.unit not in (column_names(X) or ())):
        raise InvalidParameter(
            "units are named twice, or by a column that is not there.\n"
            f"  found:  unit={estimator.unit!r}\n  do:     give the column, or units=…, and not both"
        )
    owners = fold_of_units(estimator, X, units, folds)
    estimator.charge(loss, f"cross-validate {type(estimator).__name__} in {folds} folds")
    target, owner = np.asarray(y), None if units is None else np.asarray(units, dtype=object).reshape(-1)
    scores = []
    for fold in range(folds):
        inside = owners == fold
        model = copy.copy(estimator)
        model.ledger = None
        parts = [
            (take_rows(X, rows), target[rows], None if owner is None else owner[rows]) for rows in (~inside, inside)
        ]
        (train, goal, whose), (rest, truth, others) = parts
        model.fit(train, goal, units=whose)
        scores.append(model.score(rest, truth, units=others))  # type: ignore[attr-defined]
    return np.array(scores)


def fold_of_units(estimator: Estimator, X: Data, units: object, folds: int) -> Any:
    """A fold for each row: the same for all rows of a unit, uniform, and drawn from secret bits. With a public rule by
    position, one row more would move all others to other folds."""
    table = estimator.read_table(X, None, units)
    if table.weights is None:
        return below_each(np.full(len(read_matrix(X)), folds, np.int64))
    place = table.weights.units
    return below_each(np.full(int(place.max(initial=-1)) + 1, folds, np.int64))[place]
