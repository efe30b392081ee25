"""Laws of every estimator: it is in the catalogue, keeps its price, reads odd data, and works in scikit-learn."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import sfumato as sf
from sfumato import learn
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.learn.spending import GaussianSpending, PureSpending
from tests.learn.catalogue import APPROXIMATE, CLASSES, ESTIMATORS, REGRESSION, ROWS_ONLY, example, outputs
from tests.learn.data import blobs, line

every = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
currencies = pytest.mark.parametrize("delta", [0.0, 1e-6])


def test_the_catalogue_is_complete():
    names = {name for name in learn.__all__ if isinstance(getattr(learn, name), type)}
    kinds = {name for name in names if issubclass(getattr(learn, name), learn.Estimator)}
    assert kinds - {"Estimator", "Classifier", "Regressor"} == {kind.__name__ for kind in ESTIMATORS}


@every
@currencies
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_it_fits_and_predicts_within_its_price(kind, delta, relation):
    estimator, X, y = example(kind, delta=delta, relation=relation)
    assert estimator.loss.epsilon(estimator.delta).upper <= 1
    assert estimator.loss.relation is estimator.relation
    assert estimator.preview(1000, 3).error > 0
    assert len(outputs(estimator.fit(X, y), X)) == len(X)


@pytest.mark.parametrize(
    "kind", [kind for kind in ESTIMATORS if kind not in APPROXIMATE], ids=lambda kind: kind.__name__
)
@currencies
@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_all_noise_that_is_drawn_is_paid_for(kind, delta, relation, monkeypatch):
    """What looks at rows takes a part of the budget: Σμ² or Σε of the parts is at most the whole, and nearly that."""
    sums, choices = [], []
    for name in ("noisy_sum", "noisy_sum_by_class", "noisy_gram"):
        own = getattr(learn.Estimator, name)
        monkeypatch.setattr(
            learn.Estimator, name, lambda self, *args, own=own: (sums.append(args[-1].amount), own(self, *args))[1]
        )
    choose = PureSpending.choose
    monkeypatch.setattr(
        PureSpending, "choose", lambda self, *args: (choices.append(self.amount), choose(self, *args))[1]
    )
    estimator, X, y = example(kind, delta=delta, relation=relation)
    estimator.fit(X, y)
    levels = int(math.log2(len(choices) + 1))  # nodes of one level have different rows
    parts, whole = sums + choices[:levels], estimator.spending()
    power = 2 if isinstance(whole, GaussianSpending) else 1
    total = sum(part**power for part in parts)
    assert 0.95 * whole.amount**power < total <= whole.amount**power


@every
@currencies
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_no_values_make_it_fail(kind, delta, rows):
    """NaN, infinities, huge numbers, unknown labels, one class, no rows at all."""
    estimator, _, _ = example(kind, delta=delta)
    odd = np.resize([math.nan, math.inf, -math.inf, 1e308, 0.0, -1e308], (rows, 5))
    target = np.resize(np.array([math.nan, 7, None, "x", math.inf], object), rows)
    fitted = estimator.fit(odd, target)
    found = outputs(fitted, np.resize([0.3, math.nan, math.inf], (3, 5)))
    assert np.isfinite(np.asarray(found, np.float64)).all()


@every
def test_units_of_several_rows_are_protected_or_refused(kind):
    estimator, X, y = example(kind, rows_per_unit=2, delta=1e-6)
    owner = np.arange(len(X)) // 3
    if kind in ROWS_ONLY:
        with pytest.raises(InvalidParameter, match="units"):
            estimator.fit(X, y, units=owner)
    else:
        assert len(outputs(estimator.fit(X, y, units=owner), X)) == len(X)


@every
def test_it_is_charged_before_data_are_read(kind, tmp_path):
    ledger = sf.Ledger.create(tmp_path / "ledger.sqlite", sf.Budget(1.0, 1e-6))
    estimator, X, y = example(kind, ledger=ledger, delta=1e-8, epsilon=0.17 if kind in APPROXIMATE else 0.9)
    estimator.fit(X, y)
    with pytest.raises(BudgetExceeded):
        estimator.fit(X, y)


@every
def test_what_it_says_of_a_row_does_not_depend_on_other_rows(kind):
    """To the last bit: a model that others are fitted to, or scored by, must not carry one row into another."""
    estimator, X, y = example(kind, n=65)
    if kind is learn.Covariance:
        return
    fitted = estimator.fit(X, y)
    says = [getattr(fitted, name) for name in ("predict", "predict_proba", "transform") if hasattr(fitted, name)]
    assert says
    for say in says:
        together = say(X)
        for start, stop in ((0, 1), (1, 65), (7, 20), (64, 65)):
            assert np.array_equal(say(X[start:stop]), together[start:stop])


@every
def test_it_needs_bounds_and_classes(kind):
    for name in ("bounds", "y_bounds", "classes", "most_count"):
        if name in ESTIMATORS[kind]:
            estimator, X, y = example(kind, **{name: None})
            with pytest.raises(InvalidParameter):
                estimator.fit(X, y)


@every
def test_scikit_learn_can_clone_it_and_use_it_in_a_pipeline(kind):
    estimator, X, y = example(kind)
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    scaler = learn.StandardScaler(epsilon=1.0, bounds=(-1, 1))
    pipeline = make_pipeline(scaler, copy).fit(X, y)
    if hasattr(copy, "predict"):
        assert len(pipeline.predict(X)) == len(X)


@pytest.mark.parametrize(
    "kind",
    [
        learn.LogisticRegression,
        learn.GaussianNB,
        learn.DecisionTreeClassifier,
        learn.RandomForestClassifier,
        learn.GradientBoostingClassifier,
    ],
)
@currencies
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_tell_blobs_apart(kind, delta, classes):
    X, y = blobs(1500, 4, classes, seed=3)
    fitted = kind(epsilon=3, delta=delta, bounds=(-1, 1), classes=range(classes)).fit(X, y)
    assert fitted.public_score(X, y) > 0.8
    assert fitted.predict_proba(X).sum(axis=1) == pytest.approx(1)


RARE = [learn.LogisticRegression, learn.GaussianNB, learn.DecisionTreeClassifier, learn.RandomForestClassifier,
        learn.GradientBoostingClassifier]  # fmt: skip


@pytest.mark.parametrize("kind", RARE, ids=lambda kind: kind.__name__)
@currencies
def test_a_rare_class_is_not_predicted_because_of_noise(kind, delta):
    """Labels that no column tells anything about: the trivial predictor is the best one."""
    rng = np.random.default_rng(8)
    X, y = rng.uniform(-1, 1, (2000, 6)), rng.choice(3, 2000, p=[0.85, 0.1, 0.05])
    fitted = kind(epsilon=0.5, delta=delta, bounds=(-1, 1), classes=[0, 1, 2]).fit(X, y)
    assert fitted.public_score(X, y) > np.mean(y == 0) - 0.02


@pytest.mark.parametrize("classes", [["a", 1], [(1, 2), (3, 4)], [None, "b"], [True, False], [1.0, 2], ["x", "yy"]])
def test_classes_of_any_kind_stay_what_they_are(classes):
    X, y = blobs(800)
    labels = np.empty(len(y), object)
    labels[:] = [classes[k] for k in y]
    fitted = learn.GaussianNB(epsilon=3, delta=1e-6, bounds=(-1, 1), classes=classes).fit(X, labels)
    assert fitted.public_score(X, labels) > 0.8
    assert all(one in classes for one in fitted.predict(X[:9]).tolist())


def test_targets_with_one_possible_value_are_predicted_as_that():
    X, _ = line()
    for kind in (learn.LinearRegression, learn.GradientBoostingRegressor):
        assert set(kind(epsilon=1, bounds=(-1, 1), y_bounds=(3, 3)).fit(X, X[:, 0]).predict(X)) == {3.0}


@currencies
def test_coefficients_of_a_logistic_regression_are_in_the_units_of_the_data(delta):
    X, y = blobs(800)
    X = 5 + 2 * X
    fitted = learn.LogisticRegression(epsilon=2, delta=delta, bounds=(3, 7), classes=[0, 1]).fit(X, y)
    odds = np.log(fitted.predict_proba(X)[:, 1] / fitted.predict_proba(X)[:, 0])
    assert X @ fitted.coef_[0] + fitted.intercept_[0] == pytest.approx(odds, abs=1e-6)


def test_multinomial_naive_bayes_tells_topics_apart():
    rng = np.random.default_rng(2)
    y = rng.choice(["sport", "art"], 800)
    X = rng.poisson(np.where((y == "sport")[:, None], [5, 1, 1, 2], [1, 1, 5, 2]))
    fitted = learn.MultinomialNB(epsilon=1, classes=["art", "sport"], most_count=10).fit(X, y)
    assert fitted.public_score(X, y) > 0.9


@pytest.mark.parametrize("family", ["poisson", "gamma"])
@currencies
def test_generalised_linear_models_find_rates(family, delta):
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (4000, 2))
    rate = np.exp(0.8 * X[:, 0] - 0.4)
    y = rng.poisson(rate) if family == "poisson" else rate * rng.gamma(4, 0.25, len(X))
    fitted = learn.GeneralizedLinearRegression(
        epsilon=3, delta=delta, family=family, bounds=(-1, 1), y_bounds=(0, 8)
    ).fit(X, y)
    assert fitted.coef_ == pytest.approx([0.8, 0], abs=0.25)
    assert fitted.intercept_ == pytest.approx(-0.4, abs=0.2)


def test_boosting_finds_what_is_not_linear():
    X, _ = line(6000)
    y = np.where(X[:, 0] * X[:, 1] > 0, 0.7, -0.7)
    fitted = learn.GradientBoostingRegressor(epsilon=3, delta=1e-6, depth=4, **REGRESSION).fit(X, y)
    assert fitted.public_score(X, y) > 0.3


def test_the_scaler_centres_and_scales():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(40, 8, 5000), rng.normal(-2, 1, 5000)])
    fitted = learn.StandardScaler(epsilon=2, delta=1e-6, bounds=([0, -10], [100, 10])).fit(X)
    assert fitted.mean_ == pytest.approx([40, -2], abs=0.5)
    assert fitted.scale_ == pytest.approx([8, 1], rel=0.2)
    assert fitted.transform(X).std(axis=0) == pytest.approx([1, 1], rel=0.2)


def test_components_point_where_rows_vary():
    rng = np.random.default_rng(6)
    X = np.clip(np.outer(rng.normal(0, 0.4, 5000), [0.6, 0.8]) + rng.normal(0, 0.05, (5000, 2)), -1, 1)
    fitted = learn.PCA(epsilon=1, delta=1e-6, bounds=(-1, 1), n_components=1).fit(X)
    assert abs(fitted.components_[0] @ [0.6, 0.8]) > 0.99
    assert fitted.explained_variance_[0] == pytest.approx(np.var(X @ [0.6, 0.8]), rel=0.2)
    assert fitted.inverse_transform(fitted.transform(X)) == pytest.approx(X, abs=0.3)
    assert (np.linalg.eigvalsh(fitted.covariance_) > -1e-12).all()


@currencies
def test_centres_are_found(delta):
    X, _ = blobs(3000, 2, 2, spread=0.1)
    fitted = learn.KMeans(epsilon=2, delta=delta, bounds=(-1, 1), n_clusters=2).fit(X)
    best = np.sum(np.var(X[X[:, 0] > 0], axis=0)) * len(X)
    assert fitted.public_inertia(X) < 3 * best


def test_bins_hold_equally_many():
    X = np.random.default_rng(7).beta(2, 5, (20_000, 2))
    fitted = learn.QuantileBinner(epsilon=1, delta=1e-6, bounds=(0, 1), bins=4).fit(X)
    for column in fitted.transform(X).T:
        assert np.bincount(column.astype(int), minlength=4) / len(X) == pytest.approx([0.25] * 4, abs=0.05)


def test_the_accuracy_of_a_classifier_costs():
    X, y = blobs(2000)
    fitted = learn.LogisticRegression(epsilon=2, score_epsilon=1, **CLASSES).fit(X, y)
    assert fitted.score(X, y) == pytest.approx(fitted.public_score(X, y), abs=0.03)
