"""A service to try: the made-up clinic, its policy, and tokens."""

from pathlib import Path

from sfumato.server.configuration import Configuration
from sfumato.server.identity import Role
from sfumato.server.service import Service
from sfumato.teach.demo import clinic

SERVICE = """\
# A service to try. docs/service.md says what else can stand here.
[http]
listen = "127.0.0.1:8080"

[postgres]
listen = "127.0.0.1:5433"

[data.clinic]
source = "clinic.duckdb"
policy = "clinic.toml"
"""


def build(folder: Path) -> tuple[Path, dict[str, str]]:
    """Write the clinic and its configuration to this folder: the file to serve, and tokens."""
    clinic.build(folder / "clinic.duckdb")
    (folder / "clinic.toml").write_text(clinic.POLICY, "utf-8")
    place = folder / "service.toml"
    place.write_text(SERVICE, "utf-8")
    service = Service.open(Configuration.load(place))
    people = {"journalist": Role.ANALYST, "owner": Role.OWNER, "auditor": Role.AUDITOR}
    tokens = {who: service.data["clinic"].identity.new(who, role) for who, role in people.items()}
    service.close()
    return place, tokens
