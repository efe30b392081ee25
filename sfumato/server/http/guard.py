"""What an HTTP request must be before anybody looks at it: of this host, small, and complete in time.

uvicorn ends idle connections, but waits for ever for the rest of a request, and for a client that does not read its
reply; `ImpatientProtocol` does not.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from sfumato.errors import FAILED_SERVICE, ServiceFailed
from sfumato.server.http.problems import HttpProblem, to_response
from sfumato.server.logs import unforeseen

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_HEADERS = 32_768  # bytes
LEAST_READ = 16_384  # bytes of a reply that a client reads while our patience lasts
SPARE = 100  # connections beyond the limit that are told so; more are closed at once
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


@dataclass(eq=False)
class State:
    """How far one request has come."""

    taken: int = 0  # bytes of its body
    excess: bool = False
    started: bool = False  # a reply
    refused: bool = False  # by us, in place of the application's reply
    complete: bool = False


@dataclass(eq=False)
class Guard:
    """Around the whole application; its limits are public numbers."""

    app: App
    body: int  # bytes
    hosts: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = State()

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                if state.excess and not state.refused:
                    state.refused = True  # whatever the application makes of a body that was cut off
                    await to_response(self.too_large())(scope, receive, reply)
                    return
                state.started = True
                present = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in HEADERS if one[0] not in present)]
            if not (state.refused and state.complete):
                await send(message)
                state.complete = message["type"] == "http.response.body"

        try:
            self.check(scope)
            await self.app(scope, self.limited(receive, state), reply)
        except HttpProblem as problem:
            if not state.started:
                await to_response(problem)(scope, receive, reply)
        except Exception as problem:
            unforeseen(problem, door="http")
            if not state.started:
                await to_response(ServiceFailed(FAILED_SERVICE))(scope, receive, reply)

    def check(self, scope: Scope) -> None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) > LONGEST_HEADERS:
            raise HttpProblem(431, "ContentTooLarge", f"the headers of a request have at most {LONGEST_HEADERS} bytes")
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").rpartition(":")
        if self.hosts and (host[0] or host[2]) not in self.hosts:
            raise HttpProblem(421, "MisdirectedRequest", "the host of this request is not one of this service")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.body:
            raise self.too_large()

    def too_large(self) -> HttpProblem:
        return HttpProblem(413, "ContentTooLarge", f"a request has at most {self.body} bytes")

    def limited(self, receive: Receive, state: "State") -> Receive:
        async def some() -> Message:
            message = await receive()
            state.taken += len(message.get("body", b""))
            if state.taken > self.body:
                state.excess = True
                raise self.too_large()
            return message

        return some


class ImpatientProtocol(H11Protocol):
    """A connection that ends unless each request is complete soon after it began, and replies are read."""

    patience = 10.0  # seconds
    deadline: asyncio.TimerHandle | None = None  # of a request
    look: asyncio.TimerHandle | None = None  # whether the client has read more of a reply

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency + SPARE:
            transport.abort()
            return
        transport.set_write_buffer_limits(high=1, low=0)  # what is unread is told to `pause_writing`; 0 breaks TLS
        self.deadline = self.loop.call_later(self.patience, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            if self.deadline is None:
                self.deadline = self.loop.call_later(self.patience, self.transport.close)
        else:
            self.forget_deadline()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.look is None:
            self.look_again()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.forget_look()

    def look_again(self, before: float = math.inf) -> None:
        """End a connection whose client reads next to nothing of what it asked for; `close` would wait for it."""
        self.look = None
        unread = self.transport.get_write_buffer_size()
        if unread > max(0, before - LEAST_READ):
            self.transport.abort()
        elif unread:
            self.look = self.loop.call_later(self.patience, self.look_again, unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self.forget_deadline()
        self.forget_look()
        super().connection_lost(exc)

    def forget_deadline(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def forget_look(self) -> None:
        if self.look is not None:
            self.look.cancel()
            self.look = None
