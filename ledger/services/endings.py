"""What is known of why runs failed or were cancelled, for any number of them in a number of queries that doesn't grow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db.models import Max

from ledger.domain.effects import EffectState, FailCause
from ledger.domain.endings import Kind, Reason, last
from ledger.domain.explain import at
from ledger.domain.runs import Status
from ledger.domain.waits import SetState
from ledger.models import Body, Checkpoint, Effect, EffectReport, Handoff, RunHead, WaitSet
from ledger.services.ports import approvals

UNHAPPY = frozenset({Status.FAILED, Status.CANCELLED})


def endings(heads: Sequence[RunHead]) -> dict[UUID, Reason]:
    """The reason of each of these runs of one tenant that failed or was cancelled; runs of which nothing is known are left out."""
    ended = {head.run_id: head for head in heads if head.status in UNHAPPY}
    if not ended:
        return {}
    tenant_id, ids = next(iter(ended.values())).tenant_id, list(ended)
    found: dict[UUID, list[Reason]] = defaultdict(list)
    for read in (_calls, approvals().refusals, _waits, _handoffs, _agents):
        for run_id, reason in read(tenant_id, ids):
            found[run_id].append(reason)
    rows = Checkpoint.objects.of(tenant_id).filter(run_id__in=ids).exclude(next_transition="")
    since = dict(rows.values_list("run_id").annotate(Max("created_at")))
    told = {
        run_id: last(found[run_id], since.get(run_id, head.moved_at), head.ended_at or head.moved_at)
        for run_id, head in ended.items()
    }
    return {run_id: reason for run_id, reason in told.items() if reason is not None}


def _calls(tenant_id: UUID, ids: Sequence[UUID]) -> Iterator[tuple[UUID, Reason]]:
    """Calls that their targets refused for good, with what the last report says of why."""
    rows = Effect.objects.of(tenant_id).filter(run_id__in=ids, state=EffectState.FAILED, cause=FailCause.REJECTED)
    refused = list(rows.select_related("target"))
    reports = EffectReport.objects.of(tenant_id).filter(effect_id__in=[effect.pk for effect in refused], counted=True)
    notes = dict(reports.exclude(cause__in=["", *FailCause]).order_by("ordinal").values_list("effect_id", "cause"))
    for effect in refused:
        if effect.settled_at is not None:
            note = notes.get(effect.pk, "")
            yield effect.run_id, Reason(Kind.REFUSED, effect.settled_at, effect.name, (effect.target.name,), note)


def _waits(tenant_id: UUID, ids: Sequence[UUID]) -> Iterator[tuple[UUID, Reason]]:
    rows = WaitSet.objects.of(tenant_id).filter(run_id__in=ids, state=SetState.EXPIRED, closed_at__isnull=False)
    for run_id, closed_at, deadline in rows.values_list("run_id", "closed_at", "deadline"):
        yield run_id, Reason(Kind.UNMET, closed_at, note=at(deadline))


def _handoffs(tenant_id: UUID, ids: Sequence[UUID]) -> Iterator[tuple[UUID, Reason]]:
    rows = Handoff.objects.of(tenant_id).filter(run_id__in=ids, blocks_run=True, outcome__in=["cancel", "fail"])
    for run_id, closed_at, owner in rows.values_list("run_id", "closed_at", "owner__name"):
        if closed_at is not None:
            yield run_id, Reason(Kind.CLOSED, closed_at, who=(owner,) if owner else ())


def _agents(tenant_id: UUID, ids: Sequence[UUID]) -> Iterator[tuple[UUID, Reason]]:
    """Checkpoints that end a run: they name no next transition; a body says why."""
    rows = Checkpoint.objects.of(tenant_id).filter(run_id__in=ids, next_transition="")
    found = list(rows.values_list("run_id", "created_at", "last_transition", "note_id"))
    notes = Body.objects.of(tenant_id).filter(pk__in=[note for *_, note in found if note], content__isnull=False)
    said = {note_id: bytes(content).decode() for note_id, content in notes.values_list("pk", "content")}
    for run_id, created_at, transition, note_id in found:
        yield run_id, Reason(Kind.AGENT, created_at, transition, note=said.get(note_id, ""))
