"""Cells of the real line with certified masses and loss ranges, for a noise density and its shifted, dilated copy.

For the pair P = law of Z, Q = law of e^l·Z + u, every cell gets its mass under P and under Q and a range that contains
the loss L = ln p/q on the cell. Every number has a proved error. Masses come from Gauss quadrature (or, next to a kink,
from the ends of the cell); ranges come from the values at the ends and a bound on the second derivative.

Theorem: Gauss quadrature of a function bounded by M on a disc of radius R errs by (64/15)·hM·ρ^{−2n}/(1 − ρ^{−2}) on an
    interval of half-width h with n + 1 points, ρ = R/h + √(R²/h² − 1) [Trefethen 2013, Thm 19.3]
Theorem: a function within B of its middle value on a disc has |f″| ≤ 2B/r², |f‴| ≤ 6B/r³ at distance R − r [Cauchy's
    estimates]
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.errors import OutOfReach
from sfumato.loss.numeric import TINY, Floats, floats
from sfumato.mechanisms.dependent.noise_family import NEAR, Noise

Mask = npt.NDArray[np.bool_]

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(8)
INSIDE = 8.0  # a disc reaches at least this many half-widths of its cell, so ρ > 15.9
QUADRATURE = 1e-15  # relative error of eight points in that case: (32/15)·e^{NEAR + 1/4}·ρ^-14 < 4e-16
ROUNDING = 1e-13  # error of a log density, relative to 1 + |ln p| + slope
FAR = 1e-45  # mass beyond the last cell
FINE, COARSE = 5e-3, 5.0  # width of the loss range where there is mass, and the factor by which it may grow elsewhere
LEAST = 1e-7  # half-width of cells next to a kink, which lie in no disc
MOST = 20_000  # cells


class Cells(NamedTuple):
    """Masses of P and Q, their relative errors, and the range of L for each cell; the first and last are unbounded.

    For an unbounded cell the masses are upper bounds only, and `high` (`low`) is infinite if nothing bounds L.
    """

    p: Floats
    q: Floats
    error: Floats
    low: Floats
    high: Floats
    end: float  # |z| at which the unbounded cells begin


class Side(NamedTuple):
    """One density of the pair: p(|z − centre|/e^l)/e^l."""

    noise: Noise
    centre: float
    dilation: float

    def place(self, z: Floats) -> Floats:
        """The argument of p: |z − centre|/e^l."""
        return np.abs(z - self.centre) * math.exp(-self.dilation)

    def log_density(self, z: Floats) -> Floats:
        return self.noise.log_density(self.place(z)) - self.dilation

    def radius(self, z: Floats) -> Floats:
        """Radius of a disc about z in which the log density stays within NEAR of its value at z."""
        return np.maximum(self.noise.radius(self.place(z)) * math.exp(self.dilation) * (1 - 1e-9), TINY)

    def rounding_error(self, z: Floats, logs: Floats) -> Floats:
        """The rounding error of `log_density`; an error in `place` is multiplied by the slope."""
        return ROUNDING * (1 + np.abs(logs) + self.noise.rough_slope(self.place(z)))

    def masses(self, z: Floats) -> tuple[Floats, Floats]:
        """The mass of each cell and its relative error.

        By quadrature inside discs. Elsewhere from the ends: no cell contains the centre, so the density is monotone.
        """
        middle, half = (z[:-1] + z[1:]) / 2, np.diff(z) / 2
        smooth = half * INSIDE <= self.radius(middle)
        values = self.log_density(middle[:, None] + half[:, None] * POINTS)
        top = values.max(axis=1)
        by_points = half * np.exp(top) * (np.exp(values - top[:, None]) * WEIGHTS).sum(axis=1)
        ends = self.log_density(z)
        by_ends = half * (np.exp(ends[:-1]) + np.exp(ends[1:]))
        unsure = np.where(smooth, QUADRATURE, np.tanh(np.abs(np.diff(ends)) / 2))
        return np.where(smooth, by_points, by_ends), unsure + 4 * self.rounding_error(
            middle, ends[:-1] + np.diff(ends) / 2
        )

    def chord_deviation(self, row: "Row", change: Floats, radius: Floats) -> Floats:
        """Distance of the log density from its chord: from the second derivative inside discs, else its change."""
        half = row.half
        bend = 0 * half if self.noise.straight else NEAR * (half / np.maximum(radius - half, half)) ** 2
        return np.where(half * INSIDE <= radius, bend, np.abs(change))


class Row(NamedTuple):
    """Cells, not necessarily adjacent, and both log densities at their ends."""

    left: Floats
    right: Floats
    p_left: Floats
    p_right: Floats
    q_left: Floats
    q_right: Floats

    @property
    def middle(self) -> Floats:
        return (self.left + self.right) / 2

    @property
    def half(self) -> Floats:
        return (self.right - self.left) / 2

    def select(self, which: "Mask | npt.NDArray[np.intp]") -> "Row":
        return Row(*(column[which] for column in self))


class Pair(NamedTuple):
    """P = law of Z and Q = law of e^l·Z + u."""

    noise: Noise
    shift: float
    dilation: float

    @property
    def first(self) -> Side:
        return Side(self.noise, 0.0, 0.0)

    @property
    def second(self) -> Side:
        return Side(self.noise, self.shift, self.dilation)

    def row(self, z: Floats) -> Row:
        p, q = self.first.log_density(z), self.second.log_density(z)
        return Row(z[:-1], z[1:], p[:-1], p[1:], q[:-1], q[1:])

    def halve(self, row: Row) -> Row:
        """Each cell cut in two; only the midpoints are evaluated."""
        z = row.middle
        p, q = self.first.log_density(z), self.second.log_density(z)
        starts = (row.left, z, row.p_left, p, row.q_left, q)
        stops = (z, row.right, p, row.p_right, q, row.q_right)
        return Row(*(np.append(a, b) for a, b in zip(starts, stops, strict=True)))

    def discs(self, row: Row) -> tuple[Floats, Floats]:
        """Radii of the discs about the midpoints, for P and for Q."""
        return self.first.radius(row.middle), self.second.radius(row.middle)

    def ranges(self, row: Row, discs: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """A range that contains L on each cell: the values at its ends, widened by the distance of L from its chord."""
        rounding_errors = self.first.rounding_error(row.left, row.p_left) + self.first.rounding_error(
            row.right, row.p_right
        )
        rounding_errors = (
            rounding_errors
            + self.second.rounding_error(row.left, row.q_left)
            + self.second.rounding_error(row.right, row.q_right)
        )
        apart = self.first.chord_deviation(row, row.p_right - row.p_left, discs[0])
        apart = apart + self.second.chord_deviation(row, row.q_right - row.q_left, discs[1])
        stray = np.minimum(apart, self.joint_chord_deviation(row, discs[0])) + rounding_errors
        left, right = row.p_left - row.q_left, row.p_right - row.q_right
        return np.minimum(left, right) - stray, np.maximum(left, right) + stray

    def joint_chord_deviation(self, row: Row, radius: Floats) -> Floats:
        """Distance of L from its chord where shift and dilation are small against the disc; infinite elsewhere.

        With g = ln p and y the place of z in Q, |z − y| ≤ D: L″ = g″(z) − e^{−2l}g″(y) is at most D·|g‴| + 2l·|g″|,
        with Cauchy's estimates on the disc about the midpoint. Between the two centres y decreases as z grows, so these
        cells are excluded.
        """
        middle, half = row.middle, row.half
        apart = (self.shift + (np.abs(middle) + half) * -math.expm1(-self.dilation)) * (1 + 1e-9)
        inner = radius - apart - half
        near = (inner > radius / 2) & ((middle < 0) | (middle > self.shift))
        inner = np.where(near, inner, 1.0)
        bend = NEAR / inner**2 * (6 * apart / inner + 4 * self.dilation)
        return np.where(near, bend * half**2 / 2, math.inf)

    def outer_end(self) -> float:
        """The end of the last bounded cell: beyond it both laws have mass below FAR, and shifts are negligible."""
        z = 4.0
        while log_tail_bound(self.noise, z) > math.log(FAR):
            z *= 1.25
        if math.isfinite(self.noise.steepest):
            z = max(z, 1e7 * self.shift * self.noise.steepest)
        return (z + self.shift) * math.exp(self.dilation) + self.shift

    def ends(self, end: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """The range of L for z ≤ −end and for z ≥ end.

        Let y be the place of z in Q, so that L = l + ln p(z) − ln p(y). Where y < |z|, L ≤ l, and
        L ≥ l − steepest·ln(|z|/y) with ln(|z|/y) ≤ l − ln(1 − u/end). Without dilation y differs from |z| by u, and L
        from 0 by at most u·far_score; also with it, that bounds L − l on the left.
        """
        dilation = self.dilation
        score = self.shift * self.noise.far_score(end - self.shift) * (1 + 1e-9)
        low = -score if dilation == 0 else dilation - self.noise.steepest * self.stretch(end)
        narrow = (end + self.shift) * math.exp(-dilation) * (1 + 1e-12) < end  # on the left y < |z| throughout
        return (low - 1e-12, dilation + (0.0 if narrow else score) + 1e-12), (low - 1e-12, dilation + 1e-12)

    def stretch(self, end: float) -> float:
        """An upper bound of ln(|z|/y) for |z| ≥ end."""
        return (self.dilation - math.log1p(-self.shift / end)) * (1 + 1e-9)


def log_tail_bound(noise: Noise, z: float) -> float:
    """An upper bound of ln P(Z > z): p(x) ≤ p(z)(z/x)^slope for x ≥ z, as the slope does not fall."""
    at = floats([z])
    log_p, slope = float(noise.log_density(at)[0]), float(noise.slope(at)[0]) * (1 - 1e-9)
    if slope <= 1:
        return math.inf
    return max(log_p + math.log(z / (slope - 1)) + 1e-9 * (1 + abs(log_p)), -650.0)


@lru_cache(maxsize=256)
def cells(noise: Noise, shift: float, dilation: float, grain: float = 1.0) -> Cells:
    """Cells fine enough that the upper and lower bounds on the loss differ by about 1e-5, relatively."""
    pair = Pair(noise, shift, dilation)
    end = pair.outer_end()
    row = refine_cells(pair, end, grain)
    z = np.append(row.left, row.right[-1])
    (p, p_error), (q, q_error) = pair.first.masses(z), pair.second.masses(z)
    (low, high), (left, right) = pair.ranges(row, pair.discs(row)), pair.ends(end)
    top = largest_loss(pair, 1, row, high, max(left[1], right[1]))
    bottom = largest_loss(pair, -1, row, -low, max(-left[0], -right[0]))
    p_far = math.exp(log_tail_bound(noise, end))
    q_far = math.exp(log_tail_bound(noise, (end - shift) * math.exp(-dilation) * (1 - 1e-12)))
    return Cells(
        np.concatenate([[p_far], p, [p_far]]),
        np.concatenate([[q_far], q, [q_far]]),
        np.concatenate([[0.0], p_error + q_error, [0.0]]),
        np.maximum(np.concatenate([[left[0]], low, [right[0]]]), -bottom),
        np.minimum(np.concatenate([[left[1]], high, [right[1]]]), top),
        end,
    )


def largest_loss(pair: Pair, sign: int, row: Row, high: Floats, far: float) -> float:
    """An upper bound of sign·L, close to the maximum; `far` bounds it on the unbounded cells.

    Branch and bound: cells whose range exceeds the largest value seen are halved.
    """
    best = float(np.max(sign * (row.p_right - row.q_right)))
    for _ in range(60):
        kept = high > max(best + 1e-10 * (1 + abs(best)), far)
        if not kept.any() or math.isinf(far) or kept.sum() > MOST:
            break
        row = pair.halve(row.select(kept))
        best = max(best, float(np.max(sign * (row.p_right - row.q_right))))
        low, high = pair.ranges(row, pair.discs(row))
        high = high if sign > 0 else -low
    return max(far, best + 1e-10 * (1 + abs(best)), float(np.max(high)))


def refine_cells(pair: Pair, end: float, grain: float) -> Row:
    """Cells cut at both centres and halved until they lie in discs and L varies little where there is mass."""
    shift = pair.shift
    grid = np.sinh(np.linspace(0.0, math.asinh(end * 1e5), 200)) * 1e-5
    grid[-1] = end
    z = np.unique(np.concatenate([-grid, grid, np.minimum(shift + grid, end), np.linspace(0.0, shift, 33)]))
    fine = grain * pair.noise.grain * min(1.0, shift + pair.dilation) * FINE
    row, done, count = pair.row(z), [], len(z)
    while len(row.left) and count < MOST:
        middle, half = row.middle, row.half
        mass = np.maximum(np.logaddexp(row.p_left, row.q_left), np.logaddexp(row.p_right, row.q_right))
        mass = mass + np.log(2 * half)
        discs = pair.discs(row)
        smooth = INSIDE * half <= np.minimum(*discs)
        low, high = pair.ranges(row, discs)
        wanted = fine * np.clip(np.exp(np.minimum(-(mass + 9.0) / 3, 9.0)), 1.0, COARSE)
        wide = (high - low > np.where(smooth, wanted, 0.0)) & (mass > -140.0)
        wide &= (half > 1e-12 * np.abs(middle)) & (smooth | (half > LEAST))
        done.append(row.select(~wide))
        row = pair.halve(row.select(wide))
        count += int(wide.sum())
    every = Row(*(np.concatenate(columns) for columns in zip(*done, row, strict=True)))
    return every.select(np.argsort(every.left))


@lru_cache(maxsize=64)
def noise_radius(noise: Noise, outside: float) -> float:
    """r with P(|Z| > r) ≤ outside; close to the least such number."""
    pair = Pair(noise, 0.5, 0.0)
    row = refine_cells(pair, pair.outer_end(), 1.0)
    row = row.select(row.left >= 0)
    mass, error = pair.first.masses(np.append(row.left, row.right[-1]))
    beyond = np.append(np.cumsum((mass * (1 + error))[::-1])[::-1], 0.0) + math.exp(
        log_tail_bound(noise, row.right[-1])
    )
    enough = np.flatnonzero(2 * beyond * (1 + 1e-9) <= outside)
    if not len(enough):
        raise OutOfReach(
            f"the probability is too small to bound.\n  found:  {outside:g}\n  do:     give at least 1e-40"
        )
    return float(np.append(row.left, row.right[-1])[enough[0]])
