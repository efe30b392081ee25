"""`sfumato serve` in a process of its own, with the demo's clinic and a large budget; and what is measured of it."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from sfumato.server.configuration import Configuration
from sfumato.server.identity import Role
from sfumato.server.service import Service
from sfumato.teach.demo import clinic

ROOT = Path(__file__).parents[2]
Row = tuple[str, str, str, bool]  # what, measured, bar, is it met?
SERVICE = """
[http]
listen = "127.0.0.1:0"
[postgres]
listen = "127.0.0.1:0"
[limits]
response_quantum = {quantum}
rate = 1e6
burst = 1000000
concurrent = 1000
connections = 2000
[data.clinic]
source = "clinic.duckdb"
policy = "policy.toml"
ledger = "{ledger}"
"""
PEOPLE = "journalist = 0.2              # a share of the budget\nfirst = 0.4\nsecond = 0.4"
TICKS = os.sysconf("SC_CLK_TCK")


class Running:
    """A service that runs."""

    def __init__(self, place: Path):
        began = time.perf_counter()
        command = [sys.executable, "-m", "sfumato", "serve", str(place)]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True
        )
        assert self.process.stderr is not None
        first = json.loads(self.process.stderr.readline())
        assert first["event"] == "ready", first
        self.seconds, self.start = time.perf_counter() - began, self.processor()
        self.url = f"http://127.0.0.1:{first['ports']['http']}"
        self.port = int(first["ports"]["postgres"])
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def memory(self) -> float:
        """MiB that the process has resident."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024

    def processor(self) -> float:
        """Seconds of processor time that the service has used, with its workers."""
        stats = [Path(f"/proc/{pid}/stat").read_text() for pid in (self.process.pid, *self.children())]
        return sum(sum(map(int, stat.rpartition(")")[2].split()[11:13])) for stat in stats) / TICKS

    def children(self) -> list[int]:
        text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        return [int(word) for word in text.stdout.split() if Path(f"/proc/{word}/stat").exists()]

    def postgres(self, token: str, epsilon: float = 0.01) -> "psycopg.Connection[tuple[object, ...]]":
        """A connection by the PostgreSQL door."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="first", password=token, dbname="clinic", autocommit=True,
            options=f"-c sfumato.epsilon={epsilon}",
        )  # fmt: skip

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def build(
    folder: Path, quantum: float = 0.25, ledger: str = "clinic.ledger", name: str = "service"
) -> tuple[Path, str]:
    """A configuration with the demo's clinic, and a token."""
    if not (folder / "clinic.duckdb").exists():
        clinic.build(folder / "clinic.duckdb")
    policy = clinic.POLICY.replace("journalist = 0.2              # a share of the budget", PEOPLE)
    (folder / "policy.toml").write_text(policy.replace("epsilon = 2.0", "epsilon = 200.0"))
    place = folder / f"{name}.toml"
    place.write_text(SERVICE.format(quantum=quantum, ledger=ledger))
    service = Service.open(Configuration.load(place))
    token = service.data["clinic"].identity.new("first", Role.ANALYST)
    service.close()
    return place, token


def question(i: int) -> str:
    return f"SELECT COUNT(*) AS n FROM patients WHERE age > {i % 90} AND patient_id <> {i}"


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] * 1e3


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
