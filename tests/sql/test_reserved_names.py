"""Whatever the owner's tables and columns are called, statements mean the same, and nobody moves more than the bounds.

Statements name things too. If a name of ours were also the owner's, an engine could take one for the other: a public
table with a column `i` once let one row move a count by ten thousand.
"""

import itertools
from dataclasses import replace
from datetime import date
from functools import cache

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.contribution_sketch import Sketch, tables_to_sketch
from sfumato.curator.every_day import Schedule
from sfumato.curator.lasting_views import statements_of
from sfumato.curator.norm_tail import EDGES
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements, table_requests
from sfumato.curator.scaling import Choice, NoisyNorms
from sfumato.engines.duckdb import schema
from sfumato.engines.views import CATALOG, StoredView
from sfumato.errors import PolicyError, QueryRefused
from sfumato.sql.dialects import DIALECTS, dialect_of
from sfumato.sql.dp_syntax import EveryDay
from sfumato.sql.policy import Policy
from sfumato.sql.policy_draft import draft_policy
from sfumato.sql.reserved_names import PREFIX, is_reserved
from sfumato.sql.schema_check import misfits
from tests.curator.questions import moved

# every name that statements gave before they had a prefix
BEFORE = [*"abcdefghiklmnopqrstuvwxyz", "cut", "hs", "k0", "k1", "k2", "kept", "m0", "m1", "one", "t0", "t1", "t2"]
ODD = [
    "rowid", "filename", "main", "temp", "information_schema", "count", "hash", "select", "group", "left", "row",
    'we"ird', "a.b", "ünï", "x y", "1", "it's", "stored", "unit", "place", "binary", "null", "values", "current_date",
]  # fmt: skip
ROLES = (
    "visits",
    "person",
    "ward",
    "stay",
    "visit",
    "wards",
    "place",
    "floor",
    "lines",
    "price",
    "links",
    "here",
    "to",
)
POLICY = """
version = 1
[budget]
epsilon = 900
delta = 1e-6
[tables.{visits}]
unit = {{column = {person}}}
groups = 2
rows = 3
[tables.{visits}.columns]
{ward} = {{type = "text", keys = ["a", "b", "c"]}}
{stay} = {{low = 0, high = 60, step = 1}}
{visit} = {{type = "number"}}
[tables.{wards}]
public = true
[tables.{wards}.columns]
{place} = {{type = "text"}}
{floor} = {{type = "number", keys = [1, 2, 3]}}
[tables.{lines}]
unit = {{column = {person}, table = {visits}}}
key = {visit}
groups = 2
rows = 4
[tables.{lines}.columns]
{price} = {{low = 0, high = 9, step = 1}}
[tables.{links}]
edges = [{here}, {to}]
[tables.{links}.columns]
{here} = {{type = "number"}}
{to} = {{type = "number"}}
"""
QUESTIONS = (
    "SELECT COUNT(*) FROM {visits} JOIN {wards} ON {ward} = {place}",
    "SELECT w.{floor}, COUNT(*), SUM(v.{stay}) FROM {visits} v LEFT JOIN {wards} w ON v.{ward} = w.{place} GROUP BY 1",
    "SELECT {ward}, COUNT(DISTINCT {person}), AVG({stay}) FROM {visits} GROUP BY {ward}",
    "SELECT {ward}, MEDIAN({stay}), COUNT(DISTINCT {visit}) FROM {visits} GROUP BY {ward}",
    "SELECT SUM(l.{price}), COUNT(*) FROM {lines} l",
    "SELECT v.{ward}, SUM(l.{price}) FROM {visits} v JOIN {lines} l USING ({person}) GROUP BY v.{ward}",
    "SELECT COUNT(*), SUM(n) FROM (SELECT {stay} AS n FROM {visits} UNION ALL SELECT {price} FROM {lines})",
)
STATISTICS = (
    "SELECT {ward}, MODE({stay}) FROM {visits} GROUP BY {ward}",
    "SELECT TRIANGLES() FROM {links}",
)
ABOUT_UNITS = (  # rows made for each person, chosen by other rows of it, and by public ones
    "SELECT AVG(n) FROM (SELECT {person}, COUNT(*) AS n, MAX({stay}) AS s FROM {visits} GROUP BY {person}) WHERE s > 3",
    "SELECT COUNT(*) FROM {visits} v WHERE EXISTS"
    " (SELECT 1 FROM {lines} l WHERE l.{person} = v.{person} AND l.{price} > v.{stay})",
    "SELECT COUNT(*) FROM {visits} WHERE {ward} IN (SELECT {place} FROM {wards} WHERE {floor} > 1)",
    "SELECT COUNT(*) FROM {visits} v WHERE 3 < (SELECT COUNT(*) FROM {lines} l WHERE l.{person} = v.{person})",
)
HEAVY = 99
BUDGET = "version = 1\n[budget]\nepsilon = 900\ndelta = 1e-6\n"
NAMED = (  # all places where a policy names something of the database
    "[tables.NAME]\nunit = 'x'\n",
    "[tables.t]\nunit = 'NAME'\n",
    "[tables.t]\nunit = {column = 'NAME'}\n",
    "[tables.t]\nunit = 'x'\ncolumns.NAME = {type = 'text'}\n",
    "[tables.t]\npublic = true\ncolumns.NAME = {low = 0, high = 1}\n",
    "[tables.t]\nunit = 'v.x'\nkey = 'NAME'\n[tables.v]\nunit = 'x'\n",
    "[tables.t]\nunit = 'v.x'\nkey = 'k'\nparent_key = 'NAME'\n[tables.v]\nunit = 'x'\n",
)


