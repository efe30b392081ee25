"""A rough look at a composition, to choose the tilt, step and window of its lattice."""

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.discretise import Discrete, discretise, ends, finest, own_lattice
from sfumato.loss.compose.facts import facts
from sfumato.loss.numeric import ULP, Floats, floats, log_peak

MOST_POINTS = 1_450_000  # of the transform: about 45 MB of working memory
Terms = tuple[tuple[int, PrivacyLoss], ...]
Indices = npt.NDArray[np.intp]
MOST_CELLS = 1_000_000  # tilts × points worked on at once
LEFT_OUT, LIFTED = 1e-40, 1e-8  # what a first look leaves out on the right and lifts on the left, over all terms


class Columns(NamedTuple):
    """Points of several lattices in a row: losses, log masses, where each begins and its size, and the counts."""

    losses: Floats
    logs: Floats
    starts: Indices
    sizes: Indices
    counts: Floats


@dataclass(frozen=True, eq=False)
class Rough:
    """Cumulants of the sum from coarse lattices: they steer, and prove nothing."""

    losses: tuple[PrivacyLoss, ...]
    parts: tuple[tuple[int, Discrete], ...]
    step: float | None  # a lattice on which every term lives exactly
    known: dict[float, tuple[float, float, float]] = field(default_factory=dict)  # cumulants by θ
    windows: dict[float, "Window"] = field(default_factory=dict)  # by θ

    @cached_property
    def columns(self) -> "Columns":
        """All parts in a row: they are summed at once."""
        losses = np.concatenate([part.losses for _, part in self.parts])
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([part.masses for _, part in self.parts]))
        sizes = np.array([len(part.masses) for _, part in self.parts])
        counts = np.array([float(count) for count, _ in self.parts])
        return Columns(losses, logs, np.cumsum(sizes) - sizes, sizes, counts)

    def log_moments(self, thetas: Floats) -> Floats:
        """K at several θ."""
        cols = self.columns
        if len(thetas) > 1 and len(thetas) * len(cols.losses) > MOST_CELLS:
            return floats([self.log_moments(theta)[0] for theta in thetas[:, None]])
        power = thetas[:, None] * cols.losses + cols.logs
        top = np.maximum.reduceat(power, cols.starts, axis=1)
        np.exp(power - np.repeat(top, cols.sizes, axis=1), out=power)
        return floats((top + np.log(np.add.reduceat(power, cols.starts, axis=1))) @ cols.counts)

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """K(θ) = Σ k log E e^{θL}, its slope (the tilted mean) and curvature (the tilted variance)."""
        if theta not in self.known:
            cols = self.columns
            power = theta * cols.losses + cols.logs
            top = np.maximum.reduceat(power, cols.starts)
            weight = np.exp(power - np.repeat(top, cols.sizes))
            mass = np.add.reduceat(weight, cols.starts)
            mean = np.add.reduceat(weight * cols.losses, cols.starts) / mass
            apart = cols.losses - np.repeat(mean, cols.sizes)
            variance = np.add.reduceat(weight * apart * apart, cols.starts) / mass
            sums = ((top + np.log(mass)) @ cols.counts, mean @ cols.counts, variance @ cols.counts)
            self.known[theta] = float(sums[0]), float(sums[1]), max(float(sums[2]), 1e-300)
        return self.known[theta]

    def tilts(self, eps: Floats) -> list[tuple[float, Indices]]:
        """θ for each stretch of sorted ε: the saddle point of K(θ) − θt − log θ(θ+1), on a grid so that laws recur."""
        _, mean, variance = self.cumulants(0.0)
        unit = 1 / math.sqrt(variance + mean * mean + 1e-300)
        grid = unit * 2.0 ** np.arange(-6, 41, 1.0)
        top = math.fsum(count * float(part.losses[np.flatnonzero(part.masses)[-1]]) for count, part in self.parts)
        powers = []
        for theta in grid:
            value, slope, _ = self.cumulants(theta)
            powers.append(value)
            if slope > eps[-1] + 60 / theta or top - slope < 1e-5 * (top - mean):  # far enough, or at the very end
                break
        thetas = grid[: len(powers)]
        scores = np.array(powers)[:, None] - thetas[:, None] * eps - (np.log(thetas) + np.log1p(thetas))[:, None]
        best = refine_tilts(self, thetas, scores, eps)
        return [(float(theta), np.flatnonzero(best == theta)) for theta in np.unique(best)]

    def delta(self, theta: float, eps: float) -> float:
        """About δ(ε), from the saddle point θ."""
        value, _, variance = self.cumulants(theta)
        power = value - theta * eps - math.log(theta) - math.log1p(theta) - math.log1p(math.sqrt(variance))
        return math.exp(max(min(power, 0.0), -640.0))

    def saddle(self, delta: float) -> tuple[float, float]:
        """(θ, ε) where Chernoff's bound of ε(δ), (K(θ) − log δ − log(1+1/θ)^θ(1+θ))/θ, is least."""
        _, mean, variance = self.cumulants(0.0)
        unit = 1 / math.sqrt(variance + mean * mean + 1e-300)

        def chernoff(theta: float) -> float:
            return (self.cumulants(theta)[0] + log_peak(theta) - math.log(delta)) / theta

        grid = unit * 2.0 ** np.arange(-6, 41, 1.0)
        best = 0
        for i in range(1, len(grid)):
            best = i if chernoff(grid[i]) < chernoff(grid[best]) else best
            if i > best + 4:
                break
        theta = min((grid[best] * 2.0**x for x in np.arange(-1, 1.01, 0.125)), key=chernoff)
        return float(theta), max(chernoff(theta), 0.0)

    def plan(self, theta: float, eps: float, delta: float, tolerance: float) -> "Plan":
        """All that a tilted law needs to be sharp where δ is `delta`."""
        window = self.narrowest(theta, eps)
        width, spread = window.right - window.left, math.sqrt(self.cumulants(window.theta)[2])
        count = sum(c for c, part in self.parts)
        floor, lifted = little(delta, count, tolerance)
        longest = max(sum(ends(loss, floor, lifted)) for loss in self.losses)
        if self.step is not None and max(width, longest) / self.step <= MOST_POINTS:
            return Plan(window, self.step, floor, lifted)
        split = sum(c * part.splits.squares / part.h**2 for c, part in self.parts) or count
        want = math.sqrt(tolerance / (0.7 * split * max(theta * (theta + 1), 0.4 / spread)))
        finest_step = max(finest(loss, floor, lifted) for loss in self.losses)
        h = max(min(want, spread / 4), width / MOST_POINTS * 1.01, finest_step)
        if h > 1.5 * want:  # what is cut off need not be less than the error of so coarse a lattice
            floor, lifted = little(delta, count, min(tolerance * (h / want) ** 2, 0.02))
            finest_step = max(finest(loss, floor, lifted) for loss in self.losses)
            h = max(min(want, spread / 4), width / MOST_POINTS * 1.01, finest_step)
        return Plan(window, tidy(h, [part for c, part in self.parts]), floor, lifted)

    def narrowest(self, theta: float, eps: float) -> "Window":
        """The window of θ or of a smaller one: heavy tails make the saddle point's own law needlessly wide.

        A factor e^−3 of the mass near ε may be given up: rounding is far below that.
        """
        best = self.window(theta)
        full = self.cumulants(theta)[0] - theta * eps
        for share in (0.8, 0.65, 0.5, 0.35, 0.25):
            if self.cumulants(share * theta)[0] - share * theta * eps > full + 3:
                break
            other = self.window(share * theta)
            if other.right - other.left < 0.8 * (best.right - best.left):
                best = other
        return best

    def window(self, theta: float) -> "Window":
        """Where the tilted law has all but e^−23 of its mass, by Chernoff's bound."""
        if theta in self.windows:
            return self.windows[theta]
        value, _, variance = self.cumulants(theta)
        gains = floats([g / math.sqrt(variance) for g in (0.5, 1.0, 2.0, 3.5, 5.0, 6.5, 9.0, 13.0)])
        gains = np.append(gains, (abs(theta) or 1.0) * 2.0 ** np.arange(-3.0, 3.0))
        rights = (self.log_moments(theta + gains) - value + 23) / gains
        lefts = (value - self.log_moments(theta - gains) - 23) / gains
        right, left = int(np.argmin(rights)), int(np.argmax(lefts))
        down, up = float(theta - gains[left]), float(theta + gains[right])
        self.windows[theta] = Window(theta, float(lefts[left]), float(rights[right]), down, up)
        return self.windows[theta]


