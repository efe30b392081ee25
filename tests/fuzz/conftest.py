"""A server for the engine that needs one."""

from tests.curator.conftest import server

__all__ = ["server"]
