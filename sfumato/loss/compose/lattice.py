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
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.fft import next_fast_len

from sfumato.loss.base import TOLERANCE
from sfumato.loss.compose.discretise import Discrete, discretise
from sfumato.loss.compose.lattice_plan import Plan, Rough, Terms, Window, rough
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, exp, floats, log_peak
from sfumato.progress import may_take_long

FAR = 1e6  # the largest ε a lattice is asked for: beyond, the profile only falls
Curve = Callable[[Floats], Enclosure]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Lattice:
    """The composition of `terms` (count, loss), looked at in the forward direction."""

    terms: Terms

    method = "lattice"

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """δ at every ε: a law serves its neighbourhood, as far as its own certificate says that it is sharp.

        Laws of earlier questions are asked first; new ones are laid where those are blurred.
        """
        sketch = rough(self.terms)
        low, high = together_say(self.laws(), eps)
        order = np.argsort(eps, kind="stable")
        order = order[is_blurred(low, high, tolerance)[order]]
        rising = eps[order]
        begin = 0
        while begin < len(rising):
            found, end = self.stretch(sketch, rising, begin, tolerance)
            here = order[begin:end]
            low[here], high[here] = np.maximum(low[here], found.lower), np.minimum(high[here], found.upper)
            begin = end
        return Enclosure(low, high)

    def laws(self) -> tuple["TiltedLaw", ...]:
        """The laws of earlier questions, the latest first."""
        return tuple(reversed(recent_laws(self.terms).values()))

    def stretch(self, sketch: Rough, rising: Floats, begin: int, tolerance: float) -> tuple[Enclosure, int]:
        """The profile at rising[begin:end], and end: from a law tilted two spreads ahead, if that is sharp at the first
        of them; else from one that is tilted towards it and its next."""
        groups = sketch.tilts(rising[begin:])
        spread = math.sqrt(sketch.cumulants(groups[0][0])[2])
        if len(groups) > 1:
            last = float(rising[begin]) + 4 * spread
            end = max(begin + 1, int(np.searchsorted(rising, last, side="right")))
            ahead = min(float(rising[begin]) + 2 * spread, float(rising[end - 1]))
            found = self.tilted_towards(sketch, ahead, tolerance).delta(rising[begin:end])
            blurred = is_blurred(*found, tolerance)
            sharp = int(np.argmax(blurred)) if blurred.any() else end - begin
            if sharp > 0:
                return Enclosure(found.lower[:sharp], found.upper[:sharp]), begin + sharp
        end = begin + int(groups[0][1][-1]) + 1
        return self.tilted_towards(sketch, float(rising[end - 1]), tolerance).delta(rising[begin:end]), end

    def tilted_towards(self, sketch: Rough, eps: float, tolerance: float) -> "TiltedLaw":
        """The law that is sharp at one ε."""
        theta = sketch.tilts(np.array([eps]))[0][0]
        return tilted_law(self.terms, sketch.plan(theta, eps, sketch.delta(theta, eps), tolerance))

    def near(self, delta: float, tolerance: float, eps: float | None = None) -> Curve:
        """The profile from the one law that is sharp around the ε where it is `delta`; a guess of that ε helps."""
        sketch = rough(self.terms)
        theta, guess = sketch.saddle(delta)
        if eps is not None:
            (theta, _), guess = sketch.tilts(np.array([eps]))[0], eps
        for law in self.laws():
            if not is_blurred(*law.delta(np.array([guess])), tolerance)[0]:
                return law.delta
        return tilted_law(self.terms, sketch.plan(theta, guess, delta, tolerance)).delta


def together_say(laws: "tuple[TiltedLaw, ...]", eps: Floats) -> Enclosure:
    """The intersection of several enclosures of one sum."""
    low, high = np.zeros_like(eps), np.ones_like(eps)
    for law in laws:
        found = law.delta(eps)
        low, high = np.maximum(low, found.lower), np.minimum(high, found.upper)
    return Enclosure(low, high)


def is_blurred(low: Floats, high: Floats, tolerance: float) -> Flags:
    """Where the two sides are farther apart than was asked for."""
    return high - low > 1.5 * tolerance * high


