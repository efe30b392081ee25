"""Doors decide nothing: what they may import, and how long their files may be."""

import ast
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[2] / "sfumato" / "server"
DOORS = ("http", "console", "postgres", "agents")
NEVER = ("ledger", "noise", "mechanisms", "aggregates", "sampling", "engines.duckdb", "engines.postgres",
         "engines.pool", "server.admission", "server.audit_log", "server.open_data", "server.spending")  # fmt: skip
FILES = [place for door in DOORS for place in sorted((SERVER / door).glob("*.py"))]


@pytest.mark.parametrize("place", FILES, ids=lambda place: f"{place.parent.name}/{place.name}")
def test_a_door_imports_nothing_that_decides(place):
    tree = ast.parse(place.read_text("utf-8"))
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    found |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    allowed = {"sfumato.engines.duckdb"} if place.name == "shadow.py" else set()  # it runs in a process without data
    for name in found - allowed:
        assert not any(name == f"sfumato.{one}" or name.startswith(f"sfumato.{one}.") for one in NEVER), name


@pytest.mark.parametrize("place", sorted(SERVER.rglob("*.py")), ids=lambda place: f"{place.parent.name}/{place.name}")
def test_a_file_is_read_in_one_sitting(place):
    assert len(place.read_text("utf-8").splitlines()) <= 420
