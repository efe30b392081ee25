"""Experiments of lectures, as calls."""

import duckdb
import pytest

import sfumato as sf
from sfumato.teach.experiments.trimmed_means import compare_trimmed_means
from sfumato.teach.experiments.truth_beside import ask_beside
from sfumato.teach.figures.smooth_noise_laws import largest_rho

POLICY = """
version = 1
[budget]
epsilon = 50.0
delta = 1e-6
[tables.people]
unit = {each = "row"}
[tables.people.columns]
age = {low = 0, high = 100, step = 1}
region = {type = "integer", low = 1, high = 3}
"""


@pytest.fixture
def people(tmp_path):
    with duckdb.connect(str(tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT i % 90 AS age, 1 + i % 2 AS region FROM range(4000) t(i)")
    (tmp_path / "people.toml").write_text(POLICY)
    return tmp_path / "people.duckdb"


def test_the_exact_answer_stands_beside_the_released_one(people):
    """Keys that are numbers meet their exact twins, and a public key that nobody has counts 0."""
    curator = sf.Curator.open(people, policy=people.with_suffix(".toml"))
    sql = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
    seen = ask_beside(curator, people, [(sql, 20.0), ("SELECT AVG(age) AS mean FROM people", 20.0)])
    assert [cell.truth for cell in seen.cells] == pytest.approx([2000, 2000, 0, (44 * 90 * 44.5 + 780) / 4000])
    assert all(abs(cell.value - cell.truth) < 5 for cell in seen.cells) and 0 <= seen.coverage <= 1
    assert "3 of 3" in str(seen) or "of 3 intervals" in str(seen)


def test_noise_of_exact_losses_beats_the_published_one_and_not_the_local_sensitivity():
    seen = compare_trimmed_means(101, 3, trims=(10,), rates=(0.3,), steps=4)
    assert seen.local.size < seen.ours.size < seen.published.size / 3 < seen.worst_case / 3


def test_the_largest_rho_meets_its_target():
    rho = largest_rho(1.0, 1e-6)
    assert sf.loss.ZcdpLoss(rho).delta(1.0).upper <= 1.01e-6 < sf.loss.ZcdpLoss(1.03 * rho).delta(1.0).upper
