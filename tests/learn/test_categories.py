"""Categories become columns of 0 and 1, whatever the values are."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

from sfumato import learn
from sfumato.errors import InvalidParameter

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
