"""Who may ask, and how much: the policy says it, the ledger keeps it, whichever way a curator is made."""

from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.curator import Curator
from sfumato.errors import BudgetExceeded, InvalidParameter, PolicyError, QueryRefused
from sfumato.ledger import Amount, Budget, Ledger, PureBudget
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

COUNT = "SELECT COUNT(*) FROM visits WHERE cost > {}"
BUDGET = Budget(8.0, 1e-6)


def policy(analysts):
    return Policy.read(POLICY + f"[analysts]\n{analysts}\n")


@pytest.fixture
def data(tmp_path):
    return built(tmp_path / "c.duckdb")


@pytest.fixture
def ledger():
    return Ledger.create(":memory:", BUDGET)


PLACES = {
    "beside the data": lambda folder, budget: None,
    "a path": lambda folder, budget: folder / "a.ledger",
    "a text": lambda folder, budget: str(folder / "b.ledger"),
    "a ledger": lambda folder, budget: Ledger.create(folder / "c.ledger", budget),
    "a ledger in memory": lambda folder, budget: Ledger.create(":memory:", budget),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_way_to_a_ledger_sets_the_shares(data, tmp_path, place):
    curator = Curator.open(data, policy("ann = 0.01"), ledger=PLACES[place](tmp_path, BUDGET))
    with pytest.raises(BudgetExceeded):
        curator.analyst("ann").ask(COUNT.format(1), epsilon=0.9)
    assert curator.ledger.verify().spent == Amount()
    assert curator.ask(COUNT.format(1), epsilon=0.9).charged


@pytest.mark.parametrize("other", [Budget(50.0, 1e-6), Budget(8.0, 1e-3), PureBudget(8.0, 1e-6)])
def test_every_way_to_a_ledger_compares_the_promises(data, tmp_path, ledger, other):
    found = Ledger.create(tmp_path / "other.ledger", other)
    rules = policy("ann = 0.01")
    ways = [
        lambda: Curator.open(data, rules, ledger=found),
        lambda: Curator.open(data, rules, ledger=tmp_path / "other.ledger"),
        lambda: Curator(curator.engine, rules, found),
        lambda: replace(curator, ledger=found),
        lambda: replace(curator, policy=replace(rules, epsilon=50.0)),
    ]
    curator = Curator.open(data, rules, ledger=ledger)
    for way in ways:
        with pytest.raises(PolicyError, match="the policy's budget is not the ledger's"):
            way()
    assert found.verify().seq == 1


def test_a_ledger_about_other_neighbours_is_refused_at_opening(data):
    other = Ledger.create(":memory:", Budget(8.0, 1e-6, relation=sf.ReplaceOne))
    with pytest.raises(PolicyError, match="neighbour relation"):
        Curator.open(data, Policy.read(POLICY), ledger=other)


def test_an_anchor_beside_an_open_ledger_is_not_passed_over(data, ledger, tmp_path):
    with pytest.raises(InvalidParameter, match="has its anchor already"):
        Curator.open(data, Policy.read(POLICY), ledger=ledger, anchor=tmp_path / "an.anchor")


def test_a_curator_put_together_by_hand_does_not_draw_on_another_account(data, ledger):
    engine = Curator.open(data, policy("ann = 0.01")).engine
    for who, rules in (("ann", policy("ann = 0.01")), ("typo", policy("ann = 0.01\nothers = 0.01"))):
        with pytest.raises(PolicyError, match="does not hold the shares"):
            Curator(engine, rules, ledger, who).ask(COUNT.format(1), epsilon=0.01)
    assert ledger.verify().seq == 1


def test_nothing_is_nothing(data):
    curator = Curator.open(data, policy("ann = 0.5\nbob = 0"))
    bob = curator.analyst("bob")
    with pytest.raises(BudgetExceeded, match="the share of bob: nothing is left of ε"):
        bob.ask(COUNT.format(1), epsilon=0.001)
    assert not bob.preview(COUNT.format(1), epsilon=0.001).fits
    assert bob.budget.left == 0
    curator.analyst("ann").ask(COUNT.format(1), epsilon=0.5)
    assert not bob.ask(COUNT.format(1), epsilon=0.5).charged  # in store: it costs nothing


@pytest.mark.parametrize("name", ["typo", "Ann", "ann ", "ａｎｎ", "a\u200bnn", "Owner", "", "analyst ann", "others"])
def test_who_is_not_named_may_not_ask_where_somebody_is(data, name):
    curator = Curator.open(data, policy("ann = 0.5"))
    before = curator.ledger.verify().seq
    for way in (lambda: curator.analyst(name), lambda: replace(curator, who=name)):
        with pytest.raises(QueryRefused, match=r"does not let|looks the same"):
            way()
    with pytest.raises(BudgetExceeded, match="does not name"):
        curator.ledger.charge(sf.loss.GaussianLoss(0.01), question="past the curator", who="typo")
    assert curator.ledger.verify().seq == before
    assert curator.ask(COUNT.format(1), epsilon=0.5).charged  # the owner's, from what is left


def test_the_owner_has_what_is_left_or_what_the_policy_says(data):
    curator = Curator.open(data, policy("ann = 0.75\nothers = 0.25"))
    with pytest.raises(BudgetExceeded, match="the common account"):
        curator.ask(COUNT.format(1), epsilon=0.01)
    curator = Curator.open(data, policy("ann = 0.5\nowner = 0.1"))
    assert curator.ledger.account("owner")[0] == "analyst owner"
    assert curator.ask(COUNT.format(1), epsilon=0.1).charged


def test_all_others_share_one_account(data):
    curator = Curator.open(data, policy("ann = 0.5\nothers = 0.1"))
    whole = curator.ledger.promise.amount
    assert curator.ledger.accounts()["others"] == (Amount(*(units // 10 for units in whole)), Amount())
    curator.analyst("eve").ask(COUNT.format(1), epsilon=0.5)
    assert curator.analyst("zoe").budget.left == curator.analyst("eve").budget.left < 1
    assert curator.analyst("ann").budget.left == curator.budget.left == 1
    with pytest.raises(BudgetExceeded, match="whom the policy does not name"):
        for i in range(10):
            curator.analyst("eve").ask(COUNT.format(i), epsilon=1.0)


def test_where_nobody_is_named_or_the_policy_says_so_everybody_draws_on_what_is_left(data, tmp_path):
    for i, rules in enumerate((Policy.read(POLICY), policy("ann = 0.5\nothers = true"))):
        curator = Curator.open(data, rules, ledger=tmp_path / f"{i}.ledger")
        curator.analyst("anybody").ask(COUNT.format(1), epsilon=0.5)
        assert curator.budget.left < 1


def test_others_may_be_refused_where_nobody_is_named(data):
    curator = Curator.open(data, policy("others = false"))
    with pytest.raises(QueryRefused, match="nobody may"):
        curator.analyst("ann")
    assert curator.ask(COUNT.format(1), epsilon=0.5).charged


def test_a_changed_share_is_an_act_and_takes_effect(data, ledger):
    def left(analysts, who="ann"):
        curator = Curator.open(data, policy(analysts), ledger=ledger)
        account, limit, spent = ledger.account(who)
        assert curator.ledger.verify().limit == ledger.promise.amount
        return account, limit.gauss / ledger.promise.amount.gauss, spent

    assert left("ann = 0.25")[:2] == ("analyst ann", pytest.approx(0.25))
    seq = ledger.verify().seq
    assert left("ann = 0.25")[1] == pytest.approx(0.25)
    assert ledger.verify().seq == seq  # nothing changed, nothing written
    assert left("ann = 0.5")[1] == pytest.approx(0.5)
    assert [entry.content["kind"] for entry in ledger.history()] == ["opened", "shares", "shares"]
    Curator.open(data, policy("ann = 0.5"), ledger=ledger).analyst("ann").ask(COUNT.format(1), epsilon=1.0)
    spent = ledger.account("ann")[2]
    assert left("ann = 0.01") == ("analyst ann", pytest.approx(spent.gauss / ledger.promise.amount.gauss), spent)
    assert left("ann = 0")[1:] == (pytest.approx(spent.gauss / ledger.promise.amount.gauss), spent)
    assert left("bob = 0.1")[:2] == ("others", 0)  # who is not named any more is one of the others
    assert ledger.accounts()["former analyst ann"] == (spent, spent)
    assert left("bob = 0.1\nothers = 0.3")[:2] == ("others", pytest.approx(0.3))
    assert left("ann = 0.2\nothers = true") == ("analyst ann", pytest.approx(0.2), spent)  # what was spent stays so
    Curator.open(data, Policy.read(POLICY), ledger=ledger)
    assert ledger.account("ann")[0] == ledger.account("bob")[0] == ""
    assert ledger.verify().spent == spent


def test_a_share_that_was_lowered_below_what_is_spent_does_not_come_back_with_a_renewal(data, ledger):
    ann = Curator.open(data, policy("ann = 0.1"), ledger=ledger).analyst("ann")
    while ann.preview(COUNT.format(ledger.verify().seq), epsilon=0.5).fits:
        ann.ask(COUNT.format(ledger.verify().seq), epsilon=0.5)
    limit, spent = ledger.account("ann")[1:]
    Curator.open(data, policy("ann = 0"), ledger=ledger)
    ledger.renew(BUDGET, "a new year")
    assert ledger.account("ann")[1:] == (spent, spent)
    assert spent.within(limit)


def test_shares_are_parts_of_all_budgets_together(data, ledger):
    Curator.open(data, policy("ann = 0.25\nothers = 0.125"), ledger=ledger)
    ledger.renew(BUDGET, "a new year")
    whole = BUDGET.amount + BUDGET.amount
    assert ledger.accounts()["analyst ann"][0] == Amount(*(units // 4 for units in whole))
    assert ledger.accounts()["others"][0] == Amount(*(units // 8 for units in whole))
    seq = ledger.verify().seq
    Curator.open(data, policy("ann = 0.25\nothers = 0.125"), ledger=ledger)
    assert ledger.verify().seq == seq


def test_a_share_that_does_not_fit_what_was_spent_is_refused_and_nothing_changes(data, ledger):
    curator = Curator.open(data, policy("ann = 0.1"), ledger=ledger)
    curator.ask(COUNT.format(1), epsilon=6.0)
    before = ledger.verify()
    for other in ("ann = 0.9", "others = 0.9", "ann = 0.1\nbob = 0.85"):
        with pytest.raises(BudgetExceeded, match="no longer fit into the budget"):
            Curator.open(data, policy(other), ledger=ledger)
        assert ledger.verify() == before
    assert curator.analyst("ann").ask(COUNT.format(2), epsilon=0.1).charged


def test_the_policy_that_was_opened_last_holds_for_all(data, ledger):
    first = Curator.open(data, policy("ann = 0.5\nbob = 0.1"), ledger=ledger)
    Curator.open(data, policy("ann = 0.0001"), ledger=ledger)
    with pytest.raises(BudgetExceeded, match="the share of ann"):
        first.analyst("ann").ask(COUNT.format(1), epsilon=1.0)
    with pytest.raises(PolicyError, match="another policy was opened since"):
        first.analyst("bob").ask(COUNT.format(1), epsilon=0.01)
    assert ledger.verify().spent == Amount()


def test_what_is_reserved_from_a_share_counts_as_a_part_of_it(data, ledger):
    Curator.open(data, policy("ann = 0.5"), ledger=ledger)
    share = ledger.account("ann")[1]
    ledger.reserve("report", Amount(gauss=share.gauss // 2), who="ann")
    seq = ledger.verify().seq
    Curator.open(data, policy("ann = 0.5"), ledger=ledger)
    assert ledger.verify().seq == seq
    Curator.open(data, policy("ann = 0.25"), ledger=ledger)
    assert ledger.account("ann")[1].gauss <= 1  # all of it is reserved
    Curator.open(data, policy("bob = 0.25"), ledger=ledger)
    ledger.release("report")
    assert ledger.verify().accounts["analyst bob"][0].gauss == ledger.promise.amount.gauss // 4
    assert "analyst ann" not in ledger.accounts()
    with pytest.raises(InvalidParameter, match="the policy has withdrawn the share of"):
        ledger.cap("ann", Amount(gauss=1))


def test_a_ledger_of_an_earlier_version_goes_on(data, ledger):
    """Shares were caps then, rounded through doubles."""
    ledger.cap("ann", Amount(*(int(units * 0.3) for units in BUDGET.amount)))
    ledger.charge(sf.loss.GaussianLoss(0.1), question="long ago", who="ann")
    spent = ledger.account("ann")[2]
    curator = Curator.open(data, policy("ann = 0.3"), ledger=ledger)
    assert ledger.account("ann")[2] == spent
    assert curator.analyst("ann").ask(COUNT.format(1), epsilon=0.5).charged


def test_caps_set_by_hand_hold_under_a_policy_that_names_nobody(data, ledger):
    ledger.cap("ann", Amount(gauss=10))
    with pytest.raises(BudgetExceeded, match="the share of ann"):
        Curator.open(data, Policy.read(POLICY), ledger=ledger).analyst("ann").ask(COUNT.format(1), epsilon=0.5)


@pytest.mark.parametrize(
    ("analysts", "complaint"),
    [
        ("ann = 0.6\nothers = 0.6", "sum to 1.2"),
        ("ann = 0.1\nAnn = 0.1", "case, spaces or hidden"),
        ('" ann" = 0.1', "spaces around"),
        ('"" = 0.1', "1 to 200"),
        ("ann = true", "number from 0 to 1"),
        ("ann = -0.1", "number from 0 to 1"),
        ("ann = nan", "number from 0 to 1"),
        ('others = "none"', "number from 0 to 1"),
    ],
)
def test_unclear_shares_are_refused(analysts, complaint):
    with pytest.raises(PolicyError, match=complaint):
        policy(analysts)


def test_shares_are_added_up_as_they_are_written():
    assert policy("a = 0.1\nb = 0.2\nc = 0.3\nothers = 0.4").others == 0.4  # in doubles: 1.0000000000000002


def test_what_is_left_to_others_is_nobodys_share():
    stated = policy("ann = 0.75\nothers = 0.25")
    assert (stated.analysts, stated.others) == ({"ann": 0.75}, 0.25)
