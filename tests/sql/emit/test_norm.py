"""Contributions scaled to a norm: weights, norms, votes and moved sums against exact whole numbers and fractions."""

import math
from collections import defaultdict
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.aggregates.registry import parse_question
from sfumato.curator.release import split_keys
from sfumato.curator.scaling import blocks_of, histogram_edges, summed_measures
from sfumato.sql.dialects import dialect_of
from sfumato.sql.emit import norm as emit
from sfumato.sql.emit.norm import LARGEST, LARGEST_SUM, WHOLE, Block, Coordinate, Scaling
from sfumato.sql.plan import Measure, What
from sfumato.sql.policy import Policy
from sfumato.sql.reserved_names import COUNT, NORMS, PAIRS, UNIT, WEIGHTED, key, measure, norm
from tests.curator.people import COLUMNS, stated

POLICY = stated()
EDGES = """
version = 1
[budget]
epsilon = 1
delta = 1e-6
[tables.t]
unit = "edge"
edges = ["u", "w"]
[tables.t.columns]
u = {type = "text"}
w = {type = "text"}
k = {type = "text", keys = ["a", "b", "c"]}
"""
QUESTIONS = (
    "SELECT COUNT(*) FROM t",
    "SELECT k, COUNT(*) FROM t GROUP BY k",
    "SELECT w, COUNT(*) FROM t GROUP BY w",
    "SELECT k, COUNT(y), COUNT(*) FROM t GROUP BY k",
    "SELECT k, SUM(x) FROM t GROUP BY k",
    "SELECT k, SUM(y), COUNT(*) FROM t GROUP BY k",
    "SELECT k, COUNT(y), SUM(x) FROM t GROUP BY k",
    "SELECT n, AVG(x), SUM(y) FROM t GROUP BY n",
    "SELECT k, VARIANCE(y), COUNT(DISTINCT u) FROM t GROUP BY k",
    "SELECT CORR(x, y) FROM t",
    "SELECT k, COVAR_POP(x, y), COUNT(*) FROM t GROUP BY k",
    "SELECT d, COUNT(DISTINCT u) FROM t GROUP BY d",
    "SELECT COUNT(CLAMP(y, 5, 5)), SUM(CLAMP(y, 5, 5)) FROM t",
    "SELECT k, COUNT(*), SUM(z) FROM t JOIN s ON t.u = s.u GROUP BY k",
    "SELECT a.k, COUNT(*) FROM t AS a JOIN t AS b ON a.u = b.u GROUP BY a.k",
    "SELECT part, COUNT(*), SUM(v) FROM (SELECT u, 'one' AS part, x AS v FROM t UNION ALL "
    "SELECT u, 'two' AS part, z AS v FROM s) GROUP BY part",
)


def scaling_of(sql, squares=True, policy=POLICY):
    plan = parse_question(sql, policy).plan
    return Scaling(plan, summed_measures(plan), blocks_of(plan, squares), dialect_of("duckdb").about(plan))


def counting(squares=True, what=What.ROWS):
    """A block of one count, for tables that are made by hand."""
    block = Block((Coordinate(0, 1),), squares)
    return Scaling(scaling_of("SELECT COUNT(*) FROM t").plan, (Measure(what),), (block,), dialect_of("duckdb"))


# ---- weights ---------------------------------------------------------------------------------------------------------


