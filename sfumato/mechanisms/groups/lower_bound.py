"""A certified lower bound on the privacy loss of every mechanism with relative error r.

Psi(m) is the least Fisher information of a density q of z on the line with E|e^z − 1| ≤ m. By duality it is the largest
E(λ) − λm, where E(λ) is the lowest energy of −4ψ″ + λ|e^z − 1|ψ. So every λ and every number below E(λ) give a bound.
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

LEAST = 0.01  # relative errors from here on are solved directly; smaller ones by scaling another well
SHALLOW = 0.6  # from here on the ground state is so wide that finite differences are inaccurate
NEAR = 1e-10  # relative distance of the certified number below the energy
AIRY = 2.3381  # just below the first zero of Ai(−x)
Well = Callable[[Floats], Floats]


@lru_cache(maxsize=256)
def psi(relative_error: float) -> Bound:
    """Psi(r), certified from below; the upper side is only what Gaussian noise on the logarithm attains.

    float() is the lower side, the bound that no mechanism beats.

    Theorem: limsup x²·v(x) ≥ Psi(r)/2 for every mechanism with E|x̂ − x| ≤ r·x [docs/theorems/groups.md, Theorem 5]
    Theorem: a positive supersolution bounds the lowest energy from below [Barta 1937; Allegretto 1974]
    """
    r = checks.number("relative_error", relative_error, 1e-12, 1 - 1e-6, allowed="a number between 0 and 1")
    lower = dual_bound(r, log_well, energy_margin) if r >= LEAST else scaled_psi() * (LEAST / r) ** 2 * (1 - 1e-12)
    s = math.sqrt(2) * float(arb(r).erfinv())
    return Bound(lower, max(lower, (1 + 1e-12) / s**2), "ground state of a well", "lower")


@lru_cache(maxsize=1)
def scaled_psi() -> float:
    """The dual bound for the well w(z) = 1 − e^z below 0 and z above, at m = 0.01.

    As w ≤ |e^z − 1|, it is less than Psi. As w(az) ≤ a·w(z) for a ≥ 1, a density for m/a stretched by a is one for m,
    so m² times the bound is non-increasing in m.
    """
    return dual_bound(LEAST, half_well, energy_margin_half)


def dual_bound(m: float, well: Well, proved: Callable[[float, float], Ball | None]) -> float:
    """The largest E(λ) − λm, rounded down: λ in doubles, its energy in ball arithmetic; both for shallow wells."""

    def rough(log_width: float) -> float:
        width = math.exp(log_width)
        return -(4 / width**2) * (energy(width, well) - m / width)

    def proven(log_width: float) -> float:
        width = math.exp(log_width)
        strength = 4 / width**3
        return strength * m * (1 + 1e-15) - certified_energy(strength, 4 / width**2 * energy(width, well), proved)

    width = minimise(rough, math.log(m) - 0.5, math.log(m) + 2, 1e-5)
    return -proven(width) if m < SHALLOW else -proven(minimise(proven, width - 0.2, width + 0.2, 1e-4))


def minimise(function: Callable[[float], float], low: float, high: float, near: float) -> float:
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": near})
    return float(found.x)


def certified_energy(strength: float, guess: float, proved: Callable[[float, float], Ball | None]) -> float:
    """A number just below the lowest energy, near the guess: the decreasing margin is just above 0 there."""
    here, there = guess, guess * (1 - 1e-5)
    first, second = (midpoint(proved(strength, at)) for at in (here, there))
    for _ in range(4):
        if first == second or abs(here - there) < NEAR * here:
            break
        here, there = there, there - second * (there - here) / (second - first)
        first, second = second, midpoint(proved(strength, there))
    top = min(there, strength)  # below the continuum
    spare = NEAR
    while not is_positive(proved(strength, top * (1 - spare))):
        spare *= 4
    return top * (1 - spare)


def midpoint(margin: Ball | None) -> float:
    return float(margin.mid()) if margin is not None else -1.0


def is_positive(margin: Ball | None) -> bool:
    return margin is not None and bool(margin > 0)


# ---- approximation in doubles ----------------------------------------------------------------------------------------


def log_well(z: Floats) -> Floats:
    return np.abs(np.expm1(z))


def half_well(z: Floats) -> Floats:
    return np.where(z < 0, -np.expm1(np.minimum(z, 0.0)), z)


def energy(width: float, well: Well) -> float:
    """The lowest energy of −ψ″ + well(width·ζ)/width, by finite differences: λ = 4/width³, in units of 4/width²."""
    step = 0.012 * (1 + width)
    left = 14.0 + min(160.0 * width**3, 300.0)  # ground states of shallow wells are wide
    right = min(14.0, 0.5 + math.log1p(200 * width) / width)
    zeta = step * np.arange(-round(left / step), round(right / step))  # contains 0, where the well has its edge
    diagonal = 2 / step**2 + well(floats(width * zeta)) / width
    lowest = eigvalsh_tridiagonal(diagonal, np.full(zeta.size - 1, -1 / step**2), select="i", select_range=(0, 0))
    return float(lowest[0])


# ---- certification in ball arithmetic --------------------------------------------------------------------------------


def energy_margin(strength: float, guess: float) -> Ball | None:
    """If positive, the lowest energy of −4ψ″ + λ|e^z − 1|ψ is at least the guess; None if this cannot be decided.

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

    return precise_ball(margin, 3 * math.sqrt(strength))


def energy_margin_half(strength: float, guess: float) -> Ball | None:
    """The energy margin for λ(1 − e^z) below 0 and λz above, where Ai((z − E/λ)/h), h³ = 4/λ, is a solution."""
    if guess >= AIRY * (4 * strength**2) ** (1 / 3) or not before_zero(strength, guess):
        return None

    def margin() -> Ball:
        lam, level = arb(strength), arb(guess)
        height = (4 / lam).root(3)
        value, slope, *_ = (-level / (lam * height)).airy()
        return left_slope(lam, level) * lam.sqrt() / 2 - slope / (value * height)  # dt/dz = t/2

    return precise_ball(margin, math.sqrt(strength))


def left_slope(lam: Ball, level: Ball) -> Ball:
    """J′_ν/J_ν at t = √λ, ν² = λ − E."""
    t, nu = acb(lam.sqrt()), acb((lam - level).sqrt())
    return (t.bessel_j(nu - 1) / t.bessel_j(nu) - nu / t).real


def before_zero(strength: float, guess: float) -> bool:
    """Whether 0 < E < λ and √λ is certainly below the first zero of J_ν."""
    if not 0 < guess < strength:
        return False
    with precision(128):
        nu, root = (arb(strength) - arb(guess)).sqrt(), arb(strength).sqrt()
        return bool(root < nu + arb("1.8557") * nu ** (arb(1) / 3)) or bool(root < arb("2.4048"))


def precise_ball(margin: Callable[[], Ball], bits: float) -> Ball | None:
    """The margin with a radius below 1e-30, at increasing precision; None if no precision is enough."""
    prec = 192 + int(bits)
    while prec <= 1 << 17:
        with precision(prec):
            found = margin()
            if found.is_finite() and found.rad() < arb("1e-30"):
                return found
        prec *= 2
    return None
