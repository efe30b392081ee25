"""Questions made at random over the clinic, and what must be the same about them with and without one person."""

import random

from sfumato.errors import SfumatoError
from sfumato.exact import statements
from sfumato.offer import offered
from sfumato.sql.emit import statement
from sfumato.sql.read import read
from sfumato.sql.release import What

NUMBERS = ["stay", "cost", "patient_id", "0", "3", "1e308", "-2.5", "NULL", "floor"]
TEXTS = ["ward", "diagnosis", "'north'", "'d1'", "''", "NULL"]
DATES = ["day", "DATE '2024-03-01'", "CAST(diagnosis AS DATE)"]


class Maker:
    """Random questions; most are answered, some are refused."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_of(self, *options):
        return self.random.choice(options)

    def number(self, depth=2):
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice(NUMBERS)
        a, b = (self.number(depth - 1) for _ in range(2))
        return self.one_of(
            f"({a} {self.one_of('+', '-', '*', '/')} {b})", f"ABS({a})", f"FLOOR({a})", f"ROUND({a}, 2)",
            f"MOD({a}, {b})",
            f"LEAST({a}, {b})", f"GREATEST({a}, {b})", f"CLAMP({a}, -5, 70)", f"CAST({self.text(depth - 1)} AS DOUBLE)",
            f"CAST({a} AS INT)", f"LENGTH({self.text(depth - 1)})", f"YEAR({self.date(depth - 1)})",
            f"WEEKDAY({self.date(depth - 1)})", f"CASE WHEN {self.truth(depth - 1)} THEN {a} ELSE {b} END",
            f"COALESCE({a}, {b})", f"NULLIF({a}, {b})",
        )  # fmt: skip

    def text(self, depth=2):
        if depth == 0 or self.random.random() < 0.4:
            return self.random.choice(TEXTS)
        a, b = (self.text(depth - 1) for _ in range(2))
        return self.one_of(
            f"UPPER({a})", f"SUBSTR({a}, 1, 2)", f"({a} || {b})", f"CONCAT({a}, {b})", f"TRIM({a})",
            f"REPLACE({a}, 'd', 'x')", f"CAST({self.number(depth - 1)} AS TEXT)",
            f"CASE WHEN {self.truth(depth - 1)} THEN {a} ELSE {b} END",
        )  # fmt: skip

    def date(self, depth=2):
        found = self.random.choice(DATES)
        return (
            found if depth == 0 else self.one_of(found, f"DATE_TRUNC('{self.one_of('year', 'month', 'day')}', {found})")
        )

    def truth(self, depth=2):
        kind = self.random.choice([self.number, self.text, self.date])
        a, b = kind(max(0, depth - 1)), kind(max(0, depth - 1))
        plain = self.one_of(
            f"{a} {self.one_of('=', '<', '<=', '>', '<>')} {b}", f"{a} IS NULL", f"{a} IN ({b}, {a}, NULL)"
        )
        if depth == 0 or self.random.random() < 0.5:
            return f"({plain})"
        return f"({self.one_of('', 'NOT ')}{plain} {self.one_of('AND', 'OR')} {self.truth(depth - 1)})"

    def aggregate(self):
        x = self.number()
        return self.one_of(
            "COUNT(*)", "COUNT(DISTINCT patient_id)", f"COUNT({x})", f"COUNT({self.text()})", f"SUM({x})", "SUM(stay)",
            "AVG(cost)", f"SUM(CLAMP({x}, -3, 9))", f"AVG(CLAMP({x}, 2, 9))", f"STDDEV(CLAMP({x}, -1, 1))",
            f"COUNT(DISTINCT {self.text(1)})", f"MEDIAN(CLAMP({x}, 0, 8))", "MAX(stay)",
        )  # fmt: skip

    def question(self):
        source = self.one_of(
            "visits", "visits", "visits JOIN wards USING (ward)",
            f"(SELECT *, {self.number(1)} AS extra FROM visits WHERE {self.truth(1)}) v",
        )  # fmt: skip
        keys = [self.one_of("ward", "diagnosis", "MONTH(day)", self.text(), self.number(), self.truth(1), self.date())
                for _ in range(self.random.randrange(3))]  # fmt: skip
        aggregates = [self.aggregate() for _ in range(self.random.randrange(1, 4))]
        where = f" WHERE {self.truth()}" if self.random.random() < 0.5 else ""
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        tail = self.one_of("", "", f" HAVING {aggregates[0]} > 3", " ORDER BY 1 DESC", " LIMIT 3")
        return f"SELECT {', '.join([*keys, *aggregates])} FROM {source}{where}{group}{tail}"


def refusal_of(sql, rules):
    """None, or the words of the refusal."""
    try:
        read(sql, rules)
    except SfumatoError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return None


def moved(sql, rules, one, other):
    """Runs a question on both; returns how many groups differ after checking that each differs by little."""
    question = read(sql, rules)
    release = question.release
    for text in statements(offered(question, 1.0, 1e-9), 12345, "duckdb"):  # none may raise
        one.execute(text).fetchall()
        other.execute(text).fetchall()
    if all(m.what is What.DISTINCT for m in release.measures):
        return 0
    text, width = statement(release, 12345, "duckdb"), len(release.keys)
    measures = [m for m in release.measures if m.what is not What.DISTINCT]
    tables = [
        {row[:width]: [x or 0 for x in row[width:]] for row in db.execute(text).fetchall()} for db in (one, other)
    ]
    changes = 0
    for key in set(tables[0]) | set(tables[1]):
        pair = [table.get(key, [0] * len(measures)) for table in tables]
        by = [abs(a - b) for a, b in zip(*pair, strict=True)]
        changes += any(by)
        for measure, far in zip(measures, by, strict=True):
            assert far <= release.sensitivity(measure), (sql, measure, far)
    assert changes <= release.groups, (sql, changes)
    return changes


def outcome(curator, sql):
    """Status, columns, charge and error text: all that an analyst sees beside the values."""
    before = curator.ledger.verify().spent
    try:
        answer = curator.ask(sql, epsilon=0.01)
        seen = ("answered", answer.columns, answer.charged, answer.epsilon)
    except SfumatoError as error:
        seen = (type(error).__name__, str(error))
    return seen, curator.ledger.verify().spent, before
