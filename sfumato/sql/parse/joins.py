"""JOIN: with a public table, or with a private one of the same unit, on the unit or on a key that identifies it."""

from dataclasses import replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import TEXT
from sfumato.sql.expressions import Column, Expression, columns
from sfumato.sql.parse.ast_guard import require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope, columns_of, renumber
from sfumato.sql.plan import Join, Table
from sfumato.sql.simplify import call
from sfumato.sql.units import RowUnit

Pairs = list[tuple[Expression, str]]


def join_table(left: Scope, join: exp.Join, table: Table, alias: str) -> Scope:
    """Join a table by equality with columns of the rows so far."""
    require_known_parts(join)
    if join.side not in ("", "LEFT") or join.kind not in (("", "OUTER") if join.side else ("", "INNER")):
        raise QueryRefused(
            f"{' '.join(filter(None, [join.side, join.kind]))} JOIN is not allowed here.\n"
            "  found:  it keeps rows that are nobody's, or leaves out those that find something"
        )
    place = len(left.joins) + 1
    if any(known == alias for known, _ in left.names):
        raise QueryRefused(f"two tables are called {alias!r}.\n  do:     give one another name")
    theirs = {(alias, c): column for c, column in columns_of(table, place).items()}
    both = replace(left, names={**left.names, **theirs})
    pairs = equalities(join, both, place, left)
    if join.args.get("using"):  # one column of that name: both are equal
        both = replace(both, names={**both.names, **{(alias, name): mine for mine, name in pairs}})
    found = Join(table, tuple(pairs)) if table.public else of_one_unit(left, table, pairs)
    inner = join.side != "LEFT"
    if inner and (swapped := child_first(both, found)) is not None:
        both, found = swapped
    both = replace(both, joins=(*left.joins, found))
    return replace(both, where=call("and", both.where, match_condition(found, place))) if inner else both


def match_condition(join: Join, place: int) -> Expression:
    """The condition that a row has a match."""
    name = join.on[0][1]
    unit = not join.table.public and name == join.table.unit_column  # of any type, and the policy need not say which
    match = Column(f"t{place}.{name}", TEXT) if unit else columns_of(join.table, place)[name]
    return call("not", call("is null", match))


def equalities(join: exp.Join, both: Scope, place: int, left: Scope) -> Pairs:
    """USING or ON as pairs: an expression over the rows so far, and the column of the joined table that it equals."""
    if using := join.args.get("using"):
        names = [column.name.lower() for column in using]
        return [require_same_kind(left.find("", name), both.find_in(place, name), name) for name in names]
    found = []
    on = join.args.get("on")
    on = on.unnest() if on is not None else None
    for part in on.flatten() if isinstance(on, exp.And) else [on] if on is not None else []:
        if not isinstance(part := part.unnest(), exp.EQ):
            raise QueryRefused("ON compares columns for equality, joined by AND.")
        sides = [parse_expression(part.this, both), parse_expression(part.expression, both)]
        mine = [s for s in sides if not any(c.origin.startswith(f"t{place}.") for c in columns(s))]
        other = [s for s in sides if isinstance(s, Column) and s.origin.startswith(f"t{place}.")]
        if len(mine) != 1 or len(other) != 1:
            raise QueryRefused("ON compares a column of the joined table with one of the rows before.")
        found.append(require_same_kind(mine[0], other[0], other[0].origin.split(".", 1)[1]))
    if not found:
        raise QueryRefused(
            "a JOIN needs ON or USING.\n  do:     write the equality after ON: JOIN wards ON visits.ward = wards.ward"
        )
    return found


def require_same_kind(mine: Expression, theirs: Expression, name: str) -> tuple[Expression, str]:
    if mine.domain.kind is not theirs.domain.kind:
        raise QueryRefused(
            f"ON compares a {mine.domain.kind.value} with a {theirs.domain.kind.value}.\n  do:     CAST one"
        )
    return mine, name


# ---- private tables -------------------------------------------------------------------------------------------------


