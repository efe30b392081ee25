"""The NIST questions: each has an answer, and the tests that it names exist."""

import re
from pathlib import Path

import pytest

from sfumato.audit.nist import ABSENT, CHECKED, PARTLY, ROWS, STATED

ROOT = Path(__file__).parents[2]


def test_there_are_twenty_two_questions_and_each_has_an_answer():
    assert [row.number for row in ROWS] == list(range(1, 23))
    assert {row.status for row in ROWS} == {CHECKED, PARTLY, STATED, ABSENT}
    assert all(row.theme and row.question.endswith("?") and row.answer.endswith(".") for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.theme)
def test_what_is_checked_names_tests_that_are_there(row):
    tests = [name for name in row.evidence if "::" in name]
    assert tests or row.status not in (CHECKED, PARTLY)
    for name in row.evidence:
        file, _, test = name.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not test or re.search(rf"^def {test}\(", text, re.MULTILINE), name
