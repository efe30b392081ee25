"""Mechanisms whose noise, or whose silence, depends on the data at hand: less of both where data are well-behaved."""

from sfumato.mechanisms.dependent.admissible import Admissibility, admissibility
from sfumato.mechanisms.dependent.arsinh_normal import ArsinhNormalNoise
from sfumato.mechanisms.dependent.calibration import Calibrated, for_epsilon, for_ledger, for_zcdp
from sfumato.mechanisms.dependent.cauchy import CauchyNoise
from sfumato.mechanisms.dependent.custom import Given, Refuted, refute
from sfumato.mechanisms.dependent.edges import Graph
from sfumato.mechanisms.dependent.extremes import Maximum, Minimum
from sfumato.mechanisms.dependent.fixed_n import Kept
from sfumato.mechanisms.dependent.global_noise import Everywhere
from sfumato.mechanisms.dependent.ladder import Ladder
from sfumato.mechanisms.dependent.laplace_gaussian import GaussianNoise, LaplaceNoise
from sfumato.mechanisms.dependent.log_normal import LaplaceLogNormalNoise, UniformLogNormalNoise
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.noisy_bound import Bounded, NoisyBound
from sfumato.mechanisms.dependent.ordered import Ordered
from sfumato.mechanisms.dependent.per_instance import Instances, LeverageReport, Leverages
from sfumato.mechanisms.dependent.per_instance_reports import MeanReport, Means, Moves, MovesReport
from sfumato.mechanisms.dependent.precomputed import Counted
from sfumato.mechanisms.dependent.private_test import Gate
from sfumato.mechanisms.dependent.propose_grid import Passed, SearchTestRelease
from sfumato.mechanisms.dependent.propose_test_release import ProposeTestRelease
from sfumato.mechanisms.dependent.quantile import Quantile
from sfumato.mechanisms.dependent.quantile_choice import ChosenQuantile
from sfumato.mechanisms.dependent.reciprocal import Reciprocal
from sfumato.mechanisms.dependent.regression import PredictionVariance
from sfumato.mechanisms.dependent.routes import Way, at, on_ledger
from sfumato.mechanisms.dependent.smooth import Off, Smooth, SmoothWithError
from sfumato.mechanisms.dependent.smooth_loss import SmoothLoss
from sfumato.mechanisms.dependent.stable import GaussianStableValue, Stable, StableValue, mode, top_set
from sfumato.mechanisms.dependent.stars import Stars
from sfumato.mechanisms.dependent.statistic import OfValues, Statistic
from sfumato.mechanisms.dependent.student import StudentNoise
from sfumato.mechanisms.dependent.test_then_release import TestedRelease
from sfumato.mechanisms.dependent.triangles import Triangles
from sfumato.mechanisms.dependent.trimmed_mean import TrimmedMean
from sfumato.mechanisms.dependent.trimmed_share import TrimmedShare

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
