"""Receive events: CloudEvents 1.0 over HTTP, structured and binary."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Router

from ledger.api import auth
from ledger.api.answers import answer
from ledger.api.shapes.events import EventAnswer, event_spec
from ledger.domain.canonical import check_text, parse
from ledger.domain.errors import LedgerError
from ledger.services import events

router = Router(tags=["events"])

STRUCTURED = "application/cloudevents+json"
_PREFIX = "HTTP_CE_"
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_DOCUMENTED = {
    "requestBody": {
        "required": True,
        "description": "Structured mode as shown; or binary mode: the attributes as `ce-…` headers, the data as the body.",
        "content": {STRUCTURED: {"schema": {"$ref": "#/components/schemas/EventBody"}}},
    }
}


@router.post("/events", auth=auth.EMIT, response={202: EventAnswer}, openapi_extra=_DOCUMENTED)
def receive_event(request: HttpRequest) -> HttpResponse:
    """Take an event. Its identity is (source, id): the same again is `duplicate`, with other content it is refused."""
    media = (request.content_type or "").lower()
    document = _structured(request) if media == STRUCTURED else _binary(request, media)
    received = events.receive(auth.caller(request), event_spec(document))
    return answer({"status": received.status, "deliveries": received.deliveries}, 202)


def _structured(request: HttpRequest) -> Any:
    return parse(request.body, limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


def _binary(request: HttpRequest, media: str) -> dict[str, Any]:
    """A binary event in the JSON format. Raises LedgerError `unsupported-media` when no attribute came as a header."""
    document: dict[str, Any] = {
        name.removeprefix(_PREFIX).lower(): unquote(value)
        for name, value in request.META.items()
        if name.startswith(_PREFIX)
    }
    if "specversion" not in document:
        raise LedgerError(
            "unsupported-media",
            "this is neither a structured nor a binary CloudEvent",
            f"Send {STRUCTURED}, or the attributes as ce-… headers.",
        )
    check_text(document)
    if not request.body:
        return document
    if not media or _JSON.fullmatch(media):
        document["data"] = _structured(request)
        return document
    document |= {"data_base64": base64.b64encode(request.body).decode(), "datacontenttype": media[:80]}
    return document
