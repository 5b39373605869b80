"""What the holder of a run does with its effects: propose, withdraw, permit, settle, accept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from ledger.domain import effects as rules
from ledger.domain.authority import grant_of
from ledger.domain.change import Change
from ledger.domain.checkpoints import CheckpointFields, CheckpointKind, insert_checkpoint
from ledger.domain.drafts import Draft
from ledger.domain.effects import (
    EffectRow,
    PermitAsk,
    PermitRow,
    ProposalSpec,
    ReportRow,
    SeenVersion,
    SettleSpec,
    WithdrawCause,
)
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Scope
from ledger.domain.runs import Fence, Status
from ledger.domain.targets import replayed
from ledger.domain.views import RunView
from ledger.domain.waits.closing import Withdraw
from ledger.services import committed, facts, keys, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.effects.reading import (
    Seat,
    body_of,
    check_held,
    content_parts,
    inactive,
    newest_seen,
    permit_parts,
    report_parts,
    seat_for,
    shown,
    with_grants,
    words_of,
)
from ledger.services.effects.sighted import moved
from ledger.services.facts import Part
from ledger.services.ids import new_body
from ledger.services.packets import EffectFacts
from ledger.services.ports import approvals
from ledger.services.views import view_for


@dataclass(frozen=True, slots=True)
class PermitAnswer:
    """What the call is to be made with: `request` is the recorded canonical JSON, `precondition` the version to send as If-Match ('' for none).
    `verbatim` where the target is asked by sending that request again."""

    effect: EffectRow
    attempt: int
    key: str
    send_by: datetime
    answer_by: datetime
    precondition: str
    request: bytes
    verbatim: bool
    new: bool
    shown: EffectFacts
    now: datetime
    """The record's clock, read after the permit was written."""


@dataclass(frozen=True, slots=True)
class ProposalAnswer:
    """The effect as recorded; `seq` is the run's last checkpoint afterwards; `new` is False when it was recorded before."""

    effect: EffectRow
    seq: int
    new: bool
    shown: EffectFacts


def withdrawer(draft: Draft, view: RunView) -> Withdraw:
    """How a Change takes back open requests: through the port, in the same transaction."""
    return lambda effect_ids, cause: approvals().withdraw(draft, view, effect_ids, cause)


# Steps of a Change, also of a commit's -------------------------------------------------------


def propose_in(draft: Draft, view: RunView, spec: ProposalSpec, seen: SeenVersion | None) -> EffectRow:
    """Propose within a Change. The view must have been read with `committed.parts` for the spec's name."""
    recorded = view.named(spec.name)
    known = body_of(view.extras["contents"], recorded.request_id) if recorded else None
    return rules.propose(draft, view, spec, seen, known, new_body(spec.request, view.now))


def settle_in(
    draft: Draft, view: RunView, effect: EffectRow, spec: SettleSpec, fence: Fence, agent_id: UUID | None
) -> tuple[EffectRow, bool]:
    """Settle within a Change, where it isn't a repeat. The view must have been read with `report_parts`. Answers the effect and whether the
    report counted."""
    holder = view.head.fence == fence and view.head.status is Status.RUNNING and view.holder_agent_id == agent_id
    given = [facts.load(PermitRow, row) for row in view.extras["own_permits"] if row["effect_id"] == effect.id]
    called = any(permit.attempt == spec.attempt and permit.fence == fence for permit in given)
    result = new_body(spec.result, view.now) if spec.result is not None else None
    return rules.settle(
        draft,
        view,
        effect,
        spec,
        holder=holder,
        called=called,
        fence=fence,
        result=result,
        withdraw=withdrawer(draft, view),
        told=_told(view, effect),
    )


def _told(view: RunView, effect: EffectRow) -> list[ReportRow]:
    return [facts.load(ReportRow, row) for row in view.extras["told"] if row["effect_id"] == effect.id]


def repeated(view: RunView, effect: EffectRow, spec: SettleSpec, fence: Fence, actor: str) -> ReportRow | None:
    """The earlier report that this one repeats, if it does. The view must have been read with `report_parts`."""
    own = [row for row in _told(view, effect) if row.actor == actor and (row.counted or row.fence == fence)]
    bodies = {row["id"]: (row["salt"] or b"", row["commitment"]) for row in view.extras["told_bodies"]}
    return rules.replayed(spec, own, bodies)


def withdraw_in(draft: Draft, view: RunView, effect: EffectRow, cause: WithdrawCause) -> EffectRow:
    """Withdraw within a Change, with the requests for leave that were asked for it."""
    moved = rules.withdraw(draft, view, effect, cause)
    approvals().withdraw(draft, view, frozenset({effect.id}), str(cause))
    return moved


# Verbs -----------------------------------------------------------------------------------------


