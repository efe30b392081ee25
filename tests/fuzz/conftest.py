"""A server for the engine that needs one."""

from tests.engines.conftest import server

__all__ = ["server"]
