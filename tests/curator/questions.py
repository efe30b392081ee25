"""Questions made at random over the clinic, and what must be the same about them with and without one person."""

import random
from dataclasses import replace

from sfumato.aggregates.mode import ModeChoice, StableMode
from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.noisy_sums import NoisySums
from sfumato.aggregates.price import Mu
from sfumato.aggregates.quantile import QuantileRelease
from sfumato.aggregates.registry import parse_question
from sfumato.aggregates.triangles import TrianglesRelease
from sfumato.aggregates.trimmed_mean import TrimmedMeanRelease
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.errors import SfumatoError
from sfumato.mechanisms.dependent.additive_noise import Everywhere
from sfumato.sql.dialects import dialect_of
from sfumato.sql.emit.bounding import bounding_of
from sfumato.sql.plan import What

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
            f"COALESCE({a}, {b})", f"NULLIF({a}, {b})", f"SQRT({a})", f"LN({a})", f"EXP({a})", f"POWER({a}, 3)",
            f"SIGN({a})", f"TRUNC({a})", f"STRPOS({self.text(depth - 1)}, 'd')", f"QUARTER({self.date(depth - 1)})",
            f"DATE_DIFF('day', {self.date(depth - 1)}, {self.date(depth - 1)})", f"CAST({a} AS DECIMAL(8, 2))",
        )  # fmt: skip

    def text(self, depth=2):
        if depth == 0 or self.random.random() < 0.4:
            return self.random.choice(TEXTS)
        a, b = (self.text(depth - 1) for _ in range(2))
        return self.one_of(
            f"UPPER({a})", f"SUBSTR({a}, 1, 2)", f"({a} || {b})", f"CONCAT({a}, {b})", f"TRIM({a})",
            f"REPLACE({a}, 'd', 'x')", f"LEFT({a}, 1)", f"RIGHT({a}, 1)", f"SPLIT_PART({a}, 'd', 2)",
            f"DAYNAME({self.date(depth - 1)})", f"strftime({self.date(depth - 1)}, '%Y-%m')",
            f"CAST({self.number(depth - 1)} AS TEXT)",
            f"CASE WHEN {self.truth(depth - 1)} THEN {a} ELSE {b} END",
        )  # fmt: skip

    def date(self, depth=2):
        found = self.random.choice(DATES)
        return (
            found
            if depth == 0
            else self.one_of(found, f"DATE_TRUNC('{self.one_of('year', 'quarter', 'month', 'week', 'day')}', {found})")
        )

    def truth(self, depth=2):
        kind = self.random.choice([self.number, self.text, self.date])
        a, b = kind(max(0, depth - 1)), kind(max(0, depth - 1))
        plain = self.one_of(
            f"{a} {self.one_of('=', '<', '<=', '>', '<>')} {b}",
            f"{a} IS NULL",
            f"{a} IN ({b}, {a}, NULL)",
            f"{a} IS DISTINCT FROM {b}",
            f"({a} = {b}) IS TRUE",
        )
        if depth == 0 or self.random.random() < 0.5:
            return f"({plain})"
        return f"({self.one_of('', 'NOT ')}{plain} {self.one_of('AND', 'OR')} {self.truth(depth - 1)})"

    def aggregate(self):
        x = self.number()
        return self.one_of(
            "COUNT(*)", "COUNT(DISTINCT patient_id)", f"COUNT({x})", f"COUNT({self.text()})", f"SUM({x})", "SUM(stay)",
            "AVG(cost)", f"SUM(CLAMP({x}, -3, 9))", f"AVG(CLAMP({x}, 2, 9))", f"STDDEV(CLAMP({x}, -1, 1))",
            f"COUNT(DISTINCT {self.text(1)})", f"MEDIAN(CLAMP({x}, 0, 8))", "MAX(stay)", f"HISTOGRAM({x}, -3, 9, 4)",
            f"COUNT(*) FILTER (WHERE {self.truth(1)})", f"SUM(stay) FILTER (WHERE {self.truth(1)})",
            f"MODE({self.text()})", f"MODE({self.date(1)})", f"MODE(CLAMP({x}, 0, 8))", "MODE(ward)",
            f"TRIMMED_MEAN(CLAMP({x}, -3, 9), 0.2)",
            f"COUNT_IF({self.truth(1)})", f"COUNT(DISTINCT patient_id) FILTER (WHERE {self.truth(1)})",
        )  # fmt: skip

    def union(self):
        """Rows of two or three SELECTs under each other, with the columns of visits."""
        branches = [
            f"SELECT patient_id, {self.text(1).replace('floor', '2')} AS ward,"
            f" {self.one_of('diagnosis', 'ward', repr(f'part {i}'))} AS diagnosis,"
            f" {self.number(1).replace('floor', '2')} AS stay, {self.one_of('cost', 'stay', 'NULL')} AS cost,"
            f" {self.date(1)} AS day FROM visits WHERE {self.truth(1).replace('floor', '2')}"
            for i in range(self.random.randrange(2, 4))
        ]
        return self.one_of(
            f"({' UNION ALL '.join(branches)}) v",
            f"({' UNION ALL '.join(branches)}) v JOIN wards USING (ward)",
            "(SELECT * FROM visits UNION ALL SELECT * FROM visits WHERE stay > 3) v",
        )

    def question(self):
        source = self.one_of(
            "visits", "visits", "visits JOIN wards USING (ward)", "visits LEFT JOIN wards USING (ward)",
            f"(SELECT *, {self.number(1)} AS extra FROM visits WHERE {self.truth(1)}) v", self.union(),
        )  # fmt: skip
        keys = [self.one_of("ward", "diagnosis", "MONTH(day)", self.text(), self.number(), self.truth(1), self.date())
                for _ in range(self.random.randrange(3))]  # fmt: skip
        aggregates = [self.aggregate() for _ in range(self.random.randrange(1, 4))]
        where = f" WHERE {self.truth()}" if self.random.random() < 0.5 else ""
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        tail = self.one_of(
            "", "", f" HAVING {aggregates[0].replace('HISTOGRAM', 'WIDTH_BUCKET')} > 3", " ORDER BY 1 DESC", " LIMIT 3"
        )
        return f"SELECT {', '.join([*keys, *aggregates])} FROM {source}{where}{group}{tail}"


