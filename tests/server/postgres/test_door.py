"""The PostgreSQL door, from a real driver: answers are the curator's, Describe is free, errors have their codes."""

import datetime
import threading

import psycopg
import pytest
from psycopg.generators import execute

from sfumato.curator.purchase import Buyer
from sfumato.server.configuration import Tls
from sfumato.server.postgres import types
from sfumato.server.postgres.copying import Options, copy_messages
from sfumato.server.postgres.settings import MOST_SETTINGS
from sfumato.server.run import tls_context
from tests.server.conftest import configuration
from tests.server.postgres.conftest import open_door
from tests.server.test_run import write_certificate

SQL = "SELECT ward, COUNT(*) AS n, AVG(stay) FROM visits GROUP BY ward ORDER BY ward"


def entries(service):
    return len(service.data["clinic"].curator.ledger.history())


def test_an_answer_is_the_curators(service, connect):
    notices = []
    connection = connect()
    connection.add_notice_handler(lambda one: notices.append(one.message_primary))
    cursor = connection.execute(SQL)
    answer = service.data["clinic"].curator.analyst("ann").ask(SQL, epsilon=0.5)
    assert not answer.charged
    assert [one.name for one in cursor.description] == ["ward", "n", "avg", "n_low", "n_high", "avg_low", "avg_high"]
    assert cursor.fetchall() == [(row[0], row[1], row[4], *row[2:4], *row[5:]) for row in answer.rows]
    assert any("ε = 0.5" in words for words in notices)


def test_sql_over_released_values_is_described_as_it_is_answered(service, connect):
    sql = (
        "SELECT ward, n, 100.0 * n / SUM(n) OVER () AS share, UPPER(ward) AS name FROM (SELECT ward, COUNT(*) AS n FROM"
    )
    sql = f"{sql} visits GROUP BY ward) ORDER BY ward"
    for binary in (False, True):
        cursor = connect().execute(sql, binary=binary)
        answer = service.data["clinic"].curator.analyst("ann").ask(sql, epsilon=0.5)
        names = [one.name.replace("_", " ") for one in cursor.description]
        assert names[:4] == ["ward", "n", "share", "name"] and sorted(names) == sorted(answer.columns)
        places = [answer.columns.index(name) for name in names]
        assert cursor.fetchall() == [tuple(row[place] for place in places) for row in answer.rows]


def test_a_repeated_question_is_free(service, connect):
    connect().execute(SQL)
    before = entries(service)
    connect().execute(SQL.lower())
    assert entries(service) == before


@pytest.mark.parametrize("binary", [False, True])
def test_types_and_parameters(connect, binary):
    cursor = connect().cursor(binary=binary)
    text = "SELECT day, COUNT(*) AS n, SUM(cost) AS c FROM visits WHERE ward = %s AND stay > %s GROUP BY day"
    for _ in range(2):
        cursor.execute(text, ("north", 2.5), prepare=True)
        for day, n, *_ in cursor.fetchall():
            assert isinstance(day, datetime.datetime) and isinstance(n, int)


def test_a_parameter_is_one_literal(connect, service):
    hostile = "north' OR '1'='1"
    (n,) = connect().execute("SELECT COUNT(*) AS n FROM visits WHERE ward = %s", (hostile,)).fetchone()[:1]
    alone = (
        service.data["clinic"]
        .curator.analyst("ann")
        .ask("SELECT COUNT(*) AS n FROM visits WHERE ward = 'north'' OR ''1''=''1'", epsilon=0.5)
    )
    assert not alone.charged and alone.rows[0][0] == n


def test_describe_spends_nothing(service, connect):
    connection = connect()
    before = entries(service)
    connection.pgconn.send_prepare(b"later", SQL.encode())
    connection.wait(execute(connection.pgconn))
    connection.pgconn.send_describe_prepared(b"later")
    (described,) = connection.wait(execute(connection.pgconn))
    assert described.nfields == 7
    assert connection.execute(f"EXPLAIN PRIVACY {SQL}").fetchone()[0].startswith("costs")
    assert entries(service) == before


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT patient_id FROM visits", "42501"),
        ("SELECT COUNT(*) FROM visits, pg_class", "42501"),
        ("DROP TABLE visits", "42501"),
        ("COPY visits TO STDOUT", "42501"),
        ("COPY visits FROM STDIN", "42501"),
        ("SELECT COUNT(* FROM visits", "42601"),
        ("SELEC 1", "42601"),
        ("SET sfumato.epsilon = 'many'; SELECT COUNT(*) FROM visits", "22023"),
    ],
)
def test_errors_have_the_codes_of_postgresql(connect, service, text, code):
    before, connection = entries(service), connect()
    with pytest.raises(psycopg.Error) as found:
        connection.execute(text)
    assert found.value.sqlstate == code
    assert entries(service) == before
    assert connection.execute("SELECT 1").fetchone() == (1,)  # the connection goes on


