"""One loss on a lattice: a positive measure whose profile lies above the true one, with a certificate of how far.

Connect the dots: take the profile at lattice points and join them by chords in α = e^ε. The result dominates the loss,
because H is convex in α. It is the profile of a law on the lattice, with masses given by the bends:
    right of 0, with s_j = (F_j − F_{j+1})/(e^h − 1):     p_j = e^h s_{j−1} − s_j,
    left of 0, with r_j = e^{−x_j}(B_j − B_{j+1})/(e^h − 1):  p_j = r_{j−1} − r_j   (x = −ε, B the backward profile).
What lies beyond the last point on the right is certainty (mass at +∞), beyond the first on the left is lifted to
it. Rounding is not analysed but measured: the profile of the masses is summed again, all terms positive, and
compared with the enclosure of the true one at every point.

Theorem: connect-the-dots is the least dominating law on given points [Doroshenko et al. 2022, Thm 3.3]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from sfumato.loss.base import Outcomes, PrivacyLoss
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import ULP, Enclosure, Floats

LONG = np.longdouble


class Splits(NamedTuple):
    """How far connecting the dots moves a loss, given the outcome: N, under P and under Q, with E_P e^{−N} = 1."""

    squares: float  # of all steps that were split: the labels tell at most what a Gaussian with μ² = squares·π/8 tells
    drift: float  # |E N| at most
    scatter: float  # Var N at most
    reach: float  # |N| at most


UNSPLIT = Splits(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Discrete:
    """Masses on offset + h·(start, start+1, …).

    Its profile lies between the true profile H and e^{excess}·H with every chord drawn, plus `stray` at losses up to
    `stray_up_to`: near the largest loss H is so small that only its upper side is known. `infinite` ≥ P[L = ∞] ≥
    `surely`; `lifted` is the mass brought up to the first point; `split` is true if any mass was moved at all.
    Of sampled sums (nested.py), `inside` is what was split before sampling, and `noise` masses that may not be there.
    """

    h: float
    offset: float
    start: int
    masses: Floats
    infinite: float
    surely: float
    lifted: float
    excess: float
    split: bool
    stray: float
    stray_up_to: float
    slip: float = 0.0  # how far a loss can be from its point, where losses were put there one by one
    inside: Splits = UNSPLIT
    noise: Floats | None = None

    @cached_property
    def losses(self) -> Floats:
        return self.offset + self.h * (self.start + np.arange(len(self.masses), dtype=np.float64))

    @cached_property
    def log_masses(self) -> Floats:
        """−∞ where there is no mass."""
        with np.errstate(divide="ignore"):
            return np.log(self.masses)

    @property
    def splits(self) -> Splits:
        """One cell: E N ≤ h²/8 (Jensen; Hoeffding's lemma), Var N ≤ h²/4. On top of what was split before: by the law
        of total variance, since E N of this cell lies in an interval of length h²/8."""
        if not self.split:
            return self.inside
        square, before = self.h * self.h, self.inside
        scatter = square / 4 + (math.sqrt(before.scatter) + square / 16) ** 2 if before.squares else square / 4
        return Splits(before.squares + square, before.drift + square / 8, scatter, before.reach + self.h)


class OwnLattice(Protocol):
    """A loss that is put on a lattice by its atoms, without its profile."""

    def spread(self) -> float:
        """About the standard deviation."""

    def ends(self, floor: float, left: float) -> tuple[float, float]:
        """How far the lattice must reach on both sides."""

    def finest(self, floor: float, left: float) -> float:
        """The least step for which the lattice is not too long."""

    def law(self, h: float, floor: float, left: float) -> Discrete:
        """The law on a lattice of step h."""


class OwnMoments(Protocol):
    """Moments of a loss that are read off its lattice."""

    def log_moment(self, s: float) -> Bound: ...

    def mean(self) -> Bound: ...


# Sampled sums are lattices of lattices: nested.py needs this module, and adds itself here.
OWN_LATTICES: list[Callable[[PrivacyLoss], OwnLattice | None]] = []
OWN_MOMENTS: list[Callable[[PrivacyLoss], OwnMoments | None]] = []


def own_lattice(loss: PrivacyLoss) -> OwnLattice | None:
    """The lattice of a loss that has one of its own, or None: then it is read off the profile."""
    for build in OWN_LATTICES:
        if (found := build(loss)) is not None:
            return found
    return None


def own_moments(loss: PrivacyLoss) -> OwnMoments | None:
    """The moments of a loss that has a lattice of its own, or None: then they are integrals of its profile."""
    for build in OWN_MOMENTS:
        if (found := build(loss)) is not None:
            return found
    return None


SMALL = 10_000  # points: lattices up to this size are remembered
MOST_POINTS = 400_000  # of the lattice of one loss
STRIDE = 16  # points at which the ends of a loss are looked for at a time


def discretise(loss: PrivacyLoss, h: float, floor: float, left: float) -> Discrete:
    """The loss on a lattice of step h: on the right until H ≤ floor, on the left until what is lifted is ≤ left."""
    if (own := own_lattice(loss)) is not None:
        return own.law(h, floor, left)
    right_end, left_end = ends(loss, floor, left)
    return (remembered_dots if right_end + left_end < SMALL * h else connect_the_dots)(loss, h, right_end, left_end)


@lru_cache(maxsize=512)
def ends(loss: PrivacyLoss, floor: float, left: float) -> tuple[float, float]:
    """How far the lattice must reach on both sides."""
    if (own := own_lattice(loss)) is not None:
        return own.ends(floor, left)
    return right_cut(loss, floor), left_cut(loss, left)


def finest(loss: PrivacyLoss, floor: float, left: float) -> float:
    """The least step for which a lattice of this loss is not too long."""
    if (own := own_lattice(loss)) is not None:
        return own.finest(floor, left)
    return sum(ends(loss, floor, left)) / MOST_POINTS


def connect_the_dots(loss: PrivacyLoss, h: float, right_end: float, left_end: float) -> Discrete:
    """Profile at the lattice points, masses from its bends, certificate."""
    offset, split = lattice_offset(loss, h)
    if not split and (found := loss.outcomes()) is not None:
        return place_outcomes(loss, found, h, offset)
    first, last = math.floor((-left_end - offset) / h) - 1, math.ceil((right_end - offset) / h) + 1
    middle = math.ceil(-offset / h)  # index of the first point ≥ 0
    ahead_eps = np.maximum(offset + h * np.arange(middle, last + 1), 0.0)
    back_eps = np.maximum(-(offset + h * np.arange(middle - 1, first - 1, -1)), 0.0)
    ahead = widen_for_rounding(loss.forward(ahead_eps), ahead_eps, h, offset)
    back = widen_for_rounding(loss.backward(back_eps), back_eps, h, offset)
    masses = bends(ahead.upper, back.upper, ahead_eps[0], back_eps[0], h)
    open_left = bool(back_eps[-1] < loss.supremum()[1])
    return certify(loss, masses, ahead, back, h=h, offset=offset, first=first, split=split, open_left=open_left)


remembered_dots = lru_cache(maxsize=256)(connect_the_dots)


def place_outcomes(loss: PrivacyLoss, found: Outcomes, h: float, offset: float) -> Discrete:
    """Losses that live on the lattice, one by one: nothing is read off a profile, which says little near its end."""
    real = found.masses > 0
    losses = found.losses[real]
    places = np.round((losses - offset) / h)
    first = int(places.min())
    masses = np.zeros(int(places.max()) - first + 1)
    np.add.at(masses, (places - first).astype(np.intp), found.masses[real])
    slip = float(np.abs(offset + h * places - losses).max())
    slip += found.slip + 8 * ULP * (abs(offset) + float(np.abs(losses).max()))
    leak = loss.leak()[0]
    rounding = 32 * ULP + len(found.masses) * ULP
    return Discrete(
        h=h,
        offset=offset,
        start=first,
        masses=masses * (1 + rounding),
        infinite=min(leak * (1 + rounding), 1.0),
        surely=leak * (1 - 16 * ULP) if loss.sharp_ends else 0.0,
        lifted=0.0,
        excess=3 * rounding,
        split=False,
        stray=0.0,
        stray_up_to=0.0,
        slip=slip,
    )


def widen_for_rounding(values: Enclosure, eps: Floats, h: float, offset: float) -> Enclosure:
    """Widened for lattice points that are rounded: off by at most 2 ulps, and H falls no faster than just before."""
    slope = np.exp(np.minimum(eps, 700.0))  # |dH/dε| = e^ε·Q[L > ε]
    slope[1:] = np.minimum(slope[1:], np.maximum(-np.diff(values.upper), 0.0) / -math.expm1(-h))
    slip = slope * (2 * ULP * (eps + 2 * abs(offset)))
    return Enclosure(np.maximum(values.lower - slip, 0.0), values.upper + slip)


def lattice_offset(loss: PrivacyLoss, h: float) -> tuple[float, bool]:
    """Where the points lie, and whether masses must be split: not if the loss lives on these points."""
    found = loss.atoms()
    if found is None:
        return 0.0, True
    step, offset = found
    ratio = step / h
    if round(ratio) >= 1 and abs(ratio - round(ratio)) <= 8 * ULP * ratio:
        return offset, False
    return 0.0, True


def right_cut(loss: PrivacyLoss, floor: float) -> float:
    """A point beyond which forward ≤ floor (or the largest loss, if that comes first)."""
    top = loss.supremum()[0]
    end = min(1.0, top)
    smaller = end / 16.0 ** np.arange(1.0, 5.0)
    while end > 1e-150 and (few := loss.forward(smaller).upper <= floor).any():  # a tiny loss
        end = float(smaller[few][-1])
        smaller = smaller / 16.0**4
        if not few[-1]:
            break
    while end < top and end <= 1e7:
        points = np.minimum(end * 1.2 ** np.arange(STRIDE), top)
        enough = loss.forward(points).upper <= floor
        if enough.any():
            end = float(points[np.argmax(enough)])
            break
        end = float(points[-1])
    low = end / 1.2
    points = np.linspace(low, end, 33) if end < top or low < top else np.array([end])
    enough = loss.forward(points).upper <= floor
    return float(points[np.argmax(enough)]) if enough.any() else end


def left_cut(loss: PrivacyLoss, left: float) -> float:
    """A point x with P[L < −x] ≤ left: by B(y) ≥ P[L < −x](e^x − e^y) at y = x/2 or x − 1, whichever is larger."""
    bottom = loss.supremum()[1]
    x = 1e-3 * 1.2 ** np.arange(STRIDE)
    while x[0] < min(bottom, 1e7):
        x = x[x < bottom]
        y = np.maximum(x / 2, x - 1)
        room = np.exp(np.minimum(x, 700.0)) - np.exp(np.minimum(y, 700.0))
        enough = loss.backward(y).upper <= left * room
        if enough.any():
            return float(x[np.argmax(enough)])
        x = x[-1] * 1.2 ** np.arange(1, STRIDE + 1)
    return min(float(x[0]), bottom)


def bends(ahead: Floats, back: Floats, right: float, left: float, h: float) -> Floats:
    """Masses at the lattice points, from left to right, from upper values of both profiles."""
    growth = math.expm1(h)
    s = -np.diff(ahead) / growth
    x = left + h * np.arange(len(back))
    r = -np.diff(back) / growth * np.exp(-x[:-1])
    # the cell across 0, from −left to right: H there is 1 − e^{−left}(1 − B) on its left end, and F on its right end
    width = math.exp(-left) * math.expm1(right + left)
    q_across = (-math.expm1(-left) + math.exp(-left) * back[0] - ahead[0]) / width
    p_across = (-math.expm1(-right) + math.exp(-right) * ahead[0] - back[0]) / (
        math.exp(-right) * math.expm1(right + left)
    )
    beyond = np.append(s, 0.0)
    before = np.concatenate([[math.exp(right) * q_across], s * math.exp(h)])
    right_masses = before - beyond
    left_masses = np.concatenate([[p_across], r]) - np.append(r, 0.0)
    masses: Floats = np.concatenate([left_masses[::-1], right_masses])
    return np.maximum(masses, 0.0)


def certify(
    loss: PrivacyLoss,
    masses: Floats,
    ahead: Enclosure,
    back: Enclosure,
    *,
    h: float,
    offset: float,
    first: int,
    split: bool,
    open_left: bool,
) -> Discrete:
    """Sum the profile of the masses again, scale it above the truth, and measure how far above it is."""
    infinite = float(ahead.upper[-1])
    profile = profile_of(masses, infinite, h)
    points = offset + h * (first + np.arange(len(masses)))
    x = -points[: len(back.upper)][::-1]
    low_left = (-np.expm1(-x) + np.exp(-x) * back.lower) * (1 - 8 * ULP)
    high_left = (-np.expm1(-x) + np.exp(-x) * back.upper) * (1 + 8 * ULP)
    low = np.concatenate([low_left[::-1], ahead.lower])
    high = np.concatenate([high_left[::-1], ahead.upper])
    slack = 1 + len(masses) * float(np.finfo(LONG).eps) + 4 * ULP
    total = float(masses.sum()) + infinite
    positive = profile > 0
    scale = max(1.0, 1 / total, float((high[positive] * slack / profile[positive]).max(initial=1.0)))
    sharp = 1 + int(np.max(np.flatnonzero((low >= 0.9 * high) & (low > 0) | (high > 1e-9)), initial=-1))
    stray = float(profile[sharp:].max(initial=0.0)) * scale
    with np.errstate(divide="ignore"):  # where nothing is known from below the excess is infinite
        ratio = max(total, float((profile[:sharp] / low[:sharp]).max(initial=1.0)))
    surely = loss.leak()[0] * (1 - 16 * ULP) if loss.sharp_ends else 0.0
    return Discrete(
        h=h,
        offset=offset,
        start=first,
        masses=masses * scale,
        infinite=infinite * scale,
        surely=min(surely, infinite),
        lifted=2 * float(masses[0]) if open_left else 0.0,
        excess=math.log(ratio * scale * slack),
        split=split,
        stray=stray,
        stray_up_to=float(points[-1]),
    )


def profile_of(masses: Floats, infinite: float, h: float) -> Floats:
    """H at the lattice points, from the right, in extended precision: H_j = H_{j+1} + (1 − e^{−h})E_{j+1} with
    E_j = p_j + e^{−h}E_{j+1}. In blocks, so that the e^{−l} inside E neither over- nor underflow."""
    n = len(masses)
    result = np.empty(n)
    block = max(1, min(32768, int(200 / h)))
    tail, carried = LONG(0.0), LONG(infinite)
    weights = np.exp(LONG(h) * np.arange(1, min(n, block) + 1, dtype=LONG))
    for stop in range(n, 0, -block):
        begin = max(0, stop - block)
        p = masses[begin:stop][::-1].astype(LONG)
        weight = weights[: len(p)]
        e = (np.cumsum(p * weight) + tail) / weight  # E at the points of this block, from the right
        steps = np.concatenate([[LONG(0.0)], e[:-1]])
        steps[0] = tail if stop < n else LONG(0.0)
        h_values = carried - np.expm1(-LONG(h)) * np.cumsum(steps)
        result[begin:stop] = h_values[::-1].astype(np.float64)
        tail, carried = e[-1], h_values[-1]
    return result
