"""Tables of FROM as one plan: which one comes first, how the others are found, and that no rows of two units meet.

Sources are first named by their position in the text (p0, p1, …); equalities of ON, USING and WHERE are read over these
names. Then a private source becomes the first table, and the others are joined to it one by one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.sql.domains import TEXT
from sfumato.sql.expressions import Column, Expression, columns
from sfumato.sql.parse.derived import derive, key_identity, one_row_by
from sfumato.sql.parse.expressions import parse_expression
from sfumato.sql.parse.scopes import ALWAYS, Scope, columns_of, renumber, substitute
from sfumato.sql.plan import JOINED_ROWS, MOST_JOINED_ROWS, Join, Table
from sfumato.sql.simplify import call, filter_condition
from sfumato.sql.units import RowUnit

Pairs = list[tuple[Expression, str]]
Keys = frozenset[tuple[str, str]]  # columns by which the policy finds units: (parent table, its column)
NEEDS_ON = "a JOIN needs ON or USING.\n  do:     write the equality after ON: JOIN wards ON visits.ward = wards.ward"


@dataclass(frozen=True)
class Source:
    """One table, view or sub-select of FROM; `left`: rows that find none of it stay."""

    place: int
    alias: str
    scope: Scope
    left: bool = False

    @property
    def label(self) -> str:
        return f"p{self.place}"

    @property
    def names(self) -> dict[tuple[str, str], Expression]:
        """Its columns by their names in the text, under the label of the source."""
        return {
            (self.alias, name): Column(f"{self.label}.{name}", of.domain) for (_, name), of in self.scope.names.items()
        }

    @property
    def meaning(self) -> dict[str, Expression]:
        """What these columns are in the terms of its own scope."""
        return {f"{self.label}.{name}": of for (_, name), of in self.scope.names.items()}

    @property
    def public(self) -> bool:
        return self.scope.table.public

    @property
    def bare(self) -> bool:
        """Are its columns those of one table, perhaps with a condition?"""
        return not self.scope.joins and all(isinstance(of, Column) for of in self.scope.names.values())


@dataclass(frozen=True)
class Condition:
    """A part of ON or WHERE: an equality of two sides, or anything else as a whole."""

    of: int  # the place of the source that it was written for; -1 in WHERE
    whole: Expression | None
    sides: tuple[Expression, ...] = ()
    merged: bool = False  # of USING: both columns are one


def places(expression: Expression) -> set[str]:
    return {one.origin.split(".", 1)[0] for one in columns(expression)}


def split_conjuncts(node: exp.Expr | None) -> Iterator[exp.Expression]:
    """The parts of a condition that are joined by AND."""
    inner = node.unnest() if node is not None else None
    if isinstance(inner, exp.And):
        for part in inner.flatten():
            yield from split_conjuncts(part)
    elif isinstance(inner, exp.Expression):
        yield inner


# ---- reading ON, USING, NATURAL and WHERE ---------------------------------------------------------------------------


def conditions_of(sources: Sequence[Source], joins: Sequence[exp.Join]) -> list[Condition]:
    """All conditions of ON, USING and NATURAL, over the labels of sources."""
    try:
        return read_conditions(sources, joins)
    except QueryRefused:
        require_described_keys([one.scope.table for one in sources], joins)
        raise


def read_conditions(sources: Sequence[Source], joins: Sequence[exp.Join]) -> list[Condition]:
    found: list[Condition] = []
    names = dict(sources[0].names)
    for source, join in zip(sources[1:], joins, strict=True):
        if any(alias == source.alias for alias, _ in names):
            raise QueryRefused(f"two tables are called {source.alias!r}.\n  do:     give one another name")
        both = Scope(source.scope.table, {**names, **source.names})
        if (listed := shared_columns(join, names, source)) is not None:
            for name in listed:
                mine, theirs = Scope(source.scope.table, names).find("", name), own_column(source, name)
                require_same_kind(mine, theirs)
                found.append(Condition(source.place, None, (mine, theirs), merged=True))
                both = replace(both, names={**both.names, (source.alias, name): mine})
        for part in split_conjuncts(join.args.get("on")):
            found.append(read_condition(part, both, source))
        names = dict(both.names)
    if joins[0].side == "RIGHT":  # then the first table is the one that may be missing, and its ON is that of the join
        return [replace(one, of=sources[0].place) if one.of == sources[1].place else one for one in found]
    return found


def require_described_keys(tables: Sequence[Table], joins: Sequence[exp.Join]) -> None:
    """Of a join that is refused: raises if it is on a key of the policy that is no column of questions. To join on a
    column that is one, such as the unit, would be another question."""
    compared = [node for join in joins for node in [*(join.args.get("using") or []), join.args.get("on")] if node]
    named = {column.name.lower() for node in compared for column in node.find_all(exp.Column, exp.Identifier)}
    for table, owner in [(one, one.owner) for one in tables if one.owner is not None]:
        for of, key in ((table, owner.mine), (owner.table, owner.theirs)):
            if key in named and key != of.unit_column and key not in of.columns:
                raise QueryRefused(
                    f"the policy finds the unit of a table by {key!r}, and does not describe it as a column.\n"
                    f"  found:  columns of {of.name}: {', '.join(sorted(of.columns)) or 'none'}\n"
                    f"  do:     the owner adds it to the columns of {of.name}, with its type"
                )


def shared_columns(join: exp.Join, names: Mapping[tuple[str, str], Expression], source: Source) -> list[str] | None:
    """The columns of USING, or those that NATURAL JOIN finds on both sides among what the policy describes."""
    if using := join.args.get("using"):
        return [column.name.lower() for column in using]
    if join.method != "NATURAL":
        return None
    known = {name for _, name in names}
    found = [name for _, name in source.names if name in known]
    if not found:
        raise QueryRefused(f"NATURAL JOIN finds no common column of {source.alias} and the tables before.")
    return found


def own_column(source: Source, name: str) -> Expression:
    found = source.names.get((source.alias, name))
    if found is None:
        raise QueryRefused(f"{name!r} is not a column of the joined table.")
    return found


def read_condition(part: exp.Expression, names: Scope, source: Source) -> Condition:
    if not isinstance(part, exp.EQ):
        return Condition(source.place, parse_expression(part, names))
    sides = (parse_expression(part.this, names), parse_expression(part.expression, names))
    for mine, theirs in (sides, sides[::-1]):
        if isinstance(theirs, Column) and source.label in places(theirs) and source.label not in places(mine):
            require_same_kind(mine, theirs)
    return Condition(source.place, None, sides)


def equalities_of_where(node: exp.Expression, names: Scope) -> Condition | None:
    """An equality of columns of two sources, by which tables after a comma are joined."""
    if not isinstance(node, exp.EQ) or any(node.find_all(exp.Query)):
        return None
    try:
        sides = (parse_expression(node.this, names), parse_expression(node.expression, names))
    except QueryRefused:
        return None  # told where it is read as a filter
    linked = all(places(side) for side in sides) and any(isinstance(side, Column) for side in sides)
    same_kind = sides[0].domain.kind is sides[1].domain.kind
    return Condition(-1, None, sides) if linked and same_kind and places(sides[0]) != places(sides[1]) else None


def require_same_kind(mine: Expression, theirs: Expression) -> None:
    if mine.domain.kind is not theirs.domain.kind:
        raise QueryRefused(
            f"ON compares a {mine.domain.kind.value} with a {theirs.domain.kind.value}.\n  do:     CAST one"
        )


# ---- joining --------------------------------------------------------------------------------------------------------


def join_sources(
    sources: Sequence[Source], conditions: Sequence[Condition], keys: Keys
) -> tuple[Scope, list[Condition]]:
    """All sources as one scope, and the conditions of WHERE that became equalities of a join.

    The first table is the first private one of the text, unless another one makes fewer joins multiply rows: lines are
    before their order, as each has one.
    """
    roots = [one for one in sources if not one.left and not one.public] or [
        one for one in sources if not one.left and one.public
    ]
    if roots[0].public and not all(one.public for one in sources):
        raise QueryRefused("this join keeps rows of public tables without a match, and these have no unit.")
    best: Joining | None = None
    refused: QueryRefused | None = None
    for root in roots:
        try:
            found = Joining.of(root, conditions, keys).attach_all([one for one in sources if one is not root])
        except QueryRefused as problem:
            refused = refused or problem
            continue
        if best is None or found.multiplied < best.multiplied:
            best = found
        if not best.multiplied:
            break
    if best is None:
        raise refused or QueryRefused(NEEDS_ON)
    written = [one.alias for one in sources]  # SELECT * shows columns in the order of the text
    names = {
        name: substitute(of, best.meaning)
        for name, of in sorted(
            ((n, of) for one in sources for n, of in one.names.items()), key=lambda item: written.index(item[0][0])
        )
    }
    rest = [substitute(whole(one), best.meaning) for one in conditions if one.of >= 0 and one not in best.used]
    where = call("and", best.scope.where, *map(filter_condition, rest))
    return sort_joins(replace(best.scope, names=names, where=where)), [one for one in best.used if one.of < 0]


def whole(condition: Condition) -> Expression:
    return condition.whole if condition.whole is not None else call("=", *condition.sides)


@dataclass
class Joining:
    """The rows so far, from one first table on."""

    scope: Scope
    conditions: Sequence[Condition]
    keys: Keys
    placed: set[str]
    meaning: dict[str, Expression]
    used: list[Condition] = field(default_factory=list)

    @staticmethod
    def of(root: Source, conditions: Sequence[Condition], keys: Keys) -> "Joining":
        return Joining(root.scope, conditions, keys, {root.label}, dict(root.meaning))

    @property
    def multiplied(self) -> int:
        return sum(join.multiplies for join in self.scope.joins)

    def attach_all(self, waiting: list[Source]) -> "Joining":
        """Join the others: each as soon as an equality leads to it."""
        while waiting:
            ready = next((one for one in waiting if self.leading_to(one)), None)
            if ready is None:
                raise QueryRefused(NEEDS_ON)
            self.attach(ready)
            waiting = [one for one in waiting if one is not ready]
        return self

    def leading_to(self, source: Source) -> list[tuple[Condition, Expression, Column]]:
        """Equalities of a column of this source with something that is known: (condition, known, column)."""
        found = []
        for one in self.conditions:
            if one in self.used or (source.left and one.of != source.place):
                continue
            for mine, theirs in (one.sides, one.sides[::-1]) if one.sides else ():
                own = isinstance(theirs, Column) and places(theirs) == {source.label}
                known = places(mine) <= self.placed and (places(mine) or one.of == source.place)
                if own and known and isinstance(theirs, Column):
                    found.append((one, substitute(mine, self.meaning), theirs))
                    break
        return found

    def attach(self, source: Source) -> None:
        equalities = self.leading_to(source)
        taken = [one for one, _, _ in equalities]
        scope = source.scope
        if source.left:
            scope, filters = self.filtered(source, taken)
            taken += filters
        pairs, table, columns, where = self.joined_form(replace(source, scope=scope), equalities)
        join = Join(table, in_order(pairs)) if table.public else of_one_unit(self.scope, table, pairs, self.keys)
        place = len(self.scope.joins) + 1
        for name, of in columns.items():
            self.meaning[name] = renumber(of, {"t0": f"t{place}"})
        for one, mine, theirs in equalities:
            if one.merged:  # one column of that name: both are equal
                self.meaning[theirs.origin] = mine
        condition = self.scope.where
        if not source.left:
            condition = call("and", condition, match_condition(join, place), renumber(where, {"t0": f"t{place}"}))
        self.scope = limit_sides(replace(self.scope, joins=(*self.scope.joins, join), where=condition))
        self.placed.add(source.label)
        self.used += taken

    def filtered(self, source: Source, taken: list[Condition]) -> tuple[Scope, list[Condition]]:
        """LEFT JOIN: what ON says about the joined rows alone is a condition on them before they are joined."""
        rest = [one for one in self.conditions if one.of == source.place and one not in taken]
        scope = source.scope
        for one in rest:
            if places(whole(one)) != {source.label}:
                raise QueryRefused(
                    "ON of a LEFT JOIN compares columns of the joined table with what is before, by =, and has"
                    f" conditions on {source.alias} alone."
                )
            scope = replace(
                scope, where=call("and", scope.where, filter_condition(substitute(whole(one), source.meaning)))
            )
        return scope, rest

    def joined_form(
        self, source: Source, equalities: list[tuple[Condition, Expression, Column]]
    ) -> tuple[Pairs, Table, dict[str, Expression], Expression]:
        """Pairs, table, columns and condition of a source as it is joined: its own table, if that has at most one row
        for what is compared; else a sub-select with its condition, which is applied first."""
        scope = source.scope
        if source.bare:
            meaning = source.meaning
            pairs = [(mine, column_name(meaning[theirs.origin])) for _, mine, theirs in equalities]
            plain = scope.where == ALWAYS
            if plain or (
                not source.left and not source.public and finds_one(self.scope, scope.table, pairs, self.keys)
            ):
                return pairs, scope.table, dict(meaning), scope.where
        table, derived = derive(scope)
        found = {f"{source.label}.{name}": of for name, of in derived.items()}
        return [(mine, column_name(found[t.origin])) for _, mine, t in equalities], table, dict(found), ALWAYS


def column_name(of: Expression) -> str:
    assert isinstance(of, Column)
    return of.origin.split(".", 1)[1]


def in_order(pairs: Pairs) -> tuple[tuple[Expression, str], ...]:
    """Each equality once, in canonical order."""
    return tuple(sorted(dict.fromkeys(pairs), key=lambda pair: (pair[1], repr(pair[0]))))


def match_condition(join: Join, place: int) -> Expression:
    """The condition that a row has a match."""
    names = [name for _, name in join.on]
    unit = not join.table.public and join.table.unit_column in names  # of any type, and the policy need not say which
    if unit:
        return call("not", call("is null", Column(f"t{place}.{join.table.unit_column}", TEXT)))
    return call("not", call("is null", columns_of(join.table, place)[names[0]]))


# ---- private tables -------------------------------------------------------------------------------------------------


def of_one_unit(left: Scope, right: Table, pairs: Pairs, keys: Keys) -> Join:
    """Private tables are joined on their unit: each row of the result is then of one unit, and of its own rows only.

    A key by which the policy finds the unit belongs to one unit, so what is equal there is of the same unit: to add the
    equality of units then changes nothing, and makes it so whatever the data are.
    """
    same = not isinstance(left.table.unit, RowUnit) and left.table.unit == right.unit
    on_unit = any(name == right.unit_column and is_unit(left, mine) for mine, name in pairs)
    found = [name for mine, name in pairs if identity(left, mine, keys) == key_identity(right, name, keys) is not None]
    if not same or not (on_unit or found):
        listed = ", ".join(dict.fromkeys(shown_name(right, name) for _, name in pairs))
        raise QueryRefused(
            "this join of private tables could bring rows of different people together.\n"
            f"  found:  {left.table.name} of {str(left.table.unit)!r}, {right.name} of {str(right.unit)!r},"
            f" joined on {listed};\n"
            "          the policy does not say that rows which are equal there are of one person"
        )
    assert right.unit_column is not None
    unit = columns_of(left.table, 0)[right.unit_column]
    mine = [pair for pair in pairs if not (pair[1] == right.unit_column and is_unit(left, pair[0], first=True))]
    exact = [] if right.derived else [name for of, name in pairs if name in found and is_stored(left, of)]
    on = (*in_order(mine), (unit, right.unit_column))
    return Join(right, on, tuple(dict.fromkeys(exact)), finds_one(left, right, pairs, keys))


def finds_one(left: Scope, right: Table, pairs: Pairs, keys: Keys) -> bool:
    """Can a row find at most one row of its unit, by what the policy and the text say?"""
    parent = any(
        identity(left, mine, keys) == (right.name, name) and not right.derived
        for mine, name in pairs
        if key_identity(right, name, keys) == (right.name, name)
    )
    known = one_row_by(right)
    return parent or (known is not None and known <= {name for _, name in pairs})


def shown_name(table: Table, name: str) -> str:
    return "a computed column" if table.derived and name in table.columns else name


def table_at(left: Scope, column: Column) -> Table:
    place = int(column.origin.split(".", 1)[0][1:])
    return (left.table, *(join.table for join in left.joins))[place]


def is_unit(left: Scope, mine: Expression, first: bool = False) -> bool:
    """Is it the unit of its table, or of the first one?"""
    if not isinstance(mine, Column):
        return False
    table = left.table if first else table_at(left, mine)
    origin = left.table.unit_origin if first else mine.origin
    return mine.origin == origin and not table.public and mine.origin.split(".", 1)[1] == table.unit_column


def is_stored(left: Scope, mine: Expression) -> bool:
    return isinstance(mine, Column) and not table_at(left, mine).derived


def identity(left: Scope, mine: Expression, keys: Keys) -> tuple[str, str] | None:
    """The key of the policy that a column of the rows so far is."""
    return key_identity(table_at(left, mine), column_name(mine), keys) if isinstance(mine, Column) else None


def limit_sides(scope: Scope) -> Scope:
    """Where private tables multiply rows of a unit: of scaled ones so many rows are kept before that all together make
    no more than MOST_JOINED_ROWS: 1,000 of two tables, 100 of three. What is cut here is in no interval, so there are
    never less than JOINED_ROWS, and joins of more tables are refused."""
    multiplying = [join for join in scope.joins if join.multiplies]
    if not multiplying:
        return scope
    sides = [scope.table, *(join.table for join in multiplying)]
    stated = math.prod(table.rows for table in sides if not table.scaled)
    rows = max(JOINED_ROWS, root_below(MOST_JOINED_ROWS // stated, sum(table.scaled for table in sides)))

    def limited(table: Table) -> Table:
        return replace(table, rows=rows) if table.scaled else table

    joins = tuple(replace(join, table=limited(join.table)) if join.multiplies else join for join in scope.joins)
    return replace(scope, table=limited(scope.table), joins=joins)


def root_below(whole: int, degree: int) -> int:
    """The largest whole number of which this power is at most `whole`; 1 for degree 0."""
    if degree == 0:
        return 1
    found = max(1, round(math.pow(whole, 1 / degree)))  # perhaps one off
    while found > 1 and found**degree > whole:
        found -= 1
    while (found + 1) ** degree <= whole:
        found += 1
    return found


# ---- canonical order ------------------------------------------------------------------------------------------------


def sort_joins(scope: Scope) -> Scope:
    """Joins in canonical order, whatever their order in the text: each join can be evaluated once the tables that it
    compares with are there."""
    waiting, order = dict(enumerate(scope.joins, 1)), [0]
    if len(waiting) < 2:
        return scope
    while waiting:
        found = {f"t{old}": f"t{new}" for new, old in enumerate(order)}
        ready = {i: join for i, join in waiting.items() if tables_needed(join) <= set(found)}
        first = min(ready, key=lambda i: (repr(renumber_join(ready[i], found)), i))
        order.append(first)
        del waiting[first]
    if order == sorted(order):
        return scope
    found = {f"t{old}": f"t{new}" for new, old in enumerate(order)}
    names = {name: renumber(of, found) for name, of in scope.names.items()}
    known = {node: renumber(of, found) for node, of in scope.subqueries.items()}
    joins = tuple(renumber_join(scope.joins[old - 1], found) for old in order[1:])
    return replace(scope, names=names, joins=joins, where=renumber(scope.where, found), subqueries=known)


def tables_needed(join: Join) -> set[str]:
    """The tables that a join compares with."""
    return {one.origin.split(".", 1)[0] for mine, _ in join.on for one in columns(mine)}


def renumber_join(join: Join, found: dict[str, str]) -> Join:
    return replace(join, on=tuple((renumber(mine, found), name) for mine, name in join.on))
