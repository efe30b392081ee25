"""The privacy loss of noise whose scale depends on the data: the worst over all shifts and dilations of neighbours."""

import math
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, Symmetric
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Enclosure, Floats, floats, maximum
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.shifted_pairs import Direction, directions


@dataclass(frozen=True)
class SmoothLoss(Symmetric):
    """The loss of f + (S/s)·Z where neighbours have |f − f'| ≤ min(S, S') and ln(S'/S) in {0, ±t/r, …, ±t}.

    In units of the smaller scale the pairs are (Z, e^l·Z + u) with 0 ≤ u ≤ s and l in {0, t/r, …, t}, in both orders.
    `shift` is s, `dilation` t and `steps` r. The profile and the Rényi curve are those of the worst pair at each ε and
    at each order. `grain` > 1 makes cells coarser: faster, and still certified. The worst shift is u = s:

    Theorem: for symmetric unimodal p, q and γ ≥ 0, ∫(p(x) − γq(x − u))₊dx is non-decreasing in u ≥ 0. It is
        1 − ∫min(p, γq(· − u)), and min = ∫ over s of two level sets, intervals about 0 and u, whose overlap does not
        grow with u [docs/theorems/dilation.md, Lemma 1]
    Theorem: neighbours' scales are at most t apart in the logarithm, their answers by the smaller one [Nissim,
        Raskhodnikova & Smith 2007, Def. 2.1; docs/theorems/dilation.md, Theorem 3]
    """

    noise: Noise
    shift: float
    dilation: float
    steps: int = 1
    grain: float = 1.0

    method = "cells"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.noise, Noise):
            raise InvalidParameter(
                f"noise must be a noise family of sf.dependent.\n  found:  a {type(self.noise).__name__}\n"
                "  do:     give one, such as StudentNoise(6)"
            )
        shift = checks.number("shift", self.shift, 1e-4, 100.0, allowed="a number from 0.0001 to 100")
        dilation = checks.number("dilation", self.dilation, 0.0, 3.0, allowed="a number from 0 to 3")
        object.__setattr__(self, "shift", shift)
        object.__setattr__(self, "dilation", dilation)
        object.__setattr__(self, "grain", checks.number("grain", self.grain, 0.1, 100.0, allowed="a number near 1"))
        object.__setattr__(self, "steps", checks.whole("steps", self.steps, 1, 64))

    @property
    def pairs(self) -> list[Direction]:
        """Every pair that can occur, in both orders; without dilation the two orders are equal."""
        rungs = range(self.steps + 1) if self.dilation else range(1)
        by_rung = [directions(self.noise, self.shift, self.dilation * i / self.steps, self.grain) for i in rungs]
        return [way for i, pair in enumerate(by_rung) for way in (pair[:1] if i == 0 else pair)]

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return reduce(maximum, (way.profile(eps) for way in self.pairs))

    @property
    def one_pair(self) -> bool:
        return False

    @property
    def sharp_ends(self) -> bool:
        return False

    def supremum(self) -> tuple[float, float]:
        leaky = any(way.leak > 0 for way in self.pairs)
        top = math.inf if leaky else max(way.top for way in self.pairs)
        return top, top

    def leak(self) -> tuple[float, float]:
        """The mass beyond the last cell, which is counted as δ: below 1e-44."""
        most = max(way.leak for way in self.pairs)
        return most, most

    def log_moment(self, s: float) -> Bound:
        found = [way.log_moment(s) for way in self.pairs]
        choose = max if s > 0 else min  # below order 1 a larger divergence means a smaller moment
        return Bound(choose(low for low, _ in found), choose(high for _, high in found), self.method)

    def mean(self) -> Bound:
        """D₁ is at most D_{1 + s}, and at least D_{1 − s}."""
        s = 1e-6
        return Bound(self.log_moment(-s).upper / -s, self.log_moment(s).upper / s, self.method)

    def rho_beyond(self, order: float) -> float:
        return max(way.slope_beyond(order) for way in self.pairs)


class Admissibility(NamedTuple):
    """The least δ/2 of each property at ε/2: P(Z ∈ A) ≤ e^{ε/2}·P(Z ∈ A + Δ) + δ/2, and the same for e^λ·A."""

    sliding: Bound
    dilating: Bound

    def holds(self, delta: float) -> bool:
        """Whether the noise is certainly admissible for this δ."""
        return max(self.sliding.upper, self.dilating.upper) <= checks.probability("delta", delta) / 2


def admissibility(noise: Noise, shift: float, dilation: float, epsilon: float) -> Admissibility:
    """The δ/2 that sliding and dilation need at ε/2, for |Δ| ≤ shift and |λ| ≤ dilation: the original analysis.

    Both are largest at the ends: shifts by Lemma 1, dilations because ln|Z| has a log-concave density, whose translates
    have a monotone likelihood ratio. `SmoothLoss` prices shift and dilation together, which needs much less noise.

    Theorem: f + (S/α)·Z is (ε, δ)-DP if Z is (α, β)-admissible and S a β-smooth bound [Nissim, Raskhodnikova & Smith
        2007, Lemma 2.6]
    """
    half = floats([checks.non_negative("epsilon", epsilon) / 2])
    slid = worst_direction(noise, checks.positive("shift", shift), 0.0, half)
    return Admissibility(slid, worst_direction(noise, 0.0, checks.positive("dilation", dilation), half))


def worst_direction(noise: Noise, shift: float, dilation: float, eps: Floats) -> Bound:
    """The larger profile of both directions."""
    found = [way.profile(eps) for way in directions(noise, shift, dilation)]
    return Bound(max(x.lower[0] for x in found), max(x.upper[0] for x in found), "cells")
