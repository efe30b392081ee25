"""Local privacy: randomise at the person, estimate at the server, shuffle in between."""

from sfumato.local import survey
from sfumato.local.choose import Choices, choose, frequency_oracle
from sfumato.local.duchi import DuchiMean
from sfumato.local.estimate import FrequencyEstimate, Interval, Target, estimate, project_to_simplex
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hashing import LocalHashing
from sfumato.local.heavy_hitters import HeavyHitters
from sfumato.local.hybrid import HybridMean
from sfumato.local.longitudinal import Loloha, Memoised
from sfumato.local.odds import Odds
from sfumato.local.piecewise import PiecewiseMean
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.randomizer import Randomizer
from sfumato.local.ranges import RangeTree
from sfumato.local.rappor import Rappor
from sfumato.local.response import Response
from sfumato.local.shuffle import Shuffled, shuffle_file
from sfumato.local.subset import SubsetSelection, least_total_variance
from sfumato.local.unary import UnaryEncoding
from sfumato.local.unit_vector import UnitVector

__all__ = [
    "Choices",
    "DuchiMean",
    "FrequencyEstimate",
    "HadamardResponse",
    "HeavyHitters",
    "HybridMean",
    "Interval",
    "LocalHashing",
    "Loloha",
    "Memoised",
    "Odds",
    "PiecewiseMean",
    "ProjectiveResponse",
    "Randomizer",
    "RangeTree",
    "Rappor",
    "Response",
    "Shuffled",
    "SubsetSelection",
    "Target",
    "UnaryEncoding",
    "UnitVector",
    "choose",
    "estimate",
    "frequency_oracle",
    "least_total_variance",
    "project_to_simplex",
    "shuffle_file",
    "survey",
]
