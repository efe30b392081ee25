"""What can be known before the charge: policy and schema, and whether the engine can run the statements."""

from dataclasses import dataclass, field, replace

import duckdb
import pytest

from sfumato.curator import Curator
from sfumato.curator.precheck import UNAVAILABLE
from sfumato.curator.release import table_requests
from sfumato.engines import duckdb as engine_module
from sfumato.engines.duckdb import DuckDB, require_version
from sfumato.errors import AnswerFailed, EngineUnavailable, PolicyError
from sfumato.ledger import Budget, Ledger
from sfumato.sql.domains import Kind
from sfumato.sql.policy import Policy
from sfumato.sql.policy_draft import draft_policy
from sfumato.sql.schema_check import misfits, require_fit, type_fits
from tests.curator.clinic import POLICY, built
from tests.curator.questions import dialect_in_use
from tests.curator.wrapped import Wrapped

RULES = Policy.read(POLICY)
COUNT = "SELECT COUNT(*) AS n FROM visits"
AVERAGE = "SELECT ward, AVG(stay) FROM visits GROUP BY ward"
SMALL = """
version = 1
[budget]
epsilon = 1.0
delta = 1e-6
[tables.visits]
unit = "row"
columns.stay = {low = 0, high = 60}
"""


def charges(curator):
    return [entry.content["kind"] for entry in curator.ledger.history()].count("charged")


def made(place, sql):
    with duckdb.connect(str(place)) as connection:
        connection.execute(sql)
    return place


def table_in(place, name, columns):
    """One table in a database, or in a file of its own."""
    if place.suffix == ".duckdb":
        return made(place, f"CREATE TABLE {name} AS SELECT {columns} FROM range(10)")
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns} FROM range(10)) TO '{place}'")
    return place


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb"), RULES)


# ---- names and types ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "kinds"),
    [
        ("VARCHAR", {Kind.TEXT}), ("character varying", {Kind.TEXT}), ("point", {Kind.TEXT}), ("other", {Kind.TEXT}),
        ("BIGINT", {Kind.NUMBER, Kind.TRUTH, Kind.TEXT}), ("double precision", {Kind.NUMBER, Kind.TRUTH, Kind.TEXT}),
        ("DECIMAL(10,2)", {Kind.NUMBER, Kind.TRUTH, Kind.TEXT}), ("UHUGEINT", {Kind.NUMBER, Kind.TRUTH, Kind.TEXT}),
        ("domain over integer", {Kind.NUMBER, Kind.TRUTH, Kind.TEXT}), ("domain over text", {Kind.TEXT}),
        ("BOOLEAN", {Kind.TRUTH, Kind.NUMBER, Kind.TEXT}), ("TIMESTAMP_NS", {Kind.DATE, Kind.TEXT}),
        ("timestamp without time zone", {Kind.DATE, Kind.TEXT}), ("time without time zone", {Kind.TEXT}),
        ("INTEGER[]", set()), ("DECIMAL(10,2)[]", set()), ("integer[]", set()), ("STRUCT(a INTEGER)", set()),
        ("BLOB", set()), ("interval", set()),
    ],
)  # fmt: skip
def test_a_type_fits_the_kinds_that_all_its_values_are_of(type_, kinds):
    assert {kind for kind in Kind if type_fits(type_, kind)} == kinds


VALUES = {"TEXT": "'x'", "BOOLEAN": "true", "DATE": "'2024-02-29'", "TIMESTAMPTZ": "'2024-02-29'", "HUGEINT": "7",
          "FLOAT": "7", "DECIMAL(18,3)": "7"}  # fmt: skip
CASTS = {Kind.NUMBER: "DOUBLE", Kind.TRUTH: "BOOLEAN", Kind.DATE: "TIMESTAMP", Kind.TEXT: "TEXT"}


@pytest.mark.parametrize("type_", VALUES)
def test_a_type_that_fits_a_kind_loses_no_value(type_):
    """What DuckDB makes of these values, as the kind that the policy says, is no NULL."""
    value = f"CAST({VALUES[type_]} AS {type_})"
    with duckdb.connect() as connection:
        (name,) = connection.execute(f"SELECT typeof({value})").fetchone()
        fitting = [cast for kind, cast in CASTS.items() if type_fits(name, kind)]
        assert fitting
        for cast in fitting:
            assert connection.execute(f"SELECT TRY_CAST({value} AS {cast}) IS NULL").fetchone() == (False,)


