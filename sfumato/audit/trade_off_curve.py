"""The trade-off curve of what an adversary can do, from samples, beside the one that was claimed."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.audit.blackbox import CHOOSE, LEARN, sizes, tallies
from sfumato.audit.certify import interval
from sfumato.audit.features import Feature, Split, bank
from sfumato.audit.outputs import columns, distinct_inputs, runs
from sfumato.errors import InvalidParameter
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import ApproxLoss

TESTS = 32  # points of a curve


class Rate(NamedTuple):
    """A probability: what was seen, and an interval that holds it."""

    low: float
    seen: float
    high: float


@dataclass(frozen=True)
class Point:
    """One test, "it was d1 if …": how often it is wrong on d0, how often on d1, and the least that was claimed."""

    false_alarm: Rate
    miss: Rate
    claimed: float  # no test with this many false alarms may miss less often

    @property
    def violated(self) -> bool:
        """Does the test err less than any may?"""
        return self.miss.high < self.claimed


@dataclass(frozen=True)
class Curve:
    """Tests from the most careful to the boldest. All intervals hold at once, with probability `confidence`.

    The true trade-off function lies below or on the curve: some other test may be better, none of these is worse than
    its interval says. Where a whole interval lies below the claim, the claim is refuted.
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
        """The finding in a few words."""
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
        """All of it, ready to be stored."""
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
    """How well the two data sets can be told apart by one feature of the output, at every level of caution.

    The feature and the order in which its values speak for d1 are learned on some runs; the others are counted. With a
    claimed trade-off function f, a test with false alarms a misses with probability f(a) at least.

    Theorem: f-DP bounds the misses of every test from below by f(false alarms) [Dong, Roth & Su 2022, Def. 3]
    Theorem: 2K exact intervals that each err with α/2K hold together with 1 − α [Clopper & Pearson 1934; Bonferroni]

    >>> import sfumato as sf
    >>> sf.audit.trade_off(lambda data: len(data), [1, 2], [1, 2, 3], samples=1000).violated
    True
    """
    claim = claimed_loss(loss, epsilon, delta)
    count, sure = sizes(samples, confidence)
    distinct_inputs(d0, d1)
    at = Split(int(LEARN * count), int((LEARN + CHOOSE) * count))
    sides = runs(mechanism, (d0, d1), count)
    with np.errstate(all="ignore"):
        feature, order = most_telling(bank(*columns(sides, at.known), at), at)
        held = tallies(feature.held(), feature.size)
        cuts = evenly(tallies(feature.codes, feature.size).sum(axis=0)[order])
    totals = np.cumsum(held[:, order], axis=1)[:, cuts]
    beta, n = (1 - sure) / (2 * len(cuts)), count - at.known
    rates = [[Rate(low, k / n, high) for k in row for low, high in [interval(k, n, beta)]] for row in totals.tolist()]
    allowed = claim.trade_off(np.array([rate.high for rate in rates[0]]), tolerance=1e-3).lower
    points = tuple(
        Point(a, Rate(1 - b.high, 1 - b.seen, 1 - b.low), float(least))
        for a, b, least in zip(rates[0], rates[1], np.atleast_1d(allowed), strict=True)
    )
    return Curve(points, feature.name, count, sure)


def claimed_loss(loss: PrivacyLoss | None, epsilon: float, delta: float) -> PrivacyLoss:
    """The claim as a loss."""
    if loss is None:
        return ApproxLoss(checks.non_negative("epsilon", epsilon), checks.probability("delta", delta))
    if not isinstance(loss, PrivacyLoss) or loss.relation.one_way or (epsilon, delta) != (1.0, 0.0):
        raise InvalidParameter(
            "a claimed trade-off function is that of a loss in both directions, or of (epsilon, delta).\n"
            f"  found:  {'both' if (epsilon, delta) != (1.0, 0.0) else f'a {type(loss).__name__}'}\n"
            "  do:     give what mechanism.loss(…) returns, or epsilon= and delta="
        )
    return loss


def most_telling(features: Iterable[Feature], at: Split) -> tuple[Feature, NDArray[np.intp]]:
    """The feature whose codes, ordered by how they speak for d1 while learning, separate the later runs best."""
    found: tuple[float, Feature, NDArray[np.intp]] | None = None
    for feature in features:
        early = tallies(feature.codes[:, : at.learn], feature.size)
        late = tallies(feature.codes[:, at.learn :], feature.size)
        order = np.argsort(np.log(early[0] + 0.5) - np.log(early[1] + 0.5), kind="stable")
        first, second = late[0][order].astype(float), late[1][order].astype(float)
        wins = float(second @ (np.cumsum(first[::-1])[::-1] - first / 2))  # pairs in which d1 looks more like d1
        if found is None or wins > found[0]:
            found = wins, feature, order
    assert found is not None  # every output has a column
    return found[1:]


def evenly(weights: NDArray[np.int64]) -> NDArray[np.intp]:
    """Places in an order that cut it into about TESTS parts of equal weight, none of them at its end."""
    whole = np.cumsum(weights)
    places = np.searchsorted(whole, np.arange(1, TESTS + 1) * whole[-1] / (TESTS + 1), "left")
    return np.unique(np.minimum(places, max(len(weights) - 2, 0)))
