"""What must hold for a question, whatever it asks and whatever the data are.

It is refused in words or runs everywhere; one unit moves exact numbers by no more than the noise is made for; texts
with one stored key are one statement; engines agree; and where no bound cuts, the numbers are those of plain SQL.
"""

import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import duckdb

from sfumato.aggregates.price import Mu
from sfumato.aggregates.quantile import QuantileRelease
from sfumato.aggregates.registry import parse_question
from sfumato.aggregates.trimmed_mean import TrimmedMeanRelease
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import batches
from sfumato.engines.duckdb import COLUMNS, OPTIMIZER, schema_from_rows
from sfumato.errors import QueryRefused
from sfumato.sql.dialects.duckdb import DuckDB
from sfumato.sql.dialects.postgres import Postgres
from sfumato.sql.dialects.spark import Spark
from sfumato.sql.emit.bounding import statement
from sfumato.sql.emit.values import distinct_counts, ranked_values, values_near_ranks
from sfumato.sql.plan import What
from tests.curator.questions import by_group, by_key, changed, not_by_rank, told_apart
from tests.fuzz.grammar import mutated, respelled
from tests.fuzz.plain import PlainSql
from tests.fuzz.worlds import quoted

SALT = 12345
DATABASES = ("whole", "without", "with")


class Failure(Exception):
    """Something does not hold; `kind` says what."""

    def __init__(self, kind, detail=""):
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


@dataclass
class Question:
    """A question that was read, what an engine is asked for it, and what it gave."""

    sql: str
    asked: object
    offer: object
    dialect: object
    tables: dict = field(default_factory=dict)

    @property
    def plan(self):
        return self.asked.plan

    @cached_property
    def ranks(self):
        """What is ranked → all its values, in a statement."""
        lattices = [batch[0].batch for batch in self.by_rank]
        return {lattice: ranked_values(self.plan, lattice, SALT, self.dialect) for lattice in lattices}

    @property
    def by_rank(self):
        """The quantiles, those of one column together."""
        return [batch for batch in batches(self.offer) if isinstance(batch[0], QuantileRelease)]

    @cached_property
    def texts(self):
        """The statements, as `statements` gives them; without those of which tables are kept."""
        plan, dialect = self.plan, self.dialect
        summed = any(m.what is not What.DISTINCT for m in plan.measures)
        found = [statement(plan, SALT, dialect)] if summed else []
        found += [distinct_counts(plan, m.of, SALT, dialect) for m in plan.measures if m.what is What.DISTINCT]
        for batch, text in zip(self.by_rank, self.ranks.values(), strict=True):
            found.append(values_near_ranks(plan, [one.window for one in batch], f"({text})", dialect))
        return found + [one.statement(SALT, dialect) for one in not_by_rank(self.offer)]


class Home:
    """The databases of a world in DuckDB."""

    def __init__(self, world):
        self.open = {}
        for which in DATABASES:
            self.open[which] = duckdb.connect(config={"threads": 1, "disabled_optimizers": OPTIMIZER})
            for line in world.script(which, "duckdb"):
                self.open[which].execute(line)
        self.dialects = [DuckDB(schema=schema_from_rows(self.open["whole"].execute(COLUMNS).fetchall())), DuckDB()]

    def run(self, which, sql):
        return self.open[which].execute(sql).fetchall()

    def close(self):
        for connection in self.open.values():
            connection.close()


