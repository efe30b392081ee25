"""Mechanisms whose outcomes can be listed, each with its two probabilities."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.base import TOLERANCE, PrivacyLoss
from sfumato.loss.bound import Bound, widened
from sfumato.loss.numeric import ULP, Enclosure, Floats, enclose, floats, logsumexp

ROUNDING = 64 * ULP  # a sum this close to one is one; what is missing beyond it is an outcome nobody listed


@dataclass(frozen=True)
class FinitePairLoss(PrivacyLoss):
    """Outcome i has probability p[i] with the person and q[i] without: L = log p[i]/q[i].

    H_{e^ε} = Σ (p − e^ε q)₊ = P[L > ε] − e^ε Q[L > ε], read off running sums in falling order of the loss.
    Where the sums differ from 1 by rounding, every entry is believed to that relative error only, and answers enclose
    all pairs within it. A larger missing mass belongs to an unlisted outcome: it is leak, counted above and not below.

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
        losses, p_tail, q_tail, margin = ranked(self.p, self.q)
        top = self.supremum()[0]
        # An outcome within the margin of ε is counted: its share is within 2·margin·p of nothing, on either side.
        index = np.where(eps >= top, 0, np.searchsorted(-losses, margin - eps, side="left"))
        half = np.exp(np.minimum(eps, top) / 2)  # e^ε may overflow where e^ε q does not
        ahead, behind = p_tail[index], half * q_tail[index] * half
        gain = enclose(np.maximum(ahead - behind, 0.0), (2 * margin + 4 * ULP) * (ahead + behind))
        sure, leak = certain(self.p, self.q)
        return Enclosure((sure + gain.lower) * (1 - ULP), np.minimum((leak + gain.upper) * (1 + ULP), 1.0))

    def backward(self, eps: Floats, tolerance: float = TOLERANCE) -> Enclosure:
        return self.reverse.forward(eps, tolerance)

    def supremum(self) -> tuple[float, float]:
        losses, _, _, margin = ranked(self.p, self.q)
        top, bottom = (float(losses[0]), -float(losses[-1])) if len(losses) else (0.0, 0.0)
        return (top + 2 * margin if top > 0 else 0.0), (bottom + 2 * margin if bottom > 0 else 0.0)

    def leak(self) -> tuple[float, float]:
        return certain(self.p, self.q)[1], certain(self.q, self.p)[1]

    def log_moment(self, s: float) -> Bound:
        """log Σ p e^{sL}, as log(1 + Σ [p(e^{sL} − 1) − s(p − q)]): all terms have one sign, so they do not cancel.

        An error r in log p or log q moves a term by (s+1)·p|e^{sL} − 1|·r or |s|·|p e^{sL} − q|·r.
        """
        if s > 0 and self.leak()[0] > 0:
            return Bound(math.inf, math.inf, "closed form")
        p, q = floats(self.p), floats(self.q)
        shared = (p > 0) & (q > 0)
        lost = -(1 + s) * math.fsum(p[~shared]) + s * math.fsum(q[~shared])
        p, q = p[shared], q[shared]
        losses, errors = log_ratio(p, q)
        (slip_p, missing_p), (slip_q, missing_q) = belief(self.p), belief(self.q)
        growth, apart = np.expm1(np.minimum(s * losses, 300)), p - q
        excess = math.fsum(p * growth - s * apart) + lost
        if excess < -0.5 or np.any(s * losses > 300):  # far from 1 the sum itself is sharp: stay in logarithms
            value = logsumexp(np.log(p) + s * losses)
            error = (1 + s) * slip_p + abs(s) * (slip_q + float(np.max(errors, initial=0.0))) + ULP * (800 + len(p))
            return widened(value, error + 4 * ULP * abs(value) if len(p) else 0.0, "closed form")
        size = math.fsum(np.abs(p * growth)) + abs(s) * math.fsum(np.abs(apart)) + abs(lost)
        error = (slip_p + slip_q) * ((1 + abs(s)) * size + abs(s) * math.fsum(np.abs(p * growth + apart)))
        error += 8 * ULP * size + 2 * abs(s) * math.fsum(p * (1 + growth) * errors)
        error += (1 + abs(s)) * (missing_p + missing_q)
        return Bound(outward(math.log1p(excess - error), -1), outward(math.log1p(excess + error), 1), "closed form")

    @property
    def reverse(self) -> "FinitePairLoss":
        return FinitePairLoss(self.q, self.p, relation=self.relation.reversed)

    def atoms(self) -> tuple[float, float] | None:
        """The lattice of the smallest gap between losses, if all losses lie on it up to their own rounding."""
        losses, _, _, margin = ranked(self.p, self.q)
        rising = losses[::-1]
        apart = rising[np.diff(rising, prepend=-np.inf) > 4 * margin]
        if len(apart) < 2:
            return (abs(float(apart[0])), 0.0) if len(apart) and abs(apart[0]) > margin else None
        reach = float(apart[-1] - apart[0])
        step = reach / round(reach / float(np.min(np.diff(apart))))
        places = (rising - apart[0]) / step
        regular = np.all(np.abs(places - np.round(places)) * step <= 4 * margin)
        return (step, float(apart[0])) if regular else None


