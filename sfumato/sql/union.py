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
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sfumato.sql.domains import Domain
from sfumato.sql.expressions import Expression, columns
from sfumato.sql.plan import Branch, Grouped, Plan, Table
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
        stated = [None if one.crossed else one.table.most for one in rows]
        return table.scale(None if None in stated else sum(one or 0 for one in stated))
    return replace(table, groups=sum(one.table.groups for one in rows), rows=sum(one.rows for one in rows))


def row_multiplicity(table: Table) -> Counter[str]:
    """How often a row of each table of the database can be in this table."""
    if not table.derived:
        return Counter({table.name: 1})
    return sum((row_multiplicity(rows.table) for rows in table.inner_plans), Counter())


def column_label(rows: Sequence[Plan], values: Sequence[Expression]) -> str:
    """A column's name, by its content: the same for every order of branches and columns, and every alias."""
    found = sorted((one.canonical, repr(value)) for one, value in zip(rows, values, strict=True))
    return f"c{hashlib.sha256(repr(found).encode()).hexdigest()[:32]}"


def count_selects(table: Table) -> int:
    """How many SELECTs there are, nested ones included."""
    return sum(count_selects(rows.table) for rows in table.inner_plans) or 1


def derived_weight(plan: Plan) -> int:
    """Length of derived tables as SQL text, in words."""
    return sum(
        derived_weight(rows) + sum(of.weight for of in rows.row_expressions)
        for table in plan.tables
        for rows in table.inner_plans
    ) + sum(of.weight for table in plan.tables for of in table.inner_expressions)


def most_joined_rows(plan: Plan) -> int:
    """The most rows that joins make of one unit's rows, in a plan and in the tables that it derives: one person with
    many rows must not decide how long a question takes, also where contributions are scaled and not cut."""
    made = plan.table.rows * math.prod(join.table.rows for join in plan.joins if join.multiplies) if plan.crossed else 1
    return max([made, *(most_joined_rows(rows) for table in plan.tables for rows in table.inner_plans)])


def prune_columns(plan: Plan, *more: Expression) -> Plan:
    """The plan without unused columns of derived tables, and with branches in canonical order."""
    if not any(table.derived for table in plan.tables):
        return plan
    read = [one.origin.split(".", 1) for e in [*plan.row_expressions, *more] for one in columns(e)]
    used = [{name for place, name in read if place == f"t{i}"} for i in range(len(plan.joins) + 1)]
    joins = tuple(
        replace(join, table=prune_table(join.table, used[i] | {name for _, name in join.on}))
        for i, join in enumerate(plan.joins, 1)
    )
    return replace(plan, table=prune_table(plan.table, used[0]), joins=joins)


def prune_table(table: Table, used: set[str]) -> Table:
    """A derived table with these of its columns."""
    if table.grouped is not None:
        keys, values = table.grouped.keys, [one for one in table.grouped.values if one[0] in used]
        grouped = Grouped(table.grouped.rows, keys, tuple(values))
        rows = prune_columns(grouped.rows, *grouped.expressions)
        domains = {name: table.columns[name] for name in sorted([name for name, _ in (*keys, *values)])}
        return replace(table, columns=domains, grouped=replace(grouped, rows=rows))
    if not table.branches:
        return table
    branches = []
    for branch in table.branches:
        of = tuple((name, e) for name, e in branch.columns if name in used)
        kept = Branch(branch.rows, of, tuple((name, value) for name, value in branch.windows if name in used))
        branches.append(replace(kept, rows=prune_columns(branch.rows, *kept.expressions)))
    domains = {name: domain for name, domain in table.columns.items() if name in used}
    return replace(table, columns=domains, branches=tuple(sorted(branches, key=repr)))
