"""Answers in other forms: text, HTML, JSON, data frames; and how the budget is told."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sfumato.curator import Curator
from sfumato.curator.answer import Answer, format_cell
from sfumato.sql.policy import Policy
from sfumato.wording import short_number
from tests.curator.clinic import POLICY, built

ANSWER = Answer(
    ("ward", "n", "n low", "n high", "mean", "mean low", "mean high", "ratio"),
    (
        ("north <b>", 12345, 12300.0, 12390.0, 3.14159, 3.0, 3.3, 0.25),
        ("a\x1b[2J\nb", -3, 0.0, 42.0, None, None, None, 1 / 3),
    ),
    0.5,
    1e-9,
    charged=True,
    left="98 % of the budget left",
    odds="An attacker is right\nat most 51.0 times in 100.",
)


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb", patients=200), Policy.read(POLICY))


def test_a_table_shows_as_many_digits_as_mean_something():
    lines = str(ANSWER).splitlines()
    assert lines[0].split() == ["ward", "n", "95", "%", "mean", "95", "%", "ratio"]
    assert "12,345  12,300 … 12,390  3.14  3.00 … 3.30  0.2500" in lines[2]
    assert "NULL … NULL" in lines[3]
    assert lines[-1] == "2 rows · ε = 0.5 at δ = 1e-09 · 98 % of the budget left"
    assert len(lines) == 5  # a key with a line break takes one line


def test_a_key_cannot_steer_the_terminal_or_the_page():
    assert "\x1b" not in str(ANSWER)
    page = ANSWER._repr_html_()
    assert "<b>" not in page
    assert "north &lt;b&gt;" in page
    assert "at most 51.0 times" in page


def test_json_there_and_back():
    assert Answer.from_json(ANSWER.to_json()) == ANSWER
    assert json.loads(ANSWER.to_json())["odds"] == ANSWER.odds


def test_numbers_have_no_powers_of_ten():
    assert [short_number(x) for x in (56_440.0, 91.3, 0.05, 123.0, 1e-9, 0.0)] == [
        "56,400", "91.3", "0.05", "123", "1e-09", "0",
    ]  # fmt: skip
    assert format_cell(-0.001, 1) == "0.0"
    assert format_cell(True) == "True"
    assert format_cell(1e7, 0) == "10,000,000"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_library_that_is_not_there_is_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        getattr(ANSWER, f"to_{library.removeprefix('py')}")()


def test_frames_are_given_all_rows_and_one_type_a_column(monkeypatch):
    def kept(data, **options):
        return data, options

    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=kept))
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=kept))
    monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(table=kept))
    assert ANSWER.to_pandas() == (list(ANSWER.rows), {"columns": list(ANSWER.columns)})
    for columns, _ in (ANSWER.to_polars(), ANSWER.to_arrow()):
        assert list(columns) == list(ANSWER.columns)
        assert columns["n"] == [12345, -3]
        assert {type(cell) for cell in columns["mean"]} == {float, type(None)}


@pytest.mark.parametrize(("library", "form"), [("pandas", "pandas"), ("polars", "polars"), ("pyarrow", "arrow")])
def test_real_frames_hold_the_numbers(library, form):
    pytest.importorskip(library)
    frame = getattr(ANSWER, f"to_{form}")()
    assert frame.shape == (2, 8)
    assert [float(x) if form != "arrow" else x.as_py() for x in frame["n"]] == [12345, -3]


def test_columns_are_called_what_they_are(curator):
    sql = "SELECT ward, COUNT(*), COUNT(*) + 1, SUM(stay), COUNT(*) FROM visits GROUP BY ward"
    names = [name for name in curator.ask(sql, epsilon=1.0).columns if not name.endswith((" low", " high"))]
    assert names == ["ward", "count", "COUNT(*) + 1", "SUM(stay)", "count 2"]


def test_a_column_without_a_name_is_called_by_its_text_not_by_a_number_in_it(curator):
    sql = "SELECT COUNT(1), SUM(2), COUNT(*) FROM visits"
    names = [name for name in curator.ask(sql, epsilon=0.5).columns if not name.endswith((" low", " high"))]
    assert names == ["COUNT(1)", "SUM(2)", "count"]


def test_a_number_that_no_double_holds_is_null(curator):
    answer = curator.ask("SELECT (COUNT(*) + 1e9) * 1e308 AS x FROM visits", epsilon=1.0)
    assert answer.rows == ((None, None, None),)
    assert Answer.from_json(answer.to_json()) == answer


def test_the_budget_is_told_in_numbers_and_words(curator):
    before = curator.budget
    assert (before.epsilon, before.delta, before.spent, before.left) == (8.0, 1e-6, 0.0, 1.0)
    curator.ask("SELECT COUNT(*) FROM visits", epsilon=1.0)
    after = curator.analyst("ann").budget
    assert 0 < after.spent < 1.0
    assert after.left < 1.0
    assert json.loads(after.to_json())["who"] == "ann"
    assert max(map(len, str(after).splitlines())) <= 80


def test_a_preview_says_what_is_free_and_what_does_not_fit(curator):
    sql = "SELECT diagnosis, COUNT(*) AS n, AVG(stay) FROM visits GROUP BY 1"
    seen = curator.preview(sql, epsilon=1.0)
    assert seen.fits
    assert not seen.free
    assert 1 > seen.left - seen.after > 0
    assert dict(seen.errors()).keys() == {"n", "AVG(stay)"}
    assert "afterwards" in str(seen)
    assert json.loads(seen.to_json())["threshold"] == seen.threshold > 0
    curator.ask(sql, epsilon=1.0)
    assert curator.preview(sql, epsilon=1.0).free
    dear = curator.preview(sql, epsilon=100.0)
    assert not dear.fits
    assert "would be refused" in str(dear)
    for text in (str(seen), str(dear)):
        assert max(map(len, text.splitlines())) <= 80


def test_odds_are_computed_when_they_are_first_read():
    calls = []
    answer = replace(ANSWER, odds=lambda: calls.append(1) or "even")
    later = answer.with_account(True, "all")
    assert not calls
    assert later.odds == later.odds == "even" and len(calls) == 1
    assert Answer((), (), 0.1, 1e-9, True, "").odds == ""
