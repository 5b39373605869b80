"""Offers, resume packets and heartbeats."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from ledger.api.answers import stored
from ledger.api.parsing import Exact, FenceText, Name, Number
from ledger.api.shapes.checkpoints import ClearanceJSON, StateJSON, clearance_json
from ledger.api.shapes.effects import EffectJSON, effect_json
from ledger.api.shapes.runs import RunJSON, claimed_json
from ledger.domain.leases import Offer
from ledger.services.packets import EffectFacts, Packet, WaitFacts

MOST_AT_ONCE = 20
LONGEST_WAIT = 30


class WorkerBody(Exact):
    """One start of one worker process."""

    id: UUID
    name: Name
    code_digest: str = Field(max_length=80)


class OfferBody(Exact):
    workflow: Name
    versions: list[Name] = Field(min_length=1, max_length=50, description="In order of preference.")


class ClaimBody(Exact):
    """What a worker can do, how many runs it takes, and how long it waits for one."""

    worker: WorkerBody
    offers: list[OfferBody] = Field(min_length=1, max_length=50)
    limit: Number = Field(default=1, ge=1, le=MOST_AT_ONCE)
    wait_seconds: Number = Field(default=0, ge=0, le=LONGEST_WAIT)
    lease_seconds: Number | None = Field(
        default=None,
        ge=1,
        le=3600,
        description="How long the run is yours without a heartbeat; 60 where nothing is said.",
    )

    def offer(self, lease_seconds: int) -> Offer:
        """The same as a value of the domain."""
        versions = {offered.workflow: tuple(offered.versions) for offered in self.offers}
        worker = self.worker
        return Offer(
            worker.id, worker.name, worker.code_digest, versions, self.limit, self.lease_seconds or lease_seconds
        )


class HeldBody(Exact):
    run: UUID
    fence: FenceText


class HeartbeatBody(Exact):
    """All runs of one worker process."""

    worker: UUID
    runs: list[HeldBody] = Field(max_length=1000)


class BeatJSON(BaseModel):
    run: UUID
    directive: str = Field(description="`go_on`, `stop_after_call` or `stop`.")
    reason: str
    lease_expires_at: str | None


class HeartbeatAnswer(BaseModel):
    runs: list[BeatJSON]


class PacketCheckpointJSON(BaseModel):
    seq: int
    digest: str
    code_version: str
    version: str
    state: StateJSON


class PacketDecisionJSON(BaseModel):
    decision: str
    reasons: list[Any]
    without: dict[UUID, str] = Field(
        description="Failed effects that a person let the run go on without, by id, with why nobody else could. None is tried again: a permit of one"
        " sends the run back to a person."
    )


class EventJSON(BaseModel):
    source: str
    id: str
    type: str
    subject: str
    data: Any


class PacketMemberJSON(BaseModel):
    kind: str
    outcome: str = Field(
        description="Of an approval: `approved`, `denied`, `denied_by_policy`, `expired` or `withdrawn`."
    )
    effect: UUID | None = None
    event: EventJSON | None = None
    reason: str | None = Field(default=None, description="Of a denied approval: what whoever denied it said.")


class PacketWaitJSON(BaseModel):
    state: str
    cause: str
    members: list[PacketMemberJSON]


class PacketJSON(BaseModel):
    """All that the next owner of a run is told."""

    run: RunJSON
    fence: str | None
    lease_expires_at: str | None
    lease_seconds: int | None = Field(description="How long a heartbeat keeps the run; send three in that time.")
    transition: str
    instance: UUID
    version: str
    checkpoint: PacketCheckpointJSON
    clearance: ClearanceJSON | None
    decision: PacketDecisionJSON | None
    effects: dict[str, EffectJSON] = Field(description="Those of this transition instance, by name.")
    earlier: list[EffectJSON] = Field(
        description="Those of earlier instances that are still in flight or unknown: their names are free again."
    )
    wait: PacketWaitJSON | None


class ClaimAnswer(BaseModel):
    packets: list[PacketJSON]


def packet_json(packet: Packet, *, holder: bool) -> dict[str, Any]:
    """A `PacketJSON`. The fence goes to the holder only: a stale worker that could read it would be one again."""
    checkpoint = packet.checkpoint
    return {
        "run": claimed_json(packet.run, packet.workflow, packet.head.version, packet.head),
        "fence": str(packet.fence) if holder else None,
        "lease_expires_at": packet.lease_expires_at,
        "lease_seconds": packet.lease_seconds,
        "transition": packet.head.transition,
        "instance": packet.head.instance_id,
        "version": packet.version,
        "checkpoint": {
            "seq": checkpoint["seq"],
            "digest": checkpoint["digest"],
            "code_version": checkpoint["code_version"],
            "version": checkpoint["version"],
            "state": {"json": packet.state.text, "salt": packet.state.salt, "commitment": packet.state.commitment},
        },
        "clearance": clearance_json(packet.clearance),
        "decision": packet.decision and _decision(packet, packet.decision),
        "effects": {effect.row.name: _effect(effect) for effect in packet.effects if packet.holds(effect)},
        "earlier": [_effect(effect) for effect in packet.effects if not packet.holds(effect)],
        "wait": packet.wait and _wait(packet.wait),
    }


def _decision(packet: Packet, row: Any) -> dict[str, Any]:
    without = {str(effect_id): why for effect_id, why in packet.without.items()}
    return {"decision": row["decision"], "reasons": row["reasons"], "without": without}


def _effect(effect: EffectFacts) -> dict[str, Any]:
    return effect_json(effect.row, effect.target, effect.request, effect.result)


def _wait(wait: WaitFacts) -> dict[str, Any]:
    return {
        "state": wait.row.state,
        "cause": wait.row.cause,
        "members": [
            {
                "kind": member.kind,
                "outcome": member.outcome,
                "effect": member.effect_id,
                "event": _event(wait.events.get(member.event_id)) if member.event_id else None,
                "reason": wait.reasons.get(member.effect_id) if member.effect_id else None,
            }
            for member in wait.members
        ],
    }


def _event(row: Any) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "source": row["source"],
        "id": row["event_id"],
        "type": row["type"],
        "subject": row["subject"],
        "data": stored(row["data"]),
    }
