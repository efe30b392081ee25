"""What would a survey show? Made-up people with given shares answer it."""

from collections.abc import Sequence

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.estimate import FrequencyEstimate
from sfumato.local.survey.design import Design
from sfumato.local.survey.reports import Tallied
from sfumato.local.survey.result import SurveyResult


def simulate(design: Design, people: int, shares: Sequence[float] | None = None) -> SurveyResult:
    """The result of n made-up people; shares are equal unless given. Fresh noise each time."""
    n, k = checks.whole("people", people, 1, 10**8), design.randomizer.k
    wanted = np.full(k, 1 / k) if shares is None else np.asarray(checks.distribution("shares", shares))
    if wanted.size != k:
        raise InvalidParameter(f"give one share for each of the {k} answers.\n  found:  {wanted.size} shares")
    ends = np.rint(np.cumsum(wanted) * n).astype(np.int64)
    values = np.repeat(np.arange(k), np.diff(ends, prepend=0))
    oracle = design.randomizer
    reports = oracle.read_reports(oracle.randomize(values))
    found = FrequencyEstimate(oracle, n, oracle.support(reports))
    return SurveyResult(design, Tallied((), 0, 0, 0), found, 0.95, max(1, n // 100))
