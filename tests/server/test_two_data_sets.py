"""Two data sets in one service: a token, a proof, a key or an id of the one opens nothing in the other."""

import hmac
import io
import json
from dataclasses import replace

import pytest

from sfumato.errors import NotAllowed, NotAuthenticated, NotStored
from sfumato.server.acts import request_id
from sfumato.server.configuration import DataSet
from sfumato.server.identity import Role, split_token
from sfumato.server.logs import configure, event, log
from sfumato.server.service import Service
from tests.server.conftest import configuration
from tests.server.test_identity import client_proof

COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    one = configuration(folder)
    clinic = one.data["clinic"]
    other = DataSet("other", clinic.source, clinic.policy, str(folder / "other.ledger"))
    found = Service.open(replace(one, data={"clinic": clinic, "other": other}))
    yield found
    found.close()


def new(service, data, who, role, **more):
    return service.data[data].identity.new(who, role, **more)


def test_a_token_opens_the_data_sets_that_know_it_and_no_others(service):
    clinic, other = new(service, "clinic", "ann", Role.OWNER), new(service, "other", "ann", Role.ANALYST)
    ann = service.authenticate(clinic)
    assert ann.roles == {"clinic": Role.OWNER} and service.authenticate(other).roles == {"other": Role.ANALYST}
    for act in (lambda: service.ask(ann, "other", COUNT, epsilon=0.1), lambda: service.tokens(ann, "other"),
                lambda: service.stored(ann, "other", "0" * 32), lambda: service.audit(ann, "other")):  # fmt: skip
        with pytest.raises(NotAllowed):
            act()
    with pytest.raises(NotAllowed):
        service.choose_data(ann, "other")
    # a steward of the one names somebody of the other: the name alone opens nothing there
    assert set(service.authenticate(new(service, "clinic", "bob", Role.STEWARD)).roles) == {"clinic"}


def test_one_token_for_both_has_a_role_in_each_and_ends_in_each(service):
    text = new(service, "clinic", "zoe", Role.AUDITOR)
    new(service, "other", "zoe", Role.ANALYST, text=text)
    assert service.authenticate(text).roles == {"clinic": Role.AUDITOR, "other": Role.ANALYST}
    service.data["other"].identity.revoke(split_token(text)[0])
    assert service.authenticate(text).roles == {"clinic": Role.AUDITOR}
    stolen = new(service, "clinic", "kim", Role.ANALYST)
    new(service, "other", "lee", Role.OWNER, text=stolen)  # the same text under another name
    assert service.authenticate(stolen).roles == {"clinic": Role.ANALYST}


def test_answers_and_keys_of_two_data_sets_and_of_two_people_are_apart(service):
    ann = service.authenticate(new(service, "clinic", "ann", Role.ANALYST))
    bob = service.authenticate(new(service, "clinic", "bob", Role.ANALYST))
    both = new(service, "clinic", "sam", Role.STEWARD)
    new(service, "other", "sam", Role.STEWARD, text=both)
    sam = service.authenticate(both)
    first = service.ask(ann, "clinic", COUNT, epsilon=0.1, key="monday")
    second = service.ask(bob, "clinic", f"{COUNT} WHERE stay > 2", epsilon=0.1, key="monday")
    assert first.charged and second.charged  # the key of the one is none of the other's business
    with pytest.raises(NotStored):
        service.stored(bob, "clinic", request_id("clinic", "ann", "monday"))
    here = service.ask(sam, "clinic", f"{COUNT} WHERE stay > 3", epsilon=0.1, key="monday")
    there = service.ask(sam, "other", f"{COUNT} WHERE stay > 3", epsilon=0.1, key="monday")
    assert here.charged and there.charged
    with pytest.raises(NotStored):
        service.stored(sam, "other", request_id("clinic", "sam", "monday"))


def test_a_proof_for_one_data_set_proves_nothing_to_the_other_and_salts_do_not_tell_which_exist(service):
    text = new(service, "clinic", "max", Role.ANALYST)
    sign_in = service.sign_in
    salts = [sign_in.challenge("max", data).salt for data in ("clinic", "other", "third", "fourth")]
    assert len(set(salts)) == 4
    assert salts[2] == sign_in.challenge("max", "third").salt != sign_in.challenge("eve", "third").salt
    proof, signature = client_proof(text, salts[0], 4096, b"message")
    assert hmac.compare_digest(sign_in.prove("max", "clinic", b"message", proof)[1], signature)
    for data in ("other", "third"):
        tried, _ = client_proof(text, sign_in.challenge("max", data).salt, 4096, b"message")
        for one in (proof, tried):
            with pytest.raises(NotAuthenticated):
                sign_in.prove("max", data, b"message", one)


def test_what_people_send_does_not_make_lines_in_logs(service):
    ann = service.authenticate(new(service, "clinic", "ann", Role.ANALYST))
    hostile = 'SELECT\n{"act": "publish policy", "who": "owner"}\r\n\u2028\x1b[2J\x85'
    before = service.audit_log.verify()
    with pytest.raises(Exception, match="characters that cannot be printed"):
        service.ask(ann, "clinic", hostile, epsilon=0.1, key="k\n\r")
    assert service.audit_log.verify() == before + 2
    assert {line.content["act"] for line in service.audit_log.lines(before, 9)} == {"ask", "answer to"}
    assert len(service.audit_log.path.read_bytes().splitlines()) == before + 2
    stream, kept = io.StringIO(), (log.handlers[:], log.level, log.propagate)
    try:
        configure(None, stream)
        event("log-in failed", source=hostile)
    finally:
        log.handlers[:], log.level, log.propagate = kept
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["source"] == hostile
