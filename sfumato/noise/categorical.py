"""One of finitely many outcomes, with weights that are rational or known by balls."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb

from sfumato.errors import InvalidParameter
from sfumato.noise.balls import Ball, Real, ball, below, ceiling, enclosure, floor, precision, rational
from sfumato.noise.law import Law
from sfumato.noise.monotone import PREC
from sfumato.noise.table import Table, Words

MOST_WEIGHT = Fraction(10**300)
ENOUGH = 1 << 20


@dataclass(frozen=True, init=False)
class Categorical(Law):
    """P(i) = wᵢ/Σw, i = 0, 1, …  Only ratios of weights matter.

    Theorem 1 with bins of one integer and no tails. Integer weights below 2⁴⁴ in all need no balls: C·w is an integer.
    """

    weights: tuple[Fraction | Real, ...]

    def __init__(self, weights: Sequence[Fraction | float | Real]) -> None:
        found = tuple(
            w if isinstance(w, Real) else rational(f"weights[{i}]", w, 0, MOST_WEIGHT) for i, w in enumerate(weights)
        )
        with precision(PREC):
            if not sum((enclosure(w, PREC) for w in found), arb(0)) > 0:
                raise InvalidParameter(
                    f"weights must not all be 0.\n  found:  {len(found)} weights, whose sum is not surely positive\n"
                    "  do:     give at least one positive weight"
                )
        object.__setattr__(self, "weights", found)

    def table(self, words: Words) -> Table:
        return _table(self, words)


@lru_cache(maxsize=64)
def _table(law: Categorical, words: Words) -> Table:
    C, low, rest = cut(law, words.word)
    return Table(words, 0, range(len(low)), low, rest, (), partial(_kept, law, C, low, rest))


def cut(law: Categorical, bits: int) -> tuple[Fraction, list[int], list[int]]:
    """C and integers low ≤ C·w ≤ low + rest, whose sum is below 2^bits."""
    with precision(PREC):
        balls = [enclosure(w, PREC) for w in law.weights]
        C = below(((1 << bits) - 2 * len(balls) - 1) / sum(balls, arb(0)))
        C = Fraction(int(C)) if C >= ENOUGH else C  # whole: then whole weights have no rest
        low, high = [], []
        for w, enclosed in zip(law.weights, balls, strict=True):
            scaled = ball(C) * enclosed
            low.append(max(0, floor(scaled)) if isinstance(w, Real) else int(C * w))
            high.append(ceiling(scaled) if isinstance(w, Real) else -int(-C * w // 1))
    return C, low, [h - s for s, h in zip(low, high, strict=True)]


def _kept(law: Categorical, C: Fraction, low: list[int], rest: list[int], q: int, k: int, prec: int) -> Ball:
    """(C·wₖ − low)/rest."""
    return (ball(C) * enclosure(law.weights[k], prec + 64) - low[q]) / rest[q]