def test_without_a_price_one_is_asked_for(connect):
    with pytest.raises(psycopg.Error) as found:
        connect(epsilon="").execute(SQL)
    assert found.value.sqlstate == "22023" and "SET sfumato.epsilon" in found.value.diag.message_hint


def test_a_budget_that_is_spent_is_an_error_of_its_own(connect):
    with pytest.raises(psycopg.Error) as found:
        connect(epsilon="1000").execute(SQL)
    assert found.value.sqlstate == "53400"


def test_transactions_are_kept_up_without_effect(connect):
    connection = connect()
    connection.autocommit = False
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT nothing FROM visits")
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.execute("SELECT 1")
    connection.rollback()
    with connection.transaction(), connection.transaction():
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_failed_part_of_a_transaction_goes_back_to_its_savepoint(connect):
    """Drivers keep transactions alive in this way: autosave of pgjdbc, nested transactions of psycopg."""
    connection = connect()
    status = connection.info.transaction_status.__class__
    for text in ("BEGIN", "SAVEPOINT a", "SAVEPOINT b"):
        connection.execute(text)
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT nothing FROM visits")
    assert connection.info.transaction_status == status.INERROR
    for text in ("RELEASE a", "SELECT 1"):
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(text)
    connection.execute("ROLLBACK TO SAVEPOINT a")
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.execute("RELEASE a")
    with pytest.raises(psycopg.errors.InvalidSavepointSpecification):
        connection.execute("ROLLBACK TO b")
    assert connection.execute("COMMIT").statusmessage == "ROLLBACK"
    assert connection.info.transaction_status == status.IDLE


