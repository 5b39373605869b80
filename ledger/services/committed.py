"""What a commit's answer tells beside the commit itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ledger.domain.effects import EffectRow
from ledger.domain.runs import ClearanceRow
from ledger.services import facts
from ledger.services.facts import Part
from ledger.services.packets import EffectFacts


def clearance(clearance_id: UUID) -> ClearanceRow | None:
    """A clearance by its id."""
    return facts.read(clearance=Part("clearance", "t.id = %s", (clearance_id,))).one("clearance", ClearanceRow)


def effects(run_id: UUID, names: Sequence[str], ids: Sequence[UUID]) -> tuple[datetime, list[EffectFacts]]:
    """The record's clock, and the run's effects of these names (the newest of each comes last) or ids, with target, request and result."""
    named, listed = _each(names), _each(ids)
    shown = f"SELECT e.{{}} FROM ledger_effect e WHERE e.run_id = %s AND (e.name IN ({named}) OR e.id IN ({listed}))"
    params = (run_id, *names, *ids)
    read = facts.read(
        effects=Part("effect", f"t.id IN ({shown.format('id')})", params, many=True, order="t.proposed_at"),
        targets=Part("target", f"t.id IN ({shown.format('target_id')})", params, many=True),
        bodies=Part(
            "body",
            f"t.id IN ({shown.format('request_id')}) OR t.id IN ({shown.format('result_id')})",
            params * 2,
            many=True,
        ),
    )
    targets = {row["id"]: row["name"] for row in read.many("targets")}
    contents = {row["id"]: row["content"] for row in read.many("bodies")}
    return read.now, [
        EffectFacts(row, targets[row.target_id], contents.get(row.request_id), contents.get(row.result_id))
        for row in read.all("effects", EffectRow)
    ]


def _each(values: Sequence[object]) -> str:
    return ", ".join(["%s"] * len(values)) or "NULL"