@pytest.mark.parametrize(
    ("name", "column", "words"),
    [
        ("visits", "'3' AS stay", r"visits\.stay is VARCHAR in the database; the policy gives it a range \(number\)"),
        ("visits", "[3] AS stay", r"visits\.stay is INTEGER\[\] in the database"),
        ("visits", "DATE '2024-01-01' AS stay", r"visits\.stay is DATE in the database"),
        ("visits", "3 AS stays", r"visits\.stay: there is no such column"),
        ("visit", "3 AS stay", r"visits: there is no such table; there are visit"),
    ],
)
@pytest.mark.parametrize("suffix", ["duckdb", "parquet"])
def test_a_policy_that_does_not_fit_is_refused_when_a_curator_is_opened(name, column, words, suffix, tmp_path):
    place = table_in(tmp_path / f"{name}.{suffix}", name, column)
    with pytest.raises(PolicyError, match=words):
        Curator.open(place, Policy.read(SMALL), ledger=tmp_path / "book")
    assert not (tmp_path / "book").exists()


def test_a_view_with_the_types_of_the_policy_is_asked_like_a_table(tmp_path):
    place = made(tmp_path / "t.duckdb", "CREATE TABLE raw AS SELECT '3' AS stay FROM range(900);"
                 "CREATE VIEW visits AS SELECT TRY_CAST(stay AS DOUBLE) AS stay FROM raw")  # fmt: skip
    assert Curator.open(place, Policy.read(SMALL)).ask("SELECT AVG(stay) AS m FROM visits", epsilon=0.9).charged


def test_columns_of_csv_are_texts_and_may_stand_for_anything(tmp_path):
    (tmp_path / "visits.csv").write_text("stay\n" + "3\n" * 900)
    curator = Curator.open(tmp_path / "visits.csv", Policy.read(SMALL))
    assert 2 < curator.ask("SELECT AVG(stay) AS m FROM visits", epsilon=0.9).column("m")[0] < 4


def test_keys_to_other_tables_are_columns_too():
    text = SMALL + '[tables.pets]\nunit = "people.person"\nkey = "owner"\nparent_key = "id"\n'
    text += '[tables.people]\nunit = "person"\n'
    schema = {"visits": {"stay": "DOUBLE"}, "pets": {"owner": "INTEGER"}, "people": {"id": "INTEGER", "person": "UUID"}}
    policy = Policy.read(text)
    assert misfits(policy, schema) == []
    assert "its key, owner, is not a column" in misfits(policy, schema | {"pets": {"a": "INTEGER"}})[0]
    alone = misfits(policy, schema | {"people": {"person": "UUID"}})
    assert alone == ["pets: its parent_key, id, is not a column of people"]
    assert "its unit, person, is not a column" in misfits(policy, schema | {"people": {"id": "UUID"}})[0]


def test_a_message_lists_a_few_misfits_and_says_how_many_more():
    columns = "".join(f"columns.c{i} = {{type = 'text'}}\n" for i in range(9))
    with pytest.raises(PolicyError, match="and 4 more"):
        require_fit(Policy.read(SMALL + columns), {"visits": {"stay": "DOUBLE"}})


def test_nobody_asks_under_a_draft(tmp_path):
    place = made(tmp_path / "t.duckdb", "CREATE TABLE visits AS SELECT 1 AS patient_id, 3.0 AS stay")
    text = draft_policy(DuckDB(place).schema(), "t.duckdb")
    with pytest.raises(PolicyError, match="draft = true"):
        Curator.open(place, Policy.read(text), ledger=tmp_path / "book")
    assert not (tmp_path / "book").exists()
    finished = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("draft"))
    assert Curator.open(place, Policy.read(finished)).preview(COUNT, epsilon=0.1)


@pytest.mark.parametrize("found", ["1.4.5", "1.5.6", "3.0.0", "2", ""])
def test_a_version_of_duckdb_that_was_not_tested_is_refused(found, monkeypatch, tmp_path):
    place = built(tmp_path / "clinic.duckdb")
    monkeypatch.setattr(engine_module.duckdb, "__version__", found)
    with pytest.raises(EngineUnavailable, match="version of DuckDB"):
        Curator.open(place, RULES)
    assert not (tmp_path / "clinic.duckdb.ledger").exists()


def test_versions_in_between_are_taken():
    for found in ("2.0.0", "2.0.11", "2.10.0", "2.1.0.dev7"):
        require_version(found)


