"""Faults: crashes, races, damage, full disks. A sample of each fault; bench/bench_faults.py tries them all."""

import errno
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import LedgerDamaged, LedgerUnavailable
from sfumato.ledger import Budget, FileAnchor, Ledger
from sfumato.ledger.hash_chain import NoAnchor
from tests.faults import alone
from tests.faults.damage import (
    TABLES,
    Copy,
    copied,
    cut_wal,
    flips,
    of_lines,
    opened,
    refused,
    row_changes,
    unanchored,
)
from tests.faults.races import exactly_spent, run, storm

ROOT = Path(__file__).parents[2]
SMALL = sf.loss.GaussianLoss(0.001)
YEAR = 365.25 * 86400


@pytest.fixture
def place(tmp_path):
    return tmp_path / "clinic.ledger"


@pytest.fixture
def ledger(place):
    made = Ledger.create(place, Budget(1.0, 1e-6))
    yield made
    made.close()


@pytest.fixture(scope="module")
def hundred(tmp_path_factory):
    """A closed ledger of a hundred lines. Its anchor is beside it."""
    place = tmp_path_factory.mktemp("hundred") / "clinic.ledger"
    of_lines(place, 100).close()
    return place


def anchor_of(place: Path) -> Path:
    return Path(f"{place}.anchor")


# ---- crashes and races ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_at_any_point_nothing_was_released_that_was_not_charged(tmp_path):
    memory = Path("/dev/shm")  # a kill is no power cut: what is written stays, and a file system in memory is quicker
    folder = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else tmp_path)
    try:
        found = alone("kills", 200, folder)
    finally:
        shutil.rmtree(folder)
    assert found["points"] >= 13  # the named ones, and random moments
    assert sum(found["kills"].values()) == 200
    assert found["released"] > 0 < found["unseen"]


def test_eight_processes_race_for_one_budget(tmp_path):
    assert alone("races", 8, 2, 0.01, tmp_path)["charges"] > 100


def test_sixteen_threads_race_for_one_budget(ledger):
    step = sf.loss.GaussianLoss(0.01)
    exactly_spent(ledger, step, run(ledger, step, "here", 16))


def test_a_key_sent_by_a_hundred_at_once_is_charged_once(place, ledger):
    others = [Ledger.open(place) for _ in range(4)]
    bodies = storm([ledger, *others], SMALL, times=100)
    assert len(bodies) == 100
    assert len(set(bodies)) == 1
    state = ledger.verify()
    assert len(state.costs) == len(state.answers) == 1
    for other in others:
        other.close()


FORK = """
import os, sys
import sfumato as sf
from sfumato.errors import LedgerUnavailable
from sfumato.ledger import Budget, Ledger
loss = sf.loss.GaussianLoss(0.001)
ledger = Ledger.create(sys.argv[1], Budget(1.0, 1e-6))
ledger.charge(loss, question="parent")
told, tell = os.pipe()
if os.fork() == 0:
    ledger.charge(loss, question="child")
    os.read(told, 1)                        # until the parent has closed the ledger, and with it the log
    ledger.charge(loss, question="child, alone")
    os._exit(0)
ledger.charge(loss, question="parent again")
ledger.close()
os.write(tell, b"x")
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert len(Ledger.open(sys.argv[1]).verify().costs) == 4
for bad in ("memory", "middle"):
    other = Ledger.create(":memory:", Budget(1.0, 1e-6)) if bad == "memory" else Ledger.open(sys.argv[1])
    other.charge(loss, question="parent")
    def probe(point):
        if bad == "middle" and point == "charge: written" and os.fork() == 0:
            child.append(1)
    child = []
    object.__setattr__(other, "probe", probe)
    if bad == "memory" and os.fork() == 0:
        child.append(1)
    try:
        other.charge(loss, question="q")
        assert not child
        os.wait()
        assert len(other.verify().costs) == 2 if bad == "memory" else 6
    except LedgerUnavailable as problem:
        assert child and "forked" in str(problem), problem
        os._exit(0)
"""


