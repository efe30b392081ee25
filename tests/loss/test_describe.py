"""Descriptions are read by any process: which modules it has imported before makes no difference."""

import inspect
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import UnknownDescription
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.describe import ELSEWHERE, Part
from tests.checks.examples import EXAMPLES, concrete_classes

PACKAGE = Path(sf.__file__).parent


def shipped() -> dict[str, str]:
    """Name → module of every concrete loss and part that the package defines, whoever has imported it."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"^class \w+\(.*(Loss|Part|Noise)\b", path.read_text("utf-8"), re.MULTILINE):
            import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    classes = [*PrivacyLoss.known.values(), *Part.known.values()]
    mine = [c for c in classes if not inspect.isabstract(c) and c.__module__.startswith("sfumato.")]
    names = {c.__name__: c.__module__ for c in mine}
    assert len(names) == len(mine)  # a description names a class by its name alone
    return names


def in_another_process(code: str, *words: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def test_every_loss_and_part_that_is_shipped_can_be_found():
    code = (
        "import sfumato.ledger, json; from sfumato.loss.base import PrivacyLoss;"
        "from sfumato.loss.describe import Part;"
        "print(json.dumps([*PrivacyLoss.known, *Part.known]))"
    )
    there = set(json.loads(in_another_process(code)))
    missing = {name: module for name, module in shipped().items() if name not in there}
    assert "SmoothLoss" in missing
    assert missing == ELSEWHERE


def test_a_ledger_that_holds_every_loss_is_read_without_other_imports(tmp_path, monkeypatch):
    assert concrete_classes() - {type(loss) for loss in EXAMPLES} <= {sf.loss.OneWay, sf.loss.Reversed}
    place = tmp_path / "every.ledger"
    monkeypatch.setattr(sf.Ledger, "prices", lambda ledger, loss: (sf.ledger.Amount(gauss=1),))  # real ones take long
    ledger = sf.Ledger.create(place, sf.Budget(1.0, 1e-6))
    for i, loss in enumerate(EXAMPLES[::-1]):  # those from elsewhere first, before anything else has imported them
        ledger.keep(ledger.charge(loss, question=f"question {i}"), b"answer")
    ledger.close()
    code = (
        "import sys; from sfumato.ledger import Ledger; ledger = Ledger.open(sys.argv[1]);"
        "[print(loss.to_json()) for i in range(int(sys.argv[2])) for loss, _ in ledger.answers(f'question {i}')]"
    )
    read = in_another_process(code, str(place), str(len(EXAMPLES))).splitlines()
    assert read == [loss.to_json() for loss in EXAMPLES[::-1]]


def test_a_class_of_ones_own_is_asked_for_in_words():
    with pytest.raises(UnknownDescription, match="import the module that defines it"):
        sf.loss.from_json('{"sfumato":1,"loss":"MyOwnLoss"}')
