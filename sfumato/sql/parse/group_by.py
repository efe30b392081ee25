"""Above GROUP BY: keys and aggregates are outputs, and everything else is made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregates import (
    AGGREGATES,
    OTHERWISE,
    RANKS,
    STATISTICS,
    SUMS,
    Triangles,
    TrimmedMean,
    of_values,
    part,
    plainly,
    ranked,
)
from sfumato.sql.domains import Domain, number
from sfumato.sql.expressions import Column, Expression, Output
from sfumato.sql.parse.ast_guard import plain, shown
from sfumato.sql.parse.expressions import expression
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.parse.sums import Wanted
from sfumato.sql.plan import Window, exponent, window
from sfumato.sql.statistics import Mode, Statistic, mode, triangles, trimmed


@dataclass
class Groups:
    """What names stand for above GROUP BY; `wanted` collects the aggregates that are met."""

    rows: Scope
    keys: list[Expression]
    named: Mapping[str, exp.Expression]
    wanted: list[Wanted] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    met: dict[str, Expression] = field(default_factory=dict)  # named columns that were read: each once, or 2^n times

    def known(self, node: exp.Expression) -> Expression | None:
        if isinstance(node, OTHERWISE):
            plain(node)
            return self.known(plainly(node))
        if isinstance(node, AGGREGATES):
            return self.aggregate(node)
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self.named:
            name = node.name.lower()
            if name not in self.busy and not any(known == name for _, known in self.rows.names):
                self.busy.add(name)
                try:
                    if name not in self.met:
                        self.met[name] = expression(self.named[name], self)
                    return self.met[name]
                finally:
                    self.busy.discard(name)
        if not any(node.find_all(*AGGREGATES)) and any(node.find_all(exp.Column)):
            try:
                inner = expression(node, self.rows)
            except QueryRefused:
                if isinstance(node, exp.Column):
                    raise
                return None
            if inner in self.keys:
                return self.key(inner)
        return None

    def key(self, key: Expression) -> Output:
        return Output(self.keys.index(key), key.domain)

    def find(self, alias: str, name: str) -> Expression:
        raise QueryRefused(
            f"{name!r} is neither a key nor inside an aggregate.\n  do:     GROUP BY it, or aggregate it: SUM({name})"
        )

    def aggregate(self, node: exp.Expression) -> Expression:
        """An output for this aggregate, the same one for the same aggregate."""
        wanted: Wanted
        if isinstance(node, STATISTICS) or (isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode)):
            wanted = self.statistic(node)
        else:
            wanted = self.by_rank(node) if isinstance(node, RANKS) else self.summed(node)
        if wanted not in self.wanted:
            self.wanted.append(wanted)
        domain = Domain(wanted.of.domain.kind) if isinstance(wanted, Mode) else number()
        return Output(len(self.keys) + self.wanted.index(wanted), domain)

    def statistic(self, node: exp.Expression) -> Statistic:
        plain(node)
        if isinstance(node, exp.WithinGroup):
            plain(node.this)
        if isinstance(node, Triangles):
            if self.keys:
                raise QueryRefused("TRIANGLES is of one graph.\n  do:     choose its edges by WHERE, without GROUP BY")
            return triangles(self.rows.table, [expression(one, self.rows) for one in node.expressions])
        if isinstance(node, TrimmedMean):
            if node.expressions or isinstance(node.this, exp.Distinct):
                raise QueryRefused(f"{shown(node)}: TRIMMED_MEAN takes a column and a number: TRIMMED_MEAN(x, 0.1).")
            return trimmed(expression(node.this, self.rows), part(node.args.get("expression")), shown(node))
        return mode(expression(of_values(node), self.rows), shown(node))

    def by_rank(self, node: exp.Expression) -> Window:
        inner, part = ranked(node)
        return window(expression(inner, self.rows), part, shown(node))

    def summed(self, node: exp.Expression) -> tuple[str, Expression | None]:
        inner, name = node.this, SUMS[type(node)]
        plain(node)
        if isinstance(inner, exp.Star) or inner is None:
            if name != "count":
                raise QueryRefused(f"{name.upper()} takes one argument.")
            return "count", None
        if isinstance(inner, exp.Distinct):
            return self.different(node, inner)
        if node.expressions:
            raise QueryRefused(f"{name.upper()} takes one argument.")
        found = expression(inner, self.rows)
        if name != "count":
            exponent(found, shown(node))  # refuses what has no bounds
        return name, found

    def different(self, node: exp.Expression, inner: exp.Distinct) -> tuple[str, Expression | None]:
        """COUNT(DISTINCT x); of the unit, it is a count of units."""
        of = [expression(one, self.rows) for one in inner.expressions]
        if not isinstance(node, exp.Count) or len(of) != 1:
            raise QueryRefused(f"{shown(node)} is not allowed: DISTINCT is for COUNT of one column.")
        unit = isinstance(of[0], Column) and of[0].origin == self.rows.table.unit_origin
        return ("units", None) if unit else ("distinct", of[0])
