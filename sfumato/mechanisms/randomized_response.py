"""Randomized response: each person answers truthfully with a known probability."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.loss.kinds.coins import RandomizedResponseLoss
from sfumato.loss.numeric import ULP
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.choice.base import below_one
from sfumato.mechanisms.examples import INTEGERS, Example, Inputs, Neighbours
from sfumato.mechanisms.response_error import Tally
from sfumato.mechanisms.values import read_numbers
from sfumato.noise import Bernoulli, Uniform
from sfumato.noise.balls import Ball, ball, precision
from sfumato.noise.table import Integers
from sfumato.sensitivity import Relation, ReplaceOne

Responses = bool | int | NDArray[np.bool_] | Integers
MOST_KINDS = 10**9  # of answers
MOST_COUNTED = 10**7


@dataclass(frozen=True)
class Truth:
    """The probability 1/(1 + (k−1)e^{−ε}) of telling the truth, by balls."""

    eps: Fraction
    k: int

    def ball(self, prec: int) -> Ball:
        with precision(prec + 16):
            return 1 / (1 + (self.k - 1) * ball(-self.eps).exp())


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

    # ---- what the answers tell ------------------------------------------------------------------------------------

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
