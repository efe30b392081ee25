"""What each function takes in one row: its worst input against its cheapest, and against what its table says.

For every function that questions may use, arguments at the length limit that are hard in different ways (texts that
nearly match, letters of four bytes, blanks, digits), and short ones. Prints microseconds of processor time for a row.
Exits 1 if a function takes longer than is stated in sfumato/sql/functions or, of `--engine postgres`, in its dialect.
That starts a server of its own. Nothing is measured on Spark, for which there is no engine.
"""

import argparse
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb

from sfumato.sql import reserved_names as names
from sfumato.sql.dialects import Dialect, dialect_of
from sfumato.sql.domains import DATE, LONGEST_TEXT, TEXT, TRUTH, Kind, number
from sfumato.sql.expressions import Call, Column, Constant, Expression
from sfumato.sql.functions import FUNCTIONS
from sfumato.sql.reserved_names import table_alias

LONG = LONGEST_TEXT
RANDOM = " || ".join(f"MD5('{n} ' || i)" for n in range(LONG // 32))
MIXED = f"TRANSLATE({RANDOM}, '0123456789abcdef', '{'😀😁' * 8}')"  # no two parts alike: hard for automata
HARD = {  # i is a number; SQL that all engines read alike
    Kind.TEXT: [f"repeat('{sign}', {LONG - 8}) || i" for sign in (*"aAßΐЖ😀𐐀 1", "\u3000")]
    + [MIXED]
    + [f"i || repeat('{sign}', {LONG - 8})" for sign in (" ", "\u3000")]
    + [f"'0.' || repeat('1', {LONG - 20}) || i || 'e-300'", f"i || '.' || repeat('0', {LONG - 20}) || 'x'",
       f"repeat('1', {LONG - 20}) || i || 'e9999'", f"'0.' || repeat('1', {LONG - 20}) || i || 'e-9999'",
       f"repeat('1_', {LONG // 2 - 4}) || i", f"'2024-02-29 10:00:00.' || repeat('1', {LONG - 40}) || i",
       f"'2024-02-29' || repeat(' ', {LONG - 40}) || i"],
    Kind.NUMBER: ["CAST(1e308 AS FLOAT8) - i", "CAST(4.9e-324 AS FLOAT8) * (i % 1000)", "i / CAST(7 AS FLOAT8)",
                  "-1e15 - i / CAST(3 AS FLOAT8)", "CAST(1e-300 AS FLOAT8) * i"],
    Kind.TRUTH: ["i % 2 = 0"],
    Kind.DATE: ["TIMESTAMP '9999-12-31' - i * INTERVAL '1 hour'", "TIMESTAMP '0001-01-01' + i * INTERVAL '1 hour'"],
}  # fmt: skip
EASY = {Kind.TEXT: "'a' || i % 10", Kind.NUMBER: "1.5 + i % 10", Kind.TRUTH: "true",
        Kind.DATE: "TIMESTAMP '2024-01-01'"}  # fmt: skip
DOMAINS = {Kind.TEXT: TEXT, Kind.NUMBER: number(), Kind.TRUTH: TRUTH, Kind.DATE: DATE}
TYPES = {Kind.TEXT: "text", Kind.NUMBER: "double precision", Kind.TRUTH: "boolean",
         Kind.DATE: "timestamp without time zone"}  # fmt: skip
BOUNDS = ((0.0, 60.0),)  # of CLAMP
SOUGHT = {  # second arguments: not there, but nearly, everywhere; of numbers what is far from the first
    Kind.TEXT: [one for sign in ("a", "😀") for one in (f"repeat('{sign}', {LONG // 2}) || 'b' || i",
                                                       f"'b' || repeat('{sign}', {LONG // 2})")],
    Kind.NUMBER: ["CAST(4.9e-324 AS FLOAT8) * (i % 1000)", "CAST(1.1e-300 AS FLOAT8) * i", "i * CAST(7e200 AS FLOAT8)"],
}  # fmt: skip


def kinds(name: str) -> list[list[Kind]]:
    """For each argument the kinds that it may have; of functions of many arguments three."""
    function = FUNCTIONS[name]
    listed = function.kinds + function.kinds[-1:] * (3 - len(function.kinds) if function.more else 0)
    if name == "case":
        listed = (Kind.TRUTH, Kind.TEXT, Kind.TEXT)
    return [list(Kind) if one is None else list(one) if isinstance(one, tuple) else [one] for one in listed]


def columns(name: str, hard: bool) -> Iterator[tuple[list[str], list[Expression]]]:
    """Texts that make columns a, b, …, and arguments that are these columns or constants."""
    fixed = FUNCTIONS[name].constants or (BOUNDS if name == "clamp" else ((),))
    listed = kinds(name)
    for constants in fixed if hard else fixed[:1]:
        free = listed[: len(listed) - len(constants)]
        for first in free[0]:
            chosen = [first, *((first if first in rest else rest[0]) for rest in free[1:])]
            for i in range(len(HARD[first]) if hard else 1):
                made = [HARD[kind][i % len(HARD[kind])] if hard else EASY[kind] for kind in chosen]
                second = SOUGHT.get(chosen[1], []) if hard and len(made) > 1 else []
                for values in [made, *([made[0], one, *made[2:]] for one in second)]:
                    yield values, [*map(column, range(len(values)), chosen), *map(Constant, constants)]  # type: ignore[arg-type]


def column(place: int, kind: Kind) -> Column:
    return Column(f"t0.c{place}", DOMAINS[kind])


class Engine(ABC):
    """A database that is measured."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect_of(dialect)

    @abstractmethod
    def run(self, sql: str) -> None: ...

    @abstractmethod
    def clock(self) -> float:
        """Seconds that it has worked so far."""

    @abstractmethod
    def kind_of(self, kind: Kind) -> str:
        """What the engine calls the type of such a column."""

    def timed(self, sql: str) -> float:
        start = self.clock()
        self.run(sql)
        return self.clock() - start

    def knowing(self, types: Mapping[str, str]) -> Dialect:
        return replace(self.dialect, types=types)


class Home(Engine):
    """DuckDB, in this process."""

    def __init__(self) -> None:
        super().__init__("duckdb")
        self.db = duckdb.connect()
        self.db.execute("SET threads = 1")

    def run(self, sql: str) -> None:
        self.db.execute(sql).fetchall()

    def clock(self) -> float:
        return time.process_time()

    def kind_of(self, kind: Kind) -> str:
        return {Kind.TEXT: "VARCHAR", Kind.NUMBER: "DOUBLE", Kind.TRUTH: "BOOLEAN", Kind.DATE: "TIMESTAMP"}[kind]


class Server(Engine):
    """PostgreSQL: one connection, whose process tells its time."""

    def __init__(self, dsn: str) -> None:
        import psycopg

        super().__init__("postgres")
        self.db = psycopg.connect(dsn, autocommit=True)
        self.db.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
        self.times = Path(f"/proc/{self.db.info.backend_pid}/schedstat")

    def run(self, sql: str) -> None:
        self.db.execute(sql.encode())

    def clock(self) -> float:
        """Without /proc, of the wall: then other work on the machine counts as well."""
        return int(self.times.read_text().split()[0]) / 1e9 if self.times.exists() else time.perf_counter()

    def kind_of(self, kind: Kind) -> str:
        return TYPES[kind]


@contextmanager
def connected(name: str) -> Iterator[Engine]:
    with ExitStack() as stack:
        if name == "duckdb":
            yield Home()
            return
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from tests.faults.server import running

        yield Server(stack.enter_context(running()).dsn)


def measured(db: Engine, values: Sequence[str], expressions: Sequence[Sequence[Expression]],
             rows: int) -> list[float]:  # fmt: skip
    """Seconds for a row of these expressions, over columns that are made so."""
    known = next(one for one in expressions if any(isinstance(of, Column) for of in one))
    types = {one.origin: db.kind_of(one.domain.kind) for one in known if isinstance(one, Column)}
    fill(db, values, [types[f"t0.c{i}"] for i in range(len(values))], rows)
    to, found = db.knowing(types), []
    for several in expressions:
        hashed = to.row_hash([to.compiled(one) for one in several], 1).sql(to.name)
        sql = f"SELECT BIT_XOR({hashed}) FROM hard AS {table_alias(0)}"
        found.append(min(db.timed(sql) for _ in range(5)) / rows)
    return found


def fill(db: Engine, values: Sequence[str], types: Sequence[str], rows: int) -> None:
    """A table of these columns."""
    listed = ", ".join(
        f"CAST({value} AS {of}) AS c{i}" for i, (value, of) in enumerate(zip(values, types, strict=True))
    )
    db.run("DROP TABLE IF EXISTS hard")
    db.run(f"CREATE TEMP TABLE hard AS SELECT {listed} FROM generate_series(100000, {99999 + rows}) r(i)")


def of_one_row(db: Engine, name: str, hard: bool, rows: int) -> tuple[float, float, float]:
    """(seconds, seconds that are stated, their ratio) of the arguments that come nearest to what is stated."""
    worst = (0.0, 1.0, -1.0)
    for values, arguments in columns(name, hard):
        call = Call(name, tuple(arguments))
        if db.dialect.refusal(call):
            continue
        read = [one for one in arguments if isinstance(one, Column)]
        few = rows // 50 if any(one.domain.kind is Kind.TEXT for one in read) else rows
        before, after = measured(db, values, [read, [call]], few)
        spent, stated = max(after - before, 0.0), stated_cost(db.dialect, call) / 1e9
        worst = max(worst, (spent, stated, spent / stated), key=lambda one: one[2])
    return worst


def stated_cost(dialect: Dialect, call: Call) -> float:
    """Nanoseconds, beyond those to read each argument once."""
    return dialect.cost(call) - sum(dialect.cost(one) for one in call.arguments)


def of_comparing(db: Engine, rows: int) -> tuple[float, float, float]:
    """The same of LIKE after LOWER, with patterns that have many letters and few."""
    worst, column = (0.0, 1.0, -1.0), Column("t0.c0", TEXT)
    for value in HARD[Kind.TEXT][:8]:
        for pattern in ("%d1%", "%kiwi%", "%ж%", "%жук%", "%бвгджзиклмнопрстуфхцч%", "%бвгджзиклмнопрстуфхцчшщ%"):
            call = Call("like", (Call("lower", (column,)), Call("lower", (Constant(pattern),))))
            before, after = measured(db, [value], [[column], [call]], rows // 50)
            spent, stated = max(after - before, 0.0), (db.dialect.cost(call) - db.dialect.cost(column)) / 1e9
            worst = max(worst, (spent, stated, spent / stated), key=lambda one: one[2])
    return worst


def of_reading(db: Engine, kind: Kind, rows: int) -> tuple[float, float, float]:
    """The same of a column of texts that the policy says to be of this kind."""
    worst, column = (0.0, 1.0, -1.0), Column("t0.c0", DOMAINS[kind])
    to = replace(db.knowing({"t0.c0": db.kind_of(Kind.TEXT)}), schema={"hard": {"c0": db.kind_of(Kind.TEXT)}})
    for value in HARD[Kind.TEXT]:
        fill(db, [value], [db.kind_of(Kind.TEXT)], rows // 50)
        plain = db.dialect.as_text(names.column("t0.c0"))
        sql = "SELECT BIT_XOR({}) FROM hard AS " + table_alias(0)
        before, after = (
            min(db.timed(sql.format(to.row_hash([one], 1).sql(to.name))) for _ in range(5)) / (rows // 50)
            for one in (plain, to.compiled(column))
        )
        spent, stated = max(after - before, 0.0), to.cost(column) / 1e9
        worst = max(worst, (spent, stated, spent / stated), key=lambda one: one[2])
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["duckdb", "postgres"], default="duckdb")
    parser.add_argument("--only", nargs="*", default=list(FUNCTIONS), help="names of functions")
    parser.add_argument("--rows", type=int, default=50_000)
    options = parser.parse_args()
    with connected(options.engine) as db:
        above = compared(db, [one for one in options.only if one in db.dialect.functions], options.rows)
    print(f"above what is stated: {', '.join(above) or 'none'}")
    return 1 if above else 0


def compared(db: Engine, listed: Sequence[str], rows: int) -> list[str]:
    """Prints what each takes; those that take more than they state."""
    above = []
    print(f"{'function':18}{'worst µs':>12}{'cheapest µs':>13}{'ratio':>9}{'stated µs':>11}")
    for name in listed:
        spent, stated, share = of_one_row(db, name, True, rows)
        cheap = of_one_row(db, name, False, rows)[0]
        ratio = f"{spent / cheap:9.0f}" if cheap > 1e-9 else f"{'–':>9}"
        over = "  ABOVE" * (share > 1)
        print(f"{name:18}{spent * 1e6:12.3f}{cheap * 1e6:13.3f}{ratio}{stated * 1e6:11.1f}{over}", flush=True)
        above += [name] * (share > 1)
    others = {f"a text as {kind.value}": partial(of_reading, db, kind, rows) for kind in Kind}
    for label, measure in {"ilike": partial(of_comparing, db, rows), **others}.items():
        spent, stated, share = measure()
        print(f"{label:18}{spent * 1e6:12.3f}{'':13}{'':9}{stated * 1e6:11.1f}{'  ABOVE' * (share > 1)}", flush=True)
        above += [label] * (share > 1)
    return above


if __name__ == "__main__":
    sys.exit(main())
