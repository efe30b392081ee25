"""Questions and the statements that DuckDB is asked for them, side by side in tests/sql/pairs/*.sql.

A file has a question after `-- question`, then each emitted statement after `-- statement`. If a change of what is
emitted is intended, write the files again and read the difference before you commit it:

    SFUMATO_WRITE_PAIRS=1 python -m pytest tests/sql/test_pairs.py
"""

import difflib
import os
from pathlib import Path

import pytest
import sqlglot

from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY

PAIRS = sorted((Path(__file__).parent / "pairs").glob("*.sql"))
RULES = Policy.read(POLICY)
QUESTION, STATEMENT = "-- question\n", "-- statement\n"


def question_of(text):
    return text.partition(QUESTION)[2].partition(STATEMENT)[0].strip().removesuffix(";")


def pair(question, emitted):
    """The text of a file, laid out to be read: by the installed sqlglot, whose versions lay out differently."""
    laid_out = [sqlglot.parse_one(sql, read="duckdb").sql("duckdb", pretty=True) for sql in emitted]
    return f"{QUESTION}{question};\n" + "".join(f"\n{STATEMENT}{sql};\n" for sql in laid_out)


def emit(question):
    return statements(offer_for_epsilon(parse_question(question, RULES), 1.0, RULES.question_delta), 1, "duckdb")


@pytest.mark.parametrize("place", PAIRS, ids=lambda place: place.stem)
def test_a_question_is_emitted_as_its_pair_shows(place):
    text = place.read_text("utf-8")
    question = question_of(text)
    found = pair(question, emit(question))
    if os.environ.get("SFUMATO_WRITE_PAIRS"):
        place.write_text(found, "utf-8")
        return
    expected = pair(question, text.split(STATEMENT)[1:])
    difference = "\n".join(
        difflib.unified_diff(expected.splitlines(), found.splitlines(), place.name, "emitted now", lineterm="")
    )
    assert not difference, f"{difference}\n\nIf this is intended: SFUMATO_WRITE_PAIRS=1 pytest tests/sql/test_pairs.py"


def test_there_are_pairs_and_each_has_a_statement():
    assert len(PAIRS) >= 6
    assert all(STATEMENT in place.read_text("utf-8") for place in PAIRS)