def weights(scaling, norms, bound):
    """What the engine says for these norms."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE {NORMS} (i BIGINT, {norm(0)} BIGINT)")
    lines = ", ".join(f"({i}, {'NULL' if q is None else q})" for i, q in enumerate(norms))
    connection.execute(f"INSERT INTO {NORMS} VALUES {lines}")
    return [w for (w,) in connection.execute(f"SELECT {scaling.weight(0, bound)} FROM {NORMS} ORDER BY i").fetchall()]


def largest_weight(q, bound, squares):
    """The largest whole W ≤ WHOLE with W²·q ≤ WHOLE²·B, or W·q ≤ WHOLE·B."""
    return WHOLE if q <= bound else math.isqrt(WHOLE**2 * bound // q) if squares else WHOLE * bound // q


def hard_norms(rng, bound, most):
    """Norms at, below and above the bound, and next to those at which the weight changes."""
    found = {0, 1, bound - 1, bound, bound + 1, most - 1, most, 2**53 + 1}
    found |= {int(q) for q in rng.integers(0, most, 300, dtype=np.int64)}
    found |= {int(2 ** float(e)) for e in rng.uniform(0, math.log2(most) - 1e-9, 300)}
    for w in (1, 2, 3, WHOLE // 2, WHOLE - 1, *map(int, rng.integers(1, WHOLE, 300))):
        found |= {WHOLE**2 * bound // w**2 + d for d in (-1, 0, 1)} | {WHOLE * bound // w + d for d in (-1, 0, 1)}
    return sorted(q for q in found if 0 <= q <= most)


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("bound", [1, 2, 3, 7, 256, 10**6 + 3, 2**40 - 1, 2**41 + 5])
def test_a_weight_never_exceeds_the_bound_and_is_at_most_two_below_the_largest(squares, bound):
    norms = hard_norms(np.random.default_rng(bound), bound, LARGEST if squares else LARGEST_SUM)
    for q, w in zip(norms, weights(counting(squares), norms, bound), strict=True):
        best = largest_weight(q, bound, squares)
        assert 0 <= w <= best, (q, bound)
        assert w >= (best - 2 if squares else best)
        assert w == WHOLE if q <= bound else w < WHOLE


@pytest.mark.parametrize("squares", [True, False])
def test_a_norm_that_does_not_fit_has_weight_zero(squares):
    assert weights(counting(squares), [None, 5, None], 7) == [0, WHOLE, 0]


def test_a_guess_in_doubles_alone_would_be_above_the_bound():
    """Why one is taken off: ⌊√(B/q)·WHOLE⌋ is sometimes too large."""
    rng, wrong = np.random.default_rng(1), 0
    for bound in map(int, rng.integers(2**40, 2**52, 40)):
        for w in map(int, rng.integers(2**10, WHOLE, 50)):
            q = WHOLE**2 * bound // w**2 + 1
            guess = math.floor(math.sqrt(float(bound) / float(q)) * WHOLE)
            wrong += guess**2 * q > WHOLE**2 * bound
            assert max(guess - 1, 0) ** 2 * q <= WHOLE**2 * bound
    assert wrong


@pytest.mark.parametrize("squares", [True, False])
def test_votes_of_a_unit_are_the_largest_whole_ones(squares):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE {WEIGHTED} AS SELECT i AS {COUNT} FROM range(1, 101) r(i)")
    vote = counting(squares, What.UNITS).vote()
    found = connection.execute(f"SELECT {COUNT}, {vote} FROM {WEIGHTED} ORDER BY 1").fetchall()
    for t, w in found:
        assert w == (math.isqrt(WHOLE**2 // t) if squares else WHOLE // t)
        assert (t * w**2 <= WHOLE**2) if squares else (t * w <= WHOLE)
    assert len(found) == 100


# ---- norms that leave their type -------------------------------------------------------------------------------------


def by_hand(scaling, pairs):
    """Norms, weighted sums, histogram and scaled units of a table of pairs (unit, key, measure)."""
    connection, place = duckdb.connect(), scaling.blocks[0]
    connection.execute(f"CREATE TABLE {PAIRS} ({UNIT} TEXT, {key(0)} TEXT, {measure(0)} BIGINT)")
    connection.executemany(f"INSERT INTO {PAIRS} VALUES (?, ?, ?)", pairs)
    connection.execute(f"CREATE TABLE {NORMS} AS {scaling.norms()}")
    norms = dict(connection.execute(f"SELECT * FROM {NORMS}").fetchall())
    sums = dict(connection.execute(scaling.sums([4])).fetchall())
    bins = dict(connection.execute(scaling.histogram(0, histogram_edges(place))).fetchall())
    return norms, sums, bins, sum(connection.execute(scaling.scaled_units(0, 4, 8)).fetchall()[0])


@pytest.mark.parametrize("squares", [True, False])
def test_a_unit_whose_norm_leaves_its_type_adds_nothing_and_is_among_the_scaled(squares):
    block = Block((Coordinate(0, 1),), squares)
    plan = parse_question("SELECT k, COUNT(*) FROM t GROUP BY k", POLICY).plan
    scaling = Scaling(plan, plan.measures, (block,), dialect_of("duckdb"))
    huge = 2**31 + 1 if squares else LARGEST_SUM + 1
    pairs = [("one", "a", 1), ("big", "a", huge), ("big", "b", 1), ("two", "b", 2), ("max", "a", 2**62)]
    pairs += [("wide", "b", math.isqrt(block.most)), ("wide", "c", math.isqrt(block.most))] if squares else []
    norms, sums, bins, scaled = by_hand(scaling, pairs)
    lost = {"big", "max"} | ({"wide"} if squares else set())
    assert {unit for unit, q in norms.items() if q is None} == lost
    assert sums == {"a": WHOLE, "b": 2 * WHOLE} | ({"c": 0} if squares else {})
    assert bins[len(histogram_edges(block)) - 1] == len(lost) and scaled == len(lost)


def test_overflow_is_decided_for_each_block_and_each_coordinate(monkeypatch):
    """With a tiny LARGEST: one long coordinate, or many short ones, and nobody else is touched."""
    monkeypatch.setattr(emit, "LARGEST", 100)
    scaling = scaling_of("SELECT k, COUNT(*), COUNT(y), COUNT(DISTINCT u) FROM t GROUP BY k")
    assert scaling.blocks[0].most == 100
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t ({COLUMNS})")
    rows = [("long", "a")] * 11 + [("wide", one) for one in "abc" for _ in range(6)] + [("short", "a")] * 3
    connection.executemany("INSERT INTO t VALUES (?, ?, NULL, 1, NULL, NULL, NULL)", rows)
    request = scaling.request(f"SELECT * FROM {NORMS} ORDER BY 1")
    found = {unit: norms for unit, *norms in connection.execute(request.direct).fetchall()}
    assert found == {"long": [None, 1], "short": [18, 1], "wide": [None, 3]}  # z = 2·COUNT(y) − COUNT(*)
    rows = connection.execute(scaling.request(scaling.sums([18, 3])).direct).fetchall()
    sums = {one: more for one, *more in rows}
    places = {m.what: j for j, m in enumerate(scaling.measures)}
    assert {one: row[places[What.ROWS]] for one, row in sums.items()} == {"a": 3 * WHOLE, "b": 0, "c": 0}
    assert {one: row[places[What.UNITS]] for one, row in sums.items()} == {"a": 3 * WHOLE, "b": WHOLE, "c": WHOLE}


class Totals:
    """Totals of a unit's rows in a group, of any size, as columns of a table."""

    by_day = False

    def total(self, place):
        return f"total{place}"


