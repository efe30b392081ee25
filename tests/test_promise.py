"""Every line of docs/promise.md names a test that is there."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "promise.md"


def test_every_promise_has_its_test():
    named = re.findall(r"\[(test_\w+)\]\(([^)]+)\)", PAGE.read_text("utf-8"))
    assert len(named) > 25
    for name, place in named:
        text = (PAGE.parent / place).resolve().read_text("utf-8")
        assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{place} has no {name}"


def test_every_line_of_a_table_names_a_test():
    rows = [
        line for line in PAGE.read_text("utf-8").splitlines() if re.match(r"\| \w", line) and "| test |" not in line
    ]
    assert rows
    for row in rows:
        assert "](../tests/" in row, row
