"""SQL text to a question: one SELECT, of an allow-list; whatever is not on it is refused, in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregates import RANKS, bucketed, ranked
from sfumato.sql.domains import Kind, number
from sfumato.sql.expressions import Column, Constant, Expression, Output, call, columns
from sfumato.sql.limits import parsed
from sfumato.sql.policy import ROW, Policy, Table
from sfumato.sql.post import foreign
from sfumato.sql.question import Aggregate, Question
from sfumato.sql.release import Join, Measure, Release, What, Window, exponent, window

MOST_JOINS, MOST_KEYS, MOST_ROWS, HEAVIEST = 10, 1_000_000, 1_000_000, 20_000

BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.And: "and",
    exp.Or: "or", exp.Like: "like", exp.Mod: "mod", exp.StartsWith: "starts_with", exp.EndsWith: "ends_with",
    exp.Contains: "contains",
}  # fmt: skip
SWAPPED: dict[type[exp.Expression], str] = {exp.GT: "<", exp.GTE: "<="}
SIMPLE: dict[type[exp.Expression], str] = {
    exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Round: "round", exp.Lower: "lower", exp.Upper: "upper",
    exp.Trim: "trim", exp.Length: "length", exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.Neg: "negative",
    exp.Paren: "", exp.DayOfWeek: "weekday", exp.Hour: "hour", exp.Date: "date",
}  # fmt: skip
CASTS = {"DOUBLE": "number", "FLOAT": "number", "DECIMAL": "number", "INT": "whole", "BIGINT": "whole",
         "TEXT": "text", "VARCHAR": "text", "DATE": "date", "TIMESTAMP": "timestamp",
         "TIMESTAMPNTZ": "timestamp"}  # fmt: skip
PARTS = {"expressions", "from_", "from", "joins", "where", "group", "having", "order", "limit", "with_", "with"}
USUAL = {"this", "expression", "expressions"}
MORE: dict[type[exp.Expression], set[str]] = {  # further parts of a node that are understood
    exp.Literal: {"is_string"}, exp.Column: {"table"}, exp.Between: {"low", "high"}, exp.If: {"true", "false"},
    exp.WidthBucket: {"min_value", "max_value", "num_buckets"},
    exp.Case: {"ifs", "default"}, exp.Cast: {"to"}, exp.TryCast: {"to", "safe"}, exp.Ordered: {"desc"},
    exp.Count: {"big_int"}, exp.Div: {"typed", "safe"}, exp.Table: {"alias"}, exp.Subquery: {"alias"},
    exp.Join: {"kind", "on", "using"}, exp.CTE: {"alias"}, exp.Alias: {"alias"}, exp.Identifier: {"quoted"},
    exp.Least: {"ignore_nulls"}, exp.Greatest: {"ignore_nulls"}, exp.Coalesce: {"is_nvl"}, exp.Round: {"decimals"},
    exp.Trim: {"position"}, exp.Substring: {"start", "length"}, exp.Replace: {"replacement"}, exp.DPipe: {"safe"},
    exp.Concat: {"safe", "coalesce"}, exp.TimestampTrunc: {"unit"}, exp.DateTrunc: {"unit"},
}  # fmt: skip
ALWAYS = Constant(True)
SUMS: dict[type[exp.Expression], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Variance: "variance", exp.VariancePop: "variance",
    exp.Stddev: "stddev", exp.StddevPop: "stddev", exp.StddevSamp: "stddev",
}  # fmt: skip
AGGREGATES = (*SUMS, *RANKS)
Wanted = tuple[str, Expression | None] | Window


def read(text: str, policy: Policy) -> Question:
    """The question that a text asks."""
    try:
        root = parsed(text)
        if not isinstance(root, exp.Select):
            raise QueryRefused("ask exactly one SELECT.\n  found:  a statement of another kind")
        return Reading(policy).select(root)
    except RecursionError:
        raise QueryRefused("this question is nested too deeply.") from None


def plain(node: exp.Expression) -> None:
    """Refuses a node with a part that is not understood: what is passed over would change the question's meaning."""
    for part, value in node.args.items():
        if value and part not in USUAL and part not in MORE.get(type(node), ()):
            raise QueryRefused(f"{shown(node)}: {part.strip('_').upper().replace('_', ' ')} is not allowed here.")


