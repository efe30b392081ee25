"""A service, asked from elsewhere: the methods of a curator, over HTTP. Needs nothing beside sfumato's core.

Each question has an idempotency key, so a request whose reply was lost is sent again and charged once.
"""

import http.client
import ipaddress
import json
import os
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import sfumato.errors as errors
from sfumato.aggregates.builder import Rows
from sfumato.curator.answer import Answer
from sfumato.curator.preview import Standing
from sfumato.errors import InvalidParameter, ServiceFailed, SfumatoError

TOKEN = "SFUMATO_TOKEN"  # the variable with the token, unless one is given
ATTEMPTS = 3  # to send a request whose reply was lost
LONGEST = 1 << 28  # bytes of a reply


@dataclass(frozen=True)
class RemotePreview:
    """The price of a question and the promised errors of its answer, from a service; no data were read."""

    epsilon: float
    delta: float
    free: bool
    fits: bool
    left: float
    after: float
    threshold: int | None
    largest: float | None
    lost: tuple[str, ...]
    odds_before: str = field(repr=False)
    odds_after: str = field(repr=False)
    policy: tuple[tuple[int, float], ...] = field(repr=False)
    listed: Mapping[str, float | None] = field(repr=False)
    text: str = field(repr=False)

    def errors(self) -> Iterator[tuple[str, float | None]]:
        """Each aggregate by the name of its column, with its ± at 95 %; None where that depends on private numbers."""
        yield from self.listed.items()

    def to_json(self) -> str:
        plain = {name: value for name, value in vars(self).items() if name not in ("listed", "text")}
        return json.dumps({**plain, "errors": self.listed}, ensure_ascii=False)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from sfumato.curator.answer_html import meter_html

        return meter_html(
            "Nothing has been charged", self.after if self.fits and not self.free else self.left, self.text
        )


@dataclass(eq=False)
class Remote:
    """One data set of a service, with the methods of a curator."""

    scheme: str
    host: str
    port: int
    token: str = field(repr=False)
    data: str | None = None
    certificates: str | None = field(default=None, repr=False)  # a file with those to trust; None: the system's
    timeout: float = 60.0  # seconds for one reply
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    _local: threading.local = field(default_factory=threading.local, init=False, repr=False)
    _open: list[http.client.HTTPConnection] = field(default_factory=list, init=False, repr=False)

    def ask(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None, key: str | None = None,
    ) -> Answer:  # fmt: skip
        """A private answer; see `Curator.ask`. Waits for long questions."""
        wanted = self._question(sql, epsilon, error, relative_error)
        found = self.request("POST", "/v1/ask", wanted, {"Idempotency-Key": key or secrets.token_hex(16)})
        while "columns" not in found:
            self.sleep(1.0)
            found = self.request("GET", str(found["answer"]))
        return read_answer(found)

    def preview(
        self, sql: str, *, epsilon: float | None = None, error: float | None = None,
        relative_error: float | None = None,
    ) -> RemotePreview:  # fmt: skip
        """Price, errors and odds. Free, and no data are touched."""
        found = self.request("POST", "/v1/preview", self._question(sql, epsilon, error, relative_error))
        listed = found.pop("errors")
        found["policy"] = tuple((size, eps) for size, eps in found["policy"])
        found["lost"] = tuple(found["lost"])
        known = {name: found[name] for name in RemotePreview.__dataclass_fields__ if name != "listed"}
        return RemotePreview(**known, listed=listed)

    def table(self, name: str) -> "Rows[Answer, RemotePreview]":
        """A question put together in Python: table("visits").where(…).group_by(…).agg(…).ask(epsilon=…)."""
        return Rows.of(self, name)

    @property
    def budget(self) -> Standing:
        """Promised, spent and left, and what that means."""
        return Standing(**self._get("/v1/budget"))

    @property
    def catalogue(self) -> dict[str, object]:
        """Tables, columns, bounds, keys and example questions."""
        return self._get("/v1/catalogue")

    def history(self) -> list[dict[str, object]]:
        """Lines of the ledger: your own, or all if your role shows them."""
        lines: list[dict[str, object]] = []
        start = 1
        while found := self._get("/v1/ledger", start=start, most=1000)["lines"]:
            lines += found
            start = int(found[-1]["line"]) + 1
        return lines

    def verify(self) -> dict[str, object]:
        """Let the service read its whole ledger again; for auditors, stewards and owners."""
        return self._get("/v1/ledger/verify")

    def policy(self) -> str:
        """The policy in force."""
        return str(self._get("/v1/policy")["text"])

    def _repr_html_(self) -> str:
        from sfumato.curator.answer_html import tables_html

        found: Any = self.catalogue["tables"]
        tables = {str(one["name"]): [str(column["name"]) for column in one["columns"]] for one in found}
        return tables_html(f"What can be asked of {self.host}", tables)

    # ---- HTTP ---------------------------------------------------------------------------------------------------

    def _question(
        self, sql: str, epsilon: float | None, error: float | None, relative_error: float | None
    ) -> dict[str, object]:
        wanted = {"sql": sql, "data": self.data, "epsilon": epsilon, "error": error, "relative_error": relative_error}
        return {name: value for name, value in wanted.items() if value is not None}

    def _get(self, path: str, **query: object) -> dict[str, Any]:
        pairs = {**({"data": self.data} if self.data else {}), **query}
        text = "&".join(f"{name}={quote(str(value))}" for name, value in pairs.items())
        return self.request("GET", f"{path}?{text}" if text else path)

    def request(self, method: str, path: str, body: object = None, headers: Mapping[str, str] = {}) -> dict[str, Any]:
        """Send a request until a reply comes; raises the error that a problem names."""
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        for attempt in range(ATTEMPTS):
            try:
                status, reply, after = self._send(method, path, data, sent)
                break
            except (OSError, http.client.HTTPException) as problem:
                self._drop()
                if attempt + 1 == ATTEMPTS or isinstance(problem, ssl.SSLCertVerificationError):
                    raise ServiceFailed(
                        f"the service cannot be reached.\n  found:  {self.host}: {type(problem).__name__}\n"
                        "  do:     check its address; a question may have been charged: ask again with the same key"
                    ) from problem
        try:
            found = json.loads(reply)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ServiceFailed(f"this is no sfumato service.\n  found:  status {status} without JSON")
        if status >= 400:
            raise error_of(found, after)
        return found

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes, float]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            self._open.append(connection)
        connection.request(method, path, body, dict(headers))
        reply = connection.getresponse()
        content = reply.read(LONGEST)
        if reply.will_close:
            connection.close()
        after = reply.headers.get("Retry-After", "1")
        return reply.status, content, float(after) if after.isdigit() else 1.0

    def _connect(self) -> http.client.HTTPConnection:
        if self.scheme == "http":
            return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        context = ssl.create_default_context(cafile=self.certificates)
        return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=context)

    def _drop(self) -> None:
        """Give up the connection of this thread."""
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection is not None:
            connection.close()
            self._open.remove(connection)

    def close(self) -> None:
        """Close the connections of all threads; the next request opens another one."""
        for connection in self._open:
            connection.close()

    def __del__(self) -> None:
        self.close()


