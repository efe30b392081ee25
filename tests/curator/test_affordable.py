"""A refusal for want of budget speaks of ε and δ, and names the largest ε that fits: it does, and more does not."""

import re

import pytest

import sfumato as sf
from sfumato.curator import Curator
from sfumato.curator.affordable import candidate_epsilon, candidate_index
from sfumato.errors import BudgetExceeded
from sfumato.ledger import Amount, Budget, Ledger, PureBudget, ZcdpBudget
from sfumato.ledger.accounts import round_down_digits
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built

COUNT = "SELECT COUNT(*) FROM visits WHERE cost > {}"
KEYS = "SELECT diagnosis, COUNT(*) FROM visits WHERE cost > {} GROUP BY diagnosis"
PURE = POLICY.replace("delta = 1e-6", 'delta = 1e-6\nkind = "pure"')
ANN = "[analysts]\nann = 0.1\n"


def named(words):
    """The ε that a refusal tells to ask for."""
    return float(re.search(r"epsilon=([0-9.e+-]+) or less", str(words))[1])


def plain(refusal):
    """No units: no long numbers, and none of the counters' names."""
    text = str(refusal.value)
    assert not re.search(r"\d{7,}|\d,\d{3}|units|gauss|leak\b", text)
    assert "asked:" in text
    assert "does not renew by itself" in text
    assert "nothing was charged" in text
    return text


@pytest.mark.parametrize("rules", [POLICY, PURE], ids=["gaussian", "pure"])
@pytest.mark.parametrize("who", ["owner", "ann"])
@pytest.mark.parametrize("question", [COUNT, KEYS, "SELECT ward, AVG(stay) FROM visits WHERE cost > {} GROUP BY ward"])
def test_the_largest_epsilon_that_is_named_fits_and_a_little_more_does_not(tmp_path, rules, who, question):
    curator = Curator.open(built(tmp_path / "c.duckdb"), Policy.read(rules + ANN), ledger=":memory:").analyst(who)
    curator.ask(question.format(1), epsilon=0.37)
    with pytest.raises(BudgetExceeded) as refusal:
        curator.ask(question.format(2), epsilon=12.5)
    text, fits = plain(refusal), named(refusal.value)
    assert "asked:  ε = 12.5 at δ = 1e-09" in text
    assert ("the share of ann" if who == "ann" else "the common account") in text
    seen = curator.preview(question.format(2), epsilon=12.5)
    assert seen.largest == fits
    assert f"at most ε = {fits:g} fits" in str(seen)
    before = curator.ledger.verify().spent
    with pytest.raises(BudgetExceeded) as again:
        curator.ask(
            question.format(2), epsilon=candidate_epsilon(candidate_index(fits))
        )  # the next number of four digits
    assert named(again.value) == fits
    assert curator.ledger.verify().spent == before
    assert curator.ask(question.format(2), epsilon=fits).charged
    with pytest.raises(BudgetExceeded):
        curator.ask(question.format(3), epsilon=fits)


def test_without_anything_left_no_number_is_named(tmp_path):
    rules = Policy.read(POLICY + "[analysts]\nbob = 0\n")
    bob = Curator.open(built(tmp_path / "c.duckdb"), rules).analyst("bob")
    with pytest.raises(BudgetExceeded) as refusal:
        bob.ask(COUNT.format(1), epsilon=0.5)
    assert "the share of bob: nothing is left of ε" in plain(refusal)
    assert "do:     ask the owner" in str(refusal.value)
    assert "nothing fits" in str(bob.preview(COUNT.format(1), epsilon=0.5))
    assert bob.budget.largest == 0


def test_where_delta_is_what_is_missing_it_is_said(tmp_path):
    ledger = Ledger.create(":memory:", Budget(8.0, 1e-6))
    curator = Curator.open(built(tmp_path / "c.duckdb"), Policy.read(POLICY), ledger=ledger)
    ledger.reserve("all of the slack", Amount(leak=ledger.promise.amount.leak))
    with pytest.raises(
        BudgetExceeded, match=r"5e-10 of the budget's δ.*\n.*the common account: 0 of δ is left"
    ) as refusal:
        curator.ask(KEYS.format(1), epsilon=0.5)
    plain(refusal)
    assert curator.ask(COUNT.format(1), epsilon=0.5).charged


def test_what_is_bought_in_two_halves_is_refused_before_the_first(tmp_path):
    curator = Curator.open(built(tmp_path / "c.duckdb"), Policy.read(POLICY), ledger=":memory:")
    curator.ask(COUNT.format(1), epsilon=6.5)
    for buy in (
        lambda eps: curator.suggest_bounds("visits.cost", epsilon=eps),
        lambda eps: curator.ask("SELECT ward, COUNT(*) FROM visits GROUP BY ROLLUP (ward)", epsilon=eps),
        lambda eps: curator.register(epsilon=eps),
    ):
        before = curator.ledger.verify()
        with pytest.raises(BudgetExceeded) as refusal:
            buy(9.5)
        assert "asked:  ε = 9.5 at δ" in plain(refusal)
        assert curator.ledger.verify() == before
    curator.register(epsilon=named(refusal.value))


@pytest.mark.parametrize(
    "promise", [Budget(1.0, 1e-6), PureBudget(1.0), ZcdpBudget(1.0, 1e-6)], ids=lambda p: type(p).__name__
)
def test_a_ledger_without_a_curator_speaks_of_epsilon_too(promise):
    ledger = Ledger.create(":memory:", promise)
    ledger.cap("bob", Amount(*(units // 3 for units in promise.amount)))

    def loss(epsilon):
        if isinstance(promise, PureBudget):
            return sf.loss.PureLoss(epsilon)
        return sf.loss.GaussianLoss(sf.calibrate(sf.loss.GaussianLoss, epsilon=epsilon, delta=1e-6).lower)

    for who in ("owner", "bob"):
        with pytest.raises(BudgetExceeded) as refusal:
            ledger.charge(loss(1.3), question="q", who=who)
        plain(refusal)
        fits = named(refusal.value)
        with pytest.raises(BudgetExceeded):
            ledger.charge(loss(fits * 1.001), question="q", who=who)
        ledger.charge(loss(fits), question="q", who=who)


def test_the_standing_names_it_as_well(tmp_path):
    curator = Curator.open(built(tmp_path / "c.duckdb"), Policy.read(POLICY), ledger=":memory:")
    curator.ask(COUNT.format(1), epsilon=6.5)
    standing = curator.budget
    assert f"up to ε = {standing.largest:g}" in str(standing)
    assert "not by itself" in str(standing)
    assert curator.ask(COUNT.format(2), epsilon=standing.largest).charged


@pytest.mark.parametrize("x", [1e-6, 0.99999, 1.0, 1.2345678, 9.9999, 123.45, 5e-324, 0.1 + 0.2])
def test_rounding_down_never_rounds_up(x):
    assert x * (1 - 1e-3) <= round_down_digits(x) <= x
    if x >= 1e-6:
        assert candidate_epsilon(candidate_index(x) - 1) <= x < candidate_epsilon(candidate_index(x))
    assert round_down_digits(round_down_digits(x)) == round_down_digits(x)
