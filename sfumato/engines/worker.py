"""Engines in worker processes, which can be killed: a time limit ends a statement even if the engine ignores it.

The process is started when it is first needed, and again after it was killed. It ends with the process that started it,
however that ends: when its standard input is closed, it exits at once.
"""

import itertools
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from sfumato.engines.duckdb import DuckDB, KeptTable
from sfumato.engines.files import files
from sfumato.errors import EngineUnavailable, PolicyError

Rows = list[tuple[object, ...]]
Message = tuple[int, object, tuple[str, str] | None]  # number of the request, value, (error class, error text)
GRACE = 0.5  # seconds after the time limit in which the engine may stop by itself
ATTEMPTS = 3  # to run a statement whose process was killed because of another statement
OPENED = 0  # the number of the first reply
HEAD = 8  # bytes for the length of a message


class WorkerEnded(Exception):
    """The worker process ended during a statement."""


# ---- messages -------------------------------------------------------------------------------------------------------


def write_message(to: int, message: object) -> None:
    """Write to a file descriptor: a file object has a lock, which a fork could copy while it is held."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    rest = memoryview(len(data).to_bytes(HEAD) + data)
    while rest:
        rest = rest[os.write(to, rest) :]


def read_message(source: int) -> object:
    """Raises EOFError at the end. Unpickling is safe only between this process and a worker that it started."""
    return pickle.loads(read_bytes(source, int.from_bytes(read_bytes(source, HEAD))))


def read_bytes(source: int, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = os.read(source, min(count - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


# ---- the parent process ---------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Reply:
    """The reply to one request, once it has come."""

    came: threading.Event = field(default_factory=threading.Event)
    value: object = None
    problem: Exception | None = None


@dataclass(eq=False)
class WorkerProcess:
    """One worker process with an open database, and the requests that it is working on."""

    process: "subprocess.Popen[bytes]"
    killed: bool = False  # by us
    _ended: bool = False
    _listener: threading.Thread | None = None
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(OPENED + 1))
    _waiting: dict[int, Reply] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def start(engine: Any) -> "WorkerProcess":
        """Start a process with an engine of these settings, and wait until it has opened its database."""
        places = os.pathsep.join(place for place in (str(Path(__file__).parents[2]), *sys.path) if place)
        session = WorkerProcess(
            subprocess.Popen(
                [sys.executable, "-P", "-m", "sfumato.engines.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # an engine's messages may hold private values
                bufsize=0,
                env={**os.environ, "PYTHONPATH": places},
                start_new_session=True,  # Ctrl-C goes to the parent, which ends the worker
            )
        )
        opened = session._waiting.setdefault(OPENED, Reply())
        session._listener = threading.Thread(target=session.listen, name="sfumato worker", daemon=True)
        session._listener.start()
        settings = {part.name: getattr(engine, part.name) for part in fields(engine) if part.init}
        try:
            session.send((type(engine).__module__, type(engine).__name__, settings))
            session.wait(opened, None)
        except BaseException:
            session.end()  # its thread must not outlive the interpreter
            raise
        return session

    def ask(self, seconds: float | None, *request: object) -> object:
        """The value that the process replies. It is killed on Ctrl-C, and if it does not reply in time."""
        number, reply = next(self._numbers), Reply()
        with self._lock:
            if self._ended:
                raise WorkerEnded
            self._waiting[number] = reply
        try:
            self.send((number, *request))
            return self.wait(reply, seconds)
        finally:
            with self._lock:
                self._waiting.pop(number, None)

    def send(self, message: object) -> None:
        assert self.process.stdin is not None
        try:
            with self._writing:
                write_message(self.process.stdin.fileno(), message)
        except (OSError, ValueError):  # it has ended
            raise WorkerEnded from None

    def wait(self, reply: Reply, seconds: float | None) -> object:
        try:
            came = reply.came.wait(seconds)
        except BaseException:  # Ctrl-C
            self.kill()
            raise
        if not came:
            self.kill()
            raise TimeoutError("the engine did not stop in time; its process was killed")
        if reply.problem is not None:
            raise reply.problem
        return reply.value

    def listen(self) -> None:
        """Deliver replies until the process ends; then fail all requests that still wait."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
            while True:
                number, value, problem = cast(Message, read_message(self.process.stdout.fileno()))
                with self._lock:
                    reply = self._waiting.get(number)
                if reply is not None:
                    reply.value, reply.problem = value, restore_error(*problem) if problem else None
                    reply.came.set()
        with self._lock:
            self._ended, left = True, list(self._waiting.values())
        with self._writing:  # nobody may be writing: the descriptor could be reused for another file
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        for reply in left:
            if not reply.came.is_set():
                reply.problem = WorkerEnded()
                reply.came.set()

    def kill(self) -> None:
        self.killed = True
        with suppress(OSError):
            self.process.kill()

    def end(self) -> None:
        """Kill the process, and wait until its listener has ended."""
        self.kill()
        if self._listener is not None and self._listener is not threading.current_thread():
            self._listener.join(1.0)

    @property
    def alive(self) -> bool:
        return not (self._ended or self.killed)

    def forget(self) -> None:
        """In a forked child: close our copies of the pipes, so that they do not keep the parent's worker alive."""
        self.killed, self._listener = True, None
        null = os.open(os.devnull, os.O_RDWR)
        for end in (self.process.stdin, self.process.stdout):
            with suppress(OSError, ValueError):
                os.dup2(null, end.fileno(), inheritable=False)  # type: ignore[union-attr]
        os.close(null)
        self.process.returncode = 0  # it is not a child of this process


