"""One plan, one meaning: every engine gives the same exact numbers, whatever odd values the rows hold.

DuckDB always takes part, PostgreSQL where there is a server. Expressions are compared as keys of groups. Spark takes
part in `make test-spark`, which takes longer; test_spark.py asks it a few of these.
"""

import dataclasses
import itertools
import math
import os
from contextlib import contextmanager

import duckdb
import numpy as np
import pytest

from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.curator.norm_tail import EDGES
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import split_keys, statements
from sfumato.curator.scaling import Choice, NoisyNorms
from sfumato.curator.steps import KeyVotes, NormHistogram
from sfumato.curator.suggest_bounds import number_column
from sfumato.curator.value_votes import ValueVotes, magnitude_histogram, position_histogram
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.spark import Spark
from sfumato.sql.dialects import DIALECTS, dialect_of
from sfumato.sql.domains import Domain, Kind
from sfumato.sql.emit.bounding import bounding_of, statement
from sfumato.sql.expressions import Call, Constant
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.plan import What
from sfumato.sql.policy import Policy
from sfumato.sql.postprocess import evaluate
from tests.aggregates.test_edge_values import HIGH, LOW, OTHER, RANKS, SUMS
from tests.curator import clinic, odd
from tests.curator.questions import exactly
from tests.engines import spark
from tests.sql.emit.test_bounding import QUESTIONS

INF = math.inf
JOINED = [
    "SELECT floor, COUNT(*), SUM(cost) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT floor, COUNT(DISTINCT diagnosis), MEDIAN(stay) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT a.ward, COUNT(*), SUM(a.stay) FROM visits a JOIN labs b ON a.patient_id = b.patient_id GROUP BY 1",
    "SELECT COUNT(*), SUM(points) FROM marks",
    "SELECT COUNT(*), COUNT(floor), SUM(cost) FROM visits LEFT JOIN wards USING (ward)",
    "SELECT what, COUNT(*), SUM(x), COUNT(day) FROM (SELECT 'stay' AS what, stay AS x, day FROM visits UNION ALL"
    " SELECT ward, cost, NULL FROM visits UNION ALL SELECT lab, 3, '2024-02-29' FROM labs) v GROUP BY what",
    "SELECT HISTOGRAM(x, 0, 60, 6) FROM (SELECT stay AS x FROM visits UNION ALL SELECT cost FROM visits) v",
    "SELECT w, COUNT(*), SUM(v) FROM (SELECT ward AS w, CLAMP(stay, 0, 9) AS v FROM visits"
    " UNION ALL SELECT lab, NULL FROM labs) x GROUP BY w",
    "SELECT COUNT(*), COUNT(v), COUNT(DISTINCT d) FROM (SELECT stay AS v, day AS d, stay > 5 AS b FROM visits"
    " UNION ALL SELECT cost, '2024-03-01', TRUE FROM visits) x WHERE b",
    "SELECT HISTOGRAM(stay, 0, 60, 6) FROM visits",
    "SELECT ward, NULL AS k, COUNT(*), COUNT(DISTINCT NULL) FROM visits GROUP BY ward, k",
    "SELECT stay * 1e-30 AS k, COUNT(*) FROM visits GROUP BY k",  # which the hash does not tell apart
    "SELECT stay * 1e-30 AS k, diagnosis, MEDIAN(cost) FROM visits GROUP BY k, diagnosis",
    "SELECT place, COUNT(*) FROM stays GROUP BY place",
    "SELECT place, COUNT(*), MEDIAN(a) FROM links GROUP BY place",
]
ORDERED = [
    "SELECT COUNT(DISTINCT diagnosis), MIN(stay), MAX(stay), MEDIAN(cost), QUANTILE(cost, 0.123456) FROM visits",
    "SELECT diagnosis, COUNT(DISTINCT ward), MEDIAN(stay) FROM visits GROUP BY diagnosis",
    "SELECT ward, COUNT(DISTINCT stay), QUANTILE(stay, 0.9), AVG(stay) FROM visits GROUP BY ward",
]
WIDE = clinic.POLICY.replace("groups = 2\nrows = 3", "groups = 1000\nrows = 1000")
MORE = """
[tables.labs]
unit = "patient_id"
groups = 1000
rows = 1000
[tables.labs.columns]
patient_id = {type = "number"}
lab = {type = "text"}
[tables.marks]
unit = "labs.patient_id"
key = "lab"
groups = 1000
rows = 1000
[tables.marks.columns]
points = {low = 0, high = 8}
[tables.stays]
unit = "guests.guest"
key = "room"
groups = 1000
rows = 1000
columns.place = {type = "integer"}
[tables.guests]
unit = "guest"
groups = 1000
rows = 1000
columns.room = {type = "integer"}
[tables.links]
edges = ["a", "b"]
groups = 1000
rows = 1000
columns.a = {type = "number", low = 0, high = 9}
columns.b = {type = "number"}
columns.place = {type = "integer"}
"""


