"""Whose data rows are: what one person, or whatever else is protected, has in a table.

A unit is a type and not a word: a column may be called `row` or `edge`, and is then a column like any other.
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
    """Each pair of nodes is protected, however often and in which order it is listed. Questions call it `edge`."""

    def __str__(self) -> str:
        return EDGE

    def __repr__(self) -> str:
        return repr(EDGE)


@dataclass(frozen=True, repr=False)
class ColumnUnit:
    """All rows with one value of a column are one person's; the column is in the table, or found through another."""

    name: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return repr(unit_text(self))


EACH_ROW = RowUnit()
Unit = RowUnit | ColumnUnit | EdgeUnit


def unit_text(unit: Unit) -> str:
    """Part of the text that a stored answer is found by: for a column called `row` another one than for each row."""
    name = str(unit)
    plain = not isinstance(unit, ColumnUnit) or not (name in (ROW, EDGE) or name.startswith("column "))
    return name if plain else f"column {name}"


def column_of(unit: Unit) -> str | None:
    """The name by which rows, and questions about them, know their unit; None where each row is one."""
    match unit:
        case ColumnUnit(name):
            return name
        case EdgeUnit():
            return EDGE
    return None


def explain_ambiguity(unit: Unit, columns: Iterable[str]) -> str | None:
    """What else the word `row` or `edge` could mean where there is a column of that name, and how to say which; None if
    there is none. Who means the column would otherwise protect each row by itself, and not all rows of a person."""
    found = next((name for name in columns if name.lower() == str(unit)), None)
    if isinstance(unit, ColumnUnit) or found is None:
        return None
    return (
        f'unit = "{unit}" could mean each {unit}, or the column {found!r};'
        f' write unit = {{column = "{found}"}} or unit = {{each = "{unit}"}}'
    )
