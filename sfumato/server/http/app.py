"""The application of the HTTP door: public addresses, errors, and the addresses of analysts and of oversight."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

import sfumato
from sfumato.errors import SfumatoError
from sfumato.server.console import pages as console
from sfumato.server.http import analyst, oversight
from sfumato.server.http.login import Here
from sfumato.server.http.models import Problem
from sfumato.server.http.problems import MEDIA, HttpProblem, all_codes, respond, to_response
from sfumato.server.service import Service

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
router = APIRouter()


@router.get("/health", tags=["service"])
async def health(service: Here) -> dict[str, str]:
    """Is the service up?"""
    return {"status": "stopping" if service.stopping else "ok", "version": sfumato.__version__}


@router.get("/metrics", tags=["service"], response_class=PlainTextResponse)
async def metrics(service: Here) -> str:
    """Public counters, in the text format of Prometheus. Nothing depends on data."""
    return service.metrics.text()


@router.get("/v1/problems/{code}", tags=["service"])
async def problem(code: Annotated[str, Path(max_length=100)]) -> dict[str, str]:
    """What a code of a refusal means."""
    codes = all_codes()
    if code not in codes:
        raise HttpProblem(404, "NotFound", "there is no such code")
    return {"code": code, "title": codes[code]}


ROUTERS = (router, analyst.router, oversight.router)


def build(service: Service) -> FastAPI:
    """The application over a service."""
    app = FastAPI(
        title="sfumato", version=sfumato.__version__, docs_url=None, redoc_url=None, responses=REFUSALS,
        description="Differentially private answers. Every answer is charged to a budget before data are read.",
    )  # fmt: skip
    app.state.service, app.state.sleeping = service, 0
    add_error_handlers(app)
    for part in ROUTERS:
        app.include_router(part)
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
        routes = [one for part in ROUTERS for one in part.routes if one.matches(request.scope)[0] is not Match.NONE]
        headers["Allow"] = ", ".join(
            sorted({method for one in routes for method in getattr(one, "methods", None) or ()})
        )
    return respond(problem.status_code, code, str(problem.detail), {}, headers)
