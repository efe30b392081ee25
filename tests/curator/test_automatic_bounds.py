"""Columns without bounds: found inside the price of the first question, stored, and said in every answer."""

import json
import shutil
from dataclasses import replace

import duckdb
import pytest

from sfumato.curator import Curator
from sfumato.curator.answer import Answer
from sfumato.curator.automatic_bounds import SHARE
from sfumato.errors import BudgetExceeded, KeyReused, NotReached, QueryRefused, UnboundedColumn
from sfumato.sql.policy import Policy
from sfumato.sql.reserved_names import LABEL

POLICY = """
version = 1
[budget]
epsilon = {epsilon}
delta = 1e-6
{kind}
[tables.visits]
unit = {unit}
{bounds}
[tables.visits.columns]
ward = {{type = "text", keys = ["a", "b"]}}
diagnosis = {{type = "text"}}
stay = {{type = "number"}}
cost = {{type = "integer"}}
age = {{low = 0, high = 100}}
[tables.wards]
public = true
[tables.wards.columns]
ward = {{type = "text"}}
beds = {{type = "number"}}
"""
SUM = "SELECT SUM(stay) AS s FROM visits"
UNITS = {"scaled": ('"person"', ""), "stated": ('"person"', "rows = 10"), "row": ('"row"', "")}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The data, written once."""
    place = tmp_path_factory.mktemp("template") / "a.duckdb"
    with duckdb.connect(str(place)) as made:
        made.execute(
            "CREATE TABLE visits AS SELECT (hash(i) % 4000)::INT AS person, (i % 97) * 0.5 AS stay, i % 1000 AS cost,"
            " i % 90 AS age, ['a', 'b'][1 + i % 2] AS ward, ['x', 'y', 'z'][1 + i % 3] AS diagnosis"
            " FROM range(40000) t(i)"
        )
        made.execute("CREATE TABLE wards AS SELECT unnest(['a', 'b']) AS ward, 10 AS beds")
    return place


@pytest.fixture
def data(template, tmp_path):
    return shutil.copy(template, tmp_path / "a.duckdb")


@pytest.fixture(scope="module")
def undisturbed():
    """What a question costs by its kind of unit, if nothing crashes."""
    return {}


def opened(data, unit="scaled", kind="", epsilon=40.0, ledger=None):
    unit, bounds = UNITS[unit]
    return Curator.open(
        data, Policy.read(POLICY.format(unit=unit, bounds=bounds, kind=kind, epsilon=epsilon)), ledger=ledger
    )


def spent(curator):
    return curator.ledger.verify().spent


@pytest.mark.parametrize("kind", ["", 'kind = "pure"'])
@pytest.mark.parametrize("unit", UNITS)
def test_a_sum_needs_no_bounds_in_the_policy(data, unit, kind):
    curator = opened(data, unit, kind)
    answer = curator.ask(SUM, epsilon=2.0)
    low, high, about, most = answer.left_out.clamped["stay"]
    assert low <= 1 and 44 < high < 130
    assert 0 <= about <= most <= 1
    assert f"clamped to [{low:g}, {high:g}]" in answer.note
    assert abs(answer.column("s")[0] - 40_000 * 24) < 0.2 * 40_000 * 24
    assert Answer.from_json(answer.to_json()).left_out == answer.left_out


@pytest.mark.parametrize("kind", ["", 'kind = "pure"'])
@pytest.mark.parametrize("unit", UNITS)
def test_bounds_and_answer_cost_what_the_question_costs(data, unit, kind):
    curator = opened(data, unit, kind)
    answer = curator.ask(SUM, epsilon=2.0)
    assert answer.charged and answer.epsilon == pytest.approx(2.0, rel=1e-6)
    whole = curator.ledger.prices(curator.offer("SELECT COUNT(*) FROM visits", 2.0).loss)[-1]
    used = spent(curator)
    for part, most in zip(used, whole, strict=True):
        assert part <= most * (1 + 1e-6) + 8
    assert not curator.ask(SUM, epsilon=2.0).charged
    assert spent(curator) == used


def test_later_questions_use_the_same_bounds_for_nothing(data):
    curator = opened(data)
    first = curator.ask(SUM, epsilon=2.0)
    charges = len(curator.ledger.history())
    second = curator.ask("SELECT ward, AVG(stay) AS m FROM visits WHERE age > 40 GROUP BY ward", epsilon=2.0)
    assert second.left_out.clamped == first.left_out.clamped
    assert len(curator.ledger.history()) - charges == 4  # norms and answer, each charged and stored
    assert curator.ask("SELECT MEDIAN(stay) FROM visits", epsilon=1.0).left_out.clamped == first.left_out.clamped


def test_dear_questions_buy_better_bounds_and_old_answers_stay_free(data):
    curator = opened(data)
    cheap = curator.ask(SUM, epsilon=0.5)
    dear = curator.ask("SELECT AVG(stay) AS m FROM visits", epsilon=8.0)
    assert dear.left_out.clamped != cheap.left_out.clamped
    again = curator.ask(SUM, epsilon=0.5)
    assert not again.charged
    assert again.rows == cheap.rows and again.left_out.clamped == cheap.left_out.clamped


def test_bounds_that_the_owner_bought_serve_analysts(data):
    curator = opened(data)
    bounds = curator.suggest_bounds("visits.stay", epsilon=2.0)
    charges = len(curator.ledger.history())
    answer = curator.ask(SUM, epsilon=1.0)
    assert answer.left_out.clamped["stay"][:2] == [bounds.low, bounds.high]
    assert len(curator.ledger.history()) - charges == 4


def test_several_columns_share_the_price(data):
    curator = opened(data)
    answer = curator.ask("SELECT diagnosis, SUM(stay), AVG(cost) FROM visits GROUP BY diagnosis", epsilon=4.0)
    assert set(answer.left_out.clamped) == {"stay", "cost"}
    assert 800 < answer.left_out.clamped["cost"][1] < 3000
    whole = curator.ledger.prices(curator.offer("SELECT diagnosis, COUNT(*) FROM visits GROUP BY 1", 4.0).loss)[-1]
    assert spent(curator).gauss <= whole.gauss * (1 + 1e-6) + 16
    assert spent(curator).leak <= whole.leak * (1 + 1e-6)


def test_two_columns_may_meet_in_a_product(data):
    """The truth: the mean of stay·cost is 12,000, that of stay is 24, that of cost 499.5."""
    curator = opened(data)
    sql = "SELECT SUM(stay * cost) AS s, CORR(stay, cost) AS c, SUM(stay + cost) AS t FROM visits"
    answer = curator.ask(sql, epsilon=8.0)
    assert set(answer.left_out.clamped) == {"stay", "cost"}
    found = dict(zip(answer.columns, answer.rows[0], strict=True))
    assert found["s"] == pytest.approx(40_000 * 12_000, rel=0.2) and found["t"] == pytest.approx(40_000 * 523, rel=0.2)
    assert found["c low"] <= 0 <= found["c high"] and abs(found["c"]) < 0.5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(stay * cost * cost) FROM visits",
        "SELECT SUM(1 / stay) FROM visits",
        "SELECT AVG(LN(stay)) FROM visits",
        "SELECT SUM(beds) FROM visits JOIN wards USING (ward)",
        "SELECT SUM(person) FROM visits",
        "SELECT SUM(x) FROM (SELECT stay * 2 AS x FROM visits UNION ALL SELECT age FROM visits) GROUP BY 'a'",
        "SELECT SUM(stay) FROM visits WHERE nothing = 1",
        *(  # COUNT(*) of different rows: bounds of one would be applied to the other
            text.format(
                *(f"(SELECT person, COUNT(*) AS n FROM visits WHERE age {sign} 9 GROUP BY person)" for sign in "<>")
            )
            for text in (
                "SELECT SUM(a.n), SUM(b.n) FROM {} a JOIN {} b USING (person)",
                "SELECT SUM(n) FROM (SELECT n FROM {} UNION ALL SELECT n FROM {})",
                "SELECT (SELECT SUM(n) FROM {}) - (SELECT SUM(n) FROM {}) AS more",
            )
        ),
    ],
)
def test_what_cannot_be_bounded_is_refused_before_any_charge(data, sql):
    curator = opened(data)
    with pytest.raises(QueryRefused) as refusal:
        curator.ask(sql, epsilon=1.0)
    assert not LABEL.search(str(refusal.value)), "names of ours mean nothing to an analyst"
    with pytest.raises(QueryRefused):
        curator.preview(sql, epsilon=1.0)
    assert curator.ledger.verify().seq == 1


def test_the_refusal_names_table_and_column(data):
    curator = opened(data)
    with pytest.raises(UnboundedColumn) as refusal:
        curator.offer("SELECT SUM(v.stay * 2) FROM visits v JOIN wards USING (ward)", 1.0)
    assert (refusal.value.table, refusal.value.column) == ("visits", "stay")


def test_plain_columns_of_unions_have_bounds_too(data):
    curator = opened(data)
    sql = "SELECT k, SUM(x) AS s FROM (SELECT 'a' AS k, stay AS x FROM visits UNION ALL SELECT 'b', cost FROM visits)"
    answer = curator.ask(f"{sql} GROUP BY k", epsilon=4.0)
    assert set(answer.left_out.clamped) == {"stay", "cost"}


def test_a_preview_says_what_will_be_done_and_charges_nothing(data):
    curator = opened(data)
    seen = curator.preview("SELECT COUNT(*) AS n, SUM(stay) AS s FROM visits", epsilon=1.0)
    assert "no bounds of visits.stay: 20 % of the price" in str(seen)
    assert dict(seen.errors())["s"] is None
    assert seen.epsilon == pytest.approx(1.0, rel=1e-6)
    assert json.loads(seen.to_json())["errors"]["s"] is None
    explained = curator.ask("EXPLAIN PRIVACY " + SUM, epsilon=1.0)
    assert "visits.stay" in str(explained)
    assert curator.ledger.verify().seq == 1
    curator.ask(SUM, epsilon=1.0)
    known = curator.preview(SUM, epsilon=1.0)
    assert known.free and "clamped to [" in str(known)


def test_an_idempotency_key_is_charged_once(data):
    curator = opened(data)
    first = curator.ask(SUM, epsilon=1.0, key="monday")
    used = spent(curator)
    assert curator.ask(SUM, epsilon=1.0, key="monday").rows == first.rows
    curator.ask("SELECT AVG(stay) FROM visits", epsilon=8.0)  # better bounds
    assert curator.ask(SUM, epsilon=1.0, key="monday").rows == first.rows
    later = spent(curator)
    with pytest.raises(KeyReused):
        curator.ask("SELECT SUM(cost) FROM visits", epsilon=1.0, key="monday")
    assert spent(curator) == later != used


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("point", ["data: read", "answer: due"])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_retry_after_a_crash_costs_nothing_more(data, tmp_path, undisturbed, unit, point, after):
    if unit not in undisturbed:
        whole = opened(data, unit, ledger=tmp_path / "whole.ledger")
        whole.ask(SUM, epsilon=1.0, key="k" * 190)
        undisturbed[unit] = spent(whole)
    seen = []

    def probe(at):
        if at == point:
            seen.append(at)
            if len(seen) == after + 1:
                raise KeyboardInterrupt

    curator = opened(data, unit, ledger=tmp_path / "crash.ledger")
    try:
        replace(curator, probe=probe).ask(SUM, epsilon=1.0, key="k" * 190)
    except KeyboardInterrupt:
        curator.ask(SUM, epsilon=1.0, key="k" * 190)
    assert spent(curator) == undisturbed[unit]


def test_all_charges_must_fit_before_the_first(data):
    curator = opened(data, epsilon=0.5)
    with pytest.raises(BudgetExceeded):
        curator.ask(SUM, epsilon=1.0)
    assert curator.ledger.verify().seq == 1


def test_nothing_found_is_said_after_what_was_charged(data):
    curator = opened(data)
    with pytest.raises(NotReached, match=r"no bounds of visits\.stay") as short:
        curator.ask(SUM, epsilon=0.01)
    assert short.value.answer is None
    used = spent(curator)
    with pytest.raises(NotReached):
        curator.ask(SUM, epsilon=0.01)
    assert spent(curator) == used
    assert curator.ask(SUM, epsilon=2.0).charged


def test_an_error_buys_bounds_first(data):
    curator = opened(data, "row")
    with pytest.raises(QueryRefused, match="2 % of the budget"):
        curator.preview(SUM, error=5000.0)
    answer = curator.ask(SUM, error=5000.0)
    ((_, low, high),) = answer.rows
    assert high - low <= 2 * 5000 * 1.01
    assert answer.left_out.clamped
    assert dict(curator.preview(SUM, error=5000.0).errors())["s"] <= 5000


def test_a_relative_error_is_reached_under_found_bounds(data):
    curator = opened(data, "row")
    answer = curator.ask(SUM, epsilon=4.0, relative_error=0.05)
    assert answer.left_out.clamped
    assert 0 < SHARE < 0.5


COUNTED = "(SELECT person, COUNT(*) AS n, MAX(cost) AS dearest FROM visits GROUP BY person) t"
SUMMED = "(SELECT person, SUM(stay) AS total, COUNT(*) AS n FROM visits GROUP BY person) t"


@pytest.mark.parametrize(
    ("rows", "column", "kind", "truth"),
    [
        (COUNTED, "n", "", 10.0),
        (COUNTED, "n", 'kind = "pure"', 10.0),
        (COUNTED, "dearest", "", 909.0),
        (SUMMED, "total / n", "", 24.0),
    ],
)
def test_values_of_each_person_need_no_bounds(data, rows, column, kind, truth):
    curator = opened(data, kind=kind)
    question = f"SELECT AVG({column}) AS a FROM {rows}"
    before = spent(curator)
    answer = curator.ask(question, epsilon=4.0)
    assert answer.rows[0][0] == pytest.approx(truth, rel=0.2)
    assert answer.charged and spent(curator) != before and answer.epsilon <= 4.0
    again = curator.ask(question, epsilon=4.0)
    assert again.rows == answer.rows and not again.charged
    assert again.left_out.clamped == answer.left_out.clamped


def test_computed_columns_are_called_as_the_question_calls_them(data):
    curator = opened(data)
    assert "no bounds of n:" in str(curator.preview(f"SELECT AVG(n) FROM {COUNTED}", epsilon=1.0))
    answer = curator.ask(f"SELECT SUM(n) FROM {COUNTED} WHERE n > 3", epsilon=1.0)
    assert set(answer.left_out.clamped) == {"n"} and "Values of n were clamped" in " ".join(str(answer).split())


def test_a_product_beyond_what_a_sum_can_have_is_refused_in_words_about_its_columns(data):
    curator = opened(data)
    with pytest.raises(QueryRefused, match=r"AVG\(n \* n \* n\) has no bounds") as refusal:
        curator.ask(f"SELECT AVG(n * n * n) FROM {COUNTED}", epsilon=1.0)
    assert not isinstance(refusal.value, UnboundedColumn)
    assert not curator.ledger.history()[1:]  # the budget itself is the first entry
