"""A curator of a PostgreSQL database, and what its engine promises."""

import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.curator import Curator
from sfumato.errors import BudgetExceeded, InvalidParameter, PolicyError, QueryRefused
from sfumato.ledger import Budget, Ledger
from sfumato.sql.policy import Policy
from tests.curator import clinic, odd
from tests.engines.test_conformance import tables_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def engine(server, tmp_path_factory):
    import psycopg

    from sfumato.engines.postgres import Postgres

    place = clinic.built(tmp_path_factory.mktemp("clinic") / "clinic.duckdb")
    with psycopg.connect(server.dsn) as connection:
        odd.filled(connection.execute, "postgres", tables_of(place))
    return Postgres(server.dsn)


@pytest.fixture
def other(server):
    """Somebody else's session."""
    import psycopg

    with psycopg.connect(server.dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def curator(engine, tmp_path):
    policy = tmp_path / "clinic.toml"
    policy.write_text(clinic.POLICY.replace("epsilon = 8.0", "epsilon = 500.0"))
    return Curator.open(engine, policy, ledger=tmp_path / "ledger")


def test_a_question_is_answered_charged_and_kept(curator):
    sql = "SELECT ward, COUNT(*) AS n, AVG(stay) AS mean, MEDIAN(cost) AS m FROM visits GROUP BY ward"
    preview = curator.preview(sql, epsilon=50.0)
    answer = curator.ask(sql, epsilon=50.0)
    assert preview.epsilon == answer.epsilon
    assert answer.column("ward") == ["north", "south", "west"]
    assert all(10 < n < 60 for n in answer.column("n"))  # 18 to 30 are counted, with noise of σ = 1.4: 6 σ
    assert answer.charged
    assert not curator.ask(sql.lower(), epsilon=50.0).charged


def test_keys_are_found_and_joins_are_made(curator):
    assert len(curator.ask("SELECT diagnosis, COUNT(*) FROM visits GROUP BY 1", epsilon=50.0)) > 1
    joined = curator.ask("SELECT floor, SUM(stay) FROM visits JOIN wards USING (ward) GROUP BY floor", epsilon=50.0)
    assert joined.column("floor") == [1.0, 2.0]


def test_contributions_and_bounds_are_found(curator):
    curator.register(epsilon=50.0)
    bounds = curator.suggest_bounds("visits.cost", epsilon=50.0)
    assert bounds.low < bounds.high


def test_what_means_something_else_there_is_refused_before_the_charge(curator):
    for sql in (
        "SELECT CAST(stay AS TEXT), COUNT(*) FROM visits GROUP BY 1",
        "SELECT COUNT(*) FROM visits WHERE ward = 'a\0b'",
        "SELECT COUNT(*) FROM (SELECT CAST(stay AS TEXT) AS t FROM visits UNION ALL SELECT ward FROM visits) x"
        " WHERE t > 'a'",
    ):
        for asked in (curator.preview, curator.ask):
            with pytest.raises(QueryRefused):
                asked(sql, epsilon=1.0)
    assert curator.ledger.verify().spent.gauss == 0


def test_a_preview_needs_no_server(curator):
    from sfumato.engines.postgres import Postgres

    gone = replace(curator, engine=Postgres("postgresql://nobody@localhost:1/nowhere"))
    assert gone.preview("SELECT COUNT(*) FROM visits", epsilon=1.0).epsilon > 0
    assert "nobody" not in repr(gone)


def test_a_ledger_of_a_server_has_no_place_of_its_own(engine):
    with pytest.raises(InvalidParameter, match="ledger"):
        Curator.open(engine, Policy.read(clinic.POLICY))


def test_nothing_can_be_written(engine):
    import psycopg

    before = engine.run("SELECT COUNT(*) FROM visits")
    for sql in ("DELETE FROM visits", "CREATE TABLE t (x INT)", "SET TRANSACTION READ WRITE; DELETE FROM visits"):
        with pytest.raises(psycopg.Error):
            engine.run(sql)
    assert engine.run("SELECT COUNT(*) FROM visits") == before


def test_one_question_sees_one_moment(engine, other):
    other.execute("CREATE TABLE moving AS SELECT 1 AS x")
    count = "SELECT COUNT(*) FROM moving"
    with engine.snapshot():
        assert engine.run(count) == [(1,)]
        other.execute("INSERT INTO moving VALUES (2)")
        assert engine.run(count) == [(1,)]
    assert engine.run(count) == [(2,)]


def test_threads_do_not_meet(engine):
    found = {}

    def work(n):
        with engine.snapshot():
            found[n] = [engine.run(f"SELECT {n}") for _ in range(5)]

    threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: [[(n,)]] * 5 for n in range(4)}


