"""Files of other forms, partitions, patterns, and data that are in memory."""

import gzip
import tomllib

import duckdb
import pytest

import sfumato as sf
from sfumato.engines.duckdb import DuckDB, likely_delimiters, schema, untyped
from sfumato.engines.memory import in_memory
from sfumato.errors import InvalidParameter, PolicyError
from sfumato.sql.policy_draft import draft_policy

POLICY = """
version = 1
[budget]
epsilon = 20.0
delta = 1e-6
[tables.visits]
unit = "who"
rows = 1
{more}
[tables.visits.columns]
who = {{type = "number"}}
ward = {{type = "text", keys = ["a", "b"]}}
"""
ROWS = [(i, "ab"[i % 2]) for i in range(4000)]


def lines(separator):
    return "\n".join([f"who{separator}ward", *(f'{who}{separator}"{ward}"' for who, ward in ROWS)]).encode()


def answer(data, tmp_path, more=""):
    """COUNT(*) by ward, with so much ε that it is exact enough to tell which rows were read."""
    curator = sf.Curator.open(data, policy(more), ledger=tmp_path / "ledger")
    found = curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward", epsilon=10.0)
    curator.engine.close()
    return {row[0]: round(float(row[1]), -2) for row in found.rows}


def policy(more=""):
    from sfumato.sql.policy import Policy

    return Policy.read(POLICY.format(more=more))


BOTH = {"a": 2000.0, "b": 2000.0}


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [
        ("visits.tsv", lines("\t"), ""),
        ("visits.csv.gz", gzip.compress(lines(",")), ""),
        ("VISITS.TSV.GZ", gzip.compress(lines("\t")), ""),
        ("visits.csv", lines(";"), 'delimiter = ";"'),
        ("visits.csv", lines("|"), 'delimiter = "|"'),
    ],
)
def test_text_files_of_other_forms_are_the_same_table(tmp_path, name, content, more):
    (tmp_path / name).write_bytes(content)
    assert answer(tmp_path / name, tmp_path, more) == BOTH


@pytest.mark.parametrize("said", ['""', '"ab"', '"\\n"', "1", "'\"'"])
def test_a_delimiter_is_one_plain_character(said):
    with pytest.raises(PolicyError, match="delimiter"):
        policy(f"delimiter = {said}")


@pytest.mark.parametrize(("sign", "found"), [(";", ";"), ("|", "|"), ("\t", "\t"), (",", None)])
def test_a_draft_states_the_delimiter_of_the_first_line(tmp_path, sign, found):
    """Nobody could draft a policy of such a file: its names were refused before there was a policy to state it."""
    (tmp_path / "visits.csv").write_text(sign.join(["user_id", '"a b"', "stay"]) + "\n")
    stated = dict(likely_delimiters(tmp_path))
    assert stated.get("visits") == found
    columns = schema(tmp_path, tuple(stated.items()))
    drafted = tomllib.loads(draft_policy(columns, "x", ("visits",), stated))["tables"]["visits"]
    assert drafted.get("delimiter") == found and list(drafted["columns"]) == ["user_id", "a b", "stay"]


def test_a_file_with_another_delimiter_says_what_to_state(tmp_path):
    (tmp_path / "visits.csv").write_bytes(lines(";"))
    with pytest.raises(PolicyError, match='state delimiter = ";"'):
        schema(tmp_path / "visits.csv")


def write_parts(folder, partition):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT * FROM (SELECT range AS who, range % 2 AS w FROM range(4000))")
    for n in range(2):
        place = folder / partition.format(n="ab"[n])
        place.mkdir(parents=True, exist_ok=True)
        columns = "who" if partition else "who, CASE w WHEN 0 THEN 'a' ELSE 'b' END AS ward"
        connection.execute(f"COPY (SELECT {columns} FROM t WHERE w = {n}) TO '{place}/{n}.parquet' (FORMAT parquet)")
    connection.close()


@pytest.mark.parametrize("where", ["lake", "lake/visits/*.parquet", "lake/visits/**/*.parquet"])
def test_a_table_of_several_parquet_files_is_a_folder_or_a_pattern(tmp_path, where):
    write_parts(tmp_path / "lake" / "visits", "")
    assert answer(tmp_path / where, tmp_path) == BOTH


@pytest.mark.parametrize("where", ["lake", "lake/visits/*/*.parquet", "lake/visits/**/*.parquet"])
def test_partitions_are_columns_and_always_texts(tmp_path, where):
    write_parts(tmp_path / "lake" / "visits", "ward={n}")
    assert schema(tmp_path / where) == {"visits": {"who": "BIGINT", "ward": "VARCHAR"}}
    assert untyped(tmp_path / where) == {"visits"}
    assert answer(tmp_path / where, tmp_path) == BOTH
    (tmp_path / "lake/visits/ward=a/0.parquet").rename(tmp_path / "lake/visits/0.parquet")
    with pytest.raises(PolicyError, match="partitions"):
        schema(tmp_path / "lake")


def test_numbers_as_names_of_partitions_do_not_change_a_type(tmp_path):
    for name in ("year=2024", "year=unknown"):
        write_parts(tmp_path / "lake" / "visits" / name, "")
        assert schema(tmp_path / "lake")["visits"]["year"] == "VARCHAR"


@pytest.mark.parametrize("pattern", ["none/*.parquet", "*.txt", "*"])
def test_a_pattern_without_parquet_files_is_refused(tmp_path, pattern):
    (tmp_path / "a.txt").touch()
    with pytest.raises(PolicyError, match="pattern"):
        schema(tmp_path / pattern)


def frames():
    import pandas
    import polars
    import pyarrow

    columns = {"who": [who for who, _ in ROWS], "ward": [ward for _, ward in ROWS]}
    plain = pandas.DataFrame(columns)
    plain["ward"] = plain["ward"].astype("string")
    return {"pandas": plain, "polars": polars.DataFrame(columns), "arrow": pyarrow.table(columns)}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_data_frames_are_tables_by_name(tmp_path, kind):
    pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    assert answer({"visits": frames()[kind]}, tmp_path) == BOTH


def test_a_connection_of_duckdb_is_copied_as_it_is_now(tmp_path):
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT range AS who, ['a', 'b'][range % 2 + 1] AS ward FROM range(4000)"
        )
        engine = in_memory(connection)
        connection.execute("DELETE FROM visits")
    assert engine.run("SELECT COUNT(*) FROM visits") == [(4000,)]
    assert answer(engine, tmp_path) == BOTH


def test_what_is_in_memory_is_locked_down_and_lasts(tmp_path):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS who")
        engine = in_memory(connection)
    engine.close()
    assert engine.run("SELECT who FROM visits") == [(1,)]
    for reach in ("SELECT * FROM read_csv('/etc/passwd')", "SET threads = 1", "INSTALL httpfs"):
        with pytest.raises(duckdb.Error):
            engine.run(reach)
    with pytest.raises(InvalidParameter, match="say where"):
        sf.Curator.open({"visits": frames()["arrow"]}, policy())
    assert isinstance(engine, DuckDB)


def test_a_column_of_python_objects_is_refused_since_its_type_would_be_guessed():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": pandas.Series([1, "x"], dtype="object")})
    with pytest.raises(PolicyError, match="no type of its own"):
        in_memory({"visits": frame})
    with pytest.raises(PolicyError, match="cannot be read"):
        in_memory({"visits": 17})
