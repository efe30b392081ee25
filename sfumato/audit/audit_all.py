"""All that sfumato ships, audited by every tier that can look at it: what `sfumato audit` runs."""

import re
from collections.abc import Iterator, Sequence

from sfumato.audit.collection import AT_ONCE, MANY, ONE_BY_ONE, Exhibit, collected
from sfumato.audit.conversation import Conversation
from sfumato.audit.corpus import Database
from sfumato.audit.exhibits.curator import POLICY, WORST
from sfumato.audit.report import Evidence, Finding, Theorem
from sfumato.errors import InvalidParameter
from sfumato.ledger import Budget, PureBudget
from sfumato.loss.display import name, rounded_up
from sfumato.loss.views.profile import most_leak, top_of

CITED = re.compile(r"(?P<statement>.+?) +\[(?P<source>[^\[\]]+)\]\.?")
DELTA = 1e-6
CONFIDENCE = 0.9999
QUICK = 8  # so many times fewer runs
CONVERSATIONS = tuple(
    Exhibit("ledger", lambda source, budget=budget: Conversation(budget, POLICY), WORST.whole, WORST.without)  # type: ignore[misc]
    for budget in (Budget(1.0, 1e-6), PureBudget(2.0, 1e-6))
)


def chosen(words: Sequence[str] = ()) -> tuple[Exhibit, ...]:
    """The exhibits whose part or name holds one of these words; all of them without any."""
    every = (*collected(), *CONVERSATIONS)
    found = tuple(
        one for one in every if not words or any(w.lower() in f"{one.part} {one.name}".lower() for w in words)
    )
    if not found:
        parts = ", ".join(dict.fromkeys(one.part for one in every))
        raise InvalidParameter(
            f"nothing that is audited is called so.\n  found:  {', '.join(words)}\n"
            f"  do:     give a part ({parts}), or a mechanism such as Laplace"
        )
    return found


def finding(exhibit: Exhibit, share: int = 1) -> Finding:
    """One exhibit, seen by every tier that can look at it, in all its runs or one in so many."""
    return Finding(
        getattr(exhibit.mechanism, "sql", exhibit.name), exhibit.part, pair(exhibit), claim(exhibit),
        tuple(theorems(exhibit)), tuple(evidence(exhibit, share)),
    )  # fmt: skip


def pair(exhibit: Exhibit) -> str:
    """The neighbours; databases do not show what is in them."""
    if isinstance(exhibit.d0, Database):
        return "a small database with and without one unit, which has many rows in many groups"
    return exhibit.pair


def evidence(exhibit: Exhibit, share: int) -> Iterator[Evidence]:
    """The black box looks at what is quick, replay at what is made of our primitives, the white box at known laws."""
    runs, draws = (AT_ONCE, MANY) if exhibit.rows else (ONE_BY_ONE, ONE_BY_ONE)
    if not isinstance(exhibit.mechanism, Conversation):
        seen = exhibit.audit(runs // share, CONFIDENCE)
        words = f"{seen.verdict}; {seen.rows()['certified']}, from {seen.samples:,} runs on each; event: {seen.event}"
        yield Evidence("black box", words, seen.violated)
    if (played := exhibit.replay()) is not None:
        yield Evidence("replay", str(played), played.violated)
    if (opened := exhibit.white_box(draws // share, CONFIDENCE)) is not None:
        yield Evidence("white box", str(opened), opened.violated)


def claim(exhibit: Exhibit) -> str:
    """The claimed loss, and what it means."""
    loss = exhibit.claim
    delta = 0.0 if most_leak(loss) == 0 and top_of(loss) < float("inf") else DELTA
    at = f" at δ = {delta:g}" if delta else ""
    return f"{name(loss)}: ε = {rounded_up(loss.epsilon(delta).upper)}{at}"


def theorems(exhibit: Exhibit) -> Iterator[Theorem]:
    kind = type(exhibit.mechanism)
    for line in exhibit.theorems:
        match = CITED.fullmatch(line)
        statement, source = (match["statement"], match["source"]) if match else (line, "")
        yield Theorem(statement, source, f"{kind.__module__}.{kind.__qualname__}")
