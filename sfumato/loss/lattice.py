"""Composition on a lattice: tilt, Fourier transform, power, back; certified from both sides.

Each loss becomes a positive law on a lattice that dominates it (discretise.py). Tilting by e^{θL} moves the largest
mass into the tail that δ is read from, so that the rounding error of the FFT, relative to the largest mass, is
relative to δ.

Upper bound: the composed lattice law dominates; FFT error, wrapped mass and rounding are added.

Lower bound
(docs/theorems/lattice.md): splitting an outcome between two lattice points h apart tells at most what a Gaussian
with μ = h√(2π)/4 tells, so the lattice law is dominated by the true one plus a Gaussian with 2τ = k·πh²/8, and a
Gaussian raises δ(t) by no more than √(τ/π)·E e^{−s²/4τ − s/2}, s = S − t, which is read off the lattice law itself.

Theorem: dominated by the truth plus a small Gaussian: a second-order lower bound [docs/theorems/lattice.md]
Theorem: the discrete Fourier transform errs by log₂(n) roundings in norm [Higham 2002, Thm 24.2]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.fft import next_fast_len

from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.discretise import Discrete, discretise, ends
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, exp, log_peak

MOST_POINTS = 1_450_000  # of the transform: about 45 MB of working memory
FAR = 1e6  # the largest ε a lattice is asked for: beyond, the profile only falls
PIECE = 65536  # frequencies worked on at a time, to save memory
BLOCK = 512  # points whose sums are taken together
EVERYTHING = 1e100  # what is more than this is too much in any case: δ is at most 1
LAMBDA = 1.1  # the lower bound's kernel is this much wider than the Gaussian it covers
Terms = tuple[tuple[int, PrivacyLoss], ...]
Curve = Callable[[Floats], Enclosure]
Complexes = npt.NDArray[np.complex128]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Lattice:
    """The composition of `terms` (count, loss), looked at in the forward direction."""

    terms: Terms

    method = "lattice"

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """δ at every ε, each from the law tilted towards it."""
        sketch = rough(self.terms)
        order = np.argsort(eps, kind="stable")
        low, high = np.empty_like(eps), np.empty_like(eps)
        for tilt, members in sketch.tilts(eps[order]):
            where = order[members]
            last = float(eps[where].max())
            law = tilted(self.terms, sketch.plan(tilt, last, sketch.delta(tilt, last), tolerance))
            found = law.delta(eps[where])
            low[where], high[where] = found.lower, found.upper
        return Enclosure(low, high)

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Curve:
        """The profile from the one law that is sharp around the ε where it is `delta`; a guess of that ε helps."""
        sketch = rough(self.terms)
        theta, guess = sketch.saddle(delta)
        if eps is not None:
            (theta, _), guess = sketch.tilts(np.array([eps]))[0], eps
        return tilted(self.terms, sketch.plan(theta, guess, delta, tolerance)).delta


# ---- a rough look, to choose tilt, step and window ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rough:
    """Cumulants of the sum from coarse lattices: they steer, and prove nothing."""

    losses: tuple[PrivacyLoss, ...]
    parts: tuple[tuple[int, Discrete], ...]
    step: float | None  # a lattice on which every term lives exactly

    def cumulants(self, theta: float) -> tuple[float, float, float]:
        """K(θ) = Σ k log E e^{θL}, its slope (the tilted mean) and curvature (the tilted variance)."""
        total = np.zeros(3)
        for count, part in self.parts:
            losses = part.losses
            with np.errstate(divide="ignore"):
                power = theta * losses + np.log(part.masses)
            top = power.max()
            weight = np.exp(power - top)
            mass = weight.sum()
            mean = (weight * losses).sum() / mass
            variance = (weight * (losses - mean) ** 2).sum() / mass
            total += count * np.array([top + math.log(mass), mean, variance])
        return float(total[0]), float(total[1]), float(max(total[2], 1e-300))

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
        best = refined(self, thetas, scores, eps)
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
        floor = 10.0 ** math.floor(math.log10(max(delta * min(tolerance, 1e-3) / (100 * count), 1e-290)))
        lifted = 10.0 ** math.floor(math.log10(min(tolerance, 1e-3) / (100 * count)))
        longest = max(sum(ends(loss, floor, lifted)) for loss in self.losses)
        if self.step is not None and max(width, longest) / self.step <= MOST_POINTS:
            return Plan(window, self.step, floor, lifted)
        split = sum(c for c, part in self.parts if part.split) or count
        want = math.sqrt(tolerance / (0.7 * split * max(theta * (theta + 1), 0.4 / spread)))
        h = max(min(want, spread / 4), width / MOST_POINTS * 1.01, longest / 400_000)
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
        value, _, variance = self.cumulants(theta)
        gains = [g / math.sqrt(variance) for g in (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 14.0)]
        gains += [theta * 2.0**j for j in range(-4, 4)]
        right, up = min(((self.cumulants(theta + g)[0] - value + 23) / g, theta + g) for g in gains)
        left, down = max(((value - self.cumulants(theta - g)[0] - 23) / g, theta - g) for g in gains)
        return Window(theta, left, right, down, up)


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


def refined(sketch: Rough, thetas: Floats, scores: Floats, eps: Floats) -> Floats:
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
        h = max(h, sum(ends(loss, 1e-40 / total, 1e-3 / total)) / 200_000)
        parts.append((count, discretise(loss, h, 1e-40 / total, 1e-3 / total)))
    losses = tuple(loss for _, loss in terms)
    return Rough(losses, tuple(parts), common_step(losses))


def spread_of(loss: PrivacyLoss) -> float:
    """About the standard deviation of the loss: twice the mean is the variance for small losses, and min for large."""
    t = np.concatenate([[0.0], np.geomspace(1e-9, 1e4, 400)])
    values = loss.forward(t).upper
    area = float(((values[1:] + values[:-1]) / 2 * np.diff(t)).sum())
    return math.sqrt(max(min(4 * area, 1e6), 1e-24))


def common_step(losses: tuple[PrivacyLoss, ...]) -> float | None:
    """The step of a lattice on which every loss lives, each with its own offset."""
    steps = [found[0] for loss in losses if (found := loss.atoms()) is not None]
    if len(steps) < len(losses):
        return None
    least = min(steps)
    ratios = [step / least for step in steps]
    return least if all(abs(r - round(r)) <= 8 * ULP * r for r in ratios) else None


# ---- the law itself -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TiltedLaw:
    """The composed law f(l)·e^{K−θl} on l = origin + h·j, near the tilted mean; f sums to about one."""

    theta: float
    h: float
    origin: float
    masses: Floats
    log_moment: float
    entry_error: float  # of each f, from the FFT
    lost: float  # tilted mass outside the window, or wrapped into it, or moved by rounding
    slack: float  # relative uncertainty of e^K and of positions
    excess: float  # the law's profile is at most e^excess times that of exact connect-the-dots
    lifted: float  # share of δ that may stem from mass lifted at the left end
    infinite: float
    surely: float
    hidden: float  # what certainty may exceed the truth by, because the excess is relative to it too
    variance: float  # 2τ of the covering Gaussian: 0 if nothing was split
    drift: float  # at most so much is the mean raised by splitting

    def delta(self, eps: Floats) -> Enclosure:
        """δ from both sides at ε ≥ 0."""
        theta, h = self.theta, self.h
        main = self.hockey(eps)
        peak = math.exp(log_peak(theta)) * (1 + 32 * ULP)
        noise = self.entry_error * (1 / (h * theta) / (theta + 1) + peak) + self.lost * peak
        wobble = self.slack + 4 * ULP * theta * eps + 2 * ULP * (BLOCK + len(self.masses) / BLOCK) * (theta + 2)
        factor = self.factor(eps)
        high = self.infinite + factor * (main + noise) * (1 + wobble)
        kept = math.exp(-self.excess) * (1 - self.lifted)
        core = (main - noise) * (1 - wobble) * kept - self.kernel(eps) * (1 + wobble)
        low = self.surely + np.maximum(factor * core * (1 - 8 * ULP) - self.unsure(eps, noise), 0.0)
        return Enclosure(np.clip(low, 0.0, 1.0), np.minimum(high * (1 + 8 * ULP) + TINY, 1.0))

    def factor(self, eps: Floats) -> Floats:
        """e^{K−θε}; cut off where δ is 1 anyway, so that nothing overflows on the way."""
        return np.exp(np.minimum(self.log_moment - self.theta * eps, 300.0))

    def unsure(self, eps: Floats, noise: float) -> Floats:
        """What else the excess of the lattice profile over exact connect-the-dots may hide.

        The excess is relative to the whole profile, certainty included: that part is `hidden`. And the kernel ψ is an
        average of hockey sticks with weights ψ″ + ψ′, whose negative part weighs A(1 + 1.22/√v): so much of the excess,
        read a little before ε, may be missing from it.
        """
        if self.variance == 0 or self.excess == math.inf:
            return np.full_like(eps, self.hidden)
        scale, v = self.kernel_shape()
        before = np.maximum(eps - 2 * math.sqrt(v), 0.0)
        profile = np.minimum(self.infinite + self.factor(before) * (self.hockey(before) + noise) * 1.01, 1.0)
        return self.hidden - math.expm1(-self.excess) * scale * (1 + 1.22 / math.sqrt(v)) * profile

    def hockey(self, eps: Floats) -> Floats:
        """Σ_{l > ε} f(l)e^{−θ(l−ε)}(1 − e^{−(l−ε)}): the first block term by term, the others from their two sums."""
        theta, h, result = self.theta, self.h, np.empty_like(eps)
        starts = self.origin + h * BLOCK * np.arange(len(self.blocks[0]))
        for i, t in enumerate(eps):
            begin = max(0, math.floor((t - self.origin) / h) + 1)
            whole = -(-begin // BLOCK)
            f = self.masses[begin : whole * BLOCK]
            x = np.maximum(self.origin + h * np.arange(begin, begin + len(f)) - t, 0.0)
            y = starts[whole:] - t
            near = (f * np.exp(-theta * x) * -np.expm1(-x)).sum()
            far = np.exp(-theta * y) * self.blocks[0][whole:] - np.exp(-(theta + 1) * y) * self.blocks[1][whole:]
            result[i] = near + far.sum()
        return result

    @cached_property
    def blocks(self) -> tuple[Floats, Floats]:
        """Σf e^{−θx} and Σf e^{−(θ+1)x} of each block, x from its first point."""
        table = self.masses.reshape(-1, BLOCK)
        x = self.h * np.arange(BLOCK)
        return table @ np.exp(-self.theta * x), table @ np.exp(-(self.theta + 1) * x)

    def kernel_shape(self) -> tuple[float, float]:
        """A and v of the kernel A·e^{−s²/2v} that covers what a Gaussian with 2τ adds."""
        tau, v = self.variance / 2, LAMBDA * self.variance
        curvature = 1 / (4 * tau) - 1 / (2 * v)
        second = self.variance * 2 / math.pi + self.drift**2  # E N² ≤ Σ h²/4 + drift², and 2τ = Σ πh²/8
        return min(math.sqrt(tau / math.pi) * exp(1 / (16 * curvature) + second / (2 * v)), EVERYTHING), v

    def kernel(self, eps: Floats) -> Floats:
        """Upper bound of what the covering Gaussian may add, in tilted units: E of A·e^{−(l−ε)²/2v}, v = λ·2τ."""
        if self.variance == 0:
            return 0 * eps
        scale, v = self.kernel_shape()
        result = np.empty_like(eps)
        reach = 9 * math.sqrt(v)
        for i, t in enumerate(eps):
            centre = t - self.theta * v
            begin = max(0, math.floor((centre - reach - self.origin) / self.h))
            f = self.masses[begin : max(begin, math.ceil((centre + reach - self.origin) / self.h) + 1)]
            x = self.origin + self.h * np.arange(begin, begin + len(f)) - t
            power = np.log(f + max(self.entry_error, TINY)) - self.theta * x - x * x / (2 * v)
            result[i] = np.exp(np.minimum(power, 300.0)).sum()
        outside = math.exp(min(self.theta * (self.theta * v) / 2, 300.0)) * (math.exp(-40) + self.lost)
        return np.minimum(scale * (result + outside), EVERYTHING)


@lru_cache(maxsize=1)
def tilted(terms: Terms, plan: Plan) -> TiltedLaw:
    """Discretise, tilt, transform, multiply, transform back."""
    tilted.cache_clear()  # the law of before is not needed any more: its memory is
    theta, h, window = plan.window.theta, plan.h, plan.window
    parts = [(count, discretise(loss, h, plan.floor, plan.lifted)) for count, loss in terms]
    n = BLOCK * next_fast_len(max(1, math.ceil((window.right - window.left) / (h * BLOCK))))
    phase: Complexes | None = None
    moments, roundings, norms = [], 0.0, []
    for count, part in parts:
        x, moment, rounding = tilt(part, theta, n)
        moments.append(count * moment)
        roundings += count * rounding
        norms.append((count, float(np.sqrt(x @ x))))
        z = np.fft.rfft(x)  # numpy's transform keeps no plans: memory stays flat
        del x
        phase = accumulated(phase, count, z)
    assert phase is not None
    masses, entry_error = invert(phase, n, norms)
    start = sum(count * part.start for count, part in parts)
    offset = math.fsum(count * part.offset for count, part in parts)
    first = math.floor((window.left - offset) / h)  # lattice index of the window's left end
    turn = (first - start) % n
    masses = np.concatenate([masses[turn:], masses[:turn]])
    np.maximum(masses, 0.0, out=masses)
    log_moment = math.fsum(moments)
    origin = offset + first * h
    size = math.fsum(count * (abs(part.offset) + h * len(part.masses)) for count, part in parts if part.offset)
    counts = sum(count for count, part in parts if part.split)
    return TiltedLaw(
        theta=theta,
        h=h,
        origin=origin,
        masses=masses,
        log_moment=log_moment,
        entry_error=entry_error,
        lost=outside(parts, window, log_moment, origin, origin + n * h) + roundings + strays(parts, theta),
        slack=4 * ULP * (sum(abs(m) for m in moments) + theta * (abs(origin) + n * h) + 4 * theta * size),
        excess=math.fsum(count * part.excess for count, part in parts),
        lifted=min(1.0, math.fsum(count * part.lifted for count, part in parts)),
        infinite=together([(count, part.infinite) for count, part in parts]),
        surely=together([(count, part.surely) for count, part in parts]) * (1 - 1e-14),
        hidden=math.fsum(count * part.infinite * math.expm1(min(part.excess, 700.0)) for count, part in parts),
        variance=counts * math.pi * h * h / 8,
        drift=counts * h * h / 8,
    )


def tilt(part: Discrete, theta: float, n: int) -> tuple[Floats, float, float]:
    """(tilted masses wrapped to n points, log moment, bound on their total rounding error)."""
    losses = part.losses
    with np.errstate(divide="ignore"):
        power = theta * losses + np.log(part.masses)
    top = float(power.max())
    moment = top + math.log(float(np.exp(power - top).sum()))
    x = np.exp(power - moment)
    rounding = ULP * float((x * (8 + np.abs(theta * losses) + np.abs(np.where(x > 0, power, 0.0)) + abs(moment))).sum())
    if len(x) > n:
        padded = np.zeros(-(-len(x) // n) * n)
        padded[: len(x)] = x
        return padded.reshape(-1, n).sum(axis=0), moment, rounding
    whole = np.zeros(n)
    whole[: len(x)] = x
    return whole, moment, rounding


def accumulated(phase: Complexes | None, count: int, z: Complexes) -> Complexes:
    """phase + count·log z, in place and in pieces to save memory; the real part of an exact zero is −∞."""
    for i in range(0, len(z), PIECE):
        piece = z[i : i + PIECE]
        with np.errstate(divide="ignore"):
            size = count * np.log(np.abs(piece))
        turn = np.fmod(count * np.angle(piece), 2 * math.pi)
        piece.real, piece.imag = size, turn
        if phase is not None:
            phase[i : i + PIECE] += piece
    return z if phase is None else phase


def invert(phase: Complexes, n: int, norms: list[tuple[int, float]]) -> tuple[Floats, float]:
    """The law from the logarithm of its transform, and a bound on the error of each entry."""
    transform = ULP * 4 * math.log2(n)  # relative error of one FFT in norm: log₂(n)·6.7 half-ulps and some
    counts = sorted({count for count, _ in norms})
    # |Φ/z| ≤ |Φ|^{1−1/count}, because every other factor is at most 1
    powers = [1.0, 2.0, *(2 * (1 - 1 / count) for count in counts)]
    means = np.zeros(len(powers))
    for i in range(0, len(phase), PIECE):
        piece = phase[i : i + PIECE]
        means += [2 * float(np.exp(power * np.maximum(piece.real, -350.0)).sum()) / n for power in powers]
        phase[i : i + PIECE] = np.exp(piece)
    error = means[0] * ULP * (1600 + 8 * math.fsum(count for count, _ in norms)) + transform * math.sqrt(means[1])
    for count, mean in zip(counts, means[2:], strict=True):
        growth = 1.1 * math.exp(min(2 * count * transform, 700.0))
        error += growth * transform * math.sqrt(mean) * math.fsum(c * norm for c, norm in norms if c == count)
    return np.fft.irfft(phase, n), error


def outside(parts: list[tuple[int, Discrete]], window: Window, log_moment: float, left: float, right: float) -> float:
    """Tilted mass outside [left, right), by Chernoff's bound; none on a side where the support ends inside."""
    low = math.fsum(count * float(part.losses[0]) for count, part in parts)
    high = math.fsum(count * float(part.losses[-1]) for count, part in parts)
    result = 0.0
    for other, edge, inside in ((window.up, right, high < right), (window.down, left, low >= left)):
        if not inside:
            power = math.fsum(count * moment_of(part, other) for count, part in parts) - log_moment
            result += math.exp(min(power - (other - window.theta) * edge, 0.0))
    return result


def strays(parts: list[tuple[int, Discrete]], theta: float) -> float:
    """Tilted mass of what is only known from above near the largest losses.

    A profile of height g up to the loss l is covered by a mass g/(1 − e^{−w}) at l + w; w = 1/θ keeps its tilt small.
    """
    logs = [
        math.log(count * part.stray / -math.expm1(-1 / theta)) + theta * part.stray_up_to + 1 - moment_of(part, theta)
        for count, part in parts
        if part.stray
    ]
    return math.fsum(math.exp(min(x, 0.0)) for x in logs)


def moment_of(part: Discrete, theta: float) -> float:
    """log Σ p e^{θl}."""
    with np.errstate(divide="ignore"):
        power = theta * part.losses + np.log(part.masses)
    top = float(power.max())
    return top + math.log(float(np.exp(power - top).sum()))


def together(leaks: list[tuple[int, float]]) -> float:
    """1 − Π(1 − leak)^count."""
    if any(leak >= 1 for _, leak in leaks):
        return 1.0
    return abs(math.expm1(math.fsum(count * math.log1p(-leak) for count, leak in leaks)))
