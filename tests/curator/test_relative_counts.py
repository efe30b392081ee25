"""Counts by group within a share of themselves: priced for everybody, told by size, read from whole steps."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.cli import main
from sfumato.curator import Curator
from sfumato.curator.answer import Answer
from sfumato.curator.offer import offer_for_relative_error
from sfumato.curator.relative_counts import SIZES, is_grouped_count, relative_count
from sfumato.curator.release import add_noise
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.loss.kinds.gaussian import GaussianLoss
from sfumato.sql.dp_syntax import parse_dp_syntax
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
TEXT = f"{BY_WARD} WITH RELATIVE ERROR 5 %"


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb", patients=2000), Policy.read(POLICY))


def test_the_text_and_the_argument_ask_the_same(curator):
    first = curator.ask(TEXT, epsilon=2.0)
    spent = curator.ledger.verify().spent
    for again in (curator.ask(BY_WARD, epsilon=2.0, relative_error=0.05), curator.ask(f"{TEXT};", epsilon=2.0),
                  curator.table("visits").group_by("ward").agg(n=sf.count())
                  .ask(epsilon=2.0, relative_error=0.05)):  # fmt: skip
        assert again.rows == first.rows and not again.charged
    assert curator.ledger.verify().spent == spent
    assert first.charged and [row[0] for row in first.rows] == ["north", "south", "west"]


def test_the_ledger_is_charged_what_holds_for_everybody(curator):
    """μ of the question's ε, once, whatever the counts are; and the table's own price is not above its part."""
    curator.ask(TEXT, epsilon=2.0)
    (entry,) = [e.content for e in curator.ledger.history() if e.content["kind"] == "charged"]
    bought = Mu.for_epsilon(2.0, curator.policy.question_delta, 0.0)
    assert entry["loss"] == GaussianLoss(bought.mu).to_json()
    offer = curator.preview(TEXT, epsilon=2.0).offer
    mechanism = offer.relative.contract.mechanism
    assert mechanism.rows == offer.joint.parts[0].size == offer.plan.rows
    assert mechanism.loss().mu ** 2 * offer.plan.groups <= bought.mu**2
    assert mechanism.loss().mu ** 2 * offer.plan.groups >= bought.mu**2 * 0.999


@pytest.mark.parametrize(("r", "mu", "rows"), [(0.05, 0.3, 1), (0.01, 2.0, 7), (0.5, 0.01, 3), (0.9, 30.0, 1)])
def test_the_price_of_a_table_is_never_above_what_was_paid(r, mu, rows):
    found = relative_count(r, mu, rows).contract.mechanism
    assert found.rows == rows and found.loss().mu <= mu
    counts = np.arange(3000)
    steps = found.table.steps(counts)
    for gap in range(1, rows + 1):
        moved = (steps[gap:] - steps[:-gap]).max()
        assert moved / float(found.table.spread) <= mu


def test_a_preview_tells_the_policy_and_an_answer_the_same(curator):
    seen = curator.preview(TEXT, epsilon=2.0)
    asked = curator.ask(TEXT, epsilon=2.0)
    assert asked.policy == seen.policy == tuple(zip(SIZES, [eps for _, eps in seen.policy], strict=True))
    epsilons = [eps for _, eps in seen.policy]
    assert epsilons == sorted(epsilons, reverse=True) and epsilons[0] <= seen.epsilon and epsilons[-1] < 0.05
    assert "5 % of √(n² +" in str(seen) and "1,000:" in str(seen) and "1,000:" in str(asked)
    assert json.loads(seen.to_json())["policy"] == [list(pair) for pair in seen.policy]
    assert Answer.from_json(asked.to_json()) == asked
    explained = curator.ask(f"EXPLAIN PRIVACY {TEXT}", epsilon=2.0)
    assert any("least size" in row[0] for row in explained.rows)


def test_the_policy_is_the_same_whatever_the_data(tmp_path):
    found = []
    for patients in (0, 50):
        place = tmp_path / f"{patients}.duckdb"
        found.append(Curator.open(built(place, patients=patients), Policy.read(POLICY)).ask(TEXT, epsilon=1.0).policy)
    assert found[0] == found[1]


def test_several_groups_of_a_person_are_composed(curator):
    seen = curator.preview(TEXT, epsilon=2.0)
    groups, policy = seen.offer.plan.groups, seen.offer.relative.policy
    assert groups > 1
    alone = policy.epsilon(100, seen.delta).upper
    assert dict(seen.policy)[100] > alone
    assert dict(seen.policy)[100] == policy.across([100] * groups).epsilon(seen.delta).upper


def test_answers_keep_the_contract():
    """2,000 draws of each count: the mean error is within 6 standard errors of its promise, passed with less than 1e-8;
    and 95 % hold the truth, of which 92.8 % or less have less than 1e-5."""
    question = parse_question(BY_WARD, Policy.read(POLICY))
    offer = offer_for_relative_error(question, 3.0, 1e-9, 0.05, Mu)
    contract = offer.relative.contract
    for truth in (0, 40, 100_000):
        steps = add_noise(offer, [[truth]] * 2000)
        read_back = offer.readers[question.aggregates[0]].read_all(steps)
        errors = np.array([abs(value - truth) for value, _, _ in read_back])
        assert errors.mean() <= contract.tolerance(truth) + 6 * errors.std() / math.sqrt(2000)
        assert np.mean([low <= truth <= high for _, low, high in read_back]) > 0.928
        assert all(low <= value <= high for value, low, high in read_back)


def test_more_budget_buys_a_lower_floor_and_a_dearer_answer_serves_a_cheaper_one(curator):
    floors = [curator.preview(TEXT, epsilon=e).offer.relative.contract.floor for e in (0.5, 1.0, 2.0)]
    assert floors == sorted(floors, reverse=True)
    dear = curator.ask(TEXT, epsilon=2.0)
    cheap = curator.ask(TEXT, epsilon=0.5)
    assert cheap.rows == dear.rows and not cheap.charged
    other = curator.ask(f"{BY_WARD} WITH RELATIVE ERROR 10 %", epsilon=0.5)  # another contract is another question
    assert other.charged and other.rows != dear.rows
    assert curator.ask(BY_WARD, epsilon=0.5).charged  # and so is none


@pytest.mark.parametrize(
    ("sql", "is_one"),
    [
        (BY_WARD, True),
        ("SELECT ward, COUNT(stay) FROM visits GROUP BY ward", True),
        (
            "SELECT ward, COUNT(DISTINCT patient_id) FROM visits GROUP BY ward HAVING COUNT(DISTINCT patient_id) > 5",
            True,
        ),
        ("SELECT COUNT(*) FROM visits", False),
        ("SELECT ward, COUNT(*), AVG(stay) FROM visits GROUP BY ward", False),
        ("SELECT ward, SUM(stay) FROM visits GROUP BY ward", False),
        ("SELECT ward, MEDIAN(stay) FROM visits GROUP BY ward", False),
    ],
)
def test_one_count_by_group_is_a_contract_and_nothing_else(sql, is_one):
    assert is_grouped_count(parse_question(sql, Policy.read(POLICY))) is is_one


def test_one_number_is_still_refined(curator):
    answer = curator.ask("SELECT COUNT(*) AS n FROM visits WITH RELATIVE ERROR 20 PERCENT", epsilon=4.0)
    ((n, low, high),) = answer.rows
    assert max(high - n, n - low) <= 0.2 * low and answer.policy == ()


@pytest.mark.parametrize("sql", ["SELECT diagnosis, COUNT(*) FROM visits GROUP BY 1 WITH RELATIVE ERROR 5 %",
                                 f"{BY_WARD} WITH RELATIVE ERROR 0.001 %", f"{BY_WARD} WITH RELATIVE ERROR 99.9 %",
                                 f"{BY_WARD} WITH RELATIVE ERROR 5", f"{BY_WARD} WITH RELATIVE ERROR x %",
                                 f"{TEXT} WITH RELATIVE ERROR 5 %", "SELECT 1 WITH RELATIVE ERROR 5 %"])  # fmt: skip
def test_other_contracts_are_refused_before_a_charge(curator, sql):
    with pytest.raises(QueryRefused):
        curator.ask(sql, epsilon=1.0)
    assert curator.ledger.verify().seq == 1


@pytest.mark.parametrize("more", [{}, {"error": 3}, {"epsilon": 1.0, "error": 3}])
def test_a_contract_needs_a_price(curator, more):
    with pytest.raises(InvalidParameter):
        curator.ask(TEXT, **more)
    with pytest.raises(InvalidParameter):
        curator.ask(f"{BY_WARD} WITH RELATIVE ERROR 100 %", epsilon=1.0)
    assert curator.ledger.verify().seq == 1


def test_too_little_for_any_group_is_refused(curator):
    with pytest.raises(QueryRefused, match="larger epsilon"):
        curator.ask(f"{BY_WARD} WITH RELATIVE ERROR 0.01 %", epsilon=1e-6)
    assert curator.ledger.verify().seq == 1


def test_a_budget_of_pure_epsilon_has_no_contracts(tmp_path):
    pure = POLICY.replace("delta = 1e-6", 'kind = "pure"')
    assert pure != POLICY
    curator = Curator.open(built(tmp_path / "p.duckdb"), Policy.read(pure))
    with pytest.raises(QueryRefused, match="Gaussian budget"):
        curator.ask(TEXT, epsilon=1.0)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("SELECT 1 WITH RELATIVE ERROR 5 %", 0.05),
        ("SELECT 1\nwith relative\n error 2.5% ; ", 0.025),
        ("EXPLAIN PRIVACY SELECT 1 WITH RELATIVE ERROR 5 PERCENT", 0.05),
        ("SELECT 1 -- WITH RELATIVE ERROR 5 %", None),
        ("SELECT 'a WITH RELATIVE ERROR 5 %'", None),
        ("SELECT 1 /* WITH RELATIVE ERROR 5 % */", None),
        ("SELECT 'WITH RELATIVE ERROR 5 %", None),
        ("SELECT '--' WITH RELATIVE ERROR 5 %", 0.05),
        ("SELECT 1 WITH RELATIVE ERROR 5", None),
        (" " * 60_000 + "WITH RELATIVE ERROR 5 %" + " " * 5000, 0.05),
    ],
)
def test_the_clause_is_read_where_it_is_one(text, share):
    found = parse_dp_syntax(text)
    assert found.relative_error == share
    assert share is None or "RELATIVE" not in found.text.upper()


def test_the_command_takes_it_too(tmp_path):
    place = built(tmp_path / "clinic.duckdb")
    (tmp_path / "clinic.toml").write_text(POLICY)
    seen = CliRunner().invoke(main, ["preview", str(place), BY_WARD, "--epsilon", "1", "--relative-error", "0.05"])
    assert seen.exit_code == 0 and "least size" in seen.stdout
    asked = CliRunner().invoke(main, ["ask", str(place), TEXT, "--epsilon", "1", "--json"])
    assert json.loads(asked.stdout)["policy"][0][0] == 1
