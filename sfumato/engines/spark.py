"""Spark as an engine: it reads the owner's tables, in files or in a catalog. Needs the extra `spark`, and Spark 4.

    sf.Curator.open("sc://spark.example:15002/;token=…#/lake/clinic", policy="clinic.toml", ledger="clinic.ledger")

The server should belong to an account that may read the tables of the policy and write nothing. What stands after # is
a folder of Parquet tables, or the name of a database of the catalog.
"""

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from sfumato.engines.duckdb import fold_case
from sfumato.engines.spark_files import (
    STATE,
    DataChanged,
    Files,
    TableFolder,
    files_of,
    frame_of,
    list_files,
    require_plain,
    tables_in,
)
from sfumato.engines.spark_session import LISTING, collect, new_session, release, require_settings, stop_logging
from sfumato.errors import EngineUnavailable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")
Rows = list[tuple[object, ...]]
DATABASE = "default"
NAMED = re.compile(r"`((?:[^`]|``)+)`")  # a name in a statement of ours


@dataclass(eq=False)
class Spark:
    """The tables that are reached by a session of the owner's, or by an address, which may hold a password and is never
    shown: those of a database of the catalog, or the Parquet files of a folder (a place with a / in it).

    Each question has a session of its own. It reads the files that were there when it began, and fails if one of them
    was changed before its last statement ended.
    """

    owner: "SparkSession | str" = field(repr=False)
    place: str = DATABASE
    timeout: float = 3600.0  # seconds for one statement
    dialect: str = field(default="spark", init=False)
    _local: threading.local = field(default_factory=threading.local, init=False, repr=False)
    _opening: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _lister: "SparkSession | None" = field(default=None, init=False, repr=False)
    _schemas: "dict[str, tuple[str, StructType]]" = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def at(address: str, timeout: float) -> "Spark":
        """The engine at sc://host:port/;token=…#place."""
        server, _, place = address.partition("#")
        return Spark(server, place or DATABASE, timeout)

    @property
    def in_folder(self) -> bool:
        return "/" in self.place

    def run(self, sql: str) -> Rows:
        with self.state() as state:
            state.read(sql)
            return rows_of(state.session, sql, self.timeout)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self.state():
            yield

    @contextmanager
    def state(self) -> "Iterator[State]":
        """The state of the data that this thread's question reads; a new one outside of a question."""
        outer: State | None = getattr(self._local, "state", None)
        if outer is not None:
            yield outer
            return
        state = self._local.state = State(self, self.session())
        try:
            yield state
            state.require_unchanged()
        finally:
            self._local.state = None
            release(state.session)

    def schema(self) -> dict[str, dict[str, str]]:
        """From the catalog, or from the footers of files."""
        with self.state() as state:
            return {name: columns_of(state.typed(name)) for name in state.names}

    def check(self, sql: str) -> None:
        """Spark resolves the names and types of a statement; nothing is run."""
        with self.state() as state:
            state.view(sql)
            self.within(state.session, lambda: state.session.sql(sql).schema)

    def mark(self, sql: str) -> str:
        """The state that a kept table depends on: the present files of all tables that a statement names."""
        with self.state() as state:
            state.read(sql)
            return "; ".join(f"{name} {state.files[name].mark}" for name in state.named(sql))

    def keep(self, sql: str, name: str) -> "KeptTable":
        """The result of one statement, cached by Spark. If Spark loses a part of it, that is computed again from the
        files of then: so a question that reads it compares their mark before, and looks again afterwards."""
        with self.state() as state:
            state.read(sql)
            own = State(self, self.session(), expected=state.files)
            kept = KeptTable(own.session, self.timeout)
            try:
                own.view(sql)
                kept.add(sql, name)
            except BaseException:
                kept.close()
                raise
            return kept

    def close(self) -> None:
        """Give up the session that lists files; the owner's stays open."""
        with self._opening:
            lister, self._lister = self._lister, None
        if lister is not None:
            release(lister)

    # ---- sessions ---------------------------------------------------------------------------------------------------

    def session(self) -> "SparkSession":
        """A new session with our settings, in which names are those of the owner's database."""
        found = new_session(self.owner)
        if not self.in_folder and self.place != DATABASE:
            self.within(found, lambda: found.catalog.setCurrentDatabase(self.place))
        return found

    def lister(self) -> "SparkSession":
        """The session that lists files; opened once."""
        with self._opening:
            if self._lister is None:
                lister = new_session(self.owner, LISTING)
                stop_logging(lister)
                if self.in_folder:
                    self.within(lister, lambda: require_plain(lister, self.place))
                self._lister = lister
            return self._lister

    def within(self, session: "SparkSession", work: Callable[[], T]) -> T:
        """The result of work on a session, within the time of a statement."""
        return collect(session, work, self.timeout)

    def list(self, places: list[str]) -> Files:
        """The files at these places, as they are now."""
        lister = self.lister()
        return self.within(lister, lambda: list_files(lister, places))

    def typed(self, name: str, files: Files, infer: "Callable[[], StructType]") -> "StructType":
        """The columns of a table, which are read again when its files have changed."""
        known = self._schemas.get(name)
        if known is None or known[0] != files.mark:
            known = self._schemas[name] = files.mark, infer()
        return known[1]


