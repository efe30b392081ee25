"""Plain SQL as a judge: the same text, asked of DuckDB itself, where no bound cuts anything and no value is odd.

Tables are those that the policy describes, as it types them, with their units; of a public table the least row for a
key. What plain SQL raises on, and what means something else there by intent (docs/sql.md), is not compared.
"""

import math

import duckdb
from sqlglot import ErrorLevel, exp, parse_one

from sfumato.curator.release import normalize_zero
from sfumato.sql.domains import Kind
from sfumato.sql.expressions import Constant, Output
from tests.curator.questions import by_group, exactly
from tests.fuzz.worlds import quoted

CLEAN = {
    "n": "CASE WHEN ISNAN(TRY_CAST({0} AS DOUBLE)) THEN NULL ELSE TRY_CAST({0} AS DOUBLE) END",
    "t": "CAST({0} AS TEXT)", "d": "TRY_CAST({0} AS TIMESTAMP)", "b": "TRY_CAST({0} AS BOOLEAN)",
}  # fmt: skip
WHOLE = (exp.Substring, exp.Left, exp.Right, exp.SplitPart, exp.Round, exp.Pow, exp.Interval, exp.Limit, exp.Offset,
         exp.DataTypeParam, exp.Group, exp.Ordered, exp.Quantile, exp.WidthBucket)  # fmt: skip
EXACT = ("count", "sum", "avg")
# approximate there, or any of several; written by the parser without its format; NaN there and missing here
OTHERWISE = (exp.ApproxDistinct, exp.ToChar, exp.Pow, exp.AnyValue)


class PlainSql:
    """The tables of a world, for questions to be asked of as they stand."""

    def __init__(self, world):
        self.open = duckdb.connect(config={"threads": 1})
        self.open.execute("SET ieee_floating_point_ops = false")
        self.open.execute("CREATE SCHEMA raw; USE raw")
        for line in world.script("whole", "duckdb"):
            self.open.execute(line)
        self.open.execute("USE main")
        for table in world.tables:
            self.open.execute(f"CREATE TABLE main.{quoted(table.name)} AS {self.cleaned(table, world)}")
        self.open.execute(
            "CREATE MACRO clamp(x, a, b) AS CASE WHEN x + a + b IS NULL THEN NULL ELSE LEAST(GREATEST(x, a), b) END"
        )

    def cleaned(self, table, world):
        """The rows that are somebody's, as the policy types them."""
        typed = {c.name: CLEAN[c.letter].format(f"s.{quoted(c.name)}") for c in table.asked if c.name != table.unit}
        shown = ", ".join(f"{value} AS {quoted(name)}" for name, value in typed.items())
        rows, unit = f"raw.{quoted(table.name)} AS s", quoted(table.unit)
        match table.how:
            case "column":
                return f"SELECT {shown}, s.{unit} FROM {rows} WHERE NOT s.{unit} IS NULL"
            case "owner":
                known = f"SELECT DISTINCT CAST({quoted(table.above_key)} AS TEXT) AS k, {unit} AS u"
                above = f"{known} FROM raw.{quoted(table.above)} WHERE NOT {unit} IS NULL"
                on = f"p.k = CAST(s.{quoted(table.key)} AS TEXT)"
                return f"SELECT {shown}, p.u AS {unit} FROM {rows} JOIN ({above}) AS p ON {on}"
            case "edge":
                a, b = (typed[name] for name in table.names[:2])
                return (
                    f"SELECT {shown}, LEAST({a}, {b}) || '-' || GREATEST({a}, {b}) AS edge FROM {rows} WHERE {a} <> {b}"
                )
            case "public":
                order = ", ".join(f"{value} NULLS LAST" for value in typed.values())
                first = next(iter(typed.values()))
                return (
                    f"SELECT {shown} FROM {rows} QUALIFY ROW_NUMBER() OVER (PARTITION BY {first} ORDER BY {order}) = 1"
                )
        return f"SELECT {shown} FROM {rows}"

    def agrees(self, found, failure):
        """Raises if the numbers are others; False if they are not compared."""
        places = [place_of(one, found) for _, one in found.asked.columns]
        root = parse_one(found.sql, read="duckdb")
        if (
            None in places
            or found.plan.standalone
            or not all_shown(found.asked)
            or not comparable(found.plan)
            or root.find(*OTHERWISE)
            or any(isinstance(one.this, exp.In) and one.this.args.get("query") for one in root.find_all(exp.Not))
            or any(cast.to.is_type("text") for cast in root.find_all(exp.Cast))  # dates at midnight are written shorter
        ):
            return False
        inner = [one for one in root.find_all(exp.Sum, exp.Avg) if one.find_ancestor(exp.Select) is not root]
        if inner and len(domains := {(one.low, one.high) for one in inner_domains(found.plan)}) != 1:
            return False
        for one in inner:
            clamp(one, *next(iter(domains)))
        text = clamped(doubled(root), places, found).sql("duckdb", unsupported_level=ErrorLevel.IGNORE)
        try:
            rows = self.open.execute(text).fetchall()
        except duckdb.Error:
            return False
        width = len(found.plan.keys)
        if {place for place in places if place < width} != set(range(width)):
            return False
        expected = {}
        for row in rows:
            values = dict(zip(places, row, strict=True))
            key = tuple(map(normalize_zero, (values[i] for i in range(width))))
            if all(listed is None or one in listed for one, listed in zip(key, found.plan.key_lists, strict=True)):
                expected[key] = [values.get(width + j) for j in range(len(found.asked.aggregates))]
        exact = {key: exactly(found.asked, row) for key, row in by_group(found.plan, found.tables["whole"]).items()}
        for key in {*expected, *exact}:
            for j, aggregate in enumerate(found.asked.aggregates):
                if width + j in places and (aggregate.name != "avg" or expected.get(key, [None] * 99)[j] is not None):
                    one, two = (table.get(key, [None] * 99)[j] or 0 for table in (expected, exact))
                    if not near(float(one), float(two), aggregate, found.asked):
                        raise failure(
                            "plain SQL differs", f"{key!r} {aggregate.name}: {one!r} there, {two!r} here: {text}"
                        )
        return True


