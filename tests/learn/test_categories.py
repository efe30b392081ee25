"""Categories become columns of 0 and 1, whatever the values are."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import sfumato as sf
from sfumato import learn
from sfumato.errors import BudgetExceeded, InvalidParameter

WARDS = {"ward": ["a", "b", "c"]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_each_category_but_the_first_has_a_column(frame):
    table = frame({"age": [1.0, 2.0, 3.0, 4.0], "ward": ["a", "c", "secret", None]})
    encoder = learn.CategoryEncoder(categories=WARDS)
    assert encoder.fit_transform(table).tolist() == [[1, 0, 0], [2, 0, 1], [3, 0, 0], [4, 0, 0]]
    assert encoder.get_feature_names_out().tolist() == ["age", "ward=b", "ward=c"]
    assert encoder.bounds_of({"age": (0, 100)}) == ([0, 0, 0], [100, 1, 1])


def test_no_value_makes_it_fail():
    values = ["a", 1, math.nan, ([],), ("b",), b"b", "b"]
    table = pd.DataFrame({"ward": pd.Series(values, dtype=object)})
    found = learn.CategoryEncoder(categories=WARDS).fit_transform(table)
    assert found[:, 0].tolist() == [0, 0, 0, 0, 0, 0, 1]


def test_it_stands_before_an_estimator():
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"age": rng.uniform(0, 100, 3000), "ward": rng.choice(["a", "b", "c"], 3000)})
    y = 0.2 + 0.6 * (table.ward == "b")
    encoder = learn.CategoryEncoder(categories=WARDS).fit(table)
    bounds = encoder.bounds_of({"age": (0, 100)})
    model = learn.LinearRegression(epsilon=3, delta=1e-6, bounds=bounds, y_bounds=(0, 1))
    fitted = make_pipeline(encoder, model).fit(table, y)[-1]
    assert fitted.coef_ == pytest.approx([0, 0.6, 0], abs=0.15)


@pytest.mark.parametrize("wrong", [{"room": ["a", "b"]}, {"ward": ["a"]}, {"ward": ["a", "a"]}, {"ward": "ab"}])
def test_senseless_categories_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        learn.CategoryEncoder(categories=wrong).fit(pd.DataFrame({"ward": ["a", "b"]}))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_private_categories_are_bought(frame, tmp_path):
    ledger = sf.Ledger.create(tmp_path / "ledger.sqlite", sf.Budget(5.0, 1e-5))
    ward = ["north"] * 400 + ["south"] * 300 + ["rare", None, "…"]
    table = frame({"ward": ward, "age": np.arange(703.0)})
    encoder = learn.CategoryEncoder(categories={"ward": None}, epsilon=0.8, delta=1e-6, ledger=ledger).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["ward=north", "ward=south", "age"]
    assert encoder.transform(table).sum(axis=0).tolist() == [400, 300, 703 * 351]
    assert encoder.loss.epsilon(1e-6).upper == pytest.approx(0.8)
    with pytest.raises(BudgetExceeded):
        encoder.fit(table)


def test_how_a_category_is_written_depends_on_no_order():
    one, two = (
        pd.DataFrame({"x": pd.Series(values * 200, dtype=object)}) for values in ([1, 1.0, True], [True, 1, 1.0])
    )
    fits = [learn.CategoryEncoder(categories={"x": None}, epsilon=1, delta=1e-6).fit(table) for table in (one, two)]
    assert [repr(fit.categories_) for fit in fits] == ["{'x': ['…', 1]}"] * 2
    odd = pd.DataFrame({"x": pd.Series([math.nan, math.inf, 10**400, ([],), b"b", -0.0], dtype=object)})
    assert learn.CategoryEncoder(categories={"x": None}, epsilon=1, delta=1e-6).fit_transform(odd).shape == (6, 0)


def test_private_categories_need_a_price():
    with pytest.raises(InvalidParameter, match="cost"):
        learn.CategoryEncoder(categories={"ward": None}).fit(pd.DataFrame({"ward": ["a"]}))
