"""The trade-off curve of an attacker, estimated from samples with simultaneous intervals, against the claimed one."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.audit.blackbox import CHOOSE, LEARN, checked_sizes, count_codes
from sfumato.audit.certify import clopper_pearson
from sfumato.audit.features import Feature, Split, all_features
from sfumato.audit.outputs import output_columns, require_different_data, run_many
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import ApproxLoss

TESTS = 32  # points of a curve


class ErrorRate(NamedTuple):
    """A probability: the observed rate, and a confidence interval."""

    low: float
    seen: float
    high: float


@dataclass(frozen=True)
class Point:
    """One test, "it was d1 if …": its error rates on d0 and on d1, and the least miss rate that the claim allows."""

    false_alarm: ErrorRate
    miss: ErrorRate
    claimed: float  # the least miss rate that the claim allows at this rate of false alarms

    @property
    def violated(self) -> bool:
        """Does the test miss less often than the claim allows?"""
        return self.miss.high < self.claimed


@dataclass(frozen=True)
class Curve:
    """Tests from the fewest to the most false alarms. All intervals hold at once with probability `confidence`.

    The true trade-off function lies on or below the curve: other tests may be better. Where a whole interval lies below
    the claim, the claim is refuted.
    """

    points: tuple[Point, ...]
    looked_at: str  # the feature of the output that is compared with a threshold
    samples: int
    confidence: float

    @property
    def violated(self) -> bool:
        """Is the claimed trade-off function refuted?"""
        return any(point.violated for point in self.points)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        below = sum(point.violated for point in self.points)
        if below:
            return f"VIOLATED: {below} of {len(self.points)} tests err less often than the claim allows"
        return f"no violation found: none of {len(self.points)} tests errs less often than the claim allows"

    def __str__(self) -> str:
        lines = [self.verdict, f"  by {self.looked_at}, with confidence {self.confidence:.10g}"]
        lines.append("  false alarms            misses                  claimed")
        for point in self.points[:: max(1, len(self.points) // 8)]:
            a, b = point.false_alarm, point.miss
            bounds = [f"{rate.seen:.4f} [{rate.low:.4f}, {rate.high:.4f}]" for rate in (a, b)]
            lines.append(f"  {bounds[0]}  {bounds[1]}  ≥ {point.claimed:.4f}{'  refuted' * point.violated}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """The result as JSON."""
        points = [
            {"false_alarm": list(p.false_alarm), "miss": list(p.miss), "claimed": p.claimed, "violated": p.violated}
            for p in self.points
        ]
        data = {
            "points": points,
            "looked_at": self.looked_at,
            "samples": self.samples,
            "confidence": self.confidence,
            "violated": self.violated,
        }
        return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def trade_off(
    mechanism: object,
    d0: object,
    d1: object,
    epsilon: float = 1.0,
    delta: float = 0.0,
    samples: int = 65536,
    confidence: float = 0.999,
    *,
    loss: PrivacyLoss | None = None,
) -> Curve:
    """How well one feature of the output distinguishes the two data sets, at every rate of false alarms.

    The feature and the order of its values (by likelihood ratio) are learned on some runs; the tests are counted on the
    others. Under a claimed trade-off function f, a test with false alarm rate a misses with probability at least f(a).

    Theorem: f-DP bounds the misses of every test from below by f(false alarms) [Dong, Roth & Su 2022, Def. 3]
    Theorem: 2K exact intervals that each err with α/2K hold together with 1 − α [Clopper & Pearson 1934; Bonferroni]

    >>> import sfumato as sf
    >>> sf.audit.trade_off(lambda data: len(data), [1, 2], [1, 2, 3], samples=1000).violated
    True
    """
    claim = claimed_loss(loss, epsilon, delta)
    count, sure = checked_sizes(samples, confidence)
    require_different_data(d0, d1)
    at = Split(int(LEARN * count), int((LEARN + CHOOSE) * count))
    sides = run_many(mechanism, (d0, d1), count)
    with np.errstate(all="ignore"):
        feature, order = most_separating(all_features(*output_columns(sides, at.known), at), at)
        counts = count_codes(feature.held_out(), feature.size)
        cuts = even_cuts(count_codes(feature.codes, feature.size).sum(axis=0)[order])
    totals = np.cumsum(counts[:, order], axis=1)[:, cuts]
    beta, n = (1 - sure) / (2 * len(cuts)), count - at.known
    rates = [[ErrorRate(low, k / n, high) for k in row for low, high in [clopper_pearson(k, n, beta)]]
             for row in totals.tolist()]  # fmt: skip
    allowed = claim.trade_off(np.array([rate.high for rate in rates[0]]), tolerance=1e-3).lower
    points = tuple(
        Point(a, ErrorRate(1 - b.high, 1 - b.seen, 1 - b.low), float(least))
        for a, b, least in zip(rates[0], rates[1], np.atleast_1d(allowed), strict=True)
    )
    return Curve(points, feature.name, count, sure)


def claimed_loss(loss: PrivacyLoss | None, epsilon: float, delta: float) -> PrivacyLoss:
    """The claim as a loss."""
    if loss is None:
        return ApproxLoss(checks.non_negative("epsilon", epsilon), checks.probability("delta", delta))
    if not isinstance(loss, PrivacyLoss) or loss.relation.one_way or (epsilon, delta) != (1.0, 0.0):
        raise InvalidParameter(
            "the claim must be a loss in both directions, or (epsilon, delta).\n"
            f"  found:  {'both' if (epsilon, delta) != (1.0, 0.0) else f'a {type(loss).__name__}'}\n"
            "  do:     give what mechanism.loss(…) returns, or epsilon= and delta="
        )
    return loss


def most_separating(features: Iterable[Feature], at: Split) -> tuple[Feature, NDArray[np.intp]]:
    """The feature whose codes, ordered by their likelihood ratios while learning, best separate the later runs."""
    best: tuple[float, Feature, NDArray[np.intp]] | None = None
    for feature in features:
        early = count_codes(feature.codes[:, : at.learn], feature.size)
        late = count_codes(feature.codes[:, at.learn :], feature.size)
        order = np.argsort(np.log(early[0] + 0.5) - np.log(early[1] + 0.5), kind="stable")
        first, second = late[0][order].astype(float), late[1][order].astype(float)
        wins = float(second @ (np.cumsum(first[::-1])[::-1] - first / 2))  # pairs of runs that are ranked correctly
        if best is None or wins > best[0]:
            best = wins, feature, order
    assert best is not None  # every output has a column
    return best[1:]


def even_cuts(weights: NDArray[np.int64]) -> NDArray[np.intp]:
    """Positions that cut an order into about TESTS parts of equal weight; the last position is left out."""
    total = np.cumsum(weights)
    places = np.searchsorted(total, np.arange(1, TESTS + 1) * total[-1] / (TESTS + 1), "left")
    return np.unique(np.minimum(places, max(len(weights) - 2, 0)))
