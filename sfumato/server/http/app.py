"""The addresses of the HTTP door: each reads a request, calls the service, and writes what it returns."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.routing import Match

import sfumato
from sfumato.errors import InvalidParameter, NotAuthenticated, SfumatoError, TooManyRequests
from sfumato.server.console import pages as console
from sfumato.server.http.formats import ARROW, CSV, choose, render
from sfumato.server.http.models import (
    AnswerReply,
    BudgetReply,
    DataName,
    Later,
    NewToken,
    PolicyText,
    PreviewReply,
    Problem,
    Question,
)
from sfumato.server.http.problems import MEDIA, HttpProblem, all_codes, respond, to_response
from sfumato.server.identity import WRONG, Role
from sfumato.server.service import Person, Service, new_key, request_id

SLEEPING = 100  # failed log-ins that wait at the same time
BEARER = HTTPBearer(auto_error=False, description="A token: sf_…_…")
KEY = re.compile(r'"?[\x21\x23-\x5b\x5d-\x7e]{1,200}"?')
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "content": {MEDIA: {}}, "description": words}
    for status, words in {
        400: "No HTTP, or no JSON.", 401: "No valid token.",
        402: "The budget does not cover the question.", 403: "The role does not include this.",
        404: "There is no such thing.", 406: "Not in this form.", 409: "It was already run twice.",
        413: "Too large.", 415: "Not JSON.", 422: "Refused; never because of data.", 423: "Blocked by a failure.",
        429: "Too many requests.", 500: "Failed.", 503: "The database or the ledger cannot be reached.",
    }.items()
}  # fmt: skip
Data = Annotated[DataName | None, Query(description="The data set; the only one of the token if left out.")]
Id = Annotated[str, Path(pattern=r"^[0-9a-f]{8,64}$")]
TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{8}$")]
Start = Annotated[int, Query(ge=1, le=2**53)]
Most = Annotated[int, Query(ge=1, le=1000)]


def build(service: Service) -> FastAPI:
    """The application over a service."""
    app = FastAPI(
        title="sfumato", version=sfumato.__version__, docs_url=None, redoc_url=None, responses=REFUSALS,
        description="Differentially private answers. Every answer is charged to a budget before data are read.",
    )  # fmt: skip
    sleeping = 0

    async def person(
        request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
    ) -> Person:
        """Who sends this request. A failed attempt waits, ever longer."""
        nonlocal sleeping
        try:
            if credentials is None:
                raise NotAuthenticated(WRONG)
            return await service.call(service.authenticate, credentials.credentials, door="http")
        except NotAuthenticated:
            delay = service.delay(request.client.host if request.client else "")
            if sleeping >= SLEEPING:
                raise TooManyRequests("too many failed log-ins.\n  do:     wait a moment", delay) from None
            sleeping += 1
            try:
                await asyncio.sleep(delay)
            finally:
                sleeping -= 1
            raise

    Who = Annotated[Person, Depends(person)]

    add_error_handlers(app)

    # ---- without a token ----------------------------------------------------------------------------------------

    @app.get("/health", tags=["service"])
    async def health() -> dict[str, str]:
        """Is the service up?"""
        return {"status": "stopping" if service.stopping else "ok", "version": sfumato.__version__}

    @app.get("/metrics", tags=["service"], response_class=PlainTextResponse)
    async def metrics() -> str:
        """Public counters, in the text format of Prometheus. Nothing depends on data."""
        return service.metrics.text()

    @app.get("/v1/problems/{code}", tags=["service"])
    async def problem(code: Annotated[str, Path(max_length=100)]) -> dict[str, str]:
        """What a code of a refusal means."""
        codes = all_codes()
        if code not in codes:
            raise HttpProblem(404, "NotFound", "there is no such code")
        return {"code": code, "title": codes[code]}

    # ---- analysts -----------------------------------------------------------------------------------------------

    @app.get("/v1/data", tags=["analyst"])
    async def data_sets(who: Who) -> dict[str, Any]:
        """Who this token is, and which data sets it opens."""
        return {"who": who.name, "data": {name: role.value for name, role in who.roles.items()}}

    @app.get("/v1/catalogue", tags=["analyst"])
    async def catalogue(who: Who, data: Data = None) -> dict[str, Any]:
        """Tables, columns, bounds, public keys and example questions."""
        return dict((await service.call(service.catalogue, who, service.choose_data(who, data))).to_dict())

    @app.get("/v1/budget", tags=["analyst"], response_model=BudgetReply)
    async def budget(who: Who, data: Data = None) -> Response:
        """What is promised, spent and left."""
        found = await service.call(service.budget, who, service.choose_data(who, data))
        return Response(found.to_json(), media_type="application/json")

    @app.post("/v1/preview", tags=["analyst"], response_model=PreviewReply)
    async def preview(who: Who, question: Question) -> Response:
        """Price, errors and odds of a question. Free; no data are read."""
        found = await service.call(
            service.preview, who, service.choose_data(who, question.data), question.sql,
            epsilon=question.epsilon, error=question.error, relative_error=question.relative_error,
        )  # fmt: skip
        content = {**json.loads(found.to_json()), "text": str(found)}
        return Response(json.dumps(content, ensure_ascii=False), media_type="application/json")

    forms: dict[int | str, dict[str, Any]] = {
        200: {"model": AnswerReply, "content": {CSV: {}, ARROW: {}}},
        202: {"model": Later, "description": "Ask again at Location."},
    }

    @app.post("/v1/ask", tags=["analyst"], responses=forms)
    async def ask(
        who: Who, question: Question, request: Request,
        idempotency_key: Annotated[str | None, Header(description="The same key is charged once.")] = None,
        prefer: Annotated[str | None, Header(description="wait=5 (seconds), or respond-async")] = None,
    ) -> Response:  # fmt: skip
        """A private answer. It is charged before data are read, and stored before it is sent."""
        media, data = choose(request.headers.get("accept", "")), service.choose_data(who, question.data)
        key = new_key() if idempotency_key is None else read_key(idempotency_key)
        found = await service.ask_within(
            patience(prefer, service.limits.wait), who, data, question.sql, epsilon=question.epsilon,
            error=question.error, relative_error=question.relative_error, key=key,
        )  # fmt: skip
        id_ = request_id(data, who.name, key)
        if isinstance(found, str):
            return later(data, id_)
        return render(found, media, {"id": id_, "data": data}, {"Location": place(data, id_)})

    @app.get("/v1/answers/{id}", tags=["analyst"], responses=forms)
    async def answer(who: Who, request: Request, id: Id, data: Data = None) -> Response:
        """The answer to an earlier request of yours. It charges nothing."""
        media, data = choose(request.headers.get("accept", "")), service.choose_data(who, data)
        if service.is_running(who, data, id):
            return later(data, id)
        return render(await service.call(service.stored, who, data, id), media, {"id": id, "data": data}, {})

    # ---- owners, stewards, auditors -----------------------------------------------------------------------------

    @app.get("/v1/ledger", tags=["oversight"])
    async def ledger(who: Who, data: Data = None, start: Start = 1, most: Most = 100) -> dict[str, Any]:
        """Lines of the ledger: your own; all of them for auditors, stewards and owners."""
        lines = await service.call(service.history, who, service.choose_data(who, data), start=start, most=most)
        return {"lines": [{"line": line.seq, "hash": line.hash, **line.content} for line in lines]}

    @app.get("/v1/ledger/verify", tags=["oversight"])
    async def verify(who: Who, data: Data = None) -> dict[str, Any]:
        """Read the whole ledger again, and compare it with its hash chain and its anchor."""
        lines, head = await service.call(service.verify, who, service.choose_data(who, data))
        return {"lines": lines, "head": head, "intact": True}

    @app.get("/v1/audit", tags=["oversight"])
    async def audit(who: Who, data: Data = None, after: Annotated[int, Query(ge=0, le=2**53)] = 0,
                    most: Most = 100) -> dict[str, Any]:  # fmt: skip
        """Lines of the audit log: who did what, when, and for which price."""
        lines = await service.call(service.audit, who, service.choose_data(who, data), after=after, most=most)
        return {"lines": [{"line": line.seq, "hash": line.hash, **line.content} for line in lines]}

    @app.get("/v1/policy", tags=["oversight"])
    async def policy(who: Who, data: Data = None) -> dict[str, str]:
        """The policy in force, which is public."""
        return {"text": await service.call(service.policy_text, who, service.choose_data(who, data))}

    @app.post("/v1/policy/check", tags=["oversight"])
    async def check_policy(who: Who, policy: PolicyText) -> dict[str, Any]:
        """What another policy would mean. Nothing changes, and no values are read."""
        name = service.choose_data(who, policy.data)
        return dict((await service.call(service.check_policy, who, name, policy.text)).to_dict())

    @app.get("/v1/tokens", tags=["oversight"])
    async def tokens(who: Who, data: Data = None) -> dict[str, Any]:
        """All tokens, without their secrets."""
        found = await service.call(service.tokens, who, service.choose_data(who, data))
        shown = ("id", "who", "role", "created", "expires", "revoked")
        return {"tokens": [{name: getattr(one, name) for name in shown} for one in found]}

    @app.post("/v1/tokens", tags=["oversight"], status_code=201)
    async def new_token(who: Who, wanted: NewToken) -> dict[str, str]:
        """A token for somebody. Its text is told once."""
        name, role = service.choose_data(who, wanted.data), Role(wanted.role)
        return {"token": await service.call(service.new_token, who, name, wanted.who, role, wanted.days)}

    @app.delete("/v1/tokens/{id}", tags=["oversight"])
    async def revoke(
        who: Who, id: Annotated[str, Path(pattern=r"^[0-9a-f]{8}$")], data: Data = None
    ) -> dict[str, bool]:
        """End a token at once."""
        return {"revoked": await service.call(service.revoke_token, who, service.choose_data(who, data), id)}

    app.mount("/console", console.build(service))
    return app


def add_error_handlers(app: FastAPI) -> None:
    """Every error is a problem of RFC 9457."""

    def handler(make: Callable[[Any], JSONResponse]) -> Callable[[Request, Any], Awaitable[Response]]:
        async def handle(_: Request, problem: Any) -> Response:
            return make(problem)

        return handle

    app.add_exception_handler(SfumatoError, handler(to_response))
    app.add_exception_handler(HttpProblem, handler(to_response))
    app.add_exception_handler(RequestValidationError, handler(invalid))
    app.add_exception_handler(HTTPException, of_framework)


def invalid(problem: RequestValidationError) -> JSONResponse:
    """Which field is wrong, without repeating what was sent."""
    listed = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problem.errors()[:10]]
    wrong_media = any(one["type"] == "model_attributes_type" for one in problem.errors())
    if wrong_media:
        return respond(415, "UnsupportedMediaType", "send a JSON object, with Content-Type: application/json")
    return respond(422, "InvalidRequest", "\n".join(listed))


async def of_framework(request: Request, problem: Exception) -> Response:
    """A path or a method that is not there; Allow lists all methods of the path, of whichever function they are."""
    assert isinstance(problem, HTTPException)
    codes = {404: "NotFound", 405: "MethodNotAllowed", 413: "ContentTooLarge", 400: "InvalidRequest"}
    code, headers = codes.get(problem.status_code, "InvalidRequest"), dict(problem.headers or {})
    if problem.status_code == 405:
        routes = [one for one in request.app.routes if one.matches(request.scope)[0] is not Match.NONE]
        headers["Allow"] = ", ".join(sorted({method for one in routes for method in one.methods or ()}))
    return respond(problem.status_code, code, str(problem.detail), {}, headers)


def read_key(text: str) -> str:
    """An idempotency key: visible ASCII, in quotes or not."""
    if not KEY.fullmatch(text):
        raise InvalidParameter("an Idempotency-Key has 1 to 200 visible ASCII characters, without quotes inside.")
    return text.strip('"')


def patience(prefer: str | None, most: float) -> float:
    """Seconds that a client wants to wait for an answer (RFC 7240)."""
    if prefer is not None and "respond-async" in prefer:
        return 0.0
    found = re.search(r"\bwait=(\d{1,6})\b", prefer or "")
    return min(most, float(found[1])) if found else most


def place(data: str, id_: str) -> str:
    return f"/v1/answers/{id_}?data={data}"


def later(data: str, id_: str) -> Response:
    headers = {"Location": place(data, id_), "Retry-After": "1"}
    return JSONResponse({"id": id_, "answer": place(data, id_), "status": "running"}, 202, headers)
