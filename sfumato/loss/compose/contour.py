"""Composition on a tilted contour, certified from both sides.

    δ(t) = leak + (1/2π) ∫ M(z)·e^{−zt} / (z(z+1)) dω,   z = θ + iω,   M(z) = ∏ E[e^{zLᵢ}; Lᵢ < ∞]^kᵢ

The trapezoid sum with step D = 2π/W is δ plus its aliases e^{θjW}·δ(t + jW), all non-negative: it errs on the safe
side, by no more than Chernoff's bound allows. Near the saddle point θ some twenty nodes are enough, whatever the number
of steps. Dropped frequencies are covered by a bound of |M| on everything beyond; a law whose transform does not
decay (atoms) is first composed with a tiny Gaussian, whose effect is bounded from both sides. Proofs:
docs/theorems/contour.md.

Theorem: the infinite trapezoid sum is an upper bound, sharp up to Chernoff-bounded aliases [docs/theorems/contour.md]
Theorem: Gaussian sandwich: smoothing bounds any law from both sides, to second order [docs/theorems/contour.md]
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfumato.loss.bound import Bound
from sfumato.loss.compose.transforms.base import Complexes, Discs, Refused, Transform, product, round_to_30_bits
from sfumato.loss.compose.transforms.gaussian import GaussianTransform
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, floats, log_peaks
from sfumato.progress import may_take_long

METHOD = "contour"
MOST_NODES = 100_000  # about 30 MB of working memory
CHUNK = 2048  # points of a profile worked on at a time
MANY_NODES = 1500  # from here on, see whether a little smoothing is cheaper
FAR = np.concatenate([np.geomspace(3.0, 60.0, 24), np.geomspace(75.0, 3e6, 48)])  # where ceilings are read, in 1/spread
SHARES = np.concatenate([[1e-12, 0.1, 0.2], np.geomspace(0.3, 3.0, 28)])  # tilts around the saddle point


@dataclass(frozen=True)
class Saddle:
    """Where to look: a tilt θ, and a window that keeps the aliases small, as two other tilts prove."""

    theta: float
    eps: float  # where the answer is wanted
    spread: float  # about the width of the tilted law
    goal: float  # log of what aliases and dropped nodes may weigh, in units of M(θ)e^{−θε}
    width: float
    others: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Composition:
    """A sum of terms as transforms, and what leaks at least and at most."""

    transforms: Sequence[Transform]
    surely: float
    leak: float

    def log_moments(self, theta: Floats) -> Floats:
        total = np.zeros_like(theta)
        for part in self.transforms:
            total = total + part.log_moments(theta)
        return total

    @cached_property
    def coarse(self) -> tuple[Floats, Floats]:
        """θ in octaves and log M there."""
        theta = 2.0 ** np.arange(-10, 6.0)
        return theta, self.log_moments(theta)

    def best(self, score: Callable[[Floats, Floats], Floats]) -> tuple[float, float]:
        """The θ with the least score(θ, log M) among powers of two, and the score."""
        theta, moments = self.coarse
        values = score(theta, moments)
        while (at := int(np.argmin(values))) in (0, len(theta) - 1) and 1e-30 < theta[at] < 1e30:
            more = theta[at] * 2.0 ** (np.arange(1, 7.0) if at else np.arange(-6.0, 0))
            theta, moments = np.append(theta, more), np.append(moments, self.log_moments(more))
            order = np.argsort(theta)
            theta, moments = theta[order], moments[order]
            values = score(theta, moments)
        return float(theta[at]), float(values[at])

    def towards(self, eps: float, sharp: float) -> Saddle:
        """A tilt for δ at one ε, to a relative `sharp`: near the saddle point, the least of log M − θε − log θ(θ+1).

        Heavy tails make the saddle point's own law needlessly wide. A smaller θ gives up some size of the integrand,
        which must then be known better, but needs a narrower window: of all tilts, that with the narrowest is taken.
        """
        best, _ = self.best(lambda theta, k: k - theta * eps - np.log(theta * (theta + 1)))
        theta = best * SHARES
        moments = self.log_moments(theta)
        level = moments - theta * eps
        slopes = np.diff(moments) / np.diff(theta)
        bends = np.maximum(2 * np.diff(slopes) / (theta[2:] - theta[:-2]), (0.1 / theta[1:-1]) ** 2)
        spreads = np.sqrt(np.concatenate([bends[:1], bends, bends[-1:]]))
        score = level - np.log(theta * (theta + 1))
        main = -np.log(2.5 * theta * (theta + 1) * np.maximum(spreads, 1 / theta))
        goals = main + math.log(sharp / 10) - (score - score.min())
        # row: the tilt itself; column: the other tilt, whose Chernoff bound covers the windows on its side
        apart = theta - theta[:, None]
        sizes = level + log_peaks(theta) - level[:, None] - goals[:, None] + 1e-6
        widths = np.where(apart == 0, np.inf, sizes / np.where(apart == 0, 1.0, np.abs(apart)))
        right, left = np.where(apart > 0, widths, np.inf), np.where(apart < 0, widths, np.inf)
        width = np.maximum(right.min(axis=1), left.min(axis=1))
        at = int(np.argmin(width))
        others = float(theta[np.argmin(right[at])]), float(theta[np.argmin(left[at])])
        window = 1.02 * max(float(width[at]), 3 * float(spreads[at]))
        return Saddle(float(theta[at]), eps, float(spreads[at]), float(goals[at]), window, others)

    def approximate_epsilon(self, log_delta: float) -> tuple[float, float]:
        """About the ε where δ is given, and its tilt: Chernoff's bound, less what the saddle point makes of it."""
        theta, bound = self.best(lambda theta, k: (k - log_delta + log_peaks(theta)) / theta)
        near = self.log_moments(theta * np.array([0.9, 1.0, 1.1]))
        spread = math.sqrt(max(float(near[0] - 2 * near[1] + near[2]), 0.0)) / (0.1 * theta)
        main = -math.log(2.5 * theta * (theta + 1) * max(spread, 1 / theta))
        return max((float(near[1]) - log_delta + main) / theta, 0.3 * bound, 0.0), theta

    def contour(self, eps: float, sharp: float, room: float = 1.0, blur: float | None = None) -> "Contour":
        """A line that gives δ near ε to a relative gap of `sharp`; `room` widens its window. If it must be smoothed,
        that may cost `blur`: unlike aliases and dropped nodes, this does not grow away from the saddle point."""
        saddle = self.towards(eps, sharp)
        line = plan(self.transforms, saddle, 0.0, room)
        if line.nodes > MANY_NODES:
            may_take_long()
            tau = (blur or sharp) / (5 * saddle.theta * (saddle.theta + 1))
            smooth = plan([*self.transforms, GaussianTransform(2 * tau)], saddle, tau, room)
            line = smooth if smooth.nodes < line.nodes else line
        if line.nodes > MOST_NODES:
            raise Refused(f"{line.nodes} nodes")
        smoothing = [GaussianTransform(2 * line.tau)] if line.tau > 0 else []
        totals = [Totals.of(part, line) for part in [*self.transforms, *smoothing]]
        return Contour(line, Totals.together(totals), self.surely, self.leak)


