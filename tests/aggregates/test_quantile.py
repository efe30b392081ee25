"""Values by rank and distinct counts, from SQL to the answer."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import numpy as np
import pytest

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.bounded_cache import BoundedTables
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.open import budget_of, open_engine
from sfumato.curator.release import statements, table_requests
from sfumato.engines.base import Engine
from sfumato.errors import QueryRefused
from sfumato.ledger import Ledger
from sfumato.mechanisms.choice.quantile import Ranked
from sfumato.sql.dialects.duckdb import DuckDB
from sfumato.sql.emit.bounding import bounding_of
from sfumato.sql.emit.unit_rows import row_select
from sfumato.sql.emit.values import RankWindow, X, distinct_counts, ranked_values, values_near_ranks
from sfumato.sql.plan import What
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.questions import dialect_in_use

PEOPLE = [0, 3, 6, 13, 27, 39]
FAR = 2**52
QUESTIONS = [
    "SELECT MEDIAN(stay) FROM visits",
    "SELECT ward, QUANTILE(stay, 0.9), COUNT(DISTINCT diagnosis) FROM visits GROUP BY ward",
    "SELECT diagnosis, MIN(cost), COUNT(DISTINCT stay) FROM visits WHERE stay < 50 OR cost > 0 GROUP BY diagnosis",
    "SELECT floor, MAX(stay + 1), COUNT(DISTINCT day) FROM visits JOIN wards USING (ward) GROUP BY floor",
    "SELECT COUNT(DISTINCT diagnosis) FROM visits",
]


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    return {who: duckdb.connect(str(built(folder / f"{who}.duckdb", without=who))) for who in [None, *PEOPLE]}


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb", patients=2000), Policy.read(POLICY))


def flat(connection, text, width):
    """(keys, value, how many, how many up to it, how many in all)."""
    for row in connection.execute(text).fetchall():
        total, *columns = row[width:]
        if total is not None:
            yield from ((*row[:width], *each, total) for each in zip(*columns, strict=True))


def around(plan, quantile, cap):
    """The statement for the values whose score is below the cap."""
    return values_near_ranks(
        plan, [RankWindow(quantile.part, 0, cap)], f"({ranked_values(plan, quantile.lattice, 7, 'duckdb')})", "duckdb"
    )


def question(sql):
    return parse_question(sql, Policy.read(POLICY))


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_person_changes_few_groups_and_in_each_few_values(sql, databases):
    plan, moved = question(sql).plan, 0
    width = len(plan.keys)
    texts = [around(plan, one, FAR) for one in plan.standalone]
    for text in texts:
        tables = {}
        for who, connection in databases.items():
            tables[who] = Counter()
            for row in flat(connection, text, width):
                tables[who][row[: width + 1]] += row[width + 1]
        for who in PEOPLE:
            assert not tables[who] - tables[None]  # nobody else's values come or go
            change = tables[None] - tables[who]
            assert len({key[:width] for key in change}) <= plan.groups
            for key in {key[:width] for key in change}:
                assert sum(n for k, n in change.items() if k[:width] == key) <= plan.rows
            moved += bool(change)
    for measure in (m for m in plan.measures if m.what is What.DISTINCT):
        text = distinct_counts(plan, measure.of, 7, "duckdb")
        found = {w: {r[:width]: r[width] for r in c.execute(text).fetchall()} for w, c in databases.items()}
        for who in PEOPLE:
            both = set(found[None]) | set(found[who])
            change = [found[None].get(key, 0) - found[who].get(key, 0) for key in both]
            assert sum(map(bool, change)) <= plan.groups
            assert all(0 <= by <= bounding_of(plan).sensitivity(measure) for by in change)
            moved += any(change)
    assert moved > 0 or "DISTINCT diagnosis) FROM visits" in sql


@pytest.mark.parametrize("sql", QUESTIONS[:4])
def test_a_window_is_what_is_near_the_rank(sql, databases):
    """The narrow window against all values: the same but for those whose score is capped."""
    plan = question(sql).plan
    (median,) = plan.standalone
    window = median.lattice
    width, a, b, cap = len(plan.keys), median.part.numerator, median.part.denominator, 4 * median.part.denominator
    everything = list(flat(databases[None], around(plan, median, FAR), width))
    narrow = flat(databases[None], around(plan, median, cap), width)
    groups = {}
    for row in sorted(everything, key=repr):
        groups.setdefault(row[:width], []).append(row[width:])
    for rows in groups.values():
        rows.sort()
        assert [s for _, _, s, _ in rows] == [sum(c for _, c, _, _ in rows[: i + 1]) for i in range(len(rows))]
        assert {n for _, _, _, n in rows} == {rows[-1][2]}
        assert all(0 <= v < window.points for v, _, _, _ in rows)
    kept = [
        row for row in everything if a * row[-1] - b * row[-2] < cap and b * (row[-2] - row[-3]) - a * row[-1] < cap
    ]
    assert sorted(narrow, key=repr) == sorted(kept, key=repr)


def test_of_many_rows_of_a_person_a_fair_part_is_kept(tmp_path):
    """1000 people with nine stays of 1 and one of 50, of which three are kept: one in ten is 50, give or take 4 σ."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits AS SELECT p AS patient_id, CASE WHEN i = 0 THEN 50 ELSE 1 END AS stay"
                       " FROM range(1000) a(p), range(10) b(i)")  # fmt: skip
    plan = question("SELECT MEDIAN(stay) FROM visits").plan
    rows = flat(connection, around(plan, plan.standalone[0], FAR), 0)
    counts = {v: c for v, c, _, _ in rows}
    assert sum(counts.values()) == 3000
    assert abs(counts[400] - 300) < 4 * math.sqrt(1000 * 0.3 * 0.7)


