"""Values that templates show: frozen, plain, with everything foreign made visible before it gets here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from approvals.domain.money import Money
from approvals.templatetags.console import visible_text as shown
from ledger.domain.canonical import parse_time
from ledger.domain.errors import LedgerError
from ledger.models import Body

HIDDEN = "not shown to you: it needs the right to payloads, which an administrator can give you"
MANY = 1_000
LONGEST = 50_000
"""Characters of one text that a page carries."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of facts: `partials/_kv.html`."""

    label: str
    value: str = ""
    href: str = ""
    mono: bool = False
    note: str = ""
    copy_text: str = ""
    time: datetime | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that happened: `partials/_timeline.html`."""

    at: datetime
    title: str
    state: str = ""
    icon: str = ""
    tone: str = ""
    text: str = ""
    actor: str = ""
    href: str = ""
    details: str = ""
    details_label: str = ""
    gap: str = ""
    """How long nothing had happened before it, where that was long."""


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes of the record as text, or why there are none: hidden from this person, erased, or never there."""

    text: str = ""
    missing: str = ""


NOTHING = Content(missing="there is none")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a list that is ordered by a time and an id."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.id}"

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """Read `time~id`; nothing for an empty text. Raises LedgerError `invalid`."""
        if not text:
            return None
        try:
            at, _, row = text.partition("~")
            return cls(parse_time(at, "the page"), UUID(row))
        except (ValueError, LedgerError):
            raise LedgerError("invalid", "this page of the list can't be found", "Start from its first page.") from None


@dataclass(frozen=True, slots=True)
class Page:
    """What `partials/_pagination.html` says: how many are shown, of how many, and where the next ones are."""

    shown: int
    total: str
    next: str = ""
    first: bool = True


def counted(rows: QuerySet[Any]) -> str:
    """How many there are, up to a thousand: no page counts a whole table."""
    found = rows.order_by()[: MANY + 1].count()
    return f"{MANY:,}+" if found > MANY else f"{found:,}"


def content(body: Body | None, *, may_see: bool) -> Content:
    """A body as text. Whoever lacks the right is told so, and gets nothing of it."""
    if body is None:
        return NOTHING
    if not may_see:
        return Content(missing=HIDDEN)
    if body.content is None:
        return Content(missing=f"erased on {body.erased_at:%-d %b %Y}" if body.erased_at else "erased")
    return Content(text=pretty(bytes(body.content)))


def pretty(raw: bytes) -> str:
    """JSON set out over lines, anything else as it is; control and direction characters are made visible. What is cut off is said."""
    text = raw.decode("utf-8", "replace")
    with suppress(ValueError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    if len(text) > LONGEST:
        text = (
            f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters are not shown here; the API has all of them."
        )
    return shown(text)


def parsed(body: Body | None) -> Any:
    """A body's document; nothing when it was erased, isn't there, or isn't JSON."""
    if body is None or body.content is None:
        return None
    try:
        return json.loads(bytes(body.content))
    except ValueError:
        return None


def money(body: Body | None) -> Money | None:
    """What a request is worth, where it says so with `amount_minor` and `currency`."""
    document = parsed(body)
    return Money.read(document) if isinstance(document, dict) else None


def bodies(ids: Iterable[UUID | None], tenant_id: UUID) -> dict[UUID, Body]:
    """The tenant's bodies by id, in one query."""
    wanted = {found for found in ids if found is not None}
    return {body.pk: body for body in Body.objects.of(tenant_id).filter(pk__in=wanted)}


def short(row: UUID) -> str:
    """An id's last digits, enough to tell rows of a page apart: ids are ordered by time, so that their first digits are alike."""
    return row.hex[-8:]
