"""Opening a curator: its engine, a ledger that agrees with the policy, and who may ask."""

import os
from collections.abc import Mapping
from pathlib import Path

from sfumato.engines.addresses import ADDRESSES, engine_at
from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.files import Delimiters
from sfumato.engines.memory import Frames, in_memory, is_connection
from sfumato.engines.pool import WorkerPool
from sfumato.engines.spark_session import is_session
from sfumato.engines.worker import Worker
from sfumato.errors import InvalidParameter, PolicyError, QueryRefused
from sfumato.ledger import Budget, Ledger, Promise, PureBudget
from sfumato.ledger.location import resolve, store_at
from sfumato.ledger.shares import OWNER
from sfumato.ledger.sqlite import MEMORY
from sfumato.sensitivity import AddRemove
from sfumato.sql.policy import Limits, Policy, confusable_form

Data = str | os.PathLike[str] | Engine | Frames  # or a SparkSession, an extra


def open_engine(data: Data, limits: Limits, delimiters: Delimiters = ()) -> Engine:
    """The engine for these data: at an address, in files, or in memory (data frames, a connection of DuckDB)."""
    if isinstance(data, str) and data.startswith(ADDRESSES):
        return engine_at(data, limits.timeout)
    if is_session(data):
        from sfumato.engines.spark import Spark  # an extra

        return Spark(data, timeout=limits.timeout)
    if isinstance(data, str | os.PathLike):
        engine = DuckDB(
            Path(data), timeout=limits.timeout, memory=limits.memory, spill=limits.spill, delimiters=delimiters
        )
        return Worker(engine) if limits.worker else engine
    if isinstance(data, Mapping) or is_connection(data):
        return in_memory(data, timeout=limits.timeout, memory=limits.memory, spill=limits.spill)
    return data  # type: ignore[return-value]


def open_ledger(
    place: str | os.PathLike[str] | Ledger | None, engine: Engine, policy: Policy, anchor: str | os.PathLike[str] | None
) -> Ledger:
    """The ledger that is given, or at this place (a file, or an address postgresql://…?schema=clinic), made if there is
    none; a file beside the data if no place is given. Whichever it is, it agrees with the policy."""
    if isinstance(place, Ledger):
        if anchor is not None:
            raise InvalidParameter(
                "a ledger that is open has its anchor already.\n  found:  ledger=<a Ledger> and anchor=\n"
                "  do:     give the anchor to Ledger.open or Ledger.create"
            )
        return apply_policy(place, policy)
    where = resolve(place) if place is not None else default_ledger_path(engine)
    if store_at(where).exists():
        return apply_policy(Ledger.open(where, anchor=anchor), policy)
    return apply_policy(Ledger.create(where, budget_of(policy), anchor=anchor), policy)


def default_ledger_path(engine: Engine) -> Path:
    """The default path of the ledger: beside the data file."""
    if isinstance(engine, DuckDB | Worker | WorkerPool) and engine.path != MEMORY:
        return Path(f"{engine.path}.ledger")
    raise InvalidParameter(
        "the ledger needs a path.\n  found:  data that are not in a file, so there is no place beside it\n"
        "  do:     say where it is: ledger=…, a path or a Ledger"
    )


def budget_of(policy: Policy) -> Promise:
    """The budget that the policy states."""
    if policy.pure:
        return PureBudget(policy.epsilon, policy.delta)
    return Budget(policy.epsilon, policy.delta)


def require_same_promise(ledger: Ledger, policy: Policy) -> None:
    """Raise unless the ledger has the budget that the policy states."""
    kind, found = PureBudget if policy.pure else Budget, ledger.promise
    if found.relation is not AddRemove:
        raise PolicyError(
            "a curator needs a ledger for the neighbour relation add/remove.\n"
            f"  found:  {found.relation.value}\n"
            "  do:     create the ledger with relation=sf.AddRemove, the default of budgets"
        )
    if (type(found), found.epsilon, found.delta) != (kind, policy.epsilon, policy.delta):
        raise PolicyError(
            "the policy's budget is not the ledger's.\n"
            f"  found:  {format_budget(kind.__name__, policy.epsilon, policy.delta)} in the policy, "
            f"{format_budget(type(found).__name__, found.epsilon, found.delta)} in the ledger\n"
            "  do:     keep the promise that was made; a further budget is an act of the owner: sfumato ledger renew"
        )


def format_budget(kind: str, epsilon: float, delta: float) -> str:
    named = {"Budget": "", "PureBudget": "pure ", "ZcdpBudget": "zCDP "}.get(kind, f"{kind} ")
    return f"{named}ε = {epsilon:g}, δ = {delta:g}"


def apply_policy(ledger: Ledger, policy: Policy) -> Ledger:
    """The ledger, after it agrees with the policy and holds its shares. There is no other way into a curator.

    A policy that names nobody leaves caps alone that were set by hand; it ends the shares of an earlier policy.
    """
    require_same_promise(ledger, policy)
    if policy.analysts or policy.others is not True or ledger.shares() is not None:
        ledger.share(policy.analysts, policy.others)
    return ledger


def require_admitted(policy: Policy, who: str) -> None:
    """Raises if the policy does not let this person ask."""
    if not isinstance(who, str):
        raise InvalidParameter(f"the name of the analyst must be a text.\n  found:  a {type(who).__name__}")
    if who in policy.analysts or who == OWNER:
        return
    names = [*policy.analysts, OWNER] if policy.analysts else []
    alike = next((name for name in names if confusable_form(name) == confusable_form(who)), None)
    if alike is not None:
        raise QueryRefused(
            f"the policy does not name {who!r}, but somebody whose name looks the same.\n  found:  {alike!r}\n"
            "  do:     write the name as the policy does"
        )
    if policy.others is False:
        raise QueryRefused(
            f"the policy does not let {who!r} ask.\n  found:  {', '.join(map(repr, names)) or 'nobody'} may\n"
            "  do:     ask under a name of the policy; the owner can add one, or others = 0.1 for everybody else"
        )
