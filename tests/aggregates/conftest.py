"""A clinic with friends, open for questions."""

from dataclasses import replace

import duckdb
import pytest

from sfumato.curator import Curator
from tests.aggregates.friends import RING, RULES, graph
from tests.curator.clinic import built


@pytest.fixture
def friends(tmp_path):
    place = built(tmp_path / "clinic.duckdb", patients=2000)
    with duckdb.connect(str(place)) as connection:
        graph(connection, [(str(i), str(j), 2000 + i % 20) for i, j in RING])
    return Curator.open(place, replace(RULES, epsilon=100.0))