@writes(
    moves="Inserts an effect as proposed, with a checkpoint of its own. One that is recorded under the name is accounted for instead.",
    twice=(
        "The same key is answered from the row, the same name and content with the recorded effect; other content, and what a replan carried, "
        "is refused: `key-reused`, `effect-differs`, `effect-carried`."
    ),
    dies="The effect is recorded; the next holder has to account for it.",
)
def propose(
    caller: Caller,
    run_id: UUID,
    fence: Fence,
    expect_seq: int,
    spec: ProposalSpec,
    observation: SeenVersion | None,
    call_key: str,
) -> ProposalAnswer:
    """Record an effect outside a full commit: a checkpoint of its own, with the state as it was.

    The key first: a repeat is answered with what it made. The name next: what is recorded under it is answered, and accounted for. Raises LedgerError
    `key-reused`, `stale-fence`, `wrong-sequence`, `effect-differs`, `effect-carried`, `effects-unaccounted`, `target-unknown`.
    """
    caller.needs(Scope.RUNS_WORK)
    spec = replace(spec, call_key=call_key)

    def rule(view: RunView) -> tuple[Change | None, ProposalAnswer]:
        if (repeat := _repeat(view, spec)) is not None:
            return None, ProposalAnswer(repeat, view.head.checkpoint_seq, False, shown(view, repeat, None))
        check_held(caller, view, fence)
        if view.head.checkpoint_seq != expect_seq:
            raise LedgerError(
                "wrong-sequence",
                f"the last checkpoint is {view.head.checkpoint_seq}; you expected {expect_seq}",
                "Read the run's checkpoints: somebody or an earlier call of yours has committed.",
                seq=view.head.checkpoint_seq,
            )
        draft = run_draft(view, caller.actor, "effect.propose")
        before = view.named(spec.name)
        effect = propose_in(draft, view, spec, observation)
        if before is not None:
            change = draft.change() if effect != before else None
            return change, ProposalAnswer(effect, expect_seq, False, shown(view, effect, change))
        _checkpoint(draft, view, fence)
        change = draft.change()
        return change, ProposalAnswer(effect, expect_seq + 1, True, shown(view, effect, change))

    parts = {
        **committed.parts(run_id, [spec.name], [], call_key),
        "last": Part("checkpoint", "t.run_id = %s", (run_id,), many=True, order="t.seq DESC", limit=1),
    }
    answer, _ = writer.settle(
        lambda: view_for(caller, run_id, **parts), rule, again=frozenset({"effect_call_key_unique"})
    )
    return answer


def _repeat(view: RunView, spec: ProposalSpec) -> EffectRow | None:
    row = next((row for row in view.extras["shown"] if row["call_key"] == spec.call_key), None)
    if row is None:
        return None
    effect = facts.load(EffectRow, row)
    known = body_of(view.extras["contents"], effect.request_id)
    target = view.targets[effect.target_id]
    same = (effect.name, effect.tool, target.name, effect.resource, effect.tool_digest)
    if same != (spec.name, spec.tool, spec.target, spec.resource, spec.tool_digest) or not (
        known is not None and known.same(spec.request)
    ):
        raise LedgerError(
            "key-reused",
            "this Idempotency-Key proposed something else",
            "Send the first content again, or use a new key for a new proposal.",
            effect=str(effect.id),
        )
    return effect


def _checkpoint(draft: Draft, view: RunView, fence: Fence) -> None:
    last = view.extras["last"][0]
    fields = CheckpointFields(
        run_id=view.run.id,
        seq=view.head.checkpoint_seq + 1,
        kind=CheckpointKind.PROPOSAL,
        previous_digest=view.head.checkpoint_digest,
        last_transition=last["last_transition"],
        next_transition=view.head.transition,
        instance_id=view.head.instance_id,
        version=view.head.version,
        code_version=last["code_version"],
        fence=fence,
        state_commitment=last["state_commitment"],
    )
    insert_checkpoint(draft, fields, state_id=last["state_id"])


