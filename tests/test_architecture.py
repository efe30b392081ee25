"""The map of the code is true: rooms that exist are described, and what is generated follows from the source."""

import shutil

import pytest

from tools import architecture
from tools.architecture import (
    BEGIN,
    END,
    LAYER_TEST,
    PAGE,
    PICTURE,
    ROOT,
    complaints,
    described_rooms,
    first_sentence,
    rooms,
)


def test_the_map_is_current():
    assert not complaints(ROOT), "run `make docs-index`"


def test_every_room_is_in_the_picture():
    text = (ROOT / PICTURE).read_text(encoding="utf-8")
    assert all(f">{room.name}</text>" in text for room in rooms(ROOT))


def test_imports_between_rooms_point_downwards():
    layer = {room.name: room.layer for room in rooms(ROOT)}
    assert all(layer[target] <= room.layer for room in rooms(ROOT) for target in room.imports)


@pytest.fixture
def copied(tmp_path):
    """A repository with two rooms, and its map."""
    for name, text in {
        "sfumato/__init__.py": '"""Public names."""\n',
        "sfumato/errors.py": '"""Errors. And more."""\n',
        "sfumato/loss/__init__.py": '"""Losses."""\n',
        "sfumato/loss/gaussian.py": '"""The Gaussian\nloss."""\nfrom sfumato.errors import Refused\n',
        "docs/architecture.md": f"| `errors.py` | x |\n| `loss/` | y |\n{BEGIN}\n{END}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for path in (PICTURE, LAYER_TEST):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / LAYER_TEST, tmp_path / LAYER_TEST)
    (tmp_path / PAGE).write_text(architecture.page(tmp_path), encoding="utf-8")
    (tmp_path / PICTURE).write_text(architecture.picture(rooms(tmp_path)), encoding="utf-8")
    return tmp_path


def test_a_map_that_was_just_written_is_current(copied):
    assert not complaints(copied)
    assert described_rooms(copied) == {"errors", "loss"}


def test_a_room_that_is_not_described_is_reported(copied):
    (copied / "sfumato" / "noise").mkdir()
    (copied / "sfumato" / "noise" / "__init__.py").write_text('"""Noise."""\n', encoding="utf-8")
    assert any("does not describe noise" in line for line in complaints(copied))


def test_a_room_without_a_layer_is_reported(copied):
    page = copied / PAGE
    page.write_text("| `attic/` | z |\n" + page.read_text(encoding="utf-8"), encoding="utf-8")
    assert any("describes attic, which has no layer" in line for line in complaints(copied))


def test_a_new_file_makes_the_list_out_of_date(copied):
    (copied / "sfumato" / "loss" / "laplace.py").write_text('"""The Laplace loss."""\n', encoding="utf-8")
    assert any(str(PAGE) in line for line in complaints(copied))


def test_a_file_is_listed_with_its_first_sentence_on_one_line(copied):
    assert first_sentence(copied / "sfumato" / "errors.py") == "Errors."
    assert "- `gaussian.py`: The Gaussian loss.\n" in architecture.files(copied)


def test_arrows_that_a_chain_of_others_implies_are_left_out():
    below = {"top": {"middle", "low"}, "middle": {"low"}, "low": set()}
    assert architecture.reduced(below["top"], below) == ["middle"]
