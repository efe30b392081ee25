"""The loss of noise whose scale depends on the data: the worst over all shifts and dilations of neighbours."""

import math
from dataclasses import dataclass
from functools import reduce

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, Symmetric
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Enclosure, Floats, maximum
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.shifted_pairs import Direction, directions


@dataclass(frozen=True)
class SmoothLoss(Symmetric):
    """f + (S/s)·Z where neighbours have |f − f'| ≤ min(S, S') and ln(S'/S) in {0, ±t/r, …, ±t}.

    In units of the smaller scale the pairs are (Z, e^l·Z + u) with 0 ≤ u ≤ s and l in {0, t/r, …, t}, in both orders.
    `shift` is s, `dilation` t and `steps` r. The profile and the Rényi curve are those of the worst pair at each ε and
    at each order. `grain` > 1 cuts cells coarser: quicker, and certified all the same. Only u = s matters:

    Theorem: for symmetric unimodal p, q and γ ≥ 0, ∫(p(x) − γq(x − u))₊dx does not fall with u ≥ 0. It is
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
                f"noise must be a family of noise.\n  found:  a {type(self.noise).__name__}\n"
                "  do:     give one, such as StudentNoise(6)"
            )
        shift = checks.number("shift", self.shift, 1e-4, 100.0, allowed="a number from 0.0001 to 100")
        dilation = checks.number("dilation", self.dilation, 0.0, 3.0, allowed="a number from 0 to 3")
        object.__setattr__(self, "shift", shift)
        object.__setattr__(self, "dilation", dilation)
        object.__setattr__(self, "grain", checks.number("grain", self.grain, 0.1, 100.0, allowed="a number near 1"))
        object.__setattr__(self, "steps", checks.whole("steps", self.steps, 1, 64))

    @property
    def ways(self) -> list[Direction]:
        """Every pair that can occur, in both orders."""
        rungs = range(self.steps + 1) if self.dilation else range(1)
        pairs = [directions(self.noise, self.shift, self.dilation * i / self.steps, self.grain) for i in rungs]
        return [
            way for i, pair in enumerate(pairs) for way in (pair[:1] if i == 0 else pair)
        ]  # without l both are alike

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return reduce(maximum, (way.profile(eps) for way in self.ways))

    @property
    def one_pair(self) -> bool:
        return False

    @property
    def sharp_ends(self) -> bool:
        return False

    def supremum(self) -> tuple[float, float]:
        leaky = any(way.leak > 0 for way in self.ways)
        top = math.inf if leaky else max(way.top for way in self.ways)
        return top, top

    def leak(self) -> tuple[float, float]:
        """What lies so far out that it is counted as lost: below 1e-44."""
        most = max(way.leak for way in self.ways)
        return most, most

    def log_moment(self, s: float) -> Bound:
        found = [way.log_moment(s) for way in self.ways]
        choose = max if s > 0 else min  # below order 1 a larger divergence is a smaller moment
        return Bound(choose(low for low, _ in found), choose(high for _, high in found), self.method)

    def mean(self) -> Bound:
        """D₁ is at most D_{1 + s}, and at least D_{1 − s}."""
        s = 1e-6
        return Bound(self.log_moment(-s).upper / -s, self.log_moment(s).upper / s, self.method)

    def rho_beyond(self, order: float) -> float:
        return max(way.slope_beyond(order) for way in self.ways)
