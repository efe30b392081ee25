"""The audit log: appended, chained, and readable after a crash."""

import pytest

from sfumato.errors import LedgerDamaged, LedgerUnavailable
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
