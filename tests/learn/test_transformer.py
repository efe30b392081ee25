"""Transformers name their columns, and keep whose rows they are through a pipeline."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

from sfumato import learn
from sfumato.errors import InvalidParameter
from tests.learn.data import line

X, Y = line(60)
NAMES = ["a", "b", "c"]
PRICE = {"epsilon": 1.0, "delta": 1e-6}
FRAMES = [lambda columns: pd.DataFrame(columns, index=np.arange(60) + 5), pl.DataFrame, pa.table]


def columns_of(rows):
    return dict(zip(NAMES, rows.T, strict=True))


@pytest.mark.parametrize(
    ("transformer", "names"),
    [
        (learn.StandardScaler(bounds=(-1, 1), **PRICE), NAMES),
        (learn.QuantileBinner(bounds=(-1, 1), **PRICE), NAMES),
        (learn.PCA(bounds=(-1, 1), n_components=2, **PRICE), ["pca0", "pca1"]),
        (learn.SelectColumns(bounds=(-1, 1), y_bounds=(-1, 1), count=2, **PRICE), None),
    ],
    ids=lambda one: type(one).__name__,
)
def test_new_columns_have_names(transformer, names):
    frame = pd.DataFrame(columns_of(X))
    found = transformer.set_output(transform="pandas").fit_transform(frame, Y)
    assert list(found.columns) == transformer.get_feature_names_out().tolist()
    assert names is None or list(found.columns) == names
    assert list(transformer.set_output(transform="polars").transform(frame).columns) == list(found.columns)
    assert (transformer.set_output(transform="default").transform(frame) == found.to_numpy()).all()
    with pytest.raises(InvalidParameter):
        transformer.set_output(transform="dask")


@pytest.mark.parametrize("frame", FRAMES)
def test_the_column_of_units_goes_through_a_pipeline(frame):
    """Every step bounds what a unit adds; without that column, the last one would protect rows."""
    table = frame({**columns_of(X), "ward": ["n", "s"] * 30, "who": np.arange(60) // 3})
    seen = []
    model = learn.LinearRegression(bounds=(-3, 3), y_bounds=(-1, 1), unit="who", rows_per_unit=2, **PRICE)
    model.charge = lambda loss, text: seen.append(text)
    steps = make_pipeline(
        learn.CategoryEncoder(categories={"ward": ["n", "s"]}, unit="who"),
        learn.StandardScaler(bounds=(-1, 1), unit="who", rows_per_unit=2, **PRICE),
        model,
    )
    steps.fit(table, Y)
    assert seen == ["fit LinearRegression to 4 columns"]
    assert steps.predict(table).shape == (60,)
    assert type(steps[:-1].transform(table)) is type(table)


def test_units_can_be_given_to_each_step():
    steps = make_pipeline(
        learn.StandardScaler(bounds=(-1, 1), **PRICE),
        learn.LinearRegression(bounds=(-3, 3), y_bounds=(-1, 1), **PRICE),
    )
    units = np.arange(60) // 3
    steps.fit(X, Y, standardscaler__units=units, linearregression__units=units)
    assert steps.predict(X).shape == (60,)


def test_columns_in_another_order_are_refused():
    frame = pd.DataFrame(columns_of(X))
    fitted = learn.LinearRegression(bounds=(-1, 1), y_bounds=(-1, 1), **PRICE).fit(frame, Y)
    with pytest.raises(InvalidParameter, match="feature names should match"):
        fitted.predict(frame[["b", "a", "c"]])
    encoder = learn.CategoryEncoder(categories={"a": [0, 1]}).fit(frame)
    with pytest.raises(InvalidParameter, match="feature names should match"):
        encoder.transform(frame[["b", "a", "c"]])


def test_bought_categories_count_units_and_not_rows():
    """One person with a thousand rows is one, in at most so many categories."""
    table = pd.DataFrame({"ward": ["n"] * 1000 + [f"w{j}" for j in range(500)], "who": [0] * 1000 + [1] * 500})
    encoder = learn.CategoryEncoder(categories={"ward": None}, unit="who", categories_per_unit=2, **PRICE)
    assert encoder.fit(table).categories_ == {"ward": ["…"]}
    assert encoder.loss.epsilon(1e-6).upper <= 1 + 1e-9
    many = pd.DataFrame({"ward": ["n", "s"] * 200, "who": np.arange(400) // 2})
    assert encoder.fit(many).categories_ == {"ward": ["…", "n", "s"]}


def test_scores_leave_the_column_of_units_out():
    rows = pd.DataFrame({"word": [1, 2] * 40, "other": [3, 0] * 40, "who": np.arange(80) // 2})
    model = learn.MultinomialNB(classes=[0, 1], most_count=4, unit="who", score_epsilon=1.0, **PRICE)
    assert 0 <= model.fit(rows, np.arange(80) % 2).score(rows, np.arange(80) % 2) <= 1


def test_tuning_knows_units_and_says_its_price():
    models = [
        learn.LinearRegression(bounds=(-1, 1), y_bounds=(-1, 1), solver=solver, score_epsilon=1.0, **PRICE)
        for solver in ("statistics", "descent")
    ]
    tuned = learn.Tuned(models)
    assert tuned.preview(60, 3).loss == tuned.loss
    assert tuned.fit(X, Y, units=np.arange(60) // 2).predict(X).shape == (60,)
    with pytest.raises(InvalidParameter, match="owner"):
        tuned.fit(X, Y, units=np.arange(5))


def test_clusters_of_the_rows_of_a_fit():
    assert learn.KMeans(bounds=(-1, 1), n_clusters=2, **PRICE).fit_predict(X).shape == (60,)
