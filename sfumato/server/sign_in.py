"""Who is this? Tokens, signed identities and SCRAM proofs, each in the data sets that know their holder."""

import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from sfumato.errors import NotAuthenticated
from sfumato.server.admission import FailedAttempts
from sfumato.server.identity import WRONG, Challenge, Token
from sfumato.server.logs import event
from sfumato.server.oidc import Issuer
from sfumato.server.open_data import OpenData
from sfumato.server.rights import Person


@dataclass(eq=False)
class SignIn:
    """How people show who they are. What they may do follows from their token of each data set."""

    data: Mapping[str, OpenData]
    issuer: Issuer | None = None  # of signed identities (OIDC)
    failed: FailedAttempts = field(default_factory=FailedAttempts)

    def authenticate(self, token: str, *, door: str = "") -> Person:
        """The holder of a token, or of a signed identity, in the data sets that know them. Raises NotAuthenticated."""
        if self.issuer is not None and self.issuer.has_form(token):
            return self.signed_in(self.issuer, token, door)
        found: dict[str, Token] = {}
        for name, data in self.data.items():
            with suppress(NotAuthenticated):
                found[name] = data.identity.authenticate(token)
        return self.person(found, door)

    def signed_in(self, issuer: Issuer, text: str, door: str) -> Person:
        """Somebody whom an issuer names, in the data sets with a token of this name, which gives the role."""
        claims = issuer.verify(text)
        found = {name: data.identity.newest(claims.who) for name, data in self.data.items()}
        return self.person({name: token for name, token in found.items() if token is not None}, door, claims.expires)

    def challenge(self, who: str, data: str) -> Challenge:
        """The salt for a SCRAM log-in to one data set; also of people and data sets that do not exist."""
        known = self.data.get(data)
        if known is not None:
            return known.identity.challenge(who)
        first = next(iter(self.data.values()))
        return first.identity.challenge(
            f"{data}\0{who}"
        )  # another salt than anybody has: no data set shows that it exists

    def prove(self, who: str, data: str, message: bytes, proof: bytes, *, door: str = "") -> tuple[Person, bytes]:
        """The person who made this SCRAM proof, and the server's signature. Raises NotAuthenticated."""
        if data not in self.data:
            raise NotAuthenticated(WRONG)
        token, signature = self.data[data].identity.prove(who, message, proof)
        return self.person({data: token}, door), signature

    def person(self, tokens: Mapping[str, Token], door: str, until: float = math.inf) -> Person:
        if not tokens:
            raise NotAuthenticated(WRONG)
        first = next(iter(tokens.values()))
        roles = {name: token.role for name, token in tokens.items() if token.who == first.who}
        return Person(first.who, roles, {name: tokens[name].id for name in roles}, door, until)

    def delay(self, source: str) -> float:
        """Seconds that the reply to a failed log-in from this source must wait; a door sleeps, and blocks nobody."""
        event("log-in failed", logging.WARNING, source=source)
        return self.failed.delay(source)
