"""What is released of a group and is neither a sum nor a value by its rank: trimmed means, modes, triangles."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Kind, Scalar
from sfumato.sql.expressions import Column, Expression
from sfumato.sql.plan import Window, window
from sfumato.sql.policy import Table

MOST_CHOICES = 10_000  # public values among which a mode is chosen; of more, only one that leads clearly is shown


@dataclass(frozen=True)
class Trimmed:
    """The mean of a group's values without the part `lattice.part` of them at either end; in steps of the lattice."""

    lattice: Window

    def __repr__(self) -> str:
        return f"trimmed mean of {self.lattice!r}"

    @property
    def reads(self) -> tuple[Expression, ...]:
        return (self.lattice.of,)


@dataclass(frozen=True)
class Mode:
    """The most common value of a group. Numbers are told by their step of a lattice, if they are bounded."""

    of: Expression
    lattice: Window | None = None

    def __repr__(self) -> str:
        return f"mode({self.of!r}, {self.lattice!r})" if self.lattice else f"mode({self.of!r})"

    @property
    def reads(self) -> tuple[Expression, ...]:
        return (self.of,)

    @property
    def choices(self) -> tuple[Scalar, ...] | range | None:
        """All values that there can be, if they are public and not too many; as the statement gives them."""
        if self.lattice is not None:
            return range(self.lattice.points) if self.lattice.points <= MOST_CHOICES else None
        known = self.of.domain.keys
        return tuple(dict.fromkeys(known)) if known is not None and len(set(known)) <= MOST_CHOICES else None


@dataclass(frozen=True)
class Triangles:
    """How many triangles a graph has whose edges are rows; each edge is a unit."""

    ends: tuple[Column, Column]

    def __repr__(self) -> str:
        return f"triangles({self.ends[0]!r}, {self.ends[1]!r})"

    @property
    def reads(self) -> tuple[Expression, ...]:
        return self.ends


Statistic = Trimmed | Mode | Triangles


def trimmed(of: Expression, part: Fraction, text: str) -> Trimmed:
    """TRIMMED_MEAN of what has bounds."""
    if not 0 < part < Fraction(1, 2):
        raise QueryRefused(
            f"{text} leaves nothing, or everything.\n  found:  {float(part):g} of the values cut off at either end\n"
            "  do:     ask TRIMMED_MEAN(x, 0.1), or AVG(x) for the mean of all"
        )
    return Trimmed(window(of, part, text))


def mode(of: Expression, text: str) -> Mode:
    """MODE of what has values that can be told: numbers by their step, unless the policy lists them."""
    if of.domain.kind is not Kind.NUMBER or of.domain.keys is not None:
        return Mode(of)
    return Mode(of, window(of, Fraction(1, 2), text))


def triangles(table: Table, named: Sequence[Expression]) -> Triangles:
    """TRIANGLES() of a table of edges; its two columns may be named."""
    ends = [f"t0.{name}" for name in table.edges]
    if not ends:
        found = f"{table.name}, whose unit is {str(table.unit)!r}"
        raise QueryRefused(
            f"TRIANGLES is of a table whose unit is the edge.\n  found:  {found}\n"
            '  do:     say so in the policy: edges = ["a", "b"] instead of a unit'
        )
    if named and sorted(map(repr, named)) != sorted(ends):
        raise QueryRefused(
            f"TRIANGLES takes the columns of an edge.\n  do:     ask TRIANGLES({', '.join(table.edges)})"
        )
    first, second = (Column(end, table.columns[name]) for end, name in zip(ends, table.edges, strict=True))
    return Triangles((first, second))
