"""UNION ALL: the rows of several SELECTs as one table.

Each row of the union comes from one row of one branch, which comes from rows of one unit. So a unit's rows in the union
are a function of that unit's own rows. Contributions are bounded after the union, by hashes of what the unit has there:
whatever bounds `groups` and `rows` the union is given, adding or removing a unit changes at most `groups` groups, each
by at most `rows` rows. Its bounds are the sums over its branches, so rows within the bounds of their own tables are
never left out.

Where each row is a person, no contributions are bounded: a row of the database is in the union once for each branch on
its table, so it has at most that many rows and groups; rows of different tables are different people.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from sfumato.sql.domains import Domain
from sfumato.sql.expressions import Expression, columns
from sfumato.sql.functions.costs import KEY
from sfumato.sql.plan import Branch, Plan, Table
from sfumato.sql.units import RowUnit


def stack_branches(
    rows: Sequence[Plan], values: Mapping[str, tuple[Expression, ...]], domains: Mapping[str, Domain]
) -> Table:
    """The union of these rows; `values` has the expression of each column in each branch."""
    branches = tuple(
        Branch(one, tuple((name, of[i]) for name, of in sorted(values.items()))) for i, one in enumerate(rows)
    )
    name = " + ".join(sorted(one.table.name for one in rows))
    table = Table(name, dict(sorted(domains.items())), unit=rows[0].table.unit, branches=branches)
    if isinstance(table.unit, RowUnit):
        most = max(row_multiplicity(table).values())
        return replace(table, groups=most, rows=most)
    if any(one.table.scaled for one in rows):
        stated = [one.table.most for one in rows]
        return table.scale(None if None in stated else sum(one or 0 for one in stated))
    return replace(table, groups=sum(one.table.groups for one in rows), rows=sum(one.rows for one in rows))


def row_multiplicity(table: Table) -> Counter[str]:
    """How often a row of each table of the database can be in this table."""
    if not table.branches:
        return Counter({table.name: 1})
    return sum((row_multiplicity(branch.rows.table) for branch in table.branches), Counter())


def column_label(rows: Sequence[Plan], values: Sequence[Expression]) -> str:
    """A column's name, by its content: the same for every order of branches and columns, and every alias."""
    found = sorted((one.canonical, repr(value)) for one, value in zip(rows, values, strict=True))
    return f"c{hashlib.sha256(repr(found).encode()).hexdigest()[:32]}"


def count_selects(table: Table) -> int:
    """How many SELECTs there are, nested ones included."""
    return sum(count_selects(branch.rows.table) for branch in table.branches) or 1


def branches_weight(table: Table) -> int:
    """Length of the branches as SQL text, in words."""
    return sum(
        branches_weight(branch.rows.table) + branch.rows.where.weight + sum(of.weight for _, of in branch.columns)
        for branch in table.branches
    )


def row_cost(plan: Plan, of: Callable[[Expression], float] = lambda one: one.cost) -> float:
    """Upper bound on the nanoseconds that an engine needs for one row of a plan, from the cost `of` expressions."""
    inside = sum(row_cost(one.rows, of) + sum(of(value) for _, value in one.columns) for one in plan.table.branches)
    keys = sum(of(key) + KEY * key.domain.longest for key in plan.keys)  # again: each may be looked up in a list
    return inside + keys + sum(map(of, row_expressions(plan)))


def prune_columns(plan: Plan, *more: Expression) -> Plan:
    """The same question without unused columns of unions, and with branches in canonical order."""
    if not plan.table.branches:
        return plan
    used = {one.origin.removeprefix("t0.") for e in [*row_expressions(plan), *more] for one in columns(e)}
    kept = []
    for branch in plan.table.branches:
        of = tuple((name, e) for name, e in branch.columns if name in used)
        kept.append(Branch(prune_columns(branch.rows, *(e for _, e in of)), of))
    domains = {name: domain for name, domain in plan.table.columns.items() if name in used}
    table = replace(plan.table, columns=domains, branches=tuple(sorted(kept, key=repr)))
    return replace(plan, table=table)


def row_expressions(plan: Plan) -> Iterator[Expression]:
    """All expressions over rows in a plan."""
    yield plan.where
    yield from plan.keys
    yield from (m.of for m in plan.measures if m.of)
    yield from (value for one in plan.standalone for value in one.arguments)
    yield from (mine for join in plan.joins for mine, _ in join.on)
