"""The catalogues that clients look at (pg_catalog, information_schema, sfumato), from the public schema alone.

Their shape is PostgreSQL's, written down in catalogue.json. They live in a small DuckDB of their own, in memory, that
has never seen a row of anybody: what a client makes of them costs nothing. Questions about them are translated from
PostgreSQL's dialect; questions that mix them with private tables are refused.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from threading import Timer

import duckdb
from sqlglot import exp

from sfumato.curator.answer import Cell
from sfumato.errors import QueryRefused
from sfumato.server.postgres import types
from sfumato.server.postgres.types import Type

SCHEMAS = {"pg_catalog": "pg_shadow", "information_schema": "information_shadow", "sfumato": "sfumato"}
FIRST_OID = 16384  # of what is not PostgreSQL's own
PUBLIC, OWN, SYSTEM, INFORMATION, ROLE, DATABASE = 2200, 2201, 11, 12, 10, 5
SECONDS = 5.0  # of any question about catalogues
FUNCTIONS_OF_ROWS = {"generate_series", "unnest", "pg_get_keywords"}
Values = Mapping[str, Cell]
STATEMENTS = exp.Select | exp.SetOperation
NUMBERS = {
    "oid": "UINTEGER", "bigint": "BIGINT", "integer": "INTEGER", "smallint": "SMALLINT", "boolean": "BOOLEAN",
    "double precision": "DOUBLE", "real": "REAL", "xid": "UINTEGER", "numeric": "DOUBLE",
    "information_schema.cardinal_number": "INTEGER", "timestamp with time zone": "TIMESTAMP",
    "information_schema.time_stamp": "TIMESTAMP", "oidvector": "UINTEGER[]", "int2vector": "SMALLINT[]",
}  # fmt: skip
RESULTS = {
    "BOOLEAN": types.BOOL, "BIGINT": types.INT8, "HUGEINT": types.INT8, "INTEGER": types.INT4,
    "SMALLINT": types.INT2, "UINTEGER": types.OID, "DOUBLE": types.FLOAT8, "FLOAT": types.FLOAT8,
    "TIMESTAMP": types.TIMESTAMP, "DATE": types.DATE,
}  # fmt: skip
SETTINGS = (
    "enable_external_access = false", "threads = 1", "memory_limit = '200MB'", "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
)  # fmt: skip
MACROS = """
    format_type(t, m) AS coalesce((SELECT CASE WHEN y.typname = 'float8' THEN 'double precision'
        WHEN y.typname = 'int8' THEN 'bigint' WHEN y.typname = 'int4' THEN 'integer' WHEN y.typname = 'int2' THEN
        'smallint' WHEN y.typname = 'bool' THEN 'boolean' WHEN y.typname = 'timestamp' THEN
        'timestamp without time zone' ELSE y.typname END FROM pg_shadow.pg_type y WHERE y.oid = t), '???')
    to_regtype(name) AS (SELECT y.oid FROM pg_shadow.pg_type y WHERE y.typname = name)
    to_regclass(name) AS (SELECT c.oid FROM pg_shadow.pg_class c WHERE c.relname = name)
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


@cache
def procedures() -> frozenset[str]:
    """Columns that hold the number of a procedure; here they hold its name, as PostgreSQL shows it."""
    return frozenset(column for columns in shape()[0].values() for column, kind in columns.items() if kind == "regproc")


