"""Questions by their number, in batches about one world; a failure is made short and told in full."""

import random
from collections import Counter

from sqlglot import ErrorLevel, exp, parse_one
from sqlglot.errors import SqlglotError

from tests.fuzz.checks import Away, Checker, Failure, Home, OnSpark
from tests.fuzz.grammar import question_of
from tests.fuzz.rows import family_question
from tests.fuzz.worlds import world_of

BATCH = 150  # questions about one world
TRIES = 250
MOST = 2000  # questions that are remembered


class Run:
    """The questions of one seed, on DuckDB, on the PostgreSQL server at `dsn`, or by a session of Spark.

    A context, because a connection that stays open after a failure holds locks that the next test waits for.
    """

    def __init__(self, seed, dsn=None, family="", spark=None):
        self.spark = spark
        self.family = family  # of tests/fuzz/rows.py; "": of the grammar as a whole
        self.seed, self.dsn, self.number, self.checker = seed, dsn, None, None
        self.total = Counter()
        self.asked = []  # (text, question) of those that were planned

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def name(self):
        return "postgres" if self.dsn else "spark" if self.spark else "duckdb"

    @property
    def count(self):
        return self.total + (self.checker.count if self.checker else Counter())

    def world(self, number):
        """Its checker: databases are made once for a batch."""
        if number != self.number:
            self.close()
            world = world_of(self.seed, number)
            home = Home(world)
            self.number = number
            away = Away(world, self.dsn) if self.dsn else OnSpark(world, self.spark, home) if self.spark else None
            self.checker = Checker(world, away, home) if away else Checker(world, home)
        return self.checker

    def one(self, index):
        """The failure of this question, or None."""
        checker = self.world(index // BATCH)
        sql = self.question(checker.world, index)
        try:
            found = checker.check(sql, random.Random(f"check {self.seed} {index}"))
        except Failure as failure:
            return failure
        if found is not None and len(self.asked) < MOST:
            self.asked.append((sql, found.asked))
        return None

    def question(self, world, index):
        if self.family:
            return family_question(world, self.name, self.family, self.seed, index)
        return question_of(world, self.name, self.seed, index)

    def close(self):
        if self.checker is not None:
            self.total += self.checker.count
            for engine in {self.checker.engine, self.checker.home} - {None}:
                engine.close()
        self.checker = self.number = None

    def report(self, index, failure):
        checker = self.world(index // BATCH)
        sql = self.question(checker.world, index)
        data = [line[:1500] for line in checker.world.script("whole", "postgres" if self.dsn else "duckdb")]
        short = shortened(checker, sql, failure, f"check {self.seed} {index}")
        first = f"FAILED seed {self.seed}, question {index}, {self.name}: {failure}"
        first += f"\nkeep it: {self.name} {self.seed} {index} in tests/fuzz/seeds.txt"
        gone = f"without: {checker.world.gone}"
        return "\n".join([first, checker.world.text, *data, gone, sql, "", f"shorter: {short}", "-" * 100])


def shortened(checker, sql, failure, salt):
    """A shorter text that fails in the same way."""

    def fails(text):
        try:
            checker.known.clear()
            checker.check(text, random.Random(salt))
        except Failure as other:
            return other.kind == failure.kind
        except Exception:  # what is cut off may be what the checks rely on
            return False
        return False

    tries = 0
    while tries < TRIES:
        for text in shorter(sql):
            tries += 1
            if tries >= TRIES or fails(text):
                break
        else:
            return sql
        sql = text if tries < TRIES else sql
    return sql


def shorter(sql):
    """Texts with one clause, column or function less."""
    try:
        root = parse_one(sql, read="duckdb")
    except SqlglotError:
        return
    for i, node in enumerate(list(root.walk())):
        for part in ("where", "having", "order", "limit", "offset", "joins", "with_", "group", "distinct"):
            if isinstance(node, exp.Select) and node.args.get(part):
                yield changed_at(root, i, lambda one, part=part: one.set(part, None))
        if isinstance(node, exp.Select | exp.Group) and len(node.expressions) > 1:
            for j in range(len(node.expressions)):
                yield changed_at(
                    root, i, lambda one, j=j: one.set("expressions", one.expressions[:j] + one.expressions[j + 1 :])
                )
        if isinstance(node, exp.Func | exp.Binary | exp.Unary | exp.Paren | exp.Cast | exp.Between | exp.Union):
            for j, child in enumerate(node.iter_expressions()):
                if isinstance(child, exp.Query | exp.Condition):
                    yield changed_at(root, i, lambda one, j=j: one.replace(list(one.iter_expressions())[j].copy()))


def changed_at(root, place, change):
    found = root.copy()
    change(list(found.walk())[place])
    return found.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)
