"""What the fuzzer has found, each as a test of its own."""

import contextlib
import logging
import re

import pytest

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import offer_for_epsilon
from sfumato.errors import QueryRefused
from sfumato.sql.emit.bounding import statement
from sfumato.sql.policy import Policy
from tests.fuzz.grammar import AGGREGATES, FORMS, HOLE, RANKED, TRIAL

CALL = re.compile(r"([A-Za-z_0-9]+)\(([^()]*)\)")
RULES = Policy.read(
    "version = 1\n[budget]\nepsilon = 1\ndelta = 1e-6\n[tables.t]\nunit = 'u'\ngroups = 100000\nrows = 1000\n"
    "[tables.t.columns]\nx = {low = -1e15, high = 1e15}\ny = {type = 'text'}\nd = {type = 'date'}\n"
)


def key(sql):
    return parse_question(sql, RULES).plan.canonical


@pytest.mark.parametrize(
    "condition", ["CASE y WHEN 'a' THEN NULL END", "CASE WHEN x > 3 THEN TRUE = NULL WHEN x < 2 THEN NULL END"]
)
def test_a_case_of_null_alone_is_null_on_every_engine(condition):
    """PostgreSQL took it for a text, and raised after the charge where it stood for a condition."""
    sql = f"SELECT COUNT(*) FILTER (WHERE {condition}) FROM t"
    assert "THEN NULL ELSE NULL" not in statement(parse_question(sql, RULES).plan, 1, "postgres")
    assert key(sql) == key("SELECT COUNT(*) FILTER (WHERE NULL) FROM t")
    assert key("SELECT SUM(CASE WHEN y = 'a' THEN x ELSE x END) FROM t") == key("SELECT SUM(x) FROM t")
    assert key("SELECT SUM(CASE WHEN y = 'a' THEN x ELSE 3 END) FROM t") != key("SELECT SUM(x) FROM t")


def test_noise_that_cannot_be_drawn_is_refused_in_words():
    """Not with an error about sigma, which is no word of the question's."""
    offer = offer_for_epsilon(parse_question("SELECT y, VARIANCE(x) FROM t GROUP BY y", RULES), 1e-6, 1e-9, Mu)
    with pytest.raises(QueryRefused, match=r"larger ε"):
        _ = offer.noise


def test_a_question_writes_nothing_into_the_log(caplog):
    """The parser complained there about TO_CHAR, whose text was written in no dialect."""
    with caplog.at_level(logging.DEBUG):
        parse_question("SELECT SUM(CLAMP(LENGTH(TO_CHAR(d, 'YYYY-MM')), 0, 9)) FROM t", RULES)
    assert not caplog.records


def test_too_few_arguments_are_refused_in_words():
    """WIDTH_BUCKET(n, 0), DATE() and DATE_SUB() raised errors of Python's, and of the parser's."""
    leaves = {"x": "n", "i": "3", "c": "2", "q": "'a'", "B": "CLAMP(n, 0, 1)", "U": "u", "R": "MIN(CLAMP(n, 0, 1))"}
    tried = 0
    for form in [*(f"COUNT({form})" for _, form in FORMS), *AGGREGATES, *RANKED, "COUNT(DATE())", "TRIANGLES(n)"]:
        text = HOLE.sub(lambda hole: leaves.get(hole[1], hole[1]), form)
        for found in CALL.finditer(text):
            given = found[2].split(",")
            for many in range(len(given)):
                fewer = f"{text[: found.start()]}{found[1]}({','.join(given[:many])}){text[found.end() :]}"
                tried += 1
                with contextlib.suppress(QueryRefused):
                    parse_question(f"SELECT {fewer} FROM t", TRIAL)
    assert tried > 200


@pytest.mark.parametrize("date", ["TIMESTAMP '2024-13-45'", "TIMESTAMP '2024-02-29 10:11:120'"])
@pytest.mark.parametrize("more", ["+ INTERVAL 1 DAY", "- 8"])
def test_nothing_is_added_to_what_is_no_date(date, more):
    with pytest.raises(QueryRefused, match="no date"):
        parse_question(f"SELECT COUNT(*) FROM t WHERE d > {date} {more}", RULES)


@pytest.mark.parametrize("text", ["strftime(d, 'YYYY-MM')", "TO_CHAR(d, '%Y-%m')"])
def test_a_format_of_another_function_is_refused(text):
    """To an engine it is a constant text: what was answered was another question."""
    with pytest.raises(QueryRefused, match="dates are written as"):
        parse_question(f"SELECT {text}, COUNT(*) FROM t GROUP BY 1", RULES)
