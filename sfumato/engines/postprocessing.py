"""Free SQL over released values: an empty DuckDB in a process of its own, which never holds private rows.

What an analyst may compute from released and public tables costs no privacy. It must not reach anything else: tables
are those of the request, files, extensions, settings and catalog are locked, and functions are deterministic. DuckDB's
own parser decides what a text says (`json_serialize_sql`), so nothing can be read in two ways.
"""

import datetime
import decimal
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import duckdb

from sfumato.engines.duckdb import quote_name, require_version, run_interruptible
from sfumato.engines.worker import RestartedProcess, WorkerEnded

Cell = float | int | str | bool | datetime.date | None
SECONDS, MEMORY = 5.0, 256  # for one statement; MiB
MOST_ROWS = 100_000  # of a result
MOST_CELLS = 2_000_000
SETTINGS = (
    "SET python_enable_replacements = false",
    "SET autoload_known_extensions = false",
    "SET autoinstall_known_extensions = false",
    "SET max_temp_directory_size = '0KiB'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
TABLE_FUNCTIONS = frozenset({"generate_series", "range", "unnest"})
MACROS = frozenset(
    ("array_append", "array_pop_back", "array_pop_front", "array_prepend", "array_push_back", "array_push_front",
     "array_reverse", "array_to_string", "date_add", "days_in_month", "fdiv", "fmod", "geomean", "geometric_mean",
     "histogram", "if", "list_any_value", "list_append", "list_avg", "list_bool_and", "list_bool_or", "list_count",
     "list_first", "list_histogram", "list_kurtosis", "list_last", "list_max", "list_median", "list_min", "list_mode",
     "list_prepend", "list_product", "list_reverse", "list_skewness", "list_stddev_pop", "list_stddev_samp",
     "list_string_agg", "list_sum", "list_var_pop", "list_var_samp", "nullif", "regexp_split_to_table", "split_part",
     "wavg", "weighted_avg")
)  # fmt: skip
# words that are read as calls of functions, unless a column has this name
CLOCKS = frozenset(
    ("current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp",
     "current_user", "localtime", "localtimestamp", "session_user", "user")
)  # fmt: skip
UNSTABLE = frozenset({"version"})  # DuckDB calls it consistent
DETERMINISTIC = (
    "SELECT function_name FROM duckdb_functions() WHERE internal AND function_type IN ('scalar', 'aggregate', 'window')"
    " GROUP BY 1 HAVING BOOL_AND(stability = 'CONSISTENT')"
)
SHOWN_AS_TEXT = ("TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE")


@dataclass(frozen=True)
class SmallTable:
    """Columns with their types, as DuckDB names them, and rows: released values, or public ones."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Cell, ...], ...] = ()


Tables = Mapping[str, SmallTable]


@dataclass
class PostprocessingDuckDB:
    """The worker's side: an empty database. Tables of a request are temporary, and no other request sees them."""

    timeout: float = SECONDS
    memory: int = MEMORY
    headroom: int = 4 * MEMORY  # MiB of addresses for its process: DuckDB folds constants outside of its own limit
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _allowed: frozenset[str] = field(default=frozenset(), init=False, repr=False)

    def connection(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            require_version(duckdb.__version__)
            found = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": f"{self.memory}MiB"})
            self._allowed = (MACROS | {str(name) for (name,) in found.execute(DETERMINISTIC).fetchall()}) - UNSTABLE
            for setting in SETTINGS:
                found.execute(setting)
            self._connection = found
        return self._connection

    def describe(self, tables: Tables, sql: str) -> list[tuple[str, str]]:
        """(name, type) of each column of the result. Raises ValueError if the text is not allowed or does not bind."""
        with self.connection().cursor() as cursor:
            self.require_allowed(cursor, tables, sql)
            load(cursor, {name: SmallTable(table.columns) for name, table in tables.items()})
            bound = lambda: cursor.execute(f"DESCRIBE {sql}").fetchall()  # noqa: E731
            try:
                found = [(str(row[0]), str(row[1])) for row in run_interruptible(bound, cursor.interrupt, self.timeout)]
            except duckdb.Error as problem:
                raise ValueError(first_line(problem)) from None
        if strange := [name for name, kind in found if kind in SHOWN_AS_TEXT]:
            raise ValueError(f"{strange[0]} has a time zone; CAST it to TIMESTAMP or TEXT")
        return found

    def compute(self, tables: Tables, sql: str) -> list[tuple[Cell, ...]]:
        """The rows of the result; ValueError if it fails, which depends on released and public values alone."""
        cursor = self.connection().cursor()

        def fetch() -> list[tuple[object, ...]]:
            with cursor:
                self.require_allowed(cursor, tables, sql)
                load(cursor, tables)
                return cursor.execute(sql).fetchmany(MOST_ROWS + 1)

        try:
            rows = run_interruptible(fetch, cursor.interrupt, self.timeout)
        except duckdb.Error as problem:
            raise ValueError(first_line(problem)) from None
        if len(rows) > MOST_ROWS:
            raise ValueError(f"more than {MOST_ROWS:,} rows")
        return [tuple(map(plain_cell, row)) for row in rows]

    def require_allowed(self, cursor: duckdb.DuckDBPyConnection, tables: Tables, sql: str) -> None:
        """Raises ValueError unless the text is one SELECT over these tables, with deterministic functions."""
        (text,) = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchone() or ("",)
        found = json.loads(text)
        if found.get("error"):
            raise ValueError(str(found.get("error_message", "it cannot be read")).split("\n", 1)[0])
        if len(found["statements"]) != 1 or found["statements"][0].get("named_param_map"):
            raise ValueError("it is not one SELECT without parameters")
        known = set(tables)
        nodes = list(nodes_of(found["statements"]))
        for node in nodes:
            views = node.get("cte_map")
            known |= {str(one["key"]) for one in views["map"]} if isinstance(views, dict) else set()
            known |= {str(node["cte_name"])} if "cte_name" in node else set()
        for node in nodes:
            self.require_node(node, {fold(name) for name in known})

    def require_node(self, node: Mapping[str, object], known: set[str]) -> None:
        kind = node.get("type")
        if kind == "BASE_TABLE":
            name, place = str(node.get("table_name")), (node.get("schema_name"), node.get("catalog_name"))
            if any(place) or node.get("at_clause") or fold(name) not in known:
                raise ValueError(f"there is no table {name!r} here")
        if kind == "COLUMN_REF" and (names := node.get("column_names")) and str(names[-1]).lower() in CLOCKS:  # type: ignore[index]
            raise ValueError(f"{str(names[-1]).upper()} is not available: it is not a function of its arguments")  # type: ignore[index]
        if kind in ("SHOW_REF", "COPY_REF", "PARAMETER", "VALUE_PARAMETER") or node.get("sample"):
            raise ValueError("SHOW, parameters and samples are not available")
        if kind == "TABLE_FUNCTION":
            function = node.get("function")
            name = str(function.get("function_name")) if isinstance(function, dict) else ""
            if name not in TABLE_FUNCTIONS:
                raise ValueError(f"{name.upper() or 'this function'} is not available in FROM")
        elif "function_name" in node:
            name = str(node["function_name"]).lower()
            if name not in self._allowed and name not in TABLE_FUNCTIONS:
                raise ValueError(f"{name.upper()} is not available: it is unknown, or not a function of its arguments")
            arguments = node.get("arguments") or node.get("children") or ()  # as DuckDB 2 and 1 call them
            if name == "age" and len(arguments) != 2:  # type: ignore[arg-type]
                raise ValueError("AGE of one moment is not available: it reads the clock; give it two")
            if node.get("schema") or node.get("catalog"):
                raise ValueError(f"{name.upper()} is named with a schema")


def nodes_of(tree: object) -> Iterator[Mapping[str, object]]:
    """All objects of a JSON tree; not recursive, since the tree may be deep."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def fold(name: str) -> str:
    """The lower case of a name as DuckDB has it: of ASCII alone. Python's `lower` makes a k of the Kelvin sign."""
    return name.encode(errors="replace").lower().decode()


def load(cursor: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    """Create the tables, which this cursor alone sees."""
    for name, table in tables.items():
        lists = [[row[j] for row in table.rows] for j in range(len(table.columns))]
        columns = ", ".join(
            f"UNNEST(TRY_CAST(? AS {wire_type(kind)}[])::{kind}[]) AS {quote_name(title)}"
            for title, kind in table.columns
        )
        cursor.execute(f"CREATE TEMP TABLE {quote_name(name)} AS SELECT {columns}", lists)


def wire_type(kind: str) -> str:
    return "VARCHAR" if kind in ("TIMESTAMP", "DATE") else kind


def first_line(problem: Exception) -> str:
    """The message of DuckDB without the picture of the text. Only released and public values can be in it."""
    return str(problem).split("\n", 1)[0][:200]


def plain_cell(value: object) -> Cell:
    """A value as answers hold it: numbers, texts, truth values, dates; all else as text."""
    match value:
        case None | bool() | int() | float() | str() | datetime.date():
            return value
        case decimal.Decimal():
            return float(value)
    return str(value)


@dataclass(eq=False)
class Postprocessor(RestartedProcess):
    """Runs free SQL over small tables in a worker process. A text that is not allowed raises ValueError with a reason;
    so does one that fails or takes too long, and all of these depend on nothing private."""

    engine: PostprocessingDuckDB = field(default_factory=PostprocessingDuckDB)

    def describe(self, tables: Tables, sql: str) -> tuple[tuple[str, str], ...]:
        return tuple(self._ask("describe", tables, sql))  # type: ignore[arg-type]

    def compute(self, tables: Tables, sql: str) -> Sequence[tuple[Cell, ...]]:
        if sum(len(table.rows) * len(table.columns) for table in tables.values()) > MOST_CELLS:
            raise ValueError("the tables are too large")
        return self._ask("compute", tables, sql)  # type: ignore[return-value]

    def _ask(self, what: str, tables: Tables, sql: str) -> Sequence[object]:
        try:
            return self.ask(what, dict(tables), sql)  # type: ignore[return-value]
        except TimeoutError:
            raise ValueError(f"it takes longer than {self.engine.timeout:g} s") from None
        except WorkerEnded:
            raise ValueError("it takes too much memory") from None
        except RuntimeError as problem:
            raise ValueError(str(problem).split("\n", 1)[0][:200]) from None


@cache
def shared_postprocessor() -> Postprocessor:
    """The one of this process: it is started when it is first needed, and no request sees the tables of another."""
    return Postprocessor()
