"""Trimmed means, modes and triangles, from SQL to the answer."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from scipy.special import bdtrc

import sfumato as sf
from sfumato.aggregates.mode import ModeChoice, StableMode, vote_statement
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.aggregates.triangles import TrianglesRelease
from sfumato.aggregates.trimmed_mean import TrimmedMeanRelease
from sfumato.curator import Curator
from sfumato.curator.offer import Offer, offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.errors import PolicyError, QueryRefused
from sfumato.loss.kinds.leaky import LeakyLoss
from sfumato.mechanisms.dependent import Triangles
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.dialects.base import raw
from sfumato.sql.dialects.postgres import Postgres
from sfumato.sql.emit.values import X
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

FRIENDS = """
[tables.friends]
edges = ["a", "b"]
rows = 1
[tables.friends.columns]
a = {type = "TYPE"}
b = {type = "TYPE"}
since = {low = 2000, high = 2030, step = 1}
"""
RULES = Policy.read(POLICY + FRIENDS.replace("TYPE", "text"))
PURE = POLICY.replace("delta = 1e-6", 'kind = "pure"')
ROWS = """
version = 1
[budget]
epsilon = 100
delta = 1e-6
[tables.t]
unit = "row"
[tables.t.columns]
k = {type = "number", keys = [0, 1, 2]}
x = {low = -10, high = 10, step = 0.5}
y = {type = "text"}
"""


@pytest.fixture
def curator(tmp_path):
    place = built(tmp_path / "clinic.duckdb", patients=2000)
    with duckdb.connect(str(place)) as connection:
        graph(connection, [(str(i), str(j), 2000 + i % 20) for i, j in RING])
    return Curator.open(place, replace(RULES, epsilon=100.0))


RING = [(i, (i + d) % 60) for i in range(60) for d in (1, 2, 3)]


def graph(connection, rows, kind="TEXT"):
    connection.execute(f"CREATE TABLE friends (a {kind}, b {kind}, since DOUBLE)")
    if rows:
        connection.executemany("INSERT INTO friends VALUES (?, ?, ?)", rows)


def way_of(sql, rules=RULES, epsilon=1.0, currency=Mu):
    offer = offer_for_epsilon(parse_question(sql, rules), epsilon, 1e-9, currency)
    return offer.standalone[0], statements(offer, 7, "duckdb")[-1]


# ---- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 3, 30, 5000])
def test_the_ends_that_sql_gives_are_those_of_all_values(size):
    way, text = way_of("SELECT k, TRIMMED_MEAN(x, 0.15) FROM t GROUP BY k", Policy.read(ROWS), 3.0)
    rng = np.random.default_rng(size)
    odd = [None, math.nan, math.inf, -math.inf, 1e300, 0.25, -0.0]
    values = [odd[i % 7] if i % 5 == 0 else float(rng.choice([3.0, rng.normal()])) for i in range(size)]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT CAST(i % 2 AS DOUBLE) AS k, u AS x FROM (SELECT UNNEST(range(?)) AS i,"
                       " UNNEST(CAST(? AS DOUBLE[])) AS u)", [size, values])  # fmt: skip
    found = {row[0]: [row[1:]] for row in connection.execute(text).fetchall()}
    for k in (0, 1, 2):
        mine = [v for v in values[k::2] if v is not None and not math.isnan(v)] if k < 2 else []
        steps = [min(max(math.floor(2 * (v + 10) + 0.5), 0), 40) for v in mine if math.isfinite(v)]
        steps += [40 if v > 0 else 0 for v in mine if math.isinf(v)]
        part, whole = way.ordered(found.get(k, [])), way.mean.ordered(np.array(steps, np.int64))
        assert part.size == whole.size == len(mine)
        assert way.mean.value(part) == way.mean.value(whole)
        assert way.mean.curve(part, way.window) == way.mean.curve(whole, way.window)
        assert size < 5000 or sum(map(len, part.blocks)) < 5 * way.window + 40  # no more than what counts


def test_a_mode_reads_two_values_of_many_and_all_of_few(curator):
    engine = curator.engine
    few, text = way_of("SELECT ward, MODE(stay > 5) FROM visits GROUP BY ward")
    assert isinstance(few, ModeChoice) and len(engine.run(text)) <= 6
    many, text = way_of("SELECT MODE(day) FROM visits")
    assert isinstance(many, StableMode) and len(engine.run(text)) == 2
    number, _ = way_of("SELECT MODE(stay) FROM visits")
    assert isinstance(number, ModeChoice) and len(number.choices) == 481  # 0 … 60 in eighths


@pytest.mark.parametrize("name", ["duckdb", "postgres", "spark"])
def test_a_mode_of_days_is_read_as_texts_and_one_of_texts_as_it_is(name):
    """The answer holds the value itself, and a moment of an engine's own has no place in it."""
    found = {}
    for column in ("day", "diagnosis"):
        plan = parse_question(f"SELECT MODE({column}) FROM visits", RULES).plan
        to = DIALECTS[name].about(plan)
        written = to.date_text(raw(X)).sql(name)
        found[column] = written in vote_statement(plan, plan.standalone[0], 7, to)
    assert found == {"day": True, "diagnosis": False}


