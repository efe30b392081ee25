"""Which column of the policy has no bounds, where a question sums it: from its lineage to its table and name."""

from collections.abc import Sequence

from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Column
from sfumato.sql.plan import Join, Table


def name_unbounded(refusal: UnboundedColumn, table: Table, joins: Sequence[Join]) -> QueryRefused:
    """The refusal with the names of table and column; a plain one if no bounds could be found for it: where it is no
    column of a private table, or the unit."""
    place, _, name = refusal.origin.partition(".")
    number = int(place.removeprefix("t"))
    owner = joins[number - 1].table if number else table
    if owner.branches:
        return name_in_branches(refusal, owner, name)
    domain = owner.columns.get(name)
    if owner.public or domain is None or domain.kind is not Kind.NUMBER or domain.bounded or name == owner.unit_column:
        return QueryRefused(str(refusal))
    return UnboundedColumn(str(refusal), refusal.origin, owner.name, name)


def name_in_branches(refusal: UnboundedColumn, union: Table, name: str) -> QueryRefused:
    """The first column without bounds that UNION ALL selects there, if all of these are plain columns."""
    values = [(branch.rows, value) for branch in union.branches for title, value in branch.columns if title == name]
    endless = [(rows, value) for rows, value in values if not value.domain.bounded]
    if not endless or not all(isinstance(value, Column) for _, value in endless):
        return QueryRefused(str(refusal))
    rows, value = endless[0]
    assert isinstance(value, Column)
    return name_unbounded(UnboundedColumn(str(refusal), value.origin), rows.table, rows.joins)
