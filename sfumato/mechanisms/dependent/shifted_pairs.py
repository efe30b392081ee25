"""The loss of one pair (Z, e^l·Z + u), bounded above and below by two finite pairs made from its cells.

Upper bound: the mass of a cell moves to the two ends of its loss range, and its masses under P and Q stay the same.
Lower bound: a cell is one outcome. Both bounds hold for every convex divergence: the profile at all ε and the Rényi
divergence of every order.

Theorem: moving mass to the two ends dominates [Doroshenko et al. 2022]
Theorem: merging outcomes is post-processing, so it is dominated [Dwork & Roth 2014, Prop. 2.1]
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from sfumato.loss.kinds.finite import running_sums
from sfumato.loss.numeric import TINY, ULP, Enclosure, Floats, floats, logsumexp
from sfumato.mechanisms.dependent.cells import Cells, Mask, Pair, cells
from sfumato.mechanisms.dependent.noise_family import Noise

ROUNDING = 64 * ULP
POWERS = (0.0, *np.geomspace(1, 1e5, 60).tolist())  # exponents k tried in the Markov bound of the tail


@dataclass(frozen=True, eq=False)
class Atoms:
    """Outcomes with their losses in decreasing order, their masses, and the error of ln p/q."""

    loss: Floats
    p: Floats
    q: Floats
    error: Floats
    p_tail: Floats
    q_tail: Floats

    @staticmethod
    def of(loss: Floats, p: Floats, q: Floats, error: Floats) -> "Atoms":
        order = np.argsort(-loss, kind="stable")
        loss, p, q, error = loss[order], p[order], q[order], error[order]
        return Atoms(loss, p, q, error, running_sums(p), running_sums(q))

    @cached_property
    def logs(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """ln p, ln q, ln |L|, ln((p + q)·min(|L|, 1)) and ln 6e: computed once for all orders."""
        size = np.abs(self.loss)
        with np.errstate(divide="ignore"):
            rows = (self.p, self.q, size, (self.p + self.q) * np.minimum(size, 1.0), 6 * self.error)
            log_p, log_q, log_size, log_near, log_error = (floats(np.log(row)) for row in rows)
        return log_p, log_q, log_size, log_near, log_error

    def profile(self, eps: Floats) -> tuple[Floats, Floats]:
        """Σ(p − e^ε q)₊ and its rounding error."""
        k = np.searchsorted(-self.loss, -eps, side="left")
        half = np.exp(np.minimum(eps, 1400.0) / 2)
        ahead, behind = self.p_tail[k], half * self.q_tail[k] * half
        return np.maximum(ahead - behind, 0.0), ROUNDING * (ahead + behind) + TINY * (k > 0)


class Direction(NamedTuple):
    """(P, Q), enclosed by two finite pairs.

    `leak` is the mass with unbounded loss, `top` the largest other loss, `spare` the mass of both laws on cells that
    became a single outcome: these contribute an error of at most (1 + s)·spare to a moment.
    """

    upper: Atoms
    lower: Atoms
    leak: float
    spare: float
    top: float
    tail: "Tail | None"

    def profile(self, eps: Floats) -> Enclosure:
        high, error = self.upper.profile(eps)
        low, slip = self.lower.profile(eps)
        return Enclosure(np.maximum(low - slip, 0.0), np.minimum(high + error + self.leak, 1.0))

    def log_moment(self, s: float) -> tuple[float, float]:
        """Lower and upper bound of ln E_P[e^{sL}], s > −1."""
        if s == 0:
            return 0.0, 0.0
        if s < 0:
            low, high = (
                excess(self.upper, s, -1) - self.leak - 2 * self.spare,
                excess(self.lower, s, 1) + 2 * self.spare,
            )
            return (math.log1p(low) if low > -1 else -math.inf), math.log1p(min(high, 0.0))
        far = -math.inf if self.leak == 0 else math.inf if self.tail is None else self.tail.log_moment(s)
        far = np.logaddexp(far, math.log((1 + s) * self.spare))
        most = float(np.logaddexp(0.0, np.logaddexp(log_excess(self.upper, s, 1), far)))
        return float(np.logaddexp(0.0, log_excess(self.lower, s, -1))), most * (1 + ROUNDING)

    def slope_beyond(self, order: float) -> float:
        """ρ with D_a ≤ ρa for all a ≥ order: (ln 2 + max(s·top, bound of the tail))/(s(s + 1))."""
        s = order - 1
        inside = (math.log(2) + s * self.top) / (s * order)
        if self.leak == 0:
            return inside
        return math.inf if self.tail is None else max(inside, self.tail.slope_beyond(s) + math.log(2) / (s * order))


class Tail(NamedTuple):
    """Moment bounds for log-normal tails, of the wider law against the narrower one.

    For |z| ≥ end, L = ln q/p ≤ slope·η − l with η = l − ln(1 − u/end), and slope ≤ a + b·ln|z|. So
    E_Q[e^{sL}; |z| > end] = E_P[e^{(s+1)L}; …] ≤ e^{(s+1)(aη − l)}·E[|Z|^c; |Z| > end], c = (s + 1)bη, and
    E[|Z|^c; |Z| > end] ≤ end^{−k}·E|Z|^{c+k} for every k ≥ 0.

    Theorem: log-normal tails cost l²/2σ² in the limit of large orders [docs/theorems/dilation.md, Lemma 4]
    """

    noise: Noise
    dilation: float
    stretch: float  # η
    end: float

    def log_moment(self, s: float) -> float:
        """An upper bound of ln E_Q[e^{sL}; |z| > end]."""
        a, b = self.noise.growth(self.end) or (math.inf, math.inf)
        c = (s + 1) * b * self.stretch
        best = min(self.noise.log_power(c + k) - k * math.log(self.end) for k in POWERS)
        return float((s + 1) * (a * self.stretch - self.dilation) + best + 1e-9)

    def slope_beyond(self, s: float) -> float:
        """An upper bound of log_moment(x)/(x(x + 1)) for all x ≥ s."""
        a, b = self.noise.growth(self.end) or (math.inf, math.inf)
        limit = (b * self.stretch) ** 2 * self.noise.power_limit((s + 1) * b * self.stretch)
        return float((1 + 1 / s) * max(limit, 0.0) + max(a * self.stretch - self.dilation, 0.0) / s + 1e-9)


def single_outcome(found: Cells) -> Mask:
    """Mask of cells that become one outcome: the unbounded ones, and those whose masses underflow or are imprecise."""
    single: Mask = (found.p < 1e-290) | (found.q < 1e-290) | (found.error > 1e-3)
    single[0] = single[-1] = True
    return single


def upper_atoms(found: Cells) -> Atoms:
    """Each cell as two outcomes at the ends of its loss range; P is rounded up, Q down, and the range widened for it.

    Scaling p by (1 + e) and q by (1 − e), e the error of both masses, moves ln p/q by at most 5e. A single-outcome cell
    stands at the upper end: p − e^ε q ≤ p(1 − e^{ε − high}) there. Its q is capped by the mass of the cell: where p
    underflows, TINY·e^{−high} may be any number.
    """
    e, single = np.minimum(found.error, 1.0), single_outcome(found)
    low, high = found.low, np.where(single, found.high, found.high + 5 * e)
    most, least = np.where(single, np.maximum(found.p * (1 + e), TINY), found.p * (1 + e)), found.q * (1 - e)
    bounded, two = np.isfinite(high), ~single
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        x = np.clip(np.log(most) - np.log(least), low, high)
        share = np.expm1(x - low) / np.maximum(np.expm1(high - low), TINY)
        p_high = np.where(single, most, most * share * np.exp(high - x))
        q_high = np.where(single, np.minimum(most * np.exp(-high), found.q * (1 + e)), least * share)
        p_low, q_low = most * (1 - share) * np.exp(low - x), least * (1 - share)
    return Atoms.of(
        np.concatenate([high[bounded], low[two]]),
        np.concatenate([p_high[bounded], p_low[two]]) * (1 + ROUNDING),
        np.concatenate([q_high[bounded], q_low[two]]) * (1 - ROUNDING),
        np.concatenate([np.where(single, 0.0, e)[bounded], e[two]]) + ROUNDING,
    )


def lower_atoms(found: Cells) -> Atoms:
    """Each cell as one outcome; single-outcome cells are left out, which only lowers the bound."""
    kept = ~single_outcome(found)
    e = found.error[kept]
    p, q = found.p[kept] * (1 - e), found.q[kept] * (1 + e)
    return Atoms.of(np.log(p / q), p * (1 - ROUNDING), q * (1 + ROUNDING), e + ROUNDING)


def direction(found: Cells, tail: Tail | None) -> Direction:
    """The ordered pair (found.p, found.q)."""
    leak = float(found.p[0] * np.isinf(found.high[0]) + found.p[-1] * np.isinf(found.high[-1]))
    upper = upper_atoms(found)
    spare = float(((found.p + found.q) * (1 + np.minimum(found.error, 1.0)))[single_outcome(found)].sum()) + TINY
    return Direction(upper, lower_atoms(found), leak, spare, float(upper.loss[0]), tail)


@lru_cache(maxsize=512)
def directions(noise: Noise, shift: float, dilation: float, grain: float = 1.0) -> tuple[Direction, Direction]:
    """(P, Q) and (Q, P), P the law of Z and Q that of e^l·Z + u."""
    ahead = cells(noise, shift, dilation, grain)
    back = Cells(ahead.q, ahead.p, ahead.error, -ahead.high, -ahead.low, ahead.end)
    tail = None
    if noise.growth(ahead.end) is not None:
        stretch = Pair(noise, shift, dilation).stretch(ahead.end)
        tail = Tail(noise, dilation, stretch, ahead.end)
    return direction(ahead, None), direction(back, tail)


# ---- moments ---------------------------------------------------------------------------------------------------------
# E_P[e^{sL}] − 1 = Σ q·f(p/q), f(x) = x^{1+s} − (1 + s)x + s: all terms have one sign, so nothing cancels. In terms of
# P a term is p·F(L), F(L) = e^{sL} − 1 − s(1 − e^{−L}), with F(0) = F′(0) = 0 and F″ = s²e^{sL} + se^{−L}. The chord of
# f is αx + β with α between values of f′ = (1 + s)(x^s − 1) and β between values of f − xf′ = s(1 − x^{1+s}). So errors
# e of the masses move a term by about e·[(1 + s)p|e^{sL} − 1| + s|p·e^{sL} − q|] at most; the code adds six times that.


def term_of_p(s: float, L: Floats) -> Floats:
    """F(L) for L ≥ 0 and s < 0, in two forms: one without cancellation for s near 0, one for s near −1."""
    if s > -0.5:
        return np.expm1(s * L) + s * np.expm1(-L)
    return np.exp(-L) * np.expm1(np.minimum((1 + s) * L, 700.0)) + (1 + s) * np.expm1(-L)  # beyond, L > 1400: 0


def term_of_q(s: float, L: Floats) -> Floats:
    """f(e^L) for L ≤ 0, in two forms for the same reason."""
    if s > -0.5:
        return np.exp(L) * np.expm1(np.minimum(s * L, 700.0)) - s * np.expm1(L)
    return np.expm1((1 + s) * L) - (1 + s) * np.expm1(L)


def log_excess(atoms: Atoms, s: float, side: int) -> float:
    """ln(E_P[e^{sL}] − 1), s > 0, rounded up (side = 1) or down (−1)."""
    L, size = atoms.loss, np.abs(atoms.loss)
    log_p, log_q, log_size, log_near, log_error = atoms.logs
    large, falling = s * L > 30, np.minimum(L, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        growth = np.expm1(np.minimum(s * L, 30.0))
        right = np.where(large, s * L, np.log(np.maximum(growth + s * np.expm1(-L), 0.0)))
        left = np.log(np.maximum(term_of_q(s, falling), 0.0))
        series = math.log(s * (s + 1) / 2) + 2 * log_size + side * max(s, 1.0) * size
        terms = np.where(L > 0, log_p + right, log_q + left)
        value = logsumexp(np.where(size * (1 + s) < 1e-2, log_p + series, terms))
        grown = log_p + np.where(large, s * L, np.log(np.abs(growth)))
        moved = np.logaddexp(math.log1p(2 * s) + grown, math.log(s) + log_near)
        slip = logsumexp(moved + log_error)
    if side > 0:
        return float(np.logaddexp(value, slip)) + 1e-10
    return value - 1e-10 + math.log1p(-math.exp(slip - value)) if slip < value - 1 else -math.inf


def excess(atoms: Atoms, s: float, side: int) -> float:
    """E_P[e^{sL}] − 1, −1 < s < 0, rounded up (side = 1) or down (−1) by its error."""
    L, rising, falling = atoms.loss, np.maximum(atoms.loss, 0.0), np.minimum(atoms.loss, 0.0)
    right, left = atoms.p * term_of_p(s, rising), atoms.q * term_of_q(s, falling)
    value = float(np.where(L > 0, right, left).sum())
    slip = 6 * float((atoms.error * (atoms.p + atoms.q) * np.minimum(np.abs(L), 1.0)).sum()) * 2 * abs(s)
    return value + side * (slip + 1e-10 * abs(value) + 1e-18)
