"""The addresses of the console: each reads a form, calls the service, and fills a template with what it returns."""

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
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sfumato.curator.answer import Answer
from sfumato.curator.preview import format_share
from sfumato.errors import InvalidParameter, NotAllowed, NotAuthenticated, SfumatoError, TooManyRequests
from sfumato.server.console.drawing import ErrorBar, Picture, dial, emphasise, moment, plain, series
from sfumato.server.console.sessions import IDLE, Session, Sessions
from sfumato.server.http.problems import status_of
from sfumato.server.identity import DAYS, WRONG, Role
from sfumato.server.service import Person, Service, new_key, request_id

HERE = Path(__file__).parent
COOKIE = "sfumato_console"
SLEEPING = 100  # failed log-ins that wait at the same time
EPSILON = 0.1  # where the slider stands first
FIELDS, MOST = 20, 1e9  # of a form; of a number in it
SHOWN = 200  # lines
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


Reply = Callable[[Visit], Awaitable[Response]]


def build(service: Service) -> Starlette:
    """The console of a service, to be mounted."""
    console = Console(service)
    routes = [
        Route("/", console.start), Route("/login", console.log_in, methods=["GET", "POST"]),
        Route("/logout", console.log_out, methods=["POST"]), Route("/static/{name:path}", console.static),
    ]  # fmt: skip
    addresses: list[tuple[str, Reply, list[str]]] = [
        ("ask", console.ask, ["GET", "POST"]), ("preview", console.preview, ["POST"]),
        ("answers/{id}.{form}", console.download, ["GET"]), ("answers/{id}", console.answer, ["GET"]),
        ("budget", console.budget, ["GET"]), ("ledger", console.ledger, ["GET"]), ("verify", console.verify, ["POST"]),
        ("audit", console.audit, ["GET"]), ("policy", console.policy, ["GET", "POST"]),
        ("people", console.people, ["GET", "POST"]),
    ]  # fmt: skip
    for path, reply, methods in addresses:
        routes.append(Route(f"/data/{{data}}/{path}", console.visited(reply), methods=methods))
    handlers = {SfumatoError: console.refused, HTTPException: console.not_found}
    return Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]


