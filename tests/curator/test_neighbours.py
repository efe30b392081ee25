"""With and without one person: status, columns, charge and error text are the same.

That exact numbers differ by little is checked for questions of the whole grammar (tests/fuzz).
"""

import pytest

from sfumato.curator import Curator
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.questions import Maker, outcome

RULES = Policy.read(POLICY.replace("epsilon = 8.0", "epsilon = 100.0"))


@pytest.mark.slow
def test_what_an_analyst_sees_beside_values_is_the_same(tmp_path):
    one = Curator.open(built(tmp_path / "whole.duckdb"), RULES)
    other = Curator.open(built(tmp_path / "without.duckdb", without=6), RULES)
    maker, seen = Maker(99), set()
    for _ in range(40):
        sql = maker.question()
        mine = outcome(one, sql)
        assert mine == outcome(other, sql)
        seen.add(mine[0][0])
    assert seen == {"answered", "QueryRefused"}  # nothing failed, and both happened
