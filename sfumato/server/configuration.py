"""The file that a service is started with: data sets, doors, certificates and limits. TOML.

[http]
listen = "0.0.0.0:8443"          # without certificates, addresses of this machine only
[postgres]
listen = "0.0.0.0:5433"
[tls]
certificate = "tls/service.pem"
key = "tls/service.key"
[oidc]                            # people may also log in with what this issuer signs
issuer = "https://login.example"
audience = "sfumato"
keys = "login-keys.json"          # its public keys, a JSON Web Key Set
[limits]                          # public numbers; all have a default
response_quantum = 0.25
[data.clinic]                     # as many as there are data sets
source = "clinic.duckdb"          # a file, a folder, or postgresql://…
policy = "clinic.toml"
ledger = "clinic.duckdb.ledger"   # or postgresql://…?schema=clinic

Paths are relative to the file. The file may also be a policy; its data are then the file beside it with the same name.
"""

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from sfumato.engines.addresses import ADDRESSES
from sfumato.engines.files import SEPARATORS
from sfumato.errors import InvalidParameter
from sfumato.ledger.location import ADDRESS

HTTP = "127.0.0.1:8080"
SUFFIXES = (".duckdb", ".db", ".parquet", *SEPARATORS, "")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class Listen:
    """Where a door listens."""

    host: str
    port: int

    @property
    def local(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Tls:
    """The files of a certificate and its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Oidc:
    """An issuer of signed identities: what it calls itself and us, its public keys, and the claim with the name."""

    issuer: str
    audience: str
    keys: Path
    name: str = "sub"


@dataclass(frozen=True)
class Limits:
    """Public numbers that protect a service from its users. None depends on data."""

    response_quantum: float = 0.25  # seconds; the larger of this and the policy's holds
    timeout: float = 60.0  # seconds for one statement; the smaller of this and the policy's holds
    workers: int = 2  # processes for each data set in which engines run
    threads: int = 64  # calls that run at the same time, of all people
    waiting: int = 512  # calls that wait for a thread
    concurrent: int = 16  # calls of one person at the same time
    rate: float = 50.0  # calls of one person a second
    burst: int = 100  # of which so many may come at once
    wait: float = 10.0  # seconds after which a long question is answered later (202)
    body: int = 131_072  # bytes of a request
    patience: float = 10.0  # seconds in which a request must arrive
    connections: int = 1000  # open at the same time, for each door
    grace: float = 30.0  # seconds that answers under way have when a service stops


@dataclass(frozen=True)
class DataSet:
    """One data set: where its data, its policy and its ledger are."""

    name: str
    source: str
    policy: Path
    ledger: str
    anchor: Path | None = None


@dataclass(frozen=True)
class Configuration:
    """All that a service is told when it starts."""

    data: Mapping[str, DataSet]
    audit_log: Path
    http: Listen | None = None
    postgres: Listen | None = None
    tls: Tls | None = None
    limits: Limits = Limits()
    plain: bool = False  # listens without TLS to other machines: behind a proxy that has it
    private_log: Path | None = None  # what engines say, which may hold private values; None: nowhere
    hosts: tuple[str, ...] = field(default=())  # names under which browsers reach it; (): any
    oidc: Oidc | None = None
    audit_report: Path | None = None  # what `sfumato audit --out report.json` wrote, for the console

    @staticmethod
    def load(path: Path) -> "Configuration":
        try:
            content = tomllib.loads(path.read_text("utf-8"))
        except OSError as problem:
            raise wrong("the file", f"{path.name}: {problem.strerror}", "name a file that can be read") from problem
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise wrong("the file", f"{path.name}: no TOML: {problem}", "write it as TOML") from problem
        if "budget" in content and "data" not in content:
            return of_policy(path)
        return read(content, path.parent.absolute(), path.stem)

    def require_private(self) -> None:
        """Raises if a token could be read on the wire."""
        for door in filter(None, (self.http, self.postgres)):
            if self.tls is None and not door.local and not self.plain:
                raise wrong(
                    "tls", f"{door} without a certificate",
                    "name the files [tls] certificate and key; listen on 127.0.0.1; or say plain = true behind a proxy",
                )  # fmt: skip


def of_policy(path: Path) -> Configuration:
    """The service of one policy: its data are the file beside it with the same name."""
    found = [place for suffix in SUFFIXES if (place := path.with_suffix(suffix)).exists()]
    if not found:
        raise wrong(
            "data", f"a policy, and no data beside it called {path.stem}", "add [data.name] source = … and policy = …"
        )
    name = re.sub(r"[^a-z0-9_-]", "-", path.stem.lower())
    source = found[0].absolute()
    data = DataSet(name if NAME.fullmatch(name) else "data", str(source), path.absolute(), f"{source}.ledger")
    return Configuration({data.name: data}, Path(f"{data.ledger}.audit"), http=parse_listen("http", HTTP))


def read(content: Mapping[str, object], folder: Path, stem: str) -> Configuration:
    known = (
        "data",
        "http",
        "postgres",
        "tls",
        "limits",
        "audit_log",
        "private_log",
        "plain",
        "hosts",
        "oidc",
        "audit_report",
    )
    top = table("the file", content, *known)
    sets = table("data", top.get("data", {}), *names(top.get("data")))
    if not sets:
        raise wrong("data", "none", "add [data.clinic] with source and policy")
    doors = {name: table(name, top[name], "listen") for name in ("http", "postgres") if name in top}
    listens = {name: parse_listen(name, text(name, door, "listen")) for name, door in doors.items()}
    if not listens:
        listens = {"http": parse_listen("http", HTTP)}
    tls = None
    if "tls" in top:
        files = table("tls", top["tls"], "certificate", "key")
        tls = Tls(folder / text("tls", files, "certificate"), folder / text("tls", files, "key"))
    hosts = top.get("hosts", [])
    if not isinstance(hosts, list) or not isinstance(top.get("plain", False), bool):
        raise wrong("hosts or plain", "another type", 'write hosts = ["stats.example"], plain = true')
    return Configuration(
        {name: read_data(name, sets[name], folder) for name in sets},
        folder / str(top.get("audit_log", f"{stem}.audit")),
        listens.get("http"), listens.get("postgres"), tls, read_limits(top.get("limits", {})),
        bool(top.get("plain", False)),
        folder / str(top["private_log"]) if "private_log" in top else None,
        tuple(map(str, hosts)),
        read_oidc(top["oidc"], folder) if "oidc" in top else None,
        folder / str(top["audit_report"]) if "audit_report" in top else None,
    )  # fmt: skip


def read_data(name: str, content: object, folder: Path) -> DataSet:
    if not NAME.fullmatch(name):
        raise wrong(f"data.{name}", "this name", "use small letters, digits, _ and -, beginning with a letter")
    found = table(f"data.{name}", content, "source", "policy", "ledger", "anchor")
    source = text(f"data.{name}", found, "source")
    place = source if source.startswith(ADDRESSES) else str(folder / source)
    if "ledger" not in found and source.startswith(ADDRESSES):
        raise wrong(f"data.{name}.ledger", "none", "say where it is: a file, or postgresql://…?schema=…")
    ledger = text(f"data.{name}", found, "ledger") if "ledger" in found else f"{place}.ledger"
    return DataSet(
        name,
        place,
        folder / text(f"data.{name}", found, "policy"),
        ledger if ledger.startswith(ADDRESS) else str(folder / ledger),
        folder / text(f"data.{name}", found, "anchor") if "anchor" in found else None,
    )


def read_oidc(content: object, folder: Path) -> Oidc:
    found = table("oidc", content, "issuer", "audience", "keys", "name")
    issuer, audience, keys = (text("oidc", found, name) for name in ("issuer", "audience", "keys"))
    return Oidc(issuer, audience, folder / keys, text("oidc", found, "name") if "name" in found else "sub")


def read_limits(content: object) -> Limits:
    kinds = {one.name: type(one.default) for one in fields(Limits)}
    found = table("limits", content, *kinds)
    values: dict[str, float | int] = {}
    for name, value in found.items():
        allowed = (int,) if kinds[name] is int else (int, float)
        least = 0 if name in ("response_quantum", "wait", "grace") else 1e-3
        if isinstance(value, bool) or not isinstance(value, allowed) or not least <= value <= 1e9:
            raise wrong(f"limits.{name}", repr(value), f"give a number such as {getattr(Limits(), name)}")
        values[name] = value
    return Limits(**values)  # type: ignore[arg-type]


def parse_listen(name: str, said: str) -> Listen:
    host, _, port = said.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise wrong(f"{name}.listen", repr(said), 'give an address and a port: "127.0.0.1:8080"')
    return Listen(host, int(port))


def table(where: str, content: object, *known: str) -> dict[str, object]:
    """A table of the file with no other names than these."""
    if not isinstance(content, dict):
        raise wrong(where, f"a {type(content).__name__}", f"write it as a table: [{where}]")
    for name in content:
        if name not in known:
            raise wrong(where, f"an entry {name!r}", f"use {', '.join(known)}")
    return content


def text(where: str, found: Mapping[str, object], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value or "\0" in value:
        raise wrong(f"{where}.{name}", "nothing" if value is None else repr(value), "give a text")
    return value


def names(content: object) -> list[str]:
    return [str(name) for name in content] if isinstance(content, dict) else []


def wrong(where: str, found: str, do: str) -> InvalidParameter:
    return InvalidParameter(f"the service is not clear about {where}.\n  found:  {found}\n  do:     {do}")