def exact_numbers(plan, texts, database):
    """All exact measures of each group, in the order of the plan; `texts` are its statements."""
    return by_group(plan, [database.execute(text).fetchall() for text in texts])


def by_group(plan, tables):
    """The same from what the statements gave."""
    tables, width = list(tables), len(plan.keys)
    summed = [j for j, m in enumerate(plan.measures) if m.what is not What.DISTINCT]
    found = {}
    for places in [*([summed] if summed else []), *([j] for j in range(len(plan.measures)) if j not in summed)]:
        for row in tables.pop(0):
            for j, x in zip(places, row[width:], strict=True):
                found.setdefault(row[:width], [0] * len(plan.measures))[j] = x or 0
    return found


def moved(sql, rules, one, other, dialect="duckdb"):
    """Runs a question on both; returns how many groups differ after checking that each differs by little."""
    question = parse_question(sql, rules)
    plan, texts = question.plan, statements(offer_for_epsilon(question, 1.0, 1e-9, Mu), 12345, dialect)
    tables = [exact_numbers(plan, texts, database) for database in (one, other)]  # none may raise
    offer = offer_for_epsilon(question, 1.0, 1e-9, Mu)
    others = not_by_rank(offer)
    for way, text in zip(others, texts[len(texts) - len(others) :], strict=True):
        groups = [by_key(database.execute(text).fetchall(), len(plan.keys)) for database in (one, other)]
        told_apart(sql, way, *groups)
    return changed(sql, plan, *tables)


