"""Errors as HTTP shows them: problem details (RFC 9457) with the code of the refusal.

The code of an error is the name of its class, so that a client can raise the same one again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi.responses import JSONResponse

from sfumato import errors
from sfumato.curator.answer import Answer
from sfumato.errors import SfumatoError

MEDIA = "application/problem+json"
# The first match counts.
STATUS: tuple[tuple[type[SfumatoError], int], ...] = (
    (errors.NotAuthenticated, 401), (errors.NotAllowed, 403), (errors.TooManyRequests, 429),
    (errors.NotStored, 404), (errors.BudgetExceeded, 402), (errors.KeyReused, 422), (errors.QueryRefused, 422),
    (errors.InvalidParameter, 422), (errors.OutOfReach, 422), (errors.NotReached, 422), (errors.QuestionBlocked, 423),
    (errors.AlreadyRun, 409), (errors.PolicyError, 422), (errors.EngineUnavailable, 503), (errors.LedgerError, 503),
)  # fmt: skip
CHARGED = (errors.AnswerFailed, errors.NotReached, errors.AlreadyRun, errors.CommitUnknown)


@dataclass
class HttpProblem(Exception):
    """A problem of HTTP itself: a path, a media type, a size."""

    status: int
    code: str
    detail: str


def status_of(problem: SfumatoError) -> int:
    return next((status for kind, status in STATUS if isinstance(problem, kind)), 500)


def to_response(problem: SfumatoError | HttpProblem) -> JSONResponse:
    if isinstance(problem, HttpProblem):
        return respond(problem.status, problem.code, problem.detail)
    extra: dict[str, object] = {"charged": isinstance(problem, CHARGED)}
    if isinstance(problem, errors.NotReached) and isinstance(problem.answer, Answer):
        extra["answer"] = problem.answer.to_json()
    headers = {}
    if isinstance(problem, errors.TooManyRequests):
        headers["Retry-After"] = str(max(1, round(problem.after)))
    if isinstance(problem, errors.NotAuthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="sfumato"'
    return respond(status_of(problem), type(problem).__name__, str(problem), extra, headers)


def respond(
    status: int, code: str, detail: str, extra: Mapping[str, object] = {}, headers: Mapping[str, str] = {}
) -> JSONResponse:
    content = {
        "type": f"/v1/problems/{code}",
        "title": title_of(code),
        "status": status,
        "detail": detail,
        "code": code,
    }
    return JSONResponse({**content, **extra}, status, dict(headers), MEDIA)


HTTP_TITLES = {
    "NotFound": "There is nothing at this address.",
    "MethodNotAllowed": "This address does not take this method.",
    "NotAcceptable": "The answer is not available in this form.",
    "UnsupportedMediaType": "A request is JSON: Content-Type: application/json.",
    "ContentTooLarge": "The request is too large.",
    "RequestTimeout": "The request did not arrive in time.",
    "InvalidRequest": "The request does not have the form that the description of this service states.",
    "MisdirectedRequest": "This service has another name.",
}


def title_of(code: str) -> str:
    """One sentence about a code: the first of the error's docstring."""
    kind = getattr(errors, code, None)
    text = (kind.__doc__ or code) if isinstance(kind, type) else HTTP_TITLES.get(code, code)
    return re.split(r"(?<=\.)\s", " ".join(text.split()))[0]


def all_codes() -> dict[str, str]:
    """Every code with its sentence."""
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, SfumatoError)]
    return {kind.__name__: title_of(kind.__name__) for kind in kinds} | HTTP_TITLES