def test_how_values_are_written_hangs_on_nobody(engine, other):
    sql = (
        "SELECT CAST(DATE '2024-02-29' AS TEXT), CAST(0.1::float8 + 0.2::float8 AS TEXT),"
        " CAST(TIMESTAMPTZ '2024-02-29 12:00:00+00' AS TEXT), (SELECT COUNT(*) > 9 FROM visits)"
    )
    usual = engine.run(sql)
    assert usual == [("2024-02-29", "0.30000000000000004", "2024-02-29 12:00:00+00", True)]
    other.execute("CREATE SCHEMA elsewhere")
    other.execute("CREATE TABLE elsewhere.visits (patient_id INT)")
    odd_ones = {"datestyle": "'German, DMY'", "extra_float_digits": "0", "timezone": "'Asia/Tokyo'",
                "search_path": "elsewhere, public", "standard_conforming_strings": "off"}  # fmt: skip
    try:
        for name, value in odd_ones.items():
            other.execute(f"ALTER ROLE sfumato SET {name} TO {value}")
        assert engine.run(sql) == usual
    finally:
        other.execute("ALTER ROLE sfumato RESET ALL")


def test_a_statement_that_takes_too_long_ends(server, other):
    import psycopg

    from sfumato.engines.postgres import Postgres

    with pytest.raises(psycopg.errors.QueryCanceled):
        Postgres(server.dsn, timeout=0.05).run("SELECT pg_sleep(60)")
    assert not busy(other)


SLEEPER = """
import os, sys
from sfumato.engines.postgres import Postgres
try:
    Postgres(sys.argv[1]).run("SELECT pg_sleep(600)")
except KeyboardInterrupt:
    os._exit(7)
"""


def test_ctrl_c_ends_the_statement_in_the_server_too(server, other):
    """In a process of its own, pressed until it ends: Python may lose one that comes at an odd moment."""
    child = subprocess.Popen([sys.executable, "-c", SLEEPER, server.dsn], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        while not busy(other):
            assert child.poll() is None
        while child.poll() is None:
            child.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(1.0)
    finally:
        child.kill()
    assert child.returncode == 7
    for _ in range(1000):  # until the server has noticed
        if not busy(other):
            return
    raise AssertionError("it still runs")


def busy(connection):
    """Is the server asleep over one of our statements?"""
    sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    return connection.execute(sql).fetchone() != (0,)


def test_a_database_with_other_letters_is_refused(server, other):
    from sfumato.engines.postgres import Postgres

    other.execute("CREATE DATABASE old ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with pytest.raises(PolicyError, match="UTF8"):
        Postgres(server.dsn.replace("dbname=postgres", "dbname=old")).run("SELECT 1")


def test_a_ledger_may_lie_in_the_same_server(engine, server, tmp_path):
    from sfumato.ledger.postgres import PostgresStore
    from sfumato.sql.policy import Policy

    store = PostgresStore(server.dsn, "books")
    try:
        policy = Policy.read(clinic.POLICY)
        ledger = Ledger.create(store, Budget(policy.epsilon, policy.delta))
        assert Curator.open(engine, policy, ledger=ledger).ask("SELECT COUNT(*) FROM visits", epsilon=1.0).charged
    finally:
        store.close()


def test_a_ledger_at_an_address_is_like_any_other(server, engine, tmp_path):
    """Promise and shares are looked at, the first opening makes it, and a schema keeps data sets apart."""
    address = f"postgresql://sfumato@/postgres?host={server.folder}&schema=the%20shares"
    rules = Policy.read(clinic.POLICY + "[analysts]\nann = 0.01\n")
    for _ in range(2):
        curator = Curator.open(engine, rules, ledger=address)
        with pytest.raises(BudgetExceeded, match="the share of ann"):
            curator.analyst("ann").ask("SELECT COUNT(*) FROM visits", epsilon=0.9)
        assert [entry.content["kind"] for entry in curator.ledger.history()] == ["opened", "shares"]
        curator.ledger.close()
    with pytest.raises(PolicyError, match="not the ledger's"):
        Curator.open(engine, replace(rules, epsilon=1.0), ledger=address)
    with pytest.raises(InvalidParameter, match="must name its schema"):
        Curator.open(engine, rules, ledger=address.partition("&")[0])


def test_a_ledger_object_is_checked_like_a_path(server, engine):
    """The documented way to a ledger in PostgreSQL."""
    from sfumato.ledger.postgres import PostgresStore

    store = PostgresStore(server.dsn, "of one promise")
    ledger = Ledger.create(store, Budget(50.0, 1e-6))
    with pytest.raises(PolicyError, match="ε = 8, δ = 1e-06 in the policy, ε = 50, δ = 1e-06 in the ledger"):
        Curator.open(engine, Policy.read(clinic.POLICY), ledger=ledger)
    store.close()
