"""What all pages of the console share: who is logged in, forms that we made, templates and refusals."""

import asyncio
import hashlib
import json
import math
import mimetypes
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qsl, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sfumato.errors import InvalidParameter, NotAllowed, NotAuthenticated, SfumatoError, TooManyRequests
from sfumato.server.console.drawing import dial, emphasise, moment, plain
from sfumato.server.console.sessions import IDLE, Session, Sessions
from sfumato.server.http.problems import status_of
from sfumato.server.identity import DAYS, WRONG, Role
from sfumato.server.rights import Person
from sfumato.server.service import Service
from sfumato.wording import format_share

HERE = Path(__file__).parent
COOKIE = "sfumato_console"
SLEEPING = 100  # failed log-ins that wait at the same time
FIELDS, MOST = 20, 1e9  # of a form; of a number in it
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": CSP, "Referrer-Policy": "same-origin"}  # without referrer, forms have no origin
PAGES = {"ask": "ask", "budget": "budget", "ledger": "history", "policy": "policy", "people": "tokens",
         "audit": "audit"}  # page → the right that it needs  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")
Form = Mapping[str, str]


@dataclass(frozen=True)
class Visit:
    """A request of somebody who is logged in: about a data set, with the fields of a form that we made."""

    request: Request
    service: Service
    session: Session
    data: str
    fields: Form

    async def act(self, act: Callable[Concatenate[Person, str, P], T], *args: P.args, **named: P.kwargs) -> T:
        return await self.service.call(act, self.session.person, self.data, *args, **named)

    @property
    def sent(self) -> bool:
        return self.request.method == "POST"


Page = Callable[["Frame", Visit], Awaitable[Response]]


class Frame:
    """Pages over a service: log-in, templates, files and refusals."""

    def __init__(self, service: Service) -> None:
        self.service, self.sessions, self.sleeping = service, Sessions(), 0
        static = HERE / "static"
        self.files = {p.relative_to(static).as_posix(): p.read_bytes() for p in static.rglob("*") if p.is_file()}
        version = hashlib.sha256(b"".join(self.files[name] for name in sorted(self.files))).hexdigest()[:12]
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined,
            trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self.templates.filters |= {
            "share": format_share, "emphasise": emphasise, "moment": moment, "plain": plain, "dial": dial,
            "to_json": to_json,
        }  # fmt: skip
        self.templates.globals |= {"version": version, "roles": [role.value for role in Role], "days": DAYS}

    # ---- who is this? -------------------------------------------------------------------------------------------

    def session(self, request: Request) -> Session:
        found = self.sessions.find(request.cookies.get(COOKIE, ""))
        if found is None:
            raise NotAuthenticated(WRONG)
        return found

    def visited(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """An address for people who are logged in; what is sent to it must come from one of our forms."""

        async def handle(request: Request) -> Response:
            session = self.session(request)
            fields = await read_form(request, session) if request.method == "POST" else {}
            return await page(self, Visit(request, self.service, session, request.path_params["data"], fields))

        return handle

    async def log_in(self, request: Request) -> Response:
        if request.method == "GET":
            return self.render(request, "login.html", problem="")
        fields = await read_form(request, None)
        try:
            person = await self.service.call(self.service.authenticate, fields.get("token", ""), door="console")
        except NotAuthenticated as problem:
            await self.wait_after_failure(request)
            return self.render(request, "login.html", 401, problem=str(problem))
        self.sessions.close(request.cookies.get(COOKIE, ""))
        response = RedirectResponse(f"{base(request)}/", 303)
        response.set_cookie(
            COOKIE, self.sessions.open(person), max_age=IDLE, path=base(request), httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return response

    async def wait_after_failure(self, request: Request) -> None:
        delay = self.service.sign_in.delay(request.client.host if request.client else "")
        if self.sleeping >= SLEEPING:
            raise TooManyRequests("too many failed log-ins.\n  do:     wait a moment", delay)
        self.sleeping += 1
        try:
            await asyncio.sleep(delay)
        finally:
            self.sleeping -= 1

    async def log_out(self, request: Request) -> Response:
        await read_form(request, self.session(request))
        self.sessions.close(request.cookies[COOKIE])
        return self.to_log_in(request)

    def to_log_in(self, request: Request) -> Response:
        """Back to the log-in; a page that asked for a part of itself is told to go there as a whole."""
        place = f"{base(request)}/login"
        response = Response("", 200, {"HX-Redirect": place}) if partial(request) else RedirectResponse(place, 303)
        response.delete_cookie(COOKIE, path=base(request), httponly=True, samesite="strict")
        return response

    async def start(self, request: Request) -> Response:
        person = self.session(request).person
        name = next(iter(person.roles))
        page = "ask" if person.may(name, "ask") else "budget"
        return RedirectResponse(f"{base(request)}/data/{name}/{page}", 303)

    # ---- replies ------------------------------------------------------------------------------------------------

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self.files:
            raise HTTPException(404)
        media = mimetypes.guess_type(name)[0] or "text/plain"
        return Response(self.files[name], 200, {"Cache-Control": "max-age=86400"}, media)

    def page(self, visit: Visit, page: str, **context: object) -> Response:
        person, data = visit.session.person, visit.data
        pages = [name for name, right in PAGES.items() if person.may(data, right)]
        context |= {"session": visit.session, "person": person, "data": data, "page": page, "pages": pages}
        return self.render(visit.request, f"{page}.html", **context)

    def render(self, request: Request, template: str, code: int = 200, /, **context: object) -> Response:
        text = self.templates.get_template(template).render(base=base(request), **context)
        return HTMLResponse(text, code, HEADERS)

    async def refused(self, request: Request, problem: SfumatoError) -> Response:
        """A refusal: as a part of a page, or as a page."""
        if isinstance(problem, NotAuthenticated):
            return self.to_log_in(request)
        template = "problem.html" if partial(request) else "refused.html"
        response = self.render(request, template, status_of(problem), problem=str(problem))
        if isinstance(problem, TooManyRequests):
            response.headers["Retry-After"] = str(max(1, round(problem.after)))
        return response

    async def not_found(self, request: Request, problem: HTTPException) -> Response:
        return self.render(request, "refused.html", problem.status_code, problem="there is nothing at this address.")


def base(request: Request) -> str:
    """Where the console is mounted."""
    return str(request.scope.get("root_path", ""))


def partial(request: Request) -> bool:
    """Does a page ask for a part of itself?"""
    return "hx-request" in request.headers


async def read_form(request: Request, session: Session | None) -> Form:
    """The fields of a form that one of our own pages sent; with a session, one of its own."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or site not in ("same-origin", "none"):
        raise NotAllowed("this form was not sent by a page of this service.")
    try:
        text = (await request.body()).decode()
        fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS))
    except ValueError:
        raise InvalidParameter("this is not a form of this service.") from None
    if session is not None and not session.sent(fields.get("csrf", "")):
        raise NotAllowed("this form is too old, or was not sent by this console.\n  do:     load the page again")
    return fields


def number(fields: Form, name: str) -> float | None:
    """A positive number of a form; None if its field is empty."""
    text = fields.get(name, "").strip()
    try:
        found = float(text) if text else None
    except ValueError:
        found = math.nan
    if found is not None and not 0 < found <= MOST:
        raise InvalidParameter(f"{name} is not a number above 0.")
    return found


def to_json(value: object) -> str:
    """For an attribute, where the template escapes it."""
    return json.dumps(value, default=str, allow_nan=False)
