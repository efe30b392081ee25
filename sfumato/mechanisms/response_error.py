"""The error of counts from randomized response: how far the number of "yes" strays from its mean, at worst."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sfumato.loss.numeric import ULP, Floats, floats

MOST_TRIED = 2048  # people up to whom every case is tried
MOST_EPS = 700.0  # beyond it nobody lies: e^−700 of the answers are left out
SLACK = 1e-10  # relative: more than twenty roundings for each of MOST_TRIED coins
SLOPES = np.geomspace(1e-8, 64, 600)  # where a tail bound is tried: every slope gives a true one
PARTS = 64  # of the range of cases, beyond MOST_TRIED
SHEVTSOVA = 0.56


@dataclass(frozen=True)
class Tally:
    """X = Bin(m, p) + Bin(n − m, q): m of n people hold a value and say so with p, the others with q < p."""

    chances: tuple[float, float]  # p and q
    odds: tuple[float, float]  # p/(1 − p) and q/(1 − q), without cancellation
    people: int

    @staticmethod
    def of_response(eps: float, k: int, people: int) -> "Tally":
        """Randomized response: p = 1/(1 + (k−1)e^{−ε}) and q = e^{−ε}p."""
        small, large = math.exp(-min(eps, MOST_EPS)), math.exp(min(eps, MOST_EPS))
        chances = 1 / (1 + (k - 1) * small), small / (1 + (k - 1) * small)
        return Tally(chances, (large / (k - 1), 1 / (large + (k - 2))), people)

    @property
    def mirrored(self) -> bool:
        """Is 1 − q = p? Then m and n − m holders are mirror images."""
        return self.chances[0] + self.chances[1] == 1

    @property
    def doubt(self) -> float:
        """More than a mean, in floats, is off by."""
        return 64 * ULP * self.people

    def mean(self, m: float) -> float:
        p, q = self.chances
        return m * p + (self.people - m) * q

    def radius(self, miss: float) -> float:
        """A number T such that |X − E X| > T has at most this probability for every m.

        Up to MOST_TRIED people the least one, up to rounding, unless the probability there is within 1e-10 of the miss,
        relatively: all m are tried. Beyond, a bound.
        """
        return (self._tried(miss) if self.people <= MOST_TRIED else self._bounded(miss)) + 2 * self.doubt

    # ---- few people: every case ------------------------------------------------------------------------------------

    def _tried(self, miss: float) -> float:
        """The largest of the least radii."""
        found = -self.doubt
        for m in spread_out(self.people):
            if self.mirrored and 2 * m > self.people:
                continue
            held, others = binomial(m, self.odds[0]), binomial(self.people - m, self.odds[1])
            if self._beyond(held, others, m, found) > miss:
                found = self._least(np.convolve(held, others), m, miss)
        return max(found, 0.0)

    def _beyond(self, held: Floats, others: Floats, m: int, radius: float) -> float:
        """P(|X − E X| > radius), from the laws of the two parts; distances that differ by rounding are the same."""
        mean, n, reach = self.mean(m), self.people, radius + self.doubt
        if reach < 0:
            return 1.0
        above = np.concatenate([np.cumsum(others[::-1])[::-1], [0.0]])  # P(others ≥ j), j = 0, …, n − m + 1
        below = np.concatenate([[0.0], np.cumsum(others)])  # P(others ≤ j − 1)
        i = np.arange(m + 1)
        first, last = math.floor(mean + reach) + 1, math.ceil(mean - reach) - 1
        up = above[np.clip(first - i, 0, n - m + 1)]
        down = below[np.clip(last - i + 1, 0, n - m + 1)]
        return float(np.sum(held * (up + down))) * (1 + SLACK)

    def _least(self, law: Floats, m: int, miss: float) -> float:
        """The distance of the last value that must be inside."""
        distance = np.abs(np.arange(law.size) - self.mean(m))
        order = np.argsort(-distance, kind="stable")
        gone = np.cumsum(law[order]) * (1 + SLACK)
        return float(distance[order[min(int(np.count_nonzero(gone <= miss)), law.size - 1)]])

    # ---- many people: bounds ---------------------------------------------------------------------------------------

    def _bounded(self, miss: float) -> float:
        """For m in each of 64 ranges the smaller of two bounds, and the largest of these.

        Proof. With ψ_p(s) = log E e^{s(X−p)} of one coin, X exceeds its mean by x with probability at most
        e^{mψ_p + (n−m)ψ_q − sx} for every s > 0, alike below the mean, and mψ_p + (n−m)ψ_q is largest at an end of the
        range of m. And with σ² = Var X and β the sum of third absolute moments, X lies beyond T on both sides with
        probability at most 2Φ(−T/σ) + 2·0.56·β/σ³; σ² and β are largest, and least, at an end of the range.

        Theorem: exponential tail bounds for sums of coins [Chernoff 1952]
        Theorem: distribution functions of sums are within 0.56·β/σ³ of the normal one [Shevtsova 2010]
        """
        ends = np.linspace(0, self.people, PARTS + 1)
        rest = self.people - ends
        p, q = self.chances
        wrong, right = 1 / (1 + self.odds[0]), 1 / (1 + self.odds[1])  # 1 − p and 1 − q
        variance = ends * (p * wrong) + rest * (q * right)
        third = ends * (p * wrong * (p * p + wrong * wrong)) + rest * (q * right * (q * q + right * right))
        least, most = np.minimum(variance[1:], variance[:-1]), np.maximum(variance[1:], variance[:-1])
        off = SHEVTSOVA * np.maximum(third[1:], third[:-1]) / np.maximum(least, 1e-100) ** 1.5
        allowed = np.clip(miss / 2 - off * (1 + 1e-12), 0.0, 0.5)
        normal = np.where(allowed > 0, -ndtri(np.maximum(allowed, 1e-300)) * np.sqrt(most), np.inf)
        sides = [self._chernoff(ends, sign * SLOPES, math.log(2 / miss)) for sign in (1, -1)]
        return float(np.max(np.minimum(normal, np.maximum(*sides)))) * (1 + 1e-11)

    def _chernoff(self, ends: Floats, s: Floats, log_odds: float) -> Floats:
        """For each range of m the best bound on one side."""
        one, two = (log_moment(odds, s) for odds in self.odds)
        growth = np.outer(ends, one) + np.outer(self.people - ends, two) + 16 * ULP * self.people * np.abs(s)
        worst = np.maximum(np.maximum(growth[1:], growth[:-1]), 0.0)
        return floats(np.min((worst + log_odds) / np.abs(s), axis=1))


def log_moment(odds: float, s: Floats) -> Floats:
    """log E e^{s(X−p)} of a coin with p/(1 − p) = odds, by the rarer of its two sides."""
    p, other = odds / (1 + odds), 1 / (1 + odds)
    if p > other:
        p, s = other, -s
    return floats(np.log1p(p * np.expm1(s)) - s * p)


def binomial(n: int, odds: float) -> Floats:
    """P(i of n coins show heads), i = 0, …, n: from the likeliest i on by quotients of neighbours, then divided by Σ.

    Each is off by less than 10·n roundings, relatively, if the odds are off by 20; what underflows is below 1e-300.
    """
    top = min(n, int((n + 1) * (odds / (1 + odds))))
    i = np.arange(n, dtype=np.float64)
    rising = (n - i) / (i + 1) * odds  # P(i + 1)/P(i)
    found = np.ones(n + 1)
    found[top + 1 :] = np.cumprod(rising[top:])
    found[:top] = np.cumprod(1 / rising[:top][::-1])[::-1]
    return floats(found / found.sum())


def spread_out(n: int) -> Iterator[int]:
    """0, …, n, far ones first, so that the worst case is met early: multiples of 2^j that are none of 2^{j+1}."""
    yield 0
    step = 1 << n.bit_length()
    while step:
        yield from range(step, n + 1, 2 * step)
        step //= 2
