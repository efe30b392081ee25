"""A table that is kept changes nothing but the time: what is read of it is what the direct statement gives."""

import random
import shutil
import threading
from dataclasses import dataclass, field

import duckdb
import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.bounded_cache import LARGEST_RESULT, RESULTS, BoundedTable, BoundedTables
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import table_requests
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import PolicyError, SfumatoError
from sfumato.sql.emit.request import TableRequest
from sfumato.sql.policy import Policy
from sfumato.sql.reserved_names import COUNT, COUNTED, PAIRS, RANKED, VALUE, measure
from tests.curator.clinic import POLICY, built
from tests.curator.questions import Maker
from tests.curator.wrapped import Wrapped

BY_WARD = "SELECT ward, COUNT(*) AS n, SUM(stay) AS s FROM visits GROUP BY ward"
ROWS = POLICY.replace('unit = "patient_id"\ngroups = 2\nrows = 3', 'unit = "row"')


@dataclass
class Counting(Wrapped):
    """An engine that says what it was asked."""

    made: list[str] = field(default_factory=list)
    run_directly: list[str] = field(default_factory=list)
    trouble: BaseException | None = None

    def run(self, sql):
        self.run_directly.append(sql)
        return self.inner.run(sql)

    def keep(self, sql, name):
        self.made.append(sql)
        if self.trouble is not None:
            raise self.trouble
        return self.inner.keep(sql, name)


@pytest.fixture
def engine(tmp_path):
    found = Counting(DuckDB(built(tmp_path / "clinic.duckdb")))
    yield found
    found.inner.close()


def wanted(sql, policy=POLICY, salt=12345, epsilon=1.0):
    return table_requests(offer_for_epsilon(parse_question(sql, Policy.read(policy)), epsilon, 1e-9), salt, "duckdb")


def plain(rows, width):
    """Rows by key, in one order. An empty sum is NULL, which counts as 0."""
    found = {}
    for row in rows:
        found.setdefault(row[:width], []).append(tuple(x or 0 for x in row[width:]))
    return {key: sorted(group, key=repr) for key, group in found.items()}


def answers(views, engine, sql, **more):
    return [plain(views.rows(engine, one), len(one.keys)) for one in wanted(sql, **more)]


def direct(engine, sql, **more):
    return [plain(engine.inner.run(one.direct), len(one.keys)) for one in wanted(sql, **more)]


def test_random_rows_give_the_same_numbers_warm_cold_and_direct(tmp_path):
    place = tmp_path / "many.duckdb"
    with duckdb.connect(str(built(place))) as connection:
        connection.execute(
            "INSERT INTO visits SELECT a % 300, ['north', 'south', 'west'][1 + b % 3], 'd' || b // 3 % 40,"
            " c % 70000 / 1000, c // 70000 % 2000 - 500, DATE '2024-01-01' + (a // 300 % 366)::INT"
            " FROM (SELECT (hash(range) >> 20)::BIGINT a, (hash(range + 10000) >> 20)::BIGINT b,"
            " (hash(range + 20000) >> 20)::BIGINT c FROM range(8000))"
        )
    engine, views = Counting(DuckDB(place)), BoundedTables(3)
    asked = [
        "SELECT diagnosis, COUNT(*), SUM(stay) FROM visits GROUP BY diagnosis",
        "SELECT diagnosis, AVG(cost), COUNT(*) FROM visits GROUP BY diagnosis",
        "SELECT diagnosis, ward, STDDEV(stay), SUM(stay) FROM visits WHERE cost > 0 GROUP BY 1, 2",
        "SELECT month(day), COUNT(DISTINCT diagnosis), MEDIAN(cost) FROM visits GROUP BY 1",
        "SELECT MEDIAN(cost), SUM(cost) FROM visits WHERE ward = 'west'",
    ]
    truth = {sql: direct(engine, sql) for sql in asked}
    for sql in random.Random(3).choices(asked, k=20):
        assert answers(views, engine, sql) == truth[sql]
    engine.inner.close()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [POLICY, ROWS], ids=["patients", "rows"])