def test_a_lead_counts_in_people():
    way, _ = way_of("SELECT MODE(day) FROM visits")
    assert way.plan.rows == 3
    for lead, people in [(0, 0), (1, 0), (3, 0), (4, 1), (6, 1), (7, 2)]:
        found = way.lead([("a", 10 + lead), ("b", 10)])
        assert found.distance == people and (found.value == "a" or not lead)
    assert way.lead([]).distance == 0 and way.lead([("a", 4)]).distance == 1


# ---- triangles -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "type_"), [("TEXT", "text"), ("BIGINT", "number"), ("DOUBLE", "number")])
def test_triangles_are_those_of_the_graph_however_its_edges_are_listed(kind, type_):
    rules = Policy.read(POLICY + FRIENDS.replace("TYPE", type_))
    _, text = way_of("SELECT TRIANGLES() FROM friends", rules)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        pairs = [(int(a), int(b)) for a, b in rng.integers(0, 12, (40, 2))]
        listed = [*pairs, *[(b, a) for a, b in pairs[:9]], *pairs[3:6], (None, 3), (4, None), (None, None), (5, 5)]
        connection = duckdb.connect()
        graph(connection, [(a, b, 2001.0) for a, b in listed], kind)
        exact = Triangles(12)
        assert connection.execute(text).fetchall() == [(exact.value(pairs), exact.local(pairs))]
    empty = duckdb.connect()
    graph(empty, [], kind)
    assert empty.execute(text).fetchall() == [(0, 0)]


def test_one_edge_is_one_unit_whatever_its_rows_say():
    """Without all rows of one edge: triangles move by at most the common neighbours, and those by one at most; a count
    of rows or of edges moves by what it is priced for. Names are such as could be taken for each other."""
    names = ["1", "1:1", "11", ":1", "", "1:11", "ä"]
    rng, rows = np.random.default_rng(3), []
    for a, b in itertools.combinations(names, 2):
        for _ in range(int(rng.integers(0, 4))):
            rows.append((a, b, 2000.0) if rng.random() < 0.5 else (b, a, 2015.0))
    edges = {frozenset(row[:2]) for row in rows}
    _, tri = way_of("SELECT TRIANGLES(b, a) FROM friends")
    counts = parse_question("SELECT COUNT(*), COUNT(DISTINCT edge) FROM friends", RULES)
    (count,) = statements(offer_for_epsilon(counts, 1.0, 1e-9), 7, "duckdb")

    def found(without):
        connection = duckdb.connect()
        graph(connection, [row for row in rows if frozenset(row[:2]) != without])
        return connection.execute(tri).fetchall()[0], connection.execute(count).fetchall()[0]

    (triangles, local), both = found(None)
    assert set(both) == {len(edges)}  # one row of each edge counts
    for edge in edges:
        (fewer, less), after = found(edge)
        assert 0 <= triangles - fewer <= min(local, less + 1) and 0 <= local - less <= 1
        assert after == (len(edges) - 1, len(edges) - 1)


def test_triangles_are_answered_near_the_truth_and_their_interval_holds_it(curator):
    ((n, low, high),) = curator.ask("SELECT TRIANGLES() AS n FROM friends", epsilon=10.0).rows
    exact = Triangles(60).value(RING)
    assert low <= exact <= high and low <= n <= high and high - low < 200
    assert exact == 180


