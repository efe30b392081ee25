"""The service: what every door relies on."""

import asyncio
import errno
import threading
from pathlib import Path

import pytest

from sfumato.errors import (
    BudgetExceeded,
    InvalidParameter,
    LedgerUnavailable,
    NotAllowed,
    NotAuthenticated,
    NotStored,
    QueryRefused,
    ServiceFailed,
    TooManyRequests,
)
from sfumato.server.acts import request_id
from sfumato.server.identity import Role
from sfumato.server.rights import RIGHTS
from sfumato.server.service import Service
from tests.server.conftest import configuration

COUNT = "SELECT COUNT(*) AS n FROM visits"
ACTS = {
    "ask": lambda s, p: s.ask(p, "clinic", COUNT, epsilon=0.1),
    "preview": lambda s, p: s.preview(p, "clinic", COUNT, epsilon=0.1),
    "budget": lambda s, p: s.budget(p, "clinic"),
    "catalogue": lambda s, p: s.catalogue(p, "clinic"),
    "history": lambda s, p: s.history(p, "clinic"),
    "verify": lambda s, p: s.verify(p, "clinic"),
    "audit": lambda s, p: s.audit(p, "clinic"),
    "policy": lambda s, p: s.policy_text(p, "clinic"),
    "check policy": lambda s, p: s.check_policy(p, "clinic", s.data["clinic"].policy_text),
    "publish policy": lambda s, p: s.publish_policy(p, "clinic", s.data["clinic"].policy_text),
    "tokens": lambda s, p: s.tokens(p, "clinic"),
}


def charges(service):
    return len(service.data["clinic"].curator.ledger.verify().costs)


def test_a_key_is_charged_once_and_its_answer_is_found_by_its_id(service, people):
    ann = people["ann"]
    answer = service.ask(ann, "clinic", COUNT, epsilon=0.1, key="monday")
    assert answer.charged
    assert service.ask(ann, "clinic", COUNT, epsilon=0.1, key="monday").rows == answer.rows
    assert service.stored(ann, "clinic", request_id("clinic", "ann", "monday")).rows == answer.rows
    assert charges(service) == 1


@pytest.mark.parametrize("act", ACTS)
def test_each_role_does_what_it_may_and_nothing_else(service, people, act):
    for name in ("ann", "eve", "sam", "owner"):
        if act in RIGHTS[people[name].roles["clinic"]]:
            ACTS[act](service, people[name])
        else:
            with pytest.raises(NotAllowed):
                ACTS[act](service, people[name])


def test_a_token_that_is_revoked_ends_connections_that_last(service, people):
    ACTS["preview"](service, people["ann"])
    service.revoke_token(people["owner"], "clinic", people["ann"].tokens["clinic"])
    for act in ("preview", "ask", "budget"):
        with pytest.raises(NotAuthenticated):
            ACTS[act](service, people["ann"])
    assert charges(service) == 0


def test_a_steward_makes_no_owner_and_ends_none(service, people):
    sam, owner = people["sam"], people["owner"]
    with pytest.raises(NotAllowed):
        service.new_token(sam, "clinic", "mallory", Role.OWNER, 1)
    with pytest.raises(NotAllowed):
        service.revoke_token(sam, "clinic", owner.tokens["clinic"])
    made = service.new_token(sam, "clinic", "dora", Role.AUDITOR, 1)
    assert service.authenticate(made).roles["clinic"] is Role.AUDITOR


def test_the_policy_decides_who_spends_and_the_token_does_not(service, people):
    dora = service.authenticate(service.data["clinic"].identity.new("dora", Role.ANALYST))
    for act in ("ask", "preview"):
        with pytest.raises(QueryRefused, match="does not let 'dora' ask"):
            ACTS[act](service, dora)
    with pytest.raises(BudgetExceeded):
        service.ask(people["bob"], "clinic", COUNT, epsilon=7.0)
    assert charges(service) == 0