@writes(
    moves=(
        "Effect proposed → in_flight, or failed → in_flight where it may be tried again; inserts a permit; grant "
        "live → used. On a refusal that the holder can't cure: run running → waking, or blocked after ten claims "
        "without a commit."
    ),
    twice="The same permit while it may be sent and the fence is the holder's; then `send-by-passed` or `stale-fence`.",
    dies="The effect is in_flight though nobody called: the lapse or `answer_by` makes it unknown, and the target is asked.",
)
def permit(caller: Caller, effect_id: UUID, fence: Fence, observation: SeenVersion | None = None) -> PermitAnswer:
    """Leave for the next attempt of a call, written before the call; the same leave again while it is out.

    Idempotent by fence and attempt. `observation` is one made for this call, after `observation-due`. Key, agents and the person acted for are
    read again. Raises LedgerError; `changed`, `forbidden`, `policy-denies`, `grant-missing`, `grant-void` and `expired` have sent the run back to
    waking, or to a person when that didn't help ten times.
    """
    caller.needs(Scope.RUNS_WORK)

    def rule(at: Seat) -> tuple[Change | None, PermitAnswer | LedgerError]:
        view = with_grants(at.view, at.view.extras["usable"])
        check_held(caller, view, fence)
        keys.check_live(view.extras["asking_key"], view.now)
        ask = _ask(caller, view, at.effect, fence, observation)
        draft = run_draft(view, caller.actor, "effect.permit", fresh_authority=True)
        try:
            effect, given, new = rules.permit(draft, view, at.effect, _doubted(view, at.effect, ask))
        except LedgerError as refusal:
            if refusal.code not in rules.INCURABLE or rules.calls_out(view):
                raise
            draft = run_draft(view, caller.actor, "effect.refuse", fresh_authority=True)
            rules.send_to_wake(draft, view, at.effect, refusal, ask)
            return draft.change(), refusal
        change = draft.change() if new else None
        return change, _permitted(view, effect, given, change)

    parts = permit_parts(effect_id, caller.key_id)
    answer, written = writer.settle(lambda: seat_for(caller, effect_id, **parts), rule)
    if isinstance(answer, LedgerError):
        raise answer
    return answer if written is None else replace(answer, now=written.clock)


def _ask(caller: Caller, view: RunView, effect: EffectRow, fence: Fence, observation: SeenVersion | None) -> PermitAsk:
    extras = view.extras
    recorded = newest_seen(extras["seen"], extras["seen_body"])
    now = observation is not None and (recorded is None or observation.at > recorded.at)
    seen, target = observation if now else recorded, view.targets[effect.target_id]
    return PermitAsk(
        fence=fence,
        permits=[facts.load(PermitRow, row) for row in extras["permits"]],
        seen=seen,
        seen_now=now,
        send_within=timedelta(seconds=settings.RESUMEAPP_SEND_BY_SECONDS),
        key_id=caller.key_id,
        inactive=inactive(view),
        last_word=words_of(view).get(effect.id),
        scopes=caller.scopes,
        moved=None if seen is None else moved(effect, target, seen, extras["bound"], extras["bound_bodies"]),
    )


def _doubted(view: RunView, effect: EffectRow, ask: PermitAsk) -> PermitAsk:
    """What the people's side says of the votes behind the grant, if there is one."""
    grant = grant_of(view, effect.id)
    return ask if grant is None else replace(ask, doubt=approvals().still_good(grant, view))


def _permitted(view: RunView, effect: EffectRow, given: PermitRow, change: Change | None) -> PermitAnswer:
    request = body_of(view.extras["contents"], effect.request_id)
    if request is None or request.commitment != bytes(effect.request_commitment):
        raise LedgerError(
            "integrity",
            "the recorded request doesn't fit its commitment",
            "Verify the run before anything else is done.",
        )
    return PermitAnswer(
        effect=effect,
        attempt=given.attempt,
        key=effect.key,
        send_by=given.send_by,
        answer_by=given.answer_by,
        precondition=given.precondition,
        request=request.content,
        verbatim=replayed(view.targets[effect.target_id].lookup),
        new=change is not None,
        shown=shown(view, effect, change),
        now=view.now,
    )


@dataclass(frozen=True, slots=True)
class SettleAnswer:
    """The effect as recorded by now; `counted` is False where what was said is kept as evidence and decided nothing."""

    effect: EffectRow
    counted: bool
    shown: EffectFacts


@writes(
    moves=(
        "Effect in_flight → committed, failed, unknown, or in_flight as accepted. What comes late is evidence, "
        "but: unknown → committed by a receipt where the target has no look-up, failed → unknown where somebody says "
        "it was done, and → disputed where another attempt was carried out at a target without keys."
    ),
    twice="The same attempt and content is answered as the first; nothing is written.",
    dies="The outcome is recorded; a repeat hears so.",
)
def settle(caller: Caller, effect_id: UUID, spec: SettleSpec, fence: Fence) -> SettleAnswer:
    """Record what a worker says of its attempt. A repeat of the same content changes nothing, whoever holds the run by now.

    Nobody is turned away for a stale fence: what they say is kept as evidence, and `counted` says whether it decided anything.
    """
    caller.needs(Scope.RUNS_WORK)
    rules.check_spec(spec)

    def rule(at: Seat) -> tuple[Change | None, SettleAnswer]:
        view = at.view
        if (earlier := repeated(view, at.effect, spec, fence, caller.actor)) is not None:
            return None, SettleAnswer(at.effect, earlier.counted, shown(view, at.effect, None))
        draft = run_draft(view, caller.actor, "effect.settle")
        effect, counted = settle_in(draft, view, at.effect, spec, fence, caller.agent_id)
        change = draft.change()
        return change, SettleAnswer(effect, counted, shown(view, effect, change))

    parts = {**report_parts([effect_id], caller.agent_id), **content_parts(effect_id)}
    answer, _ = writer.settle(lambda: seat_for(caller, effect_id, **parts), rule)
    return answer