# ---- before each charge ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["duckdb", "parquet", "csv"])
def test_a_file_that_is_gone_is_no_reason_to_charge(suffix, tmp_path):
    place = table_in(tmp_path / f"visits.{suffix}", "visits", "3.0 AS stay")
    curator = Curator.open(place, Policy.read(SMALL))
    curator.engine.close()
    place.unlink()
    with pytest.raises(EngineUnavailable) as problem:
        curator.ask(COUNT, epsilon=0.5)
    assert str(problem.value) == UNAVAILABLE
    assert charges(curator) == 0
    with pytest.raises(PolicyError, match="there is no database"):
        Curator.open(place, Policy.read(SMALL))


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE visits RENAME stay TO days", "ALTER TABLE visits DROP stay", "DROP TABLE visits",
        "ALTER TABLE visits ALTER stay TYPE VARCHAR", "ALTER TABLE visits RENAME patient_id TO person",
    ],
)  # fmt: skip
def test_a_schema_that_has_changed_is_no_reason_to_charge(sql, curator):
    curator.engine.close()
    made(curator.engine.path, sql)
    with pytest.raises(PolicyError, match="does not fit"):
        curator.ask(COUNT, epsilon=0.5)
    with pytest.raises(PolicyError, match="does not fit"):
        curator.register(epsilon=0.5)
    assert charges(curator) == 0


def test_a_type_that_has_changed_and_fits_is_asked_as_what_it_is_now(curator):
    assert curator.ask(AVERAGE, epsilon=0.5).charged
    for type_ in ("INTEGER", "DECIMAL(10,2)", "DOUBLE"):
        curator.engine.close()
        made(curator.engine.path, f"ALTER TABLE visits ALTER cost TYPE {type_}")
        assert curator.ask(f"SELECT AVG(cost) FROM visits WHERE ward <> '{type_}'", epsilon=0.5).charged


@dataclass
class WithoutFunctions(Wrapped):
    """An engine of an older version: it does not know what statements call."""

    missing: str = "SUM("
    asked: list[str] = field(default_factory=list)

    def check(self, sql):
        self.inner.check(sql.replace(self.missing, "NO_SUCH_FUNCTION("))

    def run(self, sql):
        self.asked.append(sql)
        return self.inner.run(sql)


def test_a_function_that_the_engine_does_not_know_is_no_reason_to_charge(curator, caplog):
    old = WithoutFunctions(curator.engine)
    with pytest.raises(EngineUnavailable) as problem:
        replace(curator, engine=old).ask(AVERAGE, epsilon=0.5, key="k")
    assert str(problem.value) == UNAVAILABLE
    assert problem.value.__cause__ is None and "NO_SUCH_FUNCTION" not in str(problem.value)
    assert "no_such_function" in caplog.text.lower()  # for the operator
    assert charges(curator) == 0 and old.asked == []
    assert curator.ask(AVERAGE, epsilon=0.5, key="k").charged  # with the same key, when it is mended


@dataclass
class Scripted(Wrapped):
    """An engine that fails at one step."""

    step: str = ""

    def __getattribute__(self, name):
        if name == object.__getattribute__(self, "step"):
            raise RuntimeError("a secret value: 42")
        return super().__getattribute__(name)


@pytest.mark.parametrize("step", ["check", "schema", "snapshot"])
def test_an_engine_that_does_not_answer_is_no_reason_to_charge(step, curator):
    with pytest.raises(EngineUnavailable) as problem:
        replace(curator, engine=Scripted(curator.engine, step)).ask(COUNT, epsilon=0.5)
    assert str(problem.value) == UNAVAILABLE
    assert charges(curator) == 0


def test_what_fails_after_the_check_stays_charged(curator):
    with pytest.raises(AnswerFailed):
        replace(curator, engine=Scripted(curator.engine, "run")).ask(COUNT, epsilon=0.5)
    assert charges(curator) == 1


def test_an_engine_that_cannot_say_its_schema_is_not_opened(curator, tmp_path):
    with pytest.raises(EngineUnavailable, match="cannot be opened") as problem:
        Curator.open(Scripted(curator.engine, "schema"), RULES, ledger=tmp_path / "book")
    assert "42" not in str(problem.value)
    assert not (tmp_path / "book").exists()


def test_what_is_in_store_needs_no_engine(curator):
    first = curator.ask(COUNT, epsilon=0.5)
    again = replace(curator, engine=Scripted(curator.engine, "check")).ask(COUNT, epsilon=0.5)
    assert again.rows == first.rows and not again.charged


@pytest.mark.parametrize("values", ["'NaN'", "1e308", "NULL", "0"])
def test_the_check_binds_and_does_not_run(values, tmp_path):
    """A statement that would raise on these rows passes: whether it is charged for depends on no value."""
    place = made(tmp_path / "t.duckdb", f"CREATE TABLE visits AS SELECT CAST({values} AS DOUBLE) AS stay FROM range(9)")
    engine = DuckDB(place)
    engine.check("SELECT CAST(stay AS UTINYINT) + error('run') FROM visits")
    engine.check("WITH a AS MATERIALIZED (SELECT error('run') AS x FROM visits) SELECT SUM(x::INTEGER) FROM a")
    engine.close()


