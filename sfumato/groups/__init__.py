"""Counts by group whose members are told about the less, the larger their group: a relative error as a contract."""

from sfumato.groups.asinh import Asinh
from sfumato.groups.certificate import Certificate
from sfumato.groups.contract import (
    Contract,
    MeanError,
    MeanErrorAtMost,
    ProportionalError,
    RootMeanSquareError,
    contract,
)
from sfumato.groups.given import Given
from sfumato.groups.groupwise import GroupwiseLoss, Policy
from sfumato.groups.identity import Identity
from sfumato.groups.log import Log
from sfumato.groups.lower_bound import psi
from sfumato.groups.product import Product, ProductOfGaussians, ProductPair
from sfumato.groups.proportional import ProportionalGaussian, ScaledPair
from sfumato.groups.square_root import SquareRoot
from sfumato.groups.transform import Estimator, Transform
from sfumato.groups.transformed import Transformed

__all__ = [
    "Asinh",
    "Certificate",
    "Contract",
    "Estimator",
    "Given",
    "GroupwiseLoss",
    "Identity",
    "Log",
    "MeanError",
    "MeanErrorAtMost",
    "Policy",
    "Product",
    "ProductOfGaussians",
    "ProductPair",
    "ProportionalError",
    "ProportionalGaussian",
    "RootMeanSquareError",
    "ScaledPair",
    "SquareRoot",
    "Transform",
    "Transformed",
    "contract",
    "psi",
]
