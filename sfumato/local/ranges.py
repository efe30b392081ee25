"""Ranges, distribution functions and quantiles, by a tree: each person reports one level of it, with all of ε."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.bitsets import integers
from sfumato.local.choose import frequency_oracle
from sfumato.local.estimate import estimate, miss_of
from sfumato.local.frequency import FrequencyOracle
from sfumato.local.randomizer import read_values
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.signed_pair import SignedPairLoss
from sfumato.loss.numeric import Floats, floats
from sfumato.noise import Uniform
from sfumato.noise.entropy import SYSTEM, Source
from sfumato.rounding import round_up
from sfumato.sensitivity import Relation, ReplaceOne

MOST = 1 << 20


class LevelReport(NamedTuple):
    """The level that a person reports about, which is public, and the report."""

    level: int
    report: int


@dataclass(frozen=True)
class RangeTree:
    """Values 0, …, k − 1 as leaves of a tree with `branching` children per node: `height` levels below the root.

    Each person draws one level, independently of the value, and reports its node there with all of ε: one report, whose
    loss is the largest of the levels'. (To split ε over the levels would cost about `height` times the variance.)

    Theorem: one random level with all of ε beats all levels with a share [Cormode, Kulkarni & Srivastava 2019, Sec. 4]
    """

    k: int
    eps: float
    branching: int = 5
    source: Source = field(default=SYSTEM, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, MOST))
        object.__setattr__(self, "branching", checks.whole("branching", self.branching, 2, 1024))
        self.oracles  # noqa: B018  # checks eps

    @cached_property
    def height(self) -> int:
        levels = 1
        while self.branching**levels < self.k:
            levels += 1
        return levels

    def nodes(self, level: int) -> int:
        """How many nodes of level 1, …, height hold a value."""
        size = int(self.branching ** (self.height - level))
        return -(-self.k // size)

    @cached_property
    def oracles(self) -> tuple[FrequencyOracle, ...]:
        """One for each level, the coarsest first, whose reports hold at most 53 bits."""
        sizes = [max(2, self.nodes(level)) for level in range(1, self.height + 1)]
        return tuple(frequency_oracle(size, self.eps, bits=53) for size in sizes)

    def loss(self, relation: Relation = ReplaceOne) -> PrivacyLoss:
        """The loss of one person's report: at most that of the worst level, as levels do not depend on values."""
        eps, weight = max(one.epsilon for one in self.oracles), max(one.weight for one in self.oracles)
        return SignedPairLoss(eps, round_up(weight), relation=relation)

    def randomize(self, values: ArrayLike) -> list[LevelReport]:
        """A level and a report for each value."""
        flat = read_values(values, self.k).reshape(-1)
        levels = Uniform(self.height, self.source).draw(flat.size)
        found: list[LevelReport | None] = [None] * flat.size
        for at, oracle in enumerate(self.oracles):
            mine = np.flatnonzero(levels == at)
            node = flat[mine] // self.branching ** (self.height - 1 - at)
            drawn = oracle.with_source(self.source)
            answers = drawn.answers(node)
            reports = integers(answers, oracle.k) if oracle.scheme == "subset" else answers.tolist()
            for place, report in zip(mine.tolist(), reports, strict=True):
                found[place] = LevelReport(at + 1, report)
        return [one for one in found if one is not None]

    def estimate(self, reports: "list[LevelReport]") -> "RangeEstimate":
        """Consistent shares of all nodes."""
        by_level: list[list[int]] = [[] for _ in self.oracles]
        for level, report in reports:
            if not (type(level) is int and 1 <= level <= self.height and self.oracles[level - 1].is_report(report)):
                raise InvalidParameter(
                    "a report is a level and a report of it.\n  found:  something else\n"
                    "  do:     give what `randomize` returned, and count what is malformed apart"
                )
            by_level[level - 1].append(report)
        if not all(by_level):
            raise InvalidParameter(
                f"every level needs reports.\n  found:  {len(reports)} reports on {self.height} levels\n"
                "  do:     collect more reports"
            )
        raw = [estimate(oracle, mine) for oracle, mine in zip(self.oracles, by_level, strict=True)]
        shares = [one.raw[: self.nodes(level)] for level, one in enumerate(raw, 1)]
        spread = [float(one.oracle.worst_variance) / one.people for one in raw]
        return RangeEstimate(self, consistent(shares, spread, self.branching), tuple(spread))