def test_cursors_are_asked_once_at_their_first_fetch(service, connect):
    connection = connect(epsilon="1")
    before = entries(service)
    connection.execute(f'declare "SQL_CUR1" cursor with hold for {SQL}')  # as ODBC does it for Tableau
    assert entries(service) == before
    parts = [connection.execute(f'fetch {n} in "SQL_CUR1"').fetchall() for n in (2, 100, 100)]
    assert [len(part) for part in parts] == [2, 1, 0]
    assert parts[0] + parts[1] == connect(epsilon="1").execute(SQL).fetchall()
    connection.execute('close "SQL_CUR1"')
    with pytest.raises(psycopg.errors.InvalidCursorName):
        connection.execute('FETCH 1 FROM "SQL_CUR1"')
    spent = entries(service)
    with connection.transaction(), connection.cursor("named") as cursor:
        cursor.itersize = 2
        cursor.execute("SELECT ward, COUNT(*) AS n FROM visits WHERE stay > %s GROUP BY ward", (2.5,))
        assert [one.name for one in cursor.description] == ["ward", "n", "n_low", "n_high"]
        assert len(list(cursor)) == 3
    assert entries(service) > spent
    for text in ("DECLARE c CURSOR FOR DELETE FROM visits", "DECLARE c CURSOR FOR SELECT patient_id FROM visits"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(text)


@pytest.mark.parametrize("words", ["DEALLOCATE one", "DEALLOCATE PREPARE one", "DEALLOCATE ALL"])
def test_a_statement_that_is_deallocated_is_forgotten(connect, words):
    """psycopg does so when its cache is full; a connection that kept them all was refused in the end."""
    connection = connect()
    connection.pgconn.prepare(b"one", b"SELECT 1")
    connection.execute(words)
    found = connection.pgconn.exec_prepared(b"one", [])
    assert found.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"26000"


def test_rows_come_in_parts_if_asked_for(connect):
    with connect(epsilon="1").cursor() as cursor:
        assert len(list(cursor.stream(SQL, size=2))) == 3


def test_copies(service, connect):
    cursor = connect().cursor()
    for options, part in (
        ("", b"north\t"),
        (" WITH (FORMAT csv, HEADER)", b"ward,n,avg,n_low"),
        (" WITH (FORMAT csv, DELIMITER ';', NULL 'none')", b"north;"),
        (" DELIMITER AS '|'", b"north|"),
        (" (FORMAT binary)", b"PGCOPY"),
    ):
        with cursor.copy(f"COPY ({SQL}) TO STDOUT{options}") as copy:
            assert part in b"".join(copy)
    before = entries(service)
    other = SQL.replace("n,", "m,")
    for words in ("(FORCE_QUOTE *)", "(DELIMITER ';;')", "(ENCODING 'LATIN1')", "(FORMAT xml)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), cursor.copy(f"COPY ({other}) TO STDOUT {words}"):
            pass
    assert entries(service) == before


def test_a_copy_tells_a_missing_value_from_an_empty_text():
    columns = [("a", types.TEXT), ("b", types.TEXT)]
    rows = [(None, ""), ('x"y', "1,2"), ("a\tb", "a|b\\")]

    def written(words):
        body = [m[5:] for m in copy_messages(columns, rows, Options.of(words)) if m[:1] == b"d"]
        return b"".join(body).decode().splitlines()

    assert written("CSV") == [',""', '"x""y","1,2"', "a\tb,a|b\\"]
    assert written("") == ["\\N\t", 'x"y\t1,2', "a\\tb\ta|b\\\\"]
    assert written("DELIMITER '|'")[2] == "a\\tb|a\\|b\\\\"


@pytest.mark.parametrize(
    "words",
    [
        {"password": "sf_00000000_" + "a" * 43},
        {"password": "x"},
        {"user": "nobody"},
        {"user": "bob"},  # with ann's token
        {"dbname": "other"},
    ],
)
def test_a_wrong_token_opens_nothing(door, tokens, words):
    whole = {"user": "ann", "password": tokens["ann"], "dbname": "clinic", **words}
    if words.get("user") == "bob":
        whole["password"] = tokens["ann"]
    with pytest.raises(psycopg.OperationalError, match="do not open"):
        psycopg.connect(host="127.0.0.1", port=door.port, **whole)


def test_a_revoked_token_ends_a_connection(service, connect, tokens):
    connection = connect()
    connection.execute("SELECT 1")
    service.data["clinic"].identity.revoke(tokens["ann"].split("_")[1])
    with pytest.raises(psycopg.Error):
        connection.execute(SQL)


def test_an_auditor_reads_the_ledger_and_does_not_ask(connect):
    connect().execute(SQL)
    auditor = connect(who="eve")
    with pytest.raises(psycopg.Error):
        auditor.execute(SQL)
    assert [who for (who,) in auditor.execute("SELECT who FROM sfumato.ledger WHERE act = 'charged'")] == ["ann"]


def test_own_tables(connect):
    connection = connect()
    ((spent,),) = connection.execute("SELECT spent FROM sfumato.budget").fetchall()
    assert spent == 0
    listed = connection.execute('SELECT "column" FROM sfumato.catalogue WHERE "table" = %s', ("visits",)).fetchall()
    assert ("stay",) in listed


def test_the_ledger_has_prices_and_settings_go_back_for_the_next_user_of_a_pool(connect, service):
    connection = connect(epsilon="0.5")
    connection.execute(SQL)
    paid = connection.execute("SELECT epsilon FROM sfumato.ledger WHERE act = 'charged'").fetchall()
    assert paid == [(pytest.approx(0.5, rel=1e-3),)]
    for words in ("DISCARD ALL", "RESET ALL", "RESET sfumato.epsilon"):
        connection.execute("SET sfumato.epsilon = 0.4")
        connection.execute("SET sfumato.error = 7")
        connection.execute(words)
        assert connection.execute("SHOW sfumato.epsilon").fetchone() == ("0.5",)
    connection.execute("RESET sfumato.error")
    assert connection.execute("SHOW sfumato.error").fetchone() == ("",)


@pytest.mark.parametrize(
    "text",
    ["SELECT ward AS ward, COUNT(*) AS count FROM public.visits GROUP BY ward ORDER BY count DESC LIMIT 1000",
     "SELECT COUNT(*) AS count FROM public.visits WHERE day >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', "
     "'YYYY-MM-DD HH24:MI:SS.US')",
     'SELECT "public"."visits"."ward" AS "ward", COUNT(*) AS "count" FROM "public"."visits" '  # Metabase
     'GROUP BY "public"."visits"."ward" ORDER BY "public"."visits"."ward" ASC',
     'SELECT "visits"."ward" AS "ward", SUM("visits"."stay") AS "sum:stay:ok" '  # Tableau
     'FROM "public"."visits" "visits" GROUP BY 1',
     "SELECT COUNT(*) FROM clinic.public.visits"],
)  # fmt: skip
def test_questions_as_tools_spell_them(connect, text):
    """Superset, twice; Metabase; Tableau."""
    connection = connect()
    assert connection.execute(f"EXPLAIN PRIVACY {text}").fetchall()
    described = connection.cursor()
    described.execute(text, binary=True)
    assert described.description[0].name in ("ward", "count")


@pytest.mark.parametrize(
    ("text", "at", "code"),
    [
        ("SELECT COUNT(*) FRM visits", "visits", "42601"),
        ("EXPLAIN PRIVACY SELECT COUNT(*)\nFROM visits WHERE WHERE", "WHERE WHERE"[6:], "42601"),
        ("COPY (SELECT COUNT(*) FRM visits) TO STDOUT", "visits", "42601"),
        ("SELECT COUNT(*) FROM visits WHERE ward = 'nam' AND nam = 1", "nam = 1", "42501"),
        ("SELECT COUNT(*) FROM public.visits WHERE é = 1", "é", "42501"),
        ("SELECT ward, COUNT(*) FROM\n  visit", "visit", "42501"),
        ("SELECT SUM(FOO(age)) FROM visits", "FOO", "42501"),
        ("SELECT ward, SUM(patient_id) FROM visits GROUP BY ward", "SUM", "42501"),
        ("DROP TABLE visits", "DROP", "42501"),
        ("  SELEC 1", "SELEC", "42601"),
        ("EXPLAIN ANALYZE SELECT COUNT(*) FROM visits", "EXPLAIN", "42501"),
    ],
)
def test_refusals_say_where_and_what_to_do(connect, text, at, code):
    with pytest.raises(psycopg.Error) as problem:
        cursor = connect().cursor()
        if text.startswith("COPY"):
            with cursor.copy(text) as copy:
                list(copy)
        cursor.execute(text)
    diag = problem.value.diag
    assert diag.sqlstate == code and diag.message_hint
    assert diag.statement_position == str(text.rindex(at) + 1)


def test_the_tables_of_sfumato_are_listed_and_a_person_has_their_name(connect):
    connection = connect()
    connection.execute(SQL)
    listed = connection.execute("SELECT table_name FROM information_schema.views WHERE table_schema = 'sfumato'")
    for (name,) in listed.fetchall():
        described = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'sfumato' AND table_name = %s",
            (name,),
        ).fetchall()
        assert [one.name for one in connection.execute(f"SELECT * FROM sfumato.{name}").description] == [
            column for (column,) in described
        ]
    ((when, who),) = connection.execute(
        "SELECT time, current_user FROM sfumato.ledger WHERE act = 'charged'"
    ).fetchall()
    assert abs(when - datetime.datetime.now(datetime.UTC).replace(tzinfo=None)) < datetime.timedelta(days=1)
    assert who == "ann"


def test_one_person_cannot_fill_the_memory_with_results_that_nobody_reads(connect, monkeypatch):
    """Each portal kept 12 MB of a catalogue's rows, and there was no limit for all of them."""
    monkeypatch.setattr("sfumato.server.postgres.presence.MOST_UNREAD", 5 << 19)
    text = b"SELECT repeat('x', 900) FROM generate_series(1, 1000)"
    kept = []
    for connection in (connect(), connect()):
        connection.execute("BEGIN")
        kept.append(connection.cursor("big"))
        kept[-1].execute(text.decode())
        assert len(kept[-1].fetchmany(1)) == 1
    with pytest.raises(psycopg.errors.TooManyConnections, match="results"):
        connect().execute(text.decode()).fetchall()
    assert connect(who="bob").execute(text.decode()).fetchall()
    kept[0].close()
    assert connect().execute(text.decode()).fetchall()
    kept[1].close()


def test_columns_stand_where_the_select_has_them_whatever_they_are_called(service, people, connect):
    """PostgreSQL calls COUNT(*) and COUNT(DISTINCT x) count, and AVG of anything avg: the first was shown for all."""
    text = 'SELECT COUNT(*), COUNT(DISTINCT patient_id), AVG(stay), AVG(stay + 1), SUM(stay) AS "SUM(stay)" FROM visits'
    answer = service.ask(people["ann"], "clinic", text, epsilon=0.5)
    (mine,) = answer.rows
    cursor = connect().execute(text)
    names = ["count", "count", "avg", "avg", "SUM(stay)"]
    ends = [f"{name}_{end}" for name in names for end in ("low", "high")]
    assert [one.name for one in cursor.description] == [*names, *ends]
    (row,) = cursor.fetchall()
    assert row[:5] == mine[::3] and len({*row[:5]}) == 5
    assert row[5:] == tuple(cell for place, cell in enumerate(mine) if place % 3)


def test_intervals_can_be_left_out_for_programs_that_count_columns(connect):
    """Some versions of Metabase refuse a result that has more columns than their question."""
    connection = connect()
    both = connection.execute("SELECT ward, COUNT(*) AS n, AVG(stay) AS stay FROM visits GROUP BY ward").fetchall()
    connection.execute("SET sfumato.intervals = off")
    cursor = connection.execute("SELECT ward, COUNT(*) AS n, AVG(stay) AS stay FROM visits GROUP BY ward")
    assert [one.name for one in cursor.description] == ["ward", "n", "stay"]
    assert cursor.fetchall() == [row[:3] for row in both]
    outer = "SELECT MAX(n) AS most FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t"
    assert len(connection.execute(outer).fetchone()) == 1
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connection.execute("SET sfumato.intervals = perhaps")


def test_statements_are_prepared_by_sql_too(service, connect):
    connection = connect()
    connection.execute("PREPARE older (float8, text) AS SELECT COUNT(*) AS n FROM visits WHERE stay > $1 AND ward = $2")
    lines = len(service.data["clinic"].curator.ledger.history())
    first = connection.execute("EXECUTE older (40, 'north')").fetchall()
    assert len(service.data["clinic"].curator.ledger.history()) > lines
    assert connection.execute("EXECUTE older ('40', 'north')").fetchall() == first
    assert connection.execute("SELECT COUNT(*) AS n FROM visits WHERE stay > 40 AND ward = 'north'").fetchall() == first
    for text, code in (
        ("EXECUTE older (40)", "42501"), ("EXECUTE older (40, 'a' FROM visits)", "42501"), ("EXECUTE other", "26000"),
        ("EXECUTE older ((SELECT 1), 'a')", "42501"), ("PREPARE older AS SELECT 1", "42P05"),
        ("PREPARE a AS EXECUTE a", "42501"), ("PREPARE a AS DROP TABLE visits", "42501"),
        ("EXECUTE older ('x', 'a')", "42501"),
    ):  # fmt: skip
        with pytest.raises(psycopg.Error) as problem:
            connection.execute(text)
        assert problem.value.sqlstate == code, (text, str(problem.value))
    connection.execute("DEALLOCATE older")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        connection.execute("EXECUTE older (40, 'north')")


def test_settings_are_refused_when_they_are_set(connect):
    """A wrong price was an error at the next question, and DEFAULT was taken for a price."""
    connection = connect()
    ((before,),) = connection.execute("SHOW sfumato.epsilon").fetchall()
    for text in ("SET sfumato.epsilon = 'abc'", "SET sfumato.epsilon = -1", "SET sfumato.error TO 'inf'",
                 "SET sfumato.epsilom = 0.1"):  # fmt: skip
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute(text)
    connection.execute("SET sfumato.epsilon = 0.25")
    assert connection.execute("SELECT current_setting('sfumato.epsilon')").fetchone() == ("0.25",)
    connection.execute("SET sfumato.epsilon TO DEFAULT")
    assert connection.execute("SHOW sfumato.epsilon").fetchone() == (before,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="set_config"):
        connection.execute("SELECT set_config('sfumato.epsilon', '5', false)")
    now, today = connection.execute("SELECT now(), current_date").fetchone()
    assert now.date() == today and abs(
        now - datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    ) < datetime.timedelta(hours=1)


def test_wrong_syntax_has_a_position(connect):
    with pytest.raises(psycopg.errors.SyntaxError) as problem:
        connect().execute("SELECT COUNT(*)\nFROM visits WHERE WHERE")
    diag = problem.value.diag
    assert diag.statement_position is not None and 16 < int(diag.statement_position) <= 40 and diag.message_hint


def test_cancel_stops_waiting_and_keeps_the_answer(service, connect):
    """The question goes on: what was charged is stored, and the next one is free."""
    entered, go, read = threading.Event(), threading.Event(), Buyer.read

    def slow(self, requests):
        entered.set()
        assert go.wait(20)
        return read(self, requests)

    connection, stopped = connect(), []

    def ask():
        try:
            connection.execute(SQL)
        except psycopg.errors.QueryCanceled as problem:
            stopped.append(problem)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Buyer, "read", slow)
        thread = threading.Thread(target=ask)
        thread.start()
        assert entered.wait(20)
        connection.cancel_safe(timeout=20)
        thread.join(20)
        go.set()
    assert stopped
    assert len(connect().execute(SQL).fetchall()) == 3
    lines = service.data["clinic"].curator.ledger.history()
    assert [one.content["kind"] for one in lines].count("charged") == 1


