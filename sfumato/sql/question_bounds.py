"""Bounds that a question states for itself: tighter than the owner's, never looser.

A question about a table without `rows` and `groups` may state them; it is then answered as if the policy did. Noise
depends on these bounds and so must what is counted: a bound that is looser than the owner's is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.sql.plan import Plan, Table
from sfumato.sql.policy import Policy

LARGEST = 10**9


@dataclass(frozen=True)
class QuestionBounds:
    """At most so many rows of a unit count in a group, in at most so many groups; or a unit is supposed to have at most
    so many rows. None: as the policy says."""

    rows: int | None = None
    groups: int | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and (type(value) is not int or not 1 <= value <= LARGEST):
                raise InvalidParameter(
                    f"{name} is a number of rows or groups.\n  found:  {value!r}\n"
                    "  do:     give a whole number from 1 on"
                )

    def stated_bounds(self) -> dict[str, int]:
        """The bounds that are not None, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def policy_of(self, policy: Policy, plan: Plan) -> Policy:
        """The policy in which the tables that a plan reads have these bounds, or QueryRefused."""
        if self.most is not None and (self.rows or self.groups):
            raise QueryRefused(
                "a question states either what counts of a unit or what it is supposed to have.\n"
                "  found:  most beside rows or groups\n  do:     leave one of them out"
            )
        read = {table.name: self.tighten(table) for table in private_tables(plan)}
        return replace(policy, tables={**policy.tables, **read})

    def tighten(self, table: Table) -> Table:
        """The table under these bounds."""
        if self.most is not None:
            return self.suppose(table, self.most)
        limits = {"rows": table.rows, "groups": table.groups}
        if table.scaled:  # no bounds: any is tighter, but what the owner says that there is
            limits = {} if table.most is None else {"rows": table.most}
        self.require_tighter(table, limits)
        rows, groups = (self.rows or 1, self.groups or 1) if table.scaled else (self.rows, self.groups)
        return replace(
            table, rows=rows or table.rows, groups=groups or table.groups, scaled=False, most=None,
        )  # fmt: skip

    def suppose(self, table: Table, most: int) -> Table:
        if not table.scaled:
            raise QueryRefused(
                f"most is for tables whose contributions are scaled.\n  found:  bounds of {table.name} in the policy\n"
                "  do:     leave it out, or state fewer rows or groups"
            )
        self.require_tighter(table, {} if table.most is None else {"most": table.most})
        return table if most == table.most else replace(table, most=most, supposed=True)

    def require_tighter(self, table: Table, limits: dict[str, int]) -> None:
        for name, value in self.stated_bounds().items():
            if value > limits.get(name, value):
                raise QueryRefused(
                    f"a question can tighten the owner's bounds, not loosen them.\n"
                    f"  found:  {name} = {value}, where {table.name} has {limits[name]} in the policy\n"
                    f"  do:     give at most {limits[name]}, or leave {name} out"
                )


AS_STATED = QuestionBounds()  # by the policy


def private_tables(plan: Plan) -> Iterator[Table]:
    """The private tables of the database that a plan reads."""
    for table in (plan.table, *(join.table for join in plan.joins)):
        for rows in table.inner_plans:
            yield from private_tables(rows)
        if not table.public and not table.derived:
            yield table
