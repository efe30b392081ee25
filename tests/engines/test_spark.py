"""The engine on Spark: its settings, its files, its silence, and how it stops. Most of what it means is asked in
test_conformance.py (`make test-spark`); here is as much of it as `make test` has time for."""

import os
import signal
import threading
import time

import duckdb
import pytest

from sfumato import Curator
from sfumato.curator.open import open_engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.spark import Spark
from sfumato.engines.spark_files import DataChanged, Files, plain_path, tables_in
from sfumato.engines.spark_session import StatementFailed, is_session
from sfumato.errors import AnswerFailed, PolicyError
from sfumato.ledger import Budget, Ledger
from sfumato.sql.policy import Limits, Policy
from tests.curator import clinic, odd
from tests.engines.spark import require_spark, started, written
from tests.engines.test_conformance import exact

pytestmark = pytest.mark.slow
LONG = "SELECT java_method('java.lang.Thread', 'sleep', 100000L + id) FROM RANGE(2)"  # long, and idle
COUNTED = "SELECT COUNT(*) FROM `visits`"
FORMS = [("texts", "CAST(s AS DATE)"), ("dates", "CAST(e AS TEXT)")]
POLICY = clinic.POLICY.replace("groups = 2\nrows = 3\n", "")


@pytest.fixture(scope="module")
def spark():
    require_spark()
    return started()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    found = clinic.built(tmp_path_factory.mktemp("spark") / "clinic.duckdb")
    with duckdb.connect(str(found)) as connection:
        odd.filled(connection.execute, "duckdb", odd.TABLES)
    return found


@pytest.fixture(scope="module")
def lake(place):
    return written(place, place.parent / "lake")


@pytest.fixture(scope="module")
def engine(spark, lake):
    found = Spark(spark[1], str(lake), timeout=300)
    yield found
    found.close()


@pytest.fixture
def own(spark, place, tmp_path):
    """A folder of its own, to be changed."""
    return Spark(spark[1], str(written(place, tmp_path / "own lake")), timeout=300)


# ---- meaning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "form"), FORMS)
def test_an_expression_means_on_spark_what_it_means_at_home(source, form, place, spark, lake):
    home, away = DuckDB(place), Spark(spark[0], str(lake))
    sql = f"SELECT {form}, COUNT(*) FROM {source} GROUP BY 1"
    with away.snapshot():
        assert exact(away, sql, schema=away.schema()) == exact(home, sql)
    home.close()


def test_a_question_is_answered_and_asked_again_of_kept_tables(engine, place, tmp_path):
    policy = Policy.read(POLICY.replace("epsilon = 8.0", "epsilon = 900"))
    sql = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"
    found = {}
    for name, data in (("home", DuckDB(place)), ("away", engine)):
        curator = Curator.open(data, policy, ledger=Ledger.create(tmp_path / f"{name}.ledger", Budget(900.0, 1e-6)))
        found[name] = [curator.ask(sql, epsilon=epsilon) for epsilon in (300, 400)]
        curator.bounded_tables.clear()
        data.close()
    for first, second in zip(found["home"], found["away"], strict=True):
        assert len(first.rows) == len(second.rows) == 3
        for mine, theirs in zip(first.rows, second.rows, strict=True):
            assert mine[0] == theirs[0]
            assert mine[1] == pytest.approx(theirs[1], abs=3) and mine[2] == pytest.approx(theirs[2], rel=0.05)


def test_the_schema_is_that_of_the_files(engine):
    found = engine.schema()
    assert found["visits"] == {"patient_id": "bigint", "ward": "string", "diagnosis": "string", "stay": "double",
                               "cost": "double", "day": "date"}  # fmt: skip
    assert found["dates"]["d"] == "timestamp_ntz"
    engine.check(COUNTED)
    with pytest.raises(StatementFailed, match="UNRESOLVED_COLUMN"):
        engine.check("SELECT nothing_like_it FROM `visits`")


def test_texts_of_a_question_are_not_looked_up_in_the_environment_of_the_server(engine, spark):
    text = "${env:PATH} ${spark.sql.warehouse.dir}"
    assert os.environ["PATH"] in spark[0].sql(f"SELECT '{text}'").collect()[0][0], "Spark by itself does"
    assert engine.run(f"SELECT '{text}'") == [(text,)]


def test_settings_are_those_by_which_texts_have_their_meaning(engine, spark):
    spark[0].conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(StatementFailed, match="ARITHMETIC_OVERFLOW"):
            engine.run("SELECT SUM(x) FROM VALUES (9223372036854775807L), (1L) AS t(x)")
    finally:
        spark[0].conf.unset("spark.sql.ansi.enabled")


