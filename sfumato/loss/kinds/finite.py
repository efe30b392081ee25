"""Mechanisms whose outcomes can be listed, each with its two probabilities."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, Outcomes, PrivacyLoss
from sfumato.loss.bound import Bound, widen
from sfumato.loss.numeric import ULP, Enclosure, Floats, enclose, floats, logsumexp
from sfumato.rounding import round_down, round_up

ROUNDING = 64 * ULP  # a sum this close to one is one; what is missing beyond it is an unlisted outcome
TINY = 1e-320  # what a product of numbers near the smallest float may be off by


@dataclass(frozen=True)
class FinitePairLoss(PrivacyLoss):
    """Outcome i has probability p[i] with the person and q[i] without: L = log p[i]/q[i].

    H_{e^ε} = Σ (p − e^ε q)₊ = P[L > ε] − e^ε Q[L > ε], read off running sums in falling order of the loss.
    Where the entries add up to 1 only up to rounding, they stand for themselves divided by their sum. A larger missing
    mass belongs to an unlisted outcome: it may give everything away, and is counted as leak above but not below.

    Theorem: the best test says "took part" where p > e^ε q [Neyman & Pearson 1933; Balle & Wang 2018, Thm 5]
    """

    p: tuple[float, ...]
    q: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", checks.distribution("p", self.p))
        object.__setattr__(self, "q", checks.distribution("q", self.q))
        if len(self.p) != len(self.q):
            raise InvalidParameter(
                "p and q must list the same outcomes in the same order.\n"
                f"  found:  {len(self.p)} probabilities in p and {len(self.q)} in q\n"
                "  do:     give an outcome that one of them cannot have the probability 0 there"
            )

    def forward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        pair = rank_outcomes(self.p, self.q)
        # An outcome within the margin of ε is counted: its share is within 2·margin·p of nothing, on either side.
        index = np.where(eps >= pair.top, 0, np.searchsorted(-pair.losses, pair.margin - eps, side="left"))
        half = np.exp(np.minimum(eps, pair.top) / 2)  # e^ε may overflow where e^ε q does not
        ahead, behind = pair.p_tail[index], half * pair.q_tail[index] * half
        error = (2 * pair.margin + 8 * ULP) * (ahead + behind) + TINY * (index > 0)
        gain = enclose(np.maximum(ahead - behind, 0.0), error)
        sure, leak = certain(self.p, self.q)
        return Enclosure((sure + gain.lower) * (1 - ULP), np.minimum((leak + gain.upper) * (1 + ULP), 1.0))

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.reverse.forward(eps, tolerance)

    def supremum(self) -> tuple[float, float]:
        pair = rank_outcomes(self.p, self.q)
        return pair.top, pair.bottom

    def leak(self) -> tuple[float, float]:
        return certain(self.p, self.q)[1], certain(self.q, self.p)[1]

    @property
    def sharp_ends(self) -> bool:
        """It is not known what an unlisted outcome gives away."""
        return normal(self.p).missing == normal(self.q).missing == 0

    def log_moment(self, s: float) -> Bound:
        """log Σ p e^{sL}, as log(1 + Σ [p(e^{sL} − 1) − s(p − q)]): all terms have one sign, so they do not cancel.

        An error r in log p or log q moves a term by (s+1)·p|e^{sL} − 1|·r or |s|·|p e^{sL} − q|·r.
        """
        if s > 0 and self.leak()[0] > 0:
            return Bound(math.inf if self.sharp_ends else 0.0, math.inf, "closed form")
        first, second = normal(self.p), normal(self.q)
        shared = (first.mass > 0) & (second.mass > 0)
        lost = -(1 + s) * math.fsum(first.mass[~shared]) + s * math.fsum(second.mass[~shared])
        losses, errors = log_ratio(first, second, shared)
        p = first.mass[shared]
        growth, apart = np.expm1(np.minimum(s * losses, 300)), differences(first, second, shared)
        excess = math.fsum(p * growth - s * apart) + lost
        if excess < -0.5 or np.any(s * losses > 300):  # far from 1 the sum itself is sharp: stay in logarithms
            value = logsumexp(np.log(p) + s * losses)
            error = abs(s) * float(np.max(errors, initial=0.0)) + ULP * (800 + 4 * abs(s) + len(p))
            return widen(value, error + 4 * ULP * abs(value) if len(p) else 0.0, "closed form")
        size = math.fsum(np.abs(p * growth)) + abs(s) * math.fsum(np.abs(apart)) + abs(lost)
        error = 4 * ULP * ((3 + abs(s)) * size + abs(s) * math.fsum(np.abs(p * growth + apart)))
        error += 2 * abs(s) * math.fsum(p * (1 + growth) * errors) + (1 + abs(s)) * (first.missing + second.missing)
        return Bound(outward(math.log1p(excess - error), -1), outward(math.log1p(excess + error), 1), "closed form")

    @cached_property
    def reverse(self) -> "FinitePairLoss":
        return FinitePairLoss(self.q, self.p, relation=self.relation.reversed)

    def outcomes(self) -> Outcomes | None:
        first, second = normal(self.p), normal(self.q)
        shared = (first.mass > 0) & (second.mass > 0)
        return Outcomes(log_ratio(first, second, shared)[0], first.mass[shared], rank_outcomes(self.p, self.q).margin)

    def atoms(self) -> tuple[float, float] | None:
        """The lattice of the smallest gap between losses, if all losses lie on it up to their own rounding."""
        rising, near = rank_outcomes(self.p, self.q).losses[::-1], 4 * rank_outcomes(self.p, self.q).margin
        apart = rising[np.diff(rising, prepend=-np.inf) > near]
        if len(apart) < 2:
            return (abs(float(apart[0])), 0.0) if len(apart) and abs(apart[0]) > near else None
        reach = float(apart[-1] - apart[0])
        step = reach / round(reach / float(np.min(np.diff(apart))))
        places = (rising - apart[0]) / step
        regular = np.all(np.abs(places - np.round(places)) * step <= near)
        return (step, float(apart[0])) if regular else None


class Ranked(NamedTuple):
    """Outcomes with a finite loss in falling order, and running sums of p and q from the top, starting with 0."""

    losses: Floats
    p_tail: Floats
    q_tail: Floats
    margin: float  # how far a computed loss can be from the true one
    top: float  # largest loss and largest −loss, rounded up, at least 0
    bottom: float


@lru_cache(maxsize=64)
def rank_outcomes(p: tuple[float, ...], q: tuple[float, ...]) -> Ranked:
    """The outcomes that both distributions have, sorted once per pair."""
    first, second = normal(p), normal(q)
    shared = (first.mass > 0) & (second.mass > 0)
    losses, errors = log_ratio(first, second, shared)
    order = np.argsort(-losses, kind="stable")
    p_tail, q_tail = (running_sums(law.mass[shared][order]) for law in (first, second))
    least = 4 * ULP if p != q else 0.0  # dividing by the sums moves every loss a little, even where p = q
    top, bottom = (float(np.max(side * losses + errors, initial=least)) for side in (1, -1))
    return Ranked(losses[order], p_tail, q_tail, float(np.max(errors, initial=4 * ULP)), top, bottom)


class Law(NamedTuple):
    """Probabilities as given, divided by their sum, the logarithm of that sum, and the mass of an unlisted outcome."""

    given: Floats
    mass: Floats
    log_sum: float
    missing: float


def normal(values: tuple[float, ...]) -> Law:
    """A sum that is 1 up to rounding is divided out; `fsum` rounds its distance from 1 only once."""
    given, more = floats(values), math.fsum((*values, -1.0))
    if more < -ROUNDING:
        return Law(given, given, 0.0, -more * (1 + ULP))
    return Law(given, given / (1 + more), math.log1p(more), 0.0)


@lru_cache(maxsize=64)
def certain(p: tuple[float, ...], q: tuple[float, ...]) -> tuple[float, float]:
    """P[L = ∞] from below and above: what is listed under P alone, of all that is listed, and what is missing."""
    listed = sum((Fraction(x) for x, y in zip(p, q, strict=True) if y == 0), Fraction(0))
    whole = sum(map(Fraction, p), Fraction(0))
    missing = 1 - whole if normal(p).missing else Fraction(0)
    share = listed if missing else listed / whole
    return round_down(share), min(1.0, round_up(share + missing))


def log_ratio(first: Law, second: Law, shared: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """log p/q and its error; near 1 from the difference, which a float holds exactly."""
    p, q, shift = first.given[shared], second.given[shared], first.log_sum - second.log_sum
    with np.errstate(over="ignore", under="ignore"):
        ratio = p / q
    plain = (ratio > 1e-300) & (ratio < np.inf)
    far = np.where(plain, np.log(np.where(plain, ratio, 1.0)), np.log(p) - np.log(q))
    error = 2 * ULP * (1 + np.abs(far)) + np.where(plain, 0.0, 3000 * ULP)
    near = np.abs(p - q) < q / 2
    far[near] = np.log1p((p - q)[near] / q[near])
    error[near] = 4 * ULP * np.abs(far[near])
    return far - shift, error + 4 * ULP * (abs(first.log_sum) + abs(second.log_sum)) * (shift != 0)


def differences(first: Law, second: Law, shared: npt.NDArray[np.bool_]) -> Floats:
    """p − q from what was given: a quotient by the sum would round away a small difference."""
    p, q, shift = first.given[shared], second.given[shared], first.log_sum - second.log_sum
    return floats((p - q + p * math.expm1(-shift)) * math.exp(-second.log_sum))


def running_sums(x: Floats) -> Floats:
    """0, x₀, x₀ + x₁, …, each to 2 ulps: what every addition rounds away is summed apart and put back."""
    sums = np.cumsum(x)
    before = np.concatenate([[0.0], sums[:-1]])
    grown = sums - before
    rounded = (before - (sums - grown)) + (x - grown)
    return np.concatenate([[0.0], sums + np.cumsum(rounded)])


def outward(value: float, sign: int) -> float:
    """A logarithm moved by its rounding error."""
    return value + sign * 4 * ULP * abs(value)
