"""What an answer shows of effects: as the verb's own reading has them and as its Change leaves them, so that nothing is read for the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from ledger.domain.change import Change
from ledger.domain.effects import EffectRow, TargetRow
from ledger.services import facts
from ledger.services.facts import Part, Row
from ledger.services.packets import EffectFacts


def parts(run_id: UUID, names: Sequence[str], ids: Sequence[UUID], call_key: str | None = None) -> dict[str, Part]:
    """The run's effects by name (the present instance's, and the newest), by id, and by call key; with their stored requests and results."""
    present = "(SELECT h.instance_id FROM ledger_run_head h WHERE h.run_id = e.run_id)"
    newer = (
        "SELECT 1 FROM ledger_effect n WHERE n.run_id = e.run_id AND n.name = e.name AND n.proposed_at > e.proposed_at"
    )
    found = (
        "SELECT e.{} FROM ledger_effect e WHERE e.run_id = %s AND"
        f" (e.name IN ({_each(names)}) AND (e.instance_id = {present} OR NOT EXISTS ({newer}))"
        f" OR e.id IN ({_each(ids)}) OR e.call_key = %s)"
    )
    params = (run_id, *names, *ids, call_key)
    # One set of ids: by two that OR joins, every body there is would be read.
    contents = f"t.id IN ({found.format('request_id')} UNION ALL {found.format('result_id')})"
    return {
        "shown": Part("effect", f"t.id IN ({found.format('id')})", params, many=True, order="t.proposed_at"),
        "contents": Part("body", contents, params * 2, many=True),
    }


def _each(values: Sequence[object]) -> str:
    return ", ".join(["%s"] * len(values)) or "NULL"


def effects(
    known: Iterable[EffectRow], bodies: Sequence[Row], targets: Mapping[UUID, TargetRow], change: Change | None
) -> list[EffectFacts]:
    """These effects and those that the Change inserts, as it leaves them, oldest first; `bodies` are what was read of requests and results."""
    rows = {row.id: row for row in known}
    contents = {row["id"]: row["content"] for row in bodies}
    for insert in change.inserts if change else ():
        if insert.table == "effect":
            rows[insert.row["id"]] = facts.load(EffectRow, dict(insert.row))
        elif insert.table == "body":
            contents[insert.row["id"]] = insert.row["content"]
    for move in change.moves if change else ():
        if move.table == "effect" and move.key in rows:
            rows[move.key] = replace(rows[move.key], **move.set)
    return [
        EffectFacts(row, targets[row.target_id].name, contents.get(row.request_id), contents.get(row.result_id))
        for row in sorted(rows.values(), key=lambda row: row.proposed_at)
    ]


def effect(
    row: EffectRow, bodies: Sequence[Row], targets: Mapping[UUID, TargetRow], change: Change | None
) -> EffectFacts:
    """One effect as the Change leaves it."""
    return next(shown for shown in effects([row], bodies, targets, change) if shown.row.id == row.id)