@dataclass(frozen=True, eq=False)
class RangeEstimate:
    """Shares of the nodes of each level after least squares, and the variance of a raw node of each level."""

    tree: RangeTree
    shares: tuple[Floats, ...]
    spread: tuple[float, ...]

    def range(self, low: int, high: int) -> float:
        """The share of values v with low ≤ v < high: leaves add up, as shares are consistent."""
        a, b = checks.whole("low", low, 0, self.tree.k), checks.whole("high", high, 0, self.tree.k)
        return float(self.shares[-1][a:b].sum())

    def range_error(self, confidence: float = 0.95) -> float:
        """A normal radius for any one range, and a wide one: 2(b − 1) raw nodes of each level, each at its worst.

        Least squares lowers the error, so this covers more often than the confidence says, also with few reports.
        """
        z = -float(ndtri(miss_of(confidence, 1) / 2))
        return z * float(np.sqrt(sum(2 * (self.tree.branching - 1) * v for v in self.spread)))

    @cached_property
    def distribution(self) -> Floats:
        """P[value ≤ v]: prefix sums, made monotone by isotonic regression, cut to [0, 1]."""
        return np.clip(isotonic(np.cumsum(self.shares[-1])), 0.0, 1.0)

    def quantile(self, share: float) -> int:
        """The least v with P[value ≤ v] ≥ share."""
        level = checks.probability("share", share)
        return min(int(np.searchsorted(self.distribution, level)), self.tree.k - 1)

    def quantile_interval(self, share: float, confidence: float = 0.95) -> tuple[int, int]:
        """Values between which the quantile lies: a band for all prefixes at once, inverted."""
        level, k = checks.probability("share", share), self.tree.k
        z = -float(ndtri(miss_of(confidence, k) / 2))
        radius = z * float(np.sqrt(sum((self.tree.branching - 1) * v for v in self.spread)))
        low = int(np.searchsorted(self.distribution, level - radius))
        high = int(np.searchsorted(self.distribution, level + radius))
        return min(low, k - 1), min(high, k - 1)


def consistent(shares: list[Floats], spread: list[float], branching: int) -> tuple[Floats, ...]:
    """Least squares: leaves such that every node is the sum of its children, and the root is 1.

    Upwards, a node's own share and the sum of its children are averaged by 1/variance; downwards, what is missing is
    split evenly. Nodes have the same number of children up to the last, which is treated alike.

    Theorem: this two-pass rule is the least-squares solution for even trees [Hay, Rastogi, Miklau & Suciu 2010, Thm 3]
    """
    best, variance = [floats(level) for level in shares], list(spread)
    for at in range(len(best) - 2, -1, -1):
        sums = group_sums(best[at + 1], branching, best[at].size)
        below = branching * variance[at + 1]
        weight = below / (below + variance[at])
        best[at] = weight * best[at] + (1 - weight) * sums
        variance[at] = variance[at] * below / (variance[at] + below)
    best[0] = best[0] + (1 - best[0].sum()) / best[0].size
    for at in range(1, len(best)):
        parents = best[at - 1]
        gap = parents - group_sums(best[at], branching, parents.size)
        children = np.bincount(np.arange(best[at].size) // branching, minlength=parents.size)
        best[at] = best[at] + np.repeat(gap / children, children)
    return tuple(best)


def group_sums(values: Floats, size: int, groups: int) -> Floats:
    """Sums of consecutive groups."""
    return floats(np.bincount(np.arange(values.size) // size, weights=values, minlength=groups))


def isotonic(values: Floats) -> Floats:
    """The nearest rising sequence: neighbours that fall are pooled.

    Theorem: pool adjacent violators [Ayer et al. 1955]
    """
    level: list[float] = []
    count: list[int] = []
    for value in values.tolist():
        level.append(value)
        count.append(1)
        while len(level) > 1 and level[-2] > level[-1]:
            weight = count[-2] + count[-1]
            level[-2:] = [(level[-2] * count[-2] + level[-1] * count[-1]) / weight]
            count[-2:] = [weight]
    return floats(np.repeat(level, count))
