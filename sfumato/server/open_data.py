"""A data set of a service that is open: its worker processes, its ledger, its curators and its people."""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path

from sfumato.curator import Curator
from sfumato.engines.addresses import ADDRESSES, engine_at
from sfumato.engines.base import Engine
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.pool import WorkerPool
from sfumato.ledger.location import store_at
from sfumato.server.configuration import DataSet, Limits
from sfumato.server.identity import Identity
from sfumato.sql.policy import Policy

ANALYSTS = 1000  # whose curators are kept


@dataclass(eq=False)
class OpenData:
    """A data set that is open: its curator, and the people who may ask it."""

    settings: DataSet
    curator: Curator
    identity: Identity
    analysts: OrderedDict[str, Curator] = field(default_factory=OrderedDict)

    def curator_of(self, who: str) -> Curator:
        """The curator, asked by this person; raises QueryRefused if the policy does not let them."""
        found = self.analysts.get(who)
        if found is None:
            found = self.analysts[who] = self.curator.analyst(who)
            while len(self.analysts) > ANALYSTS:
                self.analysts.popitem(last=False)
        return found

    @property
    def draft_place(self) -> Path:
        """Where a policy is kept until it is published."""
        return self.settings.policy.with_name(f"{self.settings.policy.name}.draft")

    @property
    def policy_text(self) -> str:
        return self.settings.policy.read_text("utf-8")


def open_data(settings: DataSet, limits: Limits) -> OpenData:
    """A data set with its own worker processes, its ledger and its people."""
    policy = with_limits(Policy.load(settings.policy), limits)
    engine = open_engine(settings, policy, limits)
    curator = Curator.open(engine, policy, ledger=settings.ledger, anchor=settings.anchor)
    identity = Identity.open(store_at(settings.ledger))  # its own connection: log-ins do not wait for charges
    return OpenData(settings, curator, identity)


def open_engine(settings: DataSet, policy: Policy, limits: Limits) -> Engine:
    if settings.source.startswith(ADDRESSES):
        return engine_at(settings.source, policy.limits.timeout)
    own = policy.limits
    engine = DuckDB(
        Path(settings.source), timeout=own.timeout, memory=own.memory, spill=own.spill, delimiters=policy.delimiters
    )
    return WorkerPool(engine, limits.workers)


def with_limits(policy: Policy, limits: Limits) -> Policy:
    """The policy with a service's padding and time limit, where these are stricter."""
    quantum = max(policy.limits.response_quantum, limits.response_quantum)
    timeout = min(policy.limits.timeout, limits.timeout)
    return replace(policy, limits=replace(policy.limits, response_quantum=quantum, timeout=timeout))
