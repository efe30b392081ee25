"""Sub-selects as tables: rows of other tables with a condition, under names by their content."""

from dataclasses import replace

from sfumato.sql.expressions import Column, Expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Plan, Table
from sfumato.sql.union import column_label, stack_branches


def derive(scope: Scope) -> tuple[Table, dict[str, Column]]:
    """The rows of a scope as one table, and its columns by the names that the scope has for them."""
    rows = Plan(scope.table, scope.joins, scope.where, (), ())
    values: dict[str, tuple[Expression, ...]] = {}
    domains, found = {}, {}
    for (_, name), of in scope.names.items():
        if not scope.table.public and isinstance(of, Column) and of.origin == scope.table.unit_origin:
            found[name] = of
            continue
        label = column_label([rows], [of])
        values[label], domains[label] = (of,), of.domain
        found[name] = Column(f"t0.{label}", of.domain)
    table = stack_branches([rows], values, domains)
    return (replace(table, public=True, groups=1, rows=1) if scope.table.public else table), found


def underlying(table: Table, name: str) -> tuple[Table, str] | None:
    """The table and column that a column of a derived table is, if it is one and the same."""
    known: dict[str, Expression] = {}
    if table.grouped is not None:
        known = dict(table.grouped.keys)
    elif len(table.branches) == 1:
        known = dict(table.branches[0].columns)
    of = known.get(name)
    if not isinstance(of, Column):
        return None
    place, column = of.origin.split(".", 1)
    return table.inner_plans[0].tables[int(place[1:])], column


def key_identity(table: Table, name: str, keys: frozenset[tuple[str, str]]) -> tuple[str, str] | None:
    """The column of a parent table by which the policy finds units, if this column is one of its names."""
    if table.public:
        return None
    if table.derived:
        found = underlying(table, name)
        return key_identity(*found, keys) if found is not None else None
    if table.owner is not None and table.owner.mine == name:
        return table.owner.table.name, table.owner.theirs
    return (table.name, name) if (table.name, name) in keys else None


def one_row_by(table: Table) -> frozenset[str] | None:
    """Columns that no two rows of a unit have in common; None if there are none that are known."""
    if table.grouped is not None:
        return frozenset(name for name, _ in table.grouped.keys)
    if not table.branches:
        return frozenset() if table.rows == 1 and not table.scaled else None
    if len(table.branches) > 1 or any(join.multiplies for join in table.branches[0].rows.joins):
        return None
    inner = one_row_by(table.branches[0].rows.table)
    names = {of.origin.removeprefix("t0."): name for name, of in table.branches[0].columns if isinstance(of, Column)}
    if inner is None or not inner <= set(names):
        return None
    return frozenset(names[one] for one in inner)
