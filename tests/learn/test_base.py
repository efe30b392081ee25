"""What all estimators share: parameters, prices, charges, data frames, units, and errors that tell nothing."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.learn import LinearRegression
from tests.learn.data import line

EASY = {"bounds": (-1, 1), "y_bounds": (-1, 1)}


def test_a_fit_keeps_the_epsilon_and_delta_that_it_states():
    loss = LinearRegression(epsilon=1, delta=1e-6, **EASY).loss
    assert 0.999999 < loss.epsilon(1e-6).upper <= 1
    assert LinearRegression(epsilon=1, **EASY).loss.epsilon(0).upper == 1


def test_a_budget_may_be_a_loss_with_its_relation():
    loss = sf.loss.GaussianLoss(0.3, relation=sf.ReplaceOne)
    assert LinearRegression(budget=loss, **EASY).loss == loss
    with pytest.raises(InvalidParameter, match="Gaussian or a pure loss"):
        _ = LinearRegression(budget=sf.loss.ApproxLoss(1, 0.1), **EASY).loss


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 1, "budget": sf.loss.PureLoss(1)},
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"epsilon": 1, "delta": -1},
        {"epsilon": 1, "rows_per_unit": 0},
        {"epsilon": 1, "bounds": None},
        {"epsilon": 1, "bounds": (1, -1)},
        {"epsilon": 1, "bounds": (0, math.inf)},
        {"epsilon": 1, "bounds": ([0, 0], [1, 1])},
        {"epsilon": 1, "bounds": [(0, 1), (0, 1)]},
        {"epsilon": 1e6},
        {"epsilon": 1e-12},
        {"epsilon": 1, "y_bounds": None},
        {"epsilon": 1, "solver": "magic"},
    ],
)
def test_senseless_parameters_are_refused_before_the_charge(options, tmp_path):
    ledger = sf.Ledger.create(tmp_path / "ledger.sqlite", sf.Budget(1.0, 1e-6))
    with pytest.raises(InvalidParameter):
        LinearRegression(**EASY | {"ledger": ledger} | options).fit(*line(20))
    assert not any(ledger.meter().spent)


def test_a_fit_is_charged_before_data_are_read(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "ledger.sqlite", sf.Budget(1.0, 1e-6))
    estimator = LinearRegression(epsilon=0.8, delta=1e-8, ledger=ledger, **EASY)
    estimator.fit(*line(50))
    assert [entry.content["kind"] for entry in ledger.history()].count("charged") == 1
    with pytest.raises(BudgetExceeded):
        for _ in range(3):
            estimator.fit(*line(50))


def test_a_ledger_about_other_neighbours_refuses(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "ledger.sqlite", sf.Budget(1.0, 1e-6))
    with pytest.raises(InvalidParameter, match="relation"):
        LinearRegression(epsilon=0.1, delta=1e-8, relation=sf.ReplaceOne, ledger=ledger, **EASY).fit(*line(50))


def plain_array(columns):
    return np.column_stack([*columns.values()])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, plain_array])
def test_every_kind_of_table_gives_the_same_numbers(frame):
    X, y = line(60)
    table = frame({f"c{j}": X[:, j] for j in range(3)})
    fitted = LinearRegression(epsilon=1e6, delta=1e-6, solver="statistics", **EASY).fit(table, y)
    assert fitted.coef_ == pytest.approx([0.5, 0.1, -0.3], abs=0.1)
    assert fitted.predict(table).shape == (60,)


def test_bounds_may_be_given_by_column():
    X, y = line(60)
    frame = pd.DataFrame({"age": 50 + 50 * X[:, 0], "stay": X[:, 1]})
    options = {"epsilon": 1, "y_bounds": (-1, 1)}
    LinearRegression(bounds={"age": (0, 100), "stay": (-1, 1)}, **options).fit(frame, y)
    with pytest.raises(InvalidParameter, match="no bounds of stay"):
        LinearRegression(bounds={"age": (0, 100)}, **options).fit(frame, y)


def test_units_of_several_rows_come_from_a_column_or_an_argument():
    X, y = line(600)
    owner = np.arange(600) // 3
    frame = pd.DataFrame({"a": X[:, 0], "patient": owner, "b": X[:, 1]})
    options = EASY | {"epsilon": 30, "delta": 1e-6, "rows_per_unit": 3, "solver": "statistics"}
    by_column = LinearRegression(unit="patient", **options).fit(frame, y)
    assert by_column.n_features_in_ == 2
    assert by_column.predict(frame).shape == (600,)
    by_argument = LinearRegression(**options).fit(X[:, :2], y, units=owner)
    assert by_argument.coef_ == pytest.approx(by_column.coef_, abs=0.1)
    with pytest.raises(InvalidParameter, match="no column patient"):
        LinearRegression(unit="patient", **options).fit(X, y)


def test_no_value_makes_a_fit_fail():
    """NaN is the middle, infinities are the ends, and what is no number is NaN."""
    X, y = line(30)
    odd = X.astype(object)
    odd[0] = [None, "x", 10**400]
    odd[1] = [math.nan, math.inf, -math.inf]
    target = y.astype(object)
    target[:2] = [None, math.nan]
    fitted = LinearRegression(epsilon=1, **EASY).fit(odd, target)
    assert np.isfinite(fitted.coef_).all()


def test_wrong_shapes_are_refused():
    X, y = line(10)
    estimator = LinearRegression(epsilon=1, **EASY)
    attempts = (
        lambda: estimator.fit(X, y[:5]),
        lambda: estimator.fit(X),
        lambda: estimator.fit(X[:, 0], y),
        lambda: estimator.fit(X[:, :0], y),
        lambda: estimator.fit(X, y, units=[1]),
        lambda: estimator.fit(X, y).predict(X[:, :2]),
        lambda: LinearRegression(epsilon=1, **EASY).predict(X),
    )
    for bad in attempts:
        with pytest.raises(InvalidParameter):
            bad()


def test_a_score_of_private_data_costs(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "ledger.sqlite", sf.Budget(5.0, 1e-6))
    X, y = line(3000)
    fitted = LinearRegression(epsilon=2, delta=1e-8, ledger=ledger, **EASY).fit(X, y)
    with pytest.raises(InvalidParameter, match="costs"):
        fitted.score(X, y)
    spent = ledger.meter().spent
    fitted.set_params(score_epsilon=0.5)
    assert fitted.score(X, y) == pytest.approx(fitted.public_score(X, y), abs=0.15)
    assert ledger.meter().spent != spent


def test_a_preview_is_free_and_says_the_price():
    preview = LinearRegression(epsilon=1, delta=1e-6, **EASY).preview(10_000, 5)
    assert preview.loss.epsilon(1e-6).upper <= 1
    assert 0 < preview.error < LinearRegression(epsilon=0.1, delta=1e-6, **EASY).preview(10_000, 5).error
    assert "10,000 rows × 5 columns" in str(preview)


def test_parameters_are_read_and_set_by_name():
    estimator = LinearRegression(epsilon=1, **EASY)
    assert estimator.get_params()["epsilon"] == 1
    assert estimator.set_params(epsilon=2).epsilon == 2
    assert repr(estimator) == "LinearRegression(epsilon=2, bounds=(-1, 1), y_bounds=(-1, 1))"
    with pytest.raises(InvalidParameter, match="Invalid parameter 'alpha'"):
        estimator.set_params(alpha=1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_column_of_text_is_refused_by_its_name(frame):
    """It would count as the middle of its bounds, everywhere, without a word."""
    table = frame({"age": [1.0, 2.0], "ward": ["a", "b"]})
    with pytest.raises(InvalidParameter, match=r"ward holds text[^$]*CategoryEncoder"):
        LinearRegression(epsilon=1, **EASY).fit(table, [0.0, 1.0])


def test_columns_of_pandas_may_have_odd_names():
    X, y = line(500)
    options = {"epsilon": 5, "delta": 1e-6, "bounds": (-1, 1), "y_bounds": (-1, 1)}
    for names in ([0, 1, 2], ["a b", "a b", "ä.\\"], [("x", 1), None, 2.5]):
        frame = pd.DataFrame(X, columns=pd.Index(names, dtype=object))
        assert LinearRegression(**options).fit(frame, y).public_score(frame, y) > 0.5
    frame = pd.DataFrame(X, columns=[0, 1, 2])
    frame[3] = np.arange(500)
    assert LinearRegression(unit="3", **options).fit(frame, y).n_features_in_ == 3
