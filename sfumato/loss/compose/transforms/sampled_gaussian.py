"""The Poisson-sampled Gaussian, spectrally: M(z) = ∫ φ(x)·G(x)^s dx, G = 1 − q + q·e^{μx − μ²/2}.

s = z + 1 and L = log G for (P, Q) (someone is removed); s = −z and L = −log G for (Q, P) (someone is added). The
integrand is analytic in a strip, so the trapezoid sum converges geometrically: some sixty points do where a grid of
losses would need thousands, and nothing is discretised. For k people together G = Σ w_j e^{jμx − j²μ²/2} with binomial
weights w_j: a polynomial of e^{μx} whose roots are all negative, so G is a product of k factors of the first kind and
all bounds hold with k of them. Docs: docs/theorems/contour.md, section 5.

Theorem: trapezoid sums of functions analytic in a strip [Trefethen & Weideman 2014, Thm 5.1]
Theorem: Σ a_j t^{j²} z^j has real roots only, if Σ a_j z^j has and 0 < t ≤ 1 [Laguerre 1884; Pólya & Schur 1914]
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from sfumato.loss.compose.transforms.base import Complexes, Discs, Refused, Tilted, Transform, powers, round_to_30_bits
from sfumato.loss.numeric import TINY, ULP, Floats, floats, log_ndtr

ROOT = math.sqrt(2 * math.pi)
CELLS = 160  # of the grid that bounds the tilted density
LEVELS = 32
MOST_WORK = 40_000_000  # frequencies × points of the quadrature


@dataclass(frozen=True)
class SampledGaussianTransform(Transform):
    """`count` steps of Poisson sampling with rate q < 1 and noise μ; `sign` is +1 for (P, Q), −1 for (Q, P).

    `people` are added or removed together, each in a batch or not by itself.
    """

    rate: float
    mu: float
    sign: int
    count: float = 1.0
    people: int = 1

    def times(self, count: int) -> "SampledGaussianTransform":
        return SampledGaussianTransform(self.rate, self.mu, self.sign, self.count * count, self.people)

    @property
    def reverse(self) -> "SampledGaussianTransform":
        return SampledGaussianTransform(self.rate, self.mu, -self.sign, self.count, self.people)

    def losses(self, x: Floats) -> Floats:
        """log G."""
        if self.people > 1:
            return log_mixture(binomial_weights(self.people, self.rate), self.mu, x)[0]
        e = self.mu * x - self.mu**2 / 2
        small = np.log1p(self.rate * np.expm1(np.minimum(e, 30.0)))
        if float(e.max()) <= 30:
            return small
        large = math.log(self.rate) + e + np.log1p((1 / self.rate - 1) * np.exp(-np.maximum(e, 30.0)))
        return np.where(e > 30, large, small)

    def ends(self, theta: float, need: float) -> tuple[float, float]:
        """Where the integrand has fallen to about e^{−need}."""
        if self.sign > 0:
            reach = math.sqrt(2 * need)
            return -reach, (theta + 1) * self.people * self.mu + reach
        reach = math.sqrt(2 * (need - theta * self.people * math.log1p(-self.rate)))
        return -reach, reach

    def strip(self, theta: float, omega: float, need: float) -> tuple[float, float]:
        """Step of the trapezoid sum and its error, relative to M(θ), for all frequencies up to ω.

        On |Im x| ≤ a < π/μ the integrand is at most e^E times itself at Re x, E = a²/2 + ωkμa (and kθ log sec(μa/2) for
        −1): |arg G| ≤ kμa, |G| ≤ G(Re x), and |G| ≥ G(Re x)·cos(μa/2)^k. So the sum errs by 2e^E/(e^{2πa/h} − 1).
        """
        many = theta * self.people
        if self.sign > 0:
            a = min(math.sqrt(2 * need), 0.98 * math.pi / self.mu)
            extra = 0.0
        else:
            a = min(math.sqrt(2 * need / (1 + many * self.mu**2 / 4)), 0.8 * math.pi / self.mu)
            extra = -many * math.log(math.cos(self.mu * a / 2))
        bound = a * a / 2 + omega * self.people * self.mu * a + extra
        h = round_to_30_bits(2 * math.pi * a / (need + 0.7 + bound))
        return h, 2.02 * math.exp(bound - 2 * math.pi * a / h)

    def log_moments(self, theta: Floats) -> Floats:
        need = 18 + math.log(max(self.count, 1.0))
        ends = np.array([self.ends(float(one), need) for one in theta])
        h = min(self.strip(float(one), 0.0, need)[0] for one in (theta.min(), theta.max()))
        points = 2 + int(float((ends[:, 1] - ends[:, 0]).max()) / h)
        if points * len(theta) > MOST_WORK / 20:
            raise Refused("steering would take too many points")
        steps = np.arange(points)
        x = ends[:, :1] + (ends[:, 1:] - ends[:, :1]) / steps[-1] * steps
        weight = (ends[:, 1] - ends[:, 0]) / (steps[-1] * ROOT)
        powers = np.where(self.sign > 0, theta + 1, -theta)[:, None] * self.losses(x)
        excess = weight * gains(powers, x * x / 2).sum(axis=1)
        powers -= x * x / 2
        top = powers.max(axis=1)
        large = top + np.log(weight * np.exp(powers - top[:, None]).sum(axis=1))
        return floats(self.count * np.where(excess < 1e100, np.log1p(np.minimum(excess, 1e100)), large))

    def tilt(self, theta: float) -> Tilted:
        return tilted_term(self, theta)


class Weights(NamedTuple):
    """Of a binomial law, to half a unit in the last place, and their logarithms."""

    shares: tuple[float, ...]
    logs: tuple[float, ...]


@lru_cache(maxsize=64)
def binomial_weights(people: int, rate: float) -> Weights:
    """The chance that so many of the people are in a batch, for j = 0, …, `people`: exact rationals, then rounded."""
    q, log_rate, log_rest = Fraction(rate), math.log(rate), math.log1p(-rate)
    shares = [float(math.comb(people, j) * q**j * (1 - q) ** (people - j)) for j in range(people + 1)]
    logs = [
        math.log(share) if share > TINY else math.log(math.comb(people, j)) + j * log_rate + (people - j) * log_rest
        for j, share in enumerate(shares)
    ]
    return Weights(tuple(shares), tuple(logs))


def log_mixture(weights: Weights, mu: float, x: Floats) -> tuple[Floats, Floats]:
    """log G of several people, and its error at most.

    Near 0 from G − 1 = Σ w_j(e^{e_j} − 1), e_j = jμx − j²μ²/2: each term is off by 16 ulps, and by what e_j is. Where
    one e_j is large or G small, from logarithms, whose errors count by the share of their term in G.
    """
    excess, size, moved, top = (np.zeros_like(x) for _ in range(4))
    total, people = np.full_like(x, weights.logs[0]), len(weights.logs) - 1
    powers = [log + j * mu * x - (j * mu) ** 2 / 2 for j, log in enumerate(weights.logs)]
    for j in range(1, people + 1):
        e = j * mu * x - (j * mu) ** 2 / 2
        gain = weights.shares[j] * np.expm1(np.minimum(e, 30.0))
        excess, size, top = excess + gain, size + np.abs(gain), np.maximum(top, e)
        total = np.logaddexp(total, powers[j])
    near = (top <= 30) & (excess > -0.5)
    found = np.where(near, np.log1p(np.maximum(excess, -0.5)), total)
    for j in range(1, people + 1):
        far = np.where(near, 0.0, 32 * (np.abs(powers[j]) + 2 * abs(weights.logs[j])))
        moved += np.exp(np.minimum(powers[j] - found, 0.0)) * (4 * (j * mu * np.abs(x) + (j * mu) ** 2) + far)
    added = np.where(
        near, size * np.exp(-np.where(near, found, 0.0)), people * (16 + 2 * np.abs(found) + 2 * abs(weights.logs[0]))
    )
    return floats(found), floats(ULP * (16 * np.abs(found) + (32 + 2 * people) * added + moved))


def log_mean(weights: Weights, mu: float, x: Floats, losses: Floats) -> Floats:
    """log of m, the mean number of people in the batch given x: dL/dx = μm."""
    total = np.full_like(x, -math.inf)
    for j, log in enumerate(weights.logs):
        if j:
            total = np.logaddexp(total, math.log(j) + log + j * mu * x - (j * mu) ** 2 / 2)
    return floats(total - losses)


def gains(powers: Floats, fall: Floats) -> Floats:
    """e^{−fall}·(e^power − 1), also where e^power is no float: tiny rates have huge losses where nothing ever is.

    What exceeds e^680 is cut there, so that a sum over a million points is still a float.
    """
    far = powers > 600
    near = np.exp(-fall) * np.expm1(np.where(far, 0.0, powers))
    return floats(np.where(far, np.exp(np.minimum(powers - fall, 680.0)), near))


class Grid:
    """The trapezoid points for frequencies up to ω, their weights under the tilt, and how well these are known."""

    def __init__(self, term: SampledGaussianTransform, theta: float, omega: float, frequencies: int) -> None:
        need = 40 + math.log(max(term.count, 1.0))
        h, error = term.strip(theta, omega, need)
        low, high = term.ends(theta, need)
        if (high - low) / h * (frequencies + 500) > MOST_WORK:
            raise Refused("the quadrature would take too many points")
        x = floats(h * np.arange(math.floor(low / h), math.ceil(high / h) + 1))
        s, losses = theta + 1 if term.sign > 0 else -theta, term.losses(x)  # s: the power of G
        slips = loss_slips(term, x, losses)
        a, bell = s * losses, h / ROOT * np.exp(-x * x / 2)
        relative = abs(s) * slips + ULP * (32 + x * x + 2 * np.abs(a))  # of the weights
        growth = h / ROOT * gains(a, x * x / 2)
        excess = float(growth.sum())
        if -0.5 < excess < 0.5:  # M − 1 without cancellation: what lets counts reach 10⁹
            self.log_moment = math.log1p(excess)
            weights = (bell + growth) / (1 + excess)
            rounding = float(np.abs(growth) @ (ULP * (48 + len(x) + x * x)))
            moved = float(weights @ (abs(s) * slips + 2 * ULP * np.abs(a)))
            ends = math.exp(float(log_ndtr(np.array(x[0])))) + math.exp(float(log_ndtr(np.array(-x[-1]))))
            self.slip = (rounding + error + ends) / (1 + excess) + moved
        else:
            power = a - x * x / 2
            peak = float(power.max())
            weights = np.exp(power - peak)
            total = float(weights.sum())
            weights /= total
            self.log_moment = peak + math.log(total * h / ROOT)
            self.slip = ULP * (32 + len(x) + 4 * abs(peak)) + float(weights @ relative)
        error += math.exp(min(log_outside(term, theta, float(x[0]), float(x[-1])) - self.log_moment, 0.0))
        self.slip += 2.1 * error + 4 * ULP * abs(self.log_moment)
        keep = weights > 1e-22
        self.error = 2 * error + 2 * float(weights[~keep].sum())  # of φ, from quadrature and cut ends
        self.weights, self.losses = weights[keep] / float(weights[keep].sum()), losses[keep]
        self.slips, self.relative = slips[keep], relative[keep]


def loss_slips(term: SampledGaussianTransform, x: Floats, losses: Floats) -> Floats:
    """Errors of log G at most: from e = μx − μ²/2, whose share in G is r; from y = G − 1 inside log1p, relative to
    y/(1 + y) = 1 − 1/G; and of the logarithm."""
    if term.people > 1:
        return log_mixture(binomial_weights(term.people, term.rate), term.mu, x)[1]
    e = term.mu * x - term.mu**2 / 2
    log_rate = math.log(term.rate)
    share = np.exp(np.minimum(log_rate + e - losses, 0.0))
    inside = np.where(e > 30, np.abs(e) - log_rate, np.abs(np.expm1(-losses)))
    return floats(ULP * (16 * np.abs(losses) + 32 * inside + 4 * (np.abs(term.mu * x) + term.mu**2) * share))


def log_outside(term: SampledGaussianTransform, theta: float, low: float, high: float) -> float:
    """log of ∫|φG^s| beyond both ends, which also bounds the dropped part of the sum: the bounds are monotone there.

    +1: G ≤ 1 on the left; on the right G ≤ κe^{μx−μ²/2} with κ = q + (1−q)e^{−(μx−μ²/2)}, or with kμ and κ = Ge^{…}
    there for k people. −1: G ≥ (1 − q)^k.
    """
    left, right = float(log_ndtr(np.array(low))), float(log_ndtr(np.array(-high)))
    q, mu = term.rate, term.people * term.mu
    if term.sign < 0:
        return float(np.logaddexp(left, right)) - theta * term.people * math.log1p(-q)
    s = theta + 1
    if term.people == 1:
        log_kappa = math.log(q + (1 - q) * math.exp(-min(mu * high - mu * mu / 2, 700.0)))
    else:
        at = log_mixture(binomial_weights(term.people, q), term.mu, np.array([high]))
        log_kappa = float((at[0] + at[1])[0]) - (mu * high - mu * mu / 2) + 8 * ULP * (mu * high + mu * mu)
    right = s * log_kappa + (s * s - s) * mu * mu / 2 + float(log_ndtr(np.array(s * mu - high)))
    return float(np.logaddexp(left, right)) + 1e-9


class TiltedSampledGaussian(Tilted):
    """Discs from the quadrature, ceilings from the tilted density of the loss."""

    def __init__(self, term: SampledGaussianTransform, theta: float) -> None:
        self.term, self.theta = term, theta
        self.grid = Grid(term, theta, 0.0, 1)
        self.power = theta + 1 if term.sign > 0 else -theta  # of G, the real part
        self.log_moment, self.slip = term.count * self.grid.log_moment, term.count * self.grid.slip
        self.mean = term.sign * float(self.grid.weights @ self.grid.losses)
        self.centre = term.count * self.mean
        self.drift = abs(self.centre)

    def discs(self, omega: Floats) -> Discs:
        """φe^{−iωc} − 1 = Σ w(e^{iωy} − 1), y = L − c: weights sum to one, so their errors count by |e^{iωy} − 1|."""
        grid = Grid(self.term, self.theta, float(omega[-1]), len(omega))
        w, y = grid.weights, self.term.sign * grid.losses - self.mean
        points, known = len(w), float(w @ grid.relative)
        width = math.sqrt(float(w @ (y * y)))
        slip = float(w @ grid.slips) + 4 * ULP * (float(w @ np.abs(y)) + abs(self.mean))
        reach = np.minimum(2.0, omega * width)
        if len(omega) * points < 300_000:
            base = turn_minus_one(np.multiply.outer(omega, y)) @ w
            error = ULP * (points + 32) * reach
        else:
            base = self.matrix(omega, w, y)
            error = 10 * ULP * (points + 32) * reach
        error = error + np.minimum(2 * known, omega * float(w @ (grid.relative * np.abs(y)))) + known * reach
        return powers(base, 1.01 * (error + omega * slip + grid.error), self.term.count)

    @staticmethod
    def matrix(omega: Floats, w: Floats, y: Floats) -> Complexes:
        """Σ w(e^{iωy} − 1) at ω = (aB + b)D, as one matrix product.

        With A = e^{iaBDy} − 1 and B likewise the summand is w(AB + A + B). Its parts add up to 6w·min(2, ω|y|) at most:
        they are small where ωy is, and so are their roundings.
        """
        n, step = len(omega), float(omega[1])
        block = math.isqrt(n - 1) + 1
        coarse = turn_minus_one(np.multiply.outer(np.arange(-(-n // block)) * (block * step), y)) * w
        fine = turn_minus_one(np.multiply.outer(np.arange(block) * step, y))
        result: Complexes = (coarse @ fine.T + coarse.sum(axis=1)[:, None] + fine @ w).ravel()[:n]
        return result

    def log_ceiling(self, omega: Floats) -> Floats:
        """The lesser of two bounds, to the power of the count.

        Layers: where the tilted density g of the loss is ≥ Σ t_m·1[I_m] with intervals of length ℓ_m, the transform of
        that part is at most Σ t_m ℓ_m σ(ωℓ_m/2), σ(u) = sup_{v ≥ u} |sin v/v|, and the rest counts in full.
        Variation: |φ| ≤ TV(g)/ω.
        """
        shape = self.density
        lost = drop(np.multiply.outer(omega, shape.lengths / 2)) @ shape.masses * (1 - 1e-9)
        layers = np.log1p(-np.minimum(lost, 1 - 1e-16))
        variation = np.minimum(shape.log_variation - np.log(omega), 0.0)
        return floats(self.term.count * np.minimum(layers, variation))

    @cached_property
    def density(self) -> "Density":
        """The tilted density g of the loss, from below by layers and from above by its variation.

        At x the loss log G has log g = −x²/2 + (s+1)log G − (μx − μ²/2) − log(qμ√2π) − log M, with the slope
        −x − μ + (s+1)μr and |second derivative| = |−1 + (s+1)μ²r(1−r)| ≤ B: between grid points log g is within
        B·width²/8 of the chord. The slope vanishes once if (s+1)μ² ≤ 4, else three times at most: one or two modes.
        """
        term, mu = self.term, self.term.mu
        if term.people > 1:
            return self.density_of_several
        s = self.power
        low, high = term.ends(self.theta, 30.0)
        x = np.linspace(low - mu, high, CELLS + 1)
        losses = term.losses(x)
        log_g = -x * x / 2 + (s + 1) * losses - mu * x + mu * mu / 2 - math.log(term.rate * mu * ROOT)
        log_g -= self.grid.log_moment
        bend = (1 + abs(s + 1) * mu * mu / 4) * float(x[1] - x[0]) ** 2 / 8 + 1e-9 + self.grid.slip
        lengths, masses = layers(term, x, losses, log_g, bend)
        modes = 1 if (s + 1) * mu * mu <= 4 else 2
        inward = -x[0] - mu - max(0.0, -s - 1) * mu * math.exp(math.log(term.rate) + mu * x[0] - mu**2 / 2 - losses[0])
        # outside the grid g only falls, if it does so at the left end; else a mode may lie there
        log_variation = math.log(2 * modes) + float(log_g.max()) + bend + 1e-9 if inward > 0 else math.inf
        return Density(lengths, masses, log_variation)

    @property
    def density_of_several(self) -> "Density":
        """The density for k people: dL/dx = μm, m the mean of a sum of k coins r_i, v its variance.

        log g = −x²/2 + s·log G − log(μm√2π) − log M has the slope −x + sμm − μv/m, 0 ≤ v/m ≤ 1, and a second derivative
        of at most B = 1 + μ²(k|s| + 1)/4, as v ≤ k/4 and |(v/m)'| ≤ μ/4. Its variation in a cell is at most the rise
        between both ends plus B·width², so TV(g) is at most the sum of that times the largest g, and both ends.
        """
        term, mu, s = self.term, self.term.mu, self.power
        low, high = term.ends(self.theta, 30.0)
        x = np.linspace(low - mu, high, CELLS * term.people + 1)
        losses = term.losses(x)
        means = log_mean(binomial_weights(term.people, term.rate), mu, x, losses)
        log_g = -x * x / 2 + s * losses - means - math.log(mu * ROOT) - self.grid.log_moment
        curve = (1 + mu * mu * (term.people * abs(s) + 1) / 4) * float(x[1] - x[0]) ** 2
        bend = curve / 8 + 1e-9 + self.grid.slip
        inward = -x[0] - mu - max(0.0, -s) * mu * math.exp(means[0])
        most = np.maximum(log_g[1:], log_g[:-1])
        rises = np.log(np.abs(np.diff(log_g)) + curve)
        variation = np.logaddexp.reduce(np.concatenate([most + rises, log_g[:1], log_g[-1:]])) + bend + 1e-9
        return Density(*layers(term, x, losses, log_g, bend), float(variation) if inward > 0 else math.inf)


def layers(
    term: SampledGaussianTransform, x: Floats, losses: Floats, log_g: Floats, bend: float
) -> tuple[Floats, Floats]:
    """Lengths and masses of uniform pieces under a density whose logarithm is within `bend` of its chords."""
    cell = np.minimum(log_g[1:], log_g[:-1]) - bend
    peak = int(np.argmax(cell))
    left, right = np.minimum.accumulate(cell[peak::-1]), np.minimum.accumulate(cell[peak:])
    levels = cell[peak] - np.linspace(24.0, 0.0, LEVELS)
    first = peak - np.searchsorted(-left, -levels, side="right") + 1
    last = peak + np.searchsorted(-right, -levels, side="right")
    slips = loss_slips(term, x, losses)
    lengths = np.maximum(losses[last] - losses[first] - slips[last] - slips[first], 0.0) * (1 - 1e-9)
    return floats(lengths), floats(np.diff(np.exp(np.minimum(levels, 700.0)), prepend=0.0) * lengths)


tilted_term = lru_cache(maxsize=16)(TiltedSampledGaussian)  # planning asks for a view, and so does the contour


class Density(NamedTuple):
    """Layers under a density, each of a length and a mass, and the logarithm of its total variation."""

    lengths: Floats
    masses: Floats
    log_variation: float


def turn_minus_one(angle: Floats) -> Complexes:
    """e^{i·angle} − 1, with relative accuracy near 0."""
    half = np.sin(angle / 2)
    result = np.empty(angle.shape, dtype=np.complex128)
    result.real, result.imag = -2 * half * half, np.sin(angle)
    return result


def drop(u: Floats) -> Floats:
    """1 − σ(u) from below: sin v/v ≤ 1 − v²/6 + v⁴/120 falls until π, and is below 0.2815 from 2.4 on, 1/u from 4.6."""
    near = np.minimum(u, 2.4) ** 2
    return np.where(u < 2.4, near / 6 * (1 - near / 20), np.where(u < 4.6, 0.7185, 1 - 1 / np.maximum(u, 4.6)))
