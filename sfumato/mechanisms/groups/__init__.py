"""Counts by group with a promised relative error: the larger a group, the smaller the privacy loss of its members."""

from sfumato.mechanisms.groups.groupwise import GroupwiseLoss, Policy
from sfumato.mechanisms.groups.lower_bound import psi
from sfumato.mechanisms.groups.product_of_gaussians import Product, ProductOfGaussians, ProductPair
from sfumato.mechanisms.groups.proportional_gaussian import ProportionalGaussian, ScaledPair
from sfumato.mechanisms.groups.relative_error import (
    Certificate,
    Contract,
    MeanError,
    MeanErrorAtMost,
    ProportionalError,
    RootMeanSquareError,
    contract,
)
from sfumato.mechanisms.groups.transformed import Transformed
from sfumato.mechanisms.groups.transforms import Asinh, Estimator, Given, Identity, Log, SquareRoot, Transform

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
