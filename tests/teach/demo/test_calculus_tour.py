"""The tour runs, its numbers are right, and it ends quietly."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.loss.bound import Bound
from sfumato.teach.classical.approximations import Estimate
from sfumato.teach.demo import calculus_tour as demo

ROOT = Path(__file__).parents[3]

SMALL = demo.Table(
    "0. Small",
    "A table for tests.",
    ("", "ε", "remark"),
    (
        ("a bound", Bound(1.0, 2.0, "closed form"), "both sides"),
        ("an estimate", Estimate(3.0, 0.0, 9.0, "central limit theorem"), ""),
        ("infinite", float("inf"), ""),
        ("large", 123456.7, ""),
        ("no answer", None, ""),
    ),
)


def small():
    """A small table."""
    return SMALL


@pytest.fixture(scope="module")
def tables():
    return {make.__name__: make() for make in demo.TABLES}


def test_the_tables_of_the_tour(tables):
    """One test, because the tables take a while."""
    for table in tables.values():
        assert max(map(len, str(table).splitlines())) <= 80
        assert json.loads(json.dumps(table.plain(), allow_nan=False))["title"] == table.title
    polls = {name: epsilon for name, epsilon, _ in tables["polls"].rows}
    assert abs(float(polls["optimal (sfumato)"]) - 19.344671448) < 1e-4
    assert float(polls["basic"]) == pytest.approx(100, rel=1e-6)
    training = {name: epsilon for name, epsilon, _ in tables["training"].rows}
    truth = training["optimal (sfumato)"]
    assert truth.lower <= 11.183164196 <= truth.upper < 11.184
    assert training["central limit"].value < truth.lower
    (sigma,) = [row[1] for row in tables["calibration"].rows if "14,062" in row[0]]
    assert 2.264 < float(sigma) < 2.265


def test_a_table_is_aligned_numbers_to_the_right():
    assert str(SMALL).splitlines()[3:] == [
        "                   ε  remark",
        "────────────────────────────────",
        "a bound            2  both sides",
        "an estimate      ≈ 3",
        "infinite           ∞",
        "large        123,457",
        "no answer          –",
    ]


def test_as_data_a_bound_keeps_both_sides_and_infinity_is_text():
    rows = SMALL.plain()["rows"]
    assert rows[0][1] == {"lower": 1.0, "upper": 2.0, "method": "closed form"}
    assert rows[1][1] == {"estimate": 3.0, "method": "central limit theorem"}
    assert rows[2][1] == "inf"
    assert rows[4][1] is None


@pytest.fixture
def short_tour(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "TABLES", (small,))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_json_is_all_that_goes_to_the_output(short_tour, capsys):
    assert demo.main(["--json", "--no-figures"]) == 0
    assert json.loads(capsys.readouterr().out) == [SMALL.plain()]


def test_figures_go_where_they_are_asked_to(short_tour, capsys, monkeypatch):
    plots = pytest.importorskip("sfumato.teach.figures")
    monkeypatch.setattr(plots, "lecture_figures", lambda folder: [Path(folder) / "profiles.png"])
    assert demo.main(["--figures", "drawn"]) == 0
    assert "1 figures are in drawn/: profiles" in capsys.readouterr().out


def test_without_matplotlib_the_tour_goes_on(short_tour, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "sfumato.teach.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delattr("sfumato.teach.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    assert demo.main([]) == 0
    out = capsys.readouterr().out
    assert SMALL.title in out
    assert "No figures: pictures need matplotlib." in out
    assert "sfumato[plot]" in out


def test_ctrl_c_ends_quietly(short_tour, capsys, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "TABLES", (small, interrupted))
    assert demo.main([]) == 130
    captured = capsys.readouterr()
    assert SMALL.title in captured.out
    assert not captured.err.strip()


def test_the_command_line_explains_itself():
    command = [sys.executable, "-m", "sfumato.teach.demo.calculus_tour", "--help"]
    env = {**os.environ, "COLUMNS": "80"}
    answer = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert all(option in answer.stdout for option in ("--figures DIR", "--no-figures", "--json"))