class Away:
    """The databases of a world in PostgreSQL, each a schema of its own."""

    def __init__(self, world, dsn):
        import psycopg

        from sfumato.engines.postgres import Postgres as Engine
        from sfumato.engines.postgres import begin_reading

        self.open, self.begin_reading = {}, begin_reading
        for which in DATABASES:
            connection = psycopg.connect(dsn, autocommit=True)
            for line in (f"DROP SCHEMA IF EXISTS fuzz_{which} CASCADE", f"CREATE SCHEMA fuzz_{which}",
                         f"SET search_path TO fuzz_{which}", *world.script(which, "postgres")):  # fmt: skip
                connection.execute(line)
            connection.execute(begin_reading(f"fuzz_{which}", 60.0))
            self.open[which] = connection
        self.dialects = [Postgres(schema=Engine(dsn, "fuzz_whole").schema()), Postgres()]

    def run(self, which, sql):
        try:
            return self.open[which].execute(sql.encode()).fetchall()
        except Exception:
            self.open[which].execute("ROLLBACK")
            self.open[which].execute(self.begin_reading(f"fuzz_{which}", 60.0))
            raise

    def close(self):
        for connection in self.open.values():
            connection.close()


class OnSpark:
    """The databases of a world on Spark, each a session of its own with views of Parquet files."""

    def __init__(self, world, session, home):
        from sfumato.engines.spark import columns_of
        from sfumato.engines.spark import quoted as backquoted
        from sfumato.engines.spark_session import new_session

        self.open, self.folder = {}, tempfile.TemporaryDirectory(prefix="sfumato-fuzz-")
        schema = {}
        for which in DATABASES:
            self.open[which] = new_session(session)
            for number, table in enumerate(world.tables):
                place = f"{self.folder.name}/{which}-{number}.parquet"
                home.run(which, f"COPY {quoted(table.name)} TO '{place}' (FORMAT parquet)")
                frame = self.open[which].read.parquet(place)
                frame.createOrReplaceTempView(backquoted(table.name))
                schema[table.name] = columns_of(frame.schema)
        self.dialects = [Spark(schema=schema), Spark()]

    def run(self, which, sql):
        from sfumato.engines.spark import rows_of

        return rows_of(self.open[which], sql, 600.0)

    def close(self):
        from sfumato.engines.spark_session import release

        for session in self.open.values():
            release(session)
        self.folder.cleanup()


