"""Views that last: sums by day, in a folder beside the data; `sfumato views` writes them, and DuckDB loads them.

They hold units in the clear, and belong where the data are. Each view has Parquet files by day, one for all days, and
an entry in views.json: what it is, a digest of the rows of each day, and the state of the data that it was made of. A
view of another state is not used. A refresh marks it as stale, replaces the files of days whose rows have changed, and
then writes the entry again; so whatever is interrupted leaves views that are right, or are not used.
"""

import glob
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Protocol

from sfumato.engines.files import Delimiters, sources
from sfumato.errors import EngineUnavailable

CATALOG = "_sf_lasting"  # the database in memory that holds them
INDEX = "views.json"
PART, ALL = "_sf_part", "all.parquet"
NEVER = "-"  # the state of a view that is being written


class Rows(Protocol):
    def fetchall(self) -> list[tuple[object, ...]]: ...


class Session(Protocol):
    """A connection to DuckDB."""

    def execute(self, sql: str) -> Rows: ...


@dataclass(frozen=True)
class StoredView:
    """One view: its question, the description that the emitter reads, and the digest of each day."""

    name: str
    sql: str
    day: str
    description: str = ""
    state: str = NEVER
    days: Mapping[str, str] = field(default_factory=dict)

    def files(self, folder: Path) -> list[str]:
        """The files of its days, as patterns. Names of folders are none: clinic[1] is not clinic1."""
        return [f"{glob.escape(str(folder / self.name / f'{PART}={day}'))}/*.parquet" for day in sorted(self.days)]

    def file_of_all_days(self, folder: Path) -> str:
        return glob.escape(str(folder / self.name / ALL))


def view_folder(path: Path) -> Path:
    """Where the views of these data are."""
    return Path(f"{str(path).rstrip('/')}.views")


def state_of(path: Path, delimiters: Delimiters = ()) -> str:
    """Which files hold the data, how long they are, and when they were changed."""
    listed = sorted({file for source in sources(path, delimiters) for file in source.files} or {path})
    found = [(str(one), (stat := one.stat()).st_size, stat.st_mtime_ns) for one in listed]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def load_index(folder: Path) -> dict[str, StoredView]:
    """The views of a folder, by name."""
    if not (folder / INDEX).exists():
        return {}
    listed = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return {one["name"]: StoredView(**one) for one in listed}


def save_index(folder: Path, views: Mapping[str, StoredView]) -> None:
    """Replaced at once, and durably."""
    folder.mkdir(mode=0o700, exist_ok=True)
    new = folder / f"{INDEX}.new"
    with open(new, "w", encoding="utf-8") as file:
        json.dump([asdict(one) for one in views.values()], file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, folder / INDEX)


def load_views(connection: Session, path: Path, state: str) -> tuple[str, ...]:
    """Load the views of this state of the data; their descriptions. Files that are missing raise."""
    folder = view_folder(path)
    current = [view for view in load_index(folder).values() if view.state == state]
    if not current:
        return ()
    connection.execute(f"ATTACH ':memory:' AS {CATALOG} (READ_WRITE)")
    for view in current:
        listed = ", ".join(quote(one) for one in view.files(folder))
        read = f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false)"
        every = f"SELECT * FROM read_parquet([{quote(view.file_of_all_days(folder))}])"
        connection.execute(f"CREATE TABLE {days_of(view.name)} AS {read}")
        connection.execute(f"CREATE TABLE {all_of(view.name)} AS {every}")
    return tuple(view.description for view in current)


def days_of(name: str) -> str:
    """The table of a view by days, as SQL names it."""
    return f"{CATALOG}.main.{name}_days"


def all_of(name: str) -> str:
    return f"{CATALOG}.main.{name}_all"


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# ---- writing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ViewStatements:
    """The statements that make a view. A day is named by a text, PART, which is also the name of a folder."""

    description: str
    digests: str  # PART and a digest of its rows
    sums: str  # PART, day, unit, keys, sums
    merged: str  # unit, keys, sums: of the table of all days


@dataclass(frozen=True)
class Refreshed:
    """The result of a refresh."""

    name: str
    days: int
    made: int
    removed: int


def refresh(
    connection: Session, path: Path, view: StoredView, made: ViewStatements, delimiters: Delimiters
) -> Refreshed:
    """Make the files of the days whose rows differ from those that the view was made of; the others stay."""
    folder, state = view_folder(path), state_of(path, delimiters)
    folder.mkdir(mode=0o700, exist_ok=True)
    now = {str(day): str(digest) for day, digest in connection.execute(made.digests).fetchall()}
    if not now:
        raise EngineUnavailable("a view of no rows has no days.\n  do:     build it when there are rows")
    known = dict(view.days) if view.description == made.description else {}
    changed = [day for day, digest in now.items() if known.get(day) != digest]
    gone = [day for day in view.days if day not in now]
    save_index(folder, load_index(folder) | {view.name: replace(view, state=NEVER)})
    found = replace(view, description=made.description, days=now, state=state)
    if changed or gone or not (folder / view.name / ALL).exists():
        replace_days(connection, folder, found, made, changed, gone)
    if state_of(path, delimiters) != state:
        raise EngineUnavailable("the data were changed while a view was made of them.\n  do:     refresh it again")
    save_index(folder, load_index(folder) | {view.name: found})
    return Refreshed(view.name, len(now), len(changed), len(gone))


def replace_days(
    connection: Session, folder: Path, view: StoredView, made: ViewStatements, changed: list[str], gone: list[str]
) -> None:
    place, fresh = folder / view.name, folder / f"{view.name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    place.mkdir(exist_ok=True)
    if changed:
        some = "" if len(changed) == len(view.days) else f" WHERE {PART} IN ({', '.join(map(quote, changed))})"
        copy = f"FORMAT parquet, PARTITION_BY ({PART}), FILENAME_PATTERN 'data_{{i}}'"
        connection.execute(f"COPY (SELECT * FROM ({made.sums}){some}) TO {quote(str(fresh))} ({copy})")
    for day in [*changed, *gone]:
        shutil.rmtree(place / f"{PART}={day}", ignore_errors=True)
    for day in changed:
        os.replace(fresh / f"{PART}={day}", place / f"{PART}={day}")
    shutil.rmtree(fresh, ignore_errors=True)
    listed = ", ".join(map(quote, view.files(folder)))
    days = f"CREATE OR REPLACE TEMP VIEW _sf_days AS SELECT * FROM read_parquet([{listed}], hive_partitioning = false)"
    connection.execute(days)
    connection.execute(f"COPY ({made.merged}) TO {quote(str(place / ALL))} (FORMAT parquet)")


def drop(path: Path, name: str) -> bool:
    """Remove a view; was there one?"""
    folder = view_folder(path)
    views = load_index(folder)
    if name not in views:
        return False
    save_index(folder, {other: view for other, view in views.items() if other != name})
    shutil.rmtree(folder / name, ignore_errors=True)
    return True
