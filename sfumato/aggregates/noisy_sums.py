"""The sums of an aggregate: how they follow from the noisy parts that are released, and how far off they may be."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.aggregates.intervals import CombinedGaussian, Spread, Terms, bounded_spread, spread
from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.price import Noise
from sfumato.sql.emit.norm import WHOLE

CONFIDENCE = 0.95
COUNT_PART = 0.02  # share of the error probability of an interval that is used to bound the count of left-out rows
UNEVEN = 2.0  # how many times a group's share of what is kept its share of what the tail's people leave out may be
ROUNDED = 2.001  # parts of WHOLE by which a weight is below √(B/q) at most
Number = float | int


@dataclass(frozen=True)
class Missing:
    """The left-out bound of a block: scaling took at most `most` sizes of a row from each group.

    A mean differs from that of the weighted rows by at most λ·d, where λ is the share that was taken away and d how far
    the means of these rows and of the others are apart; `apart` is the largest d that is allowed for, in halves of the
    range: 2 holds for all data.

    Theorem: T·m = S·m_w + L·m′ for the mean m′ of what was taken away, so m − m_w = (L/T)·(m′ − m_w)
        [docs/theorems/contributions.md, Theorem 3]
    """

    most: float
    apart: float
    certain: bool = False  # for all data, not only by the shape of the tail
    times: float = math.inf  # nobody's contributions are longer than 1 + `times` bounds, so no weight is less than that
    shared: float = 0.0  # the part of `most` that falls on groups by what they have
    kept: float = 0.0  # the sum of scaled lengths: what a scaled count is a share of

    def rows(self, count: float) -> float:
        """Upper bound of what scaling took from a group with this scaled count."""
        most = self.of_group(count)
        return min(most, max(count, 0.0) * (1 / self.least_weight - 1)) if self.least_weight > 0 else most

    def of_group(self, count: float) -> float:
        """`most`, of which a group has at most UNEVEN times its share of `shared`; the rest may all be in one group.

        Theorem: if the tail's people have at most UNEVEN times the share of group k in what they leave out that all
            people have in what is kept, L_k ≤ UNEVEN·(S_k/M)·E₁ + E₂ [docs/theorems/contributions.md, Theorem 3 (e)]
        """
        if not self.shared or not math.isfinite(count):
            return self.most
        part = UNEVEN * max(count, 0.0) / max(self.kept, 1e-9)
        return self.most - self.shared * max(0.0, 1 - part)

    @property
    def least_weight(self) -> float:
        """Weights are at least 1/(1 + times), up to their rounding."""
        return 1 / (1 + self.times) - ROUNDED / WHOLE

    def share(self, count: float) -> float:
        """λ, at most, in a group with this scaled count or a larger one; weights are rounded down, too."""
        most = self.of_group(count)
        taken = most / (max(count, 0.0) + most) if most else 0.0
        return min(1.0, taken + ROUNDED / WHOLE, 1 - self.least_weight)


@dataclass(frozen=True)
class NoisySums:
    """The sums that an aggregate is read from: how they follow from noisy parts, and how far off they may be."""

    joint: NoiseBasis
    indexes: tuple[int, ...]  # of the sums of the aggregate, among the measures of the plan
    noise: tuple[Noise | CombinedGaussian | None, ...]  # the noise of each part; None: no noise
    confidence: float = CONFIDENCE
    averaged: bool = False  # parts are weighted means of several releases: Gaussian noise and at most ½ of rounding
    missing: "Missing | None" = None  # what scaling took away; None: nothing

    @property
    def combined(self) -> bool:
        """Are parts combined from several tables that add up? Then counts are not rounded, or they would not."""
        return any(isinstance(noise, CombinedGaussian) for noise in self.noise)

    def values(self, row: Sequence[Number]) -> list[Number]:
        """The noisy sums, from the noisy parts of a group."""
        return [self.joint.measure(j, row) for j in self.indexes]

    def span(self, place: int = 0) -> tuple[int, int]:
        """The least and the most that one row adds to a sum, in steps from its centre."""
        return self.joint.measures[self.indexes[place]].span()

    def terms(self, coefficients: Sequence[Fraction]) -> Terms:
        """The noise of a combination of parts."""
        pairs = zip(coefficients, self.noise, strict=True)
        return tuple((c, noise) for c, noise in pairs if c and noise is not None)

    def spread(self, coefficients: Sequence[Fraction]) -> Spread:
        """How far a combination of parts may be off."""
        return (bounded_spread if self.averaged else spread)(self.terms(coefficients), self.confidence)

    def widen(self, low: float, high: float, down: float, up: float, count: float = math.inf) -> tuple[float, float]:
        """An interval of a sum, with what was taken away: between −down and up for each size of a row, and a little
        more, since weights are rounded down. `count`: a scaled count that the group does not exceed."""
        if self.missing is None:
            return low, high
        floor, rows = ROUNDED / (self.joint.weight - ROUNDED), self.missing.rows(count)
        low, high = low - down * rows, high + up * rows
        return low - abs(low) * floor * (down > 0), high + abs(high) * floor

    @property
    def noise_confidence(self) -> float:
        """The confidence of the noise of means and sums: COUNT_PART of what may be missed is for a bounded count."""
        return self.confidence if self.missing is None else 1 - (1 - COUNT_PART) * (1 - self.confidence)

    def count_radius(self, index: int) -> float:
        """A measure is farther off on one given side with at most COUNT_PART of what an interval may miss."""
        confidence = 1 - 2 * COUNT_PART * (1 - self.confidence)
        return replace(self, confidence=confidence).spread(self.joint.coefficients[index]).radius

    def own_noise(self, place: int) -> tuple[Fraction, Terms]:
        """(κ, terms) of a sum that is κ times its parent, and noise of its own."""
        j = self.indexes[place]
        part = self.joint.parts[j]
        below = part.scale * self.joint.weight_of(self.joint.measures[j])
        alone = [Fraction(1, below) if i == j else Fraction(0) for i in range(len(self.noise))]
        return Fraction(part.shift, part.scale), self.terms(alone)