def quoted(names, mark='"'):
    """SQL identifiers."""
    return {role: mark + name.replace(mark, mark * 2) + mark for role, name in names.items()}


def in_toml(names):
    return {role: '"' + name.replace('"', '\\"') + '"' for role, name in names.items()}


def rules(names):
    return Policy.read(POLICY.format(**in_toml(names)))


TABLES = {
    "visits": "{person} INTEGER, {ward} TEXT, {stay} INTEGER, {visit} INTEGER",
    "wards": "{place} TEXT, {floor} INTEGER",
    "lines": "{visit} INTEGER, {price} INTEGER",
    "links": "{here} INTEGER, {to} INTEGER",
}


def filled(names, heavy, more=()):
    """Statements that make the tables; each has `more` columns that the policy does not know. HEAVY has many rows."""
    visits = [(p, "abc"[p % 3], 5 * p + i, 10 * p + i) for p in range(1, 6) for i in range(1 + p % 2)]
    visits += [(HEAVY, "abc"[i % 3], i, 10 * HEAVY + i) for i in range(20 * heavy)]
    rows = {
        "visits": visits,
        "wards": [(w, f) for w in "ab" for f in (3, 1, 2, 1) for _ in range(20)],  # different rows of one, each often
        "lines": [(visit, (visit + i) % 9) for *_, visit in visits for i in range(2)],
        "links": [(1, 2), (2, 3), (3, 1), (3, 4), (2, 1)],
    }
    also = "".join(f', "{name}" INTEGER DEFAULT 1' for name in more)
    for table, columns in TABLES.items():
        listed = columns.replace(" INTEGER", "").replace(" TEXT", "")
        yield f"CREATE TABLE {{{table}}} ({columns}{also})".format(**quoted(names))
        yield f"INSERT INTO {{{table}}} ({listed}) VALUES ".format(**quoted(names)) + ", ".join(map(str, rows[table]))


def database(names, heavy=False, more=()):
    connection = duckdb.connect(config={"threads": 1})
    for statement in filled(names, heavy, more):
        connection.execute(statement)
    return connection