class Catalogue:
    """The catalogues of one data set."""

    def __init__(self, database: str, tables: Mapping[str, Mapping[str, Type]]):
        self.connection = duckdb.connect(":memory:")
        for setting in SETTINGS:
            self.connection.execute(f"SET {setting}")
        self.database = database
        relations, _ = shape()
        statements = [f"CREATE SCHEMA {schema}" for schema in SCHEMAS.values()]
        for name, columns in relations.items():
            schema, relation = name.split(".")
            listed = ", ".join(f'"{column}" {duck_type(kind)}' for column, kind in columns.items())
            statements.append(f'CREATE TABLE {SCHEMAS[schema]}."{relation}" ({listed})')
        for line in re.sub(r"\n {8}", " ", MACROS).strip().splitlines():
            statements.append(f"CREATE MACRO {line.strip()}")
        self.connection.execute(";".join(statements))
        self.fill({("public", name): columns for name, columns in tables.items()})
        self.connection.execute("SET lock_configuration = true")

    def fill(self, tables: Mapping[tuple[str, str], Mapping[str, Type]]) -> None:
        """The rows that clients look for."""
        spaces = {"pg_catalog": SYSTEM, "information_schema": INFORMATION, "public": PUBLIC, "sfumato": OWN}
        self.insert("pg_namespace", [{"oid": oid, "nspname": name, "nspowner": ROLE} for name, oid in spaces.items()])
        role: Values = {"oid": ROLE, "rolname": "sfumato", "rolcanlogin": True, "rolinherit": True, "rolconnlimit": -1,
                "rolsuper": False, "rolcreaterole": False, "rolcreatedb": False, "rolreplication": False,
                "rolbypassrls": False}  # fmt: skip
        self.insert("pg_roles", [role])
        self.insert("pg_user", [{"usename": "sfumato", "usesysid": ROLE}])
        known = {"max_index_keys": "32", "max_identifier_length": "63", "server_version_num": "160000"}
        self.insert("pg_settings", [{"name": name, "setting": value} for name, value in known.items()])
        self.insert("pg_am", [{"oid": 2, "amname": "heap", "amtype": "t"}])
        self.insert("pg_database", [{"oid": DATABASE, "datname": self.database, "datdba": ROLE, "encoding": 6,
                                     "datallowconn": True, "datistemplate": False, "datcollate": "C", "datctype": "C",
                                     "datlocprovider": "c", "dattablespace": 1663}])  # fmt: skip
        self.insert("pg_tablespace", [{"oid": 1663, "spcname": "pg_default", "spcowner": ROLE}])
        names = ["oid", "typname", "typlen", "typbyval", "typtype", "typcategory", "typelem", "typarray", "typdelim",
                 "typinput", "typoutput", "typreceive", "typsend"]  # fmt: skip
        usual = {"typnamespace": SYSTEM, "typowner": ROLE, "typisdefined": True, "typrelid": 0, "typbasetype": 0,
                 "typtypmod": -1, "typnotnull": False, "typndims": 0, "typcollation": 0}  # fmt: skip
        self.insert("pg_type", [usual | dict(zip(names, row, strict=True)) for row in shape()[1]])
        classes: list[Values] = []
        attributes: list[Values] = []
        listed: list[Values] = []
        columns: list[Values] = []
        for place, ((schema, table), described) in enumerate(tables.items()):
            oid = FIRST_OID + place
            classes.append({"oid": oid, "relname": table, "relnamespace": spaces[schema], "relkind": "r",
                            "relpersistence": "p", "relowner": ROLE, "relam": 2, "relnatts": len(described),
                            "reltype": 0, "reltablespace": 0, "reltoastrelid": 0, "relchecks": 0,
                            "reltuples": -1, "relhasindex": False, "relhasrules": False, "relhastriggers": False,
                            "relrowsecurity": False, "relforcerowsecurity": False, "relispartition": False,
                            "reloftype": 0, "relreplident": "d"})  # fmt: skip
            listed.append({"table_catalog": self.database, "table_schema": schema, "table_name": table,
                           "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"})  # fmt: skip
            for number, (name, kind) in enumerate(described.items(), 1):
                attributes.append({"attrelid": oid, "attname": name, "atttypid": kind.oid, "attnum": number,
                                   "attlen": kind.size, "atttypmod": -1, "attnotnull": False, "atthasdef": False,
                                   "attisdropped": False, "attidentity": "", "attgenerated": "", "attndims": 0,
                                   "attcollation": 0, "attstorage": "p", "attcompression": "", "attislocal": True,
                                   "attinhcount": 0})  # fmt: skip
                columns.append({"table_catalog": self.database, "table_schema": schema, "table_name": table,
                                "column_name": name, "ordinal_position": number, "is_nullable": "YES",
                                "data_type": kind.name, "udt_catalog": self.database, "udt_schema": "pg_catalog",
                                "udt_name": kind.name, "is_updatable": "NO", "is_identity": "NO",
                                "is_generated": "NEVER"})  # fmt: skip
        self.insert("pg_class", classes)
        self.insert("pg_attribute", attributes)
        self.insert("tables", listed, "information_shadow")
        self.insert("columns", columns, "information_shadow")
        self.insert("schemata", [{"catalog_name": self.database, "schema_name": name, "schema_owner": "sfumato"}
                                 for name in spaces], "information_shadow")  # fmt: skip
        self.insert("pg_tables", [{"schemaname": one["table_schema"], "tablename": one["table_name"],
                                   "tableowner": "sfumato"} for one in listed])  # fmt: skip

    def insert(self, relation: str, rows: Sequence[Values], schema: str = "pg_shadow") -> None:
        if rows:
            names = ", ".join(f'"{name}"' for name in rows[0])
            marks = ", ".join(f"({', '.join('?' for _ in row)})" for row in rows)
            values = [cell for row in rows for cell in row.values()]
            self.connection.execute(f"INSERT INTO {schema}.{relation} ({names}) VALUES {marks}", values)

    def run(
        self, statement: exp.Expr, own: Mapping[str, Callable[[], "Table"]]
    ) -> tuple[list[tuple[str, Type]], list[tuple[Cell, ...]]]:
        """Names and types of the columns, and rows; `own` makes the tables of the schema sfumato that are asked for."""
        cursor = self.connection.cursor()
        timer = Timer(SECONDS, cursor.interrupt)
        timer.start()
        try:
            for table in statement.find_all(exp.Table):
                if table.db == "sfumato" and table.name in own:
                    create_table(cursor, table.name, own[table.name]())
            result = cursor.execute(translate(statement, self.database).sql("duckdb"))
            rows = [tuple(map(plain_cell, row)) for row in result.fetchall()]
            described = [(name, RESULTS.get(str(kind), types.TEXT)) for name, kind, *_ in result.description or ()]
        except duckdb.Error as problem:
            raise QueryRefused(f"this question about catalogues is not understood.\n  found:  {problem}") from None
        finally:
            timer.cancel()
            cursor.close()
        return described, rows


