"""What needs a target's answer before the ledger is asked: proposals that name a resource, and permits whose observation is too old."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from ledger.domain.effects import ProposalSpec, SeenVersion
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.runs import Fence
from ledger.domain.waits import MemberKind
from ledger.engine.observe import seen_version
from ledger.services import checkpoints, effects, targets, waits
from ledger.services.checkpoints import CommitSpec, Committed
from ledger.services.contracts import writes
from ledger.services.effects import PermitAnswer, ProposalAnswer

A = TypeVar("A")
Sightings = dict[tuple[str, str], SeenVersion]
"""By (target name, resource)."""


def observed(tenant_id: UUID, proposals: Sequence[ProposalSpec]) -> Sightings:
    """What is seen now of every resource that the proposals name."""
    wanted = {(spec.target, spec.resource) for spec in proposals if spec.resource}
    if not wanted:
        return {}
    known = targets.of_tenant(tenant_id)
    found = {}
    for name, resource in sorted(wanted):
        seen = seen_version(known[name], resource) if name in known else None
        if seen is not None:
            found[(name, resource)] = seen
    return found


def _on_what_is_seen(tenant_id: UUID, proposals: Sequence[ProposalSpec], act: Callable[[Sightings], A]) -> A:
    """Act on what is seen of the resources; once more where a target was registered anew between the look and the record."""
    try:
        return act(observed(tenant_id, proposals))
    except LedgerError as refusal:
        if refusal.code != "observation-due":
            raise
    return act(observed(tenant_id, proposals))


@writes(
    moves="What `checkpoints.commit_transition` moves, then what `waits.look_after_open` does.",
    twice="As `checkpoints.commit_transition`; targets are observed again.",
    dies="Between the two: the sweep looks for what the wait waits for.",
)
def commit(caller: Caller, run_id: UUID, spec: CommitSpec) -> tuple[Committed, bool]:
    """Observe what the commit's proposals name, commit, and look whether an event that it waits for is there already.

    Answers and raises as `checkpoints.commit_transition`.
    """
    answer = _on_what_is_seen(
        caller.tenant_id, spec.propose, lambda seen: checkpoints.commit_transition(caller, run_id, spec, seen)
    )
    wait = spec.next.wait
    if wait is not None and any(member.kind is MemberKind.EVENT for member in wait.members):
        # Whatever else a wait is for is of the run itself, and the commit has seen it: only events come from other streams.
        waits.look_after_open(run_id)
    return answer


@writes(
    moves="What `effects.propose` moves, bound to the version seen now.",
    twice="As `effects.propose`; the target is observed again.",
    dies="Before the record: nothing was written.",
)
def propose(
    caller: Caller, run_id: UUID, fence: Fence, expect_seq: int, spec: ProposalSpec, call_key: str
) -> ProposalAnswer:
    """Observe the resource, then propose. Answers and raises as `effects.propose`."""
    at = (spec.target, spec.resource)
    return _on_what_is_seen(
        caller.tenant_id,
        [spec],
        lambda seen: effects.propose(caller, run_id, fence, expect_seq, spec, seen.get(at), call_key),
    )


@writes(
    moves="What `effects.permit` moves, after a new observation where the last is too old.",
    twice="As `effects.permit`.",
    dies="As `effects.permit`.",
)
def permit(caller: Caller, effect_id: UUID, fence: Fence) -> PermitAnswer:
    """Ask for a permit; where the last observation of the resource is too old, observe it and ask again.

    Answers and raises as `effects.permit`, and `target-unreachable` where nothing could be seen.
    """
    try:
        return effects.permit(caller, effect_id, fence)
    except LedgerError as refusal:
        if refusal.code != "observation-due":
            raise
    one = effects.get(caller.tenant_id, effect_id)
    seen = seen_version(one.target, one.row.resource)
    if seen is None:
        raise LedgerError(
            "target-unreachable",
            f"the target {one.target.name} couldn't be asked for the resource's version",
            "Ask for the permit again when the target answers.",
        )
    return effects.permit(caller, effect_id, fence, seen)
