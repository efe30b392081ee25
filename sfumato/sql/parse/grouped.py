"""GROUP BY inside a question: one row for each unit, or for each unit and key, which the question then aggregates.

The unit is always among the keys: it is written there, or a key by which the policy finds it, which belongs to one
unit. What comes out is a table whose rows belong to the same units.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.errors import QueryRefused, UnboundedColumn
from sfumato.sql.aggregate import INNER, INNER_ONLY, calls_aggregate, kind_of
from sfumato.sql.domains import Domain, Kind, number
from sfumato.sql.expressions import Column, Constant, Expression
from sfumato.sql.parse.ast_guard import column_number, node_text, require_known_parts, without_alias
from sfumato.sql.parse.derived import key_identity
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.joins import Keys, table_at
from sfumato.sql.parse.range_of_where import with_ranges
from sfumato.sql.parse.scopes import Scope
from sfumato.sql.parse.unbounded import name_unbounded
from sfumato.sql.plan import Grouped, GroupValue, Plan, Reduce, Table
from sfumato.sql.simplify import call, filter_condition
from sfumato.sql.value_lattice import exponent

BITS = 61  # of values in steps: sums are exact integers of 64 bits and more, and no coarser than doubles
LISTED = "COUNT, COUNT(DISTINCT x), COUNT_IF, SUM, AVG, MIN, MAX, ANY_VALUE, BOOL_AND, BOOL_OR, ARG_MIN, ARG_MAX,\n" \
    "          FIRST(x ORDER BY y) and LAST(x ORDER BY y)"  # fmt: skip
Named = Mapping[str, exp.Expression]
Given = Callable[[Expression], Expression]  # a value under the condition of FILTER
Bounds = Mapping[str, tuple[float, float]]  # of columns by name


def is_grouped(query: exp.Select) -> bool:
    """Has this SELECT GROUP BY, DISTINCT or aggregates of its own?"""
    own = [*query.expressions, query.args.get("having")]
    return bool(query.args.get("group") or query.args.get("distinct")) or any(
        node is not None and (calls_aggregate(node) or chooses_value(node)) for node in own
    )


def chooses_value(node: exp.Expression) -> bool:
    """Does it call an aggregate that only GROUP BY inside a question has?"""
    inside = node.walk(prune=lambda one: one is not node and isinstance(one, exp.Query))
    return any(is_group_aggregate(one) for one in inside)


def is_group_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, INNER) or (isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue))


@dataclass
class GroupNames:
    """Resolves names above GROUP BY inside a question: keys and aggregates are columns of the new table."""

    rows: Scope
    keys: Mapping[Expression, Column]
    named: Named
    group: tuple[str, tuple[str, ...]]  # the rows and keys, in words
    most: float  # rows of a group
    bounds: Bounds  # that were found for values
    values: dict[GroupValue, Domain] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)

    def resolve(self, node: exp.Expression) -> Expression | None:
        if kind_of(node) is not None or isinstance(node, exp.Filter) or is_group_aggregate(node):
            return self.value(node)
        bare = isinstance(node, exp.Column) and not node.table and not self.rows.knows(node)
        if bare and (name := node.name.lower()) in self.named and name not in self.busy:
            self.busy.add(name)
            try:
                return parse_expression(self.named[name], self)
            finally:
                self.busy.discard(name)
        if not calls_aggregate(node) and not chooses_value(node) and any(node.find_all(exp.Column)):
            try:
                inner = parse_expression(node, self.rows)
            except QueryRefused:
                if isinstance(node, exp.Column):
                    raise
                return None
            return self.keys.get(inner)
        return None

    def find(self, alias: str, name: str) -> Expression:
        raise QueryRefused(
            f"{name!r} is neither a key nor inside an aggregate.\n  do:     GROUP BY it, or aggregate it: MAX({name})"
        )

    def value(self, node: exp.Expression) -> Column:
        found, domain = with_ranges(lambda rows: parse_value(node, rows, self.most), self.rows)
        label = self.label(found)
        if label in self.bounds and not domain.bounded:
            low, high = (min(max(end, domain.low), domain.high) for end in self.bounds[label])
            domain = replace(domain, low=low, high=high)
        self.values.setdefault(found, domain)
        return Column(f"t0.{label}", self.values[found])

    def label(self, of: GroupValue) -> str:
        """A name by content alone: the steps of a sum depend on bounds, and bounds are found under this name."""
        return label_of(self.group, replace(of, exponent=0))


def tables_of_rows(rows: Plan) -> str:
    """The names of their tables, and of columns that a question computes. Neither bounds nor conditions, which bounds
    may simplify, have a part in labels: bounds are found under them. Two tables may have equal labels, as columns of
    tables may have equal names."""
    tables = [rows.table, *(join.table for join in rows.joins)]
    return repr([(one.name, sorted(one.columns) if one.derived else []) for one in tables])


def label_of(group: tuple[str, tuple[str, ...]], of: object) -> str:
    """The name of a column, by its content."""
    return f"c{hashlib.sha256(repr((group, repr(of))).encode()).hexdigest()[:32]}"


def grouped_select(
    query: exp.Select, scope: Scope, keys: Keys, bounds: Bounds
) -> tuple[Scope, list[tuple[str, Expression]]]:
    """The rows of a SELECT with GROUP BY, and its columns in order; `bounds` were found for some of its values."""
    try:
        return parse_groups(query, scope, keys, bounds)
    except UnboundedColumn as refusal:
        raise refusal if refusal.column else name_unbounded(refusal, scope) from None


def parse_groups(
    query: exp.Select, scope: Scope, keys: Keys, bounds: Bounds
) -> tuple[Scope, list[tuple[str, Expression]]]:
    named = {node.alias.lower(): node.this for node in query.expressions if isinstance(node, exp.Alias)}
    listed = sorted({parse_expression(node, scope) for node in key_nodes(query, named, scope)}, key=repr)
    unit = unit_key(listed, scope, keys)
    others = [one for one in listed if one != unit]
    rows = Plan(scope.table, scope.joins, scope.where, (), ())
    group = tables_of_rows(rows), tuple(map(repr, others))
    labels = {one: Column(f"t0.{label_of(group, one)}", one.domain) for one in others}
    known: dict[Expression, Column] = dict(labels)
    if unit is not None:
        known[unit] = Column(f"t0.{scope.table.unit_column}", unit.domain)
    names = GroupNames(scope, known, named, group, rows_of_group(rows, bool(others)), bounds)
    columns = []
    for node in query.expressions:
        require_known_parts(node)
        if isinstance(node, exp.Star):
            raise QueryRefused("SELECT * stands beside no GROUP BY.\n  do:     name the keys and aggregates")
        title = node.alias_or_name.lower() if isinstance(node, exp.Alias | exp.Column) else node_text(node)
        columns.append((title, parse_expression(without_alias(node), names)))
    having = query.args.get("having")
    where = filter_condition(parse_expression(having.this, names)) if having else Constant(True)
    if where.domain.kind is not Kind.TRUTH:
        raise QueryRefused("HAVING takes a condition.")
    table = grouped_table(rows, {of.origin.removeprefix("t0."): key for key, of in labels.items()}, names)
    return Scope(table, {("", name): of for name, of in columns}, where), columns


def key_nodes(query: exp.Select, named: Named, scope: Scope) -> list[exp.Expression]:
    """The keys of GROUP BY, or of DISTINCT, in the text."""
    group, distinct = query.args.get("group"), query.args.get("distinct")
    plain = [without_alias(node) for node in query.expressions
             if not calls_aggregate(node) and not chooses_value(node)]  # fmt: skip
    if distinct is not None:
        if distinct.args.get("on") or group is not None or len(plain) < len(query.expressions):
            raise QueryRefused("DISTINCT inside a question lists columns of rows.\n  do:     GROUP BY the columns")
        return plain
    if group is None:
        return []
    require_known_parts(group)
    found = []
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string:
            node = without_alias(query.expressions[column_number(node, "GROUP BY", len(query.expressions)) - 1])
        elif isinstance(node, exp.Column) and not node.table and node.name.lower() in named and not scope.knows(node):
            node = named[node.name.lower()]
        found.append(node)
    return [*found, *plain] if group.args.get("all") else found


def unit_key(listed: list[Expression], scope: Scope, keys: Keys) -> Expression | None:
    """The unit among the keys, None if it is found by another key or if the rows are public; or QueryRefused."""
    if scope.table.public:
        return None
    columns = [one for one in listed if isinstance(one, Column)]
    unit = next((one for one in columns if one.origin == scope.table.unit_origin), None)
    by_key = any(key_identity(table_at(scope, one), one.origin.split(".", 1)[1], keys) for one in columns)
    if unit is None and not by_key:
        name = scope.table.unit_column
        raise QueryRefused(
            "a GROUP BY inside a question gives rows of one person each; here rows of many would become one.\n"
            f"  found:  no {name} among its keys\n"
            f"  do:     GROUP BY {name} as well, or aggregate rows once; a SELECT around that computes with the answer"
            if name is not None
            else "each row is a person here, so rows are aggregated once.\n"
            "  do:     aggregate in the outer SELECT; one around that may choose, compute and sort"
        )
    return unit


def rows_of_group(rows: Plan, keyed: bool) -> float:
    """The most rows that a group can have, by the policy."""
    table = rows.table
    if table.public:
        return math.inf
    if table.scaled:
        crossed = math.prod(join.table.rows for join in rows.joins if join.multiplies)
        return math.inf if table.most is None else table.most * crossed
    return rows.rows * (1 if keyed else table.groups)


def grouped_table(rows: Plan, keys: Mapping[str, Expression], names: GroupNames) -> Table:
    """The table of groups. A unit has one row, or one for each combination of keys: as many as the groups that the
    policy allows; contributions are bounded after this step, whatever these numbers are."""
    values = {names.label(value): value for value in names.values}
    domains = {name: of.domain for name, of in keys.items()}
    domains |= {name: names.values[value] for name, value in values.items()}
    source = rows.table
    grouped = Grouped(rows, tuple(sorted(keys.items())), tuple(sorted(values.items(), key=lambda one: one[0])))
    table = Table(source.name, dict(sorted(domains.items())), source.public, source.unit, grouped=grouped)
    if source.public or not keys:
        return table
    if source.scaled:
        return replace(table.scale(None if rows.crossed else source.most), supposed=source.supposed)
    return replace(table, groups=source.groups, rows=source.groups)


# ---- aggregates -----------------------------------------------------------------------------------------------------


def parse_value(node: exp.Expression, rows: Scope, most: float) -> tuple[GroupValue, Domain]:
    """An aggregate over the rows of a group, and the domain of its value."""
    condition = None
    node = node.this if isinstance(node, exp.IgnoreNulls) else node
    if isinstance(node, exp.Filter):
        require_known_parts(node)
        condition = parse_expression(node.expression.this, rows)
        node = node.this.this if isinstance(node.this, exp.IgnoreNulls) else node.this

    def given(value: Expression) -> Expression:
        return value if condition is None else call("case", condition, value, Constant(None))

    count = number(0.0, most, 1.0)
    text = node_text(node)
    inner = node.this
    if isinstance(node, exp.Count) and isinstance(inner, exp.Distinct):
        require_known_parts(inner)
        if len(inner.expressions) == 1:
            return GroupValue(Reduce.DISTINCT, given(parse_expression(inner.expressions[0], rows))), count
    elif isinstance(node, exp.ApproxDistinct):
        require_known_parts(node)
        return GroupValue(Reduce.DISTINCT, given(parse_expression(inner, rows))), count
    elif isinstance(node, exp.CountIf):
        require_known_parts(node)
        counted = call("case", parse_expression(inner, rows), Constant(1), Constant(None))
        return GroupValue(Reduce.VALUES, given(counted)), count
    elif isinstance(node, exp.Count):
        require_known_parts(node)
        counted = Constant(1) if isinstance(inner, exp.Star | None) else parse_expression(inner, rows)
        if condition is None and isinstance(counted, Constant) and counted.value is not None:
            return GroupValue(Reduce.ROWS), replace(count, low=1.0)
        return GroupValue(Reduce.VALUES, given(counted)), count
    elif isinstance(node, exp.Sum | exp.Avg):
        require_known_parts(node)
        return summed(Reduce.SUM if isinstance(node, exp.Sum) else Reduce.MEAN, given(parse_expression(inner, rows)),
                      text, most)  # fmt: skip
    elif isinstance(node, exp.Min | exp.Max | exp.AnyValue | exp.LogicalAnd | exp.LogicalOr):
        return extreme(node, rows, given)
    elif condition is None and isinstance(node, INNER_ONLY):
        return chosen(node, rows)
    raise QueryRefused(f"{text} is not among the aggregates of a GROUP BY inside a question.\n  do:     ask {LISTED}")


def summed(how: Reduce, value: Expression, text: str, most: float) -> tuple[GroupValue, Domain]:
    exponent(value, text)  # refuses what has no bounds
    domain = value.domain
    steps = max(math.frexp(max(abs(domain.low), abs(domain.high)))[1] - BITS, -200)
    if how is Reduce.MEAN:
        return GroupValue(how, value, steps), number(domain.low, domain.high)
    low, high = (0.0 if end == 0 else end * most for end in (min(domain.low, 0.0), max(domain.high, 0.0)))
    return GroupValue(how, value, steps), number(low, high, domain.step)


def extreme(node: exp.Expression, rows: Scope, given: Given) -> tuple[GroupValue, Domain]:
    """MIN, MAX, and what they are of truths; of any value the least."""
    inner = node.this
    if isinstance(node, exp.AnyValue) and isinstance(inner, exp.HavingMax | exp.Order):
        raise QueryRefused(f"{node_text(node)}: write ARG_MIN(x, y) or FIRST(x ORDER BY y).")
    require_known_parts(node)
    if node.args.get("expressions"):
        raise QueryRefused(f"{node_text(node)} takes one argument there.")
    value = parse_expression(inner, rows)
    if isinstance(node, exp.LogicalAnd | exp.LogicalOr) and value.domain.kind is not Kind.TRUTH:
        raise QueryRefused(f"{node_text(node)} takes a condition.")
    value = given(value)
    most = isinstance(node, exp.Max | exp.LogicalOr)
    return GroupValue(Reduce.GREATEST if most else Reduce.LEAST, value), replace(value.domain, sure=False)


def chosen(node: exp.Expression, rows: Scope) -> tuple[GroupValue, Domain]:
    """FIRST(x ORDER BY y), LAST(x ORDER BY y), ARG_MIN(x, y), ARG_MAX(x, y); of rows that tie, the least x."""
    if isinstance(node, exp.ArgMin | exp.ArgMax):
        if node.args.get("count"):
            raise QueryRefused(f"{node_text(node)} takes two arguments there.")
        value, ranked = parse_expression(node.this, rows), parse_expression(node.expression, rows)
        known = call("and", call("not", call("is null", value)), call("not", call("is null", ranked)))
        value = value if known == Constant(True) else call("case", known, value, Constant(None))
        # rows without either are last, and have no value
        order = call("case", known, ranked, Constant(None)) if known != Constant(True) else ranked
        return GroupValue(Reduce.FIRST, value, order=((order, isinstance(node, exp.ArgMax), False),)), plain(value)
    inner = node.this
    if not isinstance(inner, exp.Order):
        raise QueryRefused(
            f"{node_text(node)}: rows have no order of their own.\n"
            "  do:     FIRST(x ORDER BY y), LAST(x ORDER BY y), ARG_MIN(x, y), MIN(x) or ANY_VALUE(x)"
        )
    value, last = parse_expression(inner.this, rows), isinstance(node, exp.Last)
    by: list[tuple[Expression, bool, bool]] = []
    for one in inner.expressions:
        descending = bool(one.args.get("desc"))
        nulls = bool(one.args.get("nulls_first"))
        by.append((parse_expression(one.this, rows), descending != last, nulls != last))
    return GroupValue(Reduce.FIRST, value, order=tuple(by)), plain(value)


def plain(value: Expression) -> Domain:
    return replace(value.domain, sure=False)
