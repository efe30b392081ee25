"""Composition on a lattice: tilt, Fourier transform, power, back; certified from both sides.

Each loss becomes a positive law on a lattice that dominates it (discretise.py). Tilting by e^{θL} moves the largest
mass into the tail that δ is read from, so that the rounding error of the FFT, relative to the largest mass, is
relative to δ.

Upper bound: the composed lattice law dominates; FFT error, wrapped mass and rounding are added.

Lower bound
(docs/theorems/lattice.md): splitting an outcome between two lattice points h apart tells at most what a Gaussian
with μ = h√(2π)/4 tells, so the lattice law is dominated by the true one plus a Gaussian with 2τ = k·πh²/8, and a
Gaussian raises δ(t) by no more than √(τ/π)·E e^{−s²/4τ − s/2}, s = S − t, which is read off the lattice law itself.

Theorem: dominated by the truth plus a small Gaussian: a second-order lower bound [docs/theorems/lattice.md]
Theorem: the discrete Fourier transform errs by log₂(n) roundings in norm [Higham 2002, Thm 24.2]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.loss.base import TOLERANCE
from sfumato.loss.compose.lattice_plan import Rough, Terms, rough
from sfumato.loss.compose.tilted_law import TiltedLaw, tilted
from sfumato.loss.numeric import Enclosure, Floats

FAR = 1e6  # the largest ε a lattice is asked for: beyond, the profile only falls
Curve = Callable[[Floats], Enclosure]


@dataclass(frozen=True)
class Lattice:
    """The composition of `terms` (count, loss), looked at in the forward direction."""

    terms: Terms

    method = "lattice"

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """δ at every ε: a law serves its neighbourhood, as far as its own certificate says that it is sharp."""
        sketch = rough(self.terms)
        order = np.argsort(eps, kind="stable")
        rising = eps[order]
        low, high = np.empty_like(eps), np.empty_like(eps)
        begin = 0
        while begin < len(rising):
            found, end = self.stretch(sketch, rising, begin, tolerance)
            low[order[begin:end]], high[order[begin:end]] = found.lower, found.upper
            begin = end
        return Enclosure(low, high)

    def stretch(self, sketch: Rough, rising: Floats, begin: int, tolerance: float) -> tuple[Enclosure, int]:
        """The profile at rising[begin:end], and end: from a law tilted two spreads ahead, if that is sharp at the first
        of them; else from one that is tilted towards it and its next."""
        groups = sketch.tilts(rising[begin:])
        spread = math.sqrt(sketch.cumulants(groups[0][0])[2])
        if len(groups) > 1:
            last = float(rising[begin]) + 4 * spread
            end = max(begin + 1, int(np.searchsorted(rising, last, side="right")))
            ahead = min(float(rising[begin]) + 2 * spread, float(rising[end - 1]))
            found = self.tilted_towards(sketch, ahead, tolerance).delta(rising[begin:end])
            blurred = found.upper - found.lower > 1.5 * tolerance * found.upper
            sharp = int(np.argmax(blurred)) if blurred.any() else end - begin
            if sharp > 0:
                return Enclosure(found.lower[:sharp], found.upper[:sharp]), begin + sharp
        end = begin + int(groups[0][1][-1]) + 1
        return self.tilted_towards(sketch, float(rising[end - 1]), tolerance).delta(rising[begin:end]), end

    def tilted_towards(self, sketch: Rough, eps: float, tolerance: float) -> TiltedLaw:
        """The law that tells δ at one ε."""
        theta = sketch.tilts(np.array([eps]))[0][0]
        return tilted(self.terms, sketch.plan(theta, eps, sketch.delta(theta, eps), tolerance))

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Curve:
        """The profile from the one law that is sharp around the ε where it is `delta`; a guess of that ε helps."""
        sketch = rough(self.terms)
        theta, guess = sketch.saddle(delta)
        if eps is not None:
            (theta, _), guess = sketch.tilts(np.array([eps]))[0], eps
        return tilted(self.terms, sketch.plan(theta, guess, delta, tolerance)).delta
