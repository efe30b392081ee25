"""`make mutants-random`: plants random changes, one at a time, and sees which of them no test notices.

A map is made once of which test executes which statement. Then all tests are collected, and for each change the process
forks: the functions it concerns get other code, and the tests that execute it run, the quickest first, until one fails.
What a module does while it is imported is planted by importing all anew; so are, by `--again`, the changes that no test
noticed, since what was computed during collection may have hidden them. No file changes; programs that tests start as
processes of their own do not see a change. What was found is appended to a file of lines, and a campaign goes on where
it stopped. `--change WORDS --tests tests/test_x.py` tries some changes with some tests.
"""

import argparse
import ast
import difflib
import gc
import importlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from hypothesis import Phase, settings

from tests.mutants.executed import (
    RESULTS,
    CoverageMap,
    Say,
    in_child,
    map_of,
    marked_modules,
    plant,
    run_pytest,
    test_files,
)
from tests.mutants.random_changes import ROOT, Change, changed, changes, deciding, parsed, sample

HARMLESS = Path(__file__).with_name("harmless.txt")
# before the fork, so that no child imports them again
HEAVY = "duckdb sqlglot.optimizer scipy.stats scipy.optimize scipy.integrate mpmath flint hypothesis.strategies pytest"
FIRST, FIRST_FILES = 3.0, 5  # seconds and files of the first round

Timed = tuple[float, str, str]  # a test: seconds, file, name
Runner = Callable[[Sequence[str], Say], None]


# ---- one change ---------------------------------------------------------------------------------------------------


class Chosen:
    """Runs only these tests, in this order (all of the files without names), and says which failed first."""

    def __init__(self, names: Sequence[str], say: Say):
        self.order, self.say = {name: i for i, name in enumerate(names)}, say

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config):
        do_not_shrink()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.order:
            known = (one for one in items if one.nodeid in self.order)
            items[:] = sorted(known, key=lambda one: self.order[one.nodeid])

    def pytest_collectreport(self, report):
        if report.failed:
            self.say(f"import of {report.nodeid}")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.say(report.nodeid)


def do_not_shrink() -> None:
    """That a test fails is enough to know; examples are those of any other run."""
    base = settings.get_profile("repeatable") if "repeatable" in settings._profiles else settings()
    settings.register_profile("one failure", base, phases=[Phase.explicit, Phase.generate])
    settings.load_profile("one failure")


class Campaign:
    """All tests, collected once; instead of running them, forks for each change and runs those that execute it."""

    def __init__(self, left: list[Change], maps: list[CoverageMap], book: Path, jobs: int, limit: float):
        self.left, self.maps, self.book, self.jobs, self.limit = left, maps, book, jobs, limit
        self.failed = False

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config):
        do_not_shrink()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        self.items = {item.nodeid: item for item in session.items}
        workers = [self.worker(self.left[i :: self.jobs]) for i in range(self.jobs)]
        for worker in workers:
            os.waitpid(worker, 0)
        return True

    def worker(self, left: list[Change]) -> int:
        child = os.fork()
        if child:
            return child
        try_changes(left, self.maps, self.book, self.limit, self.run_items)
        os._exit(0)

    def pytest_runtest_logreport(self, report):
        self.failed |= report.failed

    def run_items(self, names: Sequence[str], say: Say) -> None:
        """Runs these tests until one fails, in a process that ends then."""
        items = sorted((self.items[name] for name in names if name in self.items), key=shared)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                say(item.nodeid)
                item.session._setupstate.teardown_exact(None)
                return


def shared(item: pytest.Item) -> str:
    """The file of a test with fixtures that others share, such as a server; nothing for those without, which run first.
    Others run file by file then, so that no fixture is made twice."""
    found = getattr(item, "_fixtureinfo", None)
    wide = [one for ones in found.name2fixturedefs.values() for one in ones if one.scope != "function"] if found else []
    return item.nodeid.split("::")[0] if wide else ""


def exchange(change: Change) -> bool:
    """Gives the functions that a change concerns their new code; not, if it is a matter of importing."""
    old, new = (
        list(codes_in(compile(tree, ROOT / change.path, "exec", dont_inherit=True)))
        for tree in (parsed(change.path), changed(change))
    )
    if change.statement < 0 or len(old) != len(new):
        return False
    other = {before: after for before, after in zip(old, new, strict=True) if before != after}
    live = [one for one in gc.get_objects() if isinstance(one, FunctionType) and one.__code__ in other]
    try:
        for function in live:
            function.__code__ = other[function.__code__]
    except ValueError:  # another number of free variables
        return False
    return bool(live)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code and all inside it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from codes_in(one)


