"""Privacy units: which rows of a table belong to one person, or to whatever else is protected.

A unit is a type, not a string: a column may be called `row` or `edge`, and is then an ordinary column.
"""

from collections.abc import Iterable
from dataclasses import dataclass

ROW, EDGE = "row", "edge"  # as a policy spells what is no column


@dataclass(frozen=True, repr=False)
class RowUnit:
    """Each row is a person."""

    def __str__(self) -> str:
        return ROW

    def __repr__(self) -> str:
        return repr(ROW)


@dataclass(frozen=True, repr=False)
class EdgeUnit:
    """Each pair of nodes is a unit, however often and in whichever order it is listed. Questions call it `edge`."""

    def __str__(self) -> str:
        return EDGE

    def __repr__(self) -> str:
        return repr(EDGE)


@dataclass(frozen=True, repr=False)
class ColumnUnit:
    """All rows with the same value of a column are one unit; the column is in the table or in a parent table."""

    name: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return repr(unit_text(self))


EACH_ROW = RowUnit()
Unit = RowUnit | ColumnUnit | EdgeUnit


def unit_text(unit: Unit) -> str:
    """The unit in canonical texts: a column called `row` differs from the unit `row`."""
    name = str(unit)
    plain = not isinstance(unit, ColumnUnit) or not (name in (ROW, EDGE) or name.startswith("column "))
    return name if plain else f"column {name}"


def column_of(unit: Unit) -> str | None:
    """The column that holds the unit, by the name that questions use; None where each row is a unit."""
    match unit:
        case ColumnUnit(name):
            return name
        case EdgeUnit():
            return EDGE
    return None


def explain_ambiguity(unit: Unit, columns: Iterable[str]) -> str | None:
    """Why `row` or `edge` is ambiguous where a column has that name, and how to say which is meant; None if it is not.
    An owner who means the column would otherwise protect each row by itself, not all rows of a person."""
    found = next((name for name in columns if name.lower() == str(unit)), None)
    if isinstance(unit, ColumnUnit) or found is None:
        return None
    return (
        f'unit = "{unit}" could mean each {unit}, or the column {found!r};'
        f' write unit = {{column = "{found}"}} or unit = {{each = "{unit}"}}'
    )
