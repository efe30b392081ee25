"""REGEXP_MATCHES: an allowed pattern never raises, means what RE2 means by it, and costs no more than is stated."""

import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.aggregates.registry import parse_question
from sfumato.errors import QueryRefused
from sfumato.sql.dialects import DIALECTS, dialect_of
from sfumato.sql.emit.bounding import statement
from sfumato.sql.functions.regex import LONGEST_PATTERN, MOST_STATES, InvalidPattern, automaton_size
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

RULES = Policy.read(POLICY)
ENGINE = duckdb.connect()
LETTERS = "abB1_ -é😀\n"

characters = st.sampled_from(["a", "b", "B", "1", "_", " ", "é", "😀", "\\.", "\\-", "\\\\", "'", '"', "&", "/"])
escapes = st.sampled_from([r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"])
ranges = st.sampled_from(["a-b", "0-9", "A-z", "à-ï", "😀-😎", "_", r"\-", r"\]", r"\^", "é"])
classes = st.builds(
    lambda no, members: f"[{no}{''.join(members)}]",
    st.sampled_from(["", "^"]),
    st.lists(ranges | escapes, min_size=1, max_size=3),
)
repeats = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "{0,}", "{2,3}"])


def grown(inner):
    group = st.builds(lambda mark, one: f"({mark}{one})", st.sampled_from(["", "?:"]), inner)
    part = st.builds(lambda one, times: one + times, characters | escapes | classes | st.just(".") | group, repeats)
    sequence = st.lists(part, min_size=1, max_size=3).map("".join)
    return st.lists(sequence, min_size=1, max_size=2).map("|".join)


patterns = st.builds(
    lambda first, body, last: first + body + last,
    st.sampled_from(["", "^"]),
    st.recursive(characters, grown, max_leaves=4),
    st.sampled_from(["", "$"]),
)


def matches(text, pattern):
    """As emitted: the pattern is a constant."""
    quoted = pattern.replace("'", "''")
    [(found,)] = ENGINE.execute(f"SELECT REGEXP_MATCHES(?, '{quoted}')", [text]).fetchall()
    return found


@settings(deadline=None)
@given(pattern=patterns, text=st.text(LETTERS, max_size=8))
def test_a_pattern_of_the_grammar_means_the_same_as_elsewhere(pattern, text):
    """Python's own matcher agrees, with classes of ASCII, and $ at the end of the text alone."""
    try:
        automaton_size(pattern)
    except InvalidPattern as problem:
        assert "characters and ranges" in str(problem)  # the grammar allows the rest
        return
    meant = re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern, re.ASCII)
    assert matches(text, pattern) == (meant.search(text) is not None)


@settings(deadline=None, max_examples=125)
@given(pattern=st.text(r"ab\^$.|?*+()[]{}:-,023dwsbPzé<=!i&", max_size=12))
def test_whatever_is_allowed_can_be_compiled(pattern):
    """Random signs: what the engine could not compile is refused from the text."""
    try:
        automaton_size(pattern)
    except InvalidPattern:
        return
    assert matches("ab", pattern) in (True, False)


@pytest.mark.parametrize("pattern", [
    "", "^", "^$", "a|", "|a", "()", "(a", "a)", "[", "[]", "[^]", "[a", "a]", "a}", "a{", "a{,2}", "a{2", "a{3,2}",
    "a{0}", "a{51}", "a**", "a+?", "a?+", "a{2}{2}", "*a", "+", r"\1", r"(a)\1", r"\b", r"\pL", r"\x41", r"\Qa\E",
    r"\é", "\\",
    "(?=a)", "(?!a)", "(?<=a)", "(?<n>a)", "(?P<n>a)", "(?i)a", "(?>a)", "a^", "$a", "(^a)", "(a$)", "a$b", "[z-a]",
    "[[:alpha:]]", r"[\d-z]", "[a-]", "[-a]", "a\tb", "a{1,50}{2}", "((a{10}){10}){2}", "(" * 11 + "a" + ")" * 11,
    "a" * (LONGEST_PATTERN + 1), "a" * (MOST_STATES + 1), "(ab|c){40}", r"\W{21}", "|".join([r"\W"] * 21),
])  # fmt: skip
def test_other_patterns_are_refused_from_the_text(pattern):
    quoted = pattern.replace("'", "''")
    with pytest.raises(QueryRefused, match="regular expression is not allowed"):
        parse_question(f"SELECT COUNT(*) FROM visits WHERE regexp_matches(LEFT(ward, 10), '{quoted}')", RULES)


