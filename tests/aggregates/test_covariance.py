"""COVAR_POP, CORR, REGR_SLOPE, REGR_INTERCEPT: exact sums against plain SQL, and intervals."""

import math
import random

import duckdb
import pytest

from sfumato.aggregates.covariance import Correlation
from sfumato.aggregates.formula_of_means import Interval
from sfumato.aggregates.noise_basis import NoiseBasis
from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator import Curator
from sfumato.curator.answer import Answer
from sfumato.curator.layout import estimates
from sfumato.curator.offer import Offer, offer_for_epsilon
from sfumato.curator.release import release, statements
from sfumato.errors import QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.clinic import ODD, POLICY
from tests.curator.questions import by_group, exactly

LISTED = ("COVAR_POP(cost, stay)", "CORR(cost, stay)", "REGR_SLOPE(cost, stay)", "REGR_INTERCEPT(cost, stay)")
RULES = Policy.read(POLICY)
LOOSE = Policy.read(POLICY.replace("groups = 2", "groups = 9").replace("rows = 3", "rows = 99"))


def clinic(people=300, seed=5, missing=True):
    """Costs that grow with stays; some of either are missing."""
    dice, connection = random.Random(seed), duckdb.connect()
    connection.execute("CREATE TABLE visits (patient_id BIGINT, ward TEXT, stay DOUBLE, cost DOUBLE)")
    for p in range(people):
        stay = dice.randrange(481) / 8
        cost = 10 * stay + dice.uniform(0, 300)
        row = [
            stay if not missing or dice.random() > 0.1 else None,
            cost if not missing or dice.random() > 0.1 else None,
        ]
        connection.execute("INSERT INTO visits VALUES (?, ?, ?, ?)", [p, dice.choice(["north", "south"]), *row])
    return connection


def test_exact_sums_give_what_plain_sql_gives():
    """Where no bound cuts: to the resolution of the lattice (2⁻²⁰ of a range)."""
    connection = clinic()
    question = parse_question(f"SELECT ward, {', '.join(LISTED)} FROM visits GROUP BY ward", LOOSE)
    offer = offer_for_epsilon(question, 1.0, 1e-9, Mu)
    tables = [connection.execute(text).fetchall() for text in statements(offer, 7, "duckdb")]
    found = {key[0]: exactly(question, row) for key, row in by_group(question.plan, tables).items() if any(row)}
    for ward, *truth in connection.execute(f"SELECT ward, {', '.join(LISTED)} FROM visits GROUP BY ward").fetchall():
        assert found[ward] == pytest.approx(truth, rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("value", ODD)
def test_a_row_that_counts_stays_within_the_bounds_whatever_its_values_are(value):
    """All sums are about the rows in which both columns have a value: each lies between the span times their number."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (patient_id BIGINT, ward TEXT, stay DOUBLE, cost DOUBLE)")
    for stay, cost in ((value, "500"), ("30", value), (value, value), (value, "NULL"), ("NULL", value)):
        connection.execute(f"INSERT INTO visits VALUES (1, 'north', {stay}, {cost})")
    question = parse_question(f"SELECT {', '.join(LISTED)} FROM visits", LOOSE)
    plan, joint = question.plan, NoiseBasis.of(question.plan)
    tables = [
        connection.execute(text).fetchall()
        for text in statements(offer_for_epsilon(question, 1.0, 1e-9, Mu), 7, "duckdb")
    ]
    (row,) = by_group(plan, tables).values()
    assert all(abs(far) <= part.size for part, far in zip(joint.parts, joint.parts_of(row), strict=True))
    for measure, total in zip(plan.measures, row, strict=True):
        low, high = measure.span()
        count = row[plan.measures.index(measure.counted_by)] if measure.exponent else total
        assert low * count <= total <= high * count


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Of 400 releases with 95 % at least, 360 or fewer would hold it with 6e-6."""
    connection = clinic(missing=False, people=2000)
    question = parse_question(f"SELECT {', '.join(LISTED)} FROM visits", LOOSE)
    offer = Offer(question, Mu(3000.0))  # 99 rows are allowed for each person, who has one
    tables = [connection.execute(text).fetchall() for text in statements(offer, 7, "duckdb")]
    truth = exactly(question, by_group(question.plan, tables)[()])
    held = [0] * len(truth)
    for _ in range(400):
        ((_, cells),) = estimates(offer, release(offer, tables))
        for j, (_, low, high) in enumerate(cells):
            held[j] += low <= truth[j] <= high
            assert high - low < 20 * (1 + abs(truth[j]))  # they say something
    assert min(held) > 360


def test_without_data_nothing_is_claimed():
    """No rows: a correlation may be anything, and is shown as 0."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits (patient_id BIGINT, ward TEXT, stay DOUBLE, cost DOUBLE)")
    offer = Offer(parse_question("SELECT CORR(cost, stay) FROM visits", RULES), Mu(1.0))
    tables = [connection.execute(text).fetchall() for text in statements(offer, 7, "duckdb")]
    ((_, ((value, low, high),)),) = estimates(offer, release(offer, tables))
    assert -1 <= low <= value <= high <= 1


def test_an_interval_that_is_open_can_be_shown_and_written_as_json(tmp_path):
    """A slope has no limits; with few rows its interval holds all numbers, which JSON has no word for."""
    place = tmp_path / "few.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE visits (patient_id BIGINT, stay DOUBLE, cost DOUBLE)")
        connection.execute("INSERT INTO visits VALUES (1, 2, 3), (2, 3, NULL)")
    lines = [line for line in POLICY.splitlines() if not line.startswith(("ward", "diagnosis", "day"))]
    curator = Curator.open(place, Policy.read("\n".join(lines[: lines.index("[tables.wards]")])))
    answer = curator.ask("SELECT REGR_SLOPE(cost, stay) AS s, CORR(cost, stay) AS c FROM visits", epsilon=1.0)
    assert answer.rows[0][1:3] == (None, None) and answer.rows[0][4:] == (-1.0, 1.0)
    assert "-∞ … ∞" in str(answer) and "-∞ … ∞" in answer._repr_html_()
    assert Answer.from_json(answer.to_json()) == answer


def test_the_order_of_columns_is_part_of_a_slope_and_not_of_the_sums():
    slope, swapped = (parse_question(f"SELECT REGR_SLOPE({a}, {b}) FROM visits", RULES)
                      for a, b in (("cost", "stay"), ("stay", "cost")))  # fmt: skip
    assert slope.aggregates != swapped.aggregates
    assert parse_question("SELECT CORR(cost, stay) FROM visits", RULES).aggregates != slope.aggregates


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CORR(cost, patient_id)", "bounds"),
        ("CORR(ward, stay)", "numbers"),
        ("CORR(cost)", "not SQL"),
    ],
)
def test_what_cannot_vary_together_is_refused_in_words(text, words):
    with pytest.raises(QueryRefused, match=words):
        parse_question(f"SELECT {text} FROM visits", RULES)


def test_intervals_hold_every_result():
    dice = random.Random(3)
    for _ in range(300):
        a, b = (Interval(*sorted((dice.uniform(-3, 3), dice.uniform(-3, 3)))) for _ in range(2))
        x, y = (dice.uniform(*one) for one in (a, b))
        assert a.minus(b).low <= x - y <= a.minus(b).high
        assert a.times(b).low - 1e-12 <= x * y <= a.times(b).high + 1e-12
        assert a.square.low - 1e-12 <= x * x <= a.square.high + 1e-12
        assert y <= 0 or math.isinf(a.over(b).low) or a.over(b).low - 1e-9 <= x / y <= a.over(b).high + 1e-9
    assert Correlation.squares
