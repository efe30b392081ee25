"""When answers leave: padded to a public quantum, whether they succeed or fail. No clock is looked at."""

from dataclasses import dataclass, field, replace

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.curator import Curator
from sfumato.curator.failure_guard import Clock, ResponsePadding
from sfumato.errors import AnswerFailed, PolicyError
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.wrapped import Wrapped

QUANTUM = 0.25
RULES = Policy.read(f"{POLICY}\n[limits]\nresponse_quantum = {QUANTUM}\n")
COUNT = "SELECT COUNT(*) AS n FROM visits"


@dataclass
class Time:
    """Passes when somebody sleeps, or when the engine works."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)


@dataclass
class Slow(Wrapped):
    """An engine that takes its time, and may fail in the end."""

    time: Time
    seconds: float
    fails: bool = False

    def run(self, sql):
        self.time.now += self.seconds
        if self.fails:
            raise RuntimeError("a secret")
        return self.inner.run(sql)


@given(quantum=st.floats(1e-3, 3600.0), taken=st.floats(0.0, 1e7))
def test_a_response_is_due_after_the_least_doubling_of_the_quantum(quantum, taken):
    due = ResponsePadding(quantum).due(taken)
    assert due >= taken
    assert due == quantum or due / 2 < taken
    while due > quantum:
        due /= 2
    assert due == quantum  # a quantum times a power of two, and so a multiple of it


def test_without_a_quantum_nobody_waits():
    time = Time()
    ResponsePadding(0.0, time.clock).wait(time.now - 5)
    assert time.slept == []
    assert ResponsePadding().due(0.3) == 0.3


def test_who_wakes_early_sleeps_on():
    time = Time()
    lazy = Clock(lambda: time.now, lambda seconds: time.sleep(seconds / 2 if len(time.slept) < 3 else seconds))
    ResponsePadding(1.0, lazy).wait(time.now - 0.25)
    assert time.now == 1000.75
    assert len(time.slept) == 4


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("seconds", "due"), [(0.0, 0.25), (0.01, 0.25), (0.3, 0.5), (0.7, 1.0), (9.0, 16.0)])
def test_an_answer_and_a_failure_take_a_public_time(tmp_path, seconds, due, fails):
    """A failing engine is run twice, so it is made to take half as long each time."""
    plain = Curator.open(built(tmp_path / "clinic.duckdb"), RULES)
    time = Time()
    curator = replace(plain, engine=Slow(plain.engine, time, seconds / (2 if fails else 1), fails), clock=time.clock)
    if fails:
        with pytest.raises(AnswerFailed):
            curator.ask(COUNT, epsilon=1.0)
    else:
        curator.ask(COUNT, epsilon=1.0)
    assert time.now - 1000.0 == due


def test_an_answer_is_in_store_no_earlier_than_it_is_due(tmp_path):
    """Or a second analyst would see it appear there, by asking for previews, while the first one still waits."""
    plain = Curator.open(built(tmp_path / "clinic.duckdb"), RULES)
    time = Time()
    seen = []

    def sleep(seconds: float) -> None:
        seen.append(plain.preview(COUNT, epsilon=1.0).free)
        time.sleep(seconds)

    curator = replace(plain, engine=Slow(plain.engine, time, 0.1), clock=Clock(lambda: time.now, sleep))
    curator.ask(COUNT, epsilon=1.0)
    assert seen == [False]
    assert plain.preview(COUNT, epsilon=1.0).free


def test_a_stored_answer_leaves_at_once(tmp_path):
    """How long it takes to find is no matter of data: it was released before."""
    curator = Curator.open(built(tmp_path / "clinic.duckdb"), Policy.read(POLICY))
    first = curator.ask(COUNT, epsilon=1.0)
    time = Time()
    again = replace(curator, policy=RULES, clock=time.clock).ask(COUNT, epsilon=1.0)
    assert again.rows == first.rows
    assert time.slept == []


# ---- the policy's limits --------------------------------------------------------------------------------------------


def test_limits_are_read_from_the_policy_and_reach_the_engine(tmp_path):
    spill = tmp_path / "it's spilled"
    rules = Policy.read(f'{POLICY}\n[limits]\ntimeout = 7\nmemory = 512\nspill = "{spill}"\n')
    engine = Curator.open(built(tmp_path / "clinic.duckdb"), rules).engine
    assert engine.timeout == 7
    told = engine.run("SELECT current_setting('memory_limit'), current_setting('temp_directory')")
    assert told == [("512.0 MiB", str(spill))]


@pytest.mark.parametrize(
    "line", ["timeout = 0", "memory = 0", "memory = 1.5", "response_quantum = -1", "response_quantum = 1e-9",
             "response_quantum = nan", "spill = 3", 'spill = "a\\u0000b"', "patience = 1"],
)  # fmt: skip
def test_limits_that_make_no_sense_are_refused(line):
    with pytest.raises(PolicyError, match="limits"):
        Policy.read(f"{POLICY}\n[limits]\n{line}\n")


def test_a_statement_beyond_its_limits_is_a_failure_like_any_other(tmp_path):
    """Far below what it needs, which the owner must not do: two tries, one sentence, blocked."""
    place = tmp_path / "large.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT i AS patient_id, i AS stay FROM range(400_000) t(i)")
    rules = Policy.read("""
version = 1
[budget]
epsilon = 1.0
delta = 1e-6
[tables.visits]
unit = "patient_id"
[tables.visits.columns]
stay = {low = 0, high = 60}
[limits]
memory = 2
""")
    curator = Curator.open(place, rules)
    with pytest.raises(AnswerFailed):
        curator.ask("SELECT stay, COUNT(*) FROM visits GROUP BY stay", epsilon=0.5)
    assert len(curator.ledger.blocked()) == 1