@pytest.mark.parametrize(
    "sql",
    ["SELECT TRIANGLES(a, since) FROM friends", "SELECT TRIANGLES(a) FROM friends", "SELECT TRIANGLES() FROM visits",
     "SELECT since, TRIANGLES() FROM friends GROUP BY since", "SELECT COUNT(*) FROM friends WHERE TRIANGLES() > 3",
     "SELECT TRIANGLES() FROM (SELECT a, b FROM friends UNION ALL SELECT b, a FROM friends)",
     "SELECT edge, COUNT(*) FROM friends GROUP BY edge", "SELECT TRIANGLES(DISTINCT a, b) FROM friends",
     "SELECT TRIMMED_MEAN(stay) FROM visits", "SELECT TRIMMED_MEAN(stay, 0.5) FROM visits",
     "SELECT TRIMMED_MEAN(stay, 0) FROM visits", "SELECT TRIMMED_MEAN(stay, cost) FROM visits",
     "SELECT TRIMMED_MEAN(ward, 0.1) FROM visits", "SELECT TRIMMED_MEAN(patient_id, 0.1) FROM visits",
     "SELECT TRIMMED_MEAN(DISTINCT stay, 0.1) FROM visits", "SELECT TRIMMED_MEAN(stay, 0.1, 3) FROM visits",
     "SELECT TRIMMED_MEAN() FROM visits", "SELECT MODE() FROM visits", "SELECT MODE(*) FROM visits",
     "SELECT MODE(patient_id) FROM visits", "SELECT MODE(DISTINCT ward) FROM visits",
     "SELECT MODE(ward, day) FROM visits", "SELECT AVG(MODE(stay)) FROM visits",
     "SELECT MODE(MODE(ward)) FROM visits", "SELECT MODE(0.5) WITHIN GROUP (ORDER BY ward) FROM visits",
     "SELECT MODE() WITHIN GROUP (ORDER BY ward, day) FROM visits"],
)  # fmt: skip
def test_what_is_no_such_statistic_is_refused(sql):
    with pytest.raises(QueryRefused):
        parse_question(sql, RULES)


@pytest.mark.parametrize(
    "change",
    [('edges = ["a", "b"]', 'edges = ["a"]'), ('edges = ["a", "b"]', 'edges = ["a", "a"]'),
     ('edges = ["a", "b"]', 'edges = ["a", "c"]'), ('edges = ["a", "b"]', 'edges = ["a", "since"]'),
     ('edges = ["a", "b"]', 'edges = "ab"'), ('edges = ["a", "b"]', 'edges = ["a", "b"]\nunit = "a"'),
     ('edges = ["a", "b"]', 'edges = ["a", "b"]\npublic = true'), ("since =", "edge ="),
     ('b = {type = "text"}', 'b = {type = "date"}')],
)  # fmt: skip
def test_a_policy_must_be_clear_about_edges(change):
    with pytest.raises(PolicyError):
        Policy.read(POLICY + FRIENDS.replace("TYPE", "text").replace(*change))


def test_other_ends_are_another_question():
    text = POLICY + FRIENDS.replace("TYPE", "text").replace("since", 'c = {type = "text"}\nsince')
    one, other = (Policy.read(text.replace('"a", "b"', ends)) for ends in ('"a", "b"', '"a", "c"'))
    sql = "SELECT COUNT(*) FROM friends"
    assert parse_question(sql, one).plan.canonical != parse_question(sql, other).plan.canonical


# ---- prices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("currency", [Mu, Pure])
def test_all_of_a_question_costs_what_it_is_offered_for(currency):
    listed = "COUNT(*), MEDIAN(cost), TRIMMED_MEAN(cost, 0.1), MODE(day), MODE(ward)"
    sql = f"SELECT diagnosis, {listed} FROM visits GROUP BY diagnosis"
    offer = offer_for_epsilon(parse_question(sql, RULES), 1.0, 1e-9, currency)
    pieces = [offer.price.part(share) for share in offer.shares if share]
    power = 2 if currency is Mu else 1
    spent = offer.plan.groups * sum(piece.amount**power for piece in pieces)
    assert (1 - 1e-9) * offer.price.amount**power <= spent <= offer.price.amount**power
    slacks = [way.slack for way in offer.standalone]
    assert sum(map(bool, slacks)) == (2 if currency is Mu else 1)  # trimmed means cost pure ε, chosen modes nothing
    assert offer.key_delta + offer.plan.groups * sum(slacks) <= offer.leak
    assert isinstance(offer.loss, LeakyLoss) and offer.loss.failure == offer.leak
    for way, piece in zip(offer.standalone, pieces[-4:], strict=True):
        if isinstance(way, TrimmedMeanRelease):
            shares = [way.price.part(0.9), way.price.part(0.1)]
            assert sum(one.amount**power for one in shares) <= piece.amount**power
            inner = way.mechanism.loss()
            cost = inner.gdp(slack=way.slack * (1 + 1e-9)).upper if currency is Mu else max(inner.supremum())
            assert 0.9 * shares[0].amount < cost <= shares[0].amount * (1 + 5e-5)
        elif isinstance(way, StableMode):
            leak = LeakyLoss(piece.loss(), way.slack * (1 + 1e-9))
            for eps in (0.0, 0.01, 0.1):
                assert way.mechanism.loss().delta(eps).upper <= leak.delta(eps).upper + 1e-15


