"""The addresses of the console. A page reads a form, calls the service, and fills a template with what it returns."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from sfumato.errors import SfumatoError
from sfumato.server.console import asking, governing, looking
from sfumato.server.console.frame import Frame, Page
from sfumato.server.service import Service

ADDRESSES: tuple[tuple[str, Page, list[str]], ...] = (
    ("ask", asking.ask, ["GET", "POST"]), ("preview", asking.preview, ["POST"]),
    ("answers/{id}.{form}", asking.download, ["GET"]), ("answers/{id}", asking.answer, ["GET"]),
    ("budget", looking.budget, ["GET"]), ("what-if", looking.what_if, ["POST"]),
    ("ledger", looking.ledger, ["GET"]), ("verify", looking.verify, ["POST"]), ("audit", looking.audit, ["GET"]),
    ("policy", governing.policy, ["GET", "POST"]), ("suggest", governing.suggest, ["POST"]),
    ("people", governing.people, ["GET", "POST"]),
)  # fmt: skip


def build(service: Service) -> Starlette:
    """The console of a service, to be mounted."""
    frame = Frame(service)
    routes = [
        Route("/", frame.start), Route("/login", frame.log_in, methods=["GET", "POST"]),
        Route("/logout", frame.log_out, methods=["POST"]), Route("/static/{name:path}", frame.static),
    ]  # fmt: skip
    for path, page, methods in ADDRESSES:
        routes.append(Route(f"/data/{{data}}/{path}", frame.visited(page), methods=methods))
    handlers = {SfumatoError: frame.refused, HTTPException: frame.not_found}
    return Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
