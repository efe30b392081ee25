"""The pages Policy and People: what owners and stewards decide."""

from starlette.responses import Response

from sfumato.errors import InvalidParameter, PolicyError
from sfumato.server.console.frame import Frame, Visit, number
from sfumato.server.identity import DAYS, Role
from sfumato.sql.policy_edit import with_column_bounds

EPSILON = 0.1  # the price of suggested bounds, unless another is said


async def policy(frame: Frame, visit: Visit) -> Response:
    """Draft, review, publish: `do` is the button that was pressed."""
    service, fields, do = visit.service, visit.fields, visit.fields.get("do", "")
    text, change, published = fields.get("text", "").replace("\r\n", "\n"), None, False
    if do == "publish":
        await visit.act(service.publish_policy, text, fields.get("based_on", ""))
        published = True
    elif visit.sent:
        change = await visit.act(service.check_policy, text)
        if do == "save":
            await visit.act(service.save_draft, text)
    return await show_policy(frame, visit, text=text if change else None, change=change, published=published)


async def show_policy(frame: Frame, visit: Visit, **context: object) -> Response:
    """The policy in force, and the text that is edited: what was sent, the draft, or what is in force."""
    service, person = visit.service, visit.session.person
    catalogue, in_force = await visit.act(service.catalogue), await visit.act(service.policy_text)
    draft = await visit.act(service.draft) if person.may(visit.data, "check policy") else None
    numbers = [f"{table.name}.{column.name}" for table in catalogue.tables if not table.public
               for column in table.columns if column.type == "number"]  # fmt: skip
    shown = {"change": None, "published": False, "suggested": None, "problem": "", **context}
    text = context.get("text") or draft or in_force
    return frame.page(
        visit, "policy", **{**shown, "text": text}, catalogue=catalogue, draft=draft, in_force=in_force, numbers=numbers
    )


async def suggest(frame: Frame, visit: Visit) -> Response:
    """Buy bounds for a column, and write them into the draft."""
    column, epsilon = visit.fields.get("column", ""), number(visit.fields, "epsilon") or EPSILON
    text = visit.fields.get("text", "").replace("\r\n", "\n")
    bounds = await visit.act(visit.service.suggest_bounds, column, epsilon)
    table, _, name = column.lower().partition(".")
    try:
        text = with_column_bounds(text, table, name, bounds.low, bounds.high, f"suggested: {bounds.outside}")
        problem = ""
    except PolicyError as found:  # the bounds were paid for: they are shown, whatever becomes of the text
        problem = str(found)
    return await show_policy(frame, visit, text=text, suggested=bounds, problem=problem)


async def people(frame: Frame, visit: Visit) -> Response:
    fields, made = visit.fields, None
    if "revoke" in fields:
        await visit.act(visit.service.revoke_token, fields["revoke"])
    elif visit.sent:
        role, days = role_of(fields.get("role", "")), number(fields, "days") or DAYS
        made = await visit.act(visit.service.new_token, fields.get("who", ""), role, days)
    tokens = await visit.act(visit.service.tokens)
    now = visit.service.data[visit.data].identity.clock()
    shares = await visit.act(visit.service.shares)
    return frame.page(visit, "people", tokens=tokens, made=made, now=now, shares=shares)


def role_of(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise InvalidParameter(f"there is no such role.\n  do:     one of {', '.join(Role)}") from None
