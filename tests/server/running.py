"""A service in a thread of this process, with real sockets; and requests written byte by byte."""

import asyncio
import http.client
import json
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace

from sfumato.server.configuration import Listen
from sfumato.server.http.door import HttpDoor


class Running:
    """An HTTP door that is open."""

    def __init__(self, service, configuration, tls=None):
        self.service, self.loop = service, asyncio.new_event_loop()
        listen = Listen("127.0.0.1", 0)
        self.door = HttpDoor(service, replace(configuration, http=listen), listen, tls)
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    @property
    def port(self):
        return self.door.port

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def request(self, method, path, body=None, token=None, headers=None):
        """(status, headers, content): content is an object if the reply is JSON."""
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        if isinstance(body, dict):
            sent["Content-Type"], body = "application/json", json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {**sent, **(headers or {})})
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        if "json" in reply.headers.get("Content-Type", ""):
            content = json.loads(content)
        return reply.status, reply.headers, content

    def send(self, data, wait=30.0):
        """All that comes back when these bytes are sent, until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as wire:
            wire.sendall(data)
            received = b""
            while part := wire.recv(65536):
                received += part
            return received


@contextmanager
def running(service, configuration, tls=None):
    server = Running(service, configuration, tls)
    server.thread.start()
    server.call(server.door.start())
    try:
        yield server
    finally:
        server.call(server.door.stop())
        server.loop.call_soon_threadsafe(server.loop.stop)
        server.thread.join(10)
        server.loop.close()