def test_answers_are_near_the_truth_and_their_intervals_hold_it(curator):
    answer = curator.ask("SELECT MEDIAN(cost) AS m, MIN(cost) AS a, MAX(cost) AS z FROM visits", epsilon=8.0)
    assert answer.columns == ("m", "m low", "m high", "a", "a low", "a high", "z", "z low", "z high")
    ((m, low, high, a, _, least, z, most, _),) = answer.rows
    assert low <= m <= high
    assert -100 <= a <= least <= 1000
    assert -100 <= most <= z <= 1000
    assert high > 900  # nearly all costs are clamped to 1000


def test_several_aggregates_share_one_price(curator):
    alone = curator.offer("SELECT MEDIAN(stay) FROM visits", 1.0, None)
    sql = "SELECT MEDIAN(stay), QUANTILE(stay, 0.9), COUNT(*), COUNT(DISTINCT ward) FROM visits"
    together = curator.offer(sql, 1.0, None)
    assert together.loss == alone.loss
    spent = sum(one.mechanism.mu**2 for one in together.standalone)
    spent += sum((part.size / n.sigma) ** 2 for part, n in zip(together.joint.parts, together.noise, strict=True))
    assert (1 - 1e-9) * together.price.mu**2 <= spent <= together.price.mu**2
    assert len(statements(together, 1, "duckdb")) == 3  # sums, distinct values, and one column in order
    before = curator.ledger.verify().spent.gauss
    assert len(curator.ask(sql, epsilon=1.0).columns) == 12
    charged = curator.ledger.verify().spent.gauss - before
    assert charged == curator.ledger.prices(alone.loss)[-1].gauss


def test_spellings_of_a_quantile_are_one_question(curator):
    curator.ask("SELECT MEDIAN(stay), MAX(cost) FROM visits", epsilon=1.0)
    for sql in [
        "SELECT max(cost), quantile_cont(stay, 0.5) AS m FROM visits",
        "SELECT PERCENTILE_DISC(0.50) WITHIN GROUP (ORDER BY stay DESC), QUANTILE(cost, 1) FROM visits",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v.stay), quantile_disc(cost, 1.0) FROM visits v",
    ]:
        assert not curator.ask(sql, epsilon=1.0).charged


def test_public_and_private_keys(curator):
    public = curator.ask("SELECT ward, MEDIAN(stay) AS m FROM visits GROUP BY ward", epsilon=2.0)
    assert public.column("ward") == ["north", "south", "west"]
    private = curator.ask("SELECT diagnosis, MEDIAN(stay) AS m FROM visits GROUP BY diagnosis", epsilon=2.0)
    assert None not in private.column("diagnosis")
    assert len(private) > 0
    for _, m, low, high in [*public.rows, *private.rows]:
        assert 0 <= low <= m <= high <= 60
        assert m % 0.125 == 0


def test_distinct_values_are_counted(curator):
    answer = curator.ask("SELECT COUNT(DISTINCT diagnosis) AS n, COUNT(DISTINCT ward) AS w FROM visits", epsilon=8.0)
    ((n, low, high, w, w_low, w_high),) = answer.rows
    assert low <= n <= high
    assert w_low <= w <= w_high
    assert abs(n - 9) < 40 > abs(w - 4)  # ten standard deviations