def outcome(
    change: Change, maps: list[CoverageMap], limit: float, run_items: Runner | None = None
) -> dict[str, object]:
    """What became of a change: by functions exchanged where there is a way to run collected tests, else imported."""
    began, ran, noticed, quickly = time.monotonic(), 0, "", change.statement >= 0 and run_items is not None
    if quickly:
        tests = within(sorted(executing(change, maps)), limit, len(maps))
        ran, noticed = len(tests), exchanged(change, tests, run_items)
        quickly = noticed != "not exchanged"
    if not quickly:
        for tests in rounds(change, maps, limit):
            ran, noticed = ran + len(tests), imported(change, tests)
            if noticed:
                break
    spent = round(time.monotonic() - began, 1)
    return {"name": change.name, "line": change.line, "noticed": noticed, "tests": ran, "seconds": spent}


def exchanged(change: Change, tests: list[Timed], run_items: Runner) -> str:
    """The test that notices a change of functions, "time limit", or nothing."""

    def work(say: Say) -> None:
        if exchange(change):
            run_items([name for *_, name in tests], say)
        else:
            say("not exchanged")

    return tried(work, tests)


def imported(change: Change, tests: list[Timed]) -> str:
    """The test that notices a change when all is imported anew, "time limit", or nothing."""

    def work(say: Say) -> None:
        run_changed(change, list(dict.fromkeys(file for _, file, _ in tests)), [name for *_, name in tests], say)

    return tried(work, tests)


def run_changed(change: Change, files: Sequence[str], names: Sequence[str], say: Say) -> None:
    """Imports all anew with a change and runs tests. If not even `conftest.py` can be imported, no test is reported,
    and only the exit code tells."""
    plant({change.path: compile(changed(change), ROOT / change.path, "exec", dont_inherit=True)}, bytearray())
    code = run_pytest(files, Chosen(names, say), "-x")
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        say(f"pytest ends with {code!r}")


def tried(work: Callable[[Say], None], tests: list[Timed]) -> str:
    return in_time(work, 20 + 5 * sum(seconds for seconds, *_ in tests)) if tests else ""


def in_time(work: Callable[[Say], None], limit: float) -> str:
    ended, said = in_child(work, limit)
    return said[0] if said else "" if ended else "time limit"


def outcome_with(change: Change, named: Sequence[str], limit: float) -> dict[str, object]:
    """What becomes of a change with these tests, given as files or as pytest names them."""
    began = time.monotonic()
    noticed = in_time(lambda say: run_changed(change, named, [], say), limit)
    spent = round(time.monotonic() - began, 1)
    return {"name": change.name, "line": change.line, "noticed": noticed, "tests": len(named), "seconds": spent}


def executing(change: Change, maps: list[CoverageMap]) -> list[Timed]:
    """The tests that execute a statement; of one that runs while tests are collected only, those of its module."""
    found = [(one.seconds[i], one.file, one.names[i]) for one in maps if one.names for i in one.executing(change)]
    return found if found or change.statement < 0 else executing(replace(change, statement=-1), maps)


def rounds(change: Change, maps: list[CoverageMap], limit: float) -> Iterator[list[Timed]]:
    """The tests for a change: a few quick ones of few files; then all that execute it; then the rest of their files."""
    every = executing(change, maps)
    first = within(sorted(every, key=lambda one: (distance(change.path, one[1]), one[0])), FIRST, FIRST_FILES)
    yield first
    yield within(sorted(set(every) - set(first)), limit, len(maps))
    files = {file for _, file, _ in every}
    rest = {
        (seconds, one.file, name)
        for one in maps
        if one.file in files
        for seconds, name in zip(one.seconds, one.names, strict=True)
    }
    yield within(sorted(rest - set(every)), limit / 4, len(maps))


def distance(path: str, file: str) -> int:
    """0 for tests named after the module, 1 for those of its folder, 2 for others."""
    return 0 if Path(path).stem in Path(file).stem else 1 if Path(path).parts[1] in file else 2


def within(tests: Sequence[Timed], limit: float, files: int) -> list[Timed]:
    """The first tests that take no longer together and are in so few files, quickest first."""
    chosen, spent, used = [], 0.0, set()
    for one in tests:
        if spent + one[0] <= limit and (one[1] in used or len(used) < files):
            chosen.append(one)
            spent += one[0]
            used.add(one[1])
    return sorted(chosen)


