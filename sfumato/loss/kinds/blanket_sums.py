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

from sfumato.loss.kinds.binomial_tails import MORE, OUTSIDE, cell_masses, mean_excess, mean_excess_along, window
from sfumato.loss.numeric import Floats, floats

LONG = 500  # live numbers from which on tails are followed along a line instead of computed one by one
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


class Nodes(NamedTuple):
    """Numbers of live people, values of W, and weights: a sum that bounds an expectation over the crowd.

    `line`: W is affine in the live number along the second axis.
    """

    live: Floats
    rest: Floats
    weight: Floats
    line: bool


def cell_edges(people: int, most: int, far: Floats) -> Floats:
    """Edges of cells in standard deviations. Their error falls with the number of people, so fewer are enough."""
    count = min(most, max(4, math.ceil(SHARP / math.sqrt(people))))
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
    return spread_out(crowd, live, others, mass, np.zeros_like(live), 1 - crowd.live)


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


def spread_out(crowd: Crowd, live: Floats, others: Floats, weight: Floats, rest: Floats, left: float) -> Nodes:
    """Several classes of others, one after the other, each in cells with whole edges given all before it."""
    z = cell_edges(crowd.people, MOST_CELLS if len(crowd.rest) == 1 else MOST_CELLS // 5, FAR)[:, None]
    for chance, amount in crowd.rest:
        p = min(1.0, chance / left)
        spread = np.sqrt(others * p * (1 - p)) + (np.abs(z) == FAR[-1]) * 4.0
        edges = np.clip(np.rint(others * p + z * spread), 0.0, others)
        masses, means = masses_and_means(edges, others, p)
        shares = chord_weights(edges, masses, means) * weight
        keep = shares > OUTSIDE * 1e-9
        live, left_over = np.broadcast_to(live, edges.shape)[keep], np.broadcast_to(others, edges.shape)[keep]
        rest = (np.broadcast_to(rest, edges.shape) + amount * edges)[keep]
        others, weight, left = left_over - edges[keep], shares[keep], left - chance
    return Nodes(live, rest + crowd.least * others, weight, False)


def positive_part(nodes: Nodes, crowd: Crowd, gain: float, cost: float, charge: float) -> float:
    """E[(gain·N₀ − cost·N₁ − charge·W)₊]/n over the nodes."""
    t = (cost * nodes.live + charge * nodes.rest) / (gain + cost)
    along = nodes.line and nodes.live.shape[1] >= LONG
    excess = mean_excess_along(nodes.live, t, crowd.first) if along else mean_excess(nodes.live, t, crowd.first)
    return float(np.sum(nodes.weight * excess)) * (gain + cost) / crowd.people
