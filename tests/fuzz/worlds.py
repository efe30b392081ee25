"""Random policies, and data for them with odd values: whole, without one unit, and with one more that is hostile.

A world is made from (seed, number) alone. Units keep what a policy's owner states: a key belongs to one unit, and units
of one name are the same.
"""

import json
import random
from dataclasses import dataclass, field, replace
from functools import cached_property

from sfumato.sql.policy import Policy
from tests.curator.odd import DATES, MOMENTS, NUMBERS, NUMERALS, spelled

NAMES = [
    "i", "row", "edge", "_sf", "_s", "sf_unit", "select", "order", "group", "all", "a b", 'a"b', "a.b", "t0", "t1.x",
    "unit", "key", "rows", "count", "sum", "x;--", "日本", "'q'", "%s", "{x}", "value", "hash", "date", "stay", "x",
    "y", "ward", "person", "id", "k0", "m0", "x, 1.0", "null", "true", "end", "\\", "c0", " ", "ü",
]  # fmt: skip
OURS = ["_sf_unit", "_sf_k0", "_sf_m0", "_sf_place", "_sf_hash", "_sf_t0", "_sf_given"]  # columns that no policy names
LETTERS = "ntdb"  # numbers, texts, dates, truths
ORDINARY = [0.0, 1.0, 2.0, 2.5, 3.0, 7.0, 12.0, 30.0, 59.9, 60.0, 61.0, -1.0, 0.25, 100.0]
WHOLES = [0, 1, 2, 3, 7, 12, 60, -1, -7, 100, 1000]
HUGE = [2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**31, 2**60, 2**60 + 1]
WORDS = ["a", "A", "a ", "ä", "a\u0308", "", "north", "North", "b", "%", "_", "\\", "'; --", "ß", "😀x", "d1", "a.b"]
DAYS = ["2024-02-29", "2024-01-01", "2024-12-31", "2024-02-29 10:11:12.5", "1969-12-31 23:59:59", "2000-02-29"]
TRUTHS = {"BOOLEAN": [True, False], "TEXT": ["true", "f", "yes", "on", "2", "", "no"], "INTEGER": [0, 1, 2, -1]}
NUMBER_RULES = [
    "{low = 0, high = 60, step = 0.125}", "{low = -100, high = 1000}", '{type = "number"}', "{low = 0, high = 1e-9}",
    '{type = "integer", low = 1, high = 12}', '{type = "integer", low = -3, high = 3}', "{low = 0, high = 1, step = 1}",
    '{type = "number", keys = [1, 2, 2.5]}', "{low = -1e15, high = 1e15}", "{low = 5, high = 5.0000001}",
    "{low = -0.5, high = -0.25, step = 0.25}", '{type = "integer"}', "{low = 0, high = 1000000, step = 1024}",
    '{low = 0, high = 60, keys = [0, 7, 60, 61]}', "{low = -1, high = 1, step = 0.000030517578125}",
]  # fmt: skip
TEXT_RULES = [
    '{type = "text"}', '{type = "text"}', '{type = "text", keys = ["a", "A", "a "]}',
    '{type = "text", keys = ["north", "", "%"]}', '{type = "text", keys = ["ä", "a\u0308", "\'; --", "d1"]}',
]  # fmt: skip
DATE_RULES = [
    '{type = "date"}',
    '{type = "date"}',
    '{type = "date", keys = ["2024-02-29", "2024-01-01", "9999-12-31"]}',
]
TYPES = {
    "n": ["DOUBLE PRECISION"] * 4 + ["BIGINT", "INTEGER", "SMALLINT", "DECIMAL(38, 2)", "TEXT", "REAL"],
    "t": ["TEXT"] * 5 + ["INTEGER"], "d": ["DATE", "DATE", "TIMESTAMP", "TIMESTAMP", "TEXT"], "b": list(TRUTHS),
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column of the database; `rule` is what the policy says of it, None if nothing."""

    name: str
    letter: str
    type: str
    rule: str | None
    nocase: bool = False  # a collation that takes a for A, where the engine has one

    @property
    def keyed(self) -> bool:
        return self.letter == "b" or (self.rule is not None and ("keys" in self.rule or "integer" in self.rule))

    @property
    def bounded(self) -> bool:
        return self.rule is not None and "low" in self.rule

    def value(self, dice, odds):
        """An ordinary value, an odd one, or none."""
        odd, hostile = dice.random() < odds, odds > 0.5
        if dice.random() < 0.08:
            return None
        match self.letter, self.type:
            case "n", "DOUBLE PRECISION":
                return dice.choice(NUMBERS if odd else ORDINARY)
            case "n", "REAL":
                return dice.choice([1e-30, -1e30, float("nan"), float("inf")] if odd else ORDINARY)
            case "n", "TEXT":
                return dice.choice(NUMERALS if odd else [str(one) for one in ORDINARY])
            case "n", "DECIMAL(38, 2)":
                return dice.choice(["99999999999999999999.99", "-0.01"] if odd else ["0.5", "7.30", "60", "-1", "2.5"])
            case _, "BIGINT":
                return dice.choice(HUGE if odd else WHOLES)
            case "n" | "t", _ if self.type in ("INTEGER", "SMALLINT"):
                return dice.choice([-(2**15), 2**15 - 1, 255] if odd else WHOLES)
            case "t", _:
                return dice.choice(["x" * 12000] if hostile and dice.random() < 0.05 else WORDS)
            case "d", "TEXT":
                return dice.choice(MOMENTS if odd else DAYS)
            case "d", _:
                return dice.choice(DATES if odd else DAYS)
        return dice.choice(TRUTHS[self.type])


@dataclass(frozen=True)
class Table:
    """How a table of the database is described; `how` its unit is: public, column, row, edge or owner."""

    name: str
    how: str
    columns: tuple[Column, ...]
    unit: str = ""  # the column of it, or of the table above
    key: str = ""  # of ours, by which the row above is found
    above: str = ""
    above_key: str = ""
    groups: int = 1
    rows: int = 1

    @property
    def names(self):
        return [column.name for column in self.columns]

    @property
    def asked(self):
        """The columns that questions may name."""
        return [column for column in self.columns if column.rule is not None]

    def policy(self, dice):
        """TOML, names in any case."""
        lines = [f"[tables.{json.dumps(cased(self.name, dice), ensure_ascii=False)}]"]
        if self.how == "public":
            lines.append("public = true")
        elif self.how == "row":
            lines.append('unit = {each = "row"}')
        elif self.how == "edge":
            lines.append(f"edges = {json.dumps(self.names[:2], ensure_ascii=False)}")
        elif self.how == "column":
            lines.append(f"unit = {{column = {json.dumps(cased(self.unit, dice), ensure_ascii=False)}}}")
        else:
            said = {"column": self.unit, "table": self.above}
            words = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in said.items())
            lines += [f"unit = {{{words}}}", f"key = {json.dumps(self.key, ensure_ascii=False)}"]
            lines.append(f"parent_key = {json.dumps(self.above_key, ensure_ascii=False)}")
        if self.how not in ("public", "row"):
            lines += [f"groups = {self.groups}", f"rows = {self.rows}"]
        for column in self.asked:
            lines.append(f"columns.{json.dumps(cased(column.name, dice), ensure_ascii=False)} = {column.rule}")
        return "\n".join(lines) + "\n"


def cased(name, dice):
    """ASCII letters in another case now and then: names are folded."""
    if dice.random() < 0.8:
        return name
    return "".join(sign.upper() if sign.isascii() else sign for sign in name)


@dataclass
class World:
    """A policy and three databases: `rows` are (whose, values) for each table."""

    tables: list[Table]
    text: str
    wide: bool  # bounds that nobody reaches
    mild: bool  # no odd values
    rows: dict[str, list]
    gone: set = field(default_factory=set)  # whose rows the second database lacks
    more: dict[str, list] = field(default_factory=dict)  # rows that only the third one has

    @cached_property
    def policy(self):
        return Policy.read(self.text)

    def data(self, which):
        """table → rows of the database "whole", "without" or "with"."""
        match which:
            case "without":
                return {t: [row for who, row in rows if who not in self.gone] for t, rows in self.rows.items()}
            case "with":
                return {t: [row for _, row in rows] + self.more.get(t, []) for t, rows in self.rows.items()}
        return {t: [row for _, row in rows] for t, rows in self.rows.items()}

    def script(self, which, dialect):
        """SQL that makes one of the databases."""
        data = self.data(which)
        return [line for table in self.tables for line in built(table, data[table.name], dialect)]

    @property
    def collated(self):
        return any(column.nocase for table in self.tables for column in table.columns)


def built(table, rows, dialect):
    """CREATE TABLE and INSERT: all values are written as texts, and cast."""
    types = {c.name: c.type + (" COLLATE NOCASE" if c.nocase and dialect == "duckdb" else "") for c in table.columns}
    yield f"CREATE TABLE {quoted(table.name)} ({', '.join(f'{quoted(n)} {t}' for n, t in types.items())})"
    places = [f"v{i}" for i in range(len(types))]
    cast = ", ".join(f"CAST({v} AS {c.type})" for v, c in zip(places, table.columns, strict=True))
    for start in range(0, len(rows), 200):
        listed = ", ".join(f"({', '.join(written(v, dialect) for v in row)})" for row in rows[start : start + 200])
        yield f"INSERT INTO {quoted(table.name)} SELECT {cast} FROM (VALUES {listed}) AS v({', '.join(places)})"


def written(value, dialect):
    if value is None:
        return "CAST(NULL AS TEXT)"
    text = repr(value) if isinstance(value, float) else str(spelled(value, dialect))
    return "CAST('" + text.replace("'", "''") + "' AS TEXT)"


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


# ---- making one -----------------------------------------------------------------------------------------------------


class Builder:
    """Draws tables first, then rows unit by unit."""

    def __init__(self, seed, number):
        self.dice = random.Random(f"world {seed} {number}")
        self.names = self.dice.sample(NAMES, len(NAMES))
        self.shared = self.dice.sample(NAMES, 6)  # column names that several tables have
        self.keys = iter(range(2**60 if self.dice.random() < 0.3 else 1, 2**62))
        self.unit_type = self.dice.choice(["BIGINT", "BIGINT", "TEXT", "DOUBLE PRECISION", "INTEGER"])
        self.unit = self.dice.choice([name for name in NAMES if name not in self.shared])

    def world(self):
        dice, wide = self.dice, self.dice.random() < 0.35
        self.mild = wide and dice.random() < 0.6
        tables = [self.private("column") for _ in range(dice.choice([1, 1, 2, 2, 3]))]
        for _ in range(dice.choice([0, 1, 1])):
            tables.append(self.owned(tables))
        tables += [
            self.private(how) for how, odds in (("row", 0.5), ("row", 0.2), ("edge", 0.4)) if dice.random() < odds
        ]
        tables += [self.public(tables) for _ in range(dice.choice([1, 1, 2]))]
        bounds = {"groups": 100_000, "rows": 1000} if wide else {}
        tables = [replace(t, **bounds) if t.how not in ("public", "row") else t for t in tables]
        text = "version = 1\n[budget]\nepsilon = 1000\ndelta = 1e-3\n" + "".join(t.policy(dice) for t in tables)
        found = World(tables, text, wide, self.mild, {t.name: [] for t in tables})
        self.fill(found)
        return found

    def fresh(self):
        return self.names.pop()

    def column(self, taken, letter=None, described=True):
        dice = self.dice
        letter = letter or dice.choice("nnntttddb")
        name = next(n for n in [*dice.sample(self.shared, 4), *dice.sample(NAMES, len(NAMES))]
                    if n not in taken and n != self.unit)  # fmt: skip
        rules = {"n": NUMBER_RULES, "t": TEXT_RULES, "d": DATE_RULES, "b": ['{type = "boolean"}']}[letter]
        nocase = letter == "t" and dice.random() < 0.05
        type_ = dice.choice(TYPES[letter])
        return Column(name, letter, type_, dice.choice(rules) if described else None, nocase and type_ == "TEXT")

    def columns(self, first=(), many=None):
        """A number with bounds and a text are always there."""
        found = list(first)
        for letter in ["n", "t", *[None] * (self.dice.randrange(1, 4) if many is None else many)]:
            found.append(self.column({c.name for c in found}, letter))
        if self.dice.random() < 0.3:
            found.append(Column(self.dice.choice(OURS), "n", "BIGINT", None))
        return tuple(found)

    def private(self, how):
        dice = self.dice
        bounds = {"groups": dice.choice([1, 1, 2, 3]), "rows": dice.choice([1, 1, 2, 3, 7])}
        if how == "edge":
            letter, type_ = dice.choice([("n", "BIGINT"), ("n", "DOUBLE PRECISION"), ("t", "TEXT")])
            rule = '{type = "number"}' if letter == "n" else '{type = "text"}'
            ends = [Column(name, letter, type_, rule) for name in dice.sample([n for n in NAMES if n != "edge"], 2)]
            found = tuple(c for c in self.columns(ends, 0) if c.name != "edge")
            return Table(self.fresh(), how, found, "edge", **bounds)
        if how == "row":
            return Table(self.fresh(), how, self.columns())
        said = {"TEXT": '{type = "text"}'}.get(self.unit_type, '{type = "number"}')
        first = [Column(self.unit, said[9], self.unit_type, said if dice.random() < 0.5 else None)]
        key_type = dice.choice(["BIGINT", "TEXT"])
        rule = '{type = "number"}' if key_type == "BIGINT" else '{type = "text"}'
        key = self.column({self.unit}, rule[9])
        first.append(replace(key, type=key_type, rule=rule if dice.random() < 0.8 else None, nocase=False))
        return Table(self.fresh(), how, self.columns(first), self.unit, above_key=key.name, **bounds)

    def owned(self, tables):
        """A table whose rows are found by a key of another one."""
        above, dice = self.dice.choice(tables), self.dice
        key = next(c for c in above.columns if c.name == above.above_key)
        mine = replace(key, rule=key.rule if dice.random() < 0.8 else None)
        if dice.random() < 0.4:
            mine = replace(mine, name=self.column({self.unit, key.name}).name)
        first, extra = [mine], dice.random() < 0.2  # a column of the unit's name that is none of ours
        found = self.columns(first)
        found += (Column(self.unit, "n", "BIGINT", None),) if extra else ()
        bounds = {"groups": dice.choice([1, 2, 3]), "rows": dice.choice([1, 2, 4])}
        return Table(self.fresh(), "owner", found, self.unit, mine.name, above.name, above.above_key, **bounds)

    def public(self, tables):
        """Keys like those of a private table, twice or never, and something about them."""
        like = self.dice.choice([c for t in tables for c in t.asked if t.how != "public" and c.name != t.unit])
        key = replace(like, rule=like.rule if self.dice.random() < 0.5 else f'{{type = "{WORD[like.letter]}"}}')
        if self.dice.random() < 0.4:
            key = replace(key, name=self.column({like.name}).name)
        return Table(self.fresh(), "public", self.columns([key], self.dice.randrange(2)))

    # ---- rows ---------------------------------------------------------------------------------------------------

    def fill(self, world):
        dice = self.dice
        units = [self.unit_value(i) for i in range(dice.choice([0, 1, 5, 8, 10]))]
        busy = dice.choice(units) if units else None
        for unit in [*units, None]:
            self.visits(world, unit, dice.choice([25, 40]) if unit == busy and unit is not None else None)
        hostile = self.unit_value(99)
        before = {name: len(rows) for name, rows in world.rows.items()}
        self.visits(world, hostile, 40, hostile=True)
        for name, rows in world.rows.items():
            world.more[name], world.rows[name] = [row for _, row in rows[before[name] :]], rows[: before[name]]
        world.gone = {("unit", busy)}
        alone = [t for t in world.tables if t.how == "row"]
        for table in alone:
            for i in range(dice.choice([0, 1, 6, 15])):
                world.rows[table.name].append((("row", table.name, i), self.row(table)))
        if alone:
            table = dice.choice(alone)
            world.gone.add(("row", table.name, 0))
            world.more[table.name] = [self.row(table, hostile=True)]
        self.edges(world)
        for table in world.tables:
            if table.how == "public":
                for _ in range(dice.choice([0, 4, 8, 12])):
                    world.rows[table.name].append((None, self.row(table)))

    def unit_value(self, i):
        match self.unit_type:
            case "TEXT":
                return [*WORDS, *(f"p{k}" for k in range(99))][i]
            case "DOUBLE PRECISION":
                return [0.0, 1e300, 5e-324, -1.5, 2.0**53][i] if i < 5 else float(i)
        return [2**31 - 1, 0, -1, 3, 4][i] if i < 5 else i + (0 if self.unit_type == "INTEGER" else 2**60)

    def visits(self, world, unit, many=None, hostile=False):
        """All rows of one unit, in all tables."""
        dice, mine = self.dice, {}
        for table in world.tables:
            if table.how not in ("column", "owner"):
                continue
            rows = world.rows[table.name]
            for _ in range(many or dice.choice([0, 1, 1, 2, 3, 5])):
                values = dict(zip(table.names, self.row(table, hostile), strict=True))
                if table.how == "column":
                    values[table.unit] = unit
                    again = mine.get(table.name) and dice.random() < 0.2
                    values[table.above_key] = dice.choice(mine[table.name]) if again else next(self.keys)
                    mine.setdefault(table.name, []).append(values[table.above_key])
                else:
                    lost = dice.random() < 0.05 or table.above not in mine
                    values[table.key] = next(self.keys) if lost else dice.choice(mine[table.above])
                rows.append((("unit", unit) if unit is not None else None, [values[name] for name in table.names]))

    def row(self, table, hostile=False):
        odds = 0.0 if self.mild else 0.7 if hostile else 0.25
        return [column.value(self.dice, odds) for column in table.columns]

    def edges(self, world):
        dice = self.dice
        for table in world.tables:
            if table.how == "edge":
                nodes = {"TEXT": ["a", "A", "b", "a ", "1", "2", "c"]}.get(
                    table.columns[0].type, [0, 1, 2, 3, 4, -1, 2**40]
                )
                pairs = [tuple(dice.sample(nodes, 2)) for _ in range(dice.choice([0, 5, 14]))]
                for a, b in [*pairs, *pairs[:3], *[pairs[0]] * 9] if pairs else []:
                    ends = [a, b] if dice.random() < 0.7 else [b, a]
                    world.rows[table.name].append((("edge", frozenset(map(str, ends))), [*ends, *self.row(table)[2:]]))
                odd = [(nodes[0], nodes[0]), (None, nodes[1])]
                world.rows[table.name] += [(None, [*ends, *self.row(table)[2:]]) for ends in odd]
                if pairs:
                    world.gone.add(("edge", frozenset(map(str, pairs[0]))))
                    free = [
                        (a, b) for a in nodes for b in nodes if a != b and (a, b) not in pairs and (b, a) not in pairs
                    ]
                    ends = dice.choice(free)
                    world.more[table.name] = [[*ends, *self.row(table, hostile=True)[2:]] for _ in range(9)]


WORD = {"n": "number", "t": "text", "d": "date", "b": "boolean"}


def world_of(seed, number):
    """The world of this number. Few draws make no policy; then the next one is taken."""
    return Builder(seed, number).world()
