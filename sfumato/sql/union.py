"""UNION ALL: rows of several SELECTs one under the other, as a table that questions may be about.

Each row of a stack is made of one row of one branch, and that of rows of one unit alone: so a unit's rows in the stack
are a function of that unit's own rows. What a question keeps of a unit is decided after the stacking, by hashes of what
the unit itself has there; so whatever `groups` and `rows` a stack is given, adding or removing a unit moves at most
`groups` groups, each by at most `rows` rows. We give it the sums over its branches: a unit that keeps to each table's
bounds keeps to these as well, and nothing is left out that the branches would count by themselves.

Where each row is a person there is nobody to bound: a row of the database is in the stack once for each branch on its
table, so it has that many rows and groups at most; rows of different tables are different people.
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
    """A table of these rows; for each column, its value in each of them."""
    branches = tuple(
        Branch(one, tuple((name, of[i]) for name, of in sorted(values.items()))) for i, one in enumerate(rows)
    )
    name = " + ".join(sorted(one.table.name for one in rows))
    table = Table(name, dict(sorted(domains.items())), unit=rows[0].table.unit, branches=branches)
    if isinstance(table.unit, RowUnit):
        most = max(row_multiplicity(table).values())
        return replace(table, groups=most, rows=most)
    return replace(table, groups=sum(one.table.groups for one in rows), rows=sum(one.rows for one in rows))


def row_multiplicity(table: Table) -> Counter[str]:
    """How often a row of each table of the database may be in this one."""
    if not table.branches:
        return Counter({table.name: 1})
    return sum((row_multiplicity(branch.rows.table) for branch in table.branches), Counter())


def column_label(rows: Sequence[Plan], values: Sequence[Expression]) -> str:
    """A column's name, by what stands in it: the same for every order of branches and columns, and every alias."""
    found = sorted((one.canonical, repr(value)) for one, value in zip(rows, values, strict=True))
    return f"c{hashlib.sha256(repr(found).encode()).hexdigest()[:32]}"


def count_selects(table: Table) -> int:
    """How many SELECTs there are, those inside others included."""
    return sum(count_selects(branch.rows.table) for branch in table.branches) or 1


def branches_weight(table: Table) -> int:
    """How long the branches are, written out."""
    return sum(
        branches_weight(branch.rows.table) + branch.rows.where.weight + sum(of.weight for _, of in branch.columns)
        for branch in table.branches
    )


def row_cost(plan: Plan, of: Callable[[Expression], float] = lambda one: one.cost) -> float:
    """Nanoseconds that an engine needs for one row of it at most, whatever the row holds, if for an expression it needs
    so many."""
    inside = sum(row_cost(one.rows, of) + sum(of(value) for _, value in one.columns) for one in plan.table.branches)
    keys = sum(of(key) + KEY * key.domain.longest for key in plan.keys)  # once more: each may be sought in a list
    return inside + keys + sum(map(of, row_expressions(plan)))


def prune_columns(plan: Plan, *more: Expression) -> Plan:
    """Without columns of stacks that nothing reads, and with branches in one order: both make no other question."""
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
    """All expressions over rows that a plan is made of."""
    yield plan.where
    yield from plan.keys
    yield from (m.of for m in plan.measures if m.of)
    yield from (value for one in plan.standalone for value in one.arguments)
    yield from (mine for join in plan.joins for mine, _ in join.on)