def of_one_unit(left: Scope, right: Table, pairs: Pairs) -> Join:
    """Private tables are joined on their unit: each row of the result is then of one unit, and of its own rows only.

    A key by which the policy finds the unit belongs to one unit, so what is equal there is of the same unit: to add the
    equality of units then changes nothing, and makes it so whatever the data are.
    """
    same = not isinstance(left.table.unit, RowUnit) and left.table.unit == right.unit
    units = [name for mine, name in pairs if isinstance(mine, Column) and mine.origin == left.table.unit_origin]
    on_unit = right.unit_column in units
    keys = [name for mine, name in pairs if identifies_unit(left, mine, right, name)]
    if not same or not (on_unit or keys):
        listed = ", ".join(dict.fromkeys(name for _, name in pairs))
        raise QueryRefused(
            "this join of private tables could bring rows of different people together.\n"
            f"  found:  {left.table.name} of {str(left.table.unit)!r}, {right.name} of {str(right.unit)!r},"
            f" joined on {listed};\n"
            "          the policy does not say that rows which are equal there are of one person"
        )
    assert right.unit_column is not None
    unit = columns_of(left.table, 0)[right.unit_column]
    whole = pairs if on_unit else [*pairs, (unit, right.unit_column)]
    once = any(owner_column(left, mine) == (right.name, name) for mine, name in pairs)  # `leads` holds of such a pair
    return Join(right, tuple(whole), tuple(dict.fromkeys(keys)), once)


def identifies_unit(left: Scope, mine: Expression, right: Table, name: str) -> bool:
    """Does the policy find units by this equality: of child and parent, or of two children of one parent?"""
    parent, table = owner_column(left, mine), table_of(left, mine)
    theirs = (right.owner.table.name, right.owner.theirs) if right.owner and right.owner.mine == name else None
    if parent is not None and parent in ((right.name, name), theirs):
        return True
    column = mine.origin.split(".", 1)[1] if isinstance(mine, Column) else ""
    return theirs is not None and table is not None and theirs == (table.name, column)


def owner_column(left: Scope, mine: Expression) -> tuple[str, str] | None:
    """The table and its column where the unit of this row is found, if this column is what it is found by."""
    table = table_of(left, mine)
    if table is None or table.owner is None or not isinstance(mine, Column):
        return None
    found = mine.origin.split(".", 1)[1] == table.owner.mine
    return (table.owner.table.name, table.owner.theirs) if found else None


def table_of(left: Scope, mine: Expression) -> Table | None:
    """The table of a bare column."""
    if not isinstance(mine, Column):
        return None
    tables = [left.table, *(join.table for join in left.joins)]
    return tables[int(mine.origin.split(".", 1)[0][1:])]


def child_first(both: Scope, join: Join) -> tuple[Scope, Join] | None:
    """FROM orders JOIN lines as FROM lines JOIN orders, if a line has one order: then no row is multiplied."""
    child, parent = join.table, both.table
    plainly = not both.joins and not parent.branches and all(isinstance(mine, Column) for mine, _ in join.on)
    if join.table.public or not plainly or child.owner is None or child.owner.table.name != parent.name:
        return None
    if not any(name == child.owner.mine and on_parent(mine, child.owner.theirs) for mine, name in join.on):
        return None
    places = {"t0": "t1", "t1": "t0"}
    known = columns_of(child, 0)
    if child.unit_column is not None:
        known[child.unit_column] = Column(f"t0.{child.unit_column}", TEXT)
    on = tuple((known[name], mine.origin.split(".", 1)[1]) for mine, name in join.on if isinstance(mine, Column))
    names = {name: renumber(of, places) for name, of in both.names.items()}
    swapped = replace(both, table=child, names=names, where=renumber(both.where, places))
    return swapped, Join(parent, on, (child.owner.theirs,), once=True)


def on_parent(mine: Expression, name: str) -> bool:
    """Is this the column of the first table by which units are found?"""
    return isinstance(mine, Column) and mine.origin == f"t0.{name}"


def sort_joins(scope: Scope) -> Scope:
    """Joins in canonical order, whatever their order in the text: each join can be evaluated once the tables that it
    compares with are there."""
    waiting, order = dict(enumerate(scope.joins, 1)), [0]
    if len(waiting) < 2:
        return scope
    while waiting:
        places = {f"t{old}": f"t{new}" for new, old in enumerate(order)}
        ready = {i: join for i, join in waiting.items() if tables_needed(join) <= set(places)}
        first = min(ready, key=lambda i: (repr(renumber_join(ready[i], places)), i))
        order.append(first)
        del waiting[first]
    if order == sorted(order):
        return scope
    places = {f"t{old}": f"t{new}" for new, old in enumerate(order)}
    names = {name: renumber(of, places) for name, of in scope.names.items()}
    joins = tuple(renumber_join(scope.joins[old - 1], places) for old in order[1:])
    return replace(scope, names=names, joins=joins, where=renumber(scope.where, places))


def tables_needed(join: Join) -> set[str]:
    """The tables that a join compares with."""
    return {one.origin.split(".", 1)[0] for mine, _ in join.on for one in columns(mine)}


def renumber_join(join: Join, places: dict[str, str]) -> Join:
    return replace(join, on=tuple((renumber(mine, places), name) for mine, name in join.on))
