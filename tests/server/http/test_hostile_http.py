"""Hostile requests: all are refused, none is charged, and the service goes on."""

import json
import socket
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from sfumato.server.http.guard import ImpatientProtocol

COUNT = "SELECT COUNT(*) AS n FROM visits"
INJECTIONS = [
    "' OR 1=1 --",
    "'; DROP TABLE tokens; --",
    "\0",
    "%00",
    "../../../etc/passwd",
    "{{7*7}}",
    "<script>",
    "\ud800",
]


@pytest.fixture(autouse=True)
def unharmed(door, token):
    """After each attack nothing is charged, no token is new, and honest people are served."""
    ledger, identity = door.service.data["clinic"].curator.ledger, door.service.data["clinic"].identity
    before = ledger.verify().seq, len(identity.list())
    yield
    assert (ledger.verify().seq, len(identity.list())) == before
    assert door.request("GET", "/v1/data", token=token["ann"])[0] == 200


def raw(method, path, *headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def status(reply):
    return int(reply.split()[1]) if reply.startswith(b"HTTP/1.1 ") else None


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", "Basic YW5uOmFubg==", "Bearer sf_00000000_" + "A" * 43, "Bearer null",
              *(f"Bearer {one}" for one in INJECTIONS[:6])]
)  # fmt: skip
def test_wrong_tokens_are_refused_with_the_same_words(door, value):
    headers = {"Authorization": value} if value and value.isprintable() else {}
    for method, path, body in [("GET", "/v1/budget", None), ("POST", "/v1/ask", {"sql": COUNT, "epsilon": 0.1})]:
        code, _, content = door.request(method, path, body, headers=headers)
        assert (code, content["code"]) == (401, "NotAuthenticated")
        assert content == door.request("GET", "/v1/data")[2]


def test_expired_forged_and_foreign_tokens_are_refused(door, token, tmp_path):
    from sfumato.ledger import Budget, Ledger
    from sfumato.ledger.sqlite import SqliteStore
    from sfumato.server.identity import Identity, Role

    Ledger.create(tmp_path / "other.ledger", Budget(1.0, 1e-6)).close()
    foreign = Identity.open(SqliteStore(tmp_path / "other.ledger")).new("ann", Role.OWNER)
    good = token["ann"]
    forged = [
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good[:12] + good[12:].swapcase(),
        good.replace("sf_", "sf_ "),
    ]
    for text in (foreign, *forged):
        assert door.request("GET", "/v1/budget", token=text)[0] == 401


def test_cookies_and_forms_open_nothing(door, token):
    """Cross-site request forgery: a browser sends cookies and forms by itself, but no bearer token."""
    for headers in ({"Cookie": f"token={token['ann']}"}, {"Origin": "https://evil.example"}):
        assert door.request("POST", "/v1/ask", {"sql": COUNT, "epsilon": 0.1}, headers=headers)[0] == 401
    sent = json.dumps({"sql": COUNT, "epsilon": 0.1})
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert door.request("POST", "/v1/ask", sent, token["ann"], {"Content-Type": media})[0] == 415
    code, headers, _ = door.request("OPTIONS", "/v1/ask", headers={"Origin": "https://evil.example"})
    assert code == 405 and not any(name.lower().startswith("access-control") for name in headers)


def test_a_token_in_an_address_opens_nothing(door, token):
    assert door.request("GET", f"/v1/budget?token={token['ann']}&access_token={token['ann']}")[0] == 401


def test_oversized_bodies_are_refused_before_they_are_read(door, token):
    limit = door.service.limits.body
    assert door.request("POST", "/v1/ask", {"sql": "x" * limit, "epsilon": 0.1}, token["ann"])[0] == 413
    auth = f"Authorization: Bearer {token['ann']}"
    said = raw("POST", "/v1/ask", auth, "Content-Type: application/json", f"Content-Length: {10**12}")
    assert status(door.send(said)) == 413
    chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    chunked = raw("POST", "/v1/ask", auth, "Content-Type: application/json", "Transfer-Encoding: chunked")
    assert status(door.send(chunked + chunk * 5 + b"0\r\n\r\n")) == 413
    assert status(door.send(raw("GET", "/v1/budget", f"X-Long: {'x' * 100_000}"))) in (400, 431)


def test_smuggled_and_malformed_requests_are_refused(door, token):
    auth = f"Authorization: Bearer {token['ann']}"
    both = raw(
        "POST", "/v1/ask", auth, "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\nGET / HTTP/1.1"
    )
    for data in (
        both, raw("GET", "/v1/budget", "Content-Length: 1", "Content-Length: 2"), raw("GET", "/v1/budget", "a b: c"),
        raw("GET", "/v1/budget", "Content-Length: -1"), raw("GET", "/v1 /budget"),
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 40_000, raw("GET", "/\xff\xfe"), raw("GE\0T", "/"),
    ):  # fmt: skip
        assert status(door.send(data)) in (400, 401, 404, 413, 422, None)


@pytest.mark.parametrize("text", ["a\r\nSet-Cookie: x=1", "a\nb", 'a"b', "é", "", "x" * 201, " ", "a\x00b"])
def test_a_key_that_could_split_a_header_is_refused(door, token, text):
    body = json.dumps({"sql": "SELECT * FROM visits", "epsilon": 0.1}).encode()
    auth = f"Authorization: Bearer {token['ann']}"
    sent = raw("POST", "/v1/ask", auth, "Content-Type: application/json", f"Content-Length: {len(body)}",
               f"Idempotency-Key: {text}", body=body)  # fmt: skip
    reply = door.send(sent)
    assert status(reply) in (400, 422)
    assert b"set-cookie" not in reply.lower().replace(b"set-cookie: x=1\r\n\r\n", b"")


