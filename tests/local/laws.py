"""The exact law of a randomizer, from its definition alone: every sequence of draws is followed."""

from collections import defaultdict
from fractions import Fraction

import numpy as np

from sfumato.local import (
    HadamardResponse,
    LocalHashing,
    Odds,
    ProjectiveResponse,
    Response,
    SubsetSelection,
    UnaryEncoding,
)


class Undrawn(Exception):
    """A draw that the script does not contain yet."""


def law_of(answer):
    """{outcome: probability} of answer(below), with every draw below a bound equally likely."""
    found, waiting = defaultdict(Fraction), [((), Fraction(1))]
    while waiting:
        script, chance = waiting.pop()
        played = iter(script)

        def below(bound, played=played):
            for drawn in played:
                return drawn
            raise Undrawn(bound)

        try:
            found[answer(below)] += chance
        except Undrawn as more:
            bound = more.args[0]
            waiting += [((*script, u), chance / bound) for u in range(bound)]
    return dict(found)


def channel(randomizer):
    """The law of the report under every value."""
    return [law_of(lambda below, v=v: randomizer.answer(v, below)) for v in range(randomizer.k)]


THREE = Odds(3, 1)
SMALL = [
    Response.two_coins(),
    Response(5, Odds(7, 2)),
    Response(3, Odds(1, 1)),
    SubsetSelection(4, THREE, 2),
    SubsetSelection(5, Odds(3, 2), 2),
    ProjectiveResponse(7, THREE, 2, 3),
    ProjectiveResponse(5, Odds(5, 2), 3, 3),
    ProjectiveResponse(20, THREE, 4, 3),
    ProjectiveResponse(12, Odds(4, 1), 8, 3),
    ProjectiveResponse(10, Odds(9, 2), 9, 3),
    UnaryEncoding(4, THREE),
    HadamardResponse(4, Odds(5, 2)),
    HadamardResponse(3, Odds(2, 1)),
]

LARGE = [
    Response.two_coins(),
    Response.of(2, 0.3),
    Response.of(1000, 1.0),
    SubsetSelection.of(12, 1.0),
    SubsetSelection.of(50, 2.0),
    ProjectiveResponse.of(100, 1.0),
    ProjectiveResponse.of(1000, 2.0),
    UnaryEncoding.of(30, 1.0),
    LocalHashing.of(64, 1.0),
    LocalHashing.of(300, 3.0),
    HadamardResponse.of(100, 0.8),
]


def supports(randomizer, report):
    """Which values a report supports, by the oracle's own count of that one report."""
    return randomizer.support(randomizer.read_reports([report])) == 1


def total_variation(first, second):
    return sum(abs(first.get(y, 0) - second.get(y, 0)) for y in {*first, *second}) / 2


def shares_of(values, k):
    return np.bincount(values, minlength=k) / len(values)