def difference(change: Change) -> str:
    """The change as a diff of the code, without comments."""
    before, after = (ast.unparse(tree).splitlines() for tree in (parsed(change.path), changed(change)))
    lines = difflib.unified_diff(before, after, change.path, f"line {change.line}", n=1, lineterm="")
    return "\n".join(list(lines)[1:])


# ---- many ---------------------------------------------------------------------------------------------------------


def harmless() -> dict[str, str]:
    """Changes that were looked at and change nothing that matters, with the reason."""
    lines = HARMLESS.read_text(encoding="utf-8").splitlines() if HARMLESS.exists() else []
    names, reasons = lines[0::3], lines[1::3]
    return dict(zip(names, (reason.strip() for reason in reasons), strict=False))


def found_before(book: Path) -> dict[str, dict[str, object]]:
    """The last line about each change."""
    lines = book.read_text(encoding="utf-8").splitlines() if book.exists() else []
    return {str(one["name"]): one for one in map(json.loads, lines)}


def report(chosen: list[Change], found: dict[str, dict[str, object]]) -> str:
    ran = [one for one in chosen if one.name in found]
    survivors = [one for one in ran if not found[one.name]["noticed"]]
    reasons = harmless()
    left = [one for one in survivors if one.name not in reasons]
    late = sum(found[one.name]["noticed"] == "time limit" for one in ran)
    counted = len(ran) - len(survivors) + len(left)
    lines = [f"{one.name}\n{difference(one)}\n" for one in left]
    lines.append(
        f"{len(chosen)} sampled, {len(ran)} run: {len(ran) - len(survivors)} noticed ({late} by the time limit), "
    )
    lines.append(f"{len(survivors) - len(left)} harmless, {len(left)} open; ")
    lines.append(f"{100 * (counted - len(left)) / max(1, counted):.1f} % of those that are not harmless are noticed")
    known = {one.name for path in deciding("") for one in changes(path)}
    lines += [f"\nno such change any more, in {HARMLESS.name}: {name}" for name in reasons if name not in known]
    return "\n".join(lines[: len(left)]) + "\n" + "".join(lines[len(left) :])


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--count", type=int, default=500, help="how many changes (500)")
    asked.add_argument("--seed", type=int, default=1, help="which sample (1)")
    asked.add_argument("--only", default="", help="files whose path begins so, as sfumato/sql")
    asked.add_argument("--jobs", type=int, default=1, help="processes (1)")
    asked.add_argument("--limit", type=float, default=60.0, help="seconds of tests for one change (60)")
    asked.add_argument("--again", action="store_true", help="try the changes again that no test noticed")
    asked.add_argument("--change", default="", help="only those whose names contain this; also those that were noticed")
    asked.add_argument("--tests", nargs="+", help="run these tests, as pytest names them, not those of the map")
    asked.add_argument("--report", action="store_true", help="run nothing")
    options = asked.parse_args()
    book = RESULTS / f"seed-{options.seed}.jsonl"
    chosen, found = sample(deciding(options.only), options.count, options.seed), found_before(book)
    left = [one for one in chosen if one.name not in found or (options.again and not found[one.name]["noticed"])]
    left = [one for one in left if one.name not in harmless()]
    if options.change:
        left = [one for one in chosen if options.change in one.name]
    if left and not options.report:
        run(left, book, options)
    print(report(chosen, found_before(book)))
    return 0


def run(left: list[Change], book: Path, options: argparse.Namespace) -> None:
    book.parent.mkdir(parents=True, exist_ok=True)
    for name in HEAVY.split():
        importlib.import_module(name)
    if options.tests:
        note(left, book, lambda change: outcome_with(change, options.tests, options.limit))
        return
    marked_modules()  # once, before the forks
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        maps = pool.map(map_of, test_files(), chunksize=1)
    if not options.again:
        run_pytest(["tests", "sfumato"], Campaign(left, maps, book, options.jobs, options.limit), "-s")
        return
    try_changes(left, maps, book, options.limit)


def try_changes(
    left: list[Change], maps: list[CoverageMap], book: Path, limit: float, run_items: Runner | None = None
) -> None:
    note(left, book, lambda change: outcome(change, maps, limit, run_items))


def note(left: list[Change], book: Path, find: Callable[[Change], dict[str, object]]) -> None:
    """Appends what becomes of each change to the book."""
    with book.open("a", encoding="utf-8") as lines:
        for change in left:
            found = find(change)
            lines.write(json.dumps(found, ensure_ascii=False) + "\n")
            lines.flush()
            print(f"{found['noticed'] or 'NOT NOTICED'}  {found['seconds']} s  {change.name}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
