"""MODE: which values its statement reads, and by how many people one leads."""

import math
from pathlib import Path
from statistics import NormalDist

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato.aggregates.mode import ModeChoice, StableMode, vote_statement
from sfumato.aggregates.price import Mu, Pure
from sfumato.aggregates.registry import parse_question
from sfumato.sql.dialects import DIALECTS
from sfumato.sql.dialects.base import raw
from sfumato.sql.emit.values import X
from tests.aggregates.friends import RULES, way_of


def test_a_mode_reads_two_values_of_many_and_all_of_few(friends):
    engine = friends.engine
    few, text = way_of("SELECT ward, MODE(stay > 5) FROM visits GROUP BY ward")
    assert isinstance(few, ModeChoice) and len(engine.run(text)) <= 6
    many, text = way_of("SELECT MODE(day) FROM visits")
    assert isinstance(many, StableMode) and len(engine.run(text)) == 2
    number, _ = way_of("SELECT MODE(stay) FROM visits")
    assert isinstance(number, ModeChoice) and len(number.choices) == 481  # 0 … 60 in eighths


@pytest.mark.parametrize("name", ["duckdb", "postgres", "spark"])
def test_a_mode_of_days_is_read_as_texts_and_one_of_texts_as_it_is(name):
    """The answer holds the value itself, and a moment of an engine's own has no place in it."""
    found = {}
    for column in ("day", "diagnosis"):
        plan = parse_question(f"SELECT MODE({column}) FROM visits", RULES).plan
        to = DIALECTS[name].about(plan)
        written = to.date_text(raw(X)).sql(name)
        found[column] = written in vote_statement(plan, plan.standalone[0], 7, to)
    assert found == {"day": True, "diagnosis": False}


def test_a_lead_counts_in_people():
    way, _ = way_of("SELECT MODE(day) FROM visits")
    assert way.plan.rows == 3
    for lead, people in [(0, 0), (1, 0), (3, 0), (4, 1), (6, 1), (7, 2)]:
        found = way.lead([("a", 10 + lead), ("b", 10)])
        assert found.distance == people and (found.value == "a" or not lead)
    assert way.lead([]).distance == 0 and way.lead([("a", 4)]).distance == 1


@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
def test_modes_of_all_groups_cost_together_what_one_costs(mu):
    """A unit moves the counts of group k by at most m_k, all up, so a range of rate·m_k; ‖m‖ is at most `values`."""
    values, rng = 5_000, np.random.default_rng(5)
    units = [np.array([values]), np.full(10_000, values / 100), values * np.array([0.8, 0.6])]
    units += [values * x / np.linalg.norm(x) for x in np.abs(rng.normal(size=(40, 7))) ** 3]
    price = lambda r: 2 * NormalDist().inv_cdf(1 / (1 + math.exp(-r / 2)))  # noqa: E731
    by_group, alone = (Mu(mu).weighted_selection_mechanism(values, keyed) for keyed in (True, False))
    assert max(math.sqrt(sum(price(float(by_group.rate) * m) ** 2 for m in unit)) for unit in units) <= mu * (1 + 1e-9)
    assert mu * 0.999 <= price(float(alone.rate) * values) <= mu * (1 + 1e-9)
    pure = Pure(mu).weighted_selection_mechanism(values, True)
    assert float(pure.rate) * values <= mu


@pytest.mark.parametrize("budget", ["epsilon = 900.0\ndelta = 1e-6", 'epsilon = 900.0\nkind = "pure"'])
def test_a_mode_counts_all_rows_of_a_person_in_all_groups_but_no_person_outvotes_many(tmp_path, budget):
    """60 people with two rows of b and one of a in each of 12 months; one person, who is not seen for this
    price, has 5,000 rows of c in each."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 'p' || u AS u, m, k FROM range(60) AS x(u), range(12) AS y(m),"
            " (VALUES ('a'), ('b'), ('b')) AS z(k) UNION ALL SELECT 'bot', m, 'c' FROM range(12) AS y(m), range(5000)"
        )
    Path(tmp_path / "t.toml").write_text(
        f'version = 1\n[budget]\n{budget}\n[tables.t]\nunit = "u"\n[tables.t.columns]\n'
        'm = {type = "integer", low = 0, high = 11}\nk = {keys = ["a", "b", "c"]}\n'
    )
    curator = sf.Curator.open(tmp_path / "t.duckdb", policy=tmp_path / "t.toml")
    answer = curator.ask("SELECT m, MODE(k) AS top FROM t GROUP BY m", epsilon=20)  # fails with less than 1e-6
    assert answer.column("top") == ["b"] * 12 and "modes are of rows with weights" in answer.note


def test_of_different_values_there_may_be_more_than_are_counted(tmp_path):
    """One person has 30 values, and one row of each counts: 30 must not be outside."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 'p' || (u % 3) AS u, 'v' || u AS v, u % 2 = 0 AS w FROM range(90) AS x(u)"
        )
    Path(tmp_path / "t.toml").write_text(
        'version = 1\n[budget]\nepsilon = 90.0\ndelta = 1e-6\n[tables.t]\nunit = "u"\n[tables.t.columns]\n'
        'v = {type = "text"}\nw = {type = "boolean"}\n'
    )
    curator = sf.Curator.open(tmp_path / "t.duckdb", policy=tmp_path / "t.toml")
    answer = curator.ask("SELECT COUNT(DISTINCT v) AS n, COUNT(DISTINCT w) AS k FROM t", epsilon=40)
    ((n, low, high, _, _, most),) = answer.rows
    assert 1 <= n <= 5 and low <= 3 and high is None and 2 <= most <= 6 and "more different values" in answer.note
    cut = curator.ask("SELECT COUNT(DISTINCT v) AS n FROM t", epsilon=40, rows=50)
    assert cut.rows[0][2] is not None and 80 <= cut.rows[0][0] <= 100
