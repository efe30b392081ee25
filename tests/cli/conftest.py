"""The command line on a small clinic."""

import pytest
from click.testing import CliRunner

from sfumato.cli import main
from tests.curator.clinic import POLICY, built

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # output goes to a file here, whatever the terminal of the tests
    runner = CliRunner()
    return lambda *words: runner.invoke(main, [str(word) for word in words])


@pytest.fixture
def clinic(tmp_path):
    place = built(tmp_path / "clinic.duckdb", patients=200)
    (tmp_path / "clinic.toml").write_text(POLICY)
    return place
