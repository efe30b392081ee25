"""Randomized response: each person answers truthfully with a known probability; and the error of counts from it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.coins import RandomizedResponseLoss
from sfumato.loss.numeric import ULP, Floats, floats
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import below_one
from sfumato.mechanisms.examples import INTEGERS, Example, Inputs, Neighbours
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.noise import Bernoulli, Uniform
from sfumato.noise.balls import Ball, ball, precision
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import Relation, ReplaceOne

MOST_TRIED = 2048  # people up to whom every case is tried
MOST_EPS = 700.0  # beyond it nobody lies: e^−700 of the answers are left out
SLACK = 1e-10  # relative: more than twenty roundings for each of MOST_TRIED coins
SLOPES = np.geomspace(1e-8, 64, 600)  # where a tail bound is tried: every slope gives a true one
PARTS = 64  # of the range of cases, beyond MOST_TRIED
SHEVTSOVA = 0.56
Responses = bool | int | NDArray[np.bool_] | Integers
MOST_KINDS = 10**9  # of answers
MOST_COUNTED = 10**7


@dataclass(frozen=True)
class RandomizedResponse(Mechanism[ArrayLike, Responses]):
    """The value itself with probability e^ε/(e^ε + k − 1), else one of the k − 1 others, all equally likely; exactly.

    Values are 0, …, k − 1, one or an array of them (bool for k = 2), each answered independently: one person's own.
    Private values are never refused: those outside are moved to the nearest. No curator needs to be trusted, as each
    person can answer on a device of their own.

    Theorem: randomized response is ε-DP [Warner 1965]
    Theorem: k-ary randomized response, and what it costs [Kairouz, Oh & Viswanath 2016]

    >>> RandomizedResponse(eps=50.0).release([True, False, True]).tolist()
    [True, False, True]
    """

    eps: float
    k: int = 2
    use = "if nobody is to be trusted: everybody answers on a device of their own"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", checks.non_negative("eps", self.eps))
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, MOST_KINDS))

    @cached_property
    def honest(self) -> Bernoulli:
        """The coin that says whether to tell the truth."""
        return Bernoulli(Truth(Fraction(self.eps), self.k), source=self.source)

    def release(self, value: ArrayLike) -> Responses:
        """The answer to each value: bool for bools, else integers."""
        if self.k == 2 and (bits := as_bits(value)) is not None:
            flipped: NDArray[np.bool_] = bits ^ ~self.honest.draw(bits.size).reshape(bits.shape)
            return flipped if flipped.ndim else bool(flipped)
        whole = read_numbers(value)
        if whole.dtype.kind == "f" and whole.size:
            raise InvalidParameter(
                f"values must be whole numbers from 0 to {self.k - 1}.\n  found:  floats\n"
                "  do:     number the possible answers and give the numbers"
            )
        inside = np.clip(whole, 0, self.k - 1).astype(np.int64, copy=False)
        answers = self._answer(inside.reshape(-1)).reshape(whole.shape)
        return answers if answers.ndim else int(answers)

    def _answer(self, values: Integers) -> Integers:
        """v if honest, else v + 1 + U mod k with U uniform below k − 1. All of it is drawn for every value."""
        honest = self.honest.draw(values.size)
        other = values + 1 + Uniform(self.k - 1, self.source).draw(values.size)
        other -= self.k * (other >= self.k)
        answers: Integers = np.where(honest, values, other)
        return answers

    def loss(self, relation: Relation = ReplaceOne) -> RandomizedResponseLoss:
        """The loss of one person's answer.

        Neighbours differ in one person's value. Whether somebody answers at all is not protected; where those who stay
        away answer as if they had some fixed value, the same loss is about `AddRemove`.
        """
        return RandomizedResponseLoss(self.eps, self.k, relation=relation)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        bits = (*INTEGERS.extremes, [True, False], np.array([True]), np.zeros((2, 0), bool))
        yes_no = (Neighbours(False, True), Neighbours(0, 1), Neighbours([False], [True]))
        of_five = (Neighbours(4, 2), Neighbours(0, 1), Neighbours([0], [3]))
        return (
            Example(cls(1.0), yes_no, Inputs("one of k answers", bits), rows=True, step=Fraction(1)),
            Example(cls(0.5, 5), of_five, Inputs("one of k answers", INTEGERS.extremes), rows=True, step=Fraction(1)),
        )

    # ---- estimates from the answers ---------------------------------------------------------------------------------

    @property
    def truth(self) -> float:
        """The probability of telling the truth."""
        return 1 / (1 + (self.k - 1) * math.exp(-self.eps))

    @property
    def lie(self) -> float:
        """The probability of each other answer."""
        return math.exp(-self.eps) * self.truth

    def estimate(self, answers: ArrayLike) -> NDArray[np.float64]:
        """How many people have each of the values 0, …, k − 1, without bias: (count − n·lie)/(truth − lie).

        Estimates may be negative or exceed n; they add up to n. Theirs is the error that `error(…, people=n)` bounds.
        """
        checks.whole("k, where all answers are counted,", self.k, 2, MOST_COUNTED)
        found = np.asarray(read_numbers(answers))
        if found.dtype.kind == "f" or found.ndim != 1 or np.any((found < 0) | (found >= self.k)):
            raise InvalidParameter(
                f"answers must be a row of whole numbers from 0 to {self.k - 1}.\n"
                "  found:  other numbers, or another shape\n  do:     give what release returned"
            )
        if self.eps == 0:
            raise InvalidParameter("answers with eps = 0 tell nothing.\n  found:  eps = 0\n  do:     ask with eps > 0")
        counts = np.bincount(found.astype(np.int64), minlength=self.k)
        spread = -math.expm1(-self.eps) * self.truth
        return np.asarray((counts - found.size * self.lie) / spread, np.float64)

    def error(self, confidence: float = 0.95, *, people: int) -> float:
        """With at least this probability an estimated count (of one value) is off by at most this, whatever is true.

        If m of n people hold the value, the number who say so is Bin(m, truth) + Bin(n − m, lie), and an estimate is
        off by its distance from the mean, over truth − lie. Up to 2048 people this is the least such number, up to
        rounding: all m are tried, with sums of positive numbers. Beyond, it is a bound for all m (`Tally`), which for
        ε = 1, k = 2 and 95 % is above the least by about a tenth at 5,000 people and a hundredth at a million.
        """
        n, miss = checks.whole("people", people, 0), 1 - below_one("confidence", confidence)
        if not n:
            return 0.0
        if self.eps == 0:
            return math.inf
        return (
            Tally.of_response(self.eps, self.k, n).radius(miss) / (-math.expm1(-self.eps) * self.truth) * (1 + 64 * ULP)
        )


def as_bits(value: ArrayLike) -> NDArray[np.bool_] | None:
    """Bools as an array of them; None for everything else. Types are public."""
    if isinstance(value, np.ndarray | np.generic | bool):
        found = np.asarray(value)
        return found if found.dtype == np.bool_ else None
    if isinstance(value, list | tuple) and value and all(type(x) is bool or isinstance(x, np.bool_) for x in value):
        return np.array(value, np.bool_)
    return None


# ---- the error of estimated counts ----------------------------------------------------------------------------------


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
        return (
            self._largest_error_tried(miss) if self.people <= MOST_TRIED else self._largest_error_bounded(miss)
        ) + 2 * self.doubt

    # ---- few people: every case ------------------------------------------------------------------------------------

    def _largest_error_tried(self, miss: float) -> float:
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

    def _largest_error_bounded(self, miss: float) -> float:
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


@dataclass(frozen=True)
class Truth:
    """The probability 1/(1 + (k−1)e^{−ε}) of telling the truth, by balls."""

    eps: Fraction
    k: int

    def ball(self, prec: int) -> Ball:
        with precision(prec + 16):
            return 1 / (1 + (self.k - 1) * ball(-self.eps).exp())
