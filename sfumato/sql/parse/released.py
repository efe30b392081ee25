"""Free SQL over private aggregations: where a text aggregates private rows, and what it does with the answers.

Each SELECT that aggregates private rows becomes a question, and a released table in what is left of the text. That runs
where no private rows are, over released and public tables, and may do anything with them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.parse.from_where import MAIN
from sfumato.sql.parse.lift import Lifted, grouping_title
from sfumato.sql.parse.outer_select import column_title, has_aggregates
from sfumato.sql.parse.select import MOST_ROWS, parse_core
from sfumato.sql.parse.trace import trace
from sfumato.sql.plan import Table, What
from sfumato.sql.policy import Policy
from sfumato.sql.question import Outer, Question, ReleasedPart, ReleasedTable

ROWS, CORE, RELEASED = "rows", "core", "released"
MOST_QUESTIONS = 64


@dataclass(frozen=True)
class Views:
    """The visible views of WITH: what each is, and those over rows, which go with the SELECTs that read them."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    over_rows: tuple[exp.CTE, ...] = ()

    def with_view(self, cte: exp.CTE, kind: str) -> "Views":
        over_rows = (*self.over_rows, cte) if kind == ROWS else self.over_rows
        return Views({**self.kinds, cte.alias.lower(): kind}, over_rows)


