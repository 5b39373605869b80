"""Read a run for a rule: one statement on PostgreSQL."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ledger.domain.authority import GrantRow, PolicyRow
from ledger.domain.checkpoints import VersionRow
from ledger.domain.effects import EffectRow, TargetRow
from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import HandoffRow
from ledger.domain.identity import Caller
from ledger.domain.runs import ClearanceRow, Head, LeaseRow
from ledger.domain.views import RunRow, RunView
from ledger.domain.waits import MemberRow, SetRow
from ledger.domain.wakes import WakeRow
from ledger.services import facts
from ledger.services.facts import Each, Facts, Part
from ledger.services.ports import approvals

_HEAD = "(SELECT h.{} FROM ledger_run_head h WHERE h.run_id = %s)"
_TENANT = "(SELECT r.tenant_id FROM ledger_run r WHERE r.id = %s)"


def run_parts(run_id: UUID) -> dict[str, Part]:
    """The parts of a run's view; the head comes first, so that what follows is never older."""
    one = (run_id,)
    return {
        "head": Part("run_head", "t.run_id = %s", one),
        "run": Part("run", "t.id = %s", one),
        "workflow": Part("workflow_type", f"t.id = {_HEAD.format('workflow_id')}", one),
        "tenant": Part("tenant_head", f"t.tenant_id = {_TENANT}", one),
        "lease": Part("lease", "t.run_id = %s", one),
        "version": Part(
            "workflow_version",
            f"t.workflow_id = {_HEAD.format('workflow_id')} AND t.version = {_HEAD.format('version')}",
            one * 2,
        ),
        "holder": Part(
            "workflow_version",
            f"t.workflow_id = {_HEAD.format('workflow_id')}"
            " AND t.version = (SELECT l.version FROM ledger_lease l WHERE l.run_id = %s)",
            one * 2,
        ),
        "holder_key": Part("api_key", "t.id = (SELECT l.key_id FROM ledger_lease l WHERE l.run_id = %s)", one),
        "instance": Part("transition_instance", f"t.id = {_HEAD.format('instance_id')}", one),
        "clearance": Part("clearance", f"t.id = {_HEAD.format('clearance_id')}", one),
        "effects": Part(
            "effect",
            f"t.run_id = %s AND (t.instance_id = {_HEAD.format('instance_id')} OR t.state IN ('proposed', 'in_flight', 'unknown') OR t.disputed)",
            one * 2,
            many=True,
            order="t.proposed_at, t.name",
        ),
        "targets": Part("target", f"t.tenant_id = {_TENANT}", one, many=True),
        "wait": Part("wait_set", "t.run_id = %s AND t.state = 'open'", one),
        "members": Part(
            "wait_member",
            "t.wait_id = (SELECT s.id FROM ledger_wait_set s WHERE s.run_id = %s AND s.state = 'open')",
            one,
            many=True,
            order="t.ordinal",
        ),
        "wake": Part("wake", "t.run_id = %s AND t.state IN ('queued', 'checking')", one),
        "policy": Part("policy_version", f"t.tenant_id = {_TENANT}", one, order="t.number DESC"),
        "grants": Part("grant", "t.run_id = %s AND t.state = 'live'", one, many=True),
        "handoffs": Part("handoff", "t.run_id = %s AND t.state IN ('open', 'accepted')", one, many=True),
    }


def run_view(run_id: UUID, tenant_id: UUID | None = None, **extra: Part) -> RunView:
    """The run as of now. `extra` parts land in `extras`. Raises LedgerError `not-found` for a foreign or missing run."""
    port_parts = dict(approvals().parts(run_id))
    read = facts.read(**run_parts(run_id), **port_parts, **extra)
    return to_view(read, tenant_id, (*port_parts, *extra))


def view_for(caller: Caller, run_id: UUID, **extra: Part) -> RunView:
    """`run_view` for a caller: runs of a type that their key isn't for aren't there. Raises LedgerError `not-found`."""
    view = run_view(run_id, caller.tenant_id, **extra)
    if not caller.reaches(view.workflow):
        raise _missing()
    return view


_TELLING = (
    "head",
    "run",
    "tenant",
    "lease",
    "clearance",
    "effects",
    "targets",
    "wait",
    "members",
    "wake",
    "policy",
    "handoff",
)
_ENDED = ("head", "run", "tenant")


def telling_view(run_id: UUID, tenant_id: UUID | None = None, *, ended: bool = False) -> RunView:
    """What tells how a run stands, for reading only: without what rules of a write need besides. Nothing is open any more of one that `ended`.

    Raises LedgerError `not-found` as `run_view` does.
    """
    parts = run_parts(run_id)
    wanted = _ENDED if ended else _TELLING
    read = facts.read(**{name: parts[name] for name in wanted})
    absent: dict[str, Any] = {name: [] if part.many else None for name, part in parts.items() if name not in wanted}
    return to_view(Facts(read.now, absent | dict(read.rows)), tenant_id, ())


_EACH = UUID(int=0)


def run_views(ids: str, params: tuple[object, ...], **parts: Part) -> tuple[Facts, dict[UUID, RunView]]:
    """The runs whose ids this SQL selects (as `id`), and the parts beside: one statement on PostgreSQL, however many runs there are."""
    port_parts = dict(approvals().parts(_EACH))
    read, each = facts.read_each(Each(ids, params, _EACH, {**run_parts(_EACH), **port_parts}), **parts)
    return read, {run_id: to_view(one, None, tuple(port_parts)) for run_id, one in each.items()}


def to_view(read: Facts, tenant_id: UUID | None, extras: tuple[str, ...]) -> RunView:
    """Build the view from a reading that has all of `run_parts`."""
    head = read.one("head", Head)
    run = read.one("run", RunRow)
    tenant = read.row("tenant")
    if head is None or run is None or tenant is None or (tenant_id is not None and run.tenant_id != tenant_id):
        raise _missing()
    workflow = read.row("workflow")
    handoffs = read.all("handoffs", HandoffRow)
    instance, key = read.row("instance"), read.row("holder_key")
    return RunView(
        now=read.now,
        tenant_seq=tenant["head_seq"],
        workflow=workflow["name"] if workflow else "",
        run=run,
        head=head,
        lease=read.one("lease", LeaseRow),
        version=read.one("version", VersionRow),
        holder=read.one("holder", VersionRow),
        clearance=read.one("clearance", ClearanceRow),
        effects=read.all("effects", EffectRow),
        targets={target.id: target for target in read.all("targets", TargetRow)},
        wait=read.one("wait", SetRow),
        members=read.all("members", MemberRow),
        wake=read.one("wake", WakeRow),
        policy=read.one("policy", PolicyRow),
        grants=read.all("grants", GrantRow),
        handoff=next((handoff for handoff in handoffs if handoff.blocks_run), None),
        handoffs=[handoff for handoff in handoffs if not handoff.blocks_run],
        extras={name: read.rows[name] if isinstance(read.rows[name], list) else [read.rows[name]] for name in extras},
        instance_opened_at=instance["opened_at"] if instance else None,
        holder_agent_id=key["agent_id"] if key else None,
    )


def _missing() -> LedgerError:
    """The same words for a run that isn't there, a foreign one, and one of a type that the key isn't for."""
    return LedgerError(
        "not-found", "there is no such run here", "Check the id, and that the key belongs to its tenant."
    )
