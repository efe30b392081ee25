"""Finite fields of prime-power order as tables, and the points of a projective space over them, numbered."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter

MOST_ORDER = 256
Table = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Field:
    """The field of `order` = prime^degree elements, numbered by their coefficients in base `prime`.

    An element Σ aᵢxⁱ has the number Σ aᵢ·primeⁱ; products are taken modulo a polynomial that does not factor.
    """

    order: int
    prime: int
    degree: int
    modulus: tuple[int, ...]  # coefficients of the polynomial, without the leading 1
    add: Table
    times: Table
    minus: Table
    inverse: Table  # of 0: 0


def prime_power(order: int) -> tuple[int, int] | None:
    """(prime, degree) of a prime power; None for other numbers."""
    prime = next((d for d in range(2, order + 1) if order % d == 0), 0)
    degree, rest = 0, order
    while prime and rest % prime == 0:
        rest, degree = rest // prime, degree + 1
    return (prime, degree) if prime and rest == 1 else None


@lru_cache(maxsize=64)
def field_of(order: int) -> Field:
    """The field of this order; the first polynomial, in the order of its coefficients, that does not factor."""
    found = prime_power(order) if 2 <= order <= MOST_ORDER else None
    if found is None:
        raise InvalidParameter(
            f"no finite field has this order.\n  found:  {order}\n"
            f"  do:     give a prime or a power of a prime, from 2 to {MOST_ORDER}"
        )
    prime, degree = found
    digits = np.array([[n // prime**i % prime for i in range(degree)] for n in range(order)], np.int64)
    powers = prime ** np.arange(degree)
    add = (digits[:, None, :] + digits[None, :, :]) % prime @ powers
    for coefficients in product(range(prime), repeat=degree):
        modulus = coefficients[::-1]
        times = multiply_all(digits, prime, modulus) @ powers
        if not np.any(times[1:, 1:] == 0):  # no divisors of zero: a field
            inverse = np.concatenate([[0], np.argmax(times[1:] == 1, axis=1)])
            return Field(order, prime, degree, modulus, add, times, -digits % prime @ powers, inverse)
    raise AssertionError("every degree has a polynomial that does not factor")


def multiply_all(digits: Table, prime: int, modulus: tuple[int, ...]) -> Table:
    """Digits of all products of two elements modulo xᵈ + Σ modulusᵢxⁱ."""
    size, degree = digits.shape
    wide = np.zeros((size, size, 2 * degree - 1), np.int64)
    for i in range(degree):
        wide[:, :, i : i + degree] += digits[:, None, i : i + 1] * digits[None, :, :]
    for high in range(2 * degree - 2, degree - 1, -1):
        for i, coefficient in enumerate(modulus):
            wide[:, :, high - degree + i] -= coefficient * wide[:, :, high]
    return wide[:, :, :degree] % prime


@dataclass(frozen=True)
class Space:
    """The points of a projective space: vectors of `length` over a field up to multiples, the first non-zero entry 1.

    A point is numbered by the base-F number of its vector: those whose leading 1 is followed by m entries come after
    the (F^m − 1)/(F − 1) shorter ones.
    """

    order: int
    length: int

    @property
    def field(self) -> Field:
        return field_of(self.order)

    @property
    def points(self) -> int:
        return projective_size(self.order, self.length)

    @property
    def in_set(self) -> int:
        """Points orthogonal to a given one."""
        return projective_size(self.order, self.length - 1)

    @property
    def in_two_sets(self) -> int:
        """Points orthogonal to two given ones."""
        return projective_size(self.order, self.length - 2)

    def vectors(self, numbers: Table) -> Table:
        """The vectors of points: an array with one more axis, of `length`."""
        return decode_points(numbers, self.order, self.length)

    def numbers(self, vectors: Table) -> Table:
        """The numbers of points, given by vectors whose first non-zero entry may be anything."""
        field = self.field
        lead = np.argmax(vectors != 0, axis=-1)
        first = np.take_along_axis(vectors, lead[..., None], -1)
        normal = field.times[field.inverse[first], vectors]
        value = normal @ (self.order ** np.arange(self.length - 1, -1, -1))
        size = self.order ** (self.length - 1 - lead)
        return np.asarray((size - 1) // (self.order - 1) + value - size)

    def orthogonal(self, values: Table, index: Table) -> Table:
        """The index-th point of the `in_set` points orthogonal to the point of number `value`.

        The last non-zero entry of v is solved for. Entries after it are free and entries before it decide it, so the
        solution is normal already: its first non-zero entry is that of the free ones.
        """
        v = self.vectors(values)
        free = decode_points(index, self.order, self.length - 1)
        return self.numbers(self.solve(v, free, np.zeros_like(values)))

    def other(self, values: Table, index: Table) -> Table:
        """The index-th of the F^{t−1} points y not orthogonal to v: scaled so that ⟨y, v⟩ = 1, other entries free."""
        v = self.vectors(values)
        free = base_digits(index, self.order, self.length - 1)
        return self.numbers(self.solve(v, free, np.ones_like(values)))

    def solve(self, v: Table, free: Table, goal: Table) -> Table:
        """y with ⟨y, v⟩ = goal: the entry at the last non-zero one of v is solved for, the others are `free`."""
        field, t = self.field, self.length
        pivot = t - 1 - np.argmax(v[..., ::-1] != 0, axis=-1)
        place = np.arange(t)
        from_free = np.clip(place - (place > pivot[..., None]), 0, t - 2)
        y = np.take_along_axis(free, from_free, -1)
        np.put_along_axis(y, pivot[..., None], 0, -1)
        total = np.zeros_like(goal)
        for i in range(t):
            total = field.add[total, field.times[v[..., i], y[..., i]]]
        last = np.take_along_axis(v, pivot[..., None], -1)[..., 0]
        solved = field.times[field.inverse[last], field.add[goal, field.minus[total]]]
        np.put_along_axis(y, pivot[..., None], solved[..., None], -1)
        return y


def projective_size(order: int, length: int) -> int:
    """1 + F + … + F^{length−1}: how many points there are."""
    return sum(order**i for i in range(length))


def base_digits(numbers: Table, base: int, length: int) -> Table:
    """Digits of numbers, the most significant first."""
    return np.asarray(numbers[..., None] // base ** np.arange(length - 1, -1, -1) % base)


def decode_points(numbers: Table, order: int, length: int) -> Table:
    """Vectors of the points of a projective space, by their numbers."""
    sizes = order ** np.arange(length)
    starts = (sizes - 1) // (order - 1)
    tail = np.searchsorted(starts, numbers, side="right") - 1  # entries after the leading 1
    return base_digits(numbers - starts[tail] + sizes[tail], order, length)
