"""CloudEvents 1.0."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledger.api import problems
from ledger.api.parsing import Time, check_size
from ledger.domain.errors import LedgerError
from ledger.services.events import EventSpec

_EXTENSION = re.compile(r"[a-z0-9]{1,20}")
_MOST = 200


class EventBody(BaseModel):
    """A CloudEvent in its JSON format. Extension attributes are allowed, as its specification says; none is kept."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"patternProperties": {f"^{_EXTENSION.pattern}$": {}}, "additionalProperties": False},
    )

    specversion: Literal["1.0"]
    id: str = Field(min_length=1, max_length=_MOST)
    source: str = Field(min_length=1, max_length=_MOST)
    type: str = Field(min_length=1, max_length=_MOST)
    subject: str = Field(default="", max_length=_MOST)
    time: Time | None = None
    datacontenttype: str = Field(default="application/json", max_length=80)
    dataschema: str | None = Field(default=None, max_length=300)
    data: Any = None
    data_base64: str | None = None


class EventAnswer(BaseModel):
    status: Literal["matched", "kept", "duplicate", "late"]
    deliveries: int


def event_spec(document: Any) -> EventSpec:
    """A CloudEvent in its JSON format as a value of the services. Raises LedgerError `invalid`, `unknown-field`, `too-large`."""
    try:
        event = EventBody.model_validate(document)
    except ValidationError as error:
        found = [
            {**fault, "loc": ("body", "event", *fault["loc"])}
            for fault in error.errors(include_input=False, include_url=False)
        ]
        raise problems.faults(found) from None
    for name in event.model_extra or {}:
        if not _EXTENSION.fullmatch(name):
            raise LedgerError(
                "unknown-field",
                f"$.{name[:80]} isn't known, nor could it be an extension of CloudEvents",
                "Extensions are named with lower-case letters and digits, at most 20.",
            )
    return EventSpec(
        source=event.source,
        id=event.id,
        type=event.type,
        subject=event.subject,
        occurred_at=event.time,
        data=check_size("the event's data", _data(event)),
    )


def _data(event: EventBody) -> Any:
    """Data that isn't JSON is kept as the JSON format writes it: in base64 beside its media type."""
    if event.data_base64 is None:
        return event.data
    if event.data is not None:
        raise LedgerError("invalid", "$.data and $.data_base64 are both there", "Send one of the two.")
    try:
        base64.b64decode(event.data_base64, validate=True)
    except (binascii.Error, ValueError):
        raise LedgerError(
            "invalid", "$.data_base64 isn't base64", "Encode the bytes as RFC 4648 says, with padding."
        ) from None
    return {"data_base64": event.data_base64, "datacontenttype": event.datacontenttype}