Table = tuple[dict[str, str], list[tuple[Cell, ...]]]  # DuckDB types by name, and rows


def create_table(cursor: duckdb.DuckDBPyConnection, name: str, table: Table) -> None:
    columns, rows = table
    listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    cursor.execute(f'CREATE OR REPLACE TEMP TABLE "own {name}" ({listed})')
    if rows:
        cursor.executemany(f'INSERT INTO "own {name}" VALUES ({", ".join("?" for _ in columns)})', rows)


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


# ---- which questions are about catalogues ---------------------------------------------------------------------------


def is_about_catalogues(statement: exp.Expr) -> bool:
    """True if it reads catalogues or nothing; False if it reads none of them. Refuses a mixture."""
    if not isinstance(statement, STATEMENTS):
        return False
    relations, _ = shape()
    names = {cte.alias for cte in statement.find_all(exp.CTE)}
    tables = [one for one in statement.find_all(exp.Table) if one.db or one.name not in names]
    own = [one.db.lower() in SCHEMAS or (f"pg_catalog.{one.name.lower()}" in relations and not one.db)
           or isinstance(one.this, exp.Func) for one in tables]  # fmt: skip
    if any(own) and not all(own):
        raise QueryRefused(
            "this question mixes catalogues with data.\n  do:     ask about the one, then about the other"
        )
    return all(own)


# ---- from PostgreSQL's dialect to DuckDB's --------------------------------------------------------------------------


def translate(statement: exp.Expr, database: str) -> exp.Expr:
    """The same question of the shadow catalogues. Replacing repeats until nothing changes, as what is replaced is not
    looked into."""
    fixed = {"current_database": database, "current_catalog": database, "current_schema": "public",
             "current_user": "sfumato", "session_user": "sfumato", "user": "sfumato"}  # fmt: skip
    before, found = "", named(statement)
    while (now := found.sql("duckdb")) != before:
        before, found = now, found.transform(replaced, fixed)
    return found


def named(statement: exp.Expr) -> exp.Expr:
    """With the names that PostgreSQL gives to columns that have none: that of the function, or ?column?."""
    found = statement.copy()
    first = found
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if isinstance(first, exp.Select):
        first.set("expressions", [with_name(one) for one in first.expressions])
    return found


def with_name(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Alias | exp.Column | exp.Star):
        return node
    inner, name = node, "?column?"
    while isinstance(inner, exp.Cast | exp.Dot):
        if isinstance(inner, exp.Cast):
            name = inner.to.sql("postgres").lower()
        inner = inner.expression if isinstance(inner, exp.Dot) else inner.this
    if isinstance(inner, exp.Column):
        name = inner.name
    elif isinstance(inner, exp.Func) and not isinstance(inner, exp.Binary | exp.Case | exp.Array):
        name = inner.sql("postgres").split("(")[0].lower()
    return exp.alias_(node.copy(), name, quoted=True)