def restore_error(kind: str, message: str) -> Exception:
    """An error of the worker process. Its message is for the operator."""
    known: dict[str, type[Exception]] = {
        error.__name__: error for error in (TimeoutError, PolicyError, EngineUnavailable, MemoryError, ValueError)
    }
    return known.get(kind, RuntimeError)(message)


@dataclass(eq=False)
class DataStamp:
    """Which files the first process read: their names, sizes and times. A process that is started later must find the
    same, since a question that reads some rows before a change and some after it could count a person twice."""

    _first: tuple[tuple[str, int, int, int], ...] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self) -> None:
        with self._lock:
            self._first = None

    def require_same(self, path: Path) -> None:
        places = files(path) or [path]
        states = [(str(place), place.stat()) for place in places]
        found = tuple((name, state.st_ino, state.st_size, state.st_mtime_ns) for name, state in states)
        with self._lock:
            self._first = self._first or found
            if found != self._first:
                raise EngineUnavailable(
                    "the data have changed since they were opened.\n  found:  another file, or another time of change\n"
                    "  do:     open the curator again, or restart the service, after `sfumato data version --raise`"
                )


@dataclass(eq=False)
class RestartedProcess:
    """A worker process that is started when it is first needed, and again after it was killed; `engine` has its
    settings, and is never opened here."""

    engine: Any
    _session: WorkerProcess | None = field(default=None, init=False, repr=False)
    _starting: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        WORKERS.add(self)

    def before_start(self) -> None:
        """Raises if no process may be started now."""

    @property
    def limit(self) -> float | None:
        """Seconds after which the process is killed."""
        return None if self.engine.timeout is None else self.engine.timeout + GRACE

    def ask(self, *request: object) -> object:
        """Statements only read, so one whose process was killed because of another statement is run again."""
        for _ in range(ATTEMPTS):
            session = self.session()
            try:
                return session.ask(self.limit, *request)
            except WorkerEnded:
                if not session.killed:
                    break
        raise WorkerEnded("the engine's process ended during a statement; it may have run out of memory")

    def session(self) -> WorkerProcess:
        with self._starting:
            if self._session is None or not self._session.alive:
                self.before_start()
                self._session = WorkerProcess.start(self.engine)
                weakref.finalize(self, self._session.end)
            return self._session

    def close(self) -> None:
        """End the process; the next statement starts another one."""
        with self._starting:
            if self._session is not None:
                self._session.end()
                self._session = None

    def forget(self) -> None:
        session, self._session = self._session, None
        self._starting = threading.Lock()  # its holder is not in this process
        if session is not None:
            session.forget()


