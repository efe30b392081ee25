"""One question however it is spelled, and no two questions under one key.

Pairs are generated (tests/curator/spellings.py). Plain SQL, asked on rows of odd values, is the judge of both kinds:
pairs of one question agree there, and pairs that only look alike differ there.
"""

from functools import cache

import pytest

from sfumato.aggregates.registry import parse_question
from sfumato.errors import QueryRefused
from sfumato.sql.emit.sums import statement
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY
from tests.curator.spellings import different, odd_visits, same

RULES = Policy.read(
    POLICY.replace("groups = 2", "groups = 100000").replace("rows = 3", "rows = 1000000").replace(
        'day = {type = "date"}', 'day = {type = "date"}\nurgent = {type = "boolean"}'
    )
    + '[tables.days]\npublic = true\n[tables.days.columns]\nday = {type = "date"}\nholiday = {type = "boolean"}\n'
)  # fmt: skip


@pytest.fixture(scope="module")
def visits():
    return odd_visits()


@cache
def question(sql):
    return parse_question(sql, RULES)


def key(sql):
    return question(sql).plan.canonical


def plain(db, sql):
    return sorted(db.execute(sql).fetchall(), key=repr)


def nonempty(db, sql):
    """Groups with something in them, in any order of columns; a sum of nothing is nothing."""
    return sorted(repr(sorted(map(repr, row))) for row in plain(db, sql) if row[-1] not in (0, None))


def test_pairs_of_one_question_share_a_key_and_plain_sql_agrees(visits):
    pairs = list(dict.fromkeys(same()))
    truths = {sql: nonempty(visits, sql) for pair in pairs for sql in pair}
    assert [pair for pair in pairs if truths[pair[0]] != truths[pair[1]]] == []
    assert [pair for pair in pairs if key(pair[0]) != key(pair[1])] == []
    assert len(pairs) >= 300


@pytest.mark.parametrize("sign", ["+", "*", "="])
def test_both_orders_of_a_sum_a_product_and_an_equality_are_one_question(sign):
    one, other = (f"SELECT COUNT(*) FROM visits WHERE ({a} {sign} {b}) IS NULL" for a, b in
                  (("stay", "cost"), ("cost", "stay")))  # fmt: skip
    assert parse_question(one, RULES).plan.canonical == parse_question(other, RULES).plan.canonical


def test_pairs_that_only_look_alike_have_two_keys(visits):
    """Only pairs count on which plain SQL gives two answers, groups without rows among them."""
    pairs = list(dict.fromkeys(different()))
    truths = {sql: repr(plain(visits, sql)) for pair in pairs for sql in pair}
    pairs = [pair for pair in pairs if truths[pair[0]] != truths[pair[1]]]
    assert [pair for pair in pairs if key(pair[0]) == key(pair[1])] == []
    assert len(pairs) >= 300


def test_the_normal_form_counts_what_plain_sql_counts(visits):
    """Otherwise two spellings could agree on a wrong number."""
    checked = {}
    for sql in dict.fromkeys(sql for pair in same() for sql in pair):
        asked = question(sql)
        if asked.plan.keys or [a.name for a in asked.aggregates] != ["count"] or key(sql) in checked:
            continue
        found = visits.execute(statement(asked.plan, 1, "duckdb")).fetchone()
        checked[key(sql)] = (
            found[asked.sum_indexes[asked.aggregates[0]][0]] or 0,
            visits.execute(sql).fetchone()[0] or 0,
        )
    assert {text: pair for text, pair in checked.items() if pair[0] != pair[1]} == {}
    assert len(checked) > 150


@pytest.mark.parametrize(
    "sql", ["SELECT ward, COUNT(*) FROM visits WHERE ward = 'nowhere' GROUP BY ward",
            "SELECT ward, COUNT(*) FROM visits WHERE ward = 'north' AND ward = 'west' GROUP BY ward"]
)  # fmt: skip
def test_a_condition_that_leaves_no_public_key_is_refused_in_words(sql):
    with pytest.raises(QueryRefused, match="no group"):
        parse_question(sql, RULES)


def test_a_count_that_a_mean_has_anyway_costs_nothing_more():
    measures = parse_question(
        "SELECT COUNT(stay), SUM(stay), AVG(stay) FROM visits WHERE stay > 3", RULES
    ).plan.measures
    assert len(measures) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", "SELECT ward, COUNT(*) FROM visits GROUP BY ward, ward"),
        ("SELECT COUNT(*) FROM visits WHERE stay > 0", "SELECT COUNT(*) FROM visits WHERE stay > 3 - 3"),
        ("SELECT COUNT(*) FROM visits WHERE stay > 0", "SELECT COUNT(*) FROM visits WHERE stay > 5 * 0"),
    ],
)
def test_a_key_named_twice_and_zeros_that_are_computed_make_no_other_question(one, other):
    rules = Policy.read(POLICY)
    assert parse_question(one, rules).plan.canonical == parse_question(other, rules).plan.canonical


def test_concat_writes_values_of_any_kind_as_casts_do():
    """It was refused with a hint about COALESCE, which is not in the question."""
    plain = "SELECT COUNT(*) FROM visits WHERE CONCAT('m', {}, urgent) = 'm1true'"
    for one, other in (("stay", "CAST(stay AS TEXT)"), ("day", "CAST(day AS TEXT)")):
        assert key(plain.format(one)) == key(plain.format(other).replace("urgent", "CAST(urgent AS TEXT)"))
    assert key("SELECT COUNT(*) FROM visits WHERE CONCAT(ward, 'x') = 'x'") == key(
        "SELECT COUNT(*) FROM visits WHERE COALESCE(ward, '') || 'x' = 'x'"
    )
