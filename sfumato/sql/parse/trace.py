"""Which released values each column of an outer query is made of, found by tracing names through its SELECTs.

The traced query has hidden columns: the numbers of the rows whose values were read, or lists of them for sums. Columns
whose origin is not understood have no interval; what the query says is never changed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

from sfumato.sql.expressions import Call, Expression, Output
from sfumato.sql.question import Outer, Question, Traced, TracedCall, TracedNumber, TracedTree, TracedValue

ROW, ROWS = "row number", " rows"  # hidden column of a released table with row numbers, and the end of its name
BINARY: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
UNARY: dict[type[exp.Expression], str] = {
    exp.Neg: "neg", exp.Abs: "abs", exp.Sqrt: "sqrt", exp.Ln: "ln", exp.Exp: "exp", exp.Floor: "floor",
    exp.Ceil: "ceil", exp.Sign: "sign",
}  # fmt: skip
SUMMED: dict[type[exp.Expression], str] = {exp.Sum: "sum", exp.Avg: "mean", exp.Min: "min", exp.Max: "max"}
MOVED = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.AnyValue, exp.First, exp.Last)
INTEGERS = ("INT", "BIGINT", "SMALLINT", "TINYINT", "UINT", "UBIGINT", "INT128")
MOST_STEPS = 2_000
FLOATS = ("DOUBLE", "FLOAT", "DECIMAL")


@dataclass(frozen=True)
class Leaf:
    """A hidden column to be: an expression where it is used, and what it stands for."""

    how: str
    of: exp.Expression = field(compare=False)
    table: str = ""
    title: str = ""


@dataclass(frozen=True)
class Node:
    name: str
    arguments: tuple["Found", ...]


class Unclear(Exception):
    """Made of noisy values in a way that is not understood."""


Found = Leaf | Node | TracedNumber


def trace(root: exp.Expression, outer: Outer) -> Traced | None:
    """The traced query; None if nothing can be traced in it."""
    try:
        return Tracer(outer).trace(root.copy())
    except (SqlglotError, AssertionError, LookupError, AttributeError, TypeError, ValueError, RecursionError):
        return None


@dataclass
class Tracer:
    outer: Outer
    hidden: list[exp.Expression] = field(default_factory=list)
    steps: int = 0

    def trace(self, root: exp.Expression) -> Traced | None:
        schema: dict[str, object] = {one.name: dict.fromkeys(one.titles, "DOUBLE") for one in self.outer.tables}
        schema |= {one.name: dict.fromkeys(one.columns, "DOUBLE") for one in self.outer.public}
        query = qualify(
            root, schema=schema, dialect="duckdb", validate_qualify_columns=False, expand_alias_refs=False
        )  # fmt: skip
        scope = build_scope(query)
        if scope is None or not isinstance(query, exp.Select) or query.args.get("distinct"):
            return None
        trees: list[TracedTree | None] = []
        noisy: list[bool] = []
        for projection in list(query.selects):
            try:
                found = self.find(unaliased(projection), scope)
                noisy.append(found is not None)
                trees.append(None if found is None else self.traced(found))
            except Unclear:
                noisy.append(True)
                trees.append(None)
        if not any(trees):
            return Traced("", tuple(trees), tuple(noisy)) if any(noisy) else None
        for i, one in enumerate(self.hidden):
            query.append("expressions", exp.alias_(one, f"hidden {i}", quoted=True))
        names = {table.name for table in self.outer.tables}
        for table in list(query.find_all(exp.Table)):
            if table.name in names:
                table.set("this", exp.to_identifier(table.name + ROWS, quoted=True))
        return Traced(query.sql("duckdb", unsupported_level=ErrorLevel.IGNORE), tuple(trees), tuple(noisy))

    def traced(self, found: Found) -> TracedTree:
        if isinstance(found, Node):
            return TracedCall(found.name, tuple(map(self.traced, found.arguments)))
        if isinstance(found, TracedNumber):
            return found
        self.hidden.append(found.of)
        return TracedValue(found.how, len(self.hidden) - 1, found.table, found.title)

    # ---- one expression ---------------------------------------------------------------------------------------------

    def find(self, node: exp.Expression, scope: Scope) -> Found | None:
        """What a node is made of; None if nothing noisy is in it. Raises Unclear if that cannot be told."""
        self.steps += 1
        if self.steps > MOST_STEPS:  # views that read each other twice would be traced 2ⁿ times
            raise ValueError("too long to trace")
        if isinstance(node, exp.Paren | exp.Alias):
            return self.find(node.this, scope)
        if isinstance(node, exp.Column):
            return self.column(node, scope)
        if isinstance(node, exp.Subquery):
            return self.scalar(node, scope)
        if type(node) in BINARY:
            return self.call(BINARY[type(node)], [node.this, node.expression], scope)
        if type(node) in UNARY:
            return self.call(UNARY[type(node)], [node.this], scope)
        handler = self.handler(node)
        if handler is not None:
            return handler(node, scope)
        if self.is_noisy(node, scope):
            raise Unclear
        return None

    def handler(self, node: exp.Expression) -> "Callable[..., Found | None] | None":
        if isinstance(node, exp.Case | exp.If):
            return self.case
        if isinstance(node, exp.Cast | exp.TryCast):
            return self.cast
        if isinstance(node, exp.Round):
            return self.round
        if isinstance(node, exp.Greatest | exp.Least | exp.Coalesce):
            return self.choice
        if isinstance(node, exp.Nullif):
            return lambda one, scope: self.find(one.this, scope)
        if isinstance(node, exp.Window):
            return self.window
        if isinstance(node, exp.Count | exp.CountIf):
            return lambda one, scope: None
        if isinstance(node, exp.Filter) or type(node) in SUMMED or isinstance(node, MOVED):
            return self.aggregate
        return None

    def is_noisy(self, node: exp.Expression, scope: Scope) -> bool:
        """Is there anything noisy in it? What is unclear counts as noisy."""
        for one in node.find_all(exp.Column, exp.Query):
            if isinstance(one, exp.Query):
                names = {table.name for table in self.outer.tables}
                if any(table.name in names for table in one.find_all(exp.Table)) or scope.cte_sources:
                    return True
            elif isinstance(one, exp.Column):
                try:
                    if self.column(one, scope) is not None:
                        return True
                except Unclear:
                    return True
        return False

    def call(self, name: str, nodes: list[exp.Expression], scope: Scope) -> Found | None:
        parts = [self.find(one, scope) for one in nodes]
        if all(one is None for one in parts):
            return None
        return Node(name, tuple(one or known(node) for one, node in zip(parts, nodes, strict=True)))

    def case(self, node: exp.Expression, scope: Scope) -> Found | None:
        ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        if node.args.get("this") is not None and isinstance(node, exp.Case):
            raise Unclear
        default = node.args.get("default" if isinstance(node, exp.Case) else "false") or exp.null()
        values = [*(one.args["true"] for one in ifs), default]
        found = [self.find(one, scope) for one in values]
        if all(one is None for one in found) and not any(self.is_noisy(one.this, scope) for one in ifs):
            return None
        if all(one is None for one in found):
            raise Unclear  # a label that noisy values decide
        results = [one or known(value) for one, value in zip(found, values, strict=True)]
        pairs = [
            part for one, then in zip(ifs, results, strict=False) for part in (Leaf("known", one.this.copy()), then)
        ]
        return Node("case", (*pairs, results[-1]))

    def cast(self, node: exp.Expression, scope: Scope) -> Found | None:
        found, to = self.find(node.this, scope), node.args["to"].this.name
        if found is None:
            return None
        if to in INTEGERS:
            return Node("round", (found,))
        digits = list(node.args["to"].expressions[1:2])
        if to not in FLOATS:
            raise Unclear
        return Node("round", (found, known(digits[0].this))) if digits else Node("number", (found,))

    def round(self, node: exp.Expression, scope: Scope) -> Found | None:
        digits = node.args.get("decimals")
        return self.call("round", [node.this, *([digits] if digits is not None else [])], scope)

    def choice(self, node: exp.Expression, scope: Scope) -> Found | None:
        return self.call(node.key, [node.this, *node.expressions], scope)

    # ---- columns, and queries inside --------------------------------------------------------------------------------

    def column(self, node: exp.Column, scope: Scope) -> Found | None:
        source = scope.sources.get(node.table)
        if isinstance(source, exp.Table):
            table = next((one for one in self.outer.tables if one.name == source.name), None)
            if table is None:
                return None
            title = next(one for one in table.titles if one.lower() == node.name.lower())
            place = table.titles.index(title)
            noisy = any(
                part.columns[place] is not None
                and reads_aggregate(self.outer.questions[part.question], part.columns[place] or 0)
                for part in table.parts
            )
            return Leaf("cell", exp.column(ROW, table=node.table, quoted=True), table.name, title) if noisy else None
        if source is None:
            raise Unclear
        return self.exported(node, source)

    def exported(self, node: exp.Column, source: Scope) -> Found | None:
        """What a column of a subquery is made of, through hidden columns of the subquery."""
        select = source.expression
        if not isinstance(select, exp.Select):  # a set operation: rows of different origin
            if any(self.is_noisy_query(one) for one in source.traverse()):
                raise Unclear
            return None
        inner = next(one for one in select.selects if one.alias_or_name.lower() == node.name.lower())
        found = self.find(unaliased(inner), source)
        if found is None:
            return None
        if select.args.get("distinct"):
            raise Unclear
        return leaves_mapped(found, lambda leaf: self.export(leaf, select, node.table))

    def export(self, leaf: Leaf, select: exp.Select, alias: str) -> Leaf:
        if select.args.get("group") and not has_own_aggregate(leaf.of):
            keys = select.args["group"].expressions
            if leaf.of not in keys:
                raise Unclear
        for one in select.selects:
            if one.alias_or_name.startswith("hidden ") and one.unalias() == leaf.of:
                return replace(leaf, of=exp.column(one.alias, table=alias, quoted=True))
        name = f"hidden {len(select.selects)}"
        select.append("expressions", exp.alias_(leaf.of.copy(), name, quoted=True))
        return replace(leaf, of=exp.column(name, table=alias, quoted=True))

    def is_noisy_query(self, scope: Scope) -> bool:
        names = {table.name for table in self.outer.tables}
        return any(isinstance(one, exp.Table) and one.name in names for one in scope.sources.values())

    def scalar(self, node: exp.Subquery, scope: Scope) -> Found | None:
        """A subquery as a value."""
        inside = next((one for one in scope.subquery_scopes if one.expression is node.this), None)
        if inside is None or not isinstance(node.this, exp.Select) or len(node.this.selects) != 1:
            raise Unclear
        select = node.this
        found = self.find(unaliased(select.selects[0]), inside)
        if found is None:
            return None

        def outside(leaf: Leaf) -> Leaf:
            copy = select.copy()
            copy.set("expressions", [exp.alias_(leaf.of.copy(), "hidden", quoted=True)])
            return replace(leaf, of=exp.Subquery(this=copy))

        return leaves_mapped(found, outside)

    # ---- aggregates of answers, and windows over them ---------------------------------------------------------------

    def aggregate(self, node: exp.Expression, scope: Scope, over: exp.Window | None = None) -> Found | None:
        """SUM(n), with its FILTER, alone or in a window."""
        inner = node.this if isinstance(node, exp.Filter) else node
        if type(inner) not in SUMMED and not (isinstance(inner, MOVED)):
            raise Unclear
        argument = inner.this
        found = self.find(argument, scope) if isinstance(argument, exp.Expression) else None
        if found is None:
            return None
        if not isinstance(found, Leaf) or found.how != "cell":
            raise Unclear
        if type(inner) in SUMMED:
            rows: exp.Expression = exp.Anonymous(this="LIST", expressions=[found.of.copy()])
            how = SUMMED[type(inner)]
        else:
            rows, how = inner.copy(), "cell"
            rows.set("this", found.of.copy())
            rows.set("default", None)
        if isinstance(node, exp.Filter):
            rows = exp.Filter(this=rows, expression=node.expression.copy())
        if over is not None:
            window = over.copy()
            window.set("this", rows)
            rows = window
        leaf = Leaf(how, rows, found.table, found.title)
        default = inner.args.get("default")
        return Node("coalesce", (leaf, known(default))) if default is not None else leaf

    def window(self, node: exp.Window, scope: Scope) -> Found | None:
        inner = node.this.this if isinstance(node.this, exp.IgnoreNulls) else node.this
        function = inner.this if isinstance(inner, exp.Filter) else inner
        if isinstance(function, exp.Count):
            return None
        if type(function) in SUMMED or isinstance(function, MOVED):
            return self.aggregate(inner, scope, node)
        if self.is_noisy(node, scope):  # a rank
            raise Unclear
        return None


def unaliased(node: exp.Expr) -> exp.Expression:
    found = node.unalias()
    assert isinstance(found, exp.Expression)
    return found


def known(node: exp.Expression) -> Found:
    """A part without noise."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return TracedNumber(float(node.this))
    return Leaf("known", node.copy())


def leaves_mapped(found: Found, change: Callable[[Leaf], Leaf]) -> Found:
    if isinstance(found, Node):
        return Node(found.name, tuple(leaves_mapped(one, change) for one in found.arguments))
    return change(found) if isinstance(found, Leaf) else found


def has_own_aggregate(node: exp.Expression) -> bool:
    lists = (one for one in node.find_all(exp.Anonymous) if one.name.upper() == "LIST")
    return next(lists, None) is not None or node.find(exp.AggFunc) is not None


def reads_aggregate(question: Question, place: int) -> bool:
    return any(output >= len(question.plan.keys) for output in outputs(question.columns[place][1]))


def outputs(expression: Expression) -> Iterator[int]:
    if isinstance(expression, Output):
        yield expression.place
    elif isinstance(expression, Call):
        for one in expression.arguments:
            yield from outputs(one)
