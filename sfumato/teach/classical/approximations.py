"""Approximate accountants, which certify nothing: the central limit theorem and the plain Fourier accountant."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.errors import OutOfReach
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.compose.sums import Sum
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.loss.kinds.wrappers import OneWay
from sfumato.loss.numeric import Enclosure, Floats, erfcx, floats, ndtr
from sfumato.loss.views.profile import most_leak, top_of
from sfumato.loss.views.renyi_accountant import above_zero, renyi_accountant

POINTS = 2**17  # grid of the plain Fourier accountant
FLOOR = 1e-12  # below this δ the rounding error of the Fourier transform dominates the answer


@dataclass(frozen=True)
class Estimate:
    """A number without a guarantee; low and high are the error bars that its method states, `note` explains them."""

    value: float
    low: float
    high: float
    method: str
    note: str = ""

    def __str__(self) -> str:
        return f"≈ {self.value:.6g}"


def parts(loss: PrivacyLoss) -> tuple[tuple[int, PrivacyLoss], ...]:
    """The terms of a loss, each with its multiplicity."""
    if isinstance(loss, OneWay):
        return tuple((count, OneWay(part, relation=loss.relation)) for count, part in parts(loss.inner))
    return loss.terms if isinstance(loss, Sum) else ((1, loss),)


def central_limit(loss: PrivacyLoss, delta: float) -> Estimate:
    """ε(δ) of the Gaussian that a composition tends to: μ = 2·Σkl/√Σvar, with its Berry–Esseen error.

    kl, var and κ₃ = E|L − kl|³ are moments of each part's loss under P; a pair whose directions differ has two kl, and
    their sum takes the place of 2·kl. The value is an estimate: above the truth for Laplace, below it for DP-SGD.

    low and high: by Berry–Esseen |P[L > t] − Φ((m − t)/s)| ≤ γ = 0.56·Σκ₃/s³, m = Σkl, s² = Σvar. As δ(ε) is
    ∫_ε^∞ e^{ε−t} P[L > t] dt and the weights integrate to 1, δ(ε) is within γ of the same integral for N(m, s²). Where
    γ ≥ δ, high is infinite. (Thm 3.4 has γ(1 + e^ε) in place of γ and needs symmetric parts.) That much is proved; not
    certified are the moments, which come from a quadrature with a relative error of about 1e-6.

    Theorem: composed trade-off functions tend to that of a Gaussian, error 0.56·κ₃/s³ [Dong, Roth & Su 2022, Thm 3.4]
    Theorem: Berry–Esseen with constant 0.56 for parts of different laws [Shevtsova 2010]
    """
    goal = above_zero("delta", delta)
    needs_profile(loss)
    if most_leak(loss) > 0:
        raise OutOfReach("needs finite moments: this loss is infinite with a small probability")
    forth, back = total_moments(loss), total_moments(loss.reverse)
    found = []
    for mean, variance, third in [forth] if loss.relation.one_way else [forth, back]:
        s, gamma = math.sqrt(max(variance, 0.0)), 0.56 * third / variance**1.5 if variance > 0 else 0.0
        mu = (forth[0] + back[0]) / s if s else 0.0
        value = GaussianLoss(mu).epsilon(goal).upper
        found.append((value, normal_epsilon(mean, s, goal + gamma), normal_epsilon(mean, s, goal - gamma), mu, gamma))
    value, _, _, mu, gamma = max(found)
    low, high = max(f[1] for f in found), max(f[2] for f in found)
    note = f"estimate: μ = {mu:.4g}, δ within {gamma:.2g}, so ε in [{low:.3g}, {high:.3g}]"
    return Estimate(value, low, high, "central limit theorem", note)


def needs_profile(loss: PrivacyLoss) -> None:
    """Refuse losses that are known only by a Rényi curve: a bound on the profile has no moments."""
    if any(part.renyi_curve() for _, part in parts(loss)):
        raise OutOfReach("needs the profile itself: of a part only a Rényi curve is known")


def total_moments(loss: PrivacyLoss) -> tuple[float, float, float]:
    """Σkl, Σvar and Σκ₃ over the parts."""
    each = [(k, moments(part)) for k, part in parts(loss)]
    mean, variance, third = (math.fsum(k * found[i] for k, found in each) for i in range(3))
    return mean, variance, third


def moments(loss: PrivacyLoss) -> tuple[float, float, float]:
    """E[L], Var[L] and E|L − E[L]|³ under P, by quadrature of the profiles.

    For a smooth g:  E_P[g(L)] = g(0) + ∫₀^∞ (g″ + g′)(t)·δ(t) dt + ∫₀^∞ (g″ + g′)(−t)·e^{−t}·δ'(t) dt.

    Theorem: f-divergences are mixtures of hockey-stick divergences [Sason & Verdú 2016, Thm 11]
    """
    (t, ahead), (u, back) = quadrature(loss.forward, loss.supremum()[0]), quadrature(loss.backward, loss.supremum()[1])
    back = back * np.exp(-u)
    mean = float(ahead.sum() + back.sum())
    square = float((ahead * (2 + 2 * t)).sum() + (back * (2 - 2 * u)).sum())
    x, y = t - mean, -u - mean
    cube = float((ahead * (6 + 3 * x) * np.abs(x)).sum() + (back * (6 + 3 * y) * np.abs(y)).sum())
    return mean, square - mean * mean, cube + mean**3


def centre(curve: Enclosure) -> Floats:
    """The midpoint of the lower and the upper side."""
    return (curve.lower + curve.upper) / 2


def quadrature(curve: Callable[[Floats], Enclosure], top: float) -> tuple[Floats, Floats]:
    """Nodes on [0, top], and δ times quadrature weights; cells grow from 0, where a small loss has its mass."""
    end = min(top, 1.0)
    while end < top and end < 1e4 and float(curve(floats([end])).upper[0]) * end**3 > 1e-20:
        end = min(2 * end, top)
    while end > 1e-12 and float(curve(floats([end / 2])).upper[0]) <= 1e-25:
        end /= 2
    nodes, weights = np.polynomial.legendre.leggauss(4)
    edges = end * np.linspace(0.0, 1.0, 1025) ** 3
    width = np.diff(edges)[:, None]
    t = (edges[:-1, None] + width * (nodes + 1) / 2).ravel()
    return t, centre(curve(t)) * (width * weights / 2).ravel()


def normal_epsilon(mean: float, s: float, goal: float) -> float:
    """Least ε ≥ 0 with E[(1 − e^{ε−X})₊] ≤ goal for X ~ N(mean, s²).

    The expectation is Φ(a) − ½e^{−a²/2}·erfcx((s − a)/√2) with a = (mean − ε)/s.
    """
    if goal <= 0:
        return math.inf

    def excess(eps: float) -> float:
        a = floats((mean - eps) / s)
        return float(ndtr(a) - 0.5 * np.exp(-a * a / 2) * erfcx((s - a) / math.sqrt(2)))

    if s == 0 or excess(0.0) <= goal:
        return 0.0
    low, high = 0.0, mean + 40 * s
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= goal else (middle, high)
    return high


# ---- the plain Fourier accountant -----------------------------------------------------------------------------------


def fourier(loss: PrivacyLoss, delta: float) -> Estimate:
    """ε(δ) by a discrete Fourier transform of the privacy loss on a fixed window, as in the papers that introduced it.

    Each part's loss is put on a grid that keeps its profile at every grid point; characteristic functions multiply; the
    inverse transform is the law of the sum, and δ(ε) = Σ (1 − e^{ε−t})₊·p(t). Nothing is certified: mass outside the
    window wraps around, and the transform has an absolute rounding error of about 1e-16 per point, so that answers for
    δ below about 1e-12 are meaningless.

    Theorem: characteristic functions of privacy losses multiply [Zhu, Dong & Wang 2022; Koskela, Jälkö & Honkela 2020]
    """
    goal = above_zero("delta", delta)
    needs_profile(loss)
    found = []
    for pair in (loss,) if loss.relation.one_way or loss.reverse == loss else (loss, loss.reverse):
        reach = min(top_of(pair), renyi_accountant(pair, max(goal * 1e-6, 1e-300)).upper)
        if reach > 700:  # e^t overflows, or the moments are infinite
            raise OutOfReach(f"needs a window of losses below 700, found {reach:.3g}")
        found.append(epsilon_on_grid(pair, goal, max(reach * 1.01, 1e-9)))
    note = f"meaningless: δ below {FLOOR:g} is rounding" if goal < FLOOR else "estimate: nothing is certified"
    return Estimate(max(found), 0.0, math.inf, "plain Fourier transform", note)


def epsilon_on_grid(loss: PrivacyLoss, goal: float, reach: float) -> float:
    """The least ε with δ(ε) ≤ goal, on a grid over [−reach, reach]."""
    step = 2 * reach / POINTS
    t = step * np.concatenate([np.arange(POINTS // 2), np.arange(-(POINTS // 2), 0)])  # in the order of the transform
    total, certain = np.ones(POINTS // 2 + 1, dtype=np.complex128), 1.0
    for count, part in parts(loss):
        mass, leak = grid_masses(part, reach, step)
        total *= np.fft.rfft(mass) ** count
        certain *= (1 - leak) ** count
    law = np.fft.irfft(total, POINTS)[: POINTS // 2]  # losses above 0
    above = np.cumsum(law[::-1])[::-1]
    discounted = np.cumsum((law * np.exp(-t[: POINTS // 2]))[::-1])[::-1]
    profile = 1 - certain + above - np.exp(t[: POINTS // 2]) * discounted
    missed = np.flatnonzero(profile > goal)
    if not len(missed) or missed[-1] == len(profile) - 1:
        return math.inf if len(missed) else 0.0
    i = int(missed[-1])
    return float(t[i] + step * (profile[i] - goal) / (profile[i] - profile[i + 1]))


def grid_masses(loss: PrivacyLoss, reach: float, step: float) -> tuple[Floats, float]:
    """P's masses on the grid whose profile agrees with the loss at each grid point, and the mass beyond the grid.

    Q's mass at e^t is the change of slope of H there, and P's is e^t times that. Negative masses come from rounding and
    are kept: they cancel in sums, while clipping them would add up.
    """
    t = floats(step * np.arange(-(POINTS // 2), POINTS // 2 + 1))
    x, middle = np.exp(t), POINTS // 2
    ahead, back = centre(loss.forward(t[middle:])), centre(loss.backward(-t[:middle]))
    stick = np.concatenate([1 - x[:middle] + x[:middle] * back, ahead])
    slope = np.concatenate([[-1.0], np.diff(stick) / np.diff(x), [0.0]])
    mass = x * np.diff(slope)
    mass[-2] += mass[-1]  # the last point belongs to the next period
    return np.roll(mass[:-1], -middle), float(stick[-1])
