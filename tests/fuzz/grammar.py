"""Questions made at random from the grammar of what is allowed: every function, aggregate, clause and kind of join.

Functions come from their registries. One that a parser's node spells is written by itself; other spellings are FORMS,
in which {n}, {t}, {d} and {b} stand for a number, a text, a date and a condition, {x} for any kind (the same one
everywhere in the form), and {i}, {c}, {q}, {u} for a small whole number, a number, a text in quotes and part of a date.
"""

import itertools
import random
import re
from dataclasses import dataclass, replace
from functools import cache

from sqlglot import ErrorLevel, exp, parse_one

from sfumato.aggregates.registry import AGGREGATES as REGISTRY
from sfumato.aggregates.registry import parse_question
from sfumato.errors import QueryRefused
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.domains import Domain, Kind
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.functions.dates import MICROSECONDS
from sfumato.sql.parse.date_syntax import BEGINNINGS, FORMATS, PARTS
from sfumato.sql.parse.function_syntax import CASTS
from sfumato.sql.policy import Policy
from tests.fuzz.worlds import quoted

LETTER = {Kind.NUMBER: "n", Kind.TEXT: "t", Kind.DATE: "d", Kind.TRUTH: "b"}
HOLE = re.compile(r"\{([a-zA-Z])\}")
INTERNAL = {"magnitude"}  # only what registers a sketch asks for it
FORMS = [
    ("b", "{x} > {x}"), ("b", "{x} >= {x}"), ("b", "{x} <> {x}"), ("b", "{x} IS NULL"), ("b", "{x} IS NOT NULL"),
    ("b", "({b}) IS TRUE"), ("b", "({b}) IS NOT FALSE"), ("b", "{x} IS DISTINCT FROM {x}"),
    ("b", "{x} IS NOT DISTINCT FROM {x}"), ("b", "{t} LIKE {q}"), ("b", "{t} NOT LIKE {t}"), ("b", "{t} ILIKE {q}"),
    ("b", "{x} BETWEEN {x} AND {x}"), ("b", "{n} BETWEEN {c} AND {c}"), ("b", "{x} IN ({x}, {x}, NULL)"),
    ("b", "{n} NOT IN ({c}, {c})"), ("b", "{t} IN ({q}, {q}, {q})"), ("b", "{n} = {c}"), ("b", "{t} = {q}"),
    ("b", "{n} < {c}"), ("b", "{t} < {q}"), ("b", "NOT ({b})"), ("b", "({b}) AND ({b})"), ("b", "({b}) OR ({b})"),
    *((k, f"CASE WHEN {{b}} THEN {{{k}}} WHEN {{b}} THEN {{{k}}} ELSE {{{k}}} END") for k in "ntdb"),
    *((k, f"CASE {{x}} WHEN {{x}} THEN {{{k}}} END") for k in "ntdb"), ("t", "CASE WHEN {b} THEN {q} ELSE {q} END"),
    *((k, f"IF({{b}}, {{{k}}}, {{{k}}})") for k in "ntdb"), *((k, f"NULLIF({{{k}}}, {{{k}}})") for k in "ntdb"),
    *((k, f"COALESCE({{{k}}}, {{{k}}})") for k in "ntdb"),
    ("n", "ROUND({n})"), ("n", "ROUND({n}, {i})"), ("n", "WIDTH_BUCKET({n}, 0, 60, {i})"), ("n", "LOG10({n})"),
    ("n", "LOG({n})"), ("n", "LOG2({n})"), ("n", "LOG(2, {n})"), ("n", "POWER({n}, {i})"), ("n", "POWER({n}, 0.5)"),
    ("n", "SAFE_DIVIDE({n}, {n})"), ("d", "DATE({t})"), ("d", "DATE({d})"),
    ("n", "TRUNC({n})"), ("n", "CLAMP({n}, {c}, {c})"), ("n", "{n} % {n}"), ("n", "{n} ** {i}"),
    ("n", "LEAST({n}, {n}, {c})"), ("n", "GREATEST({n}, {c})"), ("n", "CAST({n} AS DECIMAL(8, 2))"),
    *(("n", f"CAST({{{k}}} AS {to})") for to, into in CASTS.items() if into in ("number", "whole") for k in "ntb"),
    *(("t", f"CAST({{x}} AS {to})") for to, into in CASTS.items() if into == "text"), ("n", "CAST({n} AS DECIMAL)"),
    *(("d", f"CAST({{{k}}} AS {to})") for to, into in CASTS.items() if into in ("date", "timestamp") for k in "td"),
    ("n", "TRY_CAST({t} AS DOUBLE)"), ("t", "TRIM({t})"), ("t", "LTRIM({t})"), ("t", "RTRIM({t})"),
    ("t", "SUBSTR({t}, {i}, {i})"), ("t", "SUBSTRING({t}, {i})"), ("t", "LEFT({t}, {i})"), ("t", "RIGHT({t}, {i})"),
    ("t", "SPLIT_PART({t}, 'a', {i})"), ("n", "STRPOS({t}, {q})"), ("t", "REPLACE({t}, 'a', 'b')"),
    ("t", "REPLACE({t}, 'ab', '')"), ("t", "CONCAT({t}, {t})"), ("t", "CONCAT({t}, {q}, {t})"),
    *(("n", f"EXTRACT({part} FROM {{d}})") for part in PARTS),
    *(("n", f"DATE_PART('{part}', {{d}})") for part in PARTS),
    ("n", "DATEPART('year', {d})"),
    *(("d", f"DATE_TRUNC('{unit}', {{d}})") for unit in BEGINNINGS), ("d", "TIMESTAMP_TRUNC({d}, MONTH)"),
    *(("t", f"strftime({{d}}, '{form}')") for form in FORMATS[exp.TimeToStr]),
    *(("t", f"TO_CHAR({{d}}, '{form}')") for form in FORMATS[exp.ToChar]),
    ("t", "DAYNAME({d})"), ("t", "MONTHNAME({d})"), ("n", "DATE_DIFF('day', {d}, {d})"),
    ("n", "DATE_DIFF('month', {d}, {d})"), ("n", "DATE_DIFF('year', {d}, {d})"), ("n", "{d} - {d}"),
    ("d", "DATE '2024-03-31' + INTERVAL {i} MONTH"), ("d", "DATE '2024-03-31' - INTERVAL {i} DAY"),
    ("d", "DATE_ADD(DATE '2024-03-31', INTERVAL {i} DAY)"), ("d", "DATE_SUB(DATE '2024-03-31', INTERVAL {i} DAY)"),
]  # fmt: skip
TIMES = [
    *(("n", f"DATE_DIFF('{unit}', {{d}}, {{d}})") for unit in (*MICROSECONDS, "quarter")),
    *(("n", f"DATE_SUB('{unit}', {{d}}, {{d}})") for unit in ("hour", "week", "month", "year")),
    ("n", "EPOCH({d})"), ("n", "EXTRACT(EPOCH FROM {d} - {d})"), ("n", "EXTRACT(EPOCH FROM AGE({d}, {d}))"),
    ("n", "EXTRACT(YEAR FROM AGE({d}, {d}))"), ("n", "EXTRACT(MONTH FROM AGE({d}, {d}))"), ("n", "SECOND({d})"),
    ("n", "ISOYEAR({d})"), ("n", "EXTRACT(DECADE FROM {d})"), ("b", "{d} - {d} > INTERVAL {i} HOUR"),
    ("b", "AGE({d}, {d}) <= INTERVAL {i} DAY"), ("b", "{d} - {d} BETWEEN INTERVAL 1 MINUTE AND INTERVAL {i} DAY"),
    ("d", "{d} + INTERVAL {i} MONTH"), ("d", "{d} - INTERVAL {i} DAY"), ("d", "{d} + INTERVAL '{i} years 3 hours'"),
    ("d", "{d} + {i}"), ("d", "{d} - {i}"), ("d", "LAST_DAY({d})"), ("d", "TIME_BUCKET(INTERVAL {i} HOUR, {d})"),
    ("d", "TIME_BUCKET(INTERVAL {i} MONTH, {d})"), ("d", "{d} AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'"),
    ("d", "TIMEZONE('UTC', TIMEZONE('America/New_York', {d}))"), ("t", "strftime({d}, '%G-W%V %a %H:%M:%S')"),
    ("t", "TO_CHAR({d}, 'IYYY-IW')"), ("n", "DATESUB('day', {d}, {d})"), ("n", "WEEKOFYEAR({d})"),
    ("d", "sf_listed({d}, DATE '2024-03-01', TIMESTAMP '2024-02-29 10:11:12')"),
]  # fmt: skip
TEXTS = [
    ("t", "LPAD({t}, {i}, 'xy')"), ("t", "RPAD({t}, {i})"), ("t", "{t} ->> '$.a'"), ("t", "{t} -> 'a' ->> 0"),
    ("t", "json_extract_string({t}, '$.a[0]')"), ("t", "REGEXP_EXTRACT(LEFT({t}, 50), '([a-z]+)1', 1)"),
    ("t", "REGEXP_REPLACE(LEFT({t}, 50), '[a-z]+', 'x')"), ("b", "REGEXP_FULL_MATCH(LEFT({t}, 50), '[a-z]*')"),
    ("b", "{t} LIKE ANY ({q}, {q})"), ("b", "{t} NOT ILIKE ALL ({q}, {q})"), ("t", "CONCAT_WS('-', {t}, {t})"),
    ("b", "{n} BETWEEN SYMMETRIC {c} AND {c}"), ("n", "{i} // {i}"), ("n", "CAST({n} AS INT) // {i}"),
    ("n", "ROUND({n}, -1)"), ("n", "TRUNC({n}, 1)"), ("n", "CAST({b} AS INT)"), ("n", "sf_listed({n}, 0, 1, 2.5)"),
    ("t", "json_extract({t}, '$.a')"), ("n", "TRY_CAST({t} -> 'a' -> 0 AS DOUBLE)"),
]  # fmt: skip
FORMS += TIMES + TEXTS
CONSTANTS = {
    "n": ["0", "1", "2", "3", "5", "7.3", "-2.5", "60", "1e308", "-0.0", "0.1", "1e-320", "999999999999999", "NULL"],
    "t": ["'{\"a\": [1, \"x\"]}'", "'a'", "'A'", "'a '", "'ä'", "''", "'north'", "'%'", "'_'", "'\\'", "'1'", "NULL",
          "'2024-02-29'", "'d''1'"],
    "d": ["DATE '2024-03-01'", "TIMESTAMP '2024-02-29 10:11:12'", "CAST('9999-12-31' AS DATE)", "NULL"],
    "b": ["TRUE", "FALSE", "1 = 1", "NULL"],
    "c": ["0", "1", "2.5", "-3", "7", "60", "1000", "1e6", "0.1"],
    "q": ["'a'", "'A'", "''", "'north'", "'%'", "'a%'", "'_'", "'\\'", "'d1'", "'b'", "'ä'"],
}  # fmt: skip
AGGREGATES = [  # {B}: a number with bounds, {U}: the unit, {R}: one of RANKED
    "COUNT(*)", "COUNT(*)", "COUNT(*)", "COUNT(*)", "SUM({B})", "AVG({B})", "COUNT(1)", "COUNT({x})",
    "COUNT(DISTINCT {x})", "COUNT(DISTINCT {U})", "COUNT({U})",
    "SUM({B})", "SUM({B})", "AVG({B})", "SUM(1)", "VARIANCE({B})", "VAR_POP({B})", "STDDEV({B})", "STDDEV_POP({B})",
    "STDDEV_SAMP({B})", "{R}", "{R}", "{R}", "{R} FILTER (WHERE {b})", "COUNT_IF({b})", "APPROX_COUNT_DISTINCT({x})",
    "COUNT(*) FILTER (WHERE {b})", "SUM({B}) FILTER (WHERE {b})", "AVG({B}) FILTER (WHERE {b})",
    "COUNT(DISTINCT {x}) FILTER (WHERE {b})", "SUM(CASE WHEN {b} THEN 1 ELSE 0 END)",
    "SUM(LEAST(GREATEST({n}, 0), 150))", "COUNT(CASE WHEN {b} THEN {x} END)",
    *(form for one in REGISTRY.classes for form in one.forms),
]  # fmt: skip
RANKED = [
    "MEDIAN({B})", "MIN({B})", "MAX({B})", "QUANTILE({B}, 0.9)", "QUANTILE_CONT({B}, 0.25)",
    "QUANTILE_DISC({B}, 0.123)", "APPROX_QUANTILE({B}, 0.5)", "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY {B})",
    "MODE({B})", "MODE({t})",
    "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY {B} DESC)", "MODE({d})", "MODE({b})",
    "MODE() WITHIN GROUP (ORDER BY {B})",
]  # fmt: skip


