"""Who is logged in to the console: a random cookie stands for a person, in memory, until it is idle too long.

The token itself is not kept. Every act of the service looks it up again, so a revoked token ends its sessions, too.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from sfumato.server.rights import Person

IDLE = 8 * 3600  # seconds
MOST, EACH = 10_000, 20  # sessions of all people, and of one


@dataclass(eq=False)
class Session:
    """A person who has logged in, and the secret that forms must bring back."""

    person: Person
    csrf: str
    seen: float

    def sent(self, text: str) -> bool:
        """Is this the secret of our own forms?"""
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.csrf.encode())


@dataclass(eq=False)
class Sessions:
    """All sessions of a door; if there are too many, of one person or of all, the one that was idle longest ends."""

    now: Callable[[], float] = field(default=time.monotonic, repr=False)
    _open: OrderedDict[str, Session] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def open(self, person: Person) -> str:
        """The text of a new cookie."""
        text = secrets.token_urlsafe(32)
        with self._lock:
            own = [place for place, one in self._open.items() if one.person.name == person.name]
            for place in own[: max(0, len(own) - EACH + 1)]:
                del self._open[place]
            self._open[place_of(text)] = Session(person, secrets.token_urlsafe(32), self.now())
            if len(self._open) > MOST:
                self._open.popitem(last=False)
        return text

    def find(self, text: str) -> Session | None:
        """The session of this cookie, which lives on for a while."""
        with self._lock:
            place = place_of(text)
            found = self._open.get(place)
            if found is None or self.now() - found.seen > IDLE:
                self._open.pop(place, None)
                return None
            found.seen = self.now()
            self._open.move_to_end(place)
            return found

    def close(self, text: str) -> None:
        with self._lock:
            self._open.pop(place_of(text), None)


def place_of(text: str) -> str:
    """Sessions are found by a hash, so that the time of a search tells nothing about the cookie of another."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
