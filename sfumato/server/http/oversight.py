"""Addresses of the HTTP door for auditors, stewards and owners: the ledger, the audit log, policies and tokens."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from sfumato.server.http.login import Data, Here, Who
from sfumato.server.http.models import BoundsWanted, NewToken, PolicyText, ReviewedPolicy
from sfumato.server.identity import Role

Start = Annotated[int, Query(ge=1, le=2**53)]
Most = Annotated[int, Query(ge=1, le=1000)]
TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{8}$")]
router = APIRouter()


@router.get("/v1/ledger", tags=["oversight"])
async def ledger(who: Who, service: Here, data: Data = None, start: Start = 1, most: Most = 100) -> dict[str, Any]:
    """Lines of the ledger: your own; all of them for auditors, stewards and owners."""
    name = service.choose_data(who, data)
    lines = await service.call(service.history, who, name, start=start, most=most)
    asked = await service.call(service.audit_log.asked_texts, name, lines)
    more = {number: {"asked": text} for number, text in asked.items()}
    return {"lines": [{"line": one.seq, "hash": one.hash, **one.content, **more.get(one.seq, {})} for one in lines]}


@router.get("/v1/ledger/verify", tags=["oversight"])
async def verify(who: Who, service: Here, data: Data = None) -> dict[str, Any]:
    """Read the whole ledger again, and compare it with its hash chain and its anchor."""
    lines, head = await service.call(service.verify, who, service.choose_data(who, data))
    return {"lines": lines, "head": head, "intact": True}


@router.get("/v1/audit", tags=["oversight"])
async def audit(who: Who, service: Here, data: Data = None, after: Annotated[int, Query(ge=0, le=2**53)] = 0,
                most: Most = 100) -> dict[str, Any]:  # fmt: skip
    """Lines of the audit log: who did what, when, and for which price."""
    lines = await service.call(service.audit, who, service.choose_data(who, data), after=after, most=most)
    return {"lines": [{"line": line.seq, "hash": line.hash, **line.content} for line in lines]}


@router.get("/v1/policy", tags=["oversight"])
async def policy(who: Who, service: Here, data: Data = None) -> dict[str, str]:
    """The policy in force, which is public."""
    return {"text": await service.call(service.policy_text, who, service.choose_data(who, data))}


@router.post("/v1/policy/check", tags=["oversight"])
async def check_policy(who: Who, service: Here, policy: PolicyText) -> dict[str, Any]:
    """What another policy would mean. Nothing changes, and no values are read."""
    name = service.choose_data(who, policy.data)
    return dict((await service.call(service.check_policy, who, name, policy.text)).to_dict())


@router.get("/v1/tokens", tags=["oversight"])
async def tokens(who: Who, service: Here, data: Data = None) -> dict[str, Any]:
    """All tokens, without their secrets."""
    found = await service.call(service.tokens, who, service.choose_data(who, data))
    shown = ("id", "who", "role", "created", "expires", "revoked")
    return {"tokens": [{name: getattr(one, name) for name in shown} for one in found]}


@router.post("/v1/tokens", tags=["oversight"], status_code=201)
async def new_token(who: Who, service: Here, wanted: NewToken) -> dict[str, str]:
    """A token for somebody. Its text is told once."""
    name, role = service.choose_data(who, wanted.data), Role(wanted.role)
    return {"token": await service.call(service.new_token, who, name, wanted.who, role, wanted.days)}


@router.delete("/v1/tokens/{id}", tags=["oversight"])
async def revoke(
    who: Who, service: Here, id: Annotated[str, Path(pattern=r"^[0-9a-f]{8}$")], data: Data = None
) -> dict[str, bool]:
    """End a token at once."""
    return {"revoked": await service.call(service.revoke_token, who, service.choose_data(who, data), id)}


@router.post("/v1/policy/publish", tags=["oversight"])
async def publish_policy(who: Who, service: Here, policy: ReviewedPolicy) -> dict[str, Any]:
    """Put a policy in force that was checked before; `based_on` is what the check said. For owners."""
    name = service.choose_data(who, policy.data)
    return dict((await service.call(service.publish_policy, who, name, policy.text, policy.based_on)).to_dict())


@router.post("/v1/policy/suggest", tags=["oversight"])
async def suggest_bounds(who: Who, service: Here, wanted: BoundsWanted) -> dict[str, Any]:
    """Bounds for a column, from two noisy histograms that are charged to you once."""
    name = service.choose_data(who, wanted.data)
    found = await service.call(service.suggest_bounds, who, name, wanted.column, wanted.epsilon)
    return {**vars(found), "outside": str(found.outside), "text": str(found)}