def test_random_questions_read_the_same_numbers_warm_cold_and_direct(engine, policy):
    views, maker, asked = BoundedTables(4), Maker(20), []
    while len(asked) < 12:
        sql = maker.question()
        try:
            wanted(sql, policy)
        except SfumatoError:
            continue
        asked.append(sql)
    truth = {sql: direct(engine, sql, policy=policy) for sql in asked}
    for sql in random.Random(21).choices(asked, k=36):  # each warm or cold, as the ones before it left it
        assert answers(views, engine, sql, policy=policy) == truth[sql]
    others = (
        "LIST(",
        f"{COUNTED}.{COUNT} FROM",
        f"{RANKED}.{COUNT} FROM",
        "QUANTILE_DISC",
    )  # values that may be many, votes, and what is found by rank
    assert all(any(mark in sql for mark in others) for sql in engine.run_directly)
    assert 12 <= len(engine.made) < 60


def test_a_warm_question_makes_nothing(engine):
    views = BoundedTables(4)
    for sql in (BY_WARD, "SELECT SUM(stay), ward FROM visits GROUP BY ward HAVING SUM(stay) > 3 LIMIT 1"):
        assert answers(views, engine, sql) == direct(engine, sql)
    assert answers(views, engine, BY_WARD, epsilon=2.0) == direct(engine, BY_WARD)
    assert len(engine.made) == 1


def test_columns_of_one_name_have_one_statement():
    fewer, more = POLICY.replace("groups = 2", "groups = 1"), POLICY.replace("rows = 3", "rows = 4")
    variants = [(POLICY, 1, "1"), (fewer, 1, "1"), (more, 1, "1"), (ROWS, 1, "1"), (POLICY, 2, "1"), (POLICY, 1, "2")]
    seen, made = set(), {}
    for policy, salt, least in variants:
        for column in ("SUM(stay)", "AVG(stay), SUM(cost)"):
            sql = f"SELECT ward, {column} FROM visits WHERE stay > {least} GROUP BY ward"
            (request,) = wanted(sql, policy, salt)
            statements = {name: request.made([place]) for place, name in enumerate(request.columns)}
            assert {name: made.setdefault(name, found) for name, found in statements.items()} == statements
            assert len(set(statements)) == len(set(statements.values()))
            seen.add((policy, salt, least, request.columns))
    assert len({columns for *_, columns in seen}) == len(seen) == 2 * len(variants)  # all of it is in the name


def test_only_columns_that_are_missing_are_made(engine):
    views, both = (
        BoundedTables(4),
        "SELECT ward, COUNT(*), SUM(cost), COUNT(DISTINCT patient_id) FROM visits GROUP BY ward",
    )
    answers(views, engine, "SELECT ward, COUNT(*) FROM visits GROUP BY ward")
    assert answers(views, engine, both) == direct(engine, both)
    assert answers(views, engine, both) == direct(engine, both)  # of two tables, put together by keys
    assert len(engine.made) == 2
    assert f"SUM({PAIRS}.{measure(0)})" in engine.made[0]
    assert "cost" not in engine.made[0]
    assert "cost" in engine.made[1]


def test_a_sum_that_is_cut_with_its_count_is_another_column(engine):
    alone, beside = "SELECT SUM(stay) FROM visits", "SELECT SUM(stay), AVG(stay), COUNT(stay) FROM visits"
    for first, second in ((alone, beside), (beside, alone)):
        views = BoundedTables(4)
        answers(views, engine, first)
        assert answers(views, engine, second) == direct(engine, second)
    assert direct(engine, alone)[0][()][0] != direct(engine, beside)[0][()][0]  # or this would test nothing


@pytest.mark.parametrize("other", [
    "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "SELECT diagnosis, ward, COUNT(*) FROM visits WHERE ward = 'north' GROUP BY diagnosis, ward",
    "SELECT diagnosis, ward, COUNT(*) FROM visits WHERE diagnosis = 'd1' GROUP BY diagnosis, ward",
    "SELECT COUNT(*) FROM visits",
])  # fmt: skip
def test_filters_and_coarser_keys_are_not_read_from_a_finer_table(engine, other):
    views = BoundedTables(4)
    answers(views, engine, "SELECT diagnosis, ward, COUNT(*) FROM visits GROUP BY diagnosis, ward")
    assert answers(views, engine, other) == direct(engine, other)
    assert len(engine.made) == 2


@pytest.mark.parametrize(("more", "other"), [
    ({"salt": 54321}, POLICY),
    ({}, POLICY.replace("groups = 2", "groups = 1")),
    ({}, POLICY.replace("rows = 3", "rows = 2")),
])  # fmt: skip
def test_other_salts_and_bounds_are_other_tables(engine, more, other):
    views, sql = BoundedTables(4), "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis"
    assert answers(views, engine, sql) == direct(engine, sql)
    assert answers(views, engine, sql, policy=other, **more) == direct(engine, sql, policy=other, **more)
    assert direct(engine, sql) != direct(engine, sql, policy=other, **more)
    assert len(engine.made) == 2


