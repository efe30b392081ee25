"""The shadow catalogues: a small DuckDB in a process of its own, in memory, that has never seen a row of anybody.

Their shape is PostgreSQL's, written down in catalogue.json; their rows follow from the public schema. What a client
makes of them costs no privacy, but it could cost time and memory: the process has limits, and is killed if it ignores
them.
"""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files

import duckdb

from sfumato.engines.duckdb import run_interruptible
from sfumato.engines.postprocessing import Cell

SCHEMAS = {"pg_catalog": "pg_shadow", "information_schema": "information_shadow", "sfumato": "sfumato"}
FIRST_OID = 16384  # of what is not PostgreSQL's own
PUBLIC, OWN, SYSTEM, INFORMATION, ROLE, DATABASE = 2200, 2201, 11, 12, 10, 5
SECONDS = 2.0  # of any question about catalogues
MOST_ROWS, MOST_CHARACTERS = 50_000, 8 << 20  # of a result
Values = Mapping[str, Cell]
Columns = Mapping[str, tuple[str, int, int]]  # of a table: name, number and size of the type of each column
Table = tuple[dict[str, str], list[tuple[Cell, ...]]]  # DuckDB types by name, and rows
Found = tuple[list[tuple[str, str]], list[tuple[Cell, ...]]]  # names and DuckDB types of columns, and rows
NUMBERS = {
    "oid": "UINTEGER", "bigint": "BIGINT", "integer": "INTEGER", "smallint": "SMALLINT", "boolean": "BOOLEAN",
    "double precision": "DOUBLE", "real": "REAL", "xid": "UINTEGER", "numeric": "DOUBLE",
    "information_schema.cardinal_number": "INTEGER", "timestamp with time zone": "TIMESTAMP",
    "information_schema.time_stamp": "TIMESTAMP", "oidvector": "UINTEGER[]", "int2vector": "SMALLINT[]",
}  # fmt: skip
NEUTRAL = {"VARCHAR": "''", "BOOLEAN": "false", "TIMESTAMP": "'epoch'"}  # what else has no NULL is 0
NO_PROCEDURE = "'-'"
SETTINGS = (
    "enable_external_access = false", "threads = 1", "memory_limit = '200MB'", "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false", "max_temp_directory_size = '0KiB'",
)  # fmt: skip
MACROS = """
    format_type(t, m) AS coalesce((SELECT CASE WHEN y.typname = 'float8' THEN 'double precision'
        WHEN y.typname = 'int8' THEN 'bigint' WHEN y.typname = 'int4' THEN 'integer' WHEN y.typname = 'int2' THEN
        'smallint' WHEN y.typname = 'bool' THEN 'boolean' WHEN y.typname = 'timestamp' THEN
        'timestamp without time zone' ELSE y.typname END FROM pg_shadow.pg_type y WHERE y.oid = t), '???')
    to_regtype(name) AS (SELECT y.oid FROM pg_shadow.pg_type y WHERE y.typname = name)
    to_regclass(name) AS (SELECT min(c.oid) FROM pg_shadow.pg_class c WHERE c.relname = name)
    pg_get_userbyid(o) AS 'sfumato'
    pg_table_is_visible(o) AS (SELECT any_value(c.relnamespace IN (11, 2200)) FROM pg_shadow.pg_class c WHERE c.oid = o)
    pg_type_is_visible(o) AS true
    pg_function_is_visible(o) AS true
    pg_get_expr(a, b) AS NULL, (a, b, c) AS NULL
    pg_get_constraintdef(a) AS NULL, (a, b) AS NULL
    pg_get_indexdef(a) AS NULL, (a, b, c) AS NULL
    pg_get_viewdef(a) AS NULL, (a, b) AS NULL
    pg_get_partkeydef(a) AS NULL
    pg_get_statisticsobjdef_columns(a) AS NULL
    pg_get_function_result(a) AS NULL
    pg_get_function_arguments(a) AS NULL
    pg_get_function_identity_arguments(a) AS NULL
    pg_get_serial_sequence(a, b) AS NULL
    pg_relation_is_publishable(a) AS false
    pg_encoding_to_char(a) AS 'UTF8'
    pg_is_in_recovery() AS false
    pg_get_keywords() AS TABLE SELECT 'select' AS word, 'R' AS catcode, 'reserved' AS catdesc
    pg_backend_pid() AS 0
    pg_terminate_backend(pid) AS false
    pg_cancel_backend(pid) AS false
    pg_relation_size(a) AS 0
    pg_table_size(a) AS 0
    pg_total_relation_size(a) AS 0
    pg_size_pretty(a) AS '0 bytes'
    pg_tablespace_location(a) AS ''
    pg_postmaster_start_time() AS NULL
    obj_description(a) AS NULL, (a, b) AS NULL
    col_description(a, b) AS NULL
    shobj_description(a, b) AS NULL
    has_table_privilege(a, b) AS true, (a, b, c) AS true
    has_schema_privilege(a, b) AS true, (a, b, c) AS true
    has_database_privilege(a, b) AS true, (a, b, c) AS true
    has_column_privilege(a, b, c) AS true
    has_any_column_privilege(a, b) AS true, (a, b, c) AS true
    array_upper(a, d) AS len(a)
    array_lower(a, d) AS CASE WHEN len(a) > 0 THEN 1 END
    _pg_expandarray(a) AS {'x': NULL::INTEGER, 'n': NULL::INTEGER}
    quote_ident(a) AS a
    current_schemas(a) AS ['pg_catalog', 'public']
    current_setting(a) AS '', (a, b) AS ''
    set_config(a, b, c) AS b
    txid_current() AS 1
    pg_my_temp_schema() AS 0
    pg_char_to_encoding(a) AS 6
    version() AS 'PostgreSQL 16.0 (sfumato)'
"""


