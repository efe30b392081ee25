"""scikit-learn's own checks, but for those that want a fit to fail because of a value."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from sfumato import learn

WIDE = {"bounds": (-1e3, 1e3), "epsilon": 1e5, "delta": 1e-6, "score_epsilon": 1e5}
BY_DESIGN = {
    "check_dtype_object": "no value makes a fit fail",
    "check_estimators_empty_data_messages": "no rows are data, too",
    "check_parameters_default_constructible": "a neighbour relation is a parameter",
    "check_estimators_nan_inf": "NaN and infinities are read as the middle and the ends of the bounds",
    "check_supervised_y_no_nan": "NaN is read as the middle of the bounds",
    "check_classifiers_classes": "classes are public, not those of the data",
    "check_classifiers_train": "classes are public, not those of the data",
    "check_classifiers_one_label": "classes are public, not those of the data",
    "check_classifiers_regression_target": "an unknown label counts as nothing",
    "check_fit_idempotent": "each fit draws noise anew",
    "check_regressor_data_not_an_array": "each fit draws noise anew",
    "check_classifier_data_not_an_array": "each fit draws noise anew",
    "check_regressors_int": "each fit draws noise anew",
    "check_supervised_y_2d": "a column is read without a warning",
    "check_estimator_sparse_array": "sparse data are refused; the check sets a parameter by the name of the class",
    "check_estimator_sparse_matrix": "sparse data are refused; the check sets a parameter by the name of the class",
    "check_transformer_general": "values beyond the bounds are clipped",
}


@pytest.mark.parametrize(
    "estimator",
    [
        learn.LinearRegression(y_bounds=(-10, 10), **WIDE | {"bounds": (-10, 10)}),
        learn.GaussianNB(classes=[0, 1, 2], **WIDE),
        learn.StandardScaler(**WIDE),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_scikit_learn_pass(estimator):
    found = check_estimator(estimator, expected_failed_checks=BY_DESIGN, on_fail=None, on_skip=None)
    assert [one["check_name"] for one in found if one["status"] == "failed"] == []
    assert sum(one["status"] == "passed" for one in found) > 25
