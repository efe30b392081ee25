"""UNION ALL of SELECTs over rows: columns by position, with the names of the first SELECT."""

import math
from dataclasses import replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import Domain, Kind
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions.result_domains import covering_domain
from sfumato.sql.parse.ast_guard import require_known_parts
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.plan import Plan
from sfumato.sql.postprocess import sort_key
from sfumato.sql.union import column_label, count_selects, stack_branches
from sfumato.sql.units import RowUnit

MOST_BRANCHES = 16
Selected = tuple[Scope, list[tuple[str, Expression]]]  # rows, and what is selected of them, with its name


def selects(node: exp.Expression) -> list[exp.Select]:
    """The SELECTs of a chain of UNION ALL, from the first to the last."""
    found: list[exp.Select] = []
    waiting: list[exp.Expression] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.SetOperation):
            if not isinstance(one, exp.Union) or one.args.get("distinct") or one.args.get("by_name"):
                named = bool(one.args.get("by_name"))
                same = isinstance(one, exp.Union) and not one.args.get("distinct")
                raise QueryRefused(
                    "only UNION ALL is supported between SELECTs: it keeps each row.\n"
                    f"  found:  {one.key.upper()}{' BY NAME' if named else ''}"
                    + ("\n  do:     leave BY NAME out, and list the columns in the same order" if same else "")
                )
            require_known_parts(one)
            waiting += [one.expression, one.this]
        elif isinstance(one, exp.Subquery) and not one.alias:
            require_known_parts(one)
            waiting.append(one.this)
        elif isinstance(one, exp.Select):
            found.append(one)
        else:
            raise QueryRefused("UNION ALL is between SELECTs.")
    return found


def unite(branches: list[Selected]) -> Scope:
    """One scope for all branches: expressions at the same position are one column, whose domain covers theirs."""
    rows = [Plan(scope.table, scope.joins, scope.where, (), ()) for scope, _ in branches]
    require_same_unit(rows)
    widths = sorted({len(listed) for _, listed in branches})
    if len(widths) > 1:
        found = " and ".join(map(str, widths))
        raise QueryRefused(f"UNION ALL needs SELECTs with equally many columns.\n  found:  {found} columns")
    names: dict[tuple[str, str], Expression] = {}
    values: dict[str, tuple[Expression, ...]] = {}
    domains = {}
    for place, (name, _) in enumerate(branches[0][1]):
        column = tuple(listed[place][1] for _, listed in branches)
        if all(isinstance(one, Column) and one.origin == rows[0].table.unit_origin for one in column):
            names["", name] = Column(  # units are not truncated here, but where they are read
                f"t0.{rows[0].table.unit_column}", replace(common_domain(column), length=math.inf)
            )
            continue
        column = of_one_kind(column, place + 1)
        title = column_label(rows, column)
        while values.get(title, column) != column:  # the same values, paired differently
            title += "x"
        values[title], domains[title] = column, common_domain(column)
        names["", name] = Column(f"t0.{title}", domains[title])
    table = stack_branches(rows, values, domains)
    if count_selects(table) > MOST_BRANCHES:
        raise QueryRefused(f"at most {MOST_BRANCHES} SELECTs in a UNION ALL.\n  found:  {count_selects(table)}")
    return Scope(table, names)


def common_domain(column: tuple[Expression, ...]) -> Domain:
    """The domain that covers all branches; keys in canonical order."""
    found = covering_domain(*(one.domain for one in column))
    return found if found.keys is None else replace(found, keys=tuple(sorted(found.keys, key=sort_key)))


def require_same_unit(rows: list[Plan]) -> None:
    units = {one.table.unit for one in rows}
    if len(units) > 1:
        listed = ", ".join(f"{one.table.name} of {str(one.table.unit)!r}" for one in rows)
        row = "\n          where each row is a person, nobody knows who is in both" if RowUnit() in units else ""
        raise QueryRefused(
            f"UNION ALL takes tables that share one unit.\n  found:  {listed}{row}\n  do:     ask about each by itself"
        )


def of_one_kind(column: tuple[Expression, ...], place: int) -> tuple[Expression, ...]:
    """Texts in quotes beside dates are read as dates; nothing else is cast."""
    kinds = {one.domain.kind for one in column if one != Constant(None)}
    if kinds == {Kind.DATE, Kind.TEXT}:
        column = tuple(
            Call("timestamp", (one,)) if isinstance(one, Constant) and one.value is not None else one for one in column
        )
        kinds = {one.domain.kind for one in column if one != Constant(None)}
    if len(kinds) > 1:
        raise QueryRefused(
            f"UNION ALL, column {place}: all values must be of one kind.\n"
            f"  found:  {', '.join(sorted(kind.value for kind in kinds))}\n  do:     CAST one of them"
        )
    return column
