"""With and without one person: status, columns, charge and error text are the same, and exact numbers differ by little.

`make bench-neighbours` asks ten thousand questions; here are a few hundred.
"""

import duckdb
import pytest

from sfumato.curator import Curator
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.questions import Maker, moved, outcome, refusal_of

RULES = Policy.read(POLICY.replace("epsilon = 8.0", "epsilon = 100.0"))
PEOPLE = [6, 27]  # the sixth has seven visits


@pytest.mark.parametrize("seed", range(4))
def test_a_person_moves_the_exact_numbers_of_random_questions_by_little(seed, tmp_path):
    whole = duckdb.connect(str(built(tmp_path / "whole.duckdb")))
    others = [duckdb.connect(str(built(tmp_path / f"{who}.duckdb", without=who))) for who in PEOPLE]
    maker, answered, changes = Maker(seed), 0, 0
    for i in range(60):
        sql = maker.question()
        if refusal_of(sql, RULES) is None:
            answered += 1
            changes += moved(sql, RULES, whole, others[i % len(others)])
    assert answered > 15
    assert changes > 5  # the person counts


def test_what_an_analyst_sees_beside_values_is_the_same(tmp_path):
    one = Curator.open(built(tmp_path / "whole.duckdb"), RULES)
    other = Curator.open(built(tmp_path / "without.duckdb", without=6), RULES)
    maker, seen = Maker(99), set()
    for _ in range(60):
        sql = maker.question()
        mine = outcome(one, sql)
        assert mine == outcome(other, sql)
        seen.add(mine[0][0])
    assert seen == {"answered", "QueryRefused"}  # nothing failed, and both happened
