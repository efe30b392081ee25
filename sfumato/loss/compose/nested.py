"""Sampled sums on a lattice, atom by atom: the inner sum is composed on its own lattice and mapped through sampling.

The inner law is a positive measure m on lattice points, with the profile of the sum or a larger one (lattice.md). Its
atoms l become atoms of the sampled pair ((1−q)Q + qP, Q), or of the pair read backwards, exactly:
    forward:   mass (q + (1−q)e^{−l})·m at log(1 − q + qe^l), what m lacks of Q at log(1−q), and q·m(∞) at ∞,
    backward:  mass m at −log(1 − q + qe^{−l}), and m(∞) at −log(1−q)   (m belongs to (Q, P) here).
    without replacement:  the forward atoms right of 0, the same reflected, and the rest at 0   (m symmetric).
Both profiles are linear in m's and order is kept, so that an upper measure stays one. No profile is evaluated and none
is tabulated; all sums have positive terms.

Lower bound (docs/theorems/lattice.md, section 5): sampling is a contraction of the loss, and labels that only
sampled people get reveal no more than labels that everybody gets. So the covering Gaussian of the inner lattice covers
the sampled one too: squares of steps add up over inner and outer lattices.

Theorem: dominated by the truth plus a small Gaussian, through sampling too [docs/theorems/lattice.md, section 5]
Theorem: Poisson sampling keeps dominating pairs, direction by direction [Zhu, Dong & Wang 2022, Thm 11]
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.discretise import OWN_LATTICES, OWN_MOMENTS, Discrete, Splits, discretise, ends
from sfumato.loss.compose.facts import Composite
from sfumato.loss.compose.lattice import convolve, moment_of, points, strays, together
from sfumato.loss.compose.lattice_moments import LatticeMoments
from sfumato.loss.compose.lattice_plan import Rough, Terms, rough, tidy
from sfumato.loss.compose.moment_bounds import too_large
from sfumato.loss.kinds.subsampled import PoissonSampledLoss, WithoutReplacementLoss, log_sum_up
from sfumato.loss.kinds.wrappers import OneWay, Reversed
from sfumato.loss.numeric import TINY, ULP, Floats, floats

MOST_STEPS = 300, 1200  # of the inner sum, if losses are bounded and if not: beyond, a table is sharper
MOST_TILTS = 40
MOST_OF_MOMENTS = 3000  # steps of an inner sum whose moments are read off a lattice
MANY, MOST_POINTS = 100, (65_536, 98_304)  # steps, and points of the inner lattice of few and of many: .1 s each
FINE, COARSE_ENOUGH = 0.004, 0.03  # steps of a lattice from which moments are computed, in spreads
TAIL, LIFT = 1e-20, 1e-12  # what such a lattice cuts off on the right and lifts on the left
ROUNDING = 10.0  # nats: an error of 1e-16 is then 1e-11 of the floor
STEEP = 7.0  # a tilt from which on the next one may be much larger
COARSE = 7.0  # nats that a mass between two tilts may lose of its digits
BETWEEN = floats([0.0, 0.04, 0.15, 0.4, 0.7, 0.9, 1.0])
EXTRA = floats([0.3, 1.0])  # tilts beyond the last one, in its own units
DOWN = -(2.0 ** np.arange(-6.0, 8.0))  # tilts that bound what lies far on the left


def is_composed(loss: PrivacyLoss) -> bool:
    """Is this a sum without leak that an engine answers for?"""
    return isinstance(loss, Composite) and loss.leak() == (0.0, 0.0) and loss.method in ("lattice", "contour")


@lru_cache(maxsize=256)
def sampled_sum(loss: PrivacyLoss) -> "SampledSum | None":
    """The loss as a sampled sum, if it is one whose inner lattice is not too large."""
    found = any_sampled_sum(loss)
    bounded = found is not None and all(math.isfinite(max(term.supremum())) for _, term in found.terms)
    return None if found is None or found.steps > MOST_STEPS[not bounded] else found


def any_sampled_sum(loss: PrivacyLoss) -> "SampledSum | None":
    """The loss as a sampled sum, if it is one."""
    backward, sampled = (True, loss.inner) if isinstance(loss, Reversed) else (False, loss)
    if not isinstance(sampled, PoissonSampledLoss | WithoutReplacementLoss) or not 1e-6 <= sampled.rate < 1:
        return None
    if not is_composed(sampled.inner):
        return None
    inner = sampled.inner.reverse if backward else sampled.inner
    if not isinstance(inner, Composite):
        return None
    terms = tuple((count, term.inner if isinstance(term, OneWay) else term) for count, term in inner.terms)
    if too_large(terms):
        return None
    if isinstance(sampled, PoissonSampledLoss):
        return Added(terms, sampled.rate) if backward else Removed(terms, sampled.rate)
    # of a symmetric pair the right half is enough, if no cell lies across 0
    halves = inner.reverse == inner and all(term.atoms() is None for _, term in terms)
    return Replaced(terms, sampled.rate) if halves else None


@lru_cache(maxsize=16)
def sampled_moments(loss: PrivacyLoss) -> LatticeMoments | None:
    """The moments of a sampled sum, also of one that is too long for its profile to be sharp on a lattice."""
    found = any_sampled_sum(loss)
    return None if found is None or found.steps > MOST_OF_MOMENTS else found.moments()


OWN_LATTICES.append(sampled_sum)
OWN_MOMENTS.append(sampled_moments)


class Atoms(NamedTuple):
    """A measure on offset + h·(start, start + 1, …) that dominates a sum."""

    losses: Floats
    masses: Floats  # never below those of exact dots, which are at least e^{−excess} of it without the noise
    noise: Floats
    infinite: float
    excess: float
    lifted: float  # mass brought up, under both measures that count
    splits: Splits


class Mixed(NamedTuple):
    """The atoms of the sampled pair: where they are, their masses, how much of each may not be there, and at +∞."""

    places: Floats
    masses: Floats
    noise: Floats
    infinite: float


@dataclass(frozen=True)
class SampledSum(ABC):
    """Terms of a sum, sampled at a rate."""

    terms: Terms
    rate: float

    q_counts: ClassVar[float] = 0.0  # 1 if the Q-mass of what is lifted on the left of the inner sum counts, else 0

    @abstractmethod
    def mix(self, inner: Atoms, slack: float) -> Mixed:
        """The sampled pair, from the inner one; masses are known to a relative `slack`."""

    @abstractmethod
    def mixed_ends(self, low: float, high: float) -> tuple[float, float]:
        """How far the sampled loss reaches on both sides if the inner one lies in [low, high]."""

    @property
    def steps(self) -> int:
        return sum(count for count, _ in self.terms)

    def spread(self) -> float:
        """About the standard deviation of a sampled loss: its variance is about twice log(1 + q²χ²)."""
        growth = math.expm1(min(float(rough(self.terms).log_moments(np.ones(1))[0]), 600.0))
        return math.sqrt(2 * math.log1p(self.rate**2 * max(growth, 1e-18)))

    def ends(self, floor: float, left: float) -> tuple[float, float]:
        """How far the lattice must reach on both sides."""
        right_end, left_end = self.mixed_ends(*sum_ends(rough(self.terms), floor, left, self.q_counts))
        return max(right_end, 1e-12), max(left_end, 1e-12)

    def finest(self, floor: float, left: float) -> float:
        """The least step for which the inner lattice is not too long."""
        low, high = sum_ends(rough(self.terms), floor, left, self.q_counts)
        return (high - low) * math.sqrt(self.steps) / MOST_POINTS[self.steps > MANY]

    def moments(self) -> LatticeMoments:
        """All Rényi moments, to about 1e-5 where that is quick, else to some 1e-4. Here Q-mass counts in any case."""
        low, high = sum_ends(rough(self.terms), TAIL, LIFT, 1.0)
        quick, spread = (high - low) * math.sqrt(self.steps) / MOST_POINTS[0], self.spread()
        h = tidy(min(max(quick, FINE * spread), max(quick / 4, COARSE_ENOUGH * spread)), [])
        inner = atoms(self.terms, self.inner_step(h), TAIL, LIFT, 1.0)
        return LatticeMoments(self.law_of(inner, h / 4), self.log_moment_ceiling)

    def log_moment_ceiling(self, s: float) -> float:
        """1 − q + q·M of the inner sum, by convexity; sampling without replacement adds at most s (backwards)."""
        inner = math.fsum(count * term.log_moment(s).upper for count, term in self.terms)
        return log_sum_up(math.log1p(s), math.log(self.rate) + inner)

    def law(self, h: float, floor: float, left: float) -> Discrete:
        """The sampled law on hℤ. The steps of the inner lattice are smaller, so that both cost alike."""
        return self.law_of(atoms(self.terms, self.inner_step(h), floor, left, self.q_counts), h)

    def inner_step(self, h: float) -> float:
        """The step of the inner lattice for an outer one of step h."""
        sketch = rough(self.terms)
        return sketch.step or tidy(h / math.sqrt(self.steps), [part for _, part in sketch.parts])

    def law_of(self, inner: Atoms, h: float) -> Discrete:
        """The sampled law on hℤ, from the inner one."""
        slack = (len(inner.losses) + 64) * ULP
        places, masses, noise, infinite = self.mix(inner, slack)
        slip = 32 * ULP * (1 + float(np.abs(inner.losses).max()) + float(np.abs(places).max()))
        start, (on_masses, on_noise) = split_onto_lattice(places, (masses, noise), h)
        return Discrete(
            h=h,
            offset=0.0,
            start=start,
            masses=on_masses * (1 + slack),
            infinite=infinite * (1 + slack),
            surely=0.0,
            lifted=inner.lifted,
            excess=inner.excess + 4 * slack,
            split=True,
            stray=0.0,
            stray_up_to=0.0,
            slip=slip,
            inside=through_sampling(inner.splits),
            noise=on_noise,
        )


class Removed(SampledSum):
    """The pair ((1−q)Q + qP, Q) of Poisson sampling."""

    q_counts = 1.0

    def mixed_ends(self, low: float, high: float) -> tuple[float, float]:
        return float(mix_loss(floats(high), self.rate)), -float(mix_loss(floats(low), self.rate))

    def mix(self, inner: Atoms, slack: float) -> Mixed:
        q, ratio = self.rate, np.exp(-inner.losses)
        weight = q + (1 - q) * ratio
        q_mass = float((inner.masses * ratio).sum())
        missing = 1 - q * (float(inner.masses.sum()) + inner.infinite) - (1 - q) * q_mass
        rest = max(missing, 0.0) + slack * (1 + q_mass)
        return Mixed(
            np.append(mix_loss(inner.losses, q), math.log1p(-q)),
            np.append(inner.masses * weight, rest),
            np.append(inner.noise * weight, 2 * slack * (1 + q_mass)),
            q * inner.infinite,
        )


class Added(SampledSum):
    """The pair (Q, (1−q)Q + qP) of Poisson sampling, of terms (Q, P)."""

    def mixed_ends(self, low: float, high: float) -> tuple[float, float]:
        return -float(mix_loss(floats(-high), self.rate)), float(mix_loss(floats(-low), self.rate))

    def mix(self, inner: Atoms, slack: float) -> Mixed:
        q, end = self.rate, inner.infinite
        places = np.append(-mix_loss(-inner.losses, q), -math.log1p(-q))
        return Mixed(places, np.append(inner.masses, end), np.append(inner.noise, end), 0.0)


class Replaced(SampledSum):
    """The symmetric pair of sampling without replacement, whose profile from ε = 0 on is that of ((1−q)Q + qP, Q)."""

    def mixed_ends(self, low: float, high: float) -> tuple[float, float]:
        end = float(mix_loss(floats(high), self.rate))
        return end, end

    def mix(self, inner: Atoms, slack: float) -> Mixed:
        """The law right of 0, its reflection (where an atom l weighs e^{−l}), and the rest at 0."""
        q, right = self.rate, inner.losses > 0
        ratio, places = np.exp(-inner.losses[right]), mix_loss(inner.losses[right], q)
        weight, infinite = q + (1 - q) * ratio, q * inner.infinite
        ahead, back = inner.masses[right] * weight, inner.masses[right] * ratio
        rest = max(1 - float(ahead.sum()) - float(back.sum()) - infinite, 0.0) + 4 * slack
        return Mixed(
            np.concatenate([places, -places, [0.0]]),
            np.concatenate([ahead, back, [rest]]),
            np.concatenate([inner.noise[right] * weight, inner.noise[right] * ratio, [8 * slack]]),
            infinite,
        )


def mix_loss(l: Floats, q: float) -> Floats:  # noqa: E741  # l is a loss here as on the page of theorems
    """log(1 − q + qe^l): increasing, a contraction."""
    small = np.log1p(q * np.expm1(np.minimum(l, 1.0)))
    large = l + np.log(q + (1 - q) * np.exp(-np.maximum(l, 1.0)))
    return floats(np.where(l <= 1, small, large))


def through_sampling(inner: Splits) -> Splits:
    """Inner splits after sampling: |N'| ≤ |N|, so E N'² ≤ E N² =: e, and 1 = E e^{−N'} ≤ 1 − E N' + e^R·e/2."""
    second = inner.scatter + inner.drift**2
    return Splits(inner.squares, math.exp(min(inner.reach, 50.0)) * second / 2, second, inner.reach)


def split_onto_lattice(places: Floats, columns: tuple[Floats, ...], h: float) -> tuple[int, list[Floats]]:
    """Masses on hℤ, each divided between the two points around it so that its P-mass and its Q-mass stay."""
    below = np.floor(places / h)
    share = np.clip(np.expm1(below * h - places) / math.expm1(-h), 0.0, 1.0)
    start = int(below.min())
    index = (below - start).astype(np.intp)
    size = int(index.max()) + 2
    laid_out = [
        floats(np.bincount(index, column * (1 - share), size) + np.bincount(index + 1, column * share, size))
        for column in columns
    ]
    return start, laid_out


def sum_ends(sketch: Rough, floor: float, left: float, weight: float) -> tuple[float, float]:
    """About where the sum has ended: P[S > right] ≤ floor, and E[e^{−weight·S}; S < low] ≤ left. It steers only."""
    bottom = math.fsum(count * float(part.losses[0]) for count, part in sketch.parts)
    top = math.fsum(count * float(part.losses[np.flatnonzero(part.masses)[-1]]) for count, part in sketch.parts)
    tilts = DOWN - weight
    lows = (math.log(left) - sketch.log_moments(tilts)) / -DOWN
    return max(bottom, min(float(lows.max()), 0.0)), min(top, sketch.saddle(floor)[1])


@lru_cache(maxsize=8)
def atoms(terms: Terms, h: float, floor: float, left: float, weight: float) -> Atoms:
    """The sum on a lattice: every mass from its most accurate tilt, since rounding is relative to the largest mass.

    `weight` is 1 if the Q-mass of what is lifted on the left counts too, else 0.
    """
    sketch, steps = rough(terms), sum(count for count, _ in terms)
    shares = [left_of(loss, floor, left, weight) / steps for _, loss in terms]
    parts = [
        (count, discretise(loss, h, floor / steps, share)) for (count, loss), share in zip(terms, shares, strict=True)
    ]
    offset = math.fsum(count * part.offset for count, part in parts)
    bottom = sum(count * part.start for count, part in parts)
    top = sum(count * (part.start + len(part.masses) - 1) for count, part in parts)
    low, high = sum_ends(sketch, floor, left, weight)
    # every step may be moved by a cell: where the sum ends in atoms, none may be left out
    start = max(bottom, math.floor((low - offset) / h) - steps - 1)
    stop = min(top, max(math.ceil((high - offset) / h) + steps, start) + 1)
    losses = floats(offset + h * np.arange(start, stop + 1))
    # what is wrapped falls by e^{−|θ'−θ|W}: twice the window is worth its price where the tail goes on
    n = points(len(losses) * (2 if stop < top else 1))
    laws = [Region(parts, theta, start, n) for theta in tilts(sketch, high, -weight, floor)]
    bounds = [law.unit for law in laws]
    right = [*bounds, *steeper(parts, bounds[-1], EXTRA)] if stop < top else None
    flat = [*bounds, *steeper(parts, bounds[0], -EXTRA)] if start > bottom else None
    masses, noise = stitch_regions(laws, losses, h, flat, right)
    before = lifted_mass(parts, float(losses[0]), weight) if start > bottom else 0.0
    masses[0] += before * math.exp(weight * losses[0])  # the edge is negative: as a P-mass it is less
    lifted = [count * part.lifted * max(1.0, math.exp(-weight * float(part.losses[0]))) for count, part in parts]
    slack = max(law.slack for law in laws)
    beyond = min((math.exp(min(float(b.power(losses[-1])), 0.0)) for b in right or [] if b.theta >= 0), default=0.0)
    splits = [(count, part.splits) for count, part in parts]
    return Atoms(
        losses=losses,
        masses=masses * (1 + slack),
        noise=noise * (1 + slack),
        infinite=min(1.0, together([(count, part.infinite) for count, part in parts]) + beyond * (1 + slack)),
        excess=math.fsum(count * part.excess for count, part in parts) + 2 * slack,
        lifted=min(1.0, math.fsum(lifted) + before),
        splits=Splits(*(math.fsum(count * split[i] for count, split in splits) for i in range(4))),
    )


class Chernoff(NamedTuple):
    """A tilt θ and K(θ): every mass at l is at most e^{K−θl}."""

    theta: float
    log_moment: float

    def power(self, loss: Floats) -> Floats:
        return self.log_moment - self.theta * loss

    def largest(self, first: Floats, last: Floats) -> Floats:
        """The largest power between two losses."""
        return np.maximum(self.power(first), self.power(last))


def steeper(parts: list[tuple[int, Discrete]], bound: Chernoff, extra: Floats) -> list[Chernoff]:
    """More tilts beyond the last one, for bounds only."""
    found = [bound.theta + float(more) * max(1.0, abs(bound.theta)) for more in extra]
    return [Chernoff(theta, math.fsum(count * moment_of(part, theta) for count, part in parts)) for theta in found]


class Region:
    """The sum tilted by θ, wrapped onto n points: it is the most accurate one for some region."""

    def __init__(self, parts: list[tuple[int, Discrete]], theta: float, start: int, n: int) -> None:
        found = convolve(parts, theta, start, n)
        self.masses, self.error = found.masses, found.entry_error + TINY
        self.unit = Chernoff(theta, math.fsum(found.moments))
        self.width = n * parts[0][1].h
        self.stray = strays(parts, theta)
        steps, far = sum(count for count, _ in parts), max(float(np.abs(part.losses).max()) for _, part in parts)
        # rounding of tilted masses, of their exponents, and of e^{K−θl}
        self.slack = ULP * (steps * (1024 + 8 * abs(theta) * far) + 64 * sum(map(abs, found.moments)))

    def more(self, first: Floats, last: Floats, before: list[Chernoff] | None, beyond: list[Chernoff] | None) -> Floats:
        """log of what may be too much between two losses: stray mass, and mass wrapped from either side."""
        theta, total = self.unit.theta, self.unit.largest(first, last) + math.log(self.stray + TINY)
        if beyond is not None:
            total = np.logaddexp(
                total, self.wrapped_mass([other for other in beyond if other.theta > theta], first, last)
            )
        if before is not None:
            total = np.logaddexp(
                total, self.wrapped_mass([other for other in before if other.theta < theta], first, last)
            )
        return total

    def wrapped_mass(self, others: list[Chernoff], first: Floats, last: Floats) -> Floats:
        """log of the mass from outside the window on one side, untilted in the wrong place."""
        gaps = [abs(other.theta - self.unit.theta) * self.width for other in others]
        powers = [
            other.largest(first, last) - gap - math.log(-math.expm1(-gap))
            for other, gap in zip(others, gaps, strict=True)
        ]
        return floats(np.min(powers, axis=0))


def left_of(loss: PrivacyLoss, floor: float, left: float, weight: float) -> float:
    """The mass of one term to lift, so that its Q-mass, larger by e^{−l}, is little too where it counts."""
    share = left
    for _ in range(8 if weight and math.isinf(loss.supremum()[1]) else 0):
        share = max(left * math.exp(-min(ends(loss, floor, share)[1], 600.0)), 1e-280)
    return share


def tilts(sketch: Rough, high: float, first: float, floor: float) -> list[float]:
    """Tilts from `first` on, until rounding errors at the right end are far below `floor`.

    At the loss where two of them do equally well, the rounding error is larger than it could be by e to the power of
    the chord of K over K: neighbours are as far apart as that stays below COARSE.
    """
    found, step = [first], 1.0
    while len(found) < MOST_TILTS:
        value, mean, _ = sketch.cumulants(found[-1])
        if found[-1] > 0 and (mean >= high or value - found[-1] * high < math.log(floor) + ROUNDING):
            break
        # mass left of the bulk is wrapped and needs small tilts; a few large ones do for mass right of it
        step = min(4 * step, (1 + abs(found[-1])) * (4 if found[-1] > STEEP else 1))
        while step > 1e-9:
            between = sketch.log_moments(found[-1] + step * BETWEEN)
            if float((between[0] + BETWEEN * (between[-1] - between[0]) - between).max()) <= COARSE:
                break
            step /= 2
        found.append(found[-1] + step)
    return found


def stitch_regions(
    laws: list[Region], losses: Floats, h: float, before: list[Chernoff] | None, beyond: list[Chernoff] | None
) -> tuple[Floats, Floats]:
    """Masses from above, and how much of each may not be there.

    A law has all the mass that belongs at a point, up to its `error`, and more: what is wrapped from j windows away,
    off by e^{θjW} for being untilted in the wrong place. By Chernoff's bound at a tilt θ' > θ, for mass from beyond the
    window, or θ' < θ, for mass from before it, that is at most e^{K(θ')−θ'l}·r/(1 − r), r = e^{−|θ'−θ|W}, in all of a
    piece of losses l. It is said to be at the right end of the piece, and pieces are so short that no tilt used here
    changes by more than e³ on one of them.
    """
    stride = max(1, int(3 / (max(abs(law.unit.theta) for law in laws) * h + 1e-12)))
    begins = np.arange(0, len(losses), stride)
    ends_ = np.minimum(begins + stride, len(losses))
    first, last = losses[begins], losses[ends_ - 1]
    extra = [law.more(first, last, before, beyond) for law in laws]
    sums = [law.unit.largest(first, last) + math.log(law.error * stride) for law in laws]
    owner = np.argmin(np.logaddexp(extra, sums), axis=0)
    owners = np.repeat(owner, ends_ - begins)
    masses, noise = np.empty_like(losses), np.empty_like(losses)
    for number, law in enumerate(laws):
        mine = np.flatnonzero(owners == number)
        unit = np.exp(np.minimum(law.unit.power(losses[mine]), 700.0))
        masses[mine], noise[mine] = (law.masses[mine] + law.error) * unit, 2 * law.error * unit
    noise[ends_ - 1] += np.exp(np.minimum(np.choose(owner, extra), 700.0))
    return masses, noise


def lifted_mass(parts: list[tuple[int, Discrete]], edge: float, weight: float) -> float:
    """E[e^{−weight·S}; S < edge] at most, and at least P[S < edge] if the edge is negative: Chernoff's bound."""
    powers = [
        math.fsum(count * moment_of(part, float(s) - weight) for count, part in parts) - float(s) * edge for s in DOWN
    ]
    return math.exp(min(min(powers), 0.0)) * (1 + 1e-9)