def test_quantiles_are_kept_for_every_window_if_they_are_certainly_few(engine):
    views, sql = BoundedTables(4), "SELECT ward, MEDIAN(stay) FROM visits GROUP BY ward"
    for epsilon in (0.1, 1.0, 8.0):
        assert answers(views, engine, sql, epsilon=epsilon) == direct(engine, sql, epsilon=epsilon)
    third = "SELECT ward, QUANTILE(stay, 0.3), QUANTILE(stay, 0.9) FROM visits GROUP BY ward"
    assert answers(views, engine, third) == direct(engine, third)
    assert len(engine.made) == 1
    private = "SELECT diagnosis, MEDIAN(stay) FROM visits GROUP BY diagnosis"
    assert answers(views, engine, private) == direct(engine, private)
    assert len([sql for sql in engine.made if f"ORDER BY {COUNTED}.{VALUE}" in sql]) == 1


def test_the_tables_used_last_are_kept_and_others_closed(engine):
    views, asked = BoundedTables(2), [f"SELECT COUNT(*) FROM visits WHERE cost > {i}" for i in range(4)]
    for i in (0, 1, 0, 2):
        answers(views, engine, asked[i])
    assert len(engine.made) == 3
    assert len(engine.inner._kept) == 2
    answers(views, engine, asked[0])
    assert len(engine.made) == 3  # it was used later than the second
    answers(views, engine, asked[1])
    assert len(engine.made) == 4
    assert answers(BoundedTables(0), engine, BY_WARD) == direct(engine, BY_WARD)
    assert len(engine.made) == 4


def test_a_table_that_cannot_be_made_or_read_is_done_without(engine):
    views = BoundedTables(4)
    answers(views, engine, "SELECT COUNT(*) FROM visits")
    engine.trouble = MemoryError()
    assert answers(views, engine, BY_WARD) == direct(engine, BY_WARD)
    assert len(engine.run_directly) == 1
    assert len(engine.inner._kept) == 0  # what was kept may have been what was too much
    engine.trouble = None
    answers(views, engine, BY_WARD)
    for table in list(engine.inner._kept):
        table.close()
    assert answers(views, engine, BY_WARD) == direct(engine, BY_WARD)
    assert len(engine.run_directly) == 2
    assert answers(views, engine, BY_WARD) == direct(engine, BY_WARD)
    assert len(engine.run_directly) == 2


def test_what_is_stopped_is_not_begun_again_and_leaves_nothing(engine):
    views, long = (
        BoundedTables(4),
        "SELECT COUNT(*) AS m0 FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 5",
    )
    engine.inner.timeout = 0.05
    with pytest.raises(TimeoutError):
        views.rows(engine, TableRequest("SELECT 1", (), ("long",), lambda places: long))
    engine.inner.timeout = None
    engine.trouble = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        answers(views, engine, BY_WARD)
    engine.trouble = None
    assert not engine.run_directly
    assert len(engine.inner._kept) == 0
    assert answers(views, engine, BY_WARD) == direct(engine, BY_WARD)


def test_many_at_once_read_what_each_asked_for(engine):
    views = BoundedTables(2)  # so that tables go while others read them
    asked = [f"SELECT ward, COUNT(*), SUM(stay) FROM visits WHERE cost > {i * 100} GROUP BY ward" for i in range(5)]
    truth = [direct(engine, sql) for sql in asked]
    found = []

    def ask(number):
        order = random.Random(number).choices(range(5), k=12)
        found.extend((i, answers(views, engine, asked[i])) for i in order)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 72
    assert all(answer == truth[i] for i, answer in found)


