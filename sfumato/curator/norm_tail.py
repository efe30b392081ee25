"""The tail of a noisy histogram of norms: how much scaling to a norm leaves out.

A unit contributes one vector, and its norm is scaled down to a bound C. The histogram has noise; all that is done with
it here is post-processing, so nothing in this file is about privacy.

Model (`Tail`): from some bin on, the number of units per factor √2 of the norm is exp(a + b·t − c·t²), c ≥ 0, t counted
from that bin: from Pareto tails (c = 0) to sharp edges (c large). Every pair (b, c) of a public grid is fitted and
weighed by its likelihood. What is said of the left-out norm E(C) = Σ (norm − C)⁺ is a quantile over these models; it is
right if one of them is. "At most" has room for some units that no shape explains, as many as noise may hide, at twice
the norm where the tail ends. Without a model only `norm_choice.capped_left_out` holds, and needs a public cap.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

PLACES = 49  # place i holds norms in (2^((i−1)/2), 2^(i/2)]
BEYOND = 8  # places after the last bin, and after the last bin that is fitted, that a model may still fill
WIDE = 3  # bins after the first that are two places wide: whole norms lie unevenly in narrow ones, and mislead a fit
FIRST_PLACE = np.array([0, *range(1, 2 * WIDE, 2), *range(2 * WIDE + 1, PLACES)])  # of each bin
SQUARES = tuple(2 ** (int(following) - 1) for following in (*FIRST_PLACE[1:], PLACES))  # upper ends of bins, squared
EDGES: Floats = np.sqrt(np.array(SQUARES, float))  # upper ends of bins; the last one holds all that is larger
BINS = len(SQUARES)

POINTS = 4  # a place is four norms, evenly on the scale of logarithms
NORMS: Floats = np.r_[np.ones(POINTS), 2.0 ** ((np.arange(POINTS * (PLACES + BEYOND - 1)) + 0.5) / (2 * POINTS))]
FIRST_POINT = POINTS * FIRST_PLACE  # of each bin
# Where norms, or their squares, are whole numbers, small ones lie at these points; a point stands for the next of them.
WHOLE_NORMS: Floats = np.where(NORMS < 8, np.ceil(NORMS), NORMS)
ROOT_NORMS: Floats = np.where(NORMS < 4, np.sqrt(np.ceil(NORMS**2)), NORMS)

# Constants were chosen on one half of the tables of bench/truth and reported on the other (`make bench-truth`).
SEEN = 5.5  # σ from which a bin is taken to be there: at 4.5, C came out 100 times too large once in 8,000 runs
FALSE_SIGHTING = 1e-7 / BINS  # the same as a probability, for noise whose tail is not that of a Gaussian
CLEAR = 12.0  # the tail begins where so many σ of units lie above: fewer tell nothing of a shape
AFTER = 8  # bins after the last one seen that are fitted, too: that nothing is seen there says how the tail falls
UNEXPLAINED, NEAR = 3.0, 3  # σ of units above the best fit, so few bins after the last one seen, that are a new tail
IMPLAUSIBLE = 1e-3  # models less likely than the best by this factor are left out
ALIKE = 3.5  # σ of units beyond the first bin, if all others are in it, up to which a bound is chosen for them alone
HEAVY = 4.0  # weight of a straight tail where we promise "at most"
APART = 1.25  # where we promise "at most": so many σ of units may lie apart from every shape, twice as far out;
HANDFUL = 8.0  # so many of them may all be in one group: clusters are of a few units (test accounts, errors)
UNSEEN = 0.25  # σ of units that are not enough for a tail to reach farther
LUMP = 0.8  # of the units in a bin and beside it that are in it: they may all have the same norm
EXPECTED = 0.7  # quantile of the number of scaled units that an alarm compares with


def model_shapes() -> tuple[Floats, NDArray[np.bool_]]:
    """Units at each point of a tail under each model, up to a factor; which models are straight (Pareto).

    t counts places: exp(b·t − c·t²), the same for all points of a place.
    """
    t = np.arange(PLACES + BEYOND)
    slopes = np.r_[np.linspace(1, -2, 25), -2.5, -3, -4, -6, -10]
    straight = slopes[slopes < -0.3]  # at −0.35 every place has the same sum of norms
    bends = np.exp(np.linspace(math.log(0.005), math.log(4), 16))
    nobody = -300.0 * (t > 0)  # all are in the first place
    logs = [*(b * t - c * t * t for b in slopes for c in bends), nobody, *(b * t for b in straight)]
    shapes: Floats = np.exp(np.maximum(np.array(logs), -300)).repeat(POINTS, axis=1) / POINTS
    return shapes, np.arange(len(shapes)) >= len(shapes) - len(straight)


SHAPES, STRAIGHT = model_shapes()


@dataclass(frozen=True, eq=False)
class Tail:
    """The distribution of norms over units, as far as a noisy histogram shows it."""

    units: Floats  # at a point and after it, by model
    norms: Floats  # their sum of norms
    likely: Floats  # of each model; their sum is 1
    cautious: Floats  # the same with HEAVY weight on straight tails
    sigma: float
    points: Floats  # the norm at each point
    alike: bool = False  # do all seem to be in the first bin? It is common that people have one row each

    @staticmethod
    def of(counts: Sequence[float] | Floats, sigma: float, *, laplace: bool = False, points: Floats = NORMS) -> "Tail":
        """Fit noisy numbers of units per bin, each with noise of standard deviation `sigma`."""
        noisy = np.asarray(counts, float)
        if noisy.shape != (BINS,) or not (np.isfinite(noisy).all() and 0 < sigma < math.inf):
            raise ValueError(f"a histogram of norms has {BINS} finite numbers and noise of a positive deviation")
        last = farthest_seen(noisy, sigma, laplace)
        start = first_clear(noisy, sigma, last)
        fit = Fit.of(noisy, sigma, start, last)
        # Units far from the rest are not the tail of the rest: what a fit does not explain is fitted alone.
        apart = fit.last_unexplained_bin(last, laplace)
        tail = (fit if apart is None else Fit.of(noisy, sigma, apart, max(apart, last))).tail(points)
        return replace(tail, alike=last == 0 and seem_alike(noisy / sigma, laplace))

    def left_out(self, bounds: ArrayLike) -> Floats:
        """E(C) = Σ (norm − C)⁺ for each C (rows) under each model (columns); in the bin that holds C, as if all were at
        its upper end.

        Where everybody has the same number of rows, they are at one point of a bin. Spread over it, half of them would
        seem to be below a C in its middle, and the truth would be far outside of the interval.
        """
        each = np.atleast_1d(np.asarray(bounds, float))
        own = np.searchsorted(EDGES[:-1] * (1 + 1e-9), each)
        points = np.append(FIRST_POINT, FIRST_POINT[-1])  # the last bin has no upper end
        start, end, high = points[own], points[own + 1], np.maximum(EDGES[own] - each, 0)
        above = np.maximum(end, np.searchsorted(self.points, each, side="right"))
        beyond = np.maximum(self.norms[above] - each[:, None] * self.units[above], 0)
        found: Floats = beyond + (self.units[start] - self.units[end]) * high[:, None]
        return found

    def spread_out(self, bounds: Floats) -> Floats:
        """The excess over bounds with the units of a bin spread over it, where bins beside it hold some, too. By this a
        bound is chosen, and what it leaves out is guessed; nothing is promised by it. Where one bin has nearly all,
        they may be at one point."""
        above = np.searchsorted(self.points, bounds, side="right")
        found: Floats = np.maximum(self.norms[above] - bounds[:, None] * self.units[above], 0)
        own = np.searchsorted(EDGES[:-1] * (1 + 1e-9), bounds)
        start = np.append(FIRST_POINT, [len(NORMS)] * 2)
        units = self.units @ self.likely
        mine = units[start[own]] - units[start[own + 1]]
        near = units[start[np.maximum(own - 1, 0)]] - units[start[np.minimum(own + 2, BINS)]]
        return np.where((mine > LUMP * near)[:, None], self.left_out(bounds), found)

    def about(self, bound: float) -> float:
        """An estimate of the median of E(C); no promise depends on it."""
        return float(quantile(self.spread_out(np.array([bound])), self.likely, 0.5)[0])

    def at_most(self, bound: float, confidence: float = 0.975) -> float:
        """An upper bound of E(C), with this confidence if the tail has one of the shapes."""
        return self.within_shapes(bound, confidence) + self.apart(bound)

    def within_shapes(self, bound: float, confidence: float = 0.975) -> float:
        """The part of it that the shapes explain; heavy ones weigh more."""
        high = float(quantile(self.left_out(bound), self.cautious, confidence)[0])
        return max(high, self.about(bound))

    def apart(self, bound: float, most: float = math.inf) -> float:
        """The rest: units may lie apart from any shape, at twice the norm that the tail reaches, as many as noise would
        hide (and no more than `most`)."""
        return min(APART * self.sigma, most) * max(0.0, 2 * self.reach() - bound)

    def reach(self) -> float:
        """An estimate of the norm above which the tail has fewer than UNSEEN·σ units."""
        seen = self.units @ self.likely >= UNSEEN * self.sigma
        return float(self.points[max(int(seen.sum()) - 1, 0)])  # units at a point and after it fall from point to point

    def total(self) -> float:
        """An estimate of Σ norm, of which shares are shown."""
        return float(quantile(self.norms[:1], self.likely, 0.5)[0])

    def kept_sum(self, bounds: Floats) -> Floats:
        """An estimate of Σ min(norm, C) for each C."""
        above = np.searchsorted(NORMS, bounds, side="right")
        found: Floats = (self.norms[0] - self.norms[above] + bounds[:, None] * self.units[above]) @ self.likely
        return found

    def units_above(self, bound: float) -> float:
        """The number of units with norms above C, the end of a bin; rather more than fewer: an alarm depends on it."""
        above = int(np.searchsorted(self.points, bound, side="right"))
        return float(quantile(self.units[above : above + 1], self.likely, EXPECTED)[0])

    def longest(self, confidence: float = 0.975) -> float:
        """The norm that nobody exceeds, with this confidence if the tail has one of the shapes.

        A unit's weight is then at least C/longest, so of a group with a weighted count S at most S·(longest/C − 1) is
        left out: less than E(C) where a group is small.
        """
        last = (self.units >= 0.1).sum(0).clip(1, len(NORMS)) - 1  # a tenth of a unit: hardly anybody
        return max(float(quantile(self.points[last][None], self.cautious, confidence)[0]), 2 * self.reach())

    def reachable(self, candidates: Floats) -> Floats:
        """The candidates up to the first one beyond which no model has a unit: a larger one leaves out no less."""
        some = np.flatnonzero(self.units[:-1].max(1) > 1e-3)
        top = self.points[some[-1]] if len(some) else 1.0
        return candidates[: int(np.searchsorted(candidates, top)) + 1]


@dataclass(frozen=True, eq=False)
class Fit:
    """All models fitted by least squares to bins from `start` on."""

    noisy: Floats
    sigma: float
    start: int
    residuals: Floats  # by model and bin
    amplitude: Floats

    @staticmethod
    def of(noisy: Floats, sigma: float, start: int, last: int) -> "Fit":
        end = min(BINS, last + AFTER)
        first = FIRST_POINT[start]
        points = (FIRST_POINT[end] if end < BINS else len(NORMS)) - first
        shape = np.add.reduceat(SHAPES[:, :points], FIRST_POINT[start:end] - first, axis=1)
        seen = noisy[start:end]
        amplitude = np.maximum((shape * seen).sum(1) / (shape * shape).sum(1), 0)  # the best one, in closed form
        return Fit(noisy, sigma, start, seen - amplitude[:, None] * shape, amplitude)

    @property
    def likelihood(self) -> Floats:
        """The likelihood of each model, relative to the best one."""
        squares = (self.residuals**2).sum(1)
        found: Floats = np.exp((squares.min() - squares) / (2 * self.sigma**2))
        return found

    def last_unexplained_bin(self, last: int, laplace: bool) -> int | None:
        """The last bin, if any after the first, where there are more units than the best model explains."""
        z = self.residuals[np.argmax(self.likelihood)] / self.sigma
        near = z[: last - self.start + 1 + NEAR]
        above = max(sightings(z, SEEN, laplace) + sightings(near, UNEXPLAINED, laplace), default=0)
        return self.start + above if above > 0 else None

    def tail(self, points: Floats = NORMS) -> Tail:
        """Models from the first fitted bin on, the measured numbers before it."""
        plausible = np.flatnonzero(self.likelihood > IMPLAUSIBLE)
        first = int(FIRST_POINT[self.start])
        end = min(len(NORMS), int(FIRST_POINT[self.start + self.residuals.shape[1] - 1]) + POINTS * (BEYOND + 1))
        counts = np.zeros((len(NORMS) + 1, len(plausible)))
        counts[first:end] = (self.amplitude[plausible, None] * SHAPES[plausible, : end - first]).T
        width = np.diff(FIRST_POINT)[: self.start]
        counts[:first] = np.repeat(np.maximum(self.noisy[: self.start], 0) / width, width)[:, None]
        norms = counts[:-1] * points[:, None]
        likely = self.likelihood[plausible]
        cautious = likely * np.where(STRAIGHT[plausible], HEAVY, 1.0)
        return Tail(
            np.cumsum(counts[::-1], axis=0)[::-1],
            np.append(np.cumsum(norms[::-1], axis=0)[::-1], np.zeros((1, len(plausible))), axis=0),
            likely / likely.sum(),
            cautious / cautious.sum(),
            self.sigma,
            points,
        )


def sightings(z: Floats, limit: float, laplace: bool) -> list[int]:
    """Bins that alone, or with one or three after them, are too large to be noise of deviation 1.

    `limit` is in deviations of Gaussian noise; Laplace noise has one of its own, since its tails are heavier.
    """
    found: list[int] = []
    for bins in (1, 2, 4):
        least = laplace_quantile(np.ones(bins), FALSE_SIGHTING) / math.sqrt(2) if laplace else limit * math.sqrt(bins)
        found += np.flatnonzero(np.convolve(z, np.ones(bins), "valid") > least).tolist() if len(z) >= bins else []
    return found


def farthest_seen(noisy: Floats, sigma: float, laplace: bool) -> int:
    """The last bin that is too large to be noise; the first one if none is."""
    return max(sightings(noisy / sigma, SEEN, laplace), default=0)


def seem_alike(z: Floats, laplace: bool) -> bool:
    """Are units clearly in the first bin, and may those after it be noise? Only the choice of a bound depends on it."""
    return bool(z[0] >= CLEAR) and not sightings(z[1 : 1 + AFTER], ALIKE, laplace)


def first_clear(noisy: Floats, sigma: float, last: int) -> int:
    """The last bin from which on there are CLEAR σ of units; at most `last`."""
    above = np.cumsum(noisy[: last + 5][::-1])[::-1]  # what lies farther out is noise
    clear = np.flatnonzero(above[: last + 1] >= CLEAR * sigma)
    return int(clear[-1]) if len(clear) else 0


def quantile(values: Floats, weights: Floats, q: float) -> Floats:
    """The least value whose weight together with all smaller ones is at least q, in each row; weights sum to 1."""
    order = np.argsort(values, axis=1)
    place = (np.cumsum(weights[order], axis=1) < q).sum(1).clip(0, len(weights) - 1)
    rows = np.arange(len(values))
    found: Floats = values[rows, order[rows, place]]
    return found


def laplace_quantile(weights: Floats, chance: float) -> float:
    """A bound that Σ w_i·L_i, L_i Laplace of scale 1, exceeds with at most this chance.

    Chernoff: P(Σ > t) ≤ exp(−s·t)·Π 1/(1 − s²w_i²) for every s < 1/max w; the least t over a grid of s. Never below.
    """
    most = float(weights.max(initial=0))
    if most == 0:
        return 0.0
    s = np.linspace(0.02, 0.98, 49)[:, None]
    logs = -np.log1p(-((s * weights / most) ** 2)).sum(1)
    return most * float(((logs - math.log(chance)) / s[:, 0]).min())
