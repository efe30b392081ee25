"""The calculus of privacy loss: one currency, many views."""

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.bounded_range import BoundedRangeLoss
from sfumato.loss.describe import from_description, from_json
from sfumato.loss.discrete_gaussian import DiscreteGaussianLoss
from sfumato.loss.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.laplace import LaplaceLoss
from sfumato.loss.renyi import RenyiLoss, ZcdpLoss, from_renyi
from sfumato.loss.signed import ApproxLoss, PureLoss, RandomizedResponseLoss, StaircaseLoss
from sfumato.loss.subsampled import PoissonSampledLoss, WithoutReplacementLoss
from sfumato.loss.sums import Sum, nothing
from sfumato.loss.wrappers import Either, OneWay, Reversed, either

__all__ = [
    "ApproxLoss",
    "Bound",
    "BoundedRangeLoss",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "Either",
    "GaussianLoss",
    "LaplaceLoss",
    "OneWay",
    "PoissonSampledLoss",
    "PrivacyLoss",
    "PureLoss",
    "RandomizedResponseLoss",
    "RenyiLoss",
    "Reversed",
    "StaircaseLoss",
    "Sum",
    "WithoutReplacementLoss",
    "ZcdpLoss",
    "either",
    "from_description",
    "from_json",
    "from_renyi",
    "nothing",
]
