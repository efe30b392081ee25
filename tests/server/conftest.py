"""A small clinic behind a service, in this process, without padding."""

import pytest

from sfumato.server.configuration import Configuration, DataSet, Limits
from sfumato.server.identity import Role
from sfumato.server.service import Service
from tests.curator.clinic import POLICY, built

PEOPLE = """
[analysts]
ann = 0.5
bob = 0.25
sam = 0.05
"""
QUICK = Limits(response_quantum=0.0, workers=1, threads=8, grace=1.0)


def configuration(folder, limits=QUICK):
    """The clinic in this folder, as one data set."""
    built(folder / "clinic.duckdb")
    (folder / "clinic.toml").write_text(POLICY.replace("[tables.visits]", f"{PEOPLE}[tables.visits]", 1))
    data = DataSet("clinic", str(folder / "clinic.duckdb"), folder / "clinic.toml", str(folder / "clinic.ledger"))
    return Configuration({"clinic": data}, folder / "service.audit", limits=limits)


@pytest.fixture
def service(tmp_path):
    found = Service.open(configuration(tmp_path))
    yield found
    found.close()


@pytest.fixture
def tokens(service):
    """Text of a token for each role, and for bob, an analyst as ann is."""
    identity = service.data["clinic"].identity
    people = {"ann": Role.ANALYST, "bob": Role.ANALYST, "eve": Role.AUDITOR, "sam": Role.STEWARD, "owner": Role.OWNER}
    return {name: identity.new(name, role) for name, role in people.items()}


@pytest.fixture
def people(service, tokens):
    """The holders of these tokens."""
    return {name: service.authenticate(text, door="test") for name, text in tokens.items()}
