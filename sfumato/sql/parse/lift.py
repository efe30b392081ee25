"""A SELECT with aggregates and windows over them, or with grouping sets: its aggregation, and a SELECT around it.

SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER () FROM visits GROUP BY ward becomes an inner SELECT of keys and aggregates,
whose answer is released, and an outer SELECT of everything else. ROLLUP, CUBE and GROUPING SETS have one inner SELECT
for each set of keys.
"""

from dataclasses import dataclass, field
from itertools import combinations, product

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.aggregate import is_aggregate_call
from sfumato.sql.parse.ast_guard import column_number, node_text, without_alias
from sfumato.sql.parse.outer_select import column_title, limit_or_offset

OUTER_PARTS = ("order", "limit", "offset", "distinct", "windows")
INNER_PARTS = ("from_", "from", "joins", "where", "with_", "with")
MOST_SETS = 64
Key = exp.Expression


@dataclass
class Lifted:
    """The sets of keys, the inner columns, and the outer SELECT over a table of this name."""

    query: exp.Select
    table: str
    keys: list[Key] = field(default_factory=list)
    sets: list[tuple[int, ...]] = field(default_factory=list)  # indexes of keys
    titles: list[str] = field(default_factory=list)  # of keys, then of aggregates
    aggregates: list[exp.Expression] = field(default_factory=list)
    groupings: list[int] = field(default_factory=list)  # keys of which GROUPING is asked
    aliases: set[str] = field(default_factory=set)
    outer: exp.Select = field(default_factory=exp.Select)

    @staticmethod
    def of(query: exp.Select, table: str) -> "Lifted":
        """Raises QueryRefused if the SELECT has no aggregates of rows."""
        found = Lifted(query, table)
        found.read_keys()
        found.aliases = {one.alias.lower() for one in query.expressions if isinstance(one, exp.Alias)}
        taken = {name for one in query.expressions if (name := one.alias)}
        for key in found.keys:
            own = key.name if isinstance(key, exp.Column) else title_of(query, key)
            found.titles.append(unused(own or node_text(key), found.titles))
        found.name_selected_aggregates(taken)
        found.build_outer()
        if not found.aggregates:
            raise QueryRefused("this question has no aggregate, so it would show rows.")
        return found

    # ---- keys -------------------------------------------------------------------------------------------------------

    def read_keys(self) -> None:
        group = self.query.args.get("group")
        if group is None:
            self.sets = [()]
            return
        parts: list[list[tuple[int, ...]]] = []
        for node in group.expressions:
            parts.append(self.sets_of(node))
        if group.args.get("all"):
            plain = [without_alias(n) for n in self.query.expressions if not any(map(is_aggregate_call, n.walk()))]
            parts.append([tuple(self.key(n) for n in plain)])
        for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
            if group.args.get(name):
                with_all = [i for part in parts for one in part for i in one]
                parts = [kinds_of(kind, [(i,) for i in with_all])]
        if any(group.args.get(part) for part in group.args if part not in ("expressions", "all", "rollup", "cube")):
            raise QueryRefused("this GROUP BY is not supported.")
        found = [tuple(dict.fromkeys(i for one in chosen for i in one)) for chosen in product(*parts)]
        self.sets = list(dict.fromkeys(tuple(sorted(one)) for one in found))
        if len(self.sets) > MOST_SETS:
            raise QueryRefused(f"at most {MOST_SETS} sets of keys.\n  found:  {len(self.sets):,}")

    def sets_of(self, node: exp.Expression) -> list[tuple[int, ...]]:
        """The sets of keys that one part of GROUP BY stands for."""
        if isinstance(node, exp.Rollup | exp.Cube):
            return kinds_of(type(node), [self.tuple_of(one) for one in node.expressions])
        if isinstance(node, exp.GroupingSets):
            return [one for part in node.expressions for one in self.nested_sets(part)]
        return [(self.key(node),)]

    def nested_sets(self, node: exp.Expression) -> list[tuple[int, ...]]:
        nested = isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets)
        return self.sets_of(node) if nested else [self.tuple_of(node)]

    def tuple_of(self, node: exp.Expression) -> tuple[int, ...]:
        if isinstance(node, exp.Tuple):
            return tuple(self.key(one) for one in node.expressions)
        while isinstance(node, exp.Paren):
            node = node.this
        return (self.key(node),)

    def key(self, node: exp.Expression) -> int:
        """The index of a key; a number is a column, and a name may be an alias."""
        if isinstance(node, exp.Literal) and not node.is_string:
            place = column_number(node, "GROUP BY", len(self.query.expressions))
            node = without_alias(self.query.expressions[place - 1])
        elif isinstance(node, exp.Column) and not node.table:
            for one in self.query.expressions:
                alias = isinstance(one, exp.Alias) and one.alias.lower() == node.name.lower()
                if alias and not isinstance(one.this, exp.Column) and not one.find(exp.Grouping, exp.GroupingId):
                    node = one.this
                    break
        for i, known in enumerate(self.keys):
            if same(known, node):
                return i
        self.keys.append(node)
        return len(self.keys) - 1

    # ---- the outer SELECT -------------------------------------------------------------------------------------------

    def name_selected_aggregates(self, taken: set[str]) -> None:
        """An aggregate that is a column by itself has the name of that column."""
        for one in self.query.expressions:
            node = without_alias(one)
            if is_aggregate_call(node) and not isinstance(node, exp.Grouping | exp.GroupingId):
                self.aggregate(node, one.alias or column_title(one, []))

    def aggregate(self, node: exp.Expression, name: str = "") -> str:
        for known, title in zip(self.aggregates, self.titles[len(self.keys) :], strict=True):
            if known == node:
                return title
        self.aggregates.append(node)
        self.titles.append(unused(name or node_text(node), self.titles))
        return self.titles[-1]

    def build_outer(self) -> None:
        self.outer = exp.select().from_(exp.to_table(self.table))
        titles: list[str] = []
        for one in self.query.expressions:
            titles.append(column_title(one, titles))
            self.outer.append("expressions", exp.alias_(self.rewritten(without_alias(one)), titles[-1], quoted=True))
        if having := self.query.args.get("having"):
            self.outer.set("where", exp.Where(this=self.rewritten(having.this)))
        if qualify := self.query.args.get("qualify"):
            self.outer.set("qualify", exp.Qualify(this=self.rewritten(qualify.this)))
        for word in ("limit", "offset"):
            limit_or_offset(self.query, word)  # refuses what is no number
        for part in OUTER_PARTS:
            if (value := self.query.args.get(part)) is not None:
                many = isinstance(value, list)
                self.outer.set(part, [self.rewritten(one) for one in value] if many else self.rewritten(value))
        known = {"expressions", "group", "having", "qualify", *OUTER_PARTS, *INNER_PARTS, "kind", "hint", "laterals"}
        for part, value in self.query.args.items():
            if value and part not in known:
                raise QueryRefused(f"{part.upper().strip('_')} is not allowed in a question.")

    def rewritten(self, node: exp.Expression, called_by_window: bool = False) -> exp.Expression:
        """The node with keys and aggregates replaced by columns of the released table."""
        if isinstance(node, exp.Query | exp.Identifier | exp.Literal | exp.DataType):
            return node.copy()
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return self.grouping(node)
        if not called_by_window:
            if is_aggregate_call(node):
                return released_column(self.aggregate(node), self.table)
            for key, title in zip(self.keys, self.titles, strict=False):
                if same(key, node):
                    return released_column(title, self.table)
            if isinstance(node, exp.Column):
                if node.table or node.name.lower() not in self.aliases:
                    raise QueryRefused(
                        f"{node.name!r} is neither a key nor inside an aggregate.\n"
                        f"  do:     GROUP BY it, or aggregate it: SUM({node.name})"
                    )
                return node.copy()
        found = node.copy()
        window = isinstance(node, exp.Window) or (called_by_window and isinstance(node, exp.Filter | exp.IgnoreNulls))
        for name, value in node.args.items():
            through = window and name == "this"
            if isinstance(value, exp.Expression):
                found.set(name, self.rewritten(value, through))
            elif isinstance(value, list):
                parts = [self.rewritten(one) if isinstance(one, exp.Expression) else one for one in value]
                found.set(name, parts)
        return found

    def grouping(self, node: exp.Expression) -> exp.Expression:
        """GROUPING(a, b): a bit for each key, 1 where it is summed over."""
        total: exp.Expression = exp.Literal.number(0)
        for one in node.expressions:
            index = next((i for i, key in enumerate(self.keys) if same(key, one)), None)
            if index is None:
                raise QueryRefused(f"{node_text(node)}: GROUPING takes keys of GROUP BY.")
            if index not in self.groupings:
                self.groupings.append(index)
            flag = released_column(grouping_title(index), self.table)
            total = exp.Add(this=exp.Mul(this=total, expression=exp.Literal.number(2)), expression=flag)
        return exp.Paren(this=total)

    # ---- the inner SELECTs ------------------------------------------------------------------------------------------

    def inner(self, chosen: tuple[int, ...]) -> exp.Select:
        """Keys and aggregates of one set of keys."""
        found = exp.Select()
        for part in INNER_PARTS:
            if (value := self.query.args.get(part)) is not None:
                found.set(part, [one.copy() for one in value] if isinstance(value, list) else value.copy())
        columns = [exp.alias_(self.keys[i].copy(), self.titles[i], quoted=True) for i in chosen]
        names = self.titles[len(self.keys) :]
        for node, name in zip(self.aggregates, names, strict=True):
            columns.append(exp.alias_(node.copy(), name, quoted=True))
        found.set("expressions", columns)
        if chosen:
            found.set("group", exp.Group(expressions=[self.keys[i].copy() for i in chosen]))
        return found


