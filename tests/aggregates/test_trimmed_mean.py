"""TRIMMED_MEAN: the values that its statement reads, and its interval."""

import math
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from scipy.special import bdtrc

from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import Offer
from sfumato.sql.policy import Policy
from tests.aggregates.friends import RULES, way_of

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
        part, whole = way.ordered_values(found.get(k, [])), way.mean.order_values(np.array(steps, np.int64))
        assert part.size == whole.size == len(mine)
        assert way.mean.value(part) == way.mean.value(whole)
        assert way.mean.curve(part, way.window) == way.mean.curve(whole, way.window)
        assert size < 5000 or sum(map(len, part.blocks)) < 5 * way.window + 40  # no more than what counts


@pytest.mark.slow
@pytest.mark.parametrize("price", [Mu(0.2), Mu(2.0), Pure(1.0)], ids=str)
def test_the_interval_of_a_trimmed_mean_holds_it(price):
    """At least 95 % of 150 times: fewer than 125 has probability below 1e-6 then."""
    question = parse_question("SELECT TRIMMED_MEAN(cost, 0.1) FROM visits", RULES)
    (way,) = Offer(question, price, 1e-9).standalone
    x = way.mean.order_values(np.random.default_rng(5).normal(400_000, 60_000, 6000))
    truth = way.read([float(way.mean.value(x)), 0])[0]
    object.__setattr__(way, "ordered_values", lambda rows: x)
    held = 0
    for _ in range(150):
        value, low, high = way.read(way.release([]))
        assert -100 <= low <= value <= high <= 1000
        held += low <= truth <= high
    assert 1 - bdtrc(124, 150, 0.95) < 1e-6
    assert held >= 125
    assert high - low < 600  # and says something


def test_trimming_is_written_as_a_fraction():
    (statistic,) = parse_question("SELECT TRIMMED_MEAN(stay, 0.125) FROM visits", RULES).plan.standalone
    assert statistic.part == Fraction(1, 8)
