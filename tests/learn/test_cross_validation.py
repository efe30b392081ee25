"""Cross-validation costs all fits but one and one score; folds depend on nobody else."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.learn.cross_validation import fold_of_units
from tests.learn.data import blobs

MODEL = {"epsilon": 0.5, "delta": 1e-8, "bounds": (-1, 1), "classes": [0, 1], "score_epsilon": 0.5}


def test_scores_are_those_of_models_that_did_not_see_the_rows(tmp_path):
    X, y = blobs(3000)
    ledger = sf.Ledger.create(tmp_path / "ledger.sqlite", sf.Budget(0.9, 1e-6))
    model = learn.LogisticRegression(ledger=ledger, **MODEL)
    scores = learn.cross_val_score(model, X, y, folds=4)
    assert scores == pytest.approx([1.0] * 4, abs=0.1)
    assert [entry.content["kind"] for entry in ledger.history()].count("charged") == 1
    assert not hasattr(model, "coef_")
    with pytest.raises(BudgetExceeded):
        learn.cross_val_score(model, X, y, folds=4)
    noise = np.random.default_rng(7).integers(0, 2, 3000)
    assert learn.cross_val_score(learn.LogisticRegression(**MODEL), X, noise).mean() < 0.6


def test_the_price_is_that_of_all_fits_but_one_and_one_score():
    model = learn.LogisticRegression(**MODEL)
    loss = learn.cross_validation_loss(model, 5)
    assert loss == 4 * model.loss + model.score_loss
    assert loss.epsilon(1e-6).upper < (5 * model.loss + 5 * model.score_loss).epsilon(1e-6).upper
    with pytest.raises(InvalidParameter, match="costs"):
        learn.cross_validation_loss(learn.LogisticRegression(epsilon=1, bounds=(-1, 1), classes=[0, 1]))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_rows_of_a_unit_share_a_fold(frame):
    X, y = blobs(600)
    table = frame({"a": X[:, 0], "b": X[:, 1], "who": np.arange(600) // 3})
    model = learn.LogisticRegression(unit="who", **MODEL)
    folds = fold_of_units(model, table, None, 5)
    assert (folds.reshape(-1, 3) == folds.reshape(-1, 3)[:, :1]).all()
    assert set(folds) == set(range(5))
    assert learn.cross_val_score(model, table, y, folds=2).shape == (2,)
    with pytest.raises(InvalidParameter):
        learn.cross_val_score(model, table, y, units=np.arange(600))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_no_rows_are_scored_too(frame):
    X, y = blobs(10)
    table = frame({f"x{j}": X[:0, j] for j in range(3)})
    assert len(learn.cross_val_score(learn.LogisticRegression(**MODEL), table, y[:0], folds=2)) == 2