def kinds_of(kind: type[exp.Expression], parts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All sets of a ROLLUP (beginnings) or of a CUBE (subsets)."""
    if kind is exp.Rollup:
        chosen = [parts[:many] for many in range(len(parts), -1, -1)]
    else:
        if len(parts) > 6:
            raise QueryRefused("CUBE takes at most six keys.")
        chosen = [list(one) for many in range(len(parts), -1, -1) for one in combinations(parts, many)]
    return [tuple(dict.fromkeys(i for part in one for i in part)) for one in chosen]


def same(key: exp.Expression, node: exp.Expression) -> bool:
    """Are both the same expression? Columns may be named with or without their table."""
    if isinstance(key, exp.Column) and isinstance(node, exp.Column):
        return key.name.lower() == node.name.lower() and (not key.table or not node.table or key.table == node.table)
    return key == node


def title_of(query: exp.Select, key: exp.Expression) -> str:
    return next((one.alias for one in query.expressions if isinstance(one, exp.Alias) and one.this == key), "")


def unused(name: str, taken: list[str]) -> str:
    lower, number, found = {one.lower() for one in taken}, 1, name
    while found.lower() in lower:
        number += 1
        found = f"{name} {number}"
    return found


def grouping_title(index: int) -> str:
    return f"grouping {index}"


def released_column(title: str, table: str) -> exp.Column:
    return exp.column(title, table=table, quoted=True)