class Console:
    """Pages over a service."""

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

    def visited(self, reply: Reply) -> Callable[[Request], Awaitable[Response]]:
        """An address for people who are logged in; what is sent to it must come from one of our forms."""

        async def handle(request: Request) -> Response:
            session = self.session(request)
            fields = await read_form(request, session) if request.method == "POST" else {}
            return await reply(Visit(request, self.service, session, request.path_params["data"], fields))

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
        delay = self.service.delay(request.client.host if request.client else "")
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

    # ---- asking -------------------------------------------------------------------------------------------------

    async def start(self, request: Request) -> Response:
        person = self.session(request).person
        name = next(iter(person.roles))
        page = "ask" if person.may(name, "ask") else "budget"
        return RedirectResponse(f"{base(request)}/data/{name}/{page}", 303)

    async def ask(self, visit: Visit) -> Response:
        answered = await self.answer_to(visit) if visit.sent else {"answer": None}
        if visit.sent and partial(visit.request):
            return self.render(visit.request, "answer.html", **answered)
        catalogue, standing = await visit.act(self.service.catalogue), await visit.act(self.service.budget)
        examples = [one for table in catalogue.tables for one in table.examples]
        first = next((sql for sql in examples if "GROUP BY" in sql), "")
        context = {"sql": first, "epsilon": min(EPSILON, standing.largest) or EPSILON, **answered}
        return self.page(visit, "ask", **context, catalogue=catalogue, standing=standing, examples=examples)

    async def answer_to(self, visit: Visit) -> dict[str, object]:
        """The answer to the question of a form; or, if it takes long, only its id."""
        sql, who, key = visit.fields.get("sql", ""), visit.session.person, new_key()
        found = await self.service.ask_within(
            self.service.limits.wait, who, visit.data, sql, **price_of(visit.fields), key=key
        )
        id_ = request_id(visit.data, who.name, key)
        return {"id": id_, "data": visit.data, "sql": sql, **drawn(found if isinstance(found, Answer) else None)}

    async def preview(self, visit: Visit) -> Response:
        try:
            wanted = price_of(visit.fields)
            found = await visit.act(self.service.preview, visit.fields.get("sql", ""), **wanted)
        except NotAuthenticated:
            raise
        except SfumatoError as problem:  # of a question that is being written: no failure of the page
            return self.render(visit.request, "preview.html", preview=None, problem=str(problem))
        columns = zip(found.errors(), found.offer.question.aggregates, strict=True)
        bars = [ErrorBar.of(name, found.words(aggregate), error) for (name, error), aggregate in columns]
        return self.render(visit.request, "preview.html", preview=found, bars=bars)

    async def answer(self, visit: Visit) -> Response:
        """An answer that took long."""
        id_ = visit.request.path_params["id"]
        running = self.service.is_running(visit.session.person, visit.data, id_)
        found = None if running else await visit.act(self.service.stored, id_)
        return self.render(visit.request, "answer.html", **drawn(found), id=id_, data=visit.data)

    async def download(self, visit: Visit) -> Response:
        id_, form = visit.request.path_params["id"], visit.request.path_params["form"]
        if form not in ("csv", "json"):
            raise HTTPException(404)
        found = await visit.act(self.service.stored, id_)
        content, media = (found.to_csv(), "text/csv") if form == "csv" else (found.to_json(), "application/json")
        return Response(content, 200, {"Content-Disposition": f'attachment; filename="answer.{form}"'}, media)

    # ---- looking ------------------------------------------------------------------------------------------------

    async def budget(self, visit: Visit) -> Response:
        standing, spending = await visit.act(self.service.budget), await visit.act(self.service.spending)
        return self.page(visit, "budget", standing=standing, spending=spending)

    async def ledger(self, visit: Visit) -> Response:
        words = visit.request.query_params.get("q", "")
        lines = await visit.act(self.service.search, words, most=SHOWN)
        return self.page(visit, "ledger", lines=lines, words=words)

    async def verify(self, visit: Visit) -> Response:
        lines, head = await visit.act(self.service.verify)
        return self.render(visit.request, "verified.html", lines=lines, head=head)

    async def audit(self, visit: Visit) -> Response:
        lines = await visit.act(self.service.audit, after=max(0, self.service.audit_log.seq - SHOWN), most=SHOWN)
        return self.page(visit, "audit", lines=lines[::-1])

    async def policy(self, visit: Visit) -> Response:
        catalogue, text, change = await visit.act(self.service.catalogue), visit.fields.get("text", ""), None
        if visit.sent:
            change = await visit.act(self.service.check_policy, text.replace("\r\n", "\n"))
        else:
            text = await visit.act(self.service.policy_text)
        return self.page(visit, "policy", catalogue=catalogue, text=text, change=change)

    async def people(self, visit: Visit) -> Response:
        fields, made = visit.fields, None
        if "revoke" in fields:
            await visit.act(self.service.revoke_token, fields["revoke"])
        elif visit.sent:
            role, days = role_of(fields.get("role", "")), number(fields, "days") or DAYS
            made = await visit.act(self.service.new_token, fields.get("who", ""), role, days)
        tokens = await visit.act(self.service.tokens)
        now = self.service.data[visit.data].identity.clock()
        return self.page(visit, "people", tokens=tokens, made=made, now=now)

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


def drawn(answer: Answer | None) -> dict[str, object]:
    if answer is None:
        return {"answer": None, "picture": None, "series": None}
    return {"answer": answer, "picture": Picture.of(answer), "series": series(answer)}


def price_of(fields: Form) -> dict[str, float | None]:
    """The price or the accuracy that a form asks for."""
    by = "error" if fields.get("by") == "error" else "epsilon"
    return {"epsilon": None, "error": None, by: number(fields, by)}


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


def role_of(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise InvalidParameter(f"there is no such role.\n  do:     one of {', '.join(Role)}") from None


def to_json(value: object) -> str:
    """For an attribute, where the template escapes it."""
    return json.dumps(value, default=str, allow_nan=False)