@pytest.mark.parametrize("condition, why", [
    ("regexp_matches(diagnosis, ward)", "in quotes"),
    ("regexp_matches(diagnosis, LOWER('A'))", "in quotes"),
    ("regexp_matches(diagnosis, 'a', 'i')", "FLAG"),
    ("regexp_matches(stay, 'a')", "must be a text"),
    ("regexp_matches(diagnosis, 'a.{40}b')", "too long for one row"),
    ("diagnosis ~ 'a'", "whole text on DuckDB"),
    ("regexp_full_match(diagnosis, 'a')", "too long for one row"),
    ("regexp_extract(LEFT(diagnosis, 50), '(a)b', 2) = 'a'", "no group 2"),
    ("regexp_extract(LEFT(diagnosis, 50), ward, 1) = 'a'", "in quotes"),
    ("regexp_replace(LEFT(diagnosis, 50), 'a', 'b', 'g') = 'a'", "first match"),
    (r"regexp_replace(LEFT(diagnosis, 50), '(a)', '\\1') = 'a'", "without backslashes"),
])  # fmt: skip
def test_what_else_is_refused(condition, why):
    with pytest.raises(QueryRefused, match=why):
        parse_question(f"SELECT COUNT(*) FROM visits WHERE {condition}", RULES)


def test_over_released_values_it_runs_where_no_private_rows_are():
    asked = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    found = parse_question(f"{asked} HAVING regexp_matches(ward, 'n')", RULES)
    assert found.plan == parse_question(asked, RULES).plan and "regexp" in found.outer.sql.lower()


@pytest.mark.parametrize("name", sorted({*DIALECTS} - {"duckdb"}))
def test_engines_that_backtrack_refuse_it_from_the_text(name):
    plan = parse_question("SELECT COUNT(*) FROM visits WHERE regexp_matches(LEFT(ward, 9), 'n')", RULES).plan
    with pytest.raises(QueryRefused, match=f"REGEXP_MATCHES cannot be asked of {name}"):
        dialect_of(name).accepts(plan)


def test_rows_are_chosen_as_plain_sql_does(tmp_path):
    """Also rows without a text: NULL matches nothing, and neither does its negation."""
    plain = "SELECT COUNT(*) FROM visits WHERE {} AND patient_id IS NOT NULL"
    loose = Policy.read(POLICY.replace("groups = 2\nrows = 3", "groups = 1000\nrows = 1000"))
    with duckdb.connect(str(built(tmp_path / "clinic.duckdb"))) as database:
        database.execute("UPDATE visits SET diagnosis = NULL WHERE patient_id = 3")
        for condition in (r"regexp_matches(LEFT(diagnosis, 50), '^[a-zA-Z]\d+$')",
                          "regexp_matches(LEFT(ward, 50), 'o.t')",
                          "NOT regexp_matches(LEFT(diagnosis, 50), '[02468]')",
                          "regexp_matches(LEFT(diagnosis, 50), NULL)"):  # fmt: skip
            question = f"SELECT COUNT(*) FROM visits WHERE {condition}"
            [(found,)] = database.execute(statement(parse_question(question, loose).plan, 1, "duckdb")).fetchall()
            [(expected,)] = database.execute(plain.format(condition)).fetchall()
            assert (found or 0) == expected, condition


def test_two_patterns_are_two_questions_and_two_spellings_are_one():
    ask = "SELECT COUNT(*) FROM visits WHERE {}(LEFT(diagnosis, 50), '{}')"
    several = ["a", "b", r"\.", ".", "a''", "a'', ''b", "a.{0,2}"]
    plans = [parse_question(ask.format("regexp_matches", one), RULES).plan.canonical for one in several]
    assert len(set(plans)) == len(several)
    assert parse_question(ask.format("REGEXP_LIKE", "a"), RULES).plan.canonical == plans[0]
