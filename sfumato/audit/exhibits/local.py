"""Local randomizers: the report of one person, on the two values that are easiest to tell apart."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.audit.collection import Exhibit
from sfumato.local.duchi import DuchiMean
from sfumato.local.frequency import FrequencyOracle
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hybrid import HybridMean
from sfumato.local.piecewise import PiecewiseMean
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.response import Response
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import UnaryEncoding
from sfumato.loss.base import PrivacyLoss
from sfumato.noise.entropy import SYSTEM, Source


@dataclass(frozen=True)
class LocalReport:
    """A randomizer as a mechanism: a value in, a report out, with the loss of one report.

    Theorem: the report of a pure frequency oracle has three loss values [docs/theorems/local.md, Theorem 1]
    """

    randomizer: Any
    source: Source = field(default=SYSTEM, repr=False, compare=False)

    def release(self, value: object) -> object:
        found = replace(self.randomizer, source=self.source).randomize(np.atleast_1d(np.asarray(value)))
        return found if isinstance(value, np.ndarray) and value.ndim else found[0]

    def loss(self) -> PrivacyLoss:
        loss: PrivacyLoss = self.randomizer.loss()
        return loss


FREQUENCIES: tuple[FrequencyOracle, ...] = (
    Response.two_coins(),
    Response.of(5, 1.0),
    SubsetSelection.of(8, 1.0),
    ProjectiveResponse.of(13, 1.0),
    UnaryEncoding.of(6, 1.0),
    HadamardResponse.of(7, 1.0),
)
NUMBERS = (DuchiMean.of(1.0), PiecewiseMean.of(1.0), HybridMean.of(1.0))


def exhibit(randomizer: Any, first: object, second: object) -> Exhibit:
    """One randomizer on two values."""
    return Exhibit("local", lambda source: LocalReport(randomizer, source), first, second, rows=True)


EXHIBITS = (
    *(exhibit(one, 0, 1) for one in FREQUENCIES),
    *(exhibit(one, -1.0, 1.0) for one in NUMBERS),
)