@pytest.mark.parametrize("mode", ["disable", "require", "verify-full"])
def test_tls(service, tokens, tmp_path, mode):
    """With a certificate, a token never crosses the wire in the open."""
    write_certificate(tmp_path, 1)
    context = tls_context(Tls(tmp_path / "cert.pem", tmp_path / "key.pem"))
    with open_door(service, configuration(tmp_path), context) as door:
        words = {"user": "ann", "password": tokens["ann"], "dbname": "clinic", "port": door.port, "sslmode": mode}
        if mode == "disable":
            with pytest.raises(psycopg.OperationalError, match="TLS"):
                psycopg.connect(host="localhost", **words)
        else:
            with psycopg.connect(host="localhost", sslrootcert=str(tmp_path / "cert.pem"), **words) as connection:
                assert connection.pgconn.ssl_in_use
                assert connection.execute("SELECT 1").fetchone() == (1,)


def test_looking_at_catalogues_is_limited_for_each_person(service, connect):
    connection, other = connect(), connect(who="bob")
    service.admission.burst = service.admission.rate = 3
    with pytest.raises(psycopg.Error) as found:
        for _ in range(20):
            connection.execute("SELECT relname FROM pg_class")
    assert found.value.sqlstate == "53300"
    assert other.execute("SELECT 1").fetchone() == (1,)


