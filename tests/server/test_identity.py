"""Tokens: who somebody is, and nothing else."""

import base64
import hashlib
import hmac
import sqlite3

import pytest

from sfumato.errors import InvalidParameter, NotAuthenticated
from sfumato.ledger import Budget, Ledger
from sfumato.ledger.sqlite import SqliteStore
from sfumato.server.identity import DAY, Identity, Role, split_token


@pytest.fixture
def moment():
    return [1_000_000.0]


@pytest.fixture
def identity(tmp_path, moment):
    Ledger.create(tmp_path / "a.ledger", Budget(1.0, 1e-6)).close()
    return Identity.open(SqliteStore(tmp_path / "a.ledger"), lambda: moment[0])


def test_a_token_names_its_holder_until_it_expires(identity, moment):
    text = identity.new("ann", Role.ANALYST, days=2)
    assert (identity.authenticate(text).who, identity.authenticate(text).role) == ("ann", Role.ANALYST)
    moment[0] += 2 * DAY - 1
    assert identity.authenticate(text).who == "ann"
    moment[0] += 1
    with pytest.raises(NotAuthenticated):
        identity.authenticate(text)


def test_a_revoked_token_ends_at_once_and_others_of_the_same_person_last(identity):
    first, second = identity.new("ann", Role.ANALYST), identity.new("ann", Role.AUDITOR)
    assert identity.revoke(split_token(first)[0])
    assert not identity.revoke(split_token(first)[0])
    with pytest.raises(NotAuthenticated):
        identity.authenticate(first)
    assert identity.authenticate(second).role is Role.AUDITOR


def test_every_refusal_has_the_same_words(identity, moment):
    good = identity.new("ann", Role.ANALYST)
    expired = identity.new("bob", Role.ANALYST, days=1)
    moment[0] += 3 * DAY
    id_, secret = split_token(good)
    wrong = [
        "", "sf", "Bearer", "sf__", f"sf_{id_}_", f"sf_{id_}_{'A' * 43}", good[:-1], good + "A", good.upper(), expired,
        f"sf_00000000_{secret.decode()}", f"sf_{id_}_{'é' * 43}", "x" * 10_000, "sf_' OR 1=1 --_" + "A" * 43,
        "\0" + good,
    ]  # fmt: skip
    said = set()
    for text in wrong:
        with pytest.raises(NotAuthenticated) as refusal:
            identity.authenticate(text)
        said.add(str(refusal.value))
    assert len(said) == 1
    assert identity.authenticate(good).who == "ann"


def test_nothing_that_opens_a_door_is_stored(identity, tmp_path):
    text = identity.new("ann", Role.ANALYST)
    secret = split_token(text)[1].decode()
    identity.store.close()
    with sqlite3.connect(tmp_path / "a.ledger") as connection:
        dumped = "\n".join(connection.iterdump())
    assert secret not in dumped and text not in dumped
    assert hashlib.sha256(secret.encode()).hexdigest() in dumped
    connection.close()


def test_a_secret_has_256_bits_and_no_two_are_equal(identity):
    secrets = [split_token(identity.new("ann", Role.ANALYST))[1] for _ in range(20)]
    assert all(len(base64.urlsafe_b64decode(one + b"=")) == 32 for one in secrets)
    assert len(set(secrets)) == 20


@pytest.mark.parametrize("who", ["", " ann", "a\nb", "x" * 201, "ann\u200b", "OWNER", "owner"])
def test_names_that_could_deceive_are_refused(identity, who):
    identity.new("ann", Role.ANALYST)
    with pytest.raises(InvalidParameter):
        identity.new(who, Role.ANALYST)


def test_names_that_look_alike_are_refused(identity):
    identity.new("ann", Role.ANALYST)
    with pytest.raises(InvalidParameter, match="looks the same"):
        identity.new("Ann", Role.ANALYST)


@pytest.mark.parametrize("days", [0, -1, 10_000, float("nan")])
def test_a_token_must_expire(identity, days):
    with pytest.raises(InvalidParameter):
        identity.new("ann", Role.ANALYST, days=days)


def test_the_ledger_beside_tokens_verifies(identity, tmp_path):
    identity.new("ann", Role.ANALYST)
    identity.store.close()
    assert Ledger.open(tmp_path / "a.ledger").verify().seq == 1


# ---- SCRAM ----------------------------------------------------------------------------------------------------------


def client_proof(password, salt, iterations, message):
    """RFC 5802, section 3, from the client's side: proof, and the signature that the server must send."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
    server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
    return bytes(a ^ b for a, b in zip(client_key, signature, strict=True)), server


def test_any_valid_token_of_a_name_is_its_scram_password(identity):
    texts = [identity.new("ann", Role.ANALYST), identity.new("ann", Role.AUDITOR)]
    challenge = identity.challenge("ann")
    for text, role in zip(texts, (Role.ANALYST, Role.AUDITOR), strict=True):
        proof, server = client_proof(text, challenge.salt, challenge.iterations, b"message")
        token, signature = identity.prove("ann", b"message", proof)
        assert (token.role, signature) == (role, server)


def test_a_scram_proof_is_of_one_message_one_person_and_a_token_that_lasts(identity, moment):
    text = identity.new("ann", Role.ANALYST, days=1)
    identity.new("bob", Role.ANALYST)
    challenge = identity.challenge("ann")
    proof, _ = client_proof(text, challenge.salt, challenge.iterations, b"message")
    for who, message, tried in [("ann", b"other", proof), ("bob", b"message", proof), ("ann", b"message", b""),
                                ("ann", b"message", proof[:31]), ("ann", b"message", proof + b"x"),
                                ("nobody", b"message", proof)]:  # fmt: skip
        with pytest.raises(NotAuthenticated):
            identity.prove(who, message, tried)
    moment[0] += DAY
    with pytest.raises(NotAuthenticated):
        identity.prove("ann", b"message", proof)


def test_salts_tell_nobody_who_exists(identity):
    identity.new("ann", Role.ANALYST)
    ann, nobody = identity.challenge("ann"), identity.challenge("nobody")
    assert ann == identity.challenge("ann") and nobody == identity.challenge("nobody")
    assert ann.salt != nobody.salt
    assert len(ann.salt) == len(nobody.salt) and ann.iterations == nobody.iterations