@dataclass
class Splitter:
    """Replaces private aggregations by released tables; collects the questions that they ask."""

    policy: Policy
    schema: str
    prefix: str
    questions: list[Question] = field(default_factory=list)
    tables: list[ReleasedTable] = field(default_factory=list)
    public: dict[str, Table] = field(default_factory=dict)

    # ---- what a query is about --------------------------------------------------------------------------------------

    def kind(self, node: exp.Expression, views: Views) -> str:
        """Rows of people, an aggregation of them, or released and public values.

        It decides what is tried, not what is safe: no private table gets into what runs over released values, whatever
        is said here (`name_table`, `Outer`).
        """
        if isinstance(node, exp.Subquery):
            return ROWS if self.any_rows(joined(node), views) else self.kind(node.this, views)
        if isinstance(node, exp.Table):
            return ROWS if self.any_rows(joined(node), views) else self.kind_of_table(node, views)
        if isinstance(node, exp.SetOperation):
            return ROWS if self.any_rows((node.this, node.expression), self.visible(node, views)) else RELEASED
        if not isinstance(node, exp.Select):  # PIVOT, LATERAL, VALUES and what else may stand in a FROM
            return ROWS if self.any_rows(nearest_queries(node), views) else RELEASED
        if not self.any_rows(sources(node), self.visible(node, views)):
            return RELEASED
        return CORE if has_aggregates(node) and not self.groups_by_unit(node) else ROWS

    def any_rows(self, nodes: Iterable[exp.Expression], views: Views) -> bool:
        return any(self.kind(one, views) == ROWS for one in nodes)

    def kind_of_table(self, node: exp.Table, views: Views) -> str:
        if not isinstance(node.this, exp.Identifier):  # a function: it finds nothing where no private rows are
            return ROWS if self.any_rows(nearest_queries(node.this), views) else RELEASED
        name = node.name.lower()
        if not node.args.get("db") and name in views.kinds:
            return views.kinds[name]
        table = self.policy.tables.get(name)
        return RELEASED if table is None or table.public else ROWS

    def groups_by_unit(self, select: exp.Select) -> bool:
        """Is each of its rows made of one person's rows, by the names in its GROUP BY?"""
        group = select.args.get("group")
        names = {key.name.lower() for key in (group.expressions if group else ()) if isinstance(key, exp.Column)}
        return any(not table.public and table.unit_column in names for table in self.policy.tables.values())

    def visible(self, query: exp.Expression, views: Views) -> Views:
        """The views inside a query."""
        for cte in views_of(query):
            kind = self.kind(cte.this, views)
            views = views.with_view(cte, ROWS if kind == ROWS else RELEASED)
        return views

    # ---- the same query over released tables ------------------------------------------------------------------------

    def released(self, query: exp.Expression, views: Views) -> exp.Expression:
        """The query with a released table for each aggregation in it; it is changed in place."""
        if isinstance(query, exp.Subquery):
            for one in list(query.iter_expressions()):
                self.walk(one, views)
            return query
        kind = self.kind(query, views)
        if kind == CORE and isinstance(query, exp.Select):
            return self.aggregation(query, self.visible(query, views))
        if kind == ROWS:
            raise shows_rows()
        views = self.released_views(query, views)
        for name, value in list(query.args.items()):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, exp.Expression) and name not in ("with_", "with"):
                    self.walk(one, views)
        return query

    def released_views(self, query: exp.Expression, views: Views) -> Views:
        """WITH: views over rows leave the text, and go with the SELECTs that aggregate them."""
        kept = []
        for cte in views_of(query):
            kind = self.kind(cte.this, views)
            if kind != ROWS:
                cte.set("this", self.released(cte.this, views))
                kept.append(cte)
            views = views.with_view(cte, ROWS if kind == ROWS else RELEASED)
        name = "with_" if "with_" in query.args else "with"
        if query.args.get(name) is not None:
            if kept:
                query.args[name].set("expressions", kept)
            else:
                query.set(name, None)
        return views

    def walk(self, node: exp.Expression, views: Views) -> None:
        """Release the queries inside a node, and note its public tables."""
        if isinstance(node, exp.Query) and not isinstance(node, exp.Table):
            found = self.released(node, views)
            if found is not node:
                node.replace(found)
            return
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            self.name_table(node, views)
        for one in list(node.iter_expressions()):
            if isinstance(one, exp.Expression):
                self.walk(one, views)

    def name_table(self, node: exp.Table, views: Views) -> None:
        name, place = node.name.lower(), node.args.get("db")
        if place is None and name in views.kinds:
            if views.kinds[name] == ROWS:
                raise shows_rows()
            return
        if place is not None and place.name.lower() != self.schema:
            raise QueryRefused(f"there is no schema {place.name!r} here.\n  found:  {self.schema}")
        table = self.policy.tables.get(name)
        if table is None:
            known = ", ".join(sorted(self.policy.tables))
            raise QueryRefused(f"there is no table {name!r}.\n  found:  {known}\n  do:     ask about one of these")
        if not table.public:
            raise shows_rows()
        node.set("db", None)
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
        node.set("this", exp.to_identifier(name, quoted=True))
        self.public[name] = table

    # ---- one aggregation --------------------------------------------------------------------------------------------

    def aggregation(self, query: exp.Select, views: Views) -> exp.Select:
        """A SELECT over the released table of this aggregation."""
        name = f"{self.prefix}{len(self.tables)}"
        try:
            question = self.parse(query, views)
        except UnboundedColumn:
            raise
        except QueryRefused as refusal:
            return self.lifted(query, views, name, refusal)
        titles = tuple(title for title, _ in question.columns)
        places = tuple(range(len(titles)))
        part = ReleasedPart(self.number(question), places, (None,) * len(places))
        self.tables.append(ReleasedTable(name, titles, (part,)))
        return exp.select(*(exp.column(title, quoted=True) for title in titles)).from_(exp.to_table(name))

    def lifted(self, query: exp.Select, views: Views, name: str, refusal: QueryRefused) -> exp.Select:
        """The same with windows, grouping sets and so on; the first refusal is the one that is told."""
        try:
            found = Lifted.of(query, name)
            questions = [self.parse(found.inner(one), views) for one in found.sets]
            widths = [len(chosen) + len(found.aggregates) for chosen in found.sets]
            if [len(one.columns) for one in questions] != widths:  # a histogram, which has columns of its own
                raise refusal
        except UnboundedColumn:
            raise
        except QueryRefused:
            raise refusal from None
        questions, consistent = bounded_together(questions)
        titles = (*found.titles, *(grouping_title(i) for i in found.groupings))
        width, aggregates = len(found.keys), len(found.aggregates)
        parts = []
        for chosen, question in zip(found.sets, questions, strict=True):
            places = [chosen.index(i) if i in chosen else None for i in range(width)]
            places += [len(chosen) + j for j in range(aggregates)] + [None] * len(found.groupings)
            flags = [0 if i in chosen else 1 for i in found.groupings]
            constants = (*[None] * (width + aggregates), *flags)
            parts.append(ReleasedPart(self.number(question), tuple(places), constants))
        self.tables.append(ReleasedTable(name, titles, tuple(parts), consistent))
        self.walk_inside(found.outer, views)
        return found.outer

    def walk_inside(self, outer: exp.Select, views: Views) -> None:
        """Release the queries inside the expressions of a lifted SELECT."""
        for part, value in list(outer.args.items()):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, exp.Expression) and part not in ("from_", "from"):
                    self.walk(one, views)

    def parse(self, query: exp.Select, views: Views) -> Question:
        core = query.copy()
        own = [cte.copy() for cte in views_of(core) if not any(cte.alias == one.alias for one in views.over_rows)]
        rows = [cte.copy() for cte in views.over_rows]
        core.set("with", None)
        core.set("with_", exp.With(expressions=[*rows, *own]) if rows or own else None)
        return parse_core(core, self.policy, self.schema)

    def number(self, question: Question) -> int:
        """Its number; the same question has one."""
        if question not in self.questions:
            self.questions.append(question)
        if len(self.questions) > MOST_QUESTIONS:
            raise QueryRefused(f"at most {MOST_QUESTIONS} aggregations in one question.")
        return self.questions.index(question)