def connect(
    url: str, *, token: str | None = None, data: str | None = None, certificates: str | None = None, plain: bool = False
) -> Remote:
    """A data set of the service at https://host:port/name; the token may be in the variable SFUMATO_TOKEN.

    `certificates` is a file with those to trust, if it is not one that the system trusts. A token is not sent without
    TLS to another machine, unless `plain` says so.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise InvalidParameter(
            f"this is no address of a service.\n  found:  {parts.scheme or 'no scheme'}\n"
            "  do:     give https://stats.example:8443/clinic, and the token apart from it"
        )
    if parts.scheme == "http" and not plain and not is_local(parts.hostname):
        raise InvalidParameter(
            "a token would be sent in the clear.\n  found:  http:// to another machine\n  do:     use https://"
        )
    secret = token or os.environ.get(TOKEN, "")
    if not secret.strip() or not secret.isascii() or not secret.isprintable():
        raise InvalidParameter(f"a service needs a token.\n  found:  none\n  do:     give token=, or set {TOKEN}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    name = data or parts.path.strip("/") or None
    return Remote(parts.scheme, parts.hostname, port, secret.strip(), name, certificates)


def is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_answer(found: dict[str, object]) -> Answer:
    """An answer from the reply of a service."""
    return Answer.from_json(json.dumps({name: value for name, value in found.items() if name not in ("id", "data")}))


def error_of(found: Mapping[str, object], after: float) -> SfumatoError:
    """The error that a problem names."""
    words, code = str(found.get("detail", "")), str(found.get("code", ""))
    if code == "NotReached":
        answer = found.get("answer")
        return errors.NotReached(words, Answer.from_json(str(answer)) if answer else None)
    if code == "UnboundedColumn":
        return errors.UnboundedColumn(words, "")
    if code == "TooManyRequests":
        return errors.TooManyRequests(words, after)
    kind = getattr(errors, code, None)
    if isinstance(kind, type) and issubclass(kind, SfumatoError):
        return kind(words)
    return InvalidParameter(words) if int(str(found.get("status", 500))) < 500 else ServiceFailed(words)
