"""Names below GROUP BY: columns of one private table and of the tables joined to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import TEXT, number
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.parse.problems import closest
from sfumato.sql.plan import Join, Table
from sfumato.sql.simplify import call

ALWAYS: Expression = Constant(True)


@dataclass(frozen=True)
class Scope:
    """Resolves names over rows of one private table and joined tables, with a condition on them."""

    table: Table
    names: Mapping[tuple[str, str], Expression]  # (alias, column) → what it is
    where: Expression = ALWAYS
    joins: tuple[Join, ...] = ()
    subqueries: Mapping[int, Expression] = field(default_factory=dict)  # of IN, EXISTS and SELECT: node → what it is
    inherited: frozenset[tuple[str, str]] = frozenset()  # (alias, name) of units that are stored in another table

    def find(self, alias: str, name: str) -> Expression:
        found = {e for (a, n), e in self.names.items() if n == name and alias in ("", a)}
        if len(found) > 1:  # the column itself comes before those that find it by a key
            found = {e for key, e in self.names.items() if key[1] == name and key not in self.inherited} or found
        if len(found) == 1:
            return found.pop()
        listed = sorted({n for _, n in self.names})
        meant = closest(name, listed)
        do = f"did you mean {meant}?" if meant else "use one of these, or add it to the policy"
        raise QueryRefused(
            f"{name!r} is {'ambiguous' if found else 'not a column here'}.\n  found:  {', '.join(listed)}\n"
            f"  do:     {'say which table it is from' if found else do}"
        )

    def resolve(self, node: exp.Expression) -> Expression | None:
        return self.subqueries.get(id(node))

    def knows(self, column: exp.Column) -> bool:
        """Is there a column of this name?"""
        alias = column.table.lower()
        return any(name == column.name.lower() and alias in ("", known) for known, name in self.names)

    def has_itself(self, column: exp.Column) -> bool:
        """Is there a column of this name that is not found by a key?"""
        alias, name = column.table.lower(), column.name.lower()
        return any(key[1] == name and alias in ("", key[0]) and key not in self.inherited for key in self.names)

    def without_inherited(self, columns: Iterable[exp.Column]) -> "Scope":
        """The same names without those that are found by a key and called like one of these columns."""
        dropped = {one.name.lower() for one in columns if not one.table}
        gone = {key for key in self.inherited if key[1] in dropped}
        return replace(self, names={key: of for key, of in self.names.items() if key not in gone}) if gone else self

    def under_alias(self, alias: str) -> "Scope":
        """The same columns under one alias."""
        return replace(self, names={(alias, name): e for (_, name), e in self.names.items()}, inherited=frozenset())


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
