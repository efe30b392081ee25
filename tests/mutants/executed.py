"""Which test executes which statement, noted once; and how tests run in a process forked for them.

Notes are made by the code itself: a module is imported with `__seen__[n] = 1` before each statement of a function.
"""

import ast
import contextlib
import functools
import hashlib
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType

import numpy as np
import pytest

from tests.mutants.random_changes import ROOT, Change, deciding, parsed, statements

RESULTS = ROOT / "bench" / "results" / "mutants"
MAPPED = 40.0  # seconds of the processor for each file with tests; what comes later in it is left out


Say = Callable[[str], None]  # of a child to its parent, a line


# ---- what is imported instead -------------------------------------------------------------------------------------


class Planted(SourceFileLoader):
    """Imports a module from other code than that of its file."""

    def __init__(self, name: str, path: str, code: CodeType, seen: bytearray):
        super().__init__(name, path)
        self.code, self.seen = code, seen

    def get_code(self, fullname: str) -> CodeType:
        return self.code

    def exec_module(self, module: object) -> None:
        module.__seen__ = self.seen
        super().exec_module(module)


def plant(codes: dict[str, CodeType], seen: bytearray) -> None:
    """Whatever imports these modules from now on gets this code."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("sfumato", "tests")]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder(codes, seen))


class Finder:
    """Finds modules whose code was exchanged; they are given by path."""

    def __init__(self, codes: dict[str, CodeType], seen: bytearray):
        self.codes, self.seen = {module_name(path): (path, code) for path, code in codes.items()}, seen

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in self.codes:
            return None
        file, code = self.codes[name]
        loader = Planted(name, str(ROOT / file), code, self.seen)
        where = [str((ROOT / file).parent)] if file.endswith("__init__.py") else None
        return spec_from_file_location(name, ROOT / file, loader=loader, submodule_search_locations=where)


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# ---- which tests execute a statement ------------------------------------------------------------------------------


def marked(path: str, offset: int) -> ast.Module:
    """A module whose functions note each statement that they execute, from this place on."""
    tree = parsed(path)
    numbers = statements(tree)
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [new for one in block for new in noted(one, numbers, offset)])
    return ast.fix_missing_locations(tree)


def noted(one: ast.stmt, numbers: dict[int, int], offset: int) -> list[ast.stmt]:
    if id(one) not in numbers:
        return [one]
    note = ast.parse(f"__seen__[{offset + numbers[id(one)]}] = 1").body[0]
    for node in ast.walk(note):
        ast.copy_location(node, one)
    documented = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
    return [one, note] if documented else [note, one]


@dataclass(frozen=True)
class CoverageMap:
    """The tests of one file that pass: names, seconds and, as bits, the statements that each executes."""

    file: str
    names: list[str]
    seconds: list[float]
    bits: np.ndarray
    places: dict[str, tuple[int, int, str]]

    def executing(self, change: Change) -> list[int]:
        """The tests that execute the statement; or any of its module, if the module has changed or is importing."""
        start, length, source = self.places.get(change.path, (0, 0, ""))
        columns = self.bits[:, start : start + length]
        exact = change.statement >= 0 and source == digest(change.path)
        return np.flatnonzero(columns[:, change.statement] if exact else columns.any(axis=1)).tolist()


def digest(path: str) -> str:
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:16]


def test_files() -> list[str]:
    """Files with tests; all doctests are one."""
    return [*sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py")), "sfumato"]


def map_of(file: str) -> CoverageMap:
    """The map of one file with tests, made unless it is there."""
    version = digest(file) if file.endswith(".py") else "doctests"
    kept = RESULTS / "map" / f"{file.replace('/', '.')}-{version}.npz"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        ended, said = in_child(lambda say: execute_marked(file, kept), 10 * MAPPED)
        if said or not ended:
            print(f"{file} was not mapped: {said}", file=sys.stderr)
    if not kept.exists():
        return CoverageMap(file, [], [], np.zeros((0, 0), bool), {})
    with np.load(kept) as found:
        about = json.loads(str(found["about"]))
        return CoverageMap(
            file, about["names"], about["seconds"], np.unpackbits(found["bits"], axis=1) > 0, about["places"]
        )


@functools.cache
def marked_modules() -> tuple[dict[str, tuple[int, int, str]], dict[str, CodeType]]:
    """Where the notes of each module begin, how many there are and of what text; and the modules that make them."""
    places, codes, start = {}, {}, 0
    for path in deciding():
        places[path] = (start, len(statements(parsed(path))), digest(path))
        codes[path] = compile(marked(path, start), ROOT / path, "exec", dont_inherit=True)
        start += places[path][1]
    return places, codes


def execute_marked(file: str, kept: Path) -> None:
    """Runs a file of tests with modules that note what is executed."""
    places, codes = marked_modules()
    seen = bytearray(sum(length for _, length, _ in places.values()))
    plant(codes, seen)
    notes = Notes(seen)
    run_pytest([file], notes)
    rows = [np.packbits(np.frombuffer(row, np.uint8)) for row in notes.rows]
    bits = np.array(rows, np.uint8).reshape(len(rows), -1)
    about = {"names": notes.names, "seconds": notes.seconds, "places": places}
    np.savez_compressed(kept.with_suffix(".tmp.npz"), bits=bits, about=json.dumps(about))
    kept.with_suffix(".tmp.npz").rename(kept)


class Notes:
    """Notes of each test that passes how long it took and what it executed."""

    def __init__(self, seen: bytearray):
        self.seen, self.names, self.seconds, self.rows = seen, [], [], []
        self.until = time.process_time() + MAPPED

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.seen[:] = bytes(len(self.seen))
        self.passed, began = False, time.process_time()
        result = yield
        if self.passed:
            self.names.append(item.nodeid)
            self.seconds.append(time.process_time() - began)
            self.rows.append(bytes(self.seen))
        if time.process_time() > self.until:
            item.session.shouldstop = "the map of a file has a time limit"
        return result

    def pytest_runtest_logreport(self, report):
        self.passed = report.passed if report.when == "call" else self.passed and report.passed


# ---- in a process of its own ----------------------------------------------------------------------------------------


def run_pytest(files: Sequence[str], plugin: object, *options: str) -> int:
    """Pytest's exit code, in this process. Hypothesis was imported before the fork, which pytest warns of."""
    quiet = ["-q", "--no-header", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*quiet, *options, *files], [plugin]))


def in_child(work: Callable[[Say], object], limit: float) -> tuple[bool, list[str]]:
    """Does work in a process forked for it: whether it ended in time, and what it said.

    The limit is in seconds of the processor, since others may use the machine; what waits for ever has ten times that.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + limit), resource.RLIM_INFINITY))
        nowhere = os.open(os.environ.get("SHOW", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            work(lambda words: os.write(writing, f"{words}\n".encode()) and None)
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}\n".encode())
        os._exit(0)
    os.close(writing)
    ended = wait_for(child, 10 * limit)
    with contextlib.suppress(ProcessLookupError):  # servers and children that it left
        os.killpg(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as found:
        return ended, found.read().decode().split("\n")[:-1]


def wait_for(child: int, limit: float) -> bool:
    """Whether a child ends by itself before the limit; it has ended then in either case."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return status == 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
