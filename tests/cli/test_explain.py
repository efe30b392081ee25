"""`sfumato explain`: every error has a cause, what was charged, and what to do."""

import pytest
from click.testing import CliRunner

from sfumato.cli import main
from sfumato.cli.explain import EXPLANATIONS, all_errors


def explained(*arguments):
    return CliRunner().invoke(main, ["explain", *arguments])


def test_every_error_is_explained_and_nothing_else():
    assert set(EXPLANATIONS) == {kind.__name__ for kind in all_errors()}


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_an_explanation_has_all_its_parts(kind):
    shown = explained(kind.__name__.lower())
    assert shown.exit_code == 0 and kind.__name__ in shown.output
    assert all(f"{part}:" in shown.output for part in ("cause", "charged", "do"))
    assert max(map(len, shown.output.splitlines())) <= 80


def test_without_a_name_all_are_listed():
    shown = explained()
    assert all(kind.__name__ in shown.output for kind in all_errors())


def test_an_unknown_name_says_how_to_list_them(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["explain", "Nothing"])
    assert ended.value.code == 1
    assert "`sfumato explain` lists all" in capsys.readouterr().err


def test_an_error_of_a_command_names_its_explanation(capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["ledger", "verify", str(tmp_path / "none.ledger")])
    assert ended.value.code == 6
    assert "sfumato explain Ledger" in capsys.readouterr().err
