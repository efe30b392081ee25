"""The ledger without faults: charges, stored answers, caps, plans, renewals, versions."""

import os

import pytest

import sfumato as sf
from sfumato.errors import (
    AlreadyRun,
    BudgetExceeded,
    InvalidParameter,
    KeyReused,
    LedgerDamaged,
    LedgerUnavailable,
    QuestionBlocked,
)
from sfumato.ledger import Amount, Budget, Ledger, PureBudget, ZcdpBudget, sqlite
from sfumato.ledger.tables import as_entry, head

L = sf.loss
SMALL = L.GaussianLoss(0.01)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "clinic.ledger"


@pytest.fixture
def ledger(place):
    return Ledger.create(place, Budget(1.0, 1e-6))


def test_a_charge_is_there_when_the_ledger_is_opened_again(ledger, place):
    receipt = ledger.charge(SMALL, question="SELECT 1", who="ann")
    assert receipt.cost == Amount(gauss=10**11 + 1)  # 0.01 as a double is a little more than 1/100
    ledger.close()
    assert Ledger.open(place).accounts()[""][1] == receipt.cost


def test_a_key_is_charged_once_and_answered_with_the_same_bytes(ledger):
    first = ledger.charge(SMALL, question="SELECT 1", who="ann", key="a")
    assert ledger.keep(first, b"42") == b"42"
    again = ledger.charge(SMALL, question="SELECT 1", who="ann", key="a")
    assert (again.seq, again.answer) == (first.seq, b"42")
    assert ledger.keep(again, b"43") == b"42"
    assert ledger.accounts()[""][1] == first.cost
    with pytest.raises(KeyReused, match="new key"):
        ledger.charge(SMALL, question="SELECT 2", who="ann", key="a")
    assert ledger.charge(SMALL, question="SELECT 2", who="bob", key="a").seq != first.seq


def test_the_same_question_about_the_same_data_is_free(ledger):
    assert ledger.recall("SELECT 1") is None
    ledger.keep(ledger.charge(SMALL, question="SELECT 1"), b"42")
    assert ledger.recall("SELECT 1") == b"42"
    ledger.new_version("April")
    assert ledger.recall("SELECT 1") is None


def test_a_new_version_has_the_number_that_stands_in_the_ledger(ledger):
    for why in ("April", "May"):
        number = ledger.new_version(why)
        with ledger.store.reading() as now:
            assert head(now)[2] == number


@pytest.mark.parametrize("without", ["text", "answer", "hash"])
def test_no_line_is_stored_without_all_of_its_parts(ledger, without):
    row = {"seq": 77, "text": "{}", "answer": b"", "hash": "h", without: None}
    with pytest.raises(LedgerUnavailable), ledger.store.writing() as now:
        now.run("INSERT INTO entries (seq, text, answer, hash) VALUES (?, ?, ?, ?)", *row.values())


@pytest.mark.parametrize("row", [(1, b"{}", b"", "h"), (1, "{}", "", "h"), (1, "{}", b"", b"h"), ("1", "{}", b"", "h")])
def test_a_stored_line_of_other_types_is_no_line(row):
    """SQLite stores any type in any column."""
    with pytest.raises(TypeError):
        as_entry(row)


