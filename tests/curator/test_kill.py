"""kill -9 along the whole path of a question, from its text to its answer."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.faults import alone
from tests.faults.questions import POINTS


@pytest.mark.slow
def test_killed_anywhere_no_answer_is_without_its_charge_and_none_is_charged_twice(tmp_path):
    memory = Path("/dev/shm")  # a kill is no power cut: what is written stays
    folder = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else tmp_path)
    try:
        found = alone("questions", 2 * len(POINTS), folder)
    finally:
        shutil.rmtree(folder)
    assert set(found["kills"]) == {*POINTS, "random"}
    assert found["released"] > 0 < found["unseen"]
