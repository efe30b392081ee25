"""Membership inference: the true positive rate of an attacker at low false positive rates, and the most it may be.

Scores come from independent runs, some with a person and some without. The accuracy over all guesses hides the people
for whom privacy failed; the true positive rate at one false alarm in a thousand shows them.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato import checks
from sfumato.audit.certify import clopper_pearson
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss

RATES = (0.001, 0.01, 0.1, 0.5)
FEWEST = 20
MOST = 1e308


@dataclass(frozen=True)
class AttackRate:
    """An attack at one threshold: observed false alarms and finds, with limits that hold for all rates at once."""

    threshold: float
    alarms: float
    alarms_upper: float
    found: float
    found_lower: float
    allowed: float  # the largest rate of finds that the claim allows at `alarms_upper`; 1 without a claim

    @property
    def violated(self) -> bool:
        """Did the attack find more than the claim allows?"""
        return self.found_lower > self.allowed

    def epsilon(self, delta: float) -> float:
        """The ε that these rates certify at δ: found ≤ e^ε·alarms + δ, and the same about misses."""
        ratios = [(self.found_lower - delta, self.alarms_upper), (1 - self.alarms_upper - delta, 1 - self.found_lower)]
        return max((math.log(a / b) for a, b in ratios if a > 0 and b > 0), default=0.0)


@dataclass(frozen=True)
class Membership:
    """Finds at several rates of false alarms, and the most that the claim allows, with simultaneous confidence."""

    rates: tuple[AttackRate, ...]
    confidence: float
    inside: int
    outside: int

    @property
    def violated(self) -> bool:
        """Is the claim refuted?"""
        return any(rate.violated for rate in self.rates)

    def epsilon(self, delta: float = 0.0) -> float:
        """The largest ε that any rate certifies at δ; at least 0."""
        return max(0.0, *(rate.epsilon(checks.probability("delta", delta)) for rate in self.rates))

    def __str__(self) -> str:
        lines = ["VIOLATED: the claim is refuted" if self.violated else "no violation found"]
        lines.append("  false alarms   found   at least   allowed")
        for rate in self.rates:
            mark = "  ← more than allowed" if rate.violated else ""
            lines.append(
                f"  {rate.alarms:12.4f}  {rate.found:6.4f}  {rate.found_lower:9.4f}  {rate.allowed:8.4f}{mark}"
            )
        runs = f"  {self.inside:,} runs with the person, {self.outside:,} without"
        return "\n".join([*lines, runs, f"  confidence {self.confidence:.10g} for all rates at once"])

    def to_json(self) -> str:
        """The result as JSON."""
        rates = [{**vars(rate), "violated": rate.violated} for rate in self.rates]
        data = {**vars(self), "rates": rates, "violated": self.violated}
        return json.dumps(data, sort_keys=True, allow_nan=False)


def membership(
    inside: npt.ArrayLike,
    outside: npt.ArrayLike,
    loss: PrivacyLoss | None = None,
    rates: Sequence[float] = RATES,
    confidence: float = 0.999,
) -> Membership:
    """The rates of an attacker who claims membership for every score above a threshold.

    `inside` are scores of independent runs with the person, `outside` without. Half of the latter set a threshold for
    each rate of false alarms; false alarms are counted on the other half. All limits hold at once with this confidence.

    Theorem: a test with false alarms ≤ α finds at most 1 − f(α), f the trade-off function [Dong, Roth & Su 2022,
        Def. 2.1 and 2.3]
    Theorem: exact binomial limits, each at its share of 1 − confidence [Clopper & Pearson 1934; Bonferroni 1936]
    """
    here, away = checked_scores("inside", inside), checked_scores("outside", outside)
    wanted = [checks.number(f"rates[{i}]", rate, 0.0, 1.0, allowed="rates in [0, 1]") for i, rate in enumerate(rates)]
    if not wanted:
        raise InvalidParameter(
            "there are no rates to look at.\n  found:  rates = ()\n  do:     give rates such as (0.01, 0.1)"
        )
    sure = checks.number("confidence", confidence, 0.5, 1 - 1e-12, allowed="a number from 0.5 to below 1, like 0.999")
    beta = (1 - sure) / len(wanted)  # each of the two limits is a one-sided end, at half of it
    known, counted = away[: len(away) // 2], away[len(away) // 2 :]
    results = []
    for rate in sorted(wanted):
        threshold = float(np.quantile(known, 1 - rate, method="higher"))
        alarms, hits = (int(np.count_nonzero(side > threshold)) for side in (counted, here))
        upper, lower = clopper_pearson(alarms, len(counted), beta)[1], clopper_pearson(hits, len(here), beta)[0]
        allowed = 1.0 if loss is None else min(1.0, 1 - loss.trade_off(upper).lower)
        results.append(AttackRate(threshold, alarms / len(counted), upper, hits / len(here), lower, allowed))
    return Membership(tuple(results), sure, len(here), len(away))


def checked_scores(name: str, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Scores as an array of doubles; NaN counts as the lowest score."""
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    if len(values) < FEWEST:
        raise InvalidParameter(
            f"{name} has too few scores.\n  found:  {len(values)}\n  do:     give {FEWEST} or more, of independent runs"
        )
    return np.nan_to_num(values, nan=-MOST, posinf=MOST, neginf=-MOST)
