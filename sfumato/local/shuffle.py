"""Shuffling: reports in random order hide each person among the others."""

import json
import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.odds import MOST_EPS
from sfumato.local.randomizer import Randomizer
from sfumato.local.response import Response
from sfumato.loss.kinds.shuffled import MOST_PEOPLE, ShuffledLoss
from sfumato.sensitivity import Relation, ReplaceOne

MOST_LISTED = 10**7  # histograms × inputs of others that are enumerated


def Shuffled(  # noqa: N802  # reads like the losses, one of which it is
    randomizer: Randomizer | float, people: int, *, honest: int | None = None, relation: Relation = ReplaceOne
) -> ShuffledLoss:
    """The loss of one report among those of `people`, of whom `honest` (all, unless stated) really randomise.

    By the privacy blanket of this randomizer. A number instead of a randomizer stands for any randomizer with that
    local ε, by clones. Fresh rounds add up: `10 * Shuffled(…)`. Colluders and bots are not honest; reports of one
    person that are shuffled together are one report, with the randomizer of the bundle.

    Theorem: with e^−ε₀ an ε₀-LDP report is one of two clones of the victim's
        [Feldman, McMillan & Talwar 2021, Thm 3.1]
    Theorem: an ε₀-LDP pair is a mixture of two reports with odds e^ε₀ [Kairouz, Oh & Viswanath 2015, Thm 3.1]

    >>> print(Shuffled(Response.two_coins(), 10_000).epsilon(1e-6))
    0.0489149
    """
    count = checks.whole("people", people, 1, MOST_PEOPLE)
    crowd = count if honest is None else checks.whole("honest", honest, 1, count)
    if not isinstance(randomizer, Randomizer):
        eps = checks.number("randomizer", randomizer, 0.0, MOST_EPS, allowed="a randomizer of sf.local, or its ε")
        E = math.exp(eps)
        return ShuffledLoss(eps, crowd, math.exp(-eps) / 2, 0.0, 0.0, 2 * E / (E + 1), relation=relation)
    classes = randomizer.classes
    alone = isinstance(randomizer, Response) and randomizer.k > 2
    masses = float(classes.one), float(classes.both), float(classes.neither)
    third = float(classes.one) if alone else 0.0
    return ShuffledLoss(randomizer.epsilon, crowd, *masses, third=min(third, masses[2]), relation=relation)


Law = dict[object, Fraction]


def shuffled_exactly(channel: list[Law], people: int, alpha: Fraction | float) -> Fraction:
    """H_α of the histogram of reports for the worst victim's values and the worst values of the others: enumerated.

    `channel[x]` is the law of the report of value x. For few people and reports only; exact if probabilities and α are.
    """
    reports = sorted({y for law in channel for y in law}, key=repr)
    others = checks.whole("people", people, 1, 40) - 1
    inputs = math.comb(others + len(channel) - 1, others)
    if inputs * math.comb(people + len(reports) - 1, people) > MOST_LISTED:
        raise InvalidParameter(
            "there are too many histograms to list them all.\n"
            f"  found:  {people} people, {len(channel)} values, {len(reports)} reports\n"
            "  do:     use Shuffled(…), which bounds them from both sides"
        )
    rows = [[law.get(y, Fraction(0)) for y in reports] for law in channel]
    factor, worst = Fraction(alpha), Fraction(0)
    for held in combinations_with_replacement(range(len(rows)), others):
        crowd: dict[tuple[int, ...], Fraction] = {(0,) * len(reports): Fraction(1)}
        for x in held:
            crowd = add_report(crowd, rows[x])
        laws = [add_report(crowd, row) for row in rows]
        for first in laws:
            for second in laws:
                gains = (p - factor * second.get(h, Fraction(0)) for h, p in first.items())
                worst = max(worst, sum((gain for gain in gains if gain > 0), Fraction(0)))
    return worst


def add_report(crowd: dict[tuple[int, ...], Fraction], row: list[Fraction]) -> dict[tuple[int, ...], Fraction]:
    """The law of a histogram after one more report."""
    found: dict[tuple[int, ...], Fraction] = {}
    for histogram, chance in crowd.items():
        for y, more in enumerate(row):
            if more:
                grown = (*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])
                found[grown] = found.get(grown, Fraction(0)) + chance * more
    return found


def shuffle_lines(lines: Iterable[str]) -> list[str]:
    """Reports without their identifiers, as canonical lines in sorted order: an order that reveals nothing.

    Each line must be a JSON object; its `id` is dropped. Lines that are no objects are dropped too.
    """
    kept = []
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            found.pop("id", None)
            kept.append(json.dumps(found, sort_keys=True, separators=(",", ":"), ensure_ascii=True))
    return sorted(kept)


def shuffle_file(source: Path, target: Path) -> int:
    """Write the shuffled lines of one file to another; the number of lines."""
    with source.open(encoding="utf-8-sig", errors="replace") as lines:
        kept = shuffle_lines(lines)
    target.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    return len(kept)