def test_an_address_and_a_session_are_known_as_such(spark):
    assert is_session(spark[0]) and not is_session("sc://x") and not is_session(object())
    found = open_engine("sc://server:15002/;token=secret#/lake/clinic", Limits())
    assert isinstance(found, Spark) and found.place == "/lake/clinic" and found.in_folder
    assert "secret" not in repr(found)
    assert open_engine("sc://server", Limits()).place == "default"


def test_tables_of_the_catalog_are_found_by_name(spark, lake, tmp_path):
    session = spark[0]
    session.sql("CREATE DATABASE IF NOT EXISTS ward_data")
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW hidden AS SELECT * FROM parquet.`{lake}/visits.parquet`")
    session.sql(f"CREATE TABLE ward_data.visits USING parquet AS SELECT * FROM parquet.`{lake}/visits.parquet`")
    engine = Spark(spark[1], "ward_data")
    try:
        assert list(engine.schema()) == ["visits"]
        with engine.snapshot():
            [(before,)] = engine.run(COUNTED)
        assert before == duckdb.sql(f"SELECT COUNT(*) FROM '{lake}/visits.parquet'").fetchall()[0][0]
        with pytest.raises(DataChanged), engine.snapshot():
            engine.run(COUNTED)
            session.sql("INSERT INTO ward_data.visits SELECT * FROM ward_data.visits LIMIT 1")
        assert engine.run(COUNTED) == [(before + 1,)]
    finally:
        session.sql("DROP DATABASE ward_data CASCADE")
        engine.close()


# ---- one moment -----------------------------------------------------------------------------------------------------


def replaced(path, rows):
    duckdb.sql(f"COPY (SELECT * FROM '{path}' LIMIT {rows}) TO '{path}.new' (FORMAT parquet)")
    os.replace(f"{path}.new", path)


def test_a_file_that_is_replaced_while_it_is_read_gives_no_answer(own):
    path = f"{own.place}/visits.parquet"
    with pytest.raises(DataChanged), own.snapshot():
        own.run(COUNTED)
        replaced(path, 10)
        own.run("SELECT COUNT(*), MAX(cost) FROM `visits`")
    assert own.run(COUNTED) == [(10,)], "the next question reads the new file"
    with pytest.raises((DataChanged, StatementFailed)), own.snapshot():
        own.run(COUNTED)
        os.remove(path)
        own.run("SELECT MIN(cost) FROM `visits`")


def test_a_file_that_is_added_is_read_by_the_next_question(spark, lake, tmp_path):
    folder = tmp_path / "lake" / "visits"
    folder.mkdir(parents=True)
    duckdb.sql(f"COPY (FROM '{lake}/visits.parquet') TO '{folder}/a b.parquet' (FORMAT parquet)")
    engine = Spark(spark[1], str(tmp_path / "lake"))
    with engine.snapshot():
        [(before,)] = engine.run(COUNTED)
        duckdb.sql(f"COPY (FROM '{lake}/visits.parquet' LIMIT 7) TO '{folder}/c.parquet' (FORMAT parquet)")
        assert engine.run(f"{COUNTED} WHERE TRUE") == [(before,)]
    assert engine.run(COUNTED) == [(before + 7,)]
    engine.close()


def test_kept_tables_are_of_the_files_that_are_there(own, tmp_path):
    """A kept table of files that were replaced is made again; a question that fell between two states has no answer."""
    policy = Policy.read(POLICY.replace("epsilon = 8.0", "epsilon = 900"))
    curator = Curator.open(own, policy, ledger=Ledger.create(tmp_path / "ledger", Budget(900.0, 1e-6)))
    sql = "SELECT COUNT(*) AS n FROM visits WHERE NOT ward = 'attic'"
    first = curator.ask(sql, epsilon=300).rows[0][0]
    replaced(f"{own.place}/visits.parquet", 12)
    second = curator.ask(sql, epsilon=400).rows[0][0]
    assert first > 50 and second < 16
    curator.bounded_tables.clear()


def test_what_another_curator_has_cached_of_files_that_are_gone_is_not_read(own, spark):
    """Spark takes two plans over one folder for the same, whatever files it held, and serves what either has cached."""
    kept, path = own.keep(COUNTED, "kept"), f"{own.place}/visits.parquet"
    replaced(path, 10)
    assert Spark(spark[1], own.place).run(COUNTED) == [(10,)]
    kept.close()
    with pytest.raises((DataChanged, StatementFailed)), own.snapshot():
        own.run("SELECT 1 FROM `visits`")
        replaced(path, 5)
        os.remove(path)
        own.keep(COUNTED, "kept")
    duckdb.sql(f"COPY (SELECT 1 AS x FROM RANGE(7)) TO '{path}' (FORMAT parquet)")
    assert own.run(COUNTED) == [(7,)]