def exactly(run, names, questions, dialect):
    """All exact tables, whatever the order of rows and columns, which hangs on names."""
    policy, found = rules(names), []
    for question in questions:
        offer = offer_for_epsilon(parse_question(question.format(**quoted(names)), policy), 1.0, 1e-9, Mu)
        found += [run(wanted.direct) for wanted in table_requests(offer, 12345, dialect)]
    for table in tables_to_sketch(policy) if dialect == "duckdb" else ():
        found += [run(sql) for sql in Sketch(table, Mu.for_epsilon(1.0, 1e-9, 0.0)).statements(dialect)]
    return sorted(sorted(sorted(map(repr, row)) for row in rows) for rows in found)


def renamed(names, step):
    """All roles named after these; with step 1, each name is once in each role."""
    for start in range(0, len(names), step):
        chosen = dict(zip(ROLES, itertools.islice(itertools.cycle(names), start, start + len(ROLES)), strict=True))
        yield {role: name if name != "edge" else "side" for role, name in chosen.items()}


PLAIN = dict(zip(ROLES, ROLES, strict=True))


@cache
def ours():
    """Every name that statements give now, with all dialects."""
    found = (node for _, tree in parsed() for node in tree.find_all(exp.Identifier))
    return sorted({node.name for node in found if not node.quoted and not in_our_catalog(node)})


def in_our_catalog(node):
    """Is it the name of a table in a database of ours, which the owner has no part in?"""
    return isinstance(node.parent, exp.Table) and node.parent.catalog == CATALOG


@cache
def parsed():
    """(dialect, statement) of questions of every kind."""
    policy, found = rules(PLAIN), []
    alone = Policy.read(POLICY.format(**in_toml(PLAIN)).replace('unit = {column = "person"}\ngroups = 2\nrows = 3',
                        'unit = "row"').split('[tables."lines"]')[0])  # fmt: skip
    for name in DIALECTS:
        asked = [
            (one, policy)
            for one in (*QUESTIONS, *ABOUT_UNITS, *STATISTICS, "SELECT TRIMMED_MEAN({stay}, 0.2) FROM {visits}")
        ]
        asked += [(one, alone) for one in (*QUESTIONS[:2], "SELECT MEDIAN({stay}) FROM {visits}")]
        asked += [("SELECT {ward} || 'x', COUNT(*) FROM {visits} WHERE {stay} / 2 > MOD({stay}, 3) GROUP BY 1", policy)]
        for question, stated in asked:
            offer = offer_for_epsilon(parse_question(question.format(**quoted(PLAIN)), stated), 1.0, 1e-9, Mu)
            try:
                dialect_of(name).accepts(offer.plan)
            except QueryRefused:
                continue
            for wanted in table_requests(offer, 12345, name):
                found += [wanted.direct, *([wanted.read] if wanted.read else [])]
                if wanted.quick is not None:
                    found += [wanted.quick.texts.quantile_statement([0.5]), wanted.quick.texts.between(1.0, 2.0)]
        for table in tables_to_sketch(policy):
            if not table.edges or name == "duckdb":
                found += Sketch(table, Mu.for_epsilon(1.0, 1e-9, 0.0)).statements(name)
        found += of_days(name)
        found = [(name, one) if isinstance(one, str) else one for one in found]
    return [(dialect, sqlglot.parse_one(sql, read=dialect)) for dialect, sql in found]


def of_days(dialect):
    """Statements of a view that lasts, of questions that read it, of one without bounds, and of EVERY DAY."""
    policy = Policy.read(
        BUDGET
        + """
[tables.visits]
unit = "person"
[tables.visits.columns]
ward = {type = "text"}
stay = {low = 0, high = 60, step = 1}
visit = {type = "date"}
"""
    )
    schema = {"visits": {"person": "INTEGER", "ward": "VARCHAR", "stay": "INTEGER", "visit": "DATE"}}
    to = replace(DIALECTS[dialect], schema=schema if dialect == "duckdb" else {})
    sql = "SELECT ward, COUNT(*), SUM(stay) FROM visits GROUP BY ward"
    offer = offer_for_epsilon(parse_question(sql, policy), 1.0, 1e-9, Mu)
    norms = NoisyNorms((0,) * len(EDGES), 1.0)
    offer = replace(offer, choices=tuple(Choice(block, block.bound(2.5), norms) for block in offer.blocks))
    plan = parse_question("SELECT COUNT(*) FROM visits", policy).plan
    yield Schedule(plan, EveryDay("visit", date(2024, 1, 1), 9), 2, offer.price).statement(9, to)
    if dialect == "duckdb":
        view = statements_of(policy, StoredView("v0", sql, "visit"), to)
        yield from (view.digests, view.sums)
        yield from statements(offer, 7, replace(to, lasting=(view.description,)))
    yield from statements(offer, 7, to)


