"""Ask a service by its PostgreSQL door, from each client: run in the environment that has them.

    python clients.py HOST PORT USER DATABASE TOKEN

Prints one line for each check. The questions are the same, so all but the first are free.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import traceback

SQL = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward"
WHERE = "SELECT COUNT(*) AS n FROM visits WHERE ward = {} AND age > {}"
OPTIONS = "-c sfumato.epsilon=0.05"
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Place:
    host, port, user, database, token = sys.argv[1:6] if len(sys.argv) > 5 else ("", "", "", "", "")


def address(driver: str) -> str:
    return f"postgresql+{driver}://{Place.user}:{Place.token}@{Place.host}:{Place.port}/{Place.database}"


def psycopg_connection():
    import psycopg

    return psycopg.connect(host=Place.host, port=Place.port, user=Place.user, dbname=Place.database,
                           password=Place.token, options=OPTIONS)  # fmt: skip


def psql(*commands: str) -> str:
    environment = {**os.environ, "PGPASSWORD": Place.token}
    words = [word for command in commands for word in ("-c", command)]
    place = f"host={Place.host} port={Place.port} user={Place.user} dbname={Place.database} options='{OPTIONS}'"
    done = subprocess.run(
        ["psql", place, "-v", "VERBOSITY=verbose", *words], env=environment, capture_output=True, text=True
    )
    return done.stdout + done.stderr


@check
def psql_question():
    assert "cardiology" in psql(SQL)
    refused = psql("SELECT * FROM visits")
    assert "42501" in refused and "HINT" in refused, refused


@check
def psql_describe():
    for command in (r"\dt", r"\dt+", r"\d", r"\l", r"\dn", r"\du", r"\df", r"\d visits", r"\d+ visits"):
        found = psql(command)
        assert "ERROR" not in found, found
    assert "patient_id" in psql(r"\d visits")


@check
def psycopg_simple():
    with psycopg_connection() as connection:
        rows = connection.execute(SQL).fetchall()
        assert len(rows) == 6 and isinstance(rows[0][1], int)


@check
def psycopg_parameters():
    with psycopg_connection() as connection:
        ((n, low, high),) = connection.execute(WHERE.format("%s", "%s"), ("surgery", 40)).fetchall()
        assert low <= n <= high


@check
def psycopg_prepared_binary():
    with psycopg_connection() as connection, connection.cursor(binary=True) as cursor:
        for _ in range(3):
            cursor.execute(WHERE.format("%s", "%s"), ("surgery", 40), prepare=True)
            assert isinstance(cursor.fetchone()[0], int)


@check
def asyncpg_binary():
    import asyncpg

    async def run():
        connection = await asyncpg.connect(host=Place.host, port=int(Place.port), user=Place.user,
                                           database=Place.database, password=Place.token,
                                           server_settings={"sfumato.epsilon": "0.05"})  # fmt: skip
        rows = await connection.fetch(WHERE.format("$1", "$2"), "surgery", 40.0)
        assert isinstance(rows[0]["n"], int)
        async with connection.transaction():
            assert len([row async for row in connection.cursor(SQL, prefetch=2)]) == 6
        await connection.close()

    asyncio.run(run())


@check
def pg8000_question():
    import pg8000.dbapi

    connection = pg8000.dbapi.connect(host=Place.host, port=int(Place.port), user=Place.user,
                                      database=Place.database, password=Place.token)  # fmt: skip
    cursor = connection.cursor()
    cursor.execute("SET sfumato.epsilon = 0.05")
    cursor.execute(WHERE.format("%s", "%s"), ("surgery", 40))
    assert isinstance(cursor.fetchone()[0], int)


def engine():
    import sqlalchemy

    return sqlalchemy.create_engine(address("psycopg"), connect_args={"options": OPTIONS})


@check
def sqlalchemy_query():
    import sqlalchemy

    with engine().connect() as connection:
        rows = connection.execute(sqlalchemy.text(WHERE.format(":ward", ":age")), {"ward": "surgery", "age": 40}).all()
        assert len(rows) == 1


@check
def sqlalchemy_reflection():
    import sqlalchemy

    found = sqlalchemy.inspect(engine())
    assert "public" in found.get_schema_names()
    assert "visits" in found.get_table_names()
    assert {"age", "ward"} <= {one["name"] for one in found.get_columns("visits")}
    found.get_pk_constraint("visits"), found.get_foreign_keys("visits"), found.get_indexes("visits")
    found.get_table_comment("visits"), found.get_unique_constraints("visits"), found.get_view_names()


@check
def pandas_read_sql():
    import pandas

    frame = pandas.read_sql(SQL, engine())
    assert frame.shape == (6, 4) and frame["n"].dtype.kind == "i"


@check
def adbc_typed():
    import adbc_driver_postgresql.dbapi

    uri = f"postgresql://{Place.user}:{Place.token}@{Place.host}:{Place.port}/{Place.database}"
    opened = adbc_driver_postgresql.dbapi.connect(f"{uri}?options=-c%20sfumato.epsilon%3D0.05")
    with opened as connection, connection.cursor() as cursor:
        cursor.execute(SQL)
        table = cursor.fetch_arrow_table()
    assert [str(one) for one in table.schema.types][:2] == ["string", "int64"], table.schema


@check
def copy_out():
    with psycopg_connection() as connection, connection.cursor() as cursor:
        for options in ("", " WITH (FORMAT csv, HEADER)", " (FORMAT binary)"):
            with cursor.copy(f"COPY ({SQL}) TO STDOUT{options}") as copy:
                assert b"cardiology" in b"".join(copy)


@check
def errors_and_transactions():
    import psycopg

    with psycopg_connection() as connection:
        for text, code in (("SELEC 1", "42601"), ("SELECT name FROM visits", "42501"), ("DROP TABLE visits", "42501")):
            try:
                connection.execute(text)
                raise AssertionError(text)
            except psycopg.Error as problem:
                assert problem.sqlstate == code, (text, problem.sqlstate, str(problem))
            connection.rollback()
        with connection.transaction():
            connection.execute(SQL)


def main() -> int:
    failed = 0
    for one in CHECKS:
        if one.__name__.startswith("psql") and shutil.which("psql") is None:
            print(f"  –     {one.__name__}: there is no psql here")
            continue
        try:
            one()
            print(f"  ok    {one.__name__}")
        except Exception:
            failed += 1
            print(f"  FAIL  {one.__name__}\n{traceback.format_exc(limit=-2)}")
    print(f"{len(CHECKS) - failed} of {len(CHECKS)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
