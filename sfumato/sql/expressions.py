"""Expressions over one row: total, deterministic, and in one normal form.

An expression that could raise in an engine would be an answer, so there is none: numbers are doubles (which overflow to
infinity), divisors are guarded, casts give NULL, and functions come from a list. Nothing looks beyond its own row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sfumato.sql.domains import TRUTH, Domain, Kind, Scalar
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.costs import READ_OTHER, READ_TEXT

PLAIN = re.compile(r"[\w.]+")
WORD = 32  # characters of a text that weigh as much as a name


def quote_name(name: str) -> str:
    """A name in canonical texts: quoted if it could be read as more than a name, such as a column called "x, 1.0"."""
    return name if PLAIN.fullmatch(name) else repr(name)


@dataclass(frozen=True)
class Column:
    """A column of the source; `origin` is its lineage (table and column), not the name it goes by."""

    origin: str
    domain: Domain

    def __repr__(self) -> str:
        return quote_name(self.origin)

    @property
    def weight(self) -> int:
        return 1

    @property
    def cost(self) -> float:
        return READ_TEXT if self.domain.kind is Kind.TEXT else READ_OTHER


@dataclass(frozen=True)
class Constant:
    """A literal of the text: public."""

    value: Scalar

    def __repr__(self) -> str:
        number = isinstance(self.value, int) and not isinstance(self.value, bool)
        return repr(float(self.value) if number and self.value is not None else self.value)  # 1 and 1.0 are one number

    @property
    def domain(self) -> Domain:
        match self.value:
            case bool():
                return TRUTH
            case int() | float():
                return Domain(Kind.NUMBER, float(self.value), float(self.value), keys=(float(self.value),), sure=True)
            case str():
                return Domain(Kind.TEXT, keys=(self.value,), length=len(self.value))
        return Domain(Kind.TRUTH)

    @property
    def weight(self) -> int:
        return 1 + (len(self.value) // WORD if isinstance(self.value, str) else 0)

    @property
    def cost(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Call:
    """A function of the list below, or an operator."""

    name: str
    arguments: tuple["Expression", ...]

    def __repr__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        """Written once: operands are sorted by it at every step."""
        return f"{self.name}({', '.join(map(repr, self.arguments))})"

    @cached_property
    def domain(self) -> Domain:
        return FUNCTIONS[self.name].domain(*(argument.domain for argument in self.arguments))

    @cached_property
    def weight(self) -> int:
        """How long it is once written out for an engine; views put into views could make that endless."""
        return 1 + sum(argument.weight for argument in self.arguments) * FUNCTIONS[self.name].copies

    @cached_property
    def cost(self) -> float:
        """Nanoseconds that an engine needs for it in one row at most, whatever the row holds: all branches of a CASE,
        and all that the text repeats."""
        function = FUNCTIONS[self.name]
        return function.cost(*self.arguments) + sum(one.cost for one in self.arguments) * function.copies


@dataclass(frozen=True)
class Output:
    """A released value: a key or an aggregate of the answer. What is made of it costs nothing."""

    place: int
    domain: Domain

    def __repr__(self) -> str:
        return f"output {self.place}"

    @property
    def weight(self) -> int:
        return 1

    @property
    def cost(self) -> float:
        return 0.0


Expression = Column | Constant | Call | Output


def columns(expression: Expression) -> Iterator[Column]:
    """All columns that an expression reads."""
    if isinstance(expression, Column):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns(argument)
