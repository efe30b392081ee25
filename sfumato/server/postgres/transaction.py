"""The transaction of a connection. It has no effect; it is kept up, with its savepoints, as clients rely on it."""

from dataclasses import dataclass, field

from sfumato.server.postgres.problems import NoSuchName, TransactionFailed

OUTSIDE, INSIDE, FAILED = b"I", b"T", b"E"  # as ReadyForQuery says it
MOST_SAVEPOINTS = 1000
ENDS = ("commit", "rollback", "back")  # what is done in a transaction that failed


@dataclass(eq=False)
class Transaction:
    """Outside, inside, or inside after an error."""

    state: bytes = OUTSIDE
    savepoints: list[str] = field(default_factory=list)

    def fail(self) -> None:
        """After an error, a transaction waits for its end, or for a return to a savepoint."""
        if self.state == INSIDE:
            self.state = FAILED

    def require_sound(self, effect: str) -> None:
        """Raises after an error, unless this effect ends the failure."""
        if self.state == FAILED and effect not in ENDS:
            raise TransactionFailed("this transaction failed; commands are ignored until it ends.\n  do:     ROLLBACK")

    def run(self, tag: str, effect: str, name: str) -> str:
        """Begin, end, or save; the tag of what was done."""
        match effect:
            case "begin":
                self.state = INSIDE
            case "commit" | "rollback":
                tag = "ROLLBACK" if self.state == FAILED else tag
                self.state, self.savepoints = OUTSIDE, []
            case "save" if self.state == INSIDE:
                self.savepoints = [*self.savepoints[1 - MOST_SAVEPOINTS :], name]
            case "back" | "release" if self.state != OUTSIDE:
                self.go_back(name, keep=effect == "back")
        return tag

    def go_back(self, name: str, keep: bool) -> None:
        """Forget the savepoints after the last one of this name, and it, too, unless it is kept."""
        if name not in self.savepoints:
            raise NoSuchName("3B001", f"there is no savepoint {name!r}.")
        behind = len(self.savepoints) - self.savepoints[::-1].index(name)
        self.savepoints = self.savepoints[: behind if keep else behind - 1]
        self.state = INSIDE
