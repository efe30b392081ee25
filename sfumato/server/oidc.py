"""Signed identities: a JSON Web Token (RFC 7519) of an OpenID Connect issuer, verified with keys from a file.

The issuer says who somebody is. What they may do is the role of their token in each data set, and how much they may
spend is the policy's: an issuer can give neither. No address is looked up, and no key is taken from a token.

The key decides on the algorithm, not the token (RFC 8725, section 3.1): RS256 for RSA, ES256 for P-256, EdDSA for
Ed25519. So `none`, and HMAC with a public key as its secret, verify nothing.
"""

import base64
import binascii
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sfumato.errors import InvalidParameter, NotAuthenticated
from sfumato.server.configuration import Oidc
from sfumato.server.identity import WRONG
from sfumato.server.logs import event

LONGEST = 16_384  # characters of a token
CLOCKS = 60.0  # seconds that the issuer's clock may be ahead of ours
PART = r"[A-Za-z0-9_-]+"
FORM = re.compile(rf"({PART})\.({PART})\.({PART})")
TYPES = ("JWT", "at+jwt", "application/at+jwt")
FOREIGN_KEYS = ("jku", "jwk", "x5u", "x5c")  # headers by which a token would bring its own key
LEAST_RSA = 2048  # bits


class Key(Protocol):
    """A public key with the one algorithm that it verifies."""

    @property
    def algorithm(self) -> str: ...

    def holds(self, signature: bytes, message: bytes) -> bool: ...


@dataclass(frozen=True)
class Claims:
    """What a valid token says."""

    who: str
    expires: float  # seconds since 1970


class Unverified(Exception):
    """Why a token is not accepted: for the operator's log, and for nobody else."""


@dataclass(eq=False)
class Issuer:
    """One issuer that is trusted to name people."""

    settings: Oidc
    keys: Mapping[str, Key]  # by their kid
    clock: Callable[[], float] = field(default=time.time, repr=False)

    @staticmethod
    def load(settings: Oidc, clock: Callable[[], float] = time.time) -> "Issuer":
        return Issuer(settings, read_keys(settings.keys), clock)

    def reload(self) -> None:
        """Use the keys that are in the file now; nothing changes if they cannot be read."""
        self.keys = read_keys(self.settings.keys)

    @staticmethod
    def has_form(text: str) -> bool:
        """Is this a signed identity, and no token of our own? Those have no dots."""
        return text.count(".") == 2

    def verify(self, text: str) -> Claims:
        """What the token says, if it was signed by the issuer, for us, and is still valid. Raises NotAuthenticated."""
        try:
            return self._claims(text.strip())
        except Unverified as reason:
            event("signed identity refused", logging.WARNING, reason=str(reason))
        raise NotAuthenticated(WRONG)

    def _claims(self, text: str) -> Claims:
        parts = FORM.fullmatch(text) if len(text) <= LONGEST else None
        if parts is None:
            raise Unverified("it has another form")
        header, content = (read_object(decode(part)) for part in parts.groups()[:2])
        key = self._key(header)
        if not key.holds(decode(parts[3]), f"{parts[1]}.{parts[2]}".encode()):
            raise Unverified("the signature is not the issuer's")
        self._check(content)
        who = content.get(self.settings.name)
        if not isinstance(who, str) or not who:
            raise Unverified(f"no claim {self.settings.name}")
        if self.settings.name == "email" and content.get("email_verified") is not True:
            raise Unverified("the address is not verified")
        return Claims(who, float(content["exp"]))

    def _key(self, header: Mapping[str, Any]) -> Key:
        if "crit" in header or any(name in header for name in FOREIGN_KEYS):
            raise Unverified("a header that is not accepted")
        if header.get("typ", "JWT") not in TYPES:
            raise Unverified("another type of token")
        kid = header.get("kid")
        if kid is None and len(self.keys) == 1:
            (key,) = self.keys.values()
        elif isinstance(kid, str) and kid in self.keys:
            key = self.keys[kid]
        else:
            raise Unverified("no key of this name")
        if header.get("alg") != key.algorithm:
            raise Unverified("another algorithm than the key's")
        return key

    def _check(self, content: Mapping[str, Any]) -> None:
        audience, now = content.get("aud"), self.clock()
        if content.get("iss") != self.settings.issuer:
            raise Unverified("another issuer")
        if self.settings.audience not in (audience if isinstance(audience, list) else [audience]):
            raise Unverified("for another audience")
        if not is_time(content.get("exp")) or now >= content["exp"]:
            raise Unverified("expired")
        for name in ("nbf", "iat"):
            if name in content and (not is_time(content[name]) or content[name] > now + CLOCKS):
                raise Unverified(f"not valid yet ({name})")


