"""Expressions over one row: total, deterministic, and in one normal form.

An error that depends on data would be an answer, so no expression can raise in an engine: numbers are doubles (which
overflow to infinity), divisors are guarded, failing casts give NULL, and functions come from a list. An expression
reads its own row only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sfumato.sql.domains import TRUTH, Domain, Kind, Scalar
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.costs import READ_OTHER, READ_TEXT

PLAIN = re.compile(r"[\w.]+")
WORD = 32  # characters of a text that count as one word


def quote_name(name: str) -> str:
    """A name in canonical texts: quoted if it could be read as something else, such as a column called "x, 1.0"."""
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

    @cached_property
    def cost(self) -> float:
        """Upper bound on the nanoseconds that an engine needs to read it."""
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
    """A function of sql/functions, or an operator, applied to arguments."""

    name: str
    arguments: tuple["Expression", ...]

    def __repr__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        """Cached: operands are sorted by it at every step."""
        return f"{self.name}({', '.join(map(repr, self.arguments))})"

    @cached_property
    def domain(self) -> Domain:
        return FUNCTIONS[self.name].domain(*(argument.domain for argument in self.arguments))

    @cached_property
    def weight(self) -> int:
        """Its length as SQL text, in words; nested views could make it grow exponentially."""
        return 1 + sum(argument.weight for argument in self.arguments) * FUNCTIONS[self.name].copies

    @cached_property
    def cost(self) -> float:
        """Upper bound on the nanoseconds that an engine needs for it in one row, whatever the row holds: all branches
        of a CASE count, and so do repeated arguments."""
        function = FUNCTIONS[self.name]
        return function.cost(*self.arguments) + sum(one.cost for one in self.arguments) * function.copies


@dataclass(frozen=True)
class Output:
    """A released value: a key or an aggregate of the answer. Post-processing it costs nothing."""

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