@pytest.mark.parametrize("currency", [Mu, Pure])
def test_triangles_cost_what_they_are_offered_for(currency):
    offer = offer_for_epsilon(parse_question("SELECT TRIANGLES() FROM friends", RULES), 1.0, 1e-9, currency)
    (way,) = offer.standalone
    assert isinstance(way, TrianglesRelease) and 0 < way.slack <= offer.leak
    loss = way.mechanism.loss()
    assert loss.delta(1.0).upper <= 1e-9
    assert loss.delta(0.95).upper > 1e-9 or currency is Pure


def test_charged_like_any_answer_stored_and_asked_again_for_nothing(curator):
    for sql, again in [
        ("SELECT TRIMMED_MEAN(stay, 0.1) AS m FROM visits", "select trimmed_mean(v.stay, 0.10) from visits v"),
        ("SELECT MODE(day) AS m FROM visits", "SELECT MODE() WITHIN GROUP (ORDER BY day DESC) FROM visits"),
        ("SELECT MODE(ward) AS m FROM visits WHERE stay > 1", "SELECT MODE(ward) FROM visits WHERE 1 < stay"),
        ("SELECT TRIANGLES() AS m FROM friends", "SELECT TRIANGLES(x.b, x.a) FROM friends x"),
    ]:
        price = curator.ledger.prices(curator.offer(sql, 1.0, None).loss)[-1]
        before = curator.ledger.verify().spent
        answer = curator.ask(sql, epsilon=1.0)
        assert answer.charged and curator.ledger.verify().spent == before + price
        assert answer.epsilon <= 1.0 and "m" in answer.columns
        assert not curator.preview(sql, epsilon=1.0).fits or curator.preview(sql, epsilon=1.0).free
        assert not curator.ask(again, epsilon=1.0).charged and curator.ask(sql, epsilon=0.5).rows == answer.rows


def test_a_preview_says_how_good_it_will_be_without_data(curator):
    curator.engine.close()
    curator.engine.path = curator.engine.path.with_name("gone")
    sql = "SELECT TRIMMED_MEAN(stay, 0.1) AS t, MODE(day) AS d, MODE(ward) AS w, MODE(stay) AS s FROM visits"
    words = str(curator.preview(sql, epsilon=1.0))
    assert "t: ± depends" in words and "d: shown with 95 % if it leads by" in words and "w: a value that" in words
    assert "t: ± depends" in str(curator.preview("SELECT TRIANGLES() AS t FROM friends", epsilon=1.0))


def test_pure_epsilon_without_delta_tells_what_needs_none(tmp_path):
    place = built(tmp_path / "c.duckdb", patients=500)
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE friends (a TEXT, b TEXT, since DOUBLE)")
    curator = Curator.open(place, Policy.read(PURE + FRIENDS.replace("TYPE", "text")))
    for sql in ("SELECT TRIANGLES() FROM friends", "SELECT MODE(day) FROM visits"):
        with pytest.raises(QueryRefused, match="pure ε"):
            curator.ask(sql, epsilon=1.0)
    answer = curator.ask("SELECT MODE(ward) AS w, TRIMMED_MEAN(cost, 0.1) AS c FROM visits", epsilon=2.0)
    assert answer.columns == ("w", "c", "c low", "c high")
    assert curator.ledger.verify().spent.leak == 0


def test_other_engines_refuse_in_words():
    for sql in ("SELECT MODE(ward) FROM visits", "SELECT TRIMMED_MEAN(stay, 0.1) FROM visits",
                "SELECT TRIANGLES() FROM friends", "SELECT COUNT(*) FROM friends"):  # fmt: skip
        with pytest.raises(QueryRefused, match="DuckDB"):
            Postgres().accepts(parse_question(sql, RULES).plan)


# ---- answers ---------------------------------------------------------------------------------------------------------


