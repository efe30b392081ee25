"""The process of a service: opens its doors, reloads certificates and keys on SIGHUP, and stops gracefully on SIGTERM.

A door is a class with `start` and `stop`, made from (service, configuration, where to listen, TLS).
"""

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable
from importlib import import_module
from typing import Protocol

from sfumato.errors import InvalidParameter
from sfumato.server.configuration import Configuration, Listen, Tls
from sfumato.server.logs import event
from sfumato.server.service import Service

DOORS = {"http": "sfumato.server.http.door:HttpDoor", "postgres": "sfumato.server.postgres.door:PostgresDoor"}
PAUSE = 0.05  # seconds between two looks whether all calls have ended


class Door(Protocol):
    """Where people come in."""

    async def start(self) -> None:
        """Listen; returns when connections are accepted."""

    async def stop(self) -> None:
        """Accept no more; returns when requests under way are answered."""

    @property
    def port(self) -> int: ...


def tls_context(files: Tls | None) -> ssl.SSLContext | None:
    """TLS 1.2 or newer, with this certificate; None without one."""
    if files is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, files)
    return context


def load_certificate(context: ssl.SSLContext, files: Tls) -> None:
    """Use this certificate for new connections; nothing changes if it does not fit its key."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key)
    except (OSError, ssl.SSLError) as problem:
        raise InvalidParameter(
            f"the certificate cannot be used.\n  found:  {files.certificate.name}, {files.key.name}\n"
            "  do:     give a PEM certificate with its key, both readable"
        ) from problem
    context.load_cert_chain(files.certificate, files.key)


def make_door(
    name: str, service: Service, settings: Configuration, listen: Listen, tls: ssl.SSLContext | None
) -> Door:  # fmt: skip
    module, _, kind = DOORS[name].partition(":")
    try:
        found: Door = getattr(import_module(module), kind)(service, settings, listen, tls)
    except ModuleNotFoundError as missing:
        raise InvalidParameter(
            f"there is no {name} door here.\n  found:  no {missing.name}\n  do:     pip install 'sfumato[server]'"
        ) from missing
    return found


async def run(settings: Configuration, ready: Callable[[dict[str, int]], None] = lambda ports: None) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the port of each door."""
    settings.require_private()
    tls = tls_context(settings.tls)
    for listen in filter(None, (settings.http, settings.postgres)):
        require_free(listen)
    service = Service.open(settings)
    listens = {name: listen for name in DOORS if (listen := getattr(settings, name)) is not None}
    opened: dict[str, Door] = {}
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, reload, tls, settings.tls, service)
    try:
        for name, listen in listens.items():
            opened[name] = make_door(name, service, settings, listen, tls)
            await opened[name].start()
        ports = {name: door.port for name, door in opened.items()}
        event("ready", doors={name: str(listens[name]) for name in opened}, ports=ports, data=sorted(service.data))
        ready(ports)
        await stop.wait()
        event("stopping")
    finally:
        await close(service, opened, settings.limits.grace)
        event("stopped")


def require_free(listen: Listen) -> None:
    """Raises if another process listens there: a door would only log that it cannot open."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((listen.host, listen.port))
        except OSError as problem:
            raise InvalidParameter(
                f"nothing can listen at {listen}.\n  found:  {problem.strerror or problem}\n"
                "  do:     stop the process that listens there, or choose another port"
            ) from problem


def reload(tls: ssl.SSLContext | None, files: Tls | None, service: Service) -> None:
    """On SIGHUP: the certificate and the issuer's keys that are in the files now, for new connections."""
    if tls is not None and files is not None:
        reload_one("certificate", lambda: load_certificate(tls, files))
    if service.sign_in.issuer is not None:
        reload_one("keys of the issuer", service.sign_in.issuer.reload)


def reload_one(name: str, act: Callable[[], None]) -> None:
    try:
        act()
        event(f"{name} reloaded")
    except InvalidParameter as problem:
        event(f"{name} not reloaded", found=str(problem))


async def close(service: Service, doors: dict[str, Door], grace: float) -> None:
    """Calls under way have so many seconds to end; what they charged is stored, or can be asked for again."""
    service.stop()
    stopping = [asyncio.create_task(door.stop()) for door in doors.values()]
    if stopping:
        await asyncio.wait(stopping, timeout=grace)
    for _ in range(int(grace / PAUSE)):
        if service.idle():
            break
        await asyncio.sleep(PAUSE)
    service.close()
