"""FROM, JOIN, WHERE and WITH: the rows of a SELECT."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import calls_aggregate
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import alias, node_text, require_known_parts, without_alias
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.joins import join_table, sort_joins
from sfumato.sql.parse.scopes import Scope, columns_of
from sfumato.sql.parse.unions import selects, unite
from sfumato.sql.plan import Table
from sfumato.sql.policy import Policy
from sfumato.sql.simplify import call, filter_condition

MOST_JOINS = 10
MAIN = "main"  # DuckDB's name for it
PARTS = {"expressions", "from_", "from", "joins", "where", "group", "having", "order", "limit", "offset", "with_",
         "with", "distinct"}  # fmt: skip


@dataclass
class Rows:
    """The tables of one statement: those of the policy, and the views of WITH."""

    policy: Policy
    views: dict[str, Scope] = field(default_factory=dict)
    schema: str = MAIN  # the engine's name for the schema of the owner's tables

    def scope(self, query: exp.Select) -> Scope:
        """FROM, JOIN and WHERE."""
        for part, value in query.args.items():
            if value and part not in PARTS:
                raise QueryRefused(f"{part.upper().strip('_')} is not allowed in a question.")
        self.name_views(query)
        source = query.args.get("from_") or query.args.get("from")
        if source is None:
            raise QueryRefused("a question is about a table.\n  do:     SELECT … FROM a table of the policy")
        joins = query.args.get("joins") or []
        if len(joins) > MOST_JOINS:
            raise QueryRefused(f"at most {MOST_JOINS} joins.")
        first, ordered = self.private_first(source.this, joins)
        found = self.source(first)
        for join in ordered:
            found = join_table(found, join, self.joinable(join.this), alias(join.this))
        if ordered is not joins:  # SELECT * shows columns in the order of the text
            written = [alias(node) for node in (source.this, *(join.this for join in joins))]
            names = sorted(found.names.items(), key=lambda item: written.index(item[0][0]))
            found = replace(found, names=dict(names))
        found = sort_joins(found)
        if where := query.args.get("where"):
            found = replace(
                found, where=call("and", found.where, filter_condition(parse_expression(where.this, found)))
            )
        return found

    def name_views(self, query: exp.Query) -> None:
        """Read the views of WITH; each may use those before it."""
        found = query.args.get("with_") or query.args.get("with")
        if found is None:
            return
        if found.args.get("recursive"):
            raise QueryRefused("recursive WITH is not allowed.")
        for cte in found.expressions:
            require_known_parts(cte)
            name = alias(cte)
            self.views[name] = self.view(cte.this)

    def private_first(
        self, source: exp.Expression, joins: list[exp.Join]
    ) -> tuple[exp.Expression, list[exp.Join]]:  # fmt: skip
        """FROM wards JOIN visits as FROM visits JOIN wards: the rows are those of the first private table.

        Public tables that are joined to each other before are joined after it; all are INNER, or LEFT and public.
        """
        if not self.is_public(source):
            return source, joins
        place = next((i for i, join in enumerate(joins) if not self.is_public(join.this)), None)
        if place is None:
            return source, joins
        join = joins[place]
        if join.kind not in ("", "INNER", "OUTER") or join.side not in (("", "RIGHT") if place == 0 else ("",)):
            kind = " ".join(filter(None, [join.side, join.kind]))
            raise QueryRefused(f"{kind} JOIN is not allowed here: rows of {node_text(source)} alone are nobody's.")
        kept = {name: join.args[name] for name in ("on", "using") if join.args.get(name)}
        back = exp.Join(this=source, side="LEFT" if join.side == "RIGHT" else None, **kept)
        require_known_parts(join)
        return join.this, [back, *joins[:place], *joins[place + 1 :]]

    def is_public(self, node: exp.Expression) -> bool:
        named = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        table = self.policy.tables.get(node.name.lower()) if named and not self.is_view(node) else None
        return table is not None and table.public

    def is_view(self, node: exp.Expression) -> bool:
        """Does it name a view of WITH? A name with a schema is a table of the owner."""
        if (schema := node.args.get("db")) is None:
            return node.name.lower() in self.views
        if schema.name.lower() != self.schema:
            raise QueryRefused(f"there is no schema {schema.name!r} here.\n  found:  {self.schema}")
        return False

    def source(self, node: exp.Expression) -> Scope:
        require_known_parts(node)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            return self.view(node.this).under_alias(alias(node) if node.alias else "")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise QueryRefused("FROM takes tables of the policy, and SELECTs over them.")
        name = node.name.lower()
        if self.is_view(node):
            return self.views[name].under_alias(alias(node))
        table = self.table(name)
        if table.public:
            raise QueryRefused(f"{name} is public: ask the database itself, or join it to a private table.")
        return Scope(table, {(alias(node), name): column for name, column in columns_of(table, 0).items()})

    def joinable(self, node: exp.Expression) -> Table:
        """The table that JOIN names."""
        require_known_parts(node)
        named = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if not named or self.is_view(node):
            raise QueryRefused(
                f"{node.name or 'this'} cannot be joined.\n  do:     join tables of the policy themselves"
            )
        return self.table(node.name.lower())

    def table(self, name: str) -> Table:
        found = self.policy.tables.get(name)
        if found is None:
            known = ", ".join(sorted(self.policy.tables))
            raise QueryRefused(f"there is no table {name!r}.\n  found:  {known}\n  do:     ask about one of these")
        return found

    def view(self, query: exp.Query) -> Scope:
        """A SELECT over rows: references to its columns are replaced by their expressions."""
        inside = Rows(self.policy, dict(self.views), self.schema)  # its views are not visible outside
        if isinstance(query, exp.SetOperation):
            inside.name_views(query)
            return unite(
                [Rows(self.policy, dict(inside.views), self.schema).rows_and_columns(one) for one in selects(query)]
            )
        if not isinstance(query, exp.Select):
            raise QueryRefused("FROM and WITH take SELECTs, alone or with UNION ALL between them.")
        scope, columns = inside.rows_and_columns(query)
        names: dict[tuple[str, str], Expression] = {}
        for name, of in columns:
            if names.setdefault(("", name), of) != of:
                raise QueryRefused(f"two columns are called {name!r}.\n  do:     give one another name: … AS other")
        return replace(scope, names=names)

    def rows_and_columns(self, query: exp.Select) -> tuple[Scope, list[tuple[str, Expression]]]:
        """The rows of a SELECT, and its columns in order."""
        if any(query.args.get(part) for part in ("group", "having", "limit", "offset", "distinct")) or (
            calls_aggregate(query)
        ):
            raise QueryRefused(
                "a SELECT inside a question works on rows, one by one.\n"
                "  found:  GROUP BY, LIMIT or an aggregate in it\n"
                "  do:     aggregate rows once, in the outer SELECT; one around that may choose, compute and sort"
            )
        scope, columns = self.scope(query), []
        for node in query.expressions:
            require_known_parts(node)
            if isinstance(node, exp.Star):
                columns += [(name, scope.find("", name)) for name in dict.fromkeys(name for _, name in scope.names)]
            else:
                name = node.alias_or_name.lower() if isinstance(node, exp.Alias | exp.Column) else node_text(node)
                columns.append((name, parse_expression(without_alias(node), scope)))
        return scope, columns
