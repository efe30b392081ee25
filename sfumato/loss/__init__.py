"""The calculus of privacy loss: one currency, many views."""

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.compose.running import Running
from sfumato.loss.compose.sums import Sum, nothing
from sfumato.loss.describe import from_description, from_json
from sfumato.loss.kinds.bounded_range import BoundedRangeLoss
from sfumato.loss.kinds.coins import ApproxLoss, PureLoss, RandomizedResponseLoss, StaircaseLoss
from sfumato.loss.kinds.discrete_gaussian import DiscreteGaussianLoss
from sfumato.loss.kinds.discrete_laplace import DiscreteLaplaceLoss
from sfumato.loss.kinds.finite import FinitePairLoss
from sfumato.loss.kinds.from_curves import from_profile, from_trade_off
from sfumato.loss.kinds.from_densities import from_cdfs, from_densities
from sfumato.loss.kinds.gated import GatedLoss
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.group import replace_one
from sfumato.loss.kinds.laplace import LaplaceLoss
from sfumato.loss.kinds.renyi import RenyiLoss, TcdpLoss, ZcdpLoss, from_renyi, zcdp_chain
from sfumato.loss.kinds.run_counts import NegativeBinomialRuns, PoissonRuns
from sfumato.loss.kinds.sampled_group import SampledGaussianGroupLoss
from sfumato.loss.kinds.selected import SelectedLoss
from sfumato.loss.kinds.shuffled import ShuffledLoss
from sfumato.loss.kinds.signed_pair import SignedPairLoss
from sfumato.loss.kinds.subsampled import PoissonSampledLoss, WithoutReplacementLoss
from sfumato.loss.kinds.tabulated import TabulatedLoss
from sfumato.loss.kinds.wrappers import Either, OneWay, Reversed, either
from sfumato.loss.operations import OPERATIONS
from sfumato.loss.views.law import LossLaw

PrivacyLoss.operations = OPERATIONS

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
    "LossLaw",
    "NegativeBinomialRuns",
    "OneWay",
    "PoissonRuns",
    "PoissonSampledLoss",
    "PrivacyLoss",
    "PureLoss",
    "RandomizedResponseLoss",
    "RenyiLoss",
    "Reversed",
    "Running",
    "SampledGaussianGroupLoss",
    "SelectedLoss",
    "ShuffledLoss",
    "SignedPairLoss",
    "StaircaseLoss",
    "Sum",
    "TabulatedLoss",
    "TcdpLoss",
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
    "zcdp_chain",
]
