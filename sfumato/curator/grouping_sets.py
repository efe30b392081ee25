"""Grouping sets as one answer: shares of the price for each set of keys, and noisy tables that add up."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sfumato.aggregates.consistent_sets import Floats, GroupingSets, Set
from sfumato.aggregates.intervals import CombinedGaussian
from sfumato.aggregates.linear import Estimate, Linear, Reader
from sfumato.aggregates.noisy_sums import CONFIDENCE, NoisySums
from sfumato.curator.offer import Offer
from sfumato.mechanisms.additive.gaussian import Gaussian
from sfumato.sql.plan import Plan
from sfumato.sql.question import Outer

Rows = list[list[float]]
SLACK = 1e-9  # of the noise: more than the rounding of doubles in a combination


def family_of(plans: Sequence[Plan]) -> GroupingSets:
    """The sets of keys of these plans, of which all but the finest name the finest keys."""
    finest = next((plan.finest for plan in plans if plan.bounded_by), plans[0])
    sizes = tuple(len(listed or ()) for listed in finest.key_lists)
    return GroupingSets(tuple(set_of(plan, finest.keys) for plan in plans), sizes)


def set_of(plan: Plan, keys: Sequence[object]) -> Set:
    return tuple(i for i, key in enumerate(keys) if key in plan.keys)


def set_shares(plans: Sequence[Plan]) -> list[float]:
    """Shares of a price, one for each plan: by how far one unit moves each table."""
    family = family_of(plans)
    squares = {s: float(plan.groups * plan.rows**2) for s, plan in zip(family.sets, plans, strict=True)}
    found = family.shares(squares)
    return [found[s] for s in family.sets]


def shares_of(outer: Outer) -> dict[str, float]:
    """The share of each different plan of an outer query: equal ones, but for grouping sets, which divide theirs."""
    found = dict.fromkeys(outer.plans, 1 / len(outer.plans))
    for table in outer.tables:
        plans = list({(plan := outer.questions[part.question].plan).canonical: plan for part in table.parts}.values())
        if table.consistent and len(plans) > 1:
            whole = math.fsum(found[plan.canonical] for plan in plans)
            found |= {plan.canonical: whole * share for plan, share in zip(plans, set_shares(plans), strict=True)}
    total = math.fsum(found.values())
    return {name: share / total for name, share in found.items()}


@dataclass(frozen=True, eq=False)
class ConsistentCells:
    """The estimates of one grouping set after all sets were combined."""

    offer: Offer
    rows: Rows
    noise: tuple[CombinedGaussian | None, ...]
    left_out_bounds: int = 0
    _readers: dict[tuple[int, float], Reader] = field(default_factory=dict, init=False, repr=False)

    def form(self, row: int, place: int) -> None:
        """Cells share noise, and which noise is not kept."""
        return None

    def estimate(self, row: int, place: int, confidence: float) -> Estimate:
        return self.reader(place, confidence).read(self.rows[row])

    def reader(self, place: int, confidence: float) -> Reader:
        if (place, confidence) not in self._readers:
            question = self.offer.question
            aggregate = question.aggregates[place]
            assert isinstance(aggregate, Linear)
            sums = NoisySums(self.offer.joint, question.sum_indexes[aggregate], self.noise, confidence)
            self._readers[place, confidence] = aggregate.reader(sums)
        return self._readers[place, confidence]

    @cached_property
    def estimates(self) -> list[list[Estimate]]:
        places = range(len(self.offer.question.aggregates))
        return [[self.estimate(row, place, CONFIDENCE) for place in places] for row in range(len(self.rows))]


def combine(offers: Sequence[Offer], stored: Sequence[bytes]) -> list[ConsistentCells] | None:
    """The least-squares tables of grouping sets; None if their noise is not Gaussian: they stay as they are."""
    if not all(noise is None or isinstance(noise, Gaussian) for offer in offers for noise in offer.noise):
        return None
    family = family_of([offer.plan for offer in offers])
    tables = [json.loads(one)["noisy"] for one in stored]
    columns: list[list[Floats]] = [[] for _ in offers]
    noises: list[list[CombinedGaussian | None]] = [[] for _ in offers]
    for j in range(len(offers[0].plan.measures)):
        given = {}
        for s, rows in zip(family.sets, tables, strict=True):
            given[s] = np.array([row[j] for row in rows], float).reshape([family.sizes[i] for i in s])
        variances = {s: float(noise.sigma) ** 2 for s, offer in zip(family.sets, offers, strict=True)
                     if isinstance(noise := offer.noise[j], Gaussian)}  # fmt: skip
        found = family.combine(given, variances) if variances else given
        for place, s in enumerate(family.sets):
            columns[place].append(found[s].reshape(-1))
            noises[place].append(combined_noise(family, s, variances) if variances else None)
    return [
        ConsistentCells(offer, np.stack(mine, axis=-1).tolist() if mine else [], tuple(noise))
        for offer, mine, noise in zip(offers, columns, noises, strict=True)
    ]


def combined_noise(family: GroupingSets, s: Set, variances: dict[Set, float]) -> CombinedGaussian:
    sigma, absolute = family.noise(s, variances)
    return CombinedGaussian(sigma * (1 + SLACK), rounding_error=absolute / 2 * (1 + SLACK) + SLACK * sigma)
