"""Data-dependent mechanisms: smooth sensitivity, propose-test-release, stable values, per-instance privacy."""

from sfumato.mechanisms.dependent.additive_noise import Everywhere
from sfumato.mechanisms.dependent.calibration import Calibrated, for_epsilon, for_ledger, for_zcdp
from sfumato.mechanisms.dependent.custom import Counted, Given, Refuted, refute
from sfumato.mechanisms.dependent.fixed_n import Kept
from sfumato.mechanisms.dependent.graphs import Graph, Stars, Triangles
from sfumato.mechanisms.dependent.ladder import Ladder
from sfumato.mechanisms.dependent.laplace_gaussian import GaussianNoise, LaplaceNoise
from sfumato.mechanisms.dependent.log_normal import ArsinhNormalNoise, LaplaceLogNormalNoise, UniformLogNormalNoise
from sfumato.mechanisms.dependent.mechanism_choice import Way, at, on_ledger
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.noisy_bound import Bounded, NoisyBound
from sfumato.mechanisms.dependent.order_statistics import Maximum, Minimum, Quantile
from sfumato.mechanisms.dependent.ordered_values import OfValues, Ordered
from sfumato.mechanisms.dependent.per_instance import (
    Instances,
    LeverageReport,
    Leverages,
    MeanReport,
    Means,
    Moves,
    MovesReport,
)
from sfumato.mechanisms.dependent.prediction_variance import PredictionVariance
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.dependent.propose_test_release import (
    Passed,
    ProposeTestRelease,
    SearchTestRelease,
    TestedRelease,
)
from sfumato.mechanisms.dependent.quantile_choice import ChosenQuantile
from sfumato.mechanisms.dependent.smooth import Off, Smooth, SmoothWithError
from sfumato.mechanisms.dependent.smooth_loss import Admissibility, SmoothLoss, admissibility
from sfumato.mechanisms.dependent.stable import GaussianStableValue, Stable, StableValue, mode, top_set
from sfumato.mechanisms.dependent.statistic import Reciprocal, Statistic
from sfumato.mechanisms.dependent.student_cauchy import CauchyNoise, StudentNoise
from sfumato.mechanisms.dependent.trimmed_mean import TrimmedMean, TrimmedShare

__all__ = [
    "Admissibility",
    "ArsinhNormalNoise",
    "Bounded",
    "Calibrated",
    "CauchyNoise",
    "ChosenQuantile",
    "Counted",
    "Everywhere",
    "Gate",
    "GaussianNoise",
    "GaussianStableValue",
    "Given",
    "Graph",
    "Instances",
    "Kept",
    "Ladder",
    "LaplaceLogNormalNoise",
    "LaplaceNoise",
    "LeverageReport",
    "Leverages",
    "Maximum",
    "MeanReport",
    "Means",
    "Minimum",
    "Moves",
    "MovesReport",
    "Noise",
    "NoisyBound",
    "OfValues",
    "Off",
    "Ordered",
    "Passed",
    "PredictionVariance",
    "ProposeTestRelease",
    "Quantile",
    "Reciprocal",
    "Refuted",
    "SearchTestRelease",
    "Smooth",
    "SmoothLoss",
    "SmoothWithError",
    "Stable",
    "StableValue",
    "Stars",
    "Statistic",
    "StudentNoise",
    "TestedRelease",
    "Triangles",
    "TrimmedMean",
    "TrimmedShare",
    "UniformLogNormalNoise",
    "Way",
    "admissibility",
    "at",
    "for_epsilon",
    "for_ledger",
    "for_zcdp",
    "mode",
    "on_ledger",
    "refute",
    "top_set",
]