@dataclass(frozen=True)
class Scope:
    """What names stand for: rows of one private table and public ones, with a condition on them."""

    table: Table
    names: Mapping[tuple[str, str], Expression]  # (alias, column) → what it is
    where: Expression = ALWAYS
    joins: tuple[Join, ...] = ()

    def find(self, alias: str, name: str) -> Expression:
        found = {e for (a, n), e in self.names.items() if n == name and alias in ("", a)}
        if len(found) == 1:
            return found.pop()
        known = ", ".join(sorted({n for _, n in self.names}))
        raise QueryRefused(
            f"{name!r} is {'ambiguous' if found else 'not a column here'}.\n  found:  {known}\n"
            f"  do:     {'say which table it is from' if found else 'use one of these, or add it to the policy'}"
        )

    def find_in(self, place: int, name: str) -> Expression:
        """A column of the joined table number `place`."""
        for found in self.names.values():
            if isinstance(found, Column) and found.origin == f"t{place}.{name}":
                return found
        raise QueryRefused(f"{name!r} is not a column of the joined table.")


def columns_of(table: Table, place: int) -> dict[str, Column]:
    """The columns of the table number `place`, its unit among them."""
    found = {name: Column(f"t{place}.{name}", domain) for name, domain in table.columns.items()}
    if not table.public and table.unit != ROW:
        found.setdefault(table.unit, Column(f"t{place}.{table.unit}", number()))
    return found


def same_unit(left: Table, right: Table, pairs: list[tuple[Expression, str]]) -> None:
    """Private tables are joined on their unit: each row of the result is then of one unit, and of its own rows only."""
    units = [name for mine, name in pairs if name == right.unit and repr(mine) == f"t0.{left.unit}"]
    if ROW in (left.unit, right.unit) or left.unit != right.unit or not units:
        raise QueryRefused(
            "private tables are joined on the unit that both have.\n"
            f"  found:  {left.name} of {left.unit!r}, {right.name} of {right.unit!r}\n"
            f"  do:     JOIN {right.name} USING ({left.unit})"
        )


def alike(mine: Expression, theirs: Expression, name: str) -> tuple[Expression, str]:
    if mine.domain.kind is not theirs.domain.kind:
        raise QueryRefused(
            f"ON compares a {mine.domain.kind.value} with a {theirs.domain.kind.value}.\n  do:     CAST one"
        )
    return mine, name