def test_a_revoked_token_sees_no_catalogue_and_describes_nothing(service, connect, tokens):
    connection = connect()
    assert connection.execute("SELECT COUNT(*) FROM pg_class").fetchone()
    identity = service.data["clinic"].identity
    identity.revoke(tokens["ann"].split("_")[1])
    for text in ("SELECT relname FROM pg_class", "SELECT COUNT(*) AS n FROM visits"):
        with pytest.raises(psycopg.Error) as found:
            connection.execute(text)
        assert found.value.sqlstate == "28000"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM pg_class WHERE " + " AND ".join(["1=1"] * 60_000),
        "SELECT 1 FROM pg_class WHERE oid IN (" + ",".join("1" * 100_000) + ")",
        ";" * 300_000,
        "SELECT 1 FROM pg_class WHERE " + " AND ".join(["1=1"] * 1000),
    ],
)
def test_a_text_that_is_too_long_to_be_read_quickly_is_refused_unread(connect, text, monkeypatch):
    """It was parsed in the event loop: one statement of 300 kB stopped every door for a minute."""
    monkeypatch.setattr("sfumato.server.postgres.statements.sqlglot.parse_one", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(psycopg.Error, match="too long"):
        connect().execute(text)


def test_a_connection_has_a_bounded_number_of_settings(connect):
    connection = connect()
    with pytest.raises(psycopg.Error, match="settings"):
        for number in range(MOST_SETTINGS + 2):
            connection.execute(f"SET own.name_{number} = 1")


def test_one_person_does_not_take_all_connections(door, connect, monkeypatch):
    monkeypatch.setattr("sfumato.server.postgres.door.EACH", 500)  # of 1000 connections: two
    connect(), connect()
    with pytest.raises(psycopg.OperationalError, match="one person"):
        connect()
    assert connect(who="bob").execute("SELECT 1").fetchone() == (1,)
