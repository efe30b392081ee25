"""A regression in the database: one question, charged once, free on repetition."""

from dataclasses import replace
from itertools import product

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.aggregates.price import Mu
from sfumato.curator.fit_in_database import FitSums, FitWanted, lattice_rows, table_of
from sfumato.curator.planner import Wanted
from sfumato.errors import BudgetExceeded, InvalidParameter, QueryRefused
from sfumato.learn.database_pass import block_sensitivity
from sfumato.sql.dialects import dialect_of
from sfumato.sql.emit.lattice_rows import whole_steps

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


def test_coefficients_have_intervals_and_sums_of_classes_are_found(opened):
    """Whether a row is a unit or not. An interval fails in 5 %; the ends here are twice as wide."""
    model = learn.LinearRegression(**BOUNDS)
    opened.fit(model, SQL, y="cost", epsilon=2.0)
    for (low, high), truth in zip(model.coef_intervals(), (3, 10), strict=True):
        assert low - (high - low) / 2 < truth < high + (high - low) / 2
    kind = "SELECT age, stay, CASE WHEN age > 50 THEN 'old' ELSE 'young' END AS kind FROM visits"
    naive = learn.GaussianNB(classes=["young", "old"], bounds=BOUNDS["bounds"])
    assert opened.fit(naive, kind, y="kind", epsilon=1.0).charged
    assert naive.predict([[20, 3], [90, 3]]).tolist() == ["young", "old"]
    with pytest.raises(QueryRefused, match="moments"):
        opened.fit(learn.LinearRegression(solver="boosted", **BOUNDS), SQL, y="cost", epsilon=1)


def test_columns_are_selected_by_sums_too(opened):
    """By a number and by a class, whether a row is a unit or not: noise is a fiftieth of what tells columns apart."""
    ends = BOUNDS["bounds"]
    by_number = learn.SelectColumns(count=1, bounds=ends, y_bounds=(0, 1000))
    assert opened.fit(by_number, "SELECT age, stay, age * 9 AS much FROM visits", y="much", epsilon=2.0).charged
    kind = "SELECT age, stay, CASE WHEN stay > 15 THEN 'long' ELSE 'short' END AS kind FROM visits"
    by_class = learn.SelectColumns(count=1, bounds=ends, classes=["short", "long"])
    opened.fit(by_class, kind, y="kind", epsilon=1.0)
    assert (by_number.transform([[3, 4]]).tolist(), by_class.transform([[3, 4]]).tolist()) == ([[3]], [[4]])


def test_what_cannot_be_fitted_is_refused_before_the_charge(opened):
    model = learn.LinearRegression(**BOUNDS)
    boosted = learn.GradientBoostingRegressor(**BOUNDS)
    for refused in (
        lambda: opened.fit(boosted, SQL, y="cost", epsilon=1),
        lambda: opened.fit(learn.GaussianNB(classes=[object(), 1], bounds=(0, 1)), SQL, y="cost", epsilon=1),
        lambda: opened.fit(model, SQL, y="price", epsilon=1),
        lambda: opened.fit(model, SQL, epsilon=1),
        lambda: opened.fit(learn.PCA(bounds=(0, 1)), SQL, y="cost", epsilon=1),
        lambda: opened.fit(model, SQL, y="cost", epsilon=-1),
        lambda: opened.fit(model, "SELECT * FROM visits", y="cost", epsilon=1),
        lambda: opened.fit(model, "DROP TABLE visits", y="cost", epsilon=1),
        lambda: opened.fit(model, "SELECT age, secret, cost FROM visits", y="cost", epsilon=1),
    ):
        with pytest.raises((QueryRefused, InvalidParameter)):
            refused()
    assert not any(opened.ledger.meter().spent)


