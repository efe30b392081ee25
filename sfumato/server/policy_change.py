"""A policy on its way into force: what it would change, and how it is published."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sfumato.curator import Curator
from sfumato.curator.open import apply_policy
from sfumato.errors import InvalidParameter, LedgerUnavailable, QueryRefused, SfumatoError
from sfumato.server.catalogue import Catalogue
from sfumato.server.configuration import Limits
from sfumato.server.open_data import OpenData, with_limits
from sfumato.sql.policy import Policy
from sfumato.sql.policy_draft import Check, check_policy

EXAMPLES, EPSILON = 12, 0.1  # questions that are compared, for this price
REFUSED = -1.0  # in place of an error


@dataclass(frozen=True)
class PolicyChange:
    """What a policy would mean if it were published: nothing has changed."""

    check: Check
    differences: tuple[str, ...]
    problem: str | None  # why it cannot be published
    effects: tuple["Effect", ...] = ()
    based_on: str = ""  # the hash of the policy in force, with which it was compared

    def to_dict(self) -> Mapping[str, object]:
        effects = [vars(one) for one in self.effects]
        rest = {"differences": self.differences, "problem": self.problem, "based_on": self.based_on}
        return {**vars(self.check), **rest, "effects": effects}

    @property
    def publishable(self) -> bool:
        return self.problem is None and not self.check.wrong


@dataclass(frozen=True)
class Effect:
    """How exact the answer to an example question is for one price, now and afterwards; None: not known in advance."""

    question: str
    epsilon: float
    before: float | None  # the ± at 95 % of its first aggregate
    after: float | None
    refused_before: bool = False
    refused_after: bool = False


def review(opened: OpenData, text: str) -> PolicyChange:
    """What this policy would mean for a data set. Reads no values and changes nothing."""
    return policy_change(opened.curator, Policy.read(text), text_hash(opened.policy_text))


def publish(opened: OpenData, text: str, limits: Limits, based_on: str | None) -> PolicyChange:
    """Put this policy in force: its shares become an act in the ledger, and later questions follow it.

    `based_on` is the hash of the policy in force with which it was reviewed: if that is another one by now, nothing
    happens.
    """
    change = review(opened, text)
    if based_on is not None and based_on != change.based_on:
        raise QueryRefused("another policy was published since this one was reviewed.\n  do:     review it again")
    if not change.publishable:
        found = "; ".join(filter(None, [*change.check.wrong, change.problem]))
        raise QueryRefused(f"this policy cannot be published.\n  found:  {found}")
    published = with_limits(Policy.read(text), limits)
    place = opened.settings.policy
    with writable(place):  # before the act: a ledger with shares that no file states would go back at the next start
        new = write_beside(place, text)
    apply_policy(opened.curator.ledger, published)
    new.replace(place)
    opened.draft_place.unlink(missing_ok=True)
    opened.curator = replace(opened.curator, policy=published)
    opened.analysts.clear()
    return change


def policy_change(curator: Curator, policy: Policy, based_on: str) -> PolicyChange:
    """A policy beside the one in force, the schema and the ledger."""
    untyped = getattr(curator.engine, "untyped", lambda: frozenset[str]())()
    check = check_policy(policy, curator.engine.schema(), untyped)
    problem = None
    before = curator.policy
    try:
        if (policy.epsilon, policy.delta, policy.pure) != (before.epsilon, before.delta, before.pure):
            raise InvalidParameter("the budget is a promise, and cannot be changed by a policy: sfumato ledger renew")
        if policy.delimiters != before.delimiters:
            raise InvalidParameter("files are read with their delimiter when a service starts: change it in the file")
        curator.ledger.would_share(policy.analysts, policy.others)
    except SfumatoError as error:
        problem = str(error)
    old = json.loads(json.dumps(policy_facts(before)))
    new = json.loads(json.dumps(policy_facts(policy)))
    changed = tuple(differences(old, new))
    return PolicyChange(check, changed, problem, tuple(effects(curator, policy)) if changed else (), based_on)


def effects(curator: Curator, policy: Policy) -> Iterator[Effect]:
    """The errors of example questions under both policies, for the same price. Reads no data and charges nothing."""
    listed = [one for side in (policy, curator.policy) for table in Catalogue.of(side).tables for one in table.examples]
    try:
        other = Curator(curator.engine, policy, curator.ledger)
    except SfumatoError:
        return
    for question in list(dict.fromkeys(listed))[:EXAMPLES]:
        before, after = (error_of(side, question) for side in (curator, other))
        if before != after:
            known = [error if error != REFUSED else None for error in (before, after)]
            yield Effect(question, EPSILON, known[0], known[1], before == REFUSED, after == REFUSED)


def error_of(curator: Curator, question: str) -> float | None:
    """The ± of the first aggregate; REFUSED if it cannot be asked."""
    try:
        return next((error for _, error in curator.preview(question, epsilon=EPSILON).errors()), None)
    except SfumatoError:
        return REFUSED


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def policy_facts(policy: Policy) -> dict[str, object]:
    """What a policy says, as a flat table of facts."""
    facts: dict[str, object] = {f"analysts.{who}": share for who, share in policy.analysts.items()}
    facts["others"] = policy.others
    for table in Catalogue.of(policy).tables:
        facts[f"tables.{table.name}"] = table.about
        for column in table.columns:
            facts[f"tables.{table.name}.{column.name}"] = {k: v for k, v in vars(column).items() if k != "name"}
    return facts


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        if name not in new:
            yield f"{name}: removed"
        elif name not in old:
            yield f"{name}: new, {json.dumps(new[name], ensure_ascii=False)}"
        elif old[name] != new[name]:
            yield f"{name}: {json.dumps(old[name], ensure_ascii=False)} → {json.dumps(new[name], ensure_ascii=False)}"


def write_beside(place: Path, text: str) -> Path:
    """A file that can take the place of this one in a single step; the old one is kept beside it."""
    new = place.with_name(f"{place.name}.new")
    new.write_text(text, "utf-8")
    place.with_name(f"{place.name}.before").write_bytes(place.read_bytes())
    return new


@contextmanager
def writable(place: Path) -> Iterator[None]:
    """Around writing a policy: says what an operator must do if it cannot be written."""
    try:
        yield
    except OSError as problem:
        raise LedgerUnavailable(
            f"this policy cannot be written, and nothing has changed.\n  found:  {place.name}: {problem.strerror}\n"
            "  do:     give the service access to the folder of the policy"
        ) from problem