class Ranked(NamedTuple):
    """Outcomes with a finite loss in falling order, and running sums of p and q from the top, starting with 0."""

    losses: Floats
    p_tail: Floats
    q_tail: Floats
    margin: float  # how far a computed loss can be from the true one


@lru_cache(maxsize=64)
def ranked(p: tuple[float, ...], q: tuple[float, ...]) -> Ranked:
    """The outcomes that both distributions have, sorted once per pair."""
    first, second = floats(p), floats(q)
    shared = (first > 0) & (second > 0)
    first, second = first[shared], second[shared]
    losses, errors = log_ratio(first, second)
    order = np.argsort(-losses, kind="stable")
    margin = float(np.max(errors, initial=4 * ULP)) + belief(p)[0] + belief(q)[0]
    return Ranked(losses[order], running_sums(first[order]), running_sums(second[order]), margin)


def log_ratio(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """log p/q and its error; near 1 from the difference, which a float holds exactly."""
    log_p, log_q = np.log(p), np.log(q)
    near = np.abs(p - q) < q / 2
    losses, errors = log_p - log_q, 4 * ULP * (1 + np.abs(log_p) + np.abs(log_q))
    losses[near] = np.log1p((p - q)[near] / q[near])
    errors[near] = 8 * ULP * np.abs(losses[near])
    return losses, errors


def running_sums(x: Floats) -> Floats:
    """0, x₀, x₀ + x₁, …, each to 2 ulps: what every addition rounds away is summed apart and put back."""
    sums = np.cumsum(x)
    before = np.concatenate([[0.0], sums[:-1]])
    grown = sums - before
    rounded = (before - (sums - grown)) + (x - grown)
    return np.concatenate([[0.0], sums + np.cumsum(rounded)])


def belief(values: tuple[float, ...]) -> tuple[float, float]:
    """Relative error of each entry, and the mass of the outcome nobody listed."""
    missing = 1 - math.fsum(values)
    return (4 * ULP, missing * (1 + 4 * ULP)) if missing > ROUNDING else (4 * ULP + abs(missing), 0.0)


def certain(p: tuple[float, ...], q: tuple[float, ...]) -> tuple[float, float]:
    """P[L = ∞] from below and above."""
    slip, missing = belief(p)
    listed = math.fsum(mass for mass, other in zip(p, q, strict=True) if other == 0)
    return listed * (1 - slip), min(1.0, listed * (1 + slip) + missing)


def outward(value: float, sign: int) -> float:
    """A logarithm moved by its rounding error."""
    return value + sign * 4 * ULP * abs(value)