def test_every_name_that_is_emitted_is_one_that_no_policy_has():
    seen = set()
    for dialect, tree in parsed():
        seen.add(dialect)
        for node in tree.find_all(exp.Identifier):
            known = node.name in (*ROLES, "edge", "binary", "C")
            assert in_our_catalog(node) or is_reserved(node.name) or (node.quoted and known), (dialect, node.name)
    assert seen == {*DIALECTS}
    assert len(ours()) > 30
    for name in ours():
        for text in NAMED:
            with pytest.raises(PolicyError, match="are our own"):
                Policy.read(BUDGET + text.replace("NAME", name if "column" in text else name.upper()))


def test_every_column_is_named_with_its_table():
    """Also where a database has columns of our names that its policy does not know. What a sub-select or a lambda calls
    a value is found there first, as there is nothing else in it."""
    for dialect, tree in parsed():
        for node in tree.find_all(exp.Column):
            inside = dialect != "duckdb" and node.name.removeprefix(PREFIX) in (*"abdefhikmnpstvwxyz", "bits")
            inside = inside or node.find_ancestor(exp.Hint) is not None  # a hint knows columns of its own SELECT alone
            assert node.table or inside or isinstance(node.this, exp.Star), (dialect, node.sql(dialect))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "odd"])
def test_names_of_the_owner_change_nothing(kind):
    asked, plain = (*QUESTIONS, *STATISTICS), database(PLAIN)
    wanted = exactly(lambda sql: plain.execute(sql).fetchall(), PLAIN, asked, "duckdb")
    for names in renamed(BEFORE if kind == "before" else ODD, 4):
        here = database(names, more=[one for one in (*ours(), *BEFORE) if one not in names.values()])
        found = exactly(lambda sql, to=here: to.execute(sql).fetchall(), names, asked, "duckdb")
        assert found == wanted, names


def test_nobody_moves_more_than_the_bounds_whatever_things_are_called():
    changes = 0
    for names in renamed([*BEFORE, *ODD], 13):
        more = [one for one in (*ours(), *BEFORE) if one not in names.values()]
        one, other = (database(names, heavy, more) for heavy in (True, False))
        changes += sum(moved(q.format(**quoted(names)), rules(names), one, other) for q in QUESTIONS)
    assert changes > 20


def test_names_of_the_owner_change_nothing_in_postgres(server):
    import psycopg

    def run(names, more):
        with psycopg.connect(server.dsn) as connection:
            for statement in filled(names, False, more):
                connection.execute(statement)
            found = exactly(lambda sql: connection.execute(sql.encode()).fetchall(), names, QUESTIONS, "postgres")
            connection.rollback()
            return found

    wanted = run(PLAIN, ())
    for names in renamed([*BEFORE, *ODD], 9):
        assert run(names, [one for one in (*ours(), *BEFORE) if one not in names.values()]) == wanted, names


def opened(tmp_path, name, statements, policy):
    place = tmp_path / f"{name}.duckdb"
    with duckdb.connect(str(place)) as connection:
        for statement in statements:
            connection.execute(statement)
    return Curator.open(place, Policy.read(BUDGET + policy))


