"""What a noisy histogram of norms tells: which bound to scale to, and how much a bound leaves out.

A unit contributes one vector, and its norm is scaled down to a bound C. The histogram has noise; all that is done with
it here is post-processing, so nothing in this file is about privacy.

Model (`Tail`): from some bin on, the number of units per factor √2 of the norm is exp(a + b·t − c·t²), c ≥ 0, t counted
from that bin: from Pareto tails (c = 0) to sharp edges (c large). Every pair (b, c) of a public grid is fitted and
weighed by its likelihood. What is said of the left-out norm E(C) = Σ (norm − C)⁺ is a quantile over these models; it is
right if one of them is. Without a model only `capped_left_out` holds, and needs a public cap on norms.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Deviation = Callable[[Floats], Floats] | float

PLACES = 49  # place i holds norms in (2^((i−1)/2), 2^(i/2)]
BEYOND = 8  # places after the last bin, and after the last bin that is fitted, that a model may still fill
WIDE = 4  # bins after the first that are two places wide: whole norms lie unevenly in narrow ones, and mislead a fit
FIRST_PLACE = np.array([0, *range(1, 2 * WIDE, 2), *range(2 * WIDE + 1, PLACES)])  # of each bin
SQUARES = tuple(2 ** (int(following) - 1) for following in (*FIRST_PLACE[1:], PLACES))  # upper ends of bins, squared
EDGES: Floats = np.sqrt(np.array(SQUARES, float))  # upper ends of bins; the last one holds all that is larger
BINS = len(SQUARES)
CANDIDATES: Floats = np.sqrt(np.unique(np.floor(2.0 ** (np.arange(4 * PLACES - 3) / 4) + 1e-9)))  # squares are whole

SEEN = 5.5  # σ from which a bin is taken to be there: at 4.5, C came out 100 times too large once in 8,000 runs
FALSE_SIGHTING = 1e-7 / BINS  # the same as a probability, for noise whose tail is not that of a Gaussian
CLEAR = 12.0  # the tail begins where so many σ of units lie above: fewer tell nothing of a shape
AFTER = 8  # bins after the last one seen that are fitted, too: that nothing is seen there says how the tail falls
SHALLOWEST = -0.3  # slopes of Pareto tails: at −0.35 every place has the same sum of norms
SLOPES = np.r_[np.linspace(1, -2, 25), -2.5, -3, -4, -6, -10]
BENDS = np.r_[0, np.exp(np.linspace(math.log(0.005), math.log(4), 16))]
NOBODY = (0.0, 100.0)  # all are in the first place
MODELS = np.array([(slope, bend) for slope in SLOPES for bend in BENDS if slope < SHALLOWEST or bend > 0] + [NOBODY])
IMPLAUSIBLE = 1e-3  # models less likely than the best by this factor are left out
HEAVY = 16.0  # weight of a model without a bend where we promise "at most": half of all weight before data are seen
CAUTION = 0.35  # quantile of E(C) that is weighed against noise; its mean square is ruled by the fattest tail
GROUPS_WEIGHT = 0.5  # noise of K groups counts as K^this: 1 is best for the total error and leaves out more of a group
DIFFERENT = 0.1  # how far left-out rows are taken to be from others in the mean, in halves of the range

POINTS = 4  # a place is four norms, evenly on the scale of logarithms
LOWER = np.r_[1.0, 2.0 ** (np.arange(PLACES + BEYOND - 1) / 2)]
UPPER = 2.0 ** (np.arange(PLACES + BEYOND) / 2)
NORMS = LOWER[:, None] * (UPPER / LOWER)[:, None] ** ((np.arange(POINTS) + 0.5) / POINTS)


@dataclass(frozen=True, eq=False)
class Tail:
    """How many units have which norm, as far as a noisy histogram tells."""

    counts: Floats  # units, by model and place
    likely: Floats  # of each model; their sum is 1
    cautious: Floats  # the same with HEAVY weight on tails without a bend

    @staticmethod
    def of(counts: Sequence[float] | Floats, sigma: float, *, laplace: bool = False) -> "Tail":
        """Fit noisy numbers of units per bin, each with noise of standard deviation `sigma`."""
        noisy = np.asarray(counts, float)
        if noisy.shape != (BINS,) or not (np.isfinite(noisy).all() and 0 < sigma < math.inf):
            raise ValueError(f"a histogram of norms has {BINS} finite numbers and noise of a positive deviation")
        last = farthest_seen(noisy, sigma, laplace)
        start = first_clear(noisy, sigma, last)
        fit = Fit.of(noisy, sigma, start, last)
        # Units far from the rest are not the tail of the rest: what a fit does not explain is fitted alone.
        if start < last and fit.surplus(last) > seen_from(1, laplace) * sigma:
            fit = Fit.of(noisy, sigma, last, last)
        return fit.tail()

    def left_out(self, bounds: ArrayLike) -> Floats:
        """E(C) = Σ (norm − C)⁺ for each C (rows) under each model (columns)."""
        return excess(np.atleast_1d(np.asarray(bounds, float))) @ self.counts.T

    def about(self, bound: float) -> float:
        """The median of E(C)."""
        return float(quantile(self.left_out(bound), self.likely, 0.5)[0])

    def at_most(self, bound: float, confidence: float = 0.975) -> float:
        """What E(C) does not exceed, with this confidence if the tail has one of the shapes; heavy ones weigh more."""
        high = float(quantile(self.left_out(bound), self.cautious, confidence)[0])
        return max(high, self.about(bound))

    def total(self) -> float:
        """Σ norm, about: what shares are shown of."""
        return float(quantile((self.counts @ NORMS.mean(1))[None], self.likely, 0.5)[0])

    def kept(self, bounds: Floats) -> Floats:
        """Σ min(norm, C) for each C, about."""
        found: Floats = np.minimum(NORMS, bounds[:, None, None]).mean(2) @ (self.likely @ self.counts)
        return found

    def scaled(self, bound: float) -> float:
        """The number of units with norms above C, about."""
        above = (bound < NORMS).mean(1) @ self.counts.T
        return float(quantile(above[None], self.likely, 0.5)[0])

    def reached(self, candidates: Floats) -> Floats:
        """Candidates up to the first one beyond which no model has a unit: a larger one leaves out nothing less."""
        places = np.flatnonzero(self.counts.max(0) > 1e-3)
        top = UPPER[places[-1]] if len(places) else 1.0
        return candidates[: int(np.searchsorted(candidates, top)) + 1]


@dataclass(frozen=True, eq=False)
class Fit:
    """All models fitted by least squares to bins from `start` on."""

    noisy: Floats
    start: int
    residuals: Floats  # by model and bin
    amplitude: Floats
    log_likelihood: Floats

    @staticmethod
    def of(noisy: Floats, sigma: float, start: int, last: int) -> "Fit":
        end = min(BINS, last + AFTER)
        first = FIRST_PLACE[start]
        places = (FIRST_PLACE[end] if end < BINS else PLACES + BEYOND) - first
        shape = np.add.reduceat(shapes(int(places)), FIRST_PLACE[start:end] - first, axis=1)
        seen = noisy[start:end]
        amplitude = np.maximum(shape @ seen / (shape * shape).sum(1), 0)  # the best one, in closed form
        residuals = seen - amplitude[:, None] * shape
        return Fit(noisy, start, residuals, amplitude, -(residuals**2).sum(1) / (2 * sigma**2))

    def surplus(self, bin_: int) -> float:
        """Units of a bin that the best model does not explain."""
        return float(self.residuals[np.argmax(self.log_likelihood), bin_ - self.start])

    def tail(self) -> Tail:
        """Models from the first fitted bin on, the measured numbers before it."""
        likely = np.exp(self.log_likelihood - self.log_likelihood.max())
        plausible = likely > IMPLAUSIBLE
        first = FIRST_PLACE[self.start]
        places = min(
            PLACES + BEYOND - first, FIRST_PLACE[self.start + self.residuals.shape[1] - 1] - first + BEYOND + 1
        )
        counts = np.zeros((int(plausible.sum()), PLACES + BEYOND))
        counts[:, first : first + places] = self.amplitude[plausible, None] * shapes(int(places))[plausible]
        width = np.diff(FIRST_PLACE)[: self.start]
        counts[:, :first] = np.repeat(np.maximum(self.noisy[: self.start], 0) / width, width)
        cautious = np.where(MODELS[plausible, 1] == 0, HEAVY, 1.0) * likely[plausible]
        return Tail(counts, likely[plausible] / likely[plausible].sum(), cautious / cautious.sum())


@lru_cache(maxsize=PLACES + BEYOND)
def shapes(places: int) -> Floats:
    """exp(b·t − c·t²) for t = 0, 1, …, one row per model."""
    t = np.arange(places)
    found: Floats = np.exp(np.maximum(MODELS[:, :1] * t - MODELS[:, 1:] * t * t, -200))
    found.setflags(write=False)
    return found


def seen_from(bins: int, laplace: bool) -> float:
    """From how many deviations on a sum of so many bins is taken to be more than noise."""
    return laplace_quantile(np.ones(bins), FALSE_SIGHTING) / math.sqrt(2 * bins) if laplace else SEEN


def farthest_seen(noisy: Floats, sigma: float, laplace: bool) -> int:
    """The last bin that alone, or with one or three after it, is too large to be noise; the first one if none is."""
    last = 0
    for bins in (1, 2, 4):
        z = np.convolve(noisy, np.ones(bins), "valid") / (sigma * math.sqrt(bins))
        last = max(last, *np.flatnonzero(z > seen_from(bins, laplace)).tolist(), 0)
    return last


def first_clear(noisy: Floats, sigma: float, last: int) -> int:
    """The last bin from which on there are CLEAR σ of units; at most `last`."""
    above = np.cumsum(noisy[: last + 5][::-1])[::-1]  # what lies farther out is noise
    clear = np.flatnonzero(above[: last + 1] >= CLEAR * sigma)
    return int(clear[-1]) if len(clear) else 0


def excess(bounds: Floats) -> Floats:
    """The mean of (norm − C)⁺ in each place, one row per C."""
    found: Floats = np.maximum(NORMS - bounds[:, None, None], 0).mean(2)
    return found


def quantile(values: Floats, weights: Floats, q: float) -> Floats:
    """The least value whose weight together with all smaller ones is at least q, in each row; weights sum to 1."""
    order = np.argsort(values, axis=1)
    place = (np.cumsum(weights[order], axis=1) < q).sum(1).clip(0, len(weights) - 1)
    rows = np.arange(len(values))
    found: Floats = values[rows, order[rows, place]]
    return found


def deviations(deviation: Deviation, bounds: Floats) -> Floats:
    """The standard deviation of noise for each C."""
    found: Floats = bounds * (deviation(bounds) if callable(deviation) else deviation)
    return found


def choose_for_sums(tail: Tail, deviation: Deviation, groups: int, candidates: Floats = CANDIDATES) -> float:
    """The C that makes K^GROUPS_WEIGHT·(noise)² + E(C)² least for K groups.

    `deviation` is that of noise per unit of C. The left-out vector has a norm of at most E(C) (triangle inequality), so
    the second term bounds the squared biases of all groups together.
    """
    bounds = tail.reached(candidates)
    bias = quantile(tail.left_out(bounds), tail.likely, CAUTION)
    return float(bounds[np.argmin(groups**GROUPS_WEIGHT * deviations(deviation, bounds) ** 2 + bias**2)])


def choose_for_means(tail: Tail, deviation: Deviation, groups: int, candidates: Floats = CANDIDATES) -> float:
    """The C for a question of means and ratios alone: makes 2K·(noise/S)² + (DIFFERENT·λ)² least.

    S = Σ min(norm, C) is what remains and λ = E/(S + E) the share left out. The noise of a mean falls with C, since
    C/S does; what is left out biases it only as far as left-out rows differ from the others.
    """
    bounds = tail.reached(candidates)
    out = quantile(tail.left_out(bounds), tail.likely, 0.5)
    kept = np.maximum(tail.kept(bounds), 1.0)  # nobody there: any bound will do
    noise = 2 * groups * (deviations(deviation, bounds) / kept) ** 2
    return float(bounds[np.argmin(noise + (DIFFERENT * out / (kept + out)) ** 2)])


# ---- a public cap on norms: no model ---------------------------------------------------------------------------------


def candidates_below(cap: float, candidates: Floats = CANDIDATES) -> Floats:
    """The public grid up to a cap, and the cap."""
    return np.append(candidates[candidates < cap], cap)


def capped_left_out(
    counts: Sequence[float] | Floats,
    sigma: float,
    bound: float,
    cap: float,
    confidence: float,
    candidates: int,
    *,
    step: float = 0.0,
    laplace: bool = False,
) -> float:
    """What E(C) does not exceed with this confidence, for all data whose norms are at most the cap.

    Σ_j H̃_j·(e_j − C)⁺ + z·σ·√Σ_j ((e_j − C)⁺)², e_j the upper end of bin j, at most the cap: never below E(C) unless
    noise is above its quantile. C may be chosen from the same histogram among so many `candidates` (all of the public
    grid, also those never tried): each has its share of 1 − confidence. `step`: noise is rounded to multiples of it.
    """
    lower = np.r_[0.0, EDGES[:-1]]
    upper = np.minimum(np.r_[EDGES[:-1], max(cap, EDGES[-1])], cap)
    weight = np.where(lower < cap, np.maximum(upper - bound, 0), 0)
    chance = (1 - confidence) / candidates
    if laplace:
        above = laplace_quantile(weight, chance) * sigma / math.sqrt(2)
    else:
        above = -NormalDist().inv_cdf(chance) * sigma * float(np.sqrt((weight**2).sum()))
    return max(0.0, float(weight @ np.asarray(counts, float)) + above + step / 2 * float(weight.sum()))


def choose_capped(
    counts: Sequence[float] | Floats,
    sigma: float,
    deviation: Deviation,
    cap: float,
    confidence: float,
    z: float,
    *,
    step: float = 0.0,
    laplace: bool = False,
) -> float:
    """The C for which the interval that holds for all data is shortest: 2z·(noise) + `capped_left_out`."""
    bounds = candidates_below(cap)
    out = [
        capped_left_out(counts, sigma, bound, cap, confidence, len(bounds), step=step, laplace=laplace)
        for bound in bounds.tolist()
    ]
    return float(bounds[np.argmin(2 * z * deviations(deviation, bounds) + np.array(out))])


def laplace_quantile(weights: Floats, chance: float) -> float:
    """What Σ w_i·L_i, L_i Laplace of scale 1, exceeds with at most this chance.

    Chernoff: P(Σ > t) ≤ exp(−s·t)·Π 1/(1 − s²w_i²) for every s < 1/max w; the least t over a grid of s. Never below.
    """
    most = float(weights.max(initial=0))
    if most == 0:
        return 0.0
    s = np.linspace(0.02, 0.98, 49)[:, None]
    logs = -np.log1p(-((s * weights / most) ** 2)).sum(1)
    return most * float(((logs - math.log(chance)) / s[:, 0]).min())
