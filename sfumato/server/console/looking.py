"""The pages Budget, Ledger and Audit."""

from starlette.responses import Response

from sfumato.errors import NotAuthenticated, SfumatoError
from sfumato.server.console.frame import Frame, Visit, number

SHOWN = 200  # lines
EPSILON = 0.1  # the price with which a what-if begins


async def budget(frame: Frame, visit: Visit) -> Response:
    standing, spending = await visit.act(visit.service.budget), await visit.act(visit.service.spending)
    catalogue = await visit.act(visit.service.catalogue)
    examples = [one for table in catalogue.tables if not table.public for one in table.examples]
    return frame.page(
        visit, "budget", standing=standing, spending=spending, examples=examples, epsilon=min(EPSILON, standing.largest)
    )


async def what_if(frame: Frame, visit: Visit) -> Response:
    """What further questions would leave: a part of the page Budget."""
    question, epsilon, count = (
        visit.fields.get("sql", ""),
        number(visit.fields, "epsilon"),
        number(visit.fields, "count"),
    )
    try:
        found = await visit.act(visit.service.what_if, question, epsilon or EPSILON, int(count or 1))
    except NotAuthenticated:
        raise
    except SfumatoError as problem:  # of a form that is being filled in: no failure of the page
        return frame.render(visit.request, "what_if.html", found=None, problem=str(problem))
    spending = await visit.act(visit.service.spending)
    return frame.render(visit.request, "what_if.html", found=found, spending=spending)


async def ledger(frame: Frame, visit: Visit) -> Response:
    words = visit.request.query_params.get("q", "")
    lines = await visit.act(visit.service.search, words, most=SHOWN)
    asked = await visit.service.call(visit.service.audit_log.asked_texts, visit.data, lines)
    return frame.page(visit, "ledger", lines=lines, words=words, asked=asked)


async def verify(frame: Frame, visit: Visit) -> Response:
    lines, head = await visit.act(visit.service.verify)
    marks = await visit.act(visit.service.anchor_marks)
    return frame.render(visit.request, "verified.html", lines=lines, head=head, marks=marks)


async def audit(frame: Frame, visit: Visit) -> Response:
    lines = await visit.act(visit.service.audit, after=max(0, visit.service.audit_log.seq - SHOWN), most=SHOWN)
    report, spending = await visit.act(visit.service.audit_report), await visit.act(visit.service.spending)
    return frame.page(visit, "audit", lines=lines[::-1], report=report, spending=spending)