def test_nothing_is_charged_beyond_the_budget(ledger):
    limit = ledger.accounts()[""][0]
    step = L.GaussianLoss(0.05)
    (price,) = ledger.prices(step)
    for _ in range(limit.gauss // price.gauss):
        ledger.charge(step, question="q")
    before = ledger.verify()
    with pytest.raises(BudgetExceeded, match="nothing was charged"):
        ledger.charge(step, question="q")
    assert ledger.verify() == before


def test_caps_and_plans_are_parts_of_the_whole(ledger):
    whole = ledger.verify().limit
    ledger.cap("bob", Amount(gauss=2 * 10**11, leak=10**6))
    ledger.reserve("training", L.GaussianLoss(0.02))
    with pytest.raises(BudgetExceeded):
        ledger.charge(L.GaussianLoss(0.02), question="q", who="bob")
    assert ledger.charge(SMALL, question="q", who="bob").account == "analyst bob"
    assert ledger.charge(SMALL, question="q", plan="training").account == "plan training"
    ledger.release("training")
    accounts, state = ledger.accounts(), ledger.verify()
    assert accounts["plan training"][0] == accounts["plan training"][1] == Amount(gauss=10**11 + 1)
    assert state.limit == whole
    with pytest.raises(BudgetExceeded):
        ledger.cap("eve", whole)
    with pytest.raises(InvalidParameter, match="no plan"):
        ledger.charge(SMALL, question="q", plan="holidays")


def test_what_a_plan_returns_goes_where_it_came_from(ledger):
    ledger.cap("bob", Amount(gauss=10**11))
    ledger.reserve("training", Amount(gauss=10**11))
    with pytest.raises(InvalidParameter, match="another account"):
        ledger.reserve("training", Amount(gauss=1), who="bob")
    ledger.reserve("training", Amount(gauss=1))
    before = ledger.accounts()["analyst bob"]
    ledger.release("training")
    assert ledger.accounts()["analyst bob"] == before
    assert ledger.accounts()["plan training"] == (Amount(), Amount())
    ledger.reserve("travel", Amount(gauss=10**10), who="bob")
    assert ledger.accounts()["analyst bob"] != before
    ledger.release("travel")
    assert ledger.accounts()["analyst bob"] == before


def test_a_charged_question_may_run_again_once(ledger):
    receipt = ledger.charge(SMALL, question="q")
    ledger.rerun(receipt)
    with pytest.raises(AlreadyRun):
        ledger.rerun(receipt)
    ledger.keep(receipt, b"1")
    with pytest.raises(AlreadyRun):
        ledger.rerun(receipt)


def test_renewal_is_written_down_and_adds_up(ledger):
    before = ledger.verify().limit
    more = Budget(0.5, 1e-7)
    ledger.renew(more, "a new year, decided by the board")
    assert ledger.verify().limit == before + more.amount
    with pytest.raises(InvalidParameter, match="same kind"):
        ledger.renew(PureBudget(1.0), "no")


def test_repricing_lowers_every_counter_or_nothing(ledger):
    receipt = ledger.charge(L.LaplaceLoss(0.01), question="q")
    assert ledger.reprice(receipt.seq, L.LaplaceLoss(0.01)) == receipt.cost
    assert ledger.reprice(receipt.seq, L.LaplaceLoss(0.001)) == receipt.cost  # another loss is another entry


def test_ledgers_are_never_written_over(ledger, place, tmp_path):
    with pytest.raises(LedgerUnavailable, match="already"):
        Ledger.create(place, Budget(1.0, 1e-6))
    with pytest.raises(LedgerUnavailable, match="no file"):
        Ledger.open(tmp_path / "other")
    (tmp_path / "text").write_text("this is not a ledger at all, " * 100)
    with pytest.raises(LedgerUnavailable):
        Ledger.open(tmp_path / "text")


@pytest.mark.parametrize(
    "promise", [Budget(1.0, 1e-6), Budget(1.0, 1e-6, pure=0.1), PureBudget(1.0), ZcdpBudget(1.0, 1e-6)]
)
def test_every_kind_of_budget_charges_laplace_noise(promise, place):
    ledger = Ledger.create(place, promise)
    receipt = ledger.charge(L.LaplaceLoss(0.05), question="q")
    assert receipt.cost != Amount()
    assert Ledger.open(place).promise == promise
    assert promise.loss().delta(promise.epsilon).upper <= promise.delta * (1 + 1e-9)


def test_small_questions_do_not_use_up_the_slack(ledger):
    """Slack saves a larger part of a small price than of a large one, but not a larger part of the budget."""
    for eps in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        for loss in (L.PureLoss(eps), L.LaplaceLoss(eps), L.RandomizedResponseLoss(eps)):
            (price,) = ledger.prices(loss)
            assert price.leak == 0 < price.gauss


def test_a_pure_share_pays_for_pure_losses_while_it_lasts():
    ledger = Ledger.create(":memory:", Budget(1.0, 1e-6, pure=0.1))
    loss = L.LaplaceLoss(0.06)
    first, second = (ledger.charge(loss, question="q").cost for _ in range(2))
    assert first.pure > 0 == first.gauss
    assert second.pure == 0 < second.gauss


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda ledger: ledger.charge("1.0", question="q"), "privacy loss"),
        (lambda ledger: ledger.charge(L.GaussianLoss(0.1, relation=sf.ReplaceOne), question="q"), "neighbour relation"),
        (lambda ledger: ledger.charge(SMALL, question=""), "question"),
        (lambda ledger: ledger.charge(SMALL, question="q", who=3), "who"),
        (lambda ledger: ledger.charge(L.ApproxLoss(0.1, 0.5), question="q"), "cover"),
        (lambda ledger: ledger.keep(ledger.charge(SMALL, question="q"), "42"), "bytes"),
        (lambda ledger: ledger.cap("", Amount()), "who"),
    ],
)
def test_bad_requests_cost_nothing(act, words, ledger):
    with pytest.raises(sf.errors.SfumatoError, match=words):
        act(ledger)
    assert ledger.accounts()[""][1].leak == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(0.0, 1e-6),
        lambda: Budget(1.0, 0.0),
        lambda: Budget(1.0, 1e-6, slack=1e-6),
        lambda: Budget(1.0, 1e-6, pure=1.0),
        lambda: Budget(float("nan"), 1e-6),
        lambda: ZcdpBudget(1.0, 0.0),
        lambda: PureBudget(-1.0),
        lambda: Amount(gauss=-1),
        lambda: Amount(gauss=2**63),
    ],
)
def test_impossible_budgets_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_ledger_in_memory_is_still_there_after_a_fork():
    ledger = Ledger.create(":memory:", Budget(1.0, 1e-6))
    spent = ledger.charge(SMALL, question="SELECT 1").cost
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.accounts()[""][1] == spent
    assert ledger.charge(SMALL, question="SELECT 2").cost == spent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_ledger_in_a_file_has_no_open_connection_while_forking(ledger, place):
    """A child that closed a connection of its parent would drop the parent's locks."""
    ledger.charge(SMALL, question="SELECT 1")
    assert ledger.store._connection is not None
    sqlite.before_fork()
    try:
        assert ledger.store._connection is None
    finally:
        sqlite.after_fork()
    assert ledger.charge(SMALL, question="SELECT 2").seq > 1