def test_nobody_reads_the_answers_or_lines_of_others(service, people):
    service.ask(people["ann"], "clinic", COUNT, epsilon=0.1, key="monday")
    id_ = request_id("clinic", "ann", "monday")
    with pytest.raises(NotStored):
        service.stored(people["bob"], "clinic", id_)
    assert not service.is_running(people["bob"], "clinic", id_)
    assert service.history(people["bob"], "clinic") == []
    assert {line.content["who"] for line in service.history(people["ann"], "clinic")} == {"ann"}
    assert len(service.history(people["eve"], "clinic")) >= 3


def test_a_stored_answer_is_never_bought(service, people, tmp_path):
    """The request is in the log, but a crash came before its charge: looking for its answer must not charge it."""
    ann, id_ = people["ann"], request_id("clinic", "ann", "tuesday")
    lost = {
        "act": "ask",
        "who": "ann",
        "data": "clinic",
        "id": id_,
        "question": COUNT,
        "epsilon": 0.1,
        "key": "tuesday",
    }
    service.audit_log.append(lost)
    with pytest.raises(NotStored):
        service.stored(ann, "clinic", id_)
    assert charges(service) == 0
    grouped = {**lost, "question": "SELECT diagnosis, AVG(stay) FROM visits GROUP BY diagnosis"}
    service.audit_log.append(grouped)
    with pytest.raises(NotStored):
        service.stored(ann, "clinic", id_)
    assert charges(service) == 0


def test_an_answer_is_found_by_its_id_after_a_restart(tmp_path):
    settings = configuration(tmp_path)
    service = Service.open(settings)
    ann = service.authenticate(service.data["clinic"].identity.new("ann", Role.ANALYST))
    rows = service.ask(ann, "clinic", COUNT, epsilon=0.1, key="monday").rows
    service.close()
    again = Service.open(settings)
    assert again.stored(ann, "clinic", request_id("clinic", "ann", "monday")).rows == rows
    assert charges(again) == 1
    again.close()


def test_every_act_is_in_the_audit_log_with_its_price_and_without_values(service, people):
    answer = service.ask(people["ann"], "clinic", COUNT, epsilon=0.1, key="monday")
    with pytest.raises(QueryRefused):
        service.ask(people["ann"], "clinic", "SELECT * FROM visits", epsilon=0.1)
    lines = [line.content for line in service.audit(people["eve"], "clinic")]
    asked, answered, refused = lines[0], lines[1], lines[3]
    assert (asked["act"], asked["who"], asked["question"], asked["door"]) == ("ask", "ann", COUNT, "test")
    assert (answered["epsilon"], answered["delta"], answered["charged"]) == (answer.epsilon, answer.delta, True)
    assert len(answered["answer"]) == 64
    assert refused["refused"] == "QueryRefused"
    text = service.audit_log.path.read_text()
    assert str(answer.rows[0][0]) not in [str(part) for line in lines for part in line.values()]
    assert all(token.hash.hex() not in text for token in service.data["clinic"].identity.list())
    assert service.audit_log.verify() == len(lines) + 1


