"""The quicker of the planted bugs; `make mutants` plants all.

Bits are recorded; with others, an audit without a bug would raise an alarm with probability at most 1e-5.
"""

import pytest

from tests.mutants.plant import every

MUTANTS = every()
QUICK = [one for one in MUTANTS if not one.slow]


def test_there_are_thirty_eight_with_a_proof_each():
    assert [one.number for one in MUTANTS] == list(range(1, 40))
    assert all("Proof. " in one.proof for one in MUTANTS)
    assert len(QUICK) >= 15


@pytest.mark.parametrize("one", QUICK, ids=lambda one: f"{one.number}: {one.name}")
def test_a_planted_bug_is_found_and_nothing_without_it(one):
    assert not one.audit().violated
    with one.planted():
        assert one.audit().violated
