"""The Gaussian that dominates a discrete one, without any slack.

With S(x) = P[K ≥ x] and z(p) = Φ⁻¹(1 − p), the price is μ = sup_x z(S(x)) − z(S(x − d)); x and d + 1 − x give the same.
Up to some x the tails are summed. Beyond, write y = x − d, T(y) = S(y)·Z·e^{y²/2σ²} ≥ 1, which falls, h(g) = −log Φ̄(g)
and a = z(S(y)): then h(z(S(x))) − h(a) ≤ R = (2yd + d²)/2σ² + log T(y), and since h′(g) ≥ g, a + μ ≥ z(S(x)) as
soon as μa + μ²/2 ≥ R. Mills' bounds φ(a)·a/(1 + a²) ≤ Φ̄(a) ≤ φ(a)/a put a between √(u² − N) and √(u² + 2 log⁺(σ + ½)),
u = y/σ, with N = 2·log(ā + 1) − 2·log(Z/√2π) + 2·log T, ā the upper one; raised to at least 1, N/u² falls in u. So the
inequality, once it holds and μ√(1 − N/u²) ≥ d/σ, holds for all larger u.
"""

import math

import numpy as np
from scipy.special import ndtri_exp

from sfumato.loss.numeric import Floats

MOST = 10**6  # tails summed
SLIP = 1e-10  # far above what rounding does to tails and quantiles


def gaussian_ceiling(sigma: float, shift: int) -> float:
    """A μ that dominates the discrete Gaussian at zero slack, within 10⁻⁹ of the least; infinity if none was proved."""
    end = math.ceil(8 * sigma + shift + 8)
    while end <= MOST and shift <= MOST:
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
    """Does the inequality of the module hold for all y from this one on?"""
    u, step = y / sigma, shift / sigma
    log_t = log_tail + u * u / 2 + log_ratio + math.log(2 * math.pi) / 2 + SLIP
    most = math.sqrt(u * u + 2 * max(0.0, math.log(sigma + 0.5)))
    n = max(1.0, 2 * math.log(most + 1) - 2 * log_ratio + 2 * log_t)
    if u * u - n < 1:
        return False
    share = math.sqrt(1 - n / (u * u))
    return mu * share >= step and mu * share * u + mu * mu / 2 >= step * u + step * step / 2 + log_t
