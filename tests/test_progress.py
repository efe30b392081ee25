"""Progress messages appear only for work that takes long."""

import time

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
