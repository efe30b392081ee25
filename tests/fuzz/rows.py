"""Random questions about rows: GROUP BY of the unit inside a question, joins, IN and EXISTS, sub-selects as values."""

import random
from dataclasses import replace

from tests.fuzz.grammar import AGGREGATES, CONSTANTS, TEXTS, TIMES, Maker, Name
from tests.fuzz.worlds import quoted

FAMILIES = ("grouped", "joins", "semijoins", "values", "windows", "times", "texts")
SUMMED = ["COUNT(*)", "COUNT({x})", "COUNT(DISTINCT {x})", "COUNT(*) FILTER (WHERE {b})",
          "SUM(CLAMP({n}, -3, 60))", "AVG(CLAMP({n}, 0, 9))", "SUM(CLAMP({n}, 0, 2)) FILTER (WHERE {b})",
          "AVG(CASE WHEN {b} THEN 1 ELSE 0 END)"]  # fmt: skip
CHOSEN = ["MIN({k})", "MAX({k})", "ANY_VALUE({k})", "MAX({k}) FILTER (WHERE {b})"]
WINDOWS = ["LAG({k})", "LEAD({k}, 2)", "FIRST_VALUE({k})", "LAG({k}, 1, NULL)", "MIN({k})", "MAX({k})"]
WINDOWS_OF_NUMBERS = ["ROW_NUMBER()", "RANK()", "DENSE_RANK()", "LAG({n})", "LEAD({n}, 1, 7)", "FIRST_VALUE({n})",
                      "COUNT(*)", "COUNT({x})", "SUM(CLAMP({n}, -3, 60))", "AVG(CLAMP({n}, 0, 9))",
                      "MAX({n})"]  # fmt: skip
ORDERED = ["FIRST({k} ORDER BY {x})", "LAST({k} ORDER BY {x} DESC, {n})", "ARG_MIN({k}, {n})", "ARG_MAX({k}, {d})"]


