"""The table of effects: every state against what a target answers and what a person says, as the design has it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.domain import effects
from ledger.domain.authority import GrantState
from ledger.domain.canonical import Body
from ledger.domain.effects import (
    EffectRow,
    EffectState,
    Judged,
    Look,
    LookAnswer,
    ReportKind,
    ReportRow,
)
from ledger.domain.effects.looks import LOOKING_FOR, LOOKS_BEFORE_GIVING_UP, LOOKS_IN_ALL, PARKED
from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import HandoffRow, HandoffState
from ledger.domain.runs import Intent, Status
from tests.domain.effect_facts import FENCE, NOW, Scene, effect, target, uid

P, I, U, F, C, WD, WO = (
    EffectState.PROPOSED,
    EffectState.IN_FLIGHT,
    EffectState.UNKNOWN,
    EffectState.FAILED,
    EffectState.COMMITTED,
    EffectState.WITHDRAWN,
    EffectState.WRITTEN_OFF,
)


def look(scene: Scene, answer: LookAnswer, **changes: Any) -> EffectRow:
    asked = replace(Look(answer, NOW, scene.effect.attempt), **changes)
    return effects.apply_look(scene.draft, scene.view, scene.effect, asked)[0]


A = LookAnswer
EARLY = {"answer_by": NOW + timedelta(seconds=30)}


@pytest.mark.parametrize(
    ("state", "changes", "answer", "to", "cause"),
    [
        (I, {"accepted": True, **EARLY}, A.APPLIED, C, ""),
        (I, {"accepted": True, **EARLY}, A.REFUSED, F, "rejected"),
        (I, {"accepted": True, **EARLY}, A.ABSENT, I, ""),
        (I, {"accepted": True}, A.ABSENT, U, ""),
        (I, {"accepted": True, **EARLY}, A.IN_PROGRESS, I, ""),
        (I, {"accepted": True}, A.IN_PROGRESS, U, ""),
        (I, {"accepted": True, **EARLY}, A.CANNOT_TELL, I, ""),
        (I, {"accepted": True, **EARLY}, A.DIFFERS, U, ""),
        (I, EARLY, A.APPLIED, I, ""),
        (I, EARLY, A.REFUSED, I, ""),
        (I, EARLY, A.DIFFERS, U, ""),
        (U, {}, A.APPLIED, C, ""),
        (U, {}, A.REFUSED, F, "rejected"),
        (U, {}, A.ABSENT, F, "confirmed_absent"),
        (U, EARLY, A.ABSENT, U, ""),
        (U, {}, A.IN_PROGRESS, U, ""),
        (U, {}, A.DIFFERS, U, ""),
        (U, {}, A.CANNOT_TELL, U, ""),
        (F, {}, A.APPLIED, U, ""),
        (F, {}, A.REFUSED, F, "not_dispatched"),
        (F, {}, A.ABSENT, F, "not_dispatched"),
        (F, {}, A.IN_PROGRESS, F, "not_dispatched"),
        (F, {}, A.CANNOT_TELL, F, "not_dispatched"),
        (C, {}, A.APPLIED, C, ""),
        (C, {}, A.IN_PROGRESS, C, ""),
        (C, {}, A.CANNOT_TELL, C, ""),
        (WO, {}, A.APPLIED, WO, ""),
    ],
)
def test_what_a_target_answers(
    state: EffectState, changes: dict[str, Any], answer: LookAnswer, to: EffectState, cause: str
) -> None:
    scene = Scene(effect(state, **changes), status=Status.WAKING)
    moved = look(scene, answer)
    assert (moved.state, moved.cause) == (to, cause)
    report = scene.inserted("effect_report")[0]
    assert (report["kind"], report["counted"]) == (ReportKind.LOOKUP, to is not state)
    if to in effects.OPEN:
        assert moved.due_at is not None


@pytest.mark.parametrize("answer", [A.REFUSED, A.DIFFERS, A.ABSENT])
def test_committed_is_final_and_a_contradiction_goes_to_a_person_once(answer: LookAnswer) -> None:
    scene = Scene(effect(C), status=Status.WAKING)
    moved = look(scene, answer)
    assert (moved.state, moved.disputed) == (C, True)
    assert scene.head_moves()["status"] == Status.BLOCKED
    assert [(h["reason"], h["blocks_run"]) for h in scene.inserted("handoff")] == [("effect-disputed", True)]
    again = Scene(moved, status=Status.BLOCKED)
    look(again, answer)
    assert again.inserted("handoff") == []


@pytest.mark.parametrize("status", [Status.RUNNING, Status.COMPLETED])
def test_a_contradiction_blocks_neither_a_working_holder_nor_an_ended_run(status: Status) -> None:
    scene = Scene(effect(C), status=status)
    look(scene, A.REFUSED)
    assert "status" not in scene.head_moves()
    assert [h["blocks_run"] for h in scene.inserted("handoff")] == [False]


@given(st.integers(-40, 40))
def test_absent_is_believed_only_if_it_was_asked_from_the_horizon_on(seconds: int) -> None:
    at = target()
    scene = Scene(effect(U, at, answer_by=NOW), at, status=Status.WAKING)
    asked_at = NOW + timedelta(seconds=seconds)
    scene.draft.at = NOW + timedelta(minutes=1)
    moved = look(scene, A.ABSENT, asked_at=asked_at)
    believed = seconds >= at.visibility_delay
    assert moved.state is (F if believed else U)


def test_absent_proves_nothing_once_the_target_may_have_forgotten_the_key() -> None:
    at = target(key_retention=60)
    scene = Scene(effect(U, at), at, status=Status.WAKING)
    moved = look(scene, A.ABSENT)
    assert moved.state is U
    assert [h["reason"] for h in scene.inserted("handoff")] == ["reconcile-gave-up"]


def test_an_answer_about_an_earlier_attempt_counts_only_if_it_was_applied() -> None:
    assert look(Scene(effect(U, attempt=2), status=Status.WAKING), A.ABSENT, attempt=1).state is U
    assert look(Scene(effect(U, attempt=2), status=Status.WAKING), A.REFUSED, attempt=1).state is U
    assert look(Scene(effect(U, attempt=2), status=Status.WAKING), A.APPLIED, attempt=1).state is C


@given(st.integers(0, LOOKS_BEFORE_GIVING_UP - 2))
def test_cannot_tell_backs_off(looks: int) -> None:
    scene = Scene(effect(U, looks=looks), status=Status.WAKING)
    moved = look(scene, A.CANNOT_TELL)
    assert moved.looks == looks + 1 and moved.due_at is not None
    assert moved.due_at - NOW == timedelta(seconds=min(2**looks, 300))
    assert scene.inserted("handoff") == []


@pytest.mark.parametrize(
    ("changes", "cause"),
    [({"looks": LOOKS_BEFORE_GIVING_UP - 1}, ""), ({}, "no-lookup"), ({}, "key-forgotten")],
)
def test_the_reconciler_gives_up_and_a_person_takes_over(changes: dict[str, Any], cause: str) -> None:
    scene = Scene(effect(U, **changes), status=Status.WAKING)
    moved = look(scene, A.CANNOT_TELL, cause=cause)
    assert (moved.state, moved.due_at) == (U, NOW + PARKED)
    assert [(h["reason"], h["effect_id"]) for h in scene.inserted("handoff")] == [("reconcile-gave-up", moved.id)]
    assert scene.head_moves()["status"] == Status.BLOCKED
    assert scene.head_moves()["fence_count"] == FENCE.count + 1


def test_a_run_is_not_taken_from_its_holder_to_be_handed_over() -> None:
    scene = Scene(effect(U), status=Status.RUNNING)
    moved = look(scene, A.DIFFERS)
    assert scene.inserted("handoff") == [] and "status" not in scene.head_moves()
    assert moved.due_at is not None and moved.due_at > NOW


def test_an_amount_that_differs_goes_to_a_person() -> None:
    scene = Scene(effect(U), status=Status.WAKING)
    look(scene, A.DIFFERS)
    assert [h["reason"] for h in scene.inserted("handoff")] == ["effect-differs"]


def test_a_settled_effect_wakes_a_waking_run_anew() -> None:
    scene = Scene(effect(U), status=Status.WAKING)
    look(scene, A.APPLIED)
    assert scene.inserted("wake")[0]["reasons"] == ["effect_settled"]


@pytest.mark.parametrize(("state", "status"), [(HandoffState.OPEN, Status.WAKING), (HandoffState.ACCEPTED, None)])
def test_a_handoff_that_nobody_has_taken_is_withdrawn_when_the_answer_comes(
    state: HandoffState, status: Status | None
) -> None:
    scene = Scene(effect(U), status=Status.BLOCKED)
    handoff = HandoffRow(
        uid(60), scene.effect.run_id, scene.effect.id, state, "reconcile-gave-up", True, None, NOW, NOW
    )
    scene.view = replace(scene.view, handoff=handoff)
    assert look(scene, A.APPLIED).state is C
    assert scene.head_moves().get("status") == status


WITHIN = timedelta(seconds=30)


# Replay ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [state for state in EffectState if state is not U])
def test_only_an_unknown_effect_is_looked_up_by_replay(state: EffectState) -> None:
    at = target(first_result_replayed=True)
    scene = Scene(effect(state, at), at)
    with pytest.raises(LedgerError, match="wrong-state"):
        effects.begin_replay(scene.draft, scene.view, scene.effect, None, WITHIN)


@given(st.integers(0, 1000))
def test_a_replay_is_sent_only_inside_nine_tenths_of_the_retention(age: int) -> None:
    at = target(first_result_replayed=True, key_retention=500)
    scene = Scene(effect(U, at, first_permit_at=NOW - timedelta(seconds=age)), at)
    if age >= 450:
        with pytest.raises(LedgerError, match="expired"):
            effects.begin_replay(scene.draft, scene.view, scene.effect, None, WITHIN)
        assert scene.draft.empty()
    else:
        effects.begin_replay(scene.draft, scene.view, scene.effect, None, WITHIN)
        assert scene.inserted("effect_report")[0]["kind"] == ReportKind.REPLAY
        assert scene.draft.not_after == NOW + timedelta(seconds=450 - age)


ANSWERS_FIRST: dict[str, Any] = {"first_result_replayed": True}


@pytest.mark.parametrize("state", GrantState)
def test_a_replay_needs_the_leave_that_the_call_had(state: GrantState) -> None:
    at = target(**ANSWERS_FIRST)
    scene = Scene(effect(U, at), at, status=Status.WAKING)
    if state in (GrantState.REVOKED, GrantState.VOIDED):
        with pytest.raises(LedgerError, match="grant-void"):
            effects.begin_replay(scene.draft, scene.view, scene.effect, state, WITHIN)
        assert scene.draft.empty()
    else:
        effects.begin_replay(scene.draft, scene.view, scene.effect, state, WITHIN)


@pytest.mark.parametrize(
    ("status", "intent"),
    [(Status.WAKING, Intent.CANCEL), (Status.WAKING, Intent.FAIL), (Status.COMPLETED, Intent.NONE)],
)
def test_nothing_is_replayed_of_a_run_that_is_to_end_or_has_ended(status: Status, intent: Intent) -> None:
    at = target(**ANSWERS_FIRST)
    scene = Scene(effect(U, at), at, status=status, intent=intent)
    with pytest.raises(LedgerError, match="not-cleared"):
        effects.begin_replay(scene.draft, scene.view, scene.effect, None, WITHIN)


def test_while_a_replay_may_arrive_nobody_knows_that_the_call_was_not_done() -> None:
    at = target(**ANSWERS_FIRST, visibility_delay=0)
    scene = Scene(effect(U, at), at, status=Status.WAKING)
    effects.begin_replay(scene.draft, scene.view, scene.effect, None, WITHIN)
    [move] = [move for move in scene.draft.change().moves if move.table == "effect"]
    until = NOW + WITHIN + timedelta(seconds=at.call_limit)
    assert move.set["answer_by"] == until
    later = until + timedelta(hours=1)
    scene = Scene(effect(U, at, answer_by=later), at, status=Status.WAKING)
    effects.begin_replay(scene.draft, scene.view, scene.effect, None, WITHIN)
    [move] = [move for move in scene.draft.change().moves if move.table == "effect"]
    assert move.set["answer_by"] == later, "an accepted call's time isn't cut short"


def test_a_target_that_is_at_it_for_a_day_of_replays_is_left_to_a_person() -> None:
    assert sum((effects.pause(looks) for looks in range(LOOKS_IN_ALL)), timedelta()) >= LOOKING_FOR
    scene = Scene(effect(U, looks=LOOKS_IN_ALL - 1, answer_by=NOW), status=Status.WAKING)
    look(scene, A.IN_PROGRESS)
    assert [h["reason"] for h in scene.inserted("handoff")] == ["reconcile-gave-up"]
    scene = Scene(effect(U, looks=LOOKS_IN_ALL - 2, answer_by=NOW), status=Status.WAKING)
    look(scene, A.IN_PROGRESS)
    assert scene.inserted("handoff") == []


# Verdicts --------------------------------------------------------------------------------------

EVIDENCE = Body(uid(70), b"e" * 16, b'{"text":"seen in the bank statement"}')


@pytest.mark.parametrize(
    ("state", "outcome", "cause", "to"),
    [
        (U, C, "", C),
        (U, F, "confirmed_absent", F),
        (U, F, "rejected", F),
        (F, C, "", U),
        (C, F, "rejected", C),
    ],
)
def test_a_person_decides_with_evidence(state: EffectState, outcome: EffectState, cause: str, to: EffectState) -> None:
    scene = Scene(effect(state), status=Status.WAKING)
    moved = effects.verdict(scene.draft, scene.view, scene.effect, Judged(outcome, EVIDENCE, cause))
    assert moved.state is to and moved.disputed is (state is C)
    report = scene.inserted("effect_report")[0]
    assert (report["kind"], report["evidence_commitment"]) == (ReportKind.VERDICT, EVIDENCE.commitment)


@pytest.mark.parametrize(
    ("state", "outcome", "cause", "code"),
    [
        (P, C, "", "wrong-state"),
        (I, C, "", "wrong-state"),
        (C, C, "", "wrong-state"),
        (F, F, "rejected", "wrong-state"),
        (WD, C, "", "wrong-state"),
        (U, F, "", "invalid"),
        (U, F, "throttled", "invalid"),
        (U, C, "rejected", "invalid"),
        (U, WO, "", "invalid"),
    ],
)
def test_a_verdict_is_refused(state: EffectState, outcome: EffectState, cause: str, code: str) -> None:
    scene = Scene(effect(state), status=Status.WAKING)
    with pytest.raises(LedgerError, match=code):
        effects.verdict(scene.draft, scene.view, scene.effect, Judged(outcome, EVIDENCE, cause))


def test_a_person_s_word_on_what_no_machine_may_try_again_is_taken_once() -> None:
    at = target(key_retention=60)
    scene = Scene(effect(F, at, cause="throttled"), at, status=Status.WAKING)
    moved = effects.verdict(scene.draft, scene.view, scene.effect, Judged(F, EVIDENCE, "confirmed_absent"))
    assert (moved.state, moved.cause) == (F, "confirmed_absent")
    [word] = scene.inserted("effect_report")
    assert word["counted"] and word["attempt"] == 1
    said = ReportRow(**{name: word[name] for name in ReportRow.__dataclass_fields__})
    again = Scene(moved, at, status=Status.WAKING)
    with pytest.raises(LedgerError, match="wrong-state"):
        effects.verdict(again.draft, again.view, moved, Judged(F, EVIDENCE, "confirmed_absent", last_word=said))


@pytest.mark.parametrize("cause", ["confirmed_absent", "rejected"])
@pytest.mark.parametrize(("state", "disputed"), [(U, False), (U, True), (C, True), (F, True)])
def test_that_it_was_not_done_can_be_said_once_the_call_can_t_arrive_any_more(
    state: EffectState, disputed: bool, cause: str
) -> None:
    at = target(visibility_delay=5)
    for early, code in ((1, "wrong-state"), (0, "")):
        row = effect(state, at, disputed=disputed, answer_by=NOW - timedelta(seconds=5 - early))
        scene = Scene(row, at, status=Status.BLOCKED)
        if code:
            with pytest.raises(LedgerError, match=code):
                effects.verdict(scene.draft, scene.view, row, Judged(F, EVIDENCE, cause))
        else:
            effects.verdict(scene.draft, scene.view, row, Judged(F, EVIDENCE, cause))


def test_what_a_person_found_of_a_dispute_is_kept_of_what_is_recorded_as_done_alone() -> None:
    for state, held in ((C, "failed"), (F, "")):
        scene = Scene(effect(state, disputed=True), status=Status.BLOCKED)
        judged = Judged(F, EVIDENCE, "confirmed_absent")
        moved = effects.verdict(scene.draft, scene.view, scene.effect, judged)
        assert (moved.state, moved.disputed, moved.held) == (state, False, held)


@pytest.mark.parametrize(
    ("held", "answer", "disputed"),
    [
        ("failed", A.APPLIED, True),
        ("failed", A.REFUSED, False),
        ("failed", A.ABSENT, False),
        ("committed", A.APPLIED, False),
        ("committed", A.REFUSED, True),
        ("committed", A.ABSENT, True),
    ],
)
def test_only_what_speaks_against_a_finding_is_news(held: str, answer: LookAnswer, disputed: bool) -> None:
    assert look(Scene(effect(C, held=held), status=Status.WAKING), answer).disputed is disputed


@given(
    st.sampled_from(EffectState),
    st.sampled_from(LookAnswer),
    st.sampled_from([s for s in Status if s is not Status.WAITING]),
    st.booleans(),
    st.integers(0, 20),
)
def test_no_answer_of_a_target_resends_or_loses_anything(
    state: EffectState, answer: LookAnswer, status: Status, accepted: bool, looks: int
) -> None:
    scene = Scene(effect(state, accepted=accepted and state is I, looks=looks), status=status)
    moved = look(scene, answer)
    assert scene.inserted("permit") == []
    assert moved.attempt == scene.effect.attempt
    assert (moved.due_at is not None) or moved.state not in effects.OPEN
    if state is C:
        assert moved.state is C
    if moved.state is F and state is not F:
        assert answer in (A.REFUSED, A.ABSENT)
