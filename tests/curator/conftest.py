"""A server for engines that need one: the fixture of the tests of engines."""

from tests.engines.conftest import server

__all__ = ["server"]
