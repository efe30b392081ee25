"""A bounded pool of worker processes: a statement that takes too long is ended with its process, and no other.

Each process runs one statement of the pool at a time, so the pool also bounds memory. All read the same data: a process
that would find other files than the first one does not start, since a question must not mix two states of the data.
"""

import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.engines.duckdb import DuckDB
from sfumato.engines.worker import RemoteTable, Rows, Worker


@dataclass(eq=False)
class WorkerPool:
    """`size` processes with the same database; they start when they are first needed."""

    engine: DuckDB
    size: int = 2
    _workers: list[Worker] = field(default_factory=list, init=False, repr=False)
    _free: "queue.LifoQueue[Worker]" = field(default_factory=queue.LifoQueue, init=False, repr=False)
    _mine: threading.local = field(default_factory=threading.local, init=False, repr=False)

    def __post_init__(self) -> None:
        first = Worker(self.engine)
        self._workers = [first, *(Worker(self.engine, first.stamp) for _ in range(self.size - 1))]
        for worker in reversed(self._workers):
            self._free.put(worker)

    @property
    def dialect(self) -> str:
        return self.engine.dialect

    @property
    def path(self) -> Path:
        return self.engine.path

    @contextmanager
    def _worker(self) -> Iterator[Worker]:
        """A worker for this thread alone: that of its snapshot, or one that is free. Waits until there is one."""
        mine = getattr(self._mine, "worker", None)
        if mine is not None:
            yield mine
            return
        worker = self._free.get()
        try:
            yield worker
        finally:
            self._free.put(worker)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All statements of this thread inside run in one process."""
        with self._worker() as worker:
            outer, self._mine.worker = getattr(self._mine, "worker", None), worker
            try:
                yield
            finally:
                self._mine.worker = outer

    def run(self, sql: str) -> Rows:
        with self._worker() as worker:
            return worker.run(sql)

    def keep(self, sql: str, name: str) -> RemoteTable:
        with self._worker() as worker:
            return worker.keep(sql, name)

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        with self._worker() as worker:
            return worker.schema()

    def check(self, sql: str) -> None:
        with self._worker() as worker:
            worker.check(sql)

    def untyped(self) -> frozenset[str]:
        return self.engine.untyped()

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
