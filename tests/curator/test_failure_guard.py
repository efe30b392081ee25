"""Questions that the engine fails on: run once more, then blocked for everybody until the operator acts."""

from dataclasses import dataclass, field, replace

import pytest

from sfumato.curator import Curator
from sfumato.errors import AlreadyRun, AnswerFailed, InvalidParameter, QuestionBlocked
from sfumato.ledger import Ledger
from sfumato.sql.policy import Policy
from tests.curator.clinic import POLICY, built
from tests.curator.wrapped import Wrapped

COUNT = "SELECT COUNT(*) AS n FROM visits"
RULES = Policy.read(POLICY)


@dataclass
class Broken(Wrapped):
    """An engine that fails the first few times."""

    failures: int
    asked: list[str] = field(default_factory=list)

    def run(self, sql):
        self.asked.append(sql)
        if len(self.asked) <= self.failures:
            raise RuntimeError("a secret value: 42")
        return self.inner.run(sql)


@pytest.fixture
def curator(tmp_path):
    return Curator.open(built(tmp_path / "clinic.duckdb"), RULES)


def broken(curator, failures=10**9):
    return replace(curator, engine=Broken(curator.engine, failures))


def kinds(curator):
    return [entry.content["kind"] for entry in curator.ledger.history()]


def test_one_failure_is_made_good_and_nobody_notices(curator):
    shaky = broken(curator, failures=1)
    assert shaky.ask(COUNT, epsilon=1.0).charged
    assert kinds(curator) == ["opened", "charged", "rerun", "answered"]


def test_after_two_failures_nobody_runs_it_again_and_everybody_reads_the_same(curator, tmp_path):
    failing = broken(curator)
    with pytest.raises(AnswerFailed) as first:
        failing.ask(COUNT, epsilon=1.0, key="a")
    assert "42" not in str(first.value)
    assert len(failing.engine.asked) == 2
    before = curator.ledger.verify()
    told = set()
    for asker, key, epsilon in (
        (failing, "a", 1.0), (failing, None, 1.0), (curator.analyst("ann"), None, 1.0), (curator, None, 0.3),
        (Curator.open(tmp_path / "clinic.duckdb", RULES), "b", 2.0),
    ):  # fmt: skip
        with pytest.raises(QuestionBlocked) as refusal:
            asker.ask("select count(*) from visits v where 1 = 1", epsilon=epsilon, key=key)
        told.add(str(refusal.value))
    assert len(told) == 1
    assert "42" not in told.pop()
    assert curator.ledger.verify() == before  # nothing more was charged, nothing was run
    assert len(failing.engine.asked) == 2
    assert curator.ask("SELECT COUNT(*) FROM visits WHERE cost > 1", epsilon=0.3).charged  # others go on


def test_the_operator_unblocks_it_by_an_act_in_the_book(curator):
    with pytest.raises(AnswerFailed):
        broken(curator).ask(COUNT, epsilon=1.0, key="a")
    (line,) = curator.ledger.blocked()
    spent = curator.ledger.verify().spent
    curator.ledger.unblock(line.content["charge"], "the disk was full")
    assert curator.ledger.blocked() == []
    assert kinds(curator)[-1] == "unblocked"
    answer = curator.ask(COUNT, epsilon=1.0, key="a")  # who was charged is not charged again
    assert curator.ledger.verify().spent == spent
    assert curator.ask(COUNT, epsilon=1.0).rows == answer.rows
    with pytest.raises(InvalidParameter, match="only a blocked question"):
        curator.ledger.unblock(line.content["charge"], "again")


def test_it_can_be_blocked_and_unblocked_again(curator):
    failing = broken(curator)
    for _ in range(3):
        with pytest.raises(AnswerFailed):
            failing.ask(COUNT, epsilon=1.0, key="a")
        (line,) = curator.ledger.blocked()
        curator.ledger.unblock(line.content["charge"], "it looks well")
    assert len(curator.ledger.verify().costs) == 1
    assert Ledger.open(curator.ledger.store.path).verify().blocks == {}


def test_what_failed_after_its_noise_was_drawn_is_never_run_again(curator, monkeypatch):
    """Whether it fails might depend on the noise: drawn anew until it does not, the noise would be another."""

    def failing(offer, tables):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("sfumato.curator.release.release", failing)
        with pytest.raises(AnswerFailed):
            curator.ask(COUNT, epsilon=1.0, key="a")
    with pytest.raises(QuestionBlocked):
        curator.ask(COUNT, epsilon=1.0, key="a")
    (line,) = curator.ledger.blocked()
    curator.ledger.unblock(line.content["charge"], "more memory")
    with pytest.raises(AlreadyRun):
        curator.ask(COUNT, epsilon=1.0, key="a")
    assert curator.ask(COUNT, epsilon=1.0, key="b").charged
    curator.ledger.verify()


def test_a_blocked_question_that_was_answered_before_is_still_answered_from_store(curator):
    first = curator.ask(COUNT, epsilon=0.5)
    with pytest.raises(AnswerFailed):
        broken(curator).ask(COUNT, epsilon=1.0)
    assert curator.ask(COUNT, epsilon=0.5).rows == first.rows
    with pytest.raises(QuestionBlocked):
        curator.ask(COUNT, epsilon=1.0)


# ---- stored answers that are more exact than asked for --------------------------------------------------------------


def test_a_stored_answer_serves_whoever_asks_for_less(curator):
    first = curator.ask(COUNT, epsilon=2.0)
    spent = curator.ledger.verify().spent
    seen = curator.preview(COUNT, epsilon=0.5)
    again = curator.ask(COUNT, epsilon=0.5)
    assert not again.charged
    assert seen.free
    assert again.rows == first.rows  # its interval too is that of the better answer
    assert again.epsilon == first.epsilon == seen.epsilon
    assert not curator.ask(COUNT, error=1000).charged
    assert curator.ledger.verify().spent == spent


def test_who_asks_for_more_pays_for_more_and_a_key_keeps_its_answer(curator):
    rough = curator.ask(COUNT, epsilon=0.2, key="a")
    exact = curator.ask(COUNT, epsilon=2.0)
    assert exact.charged
    assert curator.ask(COUNT, epsilon=0.2, key="a").rows == rough.rows
    assert curator.ask(COUNT, epsilon=0.2).rows == exact.rows
    assert curator.ask(COUNT, epsilon=0.2, key="new").rows == exact.rows


def test_private_keys_are_served_only_with_the_same_chance_to_slip_through(curator):
    groups = "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis"
    curator.ask(groups, epsilon=2.0)
    assert not curator.ask(groups, epsilon=1.0).charged
    stricter = replace(curator, policy=replace(RULES, question_delta=RULES.question_delta / 10))
    assert stricter.ask(groups, epsilon=1.0).charged


def test_another_version_of_the_data_is_another_question(curator):
    curator.ask(COUNT, epsilon=2.0)
    curator.ledger.new_version("May")
    assert curator.ask(COUNT, epsilon=0.5).charged