def is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def decode(part: str) -> bytes:
    """Base64url without padding, in its only spelling (RFC 7515, appendix C)."""
    try:
        found = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        raise Unverified("no base64url") from None
    if base64.urlsafe_b64encode(found).rstrip(b"=") != part.encode():
        raise Unverified("no canonical base64url")
    return found


def read_object(data: bytes) -> dict[str, Any]:
    """A JSON object that every parser reads in the same way: no name occurs twice."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise Unverified("a name twice")
        return dict(pairs)

    def refuse(_: str) -> None:
        raise Unverified("no number")

    try:
        found = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Unverified("no JSON") from None
    if not isinstance(found, dict):
        raise Unverified("no object")
    return found


# ---- keys -----------------------------------------------------------------------------------------------------------


def read_keys(place: Path) -> dict[str, Key]:
    """The keys for signatures in a JSON Web Key Set (RFC 7517) that we can use, by their kid."""
    try:
        listed = json.loads(place.read_text("utf-8"))["keys"]
        wanted = [one for one in listed if one.get("use", "sig") == "sig"]
        found = {str(one.get("kid", "")): key for one in wanted if (key := read_key(one)) is not None}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Unverified) as problem:
        raise unusable(place, f"no set of keys: {type(problem).__name__}") from problem
    if not found or len(found) != len({str(one.get("kid", "")) for one in wanted}):
        raise unusable(place, "keys of other kinds than RSA (2048 bits or more), P-256 and Ed25519")
    if len(wanted) != len(found):
        raise unusable(place, "two keys with one kid")
    return found


def unusable(place: Path, found: str) -> InvalidParameter:
    return InvalidParameter(
        f"the keys of the issuer cannot be used.\n  found:  {place.name}: {found}\n"
        "  do:     store what the issuer publishes at its jwks_uri, with the public keys that sign"
    )


def read_key(content: Mapping[str, Any]) -> Key | None:
    """A public key, with its algorithm; None if it is of another kind."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"signed identities need {missing.name}.\n  do:     pip install 'sfumato[oidc]'"
        ) from missing

    def number(name: str) -> int:
        return int.from_bytes(decode(str(content[name])))

    match content.get("kty"), content.get("crv"):
        case "RSA", _ if number("n").bit_length() >= LEAST_RSA:
            key: Key = RsaKey(rsa.RSAPublicNumbers(number("e"), number("n")).public_key())
        case "EC", "P-256":
            key = P256Key(ec.EllipticCurvePublicNumbers(number("x"), number("y"), ec.SECP256R1()).public_key())
        case "OKP", "Ed25519":
            key = Ed25519Key(ed25519.Ed25519PublicKey.from_public_bytes(decode(str(content["x"]))))
        case _:
            return None
    return key if content.get("alg", key.algorithm) == key.algorithm else None


def valid(verify: Callable[..., None], *arguments: object) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        verify(*arguments)
    except InvalidSignature:
        return False
    return True


@dataclass(frozen=True)
class RsaKey:
    """PKCS #1 v1.5 with SHA-256."""

    key: Any
    algorithm: str = "RS256"

    def holds(self, signature: bytes, message: bytes) -> bool:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        return valid(self.key.verify, signature, message, padding.PKCS1v15(), hashes.SHA256())


@dataclass(frozen=True)
class P256Key:
    """ECDSA on P-256 with SHA-256; the signature is two numbers of 32 bytes (RFC 7518, section 3.4)."""

    key: Any
    algorithm: str = "ES256"

    def holds(self, signature: bytes, message: bytes) -> bool:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        if len(signature) != 64:
            return False
        r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
        return valid(self.key.verify, utils.encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))


@dataclass(frozen=True)
class Ed25519Key:
    """Ed25519 (RFC 8037)."""

    key: Any
    algorithm: str = "EdDSA"

    def holds(self, signature: bytes, message: bytes) -> bool:
        return valid(self.key.verify, signature, message)