@cache
def shape() -> tuple[dict[str, dict[str, str]], list[list[Cell]]]:
    """Columns of each relation, and the rows of pg_type."""
    found = json.loads(files(__package__).joinpath("catalogue.json").read_text())
    return found["relations"], found["types"]


@dataclass
class ShadowDuckDB:
    """The worker's side: the catalogues of one data set."""

    database: str
    tables: Mapping[str, Columns]
    own: Mapping[str, Columns] = field(default_factory=dict)  # of the schema sfumato
    timeout: float = SECONDS
    headroom: int = 768  # MiB of addresses for its process: results and constants are outside of DuckDB's own limit
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _opening: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def connection(self) -> duckdb.DuckDBPyConnection:
        with self._opening:
            if self._connection is None:
                self._connection = self.build()
            return self._connection

    def compute(self, own: Mapping[str, Table], sql: str) -> Found:
        """Columns and rows of a statement; `own` are tables of the schema sfumato. ValueError if it does not work."""
        cursor = self.connection().cursor()

        def fetch() -> Found:
            with cursor:
                for name, table in own.items():
                    create_table(cursor, name, table)
                result = cursor.execute(sql)
                described = [(str(name), str(kind)) for name, kind, *_ in result.description or ()]
                return described, bounded_rows(result)

        try:
            return run_interruptible(fetch, cursor.interrupt, self.timeout)
        except (duckdb.FatalException, duckdb.InternalException) as problem:
            self._connection = None  # it takes no more statements
            raise ValueError(type(problem).__name__) from None
        except duckdb.Error as problem:
            raise ValueError(str(problem)[:1000]) from None

    def build(self) -> duckdb.DuckDBPyConnection:
        """Relations, macros and rows."""
        found = duckdb.connect(":memory:")
        for setting in SETTINGS:
            found.execute(f"SET {setting}")
        relations, _ = shape()
        statements = [f"CREATE SCHEMA {schema}" for schema in SCHEMAS.values()]
        for name, columns in relations.items():
            schema, relation = name.split(".")
            listed = ", ".join(f'"{column}" {column_type(kind)}' for column, kind in columns.items())
            statements.append(f'CREATE TABLE {SCHEMAS[schema]}."{relation}" ({listed})')
        for line in re.sub(r"\n {8}", " ", MACROS).strip().splitlines():
            statements.append(f"CREATE MACRO {line.strip()}")
        found.execute(";".join(statements))
        fill(found, self.database, self.tables, self.own)
        found.execute("SET lock_configuration = true")
        return found