@dataclass(eq=False)
class Worker(RestartedProcess):
    """An engine over the owner's data whose statements run in a worker process."""

    engine: DuckDB
    stamp: "DataStamp" = field(default_factory=lambda: DataStamp(), repr=False)

    @property
    def dialect(self) -> str:
        return self.engine.dialect

    @property
    def path(self) -> Path:
        return self.engine.path

    def before_start(self) -> None:
        self.stamp.require_same(self.engine.path)

    def run(self, sql: str) -> Rows:
        return self.ask("run", sql)  # type: ignore[return-value]

    def keep(self, sql: str, name: str) -> "RemoteTable":
        """The result of one statement as a table, which lasts until it is closed or its process ends."""
        session = self.session()
        number = session.ask(self.limit, "keep", sql, name)
        return RemoteTable(session, int(number), self.limit)  # type: ignore[call-overload]

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        return self.ask("schema")  # type: ignore[return-value]

    def check(self, sql: str) -> None:
        self.ask("check", sql)

    def untyped(self) -> frozenset[str]:
        return self.engine.untyped()  # from the names of files only

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """End the process; the next statement starts another one, which may find other data."""
        self.stamp.forget()
        super().close()


WORKERS: "weakref.WeakSet[RestartedProcess]" = weakref.WeakSet()


def forget_all() -> None:
    for worker in list(WORKERS):
        worker.forget()


os.register_at_fork(after_in_child=forget_all)


@dataclass(eq=False)
class RemoteTable:
    """A table that the worker process keeps. Once that process has ended, statements fail and it must be made again."""

    session: WorkerProcess = field(repr=False)
    number: int
    limit: float | None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def run(self, sql: str) -> Rows:
        """One statement at a time, so that the time limit does not include waiting for another one."""
        with self._lock:
            return self.session.ask(self.limit, "run kept", self.number, sql)  # type: ignore[return-value]

    def add(self, sql: str, name: str) -> None:
        """Another table beside it, made from it."""
        self.run(f"CREATE TEMP TABLE {name} AS {sql}")

    def close(self) -> None:
        with suppress(WorkerEnded):
            if self.session.alive:
                self.session.ask(GRACE, "close kept", self.number)


# ---- the worker process ---------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Server:
    """The engine, the tables that it keeps, and the descriptor for replies."""

    engine: Any
    replies: int  # file descriptor
    kept: dict[int, KeptTable] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, number: int, *request: object) -> None:
        value, problem = None, None
        try:
            value = self.result(request)
        except BaseException as error:
            problem = type(error).__name__, str(error)
        with self._writing:
            write_message(self.replies, (number, value, problem))

    def result(self, request: tuple[object, ...]) -> object:
        match request:
            case ("open",):
                self.engine.connection()
            case ("run", str(sql)):
                return self.engine.run(sql)
            case ("check", str(sql)):
                self.engine.check(sql)
            case ("schema",):
                return self.engine.schema()
            case ("keep", str(sql), str(name)):
                number = next(self._numbers)
                self.kept[number] = self.engine.keep(sql, name)
                return number
            case ("run kept", int(number), str(sql)):
                return self.kept[number].run(sql)
            case ("close kept", int(number)):
                self.kept.pop(number).close()
            case ("describe" | "compute" as what, tables, str(sql)):  # of released values: see `postprocessing`
                return getattr(self.engine, what)(tables, sql)
        return None


def limit_addresses(more: int) -> None:
    """Let this process take at most `more` MiB of addresses than it has; 0: no limit. Only Linux keeps such a limit."""
    if more and sys.platform == "linux":
        import resource

        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (more << 20), resource.RLIM_INFINITY))


def serve() -> None:
    """Read requests from standard input, and reply on standard output. Each request has its own thread."""
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # nothing else may be written there
        os.dup2(null, standard)
    try:
        module, name, settings = cast(tuple[str, str, dict[str, object]], read_message(requests))
        server = Server(getattr(import_module(module), name)(**settings), replies)
        server.answer(OPENED, "open")
        limit_addresses(getattr(server.engine, "headroom", 0))
        while True:
            request = cast(tuple[object, ...], read_message(requests))
            threading.Thread(target=server.answer, args=request, daemon=True).start()
    except EOFError:
        os._exit(0)  # the parent has ended: nobody waits for what is still running


if __name__ == "__main__":
    serve()