class RowsMaker(Maker):
    """Questions of one family, about any world."""

    def __init__(self, world, dialect, dice, family):
        super().__init__(world, dialect, dice)
        self.family = family
        self.units = [table for table in self.private if table.unit]

    def of(self, letter, depth):
        """Of dates mostly columns: what literals give is worked out where the text is read."""
        if self.family == "times" and letter == "d" and depth <= 0:
            mine = [name.sql for name in self.names if name.letter == "d"]
            return self.dice.choice([*mine, *mine, "TIMESTAMP '2024-02-29 10:11:12'"])
        return super().of(letter, depth)

    def question(self, number):
        if self.family in ("times", "texts"):
            listed = TIMES if self.family == "times" else TEXTS
            mine = {letter: [form for kind, form in listed if kind == letter and form in self.forms[letter]]
                    for letter in self.forms}  # fmt: skip
            self.forms = {letter: mine[letter] or self.forms[letter] for letter in self.forms}
        sources = {"grouped": self.grouped_source, "joins": self.joined_source, "windows": self.windowed_source}
        source = sources.get(self.family, self.asked_source)()
        self.use(source)
        keys = list(dict.fromkeys(self.key() for _ in range(self.dice.choice([0, 0, 1, 1]))))
        aggregates = [self.filled(self.dice.choice(AGGREGATES[:12]), 0) for _ in range(self.dice.choice([1, 1, 2]))]
        where = [self.of("b", 1)] if self.often(0.3) else []
        if self.family in ("times", "texts"):
            where.append(self.of("b", 2))
            keys = list(dict.fromkeys([*keys, *(self.of(self.dice.choice("ntd"), 2) for _ in range(self.often(0.5)))]))
            aggregates.append(f"SUM(CLAMP({self.of('n', 2)}, -5, 50))")
        if self.family == "semijoins":
            where += [self.semijoin(source) for _ in range(self.dice.choice([1, 1, 2]))]
        if self.family == "values":
            value = self.value(source)
            where += [
                f"{self.dice.choice(['1', '2.5', self.of('n', 0)])} {self.dice.choice(['<', '>=', '<>'])} {value}"
            ]
            if self.often(0.3):
                aggregates.append(f"SUM(CLAMP({self.value(source)}, 0, 9))")
        with_ = f"WITH {', '.join(source.with_)} " if source.with_ else ""
        condition = f" WHERE {' AND '.join(f'({one})' if ' IN ' not in one else one for one in where)}" if where else ""
        columns = [*keys, *(f"{one} AS a{i}" for i, one in enumerate(aggregates))]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"{with_}SELECT {', '.join(columns)} FROM {source.sql}{condition}{group}"

    def anything(self, letter):
        return self.of(letter, self.dice.choice([0, 0, 1]))

    # ---- windows ------------------------------------------------------------------------------------------------

    def windowed_source(self):
        inner = self.source(self.dice.choice([0, 0, 1]), self.dice.choice(self.units))
        if self.often(0.2):
            inner = self.grouped(inner)
        self.use(inner)
        if not inner.unit:
            return inner
        unit = quoted(inner.table.unit)
        listed, names = [f"{inner.unit} AS {unit}"], []
        for one in self.dice.sample(inner.names, min(len(inner.names), self.dice.choice([0, 1, 2]))):
            alias = self.fresh()
            listed.append(f"{one.sql} AS {alias}")
            names.append(replace(one, sql=alias))
        for _ in range(self.dice.choice([1, 1, 2])):
            alias, letter = self.fresh(), self.dice.choice("nnntdb")
            form = self.dice.choice(WINDOWS_OF_NUMBERS if letter == "n" else WINDOWS)
            listed.append(f"{self.window(form.replace('{k}', f'{{{letter}}}'), inner.unit)} AS {alias}")
            names.append(Name(alias, letter))
        where = f" WHERE {self.of('b', 1)}" if self.often(0.3) else ""
        last = f" QUALIFY {self.window('ROW_NUMBER()', inner.unit)} <= 2" if self.often(0.2) else ""
        sql = f"SELECT {', '.join(listed)} FROM {inner.sql}{where}{last}"
        return self.wrapped(sql, names, unit, inner.table, inner.with_)

    def window(self, form, unit):
        """OVER rows of the unit, in the order of anything, which may tie."""
        more = f", {self.of(self.dice.choice('ntdb'), 0)}" if self.often(0.2) else ""
        total = form.startswith(("COUNT", "SUM", "AVG", "MIN", "MAX"))
        by = [f"{self.of(self.dice.choice('ntdb'), self.often(0.2))}{self.dice.choice(['', ' DESC', ' NULLS FIRST'])}"
              for _ in range(self.dice.choice([0, 1] if total else [1, 1, 2]))]  # fmt: skip
        order = f" ORDER BY {', '.join(by)}" if by else ""
        return f"{self.filled(form, 0)} OVER (PARTITION BY {unit}{more}{order})"

    # ---- GROUP BY inside ----------------------------------------------------------------------------------------

    def grouped_source(self):
        inner = self.source(self.dice.choice([0, 0, 1]), self.dice.choice(self.units))
        found = self.grouped(inner)
        if self.often(0.15):
            found = self.selected(found)
        return found

    def grouped(self, inner):
        """SELECT unit, keys, aggregates … GROUP BY unit, keys."""
        self.use(inner)
        if not inner.unit:
            return inner
        unit, names = quoted(inner.table.unit), []
        listed, by = [f"{inner.unit} AS {unit}"] if self.often(0.9) else [], [inner.unit]
        for _ in range(self.dice.choice([0, 0, 1, 2])):
            letter, alias = self.dice.choice("ntdb"), self.fresh()
            key = self.of(letter, self.often(0.3))
            if key in CONSTANTS[letter]:
                continue
            listed.append(f"{key} AS {alias}")
            by.append(key)
            names.append(Name(alias, letter))
        for _ in range(self.dice.choice([1, 1, 2, 3])):
            alias, pick = self.fresh(), self.dice.random()
            letter = "n" if pick < 0.5 else self.dice.choice("ntdb")
            form = self.dice.choice(SUMMED if pick < 0.5 else CHOSEN if pick < 0.8 else ORDERED)
            listed.append(f"{self.filled(form.replace('{k}', f'{{{letter}}}'), 0)} AS {alias}")
            names.append(Name(alias, letter, bounded=form.startswith(("SUM", "AVG", "COUNT")) and pick < 0.5))
        where = f" WHERE {self.of('b', 1)}" if self.often(0.3) else ""
        having = (
            f" HAVING {self.dice.choice(['COUNT(*) > 1', 'COUNT(*) < 3 OR COUNT(*) = 5'])}" if self.often(0.3) else ""
        )
        shown = unit if listed[0].endswith(f" AS {unit}") and self.often(2) else ""
        sql = f"SELECT {', '.join(listed)} FROM {inner.sql}{where} GROUP BY {', '.join(by)}{having}"
        return self.wrapped(sql, names, shown if listed[0].startswith(inner.unit) else "", inner.table, inner.with_)

    # ---- joins --------------------------------------------------------------------------------------------------

    def joined_source(self):
        left = self.source(0, self.dice.choice(self.units))
        for _ in range(self.dice.choice([1, 1, 2, 3])):
            left = self.one_more(left)
        return left

    def one_more(self, left):
        same = [t for t in self.units if t.unit == left.table.unit]
        pick = self.dice.random()
        if not left.unit or pick < 0.2:
            return self.with_public(left, self.dice.choice(self.public))
        if pick < 0.4:
            return self.with_private(left, self.dice.choice(same))
        if pick < 0.55:
            return self.after_comma(left, self.dice.choice(same))
        inner = self.plain(self.dice.choice(same))
        right = self.grouped(inner) if pick < 0.8 else self.selected(inner)
        if not right.unit or right.with_:
            return left
        more = ""
        pairs = [(a, b) for a in left.names for b in right.names if a.letter == b.letter]
        if pairs and self.often(0.4):
            a, b = self.dice.choice(pairs)
            more = f" AND {a.sql} {self.dice.choice(['=', '=', '<', '<>'])} {b.sql}"
        how = self.dice.choice(["JOIN", "LEFT JOIN", "INNER JOIN", *["RIGHT JOIN"] * self.often(0.1)])
        return replace(left, sql=f"{left.sql} {how} {right.sql} ON {left.unit} = {right.unit}{more}",
                       names=(*left.names, *right.names))  # fmt: skip

    def after_comma(self, left, table):
        """A condition on the unit stands in WHERE: here in a SELECT around, so that any question can follow."""
        alias = self.fresh()
        names, unit = self.named(table, alias)
        both = (*left.names, *names)
        shown = self.dice.sample(both, min(len(both), 3))
        titles = [self.fresh() for _ in shown]
        listed = [
            f"{left.unit} AS {quoted(table.unit)}",
            *(f"{n.sql} AS {t}" for n, t in zip(shown, titles, strict=True)),
        ]
        sql = (
            f"SELECT {', '.join(listed)} FROM {left.sql},"
            f" {self.spelled(table.name)} AS {alias} WHERE {left.unit} = {unit}"
        )
        renamed = [replace(one, sql=title) for one, title in zip(shown, titles, strict=True)]
        return self.wrapped(sql, renamed, quoted(table.unit), left.table, left.with_)

    # ---- sub-selects --------------------------------------------------------------------------------------------

    def asked_source(self):
        return self.source(self.dice.choice([0, 0, 1]), self.dice.choice(self.units))

    def inside(self, source, form):
        """Fill a form with expressions over other rows."""
        kept = self.names, self.unit
        self.use(source)
        try:
            return self.filled(form, 0)
        finally:
            self.names, self.unit = kept

    def other(self, source):
        """A table, and a condition that binds its rows to the unit outside; or a public one."""
        if not source.unit or self.often(0.35):
            table = self.plain(self.dice.choice(self.public))
            pairs = [(a, b) for a in source.names for b in table.names if a.letter == b.letter]
            a, b = self.dice.choice(pairs) if pairs else (None, None)
            return table, f"{a.sql} = {b.sql}" if a else "1 = 1", (a, b)
        table = self.plain(self.dice.choice([t for t in self.units if t.unit == source.table.unit]))
        return table, f"{source.unit} = {table.unit}", None

    def semijoin(self, source):
        table, bound, pair = self.other(source)
        rest = f" AND {self.inside(table, '{b}')}" if self.often(0.5) else ""
        not_ = self.dice.choice(["", "", "NOT "])
        if pair and pair[0] and self.often(0.5):
            where = f" WHERE {self.inside(table, '{b}')}" if self.often(0.4) else ""
            return f"{pair[0].sql} {not_}IN (SELECT {pair[1].sql} FROM {table.sql}{where})"
        if source.unit and not pair and self.often(0.4):
            where = f" WHERE {self.inside(table, '{b}')}" if self.often(0.5) else ""
            tail = f" GROUP BY {table.unit} HAVING COUNT(*) > 1" if self.often(0.4) else ""
            return f"{source.unit} {not_}IN (SELECT {table.unit} FROM {table.sql}{where}{tail})"
        pairs = [(a, b) for a in source.names for b in table.names if a.letter == b.letter]
        if pairs and self.often(0.4):
            a, b = self.dice.choice(pairs)
            rest += f" AND {a.sql} {self.dice.choice(['<', '>=', '<>', '=', '>'])} {b.sql}"
        return f"{not_}EXISTS (SELECT {self.dice.choice(['1', '*'])} FROM {table.sql} WHERE {bound}{rest})"

    def value(self, source):
        table, bound, pair = self.other(source)
        form = self.dice.choice(
            ["COUNT(*)", "COUNT({x})", "SUM(CLAMP({n}, 0, 9))", "MAX({n})", "AVG(CLAMP({n}, 0, 2))"]
        )
        of = self.inside(table, form)
        where = f" WHERE {bound}" if pair is None or self.often(0.6) else ""
        if where and self.often(0.4):
            where += f" AND {self.inside(table, '{b}')}"
        return f"(SELECT {of} FROM {table.sql}{where})"


def family_question(world, dialect, family, seed, index):
    """The question of this number in a family; a world without units has those of the grammar."""
    maker = RowsMaker(world, dialect, random.Random(f"{family} {seed} {index}"), family)
    return maker.question(index) if maker.units else Maker.question(maker, index)