@dataclass(frozen=True)
class Window:
    """A tilt θ, the stretch where its law lives, and two other tilts that prove it."""

    theta: float
    left: float
    right: float
    down: float
    up: float


@dataclass(frozen=True)
class Plan:
    """How a composition is put on a lattice: window, step, and how little is cut off at either end of each term."""

    window: Window
    h: float
    floor: float
    lifted: float


def little(delta: float, count: int, tolerance: float) -> tuple[float, float]:
    """The mass to cut off on the right of each step, and to lift on its left: powers of ten, so that laws recur."""
    share = min(tolerance, 1e-3) / (100 * count)
    return 10.0 ** math.floor(math.log10(max(delta * share, 1e-290))), 10.0 ** math.floor(math.log10(share))


def refine_tilts(sketch: Rough, thetas: Floats, scores: Floats, eps: Floats) -> Floats:
    """The grid's best θ for each ε; where the grid's factor 2 is coarse against the spread, a finer one near it."""
    best: Floats = thetas[np.argmin(scores, axis=0)]
    result = best.copy()
    for theta in np.unique(best):
        mine = np.flatnonzero(best == theta)
        fine = theta * 2.0 ** np.array([-0.5, -0.25, 0.0, 0.25, 0.5])
        value = np.array([sketch.cumulants(f)[0] for f in fine])
        finer = value[:, None] - fine[:, None] * eps[mine] - (np.log(fine) + np.log1p(fine))[:, None]
        result[mine] = fine[np.argmin(finer, axis=0)]
    return result


