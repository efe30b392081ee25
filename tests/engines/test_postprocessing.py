"""SQL over released values runs in an empty database in another process, and can reach nothing else."""

import os
import sys

import pytest

from sfumato.engines.postprocessing import PostprocessingDuckDB, Postprocessor, SmallTable

TABLES = {
    "r": SmallTable(
        (("ward", "VARCHAR"), ("n", "BIGINT"), ("day", "TIMESTAMP")),
        (("north", 6, "2024-01-01"), ("south", 2, None), (None, None, "infinity")),
    )
}
REFUSED = [
    "SELECT now()", "SELECT current_date", "SELECT random() FROM r", "SELECT * FROM r ORDER BY random()",
    "SELECT uuid()", "SELECT today()", "SELECT ago(INTERVAL 1 DAY)", "SELECT nextval('s')", "SELECT pg_sleep(1)",
    "SELECT current_setting('memory_limit')", "SELECT getvariable('x')", "SELECT getenv('HOME')",
    "SELECT * FROM 'data.csv'", "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/*')", "FROM query('SELECT 1')", "FROM query_table('r')", "SELECT * FROM duckdb_tables()",
    "SELECT * FROM duckdb_settings()", "SELECT * FROM information_schema.tables", "SELECT * FROM sqlite_master",
    "SELECT * FROM other", "SELECT * FROM main.r", "SELECT * FROM r TABLESAMPLE 10 %", "SELECT $1", "SELECT ?",
    "SELECT 1; SELECT 2", "CREATE TABLE x (a INT)", "COPY r TO 'x.csv'", "ATTACH 'x.duckdb'", "SET threads = 4",
    "INSTALL httpfs", "PRAGMA version", "DESCRIBE r", "FROM (SHOW TABLES)", "SELECT nothing FROM r", "SELECT 'a'::INT",
    "SELECT error('x')", "", "no SQL",
]  # fmt: skip


@pytest.fixture(scope="module")
def processor():
    found = Postprocessor()
    yield found
    found.close()


def test_it_is_another_process_and_stays_warm(processor):
    processor.describe(TABLES, "SELECT ward FROM r")
    first = processor.session().process.pid
    assert first != os.getpid()
    processor.compute(TABLES, "SELECT ward FROM r")
    assert processor.session().process.pid == first


def test_it_computes_what_duckdb_computes(processor):
    sql = """WITH t AS (SELECT ward, n, n / SUM(n) OVER () AS share FROM r WHERE n IS NOT NULL)
             SELECT UPPER(ward) AS ward, share, RANK() OVER (ORDER BY n) AS place, n + g AS more
             FROM t, generate_series(1, 1) s(g) ORDER BY n DESC"""
    assert [name for name, _ in processor.describe(TABLES, sql)] == ["ward", "share", "place", "more"]
    assert processor.compute(TABLES, sql) == [("NORTH", 0.75, 2, 7), ("SOUTH", 0.25, 1, 3)]
    assert processor.compute(TABLES, "SELECT 1.5::DECIMAL(9, 2), [1, 2], {'a': 1}") == [(1.5, "[1, 2]", "{'a': 1}")]


@pytest.mark.parametrize("sql", REFUSED)
def test_it_can_reach_nothing_else(processor, sql):
    with pytest.raises(ValueError, match=r".+"):
        processor.compute(TABLES, sql)


def test_binding_needs_no_rows_and_names_the_problem(processor):
    with pytest.raises(ValueError, match="nothing"):
        processor.describe({"r": SmallTable(TABLES["r"].columns)}, "SELECT nothing FROM r")


def test_no_request_sees_the_tables_of_another_one(processor):
    processor.compute({"mine": TABLES["r"]}, "SELECT COUNT(*) FROM mine")
    with pytest.raises(ValueError, match="no table"):
        processor.compute({"yours": TABLES["r"]}, "SELECT COUNT(*) FROM mine")


def test_a_query_without_end_is_stopped_and_the_next_one_runs():
    short = Postprocessor(PostprocessingDuckDB(timeout=0.2))
    endless = "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT COUNT(*) FROM t"
    try:
        with pytest.raises(ValueError, match="longer than"):
            short.compute(TABLES, endless)
        assert short.compute(TABLES, "SELECT MAX(n) FROM r") == [(6,)]
    finally:
        short.close()


def test_memory_and_rows_are_limited(processor):
    with pytest.raises(ValueError, match=r".+"):
        processor.compute(TABLES, "SELECT LIST(a) FROM range(200000000) t(a)")
    with pytest.raises(ValueError, match="rows"):
        processor.compute(TABLES, "SELECT * FROM range(200000)")


def test_names_are_folded_as_duckdb_folds_them(processor):
    """Python's lower case of the Kelvin sign is k; to DuckDB it is another letter, and the catalogue another table."""
    sql = 'WITH "duc\u212adb_columns" AS (SELECT 1 AS x) SELECT table_name FROM duckdb_columns'
    with pytest.raises(ValueError, match="no table 'duckdb_columns'"):
        processor.describe({}, sql)


@pytest.mark.parametrize("sql", ["SELECT AGE(TIMESTAMP '2020-01-01')", "SELECT VERSION()"])
def test_functions_that_read_more_than_their_arguments_are_refused(processor, sql):
    with pytest.raises(ValueError, match="not available"):
        processor.describe({}, sql)
    assert processor.describe({}, "SELECT AGE(TIMESTAMP '2020-01-01', TIMESTAMP '2019-01-01') AS a")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the addresses of a process")
@pytest.mark.parametrize("sql", ["SELECT LEN(RANGE(200000000))", "SELECT LENGTH(REPEAT('x', 2000000000))"])
def test_constants_are_folded_within_the_memory_of_the_process(processor, sql):
    with pytest.raises(ValueError, match=r"(?i)memory"):
        processor.compute({}, sql)
    assert processor.compute({}, "SELECT 1") == [(1,)]