TOTALS = (0, 1, 2**20, *(2**e // d + i for e in (38, 45, 50, 52, 58, 63, 66) for d in (1, 3) for i in (-1, 0)))
NUMBERS = """
version = 1
[budget]
epsilon = 1
delta = 1e-6
[tables.t]
unit = "u"
[tables.t.columns]
k = {type = "text", keys = ["a"]}
w = {type = "integer", low = 0, high = 1000000000}
x = {type = "number", low = -100, high = 11}
j = {type = "integer", low = -1, high = 2}
"""


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("sql", [
    "SELECT SUM(j), SUM(w) FROM t", "SELECT COUNT(*), AVG(x), VARIANCE(w) FROM t", "SELECT CORR(x, w) FROM t",
])  # fmt: skip
def test_no_total_of_a_unit_raises_however_many_rows_it_has(sql, squares):
    """An error is an answer. Parts of norms are up to 4,096 times a total, or 2²⁴ times a count."""
    scaling = scaling_of(sql, squares, Policy.read(NUMBERS))
    connection, width = duckdb.connect(), len(scaling.measures)
    connection.execute(f"CREATE TABLE given (i INT, {', '.join(f'total{j} HUGEINT' for j in range(width))})")
    rng, lines = np.random.default_rng(3), []
    for i in range(300):
        most = TOTALS[int(rng.integers(len(TOTALS)))]
        sizes = [most * int(rng.integers(2)) for _ in range(width)]
        signs = [int(rng.choice([-1, 1])) if m.span()[0] < 0 else 1 for m in scaling.measures]
        lines.append(f"({i}, {', '.join(str(a * b) for a, b in zip(sizes, signs, strict=True))})")
    connection.execute(f"INSERT INTO given VALUES {', '.join(lines)}")
    totals = [f"{scaling.unit_total(j, Totals())} AS {measure(j)}" for j in range(width)]
    connection.execute(f"CREATE TABLE {PAIRS} AS SELECT CAST(i AS TEXT) AS {UNIT}, {', '.join(totals)} FROM given")
    connection.execute(f"CREATE TABLE {NORMS} AS {scaling.norms()}")
    lost = connection.execute(f"SELECT COUNT(*), COUNT({norm(0)}) FROM {NORMS}").fetchall()[0]
    assert 0 < lost[1] < lost[0] == 300
    for bound in (1, 2**20, 2**40):
        connection.execute(scaling.sums([bound] * len(scaling.blocks))).fetchall()


# ---- random tables ---------------------------------------------------------------------------------------------------

NAMES = ("p", "q", "r", "s")


@st.composite
def tables(draw):
    """Rows of a few units, one of them with many; and of a second table."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = []
    for unit in NAMES:
        for _ in range(int(rng.integers(0, 3 + 25 * (unit == "p")))):
            x = rng.choice([-1e9, -100.0, -37.0, 0.0, 10.0, 99.0])
            y = rng.choice([0.0, 2.5, 7.0, 10.0, np.nan])
            row = (unit, rng.choice(list("abcz")), float(x), float(y), rng.choice(["v", "w", "é", ""]),
                   float(rng.choice([0.0, -0.0, 1.0, np.nan])), rng.choice([None, "2020-01-01"]))  # fmt: skip
            rows.append(tuple(None if i and rng.random() < 0.1 else one for i, one in enumerate(row)))
    rows += [(None, "a", 1.0, 1.0, "v", 1.0, None)] * int(rng.integers(0, 3))
    more = [(str(rng.choice(NAMES)), float(rng.integers(-1, 6))) for _ in range(int(rng.integers(0, 12)))]
    return rows, more


CONNECTION = duckdb.connect()


def literal(value):
    return "NULL" if value is None else f"'{value}'"


def loaded(rows, more, without=None):
    CONNECTION.execute(f"CREATE OR REPLACE TABLE t ({COLUMNS}); CREATE OR REPLACE TABLE s (u TEXT, z DOUBLE)")
    for name, given_rows in (("t", rows), ("s", more)):
        lines = [f"({', '.join(map(literal, row))})" for row in given_rows if row[0] != without]
        if lines:
            CONNECTION.execute(f"INSERT INTO {name} VALUES {', '.join(lines)}")
    return CONNECTION


def parts(scaling, connection, bounds):
    """The weighted coordinates of each group and block, exactly."""
    width, found = len(scaling.keys), defaultdict(Fraction)
    rows = connection.execute(scaling.request(scaling.sums(bounds)).direct).fetchall()
    for shown, rest in split_keys(rows, width):
        values = [int(one or 0) for one in rest]
        for i, block in enumerate(scaling.blocks):
            for one in block.coordinates:
                z = one.scale * values[one.measure] - one.shift * values[one.parent]
                found[i, repr(shown), one.measure] += Fraction(z, one.size)
    return found


def moved(scaling, block, before, after):
    """The norm of what moved, squared if it is an L2 norm."""
    places = {place for place in before.keys() | after.keys() if place[0] == block}
    apart = [abs(before[place] - after[place]) for place in places]
    return sum(d**2 for d in apart) if scaling.blocks[block].squares else sum(apart)


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("squares", [True, False])
@settings(max_examples=4)
@given(world=tables(), bound=st.integers(1, 4000), unit=st.sampled_from(NAMES))
def test_one_unit_moves_weighted_sums_within_the_bound(sql, squares, world, bound, unit):
    scaling = scaling_of(sql, squares)
    bounds = [bound] * len(scaling.blocks)
    before, after = (parts(scaling, loaded(*world, without), bounds) for without in (None, unit))
    for i, block in enumerate(scaling.blocks):
        most = Fraction(WHOLE**2 * bound, block.resolution**2) if squares else Fraction(WHOLE * bound, block.resolution)
        assert moved(scaling, i, before, after) <= most


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("squares", [True, False])
@settings(max_examples=2)
@given(world=tables(), unit=st.sampled_from(NAMES))
def test_norms_depend_on_the_own_rows_alone_and_one_unit_is_in_one_bin(sql, squares, world, unit):
    scaling = scaling_of(sql, squares)
    norms, bins = [], []
    for without in (None, unit):
        connection = loaded(*world, without)
        norms.append(
            {u: q for u, *q in connection.execute(scaling.request(f"SELECT * FROM {NORMS}").direct).fetchall()}
        )
        bins.append([
            dict(connection.execute(scaling.request(scaling.histogram(i, histogram_edges(block))).direct).fetchall())
            for i, block in enumerate(scaling.blocks)
        ])  # fmt: skip
    assert norms[1] == {u: q for u, q in norms[0].items() if u != unit}
    for one, other in zip(*bins, strict=True):
        apart = [one.get(b, 0) - other.get(b, 0) for b in one.keys() | other.keys()]
        assert sorted(apart)[-1:] in ([], [0], [1]) and sum(map(abs, apart)) == (unit in norms[0])


def exact_norms(rows, squares):
    """q of "SELECT k, COUNT(*), SUM(x)" in Python: parts are the count, and the sum from the middle of the range."""
    many, total = defaultdict(int), defaultdict(int)
    for u, k, x, *_ in rows:
        if u is not None and k in ("a", "b", "c"):
            many[u, k] += 1
            total[u, k] += 0 if x is None else int(min(max(x, -100), 10))
    found = defaultdict(int)
    for (u, k), n in many.items():
        terms = [16 * n, -(-16 * abs(total[u, k] + 45 * n) // 55)]
        found[u] += sum(one**2 for one in terms) if squares else sum(terms)
    return dict(found)


@pytest.mark.parametrize("squares", [True, False])
@settings(max_examples=6)
@given(world=tables())
def test_norms_are_exact_whole_numbers(squares, world):
    scaling = scaling_of("SELECT k, COUNT(*), SUM(x) FROM t GROUP BY k", squares)
    (block,) = scaling.blocks
    assert block.resolution == 16 and {one.size for one in block.coordinates} == {1, 55}
    found = loaded(*world).execute(scaling.request(f"SELECT * FROM {NORMS}").direct).fetchall()
    assert dict(found) == exact_norms(world[0], squares)


@pytest.mark.parametrize("squares", [True, False])
@settings(max_examples=6)
@given(world=tables(), most=st.integers(1, 5), unit=st.sampled_from(NAMES))
def test_votes_of_one_unit_have_norm_one_whatever_it_has(squares, world, most, unit):
    plan = parse_question("SELECT w, n, COUNT(DISTINCT u) FROM t GROUP BY w, n", POLICY).plan
    scaling = Scaling(plan, plan.measures, blocks_of(plan, squares), dialect_of("duckdb").about(plan))
    found = []
    for without in (None, unit):
        rows = loaded(*world, without).execute(scaling.request(scaling.votes(most, 7)).direct).fetchall()
        found.append({repr(shown): int(many) for shown, (many,) in split_keys(rows, 2)})  # −0 is 0
    apart = [found[0].get(one, 0) - found[1].get(one, 0) for one in found[0].keys() | found[1].keys()]
    assert all(d >= 0 for d in apart) and len({d for d in apart if d}) <= 1, "equal votes"
    assert sum(d > 0 for d in apart) <= most
    assert sum(d**2 for d in apart) <= WHOLE**2 if squares else sum(apart) <= WHOLE


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), bound=st.integers(1, 30))
def test_an_edge_moves_weighted_counts_within_the_bound(seed, bound):
    policy, rng = Policy.read(EDGES), np.random.default_rng(seed)
    scaling = scaling_of("SELECT k, COUNT(*) FROM t GROUP BY k", policy=policy)
    assert scaling.plan.table.scaled
    rows = [tuple(map(str, (*rng.choice(["m", "n", "o"], 2), rng.choice(list("abc"))))) for _ in range(40)]
    edge, found = {"m", "n"}, []
    for left in (rows, [row for row in rows if set(row[:2]) != edge]):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t (u TEXT, w TEXT, k TEXT)")
        connection.execute(f"INSERT INTO t VALUES {', '.join(map(str, left))}")
        found.append(parts(scaling, connection, [bound]))
    assert moved(scaling, 0, *found) <= WHOLE**2 * bound