def fill(
    connection: duckdb.DuckDBPyConnection, database: str, tables: Mapping[str, Columns], own: Mapping[str, Columns]
) -> None:
    """The rows that clients look for."""
    insert = partial(insert_rows, connection)
    spaces = {"pg_catalog": SYSTEM, "information_schema": INFORMATION, "public": PUBLIC, "sfumato": OWN}
    insert("pg_namespace", [{"oid": oid, "nspname": name, "nspowner": ROLE} for name, oid in spaces.items()])
    role: Values = {"oid": ROLE, "rolname": "sfumato", "rolcanlogin": True, "rolinherit": True, "rolconnlimit": -1,
            "rolsuper": False, "rolcreaterole": False, "rolcreatedb": False, "rolreplication": False,
            "rolbypassrls": False}  # fmt: skip
    insert("pg_roles", [role])
    insert("pg_user", [{"usename": "sfumato", "usesysid": ROLE}])
    known = {"max_index_keys": "32", "max_identifier_length": "63", "server_version_num": "160000"}
    insert("pg_settings", [{"name": name, "setting": value} for name, value in known.items()])
    insert("pg_am", [{"oid": 2, "amname": "heap", "amtype": "t"}])
    insert("pg_database", [{"oid": DATABASE, "datname": database, "datdba": ROLE, "encoding": 6,
                                 "datallowconn": True, "datistemplate": False, "datcollate": "C", "datctype": "C",
                                 "datlocprovider": "c", "dattablespace": 1663}])  # fmt: skip
    insert("pg_tablespace", [{"oid": 1663, "spcname": "pg_default", "spcowner": ROLE}])
    names = ["oid", "typname", "typlen", "typbyval", "typtype", "typcategory", "typelem", "typarray", "typdelim",
             "typinput", "typoutput", "typreceive", "typsend"]  # fmt: skip
    usual = {"typnamespace": SYSTEM, "typowner": ROLE, "typisdefined": True, "typrelid": 0, "typbasetype": 0,
             "typtypmod": -1, "typnotnull": False, "typndims": 0, "typcollation": 0}  # fmt: skip
    insert("pg_type", [usual | dict(zip(names, row, strict=True)) for row in shape()[1]])
    classes: list[Values] = []
    attributes: list[Values] = []
    listed: list[Values] = []
    columns: list[Values] = []
    relations = [("public", "r", *one) for one in tables.items()] + [("sfumato", "v", *one) for one in own.items()]
    for oid, (schema, kind_of_relation, table, described) in enumerate(relations, FIRST_OID):
        classes.append({"oid": oid, "relname": table, "relnamespace": spaces[schema], "relkind": kind_of_relation,
                        "relpersistence": "p", "relowner": ROLE, "relam": 2, "relnatts": len(described),
                        "reltype": 0, "reltablespace": 0, "reltoastrelid": 0, "relchecks": 0,
                        "reltuples": -1, "relhasindex": False, "relhasrules": False, "relhastriggers": False,
                        "relrowsecurity": False, "relforcerowsecurity": False, "relispartition": False,
                        "reloftype": 0, "relreplident": "d"})  # fmt: skip
        listed.append({"table_catalog": database, "table_schema": schema, "table_name": table,
                       "table_type": "VIEW" if schema == "sfumato" else "BASE TABLE",
                       "is_insertable_into": "NO", "is_typed": "NO"})  # fmt: skip
        for number, (name, (kind, kind_oid, size)) in enumerate(described.items(), 1):
            attributes.append({"attrelid": oid, "attname": name, "atttypid": kind_oid, "attnum": number,
                               "attlen": size, "atttypmod": -1, "attnotnull": False, "atthasdef": False,
                               "attisdropped": False, "attidentity": "", "attgenerated": "", "attndims": 0,
                               "attcollation": 0, "attstorage": "p", "attcompression": "", "attislocal": True,
                               "attinhcount": 0})  # fmt: skip
            columns.append({"table_catalog": database, "table_schema": schema, "table_name": table,
                            "column_name": name, "ordinal_position": number, "is_nullable": "YES",
                            "data_type": kind, "udt_catalog": database, "udt_schema": "pg_catalog",
                            "udt_name": kind, "is_updatable": "NO", "is_identity": "NO",
                            "is_generated": "NEVER"})  # fmt: skip
    insert("pg_class", classes)
    insert("pg_attribute", attributes)
    insert("tables", listed, "information_shadow")
    insert("columns", columns, "information_shadow")
    insert("schemata", [{"catalog_name": database, "schema_name": name, "schema_owner": "sfumato"}
                             for name in spaces], "information_shadow")  # fmt: skip
    insert("pg_tables", [{"schemaname": "public", "tablename": name, "tableowner": "sfumato"} for name in tables])
    insert("pg_views", [{"schemaname": "sfumato", "viewname": name, "viewowner": "sfumato"} for name in own])
    insert("views", [{"table_catalog": database, "table_schema": "sfumato", "table_name": name} for name in own],
           "information_shadow")  # fmt: skip


