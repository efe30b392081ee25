"""Views that last: sums by day that the owner has made beside the data; questions about many days are read from them.

A view holds exact sums of each unit, and belongs to the owner; nothing of it is released. A question is answered from
it if its tables, conditions, keys and sums are those of the view; a condition on the day is decided by the days.
"""

import glob
import hashlib
from dataclasses import replace

from sfumato.aggregates.registry import parse_question
from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB, limit_settings, open_locked_down
from sfumato.engines.files import is_pattern
from sfumato.engines.views import (
    NEVER,
    PART,
    Refreshed,
    StoredView,
    ViewStatements,
    all_of,
    days_of,
    drop,
    load_index,
    quote,
    refresh,
    state_of,
    view_folder,
)
from sfumato.errors import InvalidParameter, PolicyError
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.daily import daily_sums, daily_table, day_rows, measures_of, merged_days, require_daily
from sfumato.sql.plan import Plan
from sfumato.sql.policy import Policy
from sfumato.sql.reserved_names import DAY, ROWS, UNIT, key, measure, qualify

DATES, MOMENTS = ("DATE",), ("TIMESTAMP",)  # types of columns whose days are told apart
KEPT_UNITS = ("VARCHAR", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UUID", "DATE", "TIMESTAMP")  # as files keep them


def build_view(engine: Engine, policy: Policy, sql: str, day: str) -> Refreshed:
    """Make the view of a question without conditions on the day, such as
    SELECT ward, COUNT(*), SUM(cost) FROM visits GROUP BY ward. One that is there is refreshed."""
    name = f"v{hashlib.sha256(f'{day} {sql}'.encode()).hexdigest()[:12]}"
    return refresh_view(engine, policy, StoredView(name, sql, day))


def refresh_views(engine: Engine, policy: Policy) -> list[Refreshed]:
    """Bring all views up to date: the days whose rows have changed are made again."""
    return [refresh_view(engine, policy, view) for view in load_index(view_folder(local(engine).path)).values()]


def drop_view(engine: Engine, name: str) -> None:
    """Remove a view."""
    local(engine).close()
    if not drop(local(engine).path, name):
        raise InvalidParameter(f"there is no such view.\n  found:  {name}\n  do:     sfumato views list DATA")


def listed_views(engine: Engine) -> list[tuple[StoredView, bool]]:
    """The views of these data; and is each of the data as they are now?"""
    path, found = local(engine).path, load_index(view_folder(local(engine).path))
    state = state_of(path, local(engine).delimiters) if found else NEVER
    return [(view, view.state == state) for view in found.values()]


def refresh_view(engine: Engine, policy: Policy, view: StoredView) -> Refreshed:
    """Make what is missing of a view, with a connection of its own that may write into the folder of views alone."""
    owner = local(engine)
    owner.close()  # an open database has settings that cannot be changed
    known = load_index(view_folder(owner.path)).get(view.name, view)
    folder = view_folder(owner.path)
    folder.mkdir(mode=0o700, exist_ok=True)
    spellings = [str(folder.resolve()), str(folder), glob.escape(str(folder))]  # DuckDB compares texts, of patterns too
    allowed = f"SET allowed_directories = [{', '.join(map(quote, spellings))}]"
    schema = owner.schema()
    owner.close()
    connection = open_locked_down(owner.path, (*limit_settings(owner.memory, owner.spill), allowed), owner.delimiters)
    try:
        made = statements_of(policy, known, replace(dialect_of("duckdb"), schema=schema))
        return refresh(connection, owner.path, known, made, owner.delimiters)
    finally:
        connection.close()


def local(engine: Engine) -> DuckDB:
    """The engine, if its data are files beside which views can be."""
    if isinstance(engine, DuckDB) and engine.path.exists() and not is_pattern(engine.path):
        return engine
    raise InvalidParameter(
        "views are made beside a DuckDB file, or a file or folder of Parquet and CSV files.\n"
        f"  found:  {type(engine).__name__}\n  do:     ask without views; the database aggregates by itself"
    )


def statements_of(policy: Policy, view: StoredView, to: Dialect) -> ViewStatements:
    """The statements that make a view."""
    plan = parse_question(view.sql, policy).plan
    require_daily(plan, view.day)
    spoken = to.about(plan)
    type_, unit = (spoken.type_of(plan.table, name) for name in (view.day, plan.table.unit_column or ""))
    if type_ not in (*DATES, *MOMENTS) or unit is None or unit not in KEPT_UNITS:
        raise PolicyError(
            f"a view needs a column of dates or timestamps, and units of a type that Parquet files keep.\n"
            f"  found:  {plan.table.name}.{view.day} {type_}, {plan.table.unit_column} {unit}\n"
            "  do:     store the day as DATE, and the unit as text or as an integer of at most 64 bits"
        )
    table = daily_table(plan, view.day, type_ in DATES, days_of(view.name), all_of(view.name))
    part = part_of(f"{ROWS}.{spoken.identifier(view.day)}")
    sums = f"SELECT {part} AS {PART}, {ROWS}.* FROM ({daily_sums(plan, table, spoken)}) AS {ROWS}"
    merged = merged_days(plan, replace(table, days="_sf_days"), spoken)
    return ViewStatements(table.to_json(), digests(plan, day_rows(plan, table, spoken)), sums, merged)


def part_of(day: str) -> str:
    """A day as the name of a folder."""
    words = f"COALESCE(CAST(CAST({day} AS DATE) AS TEXT), 'none')"
    return f"REPLACE(REPLACE(REPLACE({words}, ' ', '_'), '(', ''), ')', '')"


def digests(plan: Plan, rows: str) -> str:
    """Of each day the number of its rows and a sum of their hashes."""
    values = [measure(j) for j, m in enumerate(measures_of(plan)) if m.of]
    names = qualify(ROWS, [DAY, UNIT, *(key(i) for i in range(len(plan.keys))), *values])
    mark = f"COUNT(*) || ' ' || SUM(HASH({', '.join(names)})) || ' ' || BIT_XOR(HASH(7, {', '.join(names)}))"
    return f"SELECT {part_of(f'{ROWS}.{DAY}')}, {mark} FROM ({rows}) AS {ROWS} GROUP BY 1"
