"""Hockey sticks of shuffled reports: E[(a·N₀ − b·N₁ − c·W)₊] for counts N₀, N₁ and a sum W over independent people.

Of n people each is in a live class, 0 or 1, or adds a fixed amount to W. Given B = N₀ + N₁ and W the expectation is
closed. Other counts are summed in cells, as the expectation is convex in each of them (docs/theorems/local.md,
Theorem 5): chords of cells bound it from above, means of cells from below.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sfumato.loss.kinds.binomial_tails import (
    MORE,
    OUTSIDE,
    above,
    cell_masses,
    mean_excess,
    mean_excess_along,
    window,
)
from sfumato.loss.numeric import Floats, floats

LONG = 100  # live numbers from which on tails are followed along a line instead of computed one by one
FAR = floats([5.0, 7.0, 12.0])  # standard deviations: edges of cells outside the middle
MIDDLE = 4.0
SHARP = 1.7e3  # √people × cells in the middle
MOST_CELLS = 60
FEW = 2000  # people up to whom edges of cells are whole: few cells then hold more than one number


@dataclass(frozen=True)
class Crowd:
    """n people: `live` of them in classes 0 and 1, a share `first` of these in 0; others add something to W.

    `rest`: (probability, amount) of each class of others, the largest amount first. Who is left adds `least`.
    """

    people: int
    live: float
    first: float
    rest: tuple[tuple[float, float], ...] = ()
    least: float = 0.0


Weights = tuple[float, float, float]  # of a report in class 0, in class 1, and elsewhere


class Nodes(NamedTuple):
    """Numbers of live people, values of W, and weights: a sum that bounds an expectation over the crowd.

    `line`: W is affine in the live number along the second axis.
    """

    live: Floats
    rest: Floats
    weight: Floats
    line: bool


def cell_edges(people: int, most: int, far: Floats, sharp: float = SHARP) -> Floats:
    """Edges of cells in standard deviations. Their error falls with the number of people, so fewer are enough."""
    count = min(most, max(4, math.ceil(sharp / math.sqrt(people))))
    return np.concatenate([-far[::-1], np.linspace(-MIDDLE, MIDDLE, count + 1), far])


@lru_cache(maxsize=32)
def upper_nodes(crowd: Crowd) -> Nodes:
    """Nodes whose sum is at least the expectation, but for what is outside the windows."""
    live, mass = window(crowd.people, crowd.live)
    others = crowd.people - live
    if not crowd.rest:
        return Nodes(live[None], crowd.least * others[None], mass[None], True)
    if len(crowd.rest) == 1 and crowd.people > FEW:
        (chance, amount), left = crowd.rest[0], 1 - crowd.live
        edges, masses, means = line_cells(cell_edges(crowd.people, MOST_CELLS, FAR), others, min(1.0, chance / left))
        weight = chord_weights(edges, masses, means) * mass
        return Nodes(np.broadcast_to(live, edges.shape), amount * edges + crowd.least * (others - edges), weight, True)
    return spread_out(crowd, live, others, mass)


@lru_cache(maxsize=32)
def lower_nodes(crowd: Crowd) -> Nodes:
    """Nodes whose sum is at most the expectation, for at most one class of others: cells at their means."""
    live, mass = window(crowd.people, crowd.live)
    others = crowd.people - live
    if not crowd.rest:
        return upper_nodes(crowd)
    (chance, amount), left = crowd.rest[0], 1 - crowd.live
    _, masses, means = line_cells(cell_edges(crowd.people, MOST_CELLS, FAR[2:]), others, min(1.0, chance / left))
    rest = amount * means + crowd.least * (others - means)
    return Nodes(np.broadcast_to(live, means.shape), rest, masses * mass, False)


def line_cells(z: Floats, others: Floats, p: float) -> tuple[Floats, Floats, Floats]:
    """Edges, masses and means of cells of Bin(others, p), a row for each edge or cell; edges are affine in `others`."""
    spread = math.sqrt(max(float(others.max()), 1.0) * p * (1 - p))
    beyond = np.sign(z) * (np.abs(z) == FAR[-1]) * MORE
    edges = others * p + (spread * z + beyond)[:, None]
    masses, means = masses_and_means(edges, others, p)
    return edges, masses, means


def masses_and_means(edges: Floats, others: Floats, p: float) -> tuple[Floats, Floats]:
    """Masses and means of the cells between edges along the first axis; the outer ones hold all that is beyond."""
    whole = np.floor(edges)
    masses = cell_masses(whole, others, p)
    sums = others * p * cell_masses(whole - 1, np.maximum(others - 1, 0.0), p)
    low, high = np.clip(edges[:-1], 0.0, others), np.clip(edges[1:], 0.0, others)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(masses > 0, sums / masses, high)
    return masses, floats(np.clip(means, np.minimum(low, high), high))


def chord_weights(edges: Floats, masses: Floats, means: Floats) -> Floats:
    """Weights of the edges such that each cell's mass keeps its mean."""
    wide = np.diff(edges, axis=0)
    share = np.clip(np.where(wide > 0, (means - edges[:-1]) / np.where(wide > 0, wide, 1.0), 1.0), 0.0, 1.0)
    weight = np.zeros_like(edges)
    weight[1:] += masses * share
    weight[:-1] += masses * (1 - share)
    return weight


