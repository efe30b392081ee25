"""FROM, JOIN, WHERE and WITH: the rows of a SELECT."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.expressions import Expression
from sfumato.sql.parse.ast_guard import alias, node_text, require_known_parts, without_alias
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.grouped import grouped_select, is_grouped
from sfumato.sql.parse.joins import (
    Condition,
    Keys,
    Source,
    conditions_of,
    equalities_of_where,
    inherited_of,
    join_sources,
    sort_joins,
    split_conjuncts,
)
from sfumato.sql.parse.problems import Problems, closest, placed
from sfumato.sql.parse.scopes import Scope, columns_of
from sfumato.sql.parse.subqueries import Attached, Correlation, correlation, own_subqueries
from sfumato.sql.parse.unbounded import name_unbounded
from sfumato.sql.parse.unions import selects, unite
from sfumato.sql.parse.windows import Windowed, has_windows, windowed_scope
from sfumato.sql.plan import Table
from sfumato.sql.policy import Policy
from sfumato.sql.simplify import call, filter_condition

MOST_JOINS = 10
MOST_SUBQUERIES = 8
MAIN = "main"  # DuckDB's name for it
PARTS = {"expressions", "from_", "from", "joins", "where", "group", "having", "order", "limit", "offset", "with_",
         "with", "distinct"}  # fmt: skip


@dataclass
class Rows:
    """The tables of one statement: those of the policy, and the views of WITH."""

    policy: Policy
    views: dict[str, "Scope | Later"] = field(default_factory=dict)
    schema: str = MAIN  # the engine's name for the schema of the owner's tables
    outer: Scope | None = None  # the rows around, if these are of IN, EXISTS or a value
    correlated: list[Correlation] = field(default_factory=list)
    gather: bool = False  # go on after a condition that is refused, and tell it with other problems
    problems: Problems = field(default_factory=Problems)

    def scope(self, query: exp.Select) -> Scope:
        """FROM, JOIN and WHERE of a question."""
        found = self.rows(query)
        if found.table.public:
            raise QueryRefused(f"{found.table.name} is public: ask the database itself, or join it to a private table.")
        return found

    def rows(self, query: exp.Select) -> Scope:
        """FROM, JOIN and WHERE of any SELECT."""
        for part, value in query.args.items():
            if value and part not in PARTS:
                raise QueryRefused(f"{part.upper().strip('_')} is not allowed in a question.")
        self.name_views(query)
        where = query.args.get("where")
        parts = list(split_conjuncts(where.this)) if where is not None else []
        found, taken = self.joined(query, parts)
        parts = [part for part in parts if id(part) not in taken]
        if self.outer is not None:
            parts = [part for part in parts if not self.is_correlated(part, found)]
        found = self.with_subqueries([*parts, *query.expressions, *group_nodes(query)], found)
        conditions = []
        for one in parts:
            with self.problems.noted(one) if self.gather else placed(one):
                conditions.append(filter_condition(parse_expression(one, found)))
        return replace(found, where=call("and", found.where, *conditions)) if conditions else found

    def is_correlated(self, part: exp.Expression, found: Scope) -> bool:
        """Does it compare with the rows around? Then it is remembered."""
        assert self.outer is not None
        one = correlation(part, found, self.outer)
        if one is not None:
            self.correlated.append(one)
        return one is not None

    # ---- FROM and JOIN ----------------------------------------------------------------------------------------------

    def joined(self, query: exp.Select, where: list[exp.Expression]) -> tuple[Scope, set[int]]:
        """The rows of FROM and JOIN, and the parts of WHERE that join tables after a comma."""
        source = query.args.get("from_") or query.args.get("from")
        if source is None:
            raise QueryRefused("the question has no FROM.\n  do:     SELECT … FROM a table of the policy")
        joins = query.args.get("joins") or []
        if len(joins) > MOST_JOINS:
            raise QueryRefused(f"at most {MOST_JOINS} joins.")
        if not joins:
            return self.source(source.this), set()
        sources = [Source(0, alias(source.this), self.source(source.this))]
        for place, join in enumerate(joins, 1):
            sources.append(Source(place, alias(join.this), self.source(join.this)))
        sources = [replace(one, left=left) for one, left in zip(sources, optional(sources, joins), strict=True)]
        conditions = conditions_of(sources, joins)
        loose = any(not (j.args.get("on") or j.args.get("using") or j.method) for j in joins)
        known: dict[int, Condition] = {}
        if loose:
            listed = {k: v for one in sources for k, v in one.names.items()}
            names = Scope(sources[0].scope.table, listed, inherited=inherited_of(sources))
            parts = [*where, *(common for part in where for common in common_conjuncts(part))]
            known = {id(part): one for part in parts if (one := equalities_of_where(part, names)) is not None}
        found, taken = join_sources(sources, [*conditions, *known.values()], self.keys)
        return found, {part for part, one in known.items() if any(one is other for other in taken)}

    @property
    def keys(self) -> Keys:
        """The columns by which the policy finds units."""
        owners = [table.owner for table in self.policy.tables.values() if table.owner is not None]
        return frozenset((owner.table.name, owner.theirs) for owner in owners)

    # ---- IN, EXISTS and values --------------------------------------------------------------------------------------

    def with_subqueries(self, nodes: list[exp.Expression], scope: Scope) -> Scope:
        """The rows, joined with what sub-selects in these nodes find."""
        found, many = Attached(scope, self.keys), 0
        for node in own_subqueries(nodes):
            many += 1
            query = node.args["query"].this if isinstance(node, exp.In) else node.this
            if not isinstance(query, exp.Select) or many > MOST_SUBQUERIES:
                raise QueryRefused(
                    f"{node_text(node)}: IN, EXISTS and values take one SELECT, and a question has at most"
                    f" {MOST_SUBQUERIES} of them."
                )
            inside = Rows(self.policy, dict(self.views), self.schema, scope)
            alone = is_grouped(query) and not query.args.get("group") and not query.args.get("distinct")
            if alone and any(query.args.get(part) for part in ("having", "limit", "offset")):
                raise QueryRefused(f"{node_text(node)}: HAVING and LIMIT are not allowed in it.")
            rows, listed = (inside.rows(query), []) if alone else inside.rows_and_columns(query, node)
            found.add(node, rows, listed, inside.correlated, query if alone else None)
        return sort_joins(found.scope) if many else scope

    # ---- views ------------------------------------------------------------------------------------------------------

    def name_views(self, query: exp.Query) -> None:
        """Read the views of WITH; each may use those before it. One with GROUP BY is read where it is used: it may be
        about released values, or of no use to rows."""
        found = query.args.get("with_") or query.args.get("with")
        if found is None:
            return
        if found.args.get("recursive"):
            raise QueryRefused("recursive WITH is not allowed.")
        for cte in found.expressions:
            require_known_parts(cte)
            later = isinstance(cte.this, exp.Select) and (is_grouped(cte.this) or has_windows(cte.this))
            self.views[alias(cte)] = Later(cte.this, dict(self.views)) if later else self.view(cte.this)

    def is_view(self, node: exp.Expression) -> bool:
        """Does it name a view of WITH? A name with a schema is a table of the owner."""
        if (schema := node.args.get("db")) is None:
            return node.name.lower() in self.views
        if schema.name.lower() != self.schema:
            raise QueryRefused(f"there is no schema {schema.name!r} here.\n  found:  {self.schema}")
        return False

    def source(self, node: exp.Expression) -> Scope:
        """A table of the policy, a view or a SELECT, under its alias."""
        with placed(node):
            return self.source_of(node)

    def source_of(self, node: exp.Expression) -> Scope:
        require_known_parts(node)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            return self.view(node.this).under_alias(alias(node) if node.alias else "")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise QueryRefused("FROM takes tables of the policy, and SELECTs over them.")
        name = node.name.lower()
        if self.is_view(node):
            found = self.views[name]
            if isinstance(found, Later):
                found = self.views[name] = Rows(self.policy, found.views, self.schema).view(found.query)
            return found.under_alias(alias(node))
        table = self.table(name)
        names = {(alias(node), name): column for name, column in columns_of(table, 0).items()}
        owned = frozenset({(alias(node), table.unit_column)} if table.owner and table.unit_column else ())
        return Scope(table, names, inherited=owned)

    def table(self, name: str) -> Table:
        found = self.policy.tables.get(name)
        if found is None:
            known = ", ".join(sorted(self.policy.tables))
            meant = closest(name, sorted(self.policy.tables))
            do = f"did you mean {meant}?" if meant else "ask about one of these"
            raise QueryRefused(f"there is no table {name!r}.\n  found:  {known}\n  do:     {do}")
        return found

    def view(self, query: exp.Query) -> Scope:
        """A SELECT over rows: references to its columns are replaced by their expressions."""
        inside = Rows(self.policy, dict(self.views), self.schema)  # its views are not visible outside
        query = semi_joined(query)
        if isinstance(query, exp.SetOperation):
            inside.name_views(query)
            parts = [Rows(self.policy, dict(inside.views), self.schema).rows_and_columns(one) for one in selects(query)]
            if any(scope.table.public for scope, _ in parts):
                raise QueryRefused("UNION ALL takes private tables that share one unit.\n  found:  a public one")
            return unite(parts)
        if not isinstance(query, exp.Select):
            raise QueryRefused("FROM and WITH take SELECTs, alone or with UNION ALL between them.")
        scope, columns = inside.rows_and_columns(query)
        names: dict[tuple[str, str], Expression] = {}
        for name, of in columns:
            if names.setdefault(("", name), of) != of:
                raise QueryRefused(f"two columns are called {name!r}.\n  do:     give one another name: … AS other")
        return replace(scope, names=names)

    def rows_and_columns(
        self, query: exp.Select, node: exp.Expression | None = None
    ) -> tuple[Scope, list[tuple[str, Expression]]]:
        """The rows of a SELECT, and its columns in order; of EXISTS they mean nothing."""
        if query.args.get("limit") or query.args.get("offset"):
            raise QueryRefused(
                "a SELECT inside a question reads each row alone, or the rows of one person.\n"
                "  found:  LIMIT in it\n"
                "  do:     choose rows by WHERE; a SELECT around the aggregates may sort and choose"
            )
        if isinstance(node, exp.Exists) and not query.args.get("group"):
            return self.rows(query), []
        if has_windows(query):
            return self.windowed(query)
        if is_grouped(query):
            return grouped_select(query, self.rows(query), self.keys, self.policy.value_bounds)
        scope = self.rows(query)
        return scope, self.columns_of_rows(query, scope)

    def windowed(self, query: exp.Select) -> tuple[Scope, list[tuple[str, Expression]]]:
        """The rows of a SELECT with windows over those of each person, and its columns in order."""
        found = Windowed.of(query)
        rows = self.rows(found.query)
        try:
            scope = windowed_scope(found.windows, rows, self.keys)
        except UnboundedColumn as refusal:
            raise refusal if refusal.column else name_unbounded(refusal, rows) from None
        if found.condition is not None:
            scope = replace(scope, where=filter_condition(parse_expression(found.condition, scope)))
        return scope, self.columns_of_rows(found.query, scope)

    def columns_of_rows(self, query: exp.Select, scope: Scope) -> list[tuple[str, Expression]]:
        """The columns of a SELECT of rows, in order."""
        columns: list[tuple[str, Expression]] = []
        for one in query.expressions:
            require_known_parts(one)
            if isinstance(one, exp.Star):
                columns += [(name, scope.find("", name)) for name in dict.fromkeys(name for _, name in scope.names)]
            else:
                name = one.alias_or_name.lower() if isinstance(one, exp.Alias | exp.Column) else node_text(one)
                columns.append((name, parse_expression(without_alias(one), scope)))
        return columns


def common_conjuncts(part: exp.Expression) -> list[exp.Expression]:
    """What all operands of an OR have in common: it holds where the OR does."""
    if not isinstance(part, exp.Or):
        return []
    first, *others = [list(split_conjuncts(one)) for one in part.flatten()]
    return [one for one in first if all(one in other or swapped(one) in other for other in others)]


def swapped(node: exp.Expression) -> exp.Expression:
    """b = a for a = b."""
    return exp.EQ(this=node.expression.copy(), expression=node.this.copy()) if isinstance(node, exp.EQ) else node


def semi_joined(query: exp.Query) -> exp.Query:
    """SELECT x … INTERSECT SELECT y … as the different x that are among the y; EXCEPT as those that are not."""
    if not isinstance(query, exp.Intersect | exp.Except) or not query.args.get("distinct"):
        return query
    one, other = query.this, query.expression
    if not all(isinstance(side, exp.Select) and len(side.expressions) == 1 for side in (one, other)):
        return query
    inner, name = one.copy(), one.expressions[0].alias_or_name or "sf_value"
    if not inner.expressions[0].alias_or_name:
        inner.set("expressions", [exp.alias_(inner.expressions[0], name)])
    found = exp.select(exp.column(name)).from_(inner.subquery("sf_both")).distinct()
    among = exp.In(this=exp.column(name), query=exp.Subquery(this=other.copy()))
    found = found.where(among if isinstance(query, exp.Intersect) else exp.Not(this=among))
    found.set("with_", query.args.get("with_"))
    return found


@dataclass(frozen=True)
class Later:
    """A view that is read where it is used."""

    query: exp.Select
    views: "dict[str, Scope | Later]"


def group_nodes(query: exp.Select) -> list[exp.Expression]:
    """The keys of GROUP BY in the text."""
    group = query.args.get("group")
    return list(group.expressions) if group is not None else []


def optional(sources: list[Source], joins: list[exp.Join]) -> list[bool]:
    """Which sources may be missing in a row: those of a LEFT JOIN. Rows of public tables alone are nobody's and never
    count, so a private table that is joined to such rows is never missing."""
    found = [False] * len(sources)
    for place, join in enumerate(joins, 1):
        require_known_parts(join)
        before = sources[:place]
        nobody = all(one.public for one in before)
        side, kind = join.side, join.kind
        fine = kind in ("", "OUTER") if side else kind in ("", "INNER", "CROSS")
        if (
            not fine
            or join.method not in ("", "NATURAL")
            or side not in ("", "LEFT", "RIGHT")
            or (side == "RIGHT" and place > 1)
        ):
            raise QueryRefused(
                f"{' '.join(filter(None, [join.method, side, kind]))} JOIN is not allowed here.\n"
                "  found:  it keeps rows that have no unit, or drops rows that have a match"
            )
        if side == "LEFT":
            found[place] = sources[place].public or not nobody
        elif side == "RIGHT":
            found[0] = nobody or not sources[place].public
    return found