def not_by_rank(offer):
    """The standalone releases that have statements of their own, at the end."""
    return [one for one in offer.standalone if not isinstance(one, QuantileRelease)]


def by_key(rows, width):
    """The rows of each group, without their keys."""
    found = {}
    for row in rows:
        found.setdefault(row[:width], []).append(row[width:])
    return found


def told_apart(sql, way, one, other):
    """What a mechanism is priced for is all that a person does, to few groups."""
    differ = [
        key
        for key in set(one) | set(other)
        if sorted(one.get(key, []), key=repr) != sorted(other.get(key, []), key=repr)
    ]
    assert len(differ) <= way.plan.groups, sql
    for key in differ:
        a, b = (table.get(key, []) for table in (one, other))
        if isinstance(way, TrimmedMeanRelease):
            x, y = way.ordered_values(a), way.ordered_values(b)
            if isinstance(way.mechanism, Everywhere):  # noise for the whole range
                assert abs(way.mean.value(x) - way.mean.value(y)) <= way.mean.everywhere, sql
                continue
            rungs = [way.mechanism.rung(x), way.mechanism.rung(y)]
            assert abs(rungs[0] - rungs[1]) <= way.mechanism.steps, sql
            far = abs(way.mean.value(x) - way.mean.value(y))
            assert float(far) <= float(way.mechanism.ladder.ceilings[min(rungs)]), sql
        elif isinstance(way, ModeChoice):
            x, y = dict(a), dict(b)
            by = [x.get(value, 0) - y.get(value, 0) for value in {*x, *y}]
            assert max(map(abs, by)) <= way.plan.rows and (min(by) >= 0 or max(by) <= 0), sql
        elif isinstance(way, StableMode):
            x, y = way.lead(a), way.lead(b)
            assert abs(x.distance - y.distance) <= 1, sql
            assert x.value == y.value or x.distance == y.distance == 0, sql
        elif isinstance(way, TrianglesRelease):
            (many, most), (others, next_) = a[0], b[0]
            assert abs(most - next_) <= 1, sql
            assert abs(many - others) <= min(most, next_), sql


def changed(sql, plan, one, other):
    """How many groups differ: few, and each by little."""
    zeros, changes = [0] * len(plan.measures), 0
    for key in set(one) | set(other):
        pair = [table.get(key, zeros) for table in (one, other)]
        by = [abs(a - b) for a, b in zip(*pair, strict=True)]
        changes += any(by)
        for measure, far in zip(plan.measures, by, strict=True):
            assert far <= bounding_of(plan).sensitivity(measure), (sql, measure, far)
        joint = NoiseBasis.of(plan)
        for part, far in zip(joint.parts, joint.parts_of([a - b for a, b in zip(*pair, strict=True)]), strict=True):
            assert abs(far) <= part.size, (sql, part, far)
    assert changes <= plan.groups, (sql, changes)
    return changes


def exactly(question, row):
    """The aggregates of a question, from exact measures."""
    joint = NoiseBasis.of(question.plan)
    silent = (None,) * len(joint.measures)
    parts, indexes = joint.parts_of(row), question.sum_indexes
    return [a.reader(NoisySums(joint, indexes[a], silent)).read(parts)[0] for a in question.aggregates]


def outcome(curator, sql):
    """Status, columns, charge and error text: all that an analyst sees beside the values."""
    before = curator.ledger.verify().spent
    try:
        answer = curator.ask(sql, epsilon=0.01)
        seen = ("answered", answer.columns, answer.charged, answer.epsilon)
    except SfumatoError as error:
        seen = (type(error).__name__, str(error))
    return seen, curator.ledger.verify().spent, before


def dialect_in_use(engine):
    """The dialect that a curator writes statements in: with the schema that the engine has now."""
    return replace(dialect_of(engine.dialect), schema=engine.schema())
