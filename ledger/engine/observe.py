"""See a resource at its target: outside of every transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from ledger.domain import material
from ledger.domain.effects import SeenVersion, TargetRow
from ledger.domain.targets import resource_path, version_of
from ledger.services import facts
from ledger.services.ids import new_body
from ledger.targets import http
from ledger.targets.breakers import BREAKERS, OPEN

SOURCE = "system:observer"


@dataclass(frozen=True, slots=True)
class Seen:
    """A resource's version and content; `at` is the record's clock before the question was sent."""

    version: str
    body: bytes
    at: datetime
    media: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """Nothing could be seen; `reason` is a code."""

    reason: str


def observe(target: TargetRow, resource: str) -> Seen | Unseen:
    """Ask a target for the version of a resource; one that stayed silent lately isn't asked."""
    if target.observe is None:
        return Unseen("not-observable")
    if not BREAKERS.allows(target.id, monotonic()):
        return Unseen(OPEN)
    found = look(target, resource, facts.read().now)
    BREAKERS.note(target.id, reason_of(found), monotonic())
    return found


def reason_of(found: Seen | Unseen) -> str:
    """Why nothing could be seen, as a code; '' where something was."""
    return found.reason if isinstance(found, Unseen) else ""


def look(target: TargetRow, resource: str, at: datetime, seconds: float = http.LONGEST_LOOK) -> Seen | Unseen:
    """The same without a look at the record: `at` is its clock before the question, which may take so many seconds."""
    if target.observe is None:
        return Unseen("not-observable")
    try:
        reply = http.ask(target, resource_path(target.observe, resource), seconds=seconds)
    except http.Unreachable as error:
        return Unseen(error.reason)
    version = version_of(target.observe, reply)
    if version is None:
        return Unseen(f"http-{reply.status}" if reply.status != 200 else "no-version")
    if target.material and material.fields(target.material, reply.content) is None:
        return Unseen("no-material")
    return Seen(version, reply.content, at, reply.headers.get("content-type", "application/octet-stream")[:80])


def seen_version(target: TargetRow, resource: str) -> SeenVersion | None:
    """The same as a value that rules take; None where nothing could be seen."""
    found = observe(target, resource)
    if isinstance(found, Unseen):
        return None
    body = new_body(found.body, found.at, found.media)
    return SeenVersion(target.id, resource, found.version, found.at, SOURCE, body, target.guaranteed_at)
