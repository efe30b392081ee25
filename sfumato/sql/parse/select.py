"""SELECT with aggregates: GROUP BY, columns, HAVING, ORDER BY, LIMIT; from there to a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.aggregate import MARK, Aggregate, StandaloneAggregate, calls_aggregate, kind_of, lattices_of
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Column, Expression, Output
from sfumato.sql.functions.costs import MOST_COST, cost_refusal
from sfumato.sql.parse.ast_guard import column_number, require_known_parts, without_alias
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.from_where import MAIN, Rows
from sfumato.sql.parse.histogram import Histogram, histogram, is_histogram
from sfumato.sql.parse.normalise_aggregates import normalise
from sfumato.sql.parse.outer_select import (
    Columns,
    apply_outer_select,
    check_layout,
    column_title,
    layers,
    limit_or_offset,
    order_by,
)
from sfumato.sql.parse.problems import Problems
from sfumato.sql.parse.range_of_where import with_ranges
from sfumato.sql.parse.scopes import ALWAYS, Scope
from sfumato.sql.parse.series import without_series
from sfumato.sql.parse.unbounded import name_unbounded
from sfumato.sql.plan import MOST_JOINED_ROWS, Measure, Plan, What
from sfumato.sql.policy import Policy
from sfumato.sql.postprocess import require_postprocessing
from sfumato.sql.question import Question
from sfumato.sql.union import derived_weight, most_joined_rows, prune_columns
from sfumato.sql.units import RowUnit

MOST_KEYS, MOST_ROWS, HEAVIEST = 1_000_000, MOST_JOINED_ROWS, 4_000


@dataclass
class Groups:
    """Resolves names above GROUP BY, where keys and aggregates are outputs; collects the aggregates that it meets."""

    rows: Scope
    keys: list[Expression]
    named: Mapping[str, exp.Expression]
    aggregates: list[Aggregate] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    met: dict[str, Expression] = field(default_factory=dict)  # parsed named columns: parsing each once avoids 2^n calls

    def resolve(self, node: exp.Expression) -> Expression | None:
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
        summed = self.rows.find(alias, name).domain.kind is Kind.NUMBER
        do = f"GROUP BY it, or aggregate it: SUM({name})" if summed else "GROUP BY it, or count it: COUNT(DISTINCT …)"
        raise QueryRefused(f"{name!r} is neither a key nor inside an aggregate.\n  do:     {do}")

    def output(self, aggregate: Aggregate) -> Output:
        """The output of this aggregate; equal aggregates share one."""
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return Output(len(self.keys) + self.aggregates.index(aggregate), aggregate.domain)

    def aggregate(self, node: exp.Expression) -> Aggregate:
        """The aggregate that a node calls, with its FILTER."""
        if isinstance(node, exp.Filter):
            require_known_parts(node)
            return self.aggregate(node.this).with_filter(parse_expression(node.expression.this, self.rows))
        kind = kind_of(node)
        if kind is None:
            raise QueryRefused(f"{node.sql('duckdb')[:60]}: FILTER belongs to an aggregate.")
        return with_ranges(lambda rows: kind.parse(node, rows, self.keys), self.rows)


def parse_select(query: exp.Select, policy: Policy, schema: str = MAIN) -> Question:
    """The question that a SELECT asks."""
    core, *outer = layers(query) or [query]
    question = parse_core(core, policy, schema)
    for one in outer:
        question = apply_outer_select(one, question)
    return question


def parse_core(core: exp.Select, policy: Policy, schema: str = MAIN) -> Question:
    """The question of a SELECT that aggregates rows."""
    core = without_series(core)
    rows = Rows(policy, schema=schema, gather=True)
    scope = rows.scope(core)
    try:
        return parse_grouped_select(core, scope, rows.problems)
    except UnboundedColumn as refusal:
        found = name_unbounded(refusal, scope)
        found.place = refusal.place
        raise found from None


def parse_grouped_select(query: exp.Select, scope: Scope, problems: Problems) -> Question:
    """The SELECT that has the aggregates, over these rows; `problems` are those of WHERE."""
    named = {node.alias.lower(): histogram_as_count(node) for node in query.expressions if isinstance(node, exp.Alias)}
    bins = histogram(query, scope)
    keys: list[Expression] = []
    with problems.noted(query):
        keys = group_keys(query, named, scope, *([bins.key] if bins else []))
    if bins is not None:
        problems.refuse()  # its columns are made of its key
    groups = Groups(scope, keys, named)
    wrong = len(problems.found)
    columns = result_columns(query, groups, bins, problems if wrong == 0 or not query.args.get("group") else Problems())
    having, condition = query.args.get("having"), ALWAYS
    if having and not wrong:
        with problems.noted(having):
            condition = parse_expression(having.this, groups)
    problems.refuse()
    if condition.domain.kind is not Kind.TRUTH:
        raise QueryRefused("HAVING takes a condition.")
    check_distinct(query, columns, groups)
    question = build_question(groups, columns, condition, row_order(query, columns, groups, bins))
    return replace(question, limit=limit_or_offset(query, "limit"), offset=limit_or_offset(query, "offset") or 0)


def check_distinct(query: exp.Select, columns: Columns, groups: Groups) -> None:
    """Refuse SELECT DISTINCT unless all keys are shown, where it changes nothing."""
    found = query.args.get("distinct")
    if found is None:
        return
    places = {e.place for _, e in columns if isinstance(e, Output)}
    if found.args.get("on") or not set(range(len(groups.keys))) <= places:
        raise QueryRefused(
            "DISTINCT would merge groups.\n  do:     SELECT all keys of GROUP BY, and merge rows of the answer"
        )


def histogram_as_count(node: exp.Expression) -> exp.Expression:
    """The node without its alias; COUNT(*) for a histogram, whose alias names its counts."""
    kind = kind_of(without_alias(node))
    if not is_histogram(node) or kind is None:
        return without_alias(node)
    rows = exp.Count(this=exp.Star())
    rows.meta[MARK] = kind
    return rows


def group_keys(
    query: exp.Select, named: Mapping[str, exp.Expression], scope: Scope, *more: Expression
) -> list[Expression]:  # fmt: skip
    """The keys of GROUP BY in canonical order."""
    group = query.args.get("group")
    if group is not None:
        require_known_parts(group)
    nodes = [group_key_node(node, query, named, scope) for node in group.expressions] if group is not None else []
    if group is not None and group.args.get("all"):  # all selected columns without aggregates
        nodes += [without_alias(n) for n in query.expressions if not calls_aggregate(n) and not is_histogram(n)]
    found = sorted({*(parse_expression(node, scope) for node in nodes), *more}, key=repr)
    for one in found:
        if isinstance(one, Column) and one.origin == scope.table.unit_origin:
            raise QueryRefused("GROUP BY the unit would ask about each person.")
    return found


def group_key_node(
    node: exp.Expression, query: exp.Select, named: Mapping[str, exp.Expression], scope: Scope
) -> exp.Expression:  # fmt: skip
    """GROUP BY 2 means that column; a name means a column of the table first, then an alias."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return without_alias(query.expressions[column_number(node, "GROUP BY", len(query.expressions)) - 1])
    bare = isinstance(node, exp.Column) and not node.table and node.name.lower() in named
    if bare and not any(name == node.name.lower() for _, name in scope.names):
        return named[node.name.lower()]
    return node


