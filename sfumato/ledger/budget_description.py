"""Budgets as plain data, for the first line of a ledger."""

from dataclasses import fields

from sfumato.errors import LedgerDamaged
from sfumato.ledger.budgets import Promise
from sfumato.sensitivity import Relation


def described(promise: Promise) -> dict[str, object]:
    values = {f.name: getattr(promise, f.name) for f in fields(promise) if f.init}
    return {"promise": type(promise).__name__, **values, "relation": promise.relation.value}


def promised(data: object) -> Promise:
    """The budget that `described` told."""
    if not isinstance(data, dict) or data.get("promise") not in Promise.known:
        raise LedgerDamaged(
            "the first line of this ledger names no budget known to this version.\n  do:     use the one that made it"
        )
    values = {**data, "relation": Relation(data["relation"])}
    return Promise.known[values.pop("promise")](**values)