KEPT, KEPT_POINTS = 6, 1_500_000  # laws that are remembered for one sum, and their points: one of the longest at least
VANISHED = -60.0  # log of the size of a transform that counts no more
BLOCK, LONG = 512, 200_000  # points of laws come in blocks; laws that are summed in whole blocks
TOGETHER, CELLS = 256, 200_000  # values of ε that are worked on at a time, and points around them
EVERYTHING = 1e100  # what is more than this is too much in any case: δ is at most 1
ENOUGH = -21.0  # log of a tilted mass that is small enough to lie outside a window
LAMBDA = 1.1  # the lower bound's kernel is this much wider than the Gaussian it covers
Complexes = npt.NDArray[np.complex128]
Indices = npt.NDArray[np.intp]


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
    scatter: float  # at most so much is the variance of what splitting adds
    off: float = 0.0  # how far the sum can be from its point, where losses were put on points one by one

    def delta(self, eps: Floats) -> Enclosure:
        """δ from both sides at ε ≥ 0."""
        theta, h = self.theta, self.h
        main = self.hockey(eps)
        peak = math.exp(log_peak(theta)) * (1 + 32 * ULP)
        noise = self.entry_error * (1 / (h * theta) / (theta + 1) + peak) + self.lost * peak
        # (1 − e^{t−s})₊ moves by no more than s does, and only where s or its point exceeds t: Chernoff
        noise += self.off * exp(self.theta * self.off)
        wobble = self.slack + 4 * ULP * theta * eps + 2 * ULP * (BLOCK + len(self.masses) / self.block) * (theta + 2)
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
        """The error that the excess of the lattice profile over exact connect-the-dots adds.

        The excess is relative to the whole profile, certainty included: that part is `hidden`. And the kernel ψ is an
        average of hockey sticks with weights ψ″ + ψ′, whose negative part weighs A(1 + 1.22/√v): so much of the excess,
        read a little before ε, may be missing from it.
        """
        if self.variance == 0 or self.excess == math.inf:
            return np.full_like(eps, self.hidden)
        scale, v = self.kernel_shape()
        before = np.maximum(eps - 2 * math.sqrt(v), 0.0)
        most = math.exp(log_peak(self.theta)) * float(self.masses.sum())  # of the hockey stick, by Chernoff's bound
        profile = np.minimum(self.infinite + self.factor(before) * (most + noise) * 1.01, 1.0)
        return self.hidden - math.expm1(-self.excess) * scale * (1 + 1.22 / math.sqrt(v)) * profile

    def hockey(self, eps: Floats) -> Floats:
        """Σ_{l > ε} f(l)e^{−θ(l−ε)}(1 − e^{−(l−ε)}): the first block term by term, the others from their two sums."""
        theta, h, block = self.theta, self.h, self.block
        if len(eps) > TOGETHER:
            return np.concatenate([self.hockey(eps[i : i + TOGETHER]) for i in range(0, len(eps), TOGETHER)])
        begin = np.clip(np.floor((eps - self.origin) / h) + 1, 0, len(self.masses)).astype(np.intp)
        whole = -(-begin // block)
        index = begin[:, None] + np.arange(int((whole * block - begin).max(initial=0)))
        x = np.maximum((self.origin - eps)[:, None] + h * index, 0.0)
        f = np.where(index < (whole * block)[:, None], self.masses[np.minimum(index, len(self.masses) - 1)], 0.0)
        near = (f * np.exp(-theta * x) * -np.expm1(-x)).sum(axis=1)
        y = np.maximum(self.origin + h * block * whole - eps, 0.0)
        first, second = self.suffixes
        return floats(near + np.exp(-theta * y) * first[whole] - np.exp(-(theta + 1) * y) * second[whole])

    @property
    def block(self) -> int:
        """Points whose sums are taken together: few, unless there would be too many sums."""
        return BLOCK if len(self.masses) > LONG else BLOCK // 8

    @cached_property
    def suffixes(self) -> tuple[Floats, Floats]:
        """Σf e^{−θx} and Σf e^{−(θ+1)x} from each block on, x from its first point; 0 after the last block."""
        table, x = self.masses.reshape(-1, self.block), self.h * np.arange(self.block)
        found = []
        for rate in (self.theta, self.theta + 1):
            fall, sums = exp(-rate * self.h * self.block), [0.0]
            for sum_ in (table @ np.exp(-rate * x))[::-1].tolist():
                sums.append(sum_ + fall * sums[-1])
            found.append(floats(sums[::-1]))
        return found[0], found[1]

    def kernel_shape(self) -> tuple[float, float]:
        """A and v of the kernel A·e^{−s²/2v} that covers what a Gaussian with 2τ adds."""
        tau, v = self.variance / 2, LAMBDA * self.variance
        curvature = 1 / (4 * tau) - 1 / (2 * v)
        second = self.scatter + self.drift**2  # E N²
        if self.drift >= v / 2:  # the kernel is no longer known to cover: the cells are too wide
            return EVERYTHING, v
        return min(math.sqrt(tau / math.pi) * exp(1 / (16 * curvature) + second / (2 * v)), EVERYTHING), v

    def kernel(self, eps: Floats) -> Floats:
        """Upper bound of what the covering Gaussian may add, in tilted units: E of A·e^{−(l−ε)²/2v}, v = λ·2τ."""
        if self.variance == 0:
            return 0 * eps
        scale, v = self.kernel_shape()
        reach = 9 * math.sqrt(v)
        if self.theta * self.theta * v > 600 or len(eps) == 0:  # e^{θ²v/2} is the largest weight
            return np.full_like(eps, EVERYTHING)
        size = math.ceil(2 * reach / self.h) + 3
        if len(eps) > max(1, CELLS // size):
            return np.concatenate([self.kernel(part) for part in np.array_split(eps, len(eps) * size // CELLS + 1)])
        begin = np.floor((eps - self.theta * v - reach - self.origin) / self.h)
        index = begin[:, None] + np.arange(size)
        inside = (index >= 0) & (index < len(self.masses))
        f = self.masses[np.where(inside, index, 0).astype(np.intp)] + max(self.entry_error, TINY)
        x = (self.origin - eps)[:, None] + self.h * index
        result = np.where(inside, f * np.exp(-x * (self.theta + x / (2 * v))), 0.0).sum(axis=1)
        outside = math.exp(min(self.theta * (self.theta * v) / 2, 300.0)) * (math.exp(-40) + self.lost)
        apart = exp((reach + self.theta * v) * self.off / v)  # points that are off by so much
        return floats(np.minimum(scale * (result + outside) * apart, EVERYTHING))


@lru_cache(maxsize=4)
def recent_laws(terms: Terms) -> dict[Plan, TiltedLaw]:
    """The laws of the latest questions about one sum, the oldest first."""
    return {}


def tilted_law(terms: Terms, plan: Plan) -> TiltedLaw:
    """The law of this plan: remembered, or made by discretising, tilting, transforming, multiplying, and back."""
    laws = recent_laws(terms)
    if (law := laws.get(plan)) is None:
        may_take_long()
        parts = [(count, discretise(loss, plan.h, plan.floor, plan.lifted)) for count, loss in terms]
        law = compose(parts, plan.window)
        held = len(law.masses)
        for number, (old, other) in enumerate(reversed(tuple(laws.items())), 2):
            held += len(other.masses)
            if held > KEPT_POINTS or number > KEPT:
                laws.pop(old, None)
        laws[plan] = law
    return law


class Tilt(NamedTuple):
    """A convolution of tilted laws on n points from lattice index `first` on, wrapped: f and what is known of it."""

    masses: Floats
    moments: list[float]  # count·log Σ p e^{θl} of each part
    entry_error: float
    roundings: float


def convolve(parts: list[tuple[int, Discrete]], theta: float, first: int, n: int) -> Tilt:
    """Tilt, transform, multiply, transform back."""
    power, moments, roundings, norms = Power.one(n), [], 0.0, []
    for count, part in parts:
        x, moment, rounding = tilt(part, theta, n)
        moments.append(count * moment)
        roundings += count * rounding
        norms.append((count, float(np.sqrt(x @ x))))
        power = power.times(np.fft.rfft(x), count)  # numpy's transform keeps no plans: memory stays flat
        del x
    masses, entry_error = power.invert(n, norms)
    turn = (first - sum(count * part.start for count, part in parts)) % n
    masses = np.concatenate([masses[turn:], masses[:turn]])
    np.maximum(masses, 0.0, out=masses)
    return Tilt(masses, moments, entry_error, roundings)


def compose(parts: list[tuple[int, Discrete]], window: Window) -> TiltedLaw:
    """The law of the sum of all parts in a window."""
    theta, h = window.theta, parts[0][1].h
    n = points((window.right - window.left) / h)
    offset = math.fsum(count * part.offset for count, part in parts)
    first = math.floor((window.left - offset) / h)  # lattice index of the window's left end
    masses, moments, entry_error, roundings = convolve(parts, theta, first, n)
    log_moment = math.fsum(moments)
    origin = offset + first * h
    size = math.fsum(count * (abs(part.offset) + h * len(part.masses)) for count, part in parts if part.offset)
    splits = [(count, part.splits) for count, part in parts]
    return TiltedLaw(
        theta=theta,
        h=h,
        origin=origin,
        masses=masses,
        log_moment=log_moment,
        entry_error=entry_error,
        lost=outside(parts, window, log_moment, origin, origin + n * h) + roundings + strays(parts, theta),
        slack=4 * ULP * (sum(abs(m) for m in moments) + abs(theta) * (abs(origin) + n * h + 4 * size)),
        excess=math.fsum(count * part.excess for count, part in parts),
        lifted=min(1.0, math.fsum(count * part.lifted for count, part in parts)),
        infinite=together([(count, part.infinite) for count, part in parts]),
        surely=together([(count, part.surely) for count, part in parts]) * (1 - 1e-14),
        hidden=math.fsum(count * part.infinite * math.expm1(min(part.excess, 700.0)) for count, part in parts),
        variance=math.fsum(count * split.squares for count, split in splits) * math.pi / 8,
        drift=math.fsum(count * split.drift for count, split in splits),
        scatter=math.fsum(count * split.scatter for count, split in splits),
        off=math.fsum(count * part.slip for count, part in parts) * 1.001,
    )


def points(least: float) -> int:
    """At least so many points, in whole blocks, of a size that transforms are fast for."""
    return BLOCK * int(next_fast_len(max(1, math.ceil(least / BLOCK))))


def tilt(part: Discrete, theta: float, n: int) -> tuple[Floats, float, float]:
    """(tilted masses wrapped to n points, log moment, bound on their total rounding error)."""
    losses = part.losses
    power = theta * losses + part.log_masses
    top = float(power.max())
    x = np.exp(power - top)
    total = float(x.sum())
    moment = top + math.log(total)
    x /= total
    size = np.abs(power, out=power)
    size[x == 0] = 0.0
    rounding = ULP * (float(x @ size) + abs(theta) * float(x @ np.abs(losses)) + 32 + 2 * abs(moment))
    if len(x) > n:
        padded = np.zeros(-(-len(x) // n) * n)
        padded[: len(x)] = x
        return padded.reshape(-1, n).sum(axis=0), moment, rounding
    whole = np.zeros(n)
    whole[: len(x)] = x
    return whole, moment, rounding


@dataclass(frozen=True, eq=False)
class Power:
    """A product of powers of transforms, as logarithms, at the frequencies where it has not vanished."""

    places: Indices
    size: Floats
    turn: Floats

    @classmethod
    def one(cls, n: int) -> "Power":
        """The transform of nothing, on n points."""
        found = n // 2 + 1
        return cls(np.arange(found, dtype=np.intp), np.zeros(found), np.zeros(found))

    def times(self, z: Complexes, count: int) -> "Power":
        """Times z^count. A factor is at most 1, so what has vanished stays so and is left out."""
        z = z if len(z) == len(self.places) else z[self.places]
        with np.errstate(divide="ignore"):  # an exact zero has vanished
            size = self.size + (count / 2) * np.log(z.real * z.real + z.imag * z.imag)
        left = np.flatnonzero(size > VANISHED)
        turn = self.turn[left] + np.fmod(count * np.angle(z[left]), 2 * math.pi)
        return Power(self.places[left], size[left], turn)

    def invert(self, n: int, norms: list[tuple[int, float]]) -> tuple[Floats, float]:
        """The law, and a bound on the error of each entry."""
        transform = ULP * 4 * math.log2(n)  # relative error of one FFT in norm: log₂(n)·6.7 half-ulps and some
        size, vanished = np.exp(self.size), n // 2 + 1 - len(self.places)
        phase = np.zeros(n // 2 + 1, dtype=np.complex128)
        phase.real[self.places], phase.imag[self.places] = size * np.cos(self.turn), size * np.sin(self.turn)
        first, second = 2 * float(size.sum()) / n, 2 * float(size @ size) / n
        error = first * ULP * (1600 + 8 * math.fsum(count for count, _ in norms)) + transform * math.sqrt(second)
        for count in sorted({count for count, _ in norms}):
            # |Φ/z| ≤ |Φ|^{1−1/count}, because every other factor is at most 1
            share = 2 * (1 - 1 / count)
            mean = 2 * (float(np.exp(share * self.size).sum()) + vanished * math.exp(share * VANISHED)) / n
            growth = 1.1 * math.exp(min(2 * count * transform, 700.0))
            error += growth * transform * math.sqrt(mean) * math.fsum(c * norm for c, norm in norms if c == count)
        return np.fft.irfft(phase, n), error + 1.01 * math.exp(VANISHED)


def outside(parts: list[tuple[int, Discrete]], window: Window, log_moment: float, left: float, right: float) -> float:
    """Tilted mass outside [left, right), by Chernoff's bound; none on a side where the support ends inside.

    Any other tilt proves a bound. That of the window was chosen by a first look, whose far left is not that of these
    parts: if it proves little here, tilts nearer to θ may prove more.
    """
    low = math.fsum(count * float(part.losses[0]) for count, part in parts)
    high = math.fsum(count * float(part.losses[-1]) for count, part in parts)
    result = 0.0
    for other, edge, inside in ((window.up, right, high < right), (window.down, left, low >= left)):
        if not inside:
            power = 0.0
            for share in (1.0, 0.7, 0.5, 0.35, 0.2):
                tilt = window.theta + share * (other - window.theta)
                moment = math.fsum(count * moment_of(part, tilt) for count, part in parts)
                power = min(power, moment - log_moment - (tilt - window.theta) * edge)
                if power < ENOUGH:
                    break
            result += math.exp(power)
    return result


def strays(parts: list[tuple[int, Discrete]], theta: float) -> float:
    """Tilted mass of what is only known from above: masses that may not be there, and the end near the largest losses.

    A profile of height g up to the loss l is covered by a mass g/(1 − e^{−w}) at l + w; w = 1/θ keeps its tilt small.
    """
    w = 1 / theta if theta > 0 else 1.0
    logs = [
        math.log(count * part.stray / -math.expm1(-w)) + theta * (part.stray_up_to + w) - moment_of(part, theta)
        for count, part in parts
        if part.stray
    ]
    logs += [
        math.log(count) + moment_of(replace(part, masses=part.noise), theta) - moment_of(part, theta)
        for count, part in parts
        if part.noise is not None and part.noise.any()
    ]
    return math.fsum(math.exp(min(x, 0.0)) for x in logs)


def moment_of(part: Discrete, theta: float) -> float:
    """log Σ p e^{θl}."""
    power = theta * part.losses + part.log_masses
    top = float(power.max())
    return top + math.log(float(np.exp(power - top).sum()))


def together(leaks: list[tuple[int, float]]) -> float:
    """1 − Π(1 − leak)^count."""
    if any(leak >= 1 for _, leak in leaks):
        return 1.0
    return abs(math.expm1(math.fsum(count * math.log1p(-leak) for count, leak in leaks)))
