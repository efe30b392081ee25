"""The catalogues that clients look at (pg_catalog, information_schema, sfumato), from the public schema alone.

Questions about them are translated from PostgreSQL's dialect, and run in a process of their own (`shadow`); questions
that mix them with private tables are refused.
"""

import datetime
import re
from collections.abc import Callable, Mapping
from functools import cache

from sqlglot import exp

from sfumato.curator.answer import Cell
from sfumato.engines.worker import RestartedProcess, WorkerEnded
from sfumato.errors import QueryRefused
from sfumato.server.postgres import types
from sfumato.server.postgres.shadow import SCHEMAS, Found, ShadowDuckDB, Table, shape
from sfumato.server.postgres.types import Type

FUNCTIONS_OF_ROWS = {"generate_series", "unnest", "pg_get_keywords"}
STATEMENTS = exp.Select | exp.SetOperation
MOMENTS = ("clock_timestamp", "transaction_timestamp", "statement_timestamp")  # besides now()
RESULTS = {
    "BOOLEAN": types.BOOL, "BIGINT": types.INT8, "HUGEINT": types.INT8, "INTEGER": types.INT4,
    "SMALLINT": types.INT2, "UINTEGER": types.OID, "DOUBLE": types.FLOAT8, "FLOAT": types.FLOAT8,
    "TIMESTAMP": types.TIMESTAMP, "DATE": types.DATE,
}  # fmt: skip


@cache
def procedures() -> frozenset[str]:
    """Columns that hold the number of a procedure; here they hold its name, as PostgreSQL shows it."""
    return frozenset(
        column for columns in shape()[0].values() for column, kind in columns.items() if kind == "regproc!"
    )


class Catalogue(RestartedProcess):
    """The catalogues of one data set. The process starts when somebody first looks at them."""

    def __init__(
        self, database: str, tables: Mapping[str, Mapping[str, Type]], own: Mapping[str, Mapping[str, str]] = {}
    ):
        """Tables with their columns; those of the schema sfumato by DuckDB's names of types."""
        self.database = database
        typed = {name: {c: RESULTS.get(k, types.TEXT) for c, k in columns.items()} for name, columns in own.items()}
        listed, of_own = (
            {
                table: {name: (kind.name, kind.oid, kind.size) for name, kind in columns.items()}
                for table, columns in some.items()
            }
            for some in (tables, typed)
        )
        super().__init__(ShadowDuckDB(database, listed, of_own))

    def run(
        self, statement: exp.Expr, own: Mapping[str, Callable[[], Table]], user: str = "sfumato",
        settings: Mapping[str, str] = {},
    ) -> tuple[list[tuple[str, Type]], list[tuple[Cell, ...]]]:  # fmt: skip
        """Names and types of the columns, and rows; `own` makes the tables of the schema sfumato that are asked for."""
        asked = {one.name for one in statement.find_all(exp.Table) if one.db == "sfumato" and one.name in own}
        made = {name: own[name]() for name in asked}
        described, rows = self.compute(made, translate(statement, self.database, user, settings).sql("duckdb"))
        return [(name, RESULTS.get(kind, types.TEXT)) for name, kind in described], rows

    def compute(self, own: Mapping[str, Table], sql: str) -> Found:
        try:
            return self.ask("compute", own, sql)  # type: ignore[return-value]
        except TimeoutError:
            found = f"it takes longer than {self.engine.timeout:g} s"
        except WorkerEnded:
            found = "it takes too much memory"
        except (ValueError, MemoryError, RuntimeError) as problem:
            found = str(problem) or "it takes too much memory"
        raise QueryRefused(f"this question about catalogues is not understood.\n  found:  {found}")


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


def translate(statement: exp.Expr, database: str, user: str, settings: Mapping[str, str] = {}) -> exp.Expr:
    """The same question of the shadow catalogues. Replacing repeats until nothing changes, as what is replaced is not
    looked into."""
    fixed = {"current_database": database, "current_catalog": database, "current_schema": "public",
             "current_user": user, "session_user": user, "user": user,
             "now": str(datetime.datetime.now(datetime.UTC).replace(tzinfo=None)),
             **{f"setting {name}": value for name, value in settings.items()}}  # fmt: skip
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
        case exp.CurrentTimestamp() | exp.CurrentTimestampLTZ() | exp.Localtimestamp() | exp.CurrentDatetime():
            return exp.cast(exp.Literal.string(fixed["now"]), "TIMESTAMP")
        case exp.CurrentDate():
            return exp.cast(exp.Literal.string(fixed["now"][:10]), "DATE")
        case exp.Anonymous() if node.name.lower() in MOMENTS:
            return exp.cast(exp.Literal.string(fixed["now"]), "TIMESTAMP")
        case exp.Anonymous() if node.name.lower() in ("current_setting", "set_config"):
            return of_setting(node, fixed)
        case exp.Anonymous() if node.name.lower() in fixed:
            return exp.Literal.string(fixed[node.name.lower()])
        case exp.Column() if not node.table and node.name.lower() in ("session_user", "current_catalog", "user"):
            return exp.Literal.string(fixed[node.name.lower()])
        case exp.Anonymous() if node.name.lower() in ("json_build_object", "jsonb_build_object"):
            return exp.Anonymous(this="json_object", expressions=node.expressions)
    return node


def of_setting(call: exp.Anonymous, fixed: Mapping[str, str]) -> exp.Expr:
    """The value of a setting. To change one of ours by a function would be without effect."""
    first = call.expressions[0].name.lower() if call.expressions else ""
    if call.name.lower() == "current_setting":
        return exp.Literal.string(fixed.get(f"setting {first}", ""))
    if first.startswith("sfumato."):
        raise QueryRefused(f"set_config does not change this.\n  do:     SET {first[:50]} = …")
    return call


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
