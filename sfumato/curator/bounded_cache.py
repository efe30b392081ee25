"""Bounded tables that are kept, so that a later question about the same rows and groups need not bound them again.

Bounding what each unit adds is nearly all that a private answer costs, and gives a table with a few exact integers for
each group. The engine keeps it beside the data, for as long as they are open. It is never shown; noise is drawn anew.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.reserved_names import KEPT, measure, qualify


class CachedTable(Protocol):
    """A table that an engine keeps under a name."""

    def run(self, sql: str) -> list[Row]: ...

    def add(self, sql: str, name: str) -> None:
        """Keep the result of a statement on it as well, under this name."""

    def close(self) -> None: ...


class Runner(Protocol):
    def run(self, sql: str) -> list[Row]: ...


@runtime_checkable
class CachingEngine(Protocol):
    """An engine that can keep the result of a statement as a table."""

    def keep(self, sql: str, name: str) -> CachedTable: ...


@runtime_checkable
class ChangingEngine(Protocol):
    """An engine whose data may change while it is open."""

    def mark(self, sql: str) -> str:
        """Which state of the data a statement reads, in this snapshot."""


RESULTS, LARGEST_RESULT = 16, 10_000  # results remembered for each table, and the most rows of one


@dataclass(eq=False)
class BoundedTable:
    """A table that is kept, where in it each column is, and what was read of it last.

    Votes for keys and histograms of norms depend on no price, and sums on nothing but a bound: a later question finds
    them as they are. Where data may change, `mark` is the state of the data that it was made of.
    """

    table: CachedTable
    columns: Mapping[str, str]
    mark: str = ""
    results: dict[str, list[Row]] = field(default_factory=dict, repr=False)  # by statement; newest last

    def run(self, sql: str) -> list[Row]:
        """The rows of a statement on this table."""
        rows = self.results.pop(sql, None)
        if rows is None:
            rows = self.table.run(sql)
        if len(rows) <= LARGEST_RESULT:
            self.results[sql] = rows
            for old in list(self.results)[:-RESULTS]:
                self.results.pop(old, None)
        return list(rows)


@dataclass
class BoundedTables:
    """The cached tables: the `capacity` most recently used ones. Which they are depends on questions, not on data."""

    capacity: int
    _views: list[BoundedTable] = field(default_factory=list, repr=False)  # the most recently used is last
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def rows(self, engine: Runner, request: TableRequest) -> list[Row]:
        """The table that `direct` gives, in quicker steps or from cached tables where possible.

        If anything fails, all of them are given up, as they may have taken the memory that was lacking (values that
        very many have are listed by `quick`, and counted by `direct`), and the direct statement decides.
        """
        try:
            if request.quick is not None:
                return request.quick(engine.run)
            if self.capacity and isinstance(engine, CachingEngine):
                if request.tables:
                    return self.read_tables(engine, request)
                if request.columns:
                    return self.read_cached(engine, request)
        except TimeoutError:
            raise
        except Exception:
            self.clear()
        return engine.run(request.direct)

    def read_cached(self, engine: CachingEngine, request: TableRequest) -> list[Row]:
        """The columns from cached tables; missing columns are computed now, into one new table."""
        mark = self.current_mark(engine, request)
        with self._lock:
            found = {
                name: view
                for view in self._views
                if view.mark == mark
                for name in view.columns
                if name in request.columns
            }
        missing = [j for j, name in enumerate(request.columns) if name not in found]
        if missing:
            made = {request.columns[j]: measure(i) for i, j in enumerate(missing)}
            found |= dict.fromkeys(made, BoundedTable(engine.keep(request.made(missing), KEPT), made, mark))
        rows = (
            join_columns(request, found) if request.read is None else found[request.columns[0]].table.run(request.read)
        )
        self.mark_used(list(dict.fromkeys(found.values())))
        return rows

    def read_tables(self, engine: CachingEngine, request: TableRequest) -> list[Row]:
        """The result of `read` on its tables, which are created now unless they are cached."""
        text, mark = "; ".join(sql for _, sql in request.tables), self.current_mark(engine, request)
        with self._lock:
            view = next((one for one in self._views if text in one.columns and one.mark == mark), None)
        if view is None:
            (name, sql), *others = request.tables
            view = BoundedTable(engine.keep(sql, name), {text: ""}, mark)
            for name, sql in others:
                view.table.add(sql, name)
        rows = view.run(request.read or "")
        self.mark_used([view])
        return rows

    def current_mark(self, engine: CachingEngine, request: TableRequest) -> str:
        """The state of the data that this request reads. Tables for the same columns of another state are closed: what
        is found afterwards is of this one."""
        if not isinstance(engine, ChangingEngine):
            return ""
        mark = engine.mark(request.direct)
        texts = {*request.columns, "; ".join(sql for _, sql in request.tables)}
        with self._lock:
            gone = [view for view in self._views if view.mark != mark and not texts.isdisjoint(view.columns)]
            self._views = [view for view in self._views if view not in gone]
        for view in gone:
            view.table.close()
        return mark

    def mark_used(self, views: list[BoundedTable]) -> None:
        """Mark tables as most recently used, and drop those beyond the capacity."""
        with self._lock:
            ordered = [view for view in self._views if view not in views] + views
            gone, self._views = ordered[: -self.capacity], ordered[-self.capacity :]
        for view in gone:
            view.table.close()

    def clear(self) -> None:
        with self._lock:
            gone, self._views = self._views, []
        for view in gone:
            view.table.close()


def join_columns(request: TableRequest, found: Mapping[str, BoundedTable]) -> list[Row]:
    """Keys and columns in order. Columns of several views are put together by their keys: all views have the same
    groups, since which there are does not depend on what is counted in them."""
    width, merged = len(request.keys), dict[Row, list[object]]()
    for view in dict.fromkeys(found.values()):
        mine = [j for j, name in enumerate(request.columns) if found[name] is view]
        listed = [*request.keys, *(view.columns[request.columns[j]] for j in mine)]
        rows = view.table.run(f"SELECT {', '.join(qualify(KEPT, listed))} FROM {KEPT}")
        if len(mine) == len(request.columns):
            return rows
        for row in rows:
            cells = merged.setdefault(row[:width], [None] * len(request.columns))
            for j, value in zip(mine, row[width:], strict=True):
                cells[j] = value
    return [(*key, *cells) for key, cells in merged.items()]
