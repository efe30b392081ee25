"""Intervals include what clamping to found bounds takes from means and sums, by the shape of the tail of values."""

import math
from dataclasses import replace

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato.aggregates.price import Mu
from sfumato.curator.answer import Answer
from sfumato.curator.clamped_away import FALL, ClampedAway, amount_beyond
from sfumato.curator.suggest_bounds import rough_range
from sfumato.curator.value_votes import NoisyCounts
from sfumato.sql.functions.numbers import LEAST_SIZE, SIZES
from sfumato.sql.policy import Policy

LAWS = {
    "exponential": lambda rng, n: rng.exponential(20, n),
    "lognormal": lambda rng, n: np.exp(rng.normal(2, 1, n)),
    "signed": lambda rng, n: rng.normal(-3, 1, n) * np.exp(rng.normal(0, 1, n)),
    "negative": lambda rng, n: -np.exp(rng.normal(5, 0.5, n)),
}


def histograms(x, sigma, rng, by_unit):
    """Noisy counts of sizes and of places, as a question buys them."""
    doublings = np.clip(np.floor(np.log2(np.maximum(np.abs(x), 1e-9) / LEAST_SIZE)) + 1, 0, SIZES)
    sizes = np.bincount((np.sign(x) * doublings + SIZES).astype(int), minlength=2 * SIZES + 1)
    sizes = sizes + rng.normal(0, sigma, len(sizes))
    ends = rough_range(sizes.tolist(), sigma)
    edges = np.linspace(*ends, 401)
    places = np.bincount(np.searchsorted(edges, x, side="right"), minlength=402) + rng.normal(0, sigma, 402)
    found = [NoisyCounts(tuple(one.tolist()), sigma, Mu(1 / sigma), by_unit) for one in (sizes, places)]
    return (*found, ends)


@pytest.mark.parametrize("sigma", [0.5, 30.0])
@pytest.mark.parametrize("law", LAWS)
def test_what_clamping_takes_is_bounded(law, sigma):
    """For bounds that cut up to 10 % off. By the model both sides miss with 2 %, so three of 40 draws or more do with
    less than 5 %, were noise all there is; its tail makes that far less."""
    rng, missed, n = np.random.default_rng([7, list(LAWS).index(law)]), 0, 20_000
    for share in np.repeat([0.1, 0.02, 0.003, 0.0], 10):
        x = LAWS[law](rng, n)
        sizes, places, ends = histograms(x, sigma, rng, by_unit=False)
        low, high = (float(q) for q in np.quantile(x, [share, 1 - share]))
        away = ClampedAway.of(sizes, places, ends, low, high, exact=False)
        up, down = np.maximum(x - high, 0).mean(), np.maximum(low - x, 0).mean()
        assert away.amount is not None and away.mean[1] < (ends[1] - ends[0]) * 2
        votes = replace(sizes, by_unit=True), replace(places, by_unit=True)
        by_unit = ClampedAway.of(*votes, ends, low, high, exact=False)
        assert by_unit.amount is None and (by_unit.share is None) == (low < 0 < high)
        missed += away.mean[0] < down or away.mean[1] < up
        if by_unit.share is not None:
            total = np.clip(x, low, high).sum()
            clamped = by_unit.widen(total, total, summed=True, times=1.0)
            missed += not clamped[0] <= x.sum() <= clamped[1]
    assert missed <= 2


def test_doublings_without_values_hold_a_quarter_of_the_one_before():
    """No noise: exactly what a tail that falls by four each time has, and its remainder."""
    sizes = [0.0] * 20 + [4096.0 / FALL**j for j in range(6)] + [0.0] * 20
    high = LEAST_SIZE * 2.0**20
    exact = math.fsum(n * (LEAST_SIZE * 2.0 ** (20 + j + 1) - high) for j, n in enumerate(sizes[20:26]))
    found = amount_beyond(sizes, 20, 1e-9, high, LEAST_SIZE * 2.0**26)
    assert exact < found <= exact + 1.01 * sizes[25] * LEAST_SIZE * 2.0**26


def test_an_answer_says_whether_intervals_include_it(tmp_path):
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        normal = "sqrt(-2 * ln((u + 0.5) / 4000)) * cos(u)"
        made = f"SELECT 'p' || u AS u, u % 3 AS k, exp({normal}) AS x FROM range(4000) AS r(u)"
        connection.execute(f"CREATE TABLE t AS {made}")
        ((truth, total),) = connection.execute("SELECT avg(x), sum(x) FROM t").fetchall()
    columns = 'x = {type = "number"}\nk = {type = "integer", low = 0, high = 2}\n'
    for unit in ('"u"', '"row"'):
        head = f"version = 1\n[budget]\nepsilon = 90\ndelta = 1e-4\n[tables.t]\nunit = {unit}\n"
        policy = Policy.read(f"{head}[tables.t.columns]\n{columns}")
        curator = sf.Curator.open(tmp_path / "t.duckdb", policy=policy, ledger=tmp_path / f"ledger{len(unit)}")
        answer = curator.ask("SELECT AVG(x) AS m, SUM(x) AS s, COUNT(x) AS n FROM t", epsilon=1)
        (m, low, high, s, least, most, *_), left = answer.rows[0], answer.left_out
        assert left.clamped_included and "Intervals include what that removes" in answer.note
        assert low <= truth <= high and least <= total <= most and low < m < high and least < s < most
        assert Answer.from_json(answer.to_json()).left_out == left
        middle, top = "MEDIAN(x) AS middle", "MAX(x) AS top"
        said = curator.ask(f"SELECT {middle}, {top} FROM t", epsilon=1)
        _, *between, _, under, over = said.rows[0]
        assert between[0] < 1 < between[1] < under and over is None and said.left_out.clamped_included
        assert Answer.from_json(said.to_json()).rows == said.rows
        for other in ("VARIANCE(x)", "SUM(x) / COUNT(*)", "AVG(x * 2)", "MEDIAN(ABS(x))", "MAX(x) + 1"):
            said = curator.ask(f"SELECT {other} AS v FROM t", epsilon=1)
            assert not said.left_out.clamped_included and "about clamped values" in said.note
