"""The older view of noise for smooth sensitivity: sliding and dilation, each with half of ε and δ."""

from typing import NamedTuple

from sfumato import checks
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.dependent.noise_family import Noise
from sfumato.mechanisms.dependent.shifted_pairs import directions


class Admissibility(NamedTuple):
    """δ/2 of each property at ε/2: P(Z ∈ A) ≤ e^{ε/2}·P(Z ∈ A + Δ) + δ/2, and the same for e^λ·A."""

    sliding: Bound
    dilating: Bound

    def holds(self, delta: float) -> bool:
        """Is the noise certainly admissible for this δ?"""
        return max(self.sliding.upper, self.dilating.upper) <= checks.probability("delta", delta) / 2


def admissibility(noise: Noise, shift: float, dilation: float, epsilon: float) -> Admissibility:
    """How much δ/2 the two properties need at ε/2, for |Δ| ≤ shift and |λ| ≤ dilation.

    Both are largest at the ends: shifts by Lemma 1, dilations as ln|Z| has a log-concave density, whose translates have
    a monotone likelihood ratio. The envelope `SmoothLoss` prices both together, which asks for much less noise.

    Theorem: f + (S/α)·Z is (ε, δ)-DP if Z is (α, β)-admissible and S a β-smooth bound [Nissim, Raskhodnikova & Smith
        2007, Lemma 2.6]
    """
    half = floats([checks.non_negative("epsilon", epsilon) / 2])
    slid = worse(noise, checks.positive("shift", shift), 0.0, half)
    return Admissibility(slid, worse(noise, 0.0, checks.positive("dilation", dilation), half))


def worse(noise: Noise, shift: float, dilation: float, eps: Floats) -> Bound:
    """The larger of both directions."""
    found = [way.profile(eps) for way in directions(noise, shift, dilation)]
    return Bound(max(x.lower[0] for x in found), max(x.upper[0] for x in found), "cells")