@dataclass(frozen=True, eq=False)
class Line:
    """Where a composition is looked at: nodes θ + inD, the frequencies that bound what comes after the last node, and
    two other tilts that bound the aliases."""

    saddle: Saddle
    tau: float  # of the tiny Gaussian composed with the terms: 0 if none
    step: float
    nodes: int
    far: Floats

    @cached_property
    def points(self) -> "Points":
        """The nodes, with their weights in a trapezoid sum over the whole line, by symmetry over its upper half."""
        omega = floats(self.step * np.arange(self.nodes + 1))
        weights = np.full(self.nodes + 1, self.step / math.pi)
        weights[0] /= 2
        z = self.saddle.theta + 1j * omega
        return Points(omega, weights, (weights / (z * (z + 1))).astype(np.complex128))


class Points(NamedTuple):
    """Frequencies ω of the nodes, their weights, and weight/(z(z+1))."""

    omega: Floats
    weights: Floats
    kernel: Complexes


def plan(parts: Sequence[Transform], saddle: Saddle, tau: float, room: float) -> Line:
    """As many nodes as it takes for the dropped ones to weigh no more than they may."""
    omega = FAR / saddle.spread
    log_ceiling = np.sum([part.tilt(saddle.theta).log_ceiling(omega) for part in parts], axis=0)
    enough = np.flatnonzero(tails(omega, log_ceiling) <= math.exp(saddle.goal))
    first = int(enough[0]) if len(enough) else len(omega) - 1
    step = round_to_30_bits(2 * math.pi / (room * saddle.width))
    nodes = math.ceil(float(omega[first]) / step) + 1 if len(enough) else 10**12
    return Line(saddle, tau, step, nodes, omega[first:])


