"""Signed identities: only what the issuer signed for this service, with its own key and algorithm, names anybody."""

import base64
import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sfumato.errors import InvalidParameter, NotAuthenticated
from sfumato.server.configuration import Configuration, Oidc
from sfumato.server.identity import Role
from sfumato.server.oidc import CLOCKS, Issuer

NOW = 1_800_000_000.0
RSA, SMALL_RSA = (rsa.generate_private_key(65537, bits) for bits in (2048, 1024))
EC, OTHER_EC = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
ED = ed25519.Ed25519PrivateKey.generate()
CLAIMS = {"iss": "https://login.example", "aud": "sfumato", "sub": "ann", "exp": NOW + 600, "iat": NOW}


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def whole(number: int, size: int) -> str:
    return encoded(number.to_bytes(size))


def public(key, **more):
    """The public half as a JSON Web Key."""
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.public_key().public_numbers()
        found = {"kty": "RSA", "n": whole(numbers.n, key.key_size // 8), "e": whole(numbers.e, 3)}
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        point = key.public_key().public_numbers()
        found = {"kty": "EC", "crv": "P-256", "x": whole(point.x, 32), "y": whole(point.y, 32)}
    else:
        raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        found = {"kty": "OKP", "crv": "Ed25519", "x": encoded(raw)}
    return {**found, **more}


KEYS = [public(RSA, kid="rsa", use="sig", alg="RS256"), public(EC, kid="ec"), public(ED, kid="ed")]


def signature(key, message: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(message, padding.PKCS1v15(), hashes.SHA256())
    if isinstance(key, ec.EllipticCurvePrivateKey):
        r, s = utils.decode_dss_signature(key.sign(message, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)
    return key.sign(message)


def signed(key=EC, header=None, claims=CLAIMS, sign=signature) -> str:
    header = {"alg": "ES256", "kid": "ec", "typ": "JWT"} if header is None else header
    parts = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in (header, claims)]
    message = ".".join(map(encoded, parts))
    return f"{message}.{encoded(sign(key, message.encode()))}"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    place = tmp_path_factory.mktemp("oidc") / "keys.json"
    place.write_text(json.dumps({"keys": KEYS}))
    return Oidc("https://login.example", "sfumato", place)


@pytest.fixture(scope="module")
def issuer(settings):
    return Issuer.load(settings, lambda: NOW)


def with_claims(**changed):
    found = {**CLAIMS, **changed}
    return {name: value for name, value in found.items() if value is not ...}


@pytest.mark.parametrize(
    ("key", "header"),
    [(RSA, {"alg": "RS256", "kid": "rsa"}), (EC, {"alg": "ES256", "kid": "ec"}), (ED, {"alg": "EdDSA", "kid": "ed"})],
)
def test_each_algorithm_verifies_with_its_own_key(issuer, key, header):
    assert issuer.verify(signed(key, header)).who == "ann"
    assert issuer.verify(signed(key, header, with_claims(aud=["other", "sfumato"]))).expires == NOW + 600


def hmac_with_public_key(header_kid):
    """The classic confusion: HS256 with the public key, which everybody knows, as the secret."""
    secret = json.dumps(next(key for key in KEYS if key["kid"] == header_kid)).encode()
    return lambda _, message: hmac.digest(secret, message, hashlib.sha256)


REFUSED = {
    "none": lambda: signed(header={"alg": "none", "kid": "ec"}, sign=lambda *_: b"\0"),
    "none, written otherwise": lambda: signed(header={"alg": "nOnE", "kid": "ec"}, sign=lambda *_: b"\0"),
    "an empty signature": lambda: signed().rpartition(".")[0] + ".",
    "an algorithm of secrets with a public key": lambda: signed(
        header={"alg": "HS256", "kid": "rsa"}, sign=hmac_with_public_key("rsa")
    ),
    "another algorithm for the same key": lambda: signed(RSA, {"alg": "PS256", "kid": "rsa"}),
    "the algorithm of another key": lambda: signed(RSA, {"alg": "RS256", "kid": "ec"}),
    "no algorithm": lambda: signed(header={"kid": "ec"}),
    "a key that is not listed": lambda: signed(OTHER_EC),
    "an unknown kid": lambda: signed(header={"alg": "ES256", "kid": "other"}),
    "no kid, where there are several keys": lambda: signed(header={"alg": "ES256"}),
    "a kid that is no text": lambda: signed(header={"alg": "ES256", "kid": ["ec"]}),
    "a kid that is a path": lambda: signed(header={"alg": "ES256", "kid": "../../keys.json"}),
    "its own key": lambda: signed(OTHER_EC, {"alg": "ES256", "kid": "ec", "jwk": public(OTHER_EC)}),
    "the address of a key": lambda: signed(header={"alg": "ES256", "kid": "ec", "jku": "https://evil.example"}),
    "a critical extension": lambda: signed(header={"alg": "ES256", "kid": "ec", "crit": ["b64"], "b64": False}),
    "another type": lambda: signed(header={"alg": "ES256", "kid": "ec", "typ": "logout+jwt"}),
    "expired": lambda: signed(claims=with_claims(exp=NOW)),
    "no expiry": lambda: signed(claims=with_claims(exp=...)),
    "an expiry that is a text": lambda: signed(claims=with_claims(exp=str(NOW + 600))),
    "an expiry that is true": lambda: signed(claims=with_claims(exp=True)),
    "an expiry that is infinite": lambda: signed(claims=b'{"exp": Infinity}'),
    "not valid yet": lambda: signed(claims=with_claims(nbf=NOW + CLOCKS + 1)),
    "issued in the future": lambda: signed(claims=with_claims(iat=NOW + CLOCKS + 1)),
    "another issuer": lambda: signed(claims=with_claims(iss="https://login.example/")),
    "no issuer": lambda: signed(claims=with_claims(iss=...)),
    "another audience": lambda: signed(claims=with_claims(aud="sfumato2")),
    "other audiences": lambda: signed(claims=with_claims(aud=["a", "b"])),
    "no audience": lambda: signed(claims=with_claims(aud=...)),
    "nobody": lambda: signed(claims=with_claims(sub=...)),
    "a name that is a number": lambda: signed(claims=with_claims(sub=7)),
    "a name twice": lambda: signed(claims=json.dumps(CLAIMS).encode()[:-1] + b', "sub": "owner"}'),
    "changed claims": lambda: swapped(signed(), 1, encoded(json.dumps(with_claims(sub="owner")).encode())),
    "a changed header": lambda: swapped(signed(), 0, encoded(b'{"alg":"ES256","kid":"ec"}')),
    "a signature as DER": lambda: signed(sign=lambda key, message: key.sign(message, ec.ECDSA(hashes.SHA256()))),
    "padding": lambda: signed() + "=",
    "bits that no decoder reads": lambda: signed()[:-1] + chr(ord(signed()[-1]) + 1),
    "a list": lambda: signed(claims=[1]),
    "deep nesting": lambda: signed(claims=b"[" * 5000 + b"]" * 5000),
    "too long": lambda: signed(claims=with_claims(more="x" * 20_000)),
    "no JSON": lambda: signed(claims=b"\xff\xfe"),
    "nothing": lambda: "..",
}


def swapped(text: str, place: int, part: str) -> str:
    parts = text.split(".")
    parts[place] = part
    return ".".join(parts)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_signed_for_us_is_refused_without_a_reason(issuer, name):
    with pytest.raises(NotAuthenticated, match="not valid here"):
        issuer.verify(REFUSED[name]())


def test_addresses_name_people_only_if_they_are_verified(settings):
    issuer = Issuer.load(Oidc(settings.issuer, settings.audience, settings.keys, "email"), lambda: NOW)
    assert issuer.verify(signed(claims=with_claims(email="ann@x.example", email_verified=True))).who == "ann@x.example"
    for unverified in (False, "true", ...):
        with pytest.raises(NotAuthenticated):
            issuer.verify(signed(claims=with_claims(email="ann@x.example", email_verified=unverified)))


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"keys": []}', '{"keys": [7]}', json.dumps({"keys": [public(SMALL_RSA, kid="small")]}),
     json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "secret"}]}),
     json.dumps({"keys": [public(EC, kid="a"), public(OTHER_EC, kid="a")]}),
     json.dumps({"keys": [public(EC, kid="a", alg="RS256")]}),
     json.dumps({"keys": [{**public(EC, kid="a"), "x": "AAAA"}]})],
)  # fmt: skip
def test_a_set_of_keys_that_cannot_be_trusted_is_refused_and_the_old_one_stays(tmp_path, content):
    place = tmp_path / "keys.json"
    place.write_text(json.dumps({"keys": [public(EC)]}))
    issuer = Issuer.load(Oidc("https://login.example", "sfumato", place), lambda: NOW)
    place.write_text(content)
    with pytest.raises(InvalidParameter, match="keys of the issuer"):
        issuer.reload()
    assert issuer.verify(signed(header={"alg": "ES256"})).who == "ann"  # the only key needs no kid


