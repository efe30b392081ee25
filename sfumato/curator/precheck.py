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
from sfumato.sql.schema_check import Schema, require_fit

UNAVAILABLE = "the database cannot be asked now. Nothing was charged; ask the operator, who can read why in the log."
ALIVE = "SELECT 1"
log = logging.getLogger("sfumato.curator")


@dataclass(frozen=True)
class CheckedRequests:
    """Statements that the engine has said it can run. Only these are charged for."""

    requests: tuple[TableRequest, ...]
    began: float  # the time of the check: opening an engine may take a time that depends on the data


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


@dataclass
class Precheck:
    """The checks of one engine under one policy. A schema that the policy was found to fit is not compared again."""

    engine: Engine
    policy: Policy
    fitting: tuple[Schema, frozenset[str]] | None = None  # the schema and untyped tables of the last check

    def check(self, make: Callable[[Dialect], list[TableRequest]], began: float) -> CheckedRequests:
        """The statements that `make` writes for the engine as it is now, after it has said that it can run them.

        Otherwise EngineUnavailable, whose text is always the same; or PolicyError, if the schema has changed and the
        policy does not fit it any more: both are public.
        """
        engine = self.engine
        with ExitStack() as snapshot:
            with fixed_error():
                snapshot.enter_context(engine.snapshot())
                engine.check(ALIVE)  # opens the database, so that the schema is that of the tables that will be read
                schema, untyped = engine.schema(), untyped_tables(engine)
                views = lasting_views(engine)
            if self.fitting != (schema, untyped):
                require_fit(self.policy, schema, untyped)
                self.fitting = schema, untyped
            requests = make(replace(dialect_of(engine.dialect), schema=schema, lasting=views))
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


def lasting_views(engine: Engine) -> tuple[str, ...]:
    """The sums by day that an engine has; engines without them need no method `lasting`."""
    return tuple(getattr(engine, "lasting", lambda: ())())


def untyped_tables(engine: Engine) -> frozenset[str]:
    """The tables read from files without types (CSV); engines without such files need no method `untyped`."""
    return frozenset(getattr(engine, "untyped", lambda: ())())