def insert_rows(
    connection: duckdb.DuckDBPyConnection, relation: str, rows: Sequence[Values], schema: str = "pg_shadow"
) -> None:
    if rows:
        names = ", ".join(f'"{name}"' for name in rows[0])
        marks = ", ".join(f"({', '.join('?' for _ in row)})" for row in rows)
        values = [cell for row in rows for cell in row.values()]
        connection.execute(f"INSERT INTO {schema}.{relation} ({names}) VALUES {marks}", values)


def bounded_rows(result: duckdb.DuckDBPyConnection) -> list[tuple[Cell, ...]]:
    """All rows of a result that is not too large. Raises ValueError."""
    rows: list[tuple[Cell, ...]] = []
    size = 0
    while chunk := result.fetchmany(1000):
        rows += [tuple(map(plain_cell, row)) for row in chunk]
        size += sum(len(cell) for row in rows[-len(chunk) :] for cell in row if isinstance(cell, str))
        if len(rows) > MOST_ROWS or size > MOST_CHARACTERS:
            raise ValueError("the result is too large")
    return rows


def create_table(cursor: duckdb.DuckDBPyConnection, name: str, table: Table) -> None:
    columns, rows = table
    listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    cursor.execute(f'CREATE OR REPLACE TEMP TABLE "own {name}" ({listed})')
    if rows:
        cursor.executemany(f'INSERT INTO "own {name}" VALUES ({", ".join("?" for _ in columns)})', rows)


def column_type(kind: str) -> str:
    """The type of a column; one without NULL in PostgreSQL has none here, as ODBC and others take no NULL from it."""
    if not kind.endswith("!"):
        return duck_type(kind)
    found = duck_type(kind[:-1])
    usual = NO_PROCEDURE if kind == "regproc!" else "[]" if found.endswith("[]") else NEUTRAL.get(found, "0")
    return f"{found} DEFAULT {usual} NOT NULL"


def duck_type(kind: str) -> str:
    """The type in DuckDB of a column of a catalogue; texts for what has no other use."""
    if kind.endswith("[]"):
        return f"{duck_type(kind[:-2])}[]"
    return NUMBERS.get(kind, "VARCHAR")


def plain_cell(cell: object) -> Cell:
    """A list as PostgreSQL writes an array."""
    if isinstance(cell, list):
        return "{" + ",".join("NULL" if one is None else str(one) for one in cell) + "}"
    return cell  # type: ignore[return-value]
