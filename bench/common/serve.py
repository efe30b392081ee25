"""One side of the comparison, in a process of its own: reads a line of JSON, does the work, writes a line of JSON.

    python -P serve.py sides/dp_accounting.py

Only the standard library is imported here: each side runs in the virtual environment of its own package. The work is
timed where it is done, so the pipe costs nothing. All functools caches of the package are emptied before each
repetition, outside the clock: a remembered answer must not pass for a fast one.

A side says by CLOCK which clock it is timed with, if not by the one on the wall.
A side with PREPARES = True has jobs that return the work to be timed, for what may be made once and used many times, as
tables of noise are; its caches are left alone, since a fresh draw cannot be remembered.
"""

import functools
import gc
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

Answer = dict[str, object]


def caches(package: str) -> list[Callable[[], None]]:
    """The cache_clear of each functools cache of the package, wherever it hangs: modules, classes, closures."""
    if not package:
        return []
    found = [thing for thing in gc.get_objects() if issubclass(type(thing), functools._lru_cache_wrapper)]
    return [cache.cache_clear for cache in found if (cache.__module__ or "").split(".")[0] == package]


def timed(
    work: Callable[[], Answer], package: str, times: int, seconds: float, clock: Callable[[], float] = time.perf_counter
) -> Answer:
    """Up to `times` repetitions, as many as begin within `seconds`: their milliseconds, and the last answer."""
    clear, spent, answer = caches(package), [], None
    while not spent or (len(spent) < times and sum(spent) < 1e3 * seconds):
        for empty in clear:
            empty()
        start = clock()
        answer = work()
        spent.append(1e3 * (clock() - start))
    return {"ms": spent, "answer": answer}


def reply(side: ModuleType, request: Answer) -> Answer:
    """The answer to one request; what goes wrong is told, not raised."""
    try:
        job, arguments = getattr(side, str(request["job"])), dict(request["arguments"])  # type: ignore[call-overload]
        prepares = getattr(side, "PREPARES", False)
        return timed(
            job(**arguments) if prepares else lambda: job(**arguments),
            "" if prepares else side.PACKAGE,
            int(request["times"]),  # type: ignore[call-overload]
            float(request["seconds"]),  # type: ignore[arg-type]
            getattr(side, "CLOCK", time.perf_counter),
        )
    except NotImplementedError as problem:
        return {"absent": str(problem)}
    except Exception as problem:
        return {"error": " ".join(f"{type(problem).__name__}: {problem}".split())[:200]}


def loaded(path: str) -> ModuleType:
    """The module in this file, under a name that hides no package."""
    spec = importlib.util.spec_from_file_location("side", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def release(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from its source
        return "source"


def main() -> None:
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a package prints does not mix with the answers
    side = loaded(sys.argv[1])
    print(json.dumps({"version": release(side.PACKAGE)}), file=out)
    for line in sys.stdin:
        print(json.dumps(reply(side, json.loads(line))), file=out)


if __name__ == "__main__":
    main()
