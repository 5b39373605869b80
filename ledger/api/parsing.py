"""What comes in: one strict parser for every body, models that know each field, keys and sizes."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from django.conf import settings
from django.http import HttpRequest
from ninja.parser import Parser
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from ledger.domain.canonical import canonical, parse, parse_time
from ledger.domain.errors import LedgerError

_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)


class StrictParser(Parser):
    """JSON bodies by the record's own parser, before any model sees them."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Raises LedgerError `unsupported-media` and what `canonical.parse` raises."""
        if not _JSON.fullmatch(request.content_type or ""):
            raise LedgerError(
                "unsupported-media",
                "the body isn't declared as JSON",
                "Send Content-Type: application/json.",
            )
        parsed = parse(request.body, limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        request.document = parsed  # type: ignore[attr-defined]
        return parsed


class Exact(BaseModel):
    """A body of which every field is known."""

    model_config = ConfigDict(extra="forbid")


def _time(value: Any, info: ValidationInfo) -> datetime:
    return parse_time(value, info.field_name or "a time")


Time = Annotated[datetime, BeforeValidator(_time)]
"""RFC 3339 with an offset."""
Number = Annotated[int, Field(strict=True)]
"""A JSON integer; neither text nor a fraction nor a truth value becomes one."""
FenceText = Annotated[
    str,
    Field(
        min_length=3,
        max_length=29,
        pattern=r"^[0-9]+\.[0-9]+$",
        examples=["0.7"],
        description="Exactly as the claim answered it.",
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=80)]


KEYED: dict[str, Any] = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": True,
            "schema": {
                "type": "string",
                "pattern": "^[\\x21-\\x7e]{1,200}$",
                "description": "Fresh for each new call, the same for a call sent again.",
            },
        }
    ]
}
"""What the document says of calls that need a key."""


def idempotency_key(request: HttpRequest) -> str:
    """The call's own key: 1 to 200 visible ASCII characters. Raises LedgerError `key-required` or `invalid`."""
    text = request.headers.get("Idempotency-Key")
    if text is None:
        raise LedgerError(
            "key-required",
            "this call needs an Idempotency-Key",
            "Send a fresh one for each new call, and the same one when you send a call again.",
        )
    if not _KEY.fullmatch(text):
        raise LedgerError("invalid", "the Idempotency-Key isn't usable", "Use 1 to 200 visible ASCII characters.")
    return text


def document(request: HttpRequest) -> dict[str, Any]:
    """The whole body as the parser left it, to compare a repeated call with the first."""
    parsed: dict[str, Any] = request.document  # type: ignore[attr-defined]
    return parsed


def check_size(what: str, value: Any) -> bytes:
    """The value's canonical bytes. Raises LedgerError `too-large` above the limit of a state."""
    content = canonical(value)
    limit: int = settings.RESUMEAPP_STATE_LIMIT_BYTES
    if len(content) > limit:
        raise LedgerError(
            "too-large",
            f"{what} has {len(content)} bytes; at most {limit} are kept",
            "Keep large content in a store of your own, and send its address and digest.",
            size=len(content),
            limit=limit,
        )
    return content


def known_query(request: HttpRequest, model: type[BaseModel]) -> None:
    """Refuse a query parameter that nobody reads: a misspelt filter would answer too much. Raises LedgerError `unknown-field`."""
    for name in request.GET:
        if name not in model.model_fields:
            raise LedgerError(
                "unknown-field",
                f"{name[:80]} in the query isn't known",
                f"Use {', '.join(sorted(model.model_fields))}.",
            )
