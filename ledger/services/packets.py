"""Resume packets: everything that the next owner of a run is told, read in one statement for all runs of a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ledger.domain.decisions import WITHOUT
from ledger.domain.effects import EffectRow, EffectState
from ledger.domain.errors import LedgerError
from ledger.domain.runs import ClearanceRow, Fence, Head, LeaseRow
from ledger.domain.views import RunRow
from ledger.domain.waits import MemberRow, Outcome, SetRow, Since, newest
from ledger.services import facts, ports
from ledger.services.facts import Facts, Part, Row


@dataclass(frozen=True, slots=True)
class StateText:
    """A state exactly as committed: `text` is its canonical JSON, and SHA-256(salt ‖ text) its commitment."""

    text: str
    salt: bytes
    commitment: bytes


@dataclass(frozen=True, slots=True)
class EffectFacts:
    """An effect with the bytes that it refers to, as stored canonical JSON (None: none, or erased)."""

    row: EffectRow
    target: str
    request: bytes | None
    result: bytes | None


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """The last wait of the run with its members' outcomes, as people decided last (see `waits.newest`); `events` maps an event's id to its row
    with `data` (bytes), `reasons` a denied effect's id to what whoever denied it said."""

    row: SetRow
    members: Sequence[MemberRow]
    events: Mapping[UUID, Row]
    reasons: Mapping[UUID, str]


@dataclass(frozen=True, slots=True)
class Packet:
    run: RunRow
    workflow: str
    head: Head
    fence: Fence
    version: str
    lease_expires_at: datetime | None
    lease_seconds: int | None
    checkpoint: Row
    state: StateText
    clearance: ClearanceRow | None
    decision: Row | None
    effects: Sequence[EffectFacts]
    wait: WaitFacts | None
    now: datetime
    without: Mapping[UUID, str]
    """Failed effects that the run goes on without, by id, with why nobody but a person could let it: none of them is to be tried again."""

    def holds(self, effect: EffectFacts) -> bool:
        """Is it of the present transition instance, in which its name is unique?"""
        return effect.row.instance_id == self.head.instance_id


Told = tuple[SetRow, list[MemberRow]]


def of(tenant_id: UUID, run_ids: Sequence[UUID]) -> list[Packet]:
    """The packets of these runs, in this order: one statement, and another where a person denied something.

    Raises LedgerError `integrity` when a state's bytes are gone.
    """
    read = facts.read(**_parts(tenant_id, run_ids))
    told = {run_id: _told(read, run_id) for run_id in run_ids}
    members = [member for each in told.values() if each for member in each[1]]
    denied = [member.effect_id for member in members if member.outcome == Outcome.DENIED and member.effect_id]
    reasons = ports.approvals().reasons(tenant_id, denied) if denied else {}
    return [_packet(read, run_id, told[run_id], reasons) for run_id in run_ids]