@dataclass(frozen=True)
class Name:
    """What a question may name."""

    sql: str
    letter: str
    bounded: bool = False
    keyed: bool = False


@dataclass(frozen=True)
class Source:
    """What stands after FROM, and what may be named then."""

    sql: str
    names: tuple[Name, ...]
    table: object  # of the world, whose unit it is
    unit: str = ""  # how the unit is named, if it can be
    with_: tuple[str, ...] = ()


def registered():
    """(kind of the result, form) of all functions that a node of the parser, or a name, spells."""
    for function in FUNCTIONS.values():
        if not function.spelled:
            continue
        kinds = [kind[0] if isinstance(kind, tuple) else kind for kind in function.kinds]
        kinds += kinds[-1:] if function.more else []
        letters = [LETTER[kind] if kind else "x" for kind in kinds]
        result = function.domain(*(Domain(kind or Kind.NUMBER, 1.0, 2.0) for kind in kinds)).kind
        holes = [exp.Var(this=f"{{{letter}}}") for letter in letters]
        if function.constants and letters[0] == "t":  # slow, as these constants show: of short texts
            holes[0] = exp.Var(this="LEFT({t}, 50)")
        fixed = [[exp.convert(one) for one in last] for last in function.constants] or [[]]
        for spelling, last in itertools.product(function.spelled, fixed):
            holes[len(holes) - len(last) :] = last
            if isinstance(spelling, str):
                yield LETTER[result], exp.Anonymous(this=spelling, expressions=holes).sql("duckdb")
                continue
            first, *rest = holes
            second = rest.pop(0) if rest and "expression" in spelling.arg_types else None
            found = {"this": first, "expression": second, "expressions": rest}
            node = spelling(**{name: value for name, value in found.items() if value})
            yield LETTER[result], f"({node.sql('duckdb')})"