def test_bounds_are_bought_only_for_a_fit_that_can_be(tmp_path):
    """Two charges: whatever the second one would be refused for is said before the first."""
    (tmp_path / "policy.toml").write_text(POLICY.format(unit='{each = "row"}') + 'x = {type = "number"}\n')
    with duckdb.connect(str(tmp_path / "v.duckdb")) as con:
        con.execute(
            "CREATE TABLE visits AS SELECT range AS age, range AS stay, range AS cost, range AS x FROM range(90)"
        )
    opened = sf.Curator.open(tmp_path / "v.duckdb", policy=tmp_path / "policy.toml")
    line, forest = learn.LinearRegression, learn.RandomForestClassifier
    for refused in (
        lambda: opened.fit(line(), "SELECT x AS a, x AS b, age FROM visits", y="age", epsilon=1),
        lambda: opened.fit(line(), "SELECT x, age FROM visits", y="stay", epsilon=1),
        lambda: opened.fit(line(solver="none"), "SELECT x, age FROM visits", y="age", epsilon=1),
        lambda: opened.fit(line(), "SELECT x, age FROM visits", y="age", epsilon=400),
        lambda: opened.fit(learn.StandardScaler(), "SELECT x, age FROM visits", y="age", epsilon=1),
        lambda: opened.fit(learn.QuantileBinner(bins=10**6), "SELECT x FROM visits", epsilon=1),
        lambda: opened.fit(learn.PCA(n_components=3), "SELECT x, age FROM visits", epsilon=1),
        lambda: opened.fit(forest(classes=[1, 1]), "SELECT x, age FROM visits", y="age", epsilon=1),
        lambda: opened.fit(forest(classes=[1, 2], depth=99), "SELECT x, age FROM visits", y="age", epsilon=1),
    ):
        with pytest.raises((QueryRefused, InvalidParameter, BudgetExceeded)):
            refused()
        assert not any(opened.ledger.meter().spent)


