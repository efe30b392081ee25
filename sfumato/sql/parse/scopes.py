"""Names below GROUP BY: columns of one private table and of the tables joined to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import TEXT, number
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.plan import Join, Table
from sfumato.sql.simplify import call

ALWAYS = Constant(True)


@dataclass(frozen=True)
class Scope:
    """Resolves names over rows of one private table and joined tables, with a condition on them."""

    table: Table
    names: Mapping[tuple[str, str], Expression]  # (alias, column) → what it is
    where: Expression = ALWAYS
    joins: tuple[Join, ...] = ()
    subqueries: Mapping[int, Expression] = field(default_factory=dict)  # of IN, EXISTS and SELECT: node → what it is

    def find(self, alias: str, name: str) -> Expression:
        found = {e for (a, n), e in self.names.items() if n == name and alias in ("", a)}
        if len(found) == 1:
            return found.pop()
        known = ", ".join(sorted({n for _, n in self.names}))
        raise QueryRefused(
            f"{name!r} is {'ambiguous' if found else 'not a column here'}.\n  found:  {known}\n"
            f"  do:     {'say which table it is from' if found else 'use one of these, or add it to the policy'}"
        )

    def resolve(self, node: exp.Expression) -> Expression | None:
        return self.subqueries.get(id(node))

    def knows(self, column: exp.Column) -> bool:
        """Is there a column of this name?"""
        alias = column.table.lower()
        return any(name == column.name.lower() and alias in ("", known) for known, name in self.names)

    def under_alias(self, alias: str) -> "Scope":
        """The same columns under one alias."""
        return replace(self, names={(alias, name): e for (_, name), e in self.names.items()})


def columns_of(table: Table, place: int) -> dict[str, Column]:
    """The columns of the table number `place`, its unit among them."""
    found = {name: Column(f"t{place}.{name}", domain) for name, domain in table.columns.items()}
    if not table.public and (unit := table.unit_column) is not None:
        found.setdefault(unit, Column(f"t{place}.{unit}", TEXT if table.edges else number()))
    return found


def renumber(expression: Expression, places: Mapping[str, str]) -> Expression:
    """The expression with tables renumbered: t1 → t2."""
    if isinstance(expression, Column):
        alias, name = expression.origin.split(".", 1)
        return replace(expression, origin=f"{places[alias]}.{name}") if alias in places else expression
    if isinstance(expression, Call):
        return call(expression.name, *(renumber(one, places) for one in expression.arguments))
    return expression


def substitute(expression: Expression, meaning: Mapping[str, Expression]) -> Expression:
    """The expression with columns replaced by their definitions, in normal form."""
    if isinstance(expression, Column):
        return meaning.get(expression.origin, expression)
    if isinstance(expression, Call):
        return call(expression.name, *(substitute(one, meaning) for one in expression.arguments))
    return expression