def tails(omega: Floats, log_ceiling: Floats) -> Floats:
    """The most that nodes beyond each frequency weigh: ∫ ceiling/ω² dω/π, the ceiling read at the left of each cell.

    The last cell never ends.
    """
    cells = np.exp(np.maximum(log_ceiling, -700.0)) * (1 / omega - np.append(1 / omega[1:], 0.0))
    return floats(np.cumsum(cells[::-1])[::-1] * ((1 + 1e-12) / math.pi))


def density_tail(omega: Floats, log_ceiling: Floats, tau: float) -> float:
    """The tail of the density's integral: ∫ ceiling dω/π, and beyond 2ω the Gaussian e^{−τω²} alone."""
    ceiling = np.exp(np.maximum(log_ceiling, -700.0))
    cells = ceiling * np.append(np.diff(omega), omega[-1])
    return 1.01 * float(cells.sum() + ceiling[-1] / (4 * tau * omega[-1])) / math.pi


@dataclass(frozen=True, eq=False)
class Totals:
    """All that terms contribute on a line: everything here adds up over terms, or multiplies."""

    log_moment: float
    slip: float
    centre: float
    drift: float
    lag: float  # how far the centre may be off from rounding sums
    discs: Discs
    log_ceiling: Floats  # at line.far
    others: Floats  # log M at line.saddle.others, from above

    @classmethod
    def of(cls, part: Transform, line: Line) -> "Totals":
        view = part.tilt(line.saddle.theta)
        others = [part.tilt(other) for other in line.saddle.others]
        return Totals(
            log_moment=view.log_moment,
            slip=view.slip + 8 * ULP * abs(view.log_moment),
            centre=view.centre,
            drift=view.drift,
            lag=0.0,
            discs=view.discs(line.points.omega),
            log_ceiling=view.log_ceiling(line.far),
            others=np.array([other.log_moment + other.slip for other in others]),
        )

    @classmethod
    def together(cls, parts: "Sequence[Totals]") -> "Totals":
        if len(parts) == 1:
            return parts[0]
        log_moment, centre = math.fsum(part.log_moment for part in parts), math.fsum(part.centre for part in parts)
        others = floats(np.sum([part.others for part in parts], axis=0))
        size = floats(np.sum([np.abs(part.others) for part in parts], axis=0))
        return Totals(
            log_moment=log_moment,
            slip=math.fsum(part.slip for part in parts) * (1 + ULP) + ULP * abs(log_moment),
            centre=centre,
            drift=math.fsum(part.drift for part in parts),
            lag=math.fsum(part.lag for part in parts) + ULP * abs(centre),
            discs=product([part.discs for part in parts]),
            log_ceiling=floats(np.sum([part.log_ceiling for part in parts], axis=0)) * (1 - len(parts) * ULP),
            others=others + len(parts) * ULP * size,
        )