TWO = "SELECT age, stay FROM visits"
WIDE = {"bounds": {"age": (0, 100), "stay": (0, 30)}}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows with labels, each of them a unit."""
    folder = tmp_path_factory.mktemp("rows")
    policy = (
        POLICY.format(unit='{each = "row"}')
        + 'other = {type = "number"}\n'
        + 'ward = {type = "text", keys = ["a", "b", "c"]}\n'
    )
    (folder / "policy.toml").write_text(policy.replace("epsilon = 5.0", "epsilon = 50.0"))
    rng = np.random.default_rng(9)
    ward = rng.integers(0, 2, 20_000)
    age, stay = np.clip(rng.normal(30 + 40 * ward, 10), 0, 100), rng.uniform(0, 30, 20_000)
    with duckdb.connect(str(folder / "v.duckdb")) as con:
        con.register(
            "numbers",
            {"age": age, "stay": stay, "cost": age, "ward": np.array(["a", "b"], object)[ward], "other": stay},
        )
        con.execute("CREATE TABLE visits AS SELECT * FROM numbers")
        con.execute(
            "INSERT INTO visits VALUES (NULL, 3, 900, 'a', 1), ('nan', 3, 9, 'b', 1), (1e300, '-inf', 9, NULL, 1)"
        )
    return sf.Curator.open(folder / "v.duckdb", policy=folder / "policy.toml"), np.column_stack([age, stay]), ward


@pytest.mark.parametrize("kind", [learn.GaussianNB, learn.RandomForestClassifier])
def test_classes_are_told_apart(rows, kind):
    curator, X, ward = rows
    fitted = kind(classes=["a", "b"], **WIDE)
    sql = "SELECT age, stay, ward FROM visits WHERE cost < 1000"
    assert curator.fit(fitted, sql, y="ward", epsilon=1.0).charged
    assert fitted.public_score(X, np.array(["a", "b"])[ward]) > 0.9
    assert not curator.fit(kind(classes=["a", "b"], **WIDE), sql, y="ward", epsilon=1.0).charged


def test_bounds_come_from_the_policy_or_are_bought(rows):
    curator, X, _ = rows
    stated, found = learn.StandardScaler(), learn.StandardScaler()
    curator.fit(stated, TWO, epsilon=1.0)
    assert stated.bounds == {"age": (0, 100), "stay": (0, 30)}
    sql = "SELECT age, other FROM visits"
    assert curator.fit(found, sql, epsilon=2.0).charged
    low, high = found.bounds["other"]
    assert low <= 0 < 30 <= high < 300
    assert found.mean_ == pytest.approx(X.mean(axis=0), rel=0.1)
    assert not curator.fit(learn.StandardScaler(), sql, epsilon=2.0).charged


def test_scales_quantiles_and_components_are_found(rows):
    curator, X, _ = rows
    scaler, binner = learn.StandardScaler(**WIDE), learn.QuantileBinner(bins=4, **WIDE)
    assert curator.fit(scaler, TWO, epsilon=1.0).column("rows")[0] == pytest.approx(20_001, abs=200)
    curator.fit(binner, TWO, epsilon=1.0)
    components = learn.PCA(n_components=1, **WIDE)
    curator.fit(components, TWO, epsilon=1.0)
    assert scaler.mean_ == pytest.approx(X.mean(axis=0), rel=0.05)
    assert scaler.scale_ == pytest.approx(X.std(axis=0), rel=0.1)
    assert binner.bin_edges_ == pytest.approx(np.quantile(X, [0.25, 0.5, 0.75], axis=0).T, rel=0.1, abs=2)
    assert abs(components.components_[0] @ [1, 0]) > 0.95


@pytest.mark.parametrize("kind", [learn.LinearRegression, learn.GaussianNB, learn.QuantileBinner])
def test_one_row_moves_exact_sums_by_no_more_than_is_priced(rows, kind):
    """Rows of corners, ends, infinities and missing values, each added alone to a table."""
    curator, _, _ = rows
    target = {learn.LinearRegression: {"y_bounds": (0, 30)}, learn.GaussianNB: {"classes": ["a", "b"]}}
    y = {learn.LinearRegression: "cost", learn.GaussianNB: "ward"}.get(kind)
    fitted = kind(**WIDE | target.get(kind, {}))
    wanted = FitWanted.of(fitted, f"SELECT age, stay{f', {y}' if y else ''} FROM visits", y)
    question = curator.planner.plan(Wanted.of(wanted.question(), 1.0))
    blocks = fitted.database_blocks(2)
    step = FitSums(question.plan, Mu(1.0), lattice_rows(wanted, question), blocks)
    columns = {"age": "DOUBLE", "stay": "DOUBLE", "cost": "DOUBLE", "ward": "VARCHAR"}
    requests = step.requests(7, replace(dialect_of("duckdb"), schema={"visits": columns}))
    extremes = (0, 100, -1e308, "inf", "-inf", "nan", None, 49.9999)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE visits (age DOUBLE, stay DOUBLE, cost DOUBLE, ward TEXT)")
        before = exact_sums(con, blocks, requests)
        for age, stay, ward in [*product(extremes, extremes, ("a", None, "c"))][::5]:
            con.execute("INSERT INTO visits VALUES (?, ?, ?, ?)", [age, stay, stay, ward])
            after = exact_sums(con, blocks, requests)
            for block, old, new in zip(blocks, before, after, strict=True):
                moved, most = new - old, block_sensitivity(block)
                assert np.linalg.norm(moved) <= most.l2
                assert np.abs(moved).max() <= most.linf
                assert np.any(moved, axis=1).sum() <= 1
            before = after
        assert any(np.any(one) for one in before)


def exact_sums(con, blocks, requests):
    tables = [con.execute(one.direct).fetchall() for one in requests]
    return [
        table_of(block, table) * np.array([whole_steps(term) for term in block.terms])
        for block, table in zip(blocks, tables, strict=True)
    ]