def test_a_public_table_with_a_column_i_lets_nobody_count_more_than_once(tmp_path):
    policy = """
[tables.visits]
unit = "row"
[tables.visits.columns]
name = {type = "text"}
[tables.friends]
public = true
[tables.friends.columns]
name = {type = "text"}
i = {type = "number"}
n = {type = "number"}
"""
    found = []
    for who in ("bob", "ann"):
        curator = opened(tmp_path, who, [
            f"CREATE TABLE visits AS SELECT CASE range WHEN 0 THEN '{who}' ELSE 'bob' END AS name FROM range(50)",
            "CREATE TABLE friends AS SELECT 'ann' AS name, 1 AS i, range AS n FROM range(10000)",
        ], policy)  # fmt: skip
        found.append(curator.ask("SELECT COUNT(*) AS n FROM visits JOIN friends USING (name)", epsilon=100.0))
    assert [round(answer.column("n")[0]) for answer in found] == [0, 1]


def test_a_private_table_with_a_column_i_is_joined_with_all_its_people(tmp_path):
    policy = """
[tables.people]
unit = "person"
[tables.people.columns]
i = {type = "number"}
[tables.visits]
unit = "person"
rows = 2
[tables.visits.columns]
i = {low = 0, high = 100, step = 1}
"""
    curator = opened(tmp_path, "both", [
        "CREATE TABLE people AS SELECT range AS person, range + 7 AS i FROM range(500)",
        "CREATE TABLE visits AS SELECT range AS person, 50 AS i FROM range(500)",
    ], policy)  # fmt: skip
    answer = curator.ask("SELECT COUNT(*) AS n, SUM(v.i) AS s FROM people JOIN visits v USING (person)", epsilon=200.0)
    assert abs(answer.column("n")[0] - 500) < 5
    assert abs(answer.column("s")[0] - 25_000) < 250


@pytest.mark.parametrize("macro", ["hash(a) AS 7", "least(a, b) AS 10000", "count(a) AS 5", '"+"(a, b) AS 3'])
def test_a_macro_with_the_name_of_a_function_is_refused_before_the_charge(macro, tmp_path):
    policy = "[tables.t]\nunit = 'x'\ncolumns.y = {low = 0, high = 1}\n"
    made = ["CREATE TABLE t AS SELECT range AS x, 1 AS y FROM range(9)", "CREATE MACRO ours(a) AS a + 1"]
    assert opened(tmp_path, "plain", made, policy).ask("SELECT SUM(y) FROM t", epsilon=10.0).charged
    with pytest.raises(PolicyError, match="macros named like DuckDB's own functions"):
        curator = opened(tmp_path, "odd", [*made, f"CREATE MACRO {macro}"], policy)
        curator.ask("SELECT SUM(y) FROM t", epsilon=10.0)
    assert len(list(tmp_path.glob("odd.duckdb.ledger"))) <= 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tables.t]\nunit = 'x'\ncolumns.Age = {type = 'text'}\ncolumns.age = {type = 'text'}", "'age' twice"),
        ("[tables.T]\nunit = 'x'\n[tables.t]\nunit = 'x'", "'t' twice"),
        ("[tables.t]\nunit = 'x'\ncolumns.\"Ärzte\" = {type = 'text'}", "do not fold"),
        ("[tables.\"É\"]\nunit = 'x'", "do not fold"),
        ("[tables.t]\nunit = 'x'\ncolumns.\"\" = {type = 'text'}", "the name ''"),
        (f"[tables.t]\nunit = 'x'\ncolumns.c{'0f' * 16}x = {{type = 'text'}}", "are our own"),
    ],
)
def test_names_that_an_engine_takes_for_others_are_refused(text, words):
    with pytest.raises(PolicyError, match=words):
        Policy.read(f"{BUDGET}{text}\n")


def test_a_draft_leaves_out_what_a_policy_cannot_name(tmp_path):
    place = tmp_path / "t.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute('CREATE TABLE t AS SELECT 1 AS patient_id, 2 AS "Ärzte", 3 AS "_SF_unit", 4 AS "Größe"')
    found = schema(place)
    assert set(found["t"]) == {"patient_id", "Ärzte", "_sf_unit", "größe"}
    drafted_policy = Policy.read(draft_policy(found, "t.duckdb"))
    assert set(drafted_policy.tables["t"].columns) == {"patient_id", "größe"}
    assert not misfits(drafted_policy, found)
