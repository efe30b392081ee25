"""Drawings keep to the scale of the numbers beside them, and survive numbers that cannot be drawn."""

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.curator.answer import Answer
from sfumato.curator.picture import WIDTH, Picture, series
from sfumato.server.console.drawing import ErrorBar, dial, emphasise, plain, round_up

numbers = st.none() | st.integers(-(10**15), 10**15) | st.floats(-1e15, 1e15)


def answer(rows, columns=("key", "n", "n low", "n high")):
    return Answer(columns, tuple(rows), 0.1, 1e-9, True, "", "")


@given(st.lists(st.tuples(numbers, numbers, numbers), max_size=8))
def test_intervals_stay_on_their_scale_in_the_order_of_their_numbers(found):
    ordered = [sorted(cells, key=lambda c: (c is None, c or 0)) for cells in found]
    picture = Picture.of(answer([("k", mid, low, high) for low, mid, high in ordered]))
    for cells, drawn in zip(ordered, picture.drawn, strict=True):
        for interval in drawn.values():
            assert 0 <= interval.low <= interval.high <= WIDTH
            if None not in cells:
                assert interval.low <= interval.value <= interval.high


@pytest.mark.parametrize("cell", [math.inf, -math.inf, math.nan, None, True, "text", datetime.date(2024, 1, 1)])
def test_what_is_no_number_is_not_drawn(cell):
    assert Picture.of(answer([("k", cell, cell, cell)], ("key", "n", "n low", "n high"))).drawn == [{}]


@given(st.floats(1e-200, 1e200))
def test_an_error_is_drawn_to_the_scale_of_its_example(error):
    bar = ErrorBar.of("n", "", error)
    assert 4 * error <= bar.example * (1 + 1e-9) and bar.example <= 20 * error
    assert bar.arm / bar.bar == pytest.approx(error / bar.example, rel=0.01)
    assert bar.bar + bar.arm <= WIDTH + 0.2


def test_an_error_that_is_not_known_is_not_drawn():
    assert ErrorBar.of("n", "it depends", None).bar == 0


def test_round_numbers():
    assert [round_up(x) for x in (1, 1.01, 3, 5, 7, 0.02)] == [1, 2, 5, 5, 10, 0.02]
    assert [plain(x) for x in (0.25, 20000.0, 12.345, "<b>", None, 7)] == ["0.25", "20,000", "12.3", "<b>", "NULL", "7"]
    assert [dial(x) for x in (0.1, 10, 0)] == [-1, 1, -3]


def test_a_day_or_a_number_as_the_only_key_makes_a_line_and_a_name_does_not():
    days = [(datetime.date(2024, 1, d), d, d - 1, d + 1) for d in (3, 1, 2)]
    found = series(answer(days))
    assert found["time"] and [row[1:] for row in zip(*found["data"], strict=True)] == [(1, 0, 2), (2, 1, 3), (3, 2, 4)]
    assert series(answer([(i, 1, 0, 2) for i in range(5)]))["time"] is False
    assert series(answer([("a", 1, 0, 2)] * 5)) is None
    assert series(answer(days[:2])) is None


def test_emphasis_escapes_what_it_is_given():
    assert emphasise("<b> 50.4 </b>") == "&lt;b&gt; <strong>50.4</strong> &lt;/b&gt;"
