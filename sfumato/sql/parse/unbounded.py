"""Which column has no bounds where a question sums it: one of the policy, or a value of a GROUP BY inside it."""

from collections.abc import Iterator, Sequence

from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Column
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Grouped, Plan, Table
from sfumato.sql.value_lattice import GENERATED


class UnboundedValue(UnboundedColumn):
    """A column that a GROUP BY inside a question computes, such as COUNT(*), has no bounds.

    `column` is its name in `owner`, which follows from its content; `title` is what the question calls it.
    """

    def __init__(self, words: str, origin: str, owner: Table, column: str, title: str):
        super().__init__(words.replace(GENERATED, title), origin, owner.name, column)
        self.owner, self.title = owner, title


def name_unbounded(refusal: UnboundedColumn, scope: Scope) -> QueryRefused:
    """The refusal with the names of table and column; a plain one if no bounds could be found for it: where it is no
    column of a private table, or the unit."""
    place, _, name = refusal.origin.partition(".")
    number = int(place.removeprefix("t"))
    owner = scope.joins[number - 1].table if number else scope.table
    if owner.branches:
        return name_in_branches(refusal, owner, name)
    titles = (title for (_, title), of in scope.names.items() if isinstance(of, Column) and of.origin == refusal.origin)
    title = next(titles, GENERATED)
    domain = owner.columns.get(name)
    if owner.public or domain is None or domain.kind is not Kind.NUMBER or domain.bounded or name == owner.unit_column:
        return QueryRefused(str(refusal).replace(GENERATED, title))
    if owner.grouped is not None:
        return UnboundedValue(str(refusal), refusal.origin, owner, name, title)
    return UnboundedColumn(str(refusal), refusal.origin, owner.name, name)


def name_in_branches(refusal: UnboundedColumn, union: Table, name: str) -> QueryRefused:
    """The first column without bounds that UNION ALL selects there, if all of these are plain columns."""
    values = [(branch.rows, value) for branch in union.branches for title, value in branch.columns if title == name]
    endless = [(rows, value) for rows, value in values if not value.domain.bounded]
    if not endless or not all(isinstance(value, Column) for _, value in endless):
        return QueryRefused(str(refusal))
    rows, value = endless[0]
    assert isinstance(value, Column)
    return name_unbounded(UnboundedColumn(str(refusal), value.origin), Scope(rows.table, {}, rows.where, rows.joins))


def has_one_source(name: str, plans: Sequence[Plan]) -> bool:
    """Is a value of GROUP BY computed from the same rows wherever it occurs in these plans?

    Values are named by their content without conditions, so COUNT(*) of two GROUP BYs with another WHERE has one name,
    and bounds that were found for one would be applied to both.
    """
    found = [one for plan in plans for one in groupings(plan) if name in dict(one.values)]
    return len({(one.rows.canonical, one.keys) for one in found}) < 2


def groupings(plan: Plan) -> Iterator[Grouped]:
    """Every GROUP BY inside a plan."""
    for table in (plan.table, *(join.table for join in plan.joins)):
        if table.grouped is not None:
            yield table.grouped
        for rows in table.inner_plans:
            yield from groupings(rows)