def test_an_error_that_nobody_foresaw_has_one_text_and_tells_nothing(service, people, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("patient 17 has a secret")

    monkeypatch.setattr(type(service.data["clinic"].curator), "preview", fail)
    with pytest.raises(ServiceFailed) as failure:
        ACTS["preview"](service, people["ann"])
    assert "17" not in str(failure.value) and failure.value.__cause__ is None
    assert "patient 17" not in service.audit_log.path.read_text()


def test_counters_do_not_tell_a_failure_after_the_charge_from_an_answer(service, people, monkeypatch):
    engine = service.data["clinic"].curator.engine
    ACTS["ask"](service, people["ann"])
    done = service.metrics.text()
    monkeypatch.setattr(type(engine), "run", lambda *_: 1 / 0)
    monkeypatch.setattr(type(engine), "keep", lambda *_: 1 / 0)
    with pytest.raises(Exception, match="could not be answered"):
        service.ask(people["ann"], "clinic", f"{COUNT} WHERE stay > 1", epsilon=0.2)
    assert service.metrics.text() == done.replace('act="ask",outcome="done"} 1', 'act="ask",outcome="done"} 2')


def test_too_many_calls_of_one_person_are_refused_and_of_others_are_not(service, people):
    service.admission.concurrent = 1
    with service.admission.enter("ann"):
        with pytest.raises(TooManyRequests):
            ACTS["preview"](service, people["ann"])
        ACTS["preview"](service, people["bob"])


def test_from_asyncio_calls_are_bounded_and_a_long_question_is_answered_later(service, people):
    ann, go = people["ann"], threading.Event()
    service._threads.most = 2

    async def crowd():
        blocked = [service.submit(go.wait), service.submit(go.wait)]
        with pytest.raises(TooManyRequests):
            service.submit(go.wait)
        go.set()
        for one in blocked:
            await asyncio.wrap_future(one)

    asyncio.run(crowd())

    async def patient():
        id_ = await service.ask_within(0.0, ann, "clinic", COUNT, epsilon=0.1, key="long")
        assert id_ == request_id("clinic", "ann", "long")
        await asyncio.wrap_future(service._jobs[id_])
        return await service.call(service.stored, ann, "clinic", id_)

    assert asyncio.run(patient()).columns[0] == "n"
    assert charges(service) == 1


def test_a_policy_is_tried_out_before_it_is_published(service, people):
    text = service.policy_text(people["sam"], "clinic")
    change = service.check_policy(people["sam"], "clinic", text.replace("bob = 0.25", "carl = 0.25"))
    assert change.problem is None and not change.check.wrong
    assert any("bob" in line for line in change.differences) and any("carl" in line for line in change.differences)
    assert service.policy_text(people["sam"], "clinic") == text
    other = service.check_policy(people["sam"], "clinic", text.replace("epsilon = 8.0", "epsilon = 9.0"))
    assert "promise" in other.problem
    with pytest.raises(QueryRefused):
        service.publish_policy(people["owner"], "clinic", text.replace("epsilon = 8.0", "epsilon = 9.0"))
    service.publish_policy(people["owner"], "clinic", text.replace("bob = 0.25", "carl = 0.25"))
    with pytest.raises(QueryRefused, match="does not let 'bob' ask"):
        ACTS["preview"](service, people["bob"])
    assert service.data["clinic"].curator.ledger.shares().named == {"ann": 0.5, "carl": 0.25, "sam": 0.05}


def test_a_policy_that_cannot_be_written_changes_nothing(service, people, monkeypatch):
    """The ledger took the new shares, and the file kept the old ones."""
    text = service.policy_text(people["owner"], "clinic").replace("bob = 0.25", "carl = 0.25")
    before = service.data["clinic"].curator.ledger.verify().seq

    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    for act in (service.publish_policy, service.save_draft):
        with pytest.raises(LedgerUnavailable, match="Read-only file system"):
            act(people["owner"], "clinic", text)
    assert service.data["clinic"].curator.ledger.verify().seq == before
    assert service.data["clinic"].curator.ledger.shares().named["bob"] == 0.25


def test_a_service_that_stops_takes_no_more_calls(service, people):
    service.stop()
    with pytest.raises(TooManyRequests, match="stopping"):
        ACTS["preview"](service, people["ann"])
    assert service.idle()


@pytest.mark.parametrize("epsilon", [float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e300])
def test_a_price_that_makes_no_sense_is_refused_in_words(service, people, epsilon):
    for act in (service.ask, service.preview):
        with pytest.raises(InvalidParameter):
            act(people["ann"], "clinic", "SELECT COUNT(*) FROM visits", epsilon=epsilon)
    assert service.audit_log.verify() > 0
