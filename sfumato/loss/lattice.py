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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.loss.base import TOLERANCE
from sfumato.loss.numeric import Enclosure, Floats
from sfumato.loss.rough import Terms, rough
from sfumato.loss.tilted_law import tilted

FAR = 1e6  # the largest ε a lattice is asked for: beyond, the profile only falls
Curve = Callable[[Floats], Enclosure]


@dataclass(frozen=True)
class Lattice:
    """The composition of `terms` (count, loss), looked at in the forward direction."""

    terms: Terms

    method = "lattice"

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """δ at every ε, each from the law tilted towards it."""
        sketch = rough(self.terms)
        order = np.argsort(eps, kind="stable")
        low, high = np.empty_like(eps), np.empty_like(eps)
        for tilt, members in sketch.tilts(eps[order]):
            where = order[members]
            last = float(eps[where].max())
            law = tilted(self.terms, sketch.plan(tilt, last, sketch.delta(tilt, last), tolerance))
            found = law.delta(eps[where])
            low[where], high[where] = found.lower, found.upper
        return Enclosure(low, high)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Curve:
        """The profile from the one law that is sharp around the ε where it is `delta`; a guess of that ε helps."""
        sketch = rough(self.terms)
        theta, guess = sketch.saddle(delta)
        if eps is not None:
            (theta, _), guess = sketch.tilts(np.array([eps]))[0], eps
        return tilted(self.terms, sketch.plan(theta, guess, delta, tolerance)).delta
