"""Register targets, and read them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from ledger.domain import targets as rules
from ledger.domain.canonical import canonical
from ledger.domain.effects import TargetRow
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.targets import TargetSpec
from ledger.services import administration, facts
from ledger.services.contracts import NO_ENTRY, writes
from ledger.services.facts import Part


@writes(moves="Inserts a target, or moves the guarantees of a known one.", twice=NO_ENTRY)
def register(caller: Caller, spec: TargetSpec) -> TargetRow:
    """Add a target, or give a known one other guarantees. The same content again changes nothing.

    Raises LedgerError `invalid`, and `forbidden` for anyone but an administrator of the tenant and the command line.
    """
    rules.check(spec)
    values = {**asdict(spec), "material": list(spec.material)}
    with administration.act(caller, "target.register") as draft:
        known = _named(caller.tenant_id, spec.name)
        if known is None:
            draft.insert("target", id=draft.mint(), created_at=draft.at, **values)
        elif not _same(known, values):
            draft.move("target", known.id, {"base_url": known.base_url}, **values)
    registered = _named(caller.tenant_id, spec.name)
    if registered is None:
        raise LedgerError("not-found", "the target is gone", "Register it again.")
    return registered


def _same(known: TargetRow, values: dict[str, Any]) -> bool:
    return all(canonical(getattr(known, name)) == canonical(value) for name, value in values.items())


def _named(tenant_id: UUID, name: str) -> TargetRow | None:
    part = Part("target", "t.tenant_id = %s AND t.name = %s", (tenant_id, name))
    return facts.read(target=part).one("target", TargetRow)


def of_tenant(tenant_id: UUID) -> dict[str, TargetRow]:
    """The tenant's targets by name."""
    part = Part("target", "t.tenant_id = %s", (tenant_id,), many=True, order="t.name")
    return {target.name: target for target in facts.read(targets=part).all("targets", TargetRow)}
