"""What is done about effects whose outcome nobody reported: lapse, look up, replay, and a person's verdict."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from ledger.domain import effects as rules
from ledger.domain.canonical import canonical
from ledger.domain.change import Change
from ledger.domain.effects import EffectRow, EffectState, Judged, Look, LookAnswer, Read
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Verb
from ledger.domain.views import RunView
from ledger.models import WorkflowType
from ledger.services import permissions, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.effects.holding import withdrawer
from ledger.services.effects.reading import (
    Seat,
    last_word,
    late_receipts,
    leave_of,
    newest_report,
    read_of,
    receipts_of,
    seat,
    used_leave,
    words_of,
)
from ledger.services.facts import Part, load
from ledger.services.ids import new_body
from ledger.services.views import run_view

SWEEP = "system:sweep"
RECONCILER = "system:reconciler"
LONGEST_EVIDENCE = 20_000


@dataclass(frozen=True, slots=True)
class Looked:
    """A target's answer as the reconciler got it. `asked_at` is the record's clock before the question, `evidence` the reply's bytes, `result`
    canonical JSON of what it found."""

    answer: LookAnswer
    asked_at: datetime
    attempt: int
    reference: str = ""
    cause: str = ""
    evidence: bytes | None = None
    media: str = "application/json"
    result: bytes | None = None


@writes(
    moves=(
        "Effects past `answer_by` in_flight → unknown, or → committed by a receipt that was kept as evidence, where the "
        "target has no look-up; a waking run's wake is pulled forward."
    ),
    twice="Nothing is left to lapse: answers False.",
    dies="The effects are unknown and due: the sweep asks their targets.",
)
def lapse(run_id: UUID) -> bool:
    """Calls whose answer is overdue become unknown. False when there was nothing to lapse: two sweeps make one lapse."""

    def rule(view: RunView) -> tuple[Change | None, bool]:
        draft = run_draft(view, SWEEP, "effect.lapse")
        gone = rules.expire(draft, view, receipts_of(view), withdrawer(draft, view))
        return (draft.change(), True) if gone else (None, False)

    lapsed, _ = writer.settle(lambda: run_view(run_id, **late_receipts(run_id)), rule)
    return lapsed


@writes(
    moves=(
        "Inserts a report; effect in_flight or unknown → committed, failed, or due again; failed → unknown and "
        "committed → disputed on a contradiction. Whoever waits for it wakes; when it is given up: handoff, run → "
        "blocked."
    ),
    twice="The second answer is one more report; on a settled effect it moves something only if it contradicts.",
    dies="The answer and all that follows from it are there. Before: the target is asked again.",
)
def look(effect_id: UUID, looked: Looked, actor: str = RECONCILER) -> EffectRow:
    """Record a target's answer and what follows from it. A look that found the effect settled meanwhile is kept as evidence.

    Raises LedgerError `wrong-state` for an effect that was never permitted.
    """

    def rule(at: Seat) -> tuple[Change | None, EffectRow]:
        if at.effect.attempt == 0:
            raise LedgerError(
                "wrong-state",
                "the effect was never permitted: there is nothing to look up",
                "Look up effects that are in flight or unknown.",
                state=str(at.effect.state),
            )
        draft = run_draft(at.view, actor, "effect.look")
        evidence = new_body(looked.evidence, at.view.now, looked.media) if looked.evidence is not None else None
        result = new_body(looked.result, at.view.now) if looked.result is not None else None
        found = Look(
            looked.answer, looked.asked_at, looked.attempt, looked.reference[:200], looked.cause, evidence, result
        )
        effect, _ = rules.apply_look(draft, at.view, at.effect, found, withdrawer(draft, at.view))
        return draft.change(), effect

    effect, _ = writer.settle(lambda: seat(effect_id, None), rule)
    return effect


@writes(
    moves=(
        "Inserts a report that the identical request is about to be sent; the effect stays unknown, due after the call's "
        "limit, and its `answer_by` covers the replay."
    ),
    twice="One more report; the target answers the first result again.",
    dies="The report says that a replay may have gone out; the effect is due again.",
)
def begin_replay(effect_id: UUID, actor: str = RECONCILER) -> timedelta:
    """Record a look-up by replay before it is sent. Answers within what time it is to be sent.

    Raises LedgerError `wrong-state`, `expired`, `grant-void`, `not-cleared`.
    """
    within = timedelta(seconds=settings.RESUMEAPP_SEND_BY_SECONDS)

    def rule(at: Seat) -> tuple[Change | None, None]:
        draft = run_draft(at.view, actor, "effect.replay")
        rules.begin_replay(draft, at.view, at.effect, leave_of(at.view), within)
        return draft.change(), None

    writer.settle(lambda: seat(effect_id, None, **used_leave(effect_id)), rule)
    return within


@writes(
    moves=(
        "Effect unknown → committed or failed; against a recorded outcome failed → unknown, committed → disputed; "
        "a disputed one is so no longer, and its handoff is withdrawn; a failed one that no machine may try again "
        "may be tried once more; inserts a report with the person's evidence."
    ),
    twice="The second is refused: `changed`, since the first is news to it.",
    dies="The verdict stands; whoever waited for the effect wakes by a row.",
)
def verdict(
    caller: Caller,
    effect_id: UUID,
    outcome: EffectState,
    cause: str,
    evidence: str,
    reference: str = "",
    *,
    read: Read,
) -> EffectRow:
    """A person says what happened, and how they know. `cause` goes with failed: `confirmed_absent` or `rejected`.

    It is a word on what they had `read`, and on no later attempt or report. Raises LedgerError `agents-never-decide`, `forbidden`, `invalid` without
    evidence, `changed`, `reference-taken`, `wrong-state`.
    """
    found, person_id = _checked(caller, evidence)

    def rule(at: Seat) -> tuple[Change | None, EffectRow]:
        _check_may_say(person_id, at, read)
        draft = run_draft(at.view, caller.actor, "effect.verdict", fresh_authority=True)
        if outcome is EffectState.COMMITTED:
            rules.check_reference(reference, _others(at))
        judged = Judged(outcome, new_body(found, at.view.now), cause, reference, words_of(at.view).get(effect_id))
        effect = rules.verdict(draft, at.view, at.effect, judged, withdrawer(draft, at.view))
        return draft.change(), effect

    effect, _ = writer.settle(lambda: seat(effect_id, caller.tenant_id, **_heard(effect_id, reference)), rule)
    return effect


@writes(
    moves="A committed effect's reference; inserts a report with the person's evidence. The one before stays in the report that gave it.",
    twice="The second is refused: `changed`, since the first is news to it.",
    dies="The corrected reference stands; nothing waits for it.",
)
def correct(caller: Caller, effect_id: UUID, evidence: str, reference: str, *, read: Read) -> EffectRow:
    """A person gives another reference for what a person had settled as done, and how they know. The outcome stays as it is.

    Raises LedgerError `agents-never-decide`, `forbidden`, `invalid`, `changed`, `reference-taken`, `wrong-state`.
    """
    found, person_id = _checked(caller, evidence)

    def rule(at: Seat) -> tuple[Change | None, EffectRow]:
        _check_may_say(person_id, at, read)
        draft = run_draft(at.view, caller.actor, "effect.correct", fresh_authority=True)
        rules.check_reference(reference, _others(at))
        last = words_of(at.view).get(effect_id)
        judged = Judged(at.effect.state, new_body(found, at.view.now), "", reference, last)
        effect = rules.correct(draft, at.effect, judged)
        return draft.change(), effect

    effect, _ = writer.settle(lambda: seat(effect_id, caller.tenant_id, **_heard(effect_id, reference)), rule)
    return effect


def _checked(caller: Caller, evidence: str) -> tuple[bytes, UUID]:
    """What a person says of how they know, canonical, and who they are. Raises LedgerError `agents-never-decide`, `invalid`."""
    if caller.person_id is None:
        raise LedgerError("agents-never-decide", "a verdict is a person's", "Sign in and decide on the Reconcile page.")
    text = evidence.strip()
    if not text:
        raise LedgerError("invalid", "a verdict needs evidence", "Say where you looked and what you found.")
    if len(text) > LONGEST_EVIDENCE:
        raise LedgerError("invalid", f"the evidence is longer than {LONGEST_EVIDENCE} characters", "Shorten it.")
    return canonical({"text": text}), caller.person_id


def _check_may_say(person_id: UUID, at: Seat, read: Read) -> None:
    """A person's word on an effect is for who operates its workflow and has read what there is. Raises LedgerError `forbidden`, `changed`."""
    if not permissions.can(person_id, Verb.OPERATE, WorkflowType(pk=at.view.head.workflow_id)):
        raise LedgerError("forbidden", "you may not operate this workflow", "Ask an administrator for the right.")
    rules.check_read(read, read_of(at.effect, at.view.extras["newest_report"]))


def _others(at: Seat) -> list[EffectRow]:
    return [load(EffectRow, row) for row in at.view.extras["proven"] if row]


def _heard(effect_id: UUID, reference: str) -> dict[str, Part]:
    return {**last_word(effect_id), **newest_report(effect_id), **_proven_by(reference, effect_id)}


def _proven_by(reference: str, effect_id: UUID) -> dict[str, Part]:
    """Another call at the effect's target that is recorded as done under this reference."""
    at_target = "t.target_id = (SELECT o.target_id FROM ledger_effect o WHERE o.id = %s)"
    same = f"t.tenant_id = h.tenant_id AND t.reference = %s AND t.reference <> '' AND t.state = 'committed' AND t.id <> %s AND {at_target}"
    return {"proven": Part("effect", same, (reference, effect_id, effect_id))}
