"""Counts by group whose members are told about the less, the larger their group: a relative error as a contract."""

from sfumato.mechanisms.groups.asinh import Asinh
from sfumato.mechanisms.groups.certificate import Certificate
from sfumato.mechanisms.groups.contract import (
    Contract,
    MeanError,
    MeanErrorAtMost,
    ProportionalError,
    RootMeanSquareError,
    contract,
)
from sfumato.mechanisms.groups.custom import Given
from sfumato.mechanisms.groups.groupwise import GroupwiseLoss, Policy
from sfumato.mechanisms.groups.identity import Identity
from sfumato.mechanisms.groups.log import Log
from sfumato.mechanisms.groups.lower_bound import psi
from sfumato.mechanisms.groups.product import Product, ProductOfGaussians, ProductPair
from sfumato.mechanisms.groups.proportional import ProportionalGaussian, ScaledPair
from sfumato.mechanisms.groups.square_root import SquareRoot
from sfumato.mechanisms.groups.transform import Estimator, Transform
from sfumato.mechanisms.groups.transformed import Transformed

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