def test_the_data_are_those_of_the_opening(tmp_path):
    """A file that is put in the place of ours is not seen until it is opened anew; then nothing is stale."""
    place = tmp_path / "clinic.duckdb"
    engine, views = DuckDB(built(place)), BoundedTables(4)
    before = views.rows(engine, *wanted("SELECT COUNT(*) FROM visits"))
    built(tmp_path / "more.duckdb", patients=80)
    shutil.move(tmp_path / "more.duckdb", place)
    assert views.rows(engine, *wanted("SELECT COUNT(*) FROM visits")) == before
    assert views.rows(engine, *wanted("SELECT COUNT(*) FROM visits WHERE 1 <= cost OR cost < 1")) == before
    engine.close()
    after = views.rows(engine, *wanted("SELECT COUNT(*) FROM visits"))
    assert after != before
    assert after == engine.run(wanted("SELECT COUNT(*) FROM visits")[0].direct)
    engine.close()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_plain_files_are_read_when_they_are_opened(tmp_path, kind):
    engine, place = DuckDB(tmp_path / f"t.{kind}"), tmp_path / f"t.{kind}"
    write = duckdb.connect()
    write.execute(f"COPY (SELECT range AS a FROM range(10)) TO '{place}' (FORMAT {kind})")
    assert engine.run("SELECT COUNT(*) FROM t") == [(10,)]
    write.execute(f"COPY (SELECT range AS a FROM range(20)) TO '{place}' (FORMAT {kind})")
    assert engine.run("SELECT COUNT(*) FROM t") == [(10,)]
    engine.close()
    assert engine.run("SELECT COUNT(*) FROM t") == [(20,)]
    engine.close()


def test_a_warm_question_is_charged_and_analysts_share_what_is_kept(tmp_path):
    engine = Counting(DuckDB(built(tmp_path / "clinic.duckdb")))
    opened = Curator.open(tmp_path / "clinic.duckdb", Policy.read(POLICY))
    curator = Curator(engine, opened.policy, opened.ledger)
    first = curator.ask(BY_WARD, epsilon=0.5)
    spent = curator.ledger.verify().spent
    second = curator.analyst("ann").ask(BY_WARD, epsilon=0.6)
    assert len(engine.made) == 1
    assert second.charged
    assert curator.ledger.verify().spent.gauss > spent.gauss
    assert first.column("n") != second.column("n")  # noise of its own: equal with a probability below 1e-6


def test_the_policy_says_how_many_are_kept(tmp_path):
    assert Policy.read(POLICY).limits.views == 16
    assert Policy.read(f"{POLICY}[limits]\nviews = 0").limits.views == 0
    with pytest.raises(PolicyError, match="from 0 to 1,000"):
        Policy.read(f"{POLICY}[limits]\nviews = -1")
    curator = Curator.open(built(tmp_path / "clinic.duckdb"), Policy.read(f"{POLICY}[limits]\nviews = 3"))
    assert curator.bounded_tables.capacity == 3


SCALED = POLICY.replace("groups = 2\nrows = 3\n", "")


@dataclass
class Told:
    """A kept table that says what was read of it."""

    table: object
    read: list[str]

    def run(self, sql):
        self.read.append(sql)
        return self.table.run(sql)

    def add(self, sql, name):
        self.table.add(sql, name)

    def close(self):
        self.table.close()


@dataclass
class Telling(Wrapped):
    """An engine whose kept tables say what was read of them."""

    read: list[str] = field(default_factory=list)

    def keep(self, sql, name):
        return Told(self.inner.keep(sql, name), self.read)


def test_votes_and_norms_are_read_once_whatever_is_paid_later(tmp_path):
    engine = Telling(DuckDB(built(tmp_path / "clinic.duckdb")))
    curator = Curator.open(engine, Policy.read(SCALED), ledger=tmp_path / "ledger")
    by_key = "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis"
    curator.ask(by_key, epsilon=0.5)
    first = [sql for sql in engine.read if not sql.startswith("CREATE")]
    assert len(first) == len(set(first)) == 4, "votes, norms, sums, and how many count in part"
    curator.ask(by_key, epsilon=3.0)
    again = engine.read[engine.read.index(first[-1]) + 1 :]
    assert not set(again) & set(first), "nothing is read again; with another bound, sums are others"
    assert len(again) <= 2
    curator.bounded_tables.clear()
    curator.ask(by_key, epsilon=4.0)
    assert engine.read.count(first[0]) == 2


def test_of_what_was_read_the_last_few_small_tables_are_kept():
    class Large:
        asked = 0

        def run(self, sql):
            self.asked += 1
            return [(1,)] * (LARGEST_RESULT + 1 if sql == "large" else 2)

        def close(self):
            pass

    view = BoundedTable(Large(), {})
    for _ in range(2):
        assert len(view.run("large")) == LARGEST_RESULT + 1
    assert view.table.asked == 2 and not view.results
    for i in range(RESULTS + 1):
        view.run(str(i))
    assert list(view.results) == [str(i) for i in range(1, RESULTS + 1)]
    before = view.table.asked
    view.run("1").clear()
    assert view.run("1") == [(1,)] * 2 and view.table.asked == before, "nobody can change what is kept"
    assert list(view.results)[-1] == "1"