def test_parent_and_child_charge_the_same_budget_after_a_fork(place):
    subprocess.run([sys.executable, "-c", FORK, place], cwd=ROOT, check=True, timeout=60)


# ---- damage ---------------------------------------------------------------------------------------------------------


def test_a_flipped_bit_is_noticed(hundred):
    copy = Copy.of(hundred)
    sample = random.Random(0).sample(list(flips(copy)), 600)
    assert not [change for change in sample if not copy.noticed(change)]
    copy.close()


def test_every_column_is_watched(hundred):
    """One bit of the first row of every column of every table."""
    copy = Copy.of(hundred)
    firsts = {sql: (sql, values) for sql, values in reversed(list(flips(copy)))}
    assert len(firsts) == sum(map(len, TABLES.values()))
    assert not [change for change in firsts.values() if not copy.noticed(change)]
    copy.close()


def test_rows_removed_swapped_or_appended_are_noticed(hundred):
    copy = Copy.of(hundred)
    assert not [changes for changes in row_changes(copy) if not copy.noticed(*changes)]
    copy.close()


def test_a_truncated_file_is_refused(hundred, tmp_path):
    size = hundred.stat().st_size
    for left in random.Random(0).sample(range(0, size, 512), 40):
        cut = copied(hundred, tmp_path / "cut.ledger")
        os.truncate(cut, left)
        assert refused(lambda at=cut: opened(at, anchor_of(hundred))), left


def test_bits_flipped_in_the_file_are_refused_or_change_nothing(hundred, tmp_path):
    before, data, rng = opened(hundred, anchor_of(hundred)), hundred.read_bytes(), random.Random(0)
    for _ in range(60):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        target = copied(hundred, tmp_path / "flipped.ledger")
        target.write_bytes(changed)
        assert refused(lambda at=target: opened(at, anchor_of(hundred))) or unanchored(target) == before


def test_an_old_copy_put_back_is_refused(place, ledger, tmp_path):
    copies = []
    for number in range(12):
        ledger.charge(SMALL, question=str(number))
        ledger.close()
        copies.append(shutil.copyfile(place, tmp_path / f"{number}.old"))
    state = opened(place, anchor_of(place))
    for old in copies[:-1]:
        copied(old, place)
        with pytest.raises(LedgerDamaged, match="ends before"):
            Ledger.open(place)
    copied(copies[-1], place)
    assert opened(place, anchor_of(place)) == state


def test_a_copy_that_went_its_own_way_is_refused(place, ledger, tmp_path):
    ledger.close()
    shutil.copyfile(place, tmp_path / "fork.ledger")
    for number in range(3):
        ledger.charge(SMALL, question=f"here {number}")
    other = Ledger.open(tmp_path / "fork.ledger", anchor=tmp_path / "fork.anchor")
    for number in range(5):
        other.charge(SMALL, question=f"there {number}")
    other.close()
    with pytest.raises(LedgerDamaged, match="another hash"):
        Ledger.open(tmp_path / "fork.ledger", anchor=anchor_of(place))


def test_an_old_copy_under_a_running_curator_is_noticed(place, ledger, tmp_path):
    ledger.charge(SMALL, question="1")
    ledger.close()
    shutil.copyfile(place, tmp_path / "old")
    ledger.charge(SMALL, question="2")
    ledger.close()
    copied(tmp_path / "old", place)
    with pytest.raises(LedgerDamaged, match="old copy"):
        ledger.charge(SMALL, question="3")


def test_an_anchor_that_is_gone_is_not_an_anchor_that_agrees(place, ledger):
    ledger.charge(SMALL, question="1")
    ledger.close()
    anchor_of(place).unlink()
    with pytest.raises(LedgerDamaged, match="anchor is empty or missing"):
        Ledger.open(place)
    state = Ledger.open(place, anchor=NoAnchor()).verify()  # the owner's act, if he is sure
    FileAnchor(anchor_of(place)).push(state.seq, state.hash)
    assert Ledger.open(place).charge(SMALL, question="2").seq == 3