def test_the_statements_that_are_checked_are_those_that_are_run(curator):
    asked = []

    class Seen(Wrapped):
        def check(self, sql):
            asked.append(sql)
            super().check(sql)

    for sql in (COUNT, AVERAGE, "SELECT COUNT(DISTINCT diagnosis), MEDIAN(stay) FROM visits"):
        asked.clear()
        seen = replace(curator, engine=Seen(curator.engine))
        seen.ask(sql, epsilon=0.3)
        assert [
            w.direct for w in table_requests(curator.offer(sql, 0.3, None), 1, dialect_in_use(curator.engine))
        ] == asked[1:]
    asked.clear()
    seen.register(epsilon=0.3)
    assert len(asked) > 2


# ---- PostgreSQL -----------------------------------------------------------------------------------------------------


def opened(server, tmp_path):
    """A curator of a table of its own, and a connection that changes it."""
    import psycopg

    connection = psycopg.connect(server.dsn, autocommit=True)
    connection.execute("DROP TABLE IF EXISTS visits CASCADE")
    connection.execute("CREATE TABLE visits AS SELECT 3.0::double precision AS stay FROM generate_series(1, 900)")
    address = f"postgresql://sfumato@/postgres?host={server.folder}"
    book = Ledger.create(tmp_path / "b", Budget(1.0, 1e-6))
    return address, Curator.open(address, Policy.read(SMALL), ledger=book), connection


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE visits RENAME stay TO days", "DROP TABLE visits", "ALTER TABLE visits ALTER stay TYPE text",
        'ALTER TABLE visits RENAME TO "Visits"',
        "CREATE DOMAIN words AS text; ALTER TABLE visits ALTER stay TYPE words",
    ],
)  # fmt: skip
def test_a_change_in_postgres_is_no_reason_to_charge(sql, server, tmp_path):
    address, curator, connection = opened(server, tmp_path)
    with connection:
        connection.execute(sql)
        with pytest.raises(PolicyError, match="does not fit"):
            curator.ask(COUNT, epsilon=0.5)
        with pytest.raises(PolicyError, match="does not fit"):
            Curator.open(address, Policy.read(SMALL), ledger=tmp_path / "c")
        connection.execute('DROP DOMAIN IF EXISTS words CASCADE; DROP TABLE IF EXISTS "Visits"')
    assert charges(curator) == 0


def test_rights_that_a_role_lacks_are_no_reason_to_charge(server, tmp_path):
    _, curator, connection = opened(server, tmp_path)
    with connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN; GRANT SELECT ON visits TO reader")
        address = f"postgresql://reader@/postgres?host={server.folder}"
        curator = Curator.open(address, Policy.read(SMALL), ledger=curator.ledger)
        connection.execute("REVOKE SELECT ON visits FROM reader")
        with pytest.raises(PolicyError, match="no such table"):
            curator.ask(COUNT, epsilon=0.2)
        connection.execute("GRANT SELECT ON visits TO reader; ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
        with pytest.raises(EngineUnavailable):
            curator.ask(COUNT, epsilon=0.2)
        assert charges(curator) == 0
        connection.execute("ALTER TABLE visits DISABLE ROW LEVEL SECURITY")
        assert curator.ask(COUNT, epsilon=0.2).charged
        connection.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_domain_fits_as_what_it_is_made_of(server, tmp_path):
    _, curator, connection = opened(server, tmp_path)
    with connection:
        connection.execute("CREATE DOMAIN days AS double precision; ALTER TABLE visits ALTER stay TYPE days")
        assert curator.engine.schema()["visits"] == {"stay": "domain over double precision"}
        assert 2 < curator.ask("SELECT AVG(stay) AS m FROM visits", epsilon=0.9).column("m")[0] < 4
        connection.execute("DROP DOMAIN days CASCADE")


def test_a_server_that_is_down_is_no_reason_to_charge(server, tmp_path):
    address, curator, connection = opened(server, tmp_path)
    connection.close()
    server.control("-m", "fast", "stop")
    try:
        with pytest.raises(EngineUnavailable) as problem:
            curator.ask(COUNT, epsilon=0.5)
        assert str(problem.value) == UNAVAILABLE
        with pytest.raises(EngineUnavailable, match="cannot be opened"):
            Curator.open(address, Policy.read(SMALL), ledger=tmp_path / "c")
        assert not (tmp_path / "c").exists()
        assert charges(curator) == 0
    finally:
        server.start()
    assert curator.ask(COUNT, epsilon=0.5).charged