TRIAL = Policy.read(
    "version = 1\n[budget]\nepsilon = 1\ndelta = 1e-6\n[tables.t]\nunit = 'u'\n[tables.t.columns]\n"
    "n = {type = 'number'}\nt = {type = 'text'}\nd = {type = 'date'}\nb = {type = 'boolean'}\n"
)


@cache
def forms(dialect):
    """kind → forms that this engine is told of."""
    found = {letter: [] for letter in "ntdb"}
    for letter, form in dict.fromkeys([*registered(), *FORMS]):
        trial = HOLE.sub(lambda hole: {"x": "n", "i": "3", "c": "2", "q": "'a'"}.get(hole[1], hole[1]), form)
        try:
            DIALECTS[dialect].accepts(parse_question(f"SELECT COUNT({trial}) FROM t", TRIAL).plan)
        except QueryRefused:
            continue
        found[letter].append(form)
    return found


class Maker:
    """Random questions about one world; most are answered, some are refused."""

    def __init__(self, world, dialect, dice):
        self.world, self.dice = world, dice
        self.forms, self.taken, self.columns_only = forms(dialect), 0, False
        self.private = [table for table in world.tables if table.how != "public"]
        self.public = [table for table in world.tables if table.how == "public"]
        self.names = ()

    def depth(self):
        return self.dice.choice([0, 0, 0, 0, 1, 1, 2])

    def often(self, share):
        return self.dice.random() < share

    def fresh(self):
        self.taken += 1
        return self.dice.choice([f"v{self.taken}", f"V{self.taken}", quoted(f"odd {self.taken}")])

    # ---- expressions --------------------------------------------------------------------------------------------

    def of(self, letter, depth):
        """An expression of this kind."""
        if depth <= 0 or self.often(0.25):
            mine = [name.sql for name in self.names if name.letter == letter]
            named = mine and (self.columns_only or self.often(0.8))
            return self.dice.choice(mine) if named else self.dice.choice(CONSTANTS[letter])
        return self.filled(self.dice.choice(self.forms[letter]), depth - 1)

    def filled(self, form, depth):
        kind = self.dice.choice("ntdb")

        def hole(found):
            match found[1]:
                case "i":
                    return str(self.dice.choice([1, 1, 2, 3, 5, 8]))
                case "c" | "q" as constant:
                    return self.dice.choice(CONSTANTS[constant])
                case "B":
                    return self.bounded(depth)
                case "R":
                    return self.filled(self.dice.choice(RANKED), depth)
                case "U":
                    return self.unit or "1"
                case "x":
                    return self.of(kind, depth)
            return self.of(found[1], depth)

        return HOLE.sub(hole, form)

    def bounded(self, depth):
        mine = [name.sql for name in self.names if name.bounded]
        if mine and self.often(0.5):
            return self.dice.choice(mine)
        low, high = sorted(self.dice.sample([-1000, -3, -0.5, 0, 0.1, 2, 3, 9, 60, 1e6], 2))
        if self.often(0.05):
            high = low
        return f"CLAMP({self.of('n', depth)}, {low}, {high})"

    def use(self, source):
        self.names, self.unit = source.names, source.unit

    # ---- rows ---------------------------------------------------------------------------------------------------

    def source(self, depth=2, table=None):
        """A table, joins, a SELECT over rows, or several under each other."""
        table = table or self.dice.choice(self.private)
        pick = self.dice.random()
        if depth and pick < 0.15:
            return self.selected(self.source(depth - 1, table))
        if depth and pick < 0.3:
            return self.union(depth - 1, table)
        found = self.plain(table)
        if pick < 0.6:
            return found
        for _ in range(self.dice.choice([1, 1, 2])):
            found = self.joined(found)
        return found

    def named(self, table, alias):
        """The columns of a table, and its unit."""
        names = [
            Name(f"{alias}.{self.spelled(c.name)}", c.letter, c.bounded, c.keyed)
            for c in table.asked
            if c.name != table.unit
        ]
        unit = f"{alias}.{self.spelled(table.unit)}" if table.unit else ""
        return tuple(names), unit

    def spelled(self, name):
        """Names are quoted, or bare and in any case."""
        bare = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name in (
            "stay",
            "ward",
            "x",
            "y",
            "id",
            "person",
            "_s",
            "k0",
            "m0",
            "i",
        )
        if not bare or self.often(0.5):
            return quoted(name)
        return name.upper() if self.often(0.3) else name

    def plain(self, table):
        alias = self.fresh()
        schema = "main." if self.often(0.03) else ""
        return Source(f"{schema}{self.spelled(table.name)} AS {alias}", *self.of_table(table, alias))

    def of_table(self, table, alias):
        names, unit = self.named(table, alias)
        return names, table, unit

    def joined(self, left):
        private = [t for t in self.private if t.unit and t.unit == left.table.unit] if left.unit else []
        if private and self.often(0.5):
            return self.with_private(left, self.dice.choice(private))
        return self.with_public(left, self.dice.choice(self.public))

    def with_public(self, left, table):
        alias = self.fresh()
        names, _ = self.named(table, alias)
        pairs = [(a, b) for a in left.names for b in names[:1] if a.letter == b.letter]
        if not pairs:
            return left
        mine, theirs = self.dice.choice(pairs)
        self.use(left)
        one = mine.sql if self.often(0.8) else self.of(mine.letter, 1)
        on = f"ON {one} = {theirs.sql}" if self.often(0.7) else f"ON {theirs.sql} = {one}"
        if self.often(0.15) and len(names) > 1:
            on += f" AND {self.of(names[1].letter, 1)} = {names[1].sql}"
        if mine.sql.split(".", 1)[-1] == theirs.sql.split(".", 1)[-1] and self.often(0.6):
            on = f"USING ({theirs.sql.split('.', 1)[1]})"
            names = names[1:]
        right, both = f"{self.spelled(table.name)} AS {alias}", (*left.names, *names)
        if self.often(0.2) and "JOIN" not in left.sql:
            return replace(left, sql=f"{right} {self.dice.choice(['JOIN', 'RIGHT JOIN'])} {left.sql} {on}", names=both)
        how = self.dice.choice(
            ["JOIN", "LEFT JOIN", "INNER JOIN", "LEFT OUTER JOIN", *["FULL JOIN"] * self.often(0.05)]
        )
        return replace(left, sql=f"{left.sql} {how} {right} {on}", names=both)

    def with_private(self, left, table):
        alias = self.fresh()
        names, unit = self.named(table, alias)
        keys = [f"{a} = {b}" for a, b in self.key_pairs(left, table, alias)]
        on = f"{left.unit} = {unit}" if not keys or self.often(0.4) else self.dice.choice(keys)
        if self.often(0.15):
            pairs = [(a, b) for a in left.names for b in names if a.letter == b.letter]
            on += "".join(f" AND {a.sql} = {b.sql}" for a, b in self.dice.sample(pairs, min(len(pairs), 1)))
        on = f"USING ({quoted(table.unit)})" if on == f"{left.unit} = {unit}" and self.often(0.5) else f"ON {on}"
        how = self.dice.choice(["JOIN", "LEFT JOIN"])
        sql = f"{left.sql} {how} {self.spelled(table.name)} AS {alias} {on}"
        return replace(left, sql=sql, names=(*left.names, *names))

    def key_pairs(self, left, table, alias):
        """Equalities of the keys by which the policy finds units."""
        mine = left.names[0].sql.split(".")[0] if left.names else ""
        for a, b, reverse in ((left.table, table, False), (table, left.table, True)):
            if a.how == "owner" and a.above == b.name:
                names = [
                    f"{alias if reverse else mine}.{quoted(a.key)}",
                    f"{mine if reverse else alias}.{quoted(a.above_key)}",
                ]
                yield names[::-1] if reverse else names

    def selected(self, inner):
        """A SELECT over rows, in brackets or by WITH."""
        sql, names, unit = self.select(inner)
        return self.wrapped(sql, names, unit, inner.table, inner.with_)

    def select(self, inner, letters=None):
        """(SELECT …, (alias, Name) of its columns, the alias of the unit)."""
        self.use(inner)
        if letters is None and self.often(0.15) and "JOIN" not in inner.sql:
            where = f" WHERE {self.of('b', 1)}" if self.often(0.7) else ""
            plain = [replace(one, sql=one.sql.split(".", 1)[1]) for one in inner.names]
            return f"SELECT * FROM {inner.sql}{where}", plain, inner.unit.split(".", 1)[-1]
        listed, names = [], []
        for letter in letters or self.dice.choices("ntdb", [4, 3, 2, 1], k=self.dice.randrange(1, 5)):
            alias = self.fresh()
            mine = [name for name in inner.names if name.letter == letter]
            pick = self.dice.random()
            if mine and pick < 0.5:
                one = self.dice.choice(mine)
            elif pick < 0.65:
                one = Name(self.dice.choice(CONSTANTS[letter]), letter, keyed=True)
            else:
                text = self.bounded(0) if letter == "n" and self.often(0.5) else self.of(letter, self.often(0.5))
                one = Name(text, letter, text.startswith("CLAMP"))
            listed.append(f"{one.sql} AS {alias}")
            names.append(replace(one, sql=alias))
        unit = ""
        if inner.unit and self.often(0.5):
            unit = quoted(inner.table.unit)
            listed.append(f"{inner.unit} AS {unit}" if letters is None else inner.unit)
        where = f" WHERE {self.of('b', 1)}" if self.often(0.4) else ""
        return f"SELECT {', '.join(listed)} FROM {inner.sql}{where}", names, unit

    def wrapped(self, sql, names, unit, table, with_):
        alias = self.fresh()
        names = tuple(replace(one, sql=f"{alias}.{one.sql}") for one in names)
        unit = f"{alias}.{unit}" if unit else ""
        if self.often(0.3):
            view = self.fresh()
            return Source(f"{view} AS {alias}", names, table, unit, (*with_, f"{view} AS ({sql})"))
        return Source(f"({sql}) AS {alias}", names, table, unit, with_)

    def union(self, depth, table):
        """UNION ALL of two or three: of one table, or of tables that share a unit."""
        same = [one for one in self.private if (one.unit, one.how == "edge") == (table.unit, table.how == "edge")]
        letters = self.dice.choices("ntdb", [4, 3, 2, 1], k=self.dice.randrange(1, 4))
        inners = [self.source(depth, self.dice.choice([table, *same])) for _ in range(self.dice.choice([2, 2, 2, 3]))]
        part, parts, first = self.often(0.4), [], None
        with_unit = all(inner.unit for inner in inners) and self.often(0.5)
        for i, inner in enumerate(inners):
            inner_unit, inner = inner.unit, replace(inner, unit="")
            sql, names, _ = self.select(inner, letters)
            label = self.dice.choice([f"'part {i}'", str(i), f"'{'aA'[i % 2]}'", "'same'"]) if part else ""
            extra = [f"{label} AS part"] * part + [f"{inner_unit} AS {quoted(inner.table.unit)}"] * with_unit
            parts.append(sql.replace("SELECT ", f"SELECT {', '.join(extra)}, " if extra else "SELECT ", 1))
            names = [*names, *[Name("part", "t", keyed=True)] * (part and label.startswith("'"))]
            first = first or (names, inner)
        names, inner = first
        bounded = [all(one) for one in zip(*[[n.bounded for n in names]], strict=True)]
        names = [replace(name, bounded=bounded[i]) for i, name in enumerate(names)]
        with_ = tuple(dict.fromkeys(view for one in inners for view in one.with_))
        return self.wrapped(
            " UNION ALL ".join(parts), names, quoted(inner.table.unit) if with_unit else "", inner.table, with_
        )

    # ---- the whole ----------------------------------------------------------------------------------------------

    def key(self):
        mine = [name.sql for name in self.names if name.keyed]
        if mine and self.often(0.45):
            return self.dice.choice(mine)
        if self.names and self.often(0.4):
            return self.dice.choice(self.names).sql
        return self.of(self.dice.choice("ntdb"), 1)

    def featured(self, number):
        """Each form and each aggregate in its turn, so that none is left to luck."""
        listed = [form for letter in "ntdb" for form in self.forms[letter]]
        if number % 2:
            return self.filled([*AGGREGATES, *RANKED][number // 2 % (len(AGGREGATES) + len(RANKED))], 0)
        self.columns_only = True  # much of what literals give is refused
        turn = number // 150 * 50 + number % 150 // 2  # test_fuzz asks the first hundred of every batch of 150
        found = self.filled(listed[turn % len(listed)], 0)
        self.columns_only = False
        return f"COUNT({found})"

    def question(self, number):
        edges = [table for table in self.private if table.how == "edge"]
        source = self.source(
            self.dice.choice([0, 1, 1, 2]), self.dice.choice(edges) if edges and self.often(0.15) else None
        )
        self.use(source)
        keys = list(dict.fromkeys(self.key() for _ in range(self.dice.choice([0, 0, 1, 1, 2]))))
        aggregates = [
            self.filled(self.dice.choice(AGGREGATES), self.depth()) for _ in range(self.dice.choice([1, 1, 1, 2, 2, 3]))
        ]
        aggregates[-1] = self.featured(number)
        if self.often(0.01):  # one takes as long as fifty others
            aggregates[-1] = self.filled("TRIMMED_MEAN({B}, 0.2)", 1)
        if source.table.how == "edge" and not keys and self.often(0.4):
            aggregates = ["TRIANGLES()"]
        if self.often(0.05):
            aggregates.append(f"HISTOGRAM({self.of('n', 1)}, -3, 60, {self.dice.choice([1, 4, 9])})")
        with_ = f"WITH {', '.join(source.with_)} " if source.with_ else ""
        where = f" WHERE {self.of('b', 1 + self.depth())}" if self.often(0.5) else ""
        shown = [f"{one} AS k{i}" if self.often(0.3) else one for i, one in enumerate(keys)]
        group = self.grouping(keys, shown)
        columns = [*shown, *(f"{one} AS a{i}" for i, one in enumerate(aggregates))]
        if self.often(0.1) and "HISTOGRAM" not in aggregates[-1]:
            columns.append(f"{self.dice.choice(['ROUND(a0, 2)', 'a0 / NULLIF(a0, 0)', 'a0 + 1', 'a0'])} AS post")
        distinct = "DISTINCT " * (self.often(0.03))
        core = f"SELECT {distinct}{', '.join(columns)} FROM {source.sql}{where}{group}{self.tail(columns)}"
        if self.often(0.08):
            outer = self.dice.choice(["*", "a0", "a0 * 2 AS twice, a0", "COALESCE(a0, 0) AS z"])
            end = self.dice.choice(["", " WHERE a0 > 1", " ORDER BY a0 DESC LIMIT 2"])
            core = f"SELECT {outer} FROM ({core}) AS result{end}"
        return with_ + core

    def grouping(self, keys, shown):
        if not keys:
            return ""
        pick = self.dice.random()
        if pick < 0.1:
            return " GROUP BY ALL"
        if pick < 0.25:
            return f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}"
        aliased = [
            one.rsplit(" AS ", 1)[1] if one != key and pick < 0.5 else key for key, one in zip(keys, shown, strict=True)
        ]
        return f" GROUP BY {', '.join(aliased)}"

    def tail(self, columns):
        having = f" HAVING {self.dice.choice(['a0 > 3', 'a0 IS NOT NULL', 'COUNT(*) > 5'])}" if self.often(0.1) else ""
        order = f" ORDER BY {self.dice.choice(['1', 'a0 DESC', str(len(columns))])}" if self.often(0.12) else ""
        limit = self.dice.choice([" LIMIT 3", " LIMIT 2 OFFSET 1", " OFFSET 2"]) if self.often(0.1) else ""
        return having + order + limit


def question_of(world, dialect, seed, index):
    """The question of this number."""
    return Maker(world, dialect, random.Random(f"question {seed} {index}")).question(index)


# ---- the same question, and one nearly the same ---------------------------------------------------------------------

MIRRORED = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ,
            exp.And: exp.And, exp.Or: exp.Or, exp.Add: exp.Add, exp.Mul: exp.Mul}  # fmt: skip