@dataclass(eq=False)
class State:
    """One state of the data: a session with a view for each table that was named, and the files that these read."""

    engine: Spark
    session: "SparkSession"
    expected: Mapping[str, Files] = field(default_factory=dict)  # of tables, which must be these
    files: dict[str, Files] = field(default_factory=dict)  # of tables that have a view
    _read: set[str] = field(default_factory=set)  # tables that were not only bound
    _folders: dict[str, TableFolder] | None = None
    _names: list[str] | None = None

    # ---- names and types --------------------------------------------------------------------------------------------

    @property
    def folders(self) -> dict[str, TableFolder]:
        """The tables of a folder, listed once."""
        if self._folders is None:
            self._folders = tables_in(self.engine.place, self.engine.list([self.engine.place]))
        return self._folders

    @property
    def names(self) -> list[str]:
        if self._names is None:
            self._names = sorted(self.folders) if self.engine.in_folder else self.listed_names()
        return self._names

    def listed_names(self) -> list[str]:
        """The tables and views of the database."""
        listed = self.engine.within(self.session, lambda: self.session.catalog.listTables())
        return sorted({fold_case(one.name) for one in listed if not one.isTemporary})

    def named(self, sql: str) -> list[str]:
        """The tables whose names stand in a statement; a column or a text that is called so does no harm."""
        words = {fold_case(name.replace("``", "`")) for name in NAMED.findall(sql)}
        return [name for name in self.names if name in words]

    def typed(self, name: str) -> "StructType":
        if not self.engine.in_folder:
            return self.engine.within(self.session, lambda: self.session.table(quoted(name)).schema)
        table = self.folders[name]
        infer = self.engine.within
        return self.engine.typed(
            name, table.files, lambda: infer(self.session, lambda: frame_of(self.session, table, None).schema)
        )

    # ---- views ------------------------------------------------------------------------------------------------------

    def read(self, sql: str) -> None:
        """The views of a statement that will be run."""
        self.view(sql)
        self._read.update(self.named(sql))

    def view(self, sql: str) -> None:
        """A view for each table that a statement names."""
        for name in self.named(sql):
            if name not in self.files:
                self.files[name] = self.view_table(name)

    def view_table(self, name: str) -> Files:
        """Make the view of a table, whose listing stays as it is; its files."""
        frame, files = self.from_folder(name) if self.engine.in_folder else self.from_catalog(self.session, name)
        if not files.found:
            raise EngineUnavailable(f"a table has no files whose state could be checked.\n  found:  {name}")
        if self.expected.get(name, files) != files:
            raise DataChanged("files of a table were changed while a question read them")
        self.engine.within(self.session, lambda: frame.createOrReplaceTempView(quoted(name)))
        return files

    def from_folder(self, name: str) -> "tuple[DataFrame, Files]":
        table, schema = self.folders[name], self.typed(name)
        return self.engine.within(self.session, lambda: frame_of(self.session, table, schema)), table.files

    def from_catalog(self, session: "SparkSession", name: str) -> "tuple[DataFrame, Files]":
        def marked(state: str) -> "tuple[DataFrame, list[str]]":
            frame = session.read.option(STATE, state).table(quoted(name))
            return frame, files_of(frame)

        _, paths = self.engine.within(session, lambda: marked(uuid.uuid4().hex))  # of a cached table there are none
        files = self.engine.list(paths)
        frame, again = self.engine.within(session, lambda: marked(files.mark))
        if again != paths:
            raise DataChanged("files of a table came or went while they were listed")
        return frame, files

    def require_unchanged(self) -> None:
        """Raises unless all files that were read are as they were when the question began. In a folder others may have
        been added since, which nothing has read; in a catalog a partition may have, so there must be none."""
        if not self._read:
            return
        self.engine.within(self.session, lambda: require_settings(self.session))
        if self.engine.in_folder:
            now = self.engine.list([self.folders[name].place for name in sorted(self._read)])
            for name in self._read:
                self.files[name].require_unchanged(now)
            return
        fresh = self.engine.session()
        try:
            for name in sorted(self._read):
                if self.from_catalog(fresh, name)[1] != self.files[name]:
                    raise DataChanged("files of a table were changed while a question read them")
        finally:
            release(fresh)


@dataclass(eq=False)
class KeptTable:
    """Results that Spark caches, in a session of their own, so that no other statement can see them."""

    session: "SparkSession" = field(repr=False)
    timeout: float
    _frames: "list[DataFrame]" = field(default_factory=list, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def add(self, sql: str, name: str) -> None:
        """The result of a statement as a view of this name; all of it is computed now."""

        def cached() -> None:
            frame = self.session.sql(sql).cache()
            self._frames.append(frame)  # also if it fails, or Spark would go on to use it
            frame.createOrReplaceTempView(name)
            frame.count()

        with self._lock:
            collect(self.session, cached, self.timeout)

    def run(self, sql: str) -> Rows:
        return rows_of(self.session, sql, self.timeout)

    def close(self) -> None:
        with self._lock:
            for frame in reversed(self._frames):
                with suppress(Exception):
                    frame.unpersist()
            self._frames.clear()
        release(self.session)


def rows_of(session: "SparkSession", sql: str, timeout: float) -> Rows:
    return collect(session, lambda: [tuple(row) for row in session.sql(sql).collect()], timeout)


def columns_of(schema: "StructType") -> dict[str, str]:
    """column → type. A type with a collation is a text."""
    types = {fold_case(one.name): str(one.dataType.simpleString()) for one in schema.fields}
    return {name: "string" if kind.startswith("string ") else kind for name, kind in types.items()}


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
