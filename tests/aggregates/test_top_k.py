"""APPROX_TOP_K: common values come out in order, rare ones do not, and one person moves few counts by one."""

import json

import duckdb
import pytest

from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.aggregates.top_k import storable
from sfumato.curator import Curator
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.errors import QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.questions import by_key

RULES = Policy.read(POLICY)
SQL = "SELECT APPROX_TOP_K(diagnosis, 3) AS common FROM visits"


def database(place, people):
    """Each person has one diagnosis: (diagnosis, how many)."""
    connection = duckdb.connect(str(place))
    connection.execute(
        "CREATE TABLE visits (patient_id BIGINT, ward TEXT, diagnosis TEXT, stay DOUBLE, cost DOUBLE, day DATE)"
    )
    connection.execute("CREATE TABLE wards (ward TEXT, floor INTEGER)")
    number = 0
    for name, many in people:
        for _ in range(many):
            connection.execute("INSERT INTO visits VALUES (?, 'north', ?, 1, 1, DATE '2024-01-01')", [number, name])
            number += 1
    connection.close()
    return place


def test_common_values_come_out_in_order_and_rare_ones_do_not(tmp_path):
    """With ε = 4 noise has a standard deviation of about three people; the counts are a hundred apart."""
    place = database(
        tmp_path / "c.duckdb", [("flu", 500), ("cold", 380), ('a "b", c', 260), ("gout", 120), ("rare", 1)]
    )
    curator = Curator.open(place, RULES)
    ((found,),) = curator.ask(SQL, epsilon=4.0).rows
    assert json.loads(found) == ["flu", "cold", 'a "b", c']
    ((found,),) = curator.ask(SQL.replace("3", "9"), epsilon=4.0).rows
    assert json.loads(found) == ["flu", "cold", 'a "b", c', "gout"]


@pytest.mark.parametrize("people", [[], [(None, 40)], [("one", 1), ("two", 1), ("three", 2)]])
def test_without_common_values_the_list_is_empty(people, tmp_path):
    """A value of two people comes out with a probability below 1e-6."""
    curator = Curator.open(database(tmp_path / "c.duckdb", people), RULES)
    ((found,),) = curator.ask(SQL, epsilon=1.0).rows
    assert json.loads(found) == []


@pytest.mark.parametrize("price", [Mu, Pure])
@pytest.mark.parametrize("sql", [SQL, SQL.replace("FROM visits", ", ward FROM visits GROUP BY ward"),
                                 SQL.replace("diagnosis", "day"), SQL.replace("diagnosis", "stay")])  # fmt: skip
def test_a_person_moves_few_counts_by_one(sql, price, tmp_path):
    offer = offer_for_epsilon(parse_question(sql, RULES), 1.0, 1e-6, price)
    text = statements(offer, 7, "duckdb")[-1]
    whole = duckdb.connect(str(built(tmp_path / "whole.duckdb")))
    for who in (6, 13, 27):
        other = duckdb.connect(str(built(tmp_path / f"{who}.duckdb", without=who)))
        one, two = (by_key(each.execute(text).fetchall(), len(offer.plan.keys)) for each in (whole, other))
        changed = [
            key for key in {*one, *two} if sorted(one.get(key, []), key=repr) != sorted(two.get(key, []), key=repr)
        ]
        assert len(changed) <= offer.plan.groups
        for key in changed:
            counts = [{repr(value): n for value, n in table.get(key, [])} for table in (one, two)]
            by = [counts[0].get(value, 0) - counts[1].get(value, 0) for value in {*counts[0], *counts[1]}]
            assert sum(map(abs, by)) <= offer.plan.rows and set(by) <= {0, 1}


@pytest.mark.parametrize("price", [Mu, Pure])
def test_all_of_it_costs_the_price_and_the_slack(price):
    offer = offer_for_epsilon(parse_question(SQL, RULES), 1.0, 1e-6, price)
    (release,) = offer.standalone
    rows, power = offer.plan.rows, 2 if price is Mu else 1
    each = release.price.part(1 / rows)
    assert rows * each.amount**power <= release.price.amount**power <= offer.price.amount**power
    law = release.noise.law()
    alone = float(law.beyond(release.threshold - 2, 128)) / 2  # P(1 + N ≥ threshold), of a symmetric law
    assert 1 - (1 - alone) ** rows <= release.slack * (1 + 1e-9)
    assert release.slack <= offer.leak


@pytest.mark.parametrize("k", ["0", "101", "1.5", "'a'", "stay"])
def test_k_is_a_small_whole_number(k):
    with pytest.raises(QueryRefused):
        parse_question(f"SELECT APPROX_TOP_K(diagnosis, {k}) FROM visits", RULES)


def test_another_k_is_another_question():
    one, two = (parse_question(SQL.replace("3", k), RULES).plan.canonical for k in ("3", "4"))
    assert one != two


@pytest.mark.parametrize(("value", "stored"), [(-0.0, 0.0), (2.5, 2.5), (float("inf"), "inf"), ("inf", "inf"), (7, 7)])
def test_values_are_stored_as_json_holds_them(value, stored):
    assert storable(value) == stored
    assert json.loads(json.dumps([storable(value)], allow_nan=False)) == [stored]
