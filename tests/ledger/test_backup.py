"""Backups, and restores that give nothing back."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerDamaged, LedgerUnavailable
from sfumato.ledger import Budget, Ledger, PureBudget
from sfumato.ledger.backup import backup, restore
from sfumato.ledger.hash_chain import NoAnchor
from sfumato.ledger.sqlite import SqliteStore
from sfumato.server.identity import TABLES, Identity, Role

LOSS = sf.loss.LaplaceLoss(0.02)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "a.ledger"


@pytest.fixture
def ledger(place):
    made = Ledger.create(place, Budget(1.0, 1e-6))
    made.share({"ann": 0.3}, 0.1)
    charge(made, "first")
    yield made
    made.close()


def charge(ledger, key):
    receipt = ledger.charge(LOSS, question=f"SELECT {key}", who="ann", key=key)
    return ledger.keep(receipt, key.encode())


def spent(ledger):
    return ledger.verify().spent


def test_a_backup_is_a_ledger_in_one_file_and_restores_what_it_holds(ledger, place, tmp_path):
    Identity.open(SqliteStore(place)).new("ann", Role.ANALYST)
    head = backup(ledger, tmp_path / "b", TABLES)
    state = ledger.verify()
    assert (head.seq, head.hash) == (state.seq, state.hash)
    assert not list(tmp_path.glob("b-*"))
    ledger.close()
    place.unlink()
    assert restore(tmp_path / "b", place, extra=TABLES) == (head, 0)
    again = Ledger.open(place)
    assert vars(again.verify()) == vars(state)
    assert again.recall("SELECT first") == b"first"
    assert [token.who for token in Identity.open(SqliteStore(place)).list()] == ["ann"]
    charge(again, "second")
    again.close()


def test_a_backup_overwrites_nothing(ledger, tmp_path):
    backup(ledger, tmp_path / "b")
    with pytest.raises(LedgerUnavailable):
        backup(ledger, tmp_path / "b")


@pytest.mark.parametrize("lost", ["nothing", "ledger", "ledger damaged"])
def test_a_restore_that_would_roll_back_is_refused_and_changes_nothing(ledger, place, tmp_path, lost):
    backup(ledger, tmp_path / "b")
    charge(ledger, "second")
    ledger.close()
    if lost == "ledger":
        place.unlink()
    if lost == "ledger damaged":
        place.write_bytes(b"SQLite format 3\0" + place.read_bytes()[16:5000])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for head in (None, "0" * 64, Ledger.open(tmp_path / "b", anchor=NoAnchor()).verify().hash):
        with pytest.raises(LedgerDamaged, match="give back"):
            restore(tmp_path / "b", place, head=head)
    assert {name: (tmp_path / name).read_bytes() for name in before if name[:1] != "b"} == {
        name: content for name, content in before.items() if name[:1] != "b"
    }


def test_with_the_owners_word_all_that_was_left_counts_as_spent(ledger, place, tmp_path):
    backup(ledger, tmp_path / "b")
    charge(ledger, "second")
    true = spent(ledger)
    ledger.close()
    place.unlink()
    _, missing = restore(tmp_path / "b", place, forfeit="the disk failed")
    assert missing == 2
    again = Ledger.open(place)
    state = again.verify()
    assert state.spent == state.limit and true.within(state.spent)
    for who in ("ann", "bob", "owner"):
        with pytest.raises(BudgetExceeded):
            again.charge(LOSS, question="more", who=who, key=f"{who} again")
    assert again.recall("SELECT first") == b"first"
    assert any("disk failed" in entry.text for entry in again.history())
    again.renew(Budget(1.0, 1e-6), "a new year")
    charge(again, "third")
    again.close()
    assert list(tmp_path.glob("a.ledger.anchor.before-restore-*"))


def test_without_any_sign_of_how_far_it_had_come_a_restore_needs_the_head(ledger, place, tmp_path):
    head = backup(ledger, tmp_path / "b")
    ledger.close()
    elsewhere = tmp_path / "new.ledger"
    with pytest.raises(LedgerDamaged, match="no sign"):
        restore(tmp_path / "b", elsewhere)
    assert restore(tmp_path / "b", elsewhere, head=head.hash) == (head, 0)
    Ledger.open(elsewhere).close()


def test_a_backup_of_another_ledger_is_refused_even_with_the_owners_word(ledger, place, tmp_path):
    other = Ledger.create(tmp_path / "other.ledger", Budget(1.0, 1e-6))
    backup(other, tmp_path / "b")
    with pytest.raises(LedgerDamaged, match="another ledger"):
        restore(tmp_path / "b", place, forfeit="yes")
    with pytest.raises(InvalidParameter, match="no backup"):
        restore(tmp_path / "none", place)
    other.close()


def test_a_changed_backup_is_refused(ledger, place, tmp_path):
    import sqlite3

    backup(ledger, tmp_path / "b")
    ledger.close()
    with sqlite3.connect(tmp_path / "b") as connection:
        connection.execute("UPDATE accounts SET gauss_spent = 0")
    connection.close()
    with pytest.raises(LedgerDamaged):
        restore(tmp_path / "b", place, forfeit="yes")
    assert Ledger.open(place).verify().seq == 4


@pytest.mark.parametrize("promise", [Budget(1.0, 1e-6), PureBudget(1.0)])
@settings(max_examples=8)
@given(before=st.integers(0, 3), after=st.integers(0, 3))
def test_whatever_was_charged_nothing_comes_back(tmp_path_factory, promise, before, after):
    folder = Path(tmp_path_factory.mktemp("restored"))
    place = folder / "a.ledger"
    ledger = Ledger.create(place, promise)
    for i in range(before):
        charge(ledger, f"before {i}")
    backup(ledger, folder / "b")
    for i in range(after):
        charge(ledger, f"after {i}")
    true = spent(ledger)
    ledger.close()
    if after:
        with pytest.raises(LedgerDamaged):
            restore(folder / "b", place)
    restore(folder / "b", place, forfeit="accepted")
    again = Ledger.open(place)
    assert true.within(spent(again))
    again.close()
    shutil.rmtree(folder)
