"""The page Ask: a question, its preview while it is written, and its answer."""

from starlette.exceptions import HTTPException
from starlette.responses import Response

from sfumato.curator.answer import Answer
from sfumato.curator.picture import Picture, series
from sfumato.errors import NotAuthenticated, SfumatoError
from sfumato.server.acts import new_key, request_id
from sfumato.server.console.drawing import ErrorBar
from sfumato.server.console.frame import Form, Frame, Visit, number, partial

EPSILON = 0.1  # where the slider stands first


async def ask(frame: Frame, visit: Visit) -> Response:
    answered = await answer_to(frame, visit) if visit.sent else {"answer": None}
    if visit.sent and partial(visit.request):
        return frame.render(visit.request, "answer.html", **answered)
    catalogue, standing = await visit.act(visit.service.catalogue), await visit.act(visit.service.budget)
    examples = [one for table in catalogue.tables for one in table.examples]
    first = next((sql for sql in examples if "GROUP BY" in sql), "")
    context = {"sql": first, "epsilon": min(EPSILON, standing.largest) or EPSILON, **answered}
    return frame.page(visit, "ask", **context, catalogue=catalogue, standing=standing, examples=examples)


async def answer_to(frame: Frame, visit: Visit) -> dict[str, object]:
    """The answer to the question of a form; or, if it takes long, only its id."""
    sql, who, key = visit.fields.get("sql", ""), visit.session.person, new_key()
    found = await visit.service.ask_within(
        visit.service.limits.wait, who, visit.data, sql, **price_of(visit.fields), key=key
    )
    id_ = request_id(visit.data, who.name, key)
    return {"id": id_, "data": visit.data, "sql": sql, **drawn(found if isinstance(found, Answer) else None)}


async def preview(frame: Frame, visit: Visit) -> Response:
    try:
        wanted = price_of(visit.fields)
        found = await visit.act(visit.service.preview, visit.fields.get("sql", ""), **wanted)
    except NotAuthenticated:
        raise
    except SfumatoError as problem:  # of a question that is being written: no failure of the page
        return frame.render(visit.request, "preview.html", preview=None, problem=str(problem))
    columns = zip(found.errors(), found.offer.question.aggregates, strict=True)
    bars = [ErrorBar.of(name, found.words(aggregate), error) for (name, error), aggregate in columns]
    return frame.render(visit.request, "preview.html", preview=found, bars=bars)


async def answer(frame: Frame, visit: Visit) -> Response:
    """An answer that took long."""
    id_ = visit.request.path_params["id"]
    running = visit.service.is_running(visit.session.person, visit.data, id_)
    found = None if running else await visit.act(visit.service.stored, id_)
    return frame.render(visit.request, "answer.html", **drawn(found), id=id_, data=visit.data)


async def download(frame: Frame, visit: Visit) -> Response:
    id_, form = visit.request.path_params["id"], visit.request.path_params["form"]
    if form not in ("csv", "json"):
        raise HTTPException(404)
    found = await visit.act(visit.service.stored, id_)
    content, media = (found.to_csv(), "text/csv") if form == "csv" else (found.to_json(), "application/json")
    return Response(content, 200, {"Content-Disposition": f'attachment; filename="answer.{form}"'}, media)


def drawn(answer: Answer | None) -> dict[str, object]:
    if answer is None:
        return {"answer": None, "picture": None, "series": None}
    return {"answer": answer, "picture": Picture.of(answer), "series": series(answer)}


def price_of(fields: Form) -> dict[str, float | None]:
    """The price or the accuracy that a form asks for."""
    by = "error" if fields.get("by") == "error" else "epsilon"
    return {"epsilon": None, "error": None, by: number(fields, by)}
