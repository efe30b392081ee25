"""Bounds that a question states for itself: tighter than the owner's, part of what it is, never looser."""

import pytest

from sfumato.curator.answer import FOR_ALL_DATA
from sfumato.curator.planner import Wanted
from sfumato.errors import InvalidParameter, KeyReused, QueryRefused
from sfumato.sql.question_bounds import QuestionBounds
from tests.curator.people import DEFAULT, charges, opened, spent

COUNT, BY_KEY = "SELECT COUNT(*) AS n FROM t", "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2, {}) k, COUNT(*) AS n FROM t GROUP BY k"


def test_a_question_may_state_bounds_where_the_policy_has_none(tmp_path):
    """60 people have 10 rows, 200 have one: of 3 rows of each, 380 count. Noise at ε = 15 is far below 100."""
    curator = opened(tmp_path, *DEFAULT)
    ((_, low, high),) = curator.ask(COUNT, epsilon=15, rows=3).rows
    assert low <= 380 <= high and high - low < 100
    assert "at most 3 rows" in curator.ask(COUNT, epsilon=15, rows=3).note
    assert len(charges(curator)) == 1, "nothing is chosen, so nothing is bought first"


@pytest.mark.parametrize(
    "options, bounds", [("rows = 2, groups = 3", {"rows": 2, "groups": 3}), ("most = 20", {"most": 20})]
)
def test_options_and_arguments_are_the_same_question(tmp_path, options, bounds):
    curator = opened(tmp_path, *DEFAULT)
    first = curator.ask(OPTIONS.format(options))
    again = curator.ask(BY_KEY, epsilon=2, **bounds)
    assert first.charged and not again.charged and again.rows == first.rows
    assert curator.preview(BY_KEY, epsilon=2, **bounds).free and not curator.preview(BY_KEY, epsilon=2).free


def test_other_bounds_are_another_question(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    offers = [
        curator.planner.offer(wanted(bounds)) for bounds in ({}, {"rows": 2}, {"rows": 3}, {"rows": 2, "groups": 2})
    ]
    offers += [curator.planner.offer(wanted(bounds)) for bounds in ({"most": 20}, {"most": 30})]
    assert len({one.canonical for one in offers}) == 6
    curator.ask(BY_KEY, epsilon=1, rows=2, key="mine")
    with pytest.raises(KeyReused):
        curator.ask(BY_KEY, epsilon=1, rows=3, key="mine")


def wanted(bounds):
    return Wanted.of(BY_KEY, 1.0, bounds=QuestionBounds(**bounds))


def test_bounds_of_a_question_are_as_if_the_policy_stated_them(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    mine = opened(tmp_path / "a", *DEFAULT).planner.offer(wanted({"rows": 2, "groups": 2}))
    stated = opened(tmp_path / "b", *DEFAULT, more="rows = 2\ngroups = 2").planner.offer(wanted({}))
    assert mine.canonical == stated.canonical and mine.noise == stated.noise


@pytest.mark.parametrize("bounds", [{"rows": 4}, {"groups": 3}, {"rows": 4, "groups": 1}, {"most": 2}])
def test_a_looser_bound_than_the_owners_is_refused_before_anything_is_charged(tmp_path, bounds):
    curator = opened(tmp_path, *DEFAULT, more="rows = 3\ngroups = 2")
    for ask in (curator.ask, curator.preview):
        with pytest.raises(QueryRefused):
            ask(BY_KEY, epsilon=1, **bounds)
    assert spent(curator) == (0, 0)
    assert curator.ask(BY_KEY, epsilon=1, rows=3, groups=2).rows == curator.ask(BY_KEY, epsilon=1).rows


def test_what_a_unit_has_at_most_can_be_supposed_lower_but_not_higher(tmp_path):
    curator = opened(tmp_path, *DEFAULT, more="most = 50")
    for bounds in ({"most": 51}, {"rows": 51}, {"most": 20, "rows": 3}):
        with pytest.raises(QueryRefused):
            curator.ask(COUNT, epsilon=1, **bounds)
    answer = curator.ask(COUNT, epsilon=5, most=10)
    assert answer.left_out.grade == FOR_ALL_DATA and "Supposed: no u has more than 10 rows." in answer.note
    ((_, low, high),) = answer.rows
    assert low <= 800 <= high
    assert "Supposed" not in curator.ask(COUNT, epsilon=5, most=50).note


def test_norms_are_shared_with_questions_that_suppose_nothing(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    curator.ask(COUNT, epsilon=2)
    curator.ask(COUNT, epsilon=2, most=20)
    assert [one.split(" | ")[0] for one in charges(curator)] == ["norms", "t", "t"]


def test_bounds_hold_for_every_private_table_of_a_join_and_of_a_union(tmp_path):
    curator = opened(tmp_path, *DEFAULT, "INSERT INTO s SELECT 'u' || (i % 60), i % 4 FROM range(90) r(i)")
    for sql in (
        "SELECT COUNT(*) AS n FROM t JOIN s ON t.u = s.u",
        "SELECT COUNT(*) AS n FROM (SELECT u, y FROM t UNION ALL SELECT u, z FROM s) AS both",
    ):
        plan = curator.planner.plan(Wanted.of(sql, 1.0, bounds=QuestionBounds(rows=2))).plan
        assert not plan.table.scaled and all(not join.table.scaled for join in plan.joins)
        assert curator.ask(sql, epsilon=1, rows=2).charged


def test_columns_without_bounds_can_be_asked_about_too(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    answer = curator.ask("SELECT SUM(n) AS s FROM t", epsilon=10, rows=10)
    assert answer.left_out.clamped and "at most 10 rows" in answer.note


@pytest.mark.parametrize("bad", [0, -1, 2.5, "3", True, 10**10])
def test_bounds_are_whole_numbers(tmp_path, bad):
    with pytest.raises(InvalidParameter):
        opened(tmp_path, *DEFAULT).ask(COUNT, epsilon=1, rows=bad)


@pytest.mark.parametrize("options", ["rows = 0", "rows = 2.5", "rows = -1", "rows = 2, rows = 2", "rows = x", "groups"])
def test_options_that_are_no_bounds_are_refused(tmp_path, options):
    with pytest.raises((QueryRefused, InvalidParameter)):
        opened(tmp_path, *DEFAULT).ask(OPTIONS.format(options))
