"""The audit log: appended, chained, and readable after a crash."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from sfumato.errors import LedgerDamaged, LedgerUnavailable
from sfumato.server import audit_log
from sfumato.server.audit_log import AuditLog


@pytest.fixture
def place(tmp_path):
    return tmp_path / "service.audit"


def written(place, *acts):
    log = AuditLog.open(place, lambda: 7.0)
    for act in acts:
        log.append(act)
    log.close()


def test_lines_are_read_again_and_requests_found_by_their_id(place):
    written(place, {"act": "ask", "id": "a", "question": "SELECT 1"}, {"act": "preview"})
    log = AuditLog.open(place)
    log.append({"act": "ask", "id": "b", "question": "ä\u2028\n\"'"})
    assert log.verify() == 3
    assert [line.content["act"] for line in log.lines()] == ["ask", "preview", "ask"]
    assert [line.seq for line in log.lines(after=1, limit=1)] == [2]
    assert log.request("a")["question"] == "SELECT 1"
    assert log.request("b")["question"] == "ä\u2028\n\"'"
    assert log.request("c") is None
    log.close()


def test_each_changed_byte_is_noticed(place):
    written(place, {"act": "ask", "who": "ann"}, {"act": "ask", "who": "bob"}, {"act": "ask", "who": "eve"})
    whole = place.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for at in range(0, last - 1, 3):
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(LedgerDamaged):
            AuditLog.open(place)
    lines = whole.splitlines(keepends=True)
    for changed in ([lines[0], lines[2]], [lines[1], lines[0], lines[2]], [*lines, lines[2]]):
        place.write_bytes(b"".join(changed))
        with pytest.raises(LedgerDamaged):
            AuditLog.open(place)


def test_a_line_that_a_crash_cut_short_is_left_behind(place):
    written(place, {"act": "ask", "who": "ann"})
    whole = place.read_bytes()
    for length in range(1, len(whole), 7):
        place.write_bytes(whole + whole[:length])
        written(place, {"act": "preview", "who": "bob"})
        log = AuditLog.open(place)
        assert [line.content["who"] for line in log.lines()] == ["ann", "bob"]
        log.close()
        place.write_bytes(whole)


def test_two_services_do_not_write_one_log(place):
    first = AuditLog.open(place)
    with pytest.raises(LedgerUnavailable):
        AuditLog.open(place)
    first.close()
    AuditLog.open(place).close()


def test_a_full_file_is_left_and_one_chain_runs_through_all(place, monkeypatch):
    monkeypatch.setattr(audit_log, "FULL", 2000)
    monkeypatch.setattr(audit_log, "MARK", 3)
    log = AuditLog.open(place, lambda: 7.0)
    for number in range(60):
        log.append({"act": "ask", "id": f"a{number}"}, durable=number % 7 == 0)
    files = sorted(place.parent.glob("service.audit.0*"))
    assert len(files) >= 3 and not place.with_name("service.audit.new").exists()
    whole = log.lines()
    assert [line.seq for line in whole] == list(range(1, log.verify() + 1))
    asked = [line.content["id"] for line in whole if line.content["act"] == "ask"]
    assert asked == [f"a{number}" for number in range(60)]
    for after in range(log.seq + 1):
        assert log.lines(after, 2) == whole[after : after + 2]
    assert {log.request(f"a{number}")["id"] for number in range(60)} == set(asked)
    log.close()
    again = AuditLog.open(place)
    assert again.seq == len(whole) and again.lines() == whole and again.request("a59")["id"] == "a59"
    again.append({"act": "preview"})
    assert again.verify() == len(whole) + 1
    with pytest.raises(LedgerUnavailable):
        AuditLog.open(place)
    text = files[1].read_bytes()
    files[1].write_bytes(text[:-200] + text[-199:])  # a file that is not the newest
    with pytest.raises(LedgerDamaged):
        again.verify()
    files[1].write_bytes(b"".join(text.splitlines(keepends=True)[:-1]))  # lines at its end are missing
    with pytest.raises(LedgerDamaged):
        again.verify()
    files[1].write_bytes(text)
    files[0].unlink()  # moved away
    assert again.lines()[-1].seq == again.verify() == len(whole) + 1
    again.close()


@pytest.mark.parametrize(("where", "step"), [(os, "fsync"), (os, "link"), (Path, "replace")])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError])
def test_a_crash_or_a_full_disk_between_two_files_loses_no_line(place, monkeypatch, where, step, kind):
    monkeypatch.setattr(audit_log, "FULL", 300)

    def fail(*_):
        raise kind

    log, sent = AuditLog.open(place), 0
    first = log._file
    with monkeypatch.context() as patch:
        patch.setattr(where, step, fail)
        with suppress(KeyboardInterrupt):
            for _ in range(9):
                sent += 1
                log.append({"act": "ask", "question": "SELECT 1" * 20})
    if kind is KeyboardInterrupt:  # the process ends, and with it what it had open
        for file in {first, log._file}:
            os.close(file)
        log = AuditLog.open(place)
    log.append({"act": "preview"})
    acts = [line.content["act"] for line in log.lines()]
    assert acts.count("ask") == sent and acts.count("preview") == 1
    assert log.verify() == log.seq == len(acts) and acts[-1] in ("preview", "continued")
    assert kind is KeyboardInterrupt or "continued" in acts
    log.close()
