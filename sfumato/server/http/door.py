"""The HTTP door as a part of a service: uvicorn, started and stopped by us."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from sfumato.server.configuration import Configuration, Listen
from sfumato.server.http.app import build
from sfumato.server.http.guard import LONGEST_HEADERS, Guard, ImpatientProtocol
from sfumato.server.service import Service


class QuietServer(uvicorn.Server):
    """uvicorn that leaves signals to the service."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpDoor:
    """Listens until it is stopped; requests under way are answered first."""

    def __init__(self, service: Service, configuration: Configuration, listen: Listen, tls: ssl.SSLContext | None):
        limits = configuration.limits
        protocol = type("Impatient", (ImpatientProtocol,), {"patience": limits.patience})
        settings = uvicorn.Config(
            Guard(build(service), limits.body, configuration.hosts), host=listen.host, port=listen.port,
            http=protocol, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            date_header=False, proxy_headers=False, timeout_keep_alive=max(5, int(limits.patience)), backlog=1024,
            limit_concurrency=limits.connections, timeout_graceful_shutdown=int(limits.grace) + 1,
            h11_max_incomplete_event_size=LONGEST_HEADERS,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )  # fmt: skip
        self.server = QuietServer(settings)
        self.task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            if self.task.done():
                await self.task
                raise OSError("the HTTP door did not open")
            await asyncio.sleep(0.01)

    @property
    def port(self) -> int:
        """The port that it listens on, which the system chose if 0 was asked for."""
        return int(self.server.servers[0].sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self.server.should_exit = True
        if self.task is not None:
            await self.task
