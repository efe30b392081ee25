"""Private learning: estimators under the same ledger as questions."""

from sfumato.learn.base import Estimator, FitPreview
from sfumato.learn.binning import QuantileBinner
from sfumato.learn.boosting import GradientBoostingClassifier, GradientBoostingRegressor
from sfumato.learn.categories import CategoryEncoder
from sfumato.learn.cross_validation import cross_val_score, cross_validation_loss
from sfumato.learn.decision_tree import DecisionTreeClassifier
from sfumato.learn.forest import RandomForestClassifier
from sfumato.learn.generalized_linear import GeneralizedLinearRegression
from sfumato.learn.holdout import ReusableHoldout
from sfumato.learn.k_means import KMeans
from sfumato.learn.linear_regression import LinearRegression
from sfumato.learn.logistic_regression import LogisticRegression
from sfumato.learn.naive_bayes import GaussianNB, MultinomialNB
from sfumato.learn.objective_perturbation import ObjectivePerturbation
from sfumato.learn.pca import PCA, Covariance
from sfumato.learn.posterior_sample import PosteriorSample
from sfumato.learn.select_columns import SelectColumns
from sfumato.learn.standard_scaler import StandardScaler
from sfumato.learn.supervised import Classifier, Regressor
from sfumato.learn.tuning import Tuned, tune

__all__ = [
    "PCA",
    "CategoryEncoder",
    "Classifier",
    "Covariance",
    "DecisionTreeClassifier",
    "Estimator",
    "FitPreview",
    "GaussianNB",
    "GeneralizedLinearRegression",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "MultinomialNB",
    "ObjectivePerturbation",
    "PosteriorSample",
    "QuantileBinner",
    "RandomForestClassifier",
    "Regressor",
    "ReusableHoldout",
    "SelectColumns",
    "StandardScaler",
    "Tuned",
    "cross_val_score",
    "cross_validation_loss",
    "tune",
]