@dataclass
class Reading:
    """One pass over one statement."""

    policy: Policy
    views: dict[str, Scope] = field(default_factory=dict)

    # ---- rows ---------------------------------------------------------------------------------------------------

    def scope(self, query: exp.Select) -> Scope:
        """FROM, JOIN and WHERE."""
        for part, value in query.args.items():
            if value and part not in PARTS:
                raise QueryRefused(f"{part.upper().strip('_')} is not allowed in a question.")
        for cte in self._with(query):
            plain(cte)
            name = self.alias(cte)
            if not isinstance(cte.this, exp.Select):
                raise QueryRefused(f"WITH {name} must be a SELECT.")
            self.views[name] = self.view(cte.this)
        source = query.args.get("from_") or query.args.get("from")
        if source is None:
            raise QueryRefused("a question is about a table.\n  do:     SELECT … FROM a table of the policy")
        found = self.source(source.this)
        joins = query.args.get("joins") or []
        if len(joins) > MOST_JOINS:
            raise QueryRefused(f"at most {MOST_JOINS} joins.")
        for join in joins:
            found = self.joined(found, join)
        if where := query.args.get("where"):
            found = replace(found, where=call("and", found.where, self.expression(where.this, found)))
        return found

    @staticmethod
    def _with(query: exp.Select) -> list[exp.CTE]:
        found = query.args.get("with_") or query.args.get("with")
        if found is None:
            return []
        if found.args.get("recursive"):
            raise QueryRefused("recursive WITH is not allowed.")
        return list(found.expressions)

    @staticmethod
    def alias(node: exp.Expression) -> str:
        """The name that a table or view goes by here."""
        found = node.args.get("alias")
        if isinstance(found, exp.TableAlias) and found.args.get("columns"):
            raise QueryRefused(
                f"{shown(node)}: columns are not renamed in brackets here.\n  do:     write SELECT … AS name"
            )
        return (node.alias or node.name).lower()

    def source(self, node: exp.Expression) -> Scope:
        plain(node)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            return renamed(self.view(node.this), self.alias(node) if node.alias else "")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise QueryRefused("FROM takes tables of the policy, and SELECTs over them.")
        name, alias = node.name.lower(), self.alias(node)
        if name in self.views:
            return renamed(self.views[name], alias)
        table = self.table(name)
        if table.public:
            raise QueryRefused(f"{name} is public: ask the database itself, or join it to a private table.")
        return Scope(table, {(alias, name): column for name, column in columns_of(table, 0).items()})

    def table(self, name: str) -> Table:
        found = self.policy.tables.get(name)
        if found is None:
            known = ", ".join(sorted(self.policy.tables))
            raise QueryRefused(f"there is no table {name!r}.\n  found:  {known}\n  do:     ask about one of these")
        return found

    def view(self, query: exp.Select) -> Scope:
        """A SELECT over rows: its columns are expressions, put in where they are named."""
        if any(query.args.get(part) for part in ("group", "having", "limit")) or any(query.find_all(*AGGREGATES)):
            raise QueryRefused(
                "a SELECT inside a question works on rows, one by one.\n"
                "  found:  GROUP BY, LIMIT or an aggregate in it\n"
                "  do:     aggregate in the outer SELECT"
            )
        inside = Reading(self.policy, dict(self.views))  # what WITH names in it is not known outside
        scope = inside.scope(query)
        names: dict[tuple[str, str], Expression] = {}
        for node in query.expressions:
            plain(node)
            if isinstance(node, exp.Star):
                names |= {("", name): scope.find("", name) for _, name in scope.names}
            else:
                inner = node.this if isinstance(node, exp.Alias) else node
                names["", node.alias_or_name.lower()] = inside.expression(inner, scope)
        return replace(scope, names=names)

    def joined(self, left: Scope, join: exp.Join) -> Scope:
        """A public table, found by equality with columns of the rows so far."""
        node = join.this
        plain(join)
        plain(node)
        if (
            not isinstance(node, exp.Table)
            or not isinstance(node.this, exp.Identifier)
            or node.name.lower() in self.views
        ):
            raise QueryRefused(
                f"{node.name or 'this'} cannot be joined.\n  do:     join tables of the policy themselves"
            )
        if join.kind not in ("", "INNER"):
            raise QueryRefused(f"{join.kind} JOIN is not allowed.\n  do:     use JOIN … ON … = …")
        table, alias, place = self.table(node.name.lower()), self.alias(node), len(left.joins) + 1
        if any(known == alias for known, _ in left.names):
            raise QueryRefused(f"two tables are called {alias!r}.\n  do:     give one another name")
        theirs = {(alias, c): column for c, column in columns_of(table, place).items()}
        both = replace(left, names={**left.names, **theirs})
        pairs = self.pairs(join, both, place, left)
        if join.args.get("using"):  # one column of that name: both are equal
            both = replace(both, names={**both.names, **{(alias, name): mine for mine, name in pairs}})
        if not table.public:
            same_unit(left.table, table, pairs)
        matched = call("not", call("is null", columns_of(table, place)[pairs[0][1]]))
        return replace(both, joins=(*left.joins, Join(table, tuple(pairs))), where=call("and", left.where, matched))

    def pairs(self, join: exp.Join, both: Scope, place: int, left: Scope) -> list[tuple[Expression, str]]:
        if using := join.args.get("using"):
            names = [column.name.lower() for column in using]
            return [alike(left.find("", name), both.find_in(place, name), name) for name in names]
        found = []
        on = join.args.get("on")
        on = on.unnest() if on is not None else None
        for part in on.flatten() if isinstance(on, exp.And) else [on] if on is not None else []:
            if not isinstance(part := part.unnest(), exp.EQ):
                raise QueryRefused("ON compares columns for equality, joined by AND.")
            sides = [self.expression(part.this, both), self.expression(part.expression, both)]
            mine = [s for s in sides if not any(c.origin.startswith(f"t{place}.") for c in columns(s))]
            other = [s for s in sides if isinstance(s, Column) and s.origin.startswith(f"t{place}.")]
            if len(mine) != 1 or len(other) != 1:
                raise QueryRefused("ON compares a column of the joined table with one of the rows before.")
            found.append(alike(mine[0], other[0], other[0].origin.split(".", 1)[1]))
        if not found:
            raise QueryRefused("a JOIN needs ON or USING.")
        return found

    # ---- expressions over a row ------------------------------------------------------------------------------------

    def expression(self, node: exp.Expression, scope: "Scope | Made") -> Expression:
        if isinstance(scope, Made) and (known := scope.known(node)) is not None:
            return known

        def go(*nodes: exp.Expr) -> list[Expression]:
            return [self.expression(one, scope) for one in nodes if isinstance(one, exp.Expression)]

        kind = type(node)
        plain(node)
        if kind in (exp.And, exp.Or):
            return call(BINARY[kind], *go(*node.flatten(unnest=False)))
        if kind in BINARY:
            return call(BINARY[kind], *go(node.this, node.expression))
        if kind in SWAPPED:
            return call(SWAPPED[kind], *go(node.expression, node.this))
        if kind is exp.Paren:
            return self.expression(node.this, scope)
        if kind in SIMPLE and not (node.args.get("position") or node.args.get("decimals")):
            if node.expression or node.expressions:
                raise QueryRefused(f"{shown(node)}: {SIMPLE[kind].upper()} takes one argument.")
            return call(SIMPLE[kind], *go(node.this))
        match node:
            case exp.Literal():
                return Constant(node.this if node.is_string else as_number(node.this))
            case exp.Boolean():
                return Constant(bool(node.this))
            case exp.Null():
                return Constant(None)
            case exp.Column() if not node.args.get("db"):
                return scope.find(node.table.lower(), node.name.lower())
            case exp.NEQ():
                return call("not", call("=", *go(node.this, node.expression)))
            case exp.Not():
                return call("not", *go(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return call("is null", *go(node.this))
            case exp.In() if node.args.get("expressions"):
                return call("in", *go(node.this), *sorted(go(*node.expressions), key=repr))
            case exp.Between():
                value, low, high = go(node.this, node.args["low"], node.args["high"])
                return call("and", call("<=", low, value), call("<=", value, high))
            case exp.Case():
                parts = [part for one in node.args["ifs"] for part in go(self._condition(node, one), one.args["true"])]
                default = node.args.get("default")
                return call("case", *parts, *(go(default) if default is not None else [Constant(None)]))
            case exp.If():
                other = node.args.get("false")
                return call("case", *go(node.this, node.args["true"]), *(go(other) if other else [Constant(None)]))
            case exp.Coalesce():
                return call("coalesce", *go(node.this, *node.expressions))
            case exp.Least() | exp.Greatest():
                return call("least" if kind is exp.Least else "greatest", *go(node.this, *node.expressions))
            case exp.Cast() | exp.TryCast():
                to = node.to.this.name if isinstance(node.to.this, exp.DataType.Type) else ""
                if to not in CASTS:
                    raise QueryRefused(f"CAST to {to or 'that'} is not allowed.\n  do:     use {', '.join(CASTS)}")
                if node.to.expressions and to == "DECIMAL":
                    raise QueryRefused("numbers are doubles here.\n  do:     CAST to DOUBLE, and ROUND(…, digits)")
                if CASTS[to] == "whole":
                    return call("round", call("number", *go(node.this)))
                return call(CASTS[to], *go(node.this))
            case exp.Extract():
                name = node.this.name.lower()
                if name not in ("year", "month", "day", "hour", "dow"):
                    raise QueryRefused(f"EXTRACT({name}) is not allowed.\n  do:     use year, month, day, hour or dow")
                return call("weekday" if name == "dow" else name, *go(node.expression))
            case exp.WidthBucket():
                return bucketed(*go(*(node.args[a] for a in ("this", "min_value", "max_value", "num_buckets"))))
            case exp.Anonymous() if node.name.lower() in ("clamp", "weekday"):
                return call(node.name.lower(), *go(*node.expressions))
            case exp.Anonymous() if node.name.lower() == "date_part" and len(node.expressions) == 2:
                return self.expression(exp.Extract(this=node.expressions[0], expression=node.expressions[1]), scope)
            case exp.Nullif():
                first, second = go(node.this, node.expression)
                return call("case", call("=", first, second), Constant(None), first)
            case exp.Round():
                return call("round to", *go(node.this), Constant(small(node.args["decimals"], "ROUND", 0, 12)))
            case exp.Trim() if not node.expression and node.args.get("position") in ("LEADING", "TRAILING"):
                return call("ltrim" if node.args["position"] == "LEADING" else "rtrim", *go(node.this))
            case exp.Substring():
                start = small(node.args.get("start"), "SUBSTR", 1, 10**6)
                length = small(node.args["length"], "SUBSTR", 0, 10**6) if node.args.get("length") else 10**6
                return call("substr", *go(node.this), Constant(start), Constant(length))
            case exp.Replace():
                old, new = node.expression, node.args.get("replacement")
                if not (isinstance(old, exp.Literal) and isinstance(new, exp.Literal)) or len(new.this) > len(old.this):
                    raise QueryRefused(
                        "REPLACE takes two texts in quotes, the second not longer than the first.\n"
                        "  do:     so that no text can grow until the engine fails"
                    )
                return call("replace", *go(node.this, old, new))
            case exp.DPipe():
                return call("||", *go(*node.flatten(unnest=False)))
            case exp.Concat():
                return call("||", *(call("coalesce", one, Constant("")) for one in go(*node.expressions)))
            case exp.TimestampTrunc() | exp.DateTrunc():
                unit = node.args["unit"].name.lower()
                if unit not in ("year", "month", "day"):
                    raise QueryRefused(f"DATE_TRUNC to {unit[:20]} is not allowed.\n  do:     use year, month or day")
                return call(f"start of {unit}", *go(node.this))
        if isinstance(node, AGGREGATES):
            raise QueryRefused(f"{node.sql()} is not allowed inside another aggregate, in WHERE or in GROUP BY.")
        raise QueryRefused(f"{shown(node)} is not among the things that questions may use.\n  do:     see docs/sql.md")

    @staticmethod
    def _condition(case: exp.Case, one: exp.If) -> exp.Expression:
        return exp.EQ(this=case.this.copy(), expression=one.this.copy()) if case.this else one.this

    # ---- the whole ---------------------------------------------------------------------------------------------

    def select(self, query: exp.Select) -> Question:
        scope = self.scope(query)
        named = {node.alias.lower(): node.this for node in query.expressions if isinstance(node, exp.Alias)}
        group = query.args.get("group")
        if group:
            plain(group)
        nodes = [self.key(node, query, named, scope) for node in (group.expressions if group else [])]
        keys = sorted({self.expression(node, scope) for node in nodes}, key=repr)  # their order is no other question
        for key in keys:
            if isinstance(key, Column) and key.origin == f"t0.{scope.table.unit}":
                raise QueryRefused("GROUP BY the unit would ask about each person.\n  do:     group by something else")
        made = Made(self, scope, keys, named)
        columns: list[tuple[str, Expression]] = []
        for node in query.expressions:
            if isinstance(node, exp.Star):
                raise QueryRefused("SELECT * would show rows.\n  do:     ask for keys and aggregates")
            if isinstance(node, exp.Alias):
                plain(node)
            inner = node.this if isinstance(node, exp.Alias) else node
            name = titled(node, [title for title, _ in columns])
            columns.append((name, self.expression(inner, made)))
        having = query.args.get("having")
        condition = self.expression(having.this, made) if having else Constant(True)
        if condition.domain.kind is not Kind.TRUTH:
            raise QueryRefused("HAVING takes a condition.")
        order = query.args.get("order")
        sorted_by = []
        for one in order.expressions if order else []:
            plain(one)
            sorted_by.append((self.ordered(one.this, columns, made), bool(one.args.get("desc"))))
        return made.question(columns, condition, sorted_by, whole_limit(query))

    @staticmethod
    def key(
        node: exp.Expression, query: exp.Select, named: Mapping[str, exp.Expression], scope: Scope
    ) -> exp.Expression:
        """GROUP BY 2 means that column; a name means a column of the table first, then an alias."""
        if isinstance(node, exp.Literal) and not node.is_string:
            found: exp.Expression = query.expressions[place_of(node, "GROUP BY", len(query.expressions)) - 1]
            return found.this if isinstance(found, exp.Alias) else found
        bare = isinstance(node, exp.Column) and not node.table and node.name.lower() in named
        if bare and not any(name == node.name.lower() for _, name in scope.names):
            return named[node.name.lower()]
        return node

    def ordered(self, node: exp.Expression, columns: list[tuple[str, Expression]], made: "Made") -> Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            return columns[place_of(node, "ORDER BY", len(columns)) - 1][1]
        if isinstance(node, exp.Column) and not node.table:
            for name, expression in columns:
                if name.lower() == node.name.lower():  # what is shown, before what it is made of
                    return expression
        return self.expression(node, made)


@dataclass
class Made:
    """Above GROUP BY: keys and aggregates are outputs, and everything else is made of them."""

    reading: Reading
    rows: Scope
    keys: list[Expression]
    named: Mapping[str, exp.Expression]
    wanted: list[Wanted] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)

    def known(self, node: exp.Expression) -> Expression | None:
        if isinstance(node, AGGREGATES):
            return self.aggregate(node)
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in self.named:
            name = node.name.lower()
            if name not in self.busy and not any(known == name for _, known in self.rows.names):
                self.busy.add(name)
                try:
                    return self.reading.expression(self.named[name], self)
                finally:
                    self.busy.discard(name)
        if not any(node.find_all(*AGGREGATES)) and any(node.find_all(exp.Column)):
            try:
                inner = self.reading.expression(node, self.rows)
            except QueryRefused:
                if isinstance(node, exp.Column):
                    raise
                return None
            if inner in self.keys:
                return Output(self.keys.index(inner), inner.domain)
        return None

    def find(self, alias: str, name: str) -> Expression:
        raise QueryRefused(
            f"{name!r} is neither a key nor inside an aggregate.\n  do:     GROUP BY it, or aggregate it: SUM({name})"
        )

    def aggregate(self, node: exp.Expression) -> Expression:
        """An output for this aggregate, the same one for the same aggregate."""
        wanted = self.by_rank(node) if isinstance(node, RANKS) else self.summed(node)
        if wanted not in self.wanted:
            self.wanted.append(wanted)
        return Output(len(self.keys) + self.wanted.index(wanted), number())

    def by_rank(self, node: exp.Expression) -> Window:
        inner, part = ranked(node)
        return window(self.reading.expression(inner, self.rows), part, shown(node))

    def summed(self, node: exp.Expression) -> tuple[str, Expression | None]:
        inner, name = node.this, SUMS[type(node)]
        plain(node)
        if isinstance(inner, exp.Star) or inner is None:
            if name != "count":
                raise QueryRefused(f"{name.upper()} takes one argument.")
            return "count", None
        if isinstance(inner, exp.Distinct):
            of = [self.reading.expression(one, self.rows) for one in inner.expressions]
            if name != "count" or len(of) != 1:
                raise QueryRefused(f"{shown(node)} is not allowed.\n  do:     ask COUNT(DISTINCT x) of one column")
            return ("units", None) if repr(of[0]) == f"t0.{self.rows.table.unit}" else ("distinct", of[0])
        if node.expressions if not isinstance(node, exp.Count) else node.args.get("expressions"):
            raise QueryRefused(f"{name.upper()} takes one argument.")
        found = self.reading.expression(inner, self.rows)
        if name != "count":
            exponent(found, node.sql())  # refuses what has no bounds
        return name, found

    def question(
        self,
        columns: list[tuple[str, Expression]],
        having: Expression,
        order: list[tuple[Expression, bool]],
        limit: int | None,
    ) -> Question:
        if not self.wanted:
            raise QueryRefused(
                "this question has no aggregate, so it would show rows.\n  do:     ask COUNT(*), SUM(…) or AVG(…)"
            )
        measures, aggregates = measured(self.wanted, private=any(key.domain.keys is None for key in self.keys))
        windows = tuple(one for one in self.wanted if isinstance(one, Window))
        core = Release(self.rows.table, self.rows.joins, self.rows.where, tuple(self.keys), measures, windows)
        if core.rows > MOST_ROWS:
            raise QueryRefused(f"too many rows of one unit after this join.\n  found:  {core.rows:,} are allowed for")
        if core.combinations > MOST_KEYS:
            raise QueryRefused(f"too many groups.\n  found:  {core.combinations:,} combinations of public keys")
        after = [*(e for _, e in columns), having, *(e for e, _ in order)]
        for one in after:
            foreign(one)
        read = [*self.keys, core.where, *(m.of for m in measures if m.of), *(w.of for w in windows)]
        if sum(e.weight for e in [*read, *after]) > HEAVIEST:
            raise QueryRefused("this question is too long, written out.\n  do:     ask less at a time")
        return canonical(Question(core, aggregates, tuple(columns), having, tuple(order), limit))


WHAT = {"units": What.UNITS, "distinct": What.DISTINCT}


def measured(wanted: list[Wanted], private: bool) -> tuple[tuple[Measure, ...], tuple[Aggregate, ...]]:
    """The least measures that serve all aggregates: AVG(x) and SUM(x) share one sum, AVG and COUNT one count."""
    found: dict[Measure, None] = {Measure(What.UNITS): None} if private else {}
    pairs = [one for one in wanted if not isinstance(one, Window)]
    centred = {of for name, of in pairs if name in ("avg", "variance", "stddev")}

    def measure(one: Measure) -> int:
        found.setdefault(one)
        return list(found).index(one)

    aggregates, windows = [], 0
    for one in wanted:
        if isinstance(one, Window):
            aggregates.append(Aggregate("quantile", (), window=windows))
            windows += 1
            continue
        name, of = one
        if of is None or name in ("count", "distinct"):
            what = WHAT.get(name, What.ROWS if of is None else What.VALUES)
            aggregates.append(Aggregate("count", (measure(Measure(what, of)),)))
            continue
        centre = (of.domain.low + of.domain.high) / 2 if of in centred else 0.0
        # the squares of one that is too fine would leave 64 bits
        spread = any(one in (("variance", of), ("stddev", of)) for one in wanted)
        e = exponent(of, name, 20) if spread else exponent(of, name)
        sum_ = measure(Measure(What.SUM, of, centre, e))
        parts = [sum_] if of not in centred else [sum_, measure(Measure(What.VALUES, of))]
        if name in ("variance", "stddev"):
            parts.append(measure(Measure(What.SQUARES, of, centre, 2 * e)))
        aggregates.append(Aggregate(name, tuple(parts), centre, e))
    return tuple(found), tuple(aggregates)


def canonical(question: Question) -> Question:
    """Measures and windows in one order, so that the order of columns does not make another release."""
    release = question.release
    order = sorted(range(len(release.measures)), key=lambda j: repr(release.measures[j]))
    ranks = sorted(range(len(release.windows)), key=lambda j: repr(release.windows[j]))
    aggregates = tuple(
        replace(a, measures=tuple(map(order.index, a.measures)), window=ranks.index(a.window) if ranks else 0)
        for a in question.aggregates
    )
    measures, windows = (tuple(release.measures[j] for j in order), tuple(release.windows[j] for j in ranks))
    return replace(question, release=replace(release, measures=measures, windows=windows), aggregates=aggregates)


def renamed(scope: Scope, alias: str) -> Scope:
    return replace(scope, names={(alias, name): e for (_, name), e in scope.names.items()})


def whole_limit(query: exp.Select) -> int | None:
    limit = query.args.get("limit")
    if limit is None:
        return None
    found = limit.expression
    plain(limit)
    value = as_number(found.this) if isinstance(found, exp.Literal) and not found.is_string else None
    if not isinstance(value, int):
        raise QueryRefused("LIMIT takes a whole number.")
    return value


def small(node: exp.Expression | None, what: str, least: int, most: int) -> int:
    """A whole number that stands in the text."""
    value = as_number(node.this) if isinstance(node, exp.Literal) and not node.is_string else None
    if not isinstance(value, int) or not least <= value <= most:
        raise QueryRefused(f"{what} takes whole numbers from {least} to {most:,} there.")
    return value


def place_of(node: exp.Literal, what: str, most: int) -> int:
    """The number of a column."""
    place = as_number(node.this)
    if not isinstance(place, int) or not 1 <= place <= most:
        raise QueryRefused(f"{what} {node.this[:20]} names no column.")
    return place


def as_number(text: str) -> float | int:
    """A literal; whole ones stay whole, up to what a double can tell apart."""
    try:
        found = int(text) if text.isdecimal() and len(text) < 16 else float(text)
    except ValueError:
        raise QueryRefused(f"{text[:20]!r} is not a number.") from None
    if not math.isfinite(found):
        raise QueryRefused(f"{text[:20]!r} is too large a number.")
    return found


def titled(node: exp.Expression, taken: list[str]) -> str:
    """What a column of the answer is called: its alias, its name, or its text; each name once."""
    plain = isinstance(node, exp.Count) and isinstance(node.this, exp.Star | None)
    name = "count" if plain else node.alias_or_name or shown(node)
    return next(title for i in count(1) if (title := name if i == 1 else f"{name} {i}") not in taken)


def shown(node: exp.Expression) -> str:
    """The analyst's own words for it, shortened."""
    return node.sql("duckdb")[:60]
