"""Addresses of the HTTP door for analysts: what can be asked, what it costs, and answers."""

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse

from sfumato.errors import InvalidParameter
from sfumato.server.acts import new_key, request_id
from sfumato.server.http.formats import ARROW, CSV, choose, render
from sfumato.server.http.login import Data, Here, Who
from sfumato.server.http.models import AnswerReply, BudgetReply, Later, PreviewReply, Question, Supposed

KEY = re.compile(r'"?[\x21\x23-\x5b\x5d-\x7e]{1,200}"?')
Id = Annotated[str, Path(pattern=r"^[0-9a-f]{8,64}$")]
router = APIRouter()


@router.get("/v1/data", tags=["analyst"])
async def data_sets(who: Who, service: Here) -> dict[str, Any]:
    """Who this token is, and which data sets it opens."""
    return {"who": who.name, "data": {name: role.value for name, role in who.roles.items()}}


@router.get("/v1/catalogue", tags=["analyst"])
async def catalogue(who: Who, service: Here, data: Data = None) -> dict[str, Any]:
    """Tables, columns, bounds, public keys and example questions."""
    return dict((await service.call(service.catalogue, who, service.choose_data(who, data))).to_dict())


@router.get("/v1/budget", tags=["analyst"], response_model=BudgetReply)
async def budget(who: Who, service: Here, data: Data = None) -> Response:
    """What is promised, spent and left."""
    found = await service.call(service.budget, who, service.choose_data(who, data))
    return Response(found.to_json(), media_type="application/json")


@router.post("/v1/preview", tags=["analyst"], response_model=PreviewReply)
async def preview(who: Who, service: Here, question: Question) -> Response:
    """Price, errors and odds of a question. Free; no data are read."""
    found = await service.call(
        service.preview, who, service.choose_data(who, question.data), question.sql,
        epsilon=question.epsilon, error=question.error, relative_error=question.relative_error,
    )  # fmt: skip
    content = {**json.loads(found.to_json()), "text": str(found)}
    return Response(json.dumps(content, ensure_ascii=False), media_type="application/json")


FORMS: dict[int | str, dict[str, Any]] = {
    200: {"model": AnswerReply, "content": {CSV: {}, ARROW: {}}},
    202: {"model": Later, "description": "Ask again at Location."},
}


@router.post("/v1/ask", tags=["analyst"], responses=FORMS)
async def ask(
    who: Who, service: Here, question: Question, request: Request,
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


@router.get("/v1/answers/{id}", tags=["analyst"], responses=FORMS)
async def answer(who: Who, service: Here, request: Request, id: Id, data: Data = None) -> Response:
    """The answer to an earlier request of yours. It charges nothing."""
    media, data = choose(request.headers.get("accept", "")), service.choose_data(who, data)
    if service.is_running(who, data, id):
        return later(data, id)
    return render(await service.call(service.stored, who, data, id), media, {"id": id, "data": data}, {})


@router.post("/v1/what-if", tags=["analyst"])
async def what_if(who: Who, service: Here, supposed: Supposed) -> dict[str, Any]:
    """What further questions of one price would leave of your budget. Free; no data are read."""
    name = service.choose_data(who, supposed.data)
    found = await service.call(service.what_if, who, name, supposed.sql, supposed.epsilon, supposed.count)
    return dict(vars(found))


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
