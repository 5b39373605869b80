"""Find out what became of an effect: ask its target, then record the answer. The asking is outside of every transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID

import structlog

from ledger.domain import targets as reading
from ledger.domain.effects import LookAnswer, Read, check_read
from ledger.domain.effects.looks import FORGOTTEN, NO_LEAVE, NO_LOOKUP, STOPPED, remembered
from ledger.domain.errors import LedgerError
from ledger.domain.targets import Reading, Reply
from ledger.services import effects
from ledger.services.contracts import writes
from ledger.services.effects import EffectView, Looked
from ledger.targets import http
from ledger.targets.breakers import BREAKERS, OPEN

_log = structlog.get_logger(__name__)
NOT_SENT = {"expired": FORGOTTEN, "grant-void": NO_LEAVE, "not-cleared": STOPPED}
"""What a look-up by replay is left for, by the code of its refusal."""
NOT_ASKED = Reading(LookAnswer.CANNOT_TELL, cause=NO_LOOKUP)


@writes(
    moves="Asks the effect's target, then what `effects.look` moves; a look-up by replay is recorded by `effects.begin_replay` before it is sent.",
    twice="Asks again; both answers are recorded.",
    dies="Between question and record the answer is lost: the effect is still due.",
)
def reconcile(effect_id: UUID, actor: str = effects.RECONCILER, read: Read | None = None) -> LookAnswer:
    """Look one effect up at its target and record the answer with all that follows from it. Safe to run twice, and at the same time twice.

    `actor` is who asked, where a person did, `read` what they had read of it. A target that stayed silent lately isn't asked, and can't tell; for a
    person it is. Raises LedgerError `not-found`, `changed`, `wrong-state` for one that was never permitted.
    """
    seen = effects.get(None, effect_id)
    if read is not None:
        check_read(read, Read(seen.row.attempt, seen.reports[-1].ordinal if seen.reports else 0))
    asked_at = seen.now
    found, reply = _ask(seen, actor)
    looked = Looked(
        answer=found.answer,
        asked_at=asked_at,
        attempt=seen.row.attempt,
        reference=found.reference,
        cause=found.cause,
        evidence=reply.content if reply else None,
        result=found.result,
        media=reply.headers.get("content-type", "application/octet-stream")[:80] if reply else "",
    )
    effects.look(effect_id, looked, actor)
    return found.answer


def _ask(seen: EffectView, actor: str) -> tuple[Reading, Reply | None]:
    lookup = seen.target.lookup
    if lookup is None or seen.request is None:
        return NOT_ASKED, None
    if actor == effects.RECONCILER and not BREAKERS.allows(seen.target.id, monotonic()):
        return Reading(LookAnswer.CANNOT_TELL, cause=OPEN), None
    try:
        found, reply = _asked(seen, lookup, seen.request, actor)
        if reply is not None:
            BREAKERS.answered(seen.target.id)
        return found, reply
    except http.Unreachable as error:
        BREAKERS.note(seen.target.id, error.reason, monotonic())
        return Reading(LookAnswer.CANNOT_TELL, cause=error.reason), None
    except Exception as fault:
        # Recorded like any other silence, so that it comes round more slowly and ends with a person; never retried at once for ever.
        _log.error("look_failed", effect=str(seen.row.id), target=seen.target.name, error=type(fault).__name__)
        return Reading(LookAnswer.CANNOT_TELL, cause="look-failed"), None


def _asked(seen: EffectView, lookup: Mapping[str, Any], request: bytes, actor: str) -> tuple[Reading, Reply | None]:
    if reading.replayed(lookup):
        return _by_replay(seen, lookup, request, actor)
    return _by_key(seen, lookup, request, seen.now)


def _by_key(seen: EffectView, lookup: Mapping[str, Any], request: bytes, at: datetime) -> tuple[Reading, Reply]:
    """By our key; where that finds nothing although the target once gave a reference, by that."""
    reference = seen.row.reference
    reply = http.ask(seen.target, reading.fill(lookup["path"], key=seen.row.key))
    found = reading.read_by_key(lookup, request, reply)
    if found.answer is not LookAnswer.ABSENT:
        return found, reply
    if reference and "by_reference" in lookup:
        second = http.ask(seen.target, reading.fill(lookup["by_reference"], reference=reference))
        by_reference = reading.read_by_reference(lookup, request, second)
        if by_reference.answer is not LookAnswer.CANNOT_TELL:
            return by_reference, second
    if not remembered(seen.row, seen.target, at):
        return Reading(LookAnswer.CANNOT_TELL, cause=FORGOTTEN), reply
    return found, reply


def _by_replay(seen: EffectView, lookup: Mapping[str, Any], request: bytes, actor: str) -> tuple[Reading, Reply | None]:
    """The identical request again, recorded before it is sent."""
    began = monotonic()
    try:
        within = effects.begin_replay(seen.row.id, actor)
    except LedgerError as error:
        return Reading(LookAnswer.CANNOT_TELL, cause=NOT_SENT.get(error.code, error.code)), None
    headers = {lookup["key_header"]: seen.row.key, "content-type": "application/json"}
    if precondition := next((each.precondition for each in reversed(seen.permits)), ""):
        headers["if-match"] = precondition
    if monotonic() - began >= within.total_seconds():
        return Reading(LookAnswer.CANNOT_TELL, cause="send-by-passed"), None
    reply = http.ask(
        seen.target,
        lookup["path"],
        method="POST",
        headers=headers,
        content=request,
        seconds=float(seen.target.call_limit),
    )
    return reading.read_replay(lookup, request, reply), reply