class Checker:
    """All that is checked about questions of one world on one engine; `home` is DuckDB, to compare another one with."""

    def __init__(self, world, engine, home=None):
        self.world, self.engine, self.home = world, engine, home
        self.plain = PlainSql(world) if world.mild and isinstance(engine, Home) and not world.collated else None
        self.known = {}  # stored key → statements
        self.count = Counter()

    def check(self, sql, dice=None):
        """Raises Failure if something does not hold; returns the question, or None if it was refused."""
        dice = dice or random.Random(sql)
        dialect = dice.choice(self.engine.dialects)
        found = self.planned(sql, dialect)
        self.count["asked"] += 1
        if found is None:
            return None
        self.count["planned"] += 1
        self.neighbours(found, dice.choice(DATABASES[1:]))
        self.public_keys(found)
        self.same_key(found, dialect)
        if dice.random() < 0.1:
            self.spellings(found, dice, dialect)
        if self.home is not None and dialect.schema:  # without types, columns are hashed by other texts
            self.engines_agree(found)
        if self.plain is not None:
            self.count["plain"] += self.plain.agrees(found, Failure)
        return found

    def planned(self, sql, dialect):
        """The question, or None if it is refused: by text and policy alone."""
        try:
            asked = parse_question(sql, self.world.policy)
            dialect.accepts(asked.plan)
            offer = offer_for_epsilon(asked, 1.0, 1e-9, Mu)
            _ = offer.noise, offer.standalone, offer.threshold
            return Question(sql, asked, offer, dialect)
        except QueryRefused:
            return None
        except Exception as problem:
            raise Failure(f"reading raises {type(problem).__name__}", str(problem)[:300]) from problem

    def run(self, found, which):
        if which not in found.tables:
            try:
                found.texts  # noqa: B018
            except QueryRefused:
                raise
            except Exception as problem:
                raise Failure(f"writing raises {type(problem).__name__}", str(problem)[:300]) from problem
            try:
                found.tables[which] = [self.engine.run(which, text) for text in found.texts]
            except Exception as problem:
                raise Failure(f"the engine raises {type(problem).__name__}", str(problem)[:300]) from problem
        return found.tables[which]

    def neighbours(self, found, other):
        """What one unit moves is what the noise is made for."""
        plan, pair = found.plan, [self.run(found, which) for which in ("whole", other)]
        try:
            self.count["moved"] += changed(found.sql, plan, *(by_group(plan, one) for one in pair))
            ways = not_by_rank(found.offer)
            for i, way in enumerate(ways, len(found.texts) - len(ways)):
                if not isinstance(way, TrimmedMeanRelease) or len(plan.keys) < 2:
                    told_apart(found.sql, way, *(by_key(one[i], len(plan.keys)) for one in pair))
        except AssertionError as problem:
            raise Failure("a unit moves more than is claimed", str(problem)[:300]) from problem
        for text in found.ranks.values():
            self.ranked(plan, *(self.engine.run(which, text) for which in ("whole", other)))

    def ranked(self, plan, one, other):
        """A unit brings or takes few values, in few groups."""
        width = len(plan.keys)
        counts = [Counter({row[: width + 1]: int(row[width + 1]) for row in rows}) for rows in (one, other)]
        gone, come = counts[0] - counts[1], counts[1] - counts[0]
        by = Counter()
        for row, many in (gone + come).items():
            by[row[:width]] += many
        if (gone and come) or len(by) > plan.groups or max(by.values(), default=0) > plan.rows:
            raise Failure("a unit moves more ranks than is claimed", f"{dict(by)} {plan.groups} {plan.rows}")

    def public_keys(self, found):
        """Every group is one of those that are listed in advance."""
        public = found.plan.public
        if public is None or len(public) > 10_000:
            return
        listed = set(public)
        if len(listed) < len(public):
            raise Failure("a public key is listed twice")
        strange = [key for key in by_group(found.plan, self.run(found, "whole")) if key not in listed]
        if strange:
            raise Failure("a group is not among the public keys", repr(strange[:3]))

    def same_key(self, found, dialect):
        """One stored key, one statement."""
        before = self.known.setdefault((found.offer.canonical, id(dialect)), found)
        if before.plan != found.plan and before.texts != found.texts:
            raise Failure("two questions have one key", f"the other is {before.sql}")

    def spellings(self, found, dice, dialect):
        """Another spelling has the same key; a text that differs a little has another one, or is the same statement."""
        again = self.planned(respelled(found.sql, random.Random(0), often=0), dialect)
        if again is not None and again.offer.canonical == found.offer.canonical:
            other = self.planned(respelled(found.sql, dice), dialect)
            if other is not None and other.offer.canonical != found.offer.canonical:
                raise Failure("two spellings have two keys", f"the other is {other.sql}")
            self.count["respelled"] += other is not None
        other = self.planned(mutated(found.sql, dice), dialect)
        if other is not None:
            self.same_key(other, dialect)

    def engines_agree(self, found):
        """The same integers, also where bounds cut: the hash that decides what is kept is the same on all engines."""
        here = [self.home.run("whole", text) for text in replace(found, dialect=self.home.dialects[0]).texts]
        width = len(found.plan.keys)
        for mine, other in zip(self.run(found, "whole"), here, strict=True):
            one, two = (sorted(repr(comparable(row, width)) for row in rows) for rows in (mine, other))
            if one != two:
                raise Failure("engines differ", f"{one[:3]} {two[:3]}")
        self.count["compared"] += 1


def comparable(row, width):
    """Numbers of keys as doubles, and those beside them as integers; the values of a mode are of any kind."""
    keys = [key + 0.0 if isinstance(key, int | float) and not isinstance(key, bool) else key for key in row[:width]]
    return keys, [whole(one) for one in row[width:]]


def whole(value):
    match value:
        case list():
            return [whole(one) for one in value]
        case None:
            return 0
        case str() | bool() | datetime():
            return str(value)
    return value if value != int(value) else int(value)