MORE_TABLES = [
    "CREATE TABLE guests AS SELECT CASE WHEN i = 9 THEN '-0'::DOUBLE ELSE CAST(i % 9 AS DOUBLE) / 2 END AS guest,"
    " CAST(i AS INTEGER) AS room FROM RANGE(30) t(i)",
    "CREATE TABLE stays AS SELECT CAST(i % 37 AS INTEGER) AS room, CAST(i * i % 11 AS INTEGER) AS place"
    " FROM RANGE(200) t(i)",
    "CREATE TABLE links AS SELECT CAST(i % 5 AS DOUBLE) / 2 AS a, CAST(i % 3 AS DOUBLE) AS b,"
    " CAST(i * i % 13 AS INTEGER) AS place FROM RANGE(150) t(i)",
]


# ---- engines --------------------------------------------------------------------------------------------------------


def tables_of(place, *more):
    """The tables of a DuckDB file, to be put elsewhere."""
    with duckdb.connect(str(place)) as connection:
        found = {}
        for name in ("visits", "wards", *more):
            described = connection.execute(f"DESCRIBE {name}").fetchall()
            types = {row[0]: {"DOUBLE": "DOUBLE PRECISION", "VARCHAR": "TEXT"}.get(row[1], row[1]) for row in described}
            columns = ", ".join(f"{c}::TEXT" if kind == "DATE" else c for c, kind in types.items())
            found[name] = ({"id": "BIGINT", **types}, connection.execute(f"SELECT 0, {columns} FROM {name}").fetchall())
        return found


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A database, and its tables to be put elsewhere."""
    place = clinic.built(tmp_path_factory.mktemp("conformance") / "odd.duckdb")
    with duckdb.connect(str(place)) as connection:
        odd.filled(connection.execute, "duckdb", odd.TABLES)
        connection.execute("CREATE TABLE labs AS SELECT DISTINCT patient_id, diagnosis AS lab FROM visits")
        connection.execute("CREATE TABLE marks AS SELECT diagnosis AS lab, stay AS points FROM visits")
        connection.execute(
            "CREATE TABLE pals AS SELECT 'n' || i * i % 23 AS a, 'n' || i * 7 % 29 AS b FROM RANGE(150) t(i)"
        )
        for text in MORE_TABLES:  # units that are doubles, of which engines write whole ones in different ways
            connection.execute(text)
    return place, {**odd.TABLES, **tables_of(place, "labs", "marks", "pals", "guests", "stays", "links")}


@pytest.fixture(scope="module")
def home(file):
    engine = DuckDB(file[0])
    yield engine
    engine.close()


AWAY = ["postgres", "spark"] if os.environ.get(spark.ALL) else ["postgres"]


@contextmanager
def on_spark(place):
    """The tables of a DuckDB file on Spark, all statements in one snapshot: each would look for its files."""
    spark.require_spark()
    engine = Spark(spark.started()[0], str(spark.written(place, place.parent / "lake")))
    with engine.snapshot():
        yield engine
    engine.close()


@pytest.fixture(scope="module")
def spark_engine(file):
    with on_spark(file[0]) as engine:
        yield engine


@pytest.fixture(scope="module")
def postgres_engine(request, file):
    import psycopg

    from sfumato.engines.postgres import Postgres

    server = request.getfixturevalue("server")
    with psycopg.connect(server.dsn) as connection:
        odd.filled(connection.execute, "postgres", file[1])
    yield Postgres(server.dsn)


@pytest.fixture(scope="module", params=AWAY)
def away(request):
    return request.getfixturevalue(f"{request.param}_engine")


def exact(engine, sql, policy=odd.RULES, schema=None):
    """All exact tables of a question, as an engine gives them."""
    question = parse_question(sql, policy)
    spoken = DIALECTS[engine.dialect]
    spoken = spoken if schema is None else dataclasses.replace(spoken, schema=schema)
    width, found = len(question.plan.keys), []
    for text in statements(offer_for_epsilon(question, 1.0, 1e-9, Mu), 7, spoken):
        rows = split_keys(engine.run(text), width)
        found.append({tuple(map(repr, key)): [whole(value) for value in rest] for key, rest in rows})
    return found


def whole(value):
    return [int(one) for one in value] if isinstance(value, list) else None if value is None else int(value)


# ---- what an expression means ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "form"), [(s, form) for s, forms in odd.FORMS.items() for form in forms])
def test_an_expression_means_the_same_everywhere(source, form, home, away):
    sql = f"SELECT {form}, COUNT(*) FROM {source} GROUP BY 1"
    here = exact(home, sql)
    assert exact(away, sql) == here
    if form in ("a + b", "CAST(s AS DOUBLE)", "n", "m", "t", "d", "e", "y AND z"):
        assert exact(away, sql, schema=away.schema()) == here  # what a type lets us leave out makes no difference


PARTS = [
    ("dates", ["QUARTER(d)", "MINUTE(d)", "DAYOFYEAR(d)", "ISODOW(d)", "DATE_TRUNC('quarter', d)", "WEEK(d)",
               "DATE_TRUNC('week', d)", "DATE_DIFF('day', d, TIMESTAMP '2024-02-29 12:00:00')"]),
    ("numbers", ["SQRT(a)", "SIGN(a)", "SIGN(a - a)", "SIGN(a + a)"]),
    ("texts", ["RIGHT(s, 2)", "RIGHT(s, 0)", "STRPOS(s, 'a')", "SPLIT_PART(s, 'a', 2)", "SPLIT_PART(s, ' ', 1)"]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "form"), [(source, form) for source, forms in PARTS for form in forms])
def test_functions_mean_the_same_on_all_engines(source, form, home, away):
    sql = f"SELECT {form}, COUNT(*) FROM {source} GROUP BY 1"
    here = exact(home, sql)
    assert any(here) and exact(away, sql) == here == exact(away, sql, schema=away.schema())


ALONE = [
    "SELECT MODE(ward) FROM visits", "SELECT MODE(stay) FROM visits", "SELECT MODE(day) FROM visits",
    "SELECT ward, MODE(diagnosis) FROM visits GROUP BY ward", "SELECT TRIMMED_MEAN(cost, 0.1) FROM visits",
    "SELECT ward, TRIMMED_MEAN(stay, 0.2) FROM visits GROUP BY ward", "SELECT TRIANGLES() FROM pals",
    "SELECT a, COUNT(*), COUNT(DISTINCT b) FROM pals GROUP BY a",
]  # fmt: skip
GRAPH = """
[tables.pals]
edges = ["a", "b"]
rows = 2
groups = 1
[tables.pals.columns]
a = {type = "text"}
b = {type = "text"}
"""


@pytest.mark.parametrize("sql", ALONE)
def test_modes_trimmed_means_and_triangles_are_the_same_everywhere(sql, home, away):
    policy, found = Policy.read(clinic.POLICY + GRAPH), []
    for engine in (home, away):
        spoken = dataclasses.replace(DIALECTS[engine.dialect], schema=engine.schema())
        asked = statements(offer_for_epsilon(parse_question(sql, policy), 1.0, 1e-9, Mu), 7, spoken)
        found.append([sorted(repr([plain(one) for one in row]) for row in engine.run(text)) for text in asked])
    assert found[0] == found[1] and all(map(any, found[0]))


def plain(value):
    """A value of an engine as a number, a text or a list."""
    if isinstance(value, list):
        return [int(one) for one in value]
    return value if value is None or isinstance(value, str | bool) else float(value)


MEANINGS = [  # what engines by themselves differ in: expression, where, its one value
    ("CAST(a AS INT)", "a = 2.5", 3.0), ("CAST(a AS INT)", "a = -2.5", -3.0), ("CLAMP(a, 0, 50)", "a IS NULL", None),
    ("LEAST(a, 50)", "a IS NULL", 50.0), ("a / 0", "a = 1", None), ("MOD(a, 0)", "a = 1", None),
    ("a * 10", "a > 1.7e308", INF), ("a * a", "a = -1e308", INF), ("a + a", "a = -1e308", -INF),
    ("MOD(a, 3)", "a = -7", -1.0), ("MOD(a, -3)", "a = 7", 1.0), ("MOD(a, 0.1)", "a = 0.3", math.fmod(0.3, 0.1)),
    ("ROUND(a)", "a = 0.5", 1.0), ("ROUND(a)", "a = 0.49999999999999994", 0.0), ("ROUND(a, 2)", "a = 2.675", 2.68),
    ("a - a", "a > 1.7e308 AND a + 1 = a AND a * 1e-200 = a", None), ("a > 1e308", "a = 1", False),
    ("a * 0.5", "a > 0 AND a < 1e-320", 0.0), ("CAST(s AS DOUBLE)", "s = 'abc'", None),
    ("CAST(s AS DOUBLE)", "s = ''", None), ("CAST(s AS DOUBLE)", "s = ' 1 '", 1.0),
    ("CAST(s AS DOUBLE)", "s = '1e999'", INF), ("CAST(s AS DOUBLE)", "s = '1e-999'", 0.0),
    ("CAST(s AS DATE)", "s = '2023-02-29'", None), ("CAST(s AS DATE)", "s = '5000000-01-01'", None),
    ("CAST(s AS DATE)", "s = 'now'", None), ("UPPER(s)", "s = 'ä'", "Ä"), ("UPPER(s)", "s = 'ß'", "ẞ"),
    ("LOWER(s)", "s = 'İ'", "i"), ("s LIKE '%\\'", "s = '\\'", True), ("s < 'a'", "s = 'Z'", True),
    ("s < 'z'", "s = 'ä'", False), ("t", "s = 'on'", None), ("t", "s = 'yes'", True), ("LENGTH(s)", "s = '😀x'", 2.0),
    ("YEAR(d)", "d > '294246-06-01'", None),
    ("YEAR(d)", "d = '2024-02-29'", 2024.0), ("CAST(y AS DOUBLE)", "y", 1.0),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["home", *(f"{one}_engine" for one in AWAY)])
@pytest.mark.parametrize(("form", "where", "value"), MEANINGS)
def test_an_expression_means_what_is_said_of_it(form, where, value, engine, request):
    source = {"a": "numbers", "s": "texts", "d": "dates", "y": "truths"}[where[0]]
    sql = f"SELECT {form}, COUNT(*) FROM {source} WHERE {where} GROUP BY 1"
    found = exact(request.getfixturevalue(engine), sql)[0]
    unknown = value is None and parse_question(sql, odd.RULES).plan.public is not None  # NULL is no public key
    assert list(found) == ([] if unknown else [(repr(value),)])


# ---- all aggregates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [*QUESTIONS, *ORDERED, *JOINED])
def test_a_question_has_the_same_exact_numbers_everywhere(sql, home, away):
    """With bounds that nobody reaches; and with some that cut, as all engines keep the same of each unit."""
    for rules in (WIDE + MORE, clinic.POLICY + MORE.replace("1000", "2")):
        policy = Policy.read(rules)
        here = exact(home, sql, policy, home.schema())
        assert any(here)
        assert exact(away, sql, policy, away.schema()) == here


WHOLES = [2**63 - 1, -(2**63), 0, 1, -1, None, 2**53 + 1, -(2**53) - 1, 1000, 1001, 999, -100, -101, -99, 2**31 - 1,
          -(2**31), 127, -128, 255, 32768, 2**32, 10**9 + 7, 7, 60, -7, 100]  # fmt: skip
DECIMALS = ["99999999999999999999.99", "-99999999999999999999.99", "0.01", "-0.01", "0", None, "1000.01", "999.99",
            "-100.01", "-99.99", "7.30", "60", "0.10", "0.05", "123.45", "-1", "1", "2.5", "3.5", "1000", "-100",
            "500.5", "33.33", "66.67", "0.99", "12345678.9"]  # fmt: skip
MATRIX = {
    "DOUBLE PRECISION": odd.NUMBERS, "BIGINT": WHOLES, "DECIMAL(38, 2)": DECIMALS, "TEXT": [*odd.NUMERALS, *odd.WORDS],
    "TIMESTAMP": odd.DATES, "DATE": odd.DATES,
}  # fmt: skip
ORDINARY = {"TEXT": "b", "TIMESTAMP": "2024-05-05", "DATE": "2024-05-05"}


@pytest.fixture(scope="module", params=AWAY)
def matrix(tmp_path_factory, request):
    """In group k: person k with value k, and person −1 with an ordinary one; a table for each type."""
    place = tmp_path_factory.mktemp("matrix") / "odd.duckdb"
    tables = {}
    for i, (kind, values) in enumerate(MATRIX.items()):
        other = OTHER if kind == "DOUBLE PRECISION" else ORDINARY.get(kind, str(int(OTHER)))
        written = [value if kind == "DOUBLE PRECISION" or value is None else str(value) for value in values]
        rows = [row for k, value in enumerate(written) for row in ((k, k, value), (-1, k, other))]
        tables[f"odd{i}"] = ({"id": "BIGINT", "k": "INTEGER", "x": kind}, rows)
    with duckdb.connect(str(place)) as connection:
        odd.filled(connection.execute, "duckdb", tables)
    engine = DuckDB(place)
    if request.param == "spark":
        with on_spark(place) as other:
            yield engine, other
    else:
        import psycopg

        from sfumato.engines.postgres import Postgres

        server = request.getfixturevalue("server")
        with psycopg.connect(server.dsn) as connection:
            odd.filled(connection.execute, "postgres", tables)
        yield engine, Postgres(server.dsn)
    engine.close()


def rules(table, kind, many):
    column = {"TEXT": "type = 'text'", "TIMESTAMP": "type = 'date'", "DATE": "type = 'date'"}.get(
        kind, f"low = {LOW}, high = {HIGH}, step = 0.00390625"
    )
    return Policy.read(
        f"version = 1\n[budget]\nepsilon = 500\ndelta = 1e-6\n[tables.{table}]\n"
        "unit = 'id'\ngroups = 100\nrows = 2\n"
        f"[tables.{table}.columns]\nx = {{{column}}}\nk = {{type = 'number', keys = {list(range(many))}}}\n"
    )


@pytest.mark.parametrize("kind", MATRIX)
def test_edge_values_are_counted_right_and_the_same_everywhere(kind, matrix):
    home, away = matrix
    name, values = f"odd{list(MATRIX).index(kind)}", MATRIX[kind]
    assert len(values) >= 25
    policy = rules(name, kind, len(values))
    numbers = "COUNT(*), COUNT(x), COUNT(DISTINCT x)" if kind in ORDINARY else f"{SUMS}, {RANKS}"
    sql = f"SELECT k, {numbers} FROM {name} GROUP BY k"
    here, there, typed = exact(home, sql, policy), exact(away, sql, policy), exact(away, sql, policy, away.schema())
    assert here == there == typed
    plain = f"SELECT k, {'COUNT(*), COUNT(x)' if kind in ORDINARY else SUMS} FROM {name} GROUP BY k"
    question, (summed,) = parse_question(plain, policy), exact(away, plain, policy)
    for k, value in enumerate(values):
        row = summed[(repr(float(k)),)]
        number = kind not in ORDINARY and value is not None
        known = [
            v for v in ((float(value) if number else value), ORDINARY.get(kind, OTHER)) if v is not None and v == v
        ]
        found = exactly(question, row)
        assert found[:2] == [2, len(known)]
        if number:
            clamped = [min(max(v, LOW), HIGH) for v in known]
            truth = [sum(clamped), np.mean(clamped), np.var(clamped), np.std(clamped)]
            np.testing.assert_allclose(found[2:6], truth, rtol=1e-4, atol=0.3)


# ---- scaled contributions -------------------------------------------------------------------------------------------

SCALED = Policy.read((WIDE + MORE).replace("groups = 1000\nrows = 1000\n", ""))


def spoken_by(engine):
    """Its dialect, with its types."""
    return dataclasses.replace(DIALECTS[engine.dialect], schema=engine.schema())


def scaled_statements(sql, bound, dialect):
    """Everything that an engine is asked for a question whose contributions are scaled: steps, and the rest."""
    offer = offer_for_epsilon(parse_question(sql, SCALED), 1.0, 1e-9, Mu)
    norms = NoisyNorms((0,) * len(EDGES), 1.0)
    choices = tuple(Choice(block, block.bound(bound), norms) for block in offer.blocks)
    complete = dataclasses.replace(
        offer, choices=choices, ranks=Choice(offer.rank_block, offer.rank_block.bound(bound), norms)
    )
    steps = [NormHistogram(offer.plan, offer.price, i) for i in range(len(offer.blocks))]
    steps += [KeyVotes(offer.plan, offer.price, 1e-9)] if offer.plan.discovered else []
    asked = [request.direct for step in steps for request in step.requests(7, dialect)]
    return len(offer.plan.keys), [*asked, *statements(complete, 7, dialect)]


@pytest.mark.parametrize("bound", [1, 2.5])
@pytest.mark.parametrize("sql", [*QUESTIONS, *ORDERED])
def test_scaled_contributions_are_the_same_everywhere(sql, bound, home, away):
    found = []
    for engine in (home, away):
        width, asked = scaled_statements(sql, bound, spoken_by(engine))
        tables = [split_keys(engine.run(text), width) for text in asked]
        found.append([sorted(repr((key, [whole(one) for one in rest])) for key, rest in rows) for rows in tables])
    assert found[0] == found[1]
    assert any(found[0])


@pytest.mark.parametrize("price", [Mu(1.0), Pure(1.0)])
@pytest.mark.parametrize("column, ends", [("visits.stay", (0.0, 16.0)), ("visits.cost", (-64.0, 2048.0))])
def test_votes_for_values_are_the_same_everywhere(column, ends, price, home, away):
    table, of = number_column(column, SCALED)
    for question in (magnitude_histogram(table, of), position_histogram(table, of, *ends)):
        found = []
        for engine in (home, away):
            (request,) = ValueVotes(question.plan, price).requests(7, spoken_by(engine))
            found.append({key: whole(votes) for key, (votes,) in split_keys(engine.run(request.direct), 1)})
        assert found[0] == found[1] and len(found[0]) > 3
        assert found[0].keys() <= set(question.plan.public)


# ---- bounds ---------------------------------------------------------------------------------------------------------

PEOPLE = [0, 6, 13, 27]


@pytest.fixture(scope="module")
def neighbours(server, tmp_path_factory):
    """The clinic in PostgreSQL, with everybody and without some."""
    import psycopg

    from sfumato.engines.postgres import Postgres

    found = {}
    for who in [None, *PEOPLE]:
        name = f"without_{who}".lower()
        place = clinic.built(tmp_path_factory.mktemp("clinic") / "clinic.duckdb", without=who)
        with psycopg.connect(server.dsn) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
            connection.execute(f"SET search_path TO {name}")
            odd.filled(connection.execute, "postgres", tables_of(place))
        found[who] = Postgres(server.dsn, namespace=name)
    return found


@pytest.mark.parametrize("sql", [*QUESTIONS, *ORDERED])
def test_a_person_moves_few_groups_and_each_a_little(sql, neighbours):
    policy = Policy.read(clinic.POLICY)
    plan = parse_question(sql, policy).plan
    found = {who: exact(engine, sql, policy) for who, engine in neighbours.items()}
    moved = 0
    for who in PEOPLE:
        changed = set()
        for before, after in zip(found[None], found[who], strict=True):
            changed |= {key for key in set(before) | set(after) if before.get(key) != after.get(key)}
        assert len(changed) <= plan.groups
        moved += bool(changed)
    summed = [m for m in plan.measures if m.what is not What.DISTINCT]
    for who in PEOPLE if summed else []:
        zeros = [0] * len(summed)
        for key in set(found[None][0]) | set(found[who][0]):
            pairs = zip(found[None][0].get(key, zeros), found[who][0].get(key, zeros), summed, strict=True)
            assert all(abs((a or 0) - (b or 0)) <= bounding_of(plan).sensitivity(m) for a, b, m in pairs)
    assert moved > 0


def test_equal_hashes_are_told_apart_by_the_keys(neighbours, monkeypatch):
    """The hash replaced by a constant: of a person with too many groups exactly so many are kept, always the same."""
    plan = parse_question(
        "SELECT diagnosis, COUNT(DISTINCT patient_id) FROM visits GROUP BY 1", Policy.read(clinic.POLICY)
    ).plan
    monkeypatch.setattr("sfumato.sql.dialects.base.keyed_hash", lambda *_: "CAST(5 AS BIGINT)")
    tied = statement(plan, 1, "postgres")
    engine = neighbours[None]
    each = engine.run(
        "SELECT patient_id, COUNT(DISTINCT COALESCE(diagnosis, '')) FROM visits WHERE NOT patient_id IS NULL GROUP BY 1"
    )
    assert sum(int(row[-1]) for row in engine.run(tied)) == sum(min(n, plan.groups) for _, n in each)
    assert engine.run(tied) == engine.run(tied)


NUMBERS, TRUTHS = [None, -2.5, -0.5, 0.0, 1.0, 3.0], [None, True, False]
AFTERWARDS = [
    name
    for name, function in FUNCTIONS.items()
    if function.after and set(function.kinds) <= {Kind.NUMBER, Kind.TRUTH, None} and name not in ("power", "round to")
]


@pytest.mark.parametrize("name", AFTERWARDS)
def test_what_is_computed_of_released_values_is_what_the_engine_computes(name):
    """Also of NULL; bounds of CLAMP are numbers. POWER may be infinite there and is NULL here; digits are whole."""
    function, to, connection = FUNCTIONS[name], dialect_of("duckdb"), duckdb.connect()
    kinds = function.kinds + function.kinds[-1:] * function.more
    some = [TRUTHS if kind is Kind.TRUTH else NUMBERS[i > 0 and name == "clamp" :] for i, kind in enumerate(kinds)]
    for values in itertools.product(*some):
        call = Call(name, tuple(Constant(value) for value in values))
        [expected] = connection.execute(f"SELECT {to.compiled(call).sql(to.name)}").fetchone()
        assert evaluate(call, []) == expected, values


RANGES = [(-3.0, -1.0), (-2.0, 0.0), (-1.5, 2.0), (0.0, 0.5), (0.5, 4.0), (2.0, 2.0)]


@pytest.mark.parametrize("name", AFTERWARDS)
def test_a_value_lies_within_the_bounds_that_are_said_of_it(name):
    """Sums are clamped to these bounds: what is outside would be lost. NULL is in every domain."""
    function = FUNCTIONS[name]
    kinds = function.kinds + function.kinds[-1:] * function.more
    if Kind.TRUTH in kinds or function.domain(*[Domain(Kind.NUMBER, 1.0, 2.0)] * len(kinds)).kind is not Kind.NUMBER:
        return
    for ranges in itertools.product(RANGES, repeat=len(kinds)):
        said = function.domain(*(Domain(Kind.NUMBER, low, high) for low, high in ranges))
        for values in itertools.product(*((low, (low + high) / 2, high) for low, high in ranges)):
            found = evaluate(Call(name, tuple(Constant(value) for value in values)), [])
            assert found is None or said.low <= found <= said.high, (ranges, values)