def _parts(tenant_id: UUID, run_ids: Sequence[UUID]) -> dict[str, Part]:
    ids = tuple(run_ids)
    each = ", ".join(["%s"] * len(ids))
    heads = f"FROM ledger_run_head h WHERE h.run_id IN ({each})"
    last = (
        "SELECT c.{} FROM ledger_checkpoint c JOIN ledger_run_head h"
        f" ON h.run_id = c.run_id AND h.checkpoint_seq = c.seq WHERE h.run_id IN ({each})"
    )
    shown = (
        f"t.run_id IN ({each}) AND (t.instance_id IN (SELECT h.instance_id {heads})"
        " OR t.state IN ('proposed', 'in_flight', 'unknown'))"
    )
    effects = f"SELECT t.{{}} FROM ledger_effect t WHERE {shown}"
    waits = (
        f"SELECT w.id FROM ledger_wait_set w WHERE w.run_id IN ({each}) AND w.opened_at ="
        " (SELECT max(x.opened_at) FROM ledger_wait_set x WHERE x.run_id = w.run_id AND x.internal = '')"
    )
    again = (
        f"SELECT w.id FROM ledger_wait_set w WHERE w.run_id IN ({each}) AND w.internal = 'ask_again' AND NOT EXISTS"
        " (SELECT 1 FROM ledger_wait_set x WHERE x.run_id = w.run_id AND x.internal = '' AND x.opened_at > w.opened_at)"
    )
    asked = f"SELECT m.effect_id FROM ledger_wait_member m WHERE m.kind = 'approval' AND m.wait_id IN ({waits} UNION ALL {again})"
    events = f"SELECT m.event_id FROM ledger_wait_member m WHERE m.wait_id IN ({waits})"
    return {
        "heads": Part("run_head", f"t.run_id IN ({each}) AND t.tenant_id = %s", (*ids, tenant_id), many=True),
        "runs": Part("run", f"t.id IN ({each})", ids, many=True),
        "workflows": Part("workflow_type", f"t.id IN (SELECT h.workflow_id {heads})", ids, many=True),
        "leases": Part("lease", f"t.run_id IN ({each}) AND t.active", ids, many=True),
        "checkpoints": Part("checkpoint", f"t.id IN ({last.format('id')})", ids, many=True),
        "states": Part("body", f"t.id IN ({last.format('state_id')})", ids, many=True),
        **_of_clearances(ids),
        "effects": Part("effect", shown, ids * 2, many=True, order="t.proposed_at, t.name"),
        "targets": Part("target", f"t.id IN ({effects.format('target_id')})", ids * 2, many=True),
        "contents": Part(
            "body",
            # One set of ids: of two, joined by OR, the database makes none, and reads every body there is.
            f"t.id IN ({effects.format('request_id')} UNION ALL {effects.format('result_id')})",
            ids * 4,
            many=True,
        ),
        "waits": Part("wait_set", f"t.id IN ({waits})", ids, many=True),
        "members": Part("wait_member", f"t.wait_id IN ({waits})", ids, many=True, order="t.ordinal"),
        "again": Part("wait_set", f"t.id IN ({again})", ids, many=True, order="t.opened_at"),
        "asked_again": Part("wait_member", f"t.wait_id IN ({again})", ids, many=True, order="t.ordinal"),
        "asked_for": Part("effect", f"t.id IN ({asked})", ids * 2, many=True),
        "given": Part("grant", f"t.subject_id IN ({asked}) AND t.state IN ('live', 'used')", ids * 2, many=True),
        "events": Part("event", f"t.id IN ({events})", ids, many=True),
        "event_data": Part(
            "body", f"t.id IN (SELECT e.body_id FROM ledger_event e WHERE e.id IN ({events}))", ids, many=True
        ),
    }


def _of_clearances(run_ids: Sequence[UUID]) -> dict[str, Part]:
    """The clearances that runs stand under, the decisions behind these, and what each decision goes on without."""
    ids = tuple(run_ids)
    present = f"(SELECT h.clearance_id FROM ledger_run_head h WHERE h.run_id IN ({', '.join(['%s'] * len(ids))}))"
    decided = f"(SELECT c.decision_id FROM ledger_clearance c WHERE c.id IN {present})"
    reasons = ", ".join(["%s"] * len(WITHOUT))
    passed = f"t.decision_id IN {decided} AND t.answer = 'pass' AND t.reason IN ({reasons})"
    told = (*ids, *(reason for _, reason in WITHOUT))
    return {
        "clearances": Part("clearance", f"t.id IN {present}", ids, many=True),
        "decisions": Part("decision", f"t.id IN {decided}", ids, many=True),
        "without": Part("wake_check", passed, told, many=True, order="t.ordinal"),
    }