def sources(select: exp.Select) -> list[exp.Expression]:
    """The tables and subqueries of FROM, JOIN and LATERAL."""
    source = select.args.get("from_") or select.args.get("from")
    return [*([source.this] if source is not None else []), *joined(select)]


def joined(node: exp.Expression) -> list[exp.Expression]:
    """What is joined to a SELECT's first source, or to a source inside its brackets."""
    return [*(join.this for join in node.args.get("joins") or ()), *(node.args.get("laterals") or ())]


def nearest_queries(node: exp.Expression) -> Iterator[exp.Expression]:
    """The queries and tables below a node, not those inside them."""
    for one in node.iter_expressions():
        if isinstance(one, exp.Query | exp.Table):
            yield one
        else:
            yield from nearest_queries(one)


def shows_rows() -> QueryRefused:
    return QueryRefused("a SELECT over rows would show them.\n  do:     aggregate rows: ask COUNT(*), SUM(…) or AVG(…)")


def views_of(query: exp.Expression) -> list[exp.CTE]:
    found = query.args.get("with_") or query.args.get("with")
    return list(found.expressions) if found is not None else []


def split(root: exp.Expression, policy: Policy, schema: str = MAIN) -> Question | None:
    """The questions of a text and the SQL around them; None if no rows are aggregated in it."""
    titles = titles_of(root)
    root = root.copy()
    prefix = "released_"
    while any(str(one.this).lower().startswith(prefix) for one in root.find_all(exp.Identifier)):
        prefix = f"_{prefix}"
    splitter = Splitter(policy, schema, prefix)
    found = splitter.released(root, Views())
    if not splitter.questions:
        return None
    try:
        sql = found.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)
    except SqlglotError:
        raise QueryRefused("this question cannot be written for the engine.") from None
    public = tuple(splitter.public.values())
    outer = Outer(sql, tuple(splitter.questions), tuple(splitter.tables), public, titles)
    return replace(splitter.questions[0], outer=replace(outer, traced=trace(found, outer)))


def titles_of(root: exp.Expression) -> tuple[str, ...]:
    """The titles of the columns of a query; none if it has a star."""
    while isinstance(root, exp.SetOperation | exp.Subquery):
        root = root.this
    if not isinstance(root, exp.Select) or any(one.is_star for one in root.expressions):
        return ()
    found: list[str] = []
    for one in root.expressions:
        found.append(column_title(one, found))
    return tuple(found)


def bounded_together(questions: list[Question]) -> tuple[list[Question], bool]:
    """The questions of grouping sets, about the same bounded rows, so that their sums add up; and whether they do.

    They must be sums by public keys with bounds in the policy. Different people or values do not add up, and where
    contributions are scaled, each set has its own norm.
    """
    plans = [one.plan for one in questions]
    first = plans[0]
    keys = tuple(sorted({key for plan in plans for key in plan.keys}, key=repr))
    same = all((plan.measures, plan.where, plan.joins) == (first.measures, first.where, first.joins) for plan in plans)
    summed = all(m.what in (What.ROWS, What.VALUES, What.SUM, What.SQUARES) for m in first.measures)
    public = all(key.domain.keys is not None for key in keys)
    plain = not first.table.scaled and not first.table.branches and not first.standalone
    if len(plans) < 2 or not (same and summed and public and plain):
        return questions, False
    found = [replace(plan, bounded_by=keys) if plan.keys != keys else plan for plan in plans]
    if max(plan.rows for plan in found) > MOST_ROWS:
        return questions, False
    return [replace(one, plan=plan) for one, plan in zip(questions, found, strict=True)], True
