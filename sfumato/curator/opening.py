"""What a curator needs before it is asked anything: an engine, and a ledger that agrees with the policy."""

import os
from pathlib import Path

from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import (
    InvalidParameter,
    PolicyError,
)
from sfumato.ledger import Amount, Budget, Ledger, Promise, PureBudget
from sfumato.sql.policy import Limits, Policy


def engine_of(data: str | os.PathLike[str] | Engine, limits: Limits) -> Engine:
    if isinstance(data, str) and data.startswith(("postgresql://", "postgres://")):
        from sfumato.engines.postgres import Postgres  # an extra

        return Postgres(data, timeout=limits.timeout)
    if isinstance(data, str | os.PathLike):
        return DuckDB(Path(data), timeout=limits.timeout, memory=limits.memory, spill=limits.spill)
    return data


def beside(engine: Engine) -> Path:
    """Where the ledger of a file is."""
    if isinstance(engine, DuckDB):
        return Path(f"{engine.path}.ledger")
    raise InvalidParameter(
        "a ledger has no place of its own here.\n  found:  data that are not in a file\n"
        "  do:     say where it is: ledger=…, a path or a Ledger"
    )


def promised(policy: Policy) -> Promise:
    """The budget that the policy states."""
    if policy.pure:
        return PureBudget(policy.epsilon, policy.delta)
    return Budget(policy.epsilon, policy.delta)


def agree(ledger: Ledger, budget: Promise) -> None:
    mine, theirs = ((type(one), one.epsilon, one.delta) for one in (budget, ledger.promise))
    if mine != theirs:
        raise PolicyError(
            "the policy's budget is not the ledger's.\n"
            f"  found:  {in_words(budget)} in the policy, {in_words(ledger.promise)} in the ledger\n"
            "  do:     keep the promise that was made; a further budget is an act of the owner: Ledger.renew"
        )


def in_words(promise: Promise) -> str:
    kind = "pure " if isinstance(promise, PureBudget) else ""
    return f"{kind}ε = {promise.epsilon:g}, δ = {promise.delta:g}"


def caps(ledger: Ledger, policy: Policy) -> None:
    """Each analyst's share, set aside when the policy first names it."""
    whole, there = ledger.promise.amount, ledger.accounts()
    for who, share in policy.analysts.items():
        if share > 0 and f"analyst {who}" not in there:
            ledger.cap(who, Amount(*(int(units * share) for units in whole)))
