"""Shares: in whatever order they are set, the total stays the same, and lines and accounts agree."""

import random

import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerDamaged, LedgerError
from sfumato.ledger import Amount, Budget, Ledger
from sfumato.ledger.hash_chain import chain_entry
from sfumato.ledger.state import replay_entries

SMALL = sf.loss.GaussianLoss(0.05)
NAMES = ("ann", "bob", "others", "owner", "eve")


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_done_the_book_and_the_accounts_agree(seed):
    """The tables are compared with the lines by `verify`; nothing is spent that is not in the whole."""
    choose = random.Random(seed)  # which acts are tried
    ledger, charged, whole = Ledger.create(":memory:", Budget(1.0, 1e-6)), Amount(), Budget(1.0, 1e-6).amount
    for i in range(25):
        who = choose.choice(NAMES)
        try:
            match choose.randrange(8):
                case 0 | 1:
                    named = {name: choose.choice((0, 0.1, 0.2, 0.3)) for name in choose.sample(NAMES, 3)}
                    ledger.share(named, choose.choice((True, False, 0, 0.05)))
                case 2:
                    ledger.reserve(f"plan of {who}", Amount(gauss=choose.randrange(10**13)), who=who)
                case 3:
                    ledger.release(f"plan of {who}")
                case 4 if i % 5 == 0:
                    ledger.renew(Budget(1.0, 1e-6), "more")
                    whole = whole + Budget(1.0, 1e-6).amount
                case _:
                    charged = charged + ledger.charge(SMALL, question=f"{i}", who=who).cost
        except (LedgerError, InvalidParameter):
            pass
        state = ledger.verify()
        assert (state.limit, state.spent) == (whole, charged)
        assert charged.within(whole)


def test_a_question_about_shares_is_not_taken_for_an_act():
    ledger = Ledger.create(":memory:", Budget(1.0, 1e-6))
    ledger.charge(SMALL, question='{"kind":"shares","shares":{"eve":1.0},"others":false}', who='"kind":"shares"')
    assert ledger.shares() is None


@pytest.mark.parametrize(
    "limits",
    [
        {"analyst ann": [1, 0, 0, 0], "": [0, 0, 0, 0]},  # less than there was
        {"analyst ann": [2**62, 0, 0, 0], "": [0, 0, 0, 0]},  # more than there was
        {"analyst ann": "all", "": [0, 0, 0, 0]},
        {"": "whole"},
    ],
)
def test_a_line_whose_limits_are_not_the_whole_is_damage(limits):
    ledger = Ledger.create(":memory:", Budget(1.0, 1e-6))
    ledger.charge(SMALL, question="q")
    entries = ledger.history()
    if limits == {"": "whole"}:  # an account that has spent something is left out
        ledger.cap("bob", Amount(gauss=10**13))
        ledger.charge(SMALL, question="r", who="bob")
        entries, limits = ledger.history(), {"": list(ledger.promise.amount), "others": [0, 0, 0, 0]}
    content = {"kind": "shares", "shares": {"ann": 0.5}, "others": False, "limits": limits}
    with pytest.raises(LedgerDamaged):
        replay_entries([*entries, chain_entry(entries[-1].hash, entries[-1].seq + 1, content)])


@pytest.mark.parametrize(("named", "others"), [({"ann": 1.1}, False), ({"ann": 0.5}, 0.6), ({"": 0.1}, 0), ({}, -1)])
def test_odd_shares_are_refused(named, others):
    ledger = Ledger.create(":memory:", Budget(1.0, 1e-6))
    with pytest.raises(InvalidParameter):
        ledger.share(named, others)
    assert ledger.verify().seq == 1


def test_shares_that_were_never_set_leave_everybody_on_the_common_account():
    ledger = Ledger.create(":memory:", Budget(1.0, 1e-6))
    assert ledger.charge(SMALL, question="q", who="anybody").account == ""
    assert ledger.share({"ann": 0.5})
    with pytest.raises(BudgetExceeded):
        ledger.charge(SMALL, question="q2", who="anybody")
    assert ledger.charge(SMALL, question="q2").account == ""