def test_an_issuer_names_people_and_the_store_says_what_they_may_do(service, settings):
    """Without a token of the name nobody opens anything; with its end, or that of the signature, everything ends."""
    clock = [NOW]
    service.sign_in.issuer = Issuer.load(settings, lambda: clock[0])
    identity = service.data["clinic"].identity
    object.__setattr__(identity, "clock", lambda: clock[0])
    with pytest.raises(NotAuthenticated):
        service.authenticate(signed())
    identity.new("ann", Role.ANALYST)
    ann = service.authenticate(signed(), door="http")
    assert ann.name == "ann" and ann.roles == {"clinic": Role.ANALYST}
    assert service.budget(ann, "clinic").who == "ann"
    clock[0] = NOW + 600
    with pytest.raises(NotAuthenticated):
        service.budget(ann, "clinic")
    clock[0] = NOW
    (row,) = identity.list()
    identity.revoke(row.id)
    with pytest.raises(NotAuthenticated):
        service.budget(ann, "clinic")
    with pytest.raises(NotAuthenticated):
        service.authenticate(signed())


def test_a_configuration_names_the_issuer(tmp_path):
    data = '[data.clinic]\nsource = "a.duckdb"\npolicy = "a.toml"\n'
    (tmp_path / "service.toml").write_text(
        data + '[oidc]\nissuer = "https://login.example"\naudience = "sfumato"\nkeys = "keys.json"\nname = "email"\n'
    )
    found = Configuration.load(tmp_path / "service.toml").oidc
    assert found == Oidc("https://login.example", "sfumato", tmp_path / "keys.json", "email")
    (tmp_path / "service.toml").write_text(data + '[oidc]\nissuer = "https://login.example"\nkeys = "keys.json"\n')
    with pytest.raises(InvalidParameter, match="audience"):
        Configuration.load(tmp_path / "service.toml")
