"""The full audit behind `sfumato audit`: every exhibit, by every tier that applies to it."""

import re
from collections.abc import Iterator, Sequence

from sfumato.audit.conversation import Conversation
from sfumato.audit.corpus import Database
from sfumato.audit.exhibits import AT_ONCE, MANY, ONE_BY_ONE, POLICY, WORST, Exhibit, all_exhibits
from sfumato.audit.report import Evidence, Finding, Theorem
from sfumato.errors import InvalidParameter
from sfumato.ledger import Budget, PureBudget
from sfumato.loss.display import name, rounded_up
from sfumato.loss.views.profile import most_leak, top_of

CITED = re.compile(r"(?P<statement>.+?) +\[(?P<source>[^\[\]]+)\]\.?")
DELTA = 1e-6
CONFIDENCE = 0.9999
QUICK = 8  # a quick audit has so many times fewer runs
CONVERSATIONS = tuple(
    Exhibit("ledger", lambda source, budget=budget: Conversation(budget, POLICY), WORST.whole, WORST.without)  # type: ignore[misc]
    for budget in (Budget(1.0, 1e-6), PureBudget(2.0, 1e-6))
)


def select_exhibits(words: Sequence[str] = ()) -> tuple[Exhibit, ...]:
    """The exhibits whose part or name contains one of these words; all exhibits without words."""
    every = (*all_exhibits(), *CONVERSATIONS)
    selected = tuple(
        each for each in every if not words or any(w.lower() in f"{each.part} {each.name}".lower() for w in words)
    )
    if not selected:
        parts = ", ".join(dict.fromkeys(each.part for each in every))
        raise InvalidParameter(
            f"no exhibit of the audit matches.\n  found:  {', '.join(words)}\n"
            f"  do:     give a part ({parts}), or a mechanism such as Laplace"
        )
    return selected


def audit_exhibit(exhibit: Exhibit, share: int = 1) -> Finding:
    """One exhibit audited by every tier that applies, with 1/share of the usual runs."""
    return Finding(
        getattr(exhibit.mechanism, "sql", exhibit.name), exhibit.part, describe_pair(exhibit), describe_claim(exhibit),
        tuple(cited_theorems(exhibit)), tuple(gather_evidence(exhibit, share)),
    )  # fmt: skip


def describe_pair(exhibit: Exhibit) -> str:
    """The neighbours in words; the contents of databases are not shown."""
    if isinstance(exhibit.d0, Database):
        return "a small database with and without one unit, which has many rows in many groups"
    return exhibit.pair


def gather_evidence(exhibit: Exhibit, share: int) -> Iterator[Evidence]:
    """Black box unless runs are expensive, replay if sfumato's primitives are used, white box if the law is stated."""
    runs, draws = (AT_ONCE, MANY) if exhibit.rows else (ONE_BY_ONE, ONE_BY_ONE)
    if not isinstance(exhibit.mechanism, Conversation):
        seen = exhibit.audit(runs // share, CONFIDENCE)
        words = f"{seen.verdict}; {seen.rows()['certified']}, from {seen.samples:,} runs on each; event: {seen.event}"
        yield Evidence("black box", words, seen.violated)
    if (played := exhibit.replay()) is not None:
        yield Evidence("replay", str(played), played.violated)
    if (opened := exhibit.white_box(draws // share, CONFIDENCE)) is not None:
        yield Evidence("white box", str(opened), opened.violated)


def describe_claim(exhibit: Exhibit) -> str:
    """The claimed loss and its ε."""
    loss = exhibit.claim
    delta = 0.0 if most_leak(loss) == 0 and top_of(loss) < float("inf") else DELTA
    at = f" at δ = {delta:g}" if delta else ""
    return f"{name(loss)}: ε = {rounded_up(loss.epsilon(delta).upper)}{at}"


def cited_theorems(exhibit: Exhibit) -> Iterator[Theorem]:
    """The theorems that the claim rests on, with their sources."""
    kind = type(exhibit.mechanism)
    for line in exhibit.theorems:
        match = CITED.fullmatch(line)
        statement, source = (match["statement"], match["source"]) if match else (line, "")
        yield Theorem(statement, source, f"{kind.__module__}.{kind.__qualname__}")
