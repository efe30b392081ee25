"""The discrete Gaussian loss."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri_exp

from sfumato import checks
from sfumato.loss.base import TOLERANCE, Symmetric
from sfumato.loss.bound import Bound, widen
from sfumato.loss.compose.transforms.gaussian import LEAST_SIGMA, DiscreteGaussianTransform
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, enclose, erfcx, logsumexp

LARGE = 2000.0  # from this σ on tails are integrals with an Euler–Maclaurin correction, below they are summed
FLAT = 0.02  # up to this n/σ²: beyond, a sum has few terms


@dataclass(frozen=True)
class DiscreteGaussianLoss(Symmetric):
    """Integer noise with P[x] ∝ e^{−x²/2σ²}, integer sensitivity d: L = (2xd − d²)/(2σ²) for x ~ d + noise.

    Its Rényi curve lies below that of the continuous Gaussian with the same σ, its profile may lie slightly above.

    Theorem: the discrete Gaussian is d²/2σ²-zCDP, with this exact profile [Canonne, Kamath & Steinke 2020, Thms 4
        and 7]
    """

    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sigma", checks.number("sigma", self.sigma, 1e-3, 1e100, allowed="a number ≥ 0.001"))
        object.__setattr__(self, "sensitivity", checks.whole("sensitivity", self.sensitivity, 0))

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        """P[x > x*] − e^ε Q[x > x*] with x* = εσ²/d + d/2."""
        d = self.sensitivity
        if d == 0:
            return Enclosure(0 * eps, 0 * eps)
        stretch = self.sigma * self.sigma / d
        place = np.minimum(eps, 1e150 / stretch) * stretch + d / 2  # beyond, δ is far below every float
        return tail_difference(self.sigma, d, place)

    def supremum(self) -> tuple[float, float]:
        top = math.inf if self.sensitivity else 0.0
        return top, top

    def leak(self) -> tuple[float, float]:
        return 0.0, 0.0

    def gaussian_ceiling(self) -> float:
        """The least μ, at the middle of the law, and nothing larger further out.

        Theorem: z(S(x)) − z(S(x − d)) ≤ μ for all x [sfumato/loss/kinds/discrete_gaussian.py]
        """
        return gaussian_ceiling(self.sigma, self.sensitivity) if self.sensitivity else 0.0

    def log_moment(self, s: float) -> Bound:
        """s(s+1)d²/2σ² plus log of Σe^{−(x−(s+1)d)²/2σ²}/Σe^{−x²/2σ²}: nothing for whole (s+1)d, negative otherwise."""
        value = s * (s + 1) * self.sensitivity**2 / (2 * self.sigma**2)
        shift = log_normaliser(self.sigma, math.fmod((s + 1) * self.sensitivity, 1.0)) - log_normaliser(self.sigma, 0.0)
        error = ULP * (8 * abs(value) + 16 + 4 * abs(shift)) if shift else ULP * 8 * abs(value)
        if self.sigma < 3:  # (s+1)d is rounded, and the shift moves with it by at most (½ + its error)/σ² each
            slip = 2 * ULP * abs((s + 1) * self.sensitivity)
            error += slip * (0.5 + slip) / self.sigma**2
        return Bound(value + shift - error, min(value, value + shift + error) + ULP * 8 * abs(value), "closed form")

    def mean(self) -> Bound:
        """E[(2xd − d²)/2σ²] with E x = d."""
        return widen(
            self.sensitivity**2 / (2 * self.sigma**2), 4 * ULP * self.sensitivity**2 / self.sigma**2, "closed form"
        )

    def rho_ceiling(self) -> float:
        return self.sensitivity**2 / (2 * self.sigma**2) * (1 + 4 * ULP)

    def atoms(self) -> tuple[float, float] | None:
        d, s2 = self.sensitivity, self.sigma * self.sigma
        return (d / s2, d * d / (2 * s2)) if d else None

    def transform(self) -> DiscreteGaussianTransform | None:
        known = self.sigma >= LEAST_SIGMA and self.sensitivity > 0
        return DiscreteGaussianTransform(self.sigma, self.sensitivity) if known else None

    def group(self, size: int) -> "DiscreteGaussianLoss":
        size = checks.whole("size", size, 0)
        return DiscreteGaussianLoss(self.sigma, size * self.sensitivity, relation=self.relation)


def tail_difference(sigma: float, d: int, place: Floats) -> Enclosure:
    """S(low) − e^ε S(high), S(n) = P[noise ≥ n], with high = low + d the first integer above x* = place.

    The tails are e^{−n²/2σ²}·(scaled sum), and ε − high²/2σ² is −low²/2σ² − (high − x*)·d/σ²: e^ε does no harm and
    nothing large cancels. x* is rounded. That moves the exponent of the second tail by slip·d/σ², and up to 1 + slip
    integers may be on the wrong side of x*, where p and e^ε q differ by that factor at most. Where the factor is not
    close to 1, δ lies between S(low − 1 − slip) and (1 − e^{−40})·S at 40σ²/d beyond low + 1 + slip.
    """
    v, steep = 2 * sigma * sigma, d / (sigma * sigma)
    high = np.floor(place) + 1
    low, slip = high - d, 4 * ULP * place
    near, height = survival(sigma, low), np.exp(-low * low / v)
    far = height * np.exp(-(high - place) * steep) * Tail(sigma)(high) / normaliser(sigma)
    factor = np.minimum(2 * slip * steep, 1.0)
    peak = np.exp(-(np.maximum(np.abs(low) - 1 - slip, 0.0) ** 2) / v) / normaliser(sigma)
    power = np.minimum(low * low / v + (high - place) * steep, 800.0)
    error = ULP * (near * (32 + 4 * power * (low > 0)) + far * (32 + 4 * power))
    found = enclose(np.maximum(near - far, 0.0), error + factor * (far + peak * (1 + slip)) + TINY)
    blurred = factor > 0.5
    if not np.any(blurred):
        return found
    below = survival(sigma, np.ceil(low + 2 + slip + 40 / steep)) * (1 - 4000 * ULP)
    above = survival(sigma, np.floor(low - 1 - slip)) * (1 + 4000 * ULP) + TINY
    return Enclosure(np.where(blurred, below, found.lower), np.where(blurred, np.minimum(above, 1.0), found.upper))


def survival(sigma: float, n: Floats) -> Floats:
    """P[noise ≥ n] for whole n."""
    tail, total, right = Tail(sigma), normaliser(sigma), np.where(n > 0, n, 1 - n)
    part = np.exp(-(right * right) / (2 * sigma * sigma)) * tail(right) / total
    return np.where(n > 0, part, 1 - part)


@dataclass(frozen=True)
class Tail:
    """Σ_{j ≥ 0} e^{−(2nj + j²)/2σ²}: relative accuracy at any n."""

    sigma: float

    def __call__(self, n: Floats) -> Floats:
        if self.sigma < LARGE:
            return self.tail_sum(n, math.ceil(8.7 * self.sigma) + 2)
        flat = n <= FLAT * self.sigma * self.sigma
        result: Floats = self.integral(np.where(flat, n, 1.0))
        if not np.all(flat):
            result[~flat] = self.tail_sum(n[~flat], math.ceil(40 / FLAT))
        return result

    def integral(self, n: Floats) -> Floats:
        """∫_{n−½}^∞ plus the midpoint correction g'/24 − 7g'''/5760; the next term is below 3e-15 for n ≤ σ²/50."""
        s, x = self.sigma, n - 0.5
        slope = x / (s * s)
        body = s * math.sqrt(math.pi / 2) * erfcx(x / (s * math.sqrt(2)))
        bend = 3 * slope / (s * s) - slope**3
        shift: Floats = np.exp(slope / 2 + 0.125 / (s * s))  # (n² − x²)/2σ²
        return shift * (body - slope / 24 - 7 * bend / 5760)

    def tail_sum(self, n: Floats, count: int) -> Floats:
        """The sum itself, once for every distinct n: 8.7σ terms reach 2⁻⁵⁴ of the first, and so do 40σ²/n."""
        s2 = self.sigma * self.sigma
        j = np.arange(0, count, dtype=np.float64)
        starts, back = np.unique(n, return_inverse=True)
        sums = np.empty_like(starts)
        rows = max(1, 200_000 // len(j))
        for i in range(0, len(starts), rows):
            exponents = starts[i : i + rows, None] * (j / s2) + (j * j / (2 * s2))
            sums[i : i + rows] = np.exp(-exponents).sum(axis=1)
        return sums[back].reshape(n.shape)


def normaliser(sigma: float) -> float:
    """Σ_{x∈ℤ} e^{−x²/2σ²}."""
    return sigma * math.sqrt(2 * math.pi) if sigma >= 3 else math.exp(log_normaliser(sigma, 0.0))


@lru_cache(maxsize=64)
def log_normaliser(sigma: float, shift: float) -> float:
    """log Σ_{x∈ℤ} e^{−(x−shift)²/2σ²}; for σ ≥ 3 it is log σ√(2π) to double precision (Poisson summation)."""
    if sigma >= 3:
        return math.log(sigma * math.sqrt(2 * math.pi))
    x = np.arange(-40, 41, dtype=np.float64) - shift
    return logsumexp(-x * x / (2 * sigma * sigma))


MOST_TAILS = 10**6  # tails summed
SLIP = 1e-10  # far above what rounding does to tails and quantiles


def gaussian_ceiling(sigma: float, shift: int) -> float:
    """A μ that dominates the discrete Gaussian at zero slack, within 10⁻⁹ of the least; infinity if none was proved.

    With S(x) = P[K ≥ x] and z(p) = Φ⁻¹(1 − p), the price is μ = sup_x z(S(x)) − z(S(x − d)); x and d + 1 − x give the
    same. Up to some x the tails are summed. Beyond, write y = x − d, T(y) = S(y)·Z·e^{y²/2σ²} ≥ 1, which falls,
    h(g) = −log Φ̄(g) and a = z(S(y)): then h(z(S(x))) − h(a) ≤ R = (2yd + d²)/2σ² + log T(y), and since h′(g) ≥ g,
    a + μ ≥ z(S(x)) as soon as μa + μ²/2 ≥ R. Mills' bounds φ(a)·a/(1 + a²) ≤ Φ̄(a) ≤ φ(a)/a put a between √(u² − N)
    and √(u² + 2 log⁺(σ + ½)), u = y/σ, with N = 2·log(ā + 1) − 2·log(Z/√2π) + 2·log T, ā the upper one; raised to at
    least 1, N/u² falls in u. So the inequality, once it holds and μ√(1 − N/u²) ≥ d/σ, holds for all larger u.
    """
    end = math.ceil(8 * sigma + shift + 8)
    while end <= MOST_TAILS and shift <= MOST_TAILS:
        logs, log_ratio = log_tails(sigma, end)
        x = np.arange((shift + 2) // 2, end)
        mu = float((quantile(logs, x) - quantile(logs, x - shift)).max()) * (1 + SLIP) + SLIP
        if beyond(sigma, shift, mu, end - 1 - shift, log_ratio, float(logs[end - 1 - shift])):
            return mu
        end *= 2
    return math.inf


def log_tails(sigma: float, end: int) -> tuple[Floats, float]:
    """log S(x) for x = 0 … end, and log(Z/√2π): by T(x) = 1 + e^{−(2x+1)/2σ²}·T(x + 1), from the far end."""
    k = np.arange(end + 1.0)
    falls = np.exp(-(2 * k + 1) / (2 * sigma * sigma))
    tail, tails = 1.0, np.empty(end + 1)
    reach = math.ceil(40 * sigma * sigma / (end + 1)) + math.ceil(9 * sigma) + 2  # beyond, a term is e^-40 of the first
    for j in range(min(reach, 10**6), 0, -1):
        tail = 1 + math.exp(-(2 * (end + j) + 1) / (2 * sigma * sigma)) * tail
    for x in range(end, -1, -1):
        tail = 1 + float(falls[x]) * tail
        tails[x] = tail
    z = 2 * tails[0] - 1
    return np.log(tails) - k * k / (2 * sigma * sigma) - math.log(z), math.log(z) - math.log(2 * math.pi) / 2


def quantile(logs: Floats, x: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """z(S(x)), from the symmetry S(x) = 1 − S(1 − x) for x ≤ 0."""
    found: Floats = np.where(x > 0, -1.0, 1.0) * ndtri_exp(logs[np.where(x > 0, x, 1 - x)])
    return found


def beyond(sigma: float, shift: int, mu: float, y: int, log_ratio: float, log_tail: float) -> bool:
    """Does the inequality of `gaussian_ceiling` hold for all y from this one on?"""
    u, step = y / sigma, shift / sigma
    log_t = log_tail + u * u / 2 + log_ratio + math.log(2 * math.pi) / 2 + SLIP
    most = math.sqrt(u * u + 2 * max(0.0, math.log(sigma + 0.5)))
    n = max(1.0, 2 * math.log(most + 1) - 2 * log_ratio + 2 * log_t)
    if u * u - n < 1:
        return False
    share = math.sqrt(1 - n / (u * u))
    return mu * share >= step and mu * share * u + mu * mu / 2 >= step * u + step * step / 2 + log_t
