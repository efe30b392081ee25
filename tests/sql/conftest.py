"""Fixtures that the tests of this room share with those of engines."""

from tests.engines.conftest import server

__all__ = ["server"]
