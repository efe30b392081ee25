"""A regression in the database: one question, charged once, free on repetition."""

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.errors import InvalidParameter, QueryRefused

POLICY = """
version = 1
[budget]
epsilon = 5.0
delta = 1e-6
[tables.visits]
unit = {unit}
[tables.visits.columns]
age = {{low = 0, high = 100}}
stay = {{low = 0, high = 30}}
cost = {{low = 0, high = 1000}}
"""
SQL = "SELECT age, stay, cost FROM visits"
BOUNDS = {"bounds": {"age": (0, 100), "stay": (0, 30)}, "y_bounds": (0, 1000)}


@pytest.fixture(params=['{each = "row"}', '"patient"'])
def opened(request, tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY.format(unit=request.param))
    rng = np.random.default_rng(8)
    age, stay = rng.uniform(0, 100, 20_000), rng.uniform(0, 30, 20_000)
    cost = 100 + 3 * age + 10 * stay + rng.normal(0, 30, 20_000)
    with duckdb.connect(str(tmp_path / "v.duckdb")) as con:
        con.register("numbers", {"age": age, "stay": stay, "cost": cost, "patient": np.arange(20_000) // 2})
        con.execute("CREATE TABLE visits AS SELECT * FROM numbers")
        con.execute("INSERT INTO visits VALUES (NULL, 3, 900, 1), ('nan', 3, 900, 2), ('inf', 3, NULL, 3)")
    return sf.Curator.open(tmp_path / "v.duckdb", policy=tmp_path / "policy.toml")


def test_a_regression_is_fitted_and_stored(opened):
    model = learn.LinearRegression(**BOUNDS)
    first = opened.fit(model, SQL, y="cost", epsilon=2.0)
    assert first.charged
    assert model.coef_ == pytest.approx([3, 10], rel=0.15)
    assert model.predict([[50, 10]]) == pytest.approx(350, abs=30)
    again = learn.LinearRegression(**BOUNDS)
    assert not opened.fit(again, SQL.lower(), y="cost", epsilon=2.0).charged
    assert again.coef_.tolist() == model.coef_.tolist()


def test_what_cannot_be_fitted_is_refused_before_the_charge(opened):
    model = learn.LinearRegression(**BOUNDS)
    for refused in (
        lambda: opened.fit(learn.GaussianNB(), SQL, y="cost", epsilon=1),
        lambda: opened.fit(model, SQL, y="price", epsilon=1),
        lambda: opened.fit(model, "SELECT * FROM visits", y="cost", epsilon=1),
        lambda: opened.fit(model, "DROP TABLE visits", y="cost", epsilon=1),
        lambda: opened.fit(model, "SELECT age, secret, cost FROM visits", y="cost", epsilon=1),
        lambda: opened.fit(learn.LinearRegression(), SQL, y="cost", epsilon=1),
    ):
        with pytest.raises((QueryRefused, InvalidParameter)):
            refused()
    assert not any(opened.ledger.meter().spent)
