"""One open door for the tests of a file."""

import pytest

from sfumato.server.identity import Role
from sfumato.server.service import Service
from tests.server.conftest import QUICK, configuration
from tests.server.running import running

PEOPLE = {"ann": Role.ANALYST, "bob": Role.ANALYST, "eve": Role.AUDITOR, "sam": Role.STEWARD, "owner": Role.OWNER}


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return configuration(tmp_path_factory.mktemp("clinic"), QUICK)


@pytest.fixture(scope="module")
def door(settings):
    """A service behind HTTP; failed log-ins do not wait here."""
    service = Service.open(settings)
    service.sign_in.failed.delay = lambda source: 0.0
    with running(service, settings) as server:
        yield server
    service.close()


@pytest.fixture(scope="module")
def token(door):
    """Name → the text of a token."""
    return {who: door.service.data["clinic"].identity.new(who, role) for who, role in PEOPLE.items()}
