"""Who somebody is to a service, and what each role may do."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.server.identity import Role

READ = frozenset({"catalogue", "budget", "policy", "history"})
ASK = READ | {"ask", "preview", "answer"}
INSPECT = READ | {"whole history", "verify", "audit"}
DRAFT = frozenset({"check policy", "draft policy", "suggest bounds", "tokens"})
RIGHTS: Mapping[Role, frozenset[str]] = {
    Role.ANALYST: ASK,
    Role.AUDITOR: INSPECT,
    Role.STEWARD: ASK | INSPECT | DRAFT,
    Role.OWNER: ASK | INSPECT | DRAFT | {"publish policy"},
}


@dataclass(frozen=True)
class Person:
    """Somebody who has logged in: their name, and their role in each data set that knows them."""

    name: str
    roles: Mapping[str, Role]
    tokens: Mapping[str, str]  # by data set: the public ID of the token that gives the role
    door: str = ""
    until: float = math.inf  # when a signed identity ends, in seconds since 1970

    def may(self, data: str, act: str) -> bool:
        return data in self.roles and act in RIGHTS[self.roles[data]]