def test_an_old_copy_is_noticed_after_a_call_that_wrote_nothing(ledger, place):
    """The newest line that a ledger knows of is remembered, whoever wrote it and whatever was asked since."""
    ledger.close()  # all of it is in one file then
    old = place.read_bytes()
    ledger.charge(SMALL, question="SELECT 1", key="a")
    ledger.charge(SMALL, question="SELECT 1", key="a")  # known: writes nothing
    ledger.close()
    place.write_bytes(old)
    with pytest.raises(LedgerDamaged, match="old copy"):
        ledger.charge(SMALL, question="SELECT 2", key="b")


def test_a_blocked_question_stays_blocked_whatever_happens_to_others():
    ledger = Ledger.create(":memory:", Budget(1.0, 1e-6))
    receipts = [ledger.charge(SMALL, question=name, who="ann") for name in ("first", "second", "third")]
    for receipt, drawn in zip(receipts, (False, True, False), strict=True):
        ledger.block(receipt, drawn=drawn)
    ledger.block(receipts[0], drawn=True)  # the same again, and this time noise may have been seen
    for name in ("first", "second", "third"):
        with pytest.raises(QuestionBlocked):
            ledger.charge(SMALL, question=name, who="bob")
    ledger.unblock(receipts[2].seq, "the disk was full")
    assert ledger.charge(SMALL, question="third", who="bob").first
    for name in ("first", "second"):
        with pytest.raises(QuestionBlocked):
            ledger.charge(SMALL, question=name, who="bob")
    ledger.verify()
