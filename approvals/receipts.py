"""View receipts: what exactly a person had on the screen, computed and signed by the server, carried by the form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.core import signing

from approvals.domain.decisions import Receipt
from ledger.domain import canonical
from ledger.domain.effects import Read

CARD = "card/4"
_SALT = "approvals.view-receipt"
_EFFECT_SALT = "approvals.effect-receipt"


def of(shown: Mapping[str, Any], renderer: str) -> Receipt:
    """The receipt of a card: SHA-256 over every fact that it showed, and the versions of the card and of the tool's renderer."""
    return Receipt(canonical.digest("approval-card/1", shown), f"{CARD} {renderer}")


def seal(receipt: Receipt, request_id: UUID, person_id: UUID) -> str:
    """The receipt for a form field: bound to the request and the person, and signed."""
    fields = [receipt.digest.hex(), receipt.renderer, str(request_id), str(person_id)]
    return signing.dumps(fields, salt=_SALT)


def read(sealed: str, request_id: UUID, person_id: UUID) -> Receipt | None:
    """The receipt in a form that this server made for this person and request; None for any other."""
    try:
        digest, renderer, request, person = signing.loads(sealed, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    if (request, person) != (str(request_id), str(person_id)):
        return None
    return Receipt(bytes.fromhex(digest), renderer)


def seal_effect(read: Read, effect_id: UUID, person_id: UUID) -> str:
    """What a person read of an effect, for a form field: bound to both, and signed."""
    return signing.dumps([read.attempt, read.ordinal, str(effect_id), str(person_id)], salt=_EFFECT_SALT)


def read_effect(sealed: str, effect_id: UUID, person_id: UUID) -> Read | None:
    """What a form says that this person had read of this effect; None where this server didn't say so."""
    try:
        attempt, ordinal, effect, person = signing.loads(sealed, salt=_EFFECT_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return Read(attempt, ordinal) if (effect, person) == (str(effect_id), str(person_id)) else None
