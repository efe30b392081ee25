"""What an answer says of what it leaves out, and the ways to ask about scaled contributions."""

import json
from dataclasses import replace

import pytest

from sfumato.curator.answer import BY_THE_TAIL, FOR_ALL_DATA, NOISE_ONLY, Answer, LeftOut
from sfumato.errors import NotReached, PolicyError, QueryRefused
from tests.curator.people import DEFAULT, opened, spent, stated

COUNT = "SELECT COUNT(*) AS n FROM t"


def test_an_answer_says_how_many_people_count_in_part_and_on_what_that_rests(tmp_path):
    answer = opened(tmp_path, *DEFAULT).ask(COUNT, epsilon=5.0)
    assert answer.left_out.grade == BY_THE_TAIL
    assert answer.left_out.people >= 0
    assert 0 <= answer.left_out.about <= answer.left_out.at_most <= 1
    assert "count in part" in str(answer)
    assert "count in part" in answer._repr_html_()
    again = Answer.from_json(answer.to_json())
    assert again.left_out == answer.left_out
    assert json.loads(answer.to_json())["left_out"]["grade"] == BY_THE_TAIL


def test_frames_have_what_was_left_out_as_columns(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    answer = curator.ask("SELECT w, COUNT(*) AS n FROM t GROUP BY w ORDER BY n DESC LIMIT 2", epsilon=5.0)
    whole = answer.left_out
    names = ["w", "n", "n low", "n high", "people in part", "left out", "left out at most", "interval holds"]
    frame = answer.to_pandas()
    assert list(frame) == names == answer.to_polars().columns == answer.to_arrow().column_names
    assert set(frame["people in part"]) == {whole.people}
    assert set(frame["left out"]) == {whole.about}
    assert set(frame["interval holds"]) == {BY_THE_TAIL}
    assert tuple(frame["left out at most"]) == whole.by_row == Answer.from_json(answer.to_json()).left_out.by_row
    assert all(0 <= share <= 1 for share in whole.by_row) and len(whole.by_row) == len(answer) == 2
    assert list(whole.by_row) == sorted(whole.by_row)  # the larger a group, the smaller the share that may be missing


def test_an_answer_never_says_that_nobody_counts_in_part_and_that_something_is_left_out(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    for step in range(6):
        left_out = curator.ask(f"SELECT COUNT(*) AS n FROM t WHERE x > {step - 110}", epsilon=1.0).left_out
        assert left_out.people or not left_out.about
    assert str(LeftOut(BY_THE_TAIL, 0, 0.0, 0.31)) == (
        "Probably nobody counts in part: nothing left out, at most 31 % (by the shape of the tail)."
    )
    assert str(LeftOut(BY_THE_TAIL, 1, 5e-5, 0.2)) == (
        "At most 1 person counts in part: less than 0.01 % left out, at most 20 % (by the shape of the tail)."
    )
    assert "At most 1,200 people count in part: about 0.5 % left out" in str(LeftOut(BY_THE_TAIL, 1200, 0.005, 0.2))


def test_frames_of_questions_without_scaling_have_the_columns_asked_for(tmp_path):
    answer = opened(tmp_path, *DEFAULT, more="rows = 3").ask(COUNT, epsilon=5.0)
    assert list(answer.to_pandas()) == ["n", "n low", "n high"]


def test_a_column_of_the_answer_is_not_replaced_by_what_was_left_out(tmp_path):
    answer = opened(tmp_path, *DEFAULT).ask('SELECT COUNT(*) AS "left out" FROM t', epsilon=5.0)
    assert answer.to_pandas()["left out"][0] == answer.rows[0][0]


def test_a_warning_is_loud_in_html(tmp_path):
    answer = opened(tmp_path, *DEFAULT).ask(COUNT, epsilon=5.0)
    warned = replace(answer.left_out, warning="WARNING: more & more.")
    loud = replace(answer, left_out=warned, note=f"{answer.note} {warned.warning}")
    assert "<strong" in loud._repr_html_() and "more &amp; more" in loud._repr_html_()
    assert "<strong" not in answer._repr_html_() or answer.left_out.warning


def test_what_the_owner_states_of_rows_makes_intervals_hold_for_all_data(tmp_path):
    answer = opened(tmp_path, *DEFAULT, more="most = 10").ask(COUNT, epsilon=5.0)
    assert answer.left_out.grade == FOR_ALL_DATA
    assert not answer.left_out.warning
    ((_, low, high),) = answer.rows
    assert low <= 800 <= high
    for more in ("most = 10\nrows = 3", "most = 0", "most = 2.5"):
        with pytest.raises(PolicyError):
            stated(more=more)


def test_where_there_is_nothing_to_choose_nothing_is_bought(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    answer = curator.ask("SELECT COUNT(DISTINCT u) AS n FROM t", epsilon=5.0)
    assert answer.left_out.grade == NOISE_ONLY
    assert len(curator.ledger.verify().costs) == 1
    ((_, low, high),) = answer.rows
    assert low <= 260 <= high


def test_an_error_buys_norms_first_and_then_the_least_that_reaches_it(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    with pytest.raises(QueryRefused, match="asking buys it first"):
        curator.preview(COUNT, error=100)
    assert spent(curator) == (0, 0)
    ((n, low, high),) = curator.ask(COUNT, error=100).rows
    assert max(high - n, n - low) <= 101
    assert len(curator.ledger.verify().costs) == 2
    assert curator.preview(COUNT, error=100).free
    assert not curator.ask(COUNT, error=100).charged


def test_an_error_that_is_explained_buys_nothing(tmp_path):
    """Histograms of norms are stored, so the price is known: EXPLAIN PRIVACY shows it and must not charge it."""
    curator = opened(tmp_path, *DEFAULT)
    curator.ask(COUNT, error=100)
    before = spent(curator)
    explained = curator.ask(f"EXPLAIN PRIVACY {COUNT}", error=95)
    assert explained.columns == ("privacy",) and "nothing has been charged" in explained.rows[0][0]
    assert explained.footer.startswith("a preview, nothing was charged")
    assert spent(curator) == before


def test_a_relative_error_is_reached_in_rounds_that_share_one_bound(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    ((n, low, high),) = curator.ask(COUNT, relative_error=0.5, epsilon=15.0).rows
    assert max(high - n, n - low) <= 0.5 * low
    with pytest.raises(NotReached) as found:
        curator.ask("SELECT k, COUNT(*) AS n FROM t GROUP BY k", relative_error=0.001, epsilon=0.5)
    assert found.value.answer.epsilon == pytest.approx(0.5, rel=0.01)


def test_a_price_that_was_paid_is_told_the_same_when_the_answer_is_shown_again(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    sql = "SELECT w, COUNT(*) AS n FROM t GROUP BY w"
    first, again = curator.ask(sql, epsilon=3.0), curator.ask(sql, epsilon=3.0)
    assert (first.charged, again.charged) == (True, False)
    assert first.epsilon == pytest.approx(3.0, rel=1e-6) == again.epsilon
    assert curator.preview(sql, epsilon=3.0).epsilon == pytest.approx(3.0, rel=1e-6)
    assert first.rows == again.rows


def test_ranks_are_weighted_and_hold_the_median(tmp_path):
    """Recorded noise; an interval misses with 5 % at most."""
    for budget in ("epsilon = 40.0\ndelta = 1e-6", 'epsilon = 40.0\nkind = "pure"'):
        place = tmp_path / str(len(budget))
        place.mkdir()
        ((value, low, high),) = (
            opened(place, *DEFAULT, budget=budget).ask("SELECT MEDIAN(y) AS m FROM t", epsilon=20.0).rows
        )
        assert low <= value <= high
        assert low <= 5 <= high