def test_modes_and_trimmed_means_are_what_they_are_called(curator):
    sql = "SELECT MODE(diagnosis) AS d, MODE(ward) AS w, MODE(cost > 3) AS t, TRIMMED_MEAN(cost, 0.4) AS c FROM visits"
    ((d, w, t, c, low, high),) = curator.ask(sql, epsilon=20.0).rows
    assert (d, t) == ("d0", True) and w in ("north", "south", "west")
    assert low <= c <= high and abs(c - 1000) < 1 and high - low < 5  # nearly all costs are clamped to 1000
    unclear = curator.ask("SELECT ward, MODE(day) AS d FROM visits GROUP BY ward", epsilon=1.0)
    assert unclear.columns == ("ward", "d") and unclear.column("d") == [None] * 3
    nothing = curator.ask(
        "SELECT TRIMMED_MEAN(stay, 0.1) AS m, MODE(day) AS d FROM visits WHERE cost > 1e9", epsilon=1.0
    )
    ((m, low, high, d),) = nothing.rows
    assert 0 <= low <= m <= high <= 60 and d is None
    assert (low, high) == (0, 60)  # nobody is there, and that is not told


@pytest.mark.slow
@pytest.mark.parametrize("price", [Mu(0.2), Mu(2.0), Pure(1.0)], ids=str)
def test_the_interval_of_a_trimmed_mean_holds_it(price):
    """At least 95 % of 150 times: fewer than 125 has probability below 1e-6 then."""
    question = parse_question("SELECT TRIMMED_MEAN(cost, 0.1) FROM visits", RULES)
    (way,) = Offer(question, price, 1e-9).standalone
    x = way.mean.ordered(np.random.default_rng(5).normal(400_000, 60_000, 6000))
    truth = way.read([float(way.mean.value(x)), 0])[0]
    object.__setattr__(way, "ordered", lambda rows: x)
    held = 0
    for _ in range(150):
        value, low, high = way.read(way.release([]))
        assert -100 <= low <= value <= high <= 1000
        held += low <= truth <= high
    assert 1 - bdtrc(124, 150, 0.95) < 1e-6
    assert held >= 125
    assert high - low < 600  # and says something


def test_the_same_in_python(curator):
    stay, ward = sf.col("stay"), sf.col("ward")
    question = curator.table("visits").agg(t=stay.trimmed_mean(0.1), w=ward.mode().filter(stay > 2))
    text = "SELECT TRIMMED_MEAN(stay, 0.1) AS t, MODE(ward) FILTER (WHERE stay > 2) AS w FROM visits"
    assert question.preview(epsilon=1.0).offer.plan == curator.preview(text, epsilon=1.0).offer.plan
    graph_ = curator.table("friends").where(sf.col("since") > 2005).agg(n="TRIANGLES()")
    assert graph_.ask(epsilon=1.0).columns == ("n", "n low", "n high")


def test_trimming_is_written_as_a_fraction():
    (statistic,) = parse_question("SELECT TRIMMED_MEAN(stay, 0.125) FROM visits", RULES).plan.standalone
    assert statistic.part == Fraction(1, 8)


def test_nodes_are_told_apart_by_their_bytes():
    _, text = way_of("SELECT TRIANGLES() FROM friends")
    (count,) = statements(
        offer_for_epsilon(parse_question("SELECT COUNT(*) FROM friends", RULES), 1.0, 1e-9), 7, "duckdb"
    )
    connection = duckdb.connect()
    graph(
        connection, [("a", "b", 1), ("A", "b", 1), ("B", "a", 1), ("b", "B", 1), ("a", "A", 1)], "TEXT COLLATE NOCASE"
    )
    assert connection.execute(text).fetchall() == [(2, 2)]
    assert connection.execute(count).fetchall() == [(5,)]


def test_tables_of_edges_are_joined_and_stacked_by_the_edge():
    both = Policy.read(
        POLICY + FRIENDS.replace("TYPE", "text") + FRIENDS.replace("TYPE", "text").replace("friends", "calls")
    )
    connection = duckdb.connect()
    graph(connection, [("a", "b", 2001), ("b", "c", 2001), ("c", "a", 2001), ("c", "d", 2001)])
    connection.execute("CREATE TABLE calls AS SELECT b AS a, a AS b, since FROM friends WHERE b <> 'd'")

    def found(sql):
        offer = offer_for_epsilon(parse_question(sql, both), 1.0, 1e-9)
        return connection.execute(statements(offer, 7, "duckdb")[-1]).fetchall()

    assert found("SELECT COUNT(*) FROM friends JOIN calls USING (edge)") == [(3,)]
    assert found("SELECT TRIANGLES(friends.a, friends.b) FROM friends JOIN calls USING (edge)") == [(1, 1)]
    assert found("SELECT COUNT(*) FROM (SELECT edge FROM friends UNION ALL SELECT edge FROM calls)") == [(7,)]
