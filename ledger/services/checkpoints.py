"""Commit transitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ledger.domain import commits
from ledger.domain.canonical import canonical, commit
from ledger.domain.change import Change
from ledger.domain.commits import Commit, Next, NextKind
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectRow, ProposalSpec, SeenVersion, SettleSpec, WithdrawCause, observed
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Scope
from ledger.domain.runs import ClearanceRow, Fence, check_holder
from ledger.domain.views import RunView
from ledger.services import committed, effects, facts, schemas, waits, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part
from ledger.services.ids import new_body
from ledger.services.packets import EffectFacts
from ledger.services.ports import approvals
from ledger.services.views import view_for


@dataclass(frozen=True, slots=True)
class CommitSpec:
    """A commit as a caller sends it. `document` is the whole request, for comparing a repeat with the first."""

    fence: Fence
    expect_seq: int
    code_version: str
    state: Any
    next: Next
    idempotency_key: str
    document: Mapping[str, Any]
    propose: Sequence[ProposalSpec] = ()
    settle: Sequence[tuple[UUID, SettleSpec]] = ()
    withdraw: Sequence[UUID] = ()
    version: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer: `fence` and `clearance` only while the caller still holds the run; `effects` are those that the call named."""

    run_id: UUID
    seq: int
    digest: bytes
    status: str
    fence: Fence | None
    transition: str
    instance_id: UUID
    clearance: ClearanceRow | None
    effects: Sequence[EffectFacts]


@writes(
    moves=(
        "Inserts a checkpoint; run running → running, waking, waiting, completed or failed; opens the next "
        "transition instance, wait, requests and wake, and moves the effects that it settles, withdraws and "
        "proposes."
    ),
    twice="The same key and content is answered from the checkpoint; other content is refused: `key-reused`.",
    dies="A wait that it opened hasn't looked for early events yet: the sweep does.",
)
def commit_transition(
    caller: Caller,
    run_id: UUID,
    spec: CommitSpec,
    observations: Mapping[tuple[str, str], SeenVersion] | None = None,
) -> tuple[Committed, bool]:
    """Commit a transition; the same key and content again answers as before. Answers (what was committed, whether it was a repeat).

    Two round trips on PostgreSQL, whatever it carries. `observations` maps (target name, resource) to what was seen there.
    Raises LedgerError: `key-reused` before all else, then `stale-fence`, `wrong-sequence`, `forbidden`, `schema-mismatch`, and what
    effects and waits refuse.
    """
    caller.needs(Scope.RUNS_WORK)
    request = canonical(dict(spec.document))

    def rule(view: RunView) -> tuple[Change | None, tuple[Committed, bool]]:
        if known := _replay(view, spec, request):
            return None, (known, True)
        draft = run_draft(view, caller.actor, "checkpoint.commit", fresh_authority=bool(spec.propose))
        parsed = _parsed(view, spec, request)
        check_holder(view, caller.agent_id)
        commits.check(view, parsed)
        _check_state(view, spec)
        after = _effects(draft, view, caller, spec, observations or {})
        commits.write(draft, after, parsed, waits.asker(draft, after), _withdrawer(draft, after))
        change = draft.change()
        return change, (_committed(view, spec, change), False)

    answer, _ = writer.settle(
        lambda: view_for(caller, run_id, _only(spec), **_extra(run_id, caller, spec)),
        rule,
        again=frozenset({"checkpoint_key_unique"}),
    )
    return answer


_PLAIN = frozenset({"lease", "holder", "holder_key", "clearance", "effects", "grants", "wake"})


def _only(spec: CommitSpec) -> frozenset[str] | None:
    """What a commit reads that goes on or gives back and says nothing of effects; None, everything, for any other."""
    plain = spec.next.kind in {NextKind.GO_ON, NextKind.GIVE_BACK} and not any(_named(spec))
    return _PLAIN if plain else None


def _extra(run_id: UUID, caller: Caller, spec: CommitSpec) -> dict[str, Part]:
    key = (spec.idempotency_key,)
    replayed = "SELECT c.state_id FROM ledger_checkpoint c WHERE c.run_id = h.run_id AND c.idempotency_key = %s"
    settled = [effect_id for effect_id, _ in spec.settle]
    return {
        "replay": Part("checkpoint", "t.run_id = h.run_id AND t.idempotency_key = %s", key, many=True),
        "replay_state": Part("body", f"t.id IN ({replayed})", key, many=True),
        **(committed.parts(run_id, *_named(spec)) if any(_named(spec)) else {}),
        **(effects.report_parts(settled, caller.agent_id) if settled else {}),
    }


def _named(spec: CommitSpec) -> tuple[list[str], list[UUID]]:
    """The names and ids of the effects that a commit speaks of."""
    return [proposal.name for proposal in spec.propose], [*(effect_id for effect_id, _ in spec.settle), *spec.withdraw]


