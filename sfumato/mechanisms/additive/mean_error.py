"""The error of a noisy sum over a noisy count, for the worst mean."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.loss.numeric import Floats, floats
from sfumato.mechanisms.additive.sums_of_noise import LOST, Cells
from sfumato.noise.monotone import TailedLaw

SLACK = 1e-11
NEAR = 1e-9  # relative: where the search for the least error ends


@dataclass(frozen=True)
class NoisyMean:
    """R = (n·u + Y)/(n + Z), put into [−below, above], for a mean u of n values in it, all in steps; below ≤ above.

    Z is `count_law` times `count_step`.
    """

    sum_law: TailedLaw
    count_law: TailedLaw
    count_step: float
    below: int
    above: int
    people: int
    miss: float

    @cached_property
    def counts(self) -> tuple[Floats, Floats, Floats, float]:
        """Cells of Z: left ends, right ends, chances, and what is missed: it is outside, or n + Z < 1."""
        cells = Cells.of(self.count_law, LOST * self.miss)
        middles = np.arange(-cells.reach, cells.reach + 1.0) * cells.width
        half = (cells.width - 1) / 2
        left, right = (middles - half) * self.count_step, (middles + half) * self.count_step
        good = self.people + left >= 1
        lost = float(cells.chances[~good].sum()) + cells.outside
        return left[good], right[good], cells.chances[good], lost

    @cached_property
    def tails(self) -> tuple[Floats, Floats]:
        """Edges of cells of Y + U, U uniform on [−½, ½], from 0 on, and the chance that it passes each."""
        cells = Cells.of(self.sum_law, LOST * self.miss)
        right = cells.chances[cells.reach + 1 :]
        beyond = np.cumsum(np.append(right, cells.outside / 2)[::-1])[::-1]
        edges = (np.arange(beyond.size) + 0.5) * cells.width
        return np.concatenate([[0.0], edges]), np.concatenate([[0.5], beyond])

    def passes(self, y: Floats) -> Floats:
        """P(Y + U > y), never below.

        The density of Y + U falls away from 0. So this is convex for y > 0, and a chord between edges is above it; for
        y < 0 it is 1 − P(Y + U > −y), of which the next edge further away is below.
        """
        edges, beyond = self.tails
        right = np.interp(y, edges, beyond)
        at = np.searchsorted(edges, -y)
        left = 1 - np.where(at < edges.size, beyond[np.minimum(at, edges.size - 1)], 0.0) * (1 - SLACK)
        return floats(np.where(y >= 0, right, left) * (1 + SLACK))

    def missed(self, t: float) -> float:
        """P(|R − u| > t) for the worst u; never below.

        Proof. If n + Z < 1 it counts as missed. Else R − u > t if u + t < above and Y − Zu > (n + Z)t; R − u < −t if
        u − t > −below and Y − Zu < −(n + Z)t. As Y is whole, Y > y implies Y + U > y − ½, so Y + U and (n + Z)t − ½ may
        be put instead; Y + U is symmetric and has a density that falls away from 0. Where both can happen, |Y + U − Zu|
        is larger, the larger |u|: the worst u is next to above − t. Where only the second can, u is from
        max(below − t, t − above) to above, and Z(u − t) is largest at an end; where only the first can, −u is. Cells of
        Z are read where they miss most. A heavier law of Z, where only that is known, misses more: it is symmetric, and
        Z and −Z together miss more, the larger |Z|.

        Theorem: P(|k + Z| ≤ t) falls with |k| if Z is symmetric and falls away from 0 [Anderson 1955]
        """
        if t >= self.below + self.above:
            return 0.0
        left, right, chances, lost = self.counts
        near = self.people * t - 0.5
        slip = SLACK * (
            self.people * t + (np.abs(left) + np.abs(right)) * self.above + 1
        )  # more than roundings of what follows
        both = 0.0
        if 2 * t < self.below + self.above:
            u = self.above - t
            far = np.maximum(left * (u - t), right * (u - t))
            chance = self.passes(near + left * self.above - slip) + self.passes(near - far - slip)
            both = float(np.sum(chances * np.minimum(chance, 1.0)))
        low = max(self.below - t, t - self.above)
        far = np.max([z * (u - t) for z in (left, right) for u in (low, self.above)], axis=0)
        one = float(np.sum(chances * self.passes(near - far - slip)))
        return max(both, one) * (1 + SLACK) + lost

    def radius(self) -> float:
        """A t with P(|R − u| > t) ≤ miss whatever u is."""
        low, high = 0.0, float(self.below + self.above)
        if not high or self.missed(0.0) <= self.miss:
            return 0.0
        while high - low > NEAR * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.missed(middle) <= self.miss else (middle, high)
        return high