def respelled(sql, dice, often=0.7):
    """Another text for the same question: operands of symmetric operators swapped, conditions doubly negated."""
    root = parse_one(sql, read="duckdb")
    for node in list(root.find_all(*MIRRORED)):
        if (
            dice.random() < often
            and not isinstance(node.expression, exp.Interval)
            and not isinstance(node.parent, exp.Join)
        ):
            node.replace(
                MIRRORED[type(node)](this=exp.paren(node.expression.copy()), expression=exp.paren(node.this.copy()))
            )
    for node in list(root.find_all(exp.Where)):
        if dice.random() < often:
            node.set("this", exp.and_(exp.true(), exp.paren(node.this)))
        if dice.random() < often / 2:
            node.set("this", exp.not_(exp.paren(exp.not_(exp.paren(node.this)))))
    return root.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)


def mutated(sql, dice):
    """A text with one literal, operator or column changed: nearly always another question."""
    root = parse_one(sql, read="duckdb")
    literals = [node for node in root.find_all(exp.Literal) if not isinstance(node.parent, exp.DataTypeParam)]
    swaps = [node for node in root.find_all(exp.Binary) if not isinstance(node.expression, exp.Interval)]
    columns = list(root.find_all(exp.Column))
    pick = dice.random()
    if literals and pick < 0.4:
        node = dice.choice(literals)
        near = (
            [f"{node.this} ", node.this.upper(), f"{node.this}0"]
            if node.is_string
            else ["0", "1", f"{node.this}1", "7.3"]
        )
        node.replace(exp.Literal(this=dice.choice(near), is_string=node.is_string))
    elif len(columns) > 1 and pick < 0.7:
        one, other = dice.sample(columns, 2)
        one.replace(other.copy())
    elif swaps:
        node = dice.choice(swaps)
        left, right = node.this.copy(), node.expression.copy()
        node.set("this", right)
        node.set("expression", left)
    return root.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)
