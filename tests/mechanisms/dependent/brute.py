"""Local sensitivities by their definition: every data set of a small world, every neighbour."""

import itertools
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from functools import cache


def worst_within(
    worlds: Iterable[Hashable],
    value: Callable[[Hashable], Fraction],
    neighbours: Callable[[Hashable], Iterable[Hashable]],
) -> Callable[[Hashable, int], list[Fraction]]:
    """(x, most) ↦ LS_0 … LS_most by a walk from x, for worlds that hold all within most + 1 steps of x."""
    known, neighbours = {world: value(world) for world in worlds}, cache(neighbours)

    @cache
    def local(x: Hashable) -> Fraction:
        return max((abs(known[x] - known[y]) for y in neighbours(x)), default=Fraction(0))

    def curve(x: Hashable, most: int) -> list[Fraction]:
        found, seen, edge = [], {x}, {x}
        for _ in range(most + 1):
            found.append(max([local(y) for y in edge], default=Fraction(0)))
            edge = {z for y in edge for z in neighbours(y)} - seen
            seen |= edge
        return list(itertools.accumulate(found, max))

    return curve


def multisets(values: tuple[int, ...], most: int) -> list[tuple[int, ...]]:
    """All sorted tuples of at most `most` of these values."""
    return [row for n in range(most + 1) for row in itertools.combinations_with_replacement(values, n)]


def one_more_or_less(values: tuple[int, ...], most: int) -> Callable[[tuple[int, ...]], set[tuple[int, ...]]]:
    """Add/remove, within worlds of at most `most` people."""

    def neighbours(row: tuple[int, ...]) -> set[tuple[int, ...]]:
        less = {row[:i] + row[i + 1 :] for i in range(len(row))}
        return less | ({tuple(sorted((*row, v))) for v in values} if len(row) < most else set())

    return neighbours


def one_replaced(values: tuple[int, ...]) -> Callable[[tuple[int, ...]], set[tuple[int, ...]]]:
    """Replace-one."""
    return lambda row: {
        tuple(sorted((*row[:i], *row[i + 1 :], v))) for i in range(len(row)) for v in values if v != row[i]
    }


def edges(nodes: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(nodes), 2))
