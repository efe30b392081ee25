"""Who sends a request, and to which service: what the addresses of the HTTP door depend on."""

import asyncio
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sfumato.errors import NotAuthenticated, TooManyRequests
from sfumato.server.http.models import DataName
from sfumato.server.identity import WRONG
from sfumato.server.rights import Person
from sfumato.server.service import Service

SLEEPING = 100  # failed log-ins that wait at the same time
BEARER = HTTPBearer(
    auto_error=False, description="A token (sf_…_…), or a signed identity if the service accepts these."
)


async def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def person_of(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
) -> Person:
    """Who sends this request. A failed attempt waits, ever longer."""
    service, state = await service_of(request), request.app.state
    try:
        if credentials is None:
            raise NotAuthenticated(WRONG)
        return await service.call(service.authenticate, credentials.credentials, door="http")
    except NotAuthenticated:
        delay = service.sign_in.delay(request.client.host if request.client else "")
        if state.sleeping >= SLEEPING:
            raise TooManyRequests("too many failed log-ins.\n  do:     wait a moment", delay) from None
        state.sleeping += 1
        try:
            await asyncio.sleep(delay)
        finally:
            state.sleeping -= 1
        raise


Who = Annotated[Person, Depends(person_of)]
Here = Annotated[Service, Depends(service_of)]
Data = Annotated[DataName | None, Query(description="The data set; the only one of the token if left out.")]
