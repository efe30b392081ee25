"""What answers are stored under: one text for one question, and never one text for two, however close their numbers."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import table_requests
from sfumato.ledger import Amount
from sfumato.sql.dialects import dialect_of
from sfumato.sql.plan import Measure, What
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

RULES = Policy.read(POLICY)
ODD = Policy.read("""
version = 1
[budget]
epsilon = 8.0
delta = 1e-6
[tables."t | ()"]
unit = "the unit"
[tables."t | ()".columns]
"the unit" = {type = "number"}
x = {low = 0, high = 60}
"x, 1.0" = {low = 0, high = 60}
"x) and (y" = {low = 0, high = 60}
""")


def offer(sql, policy=RULES):
    return offer_for_epsilon(parse_question(sql, policy), 1.0, 1e-9)


def key(sql, policy=RULES):
    return offer(sql, policy).canonical


def statement(sql, policy=RULES):
    return repr(table_requests(offer(sql, policy), 7, dialect_of("duckdb")))


def counted(where):
    return f"SELECT COUNT(*) FROM visits WHERE {where}"


NUMBERS = [0.1234567890123, 0.1234567890124, 0.1, math.nextafter(0.1, 1), 1e-300, 1e-320, 0.0, 1.0, 1.0000001, 2.0**53,
           2.0**53 + 2, 1e15, 1e15 + 1, 1e300, 59.999999999999, 60.0]  # fmt: skip
PLACES = [
    counted("stay < {}"),
    counted("stay + {} > cost"),
    counted("stay IN (2.5, {})"),
    counted("stay BETWEEN {} AND 1e301"),
    "SELECT SUM(CASE WHEN cost > {} THEN 1 ELSE 0 END) FROM visits",
    "SELECT COUNT(DISTINCT cost * {}) FROM visits",
    "SELECT AVG(LEAST(stay, {})) FROM visits",
    "SELECT MEDIAN(LEAST(stay, {})) FROM visits",
]


@pytest.mark.parametrize("sql", PLACES)
def test_numbers_that_differ_make_different_keys(sql):
    asked = [x for x in NUMBERS if x < 100 or "LEAST" not in sql]  # what is summed is not too large
    assert len({key(sql.format(repr(x))) for x in asked}) == len(asked)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_two_doubles_share_a_key_only_if_they_are_equal(a, b):
    for x, y in ((a, b), (a, math.nextafter(a, math.inf) if a < 1.7e308 else 0.0)):
        first, second = (counted(f"stay < {one!r}") for one in (x, y))
        assert (key(first) == key(second)) <= (x == y)


TEXTS = ["a", "A", "a ", " a", "a''b", "a'''' b", "a\\b", "a\\\\b", "a\\nb", "é", "e\u0301", "a\u200b", "a\u00ad", "1",
         "1.0", "True", "a, b", "a'', ''b", "t0.ward", "", "ａ", "\U0001f600"]  # fmt: skip
DATES = ["2024-01-01", "2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000002", "2024-01-01 00:00:00.1",
         "2024-01-02", "0001-01-01", "9999-12-31 23:59:59.999999"]  # fmt: skip


def test_texts_and_moments_that_differ_make_different_keys():
    asked = [counted(f"ward = '{one}'") for one in TEXTS] + [counted("ward IN ('a', 'b')")]
    asked += [counted(f"day < TIMESTAMP '{one}'") for one in DATES]
    assert len(set(map(key, asked))) == len(asked)


@pytest.mark.parametrize(
    "sqls",
    [
        [counted(f"patient_id = {n}") for n in (2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2**63, 10**30, 10**30 + 1)],
        [
            counted(f"stay < {n}")
            for n in ("0.1", "0.10000000000000001", "0.1000000000000000055", "1e-400", "0", "-0.0")
        ],
        [counted(f"stay = {n}") for n in ("1", "1.0", "CAST(1 AS DECIMAL(18, 3))", "CAST(1.0001 AS DECIMAL(18, 3))")],
        [counted(f"day < TIMESTAMP '2024-01-01 00:00:00.{n}'") for n in ("0000001", "0000002", "000000")],
    ],
)
def test_where_numbers_are_equal_as_doubles_equal_keys_mean_equal_statements(sqls):
    """Literals are doubles here, and so are columns: whole numbers beyond 2⁵³ that round alike are one question."""
    for one, other in itertools.combinations([(key(sql), statement(sql)) for sql in sqls], 2):
        assert (one[0] == other[0]) <= (one[1] == other[1])


def test_names_are_not_taken_for_what_is_around_them():
    asked = [
        'x IN (1, 2, 3)', '"x, 1.0" IN (2, 3)', '"x) and (y" > 1', 'x > 1', '"x, 1.0" > 1', 'x IN (1, 2)',
    ]  # fmt: skip
    keys = {key(f'SELECT COUNT(*) FROM "t | ()" WHERE {one}', ODD) for one in asked}
    assert len(keys) == len(asked)
    units = parse_question('SELECT COUNT(DISTINCT "the unit") FROM "t | ()"', ODD).plan.measures
    assert [one.what for one in units] == [What.UNITS]


def test_the_centre_of_a_measure_is_written_in_full():
    """It follows from the rest of the text today; the text must not depend on that."""
    column = parse_question(counted("stay < 1"), RULES).plan.where.arguments[0]
    near = [
        Measure(What.SUM, column, centre, 0) for centre in (1234567.0, 1234568.0, 0.1, math.nextafter(0.1, 1), 30.0)
    ]
    assert len({repr(one) for one in near}) == len(near)
    assert repr(near[-1]) == f"{What.SUM.value}(t0.stay, 30, 0)"  # as ever: answers are stored under it


# ---- what a better answer costs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [POLICY, POLICY.replace("delta = 1e-6", 'delta = 1e-6\nkind = "pure"')])
@pytest.mark.parametrize(("first", "second"), [(0.1, 0.5), (0.5, 0.5000001), (0.5, 0.50000000001)])
def test_a_dearer_answer_is_charged_in_full_whoever_asks(tmp_path, rules, first, second):
    """Not the difference: both answers are out, and their noise is independent."""
    curator = Curator.open(built(tmp_path / "c.duckdb"), Policy.read(rules), ledger=":memory:")
    sql = "SELECT ward, COUNT(*), AVG(stay) FROM visits GROUP BY ward"
    prices = [curator.ledger.prices(curator.preview(sql, epsilon=eps).offer.loss)[-1] for eps in (first, second)]
    for who, eps in (("ann", first), ("bob", second)):
        assert curator.analyst(who).ask(sql, epsilon=eps).charged
    assert curator.ledger.verify().spent == sum(prices, Amount())
    for eps in (first, second):
        assert not curator.ask(sql, epsilon=eps).charged
    answers = [answer for _, answer in curator.ledger.answers(curator.preview(sql, epsilon=second).offer.canonical)]
    assert len(answers) == 2
    assert answers[0] != answers[1]