def _effects_shown(view: RunView, spec: CommitSpec, change: Change | None) -> list[EffectFacts]:
    names, ids = _named(spec)
    if not names and not ids:
        return []
    known = [facts.load(EffectRow, row) for row in view.extras.get("shown", ())]
    shown = committed.effects(known, view.extras.get("contents", ()), view.targets, change)
    return [each for each in shown if each.row.name in names or each.row.id in ids]


def _replay(view: RunView, spec: CommitSpec, request: bytes) -> Committed | None:
    """A commit under this key exists: the answer is rebuilt from its row, and says whether the caller still owns the run."""
    if not view.extras["replay"]:
        return None
    row, state = view.extras["replay"][0], view.extras["replay_state"][0]
    if state["erased_at"] is None and commit(state["salt"], request) != row["request_commitment"]:
        raise LedgerError(
            "key-reused",
            "this Idempotency-Key committed other content",
            "Send the first content again, or use a new key for a new commit.",
            seq=row["seq"],
        )
    fence = Fence(row["fence_epoch"], row["fence_count"])
    held = fence == view.head.fence
    return Committed(
        run_id=view.run.id,
        seq=row["seq"],
        digest=row["digest"],
        status=str(view.head.status),
        fence=fence if held else None,
        transition=row["next_transition"],
        instance_id=row["instance_id"],
        clearance=view.clearance if held else None,
        effects=_effects_shown(view, spec, None),
    )


def _parsed(view: RunView, spec: CommitSpec, request: bytes) -> Commit:
    state = new_body(canonical(spec.state), view.now)
    return Commit(
        fence=spec.fence,
        expect_seq=spec.expect_seq,
        code_version=spec.code_version,
        next=spec.next,
        state=state,
        idempotency_key=spec.idempotency_key,
        request_commitment=commit(state.salt, request),
        version=spec.version,
        note=new_body(spec.next.reason.encode(), view.now, "text/plain") if spec.next.reason else None,
    )


def _check_state(view: RunView, spec: CommitSpec) -> None:
    if view.holder is None:
        raise LedgerError("wrong-state", "nobody holds this run", "Claim it before you commit.")
    schemas.check_state(view.holder.digest, view.holder.state_schema, spec.state)


def _effects(
    draft: Draft,
    view: RunView,
    caller: Caller,
    spec: CommitSpec,
    observations: Mapping[tuple[str, str], SeenVersion],
) -> RunView:
    """Settles first, then withdrawals, then proposals, which find what the others left. Each by the rule of its own verb."""
    _check_once(view, [effect_id for effect_id, _ in spec.settle], "settle")
    _check_once(view, spec.withdraw, "withdraw")
    for effect_id, said in spec.settle:
        effect = _known(view, effect_id)
        if effects.repeated(view, effect, said, spec.fence, caller.actor) is None:
            effect, _ = effects.settle_in(draft, view, effect, said, spec.fence, caller.agent_id)
        view = view.having(effect)
    for effect_id in spec.withdraw:
        view = view.having(effects.withdraw_in(draft, view, _known(view, effect_id), WithdrawCause.BY_AGENT))
    for proposal in spec.propose:
        view = view.having(effects.propose_in(draft, view, proposal, observed(observations, proposal)))
    return view


def _check_once(view: RunView, effect_ids: Sequence[UUID], field: str) -> None:
    """An effect is settled, or withdrawn, once in a commit. Raises LedgerError `invalid`."""
    for effect_id, times in Counter(effect_ids).items():
        if times > 1:
            name = effect.name if (effect := view.effect(effect_id)) else str(effect_id)
            raise LedgerError(
                "invalid", f"the effect {name} stands {times} times in {field}", "Name each effect once in a commit."
            )


def _known(view: RunView, effect_id: UUID) -> EffectRow:
    effect = view.effect(effect_id)
    if effect is None:
        raise LedgerError(
            "not-found", "the run has no such open effect", "Name an effect of this transition by its id."
        )
    return effect


def _withdrawer(draft: Draft, view: RunView) -> commits.Withdraw:
    return lambda cause: approvals().withdraw(draft, view, None, cause)


def _committed(view: RunView, spec: CommitSpec, change: Change) -> Committed:
    head = change.head
    kept = "fence_count" not in head
    return Committed(
        run_id=view.run.id,
        seq=head["checkpoint_seq"],
        digest=head["checkpoint_digest"],
        status=str(head["status"]),
        fence=view.head.fence if kept else None,
        transition=head.get("transition", ""),
        instance_id=head.get("instance_id", view.head.instance_id),
        clearance=_cleared(change) if kept else None,
        effects=_effects_shown(view, spec, change),
    )


def _cleared(change: Change) -> ClearanceRow | None:
    row = next((insert.row for insert in change.inserts if insert.table == "clearance"), None)
    return None if row is None else facts.load(ClearanceRow, dict(row))