def replaced(node: exp.Expr, fixed: Mapping[str, str]) -> exp.Expr:
    match node:
        case exp.Table() if isinstance(node.this, exp.Func):
            if node.this.name.lower() not in FUNCTIONS_OF_ROWS and not isinstance(
                node.this, exp.GenerateSeries | exp.Unnest | exp.Explode | exp.ExplodingGenerateSeries
            ):
                raise QueryRefused(f"the function {node.this.name or node.this.sql()} is not known here.")
            if node.args.get("db"):
                node = node.copy()
                node.set("db", None)
            return node
        case exp.Table():
            return shadow_table(node)
        case exp.Dot(this=exp.Identifier(this="pg_catalog" | "information_schema"), expression=exp.Func() as called):
            return called
        case exp.Column() if node.args.get("db"):
            return exp.column(node.name, table=node.table, quoted=True)
        case exp.Cast():
            return plain_cast(node)
        case exp.EQ() | exp.NEQ() if node.expression.is_number and node.this.name in procedures():
            return type(node)(this=node.this, expression=exp.Literal.string("-"))  # no procedure: 0, or its text
        case exp.Collate(this=exp.Expr() as inner):
            return inner
        case exp.Operator():
            sign = node.args["operator"]
            words = (sign if isinstance(sign, str) else sign.sql()).split(".")[-1]
            if words not in ("~", "!~"):
                raise QueryRefused(f"the operator {words} is not known here.")
            matched = exp.RegexpLike(this=node.this, expression=node.expression)
            return exp.Not(this=matched) if words == "!~" else matched
        case exp.CurrentUser() | exp.CurrentDatabase() | exp.CurrentSchema() | exp.CurrentCatalog() | exp.SessionUser():
            return exp.Literal.string(fixed[node.key if node.key in fixed else snake(type(node).__name__)])
        case exp.Anonymous() if node.name.lower() in fixed:
            return exp.Literal.string(fixed[node.name.lower()])
        case exp.Column() if not node.table and node.name.lower() in ("session_user", "current_catalog", "user"):
            return exp.Literal.string(fixed[node.name.lower()])
        case exp.Anonymous() if node.name.lower() in ("json_build_object", "jsonb_build_object"):
            return exp.Anonymous(this="json_object", expressions=node.expressions)
    return node


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def shadow_table(node: exp.Table) -> exp.Expr:
    """A table of a catalogue by its name in the shadow."""
    schema, name = node.db.lower(), node.name.lower()
    if schema in SCHEMAS.values() or name.startswith("own "):
        if schema == "sfumato":
            node = node.copy()
            node.set("db", None)
            alias = node.alias or name
            node.set("this", exp.to_identifier(f"own {name}", quoted=True))
            node.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return node
    if schema in SCHEMAS or f"pg_catalog.{name}" in shape()[0]:
        found = node.copy()
        found.set("db", exp.to_identifier(SCHEMAS[schema or "pg_catalog"]))
        if not node.alias:
            found.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
        return found
    return node


def plain_cast(node: exp.Cast) -> exp.Expr:
    """Casts to PostgreSQL's own types: names to object numbers and back."""
    kind = node.to.sql("postgres").lower().removeprefix("pg_catalog.").strip('"')
    if kind == "regclass" and isinstance(node.this, exp.Literal) and node.this.is_string:
        name = node.this.name.split(".")[-1].strip('"')
        return exp.Anonymous(this="to_regclass", expressions=[exp.Literal.string(name)])
    if kind == "text" and isinstance(node.this, exp.Cast) and node.this.to.sql("postgres").lower().endswith("regtype"):
        return exp.Anonymous(this="format_type", expressions=[node.this.this, exp.null()])
    if kind.startswith("reg") or kind in ("name", "char", "oid", "xid", "unknown"):
        texts = kind in ("name", "char", "unknown")
        return exp.cast(node.this, "TEXT") if texts else node.this
    if kind.endswith("[]") and node.this.is_string and node.this.name.startswith("{"):
        return exp.array(*map(exp.Literal.string, filter(None, node.this.name.strip("{}").split(","))))
    if node.to.sql("postgres").lower().startswith("pg_catalog."):
        return exp.cast(node.this, kind)
    return node
