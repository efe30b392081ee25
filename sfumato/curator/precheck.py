"""Checks before the charge: the engine answers, policy and schema fit, and the engine can run the statements.

Names, types, functions and rights decide, and no value of any row: the engine binds a statement without running it.
A failure after the charge is another error (`AnswerFailed`), and stays charged.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from sfumato.engines.base import Engine
from sfumato.errors import EngineUnavailable, SfumatoError
from sfumato.sql.dialects import dialect_of
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.emit.request import TableRequest
from sfumato.sql.policy import Policy
from sfumato.sql.schema_check import require_fit

UNAVAILABLE = "the database cannot be asked now. Nothing was charged; ask the operator, who can read why in the log."
ALIVE = "SELECT 1"
log = logging.getLogger("sfumato.curator")


@dataclass(frozen=True)
class CheckedRequests:
    """Statements that the engine has said it can run. Only these are charged for."""

    requests: tuple[TableRequest, ...]
    began: float  # when they were checked: to open an engine may take as long as there are data


def require_engine(engine: Engine, policy: Policy) -> None:
    """Raises, to the owner who opens a curator, unless the engine answers and has what the policy names.

    Only the schema is read: files of data are not loaded before somebody asks.
    """
    try:
        schema = engine.schema()
    except SfumatoError:
        raise
    except Exception as problem:
        raise EngineUnavailable(
            f"the database cannot be opened.\n  found:  {type(problem).__name__}\n"
            "  do:     see the cause of this error; check the address, the server and the rights of its role"
        ) from problem
    require_fit(policy, schema, untyped_tables(engine))


def check_requests(
    engine: Engine, policy: Policy, make: Callable[[Dialect], list[TableRequest]], began: float
) -> CheckedRequests:
    """The statements that `make` writes for the engine as it is now, after it has said that it can run them.

    Otherwise EngineUnavailable, whose text is always the same; or PolicyError, if the schema has changed and the policy
    does not fit it any more: both are public.
    """
    with ExitStack() as snapshot:
        with fixed_error():
            snapshot.enter_context(engine.snapshot())
            engine.check(ALIVE)  # opens the database, so that the schema is that of the tables that will be read
            schema, untyped = engine.schema(), untyped_tables(engine)
        require_fit(policy, schema, untyped)
        requests = make(replace(dialect_of(engine.dialect), schema=schema))
        with fixed_error():
            for one in requests:
                engine.check(one.direct)
    return CheckedRequests(tuple(requests), began)


@contextmanager
def fixed_error() -> Iterator[None]:
    """Whatever goes wrong in an engine becomes one fixed error: an engine's own message may hold private values."""
    try:
        yield
    except Exception:
        log.exception("before a charge: the engine cannot be asked")
        raise EngineUnavailable(UNAVAILABLE) from None


def untyped_tables(engine: Engine) -> frozenset[str]:
    """The tables that are read from files which say no types (CSV): an engine without such files need not say."""
    return frozenset(getattr(engine, "untyped", lambda: ())())
