"""Register targets, and read them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from ledger.domain import targets as rules
from ledger.domain.canonical import canonical
from ledger.domain.effects import OPEN, TargetRow
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.targets import TargetSpec
from ledger.models import Effect
from ledger.services import administration, facts, locks
from ledger.services.contracts import NO_ENTRY, writes
from ledger.services.facts import Part


@writes(moves="Inserts a target, or moves the guarantees of a known one.", twice=NO_ENTRY)
def register(caller: Caller, spec: TargetSpec) -> TargetRow:
    """Add a target, or give a known one other guarantees. The same content again changes nothing.

    What a look-up rests on stays while calls to the target are in flight or unknown. Raises LedgerError `invalid`, `target-in-use`, and `forbidden`
    for anyone but an administrator of the tenant and the command line.
    """
    rules.check(spec)
    values = {**asdict(spec), "material": list(spec.material)}
    with administration.act(caller, "target.register") as draft:
        known = _named(caller.tenant_id, spec.name)
        if known is None:
            draft.insert("target", id=draft.mint(), created_at=draft.at, guaranteed_at=draft.at, **values)
        elif changed := _changed(known, values):
            _check_open(caller.tenant_id, known, changed)
            if set(changed) & set(rules.APPROVED_ON):
                former = known.base_url if "base_url" in changed else ""
                values |= {"guaranteed_at": draft.at, "former_url": former}
            draft.move("target", known.id, {"base_url": known.base_url}, **values)
    registered = _named(caller.tenant_id, spec.name)
    if registered is None:
        raise LedgerError("not-found", "the target is gone", "Register it again.")
    return registered


def _changed(known: TargetRow, values: dict[str, Any]) -> list[str]:
    return [name for name, value in values.items() if canonical(getattr(known, name)) != canonical(value)]


def _check_open(tenant_id: UUID, known: TargetRow, changed: list[str]) -> None:
    """Counted while nobody writes effects: a permit that is being written is waited for, and the next one reads the target anew."""
    if not set(changed) & set(rules.ASKED_BY):
        return
    locks.effects()
    calls = Effect.objects.of(tenant_id).filter(target_id=known.id, state__in=OPEN)
    rules.check_not_in_use(changed, calls.count())


def _named(tenant_id: UUID, name: str) -> TargetRow | None:
    part = Part("target", "t.tenant_id = %s AND t.name = %s", (tenant_id, name))
    return facts.read(target=part).one("target", TargetRow)


def of_tenant(tenant_id: UUID) -> dict[str, TargetRow]:
    """The tenant's targets by name."""
    part = Part("target", "t.tenant_id = %s", (tenant_id,), many=True, order="t.name")
    return {target.name: target for target in facts.read(targets=part).all("targets", TargetRow)}
