"""JOIN: with a public table, or with a private one on the unit that both have."""

from dataclasses import replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import TEXT
from sfumato.sql.expressions import Column, Expression, columns
from sfumato.sql.normal import call
from sfumato.sql.policy import ROW, Table
from sfumato.sql.reading.nodes import plain
from sfumato.sql.reading.scopes import Scope, columns_of
from sfumato.sql.reading.values import expression
from sfumato.sql.release import Join


def joined(left: Scope, join: exp.Join, table: Table, alias: str) -> Scope:
    """With a table, found by equality with columns of the rows so far."""
    plain(join)
    if join.side not in ("", "LEFT") or join.kind not in (("", "OUTER") if join.side else ("", "INNER")):
        raise QueryRefused(
            f"{' '.join(filter(None, [join.side, join.kind]))} JOIN is not allowed.\n"
            "  do:     use JOIN … ON … = …, or LEFT JOIN to keep rows that find nothing"
        )
    place = len(left.joins) + 1
    if any(known == alias for known, _ in left.names):
        raise QueryRefused(f"two tables are called {alias!r}.\n  do:     give one another name")
    theirs = {(alias, c): column for c, column in columns_of(table, place).items()}
    both = replace(left, names={**left.names, **theirs})
    pairs = equalities(join, both, place, left)
    if join.args.get("using"):  # one column of that name: both are equal
        both = replace(both, names={**both.names, **{(alias, name): mine for mine, name in pairs}})
    if not table.public:
        same_unit(left.table, table, pairs)
    found = replace(both, joins=(*left.joins, Join(table, tuple(pairs))))
    if join.side == "LEFT":
        return found
    name = pairs[0][1]
    unit = not table.public and name == table.unit  # a unit may be of any type, and the policy need not say which
    match = Column(f"t{place}.{name}", TEXT) if unit else columns_of(table, place)[name]
    return replace(found, where=call("and", left.where, call("not", call("is null", match))))


def equalities(join: exp.Join, both: Scope, place: int, left: Scope) -> list[tuple[Expression, str]]:
    """USING or ON as pairs: what is equal, of the rows so far, and to which column of the joined table."""
    if using := join.args.get("using"):
        names = [column.name.lower() for column in using]
        return [alike(left.find("", name), both.find_in(place, name), name) for name in names]
    found = []
    on = join.args.get("on")
    on = on.unnest() if on is not None else None
    for part in on.flatten() if isinstance(on, exp.And) else [on] if on is not None else []:
        if not isinstance(part := part.unnest(), exp.EQ):
            raise QueryRefused("ON compares columns for equality, joined by AND.")
        sides = [expression(part.this, both), expression(part.expression, both)]
        mine = [s for s in sides if not any(c.origin.startswith(f"t{place}.") for c in columns(s))]
        other = [s for s in sides if isinstance(s, Column) and s.origin.startswith(f"t{place}.")]
        if len(mine) != 1 or len(other) != 1:
            raise QueryRefused("ON compares a column of the joined table with one of the rows before.")
        found.append(alike(mine[0], other[0], other[0].origin.split(".", 1)[1]))
    if not found:
        raise QueryRefused("a JOIN needs ON or USING.\n  do:     write JOIN wards USING (ward), not FROM visits, wards")
    return found


def alike(mine: Expression, theirs: Expression, name: str) -> tuple[Expression, str]:
    if mine.domain.kind is not theirs.domain.kind:
        raise QueryRefused(
            f"ON compares a {mine.domain.kind.value} with a {theirs.domain.kind.value}.\n  do:     CAST one"
        )
    return mine, name


def same_unit(left: Table, right: Table, pairs: list[tuple[Expression, str]]) -> None:
    """Private tables are joined on their unit: each row of the result is then of one unit, and of its own rows only."""
    units = [name for mine, name in pairs if name == right.unit and repr(mine) == f"t0.{left.unit}"]
    if ROW in (left.unit, right.unit) or left.unit != right.unit or not units:
        raise QueryRefused(
            "private tables are joined on the unit that both have.\n"
            f"  found:  {left.name} of {left.unit!r}, {right.name} of {right.unit!r}\n"
            f"  do:     JOIN {right.name} USING ({left.unit})"
        )