def place_of(expression, found):
    """Which key or aggregate a column is, if it is one that can be compared."""
    if not isinstance(expression, Output):
        return None
    width = len(found.plan.keys)
    if expression.place < width:
        return expression.place if expression.domain.kind is not Kind.DATE else None
    known = found.asked.aggregates[expression.place - width]
    return expression.place if known.name in EXACT else None


def all_shown(question):
    """Are all groups shown?"""
    return question.having == Constant(True) and question.limit is None and not question.offset


def comparable(plan):
    """Are public tables joined on their first column alone, and private ones so that all rows are found?"""
    tables = (plan.table, *(join.table for join in plan.joins))
    if not all(comparable(rows) for table in tables if not table.public for rows in table.inner_plans):
        return False
    if any(value.ties for table in tables for branch in table.branches for _, value in branch.windows):
        return False  # of rows that tie plain SQL takes any
    for join in plan.joins:
        if join.table.public and (
            join.table.derived or {name for _, name in join.on} != {next(iter(join.table.columns))}
        ):
            return False
        if join.once and not join.table.public and not join.table.grouped:
            return False  # of several rows with one key, one is found
    return True


def doubled(root):
    """Numbers are doubles: 0.1 + 0.2 is no decimal here."""
    for node in list(root.find_all(exp.Literal)):
        if not node.is_string and not isinstance(node.parent, WHOLE) and not isinstance(node.parent, exp.Neg):
            node.replace(exp.cast(node.copy(), "DOUBLE"))
    return root


def clamped(root, places, found):
    """What is summed is put into its range first."""
    for place, node in zip(places, root.expressions, strict=False):
        width = len(found.plan.keys)
        if place >= width and (aggregate := found.asked.aggregates[place - width]).name != "count":
            for one in list(node.find_all(exp.Sum, exp.Avg)):
                clamp(one, aggregate.of.domain.low, aggregate.of.domain.high)
    return root


def clamp(total, low, high):
    """What is summed there is put into this range."""
    total.set("this", exp.Anonymous(this="clamp", expressions=[total.this, number(low), number(high)]))


def inner_domains(plan):
    """The ranges of what is summed for each unit, in SELECTs of FROM."""
    for table in (plan.table, *(join.table for join in plan.joins)):
        for rows in table.inner_plans:
            yield from (measure.of.domain for measure in rows.measures if measure.of is not None)
            yield from inner_domains(rows)


def number(value):
    return exp.cast(exp.Literal.string(repr(value)), "DOUBLE")


def near(one, two, aggregate, question):
    """Counts are equal; sums are of values rounded to steps."""
    if aggregate.name == "count":
        return one == two
    exponent = question.plan.measures[question.sum_indexes[aggregate][0]].exponent
    return math.isclose(one, two, rel_tol=1e-4, abs_tol=200 * 2.0**exponent + 1e-6)