def test_a_group_without_values_is_answered_like_any_other(curator):
    answer = curator.ask("SELECT ward, MEDIAN(stay) AS m FROM visits WHERE cost > 1e9 GROUP BY ward", epsilon=1.0)
    assert len(answer) == 3
    assert all(0 <= m <= 60 for m in answer.column("m"))


def test_a_preview_speaks_of_ranks(curator):
    words = str(curator.preview("SELECT MEDIAN(stay), MAX(stay) FROM visits", epsilon=1.0))
    assert "MEDIAN(stay): a value within" in words
    assert "ranks" in words
    assert "inside the data" in words


@pytest.mark.parametrize(
    "aggregate",
    ["MEDIAN(diagnosis)", "MEDIAN(DISTINCT stay)", "QUANTILE(stay, 2)", "QUANTILE(stay, -0.5)", "QUANTILE(stay, cost)",
     "QUANTILE(stay, [0.1, 9])", "QUANTILE(stay, 0.1234567)", "MAX(stay, 3)", "MIN(day)", "MEDIAN(stay / cost)",
     "QUANTILE(stay, '0.5')", "MEDIAN(MAX(stay))", "QUANTILE(stay)",
     "LISTAGG(ward) WITHIN GROUP (ORDER BY ward)", "SUM(DISTINCT stay)",
     "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY stay, cost)"],
)  # fmt: skip
def test_what_has_no_bounds_or_no_rank_is_refused(aggregate, curator):
    with pytest.raises(QueryRefused):
        curator.offer(f"SELECT {aggregate} FROM visits", 1.0, None)


def test_wide_ranges_get_a_lattice_that_can_be_drawn_from():
    policy = Policy.read(POLICY.replace("low = -100, high = 1000", "low = -1e15, high = 1e15, step = 0.0009765625"))
    offer = offer_for_epsilon(parse_question("SELECT MEDIAN(cost) FROM visits", policy), 1.0, 1e-9, Mu)
    window = offer.plan.standalone[0].lattice
    assert window.points <= 2**40
    assert window.value(0) == -1e15
    assert window.value(window.points - 1) == 1e15
    assert window.spare > 0
    assert offer.standalone[0].mechanism.fraction == Fraction(1, 2)


def test_a_histogram_has_public_keys(curator):
    sql = "SELECT WIDTH_BUCKET(cost, 0, 1000, 5) AS b, COUNT(*) AS n FROM visits GROUP BY b"
    answer = curator.ask(sql, epsilon=8.0)
    assert answer.column("b") == [0, 1, 2, 3, 4, 5, 6]
    counts = dict(zip(answer.column("b"), answer.column("n"), strict=True))
    assert counts[6] > 3000 > 300 > abs(counts[2])  # patient p costs 20p − 50


@pytest.mark.parametrize("bad", ["stay, 0, 60, 0", "stay, 60, 0, 5", "stay, 0, cost, 5", "stay, 0, 60, 20000",
                                 "stay, 0, 60, 2.5", "ward, 0, 60, 5"])  # fmt: skip
def test_odd_buckets_are_refused(bad, curator):
    with pytest.raises(QueryRefused):
        curator.offer(f"SELECT WIDTH_BUCKET({bad}) AS b, COUNT(*) FROM visits GROUP BY b", 1.0, None)


def test_buckets_are_those_of_the_standard():
    connection = duckdb.connect()
    values = ["-1", "0", "9.99", "10", "59", "60", "inf", "-inf", "nan", None]
    connection.execute("CREATE TABLE visits AS SELECT 1 AS patient_id, unnest(?::TEXT[])::DOUBLE AS stay", [values])
    plan = question("SELECT WIDTH_BUCKET(stay, 0, 60, 6) AS b, COUNT(*) FROM visits GROUP BY b").plan
    text = row_select(plan, {}, DuckDB()).sql("duckdb")
    found = [row[1] for row in connection.execute(text).fetchall()]
    assert sorted(found) == [0, 0, 1, 1, 2, 6, 7, 7]


# ---- where each row is a person --------------------------------------------------------------------------------------

