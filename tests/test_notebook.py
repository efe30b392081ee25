"""What notebooks show, and the magic `%%sfumato`."""

import html
import re

import pytest

from sfumato.curator import Curator
from sfumato.curator.answer import Answer
from tests.curator.clinic import POLICY, built

pytest.importorskip("IPython")
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from sfumato.notebook import completions, load_ipython_extension

QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
EVIL = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    built(folder / "clinic.duckdb")
    (folder / "clinic.toml").write_text(POLICY)
    return Curator.open(folder / "clinic.duckdb", folder / "clinic.toml")


@pytest.fixture(scope="module")
def shell(clinic):
    found = InteractiveShell()
    load_ipython_extension(found)
    found.user_ns["clinic"] = clinic
    yield found
    InteractiveShell.clear_instance()


def test_a_cell_asks_previews_and_keeps_its_answer(shell, clinic):
    preview = shell.run_cell_magic("sfumato", "clinic --epsilon 0.1 --preview", QUESTION)
    assert preview.epsilon == pytest.approx(0.1, rel=1e-3) and not clinic.ledger.verify().costs
    answer = shell.run_cell_magic("sfumato", "--epsilon 0.1 --to wards", QUESTION)  # the only curator
    assert answer is shell.user_ns["wards"] and answer.columns[:2] == ("ward", "n")
    assert shell.run_line_magic("sfumato", "clinic").left < 1


@pytest.mark.parametrize(
    ("line", "cell"),
    [("nobody --epsilon 0.1", QUESTION), ("clinic", QUESTION), ("clinic --epsilon x", QUESTION),
     ("clinic --epsilon 0.1", "SELECT * FROM visits"), ("clinic --wrong", QUESTION), ("clinic --epsilon -1", QUESTION)],
)  # fmt: skip
def test_what_is_wrong_is_said_without_a_traceback_or_a_charge(shell, clinic, line, cell):
    before = clinic.ledger.verify()
    with pytest.raises(UsageError):
        shell.run_cell_magic("sfumato", line, cell)
    assert clinic.ledger.verify() == before


def test_names_of_the_policy_and_options_are_completed_and_nothing_elsewhere(shell):
    names = shell.user_ns
    cell = "%%sfumato clinic --epsilon 0.1\nSELECT wa"
    assert "ward" in completions(cell, len(cell), names)
    assert "visits" in completions("%%sfumato clinic\nSELECT COUNT(*) FROM vi", 43, names)
    assert completions("%%sfumato cl", 12, names) == ["clinic"]
    assert "--epsilon" in completions("%%sfumato clinic --eps", 22, names)
    assert completions("wa", 2, names) == []
    shell.Completer.use_jedi = False
    with provisionalcompleter():
        offered = [one.text for one in shell.Completer.completions(cell, len(cell))]
    assert "ward" in offered


def test_html_has_pictures_and_no_text_of_others_as_markup(clinic):
    hostile = Answer(
        (EVIL, "n", "n low", "n high"), ((EVIL, 5, 1, 9), (None, None, None, None)), 0.1, 1e-9, True, EVIL, EVIL, EVIL
    )
    shown = hostile._repr_html_()
    assert "<script" not in shown and html.escape(EVIL) in shown and shown.count("<svg") == 1
    for one in (clinic, clinic.budget, clinic.preview(QUESTION, epsilon=0.2)):
        text = one._repr_html_()
        assert "<progress" in text and len(re.findall(r"<(\w+)", text)) and "<script" not in text
    assert "visits" in clinic._repr_html_()
    for one in (clinic, clinic.budget, clinic.preview(QUESTION, epsilon=0.2)):
        assert len(repr(one)) < 200
    assert "visits" in repr(clinic)
    long = Answer(("ward", "n", "n low", "n high"), (("north", 1, 0, 2),) * 10_000, 0.1, 1e-9, True, "", "")
    assert repr(long) == "Answer(10,000 rows of ward, n; ε = 0.1, charged)"


def test_an_answer_is_drawn_with_its_intervals(clinic):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = clinic.ask(QUESTION, epsilon=0.1).plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["north", "south", "west"]
    assert len(axes.lines) == 6  # an interval and a value for each ward
    lined = Answer(
        ("age", "n", "n low", "n high"), tuple((a, a, a - 1, a + 1) for a in (3, 1, 2)), 0.1, 0, True, "", ""
    )
    axes = lined.plot()
    assert list(axes.lines[0].get_xdata()) == [1, 2, 3] and len(axes.collections) == 1
    with pytest.raises(Exception, match="nothing to draw"):
        Answer(("a",), ((1,),), 0.1, 0, True, "", "").plot()
    pyplot.close("all")