def _packet(read: Facts, run_id: UUID, told: Told | None, reasons: Mapping[UUID, str]) -> Packet:
    head_row = _find(read, "heads", "run_id", run_id)
    if head_row is None:
        raise LedgerError(
            "not-found", "there is no such run here", "Check the id, and that the key belongs to its tenant."
        )
    head = facts.load(Head, head_row)
    checkpoint = _needed(_find(read, "checkpoints", "run_id", run_id), "last checkpoint")
    state = _needed(_find(read, "states", "id", checkpoint["state_id"]), "state")
    if state["erased_at"] is not None:
        raise LedgerError(
            "integrity", "the state of this run was erased", "It can't be resumed; read its record instead."
        )
    lease_row = _find(read, "leases", "run_id", run_id)
    lease = facts.load(LeaseRow, lease_row) if lease_row else None
    clearance_row = _find(read, "clearances", "run_id", run_id)
    clearance = facts.load(ClearanceRow, clearance_row) if clearance_row else None
    return Packet(
        run=facts.load(RunRow, _needed(_find(read, "runs", "id", run_id), "run")),
        workflow=_needed(_find(read, "workflows", "id", head.workflow_id), "workflow")["name"],
        head=head,
        fence=head.fence,
        version=lease.version if lease else head.version,
        lease_expires_at=lease.expires_at if lease else None,
        lease_seconds=lease.seconds if lease else None,
        checkpoint=checkpoint,
        state=StateText(state["content"].decode(), state["salt"], state["commitment"]),
        clearance=clearance,
        decision=_find(read, "decisions", "id", clearance.decision_id) if clearance else None,
        effects=_effects(read, head),
        wait=_wait(read, told, reasons),
        now=read.now,
        without=_without(read, run_id),
    )


def _without(read: Facts, run_id: UUID) -> dict[UUID, str]:
    failed = {str(row["id"]): row["id"] for row in read.many("effects") if row["state"] == EffectState.FAILED}
    checks = [check for check in read.many("without") if check["run_id"] == run_id and check["subject"] in failed]
    return {
        failed[check["subject"]]: check["reason"] for check in checks if (check["name"], check["reason"]) in WITHOUT
    }


def _find(read: Facts, part: str, column: str, value: object) -> Row | None:
    return next((row for row in read.many(part) if row[column] == value), None)


def _needed(row: Row | None, what: str) -> Row:
    if row is None:
        raise LedgerError(
            "integrity", f"the {what} of this run is missing", "Verify the run and tell an administrator."
        )
    return row


def _effects(read: Facts, head: Head) -> list[EffectFacts]:
    contents = {row["id"]: row["content"] for row in read.many("contents")}
    targets = {row["id"]: row["name"] for row in read.many("targets")}
    rows = [facts.load(EffectRow, row) for row in read.many("effects") if row["run_id"] == head.run_id]
    return [
        EffectFacts(
            row,
            targets.get(row.target_id, ""),
            contents.get(row.request_id),
            contents.get(row.result_id) if row.result_id else None,
        )
        for row in rows
    ]


def _told(read: Facts, run_id: UUID) -> Told | None:
    """The run's last wait as people decided on it last; the engine's own asking, where the agent never waited."""
    again = [facts.load(SetRow, row) for row in read.many("again") if row["run_id"] == run_id]
    found = _find(read, "waits", "run_id", run_id)
    if found is None and not again:
        return None
    row = facts.load(SetRow, found) if found else again[-1]
    ids = {each.id for each in again}
    withdrawn = [each for each in read.many("asked_for") if each["state"] == EffectState.WITHDRAWN]
    since = Since(
        sets=again,
        members=[facts.load(MemberRow, each) for each in read.many("asked_again") if each["wait_id"] in ids],
        withdrawn={each["id"]: each["cause"] for each in withdrawn},
        given={each["subject_id"] for each in read.many("given")},
    )
    own = [facts.load(MemberRow, each) for each in read.many("members") if each["wait_id"] == row.id]
    return newest(row, own, since)


def _wait(read: Facts, told: Told | None, reasons: Mapping[UUID, str]) -> WaitFacts | None:
    if told is None:
        return None
    row, members = told
    data = {body["id"]: body["content"] for body in read.many("event_data")}
    events = {event["id"]: {**event, "data": data.get(event["body_id"])} for event in read.many("events")}
    return WaitFacts(row, members, events, reasons)
