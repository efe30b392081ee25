"""IN (SELECT …), EXISTS (SELECT …) and scalar sub-selects: each is a table that a row finds at most one row of.

Of a public table anything may be asked. Of a private one only rows of the same unit count: the unit, or a key by which
the policy finds it, must be among what is compared. So another unit's rows, and its NULLs, change nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import TEXT, Domain, number
from sfumato.sql.expressions import Column, Constant, Expression
from sfumato.sql.parse.ast_guard import node_text, without_alias
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.grouped import GroupNames, grouped_table, label_of, rows_of_group, tables_of_rows
from sfumato.sql.parse.joins import Keys, identity, in_order, is_unit
from sfumato.sql.parse.scopes import Scope, substitute
from sfumato.sql.plan import GroupValue, Join, Plan, Reduce
from sfumato.sql.simplify import call
from sfumato.sql.units import RowUnit

FLIPPED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.NEQ: exp.NEQ,
    exp.EQ: exp.EQ,
}
NOTHING = Constant(None)


@dataclass(frozen=True)
class Correlation:
    """A comparison of something of the outer rows with something of the inner ones: outer `how` inner."""

    how: type[exp.Binary]
    outer: Expression
    inner: Expression


def is_subquery(node: exp.Expr) -> bool:
    """Is it IN (SELECT …), EXISTS (SELECT …) or a SELECT that stands for a value?"""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Exists) or (isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.In))


def own_subqueries(nodes: list[exp.Expression]) -> Iterator[exp.Expression]:
    """The outermost ones among these nodes and below."""
    for node in nodes:
        for one in node.walk(prune=is_subquery):
            if is_subquery(one) and isinstance(one, exp.Expression):
                yield one


def correlation(node: exp.Expression, inner: Scope, outer: Scope) -> Correlation | None:
    """A condition of WHERE that compares the inner with the outer rows; None if it is about the inner rows alone."""
    used = list(node.find_all(exp.Column))
    inner = inner.without_inherited(one for one in used if outer.has_itself(one))
    if all(inner.knows(one) for one in used) or not all(inner.knows(one) or outer.knows(one) for one in used):
        return None
    if not isinstance(node, exp.Binary) or type(node) not in FLIPPED:
        raise QueryRefused(
            f"{node_text(node)}: a sub-select compares its rows with the outer ones by =, <>, <, <=, >, >=."
        )
    sides = [node.this, node.expression]
    inside = [[inner.knows(one) for one in side.find_all(exp.Column)] for side in sides]
    for how, mine, theirs in ((type(node), 0, 1), (FLIPPED[type(node)], 1, 0)):
        if not any(inside[mine]) and inside[theirs] and all(inside[theirs]):
            return Correlation(how, parse_expression(sides[mine], outer), parse_expression(sides[theirs], inner))
    raise QueryRefused(f"{node_text(node)}: one side is of the outer rows, the other of the sub-select.")


@dataclass
class Attached:
    """Sub-selects, joined one by one to the rows that they are asked about."""

    scope: Scope
    keys: Keys

    def add(self, node: exp.Expression, inside: Scope, listed: list[tuple[str, Expression]],
            correlated: list[Correlation], aggregated: exp.Select | None) -> None:  # fmt: skip
        """Read one; `inside` are its rows, `listed` its columns, if it has no aggregates without GROUP BY."""
        if isinstance(node, exp.In):
            outer = parse_expression(node.this, self.scope)
            if len(listed) != 1 or aggregated is not None:
                raise QueryRefused(f"{node_text(node)}: IN takes a SELECT of one column of rows.")
            same = Correlation(exp.EQ, outer, listed[0][1])
            match = self.matched(inside, [*correlated, same], node)
            known = Column(outer.origin, TEXT) if isinstance(outer, Column) and is_unit(self.scope, outer) else outer
            sure = is_unit(self.scope, outer, first=True)  # rows without a unit are left out
            found = match if sure else call("case", call("is null", known), NOTHING, match)
        elif isinstance(node, exp.Exists):
            found = Constant(True) if aggregated is not None else self.matched(inside, correlated, node)
        else:
            found = self.scalar(inside, listed, correlated, aggregated, node)
        self.scope = replace(self.scope, subqueries={**self.scope.subqueries, id(node): found})

    def matched(self, inside: Scope, correlated: list[Correlation], node: exp.Expression) -> Expression:
        """Is there a row? By one inequality at most: it holds for some row if it does for the least or greatest."""
        equal = [one for one in correlated if one.how is exp.EQ]
        other = [one for one in correlated if one.how is not exp.EQ]
        if len(other) > 1:
            raise QueryRefused(f"{node_text(node)}: at most one comparison with the outer rows by <>, <, <=, > or >=.")
        values = {GroupValue(Reduce.ROWS): number(0.0)}
        if other:
            of = other[0].inner
            values = {GroupValue(how, of): of.domain for how in (Reduce.LEAST, Reduce.GREATEST)}
        columns = self.join(inside, equal, values, node)
        if not other:
            return call("<", Constant(0), call("coalesce", columns[0], Constant(0)))
        mine, (least, most) = other[0].outer, columns
        match other[0].how:
            case exp.LT:
                found = call("<", mine, most)
            case exp.LTE:
                found = call("<=", mine, most)
            case exp.GT:
                found = call("<", least, mine)
            case exp.GTE:
                found = call("<=", least, mine)
            case _:
                found = call("or", *(call("not", call("=", mine, one)) for one in (least, most)))
        return call("coalesce", found, Constant(False))

    def scalar(self, inside: Scope, listed: list[tuple[str, Expression]], correlated: list[Correlation],
               aggregated: exp.Select | None, node: exp.Expression) -> Expression:  # fmt: skip
        """The value of a SELECT of one column: of an aggregate, or of the one row that it finds (of several, the least
        value)."""
        if any(one.how is not exp.EQ for one in correlated):
            raise QueryRefused(f"{node_text(node)}: compared with the outer rows by = alone.")
        if aggregated is None:
            if len(listed) != 1 or not inside.table.public:
                raise QueryRefused(f"{node_text(node)}: a SELECT that stands for a value has one aggregate of rows.")
            of = listed[0][1]
            return self.join(inside, correlated, {GroupValue(Reduce.LEAST, of): of.domain}, node)[0]
        if len(aggregated.expressions) != 1:
            raise QueryRefused(f"{node_text(node)}: a SELECT that stands for a value has one column.")
        rows = Plan(inside.table, inside.joins, inside.where, (), ())
        names = GroupNames(inside, {}, {}, (tables_of_rows(rows), ()), rows_of_group(rows, True), {})
        of = parse_expression(without_alias(aggregated.expressions[0]), names)
        columns = dict(zip(names.values, self.join(inside, correlated, names.values, node), strict=True))
        meaning: dict[str, Expression] = {}
        for value, column in columns.items():  # without rows, counts are 0
            counted = value.reduce in (Reduce.ROWS, Reduce.VALUES, Reduce.DISTINCT)
            meaning[f"t0.{names.label(value)}"] = call("coalesce", column, Constant(0)) if counted else column
        return substitute(of, meaning)

    def join(self, inside: Scope, equal: list[Correlation], values: dict[GroupValue, Domain], node: exp.Expression
             ) -> list[Expression]:  # fmt: skip
        """Group the inner rows by what is compared, join that table, and return its columns for these values."""
        for one in equal:
            units = is_unit(self.scope, one.outer) and is_unit(inside, one.inner)
            if not units and one.outer.domain.kind is not one.inner.domain.kind:
                raise QueryRefused(
                    f"{node_text(node)} compares a {one.outer.domain.kind.value} with a {one.inner.domain.kind.value}."
                    "\n  do:     CAST one"
                )
        private = not inside.table.public
        if private:
            self.require_unit(inside, equal, node)
        on_unit = [one for one in equal if private and is_unit(inside, one.inner, first=True)
                 and is_unit(self.scope, one.outer)]  # fmt: skip
        others = [one for one in equal if one not in on_unit]
        rows = Plan(inside.table, inside.joins, inside.where, (), ())
        group = tables_of_rows(rows), tuple(sorted({repr(one.inner) for one in others}))
        labels = {one.inner: label_of(group, one.inner) for one in others}
        names = GroupNames(inside, {}, {}, group, rows_of_group(rows, True), {})
        names.values.update(values)
        table = grouped_table(rows, {label: of for of, label in labels.items()}, names)
        pairs = in_order([(one.outer, labels[one.inner]) for one in others])
        if private:
            assert table.unit_column is not None and self.scope.table.unit_origin is not None
            mine = [(one.outer, table.unit_column) for one in on_unit if not is_unit(self.scope, one.outer, first=True)]
            pairs = (*pairs, *in_order(mine), (Column(self.scope.table.unit_origin, TEXT), table.unit_column))
        join = Join(table, pairs, once=private)
        if join in self.scope.joins:
            place = self.scope.joins.index(join) + 1
        else:
            self.scope = replace(self.scope, joins=(*self.scope.joins, join))
            place = len(self.scope.joins)
        return [Column(f"t{place}.{names.label(value)}", names.values[value]) for value in values]

    def require_unit(self, inside: Scope, equal: list[Correlation], node: exp.Expression) -> None:
        """Refuse a private sub-select that is not about the unit of the outer row alone."""
        same = inside.table.unit == self.scope.table.unit and not isinstance(inside.table.unit, RowUnit)
        same = same and not self.scope.table.public
        for one in equal if same else ():
            if is_unit(inside, one.inner) and is_unit(self.scope, one.outer):
                return
            mine, theirs = identity(self.scope, one.outer, self.keys), identity(inside, one.inner, self.keys)
            if mine is not None and mine == theirs:
                return
        unit = inside.table.unit_column or "the unit"
        raise QueryRefused(
            f"{node_text(node)}: this depends on all rows of {inside.table.name}, not on those of one person.\n"
            f"  found:  nothing that compares {unit} with that of the outer rows"
        )
