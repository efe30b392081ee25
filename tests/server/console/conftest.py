"""A console that is open, and people who use it with the cookies of a browser."""

import re
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import pytest

from tests.server.http.conftest import door, settings, token

__all__ = ["door", "settings", "token"]


class Visitor:
    """Follows no redirects; keeps the cookie and the secret of the forms."""

    def __init__(self, door, base="/console"):
        self.door, self.base, self.cookie, self.csrf = door, base, "", ""

    def get(self, path, **headers):
        return self.request("GET", path, None, headers)

    def post(self, path, fields=(), **headers):
        body = urlencode({"csrf": self.csrf, **dict(fields)})
        return self.request("POST", path, body, {"Content-Type": "application/x-www-form-urlencoded", **headers})

    def request(self, method, path, body, headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent["Cookie"] = f"sfumato_console={self.cookie}"
        status, found, content = self.door.request(method, self.base + path, body, None, sent)
        text = content.decode() if isinstance(content, bytes) else content
        return status, found, text

    def log_in(self, token):
        status, headers, _ = self.post("/login", {"token": token})
        assert status == 303, status
        self.cookie = SimpleCookie(headers["Set-Cookie"])["sfumato_console"].value
        self.csrf = re.search(r'name="csrf" value="([^"]+)"', self.get("/data/clinic/budget")[2])[1]
        return self


@pytest.fixture(scope="module")
def visitor(door, token):
    """Name → somebody who is logged in."""
    return {who: Visitor(door).log_in(text) for who, text in token.items()}