def tidy(h: float, parts: list[Discrete]) -> float:
    """h made handy: a divisor of an atomic step if there is one, else of few binary digits so that j·h is exact."""
    steps = [part.h for part in parts if not part.split]
    if steps and min(steps) >= h:
        return min(steps) / math.ceil(min(steps) / h)
    scale = 2.0 ** (math.floor(math.log2(h)) - 7)
    return scale * math.ceil(h / scale)


@lru_cache(maxsize=64)
def rough(terms: Terms) -> Rough:
    """Each term on a coarse lattice: a third of its own spread, or its own atoms."""
    total = math.fsum(count for count, _ in terms)
    spreads = {loss: spread_of(loss) for _, loss in terms}
    variance = math.fsum(count * spreads[loss] ** 2 for count, loss in terms)
    parts = []
    for count, loss in terms:
        found = loss.atoms()
        h = min(0.3 * math.sqrt(variance / total), 0.3 * spreads[loss] + 0.02)
        if found is not None:
            h = found[0] if found[0] > h / 50 else h
        h = max(h, sum(ends(loss, LEFT_OUT / total, LIFTED / total)) / 200_000)
        parts.append((count, discretise(loss, h, LEFT_OUT / total, LIFTED / total)))
    losses = tuple(loss for _, loss in terms)
    return Rough(losses, tuple(parts), common_step(losses))


def spread_of(loss: PrivacyLoss) -> float:
    """About the standard deviation of the loss: twice the mean is the variance for small losses, and min for large."""
    if (own := own_lattice(loss)) is not None:
        return own.spread()
    t = np.concatenate([[0.0], np.geomspace(1e-9, 1e4, 400)])
    values = loss.forward(t).upper
    area = float(((values[1:] + values[:-1]) / 2 * np.diff(t)).sum())
    return math.sqrt(max(min(4 * area, 1e6), 1e-24))


def common_step(losses: tuple[PrivacyLoss, ...]) -> float | None:
    """The step of a lattice on which every loss lives, each with its own offset."""
    steps = [found[0] for loss in losses if (found := facts(loss).atoms) is not None]
    if len(steps) < len(losses):
        return None
    least = min(steps)
    ratios = [step / least for step in steps]
    return least if all(abs(r - round(r)) <= 8 * ULP * r for r in ratios) else None
