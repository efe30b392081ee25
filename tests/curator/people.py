"""A small table for tests of scaled contributions: people with few rows and with many, and no bounds in the policy."""

from pathlib import Path

import duckdb

import sfumato as sf
from sfumato.sql.policy import Policy

POLICY = """
version = 1
[budget]
{budget}
[tables.t]
unit = "u"
{more}
[tables.t.columns]
u = {{type = "text"}}
k = {{type = "text", keys = ["a", "b", "c"]}}
x = {{low = -100, high = 10, step = 1}}
y = {{low = 0, high = 10, step = 0.5}}
w = {{type = "text"}}
n = {{type = "number"}}
d = {{type = "date"}}
[tables.s]
unit = "u"
[tables.s.columns]
u = {{type = "text"}}
z = {{low = 0, high = 4, step = 1}}
"""
GAUSSIAN, PURE = "epsilon = 20.0\ndelta = 1e-6", 'epsilon = 20.0\nkind = "pure"'
COLUMNS = "u TEXT, k TEXT, x DOUBLE, y DOUBLE, w TEXT, n DOUBLE, d DATE"
MANY = """INSERT INTO t SELECT 'u' || (i % 60), chr((97 + i % 3)::INT), i % 111 - 100, i % 10, 'w' || (i % 2), i % 2,
    DATE '2020-01-01' + (i % 2)::INT FROM range(600) r(i)"""
FEW = "INSERT INTO t SELECT 'v' || i, 'a', 5, 5, 'w0', 1, NULL FROM range(200) r(i)"
DEFAULT = (MANY, FEW)


def stated(budget=GAUSSIAN, more=""):
    return Policy.read(POLICY.format(budget=budget, more=more))


def opened(place, *statements, budget=GAUSSIAN, more=""):
    """The curator of a table that these statements fill."""
    with duckdb.connect(str(Path(place) / "people.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t ({COLUMNS})")
        connection.execute("CREATE TABLE s (u TEXT, z DOUBLE)")
        for one in statements:
            connection.execute(one)
    return sf.Curator.open(Path(place) / "people.duckdb", stated(budget, more))


def spent(curator):
    """(of the Gaussian part, of pure ε): what the account has paid."""
    amount = curator.ledger.account(curator.who)[2]
    return amount.gauss, amount.pure


def charges(curator):
    """The questions that were charged, in order."""
    return [one.content["question"] for one in curator.ledger.history() if one.content.get("kind") == "charged"]
