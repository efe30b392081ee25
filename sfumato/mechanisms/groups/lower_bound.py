"""How private a release of relative error r can be at best, whatever the mechanism.

Psi(m) is the least Fisher information of a density q of z on the line with E|e^z − 1| ≤ m. By duality it is the largest
E(λ) − λm, where E(λ) is the lowest energy of −4ψ″ + λ|e^z − 1|ψ; so every λ and every number below E(λ) give a bound.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from flint import acb, arb
from scipy.linalg import eigvalsh_tridiagonal
from scipy.optimize import minimize_scalar

from sfumato import checks
from sfumato.loss.bound import Bound
from sfumato.loss.numeric import Floats, floats
from sfumato.noise.balls import Ball, precision

LEAST = 0.01  # relative errors from here on are solved as they are; smaller ones by scaling another well
SHALLOW = 0.6  # from here on the ground state reaches so far that differences find it badly
NEAR = 1e-10  # relative: how far below the energy the certified number is
AIRY = 2.3381  # below the first zero of Ai(−x)
Well = Callable[[Floats], Floats]


@lru_cache(maxsize=256)
def psi(relative_error: float) -> Bound:
    """Psi(r), certified from below; from above only by what a Gaussian on the logarithm reaches. float() is the lower
    side: what no mechanism stays below.

    Theorem: limsup x²·v(x) ≥ Psi(r)/2 for every mechanism with E|x̂ − x| ≤ r·x [docs/theorems/groups.md, Theorem 5]
    Theorem: a positive supersolution bounds the lowest energy from below [Barta 1937; Allegretto 1974]
    """
    r = checks.number("relative_error", relative_error, 1e-12, 1 - 1e-6, allowed="a number between 0 and 1")
    lower = dual(r, log_well, certified) if r >= LEAST else scaled() * (LEAST / r) ** 2 * (1 - 1e-12)
    s = math.sqrt(2) * float(arb(r).erfinv())
    return Bound(lower, max(lower, (1 + 1e-12) / s**2), "ground state of a well", "lower")


@lru_cache(maxsize=1)
def scaled() -> float:
    """The same for w(z) = 1 − e^z below 0 and z above, at m = 0.01. As w ≤ |e^z − 1|, it is less than Psi; and as
    w(az) ≤ a·w(z) for a ≥ 1, a density for m/a stretched by a is one for m: m² times it falls with m."""
    return dual(LEAST, half_well, certified_half)


def dual(m: float, well: Well, proved: Callable[[float, float], Ball | None]) -> float:
    """The largest E(λ) − λm, rounded down: λ by doubles, and its energy by balls; shallow wells all by balls."""

    def rough(log_width: float) -> float:
        width = math.exp(log_width)
        return -(4 / width**2) * (energy(width, well) - m / width)

    def proven(log_width: float) -> float:
        width = math.exp(log_width)
        strength = 4 / width**3
        return strength * m * (1 + 1e-15) - lifted(strength, 4 / width**2 * energy(width, well), proved)

    width = lowest(rough, math.log(m) - 0.5, math.log(m) + 2, 1e-5)
    return -proven(width) if m < SHALLOW else -proven(lowest(proven, width - 0.2, width + 0.2, 1e-4))


def lowest(function: Callable[[float], float], low: float, high: float, near: float) -> float:
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": near})
    return float(found.x)


def lifted(strength: float, guess: float, proved: Callable[[float, float], Ball | None]) -> float:
    """A number just below the lowest energy, near the guess: where the margin, which falls, is just above 0."""
    here, there = guess, guess * (1 - 1e-5)
    first, second = (middle(proved(strength, at)) for at in (here, there))
    for _ in range(4):
        if first == second or abs(here - there) < NEAR * here:
            break
        here, there = there, there - second * (there - here) / (second - first)
        first, second = second, middle(proved(strength, there))
    top = min(there, strength)  # below the continuum
    spare = NEAR
    while not sure(proved(strength, top * (1 - spare))):
        spare *= 4
    return top * (1 - spare)


def middle(margin: Ball | None) -> float:
    return float(margin.mid()) if margin is not None else -1.0


def sure(margin: Ball | None) -> bool:
    return margin is not None and bool(margin > 0)


# ---- doubles: where to look -----------------------------------------------------------------------------------------


def log_well(z: Floats) -> Floats:
    return np.abs(np.expm1(z))


def half_well(z: Floats) -> Floats:
    return np.where(z < 0, -np.expm1(np.minimum(z, 0.0)), z)


def energy(width: float, well: Well) -> float:
    """The lowest energy of −ψ″ + well(width·ζ)/width, by differences: λ = 4/width³ in units of 4/width²."""
    step = 0.012 * (1 + width)
    left = 14.0 + min(160.0 * width**3, 300.0)  # shallow wells reach far
    right = min(14.0, 0.5 + math.log1p(200 * width) / width)
    zeta = step * np.arange(-round(left / step), round(right / step))  # 0, where the well has its edge, is a point
    diagonal = 2 / step**2 + well(floats(width * zeta)) / width
    lowest = eigvalsh_tridiagonal(diagonal, np.full(zeta.size - 1, -1 / step**2), select="i", select_range=(0, 0))
    return float(lowest[0])


# ---- balls: what is true --------------------------------------------------------------------------------------------


def certified(strength: float, guess: float) -> Ball | None:
    """If this is positive, the lowest energy of −4ψ″ + λ|e^z − 1|ψ is surely at least the guess. None: nobody knows.

    With t = √λ·e^{z/2}, J_ν(t) solves it for z < 0, ν² = λ − E, and K_{iω}(t) for z > 0, ω² = λ + E. If both are
    positive and J′/J ≥ K′/K at z = 0, they make a supersolution. J_ν > 0 below ν + 1.8557·ν^⅓ (Qu & Wong 1999) and
    below 2.4048, the first zero of J₀; K_{iω} has no zero for z > 0 if E is below the energy of λz on a half-line,
    2.338·(4λ²)^⅓.
    """
    if guess >= AIRY * (4 * strength**2) ** (1 / 3) or not before_zero(strength, guess):
        return None

    def margin() -> Ball:
        lam, level = arb(strength), arb(guess)
        t, order = acb(lam.sqrt()), acb(0, (lam + level).sqrt())
        slope = -(t.bessel_k(order - 1) / t.bessel_k(order) + order / t).real
        return left_slope(lam, level) - slope

    return known(margin, 3 * math.sqrt(strength))


def certified_half(strength: float, guess: float) -> Ball | None:
    """The same for λ(1 − e^z) below 0 and λz above, where Ai((z − E/λ)/h) solves it, h³ = 4/λ."""
    if guess >= AIRY * (4 * strength**2) ** (1 / 3) or not before_zero(strength, guess):
        return None

    def margin() -> Ball:
        lam, level = arb(strength), arb(guess)
        height = (4 / lam).root(3)
        value, slope, *_ = (-level / (lam * height)).airy()
        return left_slope(lam, level) * lam.sqrt() / 2 - slope / (value * height)  # dt/dz = t/2

    return known(margin, math.sqrt(strength))


def left_slope(lam: Ball, level: Ball) -> Ball:
    """J′_ν/J_ν at t = √λ, ν² = λ − E."""
    t, nu = acb(lam.sqrt()), acb((lam - level).sqrt())
    return (t.bessel_j(nu - 1) / t.bessel_j(nu) - nu / t).real


def before_zero(strength: float, guess: float) -> bool:
    """Is 0 < E < λ, and √λ surely below the first zero of J_ν?"""
    if not 0 < guess < strength:
        return False
    with precision(128):
        nu, root = (arb(strength) - arb(guess)).sqrt(), arb(strength).sqrt()
        return bool(root < nu + arb("1.8557") * nu ** (arb(1) / 3)) or bool(root < arb("2.4048"))


def known(margin: Callable[[], Ball], bits: float) -> Ball | None:
    """A ball of at least 30 digits; more bits until it has them."""
    prec = 192 + int(bits)
    while prec <= 1 << 17:
        with precision(prec):
            found = margin()
            if found.is_finite() and found.rad() < arb("1e-30"):
                return found
        prec *= 2
    return None
