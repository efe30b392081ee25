"""A service to try: the made-up clinic, its policy, and tokens; on request in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.server.configuration import Configuration
from sfumato.server.identity import Role
from sfumato.server.service import Service
from sfumato.teach.demo import clinic

SERVICE = """\
# A service to try. docs/service.md says what else can stand here.
[http]
listen = "{listen}"

[postgres]
listen = "{postgres}"

[data.clinic]
source = "clinic.duckdb"
policy = "clinic.toml"
"""


def build(
    folder: Path, listen: str = "127.0.0.1:8080", postgres: str = "127.0.0.1:5433"
) -> tuple[Path, dict[str, str]]:
    """Write the clinic and its configuration to this folder: the file to serve, and tokens."""
    clinic.build(folder / "clinic.duckdb")
    (folder / "clinic.toml").write_text(clinic.POLICY, "utf-8")
    place = folder / "service.toml"
    place.write_text(SERVICE.format(listen=listen, postgres=postgres), "utf-8")
    service = Service.open(Configuration.load(place))
    people = {"journalist": Role.ANALYST, "owner": Role.OWNER, "auditor": Role.AUDITOR}
    tokens = {who: service.data["clinic"].identity.new(who, role) for who, role in people.items()}
    service.close()
    return place, tokens


@dataclass(eq=False)
class DemoService:
    """A service that runs: where it is, and a token for each role."""

    url: str
    tokens: dict[str, str] = field(repr=False)
    folder: Path
    postgres: int  # the port of its PostgreSQL door
    process: "subprocess.Popen[str]" = field(repr=False)

    def stop(self) -> None:
        """Stop it as an operator does, and wait until it has ended."""
        self.process.terminate()
        self.process.communicate()


def serve_demo(folder: Path | None = None) -> DemoService:
    """Start a service with the made-up clinic, on a free port of this machine."""
    place, tokens = build(folder or Path(tempfile.mkdtemp(prefix="sfumato-")), "127.0.0.1:0", "127.0.0.1:0")
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-m", "sfumato", "serve", str(place)], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))},
    )  # fmt: skip
    assert process.stderr is not None
    first = json.loads(process.stderr.readline())
    ports = first["ports"]
    return DemoService(f"http://127.0.0.1:{ports['http']}/clinic", tokens, place.parent, ports["postgres"], process)
