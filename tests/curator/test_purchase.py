"""Many askers of one question at the same time: one of them runs it, the others wait for what he stores."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sfumato.curator import Curator
from sfumato.curator.failure_guard import Clock
from sfumato.errors import LedgerUnavailable
from sfumato.ledger import Budget, Ledger
from sfumato.ledger.question_lock import HELD
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.wrapped import Wrapped
from tests.faults import alone

COUNT = "SELECT COUNT(*) AS n FROM visits"
RULES = Policy.read(POLICY)


class Counting(Wrapped):
    """An engine that is run by everybody, and counts."""

    def __init__(self, inner):
        super().__init__(inner)
        self.runs = 0

    def run(self, sql):
        self.runs += 1
        return self.inner.run(sql)


@pytest.mark.parametrize("key", ["the same", None])
def test_a_hundred_askers_at_once_get_one_answer_for_one_charge(tmp_path, key):
    place = built(tmp_path / "clinic.duckdb")
    first = Curator.open(place, RULES)
    engine = Counting(first.engine)
    curators = [replace(first, engine=engine), *(replace(Curator.open(place, RULES), engine=engine) for _ in range(3))]
    together = threading.Barrier(100)

    def one(number):
        together.wait()
        return curators[number % 4].ask(COUNT, epsilon=0.5, key=key).rows

    with ThreadPoolExecutor(100) as pool:
        bodies = list(pool.map(one, range(100)))
    assert len(set(bodies)) == 1
    assert engine.runs == 1
    state = first.ledger.verify()
    assert (len(state.costs), len(state.answers), len(state.reruns)) == (1, 1, 0)
    assert not HELD  # all locks were freed


@pytest.mark.slow
def test_processes_take_turns_and_a_turn_ends_with_its_process(tmp_path):
    """Eight processes ask one question by one key; the first of them is killed in the middle of it."""
    found = alone("turns", 8, tmp_path)
    assert found == {"bodies": 1, "charges": 1, "answers": 1, "reruns": 1}


def test_who_waits_too_long_is_told_so_and_not_charged(tmp_path):
    curator = Curator.open(built(tmp_path / "clinic.duckdb"), RULES)
    slept = []
    waiting = replace(curator, clock=Clock(sleep=slept.append))
    question = curator.preview(COUNT, epsilon=0.5).offer.canonical
    with (
        curator.ledger.question_lock(question, 0.0),
        pytest.raises(LedgerUnavailable, match="nothing more was charged"),
    ):
        waiting.ask(COUNT, epsilon=0.5)
    assert sum(slept) >= RULES.limits.timeout
    assert len(slept) <= 25 * sum(slept)  # it sleeps, rather than turning round and round
    assert curator.ledger.verify().seq == 1
    assert waiting.ask(COUNT, epsilon=0.5).charged


def test_other_questions_do_not_wait(tmp_path):
    curator = Curator.open(built(tmp_path / "clinic.duckdb"), RULES)
    with curator.ledger.question_lock("another", 0.0):
        assert replace(curator, clock=Clock(sleep=None)).ask(COUNT, epsilon=0.5).charged


def test_turns_are_given_back_whatever_happens(tmp_path):
    ledger = Ledger.create(tmp_path / "a.ledger", Budget(1.0, 1e-6))
    with pytest.raises(KeyboardInterrupt), ledger.question_lock("q", 0.0):
        raise KeyboardInterrupt
    with ledger.question_lock("q", 0.0), ledger.question_lock("r", 0.0):
        pass
    with Ledger.create(":memory:", Budget(1.0, 1e-6)).question_lock("q", 0.0):
        pass
    assert not HELD


def test_a_ledger_in_memory_knows_its_own_turns_only():
    one, other = (Ledger.create(":memory:", Budget(1.0, 1e-6)) for _ in range(2))
    with (
        one.question_lock("q", 0.0),
        other.question_lock("q", 0.0),
        pytest.raises(LedgerUnavailable),
        one.question_lock("q", 0.0),
    ):
        pass
