"""How much one person may ask at a time."""

import pytest

from sfumato.errors import TooManyRequests
from sfumato.server.admission import LONG, REMEMBERED, SLOWEST, Admission, FailedAttempts


def test_a_person_has_so_many_calls_at_a_time_and_others_are_unharmed():
    admission = Admission(concurrent=2, now=lambda: 0.0)
    with admission.enter("ann"), admission.enter("ann"):
        with pytest.raises(TooManyRequests), admission.enter("ann"):
            pass
        with admission.enter("bob"):
            pass
    with admission.enter("ann"):
        pass


def test_a_person_has_so_many_calls_a_second_and_is_told_when_to_come_again():
    moment = [0.0]
    admission = Admission(rate=2.0, burst=3, now=lambda: moment[0])
    for _ in range(3):
        with admission.enter("ann"):
            pass
    with pytest.raises(TooManyRequests) as refusal, admission.enter("ann"):
        pass
    assert refusal.value.after == pytest.approx(0.5)
    moment[0] += refusal.value.after
    with admission.enter("ann"):
        pass
    moment[0] += 1000.0  # rest saves up no more than a burst
    for _ in range(3):
        with admission.enter("ann"):
            pass
    with pytest.raises(TooManyRequests), admission.enter("ann"):
        pass


def test_a_long_text_counts_as_several_calls_and_never_as_more_than_fit():
    admission = Admission(rate=2.0, burst=5, now=lambda: 0.0)
    with admission.enter("ann", "x" * 3 * LONG):
        pass
    with pytest.raises(TooManyRequests) as refusal, admission.enter("ann", "x" * LONG):
        pass
    assert refusal.value.after == pytest.approx(0.5)
    with admission.enter("bob", "x" * 100 * LONG):
        pass


def test_a_call_that_fails_frees_its_place():
    admission = Admission(concurrent=1, now=lambda: 0.0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), admission.enter("ann"):
            raise ZeroDivisionError


def test_failed_attempts_wait_ever_longer_up_to_a_limit_and_a_quiet_minute_is_forgiven():
    moment = [0.0]
    failed = FailedAttempts(now=lambda: moment[0])
    waits = [failed.delay("10.0.0.1") for _ in range(12)]
    assert waits == sorted(waits) and waits[1] == 2 * waits[0] and waits[-1] == SLOWEST
    assert failed.delay("10.0.0.2") == waits[0]
    moment[0] += 61
    assert failed.delay("10.0.0.1") == waits[0]


def test_neither_table_grows_without_limit():
    admission, failed = Admission(now=lambda: 0.0), FailedAttempts(now=lambda: 0.0)
    for i in range(REMEMBERED + 100):
        failed.delay(str(i))
        with admission.enter(str(i)):
            pass
    assert len(admission._buckets) <= REMEMBERED
    assert len(failed._failed) <= REMEMBERED
