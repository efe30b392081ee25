"""TRIANGLES: the triangles of the graph, however its edges are listed, and their price."""

import itertools

import duckdb
import numpy as np
import pytest

from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.aggregates.triangles import TrianglesRelease
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.errors import PolicyError
from sfumato.mechanisms.dependent import Triangles
from sfumato.sql.policy import Policy
from tests.aggregates.friends import FRIENDS, RING, RULES, graph, way_of
from tests.curator.clinic import POLICY


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


def test_triangles_are_answered_near_the_truth_and_their_interval_holds_it(friends):
    ((n, low, high),) = friends.ask("SELECT TRIANGLES() AS n FROM friends", epsilon=10.0).rows
    exact = Triangles(60).value(RING)
    assert low <= exact <= high and low <= n <= high and high - low < 200
    assert exact == 180


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


@pytest.mark.parametrize("currency", [Mu, Pure])
def test_triangles_cost_what_they_are_offered_for(currency):
    offer = offer_for_epsilon(parse_question("SELECT TRIANGLES() FROM friends", RULES), 1.0, 1e-9, currency)
    (way,) = offer.standalone
    assert isinstance(way, TrianglesRelease) and 0 < way.slack <= offer.leak
    loss = way.mechanism.loss()
    assert loss.delta(1.0).upper <= 1e-9
    assert loss.delta(0.95).upper > 1e-9 or currency is Pure


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