def test_a_new_ledger_does_not_take_over_an_old_anchor(place, ledger):
    ledger.close()
    place.unlink()
    with pytest.raises(LedgerUnavailable, match="belongs to a ledger"):
        Ledger.create(place, Budget(1.0, 1e-6))


def test_a_mark_that_a_crash_cut_short_does_no_harm(place, ledger):
    ledger.charge(SMALL, question="1")
    with open(anchor_of(place), "ab") as file:
        file.write(b"\n3 0123456789abc")
    again = Ledger.open(place)
    again.charge(SMALL, question="2")
    assert len(Ledger.open(place).verify().costs) == 2


def test_a_log_that_did_not_reach_the_disk_is_refused_and_never_half_applied(place, ledger, tmp_path):
    """With the anchor every cut is noticed. Without it, what is left is the state after some earlier line."""
    states = [ledger.verify()]
    for number in range(30):
        receipt = ledger.charge(SMALL, question=str(number))
        states.append(ledger.verify())
        ledger.keep(receipt, b"1")
        states.append(ledger.verify())
    size, target = Path(f"{place}-wal").stat().st_size, tmp_path / "cut.ledger"
    found = set()
    for left in random.Random(0).sample(range(0, size - 512, 512), 40):
        cut_wal(place, target, left)
        assert refused(lambda: opened(target, anchor_of(place))), left
        cut_wal(place, target, left)
        if not refused(lambda: unanchored(target)):
            state = unanchored(target)
            assert state in states
            found.add(state.seq)
    assert len(found) > 10
    cut_wal(place, target, size)
    assert opened(target, anchor_of(place)) == states[-1]


# ---- what the machine lacks -----------------------------------------------------------------------------------------


def until_refused(ledger: Ledger) -> list[int]:
    """Charge until the ledger cannot be written; the lines that were."""
    done = []
    with pytest.raises(LedgerUnavailable, match=r"nothing was\s+released"):
        for _ in range(10_000):
            done.append(ledger.charge(SMALL, question="x" * 1000).seq)
    return done


