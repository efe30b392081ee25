"""SQL text to a question: one SELECT, of an allow-list; whatever is not on it is refused, in words."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sfumato.errors import QueryRefused
from sfumato.sql.aggregates import RANKS, ranked
from sfumato.sql.domains import number
from sfumato.sql.expressions import Column, Constant, Expression, Output, call
from sfumato.sql.policy import ROW, Policy, Table
from sfumato.sql.question import Aggregate, Question
from sfumato.sql.release import Join, Measure, Release, What, Window, exponent, window

LONGEST, DEEPEST, MOST_TOKENS, MOST_JOINS = 1 << 16, 48, 2000, 10

BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.EQ: "=", exp.LT: "<", exp.LTE: "<=", exp.And: "and",
    exp.Or: "or", exp.Like: "like",
}  # fmt: skip
SWAPPED: dict[type[exp.Expression], str] = {exp.GT: "<", exp.GTE: "<="}
SIMPLE: dict[type[exp.Expression], str] = {
    exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Round: "round", exp.Lower: "lower", exp.Upper: "upper",
    exp.Trim: "trim", exp.Length: "length", exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.Neg: "negative",
    exp.Paren: "", exp.DayOfWeek: "weekday",
}  # fmt: skip
CASTS = {"DOUBLE": "number", "FLOAT": "number", "INT": "number", "BIGINT": "number", "DECIMAL": "number",
         "TEXT": "text", "VARCHAR": "text", "DATE": "date", "TIMESTAMP": "date"}  # fmt: skip
PARTS = {"expressions", "from_", "from", "joins", "where", "group", "having", "order", "limit", "with_", "with"}
ALWAYS = Constant(True)
SUMS: dict[type[exp.Expression], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Variance: "variance", exp.VariancePop: "variance",
    exp.Stddev: "stddev", exp.StddevPop: "stddev", exp.StddevSamp: "stddev",
}  # fmt: skip
AGGREGATES = (*SUMS, *RANKS)
Wanted = tuple[str, Expression | None] | Window


def read(text: str, policy: Policy) -> Question:
    """The question that a text asks."""
    return Reading(policy).select(parsed(text))


def parsed(text: str) -> exp.Select:
    """One SELECT, within limits that are checked before anything takes time."""
    if not isinstance(text, str) or len(text.encode("utf-8", "replace")) > LONGEST:
        raise QueryRefused(f"a question is a text of at most {LONGEST:,} bytes.")
    depth = deepest = 0
    for sign in re.sub(r"'[^']*'", "", text):
        depth += (sign == "(") - (sign == ")")
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise QueryRefused(f"this question is nested too deeply.\n  found:  {deepest} brackets inside each other")
    if "\0" in text or any(0xD800 <= ord(sign) < 0xE000 for sign in text):
        raise QueryRefused("a question is made of ordinary characters.")
    try:
        if len(sqlglot.tokenize(text, read="duckdb")) > MOST_TOKENS:
            raise QueryRefused(f"this question is too long.\n  found:  more than {MOST_TOKENS:,} words and signs")
        found = [one for one in sqlglot.parse(text, read="duckdb") if one is not None]
    except SqlglotError as problem:
        place = getattr(problem, "errors", None) or [{}]
        line, column = place[0].get("line"), place[0].get("col")
        where = f" at line {line}, column {column}" if line else ""
        raise QueryRefused(f"this is not SQL{where}.\n  do:     ask one SELECT statement") from problem
    except (RecursionError, ValueError, AttributeError, IndexError) as problem:
        raise QueryRefused("this is not SQL that can be read.\n  do:     ask one SELECT statement") from problem
    if len(found) != 1 or not isinstance(found[0], exp.Select):
        raise QueryRefused(f"ask exactly one SELECT.\n  found:  {len(found)} statements, or another kind")
    return found[0]


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
            name = cte.alias.lower()
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

    def source(self, node: exp.Expression) -> Scope:
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            return renamed(self.view(node.this), (node.alias or "").lower())
        if not isinstance(node, exp.Table) or node.args.get("db") or node.args.get("joins"):
            raise QueryRefused("FROM takes tables of the policy, and SELECTs over them.")
        name, alias = node.name.lower(), (node.alias or node.name).lower()
        if name in self.views:
            return renamed(self.views[name], alias)
        table = self.table(name)
        if table.public:
            raise QueryRefused(f"{name} is public: ask the database itself, or join it to a private table.")
        names = {(alias, column): Column(f"t0.{column}", domain) for column, domain in table.columns.items()}
        if table.unit != ROW and table.unit not in table.columns:
            names[alias, table.unit] = Column(f"t0.{table.unit}", number())
        return Scope(table, names)

    def table(self, name: str) -> Table:
        found = self.policy.tables.get(name)
        if found is None:
            known = ", ".join(sorted(self.policy.tables))
            raise QueryRefused(f"there is no table {name!r}.\n  found:  {known}\n  do:     ask about one of these")
        return found

    def view(self, query: exp.Select) -> Scope:
        """A SELECT over rows: its columns are expressions, put in where they are named."""
        if query.args.get("group") or query.args.get("limit") or any(query.find_all(*AGGREGATES)):
            raise QueryRefused(
                "a SELECT inside a question works on rows, one by one.\n"
                "  found:  GROUP BY, LIMIT or an aggregate in it\n"
                "  do:     aggregate in the outer SELECT"
            )
        scope = self.scope(query)
        names: dict[tuple[str, str], Expression] = {}
        for node in query.expressions:
            if isinstance(node, exp.Star):
                names |= {("", name): e for (_, name), e in scope.names.items()}
            else:
                inner = node.this if isinstance(node, exp.Alias) else node
                names["", node.alias_or_name.lower()] = self.expression(inner, scope)
        return replace(scope, names=names)

    def joined(self, left: Scope, join: exp.Join) -> Scope:
        """A public table, found by equality with columns of the rows so far."""
        node = join.this
        if (
            not isinstance(node, exp.Table)
            or node.name.lower() in self.views
            or not self.table(node.name.lower()).public
        ):
            raise QueryRefused(
                f"{node.name or 'this'} cannot be joined.\n"
                "  do:     join public tables; to join private ones ask the owner for a view"
            )
        if join.side or join.kind not in ("", "INNER"):
            raise QueryRefused(f"{join.side or join.kind} JOIN is not allowed.\n  do:     use JOIN … ON … = …")
        table, alias, place = self.table(node.name.lower()), (node.alias or node.name).lower(), len(left.joins) + 1
        theirs = {(alias, c): Column(f"t{place}.{c}", d) for c, d in table.columns.items()}
        both = replace(left, names={**left.names, **theirs})
        pairs = self.pairs(join, both, place, left)
        matched = call("not", call("is null", Column(f"t{place}.{pairs[0][1]}", table.columns[pairs[0][1]])))
        return replace(both, joins=(*left.joins, Join(table, tuple(pairs))), where=call("and", left.where, matched))

    def pairs(self, join: exp.Join, both: Scope, place: int, left: Scope) -> list[tuple[Expression, str]]:
        if using := join.args.get("using"):
            names = [column.name.lower() for column in using]
            return [alike(left.find("", name), both.find_in(place, name), name) for name in names]
        found = []
        on = join.args.get("on")
        for part in on.flatten() if isinstance(on, exp.And) else [on] if on is not None else []:
            if not isinstance(part, exp.EQ):
                raise QueryRefused("ON compares columns for equality, joined by AND.")
            sides = [self.expression(part.this, both), self.expression(part.expression, both)]
            mine = [s for s in sides if not (isinstance(s, Column) and s.origin.startswith(f"t{place}."))]
            other = [s for s in sides if isinstance(s, Column) and s.origin.startswith(f"t{place}.")]
            if len(mine) != 1 or len(other) != 1:
                raise QueryRefused("ON compares a column of the public table with one of the rows before.")
            found.append(alike(mine[0], other[0], other[0].origin.split(".", 1)[1]))
        if not found:
            raise QueryRefused("a JOIN needs ON or USING.")
        return found

    # ---- expressions over a row ------------------------------------------------------------------------------------

    def expression(self, node: exp.Expression, scope: "Scope | Made") -> Expression:
        if isinstance(scope, Made) and (known := scope.known(node)) is not None:
            return known

        def go(*nodes: exp.Expression) -> list[Expression]:
            return [self.expression(one, scope) for one in nodes]

        kind = type(node)
        if kind in BINARY:
            return call(BINARY[kind], *go(node.this, node.expression))
        if kind in SWAPPED:
            return call(SWAPPED[kind], *go(node.expression, node.this))
        if kind is exp.Paren:
            return self.expression(node.this, scope)
        if kind in SIMPLE:
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
                name, arguments = (
                    ("least" if isinstance(node, exp.Least) else "greatest"),
                    go(node.this, *node.expressions),
                )
                found = arguments[0]
                for argument in arguments[1:]:
                    found = call(name, found, argument)
                return found
            case exp.Cast() | exp.TryCast():
                to = node.to.this.name if isinstance(node.to.this, exp.DataType.Type) else ""
                if to not in CASTS:
                    raise QueryRefused(f"CAST to {to or 'that'} is not allowed.\n  do:     use {', '.join(CASTS)}")
                return call(CASTS[to], *go(node.this))
            case exp.Extract():
                name = node.this.name.lower()
                if name not in ("year", "month", "day", "hour", "dow"):
                    raise QueryRefused(f"EXTRACT({name}) is not allowed.\n  do:     use year, month, day, hour or dow")
                return call("weekday" if name == "dow" else name, *go(node.expression))
            case exp.Anonymous() if node.name.lower() in ("clamp", "weekday", "hour"):
                return call(node.name.lower(), *go(*node.expressions))
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
        if group and any(group.args.get(part) for part in ("cube", "rollup", "grouping_sets", "all")):
            raise QueryRefused("GROUP BY takes a list of keys.")
        nodes = [self.key(node, query, named) for node in (group.expressions if group else [])]
        keys = list(dict.fromkeys(self.expression(node, scope) for node in nodes))
        for key in keys:
            if isinstance(key, Column) and key.origin == f"t0.{scope.table.unit}":
                raise QueryRefused("GROUP BY the unit would ask about each person.\n  do:     group by something else")
        made = Made(self, scope, keys, named)
        columns: list[tuple[str, Expression]] = []
        for node in query.expressions:
            if isinstance(node, exp.Star):
                raise QueryRefused("SELECT * would show rows.\n  do:     ask for keys and aggregates")
            inner = node.this if isinstance(node, exp.Alias) else node
            name = titled(node, [title for title, _ in columns])
            columns.append((name, self.expression(inner, made)))
        having = query.args.get("having")
        condition = self.expression(having.this, made) if having else Constant(True)
        order = query.args.get("order")
        sorted_by = []
        for one in order.expressions if order else []:
            sorted_by.append((self.ordered(one.this, columns, made), bool(one.args.get("desc"))))
        return made.question(columns, condition, sorted_by, whole_limit(query))

    @staticmethod
    def key(node: exp.Expression, query: exp.Select, named: Mapping[str, exp.Expression]) -> exp.Expression:
        """GROUP BY 2 and GROUP BY an alias mean that column."""
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(as_number(node.this))
            if not 1 <= place <= len(query.expressions):
                raise QueryRefused(f"GROUP BY {place} names no column.")
            found: exp.Expression = query.expressions[place - 1]
            return found.this if isinstance(found, exp.Alias) else found
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in named:
            return named[node.name.lower()]
        return node

    def ordered(self, node: exp.Expression, columns: list[tuple[str, Expression]], made: "Made") -> Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(as_number(node.this))
            if not 1 <= place <= len(columns):
                raise QueryRefused(f"ORDER BY {place} names no column.")
            return columns[place - 1][1]
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
            if name not in self.busy:
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
        if isinstance(inner, exp.Star) or inner is None:
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
        e = exponent(of, name)
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
    if not isinstance(found, exp.Literal) or found.is_string or not found.this.isdigit():
        raise QueryRefused("LIMIT takes a whole number.")
    return int(found.this)


def as_number(text: str) -> float | int:
    try:
        return int(text) if text.isdigit() and len(text) < 16 else float(text)
    except ValueError as problem:
        raise QueryRefused(f"{text!r} is not a number.") from problem


def titled(node: exp.Expression, taken: list[str]) -> str:
    """What a column of the answer is called: its alias, its name, or its text; each name once."""
    plain = isinstance(node, exp.Count) and isinstance(node.this, exp.Star | None)
    name = "count" if plain else node.alias_or_name or shown(node)
    return next(title for i in count(1) if (title := name if i == 1 else f"{name} {i}") not in taken)


def shown(node: exp.Expression) -> str:
    """The analyst's own words for it, shortened."""
    return node.sql("duckdb")[:60]
