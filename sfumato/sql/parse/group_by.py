"""Names above GROUP BY: keys and aggregates are outputs, and all other expressions are made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import Aggregate, calls_aggregate, kind_of
from sfumato.sql.expressions import Expression, Output
from sfumato.sql.parse.ast_guard import require_known_parts
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import Scope


@dataclass
class Groups:
    """Resolves names above GROUP BY; collects the aggregates that it meets in `aggregates`."""

    rows: Scope
    keys: list[Expression]
    named: Mapping[str, exp.Expression]
    aggregates: list[Aggregate] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    met: dict[str, Expression] = field(default_factory=dict)  # parsed named columns: parsing each once avoids 2^n calls

    def known(self, node: exp.Expression) -> Expression | None:
        if kind_of(node) is not None or isinstance(node, exp.Filter):
            return self.output(self.aggregate(node))
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self.named:
            name = node.name.lower()
            if name not in self.busy and not any(known == name for _, known in self.rows.names):
                self.busy.add(name)
                try:
                    if name not in self.met:
                        self.met[name] = parse_expression(self.named[name], self)
                    return self.met[name]
                finally:
                    self.busy.discard(name)
        if not calls_aggregate(node) and any(node.find_all(exp.Column)):
            try:
                inner = parse_expression(node, self.rows)
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

    def output(self, aggregate: Aggregate) -> Output:
        """The output of this aggregate; equal aggregates share one."""
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return Output(len(self.keys) + self.aggregates.index(aggregate), aggregate.domain)

    def aggregate(self, node: exp.Expression) -> Aggregate:
        """The aggregate that a node calls, with its FILTER."""
        if isinstance(node, exp.Filter):
            require_known_parts(node)
            return self.aggregate(node.this).filtered(parse_expression(node.expression.this, self.rows))
        kind = kind_of(node)
        if kind is None:
            raise QueryRefused(f"{node.sql('duckdb')[:60]}: FILTER belongs to an aggregate.")
        return kind.parse(node, self.rows, self.keys)
