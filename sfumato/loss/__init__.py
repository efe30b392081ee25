"""The calculus of privacy loss: one currency, many views."""

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.bounded_range import BoundedRangeLoss
from sfumato.loss.describe import from_description, from_json
from sfumato.loss.discrete_gaussian import DiscreteGaussianLoss
from sfumato.loss.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.finite import FinitePairLoss
from sfumato.loss.gated import GatedLoss
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.given_densities import from_cdfs, from_densities
from sfumato.loss.given_profile import from_profile
from sfumato.loss.given_trade_off import from_trade_off
from sfumato.loss.group import replace_one
from sfumato.loss.laplace import LaplaceLoss
from sfumato.loss.renyi import RenyiLoss, ZcdpLoss, from_renyi
from sfumato.loss.running import Running
from sfumato.loss.signed import ApproxLoss, PureLoss, RandomizedResponseLoss, StaircaseLoss
from sfumato.loss.subsampled import PoissonSampledLoss, WithoutReplacementLoss
from sfumato.loss.sums import Sum, nothing
from sfumato.loss.tabulated import TabulatedLoss
from sfumato.loss.wrappers import Either, OneWay, Reversed, either

__all__ = [
    "ApproxLoss",
    "Bound",
    "BoundedRangeLoss",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "Either",
    "FinitePairLoss",
    "GatedLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "OneWay",
    "PoissonSampledLoss",
    "PrivacyLoss",
    "PureLoss",
    "RandomizedResponseLoss",
    "RenyiLoss",
    "Reversed",
    "Running",
    "StaircaseLoss",
    "Sum",
    "TabulatedLoss",
    "WithoutReplacementLoss",
    "ZcdpLoss",
    "either",
    "from_cdfs",
    "from_densities",
    "from_description",
    "from_json",
    "from_profile",
    "from_renyi",
    "from_trade_off",
    "nothing",
    "replace_one",
]
