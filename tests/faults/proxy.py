"""A proxy in front of a PostgreSQL server that cuts the connection on command."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

COMMIT = b"COMMIT"


@dataclass(eq=False)
class CuttingProxy:
    """Passes everything on, until it sees a COMMIT while `armed`: then it cuts, before or after passing it on.

    "before": the server never sees the COMMIT. "after": the server has answered it, and the client never hears. A cut
    disarms it. With `deaf` all new connections are refused, as if the network were gone.
    """

    server: Path
    armed: str = ""
    deaf: bool = False
    cuts: int = 0
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread(self._accept)

    @property
    def dsn(self) -> str:
        port = self._listener.getsockname()[1]
        return f"host=127.0.0.1 port={port} user=sfumato dbname=postgres sslmode=disable gssencmode=disable"

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in list(self._threads):
            thread.join(30)

    def _thread(self, act: Callable[..., None], *words: object) -> threading.Thread:
        self._threads.append(threading.Thread(target=act, args=words, daemon=True))
        self._threads[-1].start()
        return self._threads[-1]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.deaf:
                    client.close()
                else:
                    self._thread(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self.server))
            back = self._thread(self._pass_back, server, client)
            with suppress(OSError):
                while data := client.recv(65536):
                    if self.armed and COMMIT in data:
                        self._cut(data, client, server)
                        break
                    server.sendall(data)
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)  # the server answers what it has got, then sees that nobody is there
            back.join(30)

    def _cut(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        when, self.armed = self.armed, ""
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)  # first: what the server answers must not get through
        self.cuts += 1
        if when == "after":
            server.sendall(data)

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                with suppress(OSError):
                    client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
