"""Mechanisms whose noise, or whose silence, depends on the data at hand: less of both where data are well-behaved."""

from sfumato.dependent.admissible import Admissibility, admissibility
from sfumato.dependent.arsinh_normal import ArsinhNormalNoise
from sfumato.dependent.calibration import Calibrated, for_epsilon, for_ledger, for_zcdp
from sfumato.dependent.cauchy import CauchyNoise
from sfumato.dependent.chosen import ChosenQuantile
from sfumato.dependent.counted import Counted
from sfumato.dependent.edges import Graph
from sfumato.dependent.everywhere import Everywhere
from sfumato.dependent.extremes import Maximum, Minimum
from sfumato.dependent.gate import Gate
from sfumato.dependent.given import Given, Refuted, refute
from sfumato.dependent.grid import Passed, SearchTestRelease
from sfumato.dependent.instances import Instances, LeverageReport, Leverages
from sfumato.dependent.ladder import Ladder
from sfumato.dependent.light import GaussianNoise, LaplaceNoise
from sfumato.dependent.log_normal import LaplaceLogNormalNoise, UniformLogNormalNoise
from sfumato.dependent.loss import SmoothLoss
from sfumato.dependent.noises import Noise
from sfumato.dependent.noisy_bound import Bounded, NoisyBound
from sfumato.dependent.ordered import Ordered
from sfumato.dependent.propose import ProposeTestRelease
from sfumato.dependent.quantile import Quantile
from sfumato.dependent.reciprocal import Reciprocal
from sfumato.dependent.regression import PredictionVariance
from sfumato.dependent.reports import MeanReport, Means, Moves, MovesReport
from sfumato.dependent.routes import Way, at, on_ledger
from sfumato.dependent.sized import Kept
from sfumato.dependent.smooth import Off, Smooth, SmoothWithError
from sfumato.dependent.stable import GaussianStableValue, Stable, StableValue, mode, top_set
from sfumato.dependent.stars import Stars
from sfumato.dependent.statistic import OfValues, Statistic
from sfumato.dependent.student import StudentNoise
from sfumato.dependent.tested import TestedRelease
from sfumato.dependent.triangles import Triangles
from sfumato.dependent.trimmed_mean import TrimmedMean
from sfumato.dependent.trimmed_share import TrimmedShare

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
