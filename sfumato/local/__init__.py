"""Local privacy: randomise at the person, estimate at the server, shuffle in between."""

from sfumato.local.estimate import FrequencyEstimate, estimate
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hashing import LocalHashing
from sfumato.local.intervals import Interval, Target
from sfumato.local.odds import Odds
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.randomizer import Randomizer
from sfumato.local.response import Response
from sfumato.local.shuffle import Shuffled
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import UnaryEncoding

__all__ = [
    "FrequencyEstimate",
    "HadamardResponse",
    "Interval",
    "LocalHashing",
    "Odds",
    "ProjectiveResponse",
    "Randomizer",
    "Response",
    "Shuffled",
    "SubsetSelection",
    "Target",
    "UnaryEncoding",
    "estimate",
]