@pytest.mark.parametrize(
    "path", ["/../../../etc/passwd", "/v1/answers/../../../etc/passwd", "/v1/answers/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
             "/v1/problems/..%2f..%2fetc%2fpasswd", "/v1/problems/__class__", "//etc/passwd", "/v1/answers/' OR 1=1",
             "/v1/budget?data=../clinic", "/static/../clinic.ledger", "/v1/problems/FAILED_SERVICE"]
)  # fmt: skip
def test_no_path_leads_out(door, token, path):
    reply = door.send(raw("GET", path.replace(" ", "%20"), f"Authorization: Bearer {token['ann']}"))
    assert status(reply) in (400, 404, 422)
    assert b"root:" not in reply and b"SQLite format" not in reply


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_every_field_is_text(door, token, text):
    owner = token["owner"]
    for method, path, body in [
        ("POST", "/v1/ask", {"sql": text, "epsilon": 0.1}),
        ("POST", "/v1/preview", {"sql": f"SELECT COUNT(*) FROM visits WHERE ward = {text}", "epsilon": 0.1}),
        ("POST", "/v1/preview", {"sql": COUNT, "epsilon": 0.1, "data": text}),
        ("POST", "/v1/policy/check", {"text": text}),
        ("POST", "/v1/tokens", {"who": "x", "role": text}),
    ]:
        code, headers, content = door.request(method, path, body, owner)
        assert 400 <= code < 500 and headers["Content-Type"] == "application/problem+json"
        assert content["code"] in ("QueryRefused", "InvalidRequest", "PolicyError", "InvalidParameter")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 50_000, b'{"sql": 1e999}', b'{"epsilon": NaN}',
             b'{"sql": "x", "epsilon": 1e400}', b'{"sql": "x", "sql": "y"}', b'{"a":' * 10_000]
)  # fmt: skip
def test_bodies_that_are_no_question_are_refused(door, token, body):
    headers = {"Content-Type": "application/json"}
    code, _, content = door.request("POST", "/v1/ask", body, token["ann"], headers)
    assert code in (400, 415, 422) and content["status"] == code


def test_a_reply_repeats_nothing_that_a_browser_would_run(door, token):
    code, headers, _ = door.request(
        "POST", "/v1/ask", {"sql": "<script>alert(1)</script>", "epsilon": 0.1}, token["ann"]
    )
    assert code == 422 and headers["Content-Type"] == "application/problem+json"
    assert headers["X-Content-Type-Options"] == "nosniff" and "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


def test_slow_clients_are_cut_off_and_others_are_served(door, token):
    """Slowloris: connections that never finish their request. Each is closed after the stated patience."""
    protocol = door.door.server.config.http_protocol_class
    patience, protocol.patience = protocol.patience, 0.3
    wires = []
    try:
        for start in (b"", b"GET /v1/budget HTTP/1.1\r\nHost: a\r\n", b"POST /v1/ask HTTP/1.1\r\nHost: a\r\nContent-Le",
                      b"POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"):  # fmt: skip
            for _ in range(10):
                wire = socket.create_connection(("127.0.0.1", door.port), timeout=20)
                wire.sendall(start)
                wires.append(wire)
        assert door.request("GET", "/v1/data", token=token["ann"])[0] == 200
        for wire in wires:
            while wire.recv(4096):
                pass  # b"": the other side has closed
    finally:
        protocol.patience = patience
        for wire in wires:
            wire.close()


def test_clients_that_do_not_read_their_replies_are_cut_off(door, token, monkeypatch):
    """They kept a connection each for ever, without a token: a thousand of them, and the service served nobody."""
    wires = []
    monkeypatch.setattr(door.door.server.config.http_protocol_class, "patience", 0.3)
    try:
        for _ in range(5):
            wires.append(socket.socket())
            wires[-1].settimeout(20)
            wires[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            wires[-1].connect(("127.0.0.1", door.port))
            wires[-1].sendall(raw("GET", "/openapi.json").replace(b"close", b"keep-alive") * 100)
        for wire in wires:
            assert wire.recv(1)  # a reply has begun
        wait_until(lambda: not door.door.server.server_state.connections)
        assert door.request("GET", "/v1/data", token=token["ann"])[0] == 200
    finally:
        for wire in wires:
            wire.close()


def test_a_client_that_reads_slowly_is_not_cut_off():
    unread, ended, later = iter([90_000, 70_000, 50_000, 49_000]), [], []
    protocol = object.__new__(ImpatientProtocol)
    protocol.transport = SimpleNamespace(get_write_buffer_size=unread.__next__, abort=lambda: ended.append(True))
    protocol.loop = SimpleNamespace(call_later=lambda _, act, before: later.append(lambda: act(before)))
    protocol.look_again()
    for _ in range(2):
        later.pop()()
        assert not ended
    later.pop()()
    assert ended and not later


def test_connections_far_beyond_the_limit_are_closed_at_once(door, monkeypatch):
    protocol = door.door.server.config.http_protocol_class
    monkeypatch.setattr("sfumato.server.http.guard.SPARE", -door.door.server.config.limit_concurrency)
    assert protocol.patience > 1
    with socket.create_connection(("127.0.0.1", door.port), timeout=20) as wire, suppress(ConnectionResetError):
        assert wire.recv(1) == b""
    monkeypatch.undo()
    assert door.request("GET", "/health")[0] == 200


def wait_until(holds):
    ends = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)