def result_columns(query: exp.Select, groups: Groups, bins: Histogram | None, problems: Problems) -> Columns:
    """The columns after SELECT with unique titles; a histogram has its edges and its counts."""
    found: Columns = []
    for node in query.expressions:
        if isinstance(node, exp.Star):
            raise QueryRefused("SELECT * would show rows.\n  do:     ask for keys and aggregates")
        if isinstance(node, exp.Alias):
            require_known_parts(node)
        if bins is not None and is_histogram(node):
            found += bins.columns(groups.key(bins.key))
        with problems.noted(node):
            of = parse_expression(histogram_as_count(node), groups)
            found.append((column_title(node, [title for title, _ in found]), of))
    return found


def row_order(
    query: exp.Select, columns: Columns, groups: Groups, bins: Histogram | None
) -> list[tuple[Expression, bool]]:  # fmt: skip
    """ORDER BY; by default bins are shown from the lowest."""
    if query.args.get("order") or bins is None:
        return order_by(query, columns, groups)
    shown_keys = [e for _, e in columns if isinstance(e, Output) and e.place < len(groups.keys)]
    return [*((e, False) for e in shown_keys), (bins.order(groups.key(bins.key)), False)]


def build_question(
    groups: Groups, columns: Columns, having: Expression, order: list[tuple[Expression, bool]]
) -> Question:
    """The question, checked against all limits."""
    if not groups.aggregates:
        raise QueryRefused(
            "this question has no aggregate, so it would show rows.\n  do:     ask COUNT(*), SUM(…) or AVG(…)"
        )
    rows, aggregates = normalise(groups.rows, groups.keys, groups.aggregates)
    lattices = lattices_of(aggregates, rows.table.scaled)
    sums = tuple(one.sums(lattices) for one in aggregates)
    core = build_plan(rows, groups.keys, aggregates, sums)
    if (most := max(core.rows, most_joined_rows(core))) > MOST_ROWS:
        raise QueryRefused(
            "too many rows of one unit after this join.\n"
            f"  found:  up to {most:,} by the policy; {MOST_ROWS:,} are allowed\n"
            "  do:     join fewer private tables, or state fewer rows in the policy"
        )
    for key, listed in zip(core.keys, core.key_lists, strict=True):
        if listed == ():
            raise QueryRefused(
                "WHERE leaves no group: it rules out all public keys.\n"
                f"  found:  a key is one of {', '.join(map(repr, (key.domain.keys or ())[:10]))}"
            )
    if core.combinations > MOST_KEYS:
        raise QueryRefused(
            "too many groups.\n"
            f"  found:  {core.combinations:,} combinations of public keys; {MOST_KEYS:,} are allowed\n"
            "  do:     GROUP BY fewer columns, or choose keys by WHERE"
        )
    if isinstance(core.table.unit, RowUnit) and core.rows > 1:
        raise QueryRefused(
            "each row is a person here, and UNION ALL lists a row more than once.\n"
            f"  found:  {core.rows} SELECTs on one table\n"
            "  do:     select another constant in each, such as 'first' AS part, and GROUP BY part"
        )
    after = [*(e for _, e in columns), having, *(e for e, _ in order)]
    for one in after:
        require_postprocessing(one)
    read = [*groups.keys, core.where, *(m.of for m in core.measures if m.of)]
    read += [e for one in core.standalone for e in one.arguments]
    if sum(e.weight for e in [*read, *after]) + derived_weight(core) > HEAVIEST:
        raise QueryRefused("this question is too long, with its views expanded.\n  do:     ask less at a time")
    if (worst := core.key_cost + sum(one.cost for one in core.evaluated)) > MOST_COST:
        raise cost_refusal(worst)
    check_layout(core, after)
    return Question(prune_columns(core), aggregates, sums, tuple(columns), having, tuple(order), None)


def build_plan(
    rows: Scope, keys: Sequence[Expression], aggregates: Sequence[Aggregate], sums: Sequence[Sequence[Measure]]
) -> Plan:
    """The fewest measures that serve all aggregates, whose sums are given, and the standalone aggregates, in canonical
    order: the order of columns does not change the plan. With private keys units are counted even if not asked for,
    unless contributions are scaled: then keys are selected by votes."""
    private = any(key.domain.keys is None for key in keys) and not rows.table.scaled
    measures = {Measure(What.UNITS)} if private else set()
    measures |= {measure for listed in sums for measure in listed}
    alone = [one for one in aggregates if isinstance(one, StandaloneAggregate)]
    return Plan(
        rows.table, rows.joins, rows.where, tuple(keys), tuple(sorted(measures, key=repr)),
        tuple(sorted(alone, key=lambda one: (one.stored_as, repr(one)))),
    )  # fmt: skip
