"""The clinic with a table of friends, whose rows are the edges of a graph: for tests of standalone aggregates."""

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY

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


RING = [(i, (i + d) % 60) for i in range(60) for d in (1, 2, 3)]


def graph(connection, rows, kind="TEXT"):
    connection.execute(f"CREATE TABLE friends (a {kind}, b {kind}, since DOUBLE)")
    if rows:
        connection.executemany("INSERT INTO friends VALUES (?, ?, ?)", rows)


def way_of(sql, rules=RULES, epsilon=1.0, currency=Mu):
    offer = offer_for_epsilon(parse_question(sql, rules), epsilon, 1e-9, currency)
    return offer.standalone[0], statements(offer, 7, "duckdb")[-1]
