"""The choice of a norm: the bound C that contributions are scaled to, from a noisy histogram of norms.

A small C leaves out more, a large C needs more noise. With a fitted tail, C makes the sum of squared noise and squared
bias least. With a public cap on norms no model is needed: C makes the interval shortest that holds for all data.
Everything here is post-processing of the histogram.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np

from sfumato.curator.norm_tail import EDGES, PLACES, Floats, Tail, laplace_quantile, quantile

Deviation = Callable[[Floats], Floats] | float

CANDIDATES: Floats = np.sqrt(np.unique(np.floor(2.0 ** (np.arange(4 * PLACES - 3) / 4) + 1e-9)))  # squares are whole
CAUTION = 0.35  # quantile of E(C) that is weighed against noise; its mean square is ruled by the fattest tail
GROUPS_WEIGHT = 0.75  # noise of K groups counts as K^this: 1 is best for the total error and leaves out more of a group
DIFFERENT = 0.1  # how far left-out rows are taken to be from others in the mean, in halves of the range


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
    bias = quantile(tail.spread_out(bounds), tail.likely, CAUTION)
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
    """An upper bound of E(C) with this confidence, for all data whose norms are at most the cap.

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
