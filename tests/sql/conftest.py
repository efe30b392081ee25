"""Fixtures that the tests of this room share with those of the curator."""

from tests.curator.conftest import server

__all__ = ["server"]
