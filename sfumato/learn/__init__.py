"""Private learning: estimators under the same ledger as questions."""

from sfumato.learn.base import Classifier, Estimator, FitPreview, Regressor
from sfumato.learn.linear_regression import LinearRegression

__all__ = ["Classifier", "Estimator", "FitPreview", "LinearRegression", "Regressor"]
