"""Projective geometry response: a report is a point, and supports the values whose points are orthogonal to it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.draws import Below, many_below
from sfumato.local.finite_field import MOST_ORDER, Space, Table, prime_power
from sfumato.local.frequency import MOST_COUNTED, Counts, FrequencyOracle, count_integers
from sfumato.local.odds import Odds
from sfumato.local.randomizer import Classes, Reports, check_total

LISTED = 1 << 22  # values × points up to which all orthogonal points are listed
ORDERS = tuple(order for order in range(2, 128) if prime_power(order))


@dataclass(frozen=True)
class ProjectiveResponse(FrequencyOracle):
    """One of K = (F^t − 1)/(F − 1) points: each orthogonal to the value's point with weight `truth`, others `lie`.

    c = (F^{t−1} − 1)/(F − 1) points are orthogonal to one point and i = (F^{t−2} − 1)/(F − 1) to two, so with
    D = Ac + B(K − c):  p = Ac/D,  q = (Ai + B(c − i))/D. Near-optimal error, log₂K bits, and a fast transform.

    Theorem: projective geometry response is ε-LDP, and within 1 + o(1) of the optimal error for F = e^ε + 1
        [Feldman, Nelson, Nguyen & Talwar 2022, Thm 3.1]

    >>> ProjectiveResponse.of(1000, 1.0).space
    Space(order=4, length=6)
    """

    order: int
    length: int

    scheme = "pgr"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checks.whole("k", self.k, 2, MOST_COUNTED))
        object.__setattr__(self, "order", checks.whole("order", self.order, 2, MOST_ORDER))
        object.__setattr__(self, "length", checks.whole("length", self.length, 2, 24))
        self.space.field  # noqa: B018  # refuses an order that no field has
        if self.k > self.space.points:
            raise InvalidParameter(
                f"the space has too few points for the values.\n  found:  {self.space.points:,} points, k = {self.k:,}"
                "\n  do:     give a longer length or a larger order"
            )
        check_total(self.total)

    @staticmethod
    def of(k: int, eps: float) -> "ProjectiveResponse":
        """The space with the least total error."""
        k = checks.whole("k", k, 2, MOST_COUNTED)
        spaces = [(order, shortest(k, order)) for order in ORDERS]
        odds = [Odds.of(eps, order * Space(order, t).points) for order, t in spaces]
        found = [ProjectiveResponse(k, o, order, t) for (order, t), o in zip(spaces, odds, strict=True)]
        return min(found, key=lambda one: one.total_variance if one.odds.truth > one.odds.lie else one.space.points)

    @property
    def space(self) -> Space:
        return Space(self.order, self.length)

    @property
    def total(self) -> int:
        c = self.space.in_set
        return self.odds.truth * c + self.odds.lie * (self.space.points - c)

    @cached_property
    def p(self) -> Fraction:
        return Fraction(self.odds.truth * self.space.in_set, self.total)

    @cached_property
    def q(self) -> Fraction:
        c, i = self.space.in_set, self.space.in_two_sets
        return Fraction(self.odds.truth * i + self.odds.lie * (c - i), self.total)

    @property
    def classes(self) -> Classes:
        K, c, i = self.space.points, self.space.in_set, self.space.in_two_sets
        unit = Fraction(self.odds.lie, self.total)
        return Classes((c - i) * unit, i * unit, (K - 2 * c + i) * unit)

    @property
    def bits(self) -> float:
        return float((self.space.points - 1).bit_length())

    @property
    def hit(self) -> int:
        return min(self.k, self.space.in_set)

    @property
    def report_bound(self) -> int:
        return self.space.points

    @property
    def description(self) -> dict[str, object]:
        field = self.space.field
        return {
            **super().description,
            "prime": field.prime,
            "degree": field.degree,
            "modulus": list(field.modulus),
            "length": self.length,
        }

    def answer(self, value: int, below: Below) -> int:
        u, inside = below(self.total), self.odds.truth * self.space.in_set
        at = np.array([value])
        if u < inside:
            return int(self.space.orthogonal(at, np.array([u // self.odds.truth]))[0])
        return int(self.space.other(at, np.array([(u - inside) // self.odds.lie]))[0])

    def answers(self, values: NDArray[np.int64]) -> Reports:
        u = many_below(self.total, values.size, self.source).view(np.int64)
        c, split = self.space.in_set, self.odds.truth * self.space.in_set
        inside = u // self.odds.truth
        u -= split
        u //= self.odds.lie
        index = np.where(u < 0, inside, u + c)
        if self.k * self.space.points <= LISTED:
            index += values * self.space.points
            return point_table(self.space, self.k).reshape(-1).take(index).astype(np.int64)
        return place(self.space, values, index)

    def support(self, reports: Reports) -> Counts:
        found = count_integers(reports, self.space.points)
        if self.k * self.space.points <= LISTED:
            rows = point_table(self.space, self.k)[:, : self.space.in_set]
            return np.asarray(found[rows].sum(axis=1))
        return orthogonal_sums(found, self.space)[: self.k]


def shortest(k: int, order: int) -> int:
    """The least length ≥ 3 whose space has k points; of length 2 it would be randomized response."""
    length = 3
    while Space(order, length).points < k:
        length += 1
    return length


def place(space: Space, values: Table, index: Table) -> Table:
    """For each value the point of this index: the orthogonal ones first, then the others."""
    c = space.in_set
    inside = space.orthogonal(values, np.minimum(index, c - 1))
    outside = space.other(values, np.maximum(index - c, 0))
    return np.where(index < c, inside, outside)


@lru_cache(maxsize=8)
def point_table(space: Space, k: int) -> NDArray[np.int32]:
    """All points by value and index."""
    K = space.points
    values, index = np.repeat(np.arange(k), K), np.tile(np.arange(K), k)
    return place(space, values, index).reshape(k, K).astype(np.int32)


def orthogonal_sums(counts: Counts, space: Space) -> Counts:
    """Σ of the counts of all points orthogonal to each point, by a Fourier transform over the field's additive group.

    With g(ay) = n_y for all a ≠ 0 and χ a character, Σ_x g(x)χ(⟨x, v⟩) = Σ_y n_y(F·[⟨y, v⟩ = 0] − 1). The character of
    a field is that of its trace; Tr(xv) is a dot product of digits, with v's digits turned by the matrix of Tr(bᵢbⱼ).
    Floats are rounded to the nearest integer, from which they are far less than ½ away.
    """
    field, t = space.field, space.length
    n, m = field.prime, field.degree
    everything = np.zeros(space.order**t, np.float64)
    vectors = space.vectors(np.arange(space.points))
    powers = space.order ** np.arange(t - 1, -1, -1)
    for a in range(1, space.order):
        everything[field.times[a][vectors] @ powers] = counts
    spectrum = np.fft.fftn(everything.reshape((n,) * (t * m))).real.reshape(-1)
    turned = trace_dual(space)[vectors] @ powers
    return np.asarray(np.rint((spectrum[turned] + counts.sum()) / space.order), np.int64)


def trace_dual(space: Space) -> Table:
    """For each field element v the element whose digits are (Tr(b_i v))_i, b_i the basis 1, x, x², …"""
    field = space.field
    element = np.arange(space.order)
    trace, power = np.zeros(space.order, np.int64), element
    for _ in range(field.degree):  # Tr(a) = a + a^p + a^{p²} + …
        trace = field.add[trace, power]
        raised = power
        for _ in range(field.prime - 1):
            raised = field.times[raised, power]
        power = raised
    basis = field.prime ** np.arange(field.degree)
    digits = trace[field.times[basis[:, None], element[None, :]]]  # traces lie in the prime field: digits
    return np.asarray((digits * basis[:, None]).sum(axis=0))