class Contour:
    """All terms on one line: δ from both sides at any t, sharp near the ε it was planned for."""

    def __init__(self, line: Line, totals: Totals, surely: float, leak: float) -> None:
        self.line, self.totals, self.theta, self.surely, self.leak = line, totals, line.saddle.theta, surely, leak
        self.log_moment, self.slip = totals.log_moment, totals.slip
        self.centre = totals.centre
        omega, weights, kernel = line.points
        phi = np.exp(totals.discs.log)
        self.terms = kernel * phi
        radius = totals.discs.radius + (len(phi) + 32) * ULP * np.abs(phi)
        self.noise = float(radius @ np.abs(kernel))
        self.turning = float(np.abs(self.terms) @ omega)
        self.tail = float(tails(line.far, totals.log_ceiling)[0])
        density = weights * phi
        # columns to be summed: the terms, the density, the derivative of the terms in t
        self.table = np.stack([self.terms, density, -1j * omega * self.terms], axis=1)
        if line.tau > 0:
            self.density_noise = float(radius @ weights) + density_tail(line.far, totals.log_ceiling, line.tau)
            self.density_turning = float(np.abs(density) @ omega)

    def sums(self, t: Floats) -> Floats:
        """Re Σ column·e^{−iω(t−C)}, one row for each column of the table."""
        n = len(self.terms)
        if len(t) > CHUNK:
            return np.concatenate([self.sums(t[i : i + CHUNK]) for i in range(0, len(t), CHUNK)], axis=1)
        shift = t - self.centre
        if n <= 128:
            return floats((np.exp(np.multiply.outer(shift, -1j * self.line.points.omega)) @ self.table).real.T)
        block = math.isqrt(n - 1) + 1  # e^{−i(aB+b)Dx}: few exponentials, one matrix product
        rows = -(-n // block)
        padded = np.zeros((rows * block, 3), dtype=np.complex128)
        padded[:n] = self.table
        columns = padded.reshape(rows, block, 3).transpose(1, 0, 2).reshape(block, rows * 3)
        fine = np.exp(np.multiply.outer(shift, -1j * self.line.step * np.arange(block)))
        coarse = np.exp(np.multiply.outer(shift, -1j * (self.line.step * block) * np.arange(rows)))
        # a few points are summed here: threads of a matrix product would wait longer for each other than it takes
        inner = fine @ columns if len(t) > 8 else np.einsum("ij,jk->ik", fine, columns)
        return floats((inner.reshape(len(t), rows, 3) * coarse[:, :, None]).sum(axis=1).real.T)

    @cached_property
    def alias_terms(self) -> tuple[tuple[float, float], ...]:
        """(a, b) such that the aliases weigh at most Σ e^{a − bt}, in units of M(θ)e^{−θt}; a with its rounding.

        Each of the other tilts θ' weighs at most its peak·r/(1 − r) times M(θ')e^{−θ't}, r = e^{−|θ'−θ|W}.
        """
        found, others, width = [], self.line.saddle.others, 2 * math.pi / self.line.step * (1 - 1e-15)
        for other, peak, moment in zip(others, log_peaks(np.array(others)), self.totals.others.tolist(), strict=True):
            gap = abs(other - self.theta) * width
            power = float(peak) - gap - math.log(-math.expm1(-gap))
            slack = 8 * ULP * (abs(moment) + abs(self.log_moment) + abs(power)) + 1e-12
            found.append((moment - self.log_moment + self.slip + power + slack, other - self.theta))
        return tuple(found)

    def delta(self, t: Floats) -> Enclosure:
        """δ from both sides at every t."""
        main, density, _ = self.sums(t)
        phase = 4 * ULP * (np.abs(t) + self.totals.drift + abs(self.centre)) + self.totals.lag
        error = self.noise + phase * self.turning + self.tail
        aliases = np.zeros_like(t)  # at most what the other windows add
        for a, b in self.alias_terms:
            aliases = aliases + np.exp(np.minimum(a - b * t + 8 * ULP * np.abs(b * t), 300.0))
        low = main - error - aliases
        if self.line.tau > 0:
            tau = self.line.tau
            denser = density + self.density_noise + phase * self.density_turning
            low = low - 2 * tau * math.exp(tau / 4) * np.maximum(denser, 0.0) * (1 + 1e-12)
        power = self.log_moment - self.theta * t
        wobble = self.slip + ULP * (8 * self.theta * np.abs(t) + 32)
        most = power + wobble
        high = self.leak + np.exp(np.minimum(most, 300.0)) * (main + error) + TINY
        high = np.where(most > 300, 1.0, high)
        low = self.surely + np.exp(np.minimum(power - wobble, 300.0)) * np.maximum(low, 0.0)
        return Enclosure(np.clip(low * (1 - 4 * ULP), 0.0, 1.0), np.clip(high * (1 + 4 * ULP), 0.0, 1.0))

    def root(self, goal: float, start: float) -> tuple[float, float]:
        """About where δ = leak + goal and −d log(δ − leak)/dt there: Newton on the logarithm, kept inside a bracket."""
        t, low, high = start, -math.inf, math.inf
        slope = self.theta
        for _ in range(50):
            value, _, derivative = self.sums(np.array([t]))[:, 0].tolist()
            if value <= 0:
                high, t = t, (t + low) / 2 if math.isfinite(low) else t - self.line.saddle.spread
                continue
            excess = self.log_moment - self.theta * t + math.log(value) - math.log(goal)
            low, high = (t, high) if excess > 0 else (low, t)
            slope = self.theta - derivative / value
            move = excess / slope if slope > 0 else math.copysign(self.line.saddle.spread, excess)
            next_t = t + move
            if not low < next_t < high and math.isfinite(low) and math.isfinite(high):
                next_t = (low + high) / 2
            moved, t = abs(next_t - t), next_t
            if moved <= 1e-7 * abs(t) or moved <= 1e-12:  # Newton's next step would be about the square of that
                break
        return t, max(slope, 1e-300)


def bracket(contour: Contour, goal: float, t: float, fall: float, top: float, enough: float = 0.0) -> Bound:
    """The largest ε found below t with δ certified > goal and the least above t with δ certified ≤ goal; if the two
    that are `enough` away are certain, they do."""
    if enough > 0:
        points = np.array([max(t - enough, 0.0), t + enough])
        found = contour.delta(points)
        if found.lower[0] > goal and found.upper[1] <= goal:
            return Bound(float(points[0]), min(float(points[1]), top), METHOD)
    here = contour.delta(np.array([t]))
    off = [1.05 * max(side, 0.0) / max(fall, TINY) for side in (goal - here.lower[0], here.upper[0] - goal)]
    shifts = [min(one, contour.line.saddle.width) + 4 * ULP * t for one in off]  # further off it knows nothing
    lower, upper = 0.0, top
    for factor in (1.0, 1.5, 3.0, 10.0, 100.0):
        points = np.maximum([t - factor * shifts[0], t + factor * shifts[1]], 0.0)
        found = contour.delta(points)
        if lower == 0 and found.lower[0] > goal:
            lower = float(points[0])
        if upper == top and found.upper[1] <= goal:
            upper = min(float(points[1]), top)
        if lower > upper:
            raise Refused("the two sides cross: rounding is not under control here")
        if lower > 0 and upper < top:
            return Bound(lower, upper, METHOD)
    if contour.delta(np.zeros(1)).upper[0] <= goal:
        return Bound(0.0, 0.0, METHOD)
    return Bound(lower, upper, METHOD)