def spread_out(crowd: Crowd, live: Floats, others: Floats, mass: Floats) -> Nodes:
    """Several classes of others, one after the other, each in cells with whole edges given all before it.

    Rows are combinations of edges, columns live numbers; rows without weight are left out.
    """
    alone = len(crowd.rest) == 1
    z = cell_edges(crowd.people, *((MOST_CELLS, FAR) if alone else (MOST_CELLS // 5, FAR[1:], SHARP / 3)))[
        :, None, None
    ]
    left, weight, rest, over = 1 - crowd.live, mass[None], np.zeros((1, live.size)), others[None]
    for chance, amount in crowd.rest:
        p = min(1.0, chance / left)
        spread = np.sqrt(over * p * (1 - p)) + (np.abs(z) == FAR[-1]) * 4.0
        edges = np.clip(np.rint(over * p + z * spread), 0.0, over)
        masses, means = masses_and_means(edges, over, p)
        shares = (chord_weights(edges, masses, means) * weight).reshape(-1, live.size)
        keep = shares.max(axis=1) > OUTSIDE * 1e-9
        rest, over = ((part.reshape(-1, live.size))[keep] for part in (rest + amount * edges, over - edges))
        weight, left = shares[keep], left - chance
    return Nodes(np.broadcast_to(live, rest.shape), rest + crowd.least * over, weight, True)


def positive_part(nodes: Nodes, crowd: Crowd, gain: float, cost: float, charge: float) -> float:
    """E[(gain·N₀ − cost·N₁ − charge·W)₊]/n over the nodes."""
    t = (cost * nodes.live + charge * nodes.rest) / (gain + cost)
    along = nodes.line and nodes.live.shape[1] >= LONG
    excess = mean_excess_along(nodes.live, t, crowd.first) if along else mean_excess(nodes.live, t, crowd.first)
    return float(np.sum(nodes.weight * excess)) * (gain + cost) / crowd.people


# ---- what an adversary surely learns, as a pair that composes -------------------------------------------------------

BINS, WORK = 600, 2_000_000  # bins of a pair, and bins × live numbers, about
LIKELY = 7.0  # standard deviations of live numbers that are summed one by one
NOTHING = 1e-10  # a log-ratio this small is none
GUARD = 1e-9  # relative: by which likelihood ratios are moved towards 1, more than tails are rounded


def binned_pair(crowd: Crowd, first: Weights, second: Weights, reach: float) -> tuple[Floats, Floats]:
    """Probabilities of 1, 2, … under both values of a victim, for an adversary who sees how likely N₀ and N₁ are.

    A report of the victim weighs `first` (in class 0, in class 1, elsewhere) under the one value and `second` under the
    other, relative to the reports of the others. The adversary sees the bin of the likelihood ratio alone, of equal
    width in its logarithm up to `reach`: a function of the reports, so the pair tells no more than they do. Ratios are
    moved towards 1 by GUARD, so that rounding does not tell more either.
    """
    live, mass = window(crowd.people, crowd.live)
    near = np.abs(live - crowd.people * crowd.live) <= LIKELY * math.sqrt(crowd.people * crowd.live)
    live, mass = live[near], mass[near]
    half = max(100, min(BINS, WORK // live.size)) // 2
    edges = np.linspace(0.0, reach, half + 1)
    edges[0] = NOTHING
    over = ratio_tails(crowd, live, mass, first, second, edges)
    swapped = Crowd(crowd.people, crowd.live, 1 - crowd.first)
    # bins of ratio below 1: the other value's reports above it, with the classes exchanged
    other, own = ((b, a, rest) for a, b, rest in (second, first))
    under = ratio_tails(swapped, live, mass, other, own, edges)[::-1]
    ups, downs = (np.maximum(-np.diff(tails, append=0.0), 0.0) for tails in (over, under))
    rest = max(0.0, 1 - float(ups[0].sum() + downs[0].sum()))  # as likely under both values
    return balanced_law(ups[0], downs[0], rest, -GUARD), balanced_law(ups[1], downs[1], rest, GUARD)


def balanced_law(ups: Floats, downs: Floats, rest: float, shift: float) -> Floats:
    """One law over bins from the least to the largest ratio; bins above ratio 1 are scaled by 1 + shift."""
    balance = 1 - shift * float(ups.sum() / downs.sum())
    found = np.concatenate([balance * downs[::-1], [rest], (1 + shift) * ups])
    return floats(found / found.sum())


def ratio_tails(crowd: Crowd, live: Floats, mass: Floats, first: Weights, second: Weights, edges: Floats) -> Floats:
    """P and Q of a likelihood ratio of at least e^edge, a row for each: first(N)/second(N) rises with N₀ given B."""
    growth = np.exp(edges)[:, None]
    outside = crowd.people - live
    need = growth * (second[1] * live + second[2] * outside) - (first[1] * live + first[2] * outside)
    j = np.clip(np.ceil(need / (first[0] - first[1] - growth * (second[0] - second[1]))), 0.0, live + 1)
    tail = above(j - 1, live, crowd.first)
    count = live * crowd.first * above(j - 2, np.maximum(live - 1, 0.0), crowd.first)  # E[N₀; N₀ ≥ j]
    found = [a * count + b * (live * tail - count) + rest * outside * tail for a, b, rest in (first, second)]
    return floats([np.maximum(part, 0.0) @ mass / crowd.people for part in found])