def test_a_full_disk_refuses_and_recovers(place, ledger):
    """A limit on the size of files fails writes as a full disk does, anywhere in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (20_000, 60_001, 110_003):
        state = ledger.verify()
        sizes = [path.stat().st_size for path in place.parent.iterdir()]
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) + room, before[1]))
        try:
            done = until_refused(ledger)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        after = Ledger.open(place).verify()
        assert set(done) <= set(after.costs) - set(state.costs)
        assert len(after.costs) - len(state.costs) - len(done) <= 1  # the last may have been written after all
        assert ledger.charge(SMALL, question="there is room again").seq == after.seq + 1


def test_a_full_file_system_refuses_and_recovers():
    folder = Path(tempfile.mkdtemp())
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("no right to mount a small file system here")
    try:
        ledger = Ledger.create(folder / "clinic.ledger", Budget(1.0, 1e-6))
        filler = folder / "filler"
        filler.write_bytes(b"x" * 150_000)
        done = until_refused(ledger)
        filler.unlink()
        state = ledger.verify()
        assert set(done) <= set(state.costs)
        assert ledger.charge(SMALL, question="there is room again").seq == state.seq + 1
        ledger.close()
        assert len(Ledger.open(folder / "clinic.ledger").verify().costs) == len(state.costs) + 1
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_an_anchor_that_cannot_be_written_stops_every_answer(place, ledger):
    full = Ledger(ledger.store, FileAnchor(Path("/dev/full")), ledger.promise)
    with pytest.raises(LedgerUnavailable, match=os.strerror(errno.ENOSPC)):
        full.charge(SMALL, question="q", key="k")
    again = ledger.charge(SMALL, question="q", key="k")  # it stays charged, and is charged once
    assert not again.first
    assert len(ledger.verify().costs) == 1


def test_a_file_that_may_not_be_written_is_refused_and_untouched():
    folder = Path(tempfile.mkdtemp())
    place = folder / "clinic.ledger"
    Ledger.create(place, Budget(1.0, 1e-6)).close()
    before, root = place.read_bytes(), os.geteuid() == 0
    for path, mode in ((place, 0o444), (anchor_of(place), 0o444), (folder, 0o555)):
        path.chmod(mode)
    try:
        if root:
            os.seteuid(65534)  # root may write anything
        try:
            with pytest.raises(LedgerUnavailable):
                Ledger.open(place).charge(SMALL, question="q")
        finally:
            if root:
                os.seteuid(0)
        assert place.read_bytes() == before
        for path, mode in ((folder, 0o755), (place, 0o644), (anchor_of(place), 0o644)):
            path.chmod(mode)
        assert Ledger.open(place).charge(SMALL, question="q").seq == 2
    finally:
        shutil.rmtree(folder)


def test_without_entropy_nothing_is_charged_or_drawn(place, ledger, monkeypatch):
    def missing(count):
        raise NotImplementedError("no generator")

    with monkeypatch.context() as patched:
        patched.setattr(os, "urandom", missing)
        patched.setattr(random, "_urandom", missing)  # where the standard library keeps its own
        with pytest.raises(LedgerUnavailable, match="no random numbers"):
            ledger.charge(SMALL, question="q")
        with pytest.raises(LedgerUnavailable, match="no random numbers"):
            Ledger.create(f"{place}.2", Budget(1.0, 1e-6))
        assert not ledger.verify().costs
    assert ledger.charge(SMALL, question="q").seq == 2


def test_no_budget_depends_on_the_clock(place, ledger):
    ledger.cap("bob", Budget(0.1, 1e-7))
    ledger.charge(SMALL, question="now", key="k")
    ledger.close()
    before = ledger.verify()
    for jump in (YEAR, -YEAR, 100 * YEAR, -60 * YEAR):
        there = Ledger.open(place, clock=lambda jump=jump: 1.8e9 + jump)
        assert there.verify() == before
        assert not there.charge(SMALL, question="now", key="k").first
        receipt = there.charge(SMALL, question="then", who="bob")
        after = there.verify()
        assert after.spent == before.spent + receipt.cost
        assert after.limit == before.limit
        before = after
        there.close()


def test_other_schemas_are_refused_and_left_as_they_are(place, ledger):
    ledger.charge(SMALL, question="1")
    ledger.close()
    for schema in (0, 1, 3, -1, 2**40):
        with sqlite3.connect(place) as raw:
            raw.execute("UPDATE head SET schema = ?", (schema,))
        raw.close()
        before = place.read_bytes()
        with pytest.raises(LedgerUnavailable, match=f"schema {schema}"):
            Ledger.open(place)
        with pytest.raises(LedgerUnavailable, match="never overwritten"):
            Ledger.create(place, Budget(1.0, 1e-6))
        assert place.read_bytes() == before
    with sqlite3.connect(place) as raw:
        raw.execute("UPDATE head SET schema = 2")
    raw.close()
    assert len(Ledger.open(place).verify().costs) == 1


def test_a_database_that_is_no_ledger_is_left_as_it_is(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as raw:
        raw.execute("CREATE TABLE patients (name TEXT)")
    raw.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(LedgerUnavailable, match="not a ledger"):
        Ledger.open(tmp_path / "other.db")
    assert (tmp_path / "other.db").read_bytes() == before


def test_texts_that_no_encoding_takes_are_refused(ledger):
    for bad in ("\ud800", "a\0b", "x" * 201):
        with pytest.raises(sf.errors.InvalidParameter):
            ledger.charge(SMALL, question="q", key=bad)
    assert not ledger.verify().costs


def test_limits_beyond_64_bits_are_refused(ledger):
    before = ledger.verify()
    with pytest.raises(sf.errors.InvalidParameter, match="out of range"):
        for _ in range(10_000):
            ledger.renew(Budget(2000.0, 0.5), "more")
    assert ledger.verify().limit.gauss >= before.limit.gauss