EACH = """
version = 1
[budget]
epsilon = 1000
delta = 1e-6
[tables.t]
unit = "row"
[tables.t.columns]
x = {low = 0, high = 64, step = 0.25}
"""
SPREAD = {
    "doubles": "CASE i % 50 WHEN 0 THEN 'nan'::DOUBLE WHEN 1 THEN 'inf'::DOUBLE WHEN 2 THEN '-inf'::DOUBLE"
    " WHEN 3 THEN NULL ELSE (i * 0.618034 % 1) * 60 END",
    "whole": "((i * 0.618034 % 1) * 60)::INTEGER",
    "ties": "CASE WHEN i % 3 = 0 THEN 7 ELSE 7.0001 + (i % 7) / 1e5 END",
    "texts": "(i % 61)::TEXT",
    "beyond": "1000.0 + i",
    "many NaN": "CASE WHEN i % 2 = 0 THEN 'nan'::DOUBLE ELSE i END",
}


@pytest.mark.parametrize("name", SPREAD)
@pytest.mark.parametrize("aggregate", ["MEDIAN(x)", "QUANTILE(x, 0.123)", "MIN(x)", "MAX(x)", "MEDIAN(x + 1)"])
def test_values_selected_by_rank_have_the_scores_of_all_values(name, aggregate, tmp_path):
    """Runs of one score, and how many values are up to any point, are those of the statement that counts them all."""
    connection = duckdb.connect(str(tmp_path / "t.duckdb"))
    connection.execute(f"CREATE TABLE t AS SELECT {SPREAD[name]} AS x FROM range(50000) r(i)")
    connection.close()
    rules = Policy.read(EACH)  # not opened: texts for numbers are for CSV files only
    curator = Curator(
        open_engine(tmp_path / "t.duckdb", rules.limits), rules, Ledger.create(":memory:", budget_of(rules))
    )
    offer = curator.offer(f"SELECT {aggregate} FROM t WHERE x IS NULL OR x <> 3", 1.0, None)
    (wanted,) = table_requests(offer, 1, dialect_in_use(curator.engine))
    asked = []
    quick = wanted.quick(lambda sql: asked.append(sql) or curator.engine.run(sql))
    choice, all_ = offer.standalone[0].mechanism, curator.engine.run(wanted.direct)
    fetched, far = (Ranked.of(*row[0]) for row in (quick, all_))
    assert fetched.total == far.total
    scores = [np.repeat(score, counts) for _, counts, score in map(choice.runs, (fetched, far))]
    np.testing.assert_array_equal(*scores)
    for at in range(0, choice.points, max(1, choice.points // 200)):
        assert len({choice.cap_score(choice.excess(d.total, d.up_to(at))) for d in (fetched, far)}) == 1
    assert len(asked) == 3 and wanted.direct not in asked  # the window is wide for so few


def test_few_values_are_all_counted(tmp_path):
    connection = duckdb.connect(str(tmp_path / "t.duckdb"))
    connection.execute("CREATE TABLE t AS SELECT i % 61 AS x FROM range(300) r(i)")
    connection.close()
    curator = Curator.open(tmp_path / "t.duckdb", Policy.read(EACH))
    (wanted,) = table_requests(curator.offer("SELECT MEDIAN(x) FROM t", 1.0, None), 1, dialect_in_use(curator.engine))
    assert wanted.quick(curator.engine.run) == curator.engine.run(wanted.direct)
    assert 25 < curator.ask("SELECT MEDIAN(x) AS m FROM t", epsilon=5.0).column("m")[0] < 35


@dataclass
class Short:
    """An engine without the memory for lists of values."""

    inner: Engine
    lists: int = 0

    def run(self, sql):
        if f"LIST({X})" in sql:
            self.lists += 1
            raise MemoryError
        return self.inner.run(sql)


def test_values_that_do_not_fit_into_a_list_are_counted(tmp_path):
    """Whether they do hangs on how many people have the same: nobody may see it."""
    connection = duckdb.connect(str(tmp_path / "t.duckdb"))
    connection.execute("CREATE TABLE t AS SELECT 7.0 AS x FROM range(50000) r(i)")
    connection.close()
    curator = Curator.open(tmp_path / "t.duckdb", Policy.read(EACH))
    engine = Short(curator.engine)
    (wanted,) = table_requests(curator.offer("SELECT MEDIAN(x) FROM t", 1.0, None), 1, dialect_in_use(curator.engine))
    assert BoundedTables(0).rows(engine, wanted) == curator.engine.run(wanted.direct)
    assert engine.lists == 1
