"""The sketch of contributions: bought once, and what previews make of it."""

import json

import duckdb
import pytest

from sfumato.aggregates.price import Mu
from sfumato.curator import Curator
from sfumato.curator.contribution_sketch import (
    BINS,
    Sketch,
    groupable_columns,
    share_beyond,
    sketch_key,
    tables_to_sketch,
)
from sfumato.errors import InvalidParameter
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb", patients=2000), Policy.read(POLICY))


def test_it_is_bought_once_at_its_price(curator):
    curator.register(epsilon=1.0)
    spent = curator.ledger.verify().spent.gauss
    price = curator.ledger.prices(curator.offer("SELECT COUNT(*) FROM visits", 1.0, None).loss)[-1].gauss
    assert 0.99 * price < spent <= price + 1
    curator.register(epsilon=2.0)
    assert curator.ledger.verify().spent.gauss == spent


def test_previews_say_what_is_left_out(curator):
    before = curator.preview("SELECT COUNT(*) FROM visits", epsilon=0.1)
    assert before.lost == ()
    curator.register(epsilon=4.0)
    words = curator.preview("SELECT COUNT(*) FROM visits", epsilon=0.1)
    assert "left out" in str(words)
    assert json.loads(words.to_json())["lost"]
    share = float(words.lost[0].split("about ")[1].split(" %")[0])
    assert 30 < share < 48  # patients have 1 … 7 visits, three are kept: 10 of 28 visits are beyond
    assert "diagnosis" in str(curator.preview("SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", epsilon=0.1))
    assert curator.preview("SELECT month(day), COUNT(*) FROM visits GROUP BY 1", epsilon=0.1).lost == ()


def test_a_person_is_in_one_bin_of_each_histogram(tmp_path):
    policy = Policy.read(POLICY)
    (table,) = tables_to_sketch(policy)
    assert groupable_columns(table) == ["diagnosis", "ward"]
    sketch = Sketch(table, Mu(1.0))
    assert sketch.noise.sigma >= 3**0.5
    whole = duckdb.connect(str(built(tmp_path / "all.duckdb")))
    for who in (0, 6, 13):
        without = duckdb.connect(str(built(tmp_path / f"{who}.duckdb", without=who)))
        for text in sketch.statements("duckdb"):
            a, b = (dict(c.execute(text).fetchall()) for c in (whole, without))
            changes = [a.get(k, 0) - b.get(k, 0) for k in set(a) | set(b)]
            assert sorted(changes) == [0] * (len(changes) - 1) + [1]
            assert all(0 <= k < BINS for k in a)


def test_noisy_bins_are_all_there(tmp_path):
    (table,) = tables_to_sketch(Policy.read(POLICY))
    data = json.loads(Sketch(table, Mu(1.0)).release([[(0, 5), (3, 7)], [], [(20, 1)]]))
    assert {name: len(counts) for name, counts in data["units"].items()} == {"*": BINS, "diagnosis": BINS, "ward": BINS}


@pytest.mark.parametrize(
    ("counts", "most", "share"),
    [([10, 0, 0], 1, 0.0), ([0, 10, 0], 1, 0.5), ([0, 0, 0], 1, 0), ([10, 10, 0], 1, 1 / 3), ([0, 0, 10], 3, 1 / 7)],
)
def test_what_lies_beyond(counts, most, share):
    assert share_beyond(counts, 1.0, most) == pytest.approx(share)


def test_odd_prices_are_refused(curator):
    with pytest.raises(InvalidParameter):
        curator.register(epsilon=0)
    assert curator.ledger.verify().seq == 1


def test_its_name_does_not_tell_its_price():
    (table,) = tables_to_sketch(Policy.read(POLICY))
    assert "mu" not in sketch_key(table)


SCALED = """
version = 1
[budget]
epsilon = 20.0
delta = 1e-6
{kind}
[tables.visits]
unit = "patient_id"
[tables.visits.columns]
ward = {{type = "text", keys = ["cardiology", "surgery", "maternity"]}}
diagnosis = {{type = "text"}}
stay = {{low = 0, high = 30}}
"""


@pytest.mark.parametrize("kind", ["", 'kind = "pure"'])
def test_histograms_of_norms_make_previews_sharp(tmp_path, kind):
    data = built(tmp_path / "clinic.duckdb", patients=2000)
    curator = Curator.open(data, Policy.read(SCALED.format(kind=kind)))
    asked = ["SELECT COUNT(*) AS n FROM visits", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"]
    asked += [] if kind else ["SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis"]
    assert all(dict(curator.preview(sql, epsilon=0.5).errors())["n"] is None for sql in asked)
    curator.register(epsilon=6.0)
    spent = curator.ledger.verify().spent
    price = curator.ledger.prices(curator.buyer.loss_of_epsilon(6.0))[-1]
    assert all(0.99 * most <= part <= most + 4 for part, most in zip(spent, price, strict=True) if most)
    for sql in asked:
        seen = curator.preview(sql, epsilon=0.5)
        assert 0 < dict(seen.errors())["n"] < 5000
        assert "will be left out" in str(seen)
        assert seen.epsilon == pytest.approx(0.5, rel=1e-6)
    curator.register(epsilon=6.0)
    assert curator.ledger.verify().spent == spent  # all of it is stored
    charges = len(curator.ledger.history())
    curator.ask(asked[0], epsilon=0.5)
    assert len(curator.ledger.history()) - charges == 2  # no histogram of its own
