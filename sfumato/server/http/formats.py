"""Answers in the form that a client accepts: JSON, CSV, or an Arrow stream."""

import json
from collections.abc import Mapping

from fastapi import Response

from sfumato.curator.answer import Answer, import_optional
from sfumato.server.http.problems import HttpProblem

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"


def choose(accept: str) -> str:
    """The best of our media types for this Accept header (RFC 9110, section 12.5.1)."""
    best, weight = None, 0.0
    for part in accept.split(",") if accept.strip() else ["*/*"]:
        name, *options = (one.strip().lower() for one in part.split(";"))
        try:
            quality = next((float(one[2:]) for one in options if one.startswith("q=")), 1.0)
        except ValueError:
            quality = 0.0
        kinds = [one for one in (JSON, CSV, ARROW) if name in (one, "*/*", f"{one.partition('/')[0]}/*")]
        if kinds and quality > weight:
            best, weight = kinds[0], quality
    if best is None:
        raise HttpProblem(406, "NotAcceptable", f"accepted are {JSON}, {CSV} and {ARROW}")
    if best == ARROW:
        try:
            import_optional("pyarrow")
        except ImportError:
            raise HttpProblem(406, "NotAcceptable", "this service has no pyarrow: accept JSON or CSV") from None
    return best


def render(answer: Answer, media: str, extra: Mapping[str, object], headers: Mapping[str, str]) -> Response:
    """The answer as a response; what CSV and Arrow have no place for is in headers."""
    if media == JSON:
        return Response(json.dumps({**extra, **json.loads(answer.to_json())}, ensure_ascii=False), 200, headers, JSON)
    told = {"Sfumato-Epsilon": f"{answer.epsilon!r}", "Sfumato-Delta": f"{answer.delta!r}",
            "Sfumato-Charged": str(answer.charged).lower()}  # fmt: skip
    body = answer.to_csv() if media == CSV else answer.to_arrow_stream()
    return Response(body, 200, {**headers, **told}, f"{CSV}; charset=utf-8; header=present" if media == CSV else media)