def test_a_question_whose_files_keep_changing_fails_and_stays_charged(own, tmp_path):
    curator = Curator.open(own, Policy.read(POLICY), ledger=Ledger.create(tmp_path / "ledger", Budget(8.0, 1e-6)))
    plain, many = Spark.run, iter(range(40, 1, -1))

    def changing(self, sql):
        found = plain(self, sql)
        replaced(f"{own.place}/visits.parquet", next(many))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Spark, "run", changing)
        patch.setattr(curator.bounded_tables, "capacity", 0)
        with pytest.raises(AnswerFailed):
            curator.ask("SELECT COUNT(*) FROM visits WHERE cost > 3", epsilon=1.0)
    assert curator.budget.spent > 0


# ---- silence, and stopping ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_a_statement_that_fails_shows_no_value_anywhere(kind, spark, capfd, caplog, lake):
    engine = Spark(spark[kind == "connect"], str(lake), timeout=300)
    with caplog.at_level("INFO"), pytest.raises(StatementFailed) as found:
        engine.run("SELECT CAST(diagnosis AS INT) FROM `visits` WHERE NOT diagnosis IS NULL")
    shown = capfd.readouterr()
    assert "CAST_INVALID_INPUT" in str(found.value)
    for words in (shown.out, shown.err, caplog.text, str(found.value), repr(found.value.__context__)):
        assert "'d0'" not in words and "d1" not in words.replace(str(lake), "")


def active(session):
    return session.sparkContext.statusTracker().getActiveJobsIds()


def test_a_time_limit_ends_the_statement_in_spark(spark, lake):
    for owner in spark:
        engine = Spark(owner, str(lake), timeout=300)
        with engine.snapshot():
            engine.run("SELECT 1")
            engine.timeout = 1.0
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                engine.run(LONG)
            assert time.monotonic() - began < 60, "far less than the statement takes"
        until = time.monotonic() + 60
        while active(spark[0]) and time.monotonic() < until:
            time.sleep(0.05)
        assert not active(spark[0])
        engine.timeout = 1.0
        assert engine.run("SELECT 2") == [(2,)]


def test_ctrl_c_ends_the_statement_in_spark(spark, lake):
    engine = Spark(spark[1], str(lake), timeout=300)

    def press():
        until = time.monotonic() + 120
        while not active(spark[0]) and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(LONG)
    pressing.join()
    until = time.monotonic() + 60
    while active(spark[0]) and time.monotonic() < until:
        time.sleep(0.05)
    assert not active(spark[0])


# ---- files, without Spark -------------------------------------------------------------------------------------------


def files(*paths):
    return Files({path: (1, number) for number, path in enumerate(paths)})


def test_files_and_folders_of_parquet_are_tables():
    found = tables_in(
        "/lake", files("file:/lake/Visits.parquet", "file:/lake/w/a.parquet", "file:/lake/p/year=1/a.parquet",
                       "file:/lake/d/deep/a.parquet", "file:/lake/p/year=2/a.parquet"))  # fmt: skip
    assert {name: (one.place, one.partitioned, len(one.files.found)) for name, one in found.items()} == {
        "visits": ("file:/lake/Visits.parquet", False, 1), "w": ("file:/lake/w", True, 1),
        "p": ("file:/lake/p", True, 2), "d": ("file:/lake/d", False, 1),
    }  # fmt: skip


@pytest.mark.parametrize(
    "paths",
    [["file:/lake/a.parquet", "file:/lake/a/b.parquet"], ["file:/lake/a/metadata/1.json", "file:/lake/a/b.parquet"],
     ["file:/lake/a.csv"], ["file:/lake/a/b=1/x.parquet", "file:/lake/a/c/x.parquet"]],
)  # fmt: skip
def test_a_folder_whose_tables_are_unclear_is_refused(paths):
    with pytest.raises(PolicyError):
        tables_in("/lake", files(*paths))


def test_files_are_the_same_if_path_length_and_time_are():
    before = Files({"a": (3, 5), "b": (4, 6)})
    before.require_unchanged(Files({"a": (3, 5), "b": (4, 6), "c": (1, 1)}))
    for other in ({"a": (3, 5)}, {"a": (3, 5), "b": (5, 6)}, {"a": (3, 5), "b": (4, 7)}):
        with pytest.raises(DataChanged):
            before.require_unchanged(Files(other))
        assert Files(other).mark != before.mark
    assert plain_path("file:///a%20b/c=x%252F") == "file:/a b/c=x%2F"
