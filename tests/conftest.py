"""How the tests run: the same examples every time, no clock, no window."""

import hashlib
import itertools
import os
import signal
import sys
import zlib
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

# Before numpy is imported, which reads it then: the threads of a matrix product wait for each other by spinning, and
# where every core has a test of its own they spin for longer than they multiply. Processes that tests start inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Containers often forbid bytecode: then every process that a test starts compiles all of sfumato, for .5 s and more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from sfumato.curator.purchase import Buyer
from sfumato.noise import entropy

sys.dont_write_bytecode = False  # nor are tests rewritten and compiled anew in every run

# Before anyone imports matplotlib: pictures are drawn into memory.
os.environ["MPLBACKEND"] = "Agg"

# Under nohup Ctrl-C is ignored, also by children, and tests that press it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every machine, so that a red test is a change in the code and not in the dice.
# too_slow and the deadline measure the machine, not the code.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--spread", type=int, metavar="N", help="one test function in N, and one of every file; none slow")
    parser.addoption("--examples", type=int, metavar="N", help="N times as many examples of each law, with fresh dice")


def pytest_collection_modifyitems(config, items):
    """`--spread N`: of every file the test functions whose checksum modulo N is 0, or else least; one case of each."""
    if many := config.getoption("--examples"):
        for law in {item.function for item in items if hasattr(getattr(item, "function", None), "hypothesis")}:
            stated = law._hypothesis_internal_use_settings or settings.default
            more = settings(stated, max_examples=many * stated.max_examples, derandomize=False)
            law._hypothesis_internal_use_settings = more
    if not (every := config.getoption("--spread")):
        return
    files, kept, functions = {}, set(), {}
    for item in items:
        if not item.get_closest_marker("slow"):
            functions.setdefault((item.path, item.name.partition("[")[0]), []).append(item)
    for (path, name), cases in functions.items():
        files.setdefault(path, []).append((zlib.crc32(name.encode()), cases))
    for found in files.values():
        least = min(checksum % every for checksum, _ in found)
        kept.update(cases[checksum % len(cases)] for checksum, cases in found if checksum % every == least)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.fixture(autouse=True)
def repeatable_bits(request, monkeypatch):
    """The noise of a test is the same in every run: its keys come from its name, not from the operating system.

    A forked child has keys of its own, as ever. Tests that are about fresh bits are marked so, and must then hold
    whatever is drawn but for a probability that they state.
    """
    if request.node.get_closest_marker("fresh_bits"):
        yield
        return
    home, taken = os.getpid(), itertools.count()

    def urandom(size):
        where = "" if os.getpid() == home else f" of {os.getpid()}"
        return hashlib.shake_256(f"{request.node.nodeid} {next(taken)}{where}".encode()).digest(size)

    recorded = SimpleNamespace(**{name: getattr(os, name) for name in dir(os)} | {"urandom": urandom})
    with monkeypatch.context() as patched:
        patched.setattr(entropy, "os", recorded)
        patched.setattr(Buyer, "salt", property(lambda buyer: 1))  # else the time of opening decides what is kept
        entropy.SYSTEM.renew()
        yield
    entropy.SYSTEM.renew()
