"""Progress messages appear only for work that takes long."""

import time
from contextlib import nullcontext

import pytest

import sfumato as sf
from sfumato import progress as waiting


def test_what_takes_long_says_so_and_what_is_quick_does_not(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)
    with waiting.show_progress("composing"):
        time.sleep(0.3)
    assert capsys.readouterr().err.startswith("… composing …")
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)
    with waiting.show_progress("composing"):
        pass
    assert not capsys.readouterr().err


def test_a_quick_function_prepares_no_message_unless_it_may_take_long(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)

    @waiting.with_progress("composing")
    def compose(long: bool) -> str:
        if long:
            waiting.may_take_long()
            waiting.may_take_long()
        time.sleep(0.3)
        return "done"

    assert compose(False) == "done"
    assert not capsys.readouterr().err
    assert compose(True) == "done"
    assert capsys.readouterr().err.count("composing") == 1


def test_there_is_one_message_at_a_time(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)

    @waiting.with_progress("inside")
    def compose() -> None:
        waiting.may_take_long()
        time.sleep(0.3)

    with waiting.show_progress("outside"):
        compose()
    assert "inside" not in capsys.readouterr().err
    compose()
    assert "inside" in capsys.readouterr().err


def test_a_function_that_fails_leaves_nothing_behind(capsys, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)

    @waiting.with_progress("failing")
    def fail() -> None:
        waiting.may_take_long()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert waiting.CURRENT.get() is None
    waiting.may_take_long()
    time.sleep(0.1)
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("view", "mu"),  # a loss for each view: what was computed for one is remembered for others
    [
        (lambda loss: loss.epsilon(1e-6), 0.731),
        (lambda loss: loss.delta([0.5, 1.0]), 0.732),
        (lambda loss: loss.trade_off(0.1), 0.733),
        (lambda loss: loss.gdp(1e-6, tolerance=1e-2), 0.734),
        (lambda loss: loss.terms[0][1].reverse.renyi(2.0), 0.735),
    ],
)
def test_slow_views_of_a_composition_prepare_a_message(view, mu, monkeypatch):
    prepared = []
    monkeypatch.setattr(waiting, "show_progress", lambda what: nullcontext(prepared.append(what)))
    view(7 * sf.loss.WithoutReplacementLoss(sf.loss.GaussianLoss(mu, relation=sf.ReplaceOne), 100, 13))
    assert len(prepared) == 1
